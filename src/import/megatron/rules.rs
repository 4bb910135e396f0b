//! Rules by which Megatron-LM rejects a command line: `validate_args`, `TransformerConfig`, the process groups and the
//! schedule, at the version the target writes for. Each is said at the option that breaks it.

use super::facts::{Facts, Front};
use crate::import::options::Options;

const T: &str = "tensor-model-parallel-size";
const P: &str = "pipeline-model-parallel-size";
const C: &str = "context-parallel-size";
const E: &str = "expert-model-parallel-size";
const ET: &str = "expert-tensor-parallel-size";
const BATCH: &str = "global-batch-size";
const LAYERS: &str = "num-layers";

/// Refuses what Megatron-LM refuses; `named` says that the model is not that of the options.
pub(super) fn check(o: &mut Options, f: &Facts, named: bool) {
    ranks(o, f);
    shape(o, f);
    stages(o, f);
    batch(o, f);
    experts(o, f, named);
    memory(o, f);
    precision(o);
    deepspeed(o, f);
}

fn ranks(o: &mut Options, f: &Facts) {
    let Some(world) = f.world else { return };
    let ranks = f.tp.saturating_mul(f.pp).saturating_mul(f.cp);
    if !world.is_multiple_of(ranks) {
        let what = format!("{world} devices for tensor {} x pipeline {} x context {} = {ranks}", f.tp, f.pp, f.cp);
        o.refuse(&[P, T, C], &what, "the devices must be a multiple of the product; what is left is data parallelism");
    }
    if f.experts.is_some() || f.ep > 1 {
        let grid = f.etp.saturating_mul(f.ep).saturating_mul(f.pp);
        if !world.is_multiple_of(grid) {
            let what = format!(
                "{world} devices for the experts' own grid, expert tensor {} x expert {} x pipeline {} = {grid}",
                f.etp, f.ep, f.pp
            );
            let default = if f.front == Front::Swift { "1" } else { "the tensor size" };
            let why =
                format!("experts have a grid of their own on the same devices; `--{ET}` is {default} unless given");
            o.refuse(&[E, ET, P, T], &what, &why);
        }
    }
}

fn shape(o: &mut Options, f: &Facts) {
    if let Some(heads) = f.heads {
        if !heads.is_multiple_of(f.tp) {
            let what = format!("{heads} heads over {} tensor ranks", f.tp);
            o.refuse(&["num-attention-heads", T], &what, "tensor ranks must divide the heads");
        }
        if let Some(groups) = f.groups
            && (!groups.is_multiple_of(f.tp) && !f.tp.is_multiple_of(groups) || !heads.is_multiple_of(groups))
        {
            let what = format!("{groups} key and value heads of {heads} over {} tensor ranks", f.tp);
            let why = "they must divide the heads, and of them and the tensor ranks one must divide the other";
            o.refuse(&["num-query-groups", T], &what, why);
        }
        if let Some(hidden) = f.hidden
            && !o.has("kv-channels")
            && !o.has("multi-latent-attention")
            && !hidden.is_multiple_of(heads)
        {
            let what = format!("a hidden width of {hidden} for {heads} heads");
            o.refuse(
                &["hidden-size", "num-attention-heads"],
                &what,
                "heads must divide it unless `--kv-channels` is given",
            );
        }
    }
    if o.on("multi-latent-attention") && f.groups.is_some() {
        let why = "latent attention has no groups of key and value heads";
        o.refuse(&["group-query-attention", "multi-latent-attention"], "two kinds of attention at once", why);
    }
    if let Some(s) = f.sequence {
        let pieces = f.cp.saturating_mul(2);
        if f.cp > 1 && f.front != Front::DeepSpeed && !s.is_multiple_of(pieces) {
            let what = format!("sequences of {s} tokens over {} context ranks", f.cp);
            o.refuse(
                &["seq-length", C],
                &what,
                &format!("each rank takes two pieces: a multiple of {pieces} is needed"),
            );
        }
        if let Some(max) = o.count("max-position-embeddings")
            && max < s
        {
            let what = format!("sequences of {s} tokens with {max} positions");
            o.refuse(&["max-position-embeddings", "seq-length"], &what, "positions must cover the sequence");
        }
    }
}

