//! How many microbatches' activations a rank holds at once, counted from its order.

use super::check::Schedule;
use super::schedule::{OpKind, ScheduleOp};

/// Live microbatches of one chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Live {
    /// The chunk.
    pub chunk: u32,
    /// How many of its microbatches are between forward and backward.
    pub microbatches: u32,
    /// How many are between backward and weight gradient, where that is an operation of its own.
    pub late: u32,
}

/// What a rank holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InFlight {
    /// At the first moment with the most bytes: the count of each chunk that the rank hosts or runs, by chunk.
    pub at_peak: Vec<Live>,
    /// Most microbatches of all chunks together at any one moment, whatever their bytes.
    pub most: u32,
    /// The place in the rank's order of the operation that brings it there.
    pub peak_after: Option<usize>,
}

/// What one microbatch of each chunk takes, in bytes. Missing, negative and NaN entries are 0; if all are, every
/// microbatch weighs the same from its forward until nothing needs it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Weights<'a> {
    /// Saved from forward to backward.
    pub saved: &'a [f64],
    /// Kept from backward to weight gradient.
    pub late: &'a [f64],
}

/// For each rank what it holds where it holds most. `F` allocates, `B` frees; where the schedule has weight gradients,
/// `B` leaves what they need, and `W` frees it. A chunk that no rank keeps may run backward elsewhere: what its forward
/// allocated stays.
pub fn in_flight(schedule: &Schedule, bytes: Weights<'_>) -> Vec<InFlight> {
    let weights = weights(bytes, schedule.chunks());
    (0..schedule.ranks()).map(|rank| of_rank(schedule, rank, &weights)).collect()
}

/// Saved and late bytes by chunk, as shares of the largest in 2^-64: sums of integers stay exact over any run, so equal
/// counts weigh the same wherever they occur.
fn weights(bytes: Weights<'_>, chunks: u32) -> Vec<[u128; 2]> {
    let of = |list: &[f64], chunk: u32| list.get(chunk as usize).map_or(0.0, |bytes| bytes.clamp(0.0, f64::MAX));
    let each = |chunk| [of(bytes.saved, chunk), of(bytes.late, chunk)];
    let largest = (0..chunks).flat_map(each).fold(0.0, f64::max);
    let share = |bytes: f64| if largest > 0.0 { bytes / largest } else { 1.0 };
    (0..chunks).map(|chunk| each(chunk).map(|bytes| (share(bytes) * 18_446_744_073_709_551_616.0) as u128)).collect()
}

/// How many microbatches of each chunk wait for their backward, and for their weight gradient.
struct Held {
    chunks: Vec<u32>,
    counts: Vec<[u32; 2]>,
    split: bool,
}

impl Held {
    /// Counts one operation; what it allocates and what it frees.
    fn step(&mut self, op: ScheduleOp, weights: &[[u128; 2]]) -> (u128, u128) {
        let Ok(place) = self.chunks.binary_search(&op.chunk) else { return (0, 0) };
        let ([waiting, late], [saved, kept]) = (&mut self.counts[place], weights[op.chunk as usize]);
        match op.kind {
            OpKind::F => {
                *waiting += 1;
                (saved, 0)
            }
            OpKind::B => {
                let freed = if *waiting > 0 { saved } else { 0 };
                *waiting = waiting.saturating_sub(1);
                *late += u32::from(self.split);
                (if self.split { kept } else { 0 }, freed)
            }
            OpKind::W => {
                let freed = if *late > 0 { kept } else { 0 };
                *late = late.saturating_sub(1);
                (0, freed)
            }
            OpKind::U => (0, 0),
        }
    }

    fn of(&self, chunk: u32) -> u32 {
        self.chunks.binary_search(&chunk).map_or(0, |at| self.counts[at].iter().sum())
    }
}

fn of_rank(schedule: &Schedule, rank: usize, weights: &[[u128; 2]]) -> InFlight {
    let order = schedule.order(rank);
    let mut chunks: Vec<u32> = schedule.hosts(rank).iter().copied().chain(order.iter().map(|op| op.chunk)).collect();
    chunks.sort_unstable();
    chunks.dedup();
    let split = schedule.has_weight_gradients();
    let counts = vec![[0; 2]; chunks.len()];
    let mut now = Held { chunks: chunks.clone(), counts: counts.clone(), split };
    // First pass: where the peak is. Second: the counts there, so that they are not copied at every new peak.
    let (mut held, mut peak, mut until, mut most) = (0_u128, 0_u128, 0_usize, 0_u32);
    let mut count = 0_u32;
    for (position, op) in order.iter().enumerate() {
        let before = now.of(op.chunk);
        let (more, less) = now.step(*op, weights);
        let after = now.of(op.chunk);
        held = held + more - less;
        count = count + after - before;
        most = most.max(count);
        if held > peak {
            (peak, until) = (held, position + 1);
        }
    }
    let mut at = Held { chunks, counts, split };
    for op in &order[..until] {
        at.step(*op, weights);
    }
    let live = at.chunks.iter().zip(&at.counts);
    let live = live.map(|(&chunk, &[microbatches, late])| Live { chunk, microbatches, late }).collect();
    InFlight { at_peak: live, most, peak_after: until.checked_sub(1) }
}

