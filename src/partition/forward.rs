//! The forward of a unit: operands brought where they are needed, work, results brought where they rest.

use super::build::{After, Builder, Pass, Site, join};
use super::{Collective, CollectiveKind, Placement, Purpose, attention, chains, storage};
use crate::expr::{self, Node};
use crate::graph::{Attention, DimId, OpId, OpKind, ValueId, ValueRole};
use crate::layout::AxisId;

/// What an op reads: each value and the placement it needs it in.
pub(super) type Reads = Vec<(ValueId, Placement)>;

impl Builder<'_> {
    /// What `op` reads; of a chain, what enters it.
    pub(super) fn reads(&self, op: OpId) -> Reads {
        let needs = |op: OpId, at: usize| self.plan.op(op).needs[at].clone();
        if matches!(self.graph.flow[op].kind, OpKind::Map(_)) {
            let inputs = chains::inputs(self.graph, self.plan, op);
            return inputs.into_iter().map(|i| (i.value, needs(i.op, i.operand))).collect();
        }
        self.graph.flow[op].inputs.iter().enumerate().map(|(at, v)| (*v, needs(op, at))).collect()
    }

    /// Brings `value` from where it rests to where it is needed; one copy serves a whole region.
    pub(super) fn bring(&mut self, pass: &mut Pass, site: Site, value: ValueId, need: &Placement) -> After {
        let rest = self.plan.rest(value).clone();
        let made = pass.made.get(&value).unwrap_or(&self.made[value.0 as usize]).clone();
        if rest == *need {
            return made;
        }
        let key = (value, need.clone(), site.region);
        // What runs again makes its own copies: those of the forward were let go.
        let kept = if pass.recomputed { None } else { self.kept.get(&key) };
        if let Some(copy) = pass.copies.get(&key).or(kept) {
            return copy.clone();
        }
        let after = self.reshard(pass, site, value, (&rest, need), made);
        pass.copies.insert(key, after.clone());
        after
    }

    /// The steps of `ops`, the last ops of their chains, in program order.
    pub(super) fn forward(&mut self, pass: &mut Pass, ops: &[OpId]) {
        for id in ops {
            let op = &self.graph.flow[*id];
            let site = self.site(*id);
            let mut after = After::new();
            for (value, need) in self.reads(*id) {
                let brought = self.bring(pass, site, value, &need);
                join(&mut after, &brought);
            }
            if let OpKind::Attention(a) = &op.kind {
                after = self.ring(pass, *id, a, after, 1);
            }
            let work = match op.kind {
                OpKind::Map(_) => Some(self.chain_work(*id, false)),
                _ => self.forward_work(*id),
            };
            // Rows are put in order before they go out, and added up when they are back.
            if let OpKind::Combine(r) = &op.kind {
                after = self.exchange(pass, *id, r, after);
            }
            if let Some(work) = work {
                let step = self.compute(pass, *id, work, &after);
                after = std::iter::once(step).collect();
            }
            if let OpKind::Dispatch(r) = &op.kind {
                after = self.exchange(pass, *id, r, after);
            }
            after = self.forward_statistics(pass, *id, after);
            let natural = self.plan.op(*id).natural.clone();
            if self.graph.value(op.output).role == ValueRole::Loss && !natural.partial.is_empty() {
                self.losses.push((*id, after.clone()));
            } else {
                let rest = self.plan.rest(op.output).clone();
                after = self.reshard(pass, site, op.output, (&natural, &rest), after);
            }
            if !pass.recomputed {
                self.made[op.output.0 as usize].clone_from(&after);
            }
            pass.made.insert(op.output, after);
        }
        // Copies that are kept serve the backward too.
        for (key, after) in &pass.copies {
            if storage::keeps_gathered(self.graph, self.layout, key.2) {
                self.kept.insert(key.clone(), after.clone());
            }
        }
    }

    /// Reductions over a dimension that is split: one for a norm, maximum and sum for a softmax, maximum, target
    /// logit and sum for a cross entropy.
    fn forward_statistics(&mut self, pass: &mut Pass, id: OpId, mut after: After) -> After {
        let graph = self.graph;
        let (over, maxima): (&[DimId], &[bool]) = match &graph.flow[id].kind {
            OpKind::Norm { over, .. } => (over, &[false]),
            OpKind::Softmax { over } => (std::slice::from_ref(over), &[true, false]),
            OpKind::CrossEntropy { over, .. } => (over.as_slice(), &[true, false, false]),
            _ => return after,
        };
        let axes = self.statistic_axes(id, over);
        if axes.is_empty() {
            return after;
        }
        let bytes = self.statistic_bytes(id, over);
        for maximum in maxima {
            after = self.statistic(pass, id, &axes, bytes, *maximum, &after);
        }
        after
    }

    /// Keys and values go round, `times` over: in the backward their gradients go round as well.
    pub(super) fn ring(&mut self, pass: &mut Pass, id: OpId, a: &Attention, after: After, times: i64) -> After {
        let needs = self.plan.op(id).needs.clone();
        let [_, k, v, ..] = &needs[..] else { return after };
        let inputs = self.graph.flow[id].inputs.clone();
        let mut last = after;
        let path = &self.graph.regions[self.graph.flow[id].region.0 as usize].path;
        let axes = attention::ring_axes(self.layout, path, a, k);
        if !axes.is_empty() {
            let both = [self.sizes.wire(inputs[1], k), self.sizes.wire(inputs[2], v)];
            let block = self.sizes.exprs.sum(both);
            let bytes = self.rounds(&axes, block, times);
            let what = Collective {
                kind: CollectiveKind::Permute,
                axes: axes.into(),
                bytes,
                value: inputs[1],
                purpose: Purpose::Reshard,
                maximum: false,
            };
            let site = self.site(id);
            let step = self.collective(pass, site, what, &last);
            last = std::iter::once(step).collect();
        }
        last
    }

    /// `block` bytes passed on (ranks − 1) times, `times` over.
    fn rounds(&mut self, axes: &[AxisId], block: expr::Id, times: i64) -> expr::Id {
        let ranks = self.sizes.group(axes);
        let one = self.sizes.exprs.int(1);
        let rounds = self.sizes.exprs.put(Node::Sub(ranks, one));
        let times = self.sizes.exprs.int(times);
        self.sizes.exprs.product([rounds, times, block])
    }

    /// The steps of the update that sum the losses of the ranks.
    pub(super) fn sum_losses(&mut self, pass: &mut Pass) {
        for (id, after) in std::mem::take(&mut self.losses) {
            if self.graph.flow[id].unit != pass.unit {
                self.losses.push((id, after));
                continue;
            }
            let site = self.site(id);
            let natural = self.plan.op(id).natural.clone();
            self.reshard(pass, site, self.graph.flow[id].output, (&natural, &natural.summed()), after);
        }
    }
}
