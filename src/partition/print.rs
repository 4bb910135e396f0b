//! The partitioned program as text: one line a step, for goldens and for reading.

use super::{Phase, ShardedGraph, Step, StepId, StepKind, Work};
use crate::graph::{OpGraph, OpKind};
use crate::layout::Layout;
use std::fmt::Write as _;

/// A line of a listing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listed {
    /// The unit, by position.
    pub unit: usize,
    /// `forward`, `backward`, `update`; empty for what is saved and for parameters.
    pub phase: &'static str,
    /// The step, where the line is one.
    pub step: Option<StepId>,
    /// What it says.
    pub text: String,
}

/// Every unit's steps, what it keeps and how its parameters rest, a line each. What is free is left out.
pub fn lines(sharded: &ShardedGraph, graph: &OpGraph, layout: &Layout) -> Vec<Listed> {
    let mut out = Vec::new();
    for (at, unit) in sharded.units.iter().enumerate() {
        let mut add = |phase, step, text| out.push(Listed { unit: at, phase, step, text });
        for (phase, steps) in [("forward", &unit.forward), ("backward", &unit.backward), ("update", &unit.update)] {
            let seen = |id: &&StepId| !matches!(sharded.flow[**id].kind, StepKind::Free { .. });
            for step in steps.iter().filter(seen) {
                add(phase, Some(*step), line(sharded, graph, layout, *step));
            }
        }
        for saved in &unit.saved {
            let place = match saved.tensor {
                Some(tensor) => &sharded.tensors[tensor.0 as usize].place,
                None => &sharded.placements[saved.value.0 as usize],
            };
            let place = place.text(saved.value, graph, layout);
            add("", None, format!("saved {} {place}", graph.describe(saved.value)));
        }
        for param in &unit.params {
            let p = &graph.params[param.param as usize];
            let place = param.placement.text(p.value, graph, layout);
            let axes = layout.names(&param.grad_axes);
            let grad = if axes.is_empty() { String::new() } else { format!(", gradient sum:{}", axes.join(",")) };
            add("", None, format!("param {} {place}{grad}", p.path));
        }
    }
    out
}

/// The same under their units and phases. No sizes: they are expressions.
pub fn text(sharded: &ShardedGraph, graph: &OpGraph, layout: &Layout) -> String {
    let mut out = String::new();
    let lines = lines(sharded, graph, layout);
    for (at, unit) in graph.units.iter().enumerate() {
        let _ = writeln!(out, "unit {} x {}", unit.name, unit.count);
        let mut phase = "";
        for line in lines.iter().filter(|l| l.unit == at) {
            if line.phase != phase && !line.phase.is_empty() {
                let _ = writeln!(out, "  {}", line.phase);
            }
            phase = line.phase;
            let _ = writeln!(out, "{}{}", if phase.is_empty() { "  " } else { "    " }, line.text);
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
