//! Wording of what is wrong with an imported file.

use crate::diagnostics::{Code, Diagnostic};
use crate::source::Span;

/// Text of the file as a message may show it: short, on one line.
fn shown(text: &str) -> String {
    let cut: String = text.chars().take(60).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(60).is_some() { format!("{cut}…") } else { cut }
}

/// Not JSON: what stands where something else was expected.
pub(super) fn json(expected: &str, span: Span) -> Diagnostic {
    Diagnostic::new(Code::ImportMalformed, format!("the file is not JSON: {expected} is expected here"), span, "")
}

/// A key of one object given twice.
pub(super) fn key_twice(key: &str, span: Span, first: Span) -> Diagnostic {
    Diagnostic::new(Code::ImportMalformed, format!("`{}` is given twice", shown(key)), span, "given again here")
        .label(first, "given first here")
        .note("programs differ in which of the two they take")
}

/// A value of the wrong kind: `hidden_size` is text.
pub(super) fn kind(key: &str, wanted: &str, found: &str, span: Span) -> Diagnostic {
    Diagnostic::new(Code::ImportMalformed, format!("`{key}` is {found}, {wanted} is needed"), span, "")
}

/// A number outside of what it may be.
pub(super) fn range(key: &str, found: &str, allowed: &str, span: Span) -> Diagnostic {
    Diagnostic::new(Code::ImportMalformed, format!("`{key}` is {found}, {allowed} is needed"), span, "")
}

/// A field the architecture cannot do without.
pub(super) fn missing(key: &str, of: &str, span: Span) -> Diagnostic {
    Diagnostic::new(Code::ImportMalformed, format!("`{key}` is missing"), span, format!("a `{of}` has one"))
}

/// A file that names no architecture.
pub(super) fn nameless(span: Span) -> Diagnostic {
    Diagnostic::new(Code::ImportMalformed, "the file names no `model_type`", span, "read as a model's configuration")
        .help("give the `config.json` beside the weights")
}

/// An architecture the library has no model for.
pub(super) fn unknown(model_type: &str, span: Span, known: &[&str]) -> Diagnostic {
    let message = format!("no model of the library is built like `{}`", shown(model_type));
    let d = Diagnostic::new(Code::ImportUnknown, message, span, "this architecture is missing");
    let d = d.note(format!("known are {}", known.join(", ")));
    d.help("write it as a `model` of your own: `parc show Decoder` and the blocks of `std::blocks` are a start")
}

/// A value that changes the model in a way the library's does not have.
pub(super) fn unlike(key: &str, found: &str, why: &str, span: Span) -> Diagnostic {
    let message = format!("`{key}` is {found}: the library's model is not built so");
    Diagnostic::new(Code::ImportUnknown, message, span, why)
}

/// A field that says something the import does not read.
pub(super) fn ignored(key: &str, of: &str, span: Span) -> Diagnostic {
    Diagnostic::new(Code::ImportIgnored, format!("`{}` is not read", shown(key)), span, format!("unknown for `{of}`"))
        .note("if it changes shapes, the imported model lacks that")
}
