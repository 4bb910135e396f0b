//! LAYOUT: the mesh, the batch, the stages and what is switched on.

use super::numbers::{grouped, percent, plural, range, runs};
use super::page::{Line, Page, heading};
use crate::emit::plan::{AxisRole, Plan, RecomputeInfo, RecomputePart};

/// Column at which values start.
const INDENT: usize = 10;

pub(super) fn write(plan: &Plan, page: &mut Page) {
    let mesh: Vec<_> = plan.layout.axes.iter().map(|a| format!("{} {}", a.name, grouped(a.size))).collect();
    let mut items = vec![if mesh.is_empty() { "one device".into() } else { mesh.join(" x ") }];
    items.extend(places(plan));
    page.wrapped(heading("LAYOUT"), INDENT, "    ", &items);
    let t = &plan.training;
    let batch = format!(
        "{} seq x {} tok = {} seq x {} x {}",
        grouped(t.batch),
        grouped(t.sequence),
        grouped(t.micro_batch),
        plural(t.microbatches, "microbatch").replace("batchs", "batches"),
        plural(t.replicas, "replica")
    );
    page.wrapped(Line::plain("  batch"), INDENT, "", &[batch]);
    page.wrapped(Line::plain("  stages"), INDENT, "; ", &stages(plan));
    let on = switches(plan);
    if !on.is_empty() {
        page.wrapped(Line::plain("  on"), INDENT, ", ", &on);
    }
}

/// Which level, and so which link, each axis of more than one rank uses.
fn places(plan: &Plan) -> Vec<String> {
    let mut out = Vec::new();
    for level in &plan.cluster.levels {
        let inside = plan.layout.axes.iter().filter(|a| a.size > 1 && a.level == level.name);
        let mut names: Vec<_> = inside.map(|a| a.name.as_str()).collect();
        if names.is_empty() {
            continue;
        }
        names.reverse();
        out.push(format!("{} in {} ({})", names.join(", "), level.name, link(level.links, &level.link)));
    }
    out
}

/// `NVLink4`, or `8 x IB_NDR`.
pub(super) fn link(links: u64, name: &str) -> String {
    if links > 1 { format!("{links} x {name}") } else { name.into() }
}

fn stages(plan: &Plan) -> Vec<String> {
    let layers: Vec<u64> = plan.memory.stages.iter().map(|s| s.layers).collect();
    if layers.len() <= 1 {
        let n = layers.first().copied().unwrap_or(0);
        return vec![format!("{} on every rank, no pipeline", plural(n, "layer"))];
    }
    let groups = runs(&layers);
    let mut items = vec![match groups.as_slice() {
        [(n, ..)] => format!("{} each", plural(**n, "layer")),
        groups if groups.len() <= 6 => {
            let part = |(n, first, last): &(&u64, usize, usize)| format!("{n} on {}", range(*first, *last));
            format!("layers {}", groups.iter().map(part).collect::<Vec<_>>().join(", "))
        }
        _ => {
            let (least, most) = (layers.iter().min(), layers.iter().max());
            format!("{} to {} layers", least.unwrap_or(&0), most.unwrap_or(&0))
        }
    }];
    let pipeline = &plan.pipeline;
    let chunks = pipeline.chunks_per_rank;
    let schedule =
        if chunks > 1 { format!("{}, {chunks} chunks each", pipeline.schedule) } else { pipeline.schedule.clone() };
    items.push(schedule);
    items.push(format!("bubble {}", percent(pipeline.bubble)));
    let others = plan.model.units.iter().enumerate().filter(|(_, u)| !u.repeated);
    let placed = others.filter_map(|(i, unit)| {
        let chunk = pipeline.chunks.iter().find(|c| c.units.get(i).is_some_and(|n| *n > 0))?;
        Some(format!("+{} on {}", unit.name, chunk.stage))
    });
    let placed: Vec<_> = placed.collect();
    if !placed.is_empty() && placed.len() <= 4 {
        items.push(placed.join(", "));
    }
    items
}

fn switches(plan: &Plan) -> Vec<String> {
    let layout = &plan.layout;
    let mut on = Vec::new();
    if layout.sequence_parallel && has(plan, AxisRole::Tensor) {
        on.push("sequence parallel".into());
    }
    if let Some(method) = layout.context_method
        && has(plan, AxisRole::Context)
    {
        on.push(format!("attention via {method}"));
    }
    on.extend(stored(plan));
    if let Some(hold) = layout.hold {
        on.push(format!("gathered for a {hold}"));
    }
    match &layout.recompute {
        RecomputeInfo::None => {}
        RecomputeInfo::Full => on.push("recompute every layer".into()),
        RecomputeInfo::Parts(parts) => {
            let names = parts.iter().map(|p| match p {
                RecomputePart::Region(region) => region.as_str(),
                RecomputePart::Norms => "the norms",
            });
            on.push(format!("recompute {}", names.collect::<Vec<_>>().join(" and ")));
        }
        // The values are listed where the choice is explained.
        RecomputeInfo::Other(_) if layout.recompute_choice.is_some() => on.push("recompute what was chosen".into()),
        RecomputeInfo::Other(what) => on.push(format!("recompute {what}")),
    }
    let hidden = [(layout.overlap_gather, "gather"), (layout.overlap_reduce, "reduce"), (layout.overlap_p2p, "p2p")];
    let hidden: Vec<_> = hidden.into_iter().filter(|(yes, _)| *yes).map(|(_, name)| name).collect();
    if !hidden.is_empty() {
        on.push(format!("overlap {}", hidden.join(" + ")));
    }
    for (dim, from, to) in layout.pads.iter().filter(|(_, from, to)| from != to) {
        on.push(format!("{dim} padded from {} to {}", grouped(*from), grouped(*to)));
    }
    on
}

/// `state over dp (ZeRO-1)`: classes stored over the same axes together.
fn stored(plan: &Plan) -> Vec<String> {
    let mut by_axes: Vec<(&Vec<String>, Vec<&str>)> = Vec::new();
    for (class, axes) in plan.layout.stored.iter().filter(|(_, axes)| !axes.is_empty()) {
        match by_axes.iter_mut().find(|(a, _)| *a == axes) {
            Some((_, classes)) => classes.push(class),
            None => by_axes.push((axes, vec![class])),
        }
    }
    let known = |classes: &[&str]| match classes {
        ["state"] | ["master", "state"] => " (ZeRO-1)",
        ["grad", "state"] | ["grad", "master", "state"] => " (ZeRO-2)",
        ["grad", "param", "state"] | ["grad", "master", "param", "state"] => " (ZeRO-3)",
        _ => "",
    };
    let text = |(axes, classes): &(&Vec<String>, Vec<&str>)| {
        format!("{} over {}{}", classes.join(" and "), axes.join(" x "), known(classes))
    };
    by_axes.iter().map(text).collect()
}

fn has(plan: &Plan, role: AxisRole) -> bool {
    plan.layout.axes.iter().any(|a| a.role == role && a.size > 1)
}
