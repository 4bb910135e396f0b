//! Rules by which `DeepSpeed` rejects a configuration, when it reads the file or when its engine starts; and what it accepts in
//! silence and does not do.

use super::{Facts, keys};
use crate::import::errors;
use crate::import::options::Options;

const BATCH: &str = "train_batch_size";
const MICRO: &str = "train_micro_batch_size_per_gpu";
const STEPS: &str = "gradient_accumulation_steps";
const STAGE: &str = "zero_optimization.stage";

pub(super) fn check(o: &mut Options, f: &Facts) {
    keys(o);
    if f.stage > 3 {
        o.refuse(&[STAGE], &format!("ZeRO stage {}", f.stage), "stages are 0 to 3");
    }
    if o.on("fp16.enabled") && o.on("bf16.enabled") {
        o.refuse(&["fp16.enabled", "bf16.enabled"], "two half precisions at once", "it takes one of the two");
    }
    let stage_key = if o.has(STAGE) { STAGE } else { "zero-stage" };
    if f.pp > 1 && f.stage > 1 {
        let what = format!("ZeRO stage {} in a pipeline of {} stages", f.stage, f.pp);
        let why = "the pipeline engine takes stages 0 and 1";
        o.refuse(&[stage_key, "pipeline-model-parallel-size"], &what, why);
    }
    let ranks = f.tp.saturating_mul(f.cp).saturating_mul(f.pp);
    match f.world {
        Some(world) if !world.is_multiple_of(ranks) => {
            let what = format!("{world} devices for tensor {} x sequence {} x pipeline {} = {ranks}", f.tp, f.cp, f.pp);
            o.refuse(
                &["tensor_parallel.autotp_size", "sequence_parallel_size"],
                &what,
                "the devices must be a multiple of it",
            );
        }
        Some(_) | None => batch(o, f),
    }
    let ratio = o.real("zero_optimization.offload_optimizer.ratio");
    if ratio.is_some_and(|r| r < 1.0) && f.stage != 3 {
        let what = format!("part of the optimizer on the host with ZeRO stage {}", f.stage);
        o.refuse(&["zero_optimization.offload_optimizer.ratio", STAGE], &what, "a ratio below 1 needs stage 3");
    }
    if o.flag("zero_optimization.compute_grad_norm") == Some(false) && !matches!(f.stage, 1 | 2) {
        let what = format!("no norm of gradients with ZeRO stage {}", f.stage);
        o.refuse(&["zero_optimization.compute_grad_norm", STAGE], &what, "it can be left out with stages 1 and 2");
    }
    if f.offload_params && f.stage < 3 {
        let at = o.at("zero_optimization.offload_param.device");
        let why =
            format!("DeepSpeed accepts it and does nothing with ZeRO stage {}: parameters move with stage 3", f.stage);
        o.said.push(errors::unsaid("offload_param", &why, at));
    }
    if f.tp > 1 && f.stage == 3 && o.has("tensor_parallel.autotp_size") {
        let why = "AutoTP works with stages 0, 1 and 2; the file is accepted and the engine fails";
        o.refuse(&["tensor_parallel.autotp_size", STAGE], "AutoTP beside ZeRO stage 3", why);
    }
}

/// Keys that the file does not know: of `zero_optimization` an error, of others accepted in silence.
fn keys(o: &mut Options) {
    for (key, shown, at) in o.listed() {
        let plain = key.strip_prefix("auto:").unwrap_or(&key);
        if let Some(inner) = plain.strip_prefix("zero_optimization.") {
            if !keys::zero(inner) {
                o.skip(|k| k == key);
                let what = format!(
                    "`{}` is no key of `zero_optimization`",
                    errors::shown(inner.split('.').next().unwrap_or(inner))
                );
                let why = "it takes no keys but its own; keys of MiCS are gone";
                o.said.push(errors::refused("DeepSpeed", &what, why, &[(shown.clone(), at)]));
            }
        } else if key.starts_with("auto:") {
            o.skip(|k| k == key);
            let why = "only the Hugging Face integration fills `auto` in; it is left open here";
            o.said.push(errors::unsaid(&shown, why, at));
        }
    }
}

/// `train_batch_size` is exactly the microbatch x accumulation steps x data-parallel ranks.
fn batch(o: &mut Options, f: &Facts) {
    let dp = f.dp();
    if f.batch.is_none() && f.micro.is_none() {
        // Left to another program, or wrong and said so.
        if [BATCH, MICRO, "auto:train_batch_size", "auto:train_micro_batch_size_per_gpu"].iter().any(|k| o.has(k)) {
            return;
        }
        let why = "two of batch, microbatch and accumulation steps are needed, or one of the first two";
        o.refuse(&[BATCH, MICRO], &format!("neither `{BATCH}` nor `{MICRO}` is given"), why);
        return;
    }
    let (Some(t), Some(dp)) = (f.batch, dp) else {
        if let (Some(t), Some(b), Some(a), None) = (f.batch, f.micro, f.steps, f.world) {
            let what = format!("a batch of {t} for {b} x {a} sequences of a rank");
            o.refuse(&[BATCH, MICRO, STEPS], &what, "no number of data ranks makes the two equal");
        }
        return;
    };
    let (b, a) = match (f.micro, f.steps) {
        (Some(b), Some(a)) => (b, a),
        (Some(b), None) => (b, (t / b.saturating_mul(dp)).max(1)),
        (None, Some(a)) => ((t / a.saturating_mul(dp)).max(1), a),
        (None, None) => ((t / dp).max(1), 1),
    };
    let product = b.saturating_mul(a).saturating_mul(dp);
    if product != t {
        let what = format!("a batch of {t}, and {b} x {a} x {dp} data ranks = {product}");
        o.refuse(
            &[BATCH, MICRO, STEPS],
            &what,
            "microbatch x accumulation steps x data-parallel ranks must be the batch",
        );
    }
}
