//! What is known of an expression without evaluating it.

use crate::eval::type_unit;
use crate::hir::ModuleId;
use crate::syntax::ast::{Decl, Kind};
use crate::units::{Base, Unit};
use smol_str::SmolStr;
use std::rc::Rc;

/// Whether a number is whole.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Whole {
    /// Surely.
    Yes,
    /// Surely not, or not by its declared type.
    No,
    /// Only its value tells.
    Maybe,
}

/// The kind of an expression. `Unknown` silences: a false error is worse than a missed one.
#[derive(Clone, Debug)]
pub(super) enum Ty<'p> {
    /// A number of this unit.
    Number { unit: Unit, whole: Whole },
    /// True or false.
    Bool,
    /// Text.
    Text,
    /// A list of such values.
    List(Rc<Ty<'p>>),
    /// `a..b`
    Range,
    /// `{a = …}`
    Record(Rc<Vec<(SmolStr, Ty<'p>)>>),
    /// What a declaration stands for.
    Thing(Thing<'p>),
    /// A value the compiler makes: `Group`, `Span`, `Compute`, `Tier`.
    Made(&'static str),
    /// A function or table.
    Func { decl: &'p Decl, module: ModuleId },
    /// A fixed word without arguments.
    Word(SmolStr),
    /// `n * LINK`
    Links,
    /// An operation of a schedule.
    Op,
    /// A distribution over numbers of this unit.
    Dist(Unit),
    /// A value of a model.
    Tensor,
    /// Not known, or wrong and reported.
    Unknown,
}

/// A declaration as a value.
#[derive(Copy, Clone, Debug)]
pub(super) struct Thing<'p> {
    /// Its keyword.
    pub(super) kind: Kind,
    /// The declaration whose block says what it has; none where only the keyword is known.
    pub(super) decl: Option<&'p Decl>,
    /// The name a user knows it by.
    pub(super) name: Option<&'p SmolStr>,
    /// Whether its parameters were given.
    pub(super) applied: bool,
    /// The declaration it was named by, and its file: `model Mine = Base with { … }` gives arguments of `Base`.
    pub(super) made: Option<(&'p Decl, ModuleId)>,
}

impl Ty<'_> {
    pub(super) fn number(unit: Unit) -> Self {
        Self::Number { unit, whole: Whole::Maybe }
    }

    pub(super) fn int() -> Self {
        Self::Number { unit: Unit::none(), whole: Whole::Yes }
    }

    /// Something of this kind, no declaration known.
    pub(super) fn thing(kind: Kind) -> Self {
        Self::Thing(Thing { kind, decl: None, name: None, applied: true, made: None })
    }

    pub(super) fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown | Self::Tensor)
    }

    /// What a user calls it, in the words evaluation uses.
    pub(super) fn noun(&self) -> String {
        match self {
            Self::Number { unit, whole: Whole::Yes } if unit.is_none() => "a whole number".into(),
            Self::Number { unit, .. } if unit.is_none() => "a number".into(),
            Self::Number { unit, .. } => unit.noun(),
            Self::Bool => "true or false".into(),
            Self::Text => "text".into(),
            Self::List(_) => "a list".into(),
            Self::Range => "a range".into(),
            Self::Record(_) => "a record".into(),
            Self::Thing(t) => match t.name {
                Some(name) => format!("the {} `{name}`", t.kind.keyword()),
                None => format!("{} {}", article(t.kind.keyword()), t.kind.keyword()),
            },
            Self::Made(name) => format!("a `{name}`"),
            Self::Func { decl, .. } if decl.kind == Kind::Table => format!("the table `{}`", decl.name.text),
            Self::Func { decl, .. } => format!("the function `{}`", decl.name.text),
            Self::Word(w) => format!("the word `{w}`"),
            Self::Links => "links".into(),
            Self::Op => "a schedule operation".into(),
            Self::Dist(unit) => format!("a distribution of {}", unit.noun()),
            Self::Tensor => "a tensor".into(),
            Self::Unknown => "an unknown value".into(),
        }
    }
}

/// "a" or "an".
pub(super) fn article(word: &str) -> &'static str {
    if word.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" }
}

/// Type names that are not numbers, for checks of spelling.
const OTHER_TYPES: &[&str] = &[
    "Bool",
    "String",
    "List",
    "Dist",
    "Set",
    "Record",
    "Device",
    "Link",
    "Links",
    "Group",
    "Span",
    "Host",
    "Layout",
    "Schedule",
    "Op",
    "Precision",
    "Dtype",
    "Optimizer",
    "Compute",
    "Tier",
    "Cluster",
    "Model",
    "Block",
    "Cost",
    "Topology",
    "Table",
];
const NUMBER_TYPES: &[&str] = &[
    "Int",
    "Real",
    "Ratio",
    "Bytes",
    "Time",
    "Flop",
    "Energy",
    "Power",
    "Money",
    "Bandwidth",
    "FlopRate",
    "Frequency",
    "Price",
    "PricePerByte",
    "EnergyPerByte",
    "Tok",
    "Seq",
    "Req",
    "Step",
];

/// Every type name of the language.
pub(super) fn type_names() -> impl Iterator<Item = &'static str> {
    NUMBER_TYPES.iter().chain(OTHER_TYPES).copied()
}

