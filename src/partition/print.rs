//! The partitioned program as text: one line a step, for goldens and for reading.

use super::{Phase, ShardedGraph, Step, StepId, StepKind, Work};
use crate::graph::{OpGraph, OpKind};
use crate::layout::Layout;
use std::fmt::Write as _;

/// Every unit's steps, what it keeps and how its parameters rest. No sizes: they are expressions.
pub fn text(sharded: &ShardedGraph, graph: &OpGraph, layout: &Layout) -> String {
    let mut out = String::new();
    for (at, unit) in sharded.units.iter().enumerate() {
        let name = &graph.units[at].name;
        let count = graph.units[at].count;
        let _ = writeln!(out, "unit {name} x {count}");
        for (title, steps) in [("forward", &unit.forward), ("backward", &unit.backward), ("update", &unit.update)] {
            if !steps.is_empty() {
                let _ = writeln!(out, "  {title}");
            }
            // What is free is left out.
            let seen = |id: &&StepId| !matches!(sharded.flow[**id].kind, StepKind::Free { .. });
            for step in steps.iter().filter(seen) {
                let _ = writeln!(out, "    {}", line(sharded, graph, layout, *step));
            }
        }
        for saved in &unit.saved {
            let place = sharded.placements[saved.value.0 as usize].text(saved.value, graph, layout);
            let _ = writeln!(out, "  saved {} {place}", graph.describe(saved.value));
        }
        for param in &unit.params {
            let p = &graph.params[param.param as usize];
            let place = param.placement.text(p.value, graph, layout);
            let axes = layout.names(&param.grad_axes);
            let grad = if axes.is_empty() { String::new() } else { format!(", gradient sum:{}", axes.join(",")) };
            let _ = writeln!(out, "  param {} {place}{grad}", p.path);
        }
    }
    out
}

fn line(sharded: &ShardedGraph, graph: &OpGraph, layout: &Layout, id: StepId) -> String {
    let Step { kind, phase, unit, recomputed, .. } = &sharded.flow[id];
    let mut text = match kind {
        StepKind::Free { op, .. } => format!("free -> {}", graph.describe(graph.flow[*op].output)),
        StepKind::Compute { op, work, .. } => {
            let o = &graph.flow[*op];
            // A sum of gradients names the op whose result they are of, perhaps another unit's.
            let name = if o.unit == *unit { work_name(work, &o.kind) } else { "elementwise" };
            format!("{name} -> {}", graph.describe(o.output))
        }
        StepKind::Collective(c) => {
            let axes = layout.names(&c.axes);
            let max = if c.maximum { " maximum" } else { "" };
            format!("{} {} {} ({:?}{max})", c.kind.name(), axes.join(","), graph.describe(c.value), c.purpose)
        }
    };
    if *recomputed {
        text.push_str(" again");
    }
    if *phase == Phase::Backward && matches!(kind, StepKind::Compute { .. }) && !recomputed {
        text.push_str(" adjoint");
    }
    text
}

fn work_name(work: &Work, kind: &OpKind) -> &'static str {
    match (work, kind) {
        (Work::Matmul { .. }, _) => "matmul",
        (Work::Attention { .. }, _) => "attention",
        (Work::Elementwise { .. }, OpKind::Norm { .. }) => "norm",
        (Work::Elementwise { .. }, OpKind::Softmax { .. }) => "softmax",
        (Work::Elementwise { .. }, OpKind::Embed { .. }) => "embed",
        (Work::Elementwise { .. }, OpKind::CrossEntropy { .. }) => "cross entropy",
        (Work::Elementwise { .. }, _) => "elementwise",
    }
}
