//! What Megatron-LM's own parser and checks do with a command line, written from its rules and not from the target.
//!
//! Source: Megatron-LM, core 0.20-dev of 2026-08-22: `training/arguments.py` (options, `validate_args`),
//! `core/transformer/transformer_config.py`, `core/transformer/transformer_block.py`,
//! `core/transformer/pipeline_parallel_layer_layout.py`, `core/parallel_state.py`. Rules keep one numbering, below.

use std::collections::BTreeMap;

/// What an option takes.
#[derive(Copy, Clone, PartialEq, Debug)]
enum Takes {
    Nothing,
    Int,
    Float,
    Text,
    Words,
    OneOf(&'static [&'static str]),
}
use Takes::{Float, Int, Nothing, OneOf, Text, Words};

/// Options of `pretrain_gpt.py` a dense or sparse decoder meets. Nothing else is accepted, abbreviations neither.
const OPTIONS: &[(&str, Takes)] = &[
    ("--tensor-model-parallel-size", Int),
    ("--pipeline-model-parallel-size", Int),
    ("--context-parallel-size", Int),
    ("--expert-model-parallel-size", Int),
    ("--expert-tensor-parallel-size", Int),
    ("--sequence-parallel", Nothing),
    ("--hierarchical-context-parallel-sizes", Words),
    ("--cp-comm-type", Words),
    ("--use-tp-pp-dp-mapping", Nothing),
    ("--num-distributed-optimizer-instances", Int),
    ("--num-layers-per-virtual-pipeline-stage", Int),
    ("--num-virtual-stages-per-pipeline-rank", Int),
    ("--pipeline-model-parallel-layout", Text),
    ("--decoder-first-pipeline-num-layers", Int),
    ("--decoder-last-pipeline-num-layers", Int),
    ("--account-for-embedding-in-pipeline-split", Nothing),
    ("--account-for-loss-in-pipeline-split", Nothing),
    ("--microbatch-group-size-per-virtual-pipeline-stage", Int),
    ("--no-overlap-p2p-communication", Nothing),
    ("--use-distributed-optimizer", Nothing),
    ("--overlap-grad-reduce", Nothing),
    ("--overlap-param-gather", Nothing),
    ("--overlap-param-gather-with-optimizer-step", Nothing),
    ("--tp-comm-overlap", Nothing),
    ("--recompute-granularity", OneOf(&["full", "selective"])),
    ("--recompute-method", OneOf(&["uniform", "block"])),
    ("--recompute-num-layers", Int),
    ("--recompute-modules", Words),
    ("--distribute-saved-activations", Nothing),
    ("--cpu-offloading-num-layers", Int),
    ("--bf16", Nothing),
    ("--fp16", Nothing),
    ("--fp8-format", OneOf(&["e4m3", "hybrid"])),
    ("--fp8-param-gather", Nothing),
    ("--fp4-format", OneOf(&["e2m1"])),
    ("--grad-reduce-in-bf16", Nothing),
    ("--accumulate-allreduce-grads-in-fp32", Nothing),
    ("--num-layers", Int),
    ("--hidden-size", Int),
    ("--num-attention-heads", Int),
    ("--ffn-hidden-size", Int),
    ("--kv-channels", Int),
    ("--group-query-attention", Nothing),
    ("--num-query-groups", Int),
    ("--seq-length", Int),
    ("--max-position-embeddings", Int),
    ("--position-embedding-type", OneOf(&["learned_absolute", "rope", "yarn", "mrope", "relative", "none"])),
    ("--rotary-base", Int),
    ("--normalization", OneOf(&["LayerNorm", "RMSNorm"])),
    ("--swiglu", Nothing),
    ("--disable-bias-linear", Nothing),
    ("--no-bias-gelu-fusion", Nothing),
    ("--untie-embeddings-and-output-weights", Nothing),
    ("--make-vocab-size-divisible-by", Int),
    ("--attention-dropout", Float),
    ("--hidden-dropout", Float),
    ("--qk-layernorm", Nothing),
    ("--num-experts", Int),
    ("--moe-layer-freq", Text),
    ("--moe-ffn-hidden-size", Int),
    ("--moe-router-topk", Int),
    ("--moe-router-pre-softmax", Nothing),
    ("--moe-router-num-groups", Int),
    ("--moe-router-group-topk", Int),
    ("--moe-router-score-function", OneOf(&["softmax", "sigmoid", "sqrtsoftplus"])),
    ("--moe-router-enable-expert-bias", Nothing),
    ("--moe-router-load-balancing-type", OneOf(&["aux_loss", "seq_aux_loss", "global_aux_loss", "sinkhorn", "none"])),
    ("--moe-aux-loss-coeff", Float),
    ("--moe-grouped-gemm", Nothing),
    ("--moe-token-dispatcher-type", OneOf(&["allgather", "alltoall", "flex"])),
    ("--moe-shared-expert-intermediate-size", Int),
    ("--multi-latent-attention", Nothing),
    ("--micro-batch-size", Int),
    ("--global-batch-size", Int),
    ("--train-iters", Int),
    ("--train-samples", Int),
    ("--lr", Float),
    ("--min-lr", Float),
    ("--lr-decay-style", OneOf(&["constant", "linear", "cosine", "inverse-square-root", "WSD"])),
    ("--lr-decay-iters", Int),
    ("--lr-decay-samples", Int),
    ("--lr-warmup-iters", Int),
    ("--lr-warmup-samples", Int),
    ("--optimizer", OneOf(&["adam", "sgd", "muon", "lion", "soap"])),
    ("--save", Text),
    ("--save-interval", Int),
    ("--mock-data", Nothing),
    ("--data-path", Words),
    ("--tokenizer-type", Text),
    ("--tokenizer-model", Text),
    ("--vocab-size", Int),
];

