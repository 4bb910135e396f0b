//! Fused attention: heads and batch shard freely; a sharded sequence needs a method.

use super::Placement;
use super::errors;
use super::placement::AxisUse::{self, Partial, Split, Whole};
use super::plan::Planner;
use crate::graph::{Attention, DimId, Op, OpKind};
use crate::layout::{Action, AttentionMethod, AxisId, Layout, PathPart};
use crate::source::Span;

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
    let path = &planner.graph.regions[op.region.0 as usize].path;
    match method(planner.layout, path, axis) {
        Some(AttentionMethod::Ring) => (vec![s, s, s], s),
        Some(AttentionMethod::AllGather) => (vec![s, Whole, Whole], s),
        Some(AttentionMethod::AllToAll) => {
            let heads = Split(a.heads);
            let keys = &planner.graph.dim(a.kv_heads).name;
            let keys = if planner.layout.copied(keys, axis) { Whole } else { Split(a.kv_heads) };
            (vec![heads, keys, keys], heads)
        }
        None => {
            let seq = &planner.graph.dim(a.sequence).name;
            let name = planner.layout.mesh_name(axis);
            let rule = planner.ruled.reasons.get(&(a.sequence, axis)).copied();
            let meant = rule.and_then(|rule| sequence_parallel(planner.layout, rule, axis));
            planner.sink.error(errors::attention_method(op.span, seq, name, rule, meant));
            (vec![s, Whole, Whole], s)
        }
    }
}

/// Whether an attention meets `axis` on its positions `dim` and has no method for it.
pub(super) fn unmet(planner: &Planner<'_>, dim: DimId, axis: AxisId) -> bool {
    planner.graph.ops().any(|(_, op)| {
        let OpKind::Attention(a) = &op.kind else { return false };
        let path = &planner.graph.regions[op.region.0 as usize].path;
        a.sequence == dim
            && a.keys == dim
            && method(planner.layout, path, axis).is_none()
            && op.inputs.first().is_some_and(|q| planner.rule(*q).on(axis) == Split(dim))
    })
}

/// A later rule of the same scope that gives `axis` to other dimensions, where `rule` gives it to the sequence alone: the
/// sequence was meant for what has none of these.
fn sequence_parallel(layout: &Layout, rule: Span, axis: AxisId) -> Option<Span> {
    let at = layout.rules.iter().position(|r| r.span == rule)?;
    let first = &layout.rules[at];
    let alone =
        matches!(&first.action, Action::Shard { dims, otherwise, .. } if dims.len() == 1 && otherwise.is_empty());
    let later = layout.rules[at + 1..].iter().find(|r| {
        let bare = matches!(&r.action, Action::Shard { otherwise, .. } if otherwise.is_empty());
        bare && r.scope == first.scope && layout.fine(&r.axes).contains(&axis)
    });
    later.filter(|_| alone && first.axes.len() == 1).map(|r| r.span)
}

/// The method given for `axis` in a region: innermost scope first, then later text.
pub(super) fn method(layout: &Layout, path: &[PathPart], axis: AxisId) -> Option<AttentionMethod> {
    let speaking = layout.attention.iter().enumerate().filter(|(_, v)| v.axes.contains(&axis));
    let reach = speaking.filter_map(|(i, v)| Some((v.scope.depth(path)?, i, v.method)));
    reach.max_by_key(|(depth, i, _)| (*depth, *i)).map(|(_, _, method)| method)
}

/// The axes over which keys and values placed as `keys` go round.
pub(super) fn ring_axes(layout: &Layout, path: &[PathPart], a: &Attention, keys: &Placement) -> Vec<AxisId> {
    let axes = keys.axes_of(a.sequence).iter().copied();
    axes.filter(|x| method(layout, path, *x) == Some(AttentionMethod::Ring)).collect()
}
