//! How parameters, gradients and state rest: gathers before use, reductions after the backward, both in buckets of
//! one unit.

use super::backward::Gradients;
use super::build::{After, Builder, Pass, Site, join};
use super::errors::{self, StoreConflict};
use super::placement::AxisUse::Split;
use super::{Collective, CollectiveKind, Phase, Placement, Purpose, ShardedParam, StepId};
use crate::diagnostics::Sink;
use crate::expr::{self, Node};
use crate::graph::{DimId, OpGraph, RegionId, ValueId};
use crate::layout::{AxisId, Class, Hold, Layout, Store};
use crate::source::Span;
use indexmap::{IndexMap, IndexSet};

/// How one parameter and what follows it rest: the axes of each class.
#[derive(Clone, Default, Debug)]
pub(super) struct Rest {
    /// The dimension split by name, of parameter, gradient and state; flat where there is none.
    pub(super) along: [Option<DimId>; 3],
    pub(super) param: Vec<AxisId>,
    pub(super) grad: Vec<AxisId>,
    pub(super) state: Vec<AxisId>,
    pub(super) hold: Option<Hold>,
}

/// The `store` that speaks of `class` in `region`: innermost scope first, then later text.
pub(super) fn store<'l>(
    graph: &OpGraph,
    layout: &'l Layout,
    region: RegionId,
    class: Class,
    name: &str,
) -> Option<&'l Store> {
    let path = &graph.regions[region.0 as usize].path;
    let named = |s: &Store| s.tensor.as_ref().is_none_or(|t| t == name);
    let stores = layout.stores.iter().enumerate().filter(|(_, s)| s.class == class && named(s));
    let reach = stores.filter_map(|(i, s)| Some((s.scope.depth(path)?, i, s)));
    reach.max_by_key(|(depth, i, _)| (*depth, *i)).map(|(_, _, s)| s)
}

/// Whether activations gathered in `region` stay for the backward.
pub(super) fn keeps_gathered(graph: &OpGraph, layout: &Layout, region: RegionId) -> bool {
    store(graph, layout, region, Class::Act, "").is_some_and(|s| s.keep_gathered)
}

/// How each parameter rests, by parameter; an axis its use is split over already is an error.
pub(super) fn rests(
    graph: &OpGraph,
    layout: &Layout,
    placements: &[Placement],
    reason: &dyn Fn(DimId, AxisId) -> Option<Span>,
    sink: &mut Sink,
) -> Vec<Rest> {
    let mut told: Vec<Span> = Vec::new();
    let mut rests = Vec::new();
    for parameter in &graph.params {
        let value = parameter.value;
        let region = graph.value(value).region;
        let used = &placements[value.0 as usize];
        let name = graph.value(value).name.as_str();
        let mut axes = |class| {
            let Some(store) = store(graph, layout, region, class, name) else { return Vec::new() };
            let mut free = Vec::new();
            for axis in &store.axes {
                match used.on(*axis) {
                    Split(dim) if !told.contains(&store.span) => {
                        told.push(store.span);
                        let conflict = conflict(graph, layout, store, (value, used), (dim, *axis), reason(dim, *axis));
                        sink.error(errors::store_conflict(&conflict));
                    }
                    Split(_) => {}
                    _ => free.push(*axis),
                }
            }
            free.sort();
            free
        };
        let (param, grad, state) = (axes(Class::Param), axes(Class::Grad), axes(Class::State));
        let along = [Class::Param, Class::Grad, Class::State].map(|class| {
            let named = &store(graph, layout, region, class, name)?.along;
            named.iter().find_map(|n| graph.value(value).dims.iter().copied().find(|d| graph.dim(*d).name == *n))
        });
        let hold = store(graph, layout, region, Class::Param, name).map(|s| s.hold);
        rests.push(Rest { along, param, grad, state, hold });
    }
    rests
}

