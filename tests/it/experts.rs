//! Mixtures of experts against hand calculations: counts, FLOP, what travels and what stays.

use crate::compile::{self, Checked};
use parc::analyse::Compiled;
use parc::layout::AxisId;
use parc::partition::{CollectiveKind, Phase, Purpose, StepKind, Work};

/// Mixtral 8x7B: tokens of a sequence, width, experts, width of one, choices.
const S: f64 = 4096.0;
const H: f64 = 4096.0;
const E: f64 = 8.0;
const M: f64 = 14336.0;
const K: f64 = 2.0;

fn mixtral(model: &str, mesh: &str, items: &str, experts: &str) -> Checked {
    compile::clean(&format!(
        "edition 1
layout L() {{
  mesh [{mesh}]
  {items}
  in **.moe.experts {{ {experts} }}
}}
train j {{
  model = {model}, cluster = DGX_H100(nodes = 8), layout = L()
  batch = 512 seq, sequence = 4096 tok
}}
"
    ))
}

/// Collectives of a layer in one phase, in order: purpose, kind, axes, bytes.
fn moves(c: &Compiled<'_>, phase: Phase, purposes: &[Purpose]) -> Vec<(Purpose, CollectiveKind, String, f64)> {
    let at = c.job.ops.units.iter().position(|u| u.name == "decoder").expect("a decoder");
    let unit = &c.sharded.units[at];
    let steps = match phase {
        Phase::Forward => &unit.forward,
        Phase::Backward => &unit.backward,
        Phase::Update => &unit.update,
    };
    let axes = |axes: &[AxisId]| axes.iter().map(|a| c.job.layout.axis(*a).name.as_str()).collect::<Vec<_>>().join("+");
    let each = steps.iter().filter_map(|id| match &c.sharded.flow[*id].kind {
        StepKind::Collective(x) if purposes.contains(&x.purpose) && x.kind != CollectiveKind::Slice => {
            Some((x.purpose, x.kind, axes(&x.axes), c.value(x.bytes)))
        }
        StepKind::Collective(_) | StepKind::Compute { .. } | StepKind::Free { .. } => None,
    });
    each.collect()
}

const ROUTES: &[Purpose] = &[Purpose::Dispatch, Purpose::Combine];

/// Jiang et al. 2024 (arXiv 2401.04088): 46.7 B parameters, of which a token uses 12.9 B.
#[test]
fn mixtral_has_the_published_counts() {
    let checked = mixtral("Mixtral_8x7B", "dp = 64", "shard B over dp", "shard M over dp");
    drop(checked);
    let checked = mixtral("Mixtral_8x7B", "dp = 8, ep = 8", "shard B over [dp, ep]", "shard E over ep");
    let c = checked.compiled(&[]);
    let count = |active: bool| {
        let all = |_: &parc::graph::Parameter| true;
        if active { c.job.ops.params_active(&c.graph, &all) } else { c.job.ops.params(&c.graph, &all) }
    };
    // 2·V·H + 32·(2·H·H + 2·H·1024 + 8·3·H·M + 8·H + 2·H) + H, and with 2 of 8 experts.
    assert_eq!(count(false), 46_702_792_704);
    assert_eq!(count(true), 46_702_792_704 - 32 * 6 * 3 * 4096 * 14336);
    assert_eq!(count(true), 12_879_925_248);
}

/// Six FLOP a token for each weight of a product it meets, and attention: 6 · N · 2D a causal pair.
#[test]
fn model_flops_count_active_experts_only() {
    let checked = mixtral("Mixtral_8x7B", "dp = 8, ep = 8", "shard B over [dp, ep]", "shard E over ep");
    let c = checked.compiled(&[]);
    let layer = 2.0 * H * H + 2.0 * H * 1024.0 + E * H + K * 3.0 * H * M;
    let weights = 32.0 * layer + 32000.0 * H;
    let attention = 32.0 * 6.0 * (S / 2.0) * 32.0 * 256.0;
    let expected = 512.0 * S * (6.0 * weights + attention);
    let found = c.value(c.roots.flops);
    assert!((found / expected - 1.0).abs() < 1e-12, "{found} against {expected}");
}

