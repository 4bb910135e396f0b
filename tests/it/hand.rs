//! Hand calculations of the Llama 3 8B example and of a GPT layer, against the compiler's numbers.
//!
//! The example: H = 4096, N = 32, K = 8, D = 128, F = 14336, V = 128256, 32 layers; tp = 2 with sequence parallelism,
//! pp = 2, dp = 4; sequences of 8192 tokens, one in a microbatch, 128 in a step. bf16 is 2 bytes, fp32 is 4.

use crate::compile::{self, Checked};
use crate::files::{root, text};
use parc::analyse::Compiled;
use parc::emit::plan::Plan;
use parc::layout::AxisId;
use parc::partition::{CollectiveKind, Purpose, StepKind};
use std::collections::BTreeMap;

const H: f64 = 4096.0;
const N: f64 = 32.0;
const K: f64 = 8.0;
const D: f64 = 128.0;
const F: f64 = 14336.0;
const V: f64 = 128_256.0;
const S: f64 = 8192.0;
const LAYERS: f64 = 32.0;

fn example(name: &str) -> Checked {
    compile::clean(&text(&root().join("examples").join(name)))
}

#[track_caller]
fn exactly(found: f64, expected: f64, what: &str) {
    assert!((found - expected).abs() <= 1e-9 * expected.abs(), "{what}: {found}, by hand {expected}");
}

/// Elements of a layer on one of two tensor ranks: half of every matrix, the two norms whole.
///
/// wq and wo H·N·D each, wk and wv H·K·D each, three matrices H·F, two norms H:
/// (2·4096·4096 + 2·4096·1024 + 3·4096·14336) / 2 + 2·4096 = 109,051,904 + 8,192 = 109,060,096.
const LAYER: f64 = 109_060_096.0;

/// Half of V·H: 128256·4096 / 2 = 262,668,288.
const EMBEDDING: f64 = 262_668_288.0;

#[test]
fn parameters_gradients_and_state_of_each_stage() {
    exactly((2.0 * H * N * D + 2.0 * H * K * D + 3.0 * H * F) / 2.0 + 2.0 * H, LAYER, "a layer");
    exactly(V * H / 2.0, EMBEDDING, "the embedding");
    let plan = example("llama3_8b.par").report(&[]);
    // 16 layers and the embedding; 16 layers, the last norm and the head.
    for (s, elements) in [(0, 16.0 * LAYER + EMBEDDING), (1, 16.0 * LAYER + H + EMBEDDING)] {
        let stage = &plan.memory.stages[s];
        exactly(stage.params as f64, 2.0 * elements, "bf16 parameters");
        exactly(stage.grads as f64, 4.0 * elements, "fp32 gradients");
        // Master copy and two moments in fp32, in 1/dp pieces: 12 / 4 bytes.
        exactly(stage.state as f64, 3.0 * elements, "state");
        assert_eq!((stage.gathered, stage.layers), (0, 16));
    }
    // Twice two stages hold all parameters, the norms of the layers and the last one on both tensor ranks.
    let all: u64 = plan.memory.stages.iter().map(|s| s.params / 2 * 2).sum();
    exactly(all as f64, 8_030_261_248.0 + 32.0 * 2.0 * H + H, "the model and what is there twice");
}

/// Bytes saved by a unit for a microbatch, by name and in all.
fn saved(c: &Compiled<'_>, unit: &str) -> (BTreeMap<String, f64>, f64) {
    let at = c.job.ops.units.iter().position(|u| u.name == unit).expect("the unit is there");
    let mut by_name = BTreeMap::new();
    let mut total = 0.0;
    for s in &c.sharded.units[at].saved {
        let bytes = c.value(s.bytes);
        *by_name
            .entry(format!("{} in {}", c.job.ops.describe(s.value), c.job.ops.region_path(s.region)))
            .or_default() += bytes;
        total += bytes;
    }
    (by_name, total)
}