/// What to say where `store` names `axis`, which splits `dim` of a parameter in use already.
fn conflict(
    graph: &OpGraph,
    layout: &Layout,
    store: &Store,
    (value, used): (ValueId, &Placement),
    (dim, axis): (DimId, AxisId),
    rule: Option<Span>,
) -> StoreConflict {
    let rule = layout.rules.iter().find(|r| Some(r.span) == rule);
    let stored = layout.names(&store.axes);
    let split = rule.and_then(|r| r.axes.iter().find(|n| layout.named(**n).fine.contains(&axis)));
    let split = split.map_or_else(|| layout.mesh_name(axis).to_string(), |n| layout.named(*n).name.clone());
    // The name of the stored axis that `axis` is part of, and what remains of all of them.
    let whole = layout.named.iter().find(|a| stored.contains(&a.name) && a.fine.contains(&axis));
    let named = whole.map_or_else(|| layout.mesh_name(axis).to_string(), |a| a.name.clone());
    let left: Vec<_> = store.axes.iter().copied().filter(|a| !matches!(used.on(*a), Split(_))).collect();
    let left = layout.named.iter().find(|a| !a.fine.is_empty() && a.fine == left).map(|a| a.name.clone());
    let same = layout.stores.iter().filter(|s| s.span == store.span);
    StoreConflict {
        store: store.span,
        part: (split != named).then_some(split),
        axis: named,
        param: graph.describe(value),
        dim: graph.dim(dim).name.clone(),
        rule: rule.map(|r| (r.span, (!r.scope.is_everywhere()).then(|| r.scope.text()))),
        classes: same.map(|s| s.class.name().to_string()).collect(),
        left,
    }
}

/// Collectives of one unit that share kind, axes and purpose are one bucket.
#[derive(Default)]
struct Buckets {
    list: IndexMap<(CollectiveKind, Vec<AxisId>, Purpose), Bucket>,
}

/// What one collective moves together.
#[derive(Default)]
struct Bucket {
    values: Vec<ValueId>,
    bytes: Vec<expr::Id>,
    after: After,
}

impl Buckets {
    fn add(
        &mut self,
        (kind, axes, purpose): (CollectiveKind, &[AxisId], Purpose),
        item: (ValueId, expr::Id, &[StepId]),
    ) {
        if axes.is_empty() {
            return;
        }
        let bucket = self.list.entry((kind, axes.to_vec(), purpose)).or_default();
        bucket.values.push(item.0);
        bucket.bytes.push(item.1);
        join(&mut bucket.after, item.2);
    }
}

