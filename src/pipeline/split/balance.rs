//! The cut with the least largest chunk.
//!
//! The least bound that any cut holds is found by bisection over the floats themselves, so it is exact, and each trial
//! takes time linear in runs and chunks: iterations of one run cost the same and are taken many at a time.

use super::{Chunk, SplitError, UnitRun, cut, units};

/// What a unit adds to its chunk: cost, bytes at rest, bytes of each microbatch in flight.
type Weights = [f64; 3];

/// Units in a row of equal weights.
struct Stretch {
    count: u32,
    weights: Weights,
}

/// What ranks can hold.
#[derive(Debug, Clone, Copy)]
pub struct Room<'a> {
    /// Bytes of one iteration at rest, by run.
    pub rest: &'a [f64],
    /// Bytes that one iteration saves for each microbatch in flight, by run.
    pub saved: &'a [f64],
    /// Microbatches in flight at most, by chunk.
    pub in_flight: &'a [u32],
    /// Most bytes of a chunk.
    pub limit: f64,
}

/// The cut into chunks of at least one unit whose costliest chunk costs least; of several, the one with the
/// lexicographically least list of counts. `costs` are of one iteration, by run (seconds or bytes); NaN and negative
/// ones are 0. The cost of a chunk is added up from its last part to its first.
pub fn balanced(runs: &[UnitRun], costs: &[f64], chunks: u32) -> Result<Vec<Chunk>, SplitError> {
    let none = vec![0.0; runs.len()];
    let room = Room { rest: &none, saved: &none, in_flight: &[], limit: f64::MAX };
    balanced_within(runs, costs, chunks, room)
}

/// The same among the cuts whose every chunk fits its rank; among all where there is none.
pub fn balanced_within(runs: &[UnitRun], costs: &[f64], chunks: u32, room: Room<'_>) -> Result<Vec<Chunk>, SplitError> {
    for list in [costs, room.rest, room.saved] {
        if runs.len() != list.len() {
            return Err(SplitError::CostLength { costs: list.len(), runs: runs.len() });
        }
    }
    let units = units(runs, chunks)? as u32;
    let stretches = stretches(runs, [costs, room.rest, room.saved]);
    let fill = |bound: f64, room: Room<'_>| Filling { stretches: &stretches, units, chunks, bound, room }.counts();
    let room = if fill(f64::MAX, room).is_some() { room } else { Room { limit: f64::MAX, ..room } };
    let (mut low, mut high) = (0_u64, f64::MAX.to_bits());
    while low < high {
        // Floats that are not negative are in the order of their bits.
        let middle = low + (high - low) / 2;
        if fill(f64::from_bits(middle), room).is_some() {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Ok(cut(runs, &fill(f64::from_bits(high), room).unwrap_or_else(|| vec![1; chunks as usize])))
}

/// Largest cost taken as given, so that sums stay finite.
const LARGEST: f64 = 1e200;

/// The model's units, with the weights of code that is no unit added to the one it goes with.
fn stretches(runs: &[UnitRun], lists: [&[f64]; 3]) -> Vec<Stretch> {
    let mut stretches: Vec<Stretch> = Vec::new();
    let mut before_all = [0.0; 3];
    for (at, run) in runs.iter().enumerate() {
        // NaN is not above 0.
        let each = lists.map(|list| if list[at] > 0.0 { list[at].min(LARGEST) } else { 0.0 });
        let whole = each.map(|weight| f64::from(run.count) * weight);
        let nothing = whole.iter().all(|weight| *weight <= 0.0);
        match (run.units() as u32, stretches.last_mut()) {
            (0, _) if nothing => {}
            (0, None) => add(&mut before_all, 1.0, whole),
            (0, Some(last)) if last.count == 1 => add(&mut last.weights, 1.0, whole),
            (0, Some(last)) => {
                last.count -= 1;
                let mut weights = last.weights;
                add(&mut weights, 1.0, whole);
                stretches.push(Stretch { count: 1, weights });
            }
            (count, _) => {
                let weights = if run.repeated { each } else { whole };
                let mut first = std::mem::take(&mut before_all);
                if first.iter().any(|weight| *weight > 0.0) {
                    add(&mut first, 1.0, weights);
                    stretches.push(Stretch { count: 1, weights: first });
                    stretches.extend((count > 1).then_some(Stretch { count: count - 1, weights }));
                } else {
                    stretches.push(Stretch { count, weights });
                }
            }
        }
    }
    if stretches.is_empty() {
        stretches.push(Stretch { count: 1, weights: before_all });
    }
    stretches
}

/// `sum` and `times` the weights.
fn add(sum: &mut Weights, times: f64, weights: Weights) {
    for (sum, weight) in sum.iter_mut().zip(weights) {
        *sum += times * weight;
    }
}

/// Chunks filled from the last to the first, each as full as a bound allows.
struct Filling<'a> {
    stretches: &'a [Stretch],
    units: u32,
    chunks: u32,
    /// Largest cost of a chunk.
    bound: f64,
    room: Room<'a>,
}

impl Filling<'_> {
    /// The counts, if the bound leaves nothing over. Each chunk begins as early as one can, so no list of counts within
    /// the bound is lexicographically less; and a chunk before it has fewer units to take than in any other filling, so
    /// where this one fails all do.
    fn counts(&self) -> Option<Vec<u32>> {
        let mut counts = vec![0; self.chunks as usize];
        let (mut chunk, mut left) = (self.chunks as usize - 1, self.units);
        let (mut sum, mut held) = ([0.0; 3], 0);
        for stretch in self.stretches.iter().rev() {
            let mut of_stretch = stretch.count;
            while of_stretch > 0 {
                // Each chunk before this one needs a unit.
                let spare = left - chunk as u32;
                let taken = self.most(chunk, sum, stretch.weights, of_stretch.min(spare));
                if taken > 0 {
                    add(&mut sum, f64::from(taken), stretch.weights);
                    (of_stretch, left, held) = (of_stretch - taken, left - taken, held + taken);
                    continue;
                }
                if held == 0 || chunk == 0 {
                    return None;
                }
                counts[chunk] = held;
                (sum, held) = ([0.0; 3], 0);
                chunk -= 1;
            }
        }
        counts[chunk] = held;
        (chunk == 0).then_some(counts)
    }

    /// How many units of these weights still fit, of `left`. Rounding keeps sums monotone, so bisection finds it; a division
    /// says where to begin.
    fn most(&self, chunk: usize, sum: Weights, weights: Weights, left: u32) -> u32 {
        let live = f64::from(self.room.in_flight.get(chunk).copied().unwrap_or(0));
        let fits = |units: u32| {
            let mut sum = sum;
            add(&mut sum, f64::from(units), weights);
            sum[0] <= self.bound && sum[1] + live * sum[2] <= self.room.limit
        };
        let (held, each) = (sum[1] + live * sum[2], weights[1] + live * weights[2]);
        let guess = ((self.bound - sum[0]) / weights[0]).min((self.room.limit - held) / each);
        // Weights of 0 divide to no number or beyond all: then all may fit.
        let guess = if guess >= 0.0 { guess.min(f64::from(left)) as u32 } else { left };
        let (mut low, mut high) = match (fits(guess), guess) {
            (true, _) if guess == left || !fits(guess + 1) => return guess,
            (true, _) => (guess + 1, left),
            (false, 0) => return 0,
            (false, _) if fits(guess - 1) => return guess - 1,
            (false, _) => (0, guess - 1),
        };
        while low < high {
            let middle = high - (high - low) / 2;
            if fits(middle) {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        low
    }
}
