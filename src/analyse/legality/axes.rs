//! What is said of axes: folds that do not nest, axes that nothing is split over.

use super::errors;
use super::written;
use crate::diagnostics::{Applicability, Diagnostic, Sink};
use crate::elaborate::{Job, Strides};
use crate::expr;
use crate::graph::DataDim;
use crate::layout::{Action, NameId};
use crate::source::{Sources, Span};

/// Warns of each mesh axis of several ranks that nothing is split over.
pub(super) fn idle(job: &Job<'_>, graph: &expr::Graph, sink: &mut Sink) {
    let layout = &job.layout;
    for (at, axis) in layout.named.iter().enumerate().take(layout.mesh().count()) {
        let size = graph.eval(&job.point, &[axis.size])[0] as i64;
        let shares = |other: &NameId| *other == NameId(at as u16) || layout.share(*other, NameId(at as u16));
        let ruled = layout.rules.iter().any(|r| r.axes.iter().any(shares));
        let stored = layout.stores.iter().any(|s| s.axes.iter().any(|a| axis.fine.contains(a)));
        let staged = layout.pipeline.is_some_and(|p| axis.fine.contains(&p));
        if size > 1 && !ruled && !stored && !staged {
            sink.warn(errors::axis_idle(axis.span, &axis.name, size, use_of(job, &axis.name)));
        }
    }
}

/// Warns where devices of several kinds get equal shares of the batch: the fast ones wait for the slow.
pub(super) fn unlike(job: &Job<'_>, graph: &expr::Graph, sources: &Sources, sink: &mut Sink) {
    let changes = job.cluster.kind_changes();
    let read = |id: expr::Id| graph.eval(&job.point, &[id])[0] as i64;
    // A group along the axes of the batch has unlike devices if the kind changes inside the outermost of these that a
    // change falls into; a change between two instances of another axis keeps each group alike.
    let crosses = |change: &i64| {
        let mut at = *change;
        for (id, axis) in job.layout.axis_ids().zip(&job.layout.axes) {
            let (size, stride) = (read(axis.size), read(axis.stride).max(1));
            if size > 1 && job.batch_axes.contains(&id) {
                return true;
            }
            at %= stride;
            if at == 0 {
                return false;
            }
        }
        false
    };
    if !changes.iter().any(crosses) {
        return;
    }
    let Some(batch) = job.ops.dims.iter().find(|d| d.data == Some(DataDim::Batch)) else { return };
    let rule = job.layout.rules.iter().find(|r| {
        let split = matches!(&r.action, Action::Shard { dims, .. } if dims.contains(&batch.name));
        split && job.layout.fine(&r.axes).iter().any(|a| job.batch_axes.contains(a))
    });
    if let Some(rule) = rule.filter(|r| !r.unequal) {
        let (text, std) = (sources.snippet(rule.span), sources.file(rule.span.file).std);
        let place = if std { job.places.get("layout").copied().unwrap_or(job.span) } else { rule.span };
        let open = !std && !text.contains('{');
        sink.warn(errors::equal_shares(&job.cluster.kind_names(), place, open));
    }
}

/// Warns of each rule that speaks of no dimension of the model. What a layout of the library says of other models is not
/// the user's to edit.
pub(super) fn idle_rules(job: &Job<'_>, sources: &Sources, sink: &mut Sink) {
    for rule in &job.layout.rules {
        let Action::Shard { dims, otherwise, .. } = &rule.action else { continue };
        let known = |name: &String| job.ops.dims.iter().any(|d| d.name == *name);
        if !dims.iter().chain(otherwise).any(known) && !sources.file(rule.span.file).std {
            let names: Vec<_> = job.ops.dims.iter().map(|d| d.name.as_str()).collect();
            let line = sources.whole_lines(rule.span);
            sink.warn(errors::rule_idle(rule.span, line, dims, &names, &job.model_name));
        }
    }
}

/// An item that would give the idle axis `name` work, and the mesh: a pipeline where there is none and the name says
/// so, the batch where nothing splits it.
fn use_of(job: &Job<'_>, name: &str) -> Option<(String, Span)> {
    let (layout, ops) = (&job.layout, &job.ops);
    let mesh = layout.mesh_span?;
    if layout.pipeline.is_none() && (name.starts_with("pp") || name.starts_with("pipe") || name.starts_with("stage")) {
        return Some((format!("pipeline over {name} {{ schedule = one_f_one_b }}"), mesh));
    }
    let batch = ops.dims.iter().find(|d| d.data == Some(DataDim::Batch))?;
    let split =
        layout.rules.iter().any(|r| matches!(&r.action, Action::Shard { dims, .. } if dims.contains(&batch.name)));
    (!split).then(|| (format!("shard {} over {name}", batch.name), mesh))
}

