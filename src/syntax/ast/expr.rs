//! Expressions.

use super::{Block, DimRef, Index, Kind, Name};
use crate::source::Span;
use smol_str::SmolStr;

/// An expression.
#[derive(Clone, PartialEq, Debug)]
pub struct Expr {
    /// What it says.
    pub kind: ExprKind,
    /// Where.
    pub span: Span,
}

impl Expr {
    /// The name that it is, where it is nothing else.
    pub fn name(&self) -> Option<&Name> {
        match &self.kind {
            ExprKind::Path(path) => path.first().filter(|_| path.len() == 1),
            _ => None,
        }
    }

    /// The elements of the list that it writes out, if it is one.
    pub fn list(&self) -> Option<&[Expr]> {
        match &self.kind {
            ExprKind::List(list) => Some(list),
            _ => None,
        }
    }
}

/// A number as written.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Number {
    /// No `.`, or a whole exponent.
    Int(i128),
    /// Anything else.
    Real(f64),
}

/// The expression forms.
#[derive(Clone, PartialEq, Debug)]
pub enum ExprKind {
    /// `8192 tok`, `0.5`: a number and the unit text after it (`TB/s`), whose place is known.
    Number {
        /// The number.
        value: Number,
        /// The unit and where it stands.
        unit: Option<(SmolStr, Span)>,
    },
    /// `"…"`
    Str(SmolStr),
    /// `true`, `false`
    Bool(bool),
    /// `?`
    Hole,
    /// `a`, `std::models::Llama3_8B`
    Path(Vec<Name>),
    /// A declaration keyword as a value: `layout.dp`, `device.usable`.
    Kind(Kind),
    /// `param w[H, N]`; `param` alone names the class.
    Param(Option<(Name, Option<Vec<DimRef>>)>),
    /// `e.name`
    Field(Box<Expr>, Name),
    /// `e(…)`
    Call(Box<Expr>, Vec<Arg>),
    /// `e[…]`
    Index(Box<Expr>, Vec<Index>),
    /// `e with { … }`
    With(Box<Expr>, Block),
    /// `-e`, `not e`
    Unary(UnaryOp, Box<Expr>),
    /// `a + b`
    Binary(BinaryOp, Span, Box<Expr>, Box<Expr>),
    /// `a..b`
    Range(Box<Expr>, Box<Expr>),
    /// `if c then a else b`
    If(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `[a, b]`
    List(Vec<Expr>),
    /// `[e for i in xs if c]`, also as the only argument of a call.
    Comprehension(Box<Expr>, Vec<Generator>),
    /// `{a, b}`
    Set(Vec<Expr>),
    /// `{a = 1, b = 2}`; `{}` is an empty record.
    Record(Vec<(Name, Expr)>),
    /// What could not be read; reported.
    Error,
}

/// `for i in xs if c`
#[derive(Clone, PartialEq, Debug)]
pub struct Generator {
    /// The variable.
    pub name: Name,
    /// What it runs over.
    pub over: Box<Expr>,
    /// `if …`
    pub cond: Option<Box<Expr>>,
}

/// An argument of a call.
#[derive(Clone, PartialEq, Debug)]
pub enum Arg {
    /// `e`
    Positional(Box<Expr>),
    /// `name = e`
    Named(Name, Box<Expr>),
    /// `name in e`
    Domain(Name, Box<Expr>),
}

/// Prefix operators.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum UnaryOp {
    /// `-`
    Neg,
    /// `not`
    Not,
}

/// Infix operators.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "each is the operator of the same name")]
pub enum BinaryOp {
    Add,
    Sub,
    Mul,
    Div,
    IntDiv,
    Mod,
    Contract,
    Pow,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Divides,
    And,
    Or,
}

impl BinaryOp {
    /// The operator as written.
    pub fn text(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Sub => "-",
            Self::Mul => "*",
            Self::Div => "/",
            Self::IntDiv => "div",
            Self::Mod => "mod",
            Self::Contract => "@",
            Self::Pow => "^",
            Self::Eq => "==",
            Self::Ne => "!=",
            Self::Lt => "<",
            Self::Le => "<=",
            Self::Gt => ">",
            Self::Ge => ">=",
            Self::Divides => "divides",
            Self::And => "and",
            Self::Or => "or",
        }
    }
}
