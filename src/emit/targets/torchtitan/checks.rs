//! What of a plan torchtitan cannot do.

use super::{Reasons, Sizes, Where};
use crate::emit::plan::{AxisInfo, AxisRole, Plan, RecomputeInfo};
use crate::emit::targets::sizes::{Data, axes, expert_axes, keep_whole, listed, stored, stored_experts};

/// Which data ranks hold shards, which hold copies. Parameters, gradients and state are sharded together or not at all.
pub(super) fn data(plan: &Plan, reasons: &mut Reasons) -> Data {
    let stored = |class| stored(plan, class);
    let over = stored("param");
    for class in ["grad", "state"] {
        if stored(class) != over {
            let what = match (stored(class), over) {
                (axes, []) => format!("`{class}` is stored over `[{}]`, parameters are whole", axes.join(", ")),
                ([], axes) => format!("parameters are stored over `[{}]`, `{class}` is whole", axes.join(", ")),
                (axes, _) => format!("`{class}` is stored over `[{}]`, parameters otherwise", axes.join(", ")),
            };
            let why = "FSDP2 shards parameters, gradients and optimizer state together";
            let data = axes(plan).into_iter().rev().filter(|a| a.role == AxisRole::Data);
            let instead = format!("store [param, grad, state] over {}", listed(data));
            reasons.add(Where::Store(class.into()), what, why).instead(instead).able(keep_whole(plan));
            break;
        }
    }
    for axis in axes(plan).into_iter().filter(|a| a.role == AxisRole::Context && !over.contains(&a.name)) {
        if !over.is_empty() {
            let what = format!("parameters are whole over `{}`", axis.name);
            let why = "FSDP2 shards over context ranks too";
            reasons.add(Where::Store("param".into()), what, why);
        }
    }
    for name in over {
        let role = plan.layout.axes.iter().find(|a| a.name == *name).map(|a| a.role);
        if !matches!(role, Some(AxisRole::Data | AxisRole::Context)) {
            let what = format!("parameters are stored over `{name}`");
            reasons.add(Where::Store("param".into()), what, "FSDP2 shards over data and context ranks");
        }
    }
    Data::of(plan)
}

/// Ranks are numbered tp, cp, `dp_shard`, `dp_replicate`, pp from fastest to slowest.
pub(super) fn ranks(plan: &Plan, sizes: &Sizes, data: &Data, reasons: &mut Reasons) {
    let over = stored(plan, "param");
    let order = "torchtitan orders tp, cp, dp_shard, dp_replicate, pp from fastest to slowest";
    reasons.misplaced(plan, "tensor, context, data or pipeline", order, |a| match a.role {
        AxisRole::Tensor => Some(0),
        AxisRole::Context => Some(1),
        AxisRole::Data if over.contains(&a.name) || data.shard == 1 => Some(2),
        AxisRole::Data => Some(3),
        AxisRole::Pipeline => Some(4),
        AxisRole::Expert | AxisRole::Idle => None,
    });
    if sizes.tp > 1
        && let Some(d) = &plan.model.decoder
        && !d.kv_heads.is_multiple_of(sizes.tp)
    {
        let what = format!("{} key and value heads over {} tensor ranks", d.kv_heads, sizes.tp);
        let why = "tensor ranks must divide the key and value heads; torchtitan keeps no copies of them";
        reasons.add(Where::Shard, what, why).able(&["megatron"]);
    }
}

