//! The table of options: flag, and what of the plan it says.

use super::checks;
use super::memory::Recompute;
use super::order::Order;
use super::split::Layers;
use super::{Chosen, NAME, VERSION};
use crate::emit::Artifacts;
use crate::emit::plan::ExpertsInfo;
use crate::emit::targets::{CliOption, Entry, Program, Section, Starter, Word};

/// The values of an option: `None` leaves it out, no values make it a switch.
type Values = Option<Vec<Word>>;

/// An option and where its values come from.
type Field = (&'static str, fn(&Chosen) -> Values);

/// The model, as the plan's decoder.
const MODEL: &[Field] = &[
    ("--num-layers", |c| one(c.decoder.layers)),
    ("--hidden-size", |c| one(c.decoder.hidden)),
    ("--ffn-hidden-size", |c| one(c.decoder.ffn)),
    ("--num-attention-heads", |c| one(c.decoder.heads)),
    ("--group-query-attention", |c| switch(c.decoder.kv_heads != c.decoder.heads)),
    ("--num-query-groups", |c| one_if(c.decoder.kv_heads != c.decoder.heads, c.decoder.kv_heads)),
    ("--kv-channels", |c| one(c.decoder.head_dim)),
    ("--seq-length", |c| one(c.plan.training.sequence)),
    ("--max-position-embeddings", |c| one(c.decoder.learned_positions.unwrap_or(c.plan.training.sequence))),
    ("--position-embedding-type", |c| one(if c.decoder.rope_base.is_some() { "rope" } else { "learned_absolute" })),
    ("--rotary-base", |c| c.decoder.rope_base.and_then(|base| one(base as u64))),
    ("--qk-layernorm", |c| switch(c.decoder.qk_norm)),
    ("--swiglu", |c| switch(c.decoder.activation == "swiglu")),
    ("--normalization", |c| one(if c.decoder.norm == "rms" { "RMSNorm" } else { "LayerNorm" })),
    ("--untie-embeddings-and-output-weights", |c| switch(!c.decoder.tied)),
    ("--disable-bias-linear", |c| switch(!c.decoder.bias)),
    // The fused GELU adds the bias; without one Megatron asks for it to be off.
    ("--no-bias-gelu-fusion", |c| switch(c.decoder.activation == "gelu" && !c.decoder.bias)),
    ("--make-vocab-size-divisible-by", |c| {
        let (_, padded) = checks::vocab(c.plan, c.decoder);
        let multiple = checks::vocab_multiple(c.decoder.vocab, padded, c.sizes.tp);
        one_if(multiple != 128, multiple)
    }),
    // The language has no dropout; Megatron's default is 0.1.
    ("--attention-dropout", |_| one(0)),
    ("--hidden-dropout", |_| one(0)),
];

/// The experts, in a model that has some.
const EXPERTS: &[Field] = &[
    ("--num-experts", |c| experts(c).and_then(|e| one(e.count))),
    ("--moe-ffn-hidden-size", |c| experts(c).and_then(|_| one(c.decoder.ffn))),
    ("--moe-router-topk", |c| experts(c).and_then(|e| one(e.top_k))),
    // The weight of a single choice is its share of all scores; softmax over one score is 1.
    ("--moe-router-pre-softmax", |c| experts(c).and_then(|e| switch(e.top_k == 1 && !e.correction_bias))),
    ("--moe-router-num-groups", |c| experts(c).and_then(|e| e.groups).and_then(|(groups, _)| one(groups))),
    ("--moe-router-group-topk", |c| experts(c).and_then(|e| e.groups).and_then(|(_, kept)| one(kept))),
    // Megatron corrects scores by a bias only where they are sigmoids.
    ("--moe-router-score-function", |c| experts(c).and_then(|e| one_if(e.correction_bias, "sigmoid"))),
    ("--moe-router-enable-expert-bias", |c| experts(c).and_then(|e| switch(e.correction_bias))),
    ("--moe-shared-expert-intermediate-size", |c| experts(c).and_then(|e| e.shared).and_then(one)),
    // What the plan predicts: experts of a rank in one kernel, tokens by all-to-all, none dropped.
    ("--moe-grouped-gemm", |c| experts(c).and_then(|_| switch(true))),
    ("--moe-token-dispatcher-type", |c| experts(c).and_then(|_| one("alltoall"))),
];

fn experts<'a>(c: &'a Chosen) -> Option<&'a ExpertsInfo> {
    c.decoder.experts.as_ref()
}

/// How ranks share the work.
const LAYOUT: &[Field] = &[
    ("--tensor-model-parallel-size", |c| one(c.sizes.tp)),
    ("--sequence-parallel", |c| switch(c.plan.layout.sequence_parallel && c.sizes.tp > 1)),
    ("--context-parallel-size", |c| one_if(c.sizes.cp > 1, c.sizes.cp)),
    ("--cp-comm-type", |c| c.attention.and_then(one)),
    ("--expert-model-parallel-size", |c| experts(c).and_then(|_| one(c.sizes.ep))),
    // Left out, Megatron takes the tensor ranks.
    ("--expert-tensor-parallel-size", |c| experts(c).and_then(|_| one(c.sizes.etp))),
    ("--pipeline-model-parallel-size", |c| one(c.sizes.pp)),
    ("--use-tp-pp-dp-mapping", |c| switch(c.order == Order::DataSlowest)),
    ("--num-virtual-stages-per-pipeline-rank", |c| {
        // A layout string says the number of chunks itself.
        let said = matches!(c.split.layers, Layers::Written(_));
        one_if(c.split.virtual_stages > 1 && !said, c.split.virtual_stages)
    }),
    ("--microbatch-group-size-per-virtual-pipeline-stage", |c| c.split.group.and_then(one)),
    ("--account-for-embedding-in-pipeline-split", |c| {
        switch(matches!(c.split.layers, Layers::Counting { embedding: true, .. }))
    }),
    ("--account-for-loss-in-pipeline-split", |c| switch(matches!(c.split.layers, Layers::Counting { loss: true, .. }))),
    ("--decoder-first-pipeline-num-layers", |c| match c.split.layers {
        Layers::Ends { first, .. } => first.and_then(one),
        Layers::Even | Layers::Counting { .. } | Layers::Written(_) => None,
    }),
    ("--decoder-last-pipeline-num-layers", |c| match c.split.layers {
        Layers::Ends { last, .. } => last.and_then(one),
        Layers::Even | Layers::Counting { .. } | Layers::Written(_) => None,
    }),
    ("--pipeline-model-parallel-layout", |c| match &c.split.layers {
        Layers::Written(text) => one(text),
        Layers::Even | Layers::Counting { .. } | Layers::Ends { .. } => None,
    }),
    ("--no-overlap-p2p-communication", |c| switch(c.split.exposed_p2p)),
];

