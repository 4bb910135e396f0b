//! The program of a job before and after each pass, as text, for graphviz and as JSON.

use crate::expr;
use crate::graph::{self, OpGraph, OpId, ValueRole};
use crate::layout::Layout;
use crate::optimize::{self, Outcome};
use crate::partition::{self, CollectiveKind, Content, Listed, ShardedGraph, Step, StepId, StepKind, Task, Work};
use crate::source::{Sources, Span};
use indexmap::IndexMap;
use serde::Serialize;
use std::fmt::Write as _;

/// Name and version of the JSON.
pub const SCHEMA: &str = "parc-graph/1";

/// What is shown: the ops of a job, and its program by the rules and after each pass.
#[derive(Copy, Clone, Debug)]
pub struct Shown<'a> {
    /// The job's name.
    pub job: &'a str,
    /// The ops.
    pub ops: &'a OpGraph,
    /// The layout.
    pub layout: &'a Layout,
    /// By the rules.
    pub ruled: &'a ShardedGraph,
    /// After each pass.
    pub passed: &'a [(ShardedGraph, Outcome)],
}

impl Shown<'_> {
    fn lines(&self, program: &ShardedGraph) -> Vec<Listed> {
        partition::lines(program, self.ops, self.layout)
    }
}

/// `after share_copies` where it is assumed, else `share_copies would`.
fn title(outcome: &Outcome) -> String {
    let name = outcome.pass.name();
    if outcome.assumed { format!("after {name}") } else { format!("{name}, not assumed, would leave") }
}

/// Ops, steps, and what each pass changes: a line that goes begins with `-`, one that comes with `+`.
pub fn text(shown: Shown<'_>) -> String {
    let mut out = format!("// ops\n{}\n// steps\n", graph::text(shown.ops));
    out.push_str(&partition::text(shown.ruled, shown.ops, shown.layout));
    let mut current = shown.lines(shown.ruled);
    for (program, outcome) in shown.passed {
        let after = shown.lines(program);
        let _ = writeln!(out, "\n// {}: {}", title(outcome), optimize::assumes(outcome.pass));
        out.push_str(&changes(&current, &after, shown.ops));
        if outcome.assumed {
            current = after;
        }
    }
    out
}

/// How far ahead a line that is still there is looked for.
const AHEAD: usize = 256;

/// The lines that go and those that come, under their unit and phase.
fn changes(before: &[Listed], after: &[Listed], ops: &OpGraph) -> String {
    let key = |l: &Listed| (l.unit, l.phase, l.text.clone());
    let (mut i, mut j) = (0, 0);
    let mut changed: Vec<(char, &Listed)> = Vec::new();
    while i < before.len() || j < after.len() {
        let same = |i: usize| j < after.len() && i < before.len() && key(&before[i]) == key(&after[j]);
        if same(i) {
            (i, j) = (i + 1, j + 1);
        } else if let Some(next) = (i..before.len().min(i + AHEAD)).find(|i| same(*i)) {
            changed.extend(before[i..next].iter().map(|l| ('-', l)));
            i = next;
        } else if j < after.len() {
            changed.push(('+', &after[j]));
            j += 1;
        } else {
            changed.push(('-', &before[i]));
            i += 1;
        }
    }
    if changed.is_empty() {
        return "nothing changes\n".into();
    }
    let mut out = String::new();
    let mut at = None;
    for (sign, line) in changed {
        if at != Some((line.unit, line.phase)) {
            at = Some((line.unit, line.phase));
            let _ = writeln!(out, "unit {} {}", ops.units[line.unit].name, line.phase);
        }
        let _ = writeln!(out, "  {sign} {}", line.text);
    }
    out
}

/// A graph of the ops, one of the steps by the rules and one after each pass that changes them.
pub fn dot(shown: Shown<'_>) -> String {
    let mut out = graph::dot(shown.ops);
    out.push_str(&steps_dot("by the rules", shown.ruled, shown));
    for (program, outcome) in shown.passed.iter().filter(|(_, o)| !o.is_nothing()) {
        out.push_str(&steps_dot(&title(outcome), program, shown));
    }
    out
}

