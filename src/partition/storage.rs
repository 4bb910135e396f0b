//! How parameters, gradients and state rest: gathers before use, reductions after the backward, both in buckets of
//! one unit.

use super::backward::Gradients;
use super::build::{After, Builder, Pass, Site, join};
use super::placement::AxisUse::Split;
use super::{Collective, CollectiveKind, Phase, Placement, Purpose, ShardedParam, StepId, errors};
use crate::diagnostics::Sink;
use crate::expr::{self, Node};
use crate::graph::{OpGraph, RegionId, ValueId};
use crate::layout::{AxisId, Class, Hold, Layout, Store};
use crate::source::Span;
use indexmap::{IndexMap, IndexSet};

/// How one parameter and what follows it rest: the axes of each class.
#[derive(Clone, Default, Debug)]
pub(super) struct Rest {
    pub(super) param: Vec<AxisId>,
    pub(super) grad: Vec<AxisId>,
    pub(super) state: Vec<AxisId>,
    pub(super) hold: Option<Hold>,
}

/// The `store` that speaks of `class` in `region`: innermost scope first, then later text.
pub(super) fn store<'l>(graph: &OpGraph, layout: &'l Layout, region: RegionId, class: Class) -> Option<&'l Store> {
    let path = &graph.regions[region.0 as usize].path;
    let stores = layout.stores.iter().enumerate().filter(|(_, s)| s.class == class);
    let reach = stores.filter_map(|(i, s)| Some((s.scope.depth(path)?, i, s)));
    reach.max_by_key(|(depth, i, _)| (*depth, *i)).map(|(_, _, s)| s)
}

/// Whether activations gathered in `region` stay for the backward.
pub(super) fn keeps_gathered(graph: &OpGraph, layout: &Layout, region: RegionId) -> bool {
    store(graph, layout, region, Class::Act).is_some_and(|s| s.keep_gathered)
}

/// How each parameter rests, by parameter; an axis its use is split over already is an error.
pub(super) fn rests(
    graph: &OpGraph,
    layout: &Layout,
    placements: &[Placement],
    reason: &dyn Fn(crate::graph::DimId, AxisId) -> Option<Span>,
    sink: &mut Sink,
) -> Vec<Rest> {
    let mut told: Vec<(Span, AxisId)> = Vec::new();
    let mut rests = Vec::new();
    for parameter in &graph.params {
        let value = parameter.value;
        let region = graph.value(value).region;
        let used = &placements[value.0 as usize];
        let mut axes = |class| {
            let Some(store) = store(graph, layout, region, class) else { return Vec::new() };
            let mut free = Vec::new();
            for axis in &store.axes {
                match used.on(*axis) {
                    Split(dim) if !told.contains(&(store.span, *axis)) => {
                        told.push((store.span, *axis));
                        let (name, param) = (&layout.axis(*axis).name, graph.describe(value));
                        let dim_name = &graph.dim(dim).name;
                        sink.error(errors::store_conflict(store.span, name, &param, dim_name, reason(dim, *axis)));
                    }
                    Split(_) => {}
                    _ => free.push(*axis),
                }
            }
            free.sort();
            free
        };
        let (param, grad, state) = (axes(Class::Param), axes(Class::Grad), axes(Class::State));
        let hold = store(graph, layout, region, Class::Param).map(|s| s.hold);
        rests.push(Rest { param, grad, state, hold });
    }
    rests
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
    fn each_microbatch(&self, rest: &Rest, axis: AxisId) -> bool {
        let item = self.layout.reduces.iter().rev().find(|r| r.axes.contains(&axis));
        item.and_then(|r| r.each_microbatch).unwrap_or(!rest.grad.is_empty())
    }

    /// Reduces the gradients of the parameters `unit` uses, as far as `phase` is when: scattered over the axes that
    /// hold gradients or state, the shard summed over the rest.
    pub(super) fn reduce(&mut self, pass: &mut Pass, used: &[(ValueId, Vec<AxisId>, After)], rests: &[Rest]) {
        let mut scatters = Buckets::default();
        let mut sums: Vec<(ValueId, Vec<AxisId>, expr::Id, After)> = Vec::new();
        for (value, partial, after) in used {
            let rest = rests[self.param_index(*value)].clone();
            let now = |b: &Self, axis: AxisId| b.each_microbatch(&rest, axis) == (pass.phase == Phase::Backward);
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
            rest_param: self.flat(elements, &rest.param),
            rest_grad: self.flat(elements, &rest.grad),
            rest_state: self.flat(elements, &rest.state),
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