/// The type called `name`; none if there is no such type. `user` are the units the program declares.
pub(super) fn named<'p>(name: &str, arg: Option<&Ty<'p>>, user: &[SmolStr]) -> Option<Ty<'p>> {
    if let Some(unit) = type_unit(name) {
        let whole = match name {
            "Int" => Whole::Yes,
            "Real" | "Ratio" => Whole::No,
            _ => Whole::Maybe,
        };
        return Some(Ty::Number { unit, whole });
    }
    Some(match name {
        "Bool" => Ty::Bool,
        "String" => Ty::Text,
        "List" => Ty::List(Rc::new(arg.cloned().unwrap_or(Ty::Unknown))),
        "Op" => Ty::Op,
        "Dist" => match arg {
            Some(Ty::Number { unit, .. }) => Ty::Dist(unit.clone()),
            _ => Ty::Unknown,
        },
        "Device" => Ty::thing(Kind::Device),
        "Link" => Ty::thing(Kind::Link),
        "Host" => Ty::thing(Kind::Host),
        "Layout" => Ty::thing(Kind::Layout),
        "Schedule" => Ty::thing(Kind::Schedule),
        "Precision" => Ty::thing(Kind::Precision),
        "Dtype" => Ty::thing(Kind::Dtype),
        "Optimizer" => Ty::thing(Kind::Optimizer),
        "Cluster" => Ty::thing(Kind::Cluster),
        "Model" => Ty::thing(Kind::Model),
        "Cost" => Ty::thing(Kind::Cost),
        "Group" => Ty::Made("Group"),
        "Span" => Ty::Made("Span"),
        "Compute" => Ty::Made("Compute"),
        "Tier" => Ty::Made("Tier"),
        _ if OTHER_TYPES.contains(&name) => Ty::Unknown,
        _ => {
            let unit = user.iter().find(|u| camel(u) == name)?;
            Ty::number(Unit::base(Base::User(unit.clone())))
        }
    })
}

/// `Img` for `unit img`.
fn camel(unit: &str) -> String {
    let mut chars = unit.chars();
    chars.next().map_or_else(String::new, |c| c.to_ascii_uppercase().to_string() + chars.as_str())
}

/// The fields of a value the compiler makes, with their types.
pub(super) fn made_fields(name: &str) -> &'static [(&'static str, &'static str)] {
    match name {
        "Group" => &[
            ("size", "Int"),
            ("latency", "Time"),
            ("bandwidth", "Bandwidth"),
            ("spans", "List"),
            ("sharing", "Int"),
            ("in_network", "Bool"),
        ],
        "Span" => &[
            ("fanout", "Int"),
            ("link", "Link"),
            ("links", "Int"),
            ("topology", "Topology"),
            ("below", "Int"),
            ("members", "Int"),
            ("bandwidth", "Bandwidth"),
            ("latency", "Time"),
            ("sharing", "Int"),
            ("in_network", "Bool"),
            ("network", "Bool"),
            ("directions", "Int"),
            ("ways", "Int"),
            ("hops", "Int"),
        ],
        "Compute" => {
            &[("dtype", "Dtype"), ("accumulate", "Dtype"), ("peak", "FlopRate"), ("bytes", "Real"), ("scale", "Table")]
        }
        "Tier" => &[("kind", "Table"), ("bandwidth", "Bandwidth"), ("latency", "Time")],
        _ => &[],
    }
}

/// The name of a type as a user writes it, where there is one.
pub(super) fn type_name(ty: &Ty<'_>) -> Option<&'static str> {
    match ty {
        Ty::Number { unit, whole: Whole::Yes } if unit.is_none() => Some("Int"),
        Ty::Number { unit, .. } if unit.is_none() => Some("Real"),
        Ty::Number { unit, .. } => NUMBER_TYPES.iter().copied().find(|n| type_unit(n).as_ref() == Some(unit)),
        Ty::Bool => Some("Bool"),
        _ => None,
    }
}
