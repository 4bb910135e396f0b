//! For every op: the placement it needs each operand in, the one its result comes out in, and the one it rests in.
//!
//! Names only: no sizes, no steps. [`super::forward`] and [`super::backward`] turn the plan into steps.

use super::attention;
use super::errors::{self, Conflict};
use super::placement::AxisUse::{self, Partial, Split, Whole};
use super::rules::Ruled;
use super::{Placement, chains, experts};
use crate::diagnostics::Sink;
use crate::graph::{Custom, DimId, MapFn, Op, OpGraph, OpId, OpKind, ValueId, ValueRole};
use crate::layout::{Action, AxisId, Class, Layout};
use crate::source::Span;
use indexmap::IndexMap;

/// How one op is run.
#[derive(Clone, Default, Debug)]
pub(super) struct OpPlan {
    /// The placement of each operand it works on.
    pub(super) needs: Vec<Placement>,
    /// The placement its result comes out in, before any reshard.
    pub(super) natural: Placement,
}

/// How the graph is run.
#[derive(Debug)]
pub(super) struct Plan {
    /// By op.
    pub(super) ops: Vec<OpPlan>,
    /// The placement each value rests in, by value; partial only where its one use is linear.
    pub(super) rest: Vec<Placement>,
    /// The ops that use each value, and as which operand.
    pub(super) uses: Vec<Vec<(OpId, usize)>>,
    /// Whether a gradient flows to each value.
    pub(super) needs_grad: Vec<bool>,
    /// The last op of the elementwise chain each op is in; itself where it is in none.
    pub(super) tail: Vec<OpId>,
    /// The members of each chain, by its last op.
    pub(super) members: IndexMap<OpId, Vec<OpId>>,
}

impl Plan {
    /// The plan of `op`.
    pub(super) fn op(&self, op: OpId) -> &OpPlan {
        &self.ops[op.index()]
    }

    /// The placement `value` rests in.
    pub(super) fn rest(&self, value: ValueId) -> &Placement {
        &self.rest[value.0 as usize]
    }

    /// Whether `value` holds the ids of a lookup.
    pub(super) fn looks_up(&self, graph: &OpGraph, value: ValueId) -> bool {
        let ids = |(op, at): &(OpId, usize)| *at == 0 && matches!(graph.flow[*op].kind, OpKind::Embed { .. });
        self.uses[value.0 as usize].iter().any(ids)
    }

    /// Whether a gradient flows to `value`.
    pub(super) fn needs_grad(&self, value: ValueId) -> bool {
        self.needs_grad[value.0 as usize]
    }
}

/// The placement of the gradient of an operand needed as `need`, from the gradient of the result placed as `result`:
/// an axis that splits the result and not the operand leaves every rank with a term of the sum.
pub(super) fn adjoint(result: &Placement, need: &Placement) -> Placement {
    let mut axes = result.axes();
    axes.extend(need.axes());
    axes.sort();
    axes.dedup();
    axes.into_iter().fold(Placement::default(), |p, axis| {
        let to = match (need.on(axis), result.on(axis)) {
            (Split(d), _) => Split(d),
            (Whole, Split(_) | Partial) => Partial,
            (Partial, _) | (Whole, Whole) => Whole,
        };
        p.with(axis, to)
    })
}

/// Plans every op of `graph`.
pub(super) fn plan(graph: &OpGraph, layout: &Layout, ruled: &Ruled, sink: &mut Sink) -> Plan {
    let mut uses = vec![Vec::new(); graph.values.len()];
    for (id, op) in graph.ops() {
        for (at, value) in op.inputs.iter().enumerate() {
            uses[value.0 as usize].push((id, at));
        }
    }
    let mut planner = Planner { graph, layout, ruled, sink, uses, rest: ruled.placements.clone(), told: Vec::new() };
    let mut ops = Vec::with_capacity(graph.flow.node_count());
    for (_, op) in graph.ops() {
        let (needs, natural) = planner.op(op);
        planner.check_params(op, &needs);
        planner.settle(op, &natural);
        ops.push(OpPlan { needs, natural });
    }
    // An operand whose partial sum flowed on was needed as it came.
    for (id, op) in graph.ops() {
        if linear(&op.kind) {
            for (at, value) in op.inputs.iter().enumerate() {
                let rest = &planner.rest[value.0 as usize];
                if !rest.partial.is_empty() {
                    ops[id.index()].needs[at] = rest.clone();
                }
            }
        }
    }
    let Planner { uses, rest, .. } = planner;
    let needs_grad = needs_grad(graph);
    let mut plan = Plan { ops, rest, uses, needs_grad, tail: Vec::new(), members: IndexMap::new() };
    plan.tail = chains::tails(graph, &plan);
    plan.members = chains::members(&plan.tail);
    plan
}

