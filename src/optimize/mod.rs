//! Passes over the partitioned program: what a runtime may do beyond what the rules say.
//!
//! In and out: a [`ShardedGraph`]. The rules of a layout give one program, and a plan speaks of that one unless the job
//! says that its runtime does more: `optimize = [share_copies]`. A pass that the framework of the user does not do would
//! make a prediction wrong, so none is assumed; what each would save is reported all the same.
//!
//! A pass never asks for a size. Each keeps its law, which its file states and `tests/it/optimize.rs` holds it to; all of
//! them keep what the program computes, and doing one twice does nothing more.

mod drop_unused;
mod edit;
mod merge_moves;
pub mod recompute;
mod scatter_sums;
mod share_copies;

use crate::expr;
use crate::graph::OpGraph;
use crate::layout::{Layout, Pass};
use crate::partition::{Bytes, Collective, CollectiveKind, Phase, ShardedGraph, StepId, StepKind};
use edit::Edit;
use indexmap::IndexMap;

/// What a program was made from.
#[derive(Copy, Clone, Debug)]
pub struct Context<'a> {
    /// The ops.
    pub graph: &'a OpGraph,
    /// The layout.
    pub layout: &'a Layout,
    /// Bytes of an element.
    pub bytes: &'a Bytes,
}

/// A collective as a pass met it: whose it is, and how often it runs.
#[derive(Clone, Debug)]
pub struct Moved {
    /// The unit it belongs to.
    pub unit: u32,
    /// Once a microbatch, or once an update.
    pub phase: Phase,
    /// What moves.
    pub collective: Collective,
}

/// What one pass did, or would do.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The pass.
    pub pass: Pass,
    /// Whether the job says that its runtime does it; else the program is as if it had not been there.
    pub assumed: bool,
    /// Collectives that are gone.
    pub removed: Vec<Moved>,
    /// Collectives that take their place.
    pub added: Vec<Moved>,
    /// Steps of work that are gone, by unit: how many.
    pub dropped: Vec<(u32, usize)>,
    /// Bytes that live longer than before in the backward, by unit.
    pub longer: Vec<(u32, expr::Id)>,
}

impl Outcome {
    /// Whether it changed nothing.
    pub fn is_nothing(&self) -> bool {
        self.removed.is_empty() && self.added.is_empty() && self.dropped.is_empty()
    }
}

/// What a pass leaves as it is and what it takes for granted, for reports.
pub fn assumes(pass: Pass) -> &'static str {
    match pass {
        Pass::MergeMoves => "the runtime sees that two moves of a tensor in a row are one, as XLA does",
        Pass::ScatterSums => {
            "the runtime turns an all-reduce into a reduce-scatter where each rank uses its own piece alone, as XLA does"
        }
        Pass::ShareCopies => "a tensor gathered for one layer is kept for the next that needs the same, as XLA does",
        Pass::DropUnused => {
            "what nothing reads is not computed; what runs again stops at the last value needed, as \
             `torch.utils.checkpoint` does"
        }
    }
}

/// Runs the passes a job assumes, in order.
pub fn apply(
    assumed: &[Pass],
    mut sharded: ShardedGraph,
    context: Context<'_>,
    exprs: &mut expr::Graph,
) -> (ShardedGraph, Vec<Outcome>) {
    let mut outcomes = Vec::new();
    for pass in assumed {
        let (after, outcome) = run(*pass, sharded, context, exprs);
        sharded = after;
        outcomes.push(Outcome { assumed: true, ..outcome });
    }
    (sharded, outcomes)
}

/// What each pass that is not assumed would do to `sharded` on its own, and the program it would leave.
pub fn tried(
    assumed: &[Pass],
    sharded: &ShardedGraph,
    context: Context<'_>,
    exprs: &mut expr::Graph,
) -> Vec<(ShardedGraph, Outcome)> {
    let others = Pass::ALL.into_iter().filter(|p| !assumed.contains(p));
    others.map(|p| run(p, sharded.clone(), context, exprs)).collect()
}

/// Runs `pass` over `sharded`.
pub fn run(
    pass: Pass,
    sharded: ShardedGraph,
    context: Context<'_>,
    exprs: &mut expr::Graph,
) -> (ShardedGraph, Outcome) {
    let before = collectives(&sharded);
    let work = work(&sharded);
    let mut edit = Edit::new(sharded, context, exprs);
    match pass {
        Pass::MergeMoves => merge_moves::run(&mut edit),
        Pass::ScatterSums => scatter_sums::run(&mut edit),
        Pass::ShareCopies => share_copies::run(&mut edit),
        Pass::DropUnused => drop_unused::run(&mut edit),
    }
    let (sharded, longer) = edit.finish();
    let (removed, added) = difference(before, collectives(&sharded));
    let left = self::work(&sharded);
    let dropped =
        work.iter().zip(left).enumerate().map(|(u, (before, after))| (u as u32, before.saturating_sub(after)));
    let dropped = dropped.filter(|(_, n)| *n > 0).collect();
    (sharded, Outcome { pass, assumed: false, removed, added, dropped, longer })
}

/// Steps of work of each unit.
fn work(sharded: &ShardedGraph) -> Vec<usize> {
    let worked = |id: &&StepId| matches!(sharded.flow[**id].kind, StepKind::Compute { .. });
    let units = sharded.units.iter();
    units.map(|u| u.forward.iter().chain(&u.backward).chain(&u.update).filter(worked).count()).collect()
}

/// Every collective that costs something.
fn collectives(sharded: &ShardedGraph) -> Vec<Moved> {
    let mut out = Vec::new();
    for (at, unit) in sharded.units.iter().enumerate() {
        for id in unit.forward.iter().chain(&unit.backward).chain(&unit.update) {
            let step = &sharded.flow[*id];
            if let StepKind::Collective(c) = &step.kind
                && c.kind != CollectiveKind::Slice
            {
                out.push(Moved { unit: at as u32, phase: step.phase, collective: c.clone() });
            }
        }
    }
    out
}

/// What is in the first list alone, and what in the second alone.
fn difference(before: Vec<Moved>, after: Vec<Moved>) -> (Vec<Moved>, Vec<Moved>) {
    let key = |m: &Moved| {
        let c = &m.collective;
        (m.unit, m.phase, c.kind, c.axes.clone(), c.bytes, c.value, c.purpose, c.maximum)
    };
    let mut left: IndexMap<_, Vec<Moved>> = IndexMap::new();
    for moved in after {
        left.entry(key(&moved)).or_default().push(moved);
    }
    let mut removed = Vec::new();
    for moved in before {
        if left.get_mut(&key(&moved)).and_then(Vec::pop).is_none() {
            removed.push(moved);
        }
    }
    (removed, left.into_values().flatten().collect())
}
