//! Steps are made here: the part forward, backward and storage share.

use super::placement::AxisUse;
use super::plan::Plan;
use super::reshard::moves;
use super::sizes::Sizes;
use super::{
    Collective, CollectiveKind, Content, Phase, Placement, Purpose, Step, StepId, StepKind, Task, Tensor, TensorId,
    Work,
};
use crate::expr;
use crate::graph::{OpGraph, OpId, RegionId, ValueId};
use crate::layout::{AxisId, Layout};
use crate::source::Span;
use indexmap::IndexMap;
use petgraph::graph::DiGraph;
use smallvec::SmallVec;

/// Makes the steps of one graph.
pub(super) struct Builder<'a> {
    pub(super) graph: &'a OpGraph,
    pub(super) layout: &'a Layout,
    pub(super) plan: &'a Plan,
    pub(super) sizes: Sizes<'a>,
    pub(super) flow: DiGraph<Step, (), u32>,
    pub(super) tensors: Vec<Tensor>,
    /// The step that writes each tensor.
    writers: Vec<Option<StepId>>,
    /// What the forward made of each value, at rest; of data and parameters, what is there from the start.
    pub(super) made: Vec<Option<TensorId>>,
    /// Copies gathered in the forward of the unit at hand that stay for its backward.
    pub(super) kept: IndexMap<(ValueId, Placement, RegionId), TensorId>,
    /// The steps of the forward that made each copy, and what each op did beside copies.
    pub(super) copied: IndexMap<(ValueId, Placement, RegionId), Vec<StepId>>,
    /// See `copied`.
    pub(super) made_by: IndexMap<OpId, Vec<StepId>>,
    /// What the unit at hand keeps for its backward.
    pub(super) saved: IndexMap<(ValueId, Placement), TensorId>,
    /// Parameters gathered for longer than one pass, by the unit that uses them.
    pub(super) held: IndexMap<(u32, ValueId), TensorId>,
    /// Statistics that the forward of each op summed over a split dimension.
    pub(super) statistics: IndexMap<OpId, Vec<TensorId>>,
    /// The slots of each combine as its forward received them at their tokens, where they are kept.
    pub(super) returned: IndexMap<OpId, TensorId>,
    /// The loss is summed once an update, not once a microbatch.
    pub(super) losses: Vec<(OpId, TensorId)>,
}

/// One list of steps being made: the forward, the recomputation or the backward of one unit.
pub(super) struct Pass {
    pub(super) phase: Phase,
    pub(super) unit: u32,
    pub(super) recomputed: bool,
    pub(super) steps: Vec<StepId>,
    /// What it made of each value, at rest.
    pub(super) made: IndexMap<ValueId, TensorId>,
    /// Copies in another placement: one for each value, placement and region.
    pub(super) copies: IndexMap<(ValueId, Placement, RegionId), TensorId>,
}

impl Pass {
    pub(super) fn new(phase: Phase, unit: u32, recomputed: bool) -> Self {
        let (made, copies) = (IndexMap::new(), IndexMap::new());
        Self { phase, unit, recomputed, steps: Vec::new(), made, copies }
    }
}

/// Where a step's cause is.
#[derive(Copy, Clone)]
pub(super) struct Site {
    pub(super) region: RegionId,
    pub(super) span: Span,
}

impl<'a> Builder<'a> {
    pub(super) fn new(graph: &'a OpGraph, layout: &'a Layout, plan: &'a Plan, sizes: Sizes<'a>) -> Self {
        Self {
            graph,
            layout,
            plan,
            sizes,
            flow: DiGraph::default(),
            tensors: Vec::new(),
            writers: Vec::new(),
            made: vec![None; graph.values.len()],
            kept: IndexMap::new(),
            copied: IndexMap::new(),
            made_by: IndexMap::new(),
            saved: IndexMap::new(),
            held: IndexMap::new(),
            statistics: IndexMap::new(),
            returned: IndexMap::new(),
            losses: Vec::new(),
        }
    }
}

