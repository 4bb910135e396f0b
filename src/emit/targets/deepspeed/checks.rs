//! What of a plan `DeepSpeed`'s configuration file cannot say.

use super::{Reasons, Sizes, Where};
use crate::emit::plan::{AxisRole, Plan, RecomputeInfo};
use crate::emit::targets::sizes::{self, listed};

/// Only data and tensor axes are keys of the file; tensor ranks are the fastest.
pub(super) fn axes(plan: &Plan, sizes: &Sizes, reasons: &mut Reasons) {
    if sizes.pp > 1 {
        let what = format!("a pipeline of {} stages", sizes.pp);
        let why = "the pipeline is not a key of DeepSpeed's JSON file; it is code of the training script";
        reasons.add(Where::Pipeline, what, why).able(&["megatron", "torchtitan"]);
    }
    if sizes.cp > 1 {
        let what = format!("a sequence split over {} ranks", sizes.cp);
        let why = "sequence parallelism is code of the training script, not a key of DeepSpeed's JSON file";
        reasons.add(Where::Attention, what, why).able(&["megatron", "torchtitan", "accelerate"]);
    }
    let order = "DeepSpeed's tensor groups are consecutive ranks";
    reasons.misplaced(plan, "data or tensor", order, |a| match a.role {
        AxisRole::Tensor => Some(0),
        AxisRole::Data => Some(1),
        AxisRole::Context | AxisRole::Pipeline | AxisRole::Expert | AxisRole::Idle => None,
    });
    reasons.ordinary_experts(plan, "expert parallelism is code of the model, not a key of DeepSpeed's JSON file");
    if plan.layout.recompute != RecomputeInfo::None {
        let why = "recomputation is code of the model; the file cannot switch it on";
        reasons.add(Where::Recompute, "activations are recomputed", why).able(&[
            "megatron",
            "torchtitan",
            "accelerate",
        ]);
    }
    if let Some((dim, from, to)) = plan.layout.pads.iter().find(|(_, from, to)| from != to) {
        let what = format!("`{dim}` is padded from {from} to {to}");
        reasons.add(Where::Pad(dim.clone()), what, "the model is the training script's").able(&["megatron"]);
    }
}

/// The `ZeRO` stage that shards at rest what the layout stores sharded.
pub(super) fn stage(plan: &Plan, sizes: &Sizes, reasons: &mut Reasons) -> Option<u8> {
    let stored = |class| sizes::stored(plan, class);
    let classes = ["state", "grad", "param"].map(stored);
    // Each stage adds a class to the one before it.
    let stage = classes.iter().take_while(|axes| !axes.is_empty()).count();
    if let Some(late) = classes.iter().skip(stage).position(|axes| !axes.is_empty()) {
        let class = ["state", "grad", "param"][stage + late];
        let what = format!("`{class}` is stored sharded and `{}` is not", ["state", "grad", "param"][stage]);
        let why = "ZeRO shards the optimizer state, then gradients too, then parameters too";
        reasons.add(Where::Store(class.into()), what, why);
        return None;
    }
    let data: Vec<_> = sizes::axes(plan).into_iter().rev().filter(|a| a.role == AxisRole::Data).collect();
    for (class, over) in ["state", "grad", "param"].into_iter().zip(&classes).take(stage) {
        let inside: u64 = data.iter().filter(|a| over.contains(&a.name)).map(|a| a.size).product();
        if over.iter().any(|name| !data.iter().any(|a| a.name == *name)) {
            let what = format!("`{class}` is stored over `[{}]`", over.join(", "));
            reasons.add(Where::Store(class.into()), what, "ZeRO shards over data ranks and no others");
            return None;
        }
        if inside != sizes.dp {
            let what = format!("`{class}` is sharded over {inside} of {} data ranks", sizes.dp);
            let why = format!(
                "ZeRO shards over all {} of them; DeepSpeed {} has no smaller groups",
                sizes.dp,
                super::VERSION
            );
            let mut axes = data.iter().filter(|a| over.contains(&a.name));
            let reason = reasons.add(Where::Store(class.into()), what, why);
            let reason = match (axes.next(), axes.next()) {
                (Some(axis), None) => reason.resized(&axis.name, sizes.dp),
                _ => reason.instead(format!("store {class} over {}", listed(data.iter().copied()))),
            };
            reason.able(if stage == 3 { &["torchtitan", "accelerate"] } else { &["megatron"] });
            return None;
        }
    }
    if stage == 3 && plan.layout.hold.is_some_and(|hold| hold != "layer") {
        let what = format!("gathered parameters are held for a {}", plan.layout.hold.unwrap_or_default());
        let why = "ZeRO-3 frees a layer's parameters after each use";
        reasons.add(Where::Store("param".into()), what, why).able(&["torchtitan", "accelerate"]);
    }
    u8::try_from(stage).ok()
}

