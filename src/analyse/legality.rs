//! Whether the layout is legal at its point, and what to say where it is not.
//!
//! Conditions build on one another: a mesh that does not multiply makes every size after it meaningless, so the first
//! kind of failure met is the one reported.

mod axes;
mod errors;
mod uneven;

use crate::diagnostics::{Applicability, Diagnostic, Sink};
use crate::elaborate::{Duty, DutyKind, Job, Parameter};
use crate::expr;
use crate::graph::{DataDim, DimId, OpGraph};
use crate::layout::{Action, AxisId, Layout, Rule};
use crate::partition::{Broken, ShardedGraph};
use crate::source::{Sources, Span};
use indexmap::IndexMap;

/// Sizes of an axis looked at on each side of a wrong one.
const SIZES_TRIED: i64 = 65_536;

/// Reports every broken condition of the mesh; says whether it is sound.
pub fn check_mesh(job: &Job<'_>, graph: &expr::Graph, sources: &Sources, sink: &mut Sink) -> bool {
    let read = |id: expr::Id| graph.eval(&job.point, &[id])[0];
    let broken: Vec<&Duty> = job.duties.iter().filter(|d| read(d.cond) == 0.0).collect();
    let mut sound = true;
    for duty in &broken {
        if let DutyKind::Division { a, b } = duty.kind {
            let (a, b) = (read(a) as i64, read(b) as i64);
            sink.error(division(job, sources, a, b, duty.span));
            sound = false;
        }
    }
    if !sound {
        return false;
    }
    for duty in &broken {
        if let DutyKind::Mesh = duty.kind {
            sink.error(mesh(job, graph, sources, duty.span));
            sound = false;
        }
    }
    if !sound {
        return false;
    }
    for duty in &broken {
        if let DutyKind::Fold { from, to } = &duty.kind {
            sink.error(axes::fold(job, graph, from, to, duty.span));
            sound = false;
        }
    }
    if !sound {
        return false;
    }
    for duty in &broken {
        if let DutyKind::Nest(strides) = &duty.kind {
            sink.error(axes::nest(job, graph, sources, strides, duty.span));
            sound = false;
        }
    }
    if !sound {
        return false;
    }
    for duty in &broken {
        match &duty.kind {
            DutyKind::Place { axis, level, devices } => {
                let a = job.layout.named(*axis);
                let innermost = a.fine.last().map_or(1, |f| read(job.layout.axis(*f).stride) as i64);
                let (size, stride) = (read(a.size) as i64, innermost);
                let d = errors::place(&a.name, size, stride, level, *devices, duty.span);
                sink.error(match (job.layout.mesh_span, last_in_mesh(job, sources, &a.name)) {
                    (Some(mesh), Some(text)) if size <= *devices && devices % size == 0 => {
                        d.fix(format!("put `{}` last in the mesh", a.name), mesh, text, Applicability::Unsure)
                    }
                    _ => d,
                });
                sound = false;
            }
            DutyKind::Along { axes, along, devices } => {
                let sizes: Vec<_> = axes.iter().map(|a| job.layout.named(*a)).collect();
                let sizes: Vec<_> = sizes.iter().map(|a| (a.name.as_str(), read(a.size) as i64)).collect();
                sink.error(errors::along(&sizes, along, *devices, duty.span));
                sound = false;
            }
            DutyKind::Batch => {
                let (batch, micro, replicas) =
                    (read(job.batch) as i64, read(job.micro_batch) as i64, read(job.replicas) as i64);
                let all = micro.saturating_mul(replicas).max(1);
                let legal: Vec<_> =
                    [batch / all * all, (batch / all + 1).saturating_mul(all)].into_iter().filter(|n| *n > 0).collect();
                let place = job.places.get("batch").copied().unwrap_or(duty.span);
                let d = errors::batch(batch, micro, replicas, &legal, place, job.places.get("micro_batch").copied());
                sink.error(d);
                sound = false;
            }
            DutyKind::Inside(inside) => {
                let said = inside.said(read(inside.key()), duty.span);
                if inside.is_error() {
                    sink.error(said);
                    sound = false;
                } else {
                    sink.warn(said);
                }
            }
            DutyKind::Division { .. }
            | DutyKind::Mesh
            | DutyKind::Fold { .. }
            | DutyKind::Nest(_)
            // Where heads are copied was decided at this very point.
            | DutyKind::Copies => {}
        }
    }
    if sound {
        axes::idle(job, graph, sink);
        axes::unlike(job, graph, sources, sink);
    }
    sound
}

