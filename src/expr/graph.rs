//! The graph: its nodes with their kinds and ranges, its leaves, its names.

use super::range::BadNode;
use super::{Id, Input, InputId, Kind, Node, Range, Table, TableId};
use indexmap::IndexMap;
use std::collections::BTreeMap;

/// What is known of a node beside its operation.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(super) struct Info {
    pub(super) kind: Kind,
    pub(super) range: Range,
}

/// The graph.
#[derive(Clone, Default, Debug)]
pub struct Graph {
    nodes: IndexMap<Node, Info>,
    inputs: Vec<Input>,
    tables: Vec<Table>,
    names: BTreeMap<Id, String>,
}

impl Graph {
    /// An empty graph.
    pub fn new() -> Self {
        Self::default()
    }

    /// Declares a leaf. An Int's range is cut to the integers within ±2^62, a Real's to finite numbers.
    pub fn input(&mut self, input: Input) -> Id {
        let limit = match input.kind {
            Kind::Int => super::INT_LIMIT as f64,
            Kind::Real => f64::MAX,
            Kind::Bool => 1.0,
        };
        let cut = |x: f64, other: f64| if x.is_nan() { other } else { x.clamp(-limit, limit) };
        let (lo, hi) = match input.kind {
            Kind::Int => (cut(input.lo, -limit).ceil(), cut(input.hi, limit).floor()),
            Kind::Real => (cut(input.lo, -limit), cut(input.hi, limit)),
            Kind::Bool => (0.0, 1.0),
        };
        // `+ 0.0` makes a negative zero positive.
        let (lo, hi) = (lo + 0.0, hi.max(lo) + 0.0);
        let id = InputId(self.inputs.len() as u32);
        self.inputs.push(Input { lo, hi, ..input });
        self.leaf(Node::Input(id))
    }

    /// The leaves, in the order they were declared: the columns of an evaluation.
    pub fn inputs(&self) -> &[Input] {
        &self.inputs
    }

    /// Declares a table; equal tables are one. Values are made what its kind can hold; an empty one has one value, 0.
    pub fn table(&mut self, table: Table) -> TableId {
        let whole = table.kind == Kind::Int;
        let narrow = super::NARROW as f64;
        let fitting = |v: f64| match v {
            v if v.is_nan() => 0.0,
            v if whole => v.clamp(-narrow, narrow).floor() + 0.0,
            v => v.clamp(-f64::MAX, f64::MAX) + 0.0,
        };
        let mut values: Vec<f64> = table.values.into_iter().map(fitting).collect();
        if values.is_empty() {
            values.push(0.0);
        }
        let kind = if whole { Kind::Int } else { Kind::Real };
        let table = Table { kind, values };
        let found = self.tables.iter().position(|t| *t == table);
        let index = found.unwrap_or_else(|| {
            self.tables.push(table);
            self.tables.len() - 1
        });
        TableId(index as u32)
    }

    /// The tables, in the order they were declared.
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    fn entry(&self, id: Id) -> (&Node, &Info) {
        self.nodes.get_index(id.0 as usize).expect("ids come from this graph")
    }

    pub(super) fn info(&self, id: Id) -> Info {
        *self.entry(id).1
    }

    /// The operation behind `id`.
    pub fn node(&self, id: Id) -> Node {
        *self.entry(id).0
    }

    /// What `id`'s value is.
    pub fn kind(&self, id: Id) -> Kind {
        self.info(id).kind
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Every node, operands before users.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = Id> + use<> {
        (0..self.nodes.len() as u32).map(Id)
    }

    /// The constant `value`; a Real beyond ±2^62.
    pub fn int(&mut self, value: i64) -> Id {
        self.put(Node::Int(value))
    }

    /// The constant `value`. Infinity becomes the greatest double, NaN 0.
    pub fn real(&mut self, value: f64) -> Id {
        self.put(Node::Real(value.to_bits()))
    }

    /// The constant `value`.
    pub fn bool(&mut self, value: bool) -> Id {
        self.put(Node::Bool(value))
    }

    /// The integer behind a constant.
    pub fn as_int(&self, id: Id) -> Option<i64> {
        if let Node::Int(v) = self.node(id) { Some(v) } else { None }
    }

    /// The number behind a constant, Int or Real.
    pub fn as_real(&self, id: Id) -> Option<f64> {
        match self.node(id) {
            Node::Int(v) => Some(v as f64),
            Node::Real(b) => Some(f64::from_bits(b)),
            _ => None,
        }
    }

    /// The truth value behind a constant.
    pub fn as_bool(&self, id: Id) -> Option<bool> {
        if let Node::Bool(v) = self.node(id) { Some(v) } else { None }
    }

    /// Names `id` for listings and explanations: a tensor, a collective, a root. The first name stays, since shared
    /// nodes are met again; constants have none, since equal constants mean many things.
    pub fn name(&mut self, id: Id, name: impl Into<String>) {
        if !self.is_constant(id) {
            self.names.entry(id).or_insert_with(|| name.into());
        }
    }

    /// The name of `id`: the one given, or the input's.
    pub fn label_of(&self, id: Id) -> Option<&str> {
        let given = self.names.get(&id).map(String::as_str);
        if let (None, Node::Input(i)) = (given, self.node(id)) {
            return self.inputs.get(i.0 as usize).map(|input| input.name.as_str());
        }
        given
    }

    pub(super) fn given_name(&self, id: Id) -> Option<&str> {
        self.names.get(&id).map(String::as_str)
    }

    pub(super) fn is_constant(&self, id: Id) -> bool {
        matches!(self.node(id), Node::Int(_) | Node::Real(_) | Node::Bool(_))
    }

    /// Adds a node without operands.
    pub(super) fn leaf(&mut self, node: Node) -> Id {
        self.insert(node).expect("a leaf has no operands")
    }

    /// Adds `node` as it is.
    pub(super) fn insert(&mut self, node: Node) -> Result<Id, BadNode> {
        if let Some(index) = self.nodes.get_index_of(&node) {
            return Ok(Id(index as u32));
        }
        let (kind, range) = self.infer(node)?;
        let (index, _) = self.nodes.insert_full(node, Info { kind, range });
        Ok(Id(index as u32))
    }

    /// An empty graph with these leaves and tables, whose nodes are not put yet.
    pub(super) fn with_leaves(inputs: Vec<Input>, tables: Vec<Table>) -> Self {
        Graph { inputs, tables, ..Graph::default() }
    }
}

/// The arithmetic of mixed operands: Int stays Int where both are, else both become Real.
impl Graph {
    /// `id` as a Real.
    pub fn to_real(&mut self, id: Id) -> Id {
        self.put(Node::ToReal(id))
    }

