//! What Megatron shards at rest, hides behind compute and recomputes.

use super::{Reasons, Sizes, Where};
use crate::emit::plan::{AxisRole, Plan, RecomputeInfo, RecomputePart};
use crate::emit::targets::sizes::{expert_axes, stored_experts};

/// How memory and overlap are said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Memory {
    /// Optimizer state is sharded: copies of the whole of it, 1 for all data and context ranks together.
    pub(super) optimizer_instances: Option<u64>,
    /// `--overlap-grad-reduce`.
    pub(super) overlap_reduce: bool,
    /// `--overlap-param-gather`.
    pub(super) overlap_gather: bool,
    /// What is recomputed.
    pub(super) recompute: Recompute,
}

/// Megatron's kinds of recomputation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Recompute {
    /// Nothing.
    None,
    /// Every layer.
    Full,
    /// These of its modules.
    Modules(Vec<&'static str>),
}

/// The plan's choices in Megatron's words.
pub(super) fn of(plan: &Plan, sizes: &Sizes, errors: &mut Reasons) -> Option<Memory> {
    let before = errors.count();
    let optimizer_instances = expert_state(plan, sizes, state(plan, errors), errors);
    for (class, axes) in &plan.layout.stored {
        unsharded(plan, class, axes, Where::Store, errors);
    }
    for (class, axes) in plan.layout.experts.iter().flat_map(|e| &e.stored) {
        // What is said of all parameters is refused once.
        if !plan.layout.stored.contains_key(class) {
            unsharded(plan, class, axes, Where::StoreInside, errors);
        }
    }
    let layout = &plan.layout;
    let overlap_reduce = layout.overlap_reduce && sizes.gradient_group() > 1;
    let overlap_gather = layout.overlap_gather && optimizer_instances.is_some();
    if overlap_gather && !overlap_reduce {
        let what = "parameter gathers are hidden and gradient reductions are not";
        let why = "`--overlap-param-gather` needs `--overlap-grad-reduce`";
        errors.add(Where::Overlap("gather"), what, why).instead("overlap [gather, reduce]");
    }
    let recompute = recompute(plan, errors);
    (errors.count() == before).then_some(Memory { optimizer_instances, overlap_reduce, overlap_gather, recompute })
}

/// How many copies of the optimizer state there are, where it is sharded.
fn state(plan: &Plan, errors: &mut Reasons) -> Option<u64> {
    let layout = &plan.layout;
    let state = layout.stored.get("state").filter(|axes| !axes.is_empty());
    let master = layout.stored.get("master").filter(|axes| !axes.is_empty());
    if let Some(master) = master
        && state.is_none_or(|s| s != master)
    {
        let what = "the master copy is sharded otherwise than the optimizer state";
        errors.add(Where::Store("master".into()), what, "the distributed optimizer shards both alike");
    }
    let state = state?;
    // Megatron's group is data × context ranks, context fastest; an instance is a run of it.
    let mut group: Vec<_> =
        layout.axes.iter().filter(|a| a.size > 1 && matches!(a.role, AxisRole::Data | AxisRole::Context)).collect();
    group.sort_by_key(|a| a.stride);
    let inside = group.iter().take_while(|a| state.contains(&a.name)).count();
    let strays = state.iter().any(|name| {
        layout
            .axes
            .iter()
            .any(|a| a.name == *name && a.size > 1 && !matches!(a.role, AxisRole::Data | AxisRole::Context))
    });
    let outside = &group[inside..];
    if strays || outside.iter().any(|a| state.contains(&a.name)) || (inside == 0 && !group.is_empty()) {
        let axes: Vec<_> = group.iter().rev().map(|a| a.name.as_str()).collect();
        let what = format!("optimizer state is stored over `[{}]`", state.join(", "));
        let why = format!(
            "the distributed optimizer shards over all data and context ranks, `[{}]`, or over the fastest of them",
            axes.join(", ")
        );
        errors.add(Where::Store("state".into()), what, why).instead(format!("store state over [{}]", axes.join(", ")));
        return None;
    }
    Some(outside.iter().map(|a| a.size).product())
}

