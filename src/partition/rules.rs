//! The rule placement of every value: the first applicable rule of the innermost scope decides each axis.

use super::placement::AxisUse;
use super::{Placement, errors};
use crate::diagnostics::Sink;
use crate::graph::{DataDim, DimId, OpGraph, OpKind, Value, ValueId, ValueRole};
use crate::layout::{Action, AxisId, Class, Layout, Rule};
use crate::source::Span;
use indexmap::IndexMap;

/// The rule placements, and which rule first gave an axis to a dimension.
#[derive(Default, Debug)]
pub(super) struct Ruled {
    pub(super) placements: Vec<Placement>,
    pub(super) reasons: IndexMap<(DimId, AxisId), Span>,
}

/// An item that would give the idle axis `name` work, and the mesh: a pipeline where there is none and the name says
/// so, the batch where nothing splits it.
fn use_of(graph: &OpGraph, layout: &Layout, name: &str) -> Option<(String, Span)> {
    let mesh = layout.mesh_span?;
    if layout.pipeline.is_none() && (name.starts_with("pp") || name.starts_with("pipe") || name.starts_with("stage")) {
        return Some((format!("pipeline over {name} {{ schedule = one_f_one_b }}"), mesh));
    }
    let batch = graph.dims.iter().find(|d| d.data == Some(DataDim::Batch))?;
    let split =
        layout.rules.iter().any(|r| matches!(&r.action, Action::Shard { dims, .. } if dims.contains(&batch.name)));
    (!split).then(|| (format!("shard {} over {name}", batch.name), mesh))
}

/// Places every value of `graph`; a rule that speaks of no dimension of the model, and an axis
/// nothing speaks of, are warned about.
pub(super) fn place(graph: &OpGraph, layout: &Layout, sink: &mut Sink) -> Ruled {
    for rule in &layout.rules {
        if let Action::Shard { dims, otherwise, .. } = &rule.action {
            let known = |name: &String| graph.dims.iter().any(|d| d.name == *name);
            if !dims.iter().chain(otherwise).any(known) {
                let names: Vec<_> = graph.dims.iter().map(|d| d.name.as_str()).collect();
                sink.warn(errors::rule_idle(rule.span, dims, &names));
            }
        }
    }
    for id in layout.axis_ids() {
        let ruled = layout.rules.iter().any(|r| r.axes.contains(&id));
        let stored = layout.stores.iter().any(|s| s.axes.contains(&id));
        if !ruled && !stored && layout.pipeline != Some(id) {
            let axis = layout.axis(id);
            sink.warn(errors::axis_idle(axis.span, &axis.name, use_of(graph, layout, &axis.name)));
        }
    }
    let mut ruled = Ruled::default();
    for value in &graph.values {
        let placement = of_value(graph, layout, value, &mut ruled);
        ruled.placements.push(placement);
    }
    slots(graph, layout, &mut ruled);
    ruled
}

/// The rule placement of one value.
fn of_value(graph: &OpGraph, layout: &Layout, value: &Value, ruled: &mut Ruled) -> Placement {
    let mut placement = Placement::default();
    for axis in layout.axis_ids().filter(|a| layout.pipeline != Some(*a)) {
        if let Some((dim, rule)) = decide(graph, layout, value, axis) {
            ruled.reasons.entry((dim, axis)).or_insert(rule);
            placement = placement.with(axis, AxisUse::Split(dim));
        }
    }
    placement
}

/// What a dispatch fills lies where the experts want it: the rules of their region place it. Slots take every axis that
/// splits the tokens they come from and that the rules give neither to experts nor to a dimension of their weights.
fn slots(graph: &OpGraph, layout: &Layout, ruled: &mut Ruled) {
    for (_, op) in graph.ops() {
        let OpKind::Dispatch(route) = &op.kind else { continue };
        let [tokens, choices] = op.inputs[..] else { continue };
        let token_dims = &graph.value(choices).dims;
        if let Some((_, user)) = graph.ops().find(|(_, o)| o.inputs.contains(&op.output)) {
            let there = Value { region: user.region, ..graph.value(op.output).clone() };
            ruled.placements[op.output.0 as usize] = of_value(graph, layout, &there, ruled);
        }
        let with_slots = |v: &ValueId| graph.value(*v).dims.contains(&route.slots);
        let users = graph.ops().filter(|(_, o)| o.inputs.iter().any(with_slots)).flat_map(|(_, o)| o.inputs.iter());
        let weights: Vec<_> = users.filter(|v| matches!(graph.value(**v).role, ValueRole::Param(_))).copied().collect();
        for axis in layout.axis_ids() {
            let on = |v: ValueId| ruled.placements[v.0 as usize].on(axis);
            let tokens_split = matches!(on(tokens), AxisUse::Split(d) if token_dims.contains(&d));
            if !tokens_split || weights.iter().any(|w| on(*w) != AxisUse::Whole) {
                continue;
            }
            for (at, value) in graph.values.iter().enumerate() {
                let placement = &mut ruled.placements[at];
                if value.dims.contains(&route.slots) && placement.on(axis) == AxisUse::Whole {
                    *placement = std::mem::take(placement).with(axis, AxisUse::Split(route.slots));
                }
            }
        }
    }
}

/// The dimension `axis` splits in `value`, and the rule that says so.
fn decide(graph: &OpGraph, layout: &Layout, value: &Value, axis: AxisId) -> Option<(DimId, Span)> {
    let path = &graph.regions[value.region.0 as usize].path;
    let speaking = layout.rules.iter().filter(|r| r.axes.contains(&axis));
    let mut rules: Vec<_> = speaking.filter_map(|r| Some((r.scope.depth(path)?, r))).collect();
    // Stable: within one scope the text order stays.
    rules.sort_by_key(|(depth, _)| std::cmp::Reverse(*depth));
    let verdicts = rules.into_iter().map(|(_, rule)| (applies(graph, value, rule), rule));
    match verdicts.into_iter().find(|(verdict, _)| *verdict != Verdict::Silent)? {
        (Verdict::Split(dim), rule) => Some((dim, rule.span)),
        (Verdict::Silent | Verdict::Whole, _) => None,
    }
}

/// What a rule says of a value.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Verdict {
    /// It does not apply.
    Silent,
    /// The value stays whole.
    Whole,
    /// The axis splits this dimension.
    Split(DimId),
}

fn applies(graph: &OpGraph, value: &Value, rule: &Rule) -> Verdict {
    let class = value.role.class();
    let has = |name: &String| value.dims.iter().copied().find(|d| graph.dim(*d).name == *name);
    match &rule.action {
        Action::Replicate { classes } if classes.contains(&class) => Verdict::Whole,
        Action::Shard { dims, classes, otherwise } if classes.contains(&class) => {
            let next = if class == Class::Act { otherwise.as_slice() } else { &[] };
            dims.iter().chain(next).find_map(has).map_or(Verdict::Silent, Verdict::Split)
        }
        Action::Replicate { .. } | Action::Shard { .. } => Verdict::Silent,
    }
}