/// Tensor parallelism is `AutoTP`: below ZeRO-3, without a split of the sequence, one group of heads a rank.
pub(super) fn tensor(plan: &Plan, sizes: &Sizes, stage: Option<u8>, reasons: &mut Reasons) {
    // A script that runs a pipeline brings tensor parallelism of its own.
    if sizes.tp == 1 || sizes.pp > 1 {
        return;
    }
    if stage == Some(3) {
        let what = format!("tensor parallelism over {} ranks beside sharded parameters", sizes.tp);
        let why = "DeepSpeed's AutoTP works with ZeRO stages 0, 1 and 2";
        reasons.add(Where::Shard, what, why).able(&["torchtitan", "accelerate"]);
    }
    if plan.layout.sequence_parallel {
        let why = "AutoTP keeps activations outside its layers whole on every rank";
        reasons
            .add(Where::Shard, "activations are split over tensor ranks (`else S`)", why)
            .able(&["megatron", "torchtitan"]);
    }
    if let Some(d) = &plan.model.decoder
        && !d.kv_heads.is_multiple_of(sizes.tp)
    {
        let what = format!("{} key and value heads over {} tensor ranks", d.kv_heads, sizes.tp);
        reasons.add(Where::Shard, what, "AutoTP needs a whole number of heads on a rank").able(&["megatron"]);
    }
}

/// The format of the half-precision copy.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Half {
    Bf16,
    Fp16,
    None,
}

/// Dtypes the file can say: half-precision parameters with an `fp32` master copy, or `fp32` throughout.
pub(super) fn precision(plan: &Plan, reasons: &mut Reasons) -> Option<Half> {
    let dtype = |class: &str| plan.training.precision.get(class).map_or("", String::as_str);
    let half = match dtype("param") {
        "bf16" => Half::Bf16,
        "fp16" => Half::Fp16,
        "fp32" => Half::None,
        other => {
            let what = format!("parameters in `{other}`");
            reasons.add(Where::Precision, what, "DeepSpeed trains in `bf16`, `fp16` or `fp32`");
            return None;
        }
    };
    let master = if half == Half::None { &["none", "fp32"][..] } else { &["fp32"] };
    let main = dtype("param");
    let wanted: [(&str, &[&str]); 6] = [
        ("compute", &[main]),
        ("gather", &[main]),
        ("master", master),
        ("state", &["fp32"]),
        ("grad", &["fp32", main]),
        ("reduce", &["fp32", main]),
    ];
    for (class, allowed) in wanted {
        if !allowed.contains(&dtype(class)) {
            let list = allowed.iter().map(|a| format!("`{a}`")).collect::<Vec<_>>().join(" or ");
            let why = format!("with parameters in `{main}` DeepSpeed keeps it in {list}");
            reasons.add(Where::Precision, format!("`{class} = {}`", dtype(class)), why);
        }
    }
    let optimizer = plan.training.optimizer.rsplit("::").next().unwrap_or("");
    if optimizer != "AdamW" {
        reasons.add(Where::Optimizer, format!("optimizer `{optimizer}`"), "this target writes `AdamW`");
    }
    Some(half)
}