/// A gradient flows to parameters and to what is computed from one; the data has none.
fn needs_grad(graph: &OpGraph) -> Vec<bool> {
    let computed = |v: usize| graph.producer(ValueId(v as u32)).is_some();
    let mut needs: Vec<_> =
        graph.values.iter().enumerate().map(|(v, x)| x.role != ValueRole::Input && !computed(v)).collect();
    for (_, op) in graph.ops() {
        needs[op.output.0 as usize] = op.inputs.iter().any(|v| needs[v.0 as usize]);
    }
    needs
}

/// Whether a partial sum may pass through.
fn linear(kind: &OpKind) -> bool {
    let map = |f: &MapFn| matches!(f, MapFn::Add | MapFn::Sub | MapFn::Scale(_) | MapFn::Cast);
    match kind {
        OpKind::Map(f) => map(f),
        OpKind::Rename { .. } | OpKind::Combine(_) => true,
        _ => false,
    }
}

pub(super) struct Planner<'a> {
    pub(super) graph: &'a OpGraph,
    pub(super) layout: &'a Layout,
    pub(super) ruled: &'a Ruled,
    pub(super) sink: &'a mut Sink,
    uses: Vec<Vec<(OpId, usize)>>,
    rest: Vec<Placement>,
    /// Rules, by their axis, whose conflict was reported: one mistake is one diagnostic.
    told: Vec<(Option<Span>, String)>,
}

/// What one axis does to the operands and the result of an op.
pub(super) type OnAxis = (Vec<AxisUse>, AxisUse);

