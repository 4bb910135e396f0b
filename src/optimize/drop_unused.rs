//! `drop_unused`: what nothing reads is not made, and not kept.
//!
//! What runs again in the backward runs to the end of its region by the rules, as activation checkpointing used to; the
//! last product and its sum are then read by nobody. Results of the model that lead to no loss are others.
//!
//! Law: the steps after are some of those before, and what parameters become and what the loss is stay.

use super::edit::Edit;
use crate::partition::{Phase, StepId, TensorId};
use indexmap::IndexSet;

pub(super) fn run(edit: &mut Edit<'_>) {
    let (writers, before) = (edit.writers(), read_again(edit));
    let mut wanted = edit.results();
    let mut used = vec![false; edit.sharded.flow.node_count()];
    let mut seen = vec![false; edit.sharded.tensors.len()];
    while let Some(tensor) = wanted.pop() {
        if std::mem::replace(&mut seen[tensor.0 as usize], true) {
            continue;
        }
        let Some(step) = writers.get(&tensor) else { continue };
        used[step.index()] = true;
        wanted.extend(edit.sharded.flow[*step].reads.iter().copied());
    }
    let unused: Vec<StepId> = edit.sharded.flow.node_indices().filter(|s| !used[s.index()]).collect();
    for step in unused {
        edit.remove(step);
    }
    // What no backward reads any more is not kept for it.
    let after = read_again(edit);
    for unit in &mut edit.sharded.units {
        unit.saved.retain(|s| s.tensor.is_none_or(|t| after.contains(&t) || !before.contains(&t)));
    }
}

/// What backwards read.
fn read_again(edit: &Edit<'_>) -> IndexSet<TensorId> {
    let steps = edit.sharded.flow.node_indices().filter(|s| !edit.is_gone(*s));
    let backward = steps.map(|s| &edit.sharded.flow[s]).filter(|s| s.phase == Phase::Backward);
    backward.flat_map(|s| s.reads.iter().copied()).collect()
}
