//! What collectives and messages between stages cost: the functions of the job's cost records, by the algorithm that the
//! layout asks for.

use super::{Costs, group};
use crate::analyse::errors;
use crate::elaborate::Job;
use crate::eval::Value;
use crate::expr;
use crate::graph::RegionId;
use crate::layout::{AxisId, CollectiveVia};
use crate::partition::{Collective, CollectiveKind, Purpose};
use smol_str::{SmolStr, format_smolstr};

impl<'p> Costs<'p, '_, '_, '_> {
    /// Seconds that the cost function `name` gives for a collective of so many bytes over `axes`, at the job's point.
    pub fn collective_seconds(&mut self, name: &str, bytes: f64, axes: &[AxisId]) -> f64 {
        let bytes = self.eval.graph.real(bytes);
        let seconds = self.named(name.into(), bytes, axes);
        let mut point = self.job.point.clone();
        point.resize(self.eval.graph.inputs().len(), 0.0);
        self.eval.graph.eval(&point, &[seconds])[0]
    }

    /// A collective of the cost model: `all_reduce`, `all_gather`, …
    fn named(&mut self, name: SmolStr, bytes: expr::Id, axes: &[AxisId]) -> expr::Id {
        let g = self.group(axes);
        let size = self.group_size(axes);
        // Axes with equal sizes may lie on different links: the axes themselves are part of the key.
        let mut key = vec![bytes, size];
        key.extend(axes.iter().map(|a| expr::Id(u32::from(a.0))));
        self.call(name, key, vec![group::bytes(bytes), g])
    }

    pub(super) fn collective(&mut self, c: &Collective, region: RegionId) -> expr::Id {
        let Some(name) = function(c.kind) else {
            let free = c.kind == CollectiveKind::Slice;
            return if free { self.eval.graph.real(0.0) } else { self.permute(c) };
        };
        let asked = via(self.job, c, region).and_then(|v| Some((v, v.method.as_ref()?)));
        let Some((via, method)) = asked else { return self.named(SmolStr::new_static(name), c.bytes, &c.axes) };
        let chosen = format_smolstr!("{name}_{method}");
        if self.function(&chosen).is_none() {
            let prefix = format!("{name}_");
            let known: Vec<_> = self.functions().filter_map(|f| f.strip_prefix(&prefix)).collect();
            self.refuse(errors::algorithm_unknown(name, method, &known, via.method_span));
            return self.eval.graph.real(0.0);
        }
        self.named(chosen, c.bytes, &c.axes)
    }

    /// Ring attention: one message to the neighbour in each round, one round fewer than ranks.
    fn permute(&mut self, c: &Collective) -> expr::Id {
        let size = self.group_size(&c.axes);
        let one = self.eval.graph.int(1);
        let less = self.eval.graph.sub(size, one);
        let rounds = self.eval.graph.max(less, one);
        let each = self.eval.graph.div(c.bytes, rounds);
        let message = self.named(SmolStr::new_static("p2p"), each, &c.axes);
        self.eval.graph.mul(message, less)
    }

    pub(super) fn group_size(&mut self, axes: &[AxisId]) -> expr::Id {
        let sizes: Vec<_> = axes.iter().map(|a| self.job.layout.axis(*a).size).collect();
        self.eval.graph.product(sizes)
    }

    pub(super) fn group(&mut self, axes: &[AxisId]) -> Value<'p> {
        if let Some(g) = self.groups.get(axes) {
            return g.clone();
        }
        let g = group::group(self.eval, self.job, axes);
        self.groups.insert(axes.to_vec(), g.clone());
        g
    }

    /// The message between stages and its bytes: whole, or in slices gathered inside the node.
    pub(super) fn send(&mut self, boundary: expr::Id) -> (expr::Id, expr::Id) {
        let Some(pipeline) = &self.job.pipeline else {
            let zero = self.eval.graph.real(0.0);
            let none = self.eval.graph.int(0);
            return (zero, none);
        };
        let (axis, slices, in_turns) =
            (pipeline.axis, self.job.layout.fine(&pipeline.scatter_gather), pipeline.in_turns);
        if slices.is_empty() {
            return (self.named(SmolStr::new_static("p2p"), boundary, &[axis]), boundary);
        }
        let pieces = self.group_size(&slices);
        let slice = self.eval.graph.div(boundary, pieces);
        let sent = self.named(SmolStr::new_static("p2p"), slice, &[axis]);
        let gathered = self.named(SmolStr::new_static("all_gather"), boundary, &slices);
        // A message of one rank alone is scattered among the others first, which is a gather the other way round.
        let moved = if in_turns { self.eval.graph.add(gathered, gathered) } else { gathered };
        (self.eval.graph.add(sent, moved), slice)
    }
}

/// The cost function of a kind of collective; none for slices, which are free, and for rounds of messages.
fn function(kind: CollectiveKind) -> Option<&'static str> {
    Some(match kind {
        CollectiveKind::AllReduce => "all_reduce",
        CollectiveKind::AllGather => "all_gather",
        CollectiveKind::ReduceScatter => "reduce_scatter",
        CollectiveKind::AllToAll => "all_to_all",
        CollectiveKind::Slice | CollectiveKind::Permute => return None,
    })
}

/// The `OP over AXES via METHOD` that speaks of `c`: the innermost, of several there the last.
fn via<'j>(job: &'j Job<'_>, c: &Collective, region: RegionId) -> Option<&'j CollectiveVia> {
    let path = &job.ops.regions[region.0 as usize].path;
    let speaks = |v: &CollectiveVia| match v.of.as_str() {
        "gather" => c.purpose == Purpose::GatherParam,
        "reduce" => c.purpose == Purpose::ReduceGrad,
        "dispatch" => c.purpose == Purpose::Dispatch,
        "combine" => c.purpose == Purpose::Combine,
        kind => function(c.kind) == Some(kind),
    };
    let fitting = job.layout.vias.iter().enumerate().filter(|(_, v)| speaks(v));
    let fitting = fitting.filter(|(_, v)| c.axes.iter().all(|a| v.axes.contains(a)));
    let fitting = fitting.filter_map(|(i, v)| Some((v.scope.depth(path)?, i, v)));
    fitting.max_by_key(|(depth, i, _)| (*depth, *i)).map(|(_, _, v)| v)
}
