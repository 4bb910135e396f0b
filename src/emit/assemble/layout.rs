//! The layout of a plan: what each axis does, what rests sharded, hides and is recomputed.

use super::experts;
use crate::analyse::Compiled;
use crate::analyse::recompute::ChosenValue;
use crate::emit::plan::{AxisInfo, AxisRole, ChosenInfo, LayoutInfo, RecomputeChoice, RecomputeInfo, RecomputePart};
use crate::graph::{OpGraph, OpKind, ValueId, language_name};
use crate::layout::{
    Action, AttentionMethod, AxisId, Class, Comm, Hold, KeptKind, Recompute, RecomputeWhat, SelectorPart,
};
use crate::source::Sources;

/// What an axis does, read off the rules that speak of it.
pub(super) fn role(c: &Compiled<'_>, axis: AxisId) -> AxisRole {
    let layout = &c.job.layout;
    if layout.pipeline == Some(axis) {
        return AxisRole::Pipeline;
    }
    if c.job.batch_axes.contains(&axis) {
        return AxisRole::Data;
    }
    let data = |name: &String| c.job.ops.dims.iter().any(|d| d.data.is_some() && d.name == *name);
    let rules = layout.rules.iter().filter(|r| layout.fine(&r.axes).contains(&axis));
    let mut role = AxisRole::Idle;
    for rule in rules {
        if let Action::Shard { dims, .. } = &rule.action {
            if dims.iter().any(|d| !data(d) && experts::reaches_others(c, &rule.scope, d)) {
                return AxisRole::Tensor;
            }
            if dims.iter().any(data) {
                role = AxisRole::Context;
            }
        }
    }
    role
}

pub(super) fn layout(c: &Compiled<'_>, sources: &Sources, levels: &[String]) -> LayoutInfo {
    let l = &c.job.layout;
    // Of a mesh axis that is cut, the outermost factor reaches furthest and the innermost steps least.
    let axes: Vec<AxisInfo> = l
        .mesh()
        .map(|a| AxisInfo {
            name: a.name.clone(),
            size: c.value(a.size) as u64,
            stride: a.fine.last().map_or(1, |f| c.value(l.axis(*f).stride) as u64),
            role: a.fine.first().map_or(AxisRole::Idle, |f| role(c, *f)),
            level: a.fine.first().map(|f| levels[f.0 as usize].clone()).unwrap_or_default(),
        })
        .collect();
    let sequence_parallel = l.rules.iter().any(|r| match &r.action {
        Action::Shard { otherwise, .. } => {
            !otherwise.is_empty()
                && l.fine(&r.axes).iter().any(|a| role(c, *a) == AxisRole::Tensor && c.value(l.axis(*a).size) > 1.0)
        }
        Action::Replicate { .. } => false,
    });
    let context = axes.iter().any(|a| a.role == AxisRole::Context && a.size > 1);
    let context_method = l.attention.first().filter(|_| context).map(|v| match v.method {
        AttentionMethod::Ring => "ring",
        AttentionMethod::AllGather => "all_gather",
        AttentionMethod::AllToAll => "all_to_all",
    });
    let rests = experts::rests(c, levels);
    let hold = l.stores.iter().find(|s| s.class == Class::Param).map(|s| match s.hold {
        Hold::Layer => "layer",
        Hold::Microbatch => "microbatch",
        Hold::Step => "step",
    });
    let overlaps = |comm| l.overlaps.iter().any(|o| o.comm == comm);
    let (line, _) = sources.line_col(c.job.places.get("layout").copied().unwrap_or(c.job.span));
    LayoutInfo {
        name: c.job.layout_name.clone(),
        line,
        axes,
        sequence_parallel,
        context_method,
        hold: hold.filter(|_| rests.stored.contains_key("param")),
        stored: rests.stored,
        unlike: rests.unlike,
        experts: rests.experts,
        overlap_gather: overlaps(Comm::Gather),
        overlap_reduce: overlaps(Comm::Reduce),
        overlap_p2p: overlaps(Comm::P2p),
        overlap_experts: overlaps(Comm::Dispatch) || overlaps(Comm::Combine),
        recompute: recompute(c),
        recompute_choice: choice(c),
        pads: pads(c),
    }
}

/// Every dimension whose padded extent is not its own.
fn pads(c: &Compiled<'_>) -> Vec<(String, u64, u64)> {
    let wanted = c.job.layout.pads.iter().filter_map(|p| c.job.ops.dims.iter().find(|d| d.name == p.dim));
    wanted.map(|d| (d.name.clone(), c.value(d.true_extent) as u64, c.value(d.extent) as u64)).collect()
}