/// A Llama layer, tensor by tensor, on one of two tensor ranks with sequence parallelism (`docs/reference`: each
/// value once: activation operands of contractions, inputs of norms and of elementwise chains, q, k, v, o and an fp32
/// statistic a row of attention; sums and rotations save nothing). T = 8192 tokens, bytes:
///
/// | x, into the norm; h, into q, k, v     | 2 · T·H·2 / 2   |
/// | q and o, both T·N·D; k and v, T·K·D   | (2·N + 2·K)·D·T·2 / 2 |
/// | statistic, T·N in fp32                | T·N·4 / 2       |
/// | x after attention; h of the MLP       | 2 · T·H·2 / 2   |
/// | gate and up, into `silu(·) * ·`; a    | 3 · T·F·2 / 2   |
///
/// = 4096 · (4·2·4096 + 2·(64 + 16)·128 + 128 + 6·14336) = 4096 · 139,392 = 570,949,632.
#[test]
fn saved_activations_of_a_llama_layer() {
    let by_hand = S / 2.0 * (8.0 * H + 2.0 * (2.0 * N + 2.0 * K) * D + 4.0 * N + 6.0 * F);
    exactly(by_hand, 570_949_632.0, "the sum");
    let checked = example("llama3_8b.par");
    let c = checked.compiled(&[]);
    let (tensors, total) = saved(&c, "decoder");
    exactly(total, by_hand, &format!("saved by a layer: {tensors:#?}"));
    // 1F1B keeps two microbatches on stage 0 and one on stage 1, of 16 layers each.
    let plan = checked.report(&[]);
    let (_, embed) = saved(&c, "embed");
    let (_, head) = saved(&c, "head");
    exactly(plan.memory.stages[0].activations as f64, 2.0 * (16.0 * by_hand + embed), "stage 0");
    exactly(plan.memory.stages[1].activations as f64, 16.0 * by_hand + head, "stage 1");
    // Stage 1 keeps beside its layers: x into the norm and h into the head, both T·H·2 / 2, and fp32 logits T·V·4 / 2.
    exactly(head, 2.0 * S * H + 2.0 * S * V, "the head");
}

/// A GPT layer without pipeline or recomputation, for the formula of Korthikanti et al. 2022 (arXiv 2205.05198): 34·s·b·h
/// bytes a layer and 5·a·s²·b for the scores, all divided by t under tensor and sequence parallelism. Fused attention
/// keeps no scores but one fp32 a row and head: 4·a·s·b. There is no dropout here: its two masks are 2 of the 34.
#[test]
fn saved_activations_of_a_gpt_layer_follow_the_published_formula() {
    for (t, else_s) in [(1.0, "else S"), (2.0, "else S"), (4.0, "else S"), (8.0, "else S"), (8.0, "")] {
        let checked = compile::clean(&format!(
            "edition 1
layout L(tp: Int = {t}) {{
  mesh [dp = devices / tp, tp]
  shard B over dp
  shard [N, F] over tp {else_s}
}}
train j {{
  model = GPT(layers = 4, hidden = 4096, heads = 32), cluster = DGX_H100(nodes = 1), layout = L()
  batch = 16 seq, sequence = 2048 tok, micro_batch = 2 seq
}}
"
        ));
        let c = checked.compiled(&[]);
        let (s, b, h, a) = (2048.0, 2.0, 4096.0, 32.0);
        // Norm inputs and outputs, 8 of the 32, are whole on every tensor rank without sequence parallelism: the
        // paper's 10 + 24/t, without the two masks.
        let whole = if else_s.is_empty() { 1.0 } else { t };
        let by_hand = s * b * h * (8.0 / whole + 24.0 / t) + 4.0 * a * s * b / t;
        let (tensors, total) = saved(&c, "decoder");
        exactly(total, by_hand, &format!("t = {t} {else_s}: {tensors:#?}"));
    }
}

