//! The model as one layout sees it: its batch by the ranks that shard it, its units cut where selectors begin and end.

use super::super::errors;
use super::super::layout;
use super::super::model;
use super::{Builder, Duty, DutyKind};
use crate::eval::Instance;
use crate::expr::{self, Node};
use crate::graph::{DataDim, OpGraph, ValueRole};
use crate::layout::{Action, AxisId, Class, Layout, NameId};
use crate::source::Span;
use indexmap::IndexMap;

/// The model as one layout sees it.
#[derive(Debug)]
pub(in crate::elaborate) struct Placed {
    pub(super) ops: OpGraph,
    pub(super) micro_batch: expr::Id,
    pub(super) replicas: expr::Id,
    pub(super) microbatches: expr::Id,
    /// Sequences of a microbatch on all ranks.
    pub(super) all: expr::Id,
    pub(super) batch_axes: Vec<AxisId>,
}

/// How much data there is.
#[derive(Clone, Debug)]
pub(in crate::elaborate) struct Counts {
    pub(super) batch: expr::Id,
    pub(super) micro_batch: expr::Id,
    /// Sequences of a microbatch on all ranks, where another part says so.
    pub(super) all: Option<expr::Id>,
    pub(super) sequence: expr::Id,
    pub(super) named: IndexMap<String, expr::Id>,
}

impl<'p> Builder<'p, '_, '_> {
    /// Elaborates the model for one layout: its batch by the ranks that shard it, its units cut at `borders`.
    pub(super) fn placed(
        &mut self,
        evaluated: &mut layout::Evaluated<'p>,
        (model, model_span): (&Instance<'p>, Span),
        counts: &Counts,
        borders: &[(String, u32)],
        duties: &mut Vec<Duty>,
    ) -> Option<Placed> {
        let input = model::data_dims(model);
        let batch_name = input.iter().find(|(_, d)| *d == DataDim::Batch).map(|(n, _)| n.clone());
        let batch_axes = batch_name.as_ref().map(|n| sharding_axes(&evaluated.layout, n)).unwrap_or_default();
        let replicas: Vec<_> = batch_axes.iter().map(|a| evaluated.layout.axis(*a).size).collect();
        let graph = &mut *self.eval.graph;
        let replicas = graph.product(replicas);
        let (all, micro_batch) = match counts.all {
            Some(all) => (all, graph.put(Node::ExactDiv(all, replicas))),
            None => (graph.mul(counts.micro_batch, replicas), counts.micro_batch),
        };
        let microbatches = graph.put(Node::ExactDiv(counts.batch, all));
        if counts.all.is_none() {
            let rest = graph.put(Node::Mod(counts.batch, all));
            let zero = graph.int(0);
            let cond = graph.eq(rest, zero);
            let span = self.values.get("batch").map_or(self.name.span, |f| f.span);
            duties.push(Duty { cond, kind: DutyKind::Batch, span });
        }
        let (named, rest, borders) = (counts.named.clone(), None, borders.to_vec());
        let extents = model::Extents { batch: all, sequence: Some(counts.sequence), named, rest, borders };
        let pads = evaluated.layout.pads.clone();
        let ops = model::elaborate(&mut self.eval, model, model_span, &extents, &pads)?;
        if !ops.values.iter().any(|v| v.role == ValueRole::Loss) {
            self.eval.sink.error(errors::loss_missing(&model.decl.name, model_span));
            return None;
        }
        let grouped = ops.dims.iter().filter(|d| d.groups.is_some()).map(|d| (d.name.clone(), d.extent));
        let grouped: Vec<_> = grouped.collect();
        for (cond, span) in layout::copies(&mut evaluated.layout, &grouped, &mut self.eval) {
            duties.push(Duty { cond, kind: DutyKind::Copies, span });
        }
        // An axis that copies cut has other fine axes now.
        let batch_axes = batch_name.map(|n| sharding_axes(&evaluated.layout, &n)).unwrap_or_default();
        if let (Some(item), Some(axis)) = (&mut evaluated.pipeline, evaluated.layout.pipeline) {
            item.axis = axis;
        }
        Some(Placed { ops, micro_batch, replicas, microbatches, all, batch_axes })
    }
}

/// The axes whose first rule at the top of the layout gives them to `dim`.
pub(super) fn sharding_axes(layout: &Layout, dim: &str) -> Vec<AxisId> {
    let takes = |axis: &NameId| {
        let first = layout.rules.iter().filter(|r| r.scope.is_everywhere()).find(|r| {
            r.axes.contains(axis)
                && match &r.action {
                    Action::Shard { dims, classes, .. } => {
                        classes.contains(&Class::Act) && dims.iter().any(|d| d == dim)
                    }
                    Action::Replicate { .. } => true,
                }
        });
        first.is_some_and(|r| matches!(r.action, Action::Shard { .. }))
    };
    let names: Vec<_> = (0..layout.named.len() as u16).map(NameId).filter(takes).collect();
    layout.fine(&names)
}
