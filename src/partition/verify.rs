//! Checks a partitioned program against rules it must keep, stated anew here. For debug builds and tests.
//!
//! 1. An axis does one thing to a value, and only to dimensions the value has.
//! 2. Each operand of an op is in a placement under which the op is right on every rank.
//! 3. A value rests partial only where its one use may read a partial sum.
//! 4. A collective has an axis, each once; bytes and steps are where their lists say.
//! 5. Steps wait for earlier steps only.
//! 6. A unit keeps a tensor once.
//! 7. A tensor is written once, has its value's dimensions, and a collective writes one for each it reads.

use super::placement::AxisUse::{self, Partial, Split, Whole};
use super::plan::Plan;
use super::{Content, Phase, Placement, ShardedGraph, StepKind};
use crate::graph::{OpGraph, OpId, OpKind, ValueId};
use crate::layout::{AxisId, Layout};

/// What is wrong with `sharded`, in words; nothing where it keeps the rules that can be seen from outside.
pub fn verify(graph: &OpGraph, layout: &Layout, sharded: &ShardedGraph) -> Vec<String> {
    let mut broken = Vec::new();
    for (at, place) in sharded.placements.iter().enumerate() {
        placement(graph, layout, ValueId(at as u32), place, &mut broken);
    }
    for edge in sharded.flow.raw_edges() {
        if edge.source() >= edge.target() {
            broken.push(format!("step {} waits for step {}", edge.target().index(), edge.source().index()));
        }
    }
    tensors(graph, layout, sharded, &mut broken);
    for (at, unit) in sharded.units.iter().enumerate() {
        let lists = [(Phase::Forward, &unit.forward), (Phase::Backward, &unit.backward), (Phase::Update, &unit.update)];
        for (phase, steps) in lists {
            for id in steps {
                let step = &sharded.flow[*id];
                if step.phase != phase || step.unit as usize != at {
                    broken.push(format!("step {} is in the list of unit {at}, {phase:?}", id.index()));
                }
                if step.recomputed && phase != Phase::Backward {
                    broken.push(format!("step {} is recomputed outside a backward", id.index()));
                }
                if let StepKind::Collective(c) = &step.kind {
                    let once = c.axes.windows(2).all(|w| w[0] < w[1]);
                    if c.axes.is_empty() || !once {
                        broken.push(format!("the axes of step {} are not in mesh order, each once", id.index()));
                    }
                }
            }
        }
        let mut kept: Vec<_> = unit.saved.iter().filter_map(|s| Some((s.tensor?, s.value))).collect();
        kept.sort();
        if let Some(w) = kept.windows(2).find(|w| w[0].0 == w[1].0) {
            broken.push(format!("unit {at} keeps {} more than once", graph.describe(w[0].1)));
        }
    }
    broken
}

fn tensors(graph: &OpGraph, layout: &Layout, sharded: &ShardedGraph, broken: &mut Vec<String>) {
    for tensor in sharded.tensors.iter().filter(|t| !matches!(t.content, Content::Statistic(_))) {
        placement(graph, layout, tensor.value, &tensor.place, broken);
    }
    let mut written = vec![false; sharded.tensors.len()];
    for step in sharded.flow.node_weights() {
        for tensor in &step.writes {
            if std::mem::replace(&mut written[tensor.0 as usize], true) {
                broken.push(format!("tensor {} is written twice", tensor.0));
            }
        }
        if matches!(step.kind, StepKind::Collective(_)) && step.reads.len() != step.writes.len() {
            broken.push("a collective does not write what it moves".into());
        }
    }
}

/// Rules that need the plan as well.
pub(super) fn check(graph: &OpGraph, layout: &Layout, plan: &Plan, sharded: &ShardedGraph) -> Vec<String> {
    let mut broken = verify(graph, layout, sharded);
    for (id, op) in graph.ops() {
        let p = plan.op(id);
        for (at, (value, need)) in op.inputs.iter().zip(&p.needs).enumerate() {
            placement(graph, layout, *value, need, &mut broken);
            if !need.partial.is_empty() && !reads_partial(&op.kind) {
                broken.push(format!("operand {at} of {} is a partial sum", graph.describe(op.output)));
            }
        }
        placement(graph, layout, op.output, &p.natural, &mut broken);
        for axis in layout.axis_ids() {
            let needs: Vec<_> = p.needs.iter().map(|n| n.on(axis)).collect();
            if !right(graph, id, axis, layout, &needs, p.natural.on(axis)) {
                let name = &layout.axis(axis).name;
                let out = p.natural.on(axis);
                broken.push(format!("{} over {name}: {needs:?} gives {out:?}", graph.describe(op.output)));
            }
        }
    }
    broken
}

fn placement(graph: &OpGraph, layout: &Layout, value: ValueId, place: &Placement, broken: &mut Vec<String>) {
    let axes = place.axes();
    if axes.windows(2).any(|w| w[0] == w[1]) {
        broken.push(format!("an axis of {} does two things", graph.describe(value)));
    }
    let own = |d| graph.value(value).dims.contains(&d);
    if place.dims.iter().any(|(d, axes)| !own(*d) || axes.is_empty()) {
        let text = place.text(value, graph, layout);
        broken.push(format!("{} is split over a dimension it has not: {text}", graph.describe(value)));
    }
}

fn reads_partial(kind: &OpKind) -> bool {
    matches!(kind, OpKind::Map(_) | OpKind::Rename { .. } | OpKind::Combine(_))
}

