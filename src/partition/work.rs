//! Work of each op on one rank.

use super::build::Builder;
use super::placement::AxisUse::Split;
use super::sizes::STATISTIC_BYTES;
use super::{Placement, Work, chains};
use crate::expr;
use crate::graph::{Attention, Custom, DimId, NormKind, OpId, OpKind, ValueId};
use indexmap::IndexSet;

/// The four extents of a product of two operands.
#[derive(Copy, Clone)]
pub(super) struct Extents {
    pub(super) m: expr::Id,
    pub(super) n: expr::Id,
    pub(super) k: expr::Id,
    pub(super) batch: expr::Id,
}

impl Builder<'_> {
    /// Rows, columns, depth and batch of a contraction, as its operands are needed.
    pub(super) fn extents(&mut self, op: OpId, contracted: &[DimId]) -> Extents {
        let graph = self.graph;
        let o = &graph.flow[op];
        let (a, b) = (&graph.value(o.inputs[0]).dims, &graph.value(o.inputs[1]).dims);
        let plan = self.plan.op(op);
        let (left, right) = (plan.needs[0].clone(), plan.needs[1].clone());
        let pick = |from: &[DimId], f: &dyn Fn(&DimId) -> bool| from.iter().copied().filter(f).collect::<Vec<_>>();
        let k = pick(a, &|d| contracted.contains(d));
        let batch = pick(a, &|d| !contracted.contains(d) && b.contains(d));
        let m = pick(a, &|d| !b.contains(d));
        let n = pick(b, &|d| !a.contains(d));
        Extents {
            m: self.sizes.elements_of(&m, &left),
            n: self.sizes.elements_of(&n, &right),
            k: self.sizes.elements_of(&k, &left),
            batch: self.sizes.elements_of(&batch, &left),
        }
    }

    /// Bytes of a value in memory, as an operand or result of elementwise work.
    pub(super) fn mem(&mut self, value: ValueId, place: &Placement) -> expr::Id {
        self.sizes.held(value, place)
    }

    /// Bytes of a value or its gradient that lie in memory at one moment: of logits whose loss is computed in pieces, a
    /// piece.
    pub(super) fn lying(&mut self, value: ValueId, place: &Placement) -> expr::Id {
        let bytes = self.mem(value, place);
        let pieces = self.plan.uses[value.0 as usize].iter().find_map(|(user, _)| match self.graph.flow[*user].kind {
            OpKind::CrossEntropy { chunks, .. } if chunks > 1 => Some(chunks),
            _ => None,
        });
        match pieces {
            Some(n) => {
                let n = self.sizes.exprs.int(n);
                self.sizes.exprs.ceil_div(bytes, n)
            }
            None => bytes,
        }
    }

    /// The forward work of an op that is no contraction and no chain; `None` where it is free.
    pub(super) fn forward_work(&mut self, id: OpId) -> Option<Work> {
        let graph = self.graph;
        let op = &graph.flow[id];
        let plan = self.plan.op(id).clone();
        let out = op.output;
        match &op.kind {
            OpKind::Contract { contracted } => {
                let Extents { m, n, k, batch } = self.extents(id, contracted);
                Some(Work::Matmul { m, n, k, batch })
            }
            OpKind::Attention(a) => Some(self.attention_work(id, a, false)),
            OpKind::Embed { .. } => {
                let write = self.mem(out, &plan.natural);
                let ids = self.mem(op.inputs[0], &plan.needs[0]);
                let read = self.sizes.exprs.add(write, ids);
                let flops = self.sizes.exprs.int(0);
                Some(Work::Elementwise { read, write, flops })
            }
            OpKind::Norm { kind, .. } => {
                let each = if *kind == NormKind::Rms { 4.0 } else { 6.0 };
                Some(self.stream(&op.inputs, &plan.needs, &[(out, plan.natural.clone())], (out, each)))
            }
            OpKind::Softmax { .. } => {
                Some(self.stream(&op.inputs, &plan.needs, &[(out, plan.natural.clone())], (out, 5.0)))
            }
            OpKind::CrossEntropy { .. } => Some(self.stream(&op.inputs, &plan.needs, &[], (op.inputs[0], 5.0))),
            OpKind::Sum { .. } | OpKind::Regroup { .. } => {
                Some(self.stream(&op.inputs, &plan.needs, &[(out, plan.natural.clone())], (op.inputs[0], 1.0)))
            }
            // The k largest of a row of scores: a pass over them and a softmax over what is left.
            OpKind::Select { .. } => {
                Some(self.stream(&op.inputs, &plan.needs, &[(out, plan.natural.clone())], (op.inputs[0], 2.0)))
            }
            OpKind::Dispatch(_) | OpKind::Combine(_) => Some(self.route_work(id, false)),
            OpKind::Custom(c) => Some(self.custom_work(id, c, false)),
            OpKind::Concat { .. } => {
                Some(self.stream(&op.inputs, &plan.needs, &[(out, plan.natural.clone())], (out, 0.0)))
            }
            OpKind::Map(_)
            | OpKind::Take { .. }
            | OpKind::Rename { .. }
            | OpKind::Split { .. }
            | OpKind::Merge { .. } => None,
        }
    }

    /// Reads `inputs`, writes `outputs`, does so many FLOP for each element of a value.
    fn stream(
        &mut self,
        inputs: &[ValueId],
        needs: &[Placement],
        outputs: &[(ValueId, Placement)],
        (counted, each): (ValueId, f64),
    ) -> Work {
        let read: Vec<_> = inputs.iter().zip(needs).map(|(v, p)| self.mem(*v, p)).collect();
        let write: Vec<_> = outputs.iter().map(|(v, p)| self.mem(*v, p)).collect();
        let known = inputs.iter().copied().zip(needs).chain(outputs.iter().map(|(v, p)| (*v, p)));
        let place = known.into_iter().find(|(v, _)| *v == counted).map(|(_, p)| p.clone()).unwrap_or_default();
        let elements = self.sizes.elements(counted, &place);
        let flops = self.sizes.times(elements, each);
        let (read, write) = (self.sizes.exprs.sum(read), self.sizes.exprs.sum(write));
        Work::Elementwise { read, write, flops }
    }

    /// The work of a chain: one kernel. The backward reads what it kept and the result's gradient.
    pub(super) fn chain_work(&mut self, tail: OpId, backward: bool) -> Work {
        let graph = self.graph;
        let out = graph.flow[tail].output;
        let natural = self.plan.op(tail).natural.summed();
        let result = self.mem(out, &natural);
        let (mut read, mut write) = (Vec::new(), Vec::new());
        let inputs = chains::inputs(graph, self.plan, tail);
        let mut seen: IndexSet<ValueId> = IndexSet::new();
        for input in inputs {
            if !seen.insert(input.value) {
                continue;
            }
            let need = self.plan.op(input.op).needs[input.operand].clone();
            let bytes = self.mem(input.value, &need);
            if !backward {
                read.push(bytes);
                continue;
            }
            if input.kept {
                read.push(bytes);
            }
            if self.plan.needs_grad(input.value) {
                write.push(bytes);
            }
        }
        if backward {
            read.push(result);
        } else {
            write.push(result);
        }
        let mut each = 0.0;
        for member in &self.plan.members[&tail] {
            if let OpKind::Map(f) = graph.flow[*member].kind {
                each += chains::flops(f);
            }
        }
        let elements = self.sizes.elements(out, &natural);
        let flops = self.sizes.times(elements, if backward { 2.0 * each } else { each });
        let (read, write) = (self.sizes.exprs.sum(read), self.sizes.exprs.sum(write));
        Work::Elementwise { read, write, flops }
    }

    /// Attention as q and the keys are placed. Every key the queries of a rank meet counts, the ones that come round
    /// included.
    pub(super) fn attention_work(&mut self, id: OpId, a: &Attention, backward: bool) -> Work {
        let graph = self.graph;
        let op = &graph.flow[id];
        let needs = self.plan.op(id).needs.clone();
        let [q, k, v, ..] = &needs[..] else {
            let zero = self.sizes.exprs.int(0);
            return Work::Elementwise { read: zero, write: zero, flops: zero };
        };
        let rest = graph.value(op.inputs[0]).dims.iter().copied();
        let batch: Vec<_> = rest.filter(|d| ![a.sequence, a.heads, a.head_dim].contains(d)).collect();
        let path = &graph.regions[op.region.0 as usize].path;
        let rings = super::attention::ring_axes(self.layout, path, a, k);
        let whole_keys = rings.iter().fold(k.clone(), |p, x| p.with(*x, super::placement::AxisUse::Whole));
        Work::Attention {
            q: self.sizes.local(a.sequence, q.axes_of(a.sequence)),
            kv: self.sizes.local(a.keys, whole_keys.axes_of(a.keys)),
            heads: self.sizes.local(a.heads, q.axes_of(a.heads)),
            kv_heads: self.sizes.local(a.kv_heads, k.axes_of(a.kv_heads)),
            d_qk: self.sizes.local(a.head_dim, q.axes_of(a.head_dim)),
            d_v: self.sizes.local(a.value_dim, v.axes_of(a.value_dim)),
            batch: self.sizes.elements_of(&batch, q),
            pairs: crate::graph::pairs(graph, a, self.sizes.exprs),
            backward,
        }
    }

    /// Bytes moved to copy the gradient of an op's result into those of its operands.
    pub(super) fn copy_work(&mut self, id: OpId) -> Work {
        let op = &self.graph.flow[id];
        let plan = self.plan.op(id).clone();
        let read = self.mem(op.output, &plan.natural.summed());
        let write: Vec<_> = op.inputs.iter().zip(&plan.needs).map(|(v, p)| self.mem(*v, p)).collect();
        let write = self.sizes.exprs.sum(write);
        let flops = self.sizes.exprs.int(0);
        Work::Elementwise { read, write, flops }
    }

    /// Work a declaration gives the numbers of: over the whole of its dimensions, shared by the ranks that split any.
    pub(super) fn custom_work(&mut self, id: OpId, c: &Custom, backward: bool) -> Work {
        let op = &self.graph.flow[id];
        let plan = self.plan.op(id).clone();
        let natural = plan.natural.summed();
        let mut axes = natural.axes();
        axes.extend(plan.needs.iter().flat_map(Placement::axes));
        axes.sort();
        axes.dedup();
        let ranks = self.sizes.group(&axes);
        let share = |b: &mut Self, whole: expr::Id| {
            let ranks = b.sizes.exprs.to_real(ranks);
            b.sizes.exprs.div(whole, ranks)
        };
        let flops = share(self, if backward { c.backward_flops } else { c.flops });
        let operands: Vec<_> = op.inputs.iter().zip(&plan.needs).map(|(v, p)| self.mem(*v, p)).collect();
        let operands = self.sizes.exprs.sum(operands);
        let result = self.mem(op.output, &natural);
        let read = c.read.map_or(operands, |r| share(self, r));
        let write = c.write.map_or(result, |w| share(self, w));
        // The backward reads both and writes the gradients of the operands.
        let (read, write) = if backward { (self.sizes.real_sum(read, write), operands) } else { (read, write) };
        Work::Elementwise { read, write, flops }
    }

    /// Bytes of the fp32 statistics of an op: one for each row, or two where mean and variance are kept.
    pub(super) fn statistic_bytes(&mut self, id: OpId, over: &[DimId]) -> expr::Id {
        let graph = self.graph;
        let op = &graph.flow[id];
        let x = op.inputs[0];
        let need = self.plan.op(id).needs[0].clone();
        let dims: Vec<_> = graph.value(x).dims.iter().copied().filter(|d| !over.contains(d)).collect();
        let rows = self.sizes.elements_of(&dims, &need);
        let two = matches!(op.kind, OpKind::Norm { kind: NormKind::Layer, .. });
        self.sizes.times(rows, if two { 2.0 * STATISTIC_BYTES } else { STATISTIC_BYTES })
    }

    /// The axes that split the dimension an op keeps statistics over.
    pub(super) fn statistic_axes(&self, id: OpId, over: &[DimId]) -> Vec<crate::layout::AxisId> {
        let need = &self.plan.op(id).needs[0];
        self.layout.axis_ids().filter(|a| matches!(need.on(*a), Split(d) if over.contains(&d))).collect()
    }
}
