//! Wording of what goes wrong while an expression is evaluated.

use crate::diagnostics::{Applicability, Code, Diagnostic, nearest};
use crate::source::Span;
use crate::syntax::ast::BinaryOp;
use crate::units::{Unit, UnitError};
use crate::words;

pub(crate) fn unknown_name(name: &str, span: Span, known: &[String]) -> Diagnostic {
    let d = Diagnostic::new(Code::NameUnknown, format!("no `{name}` is known here"), span, "not known");
    match nearest(name, known.iter().map(String::as_str)) {
        Some(near) => d.offer(near, span),
        // Other tools' words look like `gpu_memory_utilization`, `zero3`; a plain word may be anybody's.
        None if name.contains(|c: char| c == '_' || c.is_ascii_digit()) => match words::find(name) {
            Some(entry) => d.help(format!("`parc explain {name}` says how {} is written here", entry.title_inside())),
            None => d,
        },
        None => d,
    }
}

pub(crate) fn unknown_unit(error: &UnitError, span: Span) -> Diagnostic {
    let d = Diagnostic::new(Code::UnitUnknown, format!("unknown unit `{}`", error.piece), span, "not a unit");
    let d = match error.note {
        Some(note) => d.note(note),
        None => d,
    };
    match &error.meant {
        Some(meant) => {
            d.help(format!("write `{meant}`")).fix(format!("use `{meant}`"), span, meant.clone(), Applicability::Unsure)
        }
        None => d,
    }
}

/// `a OP b` of different units: both sides are labelled.
pub(crate) fn unit_mismatch(op: BinaryOp, at: Span, left: (&Unit, Span), right: (&Unit, Span)) -> Diagnostic {
    let verb = match op {
        BinaryOp::Add => "added",
        BinaryOp::Sub => "subtracted",
        _ => "compared",
    };
    let (a, b) = (left.0.noun(), right.0.noun());
    Diagnostic::new(Code::UnitMismatch, format!("{a} and {b} cannot be {verb}"), at, format!("`{}`", op.text()))
        .label(left.1, describe(left.0))
        .label(right.1, describe(right.0))
}

fn describe(unit: &Unit) -> String {
    if unit.is_none() { "a plain number".into() } else { format!("{} ({unit})", unit.noun()) }
}

/// A value of one unit where another is needed.
pub(crate) fn wrong_unit(what: &str, wanted: &Unit, found: &Unit, span: Span) -> Diagnostic {
    Diagnostic::new(
        Code::UnitMismatch,
        format!("{what} is {}, not {}", wanted.noun(), found.noun()),
        span,
        format!("this is {}", describe(found)),
    )
}

/// A value of one kind where another is needed.
pub(crate) fn wrong_kind(what: &str, wanted: &str, found: &str, span: Span) -> Diagnostic {
    Diagnostic::new(Code::KindMismatch, format!("{what} needs {wanted}, not {found}"), span, format!("this is {found}"))
}

/// `?` where nothing bounds the choice.
pub(crate) fn nothing_says(name: &str, span: Span) -> Diagnostic {
    Diagnostic::new(Code::HolesOpen, format!("nothing says what `{name}` may be"), span, "an open choice")
        .help(format!("name the choices: `{name} in {{…}}`"))
}

/// A domain without a value.
pub(crate) fn no_values(name: &str, span: Span) -> Diagnostic {
    Diagnostic::new(Code::OutOfRange, format!("`{name}` has nothing to choose from"), span, "an empty domain")
}

/// `--set NAME=TEXT` with a text that the domain of the choice does not hold.
pub(crate) fn not_among(name: &str, text: &str, known: &[String], span: Span) -> Diagnostic {
    let list: Vec<_> = known.iter().map(|k| format!("`{k}`")).collect();
    let d = Diagnostic::new(Code::OutOfRange, format!("`{text}` is not a choice for `{name}`"), span, "its choices")
        .note(format!("there are {}", list.join(", ")));
    match nearest(text, known.iter().map(String::as_str)) {
        Some(near) => d.help(format!("`--set {name}={near}`")),
        None => d,
    }
}

pub(crate) fn operator_kinds(op: BinaryOp, at: Span, left: (&str, Span), right: (&str, Span)) -> Diagnostic {
    Diagnostic::new(
        Code::KindMismatch,
        format!("`{}` does not work on {} and {}", op.text(), left.0, right.0),
        at,
        format!("`{}`", op.text()),
    )
    .label(left.1, left.0.to_string())
    .label(right.1, right.0.to_string())
}

pub(crate) fn inexact(a: i128, b: i128, span: Span) -> Diagnostic {
    let d = Diagnostic::new(
        Code::InexactDivision,
        format!("{a} does not divide by {b}"),
        span,
        format!("a whole number is needed, {a} / {b} = {:.2}", a as f64 / b as f64),
    );
    d.note("`/` of two whole numbers must be exact where a whole number is expected; `div` rounds down, `ceil_div` up")
}

pub(crate) fn division_by_zero(span: Span) -> Diagnostic {
    Diagnostic::new(Code::OutOfRange, "division by zero", span, "this is 0")
}

pub(crate) fn too_large(span: Span) -> Diagnostic {
    Diagnostic::new(Code::LimitExceeded, "a number is larger than 2^100", span, "grows past the limit")
}

pub(crate) fn may_overflow(what: &str, span: Span) -> Diagnostic {
    Diagnostic::new(Code::LimitExceeded, format!("{what} may grow beyond 2^62"), span, "too large to stay exact")
        .note("sizes are counted for every value their parts may take, up to 64 times those of the job")
}

