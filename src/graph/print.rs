//! The op graph as text and as DOT: for goldens and for looking at.

use super::{MapFn, OpGraph, OpId, OpKind, ValueId, ValueRole};
use std::fmt::Write as _;

/// One line a value's making, in program order, under the unit it is in.
pub fn text(graph: &OpGraph) -> String {
    let mut units: Vec<_> = graph.units.iter().map(|u| format!("unit {} x {}\n", u.name, u.count)).collect();
    for (id, op) in graph.ops() {
        let path = graph.region_path(op.region);
        let line = &mut units[op.unit as usize];
        let _ = writeln!(line, "  {} = {}  # {path}", named(graph, op.output), call(graph, id));
    }
    units.concat()
}

/// The same for graphviz: a box an op, an edge a use.
pub fn dot(graph: &OpGraph) -> String {
    let mut out = String::from("digraph ops {\n  node [shape = box, fontname = monospace]\n");
    for (id, op) in graph.ops() {
        let label = format!("{}\\n{}", escaped(&op_name(&op.kind)), escaped(&named(graph, op.output)));
        let _ = writeln!(out, "  n{} [label = \"{label}\"]", id.index());
    }
    for edge in graph.flow.raw_edges() {
        let value = escaped(&named(graph, edge.weight.value));
        let _ = writeln!(out, "  n{} -> n{} [label = \"{value}\"]", edge.source().index(), edge.target().index());
    }
    out.push_str("}\n");
    out
}

/// `text` inside a quoted string of graphviz.
pub fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

/// `h[B, S, H]`, or `%7[B, S, H]` for a value without a name.
fn named(graph: &OpGraph, value: ValueId) -> String {
    let text = graph.describe(value);
    if graph.value(value).name.is_empty() { format!("%{}{text}", value.0) } else { text }
}

fn call(graph: &OpGraph, id: OpId) -> String {
    let op = &graph.flow[id];
    let operand = |v: &ValueId| match graph.value(*v).role {
        ValueRole::Param(_) => format!("param {}", named(graph, *v)),
        ValueRole::Input | ValueRole::Activation | ValueRole::Logits | ValueRole::Loss => {
            let name = &graph.value(*v).name;
            if name.is_empty() { format!("%{}", v.0) } else { name.clone() }
        }
    };
    let mut operands: Vec<_> = op.inputs.iter().map(operand).collect();
    let dims = |dims: &[super::DimId]| dims.iter().map(|d| graph.dim(*d).name.as_str()).collect::<Vec<_>>().join(", ");
    match &op.kind {
        OpKind::Contract { contracted } => operands.push(format!("over = [{}]", dims(contracted))),
        OpKind::Sum { over } => operands.push(format!("over = [{}]", dims(over))),
        OpKind::Norm { over, .. } if over.len() > 1 => operands.push(format!("over = [{}]", dims(over))),
        OpKind::Norm { over, .. } => operands.push(format!("over = {}", dims(over))),
        OpKind::Softmax { over }
        | OpKind::Embed { over, .. }
        | OpKind::Concat { over }
        | OpKind::Select { experts: over, .. } => operands.push(format!("over = {}", dims(&[*over]))),
        OpKind::CrossEntropy { over, .. } => operands.extend(over.map(|d| format!("over = {}", dims(&[d])))),
        OpKind::Regroup { pairs } => {
            operands.extend(pairs.iter().map(|(a, b)| format!("{} = {}", dims(&[*a]), dims(&[*b]))));
        }
        OpKind::Take { from, to } | OpKind::Rename { from, to } => {
            operands.push(format!("{} = {}", dims(&[*from]), dims(&[*to])));
        }
        OpKind::Split { from, into } => operands.push(format!("{} = [{}]", dims(&[*from]), dims(into))),
        OpKind::Merge { from, into } => operands.push(format!("{} = [{}]", dims(&[*into]), dims(from))),
        OpKind::Attention(a) => operands.push(format!("causal = {}", a.causal)),
        OpKind::Map(MapFn::Rope(x) | MapFn::Scale(x) | MapFn::Offset(x) | MapFn::Inverse(x)) => {
            operands.push(x.to_string());
        }
        OpKind::Map(MapFn::Shift(by)) => operands.push(by.to_string()),
        OpKind::Map(_) | OpKind::Dispatch(_) | OpKind::Combine(_) | OpKind::Custom(_) => {}
    }
    format!("{}({})", op_name(&op.kind), operands.join(", "))
}

/// The operator as a layout calls it: a contraction is `matmul`.
pub fn language_name(kind: &OpKind) -> String {
    match op_name(kind) {
        name if name == "contract" => "matmul".into(),
        name => name,
    }
}

fn op_name(kind: &OpKind) -> String {
    match kind {
        OpKind::Contract { .. } => "contract".into(),
        OpKind::Map(MapFn::Rope(_)) => "rope".into(),
        OpKind::Map(MapFn::Scale(_)) => "scale".into(),
        OpKind::Map(MapFn::Offset(_)) => "offset".into(),
        OpKind::Map(MapFn::Inverse(_)) => "inverse".into(),
        OpKind::Map(MapFn::Shift(_)) => "shift".into(),
        OpKind::Map(f) => format!("{f:?}").to_lowercase(),
        OpKind::Norm { kind, .. } => format!("{kind:?}_norm").to_lowercase(),
        OpKind::Softmax { .. } => "softmax".into(),
        OpKind::Embed { bag: None, .. } => "embed".into(),
        OpKind::Embed { bag: Some(_), .. } => "embed_bag".into(),
        OpKind::Take { .. } => "take".into(),
        OpKind::Attention(_) => "attention".into(),
        OpKind::CrossEntropy { over: Some(_), .. } => "cross_entropy".into(),
        OpKind::CrossEntropy { over: None, .. } => "binary_cross_entropy".into(),
        OpKind::Rename { .. } => "rename".into(),
        OpKind::Split { .. } => "split".into(),
        OpKind::Merge { .. } => "merge".into(),
        OpKind::Sum { .. } => "sum".into(),
        OpKind::Concat { .. } => "concat".into(),
        OpKind::Regroup { .. } => "regroup".into(),
        OpKind::Select { .. } => "select_experts".into(),
        OpKind::Dispatch(_) => "dispatch".into(),
        OpKind::Combine(_) => "combine".into(),
        OpKind::Custom(c) => c.name.clone(),
    }
}