fn recompute(c: &Compiled<'_>) -> RecomputeInfo {
    let active: Vec<_> = c.job.layout.recompute.iter().filter(|r| !r.what.is_nothing()).collect();
    if active.is_empty() {
        return RecomputeInfo::None;
    }
    if active.iter().any(|r| r.scope.is_everywhere() && r.what == RecomputeWhat::All) {
        return RecomputeInfo::Full;
    }
    let parts: Option<Vec<RecomputePart>> = active.iter().map(|r| part(c, r)).collect();
    match parts {
        // The order of items in the text says nothing.
        Some(mut parts) => {
            parts.sort();
            parts.dedup();
            RecomputeInfo::Parts(parts)
        }
        None => RecomputeInfo::Other(active.iter().map(|r| other_text(c, r)).collect::<Vec<_>>().join("; ")),
    }
}

/// A whole region, or named values that are all the norms of every layer.
fn part(c: &Compiled<'_>, r: &Recompute) -> Option<RecomputePart> {
    match &r.what {
        RecomputeWhat::All => scope_path(r).map(RecomputePart::Region),
        RecomputeWhat::Values(names) => {
            let ops = &c.job.ops;
            let in_layer = ops.ops().filter(|(_, op)| ops.units[op.unit as usize].repeated);
            let agrees = |op: &crate::graph::Op| {
                let named = names.contains(&ops.value(op.output).name);
                let selected = named && r.scope.depth(&ops.regions[op.region.0 as usize].path).is_some();
                selected == matches!(op.kind, OpKind::Norm { .. })
            };
            in_layer.into_iter().all(|(_, op)| agrees(op)).then_some(RecomputePart::Norms)
        }
        RecomputeWhat::None | RecomputeWhat::Except(_) | RecomputeWhat::Every(_) | RecomputeWhat::Chosen(_) => None,
    }
}

/// `a in decoder.mlp`; a value without a name by what makes it.
fn value_name(ops: &OpGraph, id: ValueId) -> String {
    let value = ops.value(id);
    let made = ops.producer(id).map(|op| language_name(&ops.flow[op].kind));
    let name = Some(value.name.clone()).filter(|n| !n.is_empty()).or(made).unwrap_or_default();
    format!("{name} in {}", ops.region_path(value.region))
}

/// What `recompute ?` came to.
fn choice(c: &Compiled<'_>) -> Option<RecomputeChoice> {
    let chosen = c.chosen.as_ref()?;
    let (seconds, bytes) = chosen.effect(c);
    let value = |v: &ChosenValue| ChosenInfo {
        what: value_name(&c.job.ops, v.value),
        bytes: v.bytes as u64,
        seconds: v.seconds,
    };
    Some(RecomputeChoice {
        values: chosen.values.iter().map(value).collect(),
        bytes: bytes as u64,
        seconds,
        proved: chosen.proved,
    })
}

/// `attention.core` of `**.attention.core`.
fn scope_path(r: &Recompute) -> Option<String> {
    let [selectors] = &r.scope.nested[..] else { return None };
    let [selector] = &selectors[..] else { return None };
    let names = selector.parts.iter().filter_map(|p| match p {
        SelectorPart::Name(n) => Some(n.as_str()),
        SelectorPart::One | SelectorPart::Any | SelectorPart::Iterations { .. } => None,
    });
    Some(names.collect::<Vec<_>>().join("."))
}

fn other_text(c: &Compiled<'_>, r: &Recompute) -> String {
    let what = match &r.what {
        RecomputeWhat::None => "none".into(),
        RecomputeWhat::All => "all".into(),
        RecomputeWhat::Values(names) => format!("[{}]", names.join(", ")),
        RecomputeWhat::Except(kinds) => {
            let one = |k: &KeptKind| match k.every {
                1 => k.kind.clone(),
                n => format!("{}.every({n})", k.kind),
            };
            format!("ops(keep = [{}])", kinds.iter().map(one).collect::<Vec<_>>().join(", "))
        }
        RecomputeWhat::Every(n) => format!("every({n})"),
        RecomputeWhat::Chosen(values) => {
            let names: Vec<_> = values.iter().map(|v| value_name(&c.job.ops, ValueId(*v))).collect();
            format!("[{}]", names.join(", "))
        }
    };
    if r.scope.is_everywhere() { what } else { format!("{what} in {}", r.scope.text()) }
}
