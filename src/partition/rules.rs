//! The rule placement of every value: the first applicable rule of the innermost scope decides each axis.

use super::placement::AxisUse;
use super::{Placement, errors};
use crate::diagnostics::Sink;
use crate::graph::{DimId, OpGraph, OpKind, Value, ValueId, ValueRole};
use crate::layout::{Action, AxisId, Class, Layout, NameId, Rule};
use crate::source::Span;
use indexmap::IndexMap;

/// The rule placements, and which rule first gave an axis to a dimension.
#[derive(Default, Debug)]
pub(super) struct Ruled {
    pub(super) placements: Vec<Placement>,
    pub(super) reasons: IndexMap<(DimId, AxisId), Span>,
}

/// Places every value of `graph`.
pub(super) fn place(graph: &OpGraph, layout: &Layout, sink: &mut Sink) -> Ruled {
    let mut told = Vec::new();
    let mut ruled = Ruled::default();
    for value in &graph.values {
        let placement = of_value(graph, layout, value, &mut ruled, &mut told, sink);
        ruled.placements.push(placement);
    }
    slots(graph, layout, &mut ruled, &mut told, sink);
    ruled
}

/// The rule placement of one value.
fn of_value(
    graph: &OpGraph,
    layout: &Layout,
    value: &Value,
    ruled: &mut Ruled,
    told: &mut Vec<Span>,
    sink: &mut Sink,
) -> Placement {
    let mut placement = Placement::default();
    for (axis, dim, rule) in decide(graph, layout, value, told, sink) {
        ruled.reasons.entry((dim, axis)).or_insert(rule);
        placement = placement.with(axis, AxisUse::Split(dim));
    }
    placement
}

/// What a dispatch fills lies where the experts want it: the rules of their region place it. Slots take every axis that
/// splits the tokens they come from and that the rules give neither to experts nor to a dimension of their weights.
fn slots(graph: &OpGraph, layout: &Layout, ruled: &mut Ruled, told: &mut Vec<Span>, sink: &mut Sink) {
    for (_, op) in graph.ops() {
        let OpKind::Dispatch(route) = &op.kind else { continue };
        let [tokens, choices] = op.inputs[..] else { continue };
        let token_dims = &graph.value(choices).dims;
        if let Some((_, user)) = graph.ops().find(|(_, o)| o.inputs.contains(&op.output)) {
            let there = Value { region: user.region, ..graph.value(op.output).clone() };
            ruled.placements[op.output.0 as usize] = of_value(graph, layout, &there, ruled, told, sink);
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

/// The fine axes that split `value`, the dimension each splits and the rule that says so.
///
/// Rules are taken innermost scope first, in text order within one. The first that applies decides an axis; one that has
/// ranks in common with an axis given away before does not apply.
fn decide(
    graph: &OpGraph,
    layout: &Layout,
    value: &Value,
    told: &mut Vec<Span>,
    sink: &mut Sink,
) -> Vec<(AxisId, DimId, Span)> {
    let path = &graph.regions[value.region.0 as usize].path;
    let mut rules: Vec<_> = layout.rules.iter().filter_map(|r| Some((r.scope.depth(path)?, r))).collect();
    // Stable: within one scope the text order stays.
    rules.sort_by_key(|(depth, _)| std::cmp::Reverse(*depth));
    let mut decided: Vec<NameId> = Vec::new();
    let mut given: Vec<(NameId, &Rule)> = Vec::new();
    let mut out = Vec::new();
    for (_, rule) in rules {
        let verdict = applies(graph, value, rule);
        if verdict == Verdict::Silent {
            continue;
        }
        for name in &rule.axes {
            let axis = layout.named(*name);
            if decided.contains(name) || axis.fine.iter().any(|f| layout.pipeline == Some(*f)) {
                continue;
            }
            let Verdict::Split(dim) = verdict else {
                decided.push(*name);
                continue;
            };
            if let Some((other, earlier)) = given.iter().find(|(other, _)| layout.share(*other, *name)) {
                // A parameter is named by both rules of one scope: they cannot both have been meant.
                let meant = matches!(value.role, ValueRole::Param(_)) && !rule.scope.is_everywhere();
                if meant && earlier.scope == rule.scope && !told.contains(&rule.span) {
                    told.push(rule.span);
                    let names = (layout.named(*other).name.as_str(), axis.name.as_str());
                    let dim = &graph.dim(dim).name;
                    sink.error(errors::same_ranks(rule.span, earlier.span, names, dim, &value.name));
                }
                continue;
            }
            decided.push(*name);
            given.push((*name, rule));
            let split = axis.fine.iter().filter(|f| !layout.copied(&graph.dim(dim).name, **f));
            out.extend(split.map(|f| (*f, dim, rule.span)));
        }
    }
    out
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