/// The distributed optimizer shards the state of experts too, over all ranks that hold copies.
fn expert_state(plan: &Plan, sizes: &Sizes, instances: Option<u64>, errors: &mut Reasons) -> Option<u64> {
    let axes = expert_axes(plan);
    let copies: Vec<_> = axes.iter().filter(|a| a.role == AxisRole::Data).map(|a| a.name.as_str()).collect();
    let stored = stored_experts(plan, "state");
    let over_all = copies.len() == stored.len() && copies.iter().all(|a| stored.iter().any(|s| s == a));
    let found = if stored.is_empty() { "whole".into() } else { format!("stored over `[{}]`", stored.join(", ")) };
    let mut refuse = |why: String| {
        let what = format!("the optimizer state of experts is {found}");
        errors.add(Where::StoreInside("state".into()), what, why);
    };
    match instances {
        Some(n) if n > 1 && !axes.is_empty() => {
            refuse(format!("{n} groups with whole optimizer state beside experts are not written yet"));
        }
        Some(_) if !over_all => {
            let all = copies.join(", ");
            refuse(format!("the distributed optimizer shards it over all ranks that hold copies, `[{all}]`"));
        }
        None if over_all && !stored.is_empty() && sizes.gradient_group() == 1 => return Some(1),
        None if !stored.is_empty() => refuse("that of all other parameters is whole".into()),
        Some(_) | None => {}
    }
    instances
}

/// Reports a class that this target cannot shard at rest.
fn unsharded(plan: &Plan, class: &str, axes: &[String], at: fn(String) -> Where, errors: &mut Reasons) {
    let experts = plan.layout.experts.iter().flat_map(|e| &e.axes);
    let mut known = plan.layout.axes.iter().chain(experts);
    let splits = known.any(|a| axes.contains(&a.name) && a.size > 1);
    if matches!(class, "state" | "master") || !splits {
        return;
    }
    let what = format!("`{class}` is stored over `[{}]`", axes.join(", "));
    let why = match class {
        "param" => "the distributed optimizer keeps parameters whole; Megatron's FSDP is not written yet",
        "grad" => "the distributed optimizer keeps a whole gradient until the last microbatch",
        _ => "Megatron shards nothing but optimizer state at rest",
    };
    errors.add(at(class.into()), what, why).able(&["torchtitan", "accelerate", "deepspeed"]);
}

/// Megatron's name for a region, by the end of its path.
pub(crate) const MODULES: &[(&str, &str)] =
    &[("attention.core", "core_attn"), ("mlp", "mlp"), ("moe", "moe"), ("moe.shared_expert", "shared_experts")];

fn recompute(plan: &Plan, errors: &mut Reasons) -> Recompute {
    let (parts, other) = match &plan.layout.recompute {
        RecomputeInfo::None => return Recompute::None,
        RecomputeInfo::Full => return Recompute::Full,
        RecomputeInfo::Parts(parts) => (parts.as_slice(), None),
        RecomputeInfo::Other(other) => (&[][..], Some(other.as_str())),
    };
    let module = |part: &RecomputePart| match part {
        RecomputePart::Norms => Some("layernorm"),
        RecomputePart::Region(region) => {
            let end = |path: &str| region == path || region.strip_suffix(path).is_some_and(|r| r.ends_with('.'));
            MODULES.iter().find(|(path, _)| end(path)).map(|(_, module)| *module)
        }
    };
    let mut modules: Vec<_> = parts.iter().filter_map(module).collect();
    modules.sort_unstable();
    modules.dedup();
    let unknown = parts.iter().filter(|p| module(p).is_none()).map(|p| match p {
        RecomputePart::Region(region) => region.as_str(),
        RecomputePart::Norms => "norms",
    });
    for part in unknown.chain(other) {
        let what = format!("`{part}` is recomputed");
        let why = "Megatron recomputes whole layers, the core of attention, the norms, the MLP or the experts";
        errors.add(Where::Recompute, what, why).able(&["torchtitan"]);
    }
    if modules.is_empty() { Recompute::None } else { Recompute::Modules(modules) }
}
