//! Passes over the partitioned program: what each finds, by hand, and its law over random layouts.

use crate::llama::{Setup, extent};
use parc::layout::{AttentionMethod, AttentionVia, Class, Hold, Pass, RecomputeWhat, Scope};
use parc::optimize::{Context, Moved, Outcome, run};
use parc::partition::{CollectiveKind, Phase, ShardedGraph, StepKind, text, verify};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

const DECODER: usize = 1;
const HEAD: usize = 2;

fn pass(s: &mut Setup, sharded: &ShardedGraph, pass: Pass) -> (ShardedGraph, Outcome) {
    let context = Context { graph: &s.graph, layout: &s.layout, bytes: &s.bytes };
    let (after, outcome) = run(pass, sharded.clone(), context, &mut s.exprs);
    let broken = verify(&s.graph, &s.layout, &after);
    assert!(broken.is_empty(), "{pass:?}: {broken:?}");
    (after, outcome)
}

/// Bytes of the residual stream of one data-parallel rank.
fn residual(dp: f64) -> f64 {
    extent("B") / dp * extent("S") * extent("H") * 2.0
}

fn kinds(moved: &[Moved]) -> Vec<(usize, Phase, CollectiveKind)> {
    moved.iter().map(|m| (m.unit as usize, m.phase, m.collective.kind)).collect()
}

/// Recomputing a layer to its end makes the second product of the MLP, its sum over `tp` and the addition to the
/// residual for nobody: the backward needs none of them.
#[test]
fn what_runs_again_stops_at_the_last_value_that_is_needed() {
    let mut s = Setup::llama(&[("dp", 2), ("tp", 4)]).shard("B", "dp", "").shard("N K F V", "tp", "");
    s = s.recompute("", RecomputeWhat::All);
    let sharded = s.sharded();
    let all_reduce = format!("all-reduce tp {}", residual(2.0));
    assert_eq!(s.collectives(&sharded, &sharded.units[DECODER].backward), vec![all_reduce.clone(); 4]);
    let (after, outcome) = pass(&mut s, &sharded, Pass::DropUnused);
    assert_eq!(s.collectives(&after, &after.units[DECODER].backward), vec![all_reduce; 3]);
    assert_eq!(kinds(&outcome.removed), [(DECODER, Phase::Backward, CollectiveKind::AllReduce)]);
    assert_eq!(outcome.dropped, [(DECODER as u32, 2)], "the product and the addition");
    assert!(outcome.added.is_empty());
    // Without recomputation nothing is for nobody.
    s.layout.recompute.clear();
    let sharded = s.sharded();
    assert!(pass(&mut s, &sharded, Pass::DropUnused).1.is_nothing());
}

/// With sequence parallelism and recomputation the inputs of both halves of a layer are gathered to run again and once
/// more for the gradients of the weights.
#[test]
fn a_copy_gathered_to_run_again_serves_the_backward() {
    let mut s = Setup::llama(&[("dp", 2), ("tp", 4)]).shard("B", "dp", "").shard("N K F V", "tp", "S");
    s = s.recompute("", RecomputeWhat::All);
    let sharded = s.sharded();
    let gathers = |s: &Setup, g: &ShardedGraph| {
        let all = s.collectives(g, &g.units[DECODER].backward);
        all.iter().filter(|c| c.starts_with("all-gather")).count()
    };
    // Again: 2. Gradients of results: 2. Inputs for gradients of weights: 2.
    assert_eq!(gathers(&s, &sharded), 6);
    let (after, outcome) = pass(&mut s, &sharded, Pass::ShareCopies);
    assert_eq!(gathers(&s, &after), 4);
    assert_eq!(kinds(&outcome.removed), [(DECODER, Phase::Backward, CollectiveKind::AllGather); 2]);
    let longer: Vec<_> = outcome.longer.iter().map(|(u, b)| (*u as usize, s.number(*b))).collect();
    assert_eq!(longer, [(DECODER, residual(2.0)); 2]);
    let more = s.number(after.units[DECODER].transient) - s.number(sharded.units[DECODER].transient);
    assert!((more - 2.0 * residual(2.0)).abs() < 0.5, "{more}");
}

/// The rules of the whole layout let the embedding rest whole; the layers want it cut along the sequence.
#[test]
fn a_sum_of_which_each_rank_uses_a_piece_is_scattered() {
    let mut s = Setup::llama(&[("tp", 4)]).shard("N K F V", "tp", "");
    s.graph.units[DECODER].count = 1;
    let mut inside = s.layout.rules[0].clone();
    inside.scope = Setup::new(&[]).recompute("decoder.**", RecomputeWhat::None).layout.recompute[0].scope.clone();
    if let parc::layout::Action::Shard { otherwise, .. } = &mut inside.action {
        otherwise.push("S".into());
    }
    s.layout.rules.push(inside);
    let sharded = s.sharded();
    let (after, outcome) = pass(&mut s, &sharded, Pass::ScatterSums);
    assert_eq!(
        kinds(&outcome.removed),
        [(0, Phase::Forward, CollectiveKind::AllReduce)],
        "{}",
        text(&sharded, &s.graph, &s.layout)
    );
    assert_eq!(kinds(&outcome.added), [(0, Phase::Forward, CollectiveKind::ReduceScatter)]);
    assert_eq!(s.collectives(&after, &after.units[0].forward), [format!("reduce-scatter tp {}", residual(1.0))]);
    assert_eq!(outcome.added[0].collective.bytes, outcome.removed[0].collective.bytes, "the same node");
    assert!(after.units[HEAD].forward.len() <= sharded.units[HEAD].forward.len());
}