/// Experts lie on consecutive ranks, whole; what is left of the data ranks shards them as it shards the rest.
pub(super) fn experts(plan: &Plan, data: &Data, reasons: &mut Reasons) {
    let axes = expert_axes(plan);
    if let Some(axis) = axes.iter().find(|a| a.role == AxisRole::Tensor) {
        let what = format!("each expert is split over `{}`, {} ranks", axis.name, axis.size);
        let why = "torchtitan has no expert tensor parallelism: experts borrow the tensor ranks, whole";
        reasons.add(Where::ShardOver(axis.name.clone()), what, why).able(&["megatron"]);
        return;
    }
    let over = stored_experts(plan, "param");
    let place = |a: &AxisInfo| match a.role {
        AxisRole::Expert => 0,
        AxisRole::Data if over.contains(&a.name) => 1,
        AxisRole::Pipeline => 3,
        AxisRole::Data | AxisRole::Tensor | AxisRole::Context | AxisRole::Idle => 2,
    };
    if let Some(two) = axes.windows(2).find(|two| place(two[0]) > place(two[1])) {
        let what = format!("experts number their ranks `{}`", listed(axes.iter().rev().copied()));
        let why = "torchtitan orders ep, efsdp, dp_replicate, pp from fastest to slowest";
        reasons.add(Where::Axis(two[1].name.clone()), what, why);
    }
    for class in ["grad", "state"] {
        if stored_experts(plan, class) != over {
            let what = format!("`{class}` of experts is stored otherwise than their parameters");
            let why = "FSDP2 shards parameters, gradients and optimizer state together";
            reasons.add(Where::StoreInside(class.into()), what, why).able(&["megatron"]);
            return;
        }
    }
    let copies = axes.iter().filter(|a| a.role == AxisRole::Data && !over.contains(&a.name));
    let copies = copies.fold(1_u64, |n, a| n.saturating_mul(a.size));
    if !axes.is_empty() && copies != data.replicate {
        let what = format!("{copies} ranks hold the same piece of an expert");
        let why = format!("torchtitan keeps as many copies of experts as of the rest, {}", data.replicate);
        reasons.add(Where::StoreInside("param".into()), what, why);
    }
}

/// Attention over a sharded sequence gathers keys and values.
pub(super) fn context(plan: &Plan, sizes: &Sizes, reasons: &mut Reasons) {
    if sizes.cp > 1 && plan.layout.context_method != Some("all_gather") {
        let what =
            format!("attention over a sharded sequence via `{}`", plan.layout.context_method.unwrap_or("nothing"));
        let why = "its context parallelism gathers keys and values";
        reasons.add(Where::Attention, what, why).able(&["megatron"]);
    }
    let pieces = sizes.cp.saturating_mul(if sizes.cp > 1 { 2 } else { 1 });
    let ranks = if plan.layout.sequence_parallel { sizes.tp } else { 1 };
    let multiple = pieces.saturating_mul(ranks).max(1);
    if !plan.training.sequence.is_multiple_of(multiple) {
        let what = format!("sequences of {} tok", plan.training.sequence);
        let why = format!("tensor and context ranks need a multiple of {multiple}");
        reasons.add(Where::Sequence, what, why);
    }
}

/// The policy of activation checkpointing.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Recompute {
    None,
    Full,
}

/// Whole layers or nothing: the selective policy follows its own list of operations.
pub(super) fn recompute(plan: &Plan, reasons: &mut Reasons) -> Option<Recompute> {
    match &plan.layout.recompute {
        RecomputeInfo::None => Some(Recompute::None),
        RecomputeInfo::Full => Some(Recompute::Full),
        RecomputeInfo::Parts(_) | RecomputeInfo::Other(_) => {
            let why = "torchtitan recomputes whole layers, or what its own selective policy names";
            reasons
                .add(Where::Recompute, "parts of a layer are recomputed", why)
                .instead("recompute all")
                .able(&["megatron"]);
            None
        }
    }
}

/// Dtypes FSDP2 can be told: bf16 or fp32 in use, fp32 in sums and at rest.
pub(super) fn precision(plan: &Plan, data: &Data, sizes: &Sizes, reasons: &mut Reasons) {
    let dtype = |class: &str| plan.training.precision.get(class).map_or("", String::as_str);
    let compute = dtype("compute");
    if !matches!(compute, "bf16" | "fp32") {
        let what = format!("`compute = {compute}`");
        reasons.add(Where::Precision, what, "this target writes `bf16` and `fp32`").able(&["megatron"]);
        return;
    }
    // The fp32 shard is both the parameter at rest and what others call the master copy.
    let rest = if dtype("master") == "none" { dtype("param") } else { dtype("master") };
    let wanted = [("reduce", "fp32"), ("grad", "fp32"), ("state", "fp32"), ("accumulate", "fp32")];
    for (class, want) in wanted {
        if dtype(class) != want {
            let what = format!("`{class} = {}`", dtype(class));
            reasons.add(Where::Precision, what, format!("torchtitan keeps it in `{want}`")).able(&["megatron"]);
        }
    }
    if rest != "fp32" {
        let what = format!("parameters rest in `{rest}`");
        reasons.add(Where::Precision, what, "torchtitan keeps them in `fp32` and gathers them in `bf16`");
    }
    let wrapped = data.shard.saturating_mul(sizes.cp) > 1;
    let alone = sizes.tp == 1 && sizes.pp == 1 && sizes.cp == 1;
    if compute == "bf16" && !wrapped && !alone {
        let what = "no axis shards parameters, and `compute = bf16`";
        let why =
            "torchtitan casts to `bf16` where FSDP2 gathers; without it tensor and pipeline ranks compute in `fp32`";
        reasons.add(Where::Store("param".into()), what, why).able(&["megatron"]);
    }
    let optimizer = plan.training.optimizer.rsplit("::").next().unwrap_or("");
    if optimizer != "AdamW" {
        reasons.add(Where::Optimizer, format!("optimizer `{optimizer}`"), "this target writes `AdamW`");
    }
}

