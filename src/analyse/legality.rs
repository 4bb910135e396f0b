//! Whether the layout is legal at its point, and what to say where it is not.
//!
//! Conditions build on one another: a mesh that does not multiply makes every size after it meaningless, so the first
//! kind of failure met is the one reported.

use super::errors;
use crate::diagnostics::{Diagnostic, Sink};
use crate::elaborate::{Duty, DutyKind, Job, Parameter};
use crate::expr;
use crate::graph::DimId;
use crate::layout::AxisId;
use crate::partition::{Broken, ShardedGraph};
use crate::source::{Sources, Span};
use indexmap::IndexMap;

/// Reports every broken condition of the mesh; says whether it is sound.
pub fn check_mesh(job: &Job<'_>, graph: &expr::Graph, sources: &Sources, sink: &mut Sink) -> bool {
    let read = |id: expr::Id| graph.eval(&job.point, &[id])[0];
    let broken: Vec<&Duty> = job.duties.iter().filter(|d| read(d.cond) == 0.0).collect();
    let mut sound = true;
    for duty in &broken {
        if let DutyKind::Division { a, b } = duty.kind {
            let (a, b) = (read(a) as i64, read(b) as i64);
            let factors: Vec<_> = job.parameters.iter().filter(|p| p.value > 1 && b % p.value == 0).collect();
            let text: Vec<_> = factors.iter().map(|p| format!("{} = {}", p.name, p.value)).collect();
            let legal: Vec<_> =
                factors.iter().map(|p| (p.name.as_str(), legal_values(job, graph, duty.cond, p))).collect();
            sink.error(errors::division(a, b, sources.snippet(duty.span), duty.span, &text.join(", "), &legal));
            sound = false;
        }
    }
    if !sound {
        return false;
    }
    for duty in &broken {
        if let DutyKind::Mesh = duty.kind {
            sink.error(mesh(job, graph, duty.span));
            sound = false;
        }
    }
    if !sound {
        return false;
    }
    for duty in &broken {
        match &duty.kind {
            DutyKind::Place { axis, level, devices } => {
                let a = job.layout.axis(*axis);
                let (size, stride) = (read(a.size) as i64, read(a.stride) as i64);
                sink.error(errors::place(&a.name, size, stride, level, *devices, duty.span));
                sound = false;
            }
            DutyKind::Batch => {
                let (batch, micro, replicas) =
                    (read(job.batch) as i64, read(job.micro_batch) as i64, read(job.replicas) as i64);
                let all = micro * replicas;
                let legal: Vec<_> =
                    [batch / all * all, (batch / all + 1) * all].into_iter().filter(|n| *n > 0).collect();
                sink.error(errors::batch(batch, micro, replicas, &legal, duty.span));
                sound = false;
            }
            DutyKind::Division { .. } | DutyKind::Mesh => {}
        }
    }
    sound
}

/// Reports every dimension that does not divide over its axes.
pub fn check_sharding(
    job: &Job<'_>,
    sharded: &ShardedGraph,
    graph: &expr::Graph,
    inputs: &[f64],
    sink: &mut Sink,
) -> bool {
    let read = |id: expr::Id| graph.eval(inputs, &[id])[0];
    // One message for each rule and set of axes, whatever number of dimensions it hits.
    let mut found: IndexMap<(Span, Vec<AxisId>), Vec<DimId>> = IndexMap::new();
    let mut sound = true;
    for o in sharded.obligations.iter().filter(|o| read(o.cond) == 0.0) {
        sound = false;
        match &o.what {
            Broken::Indivisible { dim, axes, rule } => {
                let d = job.ops.dim(*dim);
                let ranks: f64 = axes.iter().map(|a| read(job.layout.axis(*a).size)).product();
                if d.groups.is_some() && ranks % read(d.extent) == 0.0 {
                    let what = format!("{} = {} on {ranks} ranks, each kept by several", d.name, read(d.extent));
                    sink.error(crate::eval::errors::not_supported(&what, *rule));
                    continue;
                }
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
    for ((rule, axes), dims) in found {
        let dims: Vec<(String, i64)> =
            dims.iter().map(|d| (job.ops.dim(*d).name.clone(), read(job.ops.dim(*d).extent) as i64)).collect();
        let sizes: Vec<i64> = axes.iter().map(|a| read(job.layout.axis(*a).size) as i64).collect();
        let product: i64 = sizes.iter().product();
        let text =
            axes.iter().zip(&sizes).map(|(a, n)| format!("{} = {n}", job.layout.axis(*a).name)).collect::<Vec<_>>();
        // The axis a user would change: the largest that is a parameter.
        let changed = axes.iter().zip(&sizes).max_by_key(|(_, n)| **n);
        let (axis, others) =
            changed.map_or((String::new(), 1), |(a, n)| (job.layout.axis(*a).name.clone(), product / n.max(&1)));
        let limit = (product * 4).min(job.cluster.devices);
        let legal: Vec<i64> = (1..=limit).filter(|v| dims.iter().all(|(_, n)| n % (v * others) == 0)).collect();
        let current = product / others.max(1);
        let legal = around(&legal, current);
        let parameter = job.parameters.iter().find(|p| p.name == axis && p.value == current);
        let place = parameter.map_or(rule, |p| p.span);
        sink.error(errors::indivisible(&dims, &text.join(", "), product, &legal, &axis, place, rule));
    }
    sound
}

/// Values of one parameter near its own for which a condition holds, everything else as it is.
fn legal_values(job: &Job<'_>, graph: &expr::Graph, cond: expr::Id, p: &Parameter) -> Vec<i64> {
    let Some(at) = job.parameters.iter().position(|q| q.input == p.input) else { return Vec::new() };
    let tried: Vec<i64> = match &p.domain {
        Some(list) => list.clone(),
        None => (1..=(4 * p.value).min(4_096)).collect(),
    };
    let mut point = job.point.clone();
    let holds = |v: &i64| {
        point[at] = *v as f64;
        graph.eval(&point, &[cond])[0] != 0.0
    };
    around(&tried.into_iter().filter(holds).collect::<Vec<_>>(), p.value)
}

/// Up to two values on each side of `at`.
fn around(list: &[i64], at: i64) -> Vec<i64> {
    let split = list.partition_point(|v| *v < at);
    let from = split.saturating_sub(2);
    list[from..(split + 2).min(list.len())].to_vec()
}

fn mesh(job: &Job<'_>, graph: &expr::Graph, span: Span) -> Diagnostic {
    let read = |id: expr::Id| graph.eval(&job.point, &[id])[0] as i64;
    let names: Vec<_> = job.layout.axes.iter().map(|a| a.name.clone()).collect();
    let sizes: Vec<i64> = job.layout.axes.iter().map(|a| read(a.size)).collect();
    let product: i64 = sizes.iter().fold(1, |a, b| a.saturating_mul(*b));
    let devices = job.cluster.devices;
    // One axis changed so that all devices are used: the first that can be.
    let fix = names.iter().zip(&sizes).rev().find_map(|(name, n)| {
        let others = product / n.max(&1);
        (others > 0 && devices % others == 0 && devices / others != *n)
            .then(|| format!("{name} = {} uses all {devices}", devices / others))
    });
    let text = sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" × ");
    errors::mesh(&names.join(" × "), &text, product, devices, span, fix)
}
