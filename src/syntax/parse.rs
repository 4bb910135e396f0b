//! Runs the parser over one file, entry by entry, and again over an entry that was repaired.

use super::ast::File;
use super::build::{Build, Entry1};
use super::recover::{Outcome, Recovery};
use super::report::Reports;
use super::separate::{separate, too_deep};
use super::token::Token;
use super::{brackets, errors, grammar, lexer};
use crate::diagnostics::{Code, Diagnostic, Sink};
use crate::source::{FileId, Sources, Span};
use lalrpop_util::ParseError;
use std::cell::Cell;

/// Largest file, in bytes.
const MAX_BYTES: usize = 16 << 20;

/// How often the tokens of an entry are read again at most, all repairs of it together.
const MAX_READS: usize = 100;

/// Tokens of an entry read again at most, whatever its length.
const MAX_TOKENS_READ: usize = 20_000_000;

/// The tree of `file`.
///
/// Where something could not be read, and only there, the tree has [`Error`](super::ast::ItemKind::Error) items or
/// expressions, and `sink` a diagnostic. A declaration whose parameters could not be read has none, and
/// its block begins with an `Error` item: nothing should be concluded from its head.
pub fn parse(sources: &Sources, file: FileId, sink: &mut Sink) -> File {
    let text = sources.file(file).text.as_str();
    let mut reports = Reports::default();
    let tree = read(text, file, &mut reports);
    reports.finish(sink);
    tree
}

fn read(text: &str, file: FileId, reports: &mut Reports) -> File {
    if text.len() > MAX_BYTES {
        reports.push(errors::file_too_large(Span::new(file, 0, 0), text.len(), MAX_BYTES));
        return File::default();
    }
    if let Some(zero) = text.bytes().position(|b| b == 0) {
        reports.push(errors::not_text(Span::new(file, zero, zero + 1)));
        return File::default();
    }
    let Some(lexed) = lexer::lex(text, file, reports) else { return File::default() };
    let tokens = brackets::balance(lexed.tokens, text, file, reports);
    let separated = separate(&tokens);
    drop(tokens);
    let mut out = File { docs: lexed.file_docs, ..File::default() };
    let mut cx = Build { file, text, docs: &lexed.docs, problems: Vec::new() };
    for range in separated.entries {
        let entry = separated.tokens.get(range).unwrap_or_default();
        if let Some(at) = too_deep(entry) {
            reports.push(errors::too_deep(at.span(file), brackets::MAX_NESTING));
            continue;
        }
        match run(&mut cx, entry) {
            Ok(read) => add(&mut out, read, reports),
            Err(failure) => repair(&mut cx, entry.to_vec(), failure, &mut out, reports),
        }
        cx.problems.drain(..).for_each(|d| reports.push(d));
    }
    out
}

/// Where the grammar stopped.
#[derive(Debug)]
pub(super) struct Failure {
    /// The token that cannot stand there; one past the last at the end of an entry.
    pub(super) at: usize,
    /// The terminals that could.
    pub(super) expected: Vec<String>,
}

/// One entry through the grammar.
fn run(cx: &mut Build<'_>, tokens: &[Token]) -> Result<Entry1, Failure> {
    cx.problems.clear();
    let taken = Cell::new(0usize);
    let stream = tokens.iter().map(|t| {
        taken.set(taken.get() + 1);
        Ok((t.start, t.tok, t.end))
    });
    grammar::EntryParser::new().parse(cx, stream).map_err(|e| match e {
        ParseError::UnrecognizedToken { expected, .. } => Failure { at: taken.get().saturating_sub(1), expected },
        ParseError::UnrecognizedEof { expected, .. } => Failure { at: tokens.len(), expected },
        ParseError::ExtraToken { .. } => Failure { at: taken.get().saturating_sub(1), expected: Vec::new() },
        ParseError::InvalidToken { .. } | ParseError::User { error: () } => {
            Failure { at: tokens.len(), expected: Vec::new() }
        }
    })
}

/// Reports what is wrong with an entry and reads what is left of it.
fn repair(cx: &mut Build<'_>, tokens: Vec<Token>, failure: Failure, out: &mut File, reports: &mut Reports) {
    let mut budget = ((tokens.len() + 1000) * MAX_READS).min(MAX_TOKENS_READ);
    let mut recovery = Recovery { file: cx.file, text: cx.text, tokens };
    let mut failure = failure;
    loop {
        let outcome = recovery.recover(&failure, reports);
        budget = budget.saturating_sub(recovery.tokens.len());
        if outcome == Outcome::Lost || (budget == 0 && !recovery.give_up()) {
            return;
        }
        let rest = if let Outcome::Split(at) = outcome { recovery.tokens.split_off(at) } else { Vec::new() };
        match run(cx, &recovery.tokens) {
            Ok(read) => {
                add(out, read, reports);
                cx.problems.drain(..).for_each(|d| reports.push(d));
                if rest.is_empty() {
                    return;
                }
                recovery.tokens = rest;
                match run(cx, &recovery.tokens) {
                    Ok(read) => return add(out, read, reports),
                    Err(next) => failure = next,
                }
            }
            Err(_) if budget == 0 => return,
            Err(next) => {
                // Cannot be: a split follows a complete entry.
                recovery.tokens.extend(rest);
                failure = next;
            }
        }
    }
}

fn add(out: &mut File, read: Entry1, reports: &mut Reports) {
    match read {
        Entry1::Entry(entry) => out.entries.push(entry),
        Entry1::Edition(n, span) => match out.edition {
            None => out.edition = Some((n, span)),
            Some((_, first)) => reports.push(
                Diagnostic::new(Code::SyntaxUnexpected, "the edition is given twice", span, "again here")
                    .label(first, "first given here"),
            ),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::ast;

    /// Work is counted in tokens, not in time: reading is linear and repairs are bounded.
    #[test]
    fn budget_bounds_the_reads_of_an_entry() {
        let text = format!("model M {{\n{}}}\n", "x = = 1\n".repeat(1000));
        let mut reports = Reports::default();
        let tree = read(&text, FileId(0), &mut reports);
        let mut sink = Sink::new();
        reports.finish(&mut sink);
        assert_eq!(sink.finish().len(), 100);
        assert_eq!(tree.entries.len(), 1);
        assert!(matches!(tree.entries.first(), Some(ast::Entry::Decl(_))));
    }
}