/// How the layers are cut.
fn stages(o: &mut Options, f: &Facts) {
    let ways = [
        "num-layers-per-virtual-pipeline-stage",
        "num-virtual-stages-per-pipeline-rank",
        "pipeline-model-parallel-layout",
    ];
    let given: Vec<&str> = ways.into_iter().filter(|w| o.has(w)).collect();
    if given.len() > 1 {
        o.refuse(&given, "chunks are given in several ways", "it takes at most one of the three");
        return;
    }
    let uneven = f.first.is_some() || f.last.is_some();
    let counted = f.count_embedding || f.count_loss;
    if f.virtual_stages() > 1 && f.pp == 1 {
        o.refuse(&[&given[..], &[P]].concat(), "several chunks on the only stage", "interleaving needs a pipeline");
        return;
    }
    if f.virtual_stages() > 1 && f.exposed_p2p && f.pp == 2 {
        let why = "interleaving over 2 stages needs overlapped messages";
        o.refuse(&["no-overlap-p2p-communication", P], "messages of 2 interleaved stages are not overlapped", why);
    }
    let Some(layers) = f.layers else { return };
    if let Some(written) = &f.written {
        let n = written.len() as u64;
        let total: u64 = written.iter().map(|s| s.layers).sum();
        let key = "pipeline-model-parallel-layout";
        if !n.is_multiple_of(f.pp) {
            let what = format!("{n} chunks are written for {} stages", f.pp);
            o.refuse(&[key, P], &what, "every stage needs as many chunks as the others");
        }
        if total != layers {
            let what = format!("{total} layers are written, the model has {layers}");
            o.refuse(&[key, LAYERS], &what, "each `t` is one layer, `*n` repeats what stands before it");
        }
        let (first, last) = (written.first().copied().unwrap_or_default(), written.last().copied().unwrap_or_default());
        let one = |of: fn(&super::facts::Stage) -> u64| written.iter().map(of).sum::<u64>() == 1;
        if !one(|s| s.embedding) || !one(|s| s.loss) || first.embedding != 1 || last.loss != 1 {
            o.refuse(
                &[key],
                "the embedding or the loss is missing or misplaced",
                "one `E` stands first and one `L` last",
            );
        }
        if uneven || counted {
            let keys = [
                key,
                "decoder-first-pipeline-num-layers",
                "decoder-last-pipeline-num-layers",
                "account-for-embedding-in-pipeline-split",
                "account-for-loss-in-pipeline-split",
            ];
            o.refuse(&keys, "layers are cut in two ways", "a written layout allows no other way of cutting");
        }
        return;
    }
    if uneven {
        let ends = f.first.unwrap_or(0).saturating_add(f.last.unwrap_or(0));
        let middle = f.pp.saturating_sub(u64::from(f.first.is_some()) + u64::from(f.last.is_some()));
        let rest = layers.checked_sub(ends);
        let good = rest.is_some_and(|r| if middle == 0 { r == 0 } else { r > 0 && r.is_multiple_of(middle) });
        if !good {
            let what =
                format!("{layers} layers with {ends} on the ends leave {} for {middle} stages", rest.unwrap_or(0));
            let keys = ["decoder-first-pipeline-num-layers", "decoder-last-pipeline-num-layers", LAYERS, P];
            o.refuse(&keys, &what, "the stages between must hold the same number of layers");
        }
        if f.chunk_layers.is_some() {
            let keys = [given[0], "decoder-first-pipeline-num-layers", "decoder-last-pipeline-num-layers"];
            o.refuse(&keys, "layers of a chunk and of the ends are both given", "say the number of chunks instead");
        }
        return;
    }
    let total = layers + u64::from(f.count_embedding) + u64::from(f.count_loss);
    let of =
        if counted { format!("{layers} layers, {total} with what counts as one,") } else { format!("{layers} layers") };
    if !total.is_multiple_of(f.pp) {
        let what = format!("{of} over {} stages", f.pp);
        let why = format!("{total} mod {} = {}; uneven stages are said by options of their own", f.pp, total % f.pp);
        o.refuse(&[P, LAYERS], &what, &why);
        return;
    }
    let stage = total / f.pp;
    if let Some(n) = f.chunk_layers.filter(|n| !stage.is_multiple_of(*n)) {
        let kept = stage / n * n * f.pp;
        let what = format!("{stage} layers of a stage in chunks of {n}");
        let why =
            format!("{stage} mod {n} = {}; versions that did not check trained {kept} of {total} layers", stage % n);
        o.refuse(&[given[0], P, LAYERS], &what, &why);
    }
    if let Some(v) = f.chunks.filter(|v| !stage.is_multiple_of(*v)) {
        let what = format!("{stage} layers of a stage in {v} chunks");
        o.refuse(&[given[0], P, LAYERS], &what, &format!("{stage} mod {v} = {}", stage % v));
    }
}

