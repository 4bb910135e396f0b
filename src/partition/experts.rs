//! Mixture of experts: which axes split experts, slots and weights, and what tokens travel.

use super::build::{Builder, Pass};
use super::placement::AxisUse::{Partial, Split, Whole};
use super::plan::{OnAxis, Planner};
use super::{Collective, CollectiveKind, Placement, Purpose, TensorId, Work};
use crate::graph::{DimId, Op, OpId, OpKind, Route, ValueId};
use crate::layout::AxisId;
use smallvec::SmallVec;

/// Tokens and choices to slots. An axis that splits tokens splits experts or slots afterwards; one that splits the
/// experts' weights has them gathered.
pub(super) fn dispatch(planner: &Planner<'_>, op: &Op, r: &Route, axis: AxisId) -> OnAxis {
    let [tokens, route] = op.inputs[..] else { return (vec![Whole; op.inputs.len()], Whole) };
    let out = planner.rule(op.output).on(axis);
    let rule = planner.rule(tokens).on(axis);
    match (out, rule) {
        (Split(d), Split(t)) if (d == r.experts || d == r.slots) && planner.has(route, t) => (vec![rule, rule], out),
        (Split(d), _) if d == r.experts => (vec![Whole, Whole], out),
        // The width rides along.
        (Split(d), _) if planner.has(tokens, d) => (vec![out, Whole], out),
        (Split(_) | Whole | Partial, _) => (vec![Whole, Whole], Whole),
    }
}

/// Slots back to tokens. Where tokens are not split but experts are, every rank has its experts' part of the sum.
pub(super) fn combine(planner: &Planner<'_>, op: &Op, r: &Route, axis: AxisId) -> OnAxis {
    let [slots, route] = op.inputs[..] else { return (vec![Whole; op.inputs.len()], Whole) };
    if planner.is_pending(slots, axis) {
        // The sum over what the weights were split by waits until it is at its tokens.
        return (vec![Partial, Whole], Partial);
    }
    let from = planner.at(slots, axis);
    let out = planner.rule(op.output).on(axis);
    // Slots lie in the order of the tokens that filled them: only where those were split alike are they a rank's own.
    let filled = planner.graph.ops().find(|(_, o)| matches!(&o.kind, OpKind::Dispatch(d) if d.slots == r.slots));
    let alike = |t| filled.is_some_and(|(_, o)| planner.rule(o.inputs[0]).on(axis) == Split(t));
    match (from, out) {
        (Split(d), Split(t)) if (d == r.experts || d == r.slots) && planner.has(route, t) && alike(t) => {
            (vec![from, out], out)
        }
        (Split(d), _) if d == r.experts => (vec![from, Whole], Partial),
        (Split(d), _) if planner.has(op.output, d) => (vec![from, Whole], from),
        (Split(_) | Whole | Partial, _) => (vec![Whole, Whole], Whole),
    }
}

impl Builder<'_> {
    /// The all-to-all between tokens and the experts they chose, over the axes that split both: slots, or their
    /// gradient, go from where they are to the other side.
    pub(super) fn exchange(&mut self, pass: &mut Pass, id: OpId, r: &Route, tensor: TensorId) -> TensorId {
        let op = &self.graph.flow[id];
        let axes = self.travels(id, r);
        if axes.is_empty() {
            return tensor;
        }
        let into = matches!(op.kind, OpKind::Dispatch(_));
        // What the fullest rank takes in is the larger side.
        let (value, at_experts) = self.slots(id);
        let bytes = self.sizes.wire(value, &at_experts.summed());
        let purpose = if into { Purpose::Dispatch } else { Purpose::Combine };
        let here = self.place(tensor).clone();
        let out = axes.iter().all(|a| here.on(*a) == Split(r.slots));
        let other = if out { r.experts } else { r.slots };
        let place = axes.iter().fold(here, |p, a| p.with(*a, Split(other)));
        let axes = axes.into_iter().collect();
        let what = Collective { kind: CollectiveKind::AllToAll, axes, bytes, value, purpose, maximum: false };
        let site = self.site(id);
        let moved = self.collective(pass, site, what, tensor, place);
        self.tensors[moved.0 as usize].spread = if out { None } else { self.spread(id, r) };
        moved
    }

    /// How the experts of slots that are beside their tokens lie on a rank.
    pub(super) fn spread(&self, id: OpId, r: &Route) -> Option<(DimId, SmallVec<[AxisId; 2]>)> {
        let (_, at_experts) = self.slots(id);
        let (axes, beside) = (at_experts.axes_of(r.experts), self.at_tokens(id, r));
        let block = axes.starts_with(beside.axes_of(r.experts));
        (!block).then(|| (r.experts, axes.iter().copied().collect()))
    }

    /// The slots a dispatch fills or a combine empties, and where they are at their experts.
    fn slots(&self, id: OpId) -> (ValueId, Placement) {
        let (op, plan) = (&self.graph.flow[id], self.plan.op(id));
        match op.kind {
            OpKind::Dispatch(_) => (op.output, plan.natural.clone()),
            _ => (op.inputs[0], plan.needs[0].clone()),
        }
    }

    /// The axes that split both tokens and experts: rows travel over them.
    pub(super) fn travels(&self, id: OpId, r: &Route) -> Vec<AxisId> {
        let (_, place) = self.slots(id);
        let choices = &self.plan.op(id).needs[1];
        let travels = |a: &AxisId| place.on(*a) == Split(r.experts) && choices.on(*a) != Whole;
        self.layout.axis_ids().filter(travels).collect()
    }

    /// Where slots are beside their tokens: every rank has slots of all experts for its own.
    pub(super) fn at_tokens(&self, id: OpId, r: &Route) -> Placement {
        let (_, place) = self.slots(id);
        self.travels(id, r).into_iter().fold(place, |p, a| p.with(a, Split(r.slots)))
    }

    /// Rows copied into slots or out of them, weighted and added up on the way back.
    pub(super) fn route_work(&mut self, id: OpId, backward: bool) -> Work {
        let op = &self.graph.flow[id];
        let plan = self.plan.op(id).clone();
        let into = matches!(op.kind, OpKind::Dispatch(_));
        let slots = if into { (op.output, plan.natural.summed()) } else { (op.inputs[0], plan.needs[0].summed()) };
        let bytes = self.mem(slots.0, &slots.1);
        let elements = self.sizes.elements(slots.0, &slots.1);
        // A product and a sum for each element on the way back; the gradient of the weights is as much again.
        let each = match (into, backward) {
            (true, false) => 0.0,
            (true, true) => 1.0,
            (false, false) => 2.0,
            (false, true) => 4.0,
        };
        let flops = self.sizes.times(elements, each);
        Work::Elementwise { read: bytes, write: bytes, flops }
    }
}
