//! How old the weights are that gradients are computed with, counted from the orders.

use super::check::Schedule;
use super::schedule::{OpKind, ScheduleOp};

/// The oldest weights a rank's gradients are computed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Staleness {
    /// Updates between the weights of a forward and the update its gradient enters, at most.
    pub updates: u32,
    /// A backward, or weight gradient, that enters so late.
    pub op: Option<ScheduleOp>,
}

/// For each rank how stale its gradients are: updates of a chunk between a microbatch's forward and the last operation
/// that makes its gradient. 0 where nothing is updated before the end.
pub fn staleness(schedule: &Schedule) -> Vec<Staleness> {
    let last = if schedule.has_weight_gradients() { OpKind::W } else { OpKind::B };
    let mut updates = vec![0_u32; schedule.chunks() as usize];
    // Updates of its chunk before each forward, by microbatch and chunk.
    let mut version = std::collections::BTreeMap::new();
    let mut of_rank = |rank| {
        updates.fill(0);
        version.clear();
        let mut worst = Staleness { updates: 0, op: None };
        for op in schedule.order(rank) {
            let count = &mut updates[op.chunk as usize];
            match op.kind {
                OpKind::U => *count += 1,
                OpKind::F => {
                    version.insert((op.microbatch, op.chunk), *count);
                }
                kind if kind == last => {
                    let Some(began) = version.remove(&(op.microbatch, op.chunk)) else { continue };
                    if *count - began > worst.updates {
                        worst = Staleness { updates: *count - began, op: Some(*op) };
                    }
                }
                OpKind::B | OpKind::W => {}
            }
        }
        worst
    };
    (0..schedule.ranks()).map(&mut of_rank).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{legal, one_f_one_b, two_buffered};
    use super::*;

    fn worst(schedule: &Schedule) -> Vec<u32> {
        staleness(schedule).iter().map(|s| s.updates).collect()
    }

    /// Narayanan et al. 2021 (arXiv 2006.09503): with at least as many microbatches as stages a gradient enters at most
    /// one update late, none on the last stage.
    #[test]
    fn two_buffered_weights_are_one_update_old() {
        assert_eq!(worst(&legal(&two_buffered(4, 4))), [1, 1, 1, 0]);
        assert_eq!(worst(&legal(&two_buffered(4, 9))), [1, 1, 1, 0]);
    }

    /// An update after every microbatch, as `PipeDream`: rank s has p - 1 - s updates in between.
    #[test]
    fn an_update_for_each_microbatch() {
        assert_eq!(worst(&legal(&two_buffered(4, 1))), [3, 2, 1, 0]);
    }

    #[test]
    fn a_flush_leaves_nothing_stale() {
        assert_eq!(worst(&legal(&one_f_one_b(3, 4))), [0, 0, 0]);
    }
}
