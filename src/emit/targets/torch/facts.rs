//! The table of facts at the head of the program, and the program.

use super::{Sizes, VERSION};
use crate::emit::plan::{AxisRole, DecoderInfo, Plan, RecomputeInfo};
use crate::emit::shell::comment;
use crate::emit::targets::python;
use crate::emit::targets::sizes::stored;
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// A plan the program can run.
pub(super) struct Chosen<'a> {
    pub(super) plan: &'a Plan,
    pub(super) sizes: Sizes,
    pub(super) decoder: &'a DecoderInfo,
    /// `PyTorch`'s name of it.
    pub(super) schedule: &'static str,
}

/// A name of the program and where its value comes from.
type Fact = (&'static str, fn(&Chosen) -> Value);

const MODEL: &[Fact] = &[
    ("LAYERS", |c| json!(c.decoder.layers)),
    ("HIDDEN", |c| json!(c.decoder.hidden)),
    ("HEADS", |c| json!(c.decoder.heads)),
    ("KV_HEADS", |c| json!(c.decoder.kv_heads)),
    ("HEAD_DIM", |c| json!(c.decoder.head_dim)),
    ("FFN", |c| json!(c.decoder.ffn)),
    ("VOCAB", |c| json!(c.decoder.vocab)),
    ("ROPE_BASE", |c| json!(c.decoder.rope_base)),
    ("QK_NORM", |c| json!(c.decoder.qk_norm)),
];

const LAYOUT: &[Fact] = &[
    ("MESH", |c| Value::Object(c.plan.layout.axes.iter().map(|a| (a.name.clone(), json!(a.size))).collect())),
    ("TENSOR", |c| json!(axes(c, AxisRole::Tensor).first())),
    ("DATA", |c| json!(axes(c, AxisRole::Data))),
    ("PIPELINE", |c| json!(axes(c, AxisRole::Pipeline).first())),
    ("SEQUENCE_PARALLEL", |c| json!(c.plan.layout.sequence_parallel && c.sizes.tp > 1)),
    // Data axes of FSDP: copies first, then shards; empty where every rank holds its parameters whole.
    ("SHARDED", |c| {
        let over = stored(c.plan, "param");
        json!(if over.is_empty() { Vec::new() } else { axes(c, AxisRole::Data) })
    }),
    ("RESHARD", |c| json!(c.plan.layout.hold.unwrap_or("layer") == "layer")),
    ("RECOMPUTE", |c| json!(c.plan.layout.recompute == RecomputeInfo::Full)),
    ("SCHEDULE", |c| json!(c.schedule)),
    ("CHUNKS", |c| chunks(c.plan)),
];

const BATCH: &[Fact] = &[
    ("BATCH", |c| json!(c.plan.training.batch)),
    ("MICRO_BATCH", |c| json!(c.plan.training.micro_batch)),
    ("MICROBATCHES", |c| json!(c.plan.training.microbatches)),
    ("REPLICAS", |c| json!(c.sizes.dp)),
    ("SEQUENCE", |c| json!(c.plan.training.sequence)),
    ("COMPUTE", |c| json!(if dtype(c.plan, "gather") == "bf16" { "bfloat16" } else { "float32" })),
];

/// Left to a person.
const OPEN: &[Fact] = &[
    ("STEPS", |c| json!(c.plan.training.steps.unwrap_or(10))),
    ("LEARNING_RATE", |_| json!(3e-4)),
    ("SEED", |_| json!(1)),
];

/// Names of the axes of more than one rank of a role, outermost first.
fn axes<'a>(c: &Chosen<'a>, role: AxisRole) -> Vec<&'a str> {
    c.plan.layout.axes.iter().filter(|a| a.role == role && a.size > 1).map(|a| a.name.as_str()).collect()
}

/// A class's dtype.
pub(super) fn dtype<'a>(plan: &'a Plan, class: &str) -> &'a str {
    plan.training.precision.get(class).map_or("", String::as_str)
}

/// Every chunk in model order: its rank, and its part of the model.
fn chunks(plan: &Plan) -> Value {
    let mut next = 0;
    let chunk = |c: &crate::emit::plan::ChunkInfo| {
        let mut out = Map::from_iter([("stage".to_owned(), json!(c.stage))]);
        let of = |name: &str| plan.model.units.iter().zip(&c.units).any(|(u, n)| u.name == name && *n > 0);
        let layers: u64 = plan.model.units.iter().zip(&c.units).filter(|(u, _)| u.repeated).map(|(_, n)| n).sum();
        out.insert("embed".into(), json!(of("embed")));
        out.insert("layers".into(), json!([next, next + layers]));
        out.insert("head".into(), json!(of("head")));
        next += layers;
        Value::Object(out)
    };
    Value::Array(plan.pipeline.chunks.iter().map(chunk).collect())
}

/// The program.
pub(super) fn text(c: &Chosen) -> String {
    let job = &c.plan.job;
    let mut s = String::new();
    let _ = writeln!(s, "# Job {}, line {} of {}.", comment(&job.name), job.line, comment(&job.file));
    let _ = writeln!(s, "# Written by parc {} for PyTorch {VERSION}.", comment(&c.plan.compiler));
    s += "# Started by launch.sh, on GPUs or, where there are none, on CPUs; the whole plan is in plan.json.\n";
    let sections = [
        ("Edit here: what the plan leaves open.", OPEN),
        ("What follows comes from the plan. To change it, change the layout and build again.", MODEL),
        ("How ranks share the work: axes of the mesh outermost first, and what they do.", LAYOUT),
        ("Batch and precision.", BATCH),
    ];
    for (title, facts) in sections {
        let _ = writeln!(s, "\n# {title}");
        for (name, value) in facts {
            let _ = writeln!(s, "{name} = {}", python::literal(&value(c), 0));
        }
    }
    s.push('\n');
    s += include_str!("body.py");
    s
}
