//! Elementwise chains: what runs as one kernel, and which of its inputs the backward needs.

use super::plan::Plan;
use crate::graph::{MapFn, OpGraph, OpId, OpKind, ValueId};
use indexmap::IndexMap;

/// The last op of the chain each op is in. An op joins the chain of its one user where nothing moves in between.
pub(super) fn tails(graph: &OpGraph, plan: &Plan) -> Vec<OpId> {
    let mut tails: Vec<_> = graph.flow.node_indices().collect();
    for (id, op) in graph.ops().rev() {
        let OpKind::Map(_) = op.kind else { continue };
        let [(user, operand)] = plan.uses[op.output.0 as usize][..] else { continue };
        let next = &graph.flow[user];
        let rest = plan.rest(op.output);
        let stays = plan.op(id).natural == *rest && plan.op(user).needs[operand] == *rest;
        if matches!(next.kind, OpKind::Map(_)) && next.unit == op.unit && stays {
            tails[id.index()] = tails[user.index()];
        }
    }
    tails
}

/// One input of a chain.
#[derive(Copy, Clone, Debug)]
pub(super) struct ChainInput {
    pub(super) value: ValueId,
    /// The member that reads it, and as which operand.
    pub(super) op: OpId,
    pub(super) operand: usize,
    /// Whether the backward needs it again: something not linear depends on it.
    pub(super) kept: bool,
}

/// The members of each chain by its last op, in program order. An op in no chain is one of its own.
pub(super) fn members(tails: &[OpId]) -> IndexMap<OpId, Vec<OpId>> {
    let mut members: IndexMap<OpId, Vec<OpId>> = IndexMap::new();
    for (at, tail) in tails.iter().enumerate() {
        members.entry(*tail).or_default().push(OpId::new(at));
    }
    members
}

/// What the chain that ends in `tail` reads, in program order, once for every operand it stands in.
pub(super) fn inputs(graph: &OpGraph, plan: &Plan, tail: OpId) -> Vec<ChainInput> {
    let members = &plan.members[&tail];
    // Whether an op needs its operands again, or the one after it does.
    let mut kept: IndexMap<OpId, bool> = IndexMap::new();
    for id in members.iter().rev() {
        let op = &graph.flow[*id];
        let user = plan.uses[op.output.0 as usize].first().map(|(user, _)| *user);
        let after = *id != tail && user.is_some_and(|u| kept.get(&u).copied().unwrap_or(false));
        kept.insert(*id, after || !linear(&op.kind));
    }
    let inside = |v: ValueId| graph.producer(v).is_some_and(|p| plan.tail[p.index()] == tail);
    let mut found = Vec::new();
    for id in members {
        for (operand, value) in graph.flow[*id].inputs.iter().enumerate() {
            if !inside(*value) {
                found.push(ChainInput { value: *value, op: *id, operand, kept: kept[id] });
            }
        }
    }
    found
}

/// Whether the gradient of the operands needs none of them.
fn linear(kind: &OpKind) -> bool {
    match kind {
        OpKind::Map(f) => match f {
            MapFn::Add
            | MapFn::Sub
            | MapFn::Scale(_)
            | MapFn::Offset(_)
            | MapFn::Shift(_)
            | MapFn::Cast
            | MapFn::Rope(_) => true,
            MapFn::Mul
            | MapFn::Div
            | MapFn::Inverse(_)
            | MapFn::Silu
            | MapFn::Gelu
            | MapFn::Relu
            | MapFn::Sigmoid
            | MapFn::Tanh => false,
        },
        _ => false,
    }
}

/// FLOP an element costs in the forward.
pub(super) fn flops(f: MapFn) -> f64 {
    match f {
        MapFn::Add
        | MapFn::Sub
        | MapFn::Mul
        | MapFn::Div
        | MapFn::Relu
        | MapFn::Scale(_)
        | MapFn::Offset(_)
        | MapFn::Inverse(_) => 1.0,
        MapFn::Cast | MapFn::Shift(_) => 0.0,
        // An exponential and a division are counted as four operations, a rotation as three.
        MapFn::Sigmoid => 4.0,
        MapFn::Silu | MapFn::Tanh => 5.0,
        MapFn::Gelu => 8.0,
        MapFn::Rope(_) => 3.0,
    }
}