/// Each rank sends its tokens k times, to the experts and back, and their gradients the same way.
#[test]
fn tokens_travel_to_their_experts_and_back() {
    let checked = mixtral("Mixtral_8x7B", "dp = 8, ep = 8", "shard B over [dp, ep]", "shard E over ep");
    let c = checked.compiled(&[]);
    let sent = K * S * H * 2.0;
    let all = |p| (p, CollectiveKind::AllToAll, "ep".to_owned(), sent);
    assert_eq!(moves(&c, Phase::Forward, ROUTES), [all(Purpose::Dispatch), all(Purpose::Combine)]);
    assert_eq!(moves(&c, Phase::Backward, ROUTES), [all(Purpose::Combine), all(Purpose::Dispatch)]);
    // Weights of experts are different over ep: their gradient is summed over dp alone, the others' over both.
    let layer = &c.sharded.units[1];
    for p in &layer.params {
        let path = &c.job.ops.params[p.param as usize].path;
        let axes: Vec<_> = p.grad_axes.iter().map(|a| c.job.layout.axis(*a).name.as_str()).collect();
        let expert = path.contains("experts");
        assert_eq!(axes, if expert { vec!["dp"] } else { vec!["dp", "ep"] }, "{path}");
        if expert {
            assert!((c.value(p.elements) - H * M).abs() < 0.5, "{path}: one expert of eight");
        }
    }
}

/// Products of an expert: its slots are a rank's tokens k times, spread over all experts of its group.
#[test]
fn experts_compute_on_their_slots() {
    let checked = mixtral("Mixtral_8x7B", "dp = 16, ep = 4", "shard B over [dp, ep]", "shard E over ep");
    let c = checked.compiled(&[]);
    let unit = &c.sharded.units[1];
    let mut found = Vec::new();
    for id in &unit.forward {
        let step = &c.sharded.flow[*id];
        if c.job.ops.region_path(step.region) == "decoder.moe.experts"
            && let StepKind::Compute { work: Work::Matmul { m, n, k, batch }, .. } = &step.kind
        {
            found.push([*m, *n, *k, *batch].map(|x| c.value(x)));
        }
    }
    // Two experts a rank; B·S·k / E = 64 · 4096 · 2 / 8 slots each over 16 ranks of dp.
    let rows = 64.0 * S * K / E / 16.0;
    assert_eq!(found, [[rows, M, H, 2.0], [rows, M, H, 2.0], [rows, H, M, 2.0]]);
}

/// With the sequence split over tp outside, slots take that axis too, unless the weights have it: then the tokens of a
/// tp group are gathered, and what its ranks computed a part of each is summed onto the sequence again.
#[test]
fn slots_take_the_axes_of_tokens_that_weights_leave() {
    let items = "shard B over [dp, ep]\n  shard [N, K, V] over tp else S";
    let moe = [Purpose::Dispatch, Purpose::Combine];
    let checked = mixtral("Mixtral_8x7B", "dp = 2, ep = 8, tp = 4", items, "shard E over ep");
    let c = checked.compiled(&[]);
    let sent = K * S * H * 2.0 / 4.0;
    let found: Vec<_> = moves(&c, Phase::Forward, &moe).into_iter().map(|m| (m.2, m.3)).collect();
    assert_eq!(found, [("ep".to_owned(), sent), ("ep".to_owned(), sent)]);

    let split = mixtral("Mixtral_8x7B", "dp = 2, ep = 8, tp = 4", items, "shard E over ep, shard M over tp");
    let c = split.compiled(&[]);
    let found: Vec<_> = moves(&c, Phase::Forward, &moe).into_iter().map(|m| (m.2, m.3)).collect();
    assert_eq!(found, [("ep".to_owned(), 4.0 * sent), ("ep".to_owned(), 4.0 * sent)]);
    let reshards = moves(&c, Phase::Forward, &[Purpose::Reshard]);
    let x = S * H * 2.0;
    let of = |kind| reshards.iter().filter(|m| m.1 == kind && (m.3 - x).abs() < 0.5).count();
    // Attention gathers and scatters once each, the experts once each.
    assert_eq!((of(CollectiveKind::AllGather), of(CollectiveKind::ReduceScatter)), (2, 2), "{reshards:?}");
}

