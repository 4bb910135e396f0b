//! Wording of what cost functions lack.

use crate::diagnostics::{Code, Diagnostic};
use crate::eval::{Record, Value};
use crate::source::Span;
use crate::units::{Unit, show};

/// A layout asks for an algorithm that the cost model does not have.
pub(in crate::analyse) fn algorithm_unknown(collective: &str, method: &str, known: &[&str], at: Span) -> Diagnostic {
    let mut known: Vec<_> = known.iter().map(|k| format!("`{k}`")).collect();
    known.sort_unstable();
    known.dedup();
    let said = format!("no cost function says what `{collective}` takes by `{method}`");
    let d = Diagnostic::new(Code::FieldMissing, said, at, format!("needs a function `{collective}_{method}`"));
    let d = if known.is_empty() { d } else { d.note(format!("`{collective}` is known by {}", known.join(", "))) };
    d.help(format!(
        "take one of these, or write `fn {collective}_{method}(n: Bytes, g: Group) -> Time` in a `cost` of your own"
    ))
}

/// A device does not compute in the job's formats.
pub(in crate::analyse) fn missing_peak(device: &Record<'_>, dtype: &str, span: Span) -> Diagnostic {
    let known = match device.fields.get("peak") {
        Some(Value::Record(r)) => r.fields.keys().map(|k| format!("`{k}`")).collect::<Vec<_>>().join(", "),
        _ => String::new(),
    };
    Diagnostic::new(
        Code::FieldMissing,
        format!("`{}` has no peak for `{dtype}`", device.name),
        span,
        format!("computes in `{dtype}`"),
    )
    .note(format!("it has peaks for {known}"))
}

/// A cost function that is no function of anything gives no known number of bytes.
pub(in crate::analyse) fn constant_cost(name: &str, at: Span) -> Diagnostic {
    Diagnostic::new(Code::OutOfRange, format!("`{name}` gives no known number of bytes"), at, "bytes for an element")
        .help(format!("write a number: `fn {name}() -> Bytes = 4 B`"))
}

/// A function that no cost record gives.
pub(in crate::analyse) fn cost_missing(name: &str, span: Span) -> Diagnostic {
    Diagnostic::new(Code::FieldMissing, format!("no cost record gives `{name}`"), span, "needed for this job")
}

/// A cost that is no time or no size.
pub(in crate::analyse) fn cost_absurd(name: &str, value: f64, unit: &Unit, job: &str, span: Span) -> Diagnostic {
    let label = if value < 0.0 { "a cost is never below 0" } else { "no cost is so large" };
    Diagnostic::new(Code::OutOfRange, format!("`{name}` gives {}", show(value, unit)), span, label)
        .note(format!("met in job `{job}`"))
}
