//! Work grows with what is distinct in a program, never with how many devices or layers there are.

use crate::compile;
use crate::llama::Setup;
use parc::diagnostics::Sink;
use parc::driver;
use parc::expr::Node;
use parc::graph::{OpKind, ValueRole};
use parc::layout::{Class, Hold};

/// What compiling a job made: a stand-in for its work that no clock disturbs.
#[derive(PartialEq, Eq, Debug)]
struct Work {
    /// Operations of the expression graph. Its constants are shared wherever two sizes happen to be equal.
    nodes: usize,
    /// Its inputs.
    inputs: usize,
    /// Ops of the model.
    ops: usize,
    /// Steps on every rank.
    steps: usize,
    edges: usize,
    /// Conditions.
    obligations: usize,
    duties: usize,
    /// Units, stages, chunks and schedule operations.
    units: usize,
    stages: usize,
    chunks: usize,
    operations: usize,
}

fn text(nodes: u64, layers: u64, batch: u64, store: &str) -> String {
    format!(
        "edition 1
layout L(tp: Int = 2, pp: Int = 2, dp: Int = devices / (tp * pp)) {{
  mesh [pp, dp, tp]
  place tp on cluster.node
  shard B over dp
  shard [N, K, F, V] over tp else S
  {store}
  pipeline over pp {{ schedule = one_f_one_b, split = even }}
  overlap reduce over dp with backward
}}
train j {{
  model = Llama(layers = {layers}, hidden = 4096, heads = 32, kv_heads = 8, ffn = 14336, vocab = 128256)
  cluster = DGX_H100(nodes = {nodes}), layout = L()
  batch = {batch} seq, sequence = 8192 tok
}}
"
    )
}

fn work(text: &str) -> Work {
    let checked = compile::clean(text);
    let c = checked.compiled(&[]);
    let operations = (0..c.schedule.orders.ranks()).map(|s| c.schedule.orders.order(s).len()).sum();
    Work {
        nodes: c.graph.ids().filter(|id| !matches!(c.graph.node(*id), Node::Int(_) | Node::Real(_))).count(),
        inputs: c.graph.inputs().len(),
        ops: c.job.ops.ops().count(),
        steps: c.sharded.flow.node_count(),
        edges: c.sharded.flow.edge_count(),
        obligations: c.sharded.obligations.len(),
        duties: c.job.duties.len(),
        units: c.job.ops.units.len(),
        stages: c.facts.stages.len(),
        chunks: c.facts.chunks.len(),
        operations,
    }
}

const STORES: [&str; 2] = ["store state over dp", "store [param, grad, state] over dp"];

/// Steps, edges, conditions and schedule operations are the same. Expressions are not quite: their ranges follow the
/// sizes, so on a pod of one node what crosses nodes folds away and on a huge batch some become Real a step earlier. Met
/// with ZeRO-1: 2,801 on one node, 3,188 on two; an eighth is allowed, 2^37 times more is not.
#[test]
fn a_million_devices_are_no_more_work_than_eight() {
    for store in STORES {
        // Four microbatches a rank each time.
        let sized = |nodes: u64| work(&text(nodes, 32, nodes * 8 / 4 * 4, store));
        let few = sized(2);
        for nodes in [1, 3, 100, 512, 131_071, 131_072, 1 << 30, 1 << 37] {
            let found = sized(nodes);
            let apart = found.nodes.abs_diff(few.nodes);
            assert!(apart * 8 <= few.nodes, "{nodes} nodes: {found:?}, {few:?}");
            assert_eq!(Work { nodes: few.nodes, ..found }, few, "{} devices, {store}", nodes * 8);
        }
    }
}

#[test]
fn ten_thousand_layers_are_no_more_work_than_thirty_two() {
    for store in STORES {
        let small = work(&text(1, 34, 16, store));
        for layers in [998, 10_000, 999_998] {
            assert_eq!(work(&text(1, layers, 16, store)), small, "{layers} layers, {store}");
        }
    }
}

/// The counters see work: another region, another stage, more microbatches.
#[test]
fn the_counters_count() {
    let base = text(1, 32, 16, STORES[0]);
    let small = work(&base);
    let replaced = work(&base.replace(", split = even", ", split = even }\n  in **.mlp { recompute all"));
    assert!(replaced.steps > small.steps);
    assert!(work(&base.replace("batch = 16", "batch = 64")).operations > small.operations);
    assert!(work(&base.replace("pp: Int = 2", "pp: Int = 4")).stages > small.stages);
}

/// `parc check` alone, on the largest cluster there may be, and on one larger.
#[test]
fn the_limit_on_devices_is_a_diagnostic() {
    let largest = compile::clean(&text(1 << 37, 32, (1 << 38) * 4, STORES[0]));
    let mut sink = Sink::new();
    let job = largest.job();
    let ok = driver::check_job(&largest.program, &largest.sources, job, &compile::settings(&[]), &mut sink);
    let said = sink.finish();
    assert!(ok && said.is_empty(), "{said:?}");
    for nodes in [(1u64 << 37) + 1, 1 << 50, u64::MAX >> 2] {
        let said = compile::check(&text(nodes, 32, 64, STORES[0])).attempt(&[]).expect_err("too many devices");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

/// Twice the layers, all of them different, are twice the steps, tensors, edges, conditions and expressions.
#[test]
fn graph_work_is_linear_in_ops() {
    let counts = |layers: usize| -> [usize; 6] {
        let mut s = Setup::new(&[("dp", 2), ("tp", 4)]);
        s.start("embed", 1, false);
        let tokens = s.value("tokens", "B S", ValueRole::Input);
        let wte = s.param("wte", "V H");
        let mut x = s.op("x", "B S H", OpKind::Embed { over: s.dim("V"), bag: None }, &[tokens, wte]);
        for _ in 0..layers {
            s.start("decoder", 1, true);
            x = s.layer(x);
        }
        let loss = s.value("loss", "", ValueRole::Loss);
        let over = Some(s.dim("H"));
        s.produce(OpKind::CrossEntropy { over, chunks: 1 }, &[x], loss);
        let mut s = s.shard("B", "dp", "").shard("N K F V", "tp", "S").store(&[Class::State], "dp", Hold::Layer);
        let sharded = s.sharded();
        let saved = sharded.units.iter().map(|u| u.saved.len()).sum();
        let (steps, edges) = (sharded.flow.node_count(), sharded.flow.edge_count());
        [s.graph.ops().count(), steps, edges, sharded.tensors.len(), saved, s.exprs.ids().count()]
    };
    let [one, two, four] = [4, 8, 16].map(counts);
    for at in 0..one.len() {
        let (first, second) = (two[at] - one[at], four[at] - two[at]);
        // Expressions are shared: the same layer again adds next to none.
        assert!(second <= 2 * first, "{one:?} {two:?} {four:?}");
        if at < 5 {
            assert_eq!(second, 2 * first, "{one:?} {two:?} {four:?}");
        }
    }
}
