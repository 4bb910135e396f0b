//! How parameters, gradients and state rest: gathers before use, reductions after the backward, both in buckets of
//! one unit.

use super::backward::Gradients;
use super::build::{Builder, Pass};
use super::errors::{self, StoreConflict};
use super::live::Term;
use super::placement::AxisUse::{Partial, Split};
use super::{
    Collective, CollectiveKind, Content, Phase, Placement, Purpose, Resting, ShardedParam, StepKind, Tensor, TensorId,
};
use crate::diagnostics::Sink;
use crate::expr::{self, Node};
use crate::graph::{DimId, OpGraph, RegionId, ValueId};
use crate::layout::{AxisId, Bucket, Class, Hold, Layout, Reduce, Store, Tier};
use crate::source::Span;
use indexmap::{IndexMap, IndexSet};

/// How one parameter and what follows it rest: the axes of each class.
#[derive(Clone, Debug)]
pub(super) struct Rest {
    /// The dimension split by name, of parameter, gradient and state; flat where there is none.
    pub(super) along: [Option<DimId>; 3],
    pub(super) param: Vec<AxisId>,
    pub(super) grad: Vec<AxisId>,
    pub(super) state: Vec<AxisId>,
    pub(super) hold: Option<Hold>,
    /// What a gather of it moves at once.
    pub(super) bucket: Bucket,
    /// Where parameter, gradient, state and master copy rest.
    pub(super) rests: [Resting; 4],
}

impl Rest {
    /// `axes` as they cut what is stored, outermost first: those of state and parameter, of the state, of the parameter,
    /// then of the gradient alone. So what one class is cut by further lies within another's piece.
    fn nested(&self, axes: &[AxisId]) -> Vec<AxisId> {
        let mut all = axes.to_vec();
        all.sort_by_key(|a| {
            let (param, state) = (self.param.contains(a), self.state.contains(a));
            (!(param && state), !state, !param, *a)
        });
        all.dedup();
        all
    }

    /// The axes the optimizer's results are cut by: those of the state, and of the parameter where it is cut further.
    fn updated(&self) -> Vec<AxisId> {
        let finer = self.state.iter().all(|a| self.param.contains(a));
        self.nested(if finer { &self.param } else { &self.state })
    }
}

/// The `store` that speaks of `class` in `region`: innermost scope first, then later text.
pub fn resting<'l>(
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
    resting(graph, layout, region, Class::Act, "").is_some_and(|s| s.keep_gathered)
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
            let Some(store) = resting(graph, layout, region, class, name) else { return Vec::new() };
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
            let named = &resting(graph, layout, region, class, name)?.along;
            named.iter().find_map(|n| graph.value(value).dims.iter().copied().find(|d| graph.dim(*d).name == *n))
        });
        let of = |class| resting(graph, layout, region, class, name);
        let hold = of(Class::Param).map(|s| s.hold);
        let bucket = of(Class::Param).map_or(Bucket::Layer, |s| s.bucket);
        let rests_at = [Class::Param, Class::Grad, Class::State, Class::Master].map(|class| {
            // The master copy is state, unless it is stored by name.
            let found = of(class).or_else(|| of(Class::State).filter(|_| class == Class::Master));
            found.map_or(Resting::ON_DEVICE, |s| Resting { tier: s.tier, width: s.format.as_ref().map(|f| f.bytes) })
        });
        rests.push(Rest { along, param, grad, state, hold, bucket, rests: rests_at });
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

/// The gradient of a parameter on its way to the optimizer.
#[derive(Clone, Debug)]
pub(super) struct ParamGrad {
    pub(super) tensor: TensorId,
    /// The axes it came out a partial sum over, those summed since included.
    pub(super) partial: Vec<AxisId>,
}

impl Resting {
    /// As it is where nothing is said.
    pub const ON_DEVICE: Self = Self { tier: Tier::Device, width: None };
}

/// Collectives of one unit that share kind, axes and purpose are one bucket; where smaller ones are asked for, those of
/// one tensor or one region.
#[derive(Default)]
struct Buckets {
    list: IndexMap<(CollectiveKind, Vec<AxisId>, Purpose, u32), Moved>,
}

/// What one collective moves together.
#[derive(Default)]
struct Moved {
    items: Vec<Item>,
    bytes: Vec<expr::Id>,
}

