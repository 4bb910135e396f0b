//! The proof that partitioning keeps the meaning of a program: the partitioned program, run on simulated devices with
//! real arrays, gives the values, gradients and updated parameters of the unpartitioned one.
//!
//! `reference` runs the graph on whole arrays, `execute` the partitioned one, where every device holds what the
//! placements say and gets nothing but through collectives; `kernels` are the ops for both. `random` makes cases.
//!
//! Also checked on the way: what a plan does not keep is gone in the backward; a collective does what its kind says and
//! moves as many bytes as the plan states; replicas hold the same.

mod array;
mod attention;
mod cases;
mod execute;
mod experts;
mod kernels;
mod passes;
mod random;
mod reference;
mod slopes;
mod stored;

use crate::eval;
use crate::llama::Setup;
use array::Array;
use execute::Run;
use kernels::World;
use parc::graph::{OpKind, ValueId};
use parc::partition::ShardedGraph;
use reference::Reference;

/// Equal but for rounding.
fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0)
}

/// A number between −1 and 1 that is the same in every run.
fn noise(a: u64, b: u64) -> f64 {
    let mut x = a.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ b.wrapping_mul(0xbf58_476d_1ce4_e5b9).wrapping_add(0x1234_5678);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((x ^ (x >> 31)) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

/// The graph of `setup` with the extents as numbers.
fn world(setup: &Setup) -> World<'_> {
    let numbers = eval::all(&setup.exprs, &setup.inputs);
    let extents = setup.graph.dims.iter().map(|d| numbers[d.extent.0 as usize] as usize).collect();
    World { graph: &setup.graph, extents }
}

/// Data and parameters: ids below the rows of the table they look up, anything else between −1 and 1.
fn leaf(world: &World<'_>, value: ValueId, space: array::Space) -> Array {
    let looked_up = world.graph.ops().find_map(|(_, op)| match op.kind {
        OpKind::Embed { over, .. } if op.inputs[0] == value => Some(world.extent(over)),
        _ => None,
    });
    let mut at = 0;
    Array::made(space, |_| {
        at += 1;
        let x = noise(u64::from(value.0) + 1, at);
        looked_up.map_or(x, |rows| (f64::midpoint(x, 1.0) * rows as f64).floor().min(rows as f64 - 1.0))
    })
}

/// The unpartitioned program of `setup`.
fn reference(world: &World<'_>) -> Reference {
    Reference::run(world, &|value, space| leaf(world, value, space))
}

/// Runs `sharded`, a partitioning of the graph of `setup`, and compares it with the graph itself.
fn prove(setup: &Setup, sharded: &ShardedGraph) {
    let world = world(setup);
    let reference = reference(&world);
    let mut run = Run::new(&world, &setup.layout, sharded, &reference, (&setup.bytes, &setup.exprs, &setup.inputs));
    run.run();
    run.check_params();
}
