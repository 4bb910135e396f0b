//! What of a model, batch and precision Megatron cannot do.

use super::{Reasons, Sizes, Where};
use crate::emit::plan::{DecoderInfo, Plan};

/// Refuses models outside the decoder family and widths that tensor ranks do not divide.
pub(super) fn model(plan: &Plan, sizes: &Sizes, errors: &mut Reasons) {
    let Some(d) = &plan.model.decoder else {
        let reason = plan.model.decoder_reason.as_deref().unwrap_or("its operations differ");
        let what = format!("model `{}` is not a decoder of the common family: {reason}", plan.model.name);
        errors.add(Where::Model, what, "`pretrain_gpt.py` builds decoder-only transformers");
        return;
    };
    let tp = sizes.tp;
    for (what, n) in [("query heads", d.heads), ("MLP columns", d.ffn)] {
        if n % tp != 0 {
            let why = format!("tensor parallelism over {tp} ranks needs a multiple of {tp}");
            errors.add(Where::Model, format!("{n} {what}"), why);
        }
    }
    if d.kv_heads == 0 || (!d.kv_heads.is_multiple_of(tp) && !tp.is_multiple_of(d.kv_heads)) {
        let why = format!("one of key and value heads and {tp} tensor ranks must divide the other");
        errors.add(Where::Model, format!("{} key and value heads", d.kv_heads), why);
    }
    if d.rope_base.is_some() == d.learned_positions.is_some() {
        let why = "`pretrain_gpt.py` is told one kind of position embedding";
        errors.add(Where::Model, "the model has not exactly one of rotary and learned positions", why);
    }
    if let Some(base) = d.rope_base
        && !((1.0..9_007_199_254_740_992.0).contains(&base) && base.fract().abs() < f64::EPSILON)
    {
        errors.add(Where::Model, format!("a rotary base of {base}"), "`--rotary-base` is a whole number");
    }
    if let Some(rows) = d.learned_positions
        && rows < plan.training.sequence
    {
        let what = format!("{rows} learned positions for sequences of {} tok", plan.training.sequence);
        errors.add(Where::Sequence, what, "the table must cover the sequence");
    }
    for (what, known) in [(d.norm, ["rms", "layer"]), (d.activation, ["swiglu", "gelu"])] {
        if !known.contains(&what) {
            let why = format!("`{}` and `{}` are what this target writes", known[0], known[1]);
            errors.add(Where::Model, format!("`{what}` in a layer"), why);
        }
    }
    if d.vocab == 0 || !vocab(plan, d).1.is_multiple_of(tp) {
        let what = format!("a vocabulary of {} rows", vocab(plan, d).1);
        let why = format!("it must be a multiple of {tp} tensor ranks");
        errors.add(Where::Pad("V".into()), what, why).instead(format!("pad V = {}", tp.saturating_mul(128)));
    }
    let (pad, _) = vocab(plan, d);
    for (dim, from, to) in plan.layout.pads.iter().filter(|(_, from, to)| from != to) {
        if pad != Some(dim.as_str()) {
            let what = format!("`{dim}` is padded from {from} to {to}");
            errors.add(Where::Pad(dim.clone()), what, "Megatron pads nothing but the vocabulary");
        }
    }
}

/// Refuses experts that Megatron's `MoE` layer would not train, or cannot be told of.
pub(super) fn experts(plan: &Plan, sizes: &Sizes, errors: &mut Reasons) {
    let Some((d, e)) = plan.model.decoder.as_ref().and_then(|d| Some((d, d.experts.as_ref()?))) else { return };
    if sizes.tp > 1 && !plan.layout.sequence_parallel {
        let what = format!("experts beside tensor parallelism, tp = {}, without sequence parallelism", sizes.tp);
        let why = format!(
            "Megatron's MoE layer refuses to train where {} tensor ranks hold the whole sequence each: the first forward fails",
            sizes.tp
        );
        errors.add(Where::Shard, what, why).else_sequence();
    }
    if !e.count.is_multiple_of(sizes.ep) {
        let what = format!("{} experts over {} ranks", e.count, sizes.ep);
        errors.add(Where::Model, what, "expert ranks must divide the experts");
    }
    if !d.ffn.is_multiple_of(sizes.etp) {
        let what = format!("experts of {} columns", d.ffn);
        errors.add(Where::Model, what, format!("expert tensor parallelism needs a multiple of {}", sizes.etp));
    }
    if d.bias && sizes.etp > 1 {
        let what = format!("experts with biases over {} ranks", sizes.etp);
        errors.add(Where::Model, what, "Megatron splits an expert only where it has no biases");
    }
    if e.shared_gate {
        let what = "the shared expert has a gate of its own";
        errors.add(Where::Model, what, "this target does not write that gate");
    }
}

/// The padded dimension that is the vocabulary, if it is padded, and the rows of its table.
pub(super) fn vocab<'a>(plan: &'a Plan, d: &DecoderInfo) -> (Option<&'a str>, u64) {
    let pads = plan.layout.pads.iter().filter(|(_, from, _)| *from == d.vocab);
    let pad = pads.clone().find(|(dim, ..)| dim == "V").or_else(|| pads.clone().next());
    pad.map_or((None, d.vocab), |(dim, _, to)| (Some(dim.as_str()), *to))
}

/// The multiple that makes Megatron pad `rows` to `padded` over `tp` ranks: 128 if that does.
///
/// Megatron rounds up to a multiple of this times `tp`.
pub(super) fn vocab_multiple(rows: u64, padded: u64, tp: u64) -> u64 {
    let makes = |d: &u64| d.checked_mul(tp).and_then(|step| rows.checked_next_multiple_of(step)) == Some(padded);
    [128, 64, 32, 16, 8, 4, 2, 1].into_iter().find(makes).unwrap_or((padded / tp.max(1)).max(1))
}

