//! The backward of a unit: adjoints in reverse program order, gradients added before they are reduced.

use super::build::{After, Builder, Pass, Site, join};
use super::placement::AxisUse::{Split, Whole};
use super::plan::adjoint;
use super::work::Extents;
use super::{Placement, Work, storage};
use crate::expr;
use crate::graph::{MapFn, OpId, OpKind, ValueId, ValueRole};
use indexmap::{IndexMap, IndexSet};

/// Terms of a gradient: where each is, and the steps that make it.
type Terms = Vec<(Placement, After)>;

/// Gradients on their way, across units.
#[derive(Default, Debug)]
pub(super) struct Gradients {
    /// Of values.
    pub(super) values: IndexMap<ValueId, Terms>,
    /// Of parameters, by unit that used them.
    pub(super) params: IndexMap<(u32, ValueId), Terms>,
}

impl Builder<'_> {
    /// The backward steps of `ops`, the last ops of their chains in program order. Hands back the most bytes alive
    /// at one moment beside what was saved.
    pub(super) fn backward(&mut self, pass: &mut Pass, ops: &[OpId], grads: &mut Gradients) -> expr::Id {
        let mut transient = self.sizes.exprs.int(0);
        for id in ops.iter().rev() {
            let op = &self.graph.flow[*id];
            let Some(terms) = grads.values.shift_remove(&op.output) else { continue };
            if !op.inputs.iter().any(|v| self.plan.needs_grad(*v)) {
                continue;
            }
            let after = self.result_gradient(pass, *id, terms);
            self.adjoint_of(pass, *id, after, grads);
            let working = self.working_set(*id);
            transient = self.sizes.exprs.max(transient, working);
        }
        self.finish_unit(pass, grads);
        transient
    }

    /// The gradient of the result of `op`, in the placement the result came out in.
    fn result_gradient(&mut self, pass: &mut Pass, id: OpId, terms: Terms) -> After {
        let op = &self.graph.flow[id];
        let rest = self.plan.rest(op.output).summed();
        let natural = self.plan.op(id).natural.summed();
        // Where the forward gathered, a partial sum is scattered at once: the adjoint of the gather takes it as it is.
        let meet = self.layout.axis_ids().fold(rest.clone(), |p, axis| match (natural.on(axis), rest.on(axis)) {
            (Split(d), Whole) => p.with(axis, Split(d)),
            _ => p,
        });
        let site = self.site(id);
        let after = self.add_up(pass, site, op.output, terms, &meet);
        self.reshard(pass, site, op.output, (&meet, &natural), after)
    }

    /// Adds terms up where they are alike, brings each sum to `to` and adds those.
    pub(super) fn add_up(
        &mut self,
        pass: &mut Pass,
        site: Site,
        value: ValueId,
        terms: Terms,
        to: &Placement,
    ) -> After {
        let mut groups: Vec<(Placement, After)> = Vec::new();
        for (place, after) in terms {
            match groups.iter_mut().find(|(p, _)| *p == place) {
                Some((_, all)) => join(all, &after),
                None => groups.push((place, after)),
            }
        }
        let mut sum = After::new();
        for (place, after) in groups {
            let brought = self.reshard(pass, site, value, (&place, to), after);
            join(&mut sum, &brought);
        }
        sum
    }

    /// Gradients of what came from outside the unit are reduced before they leave it.
    fn finish_unit(&mut self, pass: &mut Pass, grads: &mut Gradients) {
        let pending: Vec<_> = grads.values.keys().copied().collect();
        for value in pending {
            let rest = self.plan.rest(value).summed();
            let Some(terms) = grads.values.get_mut(&value) else { continue };
            let terms = std::mem::take(terms);
            let v = self.graph.value(value);
            let site = Site { region: v.region, span: v.span };
            let after = self.add_up(pass, site, value, terms, &rest);
            grads.values.insert(value, vec![(rest, after)]);
        }
    }

    /// Hands the gradient of operand `at` of `op` on.
    fn contribute(
        &mut self,
        pass: &Pass,
        grads: &mut Gradients,
        op: OpId,
        at: usize,
        natural: &Placement,
        after: &After,
    ) {
        let value = self.graph.flow[op].inputs[at];
        if !self.plan.needs_grad(value) {
            return;
        }
        let place = adjoint(natural, &self.plan.op(op).needs[at]);
        let terms = match self.graph.value(value).role {
            ValueRole::Param(_) => grads.params.entry((pass.unit, value)).or_default(),
            ValueRole::Input | ValueRole::Activation | ValueRole::Logits | ValueRole::Loss => {
                grads.values.entry(value).or_default()
            }
        };
        terms.push((place, after.clone()));
    }

    /// The steps that turn the gradient of the result of `op` into those of its operands.
    fn adjoint_of(&mut self, pass: &mut Pass, id: OpId, after: After, grads: &mut Gradients) {
        let graph = self.graph;
        let op = &graph.flow[id];
        let site = self.site(id);
        let natural = self.plan.op(id).natural.clone();
        match &op.kind {
            OpKind::Contract { contracted } => {
                let extents = self.extents(id, contracted);
                for at in (0..2).filter(|at| self.plan.needs_grad(op.inputs[*at])) {
                    let other = op.inputs[1 - at];
                    let need = self.plan.op(id).needs[1 - at].clone();
                    let mut ready = self.bring(pass, site, other, &need);
                    join(&mut ready, &after);
                    let step = self.compute(pass, id, transposed(&extents, at), &ready);
                    self.contribute(pass, grads, id, at, &natural, &std::iter::once(step).collect());
                }
                return;
            }
            OpKind::Map(_) => {
                let mut ready = after;
                for (value, need) in self.backward_reads(id) {
                    let brought = self.bring(pass, site, value, &need);
                    join(&mut ready, &brought);
                }
                // A sum hands its gradient on as it is; anything else is a kernel.
                if !self.only_adds(id) {
                    let work = self.chain_work(id, true);
                    ready = std::iter::once(self.compute(pass, id, work, &ready)).collect();
                }
                for input in super::chains::inputs(graph, self.plan, id) {
                    self.contribute(pass, grads, input.op, input.operand, &natural, &ready);
                }
                return;
            }
            _ => {}
        }
        let mut ready = after;
        for (value, need) in self.backward_reads(id) {
            let brought = self.bring(pass, site, value, &need);
            join(&mut ready, &brought);
        }
        ready = self.backward_statistics(pass, id, ready);
        if let OpKind::Attention(a) = &op.kind {
            ready = self.ring(pass, id, a, ready, 2);
        }
        if let Some(work) = self.backward_work(id) {
            ready = std::iter::once(self.compute(pass, id, work, &ready)).collect();
        }
        for at in 0..op.inputs.len() {
            self.contribute(pass, grads, id, at, &natural, &ready);
        }
    }

    /// A norm or softmax over a split dimension reduces one statistic in the backward; a loss none.
    fn backward_statistics(&mut self, pass: &mut Pass, id: OpId, after: After) -> After {
        let (OpKind::Norm { over, .. } | OpKind::Softmax { over }) = self.graph.flow[id].kind else { return after };
        let axes = self.statistic_axes(id, over);
        if axes.is_empty() {
            return after;
        }
        let bytes = self.statistic_bytes(id, over);
        self.statistic(pass, id, &axes, bytes, false, &after)
    }

    /// The backward work of an op that is no contraction and no chain; `None` where it is free.
    fn backward_work(&mut self, id: OpId) -> Option<Work> {
        let graph = self.graph;
        let op = &graph.flow[id];
        let plan = self.plan.op(id).clone();
        let natural = plan.natural.summed();
        let each = match &op.kind {
            OpKind::Attention(a) => return Some(self.attention_work(id, a, true)),
            // Rows of the gradient are added into the table's gradient.
            OpKind::Embed { .. } | OpKind::Take { .. } => {
                let rows = self.mem(op.output, &natural);
                let flops = self.sizes.elements(op.output, &natural);
                let read = self.sizes.times(rows, 2.0);
                return Some(Work::Elementwise { read, write: rows, flops });
            }
            OpKind::Norm { .. } => 8.0,
            OpKind::Softmax { .. } => 4.0,
            OpKind::CrossEntropy { .. } => 3.0,
            OpKind::Sum { .. }
            | OpKind::Contract { .. }
            | OpKind::Map(_)
            | OpKind::Rename { .. }
            | OpKind::Split { .. }
            | OpKind::Merge { .. } => return None,
        };
        let x = self.mem(op.inputs[0], &plan.needs[0]);
        let result = self.mem(op.output, &natural);
        let read = self.sizes.exprs.add(x, result);
        let elements = self.sizes.elements(op.inputs[0], &plan.needs[0]);
        let flops = self.sizes.times(elements, each);
        Some(Work::Elementwise { read, write: x, flops })
    }

    /// Bytes alive while the backward of `op` runs, beside what was saved: the gradient of its result, those of its
    /// activation operands, and copies gathered for it.
    fn working_set(&mut self, id: OpId) -> expr::Id {
        let op = &self.graph.flow[id];
        let natural = self.plan.op(id).natural.summed();
        let mut bytes = vec![self.mem(op.output, &natural)];
        let keep = storage::keeps_gathered(self.graph, self.layout, op.region);
        for (value, need) in self.backward_reads(id) {
            if !keep && *self.plan.rest(value) != need && !self.is_param(value) {
                bytes.push(self.mem(value, &need));
            }
        }
        let mut seen: IndexSet<ValueId> = IndexSet::new();
        for (value, need) in self.reads(id) {
            if self.plan.needs_grad(value) && !self.is_param(value) && seen.insert(value) {
                let place = adjoint(&natural, &need).summed();
                bytes.push(self.mem(value, &place));
            }
        }
        self.sizes.exprs.sum(bytes)
    }

    /// Whether a chain is nothing but sums.
    fn only_adds(&self, tail: OpId) -> bool {
        let add = |id: &OpId| self.graph.flow[*id].kind == OpKind::Map(MapFn::Add);
        self.plan.members[&tail].iter().all(add)
    }

    pub(super) fn is_param(&self, value: ValueId) -> bool {
        matches!(self.graph.value(value).role, ValueRole::Param(_))
    }
}

/// The product that gives the gradient of operand `at` of an m × k by k × n product.
fn transposed(e: &Extents, at: usize) -> Work {
    if at == 0 {
        Work::Matmul { m: e.m, n: e.k, k: e.n, batch: e.batch }
    } else {
        Work::Matmul { m: e.k, n: e.n, k: e.m, batch: e.batch }
    }
}
