//! `merge_moves`: two moves of one tensor in a row are one move, or none.
//!
//! By the rules a value comes to rest where its own region wants it and is brought from there to where it is used. Where
//! the two undo each other, the value is used where it was made; where both are over the same axes, it goes there at once.
//!
//! Law: no more bytes are sent than before, and no more collectives.

use super::edit::{Edit, Moving};
use crate::partition::CollectiveKind::{self, AllGather, AllReduce, AllToAll, ReduceScatter, Slice};
use crate::partition::{StepId, TensorId};
use indexmap::IndexSet;

pub(super) fn run(edit: &mut Edit<'_>) {
    let writers = edit.writers();
    let mut readers = edit.readers();
    let mut kept: IndexSet<TensorId> = edit.kept().into_iter().collect();
    for (unit, phase, steps) in edit.lists() {
        for second in steps {
            let Some(after) = edit.moving(second) else { continue };
            let Some(first) = writers.get(&after.from).copied() else { continue };
            let Some(before) = edit.moving(first) else { continue };
            // What one pass of training made and did not keep is gone in the next.
            let step = &edit.sharded.flow[first];
            if (step.unit, step.phase) != (unit, phase) {
                continue;
            }
            if edit.place(before.from) == edit.place(after.to) {
                edit.replace(after.to, before.from);
                edit.remove(second);
                let moved = readers.swap_remove(&after.to).unwrap_or_default();
                readers.entry(before.from).or_default().extend(moved);
                if kept.contains(&after.to) {
                    kept.insert(before.from);
                }
                continue;
            }
            // What the first made is for the second alone.
            let alone = readers.get(&after.from).is_some_and(|r| r.len() == 1) && !kept.contains(&after.from);
            if alone {
                compose(edit, (first, &before), (second, &after));
            }
        }
    }
    edit.sweep();
}

/// Makes one move of two over the same axes, where there is one that sends no more.
fn compose(edit: &mut Edit<'_>, (first, before): (StepId, &Moving), (second, after): (StepId, &Moving)) {
    if before.what.axes != after.what.axes || before.what.maximum {
        return;
    }
    let (kind, bytes): (CollectiveKind, _) = match (before.what.kind, after.what.kind) {
        // Gathered along one dimension and cut along another: each rank sends what it has.
        (AllGather, Slice) => {
            let ranks = edit.ranks(&before.what.axes);
            (AllToAll, edit.exprs.exact_div(before.what.bytes, ranks))
        }
        (AllToAll, AllToAll) => (AllToAll, before.what.bytes),
        (ReduceScatter, AllGather) => (AllReduce, before.what.bytes),
        _ => return,
    };
    let from = before.from;
    edit.sharded.flow[second].reads[0] = from;
    if let Some(c) = edit.collective(second) {
        (c.kind, c.bytes) = (kind, bytes);
    }
    edit.remove(first);
}
