//! Runs the parser over one file, entry by entry, and again over an entry that was repaired.

use super::ast::File;
use super::build::{Build, Entry1};
use super::recover::{Outcome, Recovery};
use super::report::Reports;
use super::separate::{separate, too_deep};
use super::token::{Tok, Token};
use super::{brackets, errors, grammar, lexer};
use crate::diagnostics::Sink;
use crate::source::{FileId, Sources, Span};
use lalrpop_util::ParseError;
use std::cell::Cell;

/// Largest file, in bytes.
const MAX_BYTES: usize = 16 << 20;

/// How often the tokens of an entry are read again at most, all repairs of it together.
const MAX_READS: usize = 200;

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
    let (mut tree, _) = read(text, file, &mut reports);
    tree.torn = reports.torn(0, u32::MAX).map(|at| Span { file, start: at, end: at }).collect();
    reports.finish(sink);
    tree
}

/// A text as the grammar reads it, and its comments: what a formatter puts on lines.
pub(crate) struct Words {
    /// Every token, with [`Tok::Sep`] between the items of blocks, records and sets, and between entries of the file.
    pub(crate) tokens: Vec<Token>,
    /// First byte and the one past the last of every comment.
    pub(crate) comments: Vec<(u32, u32)>,
}

/// The words of a text without syntax errors.
pub(crate) fn words(text: &str) -> Words {
    let Some(lexed) = lexer::lex(text, FileId(0), &mut Reports::default()) else {
        return Words { tokens: Vec::new(), comments: Vec::new() };
    };
    let separated = separate(&lexed.tokens);
    let mut tokens: Vec<Token> = Vec::with_capacity(separated.tokens.len() + separated.entries.len());
    for range in separated.entries {
        let entry = separated.tokens.get(range).unwrap_or_default();
        if let Some(last) = tokens.last() {
            tokens.push(Token::missing(Tok::Sep, last.end));
        }
        tokens.extend_from_slice(entry);
    }
    Words { tokens, comments: lexed.comments }
}

/// The tree of `text`, and how many tokens the grammar was given for it, repeats included.
fn read(text: &str, file: FileId, reports: &mut Reports) -> (File, usize) {
    if text.len() > MAX_BYTES {
        reports.push(errors::file_too_large(Span::new(file, 0, 0), text.len(), MAX_BYTES));
        return (File::default(), 0);
    }
    if let Some(zero) = text.bytes().position(|b| b == 0) {
        reports.push(errors::not_text(Span::new(file, zero, zero + 1)));
        return (File::default(), 0);
    }
    let Some(lexed) = lexer::lex(text, file, reports) else { return (File::default(), 0) };
    let tokens = brackets::balance(lexed.tokens, text, file, reports);
    let separated = separate(&tokens);
    drop(tokens);
    let mut out = File { docs: lexed.file_docs, ..File::default() };
    let mut cx = Build { file, text, docs: &lexed.docs, problems: Vec::new(), reads: 0 };
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
    (out, cx.reads)
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
    let result = grammar::EntryParser::new().parse(cx, stream);
    cx.reads += taken.get();
    result.map_err(|e| match e {
        ParseError::UnrecognizedToken { expected, .. } => Failure { at: taken.get().saturating_sub(1), expected },
        ParseError::UnrecognizedEof { expected, .. } => Failure { at: tokens.len(), expected },
        ParseError::ExtraToken { .. } => Failure { at: taken.get().saturating_sub(1), expected: Vec::new() },
        ParseError::InvalidToken { .. } | ParseError::User { error: () } => {
            Failure { at: tokens.len(), expected: Vec::new() }
        }
    })
}

/// What could stand at token `at`. The parser's own list lacks what it ruled out by reducing before it noticed; before
/// a token that no rule has it reduces nothing.
fn expected(cx: &mut Build<'_>, tokens: &[Token], at: usize) -> Vec<String> {
    let mut prefix = tokens.get(..at).unwrap_or(tokens).to_vec();
    let end = prefix.last().map_or(0, |t| t.end);
    prefix.push(Token::missing(Tok::Bad, end));
    run(cx, &prefix).err().map_or_else(Vec::new, |f| f.expected)
}