/// Reports every dimension that does not divide over its axes.
pub fn check_sharding(
    job: &Job<'_>,
    sharded: &ShardedGraph,
    graph: &expr::Graph,
    sources: &Sources,
    sink: &mut Sink,
) -> bool {
    let read = |id: expr::Id| graph.eval(&job.point, &[id])[0];
    axes::idle_rules(job, sources, sink);
    // One message for each rule and set of axes, whatever number of dimensions it hits.
    let mut found: IndexMap<(Span, Vec<AxisId>), Vec<DimId>> = IndexMap::new();
    let mut sound = true;
    for o in sharded.obligations.iter().filter(|o| read(o.cond) == 0.0) {
        sound = false;
        match &o.what {
            Broken::Indivisible { dim, axes, rule } => {
                let dims = found.entry((*rule, axes.clone())).or_default();
                if !dims.contains(dim) {
                    dims.push(*dim);
                }
            }
            Broken::Other(code, text) => {
                sink.error(Diagnostic::new(*code, text.clone(), o.span, ""));
            }
        }
    }
    for via in job.layout.attention.iter().filter(|v| v.zigzag) {
        // Two blocks a rank, one from each end of the sequence.
        let axes: Vec<_> = via.axes.iter().map(|a| job.layout.axis(*a)).collect();
        let ranks = axes.iter().fold(1, |n: i64, a| n.saturating_mul(read(a.size) as i64));
        let sequence = read(job.sequence) as i64;
        let splits = sequence_axes(&job.layout, &job.ops).any(|a| via.axes.contains(&a));
        if ranks > 1 && splits && sequence % ranks.saturating_mul(2) != 0 {
            let names: Vec<_> = axes.iter().map(|a| format!("{} = {}", a.name, read(a.size))).collect();
            sink.error(errors::zigzag(sequence, ranks, &names.join(", "), via.span));
            sound = false;
        }
    }
    for ((rule, axes), dims) in found {
        sink.error(uneven::indivisible(job, sharded, graph, sources, &uneven::Uneven { rule, axes, dims }));
    }
    sound
}

/// The axes a rule gives to the sequence.
pub(super) fn sequence_axes<'a>(layout: &'a Layout, ops: &'a OpGraph) -> impl Iterator<Item = AxisId> + 'a {
    let sequence = ops.dims.iter().find(|d| d.data == Some(DataDim::Sequence));
    let names = move |r: &Rule| match &r.action {
        Action::Shard { dims, otherwise, .. } => {
            sequence.is_some_and(|s| dims.iter().chain(otherwise).any(|d| *d == s.name))
        }
        Action::Replicate { .. } => false,
    };
    layout.rules.iter().filter(move |r| names(r)).flat_map(|r| layout.fine(&r.axes))
}

/// Up to two values on each side of `at`.
fn around(list: &[i64], at: i64) -> Vec<i64> {
    let split = list.partition_point(|v| *v < at);
    let from = split.saturating_sub(2);
    list[from..(split + 2).min(list.len())].to_vec()
}