fn batch(o: &mut Options, f: &Facts) {
    let (Some(batch), Some(micro), Some(dp)) = (f.batch, f.micro, f.dp()) else { return };
    let step = micro.saturating_mul(dp);
    if !batch.is_multiple_of(step) {
        let what = format!("a batch of {batch} for {micro} sequences on each of {dp} data ranks");
        o.refuse(&[BATCH, "micro-batch-size"], &what, &format!("it must be a multiple of {step}"));
        return;
    }
    let m = batch / step;
    if f.virtual_stages() > 1 {
        let group = f.group.unwrap_or(f.pp);
        let rest = m.checked_rem(group).unwrap_or(1);
        if group < f.pp || group > m || (rest != 0 && rest < f.pp) {
            let what = format!("{m} microbatches in groups of {group} over {} interleaved stages", f.pp);
            let why =
                "it needs stages <= group <= microbatches, and a last group of none or at least as many as stages";
            o.refuse(&[BATCH, "microbatch-group-size-per-virtual-pipeline-stage", P], &what, why);
        }
    }
    if o.has("train-iters") && o.has("train-samples") {
        o.refuse(&["train-samples", "train-iters"], "the length is given twice", "it takes one of the two");
    }
}

fn experts(o: &mut Options, f: &Facts, named: bool) {
    match f.experts {
        None if f.ep > 1 && !named && f.front != Front::Swift => {
            let what = format!("expert parallelism over {} ranks without experts", f.ep);
            o.refuse(&[E], &what, "`--num-experts` is needed");
        }
        Some(n) if !n.is_multiple_of(f.ep) => {
            let what = format!("{n} experts over {} ranks", f.ep);
            o.refuse(&["num-experts", E], &what, "expert ranks must divide the experts");
        }
        Some(_) | None => {}
    }
    if f.experts.is_some() && f.tp > 1 && !f.sequence_parallel {
        let what = "experts and tensor parallelism without sequence parallelism";
        o.refuse(
            &[T, "num-experts"],
            what,
            "the first forward of a layer with experts stops: give `--sequence-parallel`",
        );
    }
    if f.experts.is_some() && f.etp > 1 && !o.has("disable-bias-linear") && o.has("expert-tensor-parallel-size") {
        let what = "experts with biases split over tensor ranks";
        o.refuse(&[ET], what, "`--disable-bias-linear` or an expert tensor size of 1 is needed");
    }
    if o.on("overlap-moe-expert-parallel-comm") {
        let full = o.text("recompute-granularity").as_deref() == Some("full");
        if f.ep == 1 {
            let what = "expert traffic is overlapped without expert parallelism";
            o.refuse(
                &["overlap-moe-expert-parallel-comm", E],
                what,
                "`--expert-model-parallel-size` above 1 is needed",
            );
        } else if f.pp > 1 && f.virtual_stages() == 1 {
            let what = "expert traffic is overlapped on a pipeline without chunks";
            o.refuse(&["overlap-moe-expert-parallel-comm", P], what, "with a pipeline it needs interleaving");
        } else if full {
            let what = "expert traffic is overlapped with full recomputation";
            o.refuse(
                &["overlap-moe-expert-parallel-comm", "recompute-granularity"],
                what,
                "the two exclude each other",
            );
        }
    }
}

