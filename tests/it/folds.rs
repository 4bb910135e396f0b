//! Folded axes and copied heads against hand calculations: which ranks a group has, what lies where.

use crate::compile::{self, Checked};
use parc::analyse::Compiled;
use parc::partition::AxisUse;

/// A layout of 16 devices with `items` for its mesh and folds.
fn layout(items: &str) -> Checked {
    compile::clean(&format!(
        "edition 1
layout L {{
  {items}
  shard B over dp
  shard S over cp
  shard [N, K, F, V] over tp
  attention over cp via ring(zigzag)
}}
train j {{
  model = Llama3_8B, cluster = DGX_H100(nodes = 2), layout = L
  batch = 16 seq, sequence = 1024 tok
}}
"
    ))
}

/// The ranks of the group of the axis `name` that rank `first` leads, in order.
fn group(c: &Compiled<'_>, name: &str, first: i64) -> Vec<i64> {
    let layout = &c.job.layout;
    let axis = layout.named(layout.find_axis(name).expect("the axis is there"));
    let mut ranks = vec![first];
    for fine in &axis.fine {
        let (size, stride) = (c.value(layout.axis(*fine).size) as i64, c.value(layout.axis(*fine).stride) as i64);
        ranks = ranks.iter().flat_map(|r| (0..size).map(move |i| r + i * stride)).collect();
    }
    ranks
}

/// The worked examples of the language: `mesh [pp = 1, dp = 2, cp = 2, tp = 4]`, rank = ((dp · 2) + cp) · 4 + tp.
#[test]
fn ranks_of_folded_axes() {
    let mesh = "mesh [pp = 1, dp = 2, cp = 2, tp = 4]\n  replicate act over pp\n  fold [dp, cp, tp] as";
    // ep groups are ranks 0–7 and 8–15 (cp × tp), edp pairs rank i with i + 8 (= dp).
    let checked = layout(&format!("{mesh} [edp = 2, ep = 8]"));
    let c = checked.compiled(&[]);
    assert_eq!(group(&c, "ep", 0), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(group(&c, "ep", 8), [8, 9, 10, 11, 12, 13, 14, 15]);
    assert_eq!(group(&c, "edp", 3), [3, 11]);
    // ep = 4 is tp, edp is dp × cp.
    let checked = layout(&format!("{mesh} [edp = 4, ep = 4]"));
    let c = checked.compiled(&[]);
    assert_eq!(group(&c, "ep", 4), group(&c, "tp", 4));
    assert_eq!(group(&c, "edp", 1), [1, 5, 9, 13]);
    // ep = 16 is all of them.
    let checked = layout(&format!("{mesh} [edp = 1, ep = 16]"));
    let c = checked.compiled(&[]);
    assert_eq!(group(&c, "ep", 0), (0..16).collect::<Vec<_>>());
    assert_eq!(group(&c, "edp", 5), [5]);
    // ep = 2 cuts tp.
    let checked = layout(&format!("{mesh} [edp = rest, ep = 2]"));
    let c = checked.compiled(&[]);
    assert_eq!(group(&c, "ep", 0), [0, 1]);
    assert_eq!(group(&c, "edp", 0), [0, 2, 4, 6, 8, 10, 12, 14]);
    assert_eq!(group(&c, "tp", 0), [0, 1, 2, 3]);
    let fine: Vec<_> = c.job.layout.axes.iter().map(|a| a.name.as_str()).collect();
    assert_eq!(fine, ["pp", "dp", "cp", "tp.0", "tp.1"]);
}

/// With `mesh [dp, pp, cp, tp]` the same fold skips over pp: for pp = 2 the first group of ep = 16 is ranks 0–7 and
/// 16–23.
#[test]
fn a_fold_skips_what_it_does_not_list() {
    let checked = compile::clean(
        "edition 1
layout L {
  mesh [dp = 2, pp = 2, cp = 2, tp = 4]
  fold [dp, cp, tp] as [edp, ep = 16]
  shard B over dp
  shard S over cp
  shard [N, K, F, V] over tp
  attention over cp via ring(zigzag)
  pipeline over pp { split = even }
}
train j {
  model = Llama3_8B, cluster = DGX_H100(nodes = 4), layout = L
  batch = 16 seq, sequence = 1024 tok
}
"
        .replace("[edp,", "[edp = rest,")
        .as_str(),
    );
    let c = checked.compiled(&[]);
    let ranks: Vec<i64> = (0..8).chain(16..24).collect();
    assert_eq!(group(&c, "ep", 0), ranks);
}

/// 4 key heads over tp = 8: tp is 4 × 2. The outer part splits them, along the inner one each is copied; their gradients
/// are summed over the inner 2.
#[test]
fn fewer_key_heads_than_ranks() {
    let checked = compile::clean(
        "edition 1
let Grouped = Llama(layers = 2, hidden = 4096, heads = 32, kv_heads = 4, ffn = 14336, vocab = 128256)
layout L(tp: Int = 8) {
  mesh [dp = devices / tp, tp]
  shard B over dp
  shard [N, K, F, V] over tp
}
train j {
  model = Grouped, cluster = DGX_H100(nodes = 1), layout = L()
  batch = 8 seq, sequence = 1024 tok
}
",
    );
    let c = checked.compiled(&[]);
    let (layout, ops) = (&c.job.layout, &c.job.ops);
    let fine = layout.named(layout.find_axis("tp").expect("tp is there")).fine.clone();
    let sizes: Vec<f64> = fine.iter().map(|a| c.value(layout.axis(*a).size)).collect();
    assert_eq!(sizes, [4.0, 2.0]);
    let dim = |name: &str| {
        let at = ops.dims.iter().position(|d| d.name == name).expect("a dimension of the model");
        AxisUse::Split(parc::graph::DimId(at as u32))
    };
    let value = |path: &str| ops.params.iter().find(|p| p.path.ends_with(path)).expect("a parameter").value;
    let on = |path: &str| fine.iter().map(|a| c.sharded.placements[value(path).0 as usize].on(*a)).collect::<Vec<_>>();
    assert_eq!(on("wq"), [dim("N"), dim("N")]);
    assert_eq!(on("wk"), [dim("K"), AxisUse::Whole]);
    // A rank holds one key head: H·D elements.
    let decoder = c.sharded.units.iter().find(|u| u.params.len() > 4).expect("the layer");
    let wk = decoder.params.iter().find(|p| ops.params[p.param as usize].path.ends_with("wk")).expect("wk");
    assert!((c.value(wk.elements) - 4096.0 * 128.0).abs() < 0.5);
    assert!(wk.grad_axes.iter().all(|a| !fine.contains(a)), "its gradient is whole over tp: {:?}", wk.grad_axes);
}
