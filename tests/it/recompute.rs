//! `recompute ?` against every list of values a user could write, through the ordinary path.

use crate::compile;
use parc::analyse::Compiled;
use parc::emit::plan::RecomputeInfo;

/// 16 layers on four stages, every value of the MLP named, on devices of so many GiB.
fn job(memory: f64, recompute: &str) -> String {
    format!(
        "edition 1
device Card = H100_SXM with {{ memory = {memory} GiB, reserve = 0 GiB }}
model Small() {{
  dims {{ H = 2048, N = 16, D = 128, F = 8192, V = 32000 }}
  input tokens[B: seq, S: tok]
  region embed {{ x[B, S, H] = embed(tokens, param wte[V, H]) }}
  repeat decoder = 16 {{
    region attention {{
      h = rms_norm(x, param norm[H])
      q[B, S, N, D] = h @ param wq[H, N, D]
      k[B, S, N, D] = h @ param wk[H, N, D]
      v[B, S, N, D] = h @ param wv[H, N, D]
      region core {{ o[B, S, N, D] = attention(q, k, v, causal = true) }}
      x = x + (o @ param wo[N, D, H])
    }}
    region mlp {{
      h = rms_norm(x, param norm[H])
      u[B, S, F] = h @ param w_up[H, F]
      g[B, S, F] = h @ param w_gate[H, F]
      a = silu(g) * u
      y[B, S, H] = a @ param w_down[F, H]
      x = x + y
    }}
  }}
  region head {{
    logits[B, S, V] = rms_norm(x, param norm[H]) @ param w_out[H, V]
    loss = cross_entropy(logits, over = V)
  }}
}}
cluster Box() {{
  level node = 8 of Card over NVLink4 {{ topology = switch }}
}}
layout L() {{
  mesh [pp = 4, tp = 2]
  shard [N, F, V] over tp else S
  pipeline over pp {{ schedule = one_f_one_b, split = even }}
  {recompute}
}}
train j {{
  model = Small(), cluster = Box(), layout = L()
  batch = 16 seq, sequence = 8192 tok, micro_batch = 1 seq
}}
"
    )
}

fn step(c: &Compiled<'_>) -> f64 {
    c.value(c.roots.step_time)
}

fn peak(c: &Compiled<'_>) -> f64 {
    c.value(c.roots.peak_memory)
}

#[test]
fn no_list_of_values_that_fits_is_faster() {
    let names = ["h", "u", "g", "a", "y"];
    let mut tried: Vec<(f64, f64)> = Vec::new();
    for set in 0..1_u32 << names.len() {
        let list: Vec<_> = (0..names.len()).filter(|i| set >> i & 1 == 1).map(|i| names[i]).collect();
        let recompute = format!("in **.mlp {{ recompute [{}] }}", list.join(", "));
        let checked = compile::clean(&job(80.0, if list.is_empty() { "" } else { &recompute }));
        let c = checked.compiled(&[]);
        tried.push((peak(&c), step(&c)));
    }
    let (most, least) = tried.iter().fold((0.0_f64, f64::MAX), |(a, b), (p, _)| (a.max(*p), b.min(*p)));
    assert!(most > 1.4 * least, "{most} {least}");
    let (mut before, mut kinds) = (0.0, Vec::new());
    for share in [1.01, 0.8, 0.6, 0.4, 0.2, 0.01] {
        let budget = least + share * (most - least);
        let checked = compile::clean(&job(budget / 1_073_741_824.0, "in **.mlp { recompute ? }"));
        let c = checked.compiled(&[]);
        assert!(c.over() <= 0.0, "at {share}: {} above", c.over());
        let chosen = c.chosen.as_ref().expect("the layout leaves it open");
        assert!(chosen.proved, "at {share}");
        let best = tried.iter().filter(|(p, _)| *p <= budget).map(|(_, s)| *s).fold(f64::MAX, f64::min);
        // A value that only another one needs may be kept too, which no list says: it may do better.
        assert!(step(&c) <= best * (1.0 + 1e-9), "at {share}: {} against {best}", step(&c));
        assert!(step(&c) >= before, "less memory, less time");
        before = step(&c);
        kinds.push(chosen.values.len());
        // What is said to be lost is what the step takes more.
        let (seconds, bytes) = chosen.effect(&c);
        let all = tried[0];
        assert!((step(&c) - all.1 - seconds).abs() <= 1e-6 * all.1, "at {share}: {seconds}");
        assert!(bytes >= all.0 - budget - 1.0, "at {share}: {bytes} saved of {}", all.0 - budget);
    }
    assert_eq!(kinds[0], 0, "all of it fits");
    assert!(kinds.windows(2).any(|w| w[0] != w[1]), "{kinds:?}");
}

#[test]
fn a_layout_that_fits_anyway_makes_nothing_again() {
    let checked = compile::clean(&job(80.0, "recompute ?"));
    let plan = checked.report(&[]);
    assert_eq!(plan.layout.recompute, RecomputeInfo::None);
    let choice = plan.layout.recompute_choice.expect("the layout leaves it open");
    assert!(choice.values.is_empty() && choice.proved && choice.bytes == 0);
}

/// Where not even the smallest choice fits, that one is what the layout is judged by.
#[test]
fn a_layout_that_cannot_fit_is_as_small_as_it_gets() {
    let open = compile::clean(&job(3.5, "recompute ?"));
    let open = open.compiled(&[]);
    let all = compile::clean(&job(3.5, "recompute all"));
    assert!(open.over() > 0.0, "{}", open.over());
    assert!(peak(&open) <= peak(&all.compiled(&[])) * 1.0001);
}
