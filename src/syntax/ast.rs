//! The syntax tree: what was written, with a span on every node. No meaning.

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
    Expr(Expr),
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
        domain: Option<Expr>,
        /// `= Expr`
        default: Option<Expr>,
    },
    /// `dim NAME = Expr`
    Dim {
        /// `= Expr`
        default: Option<Expr>,
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
        value: Expr,
    },
    /// `NAME in Expr`: a field with a domain.
    Domain {
        /// The field.
        name: Name,
        /// Its domain.
        domain: Expr,
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
        cond: Expr,
        /// `else "…"`
        message: Option<SmolStr>,
    },
    /// `expect Expr`, `expect a ~ b +- c`, `expect a ~ b within r`
    Expect {
        /// The claim, or the left side of `~`.
        value: Expr,
        /// `~ b` and its tolerance.
        about: Option<(Expr, Option<Tolerance>)>,
    },
    /// `minimize Expr`, `maximize Expr`
    Objective {
        /// `maximize`.
        maximize: bool,
        /// What.
        value: Expr,
    },
    /// `if Expr {…} else {…}`
    If {
        /// The condition.
        cond: Expr,
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
        over: Expr,
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
        count: Expr,
        /// `as i`
        index: Option<Name>,
        /// What is repeated.
        block: Block,
    },
    /// `return Expr`
    Return(Expr),
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
        on: Expr,
    },
    /// `part NAME on Expr for SELECTORS { … }`
    Part {
        /// Its name.
        name: Name,
        /// Its devices.
        on: Expr,
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
        on: Option<Expr>,
        /// `as …`
        as_dtype: Option<Expr>,
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
        to: Expr,
    },
    /// `recompute Expr`
    Recompute(Expr),
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
        method: Expr,
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
    Is(Expr),
    /// `in Expr`
    In(Expr),
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
    Absolute(Expr),
    /// `within r`: relative.
    Relative(Expr),
}

/// `n of CHILD`, with an optional label.
#[derive(Clone, PartialEq, Debug)]
pub struct Child {
    /// `label:`
    pub label: Option<Name>,
    /// How many.
    pub count: Expr,
    /// Of what.
    pub of: Expr,
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
    pub extent: Expr,
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
    pub size: Option<Expr>,
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
    Expr(Expr),
    /// `[e..]`
    From(Expr),
}

/// An expression.
#[derive(Clone, PartialEq, Debug)]
pub struct Expr {
    /// What it says.
    pub kind: ExprKind,
    /// Where.
    pub span: Span,
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
    pub over: Expr,
    /// `if …`
    pub cond: Option<Expr>,
}

/// An argument of a call.
#[derive(Clone, PartialEq, Debug)]
pub enum Arg {
    /// `e`
    Positional(Expr),
    /// `name = e`
    Named(Name, Expr),
    /// `name in e`
    Domain(Name, Expr),
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