/// Model FLOP of a token: 6 a parameter of a matrix (the embedding is looked up, norms multiply nothing out), and
/// attention: q·k and p·v are 2·2·s·h a layer, half of it under the mask, three times for forward and backward.
#[test]
fn model_flops_of_a_token() {
    let matrices = LAYERS * (2.0 * H * N * D + 2.0 * H * K * D + 3.0 * H * F) + V * H;
    let attention = 12.0 * LAYERS * H * S * 0.5;
    exactly(6.0 * matrices + attention, 51_470_401_536.0, "a token");
    let plan = example("llama3_8b.par").report(&[]);
    let tokens = 128.0 * S;
    exactly(plan.model.flops, tokens * 51_470_401_536.0, "a step");
    // 989.4 TFLOP/s a device, 16 devices.
    exactly(plan.time.mfu, plan.model.flops / (plan.time.step * 16.0 * 989.4e12), "mfu");
    exactly(plan.time.tokens_per_s, tokens / plan.time.step, "tokens");
    exactly(plan.time.price, plan.time.step / 3600.0 * 16.0 * 2.95, "price");
    assert!((plan.time.hfu - plan.time.mfu).abs() < 1e-12, "nothing is recomputed");

    // GPT-3: a layer 12·h², a tied head V·h of the true 50257 columns, attention 6·s·h a layer and token.
    let plan = example("gpt3_175b.par").report(&[]);
    let h = 12288.0;
    let layers = 96.0 * 12.0 * h * h;
    let attention = 96.0 * 2048.0 * h;
    let a_token = 6.0 * (layers + 50257.0 * h) + 6.0 * attention;
    exactly(plan.model.flops, 1536.0 * 2048.0 * a_token, "GPT-3");
    // The forward of every layer runs again, 2 a parameter and 2·s·h for attention; the head's does not.
    exactly(plan.time.hfu / plan.time.mfu, 1.0 + (2.0 * layers + 2.0 * attention) / a_token, "hfu over mfu");
}

/// (p − 1) / m; interleaved over v chunks (p − 1) / (v·m).
#[test]
fn bubbles() {
    for (file, bubble) in [
        ("llama3_8b.par", 1.0 / 32.0),
        ("gpt3_175b.par", 11.0 / (2.0 * 96.0)),
        ("llama3_405b.par", 15.0 / (8.0 * 16.0)),
    ] {
        exactly(example(file).report(&[]).pipeline.bubble, bubble, file);
    }
}

#[test]
fn the_parts_of_a_step_add_up_to_it() {
    for file in ["llama3_8b.par", "gpt3_175b.par", "llama3_405b.par", "too_big.par"] {
        let plan = example(file).report(&[]);
        let sum: f64 = plan.time.parts.iter().map(|p| p.1).sum();
        exactly(sum, plan.time.step, &format!("{file}: {:?}", plan.time.parts));
    }
}

/// Collectives of a unit over the axis `axis`, of one microbatch or one update: kind and purpose to the bytes of each.
fn moved(c: &Compiled<'_>, unit: &str, axis: &str) -> BTreeMap<(CollectiveKind, Purpose), Vec<f64>> {
    let at = c.job.ops.units.iter().position(|u| u.name == unit).expect("the unit is there");
    let id = c.job.layout.axes.iter().position(|a| a.name == axis).expect("the axis is there");
    let unit = &c.sharded.units[at];
    let mut out: BTreeMap<_, Vec<f64>> = BTreeMap::new();
    for id_of in unit.forward.iter().chain(&unit.backward).chain(&unit.update) {
        if let StepKind::Collective(x) = &c.sharded.flow[*id_of].kind
            && x.axes[..] == [AxisId(id as u16)]
            && x.kind != CollectiveKind::Slice
        {
            out.entry((x.kind, x.purpose)).or_default().push(c.value(x.bytes));
        }
    }
    out
}

