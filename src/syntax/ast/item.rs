//! Items of a block, and the small forms they are made of.

use super::{Decl, DimRef, Expr, Name, Type};
use crate::source::Span;
use smol_str::SmolStr;

/// `{ … }` with its items.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Block {
    /// In order.
    pub items: Vec<Item>,
    /// From `{` to `}`.
    pub span: Option<Span>,
}

/// An item of a block.
#[derive(Clone, PartialEq, Debug)]
pub struct Item {
    /// `///` lines above it.
    pub docs: Vec<SmolStr>,
    /// What it says.
    pub kind: ItemKind,
    /// The whole item.
    pub span: Span,
}

/// The item forms.
#[derive(Clone, PartialEq, Debug)]
pub enum ItemKind {
    /// `TARGET = Expr`: a field, or an assignment in a model.
    Assign {
        /// Left of `=`.
        target: Target,
        /// Right of it.
        value: Box<Expr>,
    },
    /// `NAME in Expr`: a field with a domain.
    Domain {
        /// The field.
        name: Name,
        /// Its domain.
        domain: Box<Expr>,
    },
    /// `let NAME …`
    Let(Let),
    /// `NAME { … }` or `NAME NAME { … }` or `KIND { … }`: a section such as `role rollout {…}`, `update {…}`.
    Section {
        /// First word.
        head: Name,
        /// Second word.
        name: Option<Name>,
        /// Its items.
        block: Block,
    },
    /// A declaration inside this one, such as `fn order(…)` in a schedule.
    Decl(Decl),
    /// `require COND else "message"`
    Require {
        /// What must hold.
        cond: Box<Expr>,
        /// `else "…"`
        message: Option<SmolStr>,
    },
    /// `expect Expr`, `expect a ~ b +- c`, `expect a ~ b within r`
    Expect {
        /// The claim, or the left side of `~`.
        value: Box<Expr>,
        /// `~ b` and its tolerance.
        about: Option<(Box<Expr>, Option<Tolerance>)>,
    },
    /// `minimize Expr`, `maximize Expr`
    Objective {
        /// `maximize`.
        maximize: bool,
        /// What.
        value: Box<Expr>,
    },
    /// `if Expr {…} else {…}`
    If {
        /// The condition.
        cond: Box<Expr>,
        /// If it holds.
        then: Block,
        /// If not.
        otherwise: Option<Block>,
    },
    /// `in SELECTORS { … }`
    In {
        /// What it selects.
        selectors: Vec<Selector>,
        /// What holds there.
        block: Block,
    },
    /// `level NAME = CHILD over LINKS { … }`
    Level {
        /// Its name.
        name: Name,
        /// One unlabelled child, or a bracketed list.
        children: Vec<Child>,
        /// `over …`
        over: Box<Expr>,
        /// `{ … }`
        block: Option<Block>,
    },
    /// `dims { … }`
    Dims(Vec<DimDef>),
    /// `input NAME[…]`
    Input {
        /// Its name.
        name: Name,
        /// Its dimensions.
        dims: Vec<DimRef>,
    },
    /// `region NAME { … }`
    Region {
        /// Its name.
        name: Name,
        /// Its items.
        block: Block,
    },
    /// `repeat NAME = Expr as i { … }`
    Repeat {
        /// Its name.
        name: Name,
        /// How often.
        count: Box<Expr>,
        /// `as i`
        index: Option<Name>,
        /// What is repeated.
        block: Block,
    },
    /// `return Expr`
    Return(Box<Expr>),
    /// `mesh [ … ]`
    Mesh(Vec<AxisDef>),
    /// `axis NAME = [dp, cp]`
    Axis {
        /// Its name.
        name: Name,
        /// The product.
        axes: Vec<AxisRef>,
    },
    /// `fold [a, b] as [c = …, d]`
    Fold {
        /// The axes re-read.
        from: Vec<Name>,
        /// As what.
        to: Vec<AxisDef>,
    },
    /// `place AXES on Expr`
    Place {
        /// The axes.
        axes: Vec<AxisRef>,
        /// Where.
        on: Box<Expr>,
    },
    /// `part NAME on Expr for SELECTORS { … }`
    Part {
        /// Its name.
        name: Name,
        /// Its devices.
        on: Box<Expr>,
        /// What runs there.
        selectors: Vec<Selector>,
        /// Its layout.
        block: Block,
    },
    /// `shard NAMES of CLASSES over AXES else NAMES { … }`
    Shard {
        /// The dimensions.
        dims: Vec<Name>,
        /// `of …`
        classes: Vec<Name>,
        /// `over …`
        axes: Vec<AxisRef>,
        /// `else …`
        otherwise: Vec<Name>,
        /// `{ … }`
        block: Option<Block>,
    },
    /// `replicate CLASSES over AXES`
    Replicate {
        /// The classes; none means all.
        classes: Vec<Name>,
        /// `over …`
        axes: Vec<AxisRef>,
    },
    /// `store CLASSES over AXES on TIER as DTYPE { … }`
    Store {
        /// The classes or tensor names.
        classes: Vec<Name>,
        /// `over …`
        axes: Vec<AxisRef>,
        /// `on …`
        on: Option<Box<Expr>>,
        /// `as …`
        as_dtype: Option<Box<Expr>>,
        /// `{ … }`
        block: Option<Block>,
    },
    /// `reduce CLASSES over AXES { … }`
    Reduce {
        /// The classes.
        classes: Vec<Name>,
        /// `over …`
        axes: Vec<AxisRef>,
        /// `{ … }`
        block: Option<Block>,
    },
    /// `pad NAME = Expr`
    Pad {
        /// The dimension.
        dim: Name,
        /// A multiple of what.
        to: Box<Expr>,
    },
    /// `recompute Expr`
    Recompute(Box<Expr>),
    /// `pipeline over AXES { … }`
    Pipeline {
        /// `over …`
        axes: Vec<AxisRef>,
        /// `{ … }`
        block: Option<Block>,
    },
    /// `overlap NAMES over AXES with SELECTORS { … }`
    Overlap {
        /// The kinds of communication.
        comms: Vec<Name>,
        /// `over …`
        axes: Vec<AxisRef>,
        /// `with …`
        with: Vec<Selector>,
        /// `{ … }`
        block: Option<Block>,
    },
    /// `OP over AXES via METHOD`
    Via {
        /// The operator or collective.
        op: Name,
        /// `over …`
        axes: Vec<AxisRef>,
        /// `via …`
        method: Box<Expr>,
    },
    /// What could not be read; reported.
    Error,
}

