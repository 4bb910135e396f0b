//! The backward of a unit: adjoints in reverse program order, gradients added before they are reduced.

use super::build::{After, Builder, Pass, Site, join};
use super::live::{Buffer, Live, Term};
use super::placement::AxisUse::{Split, Whole};
use super::plan::adjoint;
use super::work::Extents;
use super::{Placement, StepKind, Work, chains, storage};
use crate::expr;
use crate::graph::{MapFn, OpId, OpKind, ValueId, ValueRole};
use indexmap::IndexMap;

/// Gradients on their way, across units.
#[derive(Default, Debug)]
pub(super) struct Gradients {
    /// Of values.
    pub(super) values: IndexMap<ValueId, Vec<Term>>,
    /// Of parameters, by unit that used them.
    pub(super) params: IndexMap<(u32, ValueId), Vec<Term>>,
    /// The memory they lie in.
    pub(super) live: Live,
    /// What the unit's gradients of parameters need, and its bytes.
    pub(super) late: IndexMap<LateValue, expr::Id>,
}

/// What the gradient of a parameter is made of, each once however many need it.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum LateValue {
    /// A value that a parameter is multiplied with.
    Operand(ValueId),
    /// The gradient of the product.
    Result(ValueId),
}

/// Where the gradient of an operand comes to lie.
#[derive(Copy, Clone)]
enum Lies {
    /// In memory of its own.
    New,
    /// Added in place to a term that is there already: a product does so for free.
    Added,
    /// Where the gradient of the result lies.
    Shared(Buffer),
}

