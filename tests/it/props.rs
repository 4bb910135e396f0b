//! Laws over random layouts of a small Llama: what must hold of every prediction, whatever the sizes.

use crate::compile;
use parc::analyse::Compiled;
use parc::emit::plan::Plan;
use parc::expr;
use proptest::prelude::*;
use proptest::sample::select;

/// A layout and a job: 24 layers, H = 512, 16 heads, 8 key heads, F = 1536, V = 4096.
#[derive(Copy, Clone, Debug)]
struct Point {
    tp: i64,
    pp: i64,
    dp: i64,
    micro: i64,
    /// Microbatches a rank.
    m: i64,
    zero: usize,
    sp: bool,
    recompute: usize,
    schedule: usize,
}

const SCHEDULES: [&str; 4] = ["gpipe", "one_f_one_b", "interleaved(2)", "interleaved(3)"];
const STORES: [&str; 4] = ["", "state", "[state, grad]", "[state, grad, param]"];
const RECOMPUTE: [&str; 4] =
    ["", "recompute all", "in **.attention.core { recompute all }", "in [**.attention, **.mlp] { recompute [h] }"];

impl Point {
    fn chunks(&self) -> i64 {
        if self.schedule >= 2 { self.schedule as i64 } else { 1 }
    }

    /// Interleaving needs stages, and whole groups of them.
    fn legal(&self) -> bool {
        self.chunks() == 1 || self.pp > 1 && self.m % self.pp == 0
    }

    fn text(&self) -> String {
        self.with_dims("N", "K", "D", "F")
    }

    /// With other names for the dimensions of the block.
    fn with_dims(&self, n: &str, k: &str, d: &str, f: &str) -> String {
        let store = if self.zero == 0 { String::new() } else { format!("store {} over dp", STORES[self.zero]) };
        format!(
            "edition 1
model Small() {{
  dims {{ H = 512, {n} = 16, {k} = 8 for {n}, {d} = 32, {f} = 1536, V = 4096 }}
  input tokens[B: seq, S: tok]
  region embed {{ x[B, S, H] = embed(tokens, param wte[V, H]) }}
  repeat decoder = 24 {{
    region attention {{
      h = rms_norm(x, param norm[H])
      q[B, S, {n}, {d}] = h @ param wq[H, {n}, {d}]
      k[B, S, {k}, {d}] = h @ param wk[H, {k}, {d}]
      v[B, S, {k}, {d}] = h @ param wv[H, {k}, {d}]
      region core {{ o[B, S, {n}, {d}] = attention(q, k, v, causal = true) }}
      x = x + (o @ param wo[{n}, {d}, H])
    }}
    region mlp {{
      h = rms_norm(x, param norm[H])
      a[B, S, {f}] = silu(h @ param w_gate[H, {f}]) * (h @ param w_up[H, {f}])
      x = x + (a @ param w_down[{f}, H])
    }}
  }}
  region head {{
    logits[B, S, V] = rms_norm(x, param norm[H]) @ param w_out[H, V]
    loss = cross_entropy(logits, over = V)
  }}
}}
cluster Box(n: Int) {{
  level node = 4 of H100_SXM over NVLink4 {{ topology = switch }}
  level pod = n of node over 4 * IB_NDR {{ topology = fat_tree(rails = 4) }}
}}
layout L(tp: Int = {tp}, pp: Int = {pp}, dp: Int = {dp}) {{
  mesh [pp, dp, tp]
  shard B over dp
  shard [{n}, {k}, {f}, V] over tp {sp}
  {store}
  pipeline over pp {{ schedule = {schedule}, split = even }}
  {recompute}
}}
train j {{
  model = Small(), cluster = Box(n = {nodes}), layout = L()
  batch = {batch} seq, sequence = 256 tok, micro_batch = {micro} seq
}}
",
            tp = self.tp,
            pp = self.pp,
            dp = self.dp,
            sp = if self.sp { "else S" } else { "" },
            schedule = SCHEDULES[self.schedule],
            recompute = RECOMPUTE[self.recompute],
            nodes = self.tp * self.pp * self.dp / 4,
            batch = self.m * self.micro * self.dp,
            micro = self.micro,
        )
    }
}

