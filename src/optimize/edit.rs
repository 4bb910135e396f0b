//! Changes to a partitioned program, gathered and then made at once.

use super::Context;
use crate::expr;
use crate::graph::ValueRole;
use crate::layout::AxisId;
use crate::partition::{
    Collective, Content, Phase, Placement, Purpose, ShardedGraph, StepId, StepKind, Tensor, TensorId,
};
use indexmap::{IndexMap, IndexSet};
use petgraph::graph::DiGraph;

/// A program being changed. Tensors may be read as others, steps changed in place or taken away.
pub(super) struct Edit<'a> {
    pub(super) sharded: ShardedGraph,
    pub(super) context: Context<'a>,
    pub(super) exprs: &'a mut expr::Graph,
    /// What each tensor is read as.
    instead: Vec<TensorId>,
    gone: Vec<bool>,
    /// Bytes that live longer than before in the backward, by unit.
    longer: Vec<(u32, expr::Id)>,
}

impl<'a> Edit<'a> {
    pub(super) fn new(sharded: ShardedGraph, context: Context<'a>, exprs: &'a mut expr::Graph) -> Self {
        let instead = (0..sharded.tensors.len() as u32).map(TensorId).collect();
        let gone = vec![false; sharded.flow.node_count()];
        Self { sharded, context, exprs, instead, gone, longer: Vec::new() }
    }

    /// The tensor that stands for `tensor` now.
    pub(super) fn now(&self, tensor: TensorId) -> TensorId {
        let mut at = tensor;
        while self.instead[at.0 as usize] != at {
            at = self.instead[at.0 as usize];
        }
        at
    }

    /// Whoever reads `old` reads `new`, which is there earlier.
    pub(super) fn replace(&mut self, old: TensorId, new: TensorId) {
        self.instead[old.0 as usize] = self.now(new);
    }

    /// Takes a step away.
    pub(super) fn remove(&mut self, step: StepId) {
        self.gone[step.index()] = true;
    }

    /// Whether a step was taken away.
    pub(super) fn is_gone(&self, step: StepId) -> bool {
        self.gone[step.index()]
    }

    /// Counts `bytes` to what the backward of `unit` needs at its fullest moment.
    pub(super) fn lives_longer(&mut self, unit: u32, bytes: expr::Id) {
        self.longer.push((unit, bytes));
    }

    /// The steps left of each unit and phase, in order.
    pub(super) fn lists(&self) -> Vec<(u32, Phase, Vec<StepId>)> {
        let mut out = Vec::new();
        for (at, unit) in self.sharded.units.iter().enumerate() {
            let lists =
                [(Phase::Forward, &unit.forward), (Phase::Backward, &unit.backward), (Phase::Update, &unit.update)];
            for (phase, steps) in lists {
                out.push((at as u32, phase, steps.iter().copied().filter(|s| !self.is_gone(*s)).collect()));
            }
        }
        out
    }

    /// The steps that read each tensor.
    pub(super) fn readers(&self) -> IndexMap<TensorId, Vec<StepId>> {
        let mut out: IndexMap<TensorId, Vec<StepId>> = IndexMap::new();
        for id in self.sharded.flow.node_indices().filter(|s| !self.is_gone(*s)) {
            for read in &self.sharded.flow[id].reads {
                out.entry(self.now(*read)).or_default().push(id);
            }
        }
        out
    }

    /// The step that writes each tensor.
    pub(super) fn writers(&self) -> IndexMap<TensorId, StepId> {
        let steps = self.sharded.flow.node_indices().filter(|s| !self.is_gone(*s));
        steps.flat_map(|s| self.sharded.flow[s].writes.iter().map(move |t| (*t, s))).collect()
    }

    /// What a step is for: the loss, and what a parameter becomes.
    pub(super) fn results(&self) -> Vec<TensorId> {
        let is_loss =
            |t: &Tensor| t.content == Content::Value && self.context.graph.value(t.value).role == ValueRole::Loss;
        let tensors = self.sharded.tensors.iter().enumerate();
        let mut out: Vec<_> = tensors.filter(|(_, t)| is_loss(t)).map(|(at, _)| TensorId(at as u32)).collect();
        let params = self.sharded.units.iter().flat_map(|u| &u.params);
        out.extend(params.flat_map(|p| p.gradient.into_iter().chain([p.updated, p.settled])));
        out
    }