impl Planner<'_> {
    pub(super) fn rule(&self, value: ValueId) -> &Placement {
        &self.ruled.placements[value.0 as usize]
    }

    /// The placement a value rests in when `op` reads it: a pending partial sum counts as reduced.
    pub(super) fn at(&self, value: ValueId, axis: AxisId) -> AxisUse {
        let rest = &self.rest[value.0 as usize];
        if rest.partial.is_empty() { rest.on(axis) } else { self.rule(value).on(axis) }
    }

    /// Whether `value` is left a partial sum over `axis` for its one use.
    pub(super) fn is_pending(&self, value: ValueId, axis: AxisId) -> bool {
        self.rest[value.0 as usize].on(axis) == Partial
    }

    pub(super) fn has(&self, value: ValueId, dim: DimId) -> bool {
        self.graph.value(value).dims.contains(&dim)
    }

    pub(super) fn is_param(&self, value: ValueId) -> bool {
        matches!(self.graph.value(value).role, ValueRole::Param(_))
    }

    /// What each operand must be and what the result is.
    fn op(&mut self, op: &Op) -> (Vec<Placement>, Placement) {
        if let Some(flowing) = self.flowing(op) {
            return flowing;
        }
        match &op.kind {
            OpKind::Split { from, into } => return self.split(op, *from, into),
            OpKind::Merge { from, into } => return self.merge(op, from, *into),
            OpKind::Rename { from, to } => return self.renamed(op, &[(*from, *to)]),
            OpKind::Regroup { pairs } => return self.renamed(op, pairs),
            _ => {}
        }
        let mut needs = vec![Placement::default(); op.inputs.len()];
        let mut natural = Placement::default();
        for axis in self.layout.axis_ids() {
            let (on, out) = self.axis(op, axis);
            needs = needs.into_iter().zip(on).map(|(p, u)| p.with(axis, u)).collect();
            natural = natural.with(axis, out);
        }
        (needs, natural)
    }

    fn reduced(&self, value: ValueId) -> Placement {
        let rest = &self.rest[value.0 as usize];
        if rest.partial.is_empty() { rest.clone() } else { self.rule(value).clone() }
    }

    fn axis(&mut self, op: &Op, axis: AxisId) -> OnAxis {
        match &op.kind {
            OpKind::Contract { contracted } => self.contract(op, contracted, axis),
            OpKind::Attention(a) => attention::axis(self, op, a, axis),
            OpKind::Embed { over, bag } => self.embed(op, *over, *bag, axis),
            OpKind::Take { from, to } => self.take(op, *from, *to, axis),
            OpKind::Sum { over } => {
                let on = self.at(op.inputs[0], axis);
                let summed = matches!(on, Split(d) if over.contains(&d));
                (vec![on], if summed { Partial } else { on })
            }
            OpKind::CrossEntropy { over, .. } => {
                let on = self.at(op.inputs[0], axis);
                let out = match on {
                    Split(d) if Some(d) == *over => Whole,
                    Split(d) if !self.has(op.output, d) => Partial,
                    Whole | Split(_) | Partial => on,
                };
                (self.each_with(op, on), out)
            }
            OpKind::Map(_) | OpKind::Norm { .. } | OpKind::Softmax { .. } => {
                let out = self.rule(op.output).on(axis);
                (self.each_with(op, out), out)
            }
            // What splits the dimension pieces are joined along, or experts are chosen over, splits neither.
            OpKind::Concat { over: whole } | OpKind::Select { experts: whole, .. } => {
                let rule = self.rule(op.output).on(axis);
                let out = if rule == Split(*whole) { Whole } else { rule };
                (self.each_with(op, out), out)
            }
            OpKind::Dispatch(r) => experts::dispatch(self, op, r, axis),
            OpKind::Combine(r) => experts::combine(self, op, r, axis),
            OpKind::Custom(c) => self.custom(op, c, axis),
            OpKind::Rename { .. } | OpKind::Regroup { .. } | OpKind::Split { .. } | OpKind::Merge { .. } => {
                (vec![Whole; op.inputs.len()], Whole)
            }
        }
    }

    /// Dimensions that take the place of others, and their axes.
    fn renamed(&self, op: &Op, pairs: &[(DimId, DimId)]) -> (Vec<Placement>, Placement) {
        let need = self.reduced(op.inputs[0]);
        let new = |d: DimId| pairs.iter().find(|(from, _)| *from == d).map_or(d, |(_, to)| *to);
        let natural = need.map(|u| if let Split(d) = u { Split(new(d)) } else { u });
        (vec![need], natural)
    }

    /// Work described by its numbers: split as the result is, or summed over what it contracts.
    fn custom(&self, op: &Op, c: &Custom, axis: AxisId) -> OnAxis {
        let summed = op.inputs.iter().find_map(|v| match self.at(*v, axis) {
            Split(d) if c.contracts.contains(&d) => Some(d),
            Whole | Split(_) | Partial => None,
        });
        if let Some(d) = summed {
            return (self.each_with(op, Split(d)), Partial);
        }
        let out = match self.rule(op.output).on(axis) {
            Split(d) if !c.whole.contains(&d) && op.inputs.iter().any(|v| self.has(*v, d)) => Split(d),
            Whole | Split(_) | Partial => Whole,
        };
        (self.each_with(op, out), out)
    }

    /// `on` for every operand that has its dimension.
    pub(super) fn each_with(&self, op: &Op, on: AxisUse) -> Vec<AxisUse> {
        let each = |v: &ValueId| match on {
            Split(d) if self.has(*v, d) => on,
            Whole | Split(_) | Partial => Whole,
        };
        op.inputs.iter().map(each).collect()
    }

    /// A sum of the product of two operands.
    fn contract(&mut self, op: &Op, contracted: &[DimId], axis: AxisId) -> OnAxis {
        let (a, b) = (op.inputs[0], op.inputs[1]);
        let dims = match (self.at(a, axis), self.at(b, axis)) {
            (Split(d), Split(e)) if d == e => Some(d),
            (Split(d), Split(e)) => {
                let left = self.winner_is_left(op, axis, (contracted.contains(&d), d), (contracted.contains(&e), e));
                Some(if left { d } else { e })
            }
            (Split(d), Whole | Partial) | (Whole | Partial, Split(d)) => Some(d),
            (Whole | Partial, Whole | Partial) => None,
        };
        let Some(d) = dims else { return (vec![Whole, Whole], Whole) };
        let out = if contracted.contains(&d) { Partial } else { Split(d) };
        (self.each_with(op, Split(d)), out)
    }

    /// Two operands split different dimensions over one axis: which of them stays.
    fn winner_is_left(&mut self, op: &Op, axis: AxisId, left: (bool, DimId), right: (bool, DimId)) -> bool {
        let params = (self.is_param(op.inputs[0]), self.is_param(op.inputs[1]));
        if left.0 != right.0 {
            // One is summed over and the other kept: a parameter summed over has to go, and is an error.
            let summed_is_param = if left.0 { params.0 } else { params.1 };
            let kept_is_param = if left.0 { params.1 } else { params.0 };
            if !summed_is_param && !kept_is_param {
                self.undecided(op, axis);
            }
            return !left.0;
        }
        let rule = self.rule(op.output).on(axis);
        if !left.0 && rule == Split(left.1) {
            return true;
        }
        if !left.0 && rule == Split(right.1) {
            return false;
        }
        if params.0 == params.1 {
            self.undecided(op, axis);
        }
        params.0
    }

    fn undecided(&mut self, op: &Op, axis: AxisId) {
        let name = self.layout.mesh_name(axis);
        let what = format!("a product of two activations that split different dimensions over `{name}`");
        self.sink.error(errors::not_supported(op.span, &what));
    }

    /// Rows of a table: ids first, table second.
    fn embed(&mut self, op: &Op, over: DimId, bag: Option<DimId>, axis: AxisId) -> OnAxis {
        let ids = self.at(op.inputs[0], axis);
        match (ids, self.at(op.inputs[1], axis)) {
            // Each rank adds up its own ids of the bag.
            (Split(d), Whole | Partial) if Some(d) == bag => (vec![ids, Whole], Partial),
            // A table for each index: the ids of a table go where it is.
            (_, Split(d)) if self.has(op.inputs[0], d) => (vec![Split(d), Split(d)], Split(d)),
            // Each rank looks every id up in its own rows and adds nothing for the others.
            (_, Split(d)) if d == over => (vec![Whole, Split(d)], Partial),
            (Split(s), Split(_)) if self.rule(op.output).on(axis) == Split(s) => (vec![ids, Whole], ids),
            (_, Split(d)) => (vec![Whole, Split(d)], Split(d)),
            (_, Whole | Partial) => (vec![ids, Whole], ids),
        }
    }

    /// The first rows of a table, one for each index of `to`.
    fn take(&mut self, op: &Op, from: DimId, to: DimId, axis: AxisId) -> OnAxis {
        let rule = self.rule(op.output).on(axis);
        match self.at(op.inputs[0], axis) {
            Split(d) if d != from => (vec![Split(d)], Split(d)),
            Split(_) => (vec![Whole], Whole),
            Whole | Partial if rule == Split(to) => (vec![Whole], rule),
            Whole | Partial => (self.each_with(op, rule), rule),
        }
    }

    /// One dimension becomes several: its axes go to the outermost, or as the rules share them out in order.
    fn split(&mut self, op: &Op, from: DimId, into: &[DimId]) -> (Vec<Placement>, Placement) {
        let need = self.reduced(op.inputs[0]);
        let axes = need.axes_of(from);
        let rule = self.rule(op.output);
        let ruled: Vec<_> = into.iter().flat_map(|d| rule.axes_of(*d).iter().map(|a| (*a, *d))).collect();
        let in_order = ruled.iter().map(|(a, _)| *a).eq(axes.iter().copied());
        let mut natural = need.map(|u| if u == Split(from) { Whole } else { u });
        for (at, axis) in axes.iter().enumerate() {
            let dim = if in_order { ruled[at].1 } else { into[0] };
            natural = natural.with(*axis, Split(dim));
        }
        (vec![need], natural)
    }

    /// Several dimensions become one: an inner one can stay split only if the rules split the result alike.
    fn merge(&mut self, op: &Op, from: &[DimId], into: DimId) -> (Vec<Placement>, Placement) {
        let mut need = self.reduced(op.inputs[0]);
        let axes: Vec<_> = from.iter().flat_map(|d| need.axes_of(*d).to_vec()).collect();
        let outer = need.axes_of(from[0]).to_vec();
        if axes != outer && self.rule(op.output).axes_of(into) != axes {
            for axis in axes.iter().filter(|a| !outer.contains(a)) {
                need = need.with(*axis, Whole);
            }
        }
        let natural = need.map(|u| match u {
            Split(d) if from.contains(&d) => Split(into),
            Whole | Split(_) | Partial => u,
        });
        (vec![need], natural)
    }

    /// Where every operand is a partial sum over the same axes that only this op reads, the result is one too.
    fn flowing(&self, op: &Op) -> Option<(Vec<Placement>, Placement)> {
        if !linear(&op.kind) {
            return None;
        }
        let first = self.rest[op.inputs.first()?.0 as usize].clone();
        let alike = op.inputs.iter().all(|v| self.rest[v.0 as usize] == first);
        let same_dims = |v: &ValueId| {
            matches!(op.kind, OpKind::Rename { .. })
                || self.graph.value(*v).dims.len() == self.graph.value(op.output).dims.len()
        };
        if first.partial.is_empty() || !alike || !op.inputs.iter().all(same_dims) {
            return None;
        }
        let natural = match op.kind {
            OpKind::Rename { from, to } => first.map(|u| if u == Split(from) { Split(to) } else { u }),
            _ => first.clone(),
        };
        Some((vec![first; op.inputs.len()], natural))
    }

    /// Decides where the result of `op` rests, and that its operands left pending are reduced after all.
    fn settle(&mut self, op: &Op, natural: &Placement) {
        if natural.partial.is_empty() || !linear(&op.kind) {
            for value in &op.inputs {
                if !self.rest[value.0 as usize].partial.is_empty() {
                    self.rest[value.0 as usize] = self.rule(*value).clone();
                }
            }
        }
        let flows = match self.uses[op.output.0 as usize].as_slice() {
            [(user, _)] => {
                let user = &self.graph.flow[*user];
                linear(&user.kind) && user.unit == op.unit
            }
            _ => false,
        };
        let rest = if flows && !natural.partial.is_empty() { natural.clone() } else { self.rule(op.output).clone() };
        self.rest[op.output.0 as usize] = rest;
    }

    /// A parameter is sliced for free and never moves otherwise.
    fn check_params(&mut self, op: &Op, needs: &[Placement]) {
        for (at, (value, need)) in op.inputs.iter().zip(needs).enumerate() {
            if !self.is_param(*value) {
                continue;
            }
            let placement = self.rule(*value).clone();
            for (dim, axes) in &placement.dims {
                for axis in axes.iter().filter(|a| need.on(**a) != Split(*dim)) {
                    let rule = self.ruled.reasons.get(&(*dim, *axis)).copied();
                    let name = self.layout.mesh_name(*axis).to_string();
                    if self.told.contains(&(rule, name.clone())) {
                        continue;
                    }
                    self.told.push((rule, name.clone()));
                    let other = op.inputs.iter().enumerate().find_map(|(i, v)| match self.at(*v, *axis) {
                        Split(d) if i != at => Some((*v, d)),
                        Whole | Split(_) | Partial => None,
                    });
                    // One mistake: attention says what is wrong with this rule of the sequence.
                    if other.is_some_and(|(_, d)| super::attention::unmet(self, d, *axis)) {
                        continue;
                    }
                    let data = other.is_some_and(|(_, d)| self.graph.dim(d).data.is_some());
                    let described = other.map(|(v, d)| (self.name(v), self.graph.dim(d).name.clone()));
                    let params_only = self.layout.rules.iter().any(|r| {
                        Some(r.span) == rule
                            && matches!(&r.action, Action::Shard { classes, .. } if classes[..] == [Class::Param])
                    });
                    let conflict = Conflict {
                        params_only,
                        param: self.name(*value),
                        dim: self.graph.dim(*dim).name.clone(),
                        axis: name,
                        other: described,
                        data,
                        op: op.span,
                        rule,
                    };
                    self.sink.error(errors::shard_conflict(&conflict));
                }
            }
        }
    }

    fn name(&self, value: ValueId) -> String {
        let text = self.graph.describe(value);
        if self.graph.value(value).name.is_empty() { format!("an unnamed value {text}") } else { text }
    }
}
