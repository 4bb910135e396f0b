//! Diagnostics to text, short lines and JSON lines. Any span and any text is drawn: what lies past the end of a file,
//! inside a character or in no file at all is snapped or left out, and control characters never reach a terminal.
//!
//! In: diagnostics as [`Sink::finish`](super::Sink::finish) orders them. Out: a `String` that ends in a line break,
//! or nothing for no diagnostics. Nothing here prints.

mod json;
mod place;
#[cfg(test)]
mod tests;
mod text;

pub use json::{SCHEMA, json};
pub use text::{TEXT_SHOWN, text, text_one};

use super::{Applicability, Diagnostic, Severity};
use crate::source::Sources;
use place::Place;
use std::fmt::Write as _;

/// Whether the text holds terminal colours.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Colour {
    /// Plain text.
    Never,
    /// ANSI escape sequences.
    Always,
}

/// How many diagnostics [`short`] and [`json`] give in full.
pub const LINES_SHOWN: usize = 1_000;

/// One line each: `file.par:3:5: error[E0302]: bytes and time cannot be added`.
pub fn short(diagnostics: &[Diagnostic], sources: &Sources) -> String {
    let mut out = String::new();
    for d in diagnostics.iter().take(LINES_SHOWN) {
        if let Some(place) = Place::of(sources, d.primary.span) {
            let _ = write!(out, "{}:{}:{}: ", clean(&place.file.name), place.line, place.column);
        }
        let _ = writeln!(out, "{}", one_line(&header(d)));
    }
    push_more(&mut out, diagnostics, LINES_SHOWN);
    out
}

/// The last line of a report: `3 errors, 1 warning; 2 can be fixed, 1 of them by parc fix`. Empty for no diagnostics.
pub fn summary(diagnostics: &[Diagnostic]) -> String {
    if diagnostics.is_empty() {
        return String::new();
    }
    let fixable = diagnostics.iter().filter(|d| !d.fixes.is_empty()).count();
    let safe = |d: &&Diagnostic| d.fixes.iter().any(|f| f.applicability == Applicability::Safe);
    let unasked = diagnostics.iter().filter(safe).count();
    let mut out = counts(diagnostics);
    if fixable > 0 {
        let _ = write!(out, "; {fixable} can be fixed");
    }
    if unasked == fixable && fixable > 0 {
        out.push_str(": parc fix");
    } else if unasked > 0 {
        let _ = write!(out, ", {unasked} of them by parc fix");
    }
    out.push('\n');
    out
}

/// `error[E0302]: bytes and time cannot be added`.
fn header(d: &Diagnostic) -> String {
    format!("{}[{}]: {}", severity(d), d.code, clean(&d.message))
}

fn severity(d: &Diagnostic) -> &'static str {
    match d.code.info().severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

/// `3 errors, 1 warning`.
fn counts(diagnostics: &[Diagnostic]) -> String {
    let errors = diagnostics.iter().filter(|d| d.code.info().severity == Severity::Error).count();
    let counted = |n: usize, word: &str| match n {
        0 => None,
        1 => Some(format!("1 {word}")),
        n => Some(format!("{n} {word}s")),
    };
    let parts = [counted(errors, "error"), counted(diagnostics.len() - errors, "warning")];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// `and 3 errors, 1 warning more`, if more than `shown` came.
fn push_more(out: &mut String, diagnostics: &[Diagnostic], shown: usize) {
    if let Some(rest) = diagnostics.get(shown..).filter(|rest| !rest.is_empty()) {
        let _ = writeln!(out, "and {} more", counts(rest));
    }
}

/// `text` with every character that could move the cursor, hide text or start an escape sequence replaced; tabs and
/// line breaks stay.
fn clean(text: &str) -> String {
    text.chars().map(|c| if c == '\n' { c } else { visible(c) }).collect()
}

/// `c`, or the replacement character where `c` is a control, a line separator or turns the direction of text.
/// One character for one, so that columns stay.
fn visible(c: char) -> char {
    match c {
        '\t' => c,
        '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{feff}' => '\u{fffd}',
        c if c.is_control() => '\u{fffd}',
        c => c,
    }
}

/// `text` on one line.
fn one_line(text: &str) -> String {
    text.split('\n').map(str::trim).filter(|t| !t.is_empty()).collect::<Vec<_>>().join(" ")
}