fn point() -> impl Strategy<Value = Point> {
    let sizes = (select(vec![1, 2, 4]), select(vec![1, 2, 4]), select(vec![4, 8]), select(vec![1, 2, 3]));
    (sizes, select(vec![1, 2, 4, 8, 12]), 0..4usize, any::<bool>(), 0..4usize, 0..4usize)
        .prop_map(|((tp, pp, dp, micro), m, zero, sp, recompute, schedule)| Point {
            tp,
            pp,
            dp,
            micro,
            m,
            zero,
            sp,
            recompute,
            schedule,
        })
        .prop_filter("a legal schedule", Point::legal)
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

fn plan(p: &Point) -> Plan {
    compile::clean(&p.text()).report(&[])
}

fn peak(plan: &Plan) -> u64 {
    plan.memory.stages.iter().map(|s| s.total).max().unwrap_or(0)
}

fn at_rest(plan: &Plan) -> u64 {
    plan.memory.stages.iter().map(|s| s.params + s.grads + s.state).max().unwrap_or(0)
}

/// `text` with its declarations, and the items of its layout and its job, in another order.
fn in_another_order(text: &str, order: &[usize]) -> String {
    let mut next = order.iter().copied().cycle();
    let mut shuffle = |mut list: Vec<String>| {
        let mut out = Vec::new();
        while !list.is_empty() {
            out.push(list.swap_remove(next.next().unwrap_or(0) % list.len()));
        }
        out
    };
    let (edition, rest) = text.split_once('\n').unwrap();
    let mut declarations = Vec::new();
    for declaration in rest.split("\n}\n").filter(|d| !d.trim().is_empty()) {
        let (head, items) = declaration.split_once('\n').unwrap();
        let mut items: Vec<String> = items.lines().map(str::to_owned).collect();
        if head.starts_with("layout") || head.starts_with("train") {
            items = shuffle(items);
        }
        declarations.push(format!("{head}\n{}\n}}\n", items.join("\n")));
    }
    format!("{edition}\n{}", shuffle(declarations).concat())
}

/// Every number the evaluator gives, with the counts of the point.
fn roots(c: &Compiled<'_>) -> Vec<expr::Id> {
    c.roots.all()
}

proptest! {
    #![proptest_config(config(48))]

    #[test]
    fn predictions_are_sound(p in point()) {
        let checked = compile::clean(&p.text());
        let c = checked.compiled(&[]);
        for (id, v) in roots(&c).iter().zip(c.graph.eval(&c.inputs, &roots(&c))) {
            prop_assert!(v.is_finite() && v > 0.0, "root {id:?} is {v}");
        }
        let plan = checked.report(&[]);
        // Utilisation below 1, memory above the parameters, parts add up, and every layer is somewhere once.
        prop_assert!(plan.time.mfu < 1.0 && plan.time.hfu >= plan.time.mfu - 1e-12 && plan.time.hfu < 1.0);
        let parts: f64 = plan.time.parts.iter().map(|x| x.1).sum();
        prop_assert!((parts - plan.time.step).abs() <= 1e-9 * plan.time.step, "{:?}", plan.time);
        prop_assert!(plan.time.parts.iter().all(|x| x.1.is_finite() && x.1 >= 0.0));
        prop_assert_eq!(plan.memory.stages.iter().map(|s| s.layers).sum::<u64>(), 24);
        prop_assert_eq!(plan.pipeline.chunks.len() as i64, p.pp * p.chunks());
        let of_unit = |u: usize| plan.pipeline.chunks.iter().map(|x| x.units[u]).sum::<u64>();
        prop_assert_eq!((of_unit(0), of_unit(1), of_unit(2)), (1, 24, 1));
        for s in &plan.memory.stages {
            let sum = s.params + s.gathered + s.grads + s.state + s.activations + s.transient + s.overhead;
            prop_assert_eq!(sum, s.total);
        }
        for x in &plan.collectives {
            prop_assert!(x.bytes > 0 && x.count > 0 && x.busy > 0.0, "{x:?}");
            prop_assert!(x.exposed >= 0.0 && x.exposed <= x.busy * (1.0 + 1e-9), "{x:?}");
        }
        // The closed forms, of GPipe and 1F1B and of interleaving, against the simulated order.
        let bubble = (p.pp - 1) as f64 / (p.chunks() * p.m) as f64;
        prop_assert!((plan.pipeline.bubble - bubble).abs() < 1e-9, "{} against {bubble}", plan.pipeline.bubble);
    }

    #[test]
    fn memory_falls_with_more_ranks_and_more_sharding(p in point()) {
        let base = plan(&p);
        if p.tp < 4 {
            let more = plan(&Point { tp: 2 * p.tp, ..p });
            prop_assert!(peak(&more) < peak(&base), "tp: {} to {}", peak(&base), peak(&more));
        }
        if p.pp < 4 && p.chunks() == 1 {
            let more = plan(&Point { pp: 2 * p.pp, ..p });
            prop_assert!(at_rest(&more) < at_rest(&base), "pp: {} to {}", at_rest(&base), at_rest(&more));
        }
        if p.zero < 3 {
            let more = plan(&Point { zero: p.zero + 1, ..p });
            prop_assert!(peak(&more) < peak(&base), "zero {}: {} to {}", p.zero, peak(&base), peak(&more));
        }
        if p.recompute == 0 {
            for recompute in 1..4 {
                let more = plan(&Point { recompute, ..p });
                let acts = |x: &Plan| x.memory.stages.iter().map(|s| s.activations).max();
                prop_assert!(acts(&more) < acts(&base), "recompute {recompute}");
                prop_assert!(more.time.step > base.time.step, "recomputation {recompute} is not free");
            }
        }
        let wider = plan(&Point { micro: p.micro + 1, ..p });
        // Small steps last as long as the host needs to issue them.
        prop_assert!(peak(&wider) > peak(&base) && wider.time.step >= base.time.step);
    }

    /// Names are the user's: other names, the same numbers.
    #[test]
    fn renamed_dimensions_change_names_only(p in point()) {
        let (a, b) = (compile::clean(&p.text()), compile::clean(&p.with_dims("Q", "G", "E", "M")));
        let (x, y) = (a.compiled(&[]), b.compiled(&[]));
        prop_assert_eq!(x.graph.len(), y.graph.len());
        prop_assert_eq!(x.graph.eval(&x.inputs, &roots(&x)), y.graph.eval(&y.inputs, &roots(&y)));
        let (a, b) = (a.report(&[]), b.report(&[]));
        let stages = |p: &Plan| p.memory.stages.iter().map(|s| (s.total, s.activations, s.transient)).collect::<Vec<_>>();
        prop_assert_eq!(stages(&a), stages(&b));
        prop_assert_eq!(&a.time.parts, &b.time.parts);
        prop_assert_eq!(a.collectives.len(), b.collectives.len());
        let decoder = |p: &Plan| p.model.decoder.clone();
        prop_assert_eq!(decoder(&a), decoder(&b));
    }

    /// One graph serves every point of its class: sizes are inputs, not constants.
    #[test]
    fn the_graph_of_one_point_gives_the_numbers_of_another(p in point(), q in point()) {
        // The same cluster and the same text but for numbers: that makes a class. An axis of one rank is another.
        let devices = p.tp * p.pp * p.dp;
        let dp = devices / (q.tp * q.pp);
        let other = Point { dp, zero: p.zero, sp: p.sp, recompute: p.recompute, schedule: p.schedule, ..q };
        let one = |a: i64, b: i64| (a == 1) == (b == 1);
        prop_assume!(other.legal() && dp * q.tp * q.pp == devices);
        prop_assume!(one(p.tp, other.tp) && one(p.pp, other.pp) && one(p.dp, other.dp));
        let (a, b) = (compile::clean(&p.text()), compile::clean(&other.text()));
        let (x, y) = (a.compiled(&[]), b.compiled(&[]));
        let names = |c: &Compiled<'_>| c.graph.inputs().iter().map(|i| i.name.clone()).collect::<Vec<_>>();
        prop_assert_eq!(names(&x), names(&y));
        let moved = x.graph.eval(&y.inputs, &roots(&x));
        let fresh = y.graph.eval(&y.inputs, &roots(&y));
        for (m, f) in moved.iter().zip(&fresh) {
            prop_assert!((m - f).abs() <= 1e-12 * f.abs(), "{moved:?} against {fresh:?}");
        }
    }
}

proptest! {
    #![proptest_config(config(12))]

    /// What is declared has no order: other orders, the same plan.
    #[test]
    fn order_of_items_changes_nothing(p in point(), order in proptest::collection::vec(0usize..64, 1..24)) {
        let (a, b) = (compile::clean(&p.text()), compile::clean(&in_another_order(&p.text(), &order)));
        let (x, y) = (a.compiled(&[]), b.compiled(&[]));
        prop_assert_eq!(x.graph.eval(&x.inputs, &roots(&x)), y.graph.eval(&y.inputs, &roots(&y)));
        let (a, b) = (a.report(&[]), b.report(&[]));
        let stages = |p: &Plan| p.memory.stages.iter().map(|s| (s.total, s.activations, s.transient)).collect::<Vec<_>>();
        prop_assert_eq!(stages(&a), stages(&b));
        prop_assert_eq!(&a.time.parts, &b.time.parts);
        let moved = |p: &Plan| p.collectives.iter().map(|c| (c.bytes, c.count, c.exposed)).collect::<Vec<_>>();
        prop_assert_eq!(moved(&a), moved(&b));
    }
}
