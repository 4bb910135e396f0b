//! What of a plan accelerate cannot do.

use super::{Reasons, Sizes, Where};
use crate::emit::plan::{AxisRole, Plan, RecomputeInfo};
use crate::emit::targets::sizes::{self, Data, keep_whole, listed, stored};

/// There is no pipeline; ranks are numbered tp, cp, `dp_shard`, `dp_replicate` from fastest to slowest.
pub(super) fn axes(plan: &Plan, sizes: &Sizes, reasons: &mut Reasons) {
    if sizes.pp > 1 {
        let what = format!("a pipeline of {} stages", sizes.pp);
        reasons.add(Where::Pipeline, what, "accelerate has no pipeline").able(&["megatron", "torchtitan"]);
    }
    let over = stored(plan, "param");
    let order = "accelerate orders tp, cp, dp_shard, dp_replicate from fastest to slowest";
    reasons.misplaced(plan, "tensor, context or data", order, |a| match a.role {
        AxisRole::Tensor => Some(0),
        AxisRole::Context => Some(1),
        AxisRole::Data if over.contains(&a.name) => Some(2),
        AxisRole::Data => Some(3),
        AxisRole::Pipeline => Some(4),
        AxisRole::Expert | AxisRole::Idle => None,
    });
    reasons.ordinary_experts(plan, "accelerate has no key for expert parallelism");
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
    let stored = |class| stored(plan, class);
    let over = stored("param");
    let data: Vec<_> = sizes::axes(plan).into_iter().rev().filter(|a| a.role == AxisRole::Data).collect();
    let found = Data::of(plan);
    let all = format!("store [param, grad, state] over {}", listed(data.iter().copied()));
    if let Some(class) = ["grad", "state"].into_iter().find(|class| stored(class) != over) {
        let what = format!("`{class}` and parameters are stored otherwise");
        let why = "FSDP2 shards parameters, gradients and optimizer state together";
        reasons.add(Where::Store(class.into()), what, why).instead(all).able(keep_whole(plan));
    } else if sizes.dp.saturating_mul(sizes.cp) > 1 && over.is_empty() {
        let why = "accelerate combines tensor and context parallelism with FSDP2 alone";
        reasons.add(Where::Layout, "no class is stored sharded", why).able(&["megatron", "torchtitan"]);
    } else if found.shard == 1 && found.replicate > 1 && sizes.tp.saturating_mul(sizes.cp) > 1 {
        let why = "beside tensor or context ranks, copies of the parameters need shards too";
        reasons.add(Where::Store("param".into()), "every data rank holds a copy", why).instead(all);
    }
    found
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
