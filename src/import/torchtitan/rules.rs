//! Rules by which torchtitan rejects a configuration: `ParallelDims`, the trainer's start, the pipeline's construction.

use super::{Facts, Registered};
use crate::import::options::Options;

const TP: &str = "parallelism.tensor_parallel_degree";
const CP: &str = "parallelism.context_parallel_degree";
const PP: &str = "parallelism.pipeline_parallel_degree";
const EP: &str = "parallelism.expert_parallel_degree";
const SHARD: &str = "parallelism.data_parallel_shard_degree";
const REPLICATE: &str = "parallelism.data_parallel_replicate_degree";

pub(super) fn check(o: &mut Options, f: &Facts, model: Option<&Registered>) {
    let fixed = f.tp.saturating_mul(f.cp).saturating_mul(f.pp).saturating_mul(f.replicate);
    let all = fixed.saturating_mul(f.shard.unwrap_or(1));
    if let Some(world) = f.world
        && (if f.shard.is_some() { world != all } else { !world.is_multiple_of(fixed) })
    {
        let what = format!("degrees of {all} on {world} devices");
        let why =
            "replicate x shard x context x tensor x pipeline must be the devices; a shard degree of -1 takes the rest";
        o.refuse(&[SHARD, REPLICATE, CP, TP, PP], &what, why);
        return;
    }
    let pieces = if f.cp > 1 { f.cp.saturating_mul(2) } else { 1 };
    let multiple = pieces.saturating_mul(if f.sequence_parallel { f.tp } else { 1 });
    if !f.sequence.is_multiple_of(multiple) {
        let what = format!("sequences of {} tokens", f.sequence);
        o.refuse(
            &["training.seq_len", TP, CP],
            &what,
            &format!("tensor and context ranks need a multiple of {multiple}"),
        );
    }
    if f.pp > 1 && !f.local.is_multiple_of(f.micro) {
        let what = format!("{} sequences of a rank in microbatches of {}", f.local, f.micro);
        let keys = ["training.local_batch_size", "parallelism.pipeline_parallel_microbatch_size", PP];
        o.refuse(&keys, &what, "with a pipeline a rank's share must be whole microbatches");
    }
    let shard = f.world.map(|w| w / fixed);
    if let (Some(batch), Some(shard)) = (f.batch, shard) {
        let step = f.local.saturating_mul(shard).saturating_mul(f.replicate);
        if !batch.is_multiple_of(step) {
            let what =
                format!("a batch of {batch} for {} sequences on each of {} data ranks", f.local, shard * f.replicate);
            let keys = ["training.global_batch_size", "training.local_batch_size"];
            o.refuse(&keys, &what, &format!("it must be a multiple of {step}"));
        }
    }
    if let Some(shard) = shard {
        let grid = shard.saturating_mul(f.cp).saturating_mul(f.tp);
        if f.ep > 1 && !grid.is_multiple_of(f.ep) {
            let what = format!("{} expert ranks of shard {shard} x context {} x tensor {} = {grid}", f.ep, f.cp, f.tp);
            o.refuse(&[EP, SHARD, CP, TP], &what, "expert ranks are taken from these and must divide their product");
        }
    }
    let kv_heads = model.and_then(|m| m.kv_heads);
    if let Some(heads) = kv_heads.filter(|k| !k.is_multiple_of(f.tp)) {
        let what = format!("{heads} key and value heads over {} tensor ranks", f.tp);
        o.refuse(&[TP], &what, "tensor ranks must divide the key and value heads; torchtitan keeps no copies of them");
    }
    if let (Some(modules), true) = (&f.modules, f.pp > 1) {
        let n = modules.len() as u64;
        if !n.is_multiple_of(f.pp) {
            let what = format!("{n} model parts for {} stages", f.pp);
            o.refuse(
                &["parallelism.module_fqns_per_model_part", PP],
                &what,
                "every stage takes as many parts as the others",
            );
        }
    }
    if f.pp > 1 && o.flag("training.disable_cuda_graphs") == Some(false) {
        o.refuse(
            &["training.disable_cuda_graphs", PP],
            "a pipeline under CUDA graphs",
            "they must be disabled with a pipeline",
        );
    }
    if let Some(layers) = model.and_then(|m| m.layers).filter(|l| f.pp > *l) {
        let what = format!("{} stages for {layers} layers", f.pp);
        o.refuse(&[PP], &what, "every stage needs a layer");
    }
}