/// A layout at random.
#[derive(Clone, Debug)]
struct Point {
    mesh: Vec<(&'static str, i64)>,
    split: Vec<&'static str>,
    otherwise: &'static str,
    stored: usize,
    hold: Hold,
    context: Option<AttentionMethod>,
    recompute: usize,
    keep: bool,
}

fn point() -> impl Strategy<Value = Point> {
    let sizes = (select(vec![1, 2, 4]), select(vec![1, 2]), select(vec![1, 2, 4]));
    let context = select(vec![
        None,
        Some(AttentionMethod::Ring),
        Some(AttentionMethod::AllGather),
        Some(AttentionMethod::AllToAll),
    ]);
    let hold = select(vec![Hold::Layer, Hold::Microbatch, Hold::Step]);
    let split = subsequence(vec!["N K", "F", "V"], 0..=3);
    (sizes, split, select(vec!["", "S", "H"]), 0..4_usize, hold, context, 0..4_usize, any::<bool>()).prop_map(
        |((dp, cp, tp), split, otherwise, stored, hold, context, recompute, keep)| Point {
            mesh: vec![("dp", dp), ("cp", cp), ("tp", tp)],
            split,
            otherwise,
            stored,
            hold,
            context,
            recompute,
            keep,
        },
    )
}

impl Point {
    fn setup(&self) -> Setup {
        let mut s = Setup::llama(&self.mesh).shard("B", "dp", "");
        if let Some(method) = self.context {
            s = s.shard("S", "cp", "");
            let (axes, scope, span) = (vec![s.axis("cp")], Scope::default(), crate::llama::span(7));
            s.layout.attention.push(AttentionVia { axes, scope, method, zigzag: true, span });
        }
        let dims = self.split.join(" ");
        if !dims.is_empty() {
            s = s.shard(&dims, "tp", self.otherwise);
        }
        s = s.store(&[Class::State, Class::Grad, Class::Param][..self.stored], "dp", self.hold);
        s = match self.recompute {
            0 => s,
            1 => s.recompute("", RecomputeWhat::All),
            2 => s.recompute("**.attention.core", RecomputeWhat::All),
            _ => s.recompute("", RecomputeWhat::Values(vec!["h".into(), "a".into()])),
        };
        if self.keep { s.keep_gathered() } else { s }
    }
}

/// Bytes one rank sends, with rings, each unit once.
fn sent(s: &Setup, sharded: &ShardedGraph) -> f64 {
    let mut total = 0.0;
    for step in sharded.flow.node_weights() {
        let StepKind::Collective(c) = &step.kind else { continue };
        let n: f64 = c.axes.iter().map(|a| s.number(s.layout.axis(*a).size)).product();
        let ring = (n - 1.0) / n;
        total += s.number(c.bytes)
            * match c.kind {
                CollectiveKind::AllReduce => 2.0 * ring,
                CollectiveKind::Slice => 0.0,
                CollectiveKind::Permute => 1.0,
                CollectiveKind::AllGather | CollectiveKind::ReduceScatter | CollectiveKind::AllToAll => ring,
            };
    }
    total
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// No pass sends more, keeps more or works more than before; done twice it does nothing more.
    #[test]
    fn passes_keep_their_laws(point in point()) {
        let mut s = point.setup();
        let (mut sharded, said) = s.run();
        prop_assume!(said.is_empty());
        for p in Pass::ALL {
            let (after, outcome) = pass(&mut s, &sharded, p);
            prop_assert!(sent(&s, &after) <= sent(&s, &sharded) + 0.5, "{p:?} sends more");
            prop_assert!(after.flow.node_count() <= sharded.flow.node_count(), "{p:?} makes steps");
            for (a, b) in after.units.iter().zip(&sharded.units) {
                prop_assert!(a.saved.len() <= b.saved.len(), "{p:?} keeps more");
            }
            if p == Pass::ShareCopies {
                prop_assert!(outcome.added.is_empty(), "{p:?} adds a collective");
            }
            let (again, second) = pass(&mut s, &after, p);
            prop_assert!(second.is_nothing(), "{p:?} twice: {:?}", second.removed);
            prop_assert_eq!(text(&again, &s.graph, &s.layout), text(&after, &s.graph, &s.layout));
            sharded = after;
        }
    }
}
