//! What of a plan the program cannot do.

use super::facts::dtype;
use super::{Reasons, Sizes, Where};
use crate::emit::plan::{AxisRole, DecoderInfo, Plan, RecomputeInfo};
use crate::emit::targets::sizes::{axes, listed, stored};

/// The model: Llama's family. Every weight is cut evenly over the tensor ranks.
pub(super) fn model<'a>(plan: &'a Plan, sizes: &Sizes, reasons: &mut Reasons) -> Option<&'a DecoderInfo> {
    let why = "the program writes decoders with RMSNorm, SwiGLU and rotary positions, without biases, ties or experts";
    let Some(d) = &plan.model.decoder else {
        let reason = plan.model.decoder_reason.as_deref().unwrap_or("its operations differ");
        reasons.add(Where::Model, format!("model `{}`: {reason}", plan.model.name), why);
        return None;
    };
    let plain = d.norm == "rms" && d.activation == "swiglu" && d.rope_base.is_some() && !d.bias && !d.tied;
    if !plain || d.experts.is_some() {
        let what = format!("model `{}` is of another family", plan.model.name);
        reasons.add(Where::Model, what, why).able(&["megatron"]);
    }
    for (what, n) in [("key and value heads", d.kv_heads), ("MLP columns", d.ffn), ("rows of the vocabulary", d.vocab)]
    {
        if !n.is_multiple_of(sizes.tp) {
            let why = format!("the program cuts them evenly over {} tensor ranks", sizes.tp);
            reasons.add(Where::Model, format!("{n} {what}"), why).able(&["megatron"]);
        }
    }
    if let Some((dim, from, to)) = plan.layout.pads.iter().find(|(_, from, to)| from != to) {
        let what = format!("`{dim}` is padded from {from} to {to}");
        reasons.add(Where::Pad(dim.clone()), what, "the program pads no dimension").able(&["megatron"]);
    }
    if let Some(unit) = plan.model.units.iter().find(|u| !u.repeated && !matches!(u.name.as_str(), "embed" | "head")) {
        let what = format!("`{}` is a part of the model of its own", unit.name);
        reasons.add(Where::Model, what, "the program cuts an embedding, layers and a head");
    }
    Some(d)
}

/// One tensor axis; gradients summed over data ranks, or everything sharded over them by FSDP.
pub(super) fn layout(plan: &Plan, sizes: &Sizes, reasons: &mut Reasons) {
    if sizes.cp > 1 {
        let what = format!("a sequence split over {} ranks", sizes.cp);
        reasons
            .add(Where::Attention, what, "the program's attention sees whole sequences")
            .able(&["megatron", "torchtitan"]);
    }
    let found = axes(plan);
    if let Some(idle) = found.iter().find(|a| a.role == AxisRole::Idle) {
        let what = format!("mesh axis `{}` of {} ranks shards nothing", idle.name, idle.size);
        reasons.add(Where::Axis(idle.name.clone()), what, "every rank is a tensor, data or pipeline rank");
    }
    if let Some(second) = found.iter().filter(|a| a.role == AxisRole::Tensor).nth(1) {
        let what = format!("`{}` splits weights beside another axis", second.name);
        reasons.add(Where::Axis(second.name.clone()), what, "the program has one tensor axis");
    }
    if !plan.layout.axes.iter().all(|a| is_identifier(&a.name)) {
        reasons.add(Where::Mesh, "an axis has a name that is no identifier", "meshes of PyTorch are named so");
    }
    let over = stored(plan, "param");
    let data: Vec<_> = found.iter().rev().filter(|a| a.role == AxisRole::Data).copied().collect();
    if let Some(class) = ["grad", "state"].into_iter().find(|class| stored(plan, class) != over) {
        let what = format!("`{class}` rests otherwise than parameters");
        let why = "the program shards parameters, gradients and optimizer state together by FSDP2, or nothing";
        let instead = format!("store [param, grad, state] over {}", listed(data.iter().copied()));
        reasons.add(Where::Store(class.into()), what, why).instead(instead).able(&["megatron", "deepspeed"]);
    } else if !over.is_empty() {
        // FSDP2 takes a mesh of copies and shards, or of shards alone.
        let inside = data.iter().rev().take_while(|a| over.contains(&a.name)).count();
        if inside != 1 || over.len() != 1 || data.len() > 2 {
            let what = format!("parameters are stored over `[{}]`", over.join(", "));
            let why = "FSDP2 is told one axis of shards, the fastest of the data axes, and at most one of copies";
            reasons.add(Where::Store("param".into()), what, why).able(&["torchtitan"]);
        }
        let qk_norm = plan.model.decoder.as_ref().is_some_and(|d| d.qk_norm);
        if sizes.tp > 1 && (plan.layout.sequence_parallel || qk_norm) {
            let why = "the program does not sum gradients of norms over tensor ranks behind FSDP2";
            let what = "norms of which tensor ranks see a part each, beside sharded parameters";
            reasons.add(Where::Shard, what, why).able(&["torchtitan"]);
        }
        if sizes.pp > 1 {
            let why = "PyTorch's stages reduce sharded gradients once an update, the plan at each microbatch";
            reasons
                .add(Where::Store("param".into()), "sharded parameters beside a pipeline", why)
                .able(&["torchtitan"]);
        }
    }
    match &plan.layout.recompute {
        RecomputeInfo::None | RecomputeInfo::Full => {}
        RecomputeInfo::Parts(_) | RecomputeInfo::Other(_) => {
            let why = "the program recomputes whole layers or nothing";
            reasons.add(Where::Recompute, "parts of a layer are recomputed", why).able(&["megatron"]);
        }
    }
    reasons.ordinary_experts(plan, "the program has no experts");
}