/// torchtitan's name of the schedule, and the modules of every chunk.
#[derive(Clone, Debug)]
pub(super) struct Pipeline {
    pub(super) schedule: &'static str,
    pub(super) chunks: Vec<Vec<String>>,
}

/// The pipeline; without one, no chunks.
pub(super) fn pipeline(plan: &Plan, sizes: &Sizes, reasons: &mut Reasons) -> Option<Pipeline> {
    if sizes.pp == 1 {
        return Some(Pipeline { schedule: "1F1B", chunks: Vec::new() });
    }
    let p = &plan.pipeline;
    let schedule = SCHEDULES.iter().find(|(name, ..)| *name == p.schedule);
    let Some((_, schedule, v_shaped)) = schedule else {
        let known = SCHEDULES.iter().map(|(name, ..)| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let what = format!("schedule `{}`", p.schedule);
        reasons.add(Where::Schedule, what, format!("torchtitan runs {known}"));
        return None;
    };
    // Looped schedules place chunk c on rank c mod pp; the V-shaped ones turn round at the last rank.
    let ranks = sizes.pp;
    let expected = |c: u64| if *v_shaped && c >= ranks { (2 * ranks - 1).saturating_sub(c) } else { c % ranks };
    if p.chunks.iter().enumerate().any(|(c, chunk)| chunk.stage != expected(c as u64)) {
        let why = "its schedules place chunk c on rank c mod pp, or along a V";
        reasons.add(Where::Schedule, "chunks lie on other ranks", why);
        return None;
    }
    if let Some(empty) = p.chunks.iter().position(|c| c.units.iter().all(|n| *n == 0)) {
        reasons.add(Where::Split, format!("chunk {empty} holds no layer"), "every stage is a model part");
        return None;
    }
    let mut next = 0;
    let mut chunks = Vec::new();
    for chunk in &p.chunks {
        let mut modules = Vec::new();
        for (unit, count) in plan.model.units.iter().zip(&chunk.units) {
            match unit.name.as_str() {
                _ if *count == 0 => {}
                "embed" => modules.push("tok_embeddings".to_owned()),
                "head" => modules.extend(["norm", "lm_head"].map(str::to_owned)),
                _ if unit.repeated => {
                    modules.extend((next..next + count).map(|i| format!("layers.{i}")));
                    next += count;
                }
                other => {
                    let what = format!("`{other}` is a part of the model of its own");
                    reasons.add(Where::Model, what, "torchtitan splits an embedding, layers and a head");
                    return None;
                }
            }
        }
        chunks.push(modules);
    }
    Some(Pipeline { schedule, chunks })
}

/// The language's schedules, torchtitan's names, and whether chunks lie along a V.
pub(crate) const SCHEDULES: &[(&str, &str, bool)] = &[
    ("gpipe", "GPipe", false),
    ("one_f_one_b", "1F1B", false),
    ("interleaved", "Interleaved1F1B", false),
    ("breadth_first", "LoopedBFS", false),
    ("zb_v", "ZBVZeroBubble", true),
    ("dualpipe_v", "DualPipeV", true),
];

/// The batch is whole microbatches on every data rank.
pub(super) fn batch(plan: &Plan, sizes: &Sizes, reasons: &mut Reasons) {
    reasons.uneven_batch(plan, sizes);
    if let Some((dim, from, to)) = plan.layout.pads.iter().find(|(_, from, to)| from != to) {
        let what = format!("`{dim}` is padded from {from} to {to}");
        reasons.add(Where::Pad(dim.clone()), what, "torchtitan pads no dimension").able(&["megatron"]);
    }
}