/// x̂ = T·H·2 = 8192·4096·2 = 67,108,864 bytes. With sequence parallelism a layer gathers x̂ before q, k, v and before
/// gate and up and scatters it after wo and `w_down`; the backward does the four adjoints and gathers the two inputs once
/// more: six all-gathers, four reduce-scatters. Without it (GPT-3) two all-reduces each way.
#[test]
fn tensor_parallel_traffic_of_a_layer() {
    let checked = example("llama3_8b.par");
    let c = checked.compiled(&[]);
    let found = moved(&c, "decoder", "tp");
    let x = S * H * 2.0;
    let of = |kind, purpose| found.get(&(kind, purpose)).cloned().unwrap_or_default();
    assert_eq!(of(CollectiveKind::AllGather, Purpose::Reshard), [x; 6], "{found:?}");
    assert_eq!(of(CollectiveKind::ReduceScatter, Purpose::Reshard), [x; 4], "{found:?}");
    assert_eq!(of(CollectiveKind::AllReduce, Purpose::Reshard), [0.0; 0], "{found:?}");
    // The gains of the norms see a part of the sequence each. dp has cut them in four by then: 2·4096 / 4 in fp32.
    assert_eq!(of(CollectiveKind::AllReduce, Purpose::ReduceGrad), [8192.0], "{found:?}");

    let checked = compile::clean(
        "edition 1
layout L(tp: Int = 8) { mesh [dp = devices / tp, tp]\n shard B over dp\n shard [N, F, V] over tp\n pad V = 128 * tp }
train j {
  model = GPT3_175B, cluster = DGX_A100(nodes = 1), layout = L()
  batch = 8 seq, sequence = 2048 tok, precision = fp16_mixed
}
",
    );
    let found = moved(&checked.compiled(&[]), "decoder", "tp");
    let reshards = found.get(&(CollectiveKind::AllReduce, Purpose::Reshard)).cloned().unwrap_or_default();
    assert_eq!(reshards, [2048.0 * 12288.0 * 2.0; 4], "{found:?}");
    assert_eq!(found.keys().filter(|(_, p)| *p == Purpose::Reshard).count(), 1, "{found:?}");
}

/// Once a step a rank sums its fp32 gradients over dp and gathers bf16 parameters: 4 and 2 bytes for each element it
/// holds, of which 3/4 are sent with rings.
#[test]
fn data_parallel_traffic() {
    let checked = example("llama3_8b.par");
    let c = checked.compiled(&[]);
    let found = moved(&c, "decoder", "dp");
    let sum = |kind, purpose| found.get(&(kind, purpose)).map_or(0.0, |v| v.iter().sum::<f64>());
    exactly(sum(CollectiveKind::ReduceScatter, Purpose::ReduceGrad), 4.0 * LAYER, "gradients of a layer");
    exactly(sum(CollectiveKind::AllGather, Purpose::GatherParam), 2.0 * LAYER, "parameters of a layer");
    assert_eq!(found.len(), 2, "{found:?}");
    let plan = checked.report(&[]);
    let sent = |plan: &Plan, kind: &str, purpose: &str| -> f64 {
        let of = plan.collectives.iter().filter(|x| x.kind == kind && x.purpose == purpose && x.axes == ["dp"]);
        of.map(|x| x.sent as f64).sum()
    };
    // The busiest rank is of the stage with the head.
    let elements = 16.0 * LAYER + H + EMBEDDING;
    exactly(sent(&plan, "reduce-scatter", "gradients"), 0.75 * 4.0 * elements, "gradients");
    exactly(sent(&plan, "all-gather", "parameters"), 0.75 * 2.0 * elements, "parameters");
}

/// x leaves a stage as it rests, in halves of the sequence: T·H·2 / 2, once forward and once backward a microbatch.
#[test]
fn messages_between_stages() {
    let plan = example("llama3_8b.par").report(&[]);
    let send = plan.collectives.iter().find(|x| x.kind == "send").expect("stages talk");
    assert_eq!((send.bytes as f64, send.count), (S * H * 2.0 / 2.0, 32));
}
