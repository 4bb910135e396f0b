//! Wording of everything partitioning has to say.

use crate::diagnostics::{Applicability, Code, Diagnostic};
use crate::source::Span;

/// What [`shard_conflict`] tells.
pub(super) struct Conflict {
    /// The parameter, described.
    pub(super) param: String,
    /// The parameter's dimension that the axis splits.
    pub(super) dim: String,
    /// The axis.
    pub(super) axis: String,
    /// The other operand and its dimension on the same axis, described.
    pub(super) other: Option<(String, String)>,
    /// Whether that dimension comes with the data, so that FSDP may have been meant.
    pub(super) data: bool,
    /// Whether the rule speaks of parameters alone.
    pub(super) params_only: bool,
    /// The operation.
    pub(super) op: Span,
    /// The rule that gave the axis to the parameter.
    pub(super) rule: Option<Span>,
}

/// A parameter would have to move to be used.
pub(super) fn shard_conflict(c: &Conflict) -> Diagnostic {
    let message = format!("`{}` is split over `{}` where its use needs it whole", c.param, c.axis);
    let mut d = Diagnostic::new(Code::ShardConflict, message, c.rule.unwrap_or(c.op), "gives the axis away here");
    if c.rule.is_some() {
        d = d.label(c.op, "used here");
    }
    d = d.note(format!("`{}` is given `{}`; a parameter never moves to be used", c.dim, c.axis));
    if let Some((other, dim)) = &c.other {
        d = d.note(format!("`{}` already splits `{dim}` of `{other}`", c.axis));
    }
    if c.data {
        let d = d.help(format!("FSDP keeps the parameter whole in use: `store param over {}`", c.axis));
        match c.rule {
            // Only a rule about parameters alone can be traded for one about rest.
            Some(rule) if c.params_only => {
                let item = format!("store [param, grad, state] over {}", c.axis);
                d.fix(format!("write `{item}`"), rule, item, Applicability::Unsure)
            }
            _ => d,
        }
    } else {
        d.help(format!("name another dimension of the parameter for `{}`, or none", c.axis))
    }
}

/// Two rules of one scope give a parameter axes with ranks in common: `names` are the axis given first and this one.
pub(super) fn same_ranks(rule: Span, earlier: Span, (first, this): (&str, &str), dim: &str, param: &str) -> Diagnostic {
    let message = format!("`{this}` and `{first}` are partly the same ranks, and `{param}` cannot use them twice");
    Diagnostic::new(Code::ShardConflict, message, rule, format!("gives `{dim}` to `{this}`"))
        .label(earlier, format!("gives `{first}` away first"))
        .note(format!("a fold reads the ranks of `{first}` from those of `{this}`, or the other way round"))
        .fix("leave this rule out", rule, "", Applicability::Unsure)
}

/// What [`store_conflict`] tells.
pub(super) struct StoreConflict {
    /// The `store` item.
    pub(super) store: Span,
    /// The axis it names.
    pub(super) axis: String,
    /// The axis the parameter's use is split over, where it has another name.
    pub(super) part: Option<String>,
    /// The parameter, described.
    pub(super) param: String,
    /// The dimension that is split.
    pub(super) dim: String,
    /// The rule that splits it, and its scope, if it stands in one.
    pub(super) rule: Option<(Span, Option<String>)>,
    /// The classes that are stored.
    pub(super) classes: Vec<String>,
    /// The axis that is what is left of `axis`.
    pub(super) left: Option<String>,
}

/// A class is stored over an axis its use is already split over.
pub(super) fn store_conflict(c: &StoreConflict) -> Diagnostic {
    let split = match &c.part {
        Some(part) => format!("`{part}`, part of `{}`,", c.axis),
        None => format!("`{}`", c.axis),
    };
    let message = format!("`{}` is already split over {split} in use", c.param);
    let mut d = Diagnostic::new(Code::StoreConflict, message, c.store, "stored over it again");
    if let Some((rule, _)) = &c.rule {
        d = d.label(*rule, format!("`{}` splits `{}` here", c.part.as_ref().unwrap_or(&c.axis), c.dim));
    }
    match (&c.left, &c.rule) {
        (Some(left), Some((rule, Some(scope)))) => {
            let classes = match &c.classes[..] {
                [one] => one.clone(),
                many => format!("[{}]", many.join(", ")),
            };
            let item = format!("store {classes} over {left}");
            d.note(format!("what is left of `{}` for these parameters is `{left}`", c.axis))
                .help(format!("add `{item}` to `in {scope}`"))
                .fix(
                    format!("add `{item}`"),
                    Span { start: rule.end, ..*rule },
                    format!("\n    {item}"),
                    Applicability::Unsure,
                )
        }
        _ => d.help(format!(
            "leave `{}` out of this `store`, or give these parameters a `store` of their own inside `in`",
            c.axis
        )),
    }
}

/// Attention over a sharded sequence without a method. `meant`: the rule an `else` was meant for.
pub(super) fn attention_method(op: Span, seq: &str, axis: &str, rule: Option<Span>, meant: Option<Span>) -> Diagnostic {
    let message = format!("attention needs all of `{seq}`, and `{axis}` splits it");
    let item = format!("attention over {axis} via ring(zigzag)");
    let help = format!("add `{item}`");
    match rule {
        Some(rule) if meant.is_some() => {
            let d = Diagnostic::new(Code::AttentionMethod, message, rule, format!("`{axis}` splits `{seq}` here"))
                .label(op, "each query meets every key")
                .note("the first rule that applies decides an axis, so this one decides for queries and keys too")
                .help(format!(
                    "`else {seq}` gives `{axis}` to `{seq}` where a tensor has none of the dimensions before it"
                ));
            let end = meant.map(|m| Span { start: m.end, ..m });
            let edits = std::iter::once((rule, String::new())).chain(end.map(|e| (e, format!(" else {seq}"))));
            d.edits(format!("write `else {seq}` behind the rule of the weights"), edits.collect())
        }
        Some(rule) => Diagnostic::new(Code::AttentionMethod, message, rule, format!("`{axis}` splits `{seq}` here"))
            .label(op, "each query meets every key")
            .fix(help, Span { start: rule.end, ..rule }, format!("\n  {item}"), Applicability::Unsure),
        None => Diagnostic::new(Code::AttentionMethod, message, op, "each query meets every key").help(help),
    }
}

/// A variable that leaves an iteration placed otherwise than it entered the first.
pub(super) fn carried_otherwise(span: Span, value: &str, unit: &str) -> Diagnostic {
    let what = format!("`{value}` leaves an iteration of `{unit}` split otherwise than it enters the first");
    not_supported(span, &what).help(format!("give `{value}` the same rules before and inside `{unit}`"))
}

/// Something the language allows and the compiler does not do yet.
pub(super) fn not_supported(span: Span, what: &str) -> Diagnostic {
    Diagnostic::new(Code::NotSupported, format!("not supported yet: {what}"), span, "")
}
