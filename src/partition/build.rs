//! Steps are made here: the part forward, backward and storage share.

use super::plan::Plan;
use super::reshard::moves;
use super::sizes::Sizes;
use super::{Collective, CollectiveKind, Phase, Placement, Purpose, Step, StepId, StepKind, Work};
use crate::expr;
use crate::graph::{OpGraph, OpId, RegionId, ValueId};
use crate::layout::{AxisId, Layout};
use crate::source::Span;
use indexmap::IndexMap;
use petgraph::graph::DiGraph;
use smallvec::SmallVec;

/// The steps something waits for.
pub(super) type After = SmallVec<[StepId; 2]>;

/// Makes the steps of one graph.
pub(super) struct Builder<'a> {
    pub(super) graph: &'a OpGraph,
    pub(super) layout: &'a Layout,
    pub(super) plan: &'a Plan,
    pub(super) sizes: Sizes<'a>,
    pub(super) flow: DiGraph<Step, (), u32>,
    /// The forward steps that make each value at rest, by value.
    pub(super) made: Vec<After>,
    /// Copies gathered in the forward of the unit at hand that stay for its backward.
    pub(super) kept: IndexMap<(ValueId, Placement, RegionId), After>,
    /// The loss is summed once an update, not once a microbatch: its value and what it waits for.
    pub(super) losses: Vec<(OpId, After)>,
}

/// One list of steps being made: the forward, the recomputation or the backward of one unit.
pub(super) struct Pass {
    pub(super) phase: Phase,
    pub(super) unit: u32,
    pub(super) recomputed: bool,
    pub(super) steps: Vec<StepId>,
    /// The steps that make each value, at rest.
    pub(super) made: IndexMap<ValueId, After>,
    /// Copies in another placement: one for each value, placement and region.
    pub(super) copies: IndexMap<(ValueId, Placement, RegionId), After>,
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

impl Builder<'_> {
    /// Where `op` is.
    pub(super) fn site(&self, op: OpId) -> Site {
        let op = &self.graph.flow[op];
        Site { region: op.region, span: op.span }
    }

    /// Adds a step that waits for `after`.
    pub(super) fn step(&mut self, pass: &mut Pass, site: Site, kind: StepKind, after: &[StepId]) -> StepId {
        let Site { region, span } = site;
        let weight = matches!(&kind, StepKind::Collective(c) if c.purpose == Purpose::ReduceGrad);
        let step = Step { kind, phase: pass.phase, unit: pass.unit, region, recomputed: pass.recomputed, weight, span };
        let id = self.flow.add_node(step);
        for before in after {
            self.flow.update_edge(*before, id, ());
        }
        pass.steps.push(id);
        id
    }

    /// Adds work of `op`.
    pub(super) fn compute(&mut self, pass: &mut Pass, op: OpId, work: Work, after: &[StepId]) -> StepId {
        let site = self.site(op);
        self.step(pass, site, StepKind::Compute { op, work }, after)
    }

    /// Adds a collective.
    pub(super) fn collective(&mut self, pass: &mut Pass, site: Site, what: Collective, after: &[StepId]) -> StepId {
        self.step(pass, site, StepKind::Collective(what), after)
    }

    /// Adds what brings `value`, or its gradient, from one placement to another.
    pub(super) fn reshard(
        &mut self,
        pass: &mut Pass,
        site: Site,
        value: ValueId,
        (from, to): (&Placement, &Placement),
        mut after: After,
    ) -> After {
        for m in moves(from, to) {
            let bytes = self.sizes.wire(value, &m.larger);
            let what =
                Collective { kind: m.kind, axes: m.axes, bytes, value, purpose: Purpose::Reshard, maximum: false };
            let id = self.collective(pass, site, what, &after);
            after = std::iter::once(id).collect();
        }
        after
    }

    /// Adds an all-reduce of fp32 statistics of `rows` values.
    pub(super) fn statistic(
        &mut self,
        pass: &mut Pass,
        op: OpId,
        axes: &[AxisId],
        bytes: expr::Id,
        maximum: bool,
        after: &After,
    ) -> After {
        if axes.is_empty() {
            return after.clone();
        }
        let what = Collective {
            kind: CollectiveKind::AllReduce,
            axes: axes.iter().copied().collect(),
            bytes,
            value: self.graph.flow[op].output,
            purpose: Purpose::Statistics,
            maximum,
        };
        let site = self.site(op);
        std::iter::once(self.collective(pass, site, what, after)).collect()
    }
}

/// Adds the steps of `more` to `after`, each once.
pub(super) fn join(after: &mut After, more: &[StepId]) {
    for step in more {
        if !after.contains(step) {
            after.push(*step);
        }
    }
}
