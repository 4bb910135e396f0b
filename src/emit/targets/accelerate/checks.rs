//! What of a plan accelerate cannot do.

use super::{Reasons, Sizes, Where};
use crate::emit::plan::{AxisInfo, AxisRole, Plan, RecomputeInfo};
use crate::emit::targets::sizes::{self, listed};

/// How data-parallel ranks share parameters.
#[derive(Copy, Clone, Debug)]
pub(super) struct Data {
    /// Groups of ranks that each hold all parameters.
    pub(super) replicate: u64,
    /// Ranks of one such group.
    pub(super) shard: u64,
}

/// There is no pipeline; ranks are numbered tp, cp, `dp_shard`, `dp_replicate` from fastest to slowest.
pub(super) fn axes(plan: &Plan, sizes: &Sizes, reasons: &mut Reasons) {
    if sizes.pp > 1 {
        let what = format!("a pipeline of {} stages", sizes.pp);
        reasons.add(Where::Pipeline, what, "accelerate has no pipeline").able(&["megatron", "torchtitan"]);
    }
    let over = plan.layout.stored.get("param").map_or(&[][..], Vec::as_slice);
    let place = |a: &&AxisInfo| match a.role {
        AxisRole::Tensor => 0,
        AxisRole::Context => 1,
        AxisRole::Data if over.contains(&a.name) => 2,
        AxisRole::Data => 3,
        AxisRole::Pipeline | AxisRole::Idle => 4,
    };
    let found = sizes::axes(plan);
    if let Some(idle) = found.iter().find(|a| a.role == AxisRole::Idle) {
        let what = format!("mesh axis `{}` of {} ranks shards nothing", idle.name, idle.size);
        let why = "every rank of an accelerate job is a tensor, context or data rank";
        reasons.add(Where::Axis(idle.name.clone()), what, why);
    } else if !found.is_sorted_by_key(place) {
        let what = format!("ranks are numbered `mesh {}`", listed(&plan.layout.axes));
        let mut wanted: Vec<_> = plan.layout.axes.iter().collect();
        wanted.sort_by_key(|a| std::cmp::Reverse(place(a)));
        let why = "accelerate orders tp, cp, dp_shard, dp_replicate from fastest to slowest";
        reasons.add(Where::Mesh, what, why).instead(format!("mesh {}", listed(wanted)));
    }
    if sizes.cp > 1 && plan.layout.context_method == Some("ring") {
        let why = "accelerate's context parallelism gathers keys and values, or exchanges heads for tokens";
        reasons.add(Where::Attention, "attention via `ring`", why).able(&["megatron"]);
    }
    if sizes.tp > 1 && plan.layout.sequence_parallel {
        let why = "its tensor parallelism follows the model's own plan, which keeps activations whole between layers";
        let what = "activations are split over tensor ranks (`else S`)";
        reasons.add(Where::Shard, what, why).able(&["megatron", "torchtitan"]);
    }
    if matches!(plan.layout.recompute, RecomputeInfo::Parts(_) | RecomputeInfo::Other(_)) {
        let why = "FSDP's activation checkpointing recomputes whole layers";
        reasons
            .add(Where::Recompute, "parts of a layer are recomputed", why)
            .instead("recompute all")
            .able(&["megatron"]);
    }
    if let Some((dim, from, to)) = plan.layout.pads.iter().find(|(_, from, to)| from != to) {
        let what = format!("`{dim}` is padded from {from} to {to}");
        reasons.add(Where::Pad(dim.clone()), what, "the model is the training script's").able(&["megatron"]);
    }
}

/// Parameters, gradients and state are sharded together, over data and context ranks, by FSDP2.
pub(super) fn data(plan: &Plan, sizes: &Sizes, reasons: &mut Reasons) -> Data {
    let stored = |class: &str| plan.layout.stored.get(class).map_or(&[][..], Vec::as_slice);
    let over = stored("param");
    let data: Vec<_> = sizes::axes(plan).into_iter().rev().filter(|a| a.role == AxisRole::Data).collect();
    let product =
        |inside: bool| -> u64 { data.iter().filter(|a| over.contains(&a.name) == inside).map(|a| a.size).product() };
    let all = format!("store [param, grad, state] over {}", listed(data.iter().copied()));
    if let Some(class) = ["grad", "state"].into_iter().find(|class| stored(class) != over) {
        let what = format!("`{class}` and parameters are stored otherwise");
        let why = "FSDP2 shards parameters, gradients and optimizer state together";
        reasons.add(Where::Store(class.into()), what, why).instead(all).able(&["megatron", "deepspeed"]);
    } else if sizes.dp.saturating_mul(sizes.cp) > 1 && over.is_empty() {
        let why = "accelerate combines tensor and context parallelism with FSDP2 alone";
        reasons.add(Where::Layout, "no class is stored sharded", why).able(&["megatron", "torchtitan"]);
    } else if product(true) == 1 && product(false) > 1 && sizes.tp.saturating_mul(sizes.cp) > 1 {
        let why = "beside tensor or context ranks, copies of the parameters need shards too";
        reasons.add(Where::Store("param".into()), "every data rank holds a copy", why).instead(all);
    }
    Data { replicate: product(false), shard: product(true) }
}

/// `mixed_precision` is one word: what is gathered and computed in; sums and rest are `fp32`.
pub(super) fn precision(plan: &Plan, reasons: &mut Reasons) {
    let dtype = |class: &str| plan.training.precision.get(class).map_or("", String::as_str);
    let compute = dtype("compute");
    if !matches!(compute, "bf16" | "fp16" | "fp32") {
        let what = format!("`compute = {compute}`");
        reasons.add(Where::Precision, what, "this target writes `bf16`, `fp16` and `fp32`").able(&["megatron"]);
    }
    let rest = if dtype("master") == "none" { dtype("param") } else { dtype("master") };
    for (class, found) in [("param", rest), ("state", dtype("state"))] {
        if found != "fp32" {
            let what = format!("`{class}` rests in `{found}`");
            reasons.add(Where::Precision, what, "FSDP2 keeps it in `fp32` and gathers it in `mixed_precision`");
        }
    }
}
