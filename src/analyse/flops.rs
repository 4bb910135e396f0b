//! Model FLOP of an update: what the model asks for, however it is computed.
//!
//! Two a multiply-add of contractions and of attention (half of the pairs where causal), what declared operators state,
//! forward and the backward that parameters need, true extents, nothing else (`docs/reference`).

use crate::elaborate::Job;
use crate::expr::{self, Graph};
use crate::graph::{DimId, OpKind, ValueId, ValueRole};

/// FLOP of one update on all devices.
#[derive(Copy, Clone, Debug)]
pub struct ModelFlops {
    /// Forward and backward.
    pub total: expr::Id,
}

impl ModelFlops {
    /// Counts `job`'s contractions and attentions.
    pub fn new(job: &Job<'_>, graph: &mut Graph) -> Self {
        let ops = &job.ops;
        let mut terms = Vec::new();
        for (_, op) in ops.ops() {
            let count = graph.int(ops.units[op.unit as usize].count);
            let (flops, times) = match &op.kind {
                OpKind::Contract { contracted } => {
                    let mut dims = ops.value(op.output).dims.clone();
                    dims.extend(contracted);
                    let product = volume(job, &dims, graph);
                    let backward = op.inputs.iter().filter(|v| has_gradient(job, **v)).count();
                    (product, 2 * (1 + backward))
                }
                OpKind::Attention(a) => {
                    let batch = ops
                        .value(op.output)
                        .dims
                        .iter()
                        .copied()
                        .filter(|d| ![a.sequence, a.heads, a.value_dim].contains(d));
                    let mut dims: Vec<DimId> = batch.collect();
                    dims.extend([a.sequence, a.keys, a.heads]);
                    let scores = volume(job, &dims, graph);
                    let (qk, v) = (ops.dim(a.head_dim).true_extent, ops.dim(a.value_dim).true_extent);
                    let widths = graph.add(qk, v);
                    // Two products forward, four backward, of the pairs that are computed.
                    let all = graph.mul(scores, widths);
                    let pairs = crate::graph::pairs(ops, a, graph);
                    (graph.mul(all, pairs), 6)
                }
                // What a declaration states.
                OpKind::Custom(c) => {
                    let needed = op.inputs.iter().any(|v| has_gradient(job, *v));
                    let all = if needed { graph.add(c.flops, c.backward_flops) } else { c.flops };
                    (all, 1)
                }
                _ => continue,
            };
            let flops = graph.to_real(flops);
            let times = graph.real(times as f64);
            let one = graph.mul(flops, times);
            terms.push(graph.mul(one, count));
        }
        let each = graph.sum(terms);
        let each = graph.to_real(each);
        // The batch dimension is one microbatch over all replicas.
        let total = graph.mul(each, job.microbatches);
        Self { total }
    }
}

fn volume(job: &Job<'_>, dims: &[DimId], graph: &mut Graph) -> expr::Id {
    let reals: Vec<_> = dims.iter().map(|d| graph.to_real(job.ops.dim(*d).true_extent)).collect();
    graph.product(reals)
}

/// Whether a gradient of `value` is needed: parameters, and what any parameter reached.
fn has_gradient(job: &Job<'_>, value: ValueId) -> bool {
    job.ops.value(value).role != ValueRole::Input
}
