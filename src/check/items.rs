//! Which item form belongs in which declaration: one table.

use crate::source::Span;
use crate::syntax::ast::{Item, ItemKind, Kind};

/// Where a block stands.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// Directly in a declaration.
    Decl(Kind),
    /// In `region` or `repeat` of a model or block.
    Region(Kind),
    /// In `in SEL {…}` of a declaration.
    Within(Kind),
    /// In `part NAME on … {…}`.
    Part,
    /// In the block of an item or in a section, by its first word.
    Section(&'static str),
}

impl Place {
    /// "a model", "`in` of a layout".
    pub(super) fn noun(self) -> String {
        let of = |k: Kind| {
            let job = if is_job(k) && k != Kind::Workflow { " job" } else { "" };
            format!("{} {}{job}", super::ty::article(k.keyword()), k.keyword())
        };
        match self {
            Self::Decl(k) => of(k),
            Self::Region(_) => "a region".into(),
            Self::Within(k) => format!("an `in` of {}", of(k)),
            Self::Part => "a part".into(),
            Self::Section(word) => format!("`{word} {{…}}`"),
        }
    }

    /// The word the schema knows it by.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Decl(k) | Self::Region(k) | Self::Within(k) => k.keyword(),
            Self::Part => "part",
            Self::Section(word) => word,
        }
    }

    /// The declaration this is in, if its kind is known from the place.
    fn kind(self) -> Option<Kind> {
        match self {
            Self::Decl(k) | Self::Region(k) | Self::Within(k) => Some(k),
            Self::Part => Some(Kind::Layout),
            Self::Section(_) => None,
        }
    }
}

/// Words that begin an item of a layout.
pub(super) const LAYOUT_ITEMS: &[&str] = &[
    "mesh",
    "axis",
    "fold",
    "place",
    "part",
    "shard",
    "replicate",
    "store",
    "reduce",
    "pad",
    "recompute",
    "pipeline",
    "overlap",
    "update",
    "in",
    "require",
];
/// Words that begin an item of a job.
pub(super) const JOB_ITEMS: &[&str] = &["let", "require", "expect", "minimize", "maximize", "in", "dims"];

pub(super) fn is_job(kind: Kind) -> bool {
    matches!(kind, Kind::Train | Kind::Finetune | Kind::Serve | Kind::Workflow)
}

pub(super) fn is_model(kind: Kind) -> bool {
    matches!(kind, Kind::Model | Kind::Block)
}

/// Kinds that are fields and little else.
fn is_plain(kind: Kind) -> bool {
    matches!(kind, Kind::Device | Kind::Host | Kind::Link | Kind::Dtype | Kind::Table | Kind::Op)
}

/// A form that is in the wrong declaration.
pub(super) struct Misplaced {
    /// Its word, as the user wrote it.
    pub(super) word: String,
    /// The word's place.
    pub(super) span: Span,
    /// Where it belongs.
    pub(super) home: &'static str,
}

