//! The cut with the least largest chunk.
//!
//! The least bound that any cut holds is found by bisection over the floats themselves, so it is exact, and each trial
//! takes time linear in runs and chunks: iterations of one run cost the same and are taken many at a time.

use super::{Chunk, SplitError, UnitRun, cut, units};

/// Units in a row of equal cost.
struct Stretch {
    count: u32,
    cost: f64,
}

/// The cut into chunks of at least one unit whose costliest chunk costs least; of several, the one with the
/// lexicographically least list of counts. `costs` are of one iteration, by run (seconds or bytes); NaN and negative
/// ones are 0. The cost of a chunk is added up from its last part to its first.
pub fn balanced(runs: &[UnitRun], costs: &[f64], chunks: u32) -> Result<Vec<Chunk>, SplitError> {
    if runs.len() != costs.len() {
        return Err(SplitError::CostLength { costs: costs.len(), runs: runs.len() });
    }
    let units = units(runs, chunks)?;
    let stretches = stretches(runs, costs);
    let (mut low, mut high) = (0_u64, f64::MAX.to_bits());
    while low < high {
        // Floats that are not negative are in the order of their bits.
        let middle = low + (high - low) / 2;
        if needed(&stretches, f64::from_bits(middle), chunks, |_| {}) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Ok(cut(runs, &counts(&stretches, f64::from_bits(high), units as u32, chunks)))
}

/// Largest cost taken as given, so that sums stay finite.
const LARGEST: f64 = 1e200;

/// The model's units, with the cost of code that is no unit added to the one it goes with.
fn stretches(runs: &[UnitRun], costs: &[f64]) -> Vec<Stretch> {
    let mut stretches: Vec<Stretch> = Vec::new();
    let mut before_all = 0.0;
    for (run, &cost) in runs.iter().zip(costs) {
        // NaN is not above 0.
        let cost = if cost > 0.0 { cost.min(LARGEST) } else { 0.0 };
        let whole = f64::from(run.count) * cost;
        match (run.units() as u32, stretches.last_mut()) {
            (0, _) if whole <= 0.0 => {}
            (0, None) => before_all += whole,
            (0, Some(last)) if last.count == 1 => last.cost += whole,
            (0, Some(last)) => {
                last.count -= 1;
                let cost = last.cost + whole;
                stretches.push(Stretch { count: 1, cost });
            }
            (count, _) => {
                let cost = if run.repeated { cost } else { whole };
                let leading = std::mem::take(&mut before_all);
                if leading > 0.0 {
                    stretches.push(Stretch { count: 1, cost: leading + cost });
                    stretches.extend((count > 1).then_some(Stretch { count: count - 1, cost }));
                } else {
                    stretches.push(Stretch { count, cost });
                }
            }
        }
    }
    if stretches.is_empty() {
        stretches.push(Stretch { count: 1, cost: before_all });
    }
    stretches
}

/// Fills chunks from the last to the first, each as full as the bound allows, and shows the count of each; whether at
/// most `chunks` are needed.
fn needed(stretches: &[Stretch], bound: f64, chunks: u32, mut show: impl FnMut(u32)) -> bool {
    let mut used = 0;
    let (mut sum, mut units) = (0.0, 0_u32);
    for stretch in stretches.iter().rev() {
        let mut left = stretch.count;
        while left > 0 {
            let taken = most(sum, stretch.cost, left, bound);
            if taken > 0 {
                sum += f64::from(taken) * stretch.cost;
                (left, units) = (left - taken, units + taken);
                continue;
            }
            // Full; and one unit alone is above the bound if nothing is in it yet.
            used += 1;
            if units == 0 || used >= chunks {
                return false;
            }
            show(units);
            (sum, units) = (0.0, 0);
        }
    }
    show(units);
    true
}

/// How many units of a cost still fit, of `left`. Rounding keeps sums monotone, so bisection finds it.
fn most(sum: f64, cost: f64, left: u32, bound: f64) -> u32 {
    let (mut low, mut high) = (0, left);
    while low < high {
        let middle = high - (high - low) / 2;
        if sum + f64::from(middle) * cost <= bound {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

/// Lexicographically least counts within a bound that some cut holds. The chunks after the first `j` begin where the
/// fullest ones from the end do, for the earliest begin is the least count before it; but no earlier than unit `j`.
fn counts(stretches: &[Stretch], bound: f64, units: u32, chunks: u32) -> Vec<u32> {
    let mut fullest = Vec::new();
    needed(stretches, bound, chunks, |count| fullest.push(count));
    // Begins of the fullest chunks, from the last; the chunks it leaves over begin at unit 0.
    let mut begins: Vec<u32> = fullest
        .iter()
        .scan(units, |begin, count| {
            *begin -= count;
            Some(*begin)
        })
        .collect();
    begins.resize(chunks as usize, 0);
    begins.reverse();
    let begins = (0..).zip(begins).map(|(chunk, begin)| begin.max(chunk));
    let ends = begins.clone().skip(1).chain([units]);
    begins.zip(ends).map(|(begin, end)| end - begin).collect()
}
