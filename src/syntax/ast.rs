//! The syntax tree: what was written, with a span on every node. No meaning.
//!
//! Here files and declarations; `item` what stands in a block, `expr` what has a value.

mod expr;
mod item;

pub use expr::*;
pub use item::*;

use crate::source::Span;
use smol_str::SmolStr;

/// An identifier where it stands.
#[derive(Clone, PartialEq, Debug)]
pub struct Name {
    /// The identifier.
    pub text: SmolStr,
    /// Where.
    pub span: Span,
}

/// One file.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct File {
    /// The number after `edition`, if there is one.
    pub edition: Option<(i128, Span)>,
    /// `//!` lines.
    pub docs: Vec<SmolStr>,
    /// Everything else, in order.
    pub entries: Vec<Entry>,
    /// Where something is missing or could not be read, and was reported.
    pub torn: Vec<Span>,
}

/// A top-level entry.
#[derive(Clone, PartialEq, Debug)]
pub enum Entry {
    /// `use …`
    Use(Use),
    /// A declaration.
    Decl(Decl),
    /// `let NAME = …`
    Let(Let),
}

/// `use std::models::Llama3_8B`, `use "site.par"::{Pod as P}`, `use "site.par" as site`.
#[derive(Clone, PartialEq, Debug)]
pub struct Use {
    /// First segment: an identifier, or the text of a string.
    pub root: UseRoot,
    /// The segments after it.
    pub path: Vec<Name>,
    /// `as NAME` of the whole.
    pub alias: Option<Name>,
    /// `::{A, B as C}`.
    pub names: Option<Vec<(Name, Option<Name>)>>,
    /// The whole entry.
    pub span: Span,
}

/// First segment of a path in `use`.
#[derive(Clone, PartialEq, Debug)]
pub enum UseRoot {
    /// `std`
    Name(Name),
    /// `"site.par"`
    File(SmolStr, Span),
}

/// The keyword of a declaration.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[expect(missing_docs, reason = "each is the keyword of the same name")]
pub enum Kind {
    Fn,
    Op,
    Table,
    Dtype,
    Device,
    Host,
    Link,
    Cluster,
    Precision,
    Optimizer,
    Schedule,
    Cost,
    Model,
    Block,
    Layout,
    Train,
    Finetune,
    Serve,
    Workflow,
    Unit,
}

impl Kind {
    /// The keyword.
    pub fn keyword(self) -> &'static str {
        match self {
            Self::Fn => "fn",
            Self::Op => "op",
            Self::Table => "table",
            Self::Dtype => "dtype",
            Self::Device => "device",
            Self::Host => "host",
            Self::Link => "link",
            Self::Cluster => "cluster",
            Self::Precision => "precision",
            Self::Optimizer => "optimizer",
            Self::Schedule => "schedule",
            Self::Cost => "cost",
            Self::Model => "model",
            Self::Block => "block",
            Self::Layout => "layout",
            Self::Train => "train",
            Self::Finetune => "finetune",
            Self::Serve => "serve",
            Self::Workflow => "workflow",
            Self::Unit => "unit",
        }
    }
}

/// A declaration, at top level or nested in a block.
#[derive(Clone, PartialEq, Debug)]
pub struct Decl {
    /// `///` lines above it.
    pub docs: Vec<SmolStr>,
    /// Its keyword.
    pub kind: Kind,
    /// Its name.
    pub name: Name,
    /// `(…)`, absent where there are no parentheses.
    pub params: Option<Vec<Param>>,
    /// `-> …`
    pub ret: Option<Ret>,
    /// `= Expr` or `{ … }`; a `unit` may have neither.
    pub body: Body,
    /// The whole declaration.
    pub span: Span,
}

/// What follows the head of a declaration.
#[derive(Clone, PartialEq, Debug)]
pub enum Body {
    /// `= Expr`
    Expr(Box<Expr>),
    /// `{ … }`
    Block(Block),
    /// Nothing.
    None,
}

/// A parameter of a declaration.
#[derive(Clone, PartialEq, Debug)]
pub struct Param {
    /// Its name.
    pub name: Name,
    /// What sort of parameter.
    pub kind: ParamKind,
    /// The whole parameter.
    pub span: Span,
}

/// The sorts of parameter.
#[derive(Clone, PartialEq, Debug)]
pub enum ParamKind {
    /// `NAME: Type in Expr = Expr`, every part optional.
    Value {
        /// `: Type`
        ty: Option<Type>,
        /// `in Expr`
        domain: Option<Box<Expr>>,
        /// `= Expr`
        default: Option<Box<Expr>>,
    },
    /// `dim NAME = Expr`
    Dim {
        /// `= Expr`
        default: Option<Box<Expr>>,
    },
    /// `NAME[B, S, H]`
    Tensor(Vec<DimRef>),
}

/// One entry of `[B: seq, S, H]`.
#[derive(Clone, PartialEq, Debug)]
pub struct DimRef {
    /// The dimension.
    pub name: Name,
    /// `: unit`
    pub unit: Option<Name>,
}

/// A type as written: `Int`, `List<Op>`.
#[derive(Clone, PartialEq, Debug)]
pub struct Type {
    /// Its name.
    pub name: Name,
    /// `<…>`
    pub arg: Option<Box<Type>>,
    /// The whole type.
    pub span: Span,
}

/// What `->` announces.
#[derive(Clone, PartialEq, Debug)]
pub enum Ret {
    /// `-> Time`
    Type(Type),
    /// `-> [B, S, H]`: the dimensions of a block's or op's result.
    Dims(Vec<Type>, Span),
}
