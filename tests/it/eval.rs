//! A small evaluator of the expression graph: every node up to the one asked for, over doubles.

use parc::expr::{Graph, Id, Node};

/// The value of `id`, with `inputs` for the leaves in the order they were declared.
pub(crate) fn eval(graph: &Graph, inputs: &[f64], id: Id) -> f64 {
    up_to(graph, inputs, id.0 + 1)[id.0 as usize]
}

/// The value of every node.
pub(crate) fn all(graph: &Graph, inputs: &[f64]) -> Vec<f64> {
    up_to(graph, inputs, graph.ids().count() as u32)
}

fn up_to(graph: &Graph, inputs: &[f64], nodes: u32) -> Vec<f64> {
    // Operands come before their users.
    let mut values: Vec<f64> = Vec::new();
    for at in 0..nodes {
        values.push(node(graph, inputs, &values, Id(at)));
    }
    values
}

fn node(graph: &Graph, inputs: &[f64], values: &[f64], id: Id) -> f64 {
    let go = |id: Id| values[id.0 as usize];
    let truth = |b: bool| if b { 1.0 } else { 0.0 };
    match graph.node(id) {
        Node::Int(v) => v as f64,
        Node::Real(bits) => f64::from_bits(bits),
        Node::Bool(b) => truth(b),
        Node::Input(i) => inputs[i.0 as usize],
        Node::Add(a, b) => go(a) + go(b),
        Node::Sub(a, b) => go(a) - go(b),
        Node::Mul(a, b) => go(a) * go(b),
        Node::Div(a, b) | Node::ExactDiv(a, b) => go(a) / go(b),
        Node::ToReal(a) => go(a),
        Node::Floor(a) => go(a).floor(),
        Node::Ceil(a) => go(a).ceil(),
        Node::Sqrt(a) => go(a).sqrt(),
        Node::Log2(a) => go(a).log2(),
        Node::Exp2(a) => go(a).exp2(),
        Node::FloorDiv(a, b) => (go(a) / go(b)).floor(),
        Node::CeilDiv(a, b) => (go(a) / go(b)).ceil(),
        Node::Mod(a, b) => go(a).rem_euclid(go(b)),
        Node::Min(a, b) => go(a).min(go(b)),
        Node::Max(a, b) => go(a).max(go(b)),
        Node::Select(c, a, b) => go(if go(c) > 0.5 { a } else { b }),
        Node::Le(a, b) => truth(go(a) <= go(b)),
        Node::Lt(a, b) => truth(go(a) < go(b)),
        Node::Eq(a, b) => truth((go(a) - go(b)).abs() < 0.5),
        Node::And(a, b) => truth(go(a) > 0.5 && go(b) > 0.5),
        Node::Or(a, b) => truth(go(a) > 0.5 || go(b) > 0.5),
        Node::Lookup(table, a) => graph.tables()[table.0 as usize].values[go(a) as usize],
        Node::Not(a) => truth(go(a) < 0.5),
    }
}