/// A tensor in a bucket.
struct Item {
    tensor: TensorId,
    /// How a scatter cuts it: by these axes, outermost first, along this dimension.
    cut: (Vec<AxisId>, Option<DimId>),
    /// The tensor it becomes, where there is one already.
    to: Option<TensorId>,
    /// Which of the collectives alike it goes into.
    piece: u32,
}

impl Item {
    /// One that no scatter cuts.
    fn new(tensor: TensorId, piece: u32) -> Self {
        Self { tensor, cut: (Vec::new(), None), to: None, piece }
    }
}

impl Buckets {
    fn add(&mut self, (kind, axes, purpose): (CollectiveKind, &[AxisId], Purpose), item: Item, bytes: expr::Id) {
        if axes.is_empty() {
            return;
        }
        let bucket = self.list.entry((kind, axes.to_vec(), purpose, item.piece)).or_default();
        bucket.items.push(item);
        bucket.bytes.push(bytes);
    }
}

/// `tensor` after a collective of `kind` over `axes` moved what is stored.
fn stored(tensor: &Tensor, kind: CollectiveKind, axes: &[AxisId], cut: (Vec<AxisId>, Option<DimId>)) -> Tensor {
    let mut out = tensor.clone();
    out.place.partial.retain(|a| !axes.contains(a));
    match kind {
        CollectiveKind::ReduceScatter | CollectiveKind::Slice => {
            out.cut = cut.0.into();
            out.along = cut.1;
        }
        _ => out.cut.retain(|a| !axes.contains(a)),
    }
    if out.cut.is_empty() {
        out.along = None;
    }
    out
}