/// Whether ranks along one axis that hold operands as `needs` compute what `out` says.
fn right(graph: &OpGraph, id: OpId, axis: AxisId, layout: &Layout, needs: &[AxisUse], out: AxisUse) -> bool {
    let op = &graph.flow[id];
    let has = |at: usize, d| graph.value(op.inputs[at]).dims.contains(&d);
    let each = |f: &dyn Fn(usize, AxisUse) -> bool| needs.iter().enumerate().all(|(at, u)| f(at, *u));
    // A dimension of the result: split alike wherever an operand has it.
    let alike = |d| each(&|at, u| u == if has(at, d) { Split(d) } else { Whole });
    match &op.kind {
        OpKind::Contract { contracted } => match out {
            Split(d) => !contracted.contains(&d) && alike(d),
            Partial => needs[0] == needs[1] && matches!(needs[0], Split(d) if contracted.contains(&d)),
            Whole => each(&|_, u| u == Whole),
        },
        OpKind::Map(_) => match out {
            Split(d) => alike(d),
            Partial => each(&|_, u| u == Partial),
            Whole => each(&|_, u| u == Whole),
        },
        OpKind::Norm { .. } | OpKind::Softmax { .. } => match out {
            Split(d) => alike(d),
            Whole => each(&|_, u| u == Whole),
            Partial => false,
        },
        OpKind::CrossEntropy { over, .. } => match (needs[0], out) {
            (Split(d), Whole) => Some(d) == *over,
            (Split(d), Split(e)) => d == e,
            (Split(d), Partial) => Some(d) != *over && !graph.value(op.output).dims.contains(&d),
            (u, out) => u == out,
        },
        OpKind::Embed { over, bag } => match (needs[0], needs[1], out) {
            (Whole, Split(d), Partial) => d == *over,
            (Split(d), Whole, Partial) => Some(d) == *bag,
            (Split(d), Split(e), Split(f)) => d == e && e == f && has(0, d) && has(1, d),
            (Whole, Split(d), Split(e)) | (Split(d), Whole, Split(e)) => d == e && d != *over,
            (a, b, c) => (a, b, c) == (Whole, Whole, Whole),
        },
        OpKind::Take { from, to } => match (needs[0], out) {
            (Whole, Split(d)) => d == *to,
            (Split(d), Split(e)) => d == e && d != *from,
            (u, out) => u == out && u != Partial,
        },
        OpKind::Sum { over } => match (needs[0], out) {
            (Split(d), Partial) => over.contains(&d),
            (Split(d), Split(e)) => d == e && !over.contains(&d),
            (u, out) => u == out,
        },
        OpKind::Rename { from, to } => match (needs[0], out) {
            (Split(d), Split(e)) => (if d == *from { *to } else { d }) == e,
            (u, out) => u == out,
        },
        OpKind::Split { from, into } => match (needs[0], out) {
            (Split(d), Split(e)) if d == *from => into.contains(&e),
            (u, out) => u == out,
        },
        OpKind::Merge { from, into } => match (needs[0], out) {
            (Split(d), Split(e)) if from.contains(&d) => e == *into,
            (u, out) => u == out,
        },
        OpKind::Attention(a) => match (needs, out) {
            ([Split(q), k, v, ..], Split(o)) if q == &o && o == a.heads => {
                [k, v].iter().all(|x| **x == Whole || **x == Split(a.kv_heads))
            }
            ([Split(q), Whole, Whole, ..], Split(o)) if q == &o && o == a.sequence && a.keys != o => true,
            ([Split(q), k, v, ..], Split(o)) if q == &o && o == a.sequence => {
                let path = &graph.regions[op.region.0 as usize].path;
                let ring = super::attention::method(layout, path, axis) == Some(crate::layout::AttentionMethod::Ring);
                k == v && *k == if ring { Split(a.sequence) } else { Whole }
            }
            ([Whole, Whole, Split(v), ..], Split(o)) => *v == o && o == a.value_dim,
            ([q, k, v, ..], out) => *q == out && *k == out && *v == out && out != Partial,
            _ => false,
        },
        OpKind::Regroup { pairs } => match (needs[0], out) {
            (Split(d), Split(e)) => pairs.iter().find(|(from, _)| *from == d).map_or(d, |(_, to)| *to) == e,
            (u, out) => u == out,
        },
        OpKind::Concat { over: whole } | OpKind::Select { experts: whole, .. } => match out {
            Split(d) => d != *whole && alike(d),
            Whole => each(&|_, u| u == Whole),
            Partial => false,
        },
        OpKind::Dispatch(r) => match (needs[0], needs[1], out) {
            (Split(d), Split(e), Split(f)) => d == e && (f == r.experts || f == r.slots),
            (Whole, Whole, Split(f)) => f == r.experts,
            (Split(d), Whole, Split(e)) => d == e && !has(1, d),
            (h, route, out) => (h, route, out) == (Whole, Whole, Whole),
        },
        OpKind::Combine(r) => match (needs[0], needs[1], out) {
            (Split(f), Split(d), Split(e)) => d == e && (f == r.experts || f == r.slots),
            (Split(f), Whole, Partial) => f == r.experts,
            (Split(d), Whole, Split(e)) => d == e && !has(1, d),
            (Partial, route, out) => route == Whole && out == Partial,
            (u, route, out) => (u, route, out) == (Whole, Whole, Whole),
        },
        OpKind::Custom(c) => match out {
            Split(d) => !c.whole.contains(&d) && alike(d),
            Partial => needs.iter().any(|u| matches!(u, Split(d) if c.contracts.contains(d))),
            Whole => each(&|_, u| u == Whole),
        },
    }
}