fn is_identifier(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// `fp32` throughout, or FSDP's `bf16` in use.
pub(super) fn precision(plan: &Plan, sizes: &Sizes, reasons: &mut Reasons) {
    let sharded = !stored(plan, "param").is_empty();
    let rest = if dtype(plan, "master") == "none" { "param" } else { "master" };
    let wanted: [(&str, &[&str]); 5] = [
        ("gather", if sharded && sizes.pp == 1 { &["fp32", "bf16"] } else { &["fp32"] }),
        ("act", &[dtype(plan, "gather")]),
        (rest, &["fp32"]),
        ("grad", &["fp32"]),
        ("reduce", &["fp32"]),
    ];
    for (class, allowed) in wanted {
        if !allowed.contains(&dtype(plan, class)) {
            let list = allowed.iter().map(|a| format!("`{a}`")).collect::<Vec<_>>().join(" or ");
            let what = format!("`{class} = {}`", dtype(plan, class));
            let why = format!("the program keeps it in {list}; FSDP alone casts what it gathers");
            reasons.add(Where::Precision, what, why).able(&["megatron", "torchtitan"]);
        }
    }
    if plan.training.optimizer.rsplit("::").next() != Some("AdamW") {
        let what = format!("optimizer `{}`", plan.training.optimizer);
        reasons.add(Where::Optimizer, what, "the program updates by `AdamW`");
    }
}

/// The language's schedules and `PyTorch`'s.
const SCHEDULES: &[(&str, &str)] =
    &[("gpipe", "GPipe"), ("one_f_one_b", "1F1B"), ("interleaved", "Interleaved1F1B"), ("breadth_first", "LoopedBFS")];

/// `PyTorch`'s name of the schedule; chunk c lies on rank c mod p.
pub(super) fn pipeline(plan: &Plan, sizes: &Sizes, reasons: &mut Reasons) -> Option<&'static str> {
    if sizes.pp == 1 {
        return Some("1F1B");
    }
    let p = &plan.pipeline;
    let Some((_, schedule)) = SCHEDULES.iter().find(|(name, _)| *name == p.schedule) else {
        let known = SCHEDULES.iter().map(|(name, _)| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        reasons
            .add(Where::Schedule, format!("schedule `{}`", p.schedule), format!("the program runs {known}"))
            .able(&["torchtitan"]);
        return None;
    };
    if p.chunks.iter().enumerate().any(|(c, chunk)| chunk.stage != c as u64 % sizes.pp) {
        reasons.add(Where::Schedule, "chunks lie on other ranks", "its schedules place chunk c on rank c mod p");
    }
    if let Some(empty) = p.chunks.iter().position(|c| c.units.iter().all(|n| *n == 0)) {
        reasons.add(Where::Split, format!("chunk {empty} holds no layer"), "every stage is a model part");
    }
    Some(schedule)
}
