//! The table of keys, and the file.

use super::Sizes;
use super::checks::Half;
use crate::emit::plan::Plan;
use serde_json::{Map, Value, json};

/// A plan `DeepSpeed` can run.
pub(super) struct Chosen<'a> {
    pub(super) plan: &'a Plan,
    pub(super) sizes: Sizes,
    pub(super) stage: u8,
    pub(super) half: Half,
}

/// A key, with a `.` before each key of a section, and its value; `None` leaves it out.
type Key = (&'static str, fn(&Chosen) -> Option<Value>);

const KEYS: &[Key] = &[
    ("train_batch_size", |c| Some(json!(c.plan.training.batch))),
    ("train_micro_batch_size_per_gpu", |c| Some(json!(c.plan.training.micro_batch))),
    ("gradient_accumulation_steps", |c| Some(json!(c.plan.training.microbatches))),
    ("bf16.enabled", |c| (c.half == Half::Bf16).then(|| json!(true))),
    ("fp16.enabled", |c| (c.half == Half::Fp16).then(|| json!(true))),
    ("data_types.grad_accum_dtype", |c| Some(json!(dtype(c, "grad")))),
    ("communication_data_type", |c| Some(json!(dtype(c, "reduce")))),
    ("zero_optimization.stage", |c| Some(json!(c.stage))),
    ("zero_optimization.overlap_comm", |c| (c.stage > 0).then(|| json!(c.plan.layout.overlap_reduce))),
    // Off, every parameter is sharded, as the plan says; by default small ones stay whole.
    ("zero_optimization.stage3_param_persistence_threshold", |c| (c.stage == 3).then(|| json!(0))),
    ("tensor_parallel.autotp_size", |c| (c.sizes.tp > 1).then(|| json!(c.sizes.tp))),
    // The learning rate is yours to edit; the plan says nothing of it.
    ("optimizer.type", |_| Some(json!("AdamW"))),
    ("optimizer.params", |_| Some(json!({"lr": 3e-4}))),
];

/// The file.
pub(super) fn text(c: &Chosen) -> String {
    let mut root = Map::new();
    for (key, value) in KEYS {
        let Some(value) = value(c) else { continue };
        match key.split_once('.') {
            None => drop(root.insert((*key).to_owned(), value)),
            Some((section, key)) => {
                let section = root.entry(section).or_insert_with(|| json!({}));
                section[key] = value;
            }
        }
    }
    format!("{:#}\n", Value::Object(root))
}

/// `DeepSpeed`'s name of a class's dtype.
fn dtype(c: &Chosen, class: &str) -> &'static str {
    match c.plan.training.precision.get(class).map_or("", String::as_str) {
        "bf16" => "bf16",
        "fp16" => "fp16",
        _ => "fp32",
    }
}
