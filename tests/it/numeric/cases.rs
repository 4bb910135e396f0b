//! The layouts people use, by name: each means what the model means without it.

use super::prove;
use super::random::{Mesh, Model, Piece, model, plain};
use crate::llama::{Setup, span};
use parc::layout::{AttentionMethod, AttentionVia, Class, Hold, RecomputeWhat, Scope, Side};

/// A Llama whose every dimension four ranks divide.
fn llama(mesh: &[(&str, i64)]) -> Setup {
    let extents = [("B", 4), ("S", 4), ("H", 8), ("N", 4), ("K", 4), ("D", 2), ("F", 8), ("V", 8), ("P", 4)];
    Setup::sized(mesh, &extents).with_llama()
}

#[track_caller]
fn holds(mut setup: Setup) {
    let sharded = setup.sharded();
    prove(&setup, &sharded);
}

fn tensor_parallel(otherwise: &str) -> Setup {
    llama(&[("dp", 2), ("tp", 2)]).shard("B", "dp", "").shard("N K F V", "tp", otherwise)
}

#[test]
fn megatron_tensor_parallelism() {
    holds(tensor_parallel(""));
}

#[test]
fn tensor_and_sequence_parallelism() {
    holds(tensor_parallel("S"));
    holds(tensor_parallel("S").keep_gathered());
}

#[test]
fn recomputation_under_sequence_parallelism() {
    holds(tensor_parallel("S").recompute("", RecomputeWhat::All));
    holds(tensor_parallel("S").recompute("**.core", RecomputeWhat::All));
    holds(tensor_parallel("S").recompute("", RecomputeWhat::Values(vec!["h".into(), "g".into(), "u".into()])));
}

/// Each rank has a part of the classes: lookup, logits, maximum, target and sum.
#[test]
fn vocabulary_parallel_embedding_and_loss() {
    holds(llama(&[("tp", 4)]).shard("V", "tp", ""));
    holds(llama(&[("dp", 2), ("tp", 4)]).shard("B", "dp", "").shard("N K V", "tp", "S"));
}

/// A norm over a width that is split sums its statistics.
#[test]
fn a_split_width() {
    holds(llama(&[("tp", 4)]).shard("H", "tp", ""));
}

#[test]
fn context_parallelism_by_each_method() {
    for method in [AttentionMethod::Ring, AttentionMethod::AllGather, AttentionMethod::AllToAll] {
        for keep in [false, true] {
            let mut s = llama(&[("dp", 2), ("cp", 2), ("tp", 2)]);
            s = s.shard("B", "dp", "").shard("N K F V", "tp", "S").shard("S", "cp", "");
            s = if keep { s.keep_gathered() } else { s.recompute("", RecomputeWhat::All) };
            let (axes, scope) = (vec![s.axis("cp")], Scope::default());
            s.layout.attention.push(AttentionVia { scope, axes, method, zigzag: false, span: span(400) });
            holds(s);
        }
    }
}

const ZERO: [&[Class]; 3] = [&[Class::State], &[Class::State, Class::Grad], &[Class::State, Class::Grad, Class::Param]];

#[test]
fn zero_one_to_three() {
    for classes in ZERO {
        for hold in [Hold::Layer, Hold::Microbatch, Hold::Step] {
            holds(llama(&[("dp", 4)]).shard("B", "dp", "").store(classes, "dp", hold));
            holds(tensor_parallel("S").store(classes, "dp", hold));
        }
    }
}

/// Sharded within a group and copied over groups; and parameters within, gradients and state over all.
#[test]
fn hybrid_sharding() {
    let mesh = [("rep", 2), ("fsdp", 2), ("tp", 2)];
    let layout = || llama(&mesh).shard("B", "rep fsdp", "").shard("N K F V", "tp", "");
    for classes in ZERO {
        holds(layout().store(classes, "fsdp", Hold::Layer));
    }
    let state = [Class::State, Class::Grad];
    holds(layout().store(&[Class::Param], "fsdp", Hold::Layer).store(&state, "rep fsdp", Hold::Layer));
}