fn memory(o: &mut Options, f: &Facts) {
    let sharded = f.distributed_optimizer || f.fsdp.is_some();
    if o.on("overlap-param-gather") && !(sharded && o.on("overlap-grad-reduce")) {
        let why = "it needs `--use-distributed-optimizer` or an FSDP, and `--overlap-grad-reduce`";
        o.refuse(&["overlap-param-gather", "overlap-grad-reduce"], "parameter gathers are overlapped alone", why);
    }
    if o.on("use-torch-fsdp2") && (f.pp > 1 || f.ep > 1 || f.distributed_optimizer) {
        let keys = ["use-torch-fsdp2", P, E, "use-distributed-optimizer"];
        let why = "PyTorch's FSDP2 here excludes a pipeline, expert parallelism and the distributed optimizer";
        o.refuse(&keys, "FSDP2 beside what it excludes", why);
    }
    let granularity = o.text("recompute-granularity");
    let method = o.text("recompute-method");
    let number = o.count("recompute-num-layers");
    match granularity.as_deref() {
        Some("full") if method.is_none() || number.is_none() => {
            let why = "`--recompute-method` and `--recompute-num-layers` say which layers";
            o.refuse(&["recompute-granularity"], "full recomputation of unnamed layers", why);
        }
        Some("selective") if method.is_some() || number.is_some() => {
            let keys = ["recompute-method", "recompute-num-layers", "recompute-granularity"];
            o.refuse(&keys, "selective recomputation with a method for layers", "those two are for `full`");
        }
        Some("full" | "selective") | None => {}
        Some(other) => {
            let what = format!("a granularity of `{}`", crate::import::errors::shown(other));
            o.refuse(&["recompute-granularity"], &what, "it knows `full` and `selective`");
        }
    }
    if o.on("optimizer-cpu-offload") && !o.on("use-precision-aware-optimizer") {
        let why = "it needs `--use-precision-aware-optimizer`";
        o.refuse(&["optimizer-cpu-offload"], "the optimizer is moved to the host", why);
    }
    if o.on("tp-comm-overlap") && !f.sequence_parallel {
        let why = "it needs `--sequence-parallel` and more than one tensor rank";
        o.refuse(&["tp-comm-overlap"], "tensor traffic is overlapped without sequence parallelism", why);
    }
}

fn precision(o: &mut Options) {
    if o.on("bf16") && o.on("fp16") {
        o.refuse(&["fp16", "bf16"], "two half precisions at once", "it takes one of the two");
    }
    if o.has("fp8-format") && o.has("fp4-format") {
        o.refuse(&["fp4-format", "fp8-format"], "fp8 and fp4 at once", "it takes one of the two");
    }
}

/// What the engine of Megatron-DeepSpeed refuses.
fn deepspeed(o: &mut Options, f: &Facts) {
    let engine = !o.on("no-pipeline-parallel") && !o.has("ds-sequence-parallel-size");
    if f.front == Front::DeepSpeed && f.fsdp.is_some_and(|z| z > 1) && engine {
        let what = format!("ZeRO stage {} in the pipeline engine", f.fsdp.unwrap_or(0));
        let why =
            "the engine takes stages 0 and 1; even a pipeline of 1 uses it unless `--no-pipeline-parallel` is given";
        o.refuse(&["zero-stage", P], &what, why);
    }
}
