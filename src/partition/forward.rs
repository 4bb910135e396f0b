//! The forward of a unit: operands brought where they are needed, work, results brought where they rest.

use super::build::{Builder, Pass, Site};
use super::placement::AxisUse;
use super::{
    Collective, CollectiveKind, Content, Phase, Placement, Purpose, StepKind, Task, Tensor, TensorId, attention, chains,
};
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
    pub(super) fn bring(&mut self, pass: &mut Pass, site: Site, value: ValueId, need: &Placement) -> TensorId {
        let made = self.of(pass, value);
        if self.place(made) == need {
            return made;
        }
        let key = (value, need.clone(), site.region);
        // Copies of the forward that were let go are made again.
        let ids = self.kept.get(&key).filter(|_| self.graph.value(value).role == ValueRole::Input);
        let kept = ids.or(self.saved.get(&(value, need.clone())));
        if let Some(copy) = pass.copies.get(&key).or(kept) {
            return *copy;
        }
        let before = pass.steps.len();
        let copy = self.reshard(pass, site, made, need);
        if pass.phase == Phase::Forward {
            self.copied.insert(key.clone(), pass.steps[before..].to_vec());
        }
        pass.copies.insert(key, copy);
        copy
    }

    /// The steps of `ops`, the last ops of their chains, in program order.
    pub(super) fn forward(&mut self, pass: &mut Pass, ops: &[OpId]) {
        for id in ops {
            let op = &self.graph.flow[*id];
            let site = self.site(*id);
            let mut reads = Vec::new();
            for (value, need) in self.reads(*id) {
                reads.push(self.bring(pass, site, value, &need));
            }
            let own = pass.steps.len();
            if let OpKind::Attention(a) = &op.kind {
                self.ring(pass, *id, a, &mut reads[1..3]);
            }
            let work = match op.kind {
                OpKind::Map(_) => Some(self.chain_work(*id, false)),
                _ => self.forward_work(*id),
            };
            // Rows are put in order before they go out, and added up when they are back.
            if let OpKind::Combine(r) = &op.kind {
                reads[0] = self.exchange(pass, *id, r, reads[0]);
                self.returned.insert(*id, reads[0]);
            }
            self.forward_statistics(pass, *id, &mut reads);
            let natural = self.plan.op(*id).natural.clone();
            let place = match &op.kind {
                OpKind::Dispatch(r) => self.at_tokens(*id, r),
                _ => natural.clone(),
            };
            let mut result = self.whole(op.output, Content::Value, place);
            if let OpKind::Dispatch(r) = &op.kind {
                self.tensors[result.0 as usize].spread = self.spread(*id, r);
            }
            self.compute(pass, (*id, Task::Forward), work, (&reads, &[result]));
            if let OpKind::Dispatch(r) = &op.kind {
                result = self.exchange(pass, *id, r, result);
            }
            if matches!(op.kind, OpKind::Attention(_) | OpKind::Softmax { .. }) {
                // The backward reads the result where it came out.
                pass.copies.insert((op.output, natural.clone(), site.region), result);
            }
            if self.graph.value(op.output).role == ValueRole::Loss && !natural.partial.is_empty() {
                self.losses.push((*id, result));
            } else {
                let rest = self.plan.rest(op.output).clone();
                result = self.reshard(pass, site, result, &rest);
            }
            if !pass.recomputed {
                self.made[op.output.0 as usize] = Some(result);
                self.made_by.insert(*id, pass.steps[own..].to_vec());
            }
            pass.made.insert(op.output, result);
        }
        // Copies that are kept serve the backward too; ids are small.
        for (key, copy) in &pass.copies {
            let ids = self.graph.value(key.0).role == ValueRole::Input && self.plan.looks_up(self.graph, key.0);
            // A parameter's piece is sliced again for free.
            if self.is_param(key.0) {
                continue;
            }
            if ids || self.stays(key.2, key.0, &key.1) {
                self.kept.insert(key.clone(), *copy);
            }
        }
    }

    /// Reductions over a dimension that is split: one for a norm, maximum and sum for a softmax, maximum, target
    /// logit and sum for a cross entropy. Each is one more tensor that the op reads.
    fn forward_statistics(&mut self, pass: &mut Pass, id: OpId, reads: &mut Vec<TensorId>) {
        let graph = self.graph;
        let (over, maxima): (&[DimId], &[bool]) = match &graph.flow[id].kind {
            OpKind::Norm { over, .. } => (over, &[false]),
            OpKind::Softmax { over } => (std::slice::from_ref(over), &[true, false]),
            OpKind::CrossEntropy { over, .. } => (over.as_slice(), &[true, false, false]),
            _ => return,
        };
        let axes = self.statistic_axes(id, over);
        if axes.is_empty() {
            return;
        }
        let bytes = self.statistic_bytes(id, over);
        let mut made = Vec::new();
        for (n, maximum) in maxima.iter().enumerate() {
            let one = self.statistic(pass, (id, n as u8), &axes, (bytes, *maximum), reads);
            reads.push(one);
            made.push(one);
        }
        self.statistics.insert(id, made);
    }

    /// The axes over which keys and values of an attention go round.
    pub(super) fn ring_axes(&self, id: OpId, a: &Attention) -> Vec<AxisId> {
        let Some(keys) = self.plan.op(id).needs.get(1) else { return Vec::new() };
        let path = &self.graph.regions[self.graph.flow[id].region.0 as usize].path;
        attention::ring_axes(self.layout, path, a, keys)
    }

    /// Keys and values go round, or their gradients go home: a rank sees each block of them pass.
    pub(super) fn ring(&mut self, pass: &mut Pass, id: OpId, a: &Attention, tensors: &mut [TensorId]) {
        let axes = self.ring_axes(id, a);
        if axes.is_empty() || tensors.is_empty() {
            return;
        }
        let (mut blocks, mut moved) = (Vec::new(), Vec::new());
        for tensor in tensors.iter() {
            let old = self.tensors[tensor.0 as usize].clone();
            // What is the value on its way out is a term of the gradient on its way home.
            let (passing, to) = match old.content {
                Content::Gradient => (false, AxisUse::Split(a.keys)),
                Content::Value | Content::Statistic(_) | Content::Updated => (true, AxisUse::Whole),
            };
            let place = axes.iter().fold(old.place.clone(), |p, x| p.with(*x, to));
            let block = if passing { &old.place } else { &place };
            blocks.push(self.sizes.wire(old.value, block));
            moved.push(self.tensor(Tensor { place, passing, ..old }));
        }
        let block = self.sizes.exprs.sum(blocks);
        let bytes = self.rounds(&axes, block);
        let value = self.tensors[tensors[0].0 as usize].value;
        let (kind, purpose) = (CollectiveKind::Permute, Purpose::Reshard);
        let what = Collective { kind, axes: axes.into(), bytes, value, purpose, maximum: false };
        let site = self.site(id);
        self.step(pass, site, StepKind::Collective(what), (tensors, &moved));
        tensors.copy_from_slice(&moved);
    }

    /// `block` bytes passed on (ranks − 1) times.
    fn rounds(&mut self, axes: &[AxisId], block: expr::Id) -> expr::Id {
        let ranks = self.sizes.group(axes);
        let one = self.sizes.exprs.int(1);
        let rounds = self.sizes.exprs.put(Node::Sub(ranks, one));
        self.sizes.exprs.product([rounds, block])
    }

    /// The steps of the update that sum the losses of the ranks.
    pub(super) fn sum_losses(&mut self, pass: &mut Pass) {
        for (id, loss) in std::mem::take(&mut self.losses) {
            if self.graph.flow[id].unit != pass.unit {
                self.losses.push((id, loss));
                continue;
            }
            let site = self.site(id);
            let summed = self.place(loss).summed();
            self.reshard(pass, site, loss, &summed);
        }
    }
}