impl Builder<'_> {
    /// The backward steps of `ops`, the last ops of their chains in program order. Hands back the most bytes alive
    /// at one moment beside what was saved.
    pub(super) fn backward(&mut self, pass: &mut Pass, ops: &[OpId], grads: &mut Gradients) -> expr::Id {
        let mut transient = self.sizes.exprs.int(0);
        for id in ops.iter().rev() {
            let op = &self.graph.flow[*id];
            let Some(terms) = grads.values.shift_remove(&op.output) else { continue };
            // One linear use: the sum is left to whoever it flows to, as in the forward.
            let to = self.passes(*id, &terms);
            let result = match to {
                Some(partial) => self.add_up(pass, self.site(*id), op.output, terms, &partial, &mut grads.live),
                None => self.result_gradient(pass, *id, terms, &mut grads.live),
            };
            let buffer = result.buffer;
            if op.inputs.iter().any(|v| self.plan.needs_grad(*v)) {
                self.adjoint_of(pass, *id, result, grads);
            }
            let gradients = grads.live.total(self.sizes.exprs);
            let copies = self.copies_of(*id);
            let working = self.sizes.exprs.sum([gradients, copies]);
            transient = self.sizes.exprs.max(transient, working);
            if let Some(buffer) = buffer {
                grads.live.release(buffer);
            }
        }
        self.finish_unit(pass, grads);
        transient
    }

    /// Where the gradient of the result of a lookup of rows, a renaming or a dispatch is a partial sum and otherwise as it came
    /// out, that placement: the sum can wait.
    fn passes(&self, id: OpId, terms: &[Term]) -> Option<Placement> {
        if !matches!(self.graph.flow[id].kind, OpKind::Take { .. } | OpKind::Rename { .. } | OpKind::Dispatch(_)) {
            return None;
        }
        let first = &terms.first()?.place;
        let natural = &self.plan.op(id).natural;
        let alike = terms.iter().all(|t| t.place == *first) && first.summed() == natural.summed();
        (alike && !first.partial.is_empty() && natural.partial.is_empty()).then(|| first.clone())
    }

    /// The gradient of the result of `op`, in the placement the result came out in.
    fn result_gradient(&mut self, pass: &mut Pass, id: OpId, terms: Vec<Term>, live: &mut Live) -> Term {
        let op = &self.graph.flow[id];
        let rest = self.plan.rest(op.output).summed();
        let natural = self.plan.op(id).natural.summed();
        // Where the forward gathered, a partial sum is scattered at once: the adjoint of the gather takes it as it is.
        let meet = self.layout.axis_ids().fold(rest.clone(), |p, axis| match (natural.on(axis), rest.on(axis)) {
            (Split(d), Whole) => p.with(axis, Split(d)),
            _ => p,
        });
        let site = self.site(id);
        let sum = self.add_up(pass, site, op.output, terms, &meet, live);
        self.moved(pass, site, op.output, sum, &natural, live)
    }

    /// A term brought to `to`.
    fn moved(
        &mut self,
        pass: &mut Pass,
        site: Site,
        value: ValueId,
        term: Term,
        to: &Placement,
        live: &mut Live,
    ) -> Term {
        if term.place == *to {
            return term;
        }
        let after = self.reshard(pass, site, value, (&term.place, to), term.after);
        let mut buffer = None;
        if let Some(old) = term.buffer {
            live.release(old);
            let bytes = self.lying(value, to);
            buffer = Some(live.alloc(bytes));
        }
        Term { place: to.clone(), after, buffer }
    }

    /// Adds terms up where they are alike, brings each sum to `to` and adds those.
    pub(super) fn add_up(
        &mut self,
        pass: &mut Pass,
        site: Site,
        value: ValueId,
        terms: Vec<Term>,
        to: &Placement,
        live: &mut Live,
    ) -> Term {
        let mut groups: Vec<Term> = Vec::new();
        for term in terms {
            match groups.iter_mut().find(|g| g.place == term.place) {
                Some(group) => self.add(pass, site, value, group, &term, live),
                None => groups.push(term),
            }
        }
        let mut sum: Option<Term> = None;
        for group in groups {
            let group = self.moved(pass, site, value, group, to, live);
            match &mut sum {
                Some(sum) => self.add(pass, site, value, sum, &group, live),
                None => sum = Some(group),
            }
        }
        sum.unwrap_or_else(|| Term { place: to.clone(), after: After::new(), buffer: None })
    }

    /// Adds `term` to `sum`, in place where nothing else lies there. A parameter's terms are added by the products
    /// that make them.
    fn add(&mut self, pass: &mut Pass, site: Site, value: ValueId, sum: &mut Term, term: &Term, live: &mut Live) {
        join(&mut sum.after, &term.after);
        if let Some(op) = self.graph.producer(value) {
            let write = self.mem(value, &sum.place);
            let read = self.sizes.times(write, 2.0);
            let flops = self.sizes.elements(value, &sum.place);
            let work = Work::Elementwise { read, write, flops };
            let step = self.step(pass, site, StepKind::Compute { op, work }, &sum.after);
            sum.after = std::iter::once(step).collect();
        }
        if let Some(buffer) = term.buffer {
            live.release(buffer);
        }
        if let Some(buffer) = sum.buffer.filter(|b| !live.is_sole(*b)) {
            live.release(buffer);
            let bytes = self.lying(value, &sum.place);
            sum.buffer = Some(live.alloc(bytes));
        }
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
            let sum = self.add_up(pass, site, value, terms, &rest, &mut grads.live);
            grads.values.insert(value, vec![sum]);
        }
    }

    /// Hands the gradient of operand `at` of `op` on, the result's being placed as `result`.
    fn contribute(
        &mut self,
        grads: &mut Gradients,
        (op, at): (OpId, usize),
        result: &Placement,
        after: &After,
        lies: Lies,
    ) {
        let value = self.graph.flow[op].inputs[at];
        if !self.plan.needs_grad(value) {
            return;
        }
        let place = adjoint(result, &self.plan.op(op).needs[at]);
        let unit = self.graph.flow[op].unit;
        if self.is_param(value) {
            let terms = grads.params.entry((unit, value)).or_default();
            terms.push(Term { place, after: after.clone(), buffer: None });
            return;
        }
        let terms = grads.values.entry(value).or_default();
        let there = terms.iter_mut().find(|t| t.place == place);
        let buffer = match (lies, there) {
            (Lies::Added, Some(term)) if term.buffer.is_some_and(|b| grads.live.is_sole(b)) => {
                join(&mut term.after, after);
                return;
            }
            (Lies::Shared(buffer), _) => {
                grads.live.share(buffer);
                buffer
            }
            (Lies::New | Lies::Added, _) => {
                let bytes = self.lying(value, &place);
                grads.live.alloc(bytes)
            }
        };
        terms.push(Term { place, after: after.clone(), buffer: Some(buffer) });
    }

    /// The steps that turn the gradient of the result of `op` into those of its operands.
    fn adjoint_of(&mut self, pass: &mut Pass, id: OpId, result: Term, grads: &mut Gradients) {
        let graph = self.graph;
        let op = &graph.flow[id];
        let site = self.site(id);
        if let OpKind::Contract { contracted } = &op.kind {
            let extents = self.extents(id, contracted);
            for at in (0..2).filter(|at| self.plan.needs_grad(op.inputs[*at])) {
                let need = self.plan.op(id).needs[1 - at].clone();
                let mut ready = self.bring(pass, site, op.inputs[1 - at], &need);
                join(&mut ready, &result.after);
                let step = self.compute(pass, id, transposed(&extents, at), &ready);
                if self.is_param(op.inputs[at]) {
                    self.flow[step].weight = true;
                    let result = self.mem(op.output, &result.place);
                    grads.late.insert(LateValue::Result(op.output), result);
                    let other = self.mem(op.inputs[1 - at], &need);
                    grads.late.insert(LateValue::Operand(op.inputs[1 - at]), other);
                }
                let after = std::iter::once(step).collect();
                self.contribute(grads, (id, at), &result.place, &after, Lies::Added);
            }
            return;
        }
        let mut ready = result.after;
        for (value, need) in self.backward_reads(id) {
            let brought = self.bring(pass, site, value, &need);
            join(&mut ready, &brought);
        }
        ready = self.backward_statistics(pass, id, ready);
        if let OpKind::Attention(a) = &op.kind {
            ready = self.ring(pass, id, a, ready, 2);
        }
        if let OpKind::Dispatch(r) = &op.kind {
            ready = self.exchange(pass, id, r, ready);
        }
        // What has no work hands its gradient on where it lies.
        let mut lies = result.buffer.map_or(Lies::New, Lies::Shared);
        if let Some(work) = self.backward_work(id) {
            ready = std::iter::once(self.compute(pass, id, work, &ready)).collect();
            lies = Lies::New;
        }
        if let OpKind::Combine(r) = &op.kind {
            ready = self.exchange(pass, id, r, ready);
        }
        if matches!(op.kind, OpKind::Map(_)) {
            for input in chains::inputs(graph, self.plan, id) {
                self.contribute(grads, (input.op, input.operand), &result.place, &ready, lies);
            }
        } else {
            for at in 0..op.inputs.len() {
                self.contribute(grads, (id, at), &result.place, &ready, lies);
            }
        }
    }

    /// A norm or softmax over a split dimension reduces one statistic in the backward; a loss none.
    fn backward_statistics(&mut self, pass: &mut Pass, id: OpId, after: After) -> After {
        let graph = self.graph;
        let over = match &graph.flow[id].kind {
            OpKind::Norm { over, .. } => over.as_slice(),
            OpKind::Softmax { over } => std::slice::from_ref(over),
            _ => return after,
        };
        let axes = self.statistic_axes(id, over);
        if axes.is_empty() {
            return after;
        }
        let bytes = self.statistic_bytes(id, over);
        self.statistic(pass, id, &axes, bytes, false, &after)
    }

    /// The backward work of an op that is no contraction; `None` where it is free.
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
            // Of a selection: one gradient for each choice, from the scores.
            OpKind::Softmax { .. } | OpKind::Select { .. } => 4.0,
            OpKind::CrossEntropy { .. } => 3.0,
            // A sum hands its gradient on as it is; any other chain is a kernel.
            OpKind::Map(_) => return (!self.only_adds(id)).then(|| self.chain_work(id, true)),
            OpKind::Dispatch(_) | OpKind::Combine(_) => return Some(self.route_work(id, true)),
            OpKind::Custom(c) => return Some(self.custom_work(id, c, true)),
            // Each piece of the gradient is copied out; every neighbour gets the same.
            OpKind::Concat { .. } | OpKind::Regroup { .. } => return Some(self.copy_work(id)),
            OpKind::Sum { .. }
            | OpKind::Contract { .. }
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

    /// Bytes of what was gathered for the backward of `op` and is not kept.
    fn copies_of(&mut self, id: OpId) -> expr::Id {
        let op = &self.graph.flow[id];
        let keep = storage::keeps_gathered(self.graph, self.layout, op.region);
        let mut bytes = Vec::new();
        for (value, need) in self.backward_reads(id) {
            if !keep && *self.plan.rest(value) != need && !self.is_param(value) {
                bytes.push(self.mem(value, &need));
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
