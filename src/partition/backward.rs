//! The backward of a unit: adjoints in reverse program order, gradients added before they are reduced.

use super::build::{Builder, Pass, Site};
use super::live::{Buffer, Live, Term};
use super::placement::AxisUse::{Partial, Split, Whole};
use super::plan::adjoint;
use super::work::Extents;
use super::{Content, Placement, StepKind, Task, TensorId, Work, chains};
use crate::expr;
use crate::graph::{DimId, MapFn, OpId, OpKind, ValueId, ValueRole};
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
                Some(partial) => self.add_up(pass, self.site(*id), terms, &partial, &mut grads.live),
                None => self.result_gradient(pass, *id, terms, &mut grads.live),
            };
            let buffer = result.buffer;
            if op.inputs.iter().any(|v| self.plan.needs_grad(*v)) {
                self.adjoint_of(pass, *id, result, grads);
            }
            let gradients = grads.live.total(self.sizes.exprs);
            let copies = self.copies_of(*id);
            let loss = self.loss_extra(*id);
            let working = self.sizes.exprs.sum([gradients, copies, loss]);
            transient = self.sizes.exprs.max(transient, working);
            if let Some(buffer) = buffer {
                grads.live.release(buffer);
            }
        }
        self.finish_unit(pass, grads);
        transient
    }

    /// What the loss holds beside the logits and their gradient; of a loss in pieces for one of them.
    fn loss_extra(&mut self, id: OpId) -> expr::Id {
        let each = self.sizes.bytes.loss_extra;
        let op = &self.graph.flow[id];
        let OpKind::CrossEntropy { chunks, .. } = &op.kind else { return self.sizes.exprs.int(0) };
        let (value, pieces) = (op.inputs[0], *chunks);
        let place = self.plan.op(id).needs[0].clone();
        let elements = self.sizes.elements(value, &place);
        let pieces = self.sizes.exprs.int(pieces);
        let elements = self.sizes.exprs.ceil_div(elements, pieces);
        self.sizes.times(elements, each)
    }

    /// Where the gradient of the result of a lookup of rows, a renaming or a dispatch is a partial sum and otherwise as it came
    /// out, that placement: the sum can wait.
    fn passes(&self, id: OpId, terms: &[Term]) -> Option<Placement> {
        if !matches!(self.graph.flow[id].kind, OpKind::Take { .. } | OpKind::Rename { .. } | OpKind::Dispatch(_)) {
            return None;
        }
        let first = self.place(terms.first()?.tensor);
        let natural = &self.plan.op(id).natural;
        let alike = terms.iter().all(|t| self.place(t.tensor) == first) && first.summed() == natural.summed();
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
        let sum = self.add_up(pass, site, terms, &meet, live);
        self.moved(pass, site, sum, &natural, live)
    }

    /// A term brought to `to`.
    fn moved(&mut self, pass: &mut Pass, site: Site, term: Term, to: &Placement, live: &mut Live) -> Term {
        if self.place(term.tensor) == to {
            return term;
        }
        let tensor = self.reshard(pass, site, term.tensor, to);
        let mut buffer = None;
        if let Some(old) = term.buffer {
            live.release(old);
            let bytes = self.lying(self.tensors[tensor.0 as usize].value, to);
            buffer = Some(live.alloc(bytes));
        }
        Term { tensor, buffer }
    }

    /// Adds terms, one at least, up where they are alike, brings each sum to `to` and adds those.
    pub(super) fn add_up(
        &mut self,
        pass: &mut Pass,
        site: Site,
        terms: Vec<Term>,
        to: &Placement,
        live: &mut Live,
    ) -> Term {
        let mut groups: Vec<Term> = Vec::new();
        for term in terms {
            match groups.iter_mut().find(|g| self.place(g.tensor) == self.place(term.tensor)) {
                Some(group) => *group = self.add(pass, site, *group, term, live),
                None => groups.push(term),
            }
        }
        let mut sum: Option<Term> = None;
        for group in groups {
            let group = self.moved(pass, site, group, to, live);
            sum = Some(match sum {
                Some(sum) => self.add(pass, site, sum, group, live),
                None => group,
            });
        }
        sum.expect("a gradient has a term")
    }

    /// Adds `term` to `sum`, in place where nothing else lies there. A parameter's terms are added by the products
    /// that make them.
    fn add(&mut self, pass: &mut Pass, site: Site, mut sum: Term, term: Term, live: &mut Live) -> Term {
        let Term { tensor, .. } = sum;
        let old = self.tensors[tensor.0 as usize].clone();
        let (value, place) = (old.value, old.place.clone());
        let new = self.tensor(old);
        let kind = match self.graph.producer(value) {
            Some(op) => {
                let write = self.mem(value, &place);
                let read = self.sizes.times(write, 2.0);
                let flops = self.sizes.elements(value, &place);
                StepKind::Compute { op, task: Task::Sum, work: Work::Elementwise { read, write, flops } }
            }
            None => StepKind::Free { op: self.plan.uses[value.0 as usize][0].0, task: Task::Sum },
        };
        self.step(pass, site, kind, (&[tensor, term.tensor], &[new]));
        sum.tensor = new;
        if let Some(buffer) = term.buffer {
            live.release(buffer);
        }
        if let Some(buffer) = sum.buffer.filter(|b| !live.is_sole(*b)) {
            live.release(buffer);
            let bytes = self.lying(value, &place);
            sum.buffer = Some(live.alloc(bytes));
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
            let sum = self.add_up(pass, self.site_of(value), terms, &rest, &mut grads.live);
            grads.values.insert(value, vec![sum]);
        }
    }

    /// A tensor for the gradient of operand `at` of `op`, the result's being placed as `result`; none where the operand
    /// has no gradient.
    fn operand_gradient(&mut self, (op, at): (OpId, usize), result: &Placement) -> Option<TensorId> {
        let value = self.graph.flow[op].inputs[at];
        // Where a token goes is no function of the slots: only its weights have a gradient, from the combine.
        let chooses = matches!(self.graph.flow[op].kind, OpKind::Dispatch(_)) && at == 1;
        if chooses || !self.plan.needs_grad(value) {
            return None;
        }
        let plan = self.plan.op(op);
        let mut place = adjoint(result, &plan.needs[at]);
        if matches!(self.graph.flow[op].kind, OpKind::Combine(_)) && at == 1 {
            // The weights meet a part of the slots, or slots that are a partial sum.
            place = plan.natural.partial.iter().fold(place, |p, axis| p.with(*axis, Partial));
        }
        Some(self.whole(value, Content::Gradient, place))
    }

    /// The term of the gradient of `value` that a product may add to in place, if there is one.
    fn added_to(&self, grads: &Gradients, value: ValueId, place: &Placement) -> Option<usize> {
        let there = grads.values.get(&value)?.iter().position(|t| self.place(t.tensor) == place)?;
        let buffer = grads.values[&value][there].buffer?;
        grads.live.is_sole(buffer).then_some(there)
    }

    /// Keeps `tensor`, made in `unit`, as a term of the gradient it is.
    fn contribute(&mut self, grads: &mut Gradients, unit: u32, tensor: TensorId, lies: Lies) {
        let value = self.tensors[tensor.0 as usize].value;
        if self.is_param(value) {
            grads.params.entry((unit, value)).or_default().push(Term { tensor, buffer: None });
            return;
        }
        let buffer = match lies {
            Lies::Shared(buffer) => {
                grads.live.share(buffer);
                buffer
            }
            Lies::New => {
                let bytes = self.lying(value, &self.place(tensor).clone());
                grads.live.alloc(bytes)
            }
        };
        grads.values.entry(value).or_default().push(Term { tensor, buffer: Some(buffer) });
    }

    /// The two products that make the gradients of the operands of a product.
    fn product_adjoint(
        &mut self,
        pass: &mut Pass,
        id: OpId,
        contracted: &[DimId],
        result: Term,
        grads: &mut Gradients,
    ) {
        let op = &self.graph.flow[id];
        let site = self.site(id);
        let extents = self.extents(id, contracted);
        let place = self.place(result.tensor).clone();
        for at in 0..2 {
            let Some(gradient) = self.operand_gradient((id, at), &place) else { continue };
            let need = self.plan.op(id).needs[1 - at].clone();
            let other = self.bring(pass, site, op.inputs[1 - at], &need);
            let mut reads = vec![result.tensor, other];
            // A product adds to what is there for free.
            let there = self.added_to(grads, op.inputs[at], self.place(gradient));
            reads.extend(there.map(|t| grads.values[&op.inputs[at]][t].tensor));
            let step = self.compute(pass, (id, Task::Backward), Some(transposed(&extents, at)), (&reads, &[gradient]));
            if self.is_param(op.inputs[at]) {
                self.flow[step].weight = true;
                let result = self.mem(op.output, &place);
                grads.late.insert(LateValue::Result(op.output), result);
                let other = self.mem(op.inputs[1 - at], &need);
                grads.late.insert(LateValue::Operand(op.inputs[1 - at]), other);
            }
            match there {
                Some(term) => grads.values[&op.inputs[at]][term].tensor = gradient,
                None => self.contribute(grads, op.unit, gradient, Lies::New),
            }
        }
    }

    /// The steps that turn the gradient of the result of `op` into those of its operands.
    fn adjoint_of(&mut self, pass: &mut Pass, id: OpId, result: Term, grads: &mut Gradients) {
        let graph = self.graph;
        let op = &graph.flow[id];
        let site = self.site(id);
        if let OpKind::Contract { contracted } = &op.kind {
            self.product_adjoint(pass, id, contracted, result, grads);
            return;
        }
        let mut reads = vec![result.tensor];
        if let OpKind::Embed { .. } = op.kind {
            let need = self.plan.op(id).needs[0].clone();
            reads.push(self.bring(pass, site, op.inputs[0], &need));
        }
        for (value, need) in self.backward_reads(id) {
            // The weights' gradients need the slots where their tokens are: as the forward received them.
            let returned = self.returned.get(&id).copied().filter(|t| self.tensors[t.0 as usize].value == value);
            let read = match (&op.kind, returned) {
                (OpKind::Combine(_), Some(there)) => there,
                (OpKind::Combine(r), None) if value == op.inputs[0] => {
                    let slots = self.bring(pass, site, value, &need);
                    self.exchange(pass, id, r, slots)
                }
                _ => self.bring(pass, site, value, &need),
            };
            reads.push(read);
        }
        self.backward_statistics(pass, id, &mut reads);
        match &op.kind {
            OpKind::Attention(a) => self.ring(pass, id, a, &mut reads[2..4]),
            OpKind::Dispatch(r) => reads[0] = self.exchange(pass, id, r, reads[0]),
            _ => {}
        }
        // What has no work hands its gradient on where it lies.
        let work = self.backward_work(id);
        let lies = match result.buffer {
            Some(buffer) if work.is_none() => Lies::Shared(buffer),
            Some(_) | None => Lies::New,
        };
        let place = self.place(result.tensor).clone();
        let operands: Vec<_> = match op.kind {
            OpKind::Map(_) => chains::inputs(graph, self.plan, id).iter().map(|i| (i.op, i.operand)).collect(),
            _ => (0..op.inputs.len()).map(|at| (id, at)).collect(),
        };
        let mut gradients = Vec::new();
        for operand in operands {
            gradients.extend(self.operand_gradient(operand, &place).map(|t| (operand.1, t)));
        }
        let made: Vec<_> = gradients.iter().map(|(_, t)| *t).collect();
        let moved = self.homeward(id, &gradients);
        self.compute(pass, (id, Task::Backward), work, (&reads, &made));
        let mut home = moved.clone();
        match &op.kind {
            OpKind::Attention(a) => self.ring(pass, id, a, &mut home),
            OpKind::Combine(r) => home.iter_mut().for_each(|t| *t = self.exchange(pass, id, r, *t)),
            _ => {}
        }
        for gradient in made {
            let at = moved.iter().position(|t| *t == gradient);
            self.contribute(grads, op.unit, at.map_or(gradient, |at| home[at]), lies);
        }
    }

    /// Of the gradients of the operands of `id`, those that come out elsewhere and go home once they are there: keys and
    /// values that went round, slots that are beside their tokens. Says where they come out.
    fn homeward(&mut self, id: OpId, gradients: &[(usize, TensorId)]) -> Vec<TensorId> {
        let (wanted, axes, there): (&[usize], _, _) = match &self.graph.flow[id].kind {
            OpKind::Attention(a) => (&[1, 2], self.ring_axes(id, a), Partial),
            OpKind::Combine(r) => (&[0], self.travels(id, r), Split(r.slots)),
            _ => return Vec::new(),
        };
        let mut out = Vec::new();
        for (_, tensor) in gradients.iter().filter(|(at, _)| wanted.contains(at)) {
            let place = self.place(*tensor).clone();
            self.tensors[tensor.0 as usize].place = axes.iter().fold(place, |p, axis| p.with(*axis, there));
            if let OpKind::Combine(r) = &self.graph.flow[id].kind {
                self.tensors[tensor.0 as usize].spread = self.spread(id, r);
            }
            out.push(*tensor);
        }
        out
    }

    /// A norm or softmax over a split dimension reduces one statistic in the backward; a loss none. What the forward
    /// of a norm or loss reduced is read again.
    fn backward_statistics(&mut self, pass: &mut Pass, id: OpId, reads: &mut Vec<TensorId>) {
        let Some(made) = self.statistics.get(&id) else { return };
        let n = made.len() as u8;
        let graph = self.graph;
        let over = match &graph.flow[id].kind {
            OpKind::Norm { over, .. } => over.as_slice(),
            OpKind::Softmax { over } => std::slice::from_ref(over),
            _ => &[],
        };
        if !matches!(graph.flow[id].kind, OpKind::Softmax { .. }) {
            reads.extend(made.iter().copied());
        }
        if over.is_empty() {
            return;
        }
        let axes = self.statistic_axes(id, over);
        let bytes = self.statistic_bytes(id, over);
        let one = self.statistic(pass, (id, n), &axes, (bytes, false), reads);
        reads.push(one);
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
        let mut bytes = Vec::new();
        for (value, need) in self.backward_reads(id) {
            if !self.stays(op.region, value, &need) && *self.plan.rest(value) != need && !self.is_param(value) {
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
