//! How many microbatches' activations a rank holds at once, counted from its order.

use super::check::Schedule;
use super::schedule::OpKind;

/// Live microbatches of one chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Live {
    /// The chunk.
    pub chunk: u32,
    /// How many of its microbatches are between forward and the operation that frees them.
    pub microbatches: u32,
}

/// What a rank holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InFlight {
    /// At the first moment with the most bytes: the count of each chunk that the rank hosts or runs, by chunk.
    pub at_peak: Vec<Live>,
    /// Most microbatches of all chunks together at any one moment, whatever their bytes.
    pub most: u32,
}

/// For each rank what it holds where it holds most; `bytes` are the saved activations of one microbatch, by chunk
/// (missing, negative and NaN entries are 0; if all are, every microbatch weighs the same). `F` allocates; `B` frees,
/// or `W` if the schedule has weight gradients.
pub fn in_flight(schedule: &Schedule, bytes: &[f64]) -> Vec<InFlight> {
    let frees = if schedule.has_weight_gradients() { OpKind::W } else { OpKind::B };
    let weights = weights(bytes, schedule.chunks());
    (0..schedule.ranks()).map(|rank| of_rank(schedule, rank, frees, &weights)).collect()
}

/// Bytes as shares of the largest in 2^-64: sums of integers stay exact over any run, so equal counts weigh the same
/// wherever they occur.
fn weights(bytes: &[f64], chunks: u32) -> Vec<u128> {
    let bytes = |chunk: u32| bytes.get(chunk as usize).map_or(0.0, |bytes| bytes.clamp(0.0, f64::MAX));
    let largest = (0..chunks).map(bytes).fold(0.0, f64::max);
    let share = |chunk| if largest > 0.0 { bytes(chunk) / largest } else { 1.0 };
    (0..chunks).map(|chunk| (share(chunk) * 18_446_744_073_709_551_616.0) as u128).collect()
}

fn of_rank(schedule: &Schedule, rank: usize, frees: OpKind, weights: &[u128]) -> InFlight {
    let order = schedule.order(rank);
    let mut chunks: Vec<u32> = schedule.hosts(rank).iter().copied().chain(order.iter().map(|op| op.chunk)).collect();
    chunks.sort_unstable();
    chunks.dedup();
    let place = |chunk: u32| chunks.binary_search(&chunk).ok();

    // First pass: where the peak is. Second: the counts there, so that they are not copied at every new peak.
    let (mut held, mut peak, mut until) = (0_u128, 0_u128, 0_usize);
    let (mut count, mut most) = (0_u32, 0_u32);
    for (position, op) in order.iter().enumerate() {
        let weight = weights[op.chunk as usize];
        if op.kind == OpKind::F {
            held += weight;
            count += 1;
            most = most.max(count);
        } else if op.kind == frees {
            held -= weight;
            count -= 1;
        }
        if held > peak {
            (peak, until) = (held, position + 1);
        }
    }
    let mut live = vec![0; chunks.len()];
    for op in &order[..until] {
        let Some(live) = place(op.chunk).and_then(|place| live.get_mut(place)) else { continue };
        if op.kind == OpKind::F {
            *live += 1;
        } else if op.kind == frees {
            *live -= 1;
        }
    }
    let live = chunks.iter().zip(live).map(|(&chunk, microbatches)| Live { chunk, microbatches });
    InFlight { at_peak: live.collect(), most }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{gpipe, interleaved, legal, one_f_one_b, zb_h1};
    use super::super::{Orders, ScheduleOp};
    use super::*;

    fn most(orders: &Orders) -> Vec<u32> {
        in_flight(&legal(orders), &[]).iter().map(|rank| rank.most).collect()
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
        let first = &in_flight(&legal(&interleaved(4, 8, 2, 4)), &[])[0];
        let counts: Vec<(u32, u32)> = first.at_peak.iter().map(|live| (live.chunk, live.microbatches)).collect();
        // Order of chunks on rank 0: 0000 4444 000 are the first eleven forwards.
        assert_eq!(counts, [(0, 7), (4, 4)]);
    }

    #[test]
    fn heavy_chunks_move_the_peak() {
        let schedule = legal(&gpipe(1, 1));
        assert_eq!(in_flight(&schedule, &[5.0])[0].at_peak, [Live { chunk: 0, microbatches: 1 }]);

        let schedule = legal(&interleaved(2, 4, 2, 2));
        let counts = |bytes: &[f64]| -> Vec<u32> {
            in_flight(&schedule, bytes)[0].at_peak.iter().map(|live| live.microbatches).collect()
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
        let orders = Orders { ranks: vec![order], hosts: vec![vec![0, 1]], chunks: 2, microbatches: 2 };
        let rank = &in_flight(&legal(&orders), &[0.0, 1.0])[0];
        let counts: Vec<u32> = rank.at_peak.iter().map(|live| live.microbatches).collect();
        assert_eq!((counts, rank.most), (vec![2, 1], 3));
    }

    #[test]
    fn nothing_is_held_where_nothing_runs() {
        assert!(in_flight(&legal(&gpipe(0, 0)), &[]).is_empty());
        let idle = &in_flight(&legal(&gpipe(1, 0)), &[1.0])[0];
        assert_eq!((idle.at_peak.as_slice(), idle.most), ([Live { chunk: 0, microbatches: 0 }].as_slice(), 0));
    }
}
