//! The exact interpreter: one point, Ints as `i128`, Reals as doubles.

use super::{Graph, Id, Kind, Node, scalar};

/// A value.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Number {
    /// Of an Int node.
    Int(i128),
    /// Of a Real node.
    Real(f64),
    /// Of a Bool node.
    Bool(bool),
}

impl Number {
    /// As a double; a Bool is 1 or 0.
    pub fn as_f64(self) -> f64 {
        match self {
            Number::Int(v) => v as f64,
            Number::Real(v) => v,
            Number::Bool(v) => f64::from(u8::from(v)),
        }
    }

    /// As a truth value; a number is whether it is not 0.
    pub fn as_bool(self) -> bool {
        match self {
            Number::Int(v) => v != 0,
            Number::Real(v) => v != 0.0,
            Number::Bool(v) => v,
        }
    }

    /// As an integer; a Real is rounded down.
    pub fn as_int(self) -> i128 {
        match self {
            Number::Int(v) => v,
            Number::Real(v) => v.floor() as i128,
            Number::Bool(v) => v.into(),
        }
    }
}

impl From<i64> for Number {
    fn from(v: i64) -> Self {
        Number::Int(v.into())
    }
}

impl From<f64> for Number {
    fn from(v: f64) -> Self {
        Number::Real(v)
    }
}

impl From<bool> for Number {
    fn from(v: bool) -> Self {
        Number::Bool(v)
    }
}

/// The values of a graph's nodes at one point.
#[derive(Clone, Debug)]
pub struct Evaluation {
    values: Vec<Number>,
}

impl Evaluation {
    /// Evaluates every node. `inputs` are in the order of [`Graph::inputs`] and are brought into their ranges; a
    /// missing one takes its least value.
    pub fn new(graph: &Graph, inputs: &[Number]) -> Self {
        Self::of(graph, inputs, &vec![true; graph.len()])
    }

    fn of(graph: &Graph, inputs: &[Number], needed: &[bool]) -> Self {
        let mut values = Vec::with_capacity(graph.len());
        for id in graph.ids() {
            let value = if needed[id.0 as usize] { step(graph, id, inputs, &values) } else { Number::Int(0) };
            values.push(value);
        }
        Evaluation { values }
    }

    /// The value of `id`.
    pub fn value(&self, id: Id) -> Number {
        self.values[id.0 as usize]
    }

    /// The value of `id` as a double; a Bool is 1 or 0.
    pub fn real(&self, id: Id) -> f64 {
        self.value(id).as_f64()
    }

    /// The value of `id` as a truth value.
    pub fn bool(&self, id: Id) -> bool {
        self.value(id).as_bool()
    }

    /// The value of `id` as an integer; a Real is rounded down.
    pub fn int(&self, id: Id) -> i128 {
        self.value(id).as_int()
    }
}

impl Graph {
    /// The values of `roots` at one point: see [`Evaluation`].
    pub fn eval(&self, inputs: &[f64], roots: &[Id]) -> Vec<f64> {
        let inputs: Vec<Number> = inputs.iter().copied().map(Number::Real).collect();
        let evaluation = Evaluation::of(self, &inputs, &self.reachable(roots));
        roots.iter().map(|root| evaluation.real(*root)).collect()
    }
}

fn step(graph: &Graph, id: Id, inputs: &[Number], values: &[Number]) -> Number {
    let value = |id: Id| values[id.0 as usize];
    let real = |id: Id| value(id).as_f64();
    let int = |id: Id| value(id).as_int();
    let bool = |id: Id| value(id).as_bool();
    let is_int = |id: Id| graph.kind(id) == Kind::Int;
    // Ints stay within 2^62, so no operation on two of them leaves an i128.
    let arithmetic = |a: Id, b: Id, ints: fn(i128, i128) -> i128, reals: fn(f64, f64) -> f64| {
        if is_int(a) { Number::Int(ints(int(a), int(b))) } else { Number::Real(reals(real(a), real(b))) }
    };
    let rounded = |v: f64| if is_int(id) { Number::Int(v as i128) } else { Number::Real(v) };
    match graph.node(id) {
        Node::Int(v) => v.into(),
        Node::Real(bits) => f64::from_bits(bits).into(),
        Node::Bool(v) => v.into(),
        Node::Input(i) => {
            let range = graph.range(id);
            match (inputs.get(i.0 as usize), graph.kind(id), range.int) {
                (Some(Number::Int(v)), Kind::Int, Some((lo, hi))) => Number::Int(*v.clamp(&lo, &hi)),
                (given, kind, _) => {
                    let v = scalar::clamp(given.map_or(range.lo, |v| v.as_f64()), range.lo, range.hi);
                    match kind {
                        Kind::Int => Number::Int(v.floor() as i128),
                        Kind::Real => Number::Real(v),
                        Kind::Bool => Number::Bool(v > 0.0),
                    }
                }
            }
        }
        Node::Add(a, b) => arithmetic(a, b, |a, b| a + b, |a, b| a + b),
        Node::Sub(a, b) => arithmetic(a, b, |a, b| a - b, |a, b| a - b),
        Node::Mul(a, b) => arithmetic(a, b, |a, b| a * b, |a, b| a * b),
        Node::Min(a, b) => arithmetic(a, b, i128::min, scalar::min),
        Node::Max(a, b) => arithmetic(a, b, i128::max, scalar::max),
        Node::Div(a, b) => Number::Real(real(a) / real(b)),
        Node::ToReal(a) => Number::Real(real(a)),
        Node::Floor(a) => rounded(real(a).floor()),
        Node::Ceil(a) => rounded(real(a).ceil()),
        Node::Sqrt(a) => Number::Real(real(a).sqrt()),
        Node::Log2(a) => Number::Real(scalar::log2(real(a))),
        Node::Exp2(a) => Number::Real(scalar::exp2(real(a))),
        Node::FloorDiv(a, b) | Node::ExactDiv(a, b) => Number::Int(scalar::floor_div(int(a), int(b))),
        Node::CeilDiv(a, b) => Number::Int(scalar::ceil_div(int(a), int(b))),
        Node::Mod(a, b) => Number::Int(int(a).rem_euclid(int(b).max(1))),
        Node::Select(c, a, b) => value(if bool(c) { a } else { b }),
        Node::Lookup(table, index) => {
            let values = &graph.tables()[table.0 as usize].values;
            let v = values[int(index).clamp(0, values.len() as i128 - 1) as usize];
            if is_int(id) { Number::Int(v as i128) } else { Number::Real(v) }
        }
        Node::Le(a, b) if is_int(a) => (int(a) <= int(b)).into(),
        Node::Lt(a, b) if is_int(a) => (int(a) < int(b)).into(),
        Node::Eq(a, b) if is_int(a) => (int(a) == int(b)).into(),
        Node::Le(a, b) => (real(a) <= real(b)).into(),
        Node::Lt(a, b) => (real(a) < real(b)).into(),
        Node::Eq(a, b) => scalar::equal(real(a), real(b)).into(),
        Node::And(a, b) => (bool(a) && bool(b)).into(),
        Node::Or(a, b) => (bool(a) || bool(b)).into(),
        Node::Not(a) => (!bool(a)).into(),
    }
}
