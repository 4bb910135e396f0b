//! Every construct of models, elaborated: which units, parameters and ops come of it.

use parc::diagnostics::{Sink, render};
use parc::driver;
use parc::elaborate::library_model;
use parc::eval::{Evaluator, Value};
use parc::expr::Graph;
use parc::graph::{OpGraph, OpKind, text, verify};
use parc::hir::Entry;
use parc::resolve::RootFile;
use parc::source::{MemoryWorld, Sources};

/// The model `M` of `source`, or what was said.
fn elaborated(source: &str) -> Result<(OpGraph, Graph), String> {
    let source = format!("edition 1\n{source}");
    let world = MemoryWorld::new([("main.par", source)]);
    let (mut sources, mut sink) = (Sources::new(), Sink::new());
    let root = RootFile { shown: "main.par".into(), path: "main.par".into() };
    let program = driver::front(&mut sources, &world, &[root], &mut sink);
    let is_model = |e: &Entry| e.name().text == "M";
    let found = program.entries(program.roots[0]).find(|(_, e)| is_model(e)).map(|(id, _)| id);
    let mut graph = Graph::new();
    let ops = found.and_then(|id| {
        let mut eval = Evaluator::new(&program, &mut graph, &mut sink);
        match eval.entry(id, program.entry(id).name().span) {
            Value::Instance(i) => library_model(&mut eval, &i),
            _ => None,
        }
    });
    let said = sink.finish();
    match ops {
        Some(ops) if said.is_empty() => Ok((ops, graph)),
        _ => Err(render::short(&said, &sources)),
    }
}

#[track_caller]
fn model(body: &str) -> (OpGraph, Graph) {
    let (ops, graph) = elaborated(&format!("unit img\nmodel M {{\n{body}\n}}")).unwrap_or_else(|said| panic!("{said}"));
    assert_eq!(verify(&ops), Vec::<String>::new(), "{}", text(&ops));
    (ops, graph)
}

fn params(of: &(OpGraph, Graph)) -> u64 {
    of.0.params(&of.1, &|_| true)
}

fn units(ops: &OpGraph) -> Vec<(&str, i64)> {
    ops.units.iter().map(|u| (u.name.as_str(), u.count)).collect()
}

const HEAD: &str = "dims { H = 8, F = 32, V = 100, N = 2, D = 4 }
  input tokens[B: seq, S: tok]
  region embed { x[B, S, H] = embed(tokens, param wte[V, H]) }";

const LOSS: &str = "region head { logits[B, S, V] = x @ embed.wte
    loss = cross_entropy(logits, over = V) }";

/// Gemma's pattern: five layers see a window, the sixth everything. Runs of equal iterations are units.
#[test]
fn iterations_with_equal_bodies_are_one_unit() {
    let m = model(&format!(
        "{HEAD}
  repeat decoder = 9 as i {{
    q[B, S, N, D] = x @ param wq[H, N, D]
    o[B, S, N, D] = attention(q, q, q, causal = true, window = if i mod 6 == 5 then none else 4 tok)
    x[B, S, H] = o @ param wo[N, D, H]
  }}
  {LOSS}"
    ));
    assert_eq!(units(&m.0), [("embed", 1), ("decoder", 5), ("decoder", 1), ("decoder", 3), ("head", 1)]);
    assert_eq!(params(&m), 800 + 9 * 2 * 64);
    let paths: Vec<_> = m.0.params.iter().map(|p| p.path.as_str()).collect();
    assert_eq!(paths[1..5], ["decoder.0.wq", "decoder.0.wo", "decoder.5.wq", "decoder.5.wo"]);
    let windows = m.0.ops().filter(|(_, o)| matches!(&o.kind, OpKind::Attention(a) if a.window.is_some())).count();
    assert_eq!(windows, 2);
}

#[test]
fn equal_iterations_with_a_number_are_elaborated_once() {
    let m = model(&format!("{HEAD}\n  repeat decoder = 100 as i {{ x = x + silu(x) * 2 }}\n  {LOSS}"));
    assert_eq!(units(&m.0), [("embed", 1), ("decoder", 100), ("head", 1)]);
}

/// A repeat in a region is a unit of its own; one in a repeat is written out.
#[test]
fn repeats_nest() {
    let m = model(&format!(
        "{HEAD}
  region tower {{
    x = x + param first[H]
    repeat layers = 4 {{
      repeat half = 2 {{ x = rms_norm(x, param gain[H]) }}
      x = x * 0.5
    }}
    x = rms_norm(x, param last[H])
  }}
  {LOSS}"
    ));
    assert_eq!(units(&m.0), [("embed", 1), ("tower", 1), ("tower.layers", 4), ("tower", 1), ("head", 1)]);
    assert_eq!(params(&m), 800 + 8 + 4 * 2 * 8 + 8);
    let paths: Vec<_> = m.0.params.iter().map(|p| p.path.as_str()).collect();
    assert_eq!(paths[2..4], ["tower.layers.half.0.gain", "tower.layers.half.1.gain"]);
}