impl Builder<'_> {
    /// Makes the collectives of `buckets`; hands back the step each value then waits for.
    fn flush(&mut self, pass: &mut Pass, buckets: Buckets) -> IndexMap<ValueId, After> {
        let mut done: IndexMap<ValueId, After> = IndexMap::new();
        for ((kind, axes, purpose), Bucket { values, bytes, after }) in buckets.list {
            let value = values[0];
            let bytes = self.sizes.exprs.sum(bytes);
            let v = self.graph.value(value);
            let site = Site { region: v.region, span: v.span };
            let axes = axes.into_iter().collect();
            let what = Collective { kind, axes, bytes, value, purpose, maximum: false };
            let step = self.collective(pass, site, what, &after);
            for value in values {
                join(done.entry(value).or_default(), &[step]);
            }
        }
        done
    }

    /// Elements of a parameter split flat over `axes` at rest, padded to the group.
    fn flat(&mut self, elements: expr::Id, axes: &[AxisId]) -> expr::Id {
        if axes.is_empty() {
            return elements;
        }
        let ranks = self.sizes.group(axes);
        self.sizes.exprs.put(Node::CeilDiv(elements, ranks))
    }

    /// Elements of a parameter at rest: flat, or split along one of its dimensions, which then must divide.
    fn at_rest(&mut self, value: ValueId, elements: expr::Id, axes: &[AxisId], along: Option<DimId>) -> expr::Id {
        match along {
            Some(dim) if !axes.is_empty() => {
                let used = self.plan.rest(value).clone();
                let split = axes.iter().fold(used, |p, a| p.with(*a, Split(dim)));
                self.sizes.elements(value, &split)
            }
            _ => self.flat(elements, axes),
        }
    }

    fn param_elements(&mut self, value: ValueId) -> expr::Id {
        let place = self.plan.rest(value).clone();
        self.sizes.elements(value, &place)
    }

    /// Gathers the parameters of `users` that do not rest as they are used.
    pub(super) fn gather(
        &mut self,
        pass: &mut Pass,
        users: &IndexSet<ValueId>,
        rests: &[Rest],
        wanted: impl Fn(Hold) -> bool,
    ) {
        let mut buckets = Buckets::default();
        for value in users {
            let rest = &rests[self.param_index(*value)];
            if rest.hold.is_some_and(&wanted) && !rest.param.is_empty() {
                let elements = self.param_elements(*value);
                let bytes = self.sizes.times(elements, self.sizes.bytes.gather);
                buckets.add((CollectiveKind::AllGather, &rest.param, Purpose::GatherParam), (*value, bytes, &[]));
            }
        }
        for (value, after) in self.flush(pass, buckets) {
            pass.made.insert(value, after);
        }
    }

    pub(super) fn param_index(&self, value: ValueId) -> usize {
        match self.graph.value(value).role {
            crate::graph::ValueRole::Param(at) => at as usize,
            _ => 0,
        }
    }

    /// Whether the gradient over `axis` is summed at each microbatch.
    fn each_microbatch(&self, value: ValueId, rest: &Rest, axis: AxisId) -> bool {
        let path = &self.graph.regions[self.graph.value(value).region.0 as usize].path;
        let speaking = self.layout.reduces.iter().enumerate().filter(|(_, r)| r.axes.contains(&axis));
        let reach = speaking.filter_map(|(i, r)| Some((r.scope.depth(path)?, i, r)));
        let item = reach.max_by_key(|(depth, i, _)| (*depth, *i)).map(|(_, _, r)| r);
        item.and_then(|r| r.each_microbatch).unwrap_or(!rest.grad.is_empty())
    }

    /// Reduces the gradients of the parameters `unit` uses, as far as `phase` is when: scattered over the axes that
    /// hold gradients or state, the shard summed over the rest.
    pub(super) fn reduce(&mut self, pass: &mut Pass, used: &[(ValueId, Vec<AxisId>, After)], rests: &[Rest]) {
        let mut scatters = Buckets::default();
        let mut sums: Vec<(ValueId, Vec<AxisId>, expr::Id, After)> = Vec::new();
        for (value, partial, after) in used {
            let rest = rests[self.param_index(*value)].clone();
            let now =
                |b: &Self, axis: AxisId| b.each_microbatch(*value, &rest, axis) == (pass.phase == Phase::Backward);
            let shard: Vec<_> = union(&rest.grad, &rest.state);
            let scattered = |axis: &AxisId| shard.contains(axis);
            let elements = self.param_elements(*value);
            // What an earlier phase scattered is smaller already.
            let before: Vec<_> = partial
                .iter()
                .copied()
                .filter(|a| pass.phase == Phase::Update && scattered(a) && !now(self, *a))
                .collect();
            let mut at = self.flat(elements, &before);
            let scatter: Vec<_> = partial.iter().copied().filter(|a| scattered(a) && now(self, *a)).collect();
            let bytes = self.sizes.times(at, self.sizes.bytes.reduce);
            scatters.add((CollectiveKind::ReduceScatter, &scatter, Purpose::ReduceGrad), (*value, bytes, after));
            at = self.flat(at, &scatter);
            let sum: Vec<_> = partial.iter().copied().filter(|a| !scattered(a) && now(self, *a)).collect();
            let bytes = self.sizes.times(at, self.sizes.bytes.reduce);
            sums.push((*value, sum, bytes, after.clone()));
        }
        let scattered = self.flush(pass, scatters);
        let mut buckets = Buckets::default();
        for (value, axes, bytes, after) in sums {
            let after = scattered.get(&value).unwrap_or(&after);
            buckets.add((CollectiveKind::AllReduce, &axes, Purpose::ReduceGrad), (value, bytes, after));
        }
        let summed = self.flush(pass, buckets);
        for (value, after) in scattered.into_iter().chain(summed) {
            pass.made.insert(value, after);
        }
    }

    /// After the update: parameters gathered where the state is split further than they rest, gradients where the
    /// state is split less.
    pub(super) fn after_update(&mut self, pass: &mut Pass, owned: &[ValueId], rests: &[Rest]) {
        let mut buckets = Buckets::default();
        for value in owned {
            let rest = rests[self.param_index(*value)].clone();
            let elements = self.param_elements(*value);
            let after = pass.made.get(value).cloned().unwrap_or_default();
            let gather: Vec<_> = rest.state.iter().copied().filter(|a| !rest.param.contains(a)).collect();
            let at = self.flat(elements, &rest.param);
            let bytes = self.sizes.times(at, self.sizes.bytes.gather);
            buckets.add((CollectiveKind::AllGather, &gather, Purpose::GatherParam), (*value, bytes, &after));
            let whole: Vec<_> =
                rest.grad.iter().copied().filter(|a| !rest.state.contains(a) && !rest.param.contains(a)).collect();
            let at = self.flat(elements, &rest.state);
            let bytes = self.sizes.times(at, self.sizes.bytes.reduce);
            buckets.add((CollectiveKind::AllGather, &whole, Purpose::ReduceGrad), (*value, bytes, &after));
        }
        self.flush(pass, buckets);
    }

    /// The terms of each parameter's gradient in `unit` brought to one placement: the axes it is still partial over.
    pub(super) fn param_terms(&mut self, pass: &mut Pass, grads: &mut Gradients) -> Vec<(ValueId, Vec<AxisId>, After)> {
        let mut out = Vec::new();
        let keys: Vec<_> = grads.params.keys().copied().filter(|(unit, _)| *unit == pass.unit).collect();
        for key in keys {
            let Some(terms) = grads.params.shift_remove(&key) else { continue };
            let value = key.1;
            let common = |axis: &AxisId| terms.iter().all(|t| t.place.partial.contains(axis));
            let partial: Vec<_> = self.layout.axis_ids().filter(common).collect();
            let place = self.plan.rest(value).clone();
            let to = partial.iter().fold(place, |p, a| p.with(*a, super::placement::AxisUse::Partial));
            let v = self.graph.value(value);
            let site = Site { region: v.region, span: v.span };
            let sum = self.add_up(pass, site, value, terms, &to, &mut grads.live);
            out.push((value, partial, sum.after));
        }
        out
    }

    /// What the border says of a parameter.
    pub(super) fn sharded_param(
        &mut self,
        value: ValueId,
        rest: &Rest,
        grad_axes: &[AxisId],
        users: Vec<u32>,
    ) -> ShardedParam {
        let elements = self.param_elements(value);
        ShardedParam {
            param: self.param_index(value) as u32,
            elements,
            placement: self.plan.rest(value).clone(),
            users,
            grad_axes: grad_axes.iter().copied().collect(),
            rest_param: self.at_rest(value, elements, &rest.param, rest.along[0]),
            rest_grad: self.at_rest(value, elements, &rest.grad, rest.along[1]),
            rest_state: self.at_rest(value, elements, &rest.state, rest.along[2]),
        }
    }
}

/// The axes of either, in mesh order.
fn union(a: &[AxisId], b: &[AxisId]) -> Vec<AxisId> {
    let mut all: Vec<_> = a.iter().chain(b).copied().collect();
    all.sort();
    all.dedup();
    all
}