    /// `a + b`
    pub fn add(&mut self, a: Id, b: Id) -> Id {
        self.put(Node::Add(a, b))
    }

    /// `a - b`
    pub fn sub(&mut self, a: Id, b: Id) -> Id {
        self.put(Node::Sub(a, b))
    }

    /// `a * b`
    pub fn mul(&mut self, a: Id, b: Id) -> Id {
        self.put(Node::Mul(a, b))
    }

    /// `a / b` as a Real.
    pub fn div(&mut self, a: Id, b: Id) -> Id {
        self.put(Node::Div(a, b))
    }

    /// The smaller.
    pub fn min(&mut self, a: Id, b: Id) -> Id {
        self.put(Node::Min(a, b))
    }

    /// The larger.
    pub fn max(&mut self, a: Id, b: Id) -> Id {
        self.put(Node::Max(a, b))
    }

    /// `if cond then a else b`
    pub fn select(&mut self, cond: Id, a: Id, b: Id) -> Id {
        self.put(Node::Select(cond, a, b))
    }

    /// The value of `table` at `index`; outside, the nearest one.
    pub fn lookup(&mut self, table: TableId, index: Id) -> Id {
        self.put(Node::Lookup(table, index))
    }

    /// `a <= b`
    pub fn le(&mut self, a: Id, b: Id) -> Id {
        self.put(Node::Le(a, b))
    }

    /// `a < b`
    pub fn lt(&mut self, a: Id, b: Id) -> Id {
        self.put(Node::Lt(a, b))
    }

    /// `a == b`
    pub fn eq(&mut self, a: Id, b: Id) -> Id {
        self.put(Node::Eq(a, b))
    }

    /// `a / b` of Ints, rounded down.
    pub fn floor_div(&mut self, a: Id, b: Id) -> Id {
        self.put(Node::FloorDiv(a, b))
    }

    /// `a / b` of Ints, rounded up.
    pub fn ceil_div(&mut self, a: Id, b: Id) -> Id {
        self.put(Node::CeilDiv(a, b))
    }

    /// `a / b` of Ints where `b` divides `a`; the maker states [`Graph::divides`] as an obligation.
    pub fn exact_div(&mut self, a: Id, b: Id) -> Id {
        self.put(Node::ExactDiv(a, b))
    }

    /// Whether the Int `b` divides the Int `a`.
    pub fn divides(&mut self, b: Id, a: Id) -> Id {
        let rest = self.put(Node::Mod(a, b));
        let zero = self.int(0);
        self.eq(rest, zero)
    }

    /// What must hold for a division by `b` to mean what it says: `b != 0`, or `b >= 1` of an Int. None if it always
    /// does. Elsewhere the quotient is some finite number.
    pub fn divisor_guard(&mut self, b: Id) -> Option<Id> {
        if self.range(b).lo > 0.0 || (self.kind(b) == Kind::Real && self.never_zero(b)) {
            return None;
        }
        if self.kind(b) == Kind::Int {
            let one = self.int(1);
            return Some(self.le(one, b));
        }
        let zero = self.real(0.0);
        let is_zero = self.eq(b, zero);
        Some(self.not(is_zero))
    }

    /// `a and b`
    pub fn and(&mut self, a: Id, b: Id) -> Id {
        self.put(Node::And(a, b))
    }

    /// `a or b`
    pub fn or(&mut self, a: Id, b: Id) -> Id {
        self.put(Node::Or(a, b))
    }

    /// `not a`
    pub fn not(&mut self, a: Id) -> Id {
        self.put(Node::Not(a))
    }

    /// The sum of `terms`, left to right; the Int 0 if there are none.
    pub fn sum(&mut self, terms: impl IntoIterator<Item = Id>) -> Id {
        let mut terms = terms.into_iter();
        let Some(first) = terms.next() else { return self.int(0) };
        terms.fold(first, |a, b| self.add(a, b))
    }

    /// The product of `factors`, left to right; the Int 1 if there are none.
    pub fn product(&mut self, factors: impl IntoIterator<Item = Id>) -> Id {
        let mut factors = factors.into_iter();
        let Some(first) = factors.next() else { return self.int(1) };
        factors.fold(first, |a, b| self.mul(a, b))
    }
}