/// Refuses batches that are not whole microbatches, and sequences that do not split.
pub(super) fn batch(plan: &Plan, sizes: &Sizes, errors: &mut Reasons) {
    let t = &plan.training;
    let ranks = [sizes.tp, sizes.cp, sizes.dp, sizes.pp].into_iter().try_fold(1_u64, u64::checked_mul);
    if ranks != Some(plan.cluster.devices) {
        let what = format!(
            "tp {} × cp {} × dp {} × pp {} on {} devices",
            sizes.tp, sizes.cp, sizes.dp, sizes.pp, plan.cluster.devices
        );
        errors.add(Where::Mesh, what, "these are the only axes of a dense Megatron job");
    }
    errors.uneven_batch(plan, sizes);
    if t.replicas != sizes.dp {
        let what = format!("{} replicas of the model take different sequences", t.replicas);
        errors.add(Where::Batch, what, format!("each of Megatron's {} data ranks is one", sizes.dp));
    }
    let pieces = sizes.cp.saturating_mul(2);
    if sizes.cp > 1 && !t.sequence.is_multiple_of(pieces) {
        let why = format!("context parallelism over {} ranks needs a multiple of {pieces}", sizes.cp);
        errors.add(Where::Sequence, format!("sequences of {} tok", t.sequence), why);
    } else if plan.layout.sequence_parallel && !(t.sequence / sizes.cp).is_multiple_of(sizes.tp) {
        let what = format!("{} tok on a rank", t.sequence / sizes.cp);
        let why = format!("sequence parallelism needs a multiple of {} tensor ranks", sizes.tp);
        errors.add(Where::Sequence, what, why);
    }
}

/// How context ranks exchange keys and values.
pub(super) type CpMethod = Option<&'static str>;

/// The `--cp-comm-type` of the plan; the inner option is empty without context parallelism.
pub(super) fn attention(plan: &Plan, sizes: &Sizes, errors: &mut Reasons) -> Option<CpMethod> {
    if sizes.cp == 1 {
        return Some(None);
    }
    match plan.layout.context_method {
        Some("ring") => Some(Some("p2p")),
        Some("all_gather") => Some(Some("all_gather")),
        Some("all_to_all") => {
            let ranks = sizes.cp.saturating_mul(sizes.tp);
            if let Some(d) = &plan.model.decoder
                && (d.heads % ranks != 0 || d.kv_heads % ranks != 0)
            {
                let what = format!("attention by all_to_all of {} and {} heads", d.heads, d.kv_heads);
                let why = format!("both must be multiples of tp × cp = {ranks}");
                errors.add(Where::Attention, what, why).instead("via ring(zigzag)");
                return None;
            }
            Some(Some("a2a"))
        }
        other => {
            let what = format!("attention over a sharded sequence via `{}`", other.unwrap_or("nothing"));
            let why = "Megatron has ring (p2p), all_gather and all_to_all (a2a)";
            errors.add(Where::Attention, what, why);
            None
        }
    }
}

/// Refuses dtypes and optimizers `pretrain_gpt.py` cannot be told.
pub(super) fn precision(plan: &Plan, errors: &mut Reasons) {
    let dtype = |class: &str| plan.training.precision.get(class).map_or("", String::as_str);
    let main = dtype("param");
    if !matches!(main, "bf16" | "fp16" | "fp32") {
        let why = "Megatron trains in `bf16`, `fp16` or `fp32`; fp8 and fp4 are not written yet";
        errors.add(Where::Precision, format!("parameters in `{main}`"), why);
        return;
    }
    let master = if main == "fp32" { &["none", "fp32"][..] } else { &["fp32"] };
    let grads = if main == "bf16" || main == "fp16" { &["fp32", main][..] } else { &["fp32"] };
    let wanted: [(&str, &[&str]); 9] = [
        ("compute", &[main]),
        ("act", &[main]),
        ("gather", &[main]),
        ("accumulate", &["fp32"]),
        ("logits", &["fp32"]),
        ("grad", grads),
        ("reduce", &[dtype("grad")]),
        ("master", master),
        ("state", &["fp32"]),
    ];
    let also: [(&str, &[&str]); 3] = [("grad_compute", &[main]), ("wire", &[main]), ("scale", &["none"])];
    let said = |class: &str| plan.training.precision.contains_key(class);
    for (class, allowed) in wanted.into_iter().chain(also.into_iter().filter(|(class, _)| said(class))) {
        let given = dtype(class);
        if !allowed.contains(&given) {
            let list = allowed.iter().map(|a| format!("`{a}`")).collect::<Vec<_>>().join(" or ");
            let why = format!("with parameters in `{main}` Megatron keeps it in {list}");
            errors.add(Where::Precision, format!("`{class} = {given}`"), why);
        }
    }
    if optimizer(plan).is_none() {
        let what = format!("optimizer `{}`", plan.training.optimizer);
        errors.add(Where::Optimizer, what, "this target writes `AdamW` and `SGD`");
    }
}

/// Megatron's name of the plan's optimizer; arguments of its own it cannot be told.
pub(super) fn optimizer(plan: &Plan) -> Option<&'static str> {
    match plan.training.optimizer.rsplit("::").next().unwrap_or("") {
        "AdamW" => Some("adam"),
        "SGD" => Some("sgd"),
        _ => None,
    }
}
