//! The table of keys, and the file.

use super::Sizes;
use crate::emit::plan::{Plan, RecomputeInfo};
use crate::emit::targets::sizes::Data;
use serde_json::{Map, Value, json};

/// A plan accelerate can run.
pub(super) struct Chosen<'a> {
    pub(super) plan: &'a Plan,
    pub(super) sizes: Sizes,
    pub(super) data: Data,
}

/// A key, and its value; `None` leaves it out.
type Key = (&'static str, fn(&Chosen) -> Option<Value>);

const ROOT: &[Key] = &[
    ("compute_environment", |_| Some(json!("LOCAL_MACHINE"))),
    ("distributed_type", |c| Some(json!(if fsdp(c) { "FSDP" } else { "MULTI_GPU" }))),
    ("mixed_precision", |c| {
        let compute = c.plan.training.precision.get("compute").map_or("", String::as_str);
        Some(json!(if compute == "fp32" { "no" } else { compute }))
    }),
    ("num_machines", |c| Some(json!(c.plan.ranks.iter().map(|r| r.node + 1).max().unwrap_or(1)))),
    ("num_processes", |c| Some(json!(c.plan.cluster.devices))),
    ("rdzv_backend", |_| Some(json!("static"))),
    ("same_network", |_| Some(json!(true))),
    ("main_training_function", |_| Some(json!("main"))),
];

const FSDP: &[Key] = &[
    ("fsdp_version", |_| Some(json!(2))),
    ("fsdp_auto_wrap_policy", |_| Some(json!("TRANSFORMER_BASED_WRAP"))),
    ("fsdp_reshard_after_forward", |c| Some(json!(c.plan.layout.hold.unwrap_or("layer") == "layer"))),
    ("fsdp_state_dict_type", |_| Some(json!("SHARDED_STATE_DICT"))),
    ("fsdp_activation_checkpointing", |c| Some(json!(c.plan.layout.recompute == RecomputeInfo::Full))),
];

const PARALLELISM: &[Key] = &[
    ("parallelism_config_dp_replicate_size", |c| Some(json!(c.data.replicate))),
    ("parallelism_config_dp_shard_size", |c| Some(json!(c.data.shard))),
    ("parallelism_config_tp_size", |c| Some(json!(c.sizes.tp))),
    ("parallelism_config_cp_size", |c| Some(json!(c.sizes.cp))),
    ("parallelism_config_cp_comm_strategy", |c| {
        let all_to_all = c.plan.layout.context_method == Some("all_to_all");
        (c.sizes.cp > 1).then(|| json!(if all_to_all { "alltoall" } else { "allgather" }))
    }),
];

fn fsdp(c: &Chosen) -> bool {
    c.data.shard.saturating_mul(c.sizes.cp) > 1
}

/// The file.
pub(super) fn text(c: &Chosen) -> String {
    let section = |keys: &[Key]| -> Map<String, Value> {
        keys.iter().filter_map(|(key, of)| Some(((*key).to_owned(), of(c)?))).collect()
    };
    let mut root = section(ROOT);
    if fsdp(c) {
        root.insert("fsdp_config".into(), section(FSDP).into());
    }
    root.insert("parallelism_config".into(), section(PARALLELISM).into());
    let t = &c.plan.training;
    let yaml = yaml_serde::to_string(&Value::Object(root)).expect("keys are strings");
    format!(
        "# Written by parc for accelerate {}; the whole plan is in plan.json.\n\
         # Tell the training script: {} sequences of {} tokens a rank, {} microbatches an update.\n{yaml}",
        super::VERSION,
        t.micro_batch,
        t.sequence,
        t.microbatches
    )
}