/// The fullest of eight ranks with one expert each: 1 + 0.1 · 1.4236 and a little, since a lognormal leans up.
#[test]
fn a_skewed_load_fills_the_fullest_rank() {
    let of = |model: &str| {
        let checked = mixtral(model, "dp = 8, ep = 8", "shard B over [dp, ep]", "shard E over ep");
        let c = checked.compiled(&[]);
        (moves(&c, Phase::Forward, ROUTES)[0].3, c.value(c.roots.peak_memory), c.value(c.roots.flops))
    };
    let even = of("Mixtral_8x7B");
    let skewed = of("Mixtral_8x7B with { skew = lognormal(mean = 1.0, sigma = 0.1) }");
    let ratio = skewed.0 / even.0;
    assert!((1.14..1.16).contains(&ratio), "{ratio}");
    assert!(skewed.1 > even.1);
    assert_eq!(skewed.2.to_bits(), even.2.to_bits(), "model FLOP know no skew");
}

/// DeepSeek-AI 2024 (arXiv 2412.19437): 671 B, of which 37 B are active; one token's cache is 576 elements a layer.
#[test]
fn deepseek_v3_has_the_published_counts() {
    let text = "edition 1
layout L() { mesh [dp = 1, ep = 64], shard B over [dp, ep], in **.moe.experts { shard E over ep } }
train j {
  model = DeepSeekV3(), cluster = DGX_H100(nodes = 8), layout = L(), batch = 512 seq, sequence = 4096 tok
  expect params - params(mtp) ~ 671.0e9 within 0.1%
  expect params_active ~ 37e9 within 3%
  expect params(decoder_moe.moe.shared_expert) == 58 * 3 * 7168 * 2048
  expect params_active(decoder_moe.moe.experts) == 58 * 8 * 3 * 7168 * 2048
}
";
    let checked = compile::clean(text);
    let c = checked.compiled(&[]);
    let main = c.job.ops.params(&c.graph, &|p| !p.path.starts_with("mtp"));
    assert!((main as f64 / 671.0e9 - 1.0).abs() < 0.001, "{main}");
    // Keys and values of 62 attentions: the latent of 512 and the rotary key of 64.
    assert_eq!(c.job.ops.cached(&c.graph), 62 * 576);
}

/// A loss in eight pieces keeps an eighth of the logits: 4096 tokens times 32,000 classes in fp32.
#[test]
fn a_loss_in_pieces_keeps_a_piece_of_the_logits() {
    let saved = |chunks: u32| {
        let text = format!(
            "edition 1
model M {{
  dims {{ H = 64, V = 32000 }}
  input tokens[B: seq, S: tok]
  region embed {{ x[B, S, H] = embed(tokens, param wte[V, H]) }}
  region head {{
    logits[B, S, V] = x @ param w[H, V]
    loss = cross_entropy(logits, over = V, chunks = {chunks})
  }}
}}
layout L {{ mesh [dp = devices], shard B over dp }}
train j {{ model = M, cluster = DGX_H100(nodes = 1), layout = L, batch = 8 seq, sequence = 4096 tok }}
"
        );
        let checked = compile::clean(&text);
        let c = checked.compiled(&[]);
        let named = |s: &&parc::partition::Saved| c.job.ops.value(s.value).name == "logits";
        c.sharded.units.iter().flat_map(|u| &u.saved).find(named).map(|s| c.value(s.bytes)).expect("logits are kept")
    };
    let whole = 4096.0 * 32000.0 * 4.0;
    for (chunks, expected) in [(1, whole), (8, whole / 8.0)] {
        assert!((saved(chunks) - expected).abs() < 0.5, "{chunks}: {}", saved(chunks));
    }
}
