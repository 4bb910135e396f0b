//! What a target cannot run, said at its place in the user's files.

use crate::analyse::Compiled;
use crate::diagnostics::{Applicability, Diagnostic};
use crate::emit::plan::Plan;
use crate::emit::targets::{Instead, TargetError, Where};
use crate::graph::DataDim;
use crate::layout::Action;
use crate::source::{Sources, Span};

/// Where the things a target may object to are written.
pub(super) struct Places {
    list: Vec<(Where, Span)>,
    layout: Span,
    /// The dimension of positions.
    sequence: Option<String>,
    /// Whole numbers the user's own files give to parameters: name, value and place.
    parameters: Vec<(String, i64, Span)>,
}

impl Places {
    pub(super) fn new(c: &Compiled<'_>, sources: &Sources) -> Self {
        let field = |name: &str| c.job.places.get(name).copied().unwrap_or(c.job.span);
        let layout = &c.job.layout;
        let mut list = vec![
            (Where::Model, field("model")),
            (Where::Cluster, field("cluster")),
            (Where::Layout, field("layout")),
            (Where::Batch, field("batch")),
            (Where::Sequence, field("sequence")),
            (Where::Precision, field("precision")),
            (Where::Optimizer, field("optimizer")),
        ];
        list.extend(layout.mesh_span.map(|s| (Where::Mesh, s)));
        list.extend(layout.named.iter().map(|a| (Where::Axis(a.name.clone()), a.span)));
        let shard = layout.rules.iter().find(|r| match &r.action {
            Action::Shard { dims, .. } => {
                dims.iter().any(|d| c.job.ops.dims.iter().any(|x| x.data.is_none() && x.name == *d))
            }
            Action::Replicate { .. } => false,
        });
        let over = layout.rules.iter().flat_map(|r| r.axes.iter().map(|a| (&layout.named(*a).name, r.span)));
        list.extend(over.map(|(axis, span)| (Where::ShardOver(axis.clone()), span)));
        let inside = layout.stores.iter().filter(|s| !s.scope.is_everywhere());
        let inside = inside.chain(&layout.stores).map(|s| (Where::StoreInside(s.class.name().into()), s.span));
        list.extend(inside);
        list.extend(shard.map(|r| (Where::Shard, r.span)));
        list.extend(layout.attention.first().map(|a| (Where::Attention, a.span)));
        list.extend(layout.stores.iter().map(|s| (Where::Store(s.class.name().into()), s.span)));
        list.extend(layout.overlaps.iter().map(|o| (Where::Overlap(o.comm.name()), o.span)));
        list.extend(layout.recompute.first().map(|r| (Where::Recompute, r.span)));
        list.extend(layout.pads.iter().map(|p| (Where::Pad(p.dim.clone()), p.span)));
        if let Some(p) = &c.job.pipeline {
            list.push((Where::Pipeline, p.span));
            list.push((Where::Schedule, p.schedule_span));
            list.push((Where::Split, p.split_span));
        }
        // What the library's layout says is caused by the job that uses it.
        list.retain(|(_, span)| !sources.file(span.file).std);
        let written = c.job.parameters.iter().filter(|p| !sources.file(p.span.file).std && p.span != c.job.span);
        let parameters = written.map(|p| (p.name.clone(), p.value, p.span)).collect();
        let positions = c.job.ops.dims.iter().find(|d| d.data == Some(DataDim::Sequence));
        Self { list, layout: field("layout"), sequence: positions.map(|d| d.name.clone()), parameters }
    }

    pub(super) fn span(&self, at: &Where) -> Span {
        self.list.iter().find(|(w, _)| w == at).map_or(self.layout, |(_, s)| *s)
    }

    /// The error at its place, with the edit that removes it where there is one.
    pub(super) fn diagnostic(&self, e: &TargetError, plan: &Plan, sources: &Sources) -> Diagnostic {
        let at = self.span(&e.at);
        let mut d = super::errors::cannot_run(e, at);
        if let Some((title, span, text)) = e.instead.as_ref().and_then(|i| self.edit(i, e, at, plan, sources)) {
            d = d.fix(format!("write `{title}`"), span, text, Applicability::Unsure);
        }
        if !e.able.is_empty() {
            d = d.help(format!("{} can", e.able.join(", ")));
        }
        d
    }

    /// The edit in short, its place and its text.
    fn edit(
        &self,
        i: &Instead,
        e: &TargetError,
        at: Span,
        plan: &Plan,
        sources: &Sources,
    ) -> Option<(String, Span, String)> {
        match i {
            Instead::Text(text) if e.at == Where::Mesh => {
                let mesh = reordered(sources.snippet(at), text).unwrap_or_else(|| text.clone());
                Some((mesh.clone(), at, mesh))
            }
            // An item of the library cannot be edited, nor can the layout's name stand for it.
            Instead::Text(text) => self.list.iter().any(|(w, _)| *w == e.at).then(|| (text.clone(), at, text.clone())),
            Instead::ElseSequence => {
                let rule = sources.snippet(at);
                let plain = self.list.iter().any(|(w, _)| *w == e.at) && !rule.contains('\n');
                let text = format!("{rule} else {}", self.sequence.as_ref()?);
                plain.then(|| (text.clone(), at, text))
            }
            Instead::Axis(name, size) => {
                let axis = plan.layout.axes.iter().find(|a| a.name == *name)?;
                let mut said = self.parameters.iter().filter(|(_, value, _)| *value == axis.size as i64);
                match (said.next(), said.next()) {
                    (Some((parameter, _, span)), None) => {
                        Some((format!("{parameter} = {size}"), *span, size.to_string()))
                    }
                    _ => None,
                }
            }
        }
    }
}

/// The mesh as it is written, its axes in the order of `wanted`, another mesh of the same axes.
fn reordered(written: &str, wanted: &str) -> Option<String> {
    let inner = |text: &str| -> Option<Vec<String>> {
        let (_, rest) = text.split_once('[')?;
        let list = rest.strip_suffix(']')?;
        (!list.contains(['(', '[', '\n'])).then(|| list.split(',').map(|d| d.trim().to_string()).collect())
    };
    let name = |def: &str| def.split('=').next().map(|n| n.trim().to_string());
    let defs = inner(written)?;
    let order: Option<Vec<String>> =
        inner(wanted)?.iter().map(|axis| defs.iter().find(|d| name(d) == name(axis)).cloned()).collect();
    Some(format!("mesh [{}]", order?.join(", ")))
}
