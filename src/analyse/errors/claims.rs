//! Wording of claims that do not hold.

use crate::diagnostics::{Code, Diagnostic};
use crate::source::Span;

/// A `require` that does not hold: its own message, or its text; `found` is what is so.
pub(in crate::analyse) fn require_failed(own: Option<&str>, text: &str, found: &str, span: Span) -> Diagnostic {
    let message = own.map_or_else(|| format!("the requirement `{text}` does not hold"), str::to_owned);
    Diagnostic::new(Code::RequireFailed, message, span, found)
}

/// An `expect` that does not hold.
pub(in crate::analyse) fn expect_failed(text: &str, found: &str, span: Span) -> Diagnostic {
    let message = format!("the expectation `{text}` does not hold");
    Diagnostic::new(Code::ExpectFailed, message, span, found)
}
