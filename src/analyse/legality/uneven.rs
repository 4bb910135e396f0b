//! A dimension that does not divide over the axes a rule gives it: what to change, and to what.

use super::errors;
use super::{SIZES_TRIED, around, written};
use crate::diagnostics::{Applicability, Diagnostic};
use crate::elaborate::{Job, Parameter};
use crate::expr::{self, Node};
use crate::graph::{DataDim, DimId, Op, OpGraph, OpId, OpKind};
use crate::layout::{AxisId, NameId};
use crate::partition::ShardedGraph;
use crate::source::{Sources, Span};

/// Dimensions that do not divide over the axes one rule gives them.
pub(super) struct Uneven {
    /// The rule.
    pub(super) rule: Span,
    /// The axes.
    pub(super) axes: Vec<AxisId>,
    /// The dimensions, at least one.
    pub(super) dims: Vec<DimId>,
}

/// An axis as the file names it.
struct Named {
    name: String,
    size: i64,
    /// Where it is declared.
    span: Span,
}

/// The axes as the rule names them: `ep`, where it was folded from pieces of others. What is left over goes by its own
/// name.
fn named(job: &Job<'_>, graph: &expr::Graph, uneven: &Uneven) -> Vec<Named> {
    let read = |id: expr::Id| graph.eval(&job.point, &[id])[0] as i64;
    let layout = &job.layout;
    let mut left = uneven.axes.clone();
    let mut out = Vec::new();
    let rules = layout.rules.iter().filter(|r| r.span == uneven.rule);
    let names: Vec<NameId> = rules.flat_map(|r| r.axes.iter().copied()).collect();
    for id in names {
        let axis = layout.named(id);
        if !axis.fine.is_empty() && axis.fine.iter().all(|f| left.contains(f)) {
            left.retain(|f| !axis.fine.contains(f));
            out.push(Named { name: axis.name.clone(), size: read(axis.size), span: axis.span });
        }
    }
    out.extend(left.iter().map(|f| {
        let axis = layout.axis(*f);
        Named { name: axis.name.clone(), size: read(axis.size), span: axis.span }
    }));
    out
}

/// What to say of them.
pub(super) fn indivisible(
    job: &Job<'_>,
    sharded: &ShardedGraph,
    graph: &expr::Graph,
    sources: &Sources,
    uneven: &Uneven,
) -> Diagnostic {
    let read = |id: expr::Id| graph.eval(&job.point, &[id])[0] as i64;
    let rule = uneven.rule;
    let first = job.ops.dim(uneven.dims[0]);
    let extent = |d: &DimId| (job.ops.dim(*d).name.clone(), read(job.ops.dim(*d).extent));
    let dims: Vec<(String, i64)> = uneven.dims.iter().map(extent).collect();
    let axes = named(job, graph, uneven);
    let product: i64 = axes.iter().map(|a| a.size).product();
    let text = axes.iter().map(|a| format!("{} = {}", a.name, a.size)).collect::<Vec<_>>().join(", ");
    let length = ["sequence", first.name.as_str()].into_iter().find_map(|n| Some((n, *job.places.get(n)?)));
    if let Some((field, at)) = length.filter(|_| first.data == Some(DataDim::Sequence)) {
        return errors::length((&dims[0].0, dims[0].1), &text, product, (field, at), rule);
    }
    // The axis a user would change: the largest, the first of equal ones.
    let Some(axis) = axes.iter().rev().max_by_key(|a| a.size) else {
        return errors::indivisible(&dims, &text, product, &[], "", rule, rule);
    };
    let others = product / axis.size.max(1);
    // Only the sizes near this one are named, and only so many are looked at.
    let limit = (product.saturating_mul(4)).min(job.cluster.devices).min(axis.size.saturating_add(SIZES_TRIED));
    let from = (axis.size - SIZES_TRIED).max(1);
    let divides = |v: &i64| dims.iter().all(|(_, n)| n % v.saturating_mul(others).max(1) == 0);
    let mut legal: Vec<i64> = (from..=limit).filter(divides).collect();
    let parameter = job.parameters.iter().find(|p| p.name == axis.name && p.value == axis.size);
    let parameter = parameter.filter(|p| !sources.file(p.span.file).std);
    let in_mesh = written(job, sources, &axis.name, axis.span, axis.size);
    let place = parameter.map(|p| p.span).or(in_mesh).unwrap_or(rule);
    // Of the sizes that divide, those with which nothing else goes wrong, if there are any.
    let sound: Vec<i64> = match parameter {
        Some(p) => legal.iter().copied().filter(|v| holds(job, sharded, graph, p, *v)).collect(),
        None => Vec::new(),
    };
    if !sound.is_empty() {
        legal.clone_from(&sound);
    }
    let mut d = errors::indivisible(&dims, &text, product, &around(&legal, axis.size), &axis.name, place, rule);
    if let ([(name, extent)], false) = (&dims[..], sources.file(first.span.file).std)
        && let Some(of) = heads_of(&job.ops, uneven.dims[0])
    {
        d = errors::offer_grouping(d, name, *extent, &of, end_of_dim(sources, first.span));
    }
    let table = |(_, op): (OpId, &Op)| matches!(op.kind, OpKind::Embed { over, .. } if over == uneven.dims[0]);
    let d = if dims.len() == 1 && job.ops.ops().any(table) {
        let names: Vec<_> = axes.iter().map(|a| a.name.clone()).collect();
        errors::offer_pad(d, &dims[0].0, dims[0].1, &names, product, rule)
    } else {
        d
    };
    let literal = |p: &&Parameter| sources.snippet(p.span) == p.value.to_string();
    let Some(p) = parameter.filter(literal) else { return d };
    match sound.iter().rev().find(|v| (2..p.value).contains(*v)) {
        Some(v) => d.fix(format!("write `{} = {v}`", p.name), p.span, v.to_string(), Applicability::Unsure),
        None => d,
    }
}

/// The query heads that the key heads `dim` of an attention belong to, where nothing says that they are grouped.
fn heads_of(ops: &OpGraph, dim: DimId) -> Option<String> {
    let ungrouped = |op: &Op| match &op.kind {
        OpKind::Attention(a) if a.kv_heads == dim && a.heads != dim => Some(ops.dim(a.heads).name.clone()),
        _ => None,
    };
    ops.dim(dim).groups.is_none().then(|| ops.ops().find_map(|(_, op)| ungrouped(op))).flatten()
}

/// Behind the extent of the dimension whose name is at `span`.
fn end_of_dim(sources: &Sources, span: Span) -> Span {
    let rest = sources.file(span.file).text.get(span.end as usize..).unwrap_or_default();
    let until = rest.find([',', '}', '\n']).unwrap_or(0);
    let end = span.end + rest.get(..until).map_or(0, |t| t.trim_end().len()) as u32;
    Span { start: end, end, ..span }
}

/// Whether everything that must hold of the mesh and of what is split over it does with `parameter` at `value`.
fn holds(job: &Job<'_>, sharded: &ShardedGraph, graph: &expr::Graph, parameter: &Parameter, value: i64) -> bool {
    if parameter.domain.as_ref().is_some_and(|d| !d.contains(&value)) {
        return false;
    }
    let Node::Input(input) = graph.node(parameter.input) else { return false };
    let mut point = job.point.clone();
    point[input.0 as usize] = value as f64;
    let conds = job.duties.iter().map(|d| d.cond).chain(sharded.obligations.iter().map(|o| o.cond));
    let conds: Vec<expr::Id> = conds.collect();
    graph.eval(&point, &conds).iter().all(|held| *held != 0.0)
}