impl Builder<'_> {
    /// Makes the collectives of `buckets`; hands back what each value then is.
    fn flush(&mut self, pass: &mut Pass, buckets: Buckets) -> IndexMap<ValueId, TensorId> {
        let mut done = IndexMap::new();
        for ((kind, axes, purpose, _), Moved { items, bytes }) in buckets.list {
            let (mut reads, mut writes) = (Vec::new(), Vec::new());
            for item in items {
                let old = &self.tensors[item.tensor.0 as usize];
                let (value, new) = (old.value, stored(old, kind, &axes, item.cut));
                let new = item.to.unwrap_or_else(|| self.tensor(new));
                reads.push(item.tensor);
                writes.push(new);
                done.insert(value, new);
            }
            let value = self.tensors[reads[0].0 as usize].value;
            let bytes = self.sizes.exprs.sum(bytes);
            let axes = axes.into_iter().collect();
            let what = Collective { kind, axes, bytes, value, purpose, maximum: false };
            let site = self.site_of(value);
            self.step(pass, site, StepKind::Collective(what), (&reads, &writes));
        }
        done
    }

    /// A tensor of the parameter `value` as used, but for `cut`.
    fn cut(&mut self, value: ValueId, content: Content, cut: &[AxisId], along: Option<DimId>) -> TensorId {
        let place = self.plan.rest(value).clone();
        let along = along.filter(|_| !cut.is_empty());
        self.tensor(Tensor { value, content, place, cut: cut.into(), along, spread: None, passing: false })
    }

    /// The parameter `value` as it rests when the step begins.
    fn rested(&mut self, value: ValueId, rest: &Rest) -> TensorId {
        if let Some(made) = self.made[value.0 as usize] {
            return made;
        }
        let made = self.cut(value, Content::Value, &rest.nested(&rest.param), rest.along[0]);
        self.made[value.0 as usize] = Some(made);
        made
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
            let Some(hold) = rest.hold.filter(|_| !rest.param.is_empty()) else { continue };
            let key = (pass.unit, *value);
            if hold == Hold::Step && pass.phase == Phase::Forward {
                // Gathered when the step begins.
                let held = self.cut(*value, Content::Value, &[], None);
                self.held.insert(key, held);
            }
            if wanted(hold) {
                let elements = self.param_elements(*value);
                let bytes = self.sizes.times(elements, self.sizes.bytes.gather);
                let tensor = self.rested(*value, rest);
                let to = self.held.get(&key).copied().filter(|_| hold == Hold::Step);
                let what = (CollectiveKind::AllGather, &rest.param[..], Purpose::GatherParam);
                let piece = self.piece(*value, rest.bucket);
                buckets.add(what, Item { to, ..Item::new(tensor, piece) }, bytes);
            }
        }
        for (value, tensor) in self.flush(pass, buckets) {
            pass.made.insert(value, tensor);
            if rests[self.param_index(value)].hold == Some(Hold::Microbatch) {
                self.held.insert((pass.unit, value), tensor);
            }
        }
    }

    pub(super) fn param_index(&self, value: ValueId) -> usize {
        match self.graph.value(value).role {
            crate::graph::ValueRole::Param(at) => at as usize,
            _ => 0,
        }
    }

    /// Which of a unit's collectives of one kind carries `value`: the same number, the same collective.
    fn piece(&self, value: ValueId, bucket: Bucket) -> u32 {
        match bucket {
            Bucket::Tensor => value.0 + 1,
            Bucket::Region => self.graph.value(value).region.0 + 1,
            Bucket::Layer | Bucket::Chunk | Bucket::Model | Bucket::Bytes(_) => 0,
        }
    }

    /// The `reduce` that speaks of a parameter's gradient: of those of `speaks`, the innermost, later text first.
    fn reduce_of(&self, value: ValueId, speaks: impl Fn(&Reduce) -> bool) -> Option<&Reduce> {
        let path = &self.graph.regions[self.graph.value(value).region.0 as usize].path;
        let speaking = self.layout.reduces.iter().enumerate().filter(|(_, r)| speaks(r));
        let reach = speaking.filter_map(|(i, r)| Some((r.scope.depth(path)?, i, r)));
        reach.max_by_key(|(depth, i, _)| (*depth, *i)).map(|(_, _, r)| r)
    }

    /// What a reduction of a parameter's gradient moves at once.
    fn reduce_bucket(&self, value: ValueId) -> Bucket {
        self.reduce_of(value, |_| true).map_or(Bucket::Layer, |r| r.bucket)
    }

    /// Whether the gradient over `axis` is summed at each microbatch.
    fn each_microbatch(&self, value: ValueId, rest: &Rest, axis: AxisId) -> bool {
        let item = self.reduce_of(value, |r| r.axes.contains(&axis));
        item.and_then(|r| r.each_microbatch).unwrap_or(!rest.grad.is_empty())
    }

    /// Reduces gradients of parameters, as far as `phase` is when: scattered over the axes that hold gradients or state,
    /// the shard summed over the rest.
    pub(super) fn reduce(
        &mut self,
        pass: &mut Pass,
        mut used: Vec<(ValueId, ParamGrad)>,
        rests: &[Rest],
    ) -> Vec<(ValueId, ParamGrad)> {
        let phase = pass.phase;
        let due = |b: &Self, value: ValueId, tensor: TensorId| -> Vec<AxisId> {
            let now = |axis: &AxisId| {
                let rest = &rests[b.param_index(value)];
                b.each_microbatch(value, rest, *axis) == (phase == Phase::Backward)
            };
            b.place(tensor).partial.iter().copied().filter(now).collect()
        };
        // One inside the other: an axis that is no part of the sum is sliced, the next ones are scattered.
        loop {
            let (mut slices, mut scatters) = (Buckets::default(), Buckets::default());
            for (value, ParamGrad { tensor, .. }) in &used {
                let rest = &rests[self.param_index(*value)];
                let due = due(self, *value, *tensor);
                let cut = self.tensors[tensor.0 as usize].cut.clone();
                let shard = rest.nested(&union(&rest.grad, &rest.state));
                let left: Vec<_> = shard.iter().copied().filter(|a| !cut.contains(a)).collect();
                if !left.iter().any(|a| due.contains(a)) {
                    continue;
                }
                let scatter = due.contains(&left[0]);
                let run: Vec<_> = left.into_iter().take_while(|a| due.contains(a) == scatter).collect();
                let along = if rest.grad.is_empty() { rest.along[2] } else { rest.along[1] };
                let piece = self.piece(*value, self.reduce_bucket(*value));
                let item = Item { cut: (rest.nested(&[&cut[..], &run].concat()), along), ..Item::new(*tensor, piece) };
                // What an earlier phase scattered is smaller already.
                let bytes = self.gradient_bytes(*value, &cut);
                let run = union(&run, &[]);
                if scatter {
                    scatters.add((CollectiveKind::ReduceScatter, &run, Purpose::ReduceGrad), item, bytes);
                } else {
                    slices.add((CollectiveKind::Slice, &run, Purpose::ReduceGrad), item, bytes);
                }
            }
            let mut done = self.flush(pass, slices);
            done.extend(self.flush(pass, scatters));
            if done.is_empty() {
                break;
            }
            settle(&mut used, &done);
        }
        let mut sums = Buckets::default();
        for (value, grad) in &used {
            let axes = due(self, *value, grad.tensor);
            let cut = self.tensors[grad.tensor.0 as usize].cut.clone();
            let bytes = self.gradient_bytes(*value, &cut);
            let piece = self.piece(*value, self.reduce_bucket(*value));
            sums.add((CollectiveKind::AllReduce, &axes, Purpose::ReduceGrad), Item::new(grad.tensor, piece), bytes);
        }
        let summed = self.flush(pass, sums);
        settle(&mut used, &summed);
        used
    }

    /// Bytes on the wire of the gradient of a parameter that is cut over `cut`.
    fn gradient_bytes(&mut self, value: ValueId, cut: &[AxisId]) -> expr::Id {
        let elements = self.param_elements(value);
        let elements = self.flat(elements, cut);
        self.sizes.times(elements, self.sizes.bytes.reduce)
    }

    /// After the update: parameters gathered where the state is split further than they rest, gradients where the
    /// state is split less. Hands back what the optimizer makes of each parameter, and what the next step begins with.
    pub(super) fn after_update(
        &mut self,
        pass: &mut Pass,
        owned: &[ValueId],
        rests: &[Rest],
        gradients: &mut IndexMap<ValueId, TensorId>,
        trains: bool,
    ) -> Vec<(ValueId, (TensorId, TensorId))> {
        let (mut params, mut slices, mut grads) = (Buckets::default(), Buckets::default(), Buckets::default());
        let mut made: IndexMap<ValueId, (TensorId, TensorId)> = IndexMap::new();
        for value in owned {
            let rest = rests[self.param_index(*value)].clone();
            let elements = self.param_elements(*value);
            let cut = rest.updated();
            let along = if rest.state.is_empty() { rest.along[0] } else { rest.along[2] };
            let updated = self.cut(*value, Content::Updated, &cut, along);
            made.insert(*value, (updated, updated));
            if !trains {
                continue;
            }
            let gather: Vec<_> = rest.state.iter().copied().filter(|a| !rest.param.contains(a)).collect();
            let stay: Vec<_> = cut.iter().copied().filter(|a| !gather.contains(a)).collect();
            let at = self.flat(elements, &stay);
            let bytes = self.sizes.times(at, self.sizes.bytes.gather);
            let piece = self.piece(*value, rest.bucket);
            params.add((CollectiveKind::AllGather, &gather, Purpose::GatherParam), Item::new(updated, piece), bytes);
            let Some(tensor) = gradients.get(value).copied() else { continue };
            let held = self.tensors[tensor.0 as usize].cut.clone();
            let whole: Vec<_> = held.iter().copied().filter(|a| !cut.contains(a)).collect();
            let left: Vec<_> = held.into_iter().filter(|a| cut.contains(a)).collect();
            let bytes = self.gradient_bytes(*value, &left);
            grads.add(
                (CollectiveKind::AllGather, &union(&whole, &[]), Purpose::ReduceGrad),
                Item::new(tensor, piece),
                bytes,
            );
        }
        gradients.extend(self.flush(pass, grads));
        for (value, tensor) in self.flush(pass, params) {
            made.entry(value).and_modify(|m| m.1 = tensor);
        }
        // A parameter that rests over an axis the state does not: every rank made all of it and keeps its piece.
        for value in owned.iter().filter(|_| trains) {
            let rest = rests[self.param_index(*value)].clone();
            let tensor = made[value].1;
            let cut = self.tensors[tensor.0 as usize].cut.clone();
            let slice: Vec<_> = rest.param.iter().copied().filter(|a| !cut.contains(a)).collect();
            let elements = self.param_elements(*value);
            let at = self.flat(elements, &cut);
            let bytes = self.sizes.times(at, self.sizes.bytes.gather);
            let item = Item { cut: (rest.nested(&rest.param), rest.along[0]), ..Item::new(tensor, 0) };
            slices.add((CollectiveKind::Slice, &slice, Purpose::GatherParam), item, bytes);
        }
        for (value, tensor) in self.flush(pass, slices) {
            made.entry(value).and_modify(|m| m.1 = tensor);
        }
        made.into_iter().collect()
    }

    /// The terms of each parameter's gradient in `unit` brought to one placement: the axes it is still partial over.
    pub(super) fn param_terms(&mut self, pass: &mut Pass, grads: &mut Gradients) -> Vec<(ValueId, ParamGrad)> {
        let mut out = Vec::new();
        let keys: Vec<_> = grads.params.keys().copied().filter(|(unit, _)| *unit == pass.unit).collect();
        for key in keys {
            let Some(terms) = grads.params.shift_remove(&key) else { continue };
            let (tensor, partial) = self.in_common(pass, key.1, terms, grads);
            out.push((key.1, ParamGrad { tensor, partial }));
        }
        out
    }

    /// The sum of terms of the gradient of `value`, and the axes over which every one of them is partial: it still is.
    fn in_common(
        &mut self,
        pass: &mut Pass,
        value: ValueId,
        terms: Vec<Term>,
        grads: &mut Gradients,
    ) -> (TensorId, Vec<AxisId>) {
        let common = |axis: &AxisId| terms.iter().all(|t| self.place(t.tensor).partial.contains(axis));
        let partial: Vec<_> = self.layout.axis_ids().filter(common).collect();
        let to = partial.iter().fold(self.plan.rest(value).clone(), |p, a| p.with(*a, Partial));
        let site = self.site_of(value);
        (self.add_up(pass, site, terms, &to, &mut grads.live).tensor, partial)
    }

    /// The gradients of one parameter in several units as one. What one unit sums over an axis and another does not is
    /// summed first; pieces of different cuts are put together.
    pub(super) fn over_units(&mut self, pass: &mut Pass, mut terms: Vec<ParamGrad>) -> ParamGrad {
        if terms.len() == 1 {
            return terms.swap_remove(0);
        }
        let cut = |term: &ParamGrad| &self.tensors[term.tensor.0 as usize].cut;
        let alike = terms.windows(2).all(|w| cut(&w[0]) == cut(&w[1]));
        let partial = terms.iter().fold(Vec::new(), |all, t| union(&all, &t.partial));
        let mut whole = Vec::new();
        for term in &terms {
            let mut tensor = term.tensor;
            let Tensor { value, cut, .. } = self.tensors[tensor.0 as usize].clone();
            if !alike {
                let elements = self.param_elements(value);
                let bytes = self.sizes.times(elements, self.sizes.bytes.reduce);
                let mut buckets = Buckets::default();
                let what = (CollectiveKind::AllGather, &cut[..], Purpose::ReduceGrad);
                buckets.add(what, Item::new(tensor, 0), bytes);
                tensor = self.flush(pass, buckets).get(&value).copied().unwrap_or(tensor);
            }
            whole.push(Term { tensor, buffer: None });
        }
        let value = self.tensors[whole[0].tensor.0 as usize].value;
        let (tensor, _) = self.in_common(pass, value, whole, &mut Gradients::default());
        ParamGrad { tensor, partial }
    }

    /// What the border says of a parameter.
    pub(super) fn sharded_param(
        &mut self,
        value: ValueId,
        rest: &Rest,
        grad_axes: &[AxisId],
        users: Vec<u32>,
        (gradient, updated, settled): (Option<TensorId>, TensorId, TensorId),
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
            gradient,
            updated,
            settled,
            rests: rest.rests,
        }
    }
}

/// What each value became.
fn settle(used: &mut [(ValueId, ParamGrad)], done: &IndexMap<ValueId, TensorId>) {
    for (value, grad) in used {
        grad.tensor = done.get(value).copied().unwrap_or(grad.tensor);
    }
}

/// The axes of either, in mesh order.
fn union(a: &[AxisId], b: &[AxisId]) -> Vec<AxisId> {
    let mut all: Vec<_> = a.iter().chain(b).copied().collect();
    all.sort();
    all.dedup();
    all
}
