//! Wording of what commands report that no stage does.

use super::output::OutputError;
use crate::diagnostics::{Code, Diagnostic, nearest};
use crate::emit::targets::TargetError;
use crate::source::Span;
use std::fmt::Display;

fn listed(names: &[&str]) -> String {
    names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")
}

/// A job that no file declares.
pub(super) fn job_unknown(name: &str, known: &[&str], file: Span) -> Diagnostic {
    let d = Diagnostic::new(Code::NameUnknown, format!("no job `{name}` is declared"), file, "in this file");
    let d = match nearest(name, known.iter().copied()) {
        Some(near) => d.help(format!("`{near}` exists")),
        None => d,
    };
    if known.is_empty() { d.note("it declares no job") } else { d.note(format!("it declares {}", listed(known))) }
}

/// Files without a job, where one is needed.
pub(super) fn job_missing(file: Span) -> Diagnostic {
    Diagnostic::new(Code::FieldMissing, "no job is declared", file, "in this file")
        .help("a job says what runs where: `train mine { model = …, cluster = …, layout = … }`")
}

/// Several jobs where one is needed; `how` says how one is named.
pub(super) fn jobs_several(how: &str, names: &[&str], second: Span) -> Diagnostic {
    Diagnostic::new(Code::HolesOpen, "the file has several jobs, one is needed", second, "another job")
        .help(format!("{how}: {}", listed(names)))
}

/// A search of a job that leaves nothing open.
pub(super) fn nothing_open(job: &str, span: Span) -> Diagnostic {
    Diagnostic::new(Code::HolesOpen, format!("`{job}` has no open choice"), span, "nothing to search")
        .help("write `tp = ?` or `micro_batch in {1 seq, 2 seq}` where something may be chosen")
}

/// A plan that would list too many ranks.
pub(super) fn too_many_ranks(ranks: i64, limit: i64, job: Span) -> Diagnostic {
    let message = format!("a plan of {ranks} ranks exceeds the limit of {limit}");
    Diagnostic::new(Code::LimitExceeded, message, job, "this job")
}

/// No LLVM, or nothing it can compile.
pub(super) fn not_compiled(why: impl Display, job: Span) -> Diagnostic {
    Diagnostic::new(Code::NotSupported, format!("no compiled evaluator: {why}"), job, "this job")
        .help("every number is the same from the interpreter: `parc plan`")
}

/// A folder that cannot be written.
pub(super) fn not_written(why: &OutputError) -> Diagnostic {
    let d = Diagnostic::new(Code::OutputNotWritten, why.to_string(), Span::NOWHERE, "");
    match why {
        OutputError::Changed(_) => d.help("`--force` replaces it; `--out` writes elsewhere"),
        _ => d,
    }
}

/// A shared library that the system's compiler does not link.
pub(super) fn not_linked(why: &str, job: Span) -> Diagnostic {
    Diagnostic::new(Code::OutputNotWritten, format!("the evaluator is not linked: {why}"), job, "this job")
        .help("install a C compiler, or name one in the environment variable `CC`")
}

/// A page that cannot be written.
pub(super) fn page_not_written(path: &dyn Display, why: &dyn Display) -> Diagnostic {
    Diagnostic::new(Code::OutputNotWritten, format!("`{path}` cannot be written: {why}"), Span::NOWHERE, "")
}

/// A file that is no part of a search.
pub(super) fn part_unreadable(path: &dyn Display, why: &dyn Display) -> Diagnostic {
    let message = format!("`{path}` is not what `parc search --part` writes: {why}");
    Diagnostic::new(Code::FileMissing, message, Span::NOWHERE, "")
}

/// Parts of a search that do not make a whole.
pub(super) fn parts_apart(why: &dyn Display) -> Diagnostic {
    Diagnostic::new(Code::FileMissing, format!("these files do not make one search: {why}"), Span::NOWHERE, "")
}

/// A target or launcher that is not known, or not given.
pub(super) fn target_unknown(what: &str, name: Option<&str>, known: &[&str], job: Span) -> Diagnostic {
    let message = match name {
        Some(name) => format!("no {what} `{name}` is known"),
        None => format!("a build needs `--{what}`"),
    };
    let d = Diagnostic::new(Code::TargetUnknown, message, job, "this job");
    match name.and_then(|n| nearest(n, known.iter().copied())) {
        Some(near) => d.help(format!("`--{what} {near}` exists")),
        None => d.help(format!("one of {}", listed(known))),
    }
}

/// A layout that the target cannot run.
pub(super) fn cannot_run(e: &TargetError, at: Span) -> Diagnostic {
    let message = format!("`{}` cannot run this: {}", e.target, e.what);
    Diagnostic::new(Code::TargetCannot, message, at, "not in this target").note(e.why.clone())
}

/// A cluster that the launcher cannot start on.
pub(super) fn cannot_start(launcher: &str, why: impl Display, at: Span) -> Diagnostic {
    Diagnostic::new(Code::TargetCannot, format!("`{launcher}` cannot start this: {why}"), at, "")
}

/// A `parc show` of nothing.
pub(super) fn nothing_shown(span: Span) -> Diagnostic {
    Diagnostic::new(Code::NameUnknown, "nothing to show", span, "")
}

/// A stage that needs more memory than its device has; `message` gives the numbers, `label` what takes most.
pub(super) fn does_not_fit(message: impl Into<String>, span: Span, label: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Code::DoesNotFit, message, span, label)
}