    /// Tensors that matter beside those that steps read: results, and what is kept for the backward.
    pub(super) fn kept(&self) -> Vec<TensorId> {
        let saved = self.sharded.units.iter().flat_map(|u| &u.saved).filter_map(|s| s.tensor);
        self.results().into_iter().chain(saved).collect()
    }

    /// The changed program, and the bytes that live longer in it.
    pub(super) fn finish(mut self) -> (ShardedGraph, Vec<(u32, expr::Id)>) {
        let old = std::mem::take(&mut self.sharded.flow);
        let mut flow = DiGraph::default();
        let mut new: Vec<Option<StepId>> = Vec::with_capacity(old.node_count());
        let mut writers: IndexMap<TensorId, StepId> = IndexMap::new();
        for id in old.node_indices() {
            if self.is_gone(id) {
                new.push(None);
                continue;
            }
            let mut step = old[id].clone();
            for read in &mut step.reads {
                *read = self.now(*read);
            }
            let (reads, writes) = (step.reads.clone(), step.writes.clone());
            let at = flow.add_node(step);
            for before in reads.iter().filter_map(|t| writers.get(t)) {
                flow.update_edge(*before, at, ());
            }
            writers.extend(writes.into_iter().map(|t| (t, at)));
            new.push(Some(at));
        }
        let mut units = std::mem::take(&mut self.sharded.units);
        for (at, unit) in units.iter_mut().enumerate() {
            for list in [&mut unit.forward, &mut unit.backward, &mut unit.update] {
                *list = list.iter().filter_map(|s| new[s.index()]).collect();
            }
            for steps in unit.open.iter_mut().filter_map(|o| o.steps.as_mut()) {
                *steps = steps.iter().filter_map(|s| new[s.index()]).collect();
            }
            for saved in &mut unit.saved {
                saved.tensor = saved.tensor.map(|t| self.now(t));
            }
            for param in &mut unit.params {
                param.gradient = param.gradient.map(|t| self.now(t));
                param.updated = self.now(param.updated);
                param.settled = self.now(param.settled);
            }
            let more: Vec<_> = self.longer.iter().filter(|(u, _)| *u as usize == at).map(|(_, b)| *b).collect();
            if !more.is_empty() {
                let more = self.exprs.sum(more);
                unit.transient = self.exprs.add(unit.transient, more);
            }
        }
        self.sharded.units = units;
        self.sharded.flow = flow;
        (self.sharded, self.longer)
    }

    /// What moves one tensor from one placement to another, if `step` does.
    pub(super) fn moving(&self, step: StepId) -> Option<Moving> {
        let s = &self.sharded.flow[step];
        match (&s.kind, &s.reads[..], &s.writes[..]) {
            (StepKind::Collective(c), [read], [write]) if c.purpose == Purpose::Reshard && !self.is_gone(step) => {
                Some(Moving { from: self.now(*read), to: *write, what: c.clone() })
            }
            _ => None,
        }
    }

    /// The collective of a step, to be changed.
    pub(super) fn collective(&mut self, step: StepId) -> Option<&mut Collective> {
        match &mut self.sharded.flow[step].kind {
            StepKind::Collective(c) => Some(c),
            StepKind::Free { .. } | StepKind::Compute { .. } => None,
        }
    }

    /// Where a tensor is.
    pub(super) fn place(&self, tensor: TensorId) -> &Placement {
        &self.sharded.tensors[tensor.0 as usize].place
    }

    /// How many ranks a group of `axes` has.
    pub(super) fn ranks(&mut self, axes: &[AxisId]) -> expr::Id {
        let sizes: Vec<_> = axes.iter().map(|a| self.context.layout.axis(*a).size).collect();
        self.exprs.product(sizes)
    }

    /// Takes moves away whose result nobody reads.
    pub(super) fn sweep(&mut self) {
        let kept: IndexSet<TensorId> = self.kept().into_iter().map(|t| self.now(t)).collect();
        let mut count: IndexMap<TensorId, usize> = self.readers().into_iter().map(|(t, r)| (t, r.len())).collect();
        let steps: Vec<_> = self.sharded.flow.node_indices().collect();
        for id in steps.into_iter().rev() {
            let Some(m) = self.moving(id) else { continue };
            if count.get(&m.to).is_none_or(|n| *n == 0) && !kept.contains(&m.to) {
                self.remove(id);
                count.entry(m.from).and_modify(|n| *n -= 1);
            }
        }
    }
}

/// A move of one tensor.
#[derive(Clone, Debug)]
pub(super) struct Moving {
    pub(super) from: TensorId,
    pub(super) to: TensorId,
    pub(super) what: Collective,
}