/// What rests sharded, hides and is recomputed.
const MEMORY: &[Field] = &[
    ("--use-distributed-optimizer", |c| switch(c.memory.optimizer_instances.is_some())),
    ("--num-distributed-optimizer-instances", |c| c.memory.optimizer_instances.filter(|n| *n > 1).and_then(one)),
    ("--overlap-grad-reduce", |c| switch(c.memory.overlap_reduce)),
    ("--overlap-param-gather", |c| switch(c.memory.overlap_gather)),
    ("--recompute-granularity", |c| match c.memory.recompute {
        Recompute::None => None,
        Recompute::Full => one("full"),
        Recompute::Modules(_) => one("selective"),
    }),
    ("--recompute-method", |c| one_if(c.memory.recompute == Recompute::Full, "uniform")),
    ("--recompute-num-layers", |c| one_if(c.memory.recompute == Recompute::Full, 1)),
    ("--recompute-modules", |c| match &c.memory.recompute {
        Recompute::Modules(modules) => Some(modules.iter().map(|m| Word::Text((*m).to_owned())).collect()),
        Recompute::None | Recompute::Full => None,
    }),
];

/// Batch, precision, optimizer.
const TRAINING: &[Field] = &[
    ("--micro-batch-size", |c| one(c.plan.training.micro_batch)),
    ("--global-batch-size", |c| one(c.plan.training.batch)),
    ("--bf16", |c| switch(dtype(c, "param") == "bf16")),
    ("--fp16", |c| switch(dtype(c, "param") == "fp16")),
    ("--grad-reduce-in-bf16", |c| switch(dtype(c, "param") == "bf16" && dtype(c, "grad") == "bf16")),
    // On by itself with bf16.
    ("--accumulate-allreduce-grads-in-fp32", |c| switch(dtype(c, "param") == "fp16" && dtype(c, "grad") == "fp32")),
    ("--optimizer", |c| checks::optimizer(c.plan).filter(|o| *o != "adam").and_then(one)),
];

/// Left to a person: a plan says nothing of data and learning rate. These run as they are, on random tokens.
const OPEN: &[Field] = &[
    ("--train-iters", |c| one(c.plan.training.steps.unwrap_or(100))),
    ("--lr", |_| one("3e-4")),
    ("--min-lr", |_| one("3e-5")),
    ("--lr-decay-style", |_| one("cosine")),
    ("--moe-router-load-balancing-type", |c| {
        experts(c).and_then(|e| one(if e.correction_bias { "none" } else { "aux_loss" }))
    }),
    ("--moe-aux-loss-coeff", |c| experts(c).and_then(|e| one_if(!e.correction_bias, "1e-2"))),
    ("--mock-data", |_| switch(true)),
    ("--tokenizer-type", |_| one("NullTokenizer")),
    ("--vocab-size", |c| one(c.decoder.vocab)),
];

/// The command line of a plan that Megatron can run.
pub(super) fn program(chosen: &Chosen) -> Program {
    let section = |title, fields: &[Field]| {
        let options = fields.iter().filter_map(|(flag, of)| Some(CliOption { flag, values: of(chosen)? }));
        Section { title, options: options.collect() }
    };
    let derived = [
        section("model", MODEL),
        section("experts", EXPERTS),
        section("parallel layout", LAYOUT),
        section("memory and overlap", MEMORY),
        section("batch and precision", TRAINING),
    ];
    Program {
        target: NAME,
        version: VERSION,
        starter: Starter::Torchrun,
        entry: Entry::Script { home: "MEGATRON_HOME", file: "pretrain_gpt.py" },
        // Tensor and context parallelism overlap rightly only when kernels start in the order they are issued.
        environment: vec![("CUDA_DEVICE_MAX_CONNECTIONS".into(), "1".into())],
        derived: derived.into_iter().filter(|s| !s.options.is_empty()).collect(),
        editable: vec![section("data and learning rate", OPEN)],
        files: Artifacts::new(),
    }
}

fn dtype<'a>(c: &'a Chosen, class: &str) -> &'a str {
    c.plan.training.precision.get(class).map_or("", String::as_str)
}

#[expect(clippy::unnecessary_wraps, clippy::needless_pass_by_value, reason = "keeps the table plain")]
fn one(value: impl ToString) -> Values {
    Some(vec![value.to_string().into()])
}

#[expect(clippy::needless_pass_by_value, reason = "keeps the table plain")]
fn one_if(said: bool, value: impl ToString) -> Values {
    said.then(|| vec![value.to_string().into()])
}

fn switch(on: bool) -> Values {
    on.then(Vec::new)
}