/// Reports what is wrong with an entry and reads what is left of it.
fn repair(cx: &mut Build<'_>, tokens: Vec<Token>, mut failure: Failure, out: &mut File, reports: &mut Reports) {
    let mut budget = ((tokens.len() + 1000) * MAX_READS).min(MAX_TOKENS_READ);
    let mut recovery = Recovery { file: cx.file, text: cx.text, tokens };
    // What turned out to be entries of their own, the next one last.
    let mut waiting = Vec::new();
    loop {
        let last_try = budget == 0 || reports.full();
        let lost = if last_try {
            !recovery.give_up()
        } else {
            failure.expected = expected(cx, &recovery.tokens, failure.at);
            budget = budget.saturating_sub(recovery.tokens.len() * 2);
            match recovery.recover(&failure, reports) {
                Outcome::Again => false,
                Outcome::Split(at) => {
                    waiting.push(recovery.tokens.split_off(at));
                    false
                }
                Outcome::Lost => true,
            }
        };
        if !lost {
            match run(cx, &recovery.tokens) {
                Ok(read) => {
                    add(out, read, reports);
                    cx.problems.drain(..).for_each(|d| reports.push(d));
                }
                Err(next) if !last_try => {
                    failure = next;
                    continue;
                }
                Err(_) => {}
            }
        }
        // The next entry, if any: read it, and come back here if it has a mistake too.
        loop {
            let Some(tokens) = waiting.pop() else { return };
            match run(cx, &tokens) {
                Ok(read) => {
                    add(out, read, reports);
                    cx.problems.drain(..).for_each(|d| reports.push(d));
                }
                Err(next) => {
                    recovery.tokens = tokens;
                    failure = next;
                    break;
                }
            }
        }
    }
}

fn add(out: &mut File, read: Entry1, reports: &mut Reports) {
    match read {
        Entry1::Entry(entry) => out.entries.push(*entry),
        Entry1::Edition(n, span) => match out.edition {
            None => out.edition = Some((n, span)),
            Some((_, first)) => reports.push(errors::edition_twice(span, first)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::ast::Entry;

    fn count(text: &str) -> (File, usize, usize) {
        let mut reports = Reports::default();
        let (tree, reads) = read(text, FileId(0), &mut reports);
        let mut sink = Sink::new();
        reports.finish(&mut sink);
        (tree, reads, sink.finish().len())
    }

    #[test]
    fn a_right_file_is_read_once() {
        let item = "  x[B, S] = f(y, over = S) + 2 ms\n";
        // model M { … } and per item: 13 signs and words, `+`, a number, and a separator but for the last.
        let (_, ten, _) = count(&format!("model M {{\n{}}}\n", item.repeat(10)));
        let (_, thousand, errors) = count(&format!("model M {{\n{}}}\n", item.repeat(1000)));
        assert_eq!(errors, 0);
        assert_eq!(ten, 4 + 10 * 18 - 1);
        assert_eq!(thousand, 4 + 1000 * 18 - 1);
    }

    #[test]
    fn a_mistake_costs_its_own_entry_only() {
        let entry = "train t {\n  a = 1\n}\n";
        let (_, right, _) = count(&entry.repeat(1000));
        let (_, wrong, errors) = count(&format!("{}train t {{\n  a = = 1\n}}\n", entry.repeat(1000)));
        assert_eq!(errors, 1);
        assert!(wrong < right + 40, "{wrong} tokens against {right}");
    }

    #[test]
    fn mistakes_in_one_entry_are_read_within_a_budget() {
        let tokens = 4 + 4 * 100_000;
        let (tree, reads, errors) = count(&format!("model M {{\n{}}}\n", "x = = 1\n".repeat(100_000)));
        assert!(reads < MAX_TOKENS_READ + 3 * tokens, "{reads}");
        assert!(errors > 10 && errors <= 100, "{errors}");
        assert!(matches!(tree.entries.first(), Some(Entry::Decl(d)) if d.name.text == "M"));
    }
}
