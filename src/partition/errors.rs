//! Wording of everything partitioning has to say.

use crate::diagnostics::{Applicability, Code, Diagnostic};
use crate::source::Span;

/// A rule none of whose dimensions exist.
pub(super) fn rule_idle(rule: Span, dims: &[String], known: &[&str]) -> Diagnostic {
    let meant = dims.iter().find_map(|d| known.iter().find(|k| k.eq_ignore_ascii_case(d)));
    let list = dims.iter().map(|d| format!("`{d}`")).collect::<Vec<_>>().join(", ");
    let d = Diagnostic::new(
        Code::RuleIdle,
        format!("this rule matches nothing: the model has no dimension {list}"),
        rule,
        "shards nothing",
    );
    match meant {
        Some(name) => d.help(format!("`{name}` exists")),
        None => d,
    }
}

/// A mesh axis nothing speaks of.
///
/// `meant` is an item that would use it, and the mesh it would stand below.
pub(super) fn axis_idle(axis: Span, name: &str, meant: Option<(String, Span)>) -> Diagnostic {
    let message = format!("mesh axis `{name}` does nothing: nothing is split over it");
    let d = Diagnostic::new(Code::AxisIdle, message, axis, "named by no `shard`, `store` or `pipeline`");
    match meant {
        Some((item, mesh)) => d.help(format!("`{item}` uses it")).fix(
            format!("add `{item}`"),
            Span { start: mesh.end, ..mesh },
            format!("\n  {item}"),
            Applicability::Unsure,
        ),
        None => d,
    }
}

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

/// A class is stored over an axis its use is already split over.
pub(super) fn store_conflict(store: Span, axis: &str, param: &str, dim: &str, rule: Option<Span>) -> Diagnostic {
    let message = format!("`{param}` is already split over `{axis}` in use");
    let mut d = Diagnostic::new(Code::StoreConflict, message, store, "stored over it again");
    if let Some(rule) = rule {
        d = d.label(rule, format!("`{axis}` splits `{dim}` here"));
    }
    d.help(format!("leave `{axis}` out of this `store`, or give these parameters a `store` of their own inside `in`"))
}

/// Attention over a sharded sequence without a method.
pub(super) fn attention_method(op: Span, seq: &str, axis: &str, rule: Option<Span>) -> Diagnostic {
    let message = format!("attention needs all of `{seq}`, and `{axis}` splits it");
    let item = format!("attention over {axis} via ring(zigzag)");
    let help = format!("add `{item}`");
    match rule {
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