pub(crate) fn out_of_budget(span: Span, limit: u64) -> Diagnostic {
    Diagnostic::new(
        Code::LimitExceeded,
        format!("one declaration evaluates more than {limit} elements"),
        span,
        "stopped here",
    )
}

pub(crate) fn list_too_long(span: Span, found: i128, limit: i128) -> Diagnostic {
    Diagnostic::new(
        Code::LimitExceeded,
        format!("a list of {found} elements is longer than the limit of {limit}"),
        span,
        "too long",
    )
}

pub(crate) fn recursion(span: Span, name: &str) -> Diagnostic {
    Diagnostic::new(Code::Recursion, format!("`{name}` needs itself"), span, "comes back to itself")
        .note("declarations and functions may not be recursive, so that every evaluation ends")
}

pub(crate) fn unknown_argument(name: &str, span: Span, of: &str, known: &[String], decl: Span) -> Diagnostic {
    let d =
        Diagnostic::new(Code::ArgumentWrong, format!("`{of}` has no parameter `{name}`"), span, "no such parameter")
            .label(decl, "declared here");
    match nearest(name, known.iter().map(String::as_str)) {
        Some(near) => d.offer(near, span),
        None if known.is_empty() => d.note(format!("`{of}` takes no arguments")),
        None => d.note(format!("it has {}", known.iter().map(|k| format!("`{k}`")).collect::<Vec<_>>().join(", "))),
    }
}

pub(crate) fn missing_argument(name: &str, of: &str, call: Span, decl: Span) -> Diagnostic {
    Diagnostic::new(Code::ArgumentWrong, format!("`{of}` needs `{name}`"), call, format!("`{name} = …` is missing"))
        .label(decl, "declared here, without a default")
}

pub(crate) fn too_many_arguments(of: &str, takes: usize, span: Span) -> Diagnostic {
    Diagnostic::new(
        Code::ArgumentWrong,
        format!("`{of}` takes {takes} argument{}", if takes == 1 { "" } else { "s" }),
        span,
        "one too many",
    )
}

pub(crate) fn argument_twice(name: &str, span: Span) -> Diagnostic {
    Diagnostic::new(Code::ArgumentWrong, format!("`{name}` is given twice"), span, "given again here")
}

pub(crate) fn unknown_field(name: &str, span: Span, of: &str, known: &[String]) -> Diagnostic {
    let d = Diagnostic::new(Code::FieldUnknown, format!("no field or item `{name}` in {of}"), span, "not known here");
    match nearest(name, known.iter().map(String::as_str)) {
        Some(near) => d.offer(near, span),
        None => {
            d.note(format!("it has {}", known.iter().take(12).map(|k| format!("`{k}`")).collect::<Vec<_>>().join(", ")))
        }
    }
}

pub(crate) fn missing_field(name: &str, of: &str, span: Span) -> Diagnostic {
    Diagnostic::new(Code::FieldMissing, format!("{of} needs a field `{name}`"), span, format!("`{name}` is missing"))
}

/// Rows of a table whose keys do not grow: the key before and the one that does not follow it.
pub(crate) fn rows_unordered(unit: &Unit, before: (f64, Span), after: (f64, Span)) -> Diagnostic {
    let show = |v| crate::units::show(v, unit);
    Diagnostic::new(
        Code::TableRows,
        format!("the keys of a table increase: {} comes after {}", show(after.0), show(before.0)),
        after.1,
        "not above the key before",
    )
    .label(before.1, format!("the row before has {}", show(before.0)))
}

/// Sizes of a torus against the children of its level: `count` and `last` are the places of the number of children and of
/// the last size, where they are written out.
pub(crate) fn torus_sizes(
    span: Span,
    sizes: &[i128],
    product: i128,
    children: i128,
    count: Option<Span>,
    last: Option<Span>,
) -> Diagnostic {
    let shown: Vec<String> = sizes.iter().map(ToString::to_string).collect();
    let mut d = Diagnostic::new(
        Code::ClusterShape,
        format!("the torus has {} = {product} places, the level has {children}", shown.join(" × ")),
        span,
        format!("{product} places"),
    );
    if let Some(count) = count {
        d = d.label(count, format!("{children} children"));
    }
    let others: i128 = sizes.iter().rev().skip(1).product();
    let whole = others > 0 && children % others == 0;
    d = if whole {
        d.help(format!("a last size of {} gives {children}", children / others))
    } else {
        d.help("the sizes must multiply to the number of children")
    };
    if let Some(last) = last.filter(|_| whole) {
        let size = (children / others).to_string();
        d = d.fix(format!("make the last size {size}"), last, size, Applicability::Unsure);
    }
    if let Some(count) = count.filter(|_| product > 0) {
        d = d.fix(format!("make it {product} children"), count, product.to_string(), Applicability::Unsure);
    }
    d
}

/// Something the language has and this version of the compiler does not do.
pub(crate) fn not_supported(what: &str, span: Span) -> Diagnostic {
    Diagnostic::new(Code::NotSupported, format!("not supported yet: {what}"), span, "not compiled yet")
}

/// `usable` above `memory` of a device, both in bytes.
pub(crate) fn usable_above_memory(usable: f64, memory: f64, span: Span) -> Diagnostic {
    let show = |x| crate::units::show(x, &Unit::bytes());
    let message = format!("`usable` of {} is more than `memory` of {}", show(usable), show(memory));
    Diagnostic::new(Code::OutOfRange, message, span, "more than there is")
}

/// A distribution whose parameters make none; `takes` are its parameters.
pub(crate) fn not_distributed(word: &str, why: &str, takes: &str, span: Span) -> Diagnostic {
    Diagnostic::new(Code::ArgumentWrong, format!("`{word}` {why}"), span, "not a distribution")
        .note(format!("it takes `{takes}`"))
}