/// Whether `item` may not stand in `place`; fields, sections and nested declarations are looked at elsewhere.
pub(super) fn misplaced(item: &Item, place: Place) -> Option<Misplaced> {
    let kind = place.kind();
    let layout = kind == Some(Kind::Layout);
    let model = kind.is_some_and(is_model);
    let job = kind.is_some_and(is_job);
    let direct = matches!(place, Place::Decl(_));
    let head = |word: &str| Span { end: item.span.start + word.len() as u32, ..item.span };
    let (word, home, fits) = match &item.kind {
        ItemKind::Mesh(_) => ("mesh", "a layout", layout),
        ItemKind::Axis { .. } => ("axis", "a layout", layout),
        ItemKind::Fold { .. } => ("fold", "a layout", layout),
        ItemKind::Place { .. } => ("place", "a layout", layout),
        ItemKind::Part { .. } => ("part", "a layout", layout && place != Place::Part),
        ItemKind::Shard { .. } => ("shard", "a layout", layout),
        ItemKind::Replicate { .. } => ("replicate", "a layout", layout),
        ItemKind::Store { .. } => ("store", "a layout", layout),
        ItemKind::Reduce { .. } => ("reduce", "a layout", layout),
        ItemKind::Pad { .. } => ("pad", "a layout", layout),
        ItemKind::Recompute(_) => ("recompute", "a layout", layout),
        ItemKind::Pipeline { .. } => ("pipeline", "a layout", layout),
        ItemKind::Overlap { .. } => ("overlap", "a layout", layout),
        ItemKind::Via { op, .. } => (op.text.as_str(), "a layout", layout),
        ItemKind::Level { .. } => ("level", "a cluster", place == Place::Decl(Kind::Cluster)),
        ItemKind::Dims(_) => ("dims", "a model or a job", model || (job && direct)),
        ItemKind::Input { .. } => ("input", "a model", place == Place::Decl(Kind::Model)),
        ItemKind::Region { .. } => ("region", "a model", model),
        ItemKind::Repeat { .. } => ("repeat", "a model", model),
        ItemKind::Return(_) => ("return", "a function or a block", model || kind == Some(Kind::Fn)),
        ItemKind::Objective { maximize, .. } => {
            (if *maximize { "maximize" } else { "minimize" }, "a job", job && direct)
        }
        ItemKind::Expect { .. } => ("expect", "a job", job && direct),
        ItemKind::Require { .. } => {
            let elsewhere = matches!(kind, Some(Kind::Schedule | Kind::Cluster));
            ("require", "a job, a layout or a schedule", model || layout || (job && direct) || (elsewhere && direct))
        }
        ItemKind::In { .. } => ("in", "a layout, a precision or a job", layout || job || kind == Some(Kind::Precision)),
        ItemKind::If { .. } => ("if", "a model or a layout", layout || model),
        ItemKind::Let(_) => {
            let pure = matches!(kind, Some(Kind::Unit | Kind::Table)) || matches!(place, Place::Section(_));
            ("let", "a function, a model, a layout or a job", !pure)
        }
        ItemKind::Domain { name, .. } => {
            (name.text.as_str(), "a job", !model && !matches!(kind, Some(Kind::Fn | Kind::Cost | Kind::Cluster)))
        }
        ItemKind::Assign { target, .. } => {
            let index = target.suffixes.iter().any(|s| matches!(s, crate::syntax::ast::TargetSuffix::Index(_)));
            return (index && !model).then(|| Misplaced {
                word: target.name.text.to_string(),
                span: target.span,
                home: "a model",
            });
        }
        ItemKind::Decl(d) => {
            let word = d.kind.keyword();
            let home = if d.kind == Kind::Fn { "a cost model, a schedule or the top level" } else { "the top level" };
            let fits =
                d.kind == Kind::Fn && direct && matches!(kind, Some(Kind::Cost | Kind::Schedule | Kind::Optimizer));
            (word, home, fits)
        }
        ItemKind::Section { .. } | ItemKind::Error => return None,
    };
    if fits || (kind.is_none() && !matches!(place, Place::Section(_))) {
        return None;
    }
    // A section has fields only, a plain declaration too.
    debug_assert!(kind.is_none_or(|k| !is_plain(k) || !fits));
    let span = match &item.kind {
        ItemKind::Via { op, .. } => op.span,
        ItemKind::Domain { name, .. } => name.span,
        _ => head(word),
    };
    Some(Misplaced { word: word.to_string(), span, home })
}

/// Sections a declaration may have.
pub(super) fn sections(place: Place) -> &'static [&'static str] {
    match place {
        Place::Decl(Kind::Train | Kind::Finetune) => &["checkpoint", "failures", "layout"],
        Place::Decl(Kind::Serve) => &["pool", "edge", "layout"],
        Place::Decl(Kind::Workflow) => &["role", "edge"],
        Place::Decl(Kind::Layout) | Place::Within(Kind::Layout) | Place::Part => &["update"],
        Place::Section("pool") => &["layout"],
        Place::Decl(_) | Place::Region(_) | Place::Within(_) | Place::Section(_) => &[],
    }
}