/// `let NAME: Type = Expr` or `let NAME in Expr`.
#[derive(Clone, PartialEq, Debug)]
pub struct Let {
    /// `///` lines above it (top level only).
    pub docs: Vec<SmolStr>,
    /// Its name.
    pub name: Name,
    /// `: Type`
    pub ty: Option<Type>,
    /// `=` or `in`.
    pub value: LetValue,
    /// The whole item.
    pub span: Span,
}

/// The right side of a `let`.
#[derive(Clone, PartialEq, Debug)]
pub enum LetValue {
    /// `= Expr`
    Is(Box<Expr>),
    /// `in Expr`
    In(Box<Expr>),
}

/// Left of `=` in a block: `peak`, `q[B, S, N]`, `a.b`.
#[derive(Clone, PartialEq, Debug)]
pub struct Target {
    /// The first name; a declaration keyword may name a field.
    pub name: Name,
    /// `[…]` and `.field` after it.
    pub suffixes: Vec<TargetSuffix>,
    /// The whole target.
    pub span: Span,
}

/// What follows the name of a [`Target`].
#[derive(Clone, PartialEq, Debug)]
pub enum TargetSuffix {
    /// `[B, S, H]`
    Index(Vec<Index>),
    /// `.field`
    Field(Name),
}

/// How near `expect a ~ b` must be.
#[derive(Clone, PartialEq, Debug)]
pub enum Tolerance {
    /// `+- c`: absolute, in a's unit.
    Absolute(Box<Expr>),
    /// `within r`: relative.
    Relative(Box<Expr>),
}

/// `n of CHILD`, with an optional label.
#[derive(Clone, PartialEq, Debug)]
pub struct Child {
    /// `label:`
    pub label: Option<Name>,
    /// How many.
    pub count: Box<Expr>,
    /// Of what.
    pub of: Box<Expr>,
    /// The whole child.
    pub span: Span,
}

/// An entry of `dims { … }`.
#[derive(Clone, PartialEq, Debug)]
pub struct DimDef {
    /// The dimension.
    pub name: Name,
    /// `NAME[OTHER]`: ragged over OTHER.
    pub ragged: Option<Name>,
    /// Its extent.
    pub extent: Box<Expr>,
    /// `for OTHER`: grouped under OTHER.
    pub grouped: Option<Name>,
    /// The whole entry.
    pub span: Span,
}

/// An axis of a mesh or fold: `tp`, `dp = 4`.
#[derive(Clone, PartialEq, Debug)]
pub struct AxisDef {
    /// Its name.
    pub name: Name,
    /// `= Expr`; absent where the name is punned.
    pub size: Option<Box<Expr>>,
}

/// `tp`, `llm.tp`.
#[derive(Clone, PartialEq, Debug)]
pub struct AxisRef {
    /// The part, if named.
    pub part: Option<Name>,
    /// The axis.
    pub name: Name,
}

impl AxisRef {
    /// The whole reference.
    pub fn span(&self) -> Span {
        self.part.as_ref().map_or(self.name.span, |p| p.span.to(self.name.span))
    }
}

/// `decoder.*.attention`, `layers[0..4]`, `**.mlp`.
#[derive(Clone, PartialEq, Debug)]
pub struct Selector {
    /// Its parts.
    pub parts: Vec<SelectorPart>,
    /// The whole selector.
    pub span: Span,
}

/// One part of a [`Selector`].
#[derive(Clone, PartialEq, Debug)]
pub enum SelectorPart {
    /// A name, perhaps with an index.
    Name(Name, Option<Index>),
    /// `*`
    One,
    /// `**`
    Any,
}

/// Inside `[…]`.
#[derive(Clone, PartialEq, Debug)]
pub enum Index {
    /// `[e]` (a range is an expression).
    Expr(Box<Expr>),
    /// `[e..]`
    From(Box<Expr>),
}
