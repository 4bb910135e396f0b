//! What a node is: its operation, its operands, its kind. Data only.

use smallvec::{SmallVec, smallvec};

/// A node, by position: operands always come before their users.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Id(pub u32);

/// A leaf whose value is given from outside: a layout parameter, or a fact counted by the schedule simulator.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct InputId(pub u32);

/// A table of constants, by number.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TableId(pub u32);

/// Constants that [`Node::Lookup`] reads: what the schedule simulator counted, by key.
#[derive(Clone, PartialEq, Debug)]
pub struct Table {
    /// What its values are, Int or Real.
    pub kind: Kind,
    /// At least one; whole and narrow where they are Ints.
    pub values: Vec<f64>,
}

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
    /// Real division; the divisor is never zero.
    Div(Id, Id),
    ToReal(Id),
    /// Real to Int; stays Real where the result may leave ±2^62.
    Floor(Id),
    /// As [`Node::Floor`].
    Ceil(Id),
    Sqrt(Id),
    /// Binary logarithm, by the graph's own series: [`super::scalar::log2`].
    Log2(Id),
    /// Power of two, by the graph's own series: [`super::scalar::exp2`].
    Exp2(Id),
    /// Int, rounded down; divisor above 0.
    FloorDiv(Id, Id),
    /// Int, rounded up; divisor above 0.
    CeilDiv(Id, Id),
    /// Int, `a - b * floor(a / b)`, never negative; divisor above 0.
    Mod(Id, Id),
    /// Int; exact where the point is legal (its obligation is a separate root), rounded down elsewhere.
    ExactDiv(Id, Id),
    /// `if a < b { a } else { b }`
    Min(Id, Id),
    /// `if a > b { a } else { b }`
    Max(Id, Id),
    Select(Id, Id, Id),
    /// The value of a table at an index within it.
    Lookup(TableId, Id),
    Le(Id, Id),
    Lt(Id, Id),
    Eq(Id, Id),
    And(Id, Id),
    Or(Id, Id),
    Not(Id),
}

impl Node {
    /// The operands, in order.
    pub fn operands(self) -> SmallVec<[Id; 3]> {
        let mut operands = smallvec![];
        let _same = self.map(|id| {
            operands.push(id);
            id
        });
        operands
    }

    /// The same operation on other operands.
    #[must_use]
    pub fn map(self, mut f: impl FnMut(Id) -> Id) -> Node {
        match self {
            Node::Int(_) | Node::Real(_) | Node::Bool(_) | Node::Input(_) => self,
            Node::Add(a, b) => Node::Add(f(a), f(b)),
            Node::Sub(a, b) => Node::Sub(f(a), f(b)),
            Node::Mul(a, b) => Node::Mul(f(a), f(b)),
            Node::Div(a, b) => Node::Div(f(a), f(b)),
            Node::ToReal(a) => Node::ToReal(f(a)),
            Node::Floor(a) => Node::Floor(f(a)),
            Node::Ceil(a) => Node::Ceil(f(a)),
            Node::Sqrt(a) => Node::Sqrt(f(a)),
            Node::Log2(a) => Node::Log2(f(a)),
            Node::Exp2(a) => Node::Exp2(f(a)),
            Node::FloorDiv(a, b) => Node::FloorDiv(f(a), f(b)),
            Node::CeilDiv(a, b) => Node::CeilDiv(f(a), f(b)),
            Node::Mod(a, b) => Node::Mod(f(a), f(b)),
            Node::ExactDiv(a, b) => Node::ExactDiv(f(a), f(b)),
            Node::Min(a, b) => Node::Min(f(a), f(b)),
            Node::Max(a, b) => Node::Max(f(a), f(b)),
            Node::Select(c, a, b) => Node::Select(f(c), f(a), f(b)),
            Node::Lookup(t, a) => Node::Lookup(t, f(a)),
            Node::Le(a, b) => Node::Le(f(a), f(b)),
            Node::Lt(a, b) => Node::Lt(f(a), f(b)),
            Node::Eq(a, b) => Node::Eq(f(a), f(b)),
            Node::And(a, b) => Node::And(f(a), f(b)),
            Node::Or(a, b) => Node::Or(f(a), f(b)),
            Node::Not(a) => Node::Not(f(a)),
        }
    }

    /// The operation's name in listings.
    pub fn name(self) -> &'static str {
        match self {
            Node::Int(_) => "int",
            Node::Real(_) => "real",
            Node::Bool(_) => "bool",
            Node::Input(_) => "input",
            Node::Add(..) => "add",
            Node::Sub(..) => "sub",
            Node::Mul(..) => "mul",
            Node::Div(..) => "div",
            Node::ToReal(_) => "to_real",
            Node::Floor(_) => "floor",
            Node::Ceil(_) => "ceil",
            Node::Sqrt(_) => "sqrt",
            Node::Log2(_) => "log2",
            Node::Exp2(_) => "exp2",
            Node::FloorDiv(..) => "floor_div",
            Node::CeilDiv(..) => "ceil_div",
            Node::Mod(..) => "mod",
            Node::ExactDiv(..) => "exact_div",
            Node::Min(..) => "min",
            Node::Max(..) => "max",
            Node::Select(..) => "select",
            Node::Lookup(..) => "lookup",
            Node::Le(..) => "le",
            Node::Lt(..) => "lt",
            Node::Eq(..) => "eq",
            Node::And(..) => "and",
            Node::Or(..) => "or",
            Node::Not(_) => "not",
        }
    }
}

/// A leaf: its name, kind and the range its values are promised to keep.
#[derive(Clone, PartialEq, Debug)]
pub struct Input {
    /// `tp`, `stage.in_flight`.
    pub name: String,
    /// Int or Real; a Bool is 0 or 1.
    pub kind: Kind,
    /// Least value.
    pub lo: f64,
    /// Greatest value.
    pub hi: f64,
}