/// The two sides of a fold have unequal numbers of ranks.
pub(super) fn fold(
    job: &Job<'_>,
    graph: &expr::Graph,
    from: &[NameId],
    to: &[(String, expr::Id)],
    at: Span,
) -> Diagnostic {
    let read = |id: expr::Id| graph.eval(&job.point, &[id])[0] as i64;
    let from: Vec<_> =
        from.iter().map(|n| (job.layout.named(*n).name.clone(), read(job.layout.named(*n).size))).collect();
    let to: Vec<_> = to.iter().map(|(name, size)| (name.clone(), read(*size))).collect();
    errors::fold_product(&from, &to, at)
}

/// The strides on the two sides of a fold do not divide one another.
pub(super) fn nest(job: &Job<'_>, graph: &expr::Graph, sources: &Sources, s: &Strides, at: Span) -> Diagnostic {
    let read = |id: expr::Id| graph.eval(&job.point, &[id])[0] as i64;
    let sizes: Vec<i64> = s.to.iter().map(|(_, size, _)| read(*size)).collect();
    let (changed, begins) = (&s.to[s.changed], &s.to[s.begins]);
    let (size, pair) = (sizes[s.changed], sizes[s.changed].saturating_mul(sizes[s.begins]));
    let inside: i64 = sizes[s.changed + 1..].iter().product();
    // The strides of the folded axes, innermost last, and the number of ranks.
    let mut strides = vec![1_i64];
    for name in s.from.iter().rev() {
        let outer = strides.last().copied().unwrap_or(1);
        strides.push(outer.saturating_mul(read(job.layout.named(*name).size)));
    }
    let nests = |v: i64| {
        let stride = v.saturating_mul(inside).max(1);
        strides.iter().all(|m| m % stride == 0 || stride % m == 0)
    };
    let legal: Vec<i64> = (1..=pair.min(super::SIZES_TRIED)).filter(|v| pair % v == 0 && nests(*v)).collect();
    // Of these, the ones that every dimension given to the two axes divides by.
    let fits = |v: &i64| divides(job, graph, &changed.0, *v) && divides(job, graph, &begins.0, pair / v);
    let fitting: Vec<i64> = legal.iter().copied().filter(fits).collect();
    let mesh = job.layout.named(s.mesh_axis);
    let next = (read(s.mesh_stride), read(s.stride));
    let d =
        errors::nest((&changed.0, size), (&begins.0, next.1), (&mesh.name, next.0), &super::around(&legal, size), at);
    let parameter = job.parameters.iter().find(|p| p.name == changed.0 && p.value == size);
    let place = written(job, sources, &changed.0, changed.2, size);
    let paired = written(job, sources, &begins.0, begins.2, sizes[s.begins]);
    let mut d = d;
    for v in super::around(&fitting, size) {
        let title = format!("write `{} = {v}`", changed.0);
        d = match (parameter, place, paired) {
            (Some(p), _, None) => d.fix(title, p.span, v.to_string(), Applicability::Unsure),
            // Both sizes are written in the fold: what stands between them stays.
            (None, Some(here), Some(there)) if there.end <= here.start => {
                let between = sources.snippet(Span { start: there.end, end: here.start, ..here });
                let text = format!("{}{between}{v}", pair / v);
                d.fix(title, Span { start: there.start, ..here }, text, Applicability::Unsure)
            }
            _ => d,
        };
    }
    d
}

/// Whether every dimension a rule gives to the axis `name` divides by `ranks`.
fn divides(job: &Job<'_>, graph: &expr::Graph, name: &str, ranks: i64) -> bool {
    let axis = job.layout.find_axis(name);
    let rules = job.layout.rules.iter().filter(|r| axis.is_some_and(|a| r.axes.contains(&a)));
    let names = rules.flat_map(|r| match &r.action {
        Action::Shard { dims, .. } => dims.as_slice(),
        Action::Replicate { .. } => &[],
    });
    let extents: Vec<_> = names
        .filter_map(|n| job.ops.dims.iter().find(|d| d.name == *n && d.data.is_none()))
        .map(|d| graph.eval(&job.point, &[d.extent])[0] as i64)
        .collect();
    extents.into_iter().all(|n| n % ranks.max(1) == 0)
}
