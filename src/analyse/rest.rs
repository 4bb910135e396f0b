//! Parameters and what follows them at rest: elements, and bytes by where they are.

use super::tiers;
use crate::elaborate::Job;
use crate::expr;
use crate::layout::Tier;
use crate::partition::{ShardedGraph, ShardedParam};

/// Parameters, gradients and optimizer state of each unit, bytes.
pub(super) fn rest_bytes(job: &Job<'_>, sharded: &ShardedGraph, graph: &mut expr::Graph) -> Vec<expr::Id> {
    let per_unit = sharded.units.iter().map(|u| {
        let own = at_rest(job, &u.params.iter().collect::<Vec<_>>(), graph);
        graph.sum(own.here)
    });
    per_unit.collect()
}

/// Some parameters and what follows them at rest.
pub(super) struct AtRest {
    /// Elements in use.
    pub(super) used: expr::Id,
    /// Elements of the largest of them in use.
    pub(super) largest: expr::Id,
    /// Elements that rest on the device as they are used.
    pub(super) param: expr::Id,
    /// Elements of gradients that rest on the device.
    pub(super) grad: expr::Id,
    /// Elements of the optimizer's state.
    pub(super) state: expr::Id,
    /// Bytes on the device: parameters, gradients, state and master copies.
    pub(super) here: [expr::Id; 3],
    /// Bytes of state and master copies that rest elsewhere.
    pub(super) away: expr::Id,
    /// Bytes in the host's memory.
    pub(super) host: expr::Id,
    /// Bytes an update reads, and bytes it writes.
    pub(super) update: [expr::Id; 2],
}

pub(super) fn at_rest(job: &Job<'_>, params: &[&ShardedParam], graph: &mut expr::Graph) -> AtRest {
    let zero = graph.real(0.0);
    let (mut used, mut param, mut grad, mut state, mut largest) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), zero);
    let mut here: [Vec<expr::Id>; 3] = Default::default();
    let (mut away, mut host, mut read, mut write) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let in_use = graph.real(job.numerics.bytes("param"));
    for p in params {
        used.push(p.elements);
        let elements = graph.to_real(p.elements);
        largest = graph.max(largest, elements);
        state.push(p.rest_state);
        let [at_param, at_grad, ..] = p.rests;
        // What rests in another format or elsewhere is not there to be used.
        if at_param.tier == Tier::Device && at_param.width.is_none() {
            param.push(p.rest_param);
        }
        if at_grad.tier == Tier::Device {
            grad.push(p.rest_grad);
        }
        let bytes = tiers::at_rest(job, p, graph);
        for (class, (bytes, rest)) in bytes.into_iter().zip(&p.rests).enumerate() {
            match rest.tier {
                Tier::Device => here[class.min(2)].push(bytes),
                Tier::Host => host.push(bytes),
                Tier::Nvme { .. } => {}
            }
            if class >= 2 && rest.tier != Tier::Device {
                away.push(bytes);
            }
        }
        // The update works on the state's share: gradient in, parameter out, state and master copy both.
        let share = graph.to_real(p.rest_state);
        let width = graph.real(tiers::widths(job, p)[1]);
        read.extend([graph.mul(share, width), bytes[2], bytes[3]]);
        write.extend([graph.mul(share, in_use), bytes[2], bytes[3]]);
    }
    let mut sum = |terms: Vec<expr::Id>| {
        let s = graph.sum(terms);
        graph.to_real(s)
    };
    let [a, b, c] = here;
    AtRest {
        used: sum(used),
        param: sum(param),
        grad: sum(grad),
        state: sum(state),
        here: [sum(a), sum(b), sum(c)],
        away: sum(away),
        host: sum(host),
        update: [sum(read), sum(write)],
        largest,
    }
}