#[cfg(test)]
mod tests {
    use super::super::Orders;
    use super::super::testing::{gpipe, interleaved, legal, one_f_one_b, zb_h1};
    use super::*;

    fn saved(saved: &[f64]) -> Weights<'_> {
        Weights { saved, late: &[] }
    }

    fn most(orders: &Orders) -> Vec<u32> {
        in_flight(&legal(orders), Weights::default()).iter().map(|rank| rank.most).collect()
    }

    #[test]
    fn closed_forms_of_the_standard_schedules() {
        for p in 1..6 {
            for m in 1..9 {
                assert_eq!(most(&gpipe(p, m)), vec![m; p as usize]);
                let expected: Vec<u32> = (0..p).map(|s| m.min(p - s)).collect();
                assert_eq!(most(&one_f_one_b(p, m)), expected);
            }
        }
    }

    /// Weight gradients hold activations: H1 keeps every rank at the first rank's 1F1B count.
    #[test]
    fn zero_bubble_holds_until_the_weight_gradient() {
        for p in 1..6 {
            for m in 1..9 {
                assert_eq!(most(&zb_h1(p, m)), vec![p.min(m); p as usize]);
            }
        }
    }

    /// Narayanan et al. 2021: warm-up of `2(p-1-s) + (v-1)p` chunk forwards, and one more in the steady state.
    #[test]
    fn interleaving_holds_its_warm_up_and_one() {
        assert_eq!(most(&interleaved(4, 8, 2, 4)), [11, 9, 7, 5]);
        let first = &in_flight(&legal(&interleaved(4, 8, 2, 4)), Weights::default())[0];
        let counts: Vec<(u32, u32)> = first.at_peak.iter().map(|live| (live.chunk, live.microbatches)).collect();
        // Order of chunks on rank 0: 0000 4444 000 are the first eleven forwards.
        assert_eq!(counts, [(0, 7), (4, 4)]);
    }

    /// Rank 1 of ZB-H1 with p = 2, m = 2 by hand: F0 B0 F1 B1 W0 W1. Late bytes above the saved ones move the peak to
    /// after the second backward, when both weight gradients wait.
    #[test]
    fn late_bytes_wait_for_the_weight_gradient() {
        let schedule = legal(&zb_h1(2, 2));
        let peak = |late: &[f64]| in_flight(&schedule, Weights { saved: &[0.0, 2.0], late })[1].at_peak[0];
        assert_eq!(peak(&[0.0, 1.0]), Live { chunk: 1, microbatches: 1, late: 1 });
        assert_eq!(peak(&[0.0, 3.0]), Live { chunk: 1, microbatches: 0, late: 2 });
        assert_eq!(peak(&[]), Live { chunk: 1, microbatches: 1, late: 0 });
    }

    #[test]
    fn heavy_chunks_move_the_peak() {
        let schedule = legal(&gpipe(1, 1));
        assert_eq!(in_flight(&schedule, saved(&[5.0]))[0].at_peak, [Live { chunk: 0, microbatches: 1, late: 0 }]);

        let schedule = legal(&interleaved(2, 4, 2, 2));
        let counts = |bytes: &[f64]| -> Vec<u32> {
            in_flight(&schedule, saved(bytes))[0].at_peak.iter().map(|live| live.microbatches).collect()
        };
        // Rank 0 by hand: F00 F10 F02 F12 | F20 B02 F30 B12 F22 B00 F32 B10 | B22 B32 B20 B30.
        // (chunk 0, chunk 2) counts: 20 22 | 32 31 41 40 41 31 32 22 | …: 32 first has five.
        assert_eq!(counts(&[1.0, 1.0, 1.0, 1.0]), [3, 2]);
        assert_eq!(counts(&[9.0, 1.0, 1.0, 1.0]), [4, 1]);
        assert_eq!(counts(&[1.0, 1.0, 9.0, 1.0]), [3, 2]);
        assert_eq!(counts(&[f64::NAN, 1.0, -1.0, 1.0]), [0, 0]);
        assert_eq!(counts(&[f64::INFINITY, 0.0, 0.0, 0.0]), [4, 1]);
    }

    /// One rank, two chunks, and only the second weighs: it is alive alone twice, first beside two of the first.
    #[test]
    fn the_first_of_equal_peaks() {
        let (f, b) = (ScheduleOp::forward, ScheduleOp::backward);
        let order = vec![f(0, 0), f(1, 0), f(0, 1), b(0, 1), b(0, 0), f(1, 1), b(1, 1), b(1, 0)];
        let orders =
            Orders { ranks: vec![order], hosts: vec![vec![0, 1]], chunks: 2, microbatches: 2, ..Orders::default() };
        let rank = &in_flight(&legal(&orders), saved(&[0.0, 1.0]))[0];
        let counts: Vec<u32> = rank.at_peak.iter().map(|live| live.microbatches).collect();
        assert_eq!((counts, rank.most), (vec![2, 1], 3));
    }

    #[test]
    fn nothing_is_held_where_nothing_runs() {
        assert!(in_flight(&legal(&gpipe(0, 0)), Weights::default()).is_empty());
        let idle = &in_flight(&legal(&gpipe(1, 0)), saved(&[1.0]))[0];
        assert_eq!((idle.at_peak.as_slice(), idle.most), ([Live { chunk: 0, microbatches: 0, late: 0 }].as_slice(), 0));
    }
}