fn steps_dot(name: &str, program: &ShardedGraph, shown: Shown<'_>) -> String {
    let mut out = format!("digraph \"{name}\" {{\n  node [shape = box, fontname = monospace]\n");
    let lines = shown.lines(program);
    for (at, unit) in shown.ops.units.iter().enumerate() {
        for phase in ["forward", "backward", "update"] {
            let own: Vec<_> = lines.iter().filter(|l| (l.unit, l.phase) == (at, phase)).collect();
            if own.is_empty() {
                continue;
            }
            let label = graph::escaped(&format!("{} x {}, {phase}", unit.name, unit.count));
            let _ = writeln!(out, "  subgraph cluster_{at}_{phase} {{\n    label = \"{label}\"");
            for (step, line) in own.iter().filter_map(|l| Some((l.step?, l))) {
                let moves = matches!(program.flow[step].kind, StepKind::Collective(_));
                let style = if moves { ", style = rounded" } else { "" };
                let _ = writeln!(out, "    s{} [label = \"{}\"{style}]", step.index(), graph::escaped(&line.text));
            }
            out.push_str("  }\n");
        }
    }
    for edge in program.flow.raw_edges() {
        let shown = |s: StepId| !matches!(program.flow[s].kind, StepKind::Free { .. });
        // What is free is passed through: its own edges stand for it.
        let (from, to) = (edge.source(), edge.target());
        if shown(to) {
            for from in visible(program, from) {
                let _ = writeln!(out, "  s{} -> s{}", from.index(), to.index());
            }
        }
    }
    out.push_str("}\n");
    out
}

/// The steps that cost something behind `step`, itself where it does.
fn visible(program: &ShardedGraph, step: StepId) -> Vec<StepId> {
    let mut open = vec![step];
    let mut out = Vec::new();
    while let Some(step) = open.pop() {
        if matches!(program.flow[step].kind, StepKind::Free { .. }) {
            open.extend(program.flow.neighbors_directed(step, petgraph::Direction::Incoming));
        } else if !out.contains(&step) {
            out.push(step);
        }
    }
    out.sort();
    out
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    job: &'a str,
    values: Vec<ValueInfo>,
    ops: Vec<OpInfo>,
    programs: Vec<ProgramInfo>,
}

#[derive(Serialize)]
struct ValueInfo {
    value: String,
    role: &'static str,
    region: String,
}

#[derive(Serialize)]
struct OpInfo {
    op: String,
    inputs: Vec<u32>,
    output: u32,
    unit: u32,
    region: String,
    place: String,
}

#[derive(Serialize)]
struct ProgramInfo {
    /// The pass it comes out of; none of the one the rules give.
    after: Option<&'static str>,
    /// Whether the job says that its runtime does the pass.
    assumed: bool,
    tensors: Vec<TensorInfo>,
    units: Vec<UnitInfo>,
}

#[derive(Serialize)]
struct TensorInfo {
    value: u32,
    content: String,
    place: String,
    cut: Vec<String>,
}

#[derive(Serialize)]
struct UnitInfo {
    name: String,
    count: i64,
    forward: Vec<StepInfo>,
    backward: Vec<StepInfo>,
    update: Vec<StepInfo>,
    saved: Vec<u32>,
}

#[derive(Serialize)]
struct StepInfo {
    step: usize,
    /// `collective`, `compute` or `free`.
    sort: &'static str,
    /// `all-reduce`, `matmul`, `forward`, …
    what: String,
    reads: Vec<u32>,
    writes: Vec<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    axes: Vec<String>,
    /// Bytes of a collective at the point.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    again: bool,
    after: Vec<usize>,
    place: String,
}

/// Values of nodes at the point.
type Numbers = IndexMap<expr::Id, f64>;

/// Ops and programs as JSON. `evaluate` gives values of nodes at the point.
#[expect(clippy::missing_panics_doc, reason = "it has string keys only")]
pub fn json(shown: Shown<'_>, sources: &Sources, evaluate: &dyn Fn(&[expr::Id]) -> Vec<f64>) -> String {
    let programs = std::iter::once(shown.ruled).chain(shown.passed.iter().map(|(p, _)| p));
    let mut sizes: Vec<expr::Id> = programs.flat_map(|p| p.flow.node_weights()).filter_map(bytes).collect();
    sizes.sort();
    sizes.dedup();
    let numbers: Numbers = sizes.iter().copied().zip(evaluate(&sizes)).collect();
    let values = shown.ops.values.iter().enumerate().map(|(at, v)| ValueInfo {
        value: shown.ops.describe(graph::ValueId(at as u32)),
        role: match v.role {
            ValueRole::Input => "input",
            ValueRole::Param(_) => "parameter",
            ValueRole::Activation => "activation",
            ValueRole::Logits => "logits",
            ValueRole::Loss => "loss",
        },
        region: shown.ops.region_path(v.region),
    });
    let ops = shown.ops.ops().map(|(_, op)| OpInfo {
        op: graph::language_name(&op.kind),
        inputs: op.inputs.iter().map(|v| v.0).collect(),
        output: op.output.0,
        unit: op.unit,
        region: shown.ops.region_path(op.region),
        place: place(op.span, sources),
    });
    let first = program(None, shown.ruled, shown, sources, &numbers);
    let passed = shown.passed.iter().map(|(p, o)| program(Some(o), p, shown, sources, &numbers));
    let document = Document {
        schema: SCHEMA,
        job: shown.job,
        values: values.collect(),
        ops: ops.collect(),
        programs: std::iter::once(first).chain(passed).collect(),
    };
    serde_json::to_string(&document).expect("a graph has string keys only")
}

