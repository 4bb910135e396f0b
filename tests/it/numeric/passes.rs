//! Passes keep what a program computes: each alone, and all one after another.

use super::prove;
use crate::llama::{Setup, span};
use parc::layout::{Action, AttentionMethod, AttentionVia, Class, Hold, Pass, RecomputeWhat, Scope};
use parc::optimize::{Context, run};
use parc::partition::ShardedGraph;

fn llama(mesh: &[(&str, i64)]) -> Setup {
    let extents = [("B", 4), ("S", 4), ("H", 8), ("N", 4), ("K", 4), ("D", 2), ("F", 8), ("V", 8), ("P", 4)];
    Setup::sized(mesh, &extents).with_llama()
}

fn after(s: &mut Setup, pass: Pass, sharded: ShardedGraph) -> ShardedGraph {
    let context = Context { graph: &s.graph, layout: &s.layout, bytes: &s.bytes };
    run(pass, sharded, context, &mut s.exprs).0
}

#[track_caller]
fn holds(mut s: Setup) {
    let ruled = s.sharded();
    let mut all = ruled.clone();
    for pass in Pass::ALL {
        let alone = after(&mut s, pass, ruled.clone());
        prove(&s, &alone);
        all = after(&mut s, pass, all);
    }
    prove(&s, &all);
}

fn tensor_parallel(otherwise: &str) -> Setup {
    llama(&[("dp", 2), ("tp", 2)]).shard("B", "dp", "").shard("N K F V", "tp", otherwise)
}

#[test]
fn of_layers_that_run_again() {
    for otherwise in ["", "S", "H"] {
        holds(tensor_parallel(otherwise));
        holds(tensor_parallel(otherwise).recompute("", RecomputeWhat::All));
        holds(tensor_parallel(otherwise).recompute("**.core", RecomputeWhat::All));
        holds(tensor_parallel(otherwise).recompute("", RecomputeWhat::Values(vec!["h".into(), "a".into()])));
    }
}

/// The embedding rests whole and the layers want it cut: its sum is scattered.
#[test]
fn of_sums_that_are_scattered() {
    let mut s = llama(&[("tp", 2)]).shard("N K F V", "tp", "");
    for unit in &mut s.graph.units {
        unit.count = 1;
    }
    let mut inside = s.layout.rules[0].clone();
    inside.scope = Setup::new(&[]).recompute("decoder.**", RecomputeWhat::None).layout.recompute[0].scope.clone();
    if let Action::Shard { otherwise, .. } = &mut inside.action {
        otherwise.push("S".into());
    }
    s.layout.rules.push(inside);
    holds(s);
}

#[test]
fn of_what_rests_in_pieces() {
    let all = [Class::State, Class::Grad, Class::Param];
    for hold in [Hold::Layer, Hold::Microbatch, Hold::Step] {
        holds(tensor_parallel("S").store(&all, "dp", hold).recompute("", RecomputeWhat::All));
    }
}

#[test]
fn of_a_sequence_in_pieces() {
    for method in [AttentionMethod::Ring, AttentionMethod::AllGather, AttentionMethod::AllToAll] {
        let mut s = llama(&[("dp", 2), ("cp", 2), ("tp", 2)]);
        s = s.shard("B", "dp", "").shard("N K F V", "tp", "S").shard("S", "cp", "");
        s = s.recompute("", RecomputeWhat::All);
        let (axes, scope) = (vec![s.axis("cp")], Scope::default());
        s.layout.attention.push(AttentionVia { scope, axes, method, zigzag: false, span: span(400) });
        holds(s);
    }
}