/// Images of patches go through a text layer: B and I ride along, the block sees P as its S and Hv as its H.
#[test]
fn dimensions_a_block_does_not_name_ride_along() {
    let m = model(&format!(
        "{HEAD}
  dims {{ C = 588, Hv = 16, Nv = 2, Dv = 8, Fv = 64 }}
  input images[B, I: img, P: tok, C]
  region vision {{
    dims {{ Pm = P / 4 }}
    p[B, I, P, Hv] = images @ param w_patch[C, Hv]
    repeat layers = 3 {{ p = GPTLayer(p, S = P, H = Hv, N = Nv, D = Dv, F = Fv) }}
    z[B, I, Pm, H] = merge_patches(p, P = Pm) @ param w_proj[Hv, H]
  }}
  x = scatter(x, z, over = S)
  {LOSS}"
    ));
    // A layer is 12·H² + 13·H with F = 4·H.
    assert_eq!(params(&m), 800 + 588 * 16 + 3 * (12 * 256 + 13 * 16) + 16 * 8);
}

/// Naumov et al. 2019 (arXiv 1906.00091): tables of unlike lengths.
#[test]
fn a_ragged_table_has_the_rows_of_all() {
    let m = model(
        "dims { T = 3, R[T] = [40, 30, 7], W = 4, G = 1 + T, O = 16 }
  input dense[B: seq, W]
  input ids[B: seq, T, L: tok]
  e[B, T, W] = embed_bag(ids, param tables[T, R, W], over = L)
  c[B, G, W] = concat(dense, e, over = G)
  z[B, O] = interact(c, over = [G, W], out = O)
  y[B] = z @ param w[O]
  loss = binary_cross_entropy(y)",
    );
    assert_eq!(params(&m), 77 * 4 + 16);
}

#[test]
fn numbers_losses_and_shapes() {
    let m = model(&format!(
        "{HEAD}
  dims {{ H2 = 2 * H, G = N * D }}
  y[B, S, H2] = concat(x, 1 - x / sqrt(D), over = H2)
  x[B, S, H] = sigmoid(2 * y + 1) @ param w[H2, H]
  s[B, S, N, D] = split(x, H = [N, D])
  t[B, S, G] = merge(tanh(s), G = [N, D])
  x = x + rename(t, G = H) + rms_norm(x, over = H)
  {LOSS}
  repeat mtp = 2 {{
    e[B, S, H] = embed(shift(tokens, 1), embed.wte)
    x = layer_norm(x + e, param g[H])
    l2[B, S, V] = x @ embed.wte
    loss = loss + 0.3 * cross_entropy(l2, over = V, chunks = 4)
  }}"
    ));
    assert_eq!(params(&m), 800 + 128 + 2 * 8);
    assert_eq!(units(&m.0).last(), Some(&("mtp", 2)));
}

#[test]
fn pieces_must_make_up_the_whole() {
    let said = elaborated(&format!(
        "model M {{ {HEAD}\n  dims {{ H3 = 3 * H }}\n  y[B, S, H3] = concat(x, x, over = H3)\n  {LOSS} }}"
    ));
    let said = said.map(|m| text(&m.0)).unwrap_err();
    assert!(said.contains("H + H = 8 + 8 = 16, `H3` = 24"), "{said}");
}

#[test]
fn an_operator_of_ones_own_states_its_numbers() {
    let (ops, graph) = elaborated(&format!(
        "op retention(q[B, S, N, D], k[B, S, N, D], v[B, S, N, D]) -> [B, S, N, D] {{
  flops = 4 FLOP * B * S * N * D * D
  backward_flops = 3 * flops
  saves = [q, v]
  whole = [S]
}}
model M {{ {HEAD}
  q[B, S, N, D] = x @ param wq[H, N, D]
  o[B, S, N, D] = retention(q, q, q)
  x[B, S, H] = o @ param wo[N, D, H]
  {LOSS} }}"
    ))
    .unwrap_or_else(|said| panic!("{said}"));
    let custom = ops.ops().find_map(|(_, o)| if let OpKind::Custom(c) = &o.kind { Some(c) } else { None }).unwrap();
    // One sequence of one token.
    assert_eq!(graph.eval(&[1.0], &[custom.flops, custom.backward_flops]), [128.0, 384.0]);
    assert_eq!((custom.saves.as_slice(), custom.whole.len()), (&[0, 2][..], 1));
}
