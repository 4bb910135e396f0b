//! The same comparison for programs written as text: the whole way from `.par` to collectives is held to XLA's
//! partitioner, not only the partitioner.
//!
//! The blocks are those of the cases, in the words of the language: `wq[H, N, D]` for the case's `[h, qd]`, fused
//! attention for its products and softmax (no collective in either), an embedding before and a loss after, which no axis
//! splits and which are not counted.

use super::cases;
use super::wire::{Wire, as_halves, expected, same, sent};
use crate::compile;
use parc::analyse::Compiled;
use parc::graph::{NormKind, OpKind};
use parc::layout::AxisId;
use parc::partition::{CollectiveKind, Phase, Purpose, StepKind};

const BLOCK: &str = "
    region attention {
      h = rms_norm(x, param n1[H])
      q[B, S, N, D] = h @ param wq[H, N, D]
      k[B, S, K, D] = h @ param wk[H, K, D]
      v[B, S, K, D] = h @ param wv[H, K, D]
      o[B, S, N, D] = attention(q, k, v, causal = true)
      x = x + (o @ param wo[N, D, H])
    }
    region mlp {
      h2 = rms_norm(x, param n2[H])
      a[B, S, F] = gelu(h2 @ param w1[H, F])
      x = x + (a @ param w2[F, H])
    }";

const SWIGLU: &str = "
    a[B, S, F] = silu(x @ param wg[H, F]) * (x @ param wu[H, F])
    x[B, S, H] = a @ param wd[F, H]";

/// A job over `dp · tp` devices with the sizes of the cases: 8 sequences of 16 tokens, width 64.
fn job(body: &str, dp: u32, tp: u32, items: &str) -> String {
    format!(
        "edition 1
model Case() {{
  dims {{ H = 64, N = 8, K = 4 for N, D = 16, F = 256, V = 32 }}
  input tokens[B: seq, S: tok]
  region embed {{ x[B, S, H] = embed(tokens, param wte[V, H]) }}
  repeat layer = 1 {{{body}
  }}
  region head {{
    logits[B, S, V] = x @ param w_out[H, V]
    loss = cross_entropy(logits, over = V)
  }}
}}
cluster Box(n: Int) {{
  level node = n of H100_SXM over NVLink4 {{ topology = switch }}
}}
layout L(tp: Int = {tp}, dp: Int = devices / tp) {{
  mesh [dp, tp]
  {items}
}}
train case {{
  model = Case(), cluster = Box(n = {devices}), layout = L()
  batch = 8 seq, sequence = 16 tok, micro_batch = {micro} seq
  precision = bf16_pure, optimizer = AdamW
}}
",
        devices = dp * tp,
        micro = 8 / dp,
    )
}

/// Bytes one device sends for the block, by kind and axes, evened out as for the translated cases.
fn wire(c: &Compiled<'_>) -> Wire {
    let at = c.job.ops.units.iter().position(|u| u.name == "layer").expect("the repeat is a unit");
    let unit = &c.sharded.units[at];
    let mut wire = Wire::new();
    let ranks = |axes: &[AxisId]| -> f64 { axes.iter().map(|a| c.value(c.job.layout.axis(*a).size)).product() };
    // An axis of one rank is not there.
    let key = |kind: &str, axes: &[AxisId]| {
        let real = axes.iter().filter(|a| c.value(c.job.layout.axis(**a).size) > 1.0);
        let names: Vec<_> = real.map(|a| c.job.layout.axis(*a).name.as_str()).collect();
        format!("{kind}@{}", names.join("+"))
    };
    for id in unit.forward.iter().chain(&unit.backward).chain(&unit.update) {
        let step = &c.sharded.flow[*id];
        let StepKind::Collective(x) = &step.kind else { continue };
        let after_update = step.phase == Phase::Update && x.purpose == Purpose::GatherParam;
        if x.kind == CollectiveKind::Slice || after_update || ranks(&x.axes) <= 1.0 {
            continue;
        }
        *wire.entry(key(x.kind.name(), &x.axes)).or_default() += sent(x.kind.name(), c.value(x.bytes), ranks(&x.axes));
    }
    for param in &unit.params {
        let value = c.job.ops.params[param.param as usize].value;
        let is_gain = c.job.ops.ops().any(|(_, op)| {
            matches!(op.kind, OpKind::Norm { kind: NormKind::Rms, .. }) && op.inputs[1..].contains(&value)
        });
        if is_gain && ranks(&param.grad_axes) > 1.0 {
            // The partitioner sums the gradients of gains in fp32.
            let bytes = 2.0 * c.value(param.elements);
            *wire.entry(key("all-reduce", &param.grad_axes)).or_default() +=
                sent("all-reduce", bytes, ranks(&param.grad_axes));
        }
    }
    wire
}