/// The bytes a step moves, where it moves any.
fn bytes(step: &Step) -> Option<expr::Id> {
    match &step.kind {
        StepKind::Collective(c) if c.kind != CollectiveKind::Slice => Some(c.bytes),
        StepKind::Collective(_) | StepKind::Free { .. } | StepKind::Compute { .. } => None,
    }
}

fn place(span: Span, sources: &Sources) -> String {
    format!("{}:{}", sources.file(span.file).name, sources.line_col(span).0)
}

fn program(
    outcome: Option<&Outcome>,
    program: &ShardedGraph,
    shown: Shown<'_>,
    sources: &Sources,
    numbers: &Numbers,
) -> ProgramInfo {
    let tensors = program.tensors.iter().map(|t| TensorInfo {
        value: t.value.0,
        content: match t.content {
            Content::Value => "value".into(),
            Content::Gradient => "gradient".into(),
            Content::Statistic(n) => format!("statistic {n}"),
            Content::Updated => "updated".into(),
        },
        place: t.place.text(t.value, shown.ops, shown.layout),
        cut: shown.layout.names(&t.cut),
    });
    let step = |id: &StepId| step(program, *id, shown, sources, numbers);
    let units = program.units.iter().zip(&shown.ops.units).map(|(u, unit)| UnitInfo {
        name: unit.name.clone(),
        count: unit.count,
        forward: u.forward.iter().map(step).collect(),
        backward: u.backward.iter().map(step).collect(),
        update: u.update.iter().map(step).collect(),
        saved: u.saved.iter().map(|s| s.value.0).collect(),
    });
    ProgramInfo {
        after: outcome.map(|o| o.pass.name()),
        assumed: outcome.is_none_or(|o| o.assumed),
        tensors: tensors.collect(),
        units: units.collect(),
    }
}

fn step(program: &ShardedGraph, id: StepId, shown: Shown<'_>, sources: &Sources, numbers: &Numbers) -> StepInfo {
    let s = &program.flow[id];
    let task = |op: OpId, task: Task| {
        let name = graph::language_name(&shown.ops.flow[op].kind);
        match task {
            Task::Forward => name,
            Task::Backward => format!("{name} backward"),
            Task::Statistic(n) => format!("{name} statistic {n}"),
            Task::Sum => "sum".into(),
        }
    };
    let (sort, what, axes, bytes) = match &s.kind {
        StepKind::Free { op, task: t } => ("free", task(*op, *t), Vec::new(), None),
        StepKind::Compute { op, task: t, work } => {
            let kernel = match work {
                Work::Matmul { .. } => "product",
                Work::Attention { .. } => "attention",
                Work::Elementwise { .. } => "elementwise",
            };
            ("compute", format!("{} ({kernel})", task(*op, *t)), Vec::new(), None)
        }
        StepKind::Collective(c) => {
            let bytes = bytes(s).and_then(|id| numbers.get(&id));
            ("collective", c.kind.name().into(), shown.layout.names(&c.axes), bytes.map(|b| *b as u64))
        }
    };
    let mut after: Vec<_> =
        program.flow.neighbors_directed(id, petgraph::Direction::Incoming).map(StepId::index).collect();
    after.sort_unstable();
    StepInfo {
        step: id.index(),
        sort,
        what,
        reads: s.reads.iter().map(|t| t.0).collect(),
        writes: s.writes.iter().map(|t| t.0).collect(),
        axes,
        bytes,
        again: s.recomputed,
        after,
        place: place(s.span, sources),
    }
}