/// Options without which training does not start.
const REQUIRED: &[&str] = &[
    "--num-layers",
    "--hidden-size",
    "--num-attention-heads",
    "--max-position-embeddings",
    "--micro-batch-size",
    "--seq-length",
    "--tokenizer-type",
];

const MODULES: &[&str] = &["core_attn", "moe_act", "layernorm", "mla_up_proj", "mlp", "moe", "shared_experts"];

/// A command line as the parser leaves it.
pub(crate) struct Parsed(BTreeMap<&'static str, Vec<String>>);

impl Parsed {
    fn has(&self, flag: &str) -> bool {
        self.0.contains_key(flag)
    }

    fn text(&self, flag: &str) -> Option<&str> {
        self.0.get(flag)?.first().map(String::as_str)
    }

    fn int(&self, flag: &str) -> Option<u64> {
        self.text(flag)?.parse().ok()
    }

    fn size(&self, flag: &str) -> u64 {
        self.int(flag).unwrap_or(1).max(1)
    }
}

/// A broken rule: its number, 0 for the parser's own, and what is wrong.
pub(crate) type Violation = (u8, String);

/// Reads `args` as argparse does with `allow_abbrev=False`.
pub(crate) fn parse(args: &[String]) -> Result<Parsed, Violation> {
    let mut out = BTreeMap::new();
    let mut rest = args.iter().peekable();
    while let Some(arg) = rest.next() {
        let Some((flag, takes)) = OPTIONS.iter().find(|(flag, _)| flag == arg) else {
            return Err((0, format!("unrecognized argument {arg}")));
        };
        let mut values = Vec::new();
        let most = match takes {
            Nothing => 0,
            Words => usize::MAX,
            Int | Float | Text | OneOf(_) => 1,
        };
        while values.len() < most
            && let Some(value) = rest.next_if(|v| !v.starts_with("--"))
        {
            values.push(value.clone());
        }
        let ok = match takes {
            Nothing => true,
            Int => values.first().is_some_and(|v| v.parse::<i64>().is_ok()),
            Float => values.first().is_some_and(|v| v.parse::<f64>().is_ok()),
            Words | Text => !values.is_empty(),
            OneOf(choices) => values.first().is_some_and(|v| choices.contains(&v.as_str())),
        };
        if !ok {
            return Err((0, format!("argument {flag}: {values:?}")));
        }
        out.insert(*flag, values);
    }
    match REQUIRED.iter().find(|flag| !out.contains_key(*flag)) {
        Some(flag) => Err((0, format!("{flag} is required"))),
        None => Ok(Parsed(out)),
    }
}

/// Layers of every chunk in model order, as `get_num_layers_to_build` and the layout string give them.
pub(crate) fn chunk_layers(a: &Parsed) -> Vec<u64> {
    let stages = a.size("--pipeline-model-parallel-size");
    if let Some(text) = a.text("--pipeline-model-parallel-layout") {
        return expand(text).split('|').map(|s| s.matches('t').count() as u64).collect();
    }
    let layers = a.size("--num-layers");
    let chunks = virtual_stages(a).unwrap_or(1);
    let embedding = u64::from(a.has("--account-for-embedding-in-pipeline-split"));
    let loss = u64::from(a.has("--account-for-loss-in-pipeline-split"));
    let first = a.int("--decoder-first-pipeline-num-layers");
    let last = a.int("--decoder-last-pipeline-num-layers");
    let middle_stages = stages - u64::from(first.is_some()) - u64::from(last.is_some());
    let middle = layers + embedding + loss - first.unwrap_or(0) - last.unwrap_or(0);
    let mut out = Vec::new();
    for chunk in 0..chunks {
        for stage in 0..stages {
            let on_rank = match (first, last) {
                (Some(n), _) if stage == 0 => n,
                (_, Some(n)) if stage == stages - 1 => n,
                _ => middle / middle_stages,
            };
            let mut n = on_rank / chunks;
            n -= if chunk == 0 && stage == 0 { embedding } else { 0 };
            n -= if chunk == chunks - 1 && stage == stages - 1 { loss } else { 0 };
            out.push(n);
        }
    }
    out
}

/// Rows of the embedding: the vocabulary rounded up to a multiple of the option times the tensor ranks.
pub(crate) fn padded_vocab(a: &Parsed) -> u64 {
    let multiple = a.int("--make-vocab-size-divisible-by").unwrap_or(128) * a.size("--tensor-model-parallel-size");
    a.size("--vocab-size").div_ceil(multiple) * multiple
}

/// etp, ep, edp and pp index of `rank`: experts have a grid of their own, in which context ranks are nobody's.
pub(crate) fn expert_coordinates(a: &Parsed, world: u64, rank: u64) -> [u64; 4] {
    let et = a.int("--expert-tensor-parallel-size").unwrap_or(a.size("--tensor-model-parallel-size"));
    let e = a.size("--expert-model-parallel-size");
    let p = a.size("--pipeline-model-parallel-size");
    let d = world / (et * e * p);
    let (etp, ep, outer) = (rank % et, rank / et % e, rank / (et * e));
    if a.has("--use-tp-pp-dp-mapping") { [etp, ep, outer / p, outer % p] } else { [etp, ep, outer % d, outer / d] }
}

/// tp, cp, dp and pp index of `rank` in a world of `world` ranks.
pub(crate) fn coordinates(a: &Parsed, world: u64, rank: u64) -> [u64; 4] {
    let t = a.size("--tensor-model-parallel-size");
    let c = a.size("--context-parallel-size");
    let p = a.size("--pipeline-model-parallel-size");
    let d = world / (t * c * p);
    let (tp, cp, outer) = (rank % t, rank / t % c, rank / (t * c));
    if a.has("--use-tp-pp-dp-mapping") { [tp, cp, outer / p, outer % p] } else { [tp, cp, outer % d, outer / d] }
}

fn virtual_stages(a: &Parsed) -> Option<u64> {
    let stages = a.size("--pipeline-model-parallel-size");
    let chunks = if let Some(text) = a.text("--pipeline-model-parallel-layout") {
        expand(text).split('|').count() as u64 / stages
    } else if let Some(n) = a.int("--num-virtual-stages-per-pipeline-rank") {
        n
    } else {
        let each = a.int("--num-layers-per-virtual-pipeline-stage")?;
        a.size("--num-layers") / stages / each.max(1)
    };
    (chunks != 1).then_some(chunks)
}

/// Unrolls a layout string: `(…)*n` first, then `x*n`.
fn expand(text: &str) -> String {
    let mut text = text.replace(',', "");
    while let Some(end) = text.find(")*") {
        let start = text[..end].rfind('(').unwrap();
        let digits: String = text[end + 2..].chars().take_while(char::is_ascii_digit).collect();
        let repeated = text[start + 1..end].repeat(digits.parse().unwrap());
        text.replace_range(start..end + 2 + digits.len(), &repeated);
    }
    while let Some(star) = text.find('*') {
        let digits: String = text[star + 1..].chars().take_while(char::is_ascii_digit).collect();
        let repeated = text[star - 1..star].repeat(digits.parse().unwrap());
        text.replace_range(star - 1..star + 1 + digits.len(), &repeated);
    }
    text
}

/// Every rule a command line breaks when `world` processes run it with this environment.
pub(crate) fn violations(args: &[String], world: u64, environment: &[(String, String)]) -> Vec<Violation> {
    let a = match parse(args) {
        Ok(parsed) => parsed,
        Err(violation) => return vec![violation],
    };
    let mut found = Vec::new();
    let mut must = |rule: u8, holds: bool, what: &str| {
        if !holds {
            found.push((rule, what.to_owned()));
        }
    };
    let t = a.size("--tensor-model-parallel-size");
    let p = a.size("--pipeline-model-parallel-size");
    let c = a.size("--context-parallel-size");
    let e = a.size("--expert-model-parallel-size");
    let layers = a.size("--num-layers");
    must(1, world.is_multiple_of(t * p * c), "world size is a multiple of tp × pp × cp");
    let d = (world / (t * p * c)).max(1);
    let heads = a.size("--num-attention-heads");
    let groups = if a.has("--group-query-attention") { a.size("--num-query-groups") } else { heads };
    must(3, heads % t == 0, "tp divides heads");
    must(3, groups % t == 0 || t % groups == 0, "tp and query groups divide");

    let embedding = a.has("--account-for-embedding-in-pipeline-split");
    let loss = a.has("--account-for-loss-in-pipeline-split");
    let counted = layers + u64::from(embedding) + u64::from(loss);
    let first = a.int("--decoder-first-pipeline-num-layers");
    let last = a.int("--decoder-last-pipeline-num-layers");
    let layout = a.text("--pipeline-model-parallel-layout").map(expand);
    let ends = first.is_some() || last.is_some();
    let chunks = virtual_stages(&a);
    must(4, ends || layout.is_some() || counted % p == 0, "stages divide layers");
    must(
        4,
        ends || layout.is_some() || (counted / p) % chunks.unwrap_or(1).max(1) == 0,
        "chunks divide a rank's layers",
    );
    must(4, !(ends && (embedding || loss)), "first and last exclude counting");
    if ends {
        let given = first.unwrap_or(0) + last.unwrap_or(0);
        let rest = i128::from(layers) - i128::from(given);
        let stages = i128::from(p) - i128::from(first.is_some()) - i128::from(last.is_some());
        must(5, first != Some(0) && last != Some(0), "first and last hold layers");
        must(5, (rest == 0) == (stages == 0), "middle layers and middle stages go together");
        must(5, rest >= 0 && (stages <= 0 || rest % stages == 0), "middle stages divide middle layers");
        if let Some(v) = chunks {
            let on_middle = if stages > 0 { rest / stages } else { 0 };
            let whole = [first, last].into_iter().flatten().all(|n| n % v == 0) && on_middle % i128::from(v) == 0;
            must(5, whole, "chunks divide first, last and middle");
        }
    }
    let each = a.int("--num-layers-per-virtual-pipeline-stage");
    let ways = [each.is_some(), a.has("--num-virtual-stages-per-pipeline-rank"), layout.is_some()];
    must(6, ways.iter().filter(|w| **w).count() <= 1, "one way to say virtual stages");
    if let Some(each) = each {
        must(7, !ends && counted % p == 0 && (counted / p) % each.max(1) == 0, "layers of a chunk divide a rank's");
    }
    if chunks.is_some() {
        let least = if a.has("--no-overlap-p2p-communication") { 2 } else { 1 };
        must(8, p > least, "interleaving needs more stages");
    }
    if let Some(layout) = &layout {
        let known = layout.chars().all(|x| "EtmL|".contains(x));
        let count = |x| layout.chars().filter(|y| *y == x).count() as u64;
        must(9, (count('|') + 1) % p == 0 && count('t') == layers && !ends && !embedding && !loss, "layout counts");
        must(
            9,
            known && layout.starts_with('E') && layout.ends_with('L') && count('E') == 1 && count('L') == 1,
            "layout ends",
        );
    }

    let micro = a.size("--micro-batch-size");
    let batch = a.int("--global-batch-size").unwrap_or(micro * d);
    must(10, batch % (micro * d) == 0, "the batch is whole microbatches");
    if chunks.is_some() {
        let m = batch / (micro * d);
        let n = a.int("--microbatch-group-size-per-virtual-pipeline-stage").unwrap_or(p);
        must(10, p <= n && n <= m && (m.is_multiple_of(n) || m % n >= p), "microbatch groups");
    }
    let sp = a.has("--sequence-parallel");
    must(11, !(sp && t == 1), "sequence parallelism is turned off without tensor ranks");
    must(11, !a.has("--tp-comm-overlap") || sp, "tp-comm-overlap needs sequence parallelism");
    must(12, !(a.has("--num-experts") && t > 1 && !sp), "experts and tensor ranks need sequence parallelism");
    must(13, e == 1 || a.int("--num-experts").is_some_and(|n| n % e == 0), "expert ranks divide experts");
    let et = a.int("--expert-tensor-parallel-size").unwrap_or(t);
    let experts = a.int("--num-experts");
    must(2, experts.is_none() || world.is_multiple_of(et * e * p), "world size is a multiple of etp × ep × pp");
    must(14, experts.is_none() || et == 1 || a.has("--disable-bias-linear"), "split experts have no biases");
    let top_k = a.int("--moe-router-topk").unwrap_or(2);
    let sigmoid = a.text("--moe-router-score-function").is_some_and(|f| f != "softmax");
    must(26, experts.is_none() || top_k > 1 || sigmoid || a.has("--moe-router-pre-softmax"), "one choice, pre-softmax");
    must(26, !a.has("--moe-router-enable-expert-bias") || sigmoid, "an expert bias corrects sigmoids");
    let groups = a.int("--moe-router-num-groups");
    must(26, !a.has("--moe-router-group-topk") || groups.is_some(), "group-topk needs groups");
    must(26, groups.is_none_or(|g| experts.is_some_and(|n| n % g == 0)), "groups divide experts");
    let copies = world / (et * e * p).max(1);
    must(31, !a.has("--use-tp-pp-dp-mapping") || p == 1 || experts.is_none() || copies == d, "dp equals expert dp");
    let sequence = a.size("--seq-length");
    let methods = a.0.get("--cp-comm-type").cloned().unwrap_or_default();
    must(15, c == 1 || sequence % (2 * c) == 0, "2 cp divides the sequence");
    must(15, methods.len() <= 1 || methods.len() as u64 == layers, "one cp-comm-type, or one a layer");
    must(
        15,
        methods.iter().all(|m| ["p2p", "a2a", "allgather", "all_gather", "a2a+p2p"].contains(&m.as_str())),
        "cp-comm-type",
    );
    if methods.iter().any(|m| m == "a2a+p2p") {
        let sizes = a.0.get("--hierarchical-context-parallel-sizes").cloned().unwrap_or_default();
        let product: u64 = sizes.iter().filter_map(|s| s.parse::<u64>().ok()).product();
        must(15, product == c && !sizes.is_empty(), "hierarchical sizes multiply to cp");
    }
    let connections = environment.iter().find(|(name, _)| name == "CUDA_DEVICE_MAX_CONNECTIONS");
    must(16, (t == 1 && c == 1) || connections.is_some_and(|(_, v)| v == "1"), "CUDA_DEVICE_MAX_CONNECTIONS=1");
    let sharded = a.has("--use-distributed-optimizer");
    if a.has("--overlap-param-gather") {
        must(17, sharded && a.has("--overlap-grad-reduce"), "param gather needs dist-opt and grad reduce");
    }
    if a.has("--overlap-param-gather-with-optimizer-step") {
        must(17, a.has("--overlap-param-gather") && chunks.is_some(), "with-optimizer-step needs chunks");
    }
    must(20, !(a.has("--fp16") && a.has("--bf16")), "fp16 or bf16");
    must(20, !(a.has("--fp8-format") && a.has("--fp4-format")), "fp8 or fp4");
    must(20, !a.has("--fp8-param-gather") || sharded, "fp8-param-gather needs dist-opt");
    let (method, number) = (a.has("--recompute-method"), a.has("--recompute-num-layers"));
    match a.text("--recompute-granularity") {
        Some("full") => must(21, method && number, "full recompute needs method and layers"),
        Some(_) => must(21, !method && !number, "selective recompute has no method or layers"),
        None => {}
    }
    let modules = a.0.get("--recompute-modules").cloned().unwrap_or_default();
    must(21, modules.iter().all(|m| MODULES.contains(&m.as_str())), "recompute modules");
    if a.has("--distribute-saved-activations") {
        must(21, t > 1 && !sp && a.text("--recompute-granularity") == Some("full"), "distributed saved activations");
    }
    if let Some(n) = a.int("--cpu-offloading-num-layers") {
        must(22, p == 1 && !a.has("--recompute-granularity") && n < layers, "cpu offloading");
    }
    must(24, !(a.has("--multi-latent-attention") && a.has("--group-query-attention")), "MLA or GQA");
    must(27, a.has("--train-iters") != a.has("--train-samples"), "iterations or samples");
    let by_samples = a.has("--lr-decay-samples") || a.has("--lr-warmup-samples");
    let by_iters = a.has("--lr-decay-iters") || a.has("--lr-warmup-iters");
    must(27, !(a.has("--train-iters") && by_samples || a.has("--train-samples") && by_iters), "decay in the same unit");
    let float = |flag: &str| a.text(flag).and_then(|v| v.parse::<f64>().ok());
    must(27, float("--min-lr").unwrap_or(0.0) <= float("--lr").unwrap_or(f64::MAX), "min-lr at most lr");
    must(27, a.size("--max-position-embeddings") >= sequence, "positions cover the sequence");
    must(27, !a.has("--save") || a.has("--save-interval"), "save needs an interval");
    // The fused GELU adds a bias that must be there.
    let plain_gelu = !a.has("--swiglu") && a.has("--disable-bias-linear");
    must(32, !plain_gelu || a.has("--no-bias-gelu-fusion"), "bias-GELU fusion needs a bias");
    // A rule of the optimizer's groups: instances divide data × context ranks.
    let instances = a.size("--num-distributed-optimizer-instances");
    must(33, (d * c).is_multiple_of(instances), "optimizer instances divide the data ranks");
    found
}

/// The smallest plan Megatron accepts for Llama 3 8B on 2 nodes of 8: tp 2, pp 2, dp 4.
pub(crate) const LLAMA3_8B: &str = "--num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 \
    --group-query-attention --num-query-groups 8 --kv-channels 128 --seq-length 8192 --max-position-embeddings 8192 \
    --position-embedding-type rope --rotary-base 500000 --swiglu --normalization RMSNorm \
    --untie-embeddings-and-output-weights --disable-bias-linear --attention-dropout 0 --hidden-dropout 0 \
    --tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --sequence-parallel --use-distributed-optimizer \
    --overlap-grad-reduce --overlap-param-gather --micro-batch-size 1 --global-batch-size 128 --train-iters 100 \
    --lr 3e-4 --min-lr 3e-5 --lr-decay-style cosine --bf16 --mock-data --tokenizer-type NullTokenizer --vocab-size 128256";

pub(crate) fn split(args: &str) -> Vec<String> {
    args.split_whitespace().map(str::to_owned).collect()
}

pub(crate) fn environment() -> Vec<(String, String)> {
    vec![("CUDA_DEVICE_MAX_CONNECTIONS".into(), "1".into())]
}

/// `base` with edits: `-flag` takes an option away, anything else replaces or adds one.
fn edited(base: &str, edits: &[&str]) -> Vec<String> {
    let mut args = split(base);
    for edit in edits {
        let words = split(edit.strip_prefix("- ").unwrap_or(edit));
        if let Some(at) = args.iter().position(|a| *a == words[0]) {
            let end = args[at + 1..].iter().position(|a| a.starts_with("--")).map_or(args.len(), |n| at + 1 + n);
            args.drain(at..end);
        }
        if !edit.starts_with("- ") {
            args.extend(words);
        }
    }
    args
}

#[test]
fn the_published_minimal_plan_is_accepted() {
    assert_eq!(violations(&split(LLAMA3_8B), 16, &environment()), []);
}

#[test]
fn each_rule_rejects_something() {
    let broken: &[(u8, &[&str])] = &[
        (0, &["--virtual-pipeline-model-parallel-size 2"]),
        (0, &["--zero-bubble"]),
        (0, &["--data-parallel-size 4"]),
        (0, &["--num-layers-in-first-pipeline-stage 15"]),
        (0, &["--tensor-model-parallel 2"]),
        (0, &["--bf16 true"]),
        (0, &["--normalization rmsnorm"]),
        (0, &["- --max-position-embeddings"]),
        (1, &["--tensor-model-parallel-size 3"]),
        (3, &["--num-attention-heads 31"]),
        (3, &["--num-query-groups 3"]),
        (4, &["--num-layers 33"]),
        (4, &["--num-virtual-stages-per-pipeline-rank 3"]),
        (4, &["--account-for-loss-in-pipeline-split"]),
        (5, &["--decoder-first-pipeline-num-layers 16", "--decoder-last-pipeline-num-layers 15"]),
        (5, &["--decoder-first-pipeline-num-layers 15", "--num-virtual-stages-per-pipeline-rank 2"]),
        (6, &["--num-virtual-stages-per-pipeline-rank 2", "--num-layers-per-virtual-pipeline-stage 8"]),
        (7, &["--num-layers-per-virtual-pipeline-stage 7"]),
        (8, &["--num-virtual-stages-per-pipeline-rank 2", "--no-overlap-p2p-communication"]),
        (8, &["--pipeline-model-parallel-size 1", "--num-virtual-stages-per-pipeline-rank 2"]),
        (9, &["--pipeline-model-parallel-layout Et*16|t*15L"]),
        (9, &["--pipeline-model-parallel-layout t*16|Et*16L"]),
        (9, &["--pipeline-model-parallel-layout Et*16|t*8|t*8L"]),
        (10, &["--global-batch-size 126"]),
        (10, &["--num-virtual-stages-per-pipeline-rank 2", "--microbatch-group-size-per-virtual-pipeline-stage 31"]),
        (10, &["--num-virtual-stages-per-pipeline-rank 2", "--global-batch-size 4"]),
        (11, &["--tensor-model-parallel-size 1"]),
        (11, &["--tp-comm-overlap", "- --sequence-parallel"]),
        (12, &["--num-experts 8", "- --sequence-parallel"]),
        (13, &["--expert-model-parallel-size 2"]),
        (13, &["--expert-model-parallel-size 4", "--num-experts 6"]),
        (2, &["--num-experts 8", "--expert-model-parallel-size 8", "--expert-tensor-parallel-size 2"]),
        (14, &["--num-experts 8", "- --disable-bias-linear"]),
        (26, &["--num-experts 8", "--moe-router-topk 1"]),
        (26, &["--num-experts 8", "--moe-router-enable-expert-bias"]),
        (26, &["--num-experts 8", "--moe-router-group-topk 2"]),
        (26, &["--num-experts 8", "--moe-router-num-groups 3"]),
        (31, &["--num-experts 8", "--expert-model-parallel-size 2", "--use-tp-pp-dp-mapping"]),
        (15, &["--context-parallel-size 4", "--seq-length 8196"]),
        (15, &["--context-parallel-size 2", "--cp-comm-type p2p a2a"]),
        (15, &["--context-parallel-size 4", "--cp-comm-type a2a+p2p"]),
        (15, &["--context-parallel-size 2", "--cp-comm-type ring"]),
        (17, &["- --overlap-grad-reduce"]),
        (17, &["- --use-distributed-optimizer"]),
        (17, &["--overlap-param-gather-with-optimizer-step"]),
        (20, &["--fp16"]),
        (20, &["--fp8-format hybrid", "--fp4-format e2m1"]),
        (20, &["--fp8-param-gather", "- --use-distributed-optimizer", "- --overlap-param-gather"]),
        (21, &["--recompute-granularity full"]),
        (21, &["--recompute-granularity selective", "--recompute-num-layers 1"]),
        (21, &["--recompute-granularity selective", "--recompute-modules attention"]),
        (21, &["--distribute-saved-activations"]),
        (22, &["--cpu-offloading-num-layers 4"]),
        (24, &["--multi-latent-attention"]),
        (27, &["--train-samples 1000"]),
        (27, &["- --train-iters"]),
        (27, &["--lr-decay-samples 1000"]),
        (27, &["--min-lr 1"]),
        (27, &["--max-position-embeddings 4096"]),
        (27, &["--save out"]),
        (32, &["- --swiglu"]),
        (33, &["--num-distributed-optimizer-instances 3"]),
    ];
    for (rule, edits) in broken {
        let args = edited(LLAMA3_8B, edits);
        let found = violations(&args, 16, &environment());
        assert!(found.iter().any(|(r, _)| r == rule), "rule {rule} should reject {edits:?}: {found:?}");
    }
    assert!(violations(&split(LLAMA3_8B), 16, &[]).iter().any(|(rule, _)| *rule == 16));
}

#[test]
fn layout_strings_unroll_as_documented() {
    // The example of the parser's own comment: "Ettt|(tt|)*29,m|L".
    let stages = expand("Ettt|(tt|)*29,m|L");
    assert_eq!(stages.split('|').count(), 1 + 29 + 1 + 1);
    assert_eq!(expand("Et*3|(t*2|)*2t*3L"), "Ettt|tt|tt|tttL");
}