/// Pieces along a named dimension, as FSDP 2 keeps them, over tensor parallelism of the same dimension.
#[test]
fn stored_along_a_dimension() {
    let mut s = tensor_parallel("S").store(ZERO[2], "dp", Hold::Layer);
    for store in &mut s.layout.stores {
        store.along = ["F", "N", "V", "K", "H"].map(String::from).to_vec();
    }
    holds(s);
}

fn experts(mesh: Mesh) -> Setup {
    let extents = [("B", 4), ("S", 4), ("H", 8), ("N", 4), ("K", 2), ("D", 2), ("F", 4), ("V", 4), ("P", 4)];
    let own = [("E", 4), ("T", 32), ("M", 4), ("C", 2), ("A", 2)];
    let plainest = model(vec![Piece::Attention(super::random::Heads::Grouped), Piece::Experts]);
    Model { mesh, extents: [&extents[..], &own].concat(), ..plainest }.setup()
}

/// The rule given last holds where the experts are, and nowhere else.
fn within(mut s: Setup, dims: &str, over: &str) -> Setup {
    s = s.shard(dims, over, "");
    s.layout.rules.last_mut().expect("a rule").scope = super::random::scope("**.experts");
    s
}

/// Tokens go to the rank of their expert and back.
#[test]
fn expert_parallelism() {
    for fine in [&[("dp", 2), ("ep", 2)], &[("ep", 2), ("dp", 2)]] {
        holds(within(experts(plain(fine)).shard("B", "dp ep", ""), "E", "ep"));
    }
    // One expert's weights are split too, and the sequence outside.
    let mesh = plain(&[("dp", 2), ("ep", 2), ("tp", 2)]);
    let tokens = |s: Setup| within(s.shard("B", "dp ep", "").shard("N K V", "tp", "S"), "E", "ep");
    holds(tokens(experts(mesh)));
    holds(within(tokens(experts(mesh)), "M", "tp"));
    // Experts over an axis that splits no token: each rank has a part of the sum.
    holds(within(experts(mesh).shard("B", "dp", ""), "E", "ep"));
    holds(tokens(experts(mesh)).recompute("**.moe", RecomputeWhat::All));
    holds(tokens(experts(mesh)).store(ZERO[2], "dp", Hold::Layer));
}

/// `fold [dp, tp] as [edp, ep]`: ranks that share heads outside share experts inside.
#[test]
fn experts_over_folded_axes() {
    // dp = 2 × 2 and tp = 2; ep takes tp and the inner half of dp.
    let mesh = Mesh {
        fine: &[("x0", 2), ("x1", 2), ("x2", 2)],
        named: &[
            ("dp", &[0, 1], Some((0, Side::From))),
            ("tp", &[2], Some((0, Side::From))),
            ("edp", &[0], Some((0, Side::To))),
            ("ep", &[1, 2], Some((0, Side::To))),
        ],
        copies: None,
    };
    let layout = |s: Setup, otherwise: &str| within(s.shard("B", "dp", "").shard("N K V", "tp", otherwise), "E", "ep");
    for otherwise in ["", "S"] {
        holds(layout(experts(mesh), otherwise));
        holds(layout(experts(mesh), otherwise).store(&[Class::State], "edp", Hold::Layer));
        holds(layout(experts(mesh), otherwise).recompute("", RecomputeWhat::All));
    }
}

/// Four ranks for two key heads: each is there twice, and its gradient the sum of both.
#[test]
fn fewer_key_heads_than_ranks() {
    let mesh = Mesh { fine: &[("x0", 2), ("x1", 2)], named: &[("tp", &[0, 1], None)], copies: Some(1) };
    for otherwise in ["", "S"] {
        holds(experts(mesh).shard("N K F V", "tp", otherwise));
    }
}
