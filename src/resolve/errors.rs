//! Wording of what goes wrong with files and names.

use super::read_error_text;
use crate::diagnostics::{Applicability, Code, Diagnostic, nearest};
use crate::source::{ReadError, Span};
use crate::syntax::ast::Name;
use smol_str::SmolStr;

pub(crate) fn unreadable(span: Span, path: &str, why: &ReadError) -> Diagnostic {
    let code = if let ReadError::NotUtf8(_) = why { Code::FileNotText } else { Code::FileMissing };
    let d = Diagnostic::new(code, format!("`{path}` cannot be read: {}", read_error_text(why)), span, "");
    match why {
        ReadError::Directory => d.help(format!("name a file in it, such as `{path}/main.par`")),
        ReadError::NotUtf8(_) => d.help("save the file as UTF-8; a `.par` file is plain text"),
        ReadError::Outside => d.help("a file may use only files in the folder it is compiled from, and below it"),
        ReadError::Missing | ReadError::TooLarge(..) | ReadError::Other(_) => d,
    }
}

pub(super) fn file_empty(span: Span, name: &str) -> Diagnostic {
    Diagnostic::new(Code::FileEmpty, format!("`{name}` declares nothing"), span, "nothing is declared")
        .help("a file begins with `edition 1`; `examples/llama3_8b.par` is one to start from")
}

pub(super) fn edition_missing(span: Span) -> Diagnostic {
    Diagnostic::new(Code::EditionMissing, "the file names no edition", span, "edition 1 is assumed")
        .note("an edition fixes reserved words, defaults and library names, so that a file keeps its meaning")
        .fix("name the edition", span, "edition 1\n", Applicability::Safe)
}

pub(super) fn name_taken(name: &Name, first: Span) -> Diagnostic {
    Diagnostic::new(Code::NameTaken, format!("`{}` is declared twice", name.text), name.span, "declared again here")
        .label(first, "first declared here")
}

pub(super) fn use_too_deep(span: Span) -> Diagnostic {
    Diagnostic::new(Code::LimitExceeded, "files use each other more than 64 deep", span, "the 65th")
}

pub(super) fn use_root(root: &Name) -> Diagnostic {
    Diagnostic::new(Code::ModuleMissing, format!("no module `{}` exists", root.text), root.span, "not a module")
        .help("a path begins with `std`, or with the name of a file in quotes: `use \"site.par\"::{Pod}`")
}

pub(super) fn use_shape(span: Span) -> Diagnostic {
    Diagnostic::new(Code::ModuleMissing, "this `use` names nothing to bring in", span, "a name is missing")
        .help("write `use std::models::Llama3_8B`, `use \"site.par\"::{Pod}` or `use \"site.par\" as site`")
}

/// `first`: the `use` that leads into the circle; `last`: the one that closes it.
pub(super) fn use_cycle(first: Span, last: Span, files: &[&str]) -> Diagnostic {
    let name = files.first().copied().unwrap_or_default();
    let shown = files.iter().map(|f| format!("`{f}`")).collect::<Vec<_>>().join(" → ");
    let d = if first == last {
        Diagnostic::new(Code::Recursion, format!("`{name}` uses itself"), first, "the file it stands in")
    } else {
        let message = format!("`{name}` uses a file that uses it");
        Diagnostic::new(Code::Recursion, message, first, "leads back here").label(last, "closes the circle")
    };
    d.note(format!("the circle is {shown}")).help("move what both need into a third file")
}

pub(super) fn std_module_missing(group: &Name, known: &[SmolStr]) -> Diagnostic {
    let d = Diagnostic::new(
        Code::ModuleMissing,
        format!("the standard library has no module `{}`", group.text),
        group.span,
        "not a module",
    );
    suggest(d, group, known.iter().map(SmolStr::as_str), "modules are")
}

pub(super) fn std_name_missing(name: &Name, group: &Name, known: &[SmolStr]) -> Diagnostic {
    let d = Diagnostic::new(
        Code::NameUnknown,
        format!("`std::{}` has no `{}`", group.text, name.text),
        name.span,
        "not in this module",
    );
    suggest(d, name, known.iter().map(SmolStr::as_str), "it has")
}

pub(super) fn name_missing_in_file(name: &Name, path: &str, known: &[SmolStr]) -> Diagnostic {
    let d = Diagnostic::new(
        Code::NameUnknown,
        format!("`{path}` declares no `{}`", name.text),
        name.span,
        "not declared there",
    );
    suggest(d, name, known.iter().map(SmolStr::as_str), "it declares")
}

pub(super) fn private_name(name: &Name, path: &str) -> Diagnostic {
    Diagnostic::new(Code::NameUnknown, format!("`{}` is private to `{path}`", name.text), name.span, "private")
        .note("a name that starts with `_` is seen only in its own file")
}

fn suggest<'a>(d: Diagnostic, name: &Name, known: impl Iterator<Item = &'a str> + Clone, intro: &str) -> Diagnostic {
    match nearest(&name.text, known.clone()) {
        Some(near) => d.offer(near, name.span),
        None => {
            let all: Vec<_> = known.map(|k| format!("`{k}`")).collect();
            let shown = all.iter().take(8).cloned().collect::<Vec<_>>().join(", ");
            let more = if all.len() > 8 { format!(" and {} more", all.len() - 8) } else { String::new() };
            d.note(format!("{intro} {shown}{more}"))
        }
    }
}
