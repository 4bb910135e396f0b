//! Fused attention: heads and batch shard freely; a sharded sequence needs a method.

use super::Placement;
use super::errors;
use super::placement::AxisUse::{self, Partial, Split, Whole};
use super::plan::Planner;
use crate::graph::{Attention, Op};
use crate::layout::{AttentionMethod, AxisId, Layout};

/// What `axis` does to q, k, v and the result.
pub(super) fn axis(planner: &mut Planner<'_>, op: &Op, a: &Attention, axis: AxisId) -> (Vec<AxisUse>, AxisUse) {
    let (mut needs, out) = of_three(planner, op, a, axis);
    // What else it reads has the dimension of the query heads.
    for more in &op.inputs[needs.len().min(op.inputs.len())..] {
        let heads = out == Split(a.heads) && planner.has(*more, a.heads);
        needs.push(if heads { out } else { Whole });
    }
    (needs, out)
}

fn of_three(planner: &mut Planner<'_>, op: &Op, a: &Attention, axis: AxisId) -> (Vec<AxisUse>, AxisUse) {
    let [q, k, v, ..] = op.inputs[..] else { return (vec![Whole; op.inputs.len()], Whole) };
    let rule = planner.rule(op.output).on(axis);
    let out = if rule == Whole { planner.at(q, axis) } else { rule };
    match out {
        Split(d) if d == a.sequence => sequence(planner, op, a, axis),
        Split(d) if d == a.heads => {
            // Each query head finds its group of keys on its own rank: split alike, or kept whole.
            let keys = |x| if planner.at(x, axis) == Split(a.kv_heads) { Split(a.kv_heads) } else { Whole };
            (vec![out, keys(k), keys(v)], out)
        }
        Split(d) => {
            let each = |x| if planner.has(x, d) { out } else { Whole };
            let result = if planner.has(op.output, d) { out } else { Whole };
            if d == a.head_dim && d != a.value_dim {
                return (vec![Whole; 3], Whole);
            }
            if d == a.value_dim {
                return (vec![Whole, Whole, each(v)], result);
            }
            (vec![each(q), each(k), each(v)], result)
        }
        Whole | Partial => (vec![Whole; 3], Whole),
    }
}

fn sequence(planner: &mut Planner<'_>, op: &Op, a: &Attention, axis: AxisId) -> (Vec<AxisUse>, AxisUse) {
    let s = Split(a.sequence);
    if a.sequence != a.keys {
        // Every query meets every key of the other side.
        return (vec![s, Whole, Whole], s);
    }
    match method(planner.layout, axis) {
        Some(AttentionMethod::Ring) => (vec![s, s, s], s),
        Some(AttentionMethod::AllGather) => (vec![s, Whole, Whole], s),
        Some(AttentionMethod::AllToAll) => {
            let (heads, keys) = (Split(a.heads), Split(a.kv_heads));
            (vec![heads, keys, keys], heads)
        }
        None => {
            let seq = &planner.graph.dim(a.sequence).name;
            let name = &planner.layout.axis(axis).name;
            let rule = planner.ruled.reasons.get(&(a.sequence, axis)).copied();
            planner.sink.error(errors::attention_method(op.span, seq, name, rule));
            (vec![s, Whole, Whole], s)
        }
    }
}

/// The method given for `axis`; later text wins.
pub(super) fn method(layout: &Layout, axis: AxisId) -> Option<AttentionMethod> {
    layout.attention.iter().rev().find(|v| v.axes.contains(&axis)).map(|v| v.method)
}

/// The axes over which keys and values placed as `keys` go round.
pub(super) fn ring_axes(layout: &Layout, a: &Attention, keys: &Placement) -> Vec<AxisId> {
    let axes = keys.axes_of(a.sequence).iter().copied();
    axes.filter(|x| method(layout, *x) == Some(AttentionMethod::Ring)).collect()
}