impl Builder<'_> {
    /// Where `op` is.
    pub(super) fn site(&self, op: OpId) -> Site {
        let op = &self.graph.flow[op];
        Site { region: op.region, span: op.span }
    }

    /// Where `value` is.
    pub(super) fn site_of(&self, value: ValueId) -> Site {
        let v = self.graph.value(value);
        Site { region: v.region, span: v.span }
    }

    /// Adds a tensor.
    pub(super) fn tensor(&mut self, tensor: Tensor) -> TensorId {
        self.tensors.push(tensor);
        self.writers.push(None);
        TensorId(self.tensors.len() as u32 - 1)
    }

    /// Adds a tensor that is cut no further.
    pub(super) fn whole(&mut self, value: ValueId, content: Content, place: Placement) -> TensorId {
        self.tensor(Tensor { value, content, place, cut: SmallVec::new(), along: None, spread: None, passing: false })
    }

    /// The placement of a tensor.
    pub(super) fn place(&self, tensor: TensorId) -> &Placement {
        &self.tensors[tensor.0 as usize].place
    }

    /// What there is of `value` at rest: what `pass` made of it, or the forward, or what was there from the start.
    pub(super) fn of(&mut self, pass: &Pass, value: ValueId) -> TensorId {
        let held = self.held.get(&(pass.unit, value)).copied();
        if let Some(made) = pass.made.get(&value).copied().or(held).or(self.made[value.0 as usize]) {
            return made;
        }
        let given = self.whole(value, Content::Value, self.plan.rest(value).clone());
        self.made[value.0 as usize] = Some(given);
        given
    }

    /// Adds a step. It waits for those that write what it reads.
    pub(super) fn step(
        &mut self,
        pass: &mut Pass,
        site: Site,
        kind: StepKind,
        (reads, writes): (&[TensorId], &[TensorId]),
    ) -> StepId {
        let Site { region, span } = site;
        let weight = matches!(&kind, StepKind::Collective(c) if c.purpose == Purpose::ReduceGrad);
        let (phase, unit, recomputed) = (pass.phase, pass.unit, pass.recomputed);
        let (reads, writes) = (SmallVec::from_slice(reads), SmallVec::from_slice(writes));
        let id = self.flow.add_node(Step { kind, reads, writes, phase, unit, region, recomputed, weight, span });
        for at in 0..self.flow[id].reads.len() {
            let read = self.flow[id].reads[at];
            if let Some(before) = self.writers[read.0 as usize] {
                self.flow.update_edge(before, id, ());
            }
        }
        for at in 0..self.flow[id].writes.len() {
            let written = self.flow[id].writes[at];
            self.writers[written.0 as usize] = Some(id);
        }
        pass.steps.push(id);
        id
    }

    /// Adds what `op` does; for nothing where there is no `work`.
    pub(super) fn compute(
        &mut self,
        pass: &mut Pass,
        (op, task): (OpId, Task),
        work: Option<Work>,
        tensors: (&[TensorId], &[TensorId]),
    ) -> StepId {
        let kind = match work {
            Some(work) => StepKind::Compute { op, task, work },
            None => StepKind::Free { op, task },
        };
        let site = self.site(op);
        self.step(pass, site, kind, tensors)
    }

    /// Adds a collective that leaves what it moves in `place`.
    pub(super) fn collective(
        &mut self,
        pass: &mut Pass,
        site: Site,
        what: Collective,
        tensor: TensorId,
        place: Placement,
    ) -> TensorId {
        let moved = Tensor { place, ..self.tensors[tensor.0 as usize].clone() };
        let moved = self.tensor(moved);
        self.step(pass, site, StepKind::Collective(what), (&[tensor], &[moved]));
        moved
    }

    /// Adds what brings a tensor to another placement.
    pub(super) fn reshard(&mut self, pass: &mut Pass, site: Site, tensor: TensorId, to: &Placement) -> TensorId {
        let value = self.tensors[tensor.0 as usize].value;
        let mut at = tensor;
        for m in moves(&self.place(tensor).clone(), to) {
            let bytes = self.sizes.wire(value, &m.larger);
            let what =
                Collective { kind: m.kind, axes: m.axes, bytes, value, purpose: Purpose::Reshard, maximum: false };
            at = self.collective(pass, site, what, at, m.after);
        }
        at
    }

    /// Adds statistic `n` of `op` over `axes`: each rank's part of it and the sum, or maximum, of the parts.
    pub(super) fn statistic(
        &mut self,
        pass: &mut Pass,
        (op, n): (OpId, u8),
        axes: &[AxisId],
        (bytes, maximum): (expr::Id, bool),
        reads: &[TensorId],
    ) -> TensorId {
        let value = self.graph.flow[op].output;
        let need = self.plan.op(op).needs[0].clone();
        let place = axes.iter().fold(need, |p, a| p.with(*a, AxisUse::Partial));
        let summed = place.summed();
        let part = self.whole(value, Content::Statistic(n), place);
        self.compute(pass, (op, Task::Statistic(n)), None, (reads, &[part]));
        let kind = CollectiveKind::AllReduce;
        let axes = axes.iter().copied().collect();
        let what = Collective { kind, axes, bytes, value, purpose: Purpose::Statistics, maximum };
        let site = self.site(op);
        self.collective(pass, site, what, part, summed)
    }
}