fn mesh(job: &Job<'_>, graph: &expr::Graph, sources: &Sources, span: Span) -> Diagnostic {
    let read = |id: expr::Id| graph.eval(&job.point, &[id])[0] as i64;
    let names: Vec<_> = job.layout.mesh().map(|a| a.name.clone()).collect();
    let sizes: Vec<i64> = job.layout.mesh().map(|a| read(a.size)).collect();
    let product: i64 = sizes.iter().fold(1, |a, b| a.saturating_mul(*b));
    let devices = job.cluster.devices;
    // One axis changed so that all devices are used: those that can be, the one written in the file first.
    let mut ways: Vec<(String, i64, Option<Span>)> = job
        .layout
        .mesh()
        .zip(&sizes)
        .filter_map(|(axis, n)| {
            let others = product / n.max(&1);
            let to = (others > 0 && devices % others == 0 && devices / others != *n).then(|| devices / others)?;
            Some((axis.name.clone(), to, written(job, sources, &axis.name, axis.span, *n)))
        })
        .collect();
    ways.sort_by_key(|(_, _, at)| at.is_none());
    let text = sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" × ");
    let help = ways.first().map(|(name, to, _)| format!("{name} = {to} uses all {devices}"));
    let d = errors::mesh(&names.join(" × "), &text, product, devices, span, help);
    ways.into_iter()
        .filter_map(|(name, to, at)| Some((name, to, at?)))
        .fold(d, |d, (name, to, at)| d.fix(format!("write `{name} = {to}`"), at, to.to_string(), Applicability::Unsure))
}

/// Where the size of an axis is written as a number: in the mesh, or as the parameter of its name.
fn written(job: &Job<'_>, sources: &Sources, name: &str, axis: Span, size: i64) -> Option<Span> {
    let parameter = job.parameters.iter().find(|p| p.name == name && p.value == size).map(|p| p.span);
    let after = sources.file(axis.file).text.get(axis.end as usize..).unwrap_or_default();
    let gap = after.len() - after.trim_start_matches([' ', '=']).len();
    let digits = after[gap..].bytes().take_while(u8::is_ascii_digit).count();
    let start = axis.end as usize + gap;
    let in_mesh = Span::new(axis.file, start, start + digits);
    let number = |span: &Span| sources.snippet(*span) == size.to_string() && !sources.file(span.file).std;
    [parameter, Some(in_mesh)].into_iter().flatten().find(number)
}

/// The text of the mesh with `axis` moved to the end, where it is the fastest.
fn last_in_mesh(job: &Job<'_>, sources: &Sources, axis: &str) -> Option<String> {
    let text = sources.snippet(job.layout.mesh_span?);
    let (head, rest) = text.split_once('[')?;
    let list = rest.strip_suffix(']')?;
    // Sizes with commas of their own are left alone.
    if list.contains(['(', '[', '\n', '/']) {
        return None;
    }
    let defs: Vec<&str> = list.split(',').map(str::trim).collect();
    let (last, mut first): (Vec<&str>, Vec<&str>) =
        defs.into_iter().partition(|d| d.split('=').next().is_some_and(|n| n.trim() == axis));
    first.extend(last);
    Some(format!("{head}[{}]", first.join(", ")))
}

/// A division that a layout's parameters make inexact: at the parameter to change, where there is one.
fn division(job: &Job<'_>, sources: &Sources, a: i64, b: i64, span: Span) -> Diagnostic {
    let factors: Vec<_> = job.parameters.iter().filter(|p| p.value > 1 && b % p.value == 0).collect();
    let listed: Vec<_> = factors.iter().map(|p| format!("{} = {}", p.name, p.value)).collect();
    let text = sources.snippet(span);
    let user = |p: &&&Parameter| !sources.file(p.span.file).std && p.span != span;
    // The one that does not divide by itself; where each does, the last.
    let culprit = factors.iter().filter(user).find(|p| a % p.value != 0).or(factors.iter().rev().find(user));
    let Some(p) = culprit else { return errors::division(a, b, text, span, &listed.join(", ")) };
    let others = b / p.value;
    let allowed = |v: &i64| p.domain.as_ref().is_none_or(|d| d.contains(v));
    let legal: Vec<i64> = (1..=(p.value * 4).min(1 << 16)).filter(|v| a % (v * others) == 0).filter(allowed).collect();
    let d = errors::division_by_parameter(a, b, &listed, &p.name, p.span, &around(&legal, p.value));
    let d = d.label(span, format!("`{text}` must be whole"));
    let literal = sources.snippet(p.span) == p.value.to_string();
    around(&legal, p.value)
        .iter()
        .rev()
        .filter(|v| literal && **v < p.value)
        .fold(d, |d, v| d.fix(format!("write `{} = {v}`", p.name), p.span, v.to_string(), Applicability::Unsure))
}
