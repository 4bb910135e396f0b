//! Wording of what is wrong with an imported launch: a script, a configuration.

use super::shown;
use crate::diagnostics::{Code, Diagnostic};
use crate::source::Span;
/// Something of a script that is not closed.
pub(in crate::import) fn unclosed(what: &str, span: Span) -> Diagnostic {
    Diagnostic::new(Code::ImportMalformed, format!("{what} is not closed"), span, "opened here")
}

/// Brackets deeper than anyone writes.
pub(in crate::import) fn nested(span: Span) -> Diagnostic {
    Diagnostic::over_limit("brackets in brackets", "more", crate::limits::IMPORT_NESTING, span)
}

/// More of something than the import holds.
pub(in crate::import) fn too_much(what: &str, limit: usize, span: Span) -> Diagnostic {
    Diagnostic::over_limit(what, "more", limit, span)
}

/// Values added to a variable under a condition.
pub(in crate::import) fn conditional(name: &str, span: Span) -> Diagnostic {
    let message = format!("what is added to `{}` under a condition is not read", shown(name));
    Diagnostic::new(Code::ImportIgnored, message, span, "only running the script tells whether it is")
}

/// Options that the shell never hands over, since the command ended before them.
pub(in crate::import) fn dropped(count: usize, span: Span, end: Span) -> Diagnostic {
    let message = format!("{count} options are not part of the command");
    let d = Diagnostic::new(Code::ImportIgnored, message, span, "the shell takes this for a command of its own");
    d.label(end, "the command ends here").help("end that line with a backslash, and nothing after it")
}

/// A value that only running the script would tell.
pub(in crate::import) fn unresolved(key: &str, text: &str, span: Span) -> Diagnostic {
    let message = format!("the value of `{}` is not known: `{}`", shown(key), shown(text));
    Diagnostic::new(Code::ImportIgnored, message, span, "the script does not set it")
        .note("scripts are read and not run; what comes from the environment is not looked up")
}

/// An option without its value.
pub(in crate::import) fn valueless(key: &str, span: Span) -> Diagnostic {
    Diagnostic::new(Code::ImportMalformed, format!("`{}` has no value", shown(key)), span, "a value is needed")
}

/// An option under a name that is not its own any more.
pub(in crate::import) fn renamed(key: &str, now: Option<&str>, of: &str, span: Span) -> Diagnostic {
    let d = Diagnostic::new(Code::ImportIgnored, format!("{of} has no option `{}`", shown(key)), span, "");
    match now {
        Some(now) => d.help(format!("it is `--{now}` today and is read so")),
        None => d.note("it is not read"),
    }
}

/// A rule of the framework that the configuration breaks: the options involved, the first to blame.
pub(in crate::import) fn refused(of: &str, what: &str, why: &str, places: &[(String, Span)]) -> Diagnostic {
    let mut places = places.iter();
    let (name, at) = places.next().map_or(("", Span::NOWHERE), |(n, s)| (n.as_str(), *s));
    let mut d =
        Diagnostic::new(Code::ImportRefused, format!("{of} refuses this: {what}"), at, format!("`{}`", shown(name)));
    for (name, span) in places {
        d = d.label(*span, format!("`{}`", shown(name)));
    }
    d.note(why)
}

/// What the configuration leaves open and the program needs.
pub(in crate::import) fn assumed(what: &str, instead: &str, span: Span, help: &str) -> Diagnostic {
    Diagnostic::new(Code::ImportAssumed, what, span, instead).help(help)
}

/// A configuration that names no model.
pub(in crate::import) fn modelless(of: &str, span: Span) -> Diagnostic {
    Diagnostic::new(Code::ImportMalformed, format!("{of} is told no model here"), span, "the whole of what was read")
        .help("`--model Llama3_8B` names one of the library, `--model 'Llama(layers = …)'` any other")
}

/// What a framework does and the language does not say.
pub(in crate::import) fn unsaid(key: &str, why: &str, span: Span) -> Diagnostic {
    Diagnostic::new(Code::ImportIgnored, format!("what `{}` says is left out", shown(key)), span, why)
}

/// A script or file in which nothing of the framework is found.
pub(in crate::import) fn nothing(of: &str, wanted: &str, span: Span) -> Diagnostic {
    Diagnostic::new(Code::ImportMalformed, format!("nothing for {of} is found in the file"), span, wanted)
}