#[track_caller]
fn agrees(case: &str, text: &str) {
    let checked = compile::clean(text);
    let ours = wire(&checked.compiled(&[]));
    let theirs = expected(&cases()[case].1);
    assert!(!theirs.is_empty(), "{case} moves nothing");
    assert!(same(&as_halves(&ours), &as_halves(&theirs)), "{case}: ours {ours:?}, theirs {theirs:?}");
}

const TP: &str = "shard B over dp\n  shard [N, K, F] over tp";
const SP: &str = "shard B over dp\n  shard [N, K, F] over tp else S\n  store act { keep = gathered }";

#[test]
fn a_block_in_text_moves_what_xla_moves() {
    agrees("block_tp", &job(BLOCK, 1, 4, TP));
    agrees("block_tp_sp", &job(BLOCK, 1, 4, SP));
    agrees("block_dp", &job(BLOCK, 4, 1, TP));
    agrees("block_dp_tp", &job(BLOCK, 2, 4, TP));
    agrees("swiglu_mlp_tp", &job(SWIGLU, 1, 4, TP));
}

/// What Megatron does and one XLA program does not: the two gathered copies are gathered again in the backward.
#[test]
fn gathered_copies_are_gathered_again_unless_kept() {
    let again = SP.replace("\n  store act { keep = gathered }", "");
    let (kept, again) = (compile::clean(&job(BLOCK, 1, 4, SP)), compile::clean(&job(BLOCK, 1, 4, &again)));
    let (kept, again) = (wire(&kept.compiled(&[])), wire(&again.compiled(&[])));
    // h and h2, each 8 · 16 · 64 in bf16, three quarters of which come from elsewhere.
    let more = again["all-gather@tp"] - kept["all-gather@tp"];
    assert!((more - 2.0 * 0.75 * 16384.0).abs() < 0.5, "{more}");
    assert_eq!(kept["reduce-scatter@tp"].to_bits(), again["reduce-scatter@tp"].to_bits());
}

/// Top-2 of 8 experts of width 128, chosen by scores that come with the data, as the cases' one-hot masks do.
fn experts(dp: u32) -> String {
    format!(
        "edition 1
model Case() {{
  dims {{ H = 64, E = 8, M = 128, V = 32 }}
  input tokens[B: seq, S: tok]
  input scores[B, S, E]
  region embed {{ x[B, S, H] = embed(tokens, param wte[V, H]) }}
  repeat layer = 1 {{
    route = select_experts(scores, over = E, k = 2)
    t[E, T, H] = dispatch(x, route)
    a[E, T, M] = gelu(t @ param w1[E, H, M])
    u[E, T, H] = a @ param w2[E, M, H]
    x[B, S, H] = combine(u, route)
  }}
  region head {{
    logits[B, S, V] = x @ param w_out[H, V]
    loss = cross_entropy(logits, over = V)
  }}
}}
cluster Box(n: Int) {{
  level node = n of H100_SXM over NVLink4 {{ topology = switch }}
}}
layout L(ep: Int = 4, dp: Int = devices / ep) {{
  mesh [dp, ep]
  shard B over [dp, ep]
  in layer.* {{ shard E over ep }}
}}
train case {{
  model = Case(), cluster = Box(n = {devices}), layout = L()
  batch = 8 seq, sequence = 16 tok, micro_batch = {micro} seq
  precision = bf16_pure, optimizer = AdamW
}}
",
        devices = 4 * dp,
        micro = 2 / dp,
    )
}

/// Tokens to experts and back, forward and backward; the gradients of experts over the ranks that have the same ones.
#[test]
fn experts_in_text_move_what_xla_moves() {
    agrees("moe_ep", &experts(1));
    agrees("moe_dp_ep", &experts(2));
}

/// The comparison can fail: half of the rules do not give the collectives of all of them.
#[test]
fn another_layout_does_not_agree() {
    let checked = compile::clean(&job(BLOCK, 1, 4, "shard B over dp\n  shard [N, K] over tp"));
    let ours = wire(&checked.compiled(&[]));
    assert!(!same(&as_halves(&ours), &as_halves(&expected(&cases()["block_tp"].1))));
}
