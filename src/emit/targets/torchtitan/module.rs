//! The table of keys: what of the plan each says; and the Python module that sets them.

use super::checks::{Pipeline, Recompute};
use super::models::Model;
use super::{Sizes, VERSION};
use crate::emit::plan::Plan;
use crate::emit::shell::comment;
use crate::emit::targets::python;
use crate::emit::targets::sizes::Data;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// A plan torchtitan can run, with every choice of how to say it made.
pub(super) struct Chosen<'a> {
    pub(super) plan: &'a Plan,
    pub(super) sizes: Sizes,
    pub(super) data: Data,
    pub(super) model: Model,
    pub(super) recompute: Recompute,
    pub(super) pipeline: Pipeline,
}

/// A key of a section and where its value comes from.
type Key = (&'static str, fn(&Chosen) -> Value);

const TRAINING: &[Key] = &[
    // With a pipeline a rank takes its whole share of the batch at once and cuts it into microbatches.
    ("local_batch_size", |c| {
        let whole = c.plan.training.batch / c.sizes.dp.max(1);
        json!(if c.sizes.pp > 1 { whole } else { c.plan.training.micro_batch })
    }),
    ("global_batch_size", |c| json!(c.plan.training.batch)),
    ("seq_len", |c| json!(c.plan.training.sequence)),
    ("dtype", |_| json!("float32")),
    ("mixed_precision_param", |c| {
        let bf16 = c.plan.training.precision.get("compute").is_some_and(|d| d == "bf16");
        json!(if bf16 { "bfloat16" } else { "float32" })
    }),
    ("mixed_precision_reduce", |_| json!("float32")),
    // Graphs are on by default and capture neither a pipeline nor a dispatch that waits for the host.
    ("disable_cuda_graphs", |c| json!(c.sizes.pp > 1 || c.sizes.ep > 1)),
];

const PARALLELISM: &[Key] = &[
    ("data_parallel_replicate_degree", |c| json!(c.data.replicate)),
    ("data_parallel_shard_degree", |c| json!(c.data.shard)),
    ("fsdp_reshard_after_forward", |c| {
        json!(if c.plan.layout.hold.unwrap_or("layer") == "layer" { "always" } else { "never" })
    }),
    ("tensor_parallel_degree", |c| json!(c.sizes.tp)),
    ("enable_sequence_parallel", |c| json!(c.plan.layout.sequence_parallel)),
    ("context_parallel_degree", |c| json!(c.sizes.cp)),
    ("context_parallel_load_balancer", |_| json!("headtail")),
    ("pipeline_parallel_degree", |c| json!(c.sizes.pp)),
    ("pipeline_parallel_schedule", |c| json!(c.pipeline.schedule)),
    ("pipeline_parallel_microbatch_size", |c| json!(c.plan.training.micro_batch)),
    ("module_fqns_per_model_part", |c| json!((c.sizes.pp > 1).then_some(&c.pipeline.chunks))),
    ("expert_parallel_degree", |c| json!(c.sizes.ep)),
];

/// The module: a function that takes the model's own configuration and sets what the plan says.
pub(super) fn text(c: &Chosen) -> String {
    let (job, package) = (&c.plan.job, c.model.package);
    let mut s = String::new();
    let _ = writeln!(s, "# Job {}, line {} of {}.", comment(&job.name), job.line, comment(&job.file));
    let _ = writeln!(s, "# Written by parc {} for torchtitan {VERSION}.", comment(&c.plan.compiler));
    let _ = writeln!(s, "# Started by launch.sh; the whole plan is in plan.json.\n");
    if c.recompute == Recompute::Full {
        s += "from torchtitan.distributed.activation_checkpoint import FullAC\n";
    }
    let _ = writeln!(s, "from torchtitan.models.{package} import model_registry");
    let _ = writeln!(s, "from torchtitan.models.{package}.config_registry import {}\n\n", c.model.config);
    s += "def run():\n";
    let _ = writeln!(s, "    config = {}()", c.model.config);
    let _ = writeln!(s, "    config.model_spec = model_registry({})", json!(c.model.flavor));
    s += "\n    # Edit here: data, tokenizer, learning rate and length, which the plan leaves open.\n";
    let _ = writeln!(s, "    config.training.steps = {}", c.plan.training.steps.unwrap_or(1000));
    s += "    # config.dataloader.dataset = \"c4\"\n    # config.hf_assets_path = \"./assets/hf/...\"\n";
    s += "\n    # What follows comes from the plan. To change it, change the layout and build again.\n";
    for (section, keys) in [("training", TRAINING), ("parallelism", PARALLELISM)] {
        for (key, value) in keys {
            let _ = writeln!(s, "    config.{section}.{key} = {}", python::literal(&value(c), 4));
        }
    }
    let policy = if c.recompute == Recompute::Full { "FullAC.Config()" } else { "None" };
    let _ = writeln!(s, "    config.activation_checkpoint = {policy}");
    s += "    # Nothing in the plan hides tensor-parallel transfers behind products.\n";
    s += "    config.compile.enable_async_tensor_parallel = False\n";
    s += "    return config\n";
    s
}
