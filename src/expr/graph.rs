//! Nodes and their one constructor.

use indexmap::IndexMap;

/// A node, by position: operands always come before their users.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Id(pub u32);

/// A leaf whose value is given from outside: a layout parameter, or a fact counted by the schedule simulator.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct InputId(pub u32);

/// What a node's value is.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// An exact integer.
    Int,
    /// An IEEE-754 double.
    Real,
    /// True or false.
    Bool,
}

/// One operation. Int and Real are never mixed: [`Node::ToReal`] converts.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "each is the operation of the same name")]
pub enum Node {
    Int(i64),
    /// The bits of a double.
    Real(u64),
    Bool(bool),
    Input(InputId),
    Add(Id, Id),
    Sub(Id, Id),
    Mul(Id, Id),
    /// Real division; the divisor is never zero on a legal point.
    Div(Id, Id),
    ToReal(Id),
    /// Real to Int.
    Floor(Id),
    /// Real to Int.
    Ceil(Id),
    Sqrt(Id),
    /// Binary logarithm, by the graph's own series.
    Log2(Id),
    /// Power of two, by the graph's own series.
    Exp2(Id),
    /// Int, divisor above 0.
    FloorDiv(Id, Id),
    /// Int, divisor above 0.
    CeilDiv(Id, Id),
    /// Int, non-negative, divisor above 0.
    Mod(Id, Id),
    /// Int; exact where the point is legal, its obligation is a separate root.
    ExactDiv(Id, Id),
    Min(Id, Id),
    Max(Id, Id),
    Select(Id, Id, Id),
    Le(Id, Id),
    Lt(Id, Id),
    Eq(Id, Id),
    And(Id, Id),
    Or(Id, Id),
    Not(Id),
}

/// A leaf: its name, kind and the range its values are promised to keep.
#[derive(Clone, PartialEq, Debug)]
pub struct Input {
    /// `tp`, `stage.in_flight`.
    pub name: String,
    /// Int or Real.
    pub kind: Kind,
    /// Least value.
    pub lo: f64,
    /// Greatest value.
    pub hi: f64,
}

/// The graph.
#[derive(Default, Debug)]
pub struct Graph {
    nodes: IndexMap<Node, Kind>,
    inputs: Vec<Input>,
}

impl Graph {
    /// An empty graph.
    pub fn new() -> Self {
        Self::default()
    }

    /// Declares a leaf.
    pub fn input(&mut self, input: Input) -> Id {
        let id = InputId(self.inputs.len() as u32);
        let kind = input.kind;
        self.inputs.push(input);
        self.insert(Node::Input(id), kind)
    }

    /// The leaves, in the order they were declared: the columns of an evaluation.
    pub fn inputs(&self) -> &[Input] {
        &self.inputs
    }

    /// The operation behind `id`.
    pub fn node(&self, id: Id) -> Node {
        *self.nodes.get_index(id.0 as usize).expect("ids come from this graph").0
    }

    /// What `id`'s value is.
    pub fn kind(&self, id: Id) -> Kind {
        *self.nodes.get_index(id.0 as usize).expect("ids come from this graph").1
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The constant `value`.
    pub fn int(&mut self, value: i64) -> Id {
        self.put(Node::Int(value))
    }

    /// The constant `value`.
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

    /// Adds `node`, simplified; equal nodes are one.
    pub fn put(&mut self, node: Node) -> Id {
        let kind = match node {
            Node::Int(_)
            | Node::Floor(_)
            | Node::Ceil(_)
            | Node::FloorDiv(..)
            | Node::CeilDiv(..)
            | Node::Mod(..)
            | Node::ExactDiv(..) => Kind::Int,
            Node::Real(_) | Node::Div(..) | Node::ToReal(_) | Node::Sqrt(_) | Node::Log2(_) | Node::Exp2(_) => {
                Kind::Real
            }
            Node::Bool(_)
            | Node::Le(..)
            | Node::Lt(..)
            | Node::Eq(..)
            | Node::And(..)
            | Node::Or(..)
            | Node::Not(_) => Kind::Bool,
            Node::Input(i) => self.inputs[i.0 as usize].kind,
            Node::Add(a, _) | Node::Sub(a, _) | Node::Mul(a, _) | Node::Min(a, _) | Node::Max(a, _) => self.kind(a),
            Node::Select(_, a, _) => self.kind(a),
        };
        self.insert(node, kind)
    }

    fn insert(&mut self, node: Node, kind: Kind) -> Id {
        let entry = self.nodes.entry(node);
        let id = Id(entry.index() as u32);
        entry.or_insert(kind);
        id
    }
}

/// The arithmetic of mixed operands: Int stays Int where both are, else both become Real.
impl Graph {
    /// `id` as a Real.
    pub fn to_real(&mut self, id: Id) -> Id {
        if self.kind(id) == Kind::Int { self.put(Node::ToReal(id)) } else { id }
    }

    fn same(&mut self, a: Id, b: Id) -> (Id, Id) {
        if self.kind(a) == self.kind(b) { (a, b) } else { (self.to_real(a), self.to_real(b)) }
    }

    /// `a + b`
    pub fn add(&mut self, a: Id, b: Id) -> Id {
        let (a, b) = self.same(a, b);
        self.put(Node::Add(a, b))
    }

    /// `a - b`
    pub fn sub(&mut self, a: Id, b: Id) -> Id {
        let (a, b) = self.same(a, b);
        self.put(Node::Sub(a, b))
    }

    /// `a * b`
    pub fn mul(&mut self, a: Id, b: Id) -> Id {
        let (a, b) = self.same(a, b);
        self.put(Node::Mul(a, b))
    }

    /// `a / b` as a Real.
    pub fn div(&mut self, a: Id, b: Id) -> Id {
        let (a, b) = (self.to_real(a), self.to_real(b));
        self.put(Node::Div(a, b))
    }

    /// The smaller.
    pub fn min(&mut self, a: Id, b: Id) -> Id {
        let (a, b) = self.same(a, b);
        self.put(Node::Min(a, b))
    }

    /// The larger.
    pub fn max(&mut self, a: Id, b: Id) -> Id {
        let (a, b) = self.same(a, b);
        self.put(Node::Max(a, b))
    }

    /// `if cond then a else b`
    pub fn select(&mut self, cond: Id, a: Id, b: Id) -> Id {
        let (a, b) = self.same(a, b);
        self.put(Node::Select(cond, a, b))
    }

    /// `a <= b`
    pub fn le(&mut self, a: Id, b: Id) -> Id {
        let (a, b) = self.same(a, b);
        self.put(Node::Le(a, b))
    }

    /// `a < b`
    pub fn lt(&mut self, a: Id, b: Id) -> Id {
        let (a, b) = self.same(a, b);
        self.put(Node::Lt(a, b))
    }

    /// `a == b`
    pub fn eq(&mut self, a: Id, b: Id) -> Id {
        let (a, b) = self.same(a, b);
        self.put(Node::Eq(a, b))
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
