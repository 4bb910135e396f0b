//! How parameters rest, and how experts read the ranks: read off the parameters, not off the items that speak of them.

use super::layout::role;
use crate::analyse::Compiled;
use crate::emit::plan::{AxisInfo, AxisRole, ExpertLayout};
use crate::graph::{OpGraph, ValueRole};
use crate::layout::{AxisId, Class, Scope};
use crate::partition::{AxisUse, resting};
use std::collections::{BTreeMap, BTreeSet};

/// How the parameters of a model rest.
#[derive(Default)]
pub(super) struct Rests {
    /// Classes of all parameters but those of experts, and their axes.
    pub(super) stored: BTreeMap<&'static str, Vec<String>>,
    /// Classes that rest in unlike ways, and two parameters that do.
    pub(super) unlike: BTreeMap<&'static str, String>,
    /// Those of experts.
    pub(super) experts: Option<ExpertLayout>,
}

/// What rests how.
pub(super) fn rests(c: &Compiled<'_>, levels: &[String]) -> Rests {
    let of_experts = expert_params(&c.job.ops);
    let mut rests = Rests::default();
    let (inside, others): (Vec<_>, Vec<_>) = (0..c.job.ops.params.len() as u32).partition(|p| of_experts.contains(p));
    rests.stored = stored(c, &others, &mut rests.unlike);
    for store in c.job.layout.stores.iter().filter(|s| matches!(s.class, Class::Act | Class::Kv)) {
        let over = wide_names(c, &store.axes);
        if !over.is_empty() {
            rests.stored.insert(store.class.name(), over);
        }
    }
    if !of_experts.is_empty() {
        let stored = stored(c, &inside, &mut rests.unlike);
        rests.experts = Some(ExpertLayout { axes: axes(c, &of_experts, levels), stored });
    }
    rests
}

/// Whether a dimension of this name, in `scope`, is one of a parameter that is no expert's.
pub(super) fn reaches_others(c: &Compiled<'_>, scope: &Scope, dim: &str) -> bool {
    let ops = &c.job.ops;
    let of_experts = expert_params(ops);
    let others = ops.params.iter().enumerate().filter(|(i, _)| !of_experts.contains(&(*i as u32)));
    let mut values = others.map(|(_, p)| ops.value(p.value));
    values.any(|v| {
        v.dims.iter().any(|d| ops.dim(*d).name == dim) && scope.depth(&ops.regions[v.region.0 as usize].path).is_some()
    })
}

/// Parameters that meet token slots.
fn expert_params(ops: &OpGraph) -> BTreeSet<u32> {
    let slots = |op: &crate::graph::Op| ops.value(op.output).dims.iter().any(|d| ops.dim(*d).slots.is_some());
    let inputs = ops.ops().filter(|(_, op)| slots(op)).flat_map(|(_, op)| &op.inputs);
    inputs
        .filter_map(|v| match ops.value(*v).role {
            ValueRole::Param(at) => Some(at),
            ValueRole::Input | ValueRole::Activation | ValueRole::Logits | ValueRole::Loss => None,
        })
        .collect()
}

/// The axes of each class that is the same for all of `params`; the others become entries of `unlike`.
fn stored(
    c: &Compiled<'_>,
    params: &[u32],
    unlike: &mut BTreeMap<&'static str, String>,
) -> BTreeMap<&'static str, Vec<String>> {
    let (ops, layout) = (&c.job.ops, &c.job.layout);
    let mut out = BTreeMap::new();
    for class in [Class::Param, Class::Grad, Class::State, Class::Master] {
        let axes = |p: u32| {
            let value = ops.value(ops.params[p as usize].value);
            let store = resting(ops, layout, value.region, class, &value.name);
            wide_names(c, store.map_or(&[], |s| &s.axes))
        };
        let mut each = params.iter().map(|p| (*p, axes(*p)));
        let Some((first, over)) = each.next() else { continue };
        if let Some((other, differs)) = each.find(|(_, a)| *a != over) {
            let path = |p: u32| &ops.params[p as usize].path;
            let text = |axes: &[String]| {
                if axes.is_empty() { "whole".into() } else { format!("over `[{}]`", axes.join(", ")) }
            };
            let both = format!("`{}` {}, `{}` {}", path(first), text(&over), path(other), text(&differs));
            unlike.entry(class.name()).or_insert(both);
        } else if !over.is_empty() {
            out.insert(class.name(), over);
        }
    }
    out
}

/// Names of the axes of more than one rank: an axis of one splits nothing.
fn wide_names(c: &Compiled<'_>, axes: &[AxisId]) -> Vec<String> {
    c.job.layout.names_where(axes, &|a| wide(c, a))
}

fn wide(c: &Compiled<'_>, axis: AxisId) -> bool {
    c.value(c.job.layout.axis(axis).size) > 1.0
}

/// The axes as experts see them: neighbours that do the same are one, under the name of a fold where it has one.
fn axes(c: &Compiled<'_>, of_experts: &BTreeSet<u32>, levels: &[String]) -> Vec<AxisInfo> {
    let layout = &c.job.layout;
    let mut runs: Vec<(AxisRole, Vec<AxisId>)> = Vec::new();
    for axis in layout.axis_ids().filter(|a| wide(c, *a)) {
        let role = expert_role(c, of_experts, axis);
        match runs.last_mut() {
            Some((last, run)) if *last == role => run.push(axis),
            _ => runs.push((role, vec![axis])),
        }
    }
    let mut out = Vec::new();
    for (role, run) in runs {
        for name in wide_names(c, &run) {
            let named = layout.named.iter().find(|a| a.name == name).map(|a| a.fine.clone());
            let fine = named.unwrap_or_else(|| layout.axis_ids().filter(|a| layout.axis(*a).name == name).collect());
            let fine: Vec<_> = fine.into_iter().filter(|a| wide(c, *a)).collect();
            let size = fine.iter().map(|a| c.value(layout.axis(*a).size) as u64).product();
            let stride = fine.last().map_or(1, |a| c.value(layout.axis(*a).stride) as u64);
            let level = fine.first().map(|a| levels[a.0 as usize].clone()).unwrap_or_default();
            out.push(AxisInfo { name, size, stride, role, level });
        }
    }
    out
}

/// What a fine axis does to experts: holds others of them, splits each, or holds copies.
fn expert_role(c: &Compiled<'_>, of_experts: &BTreeSet<u32>, axis: AxisId) -> AxisRole {
    if role(c, axis) == AxisRole::Pipeline {
        return AxisRole::Pipeline;
    }
    let ops = &c.job.ops;
    let experts: BTreeSet<_> = ops.dims.iter().filter_map(|d| d.slots.as_ref().map(|s| s.experts)).collect();
    let values = of_experts.iter().map(|p| ops.params[*p as usize].value);
    let mut role = AxisRole::Data;
    for value in values {
        match c.sharded.placements[value.0 as usize].on(axis) {
            AxisUse::Split(dim) if experts.contains(&dim) => return AxisRole::Expert,
            AxisUse::Split(_) => role = AxisRole::Tensor,
            AxisUse::Whole | AxisUse::Partial => {}
        }
    }
    role
}
