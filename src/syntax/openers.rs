//! Gives a `}` without a `{` the one that its indentation says, or leaves out the lines that lost theirs.
//!
//! In a file with more `}` than `{`, a `}` that begins a line deeper than any open block closes a block that was never
//! opened. The line above it with the same indentation is the head: half typed, or deleted.

use super::errors;
use super::report::Reports;
use super::token::{Tok, Token};
use crate::source::FileId;

/// Braces supplied in one file at most.
const MAX_CHANGES: usize = 100;

/// What to change in the tokens.
enum Change {
    /// These are missing after this token: closers of what its line opened, and a `{`.
    Open { after: usize, missing: Vec<Tok> },
    /// The tokens from here up to the second have no head.
    Drop(usize, usize),
}

/// A line, while nothing as far left has come after it.
#[derive(Copy, Clone)]
struct Line {
    column: usize,
    /// Its first token.
    first: usize,
    /// The first token of the line after it, once there is one.
    after: Option<usize>,
}

/// `tokens` with a partner for each `}` that had none, so far as indentation tells.
pub(super) fn supply(tokens: Vec<Token>, text: &str, file: FileId, reports: &mut Reports) -> Vec<Token> {
    let count = |tok: Tok| tokens.iter().filter(|t| t.tok == tok).count();
    let lack = |open: Tok, close: Tok| count(close).saturating_sub(count(open));
    let mut lacking = lack(Tok::LBrace, Tok::RBrace);
    let mut lists_lacking =
        [(Tok::RParen, lack(Tok::LParen, Tok::RParen)), (Tok::RBracket, lack(Tok::LBracket, Tok::RBracket))];
    if lacking + lists_lacking[0].1 + lists_lacking[1].1 == 0 {
        return tokens;
    }
    // Open braces: the column of their line.
    let mut open: Vec<usize> = Vec::new();
    let mut lines: Vec<Line> = Vec::new();
    // Open lists: the column of their line.
    let mut lists: Vec<usize> = Vec::new();
    let mut column = 0;
    let mut changes: Vec<Change> = Vec::new();
    for (i, t) in tokens.iter().enumerate() {
        let mut head = None;
        let mut ends_list = false;
        if t.first {
            column = column_of(text, t.start);
            // A line that carries on a list belongs to the line where the list began.
            while let Some(list) = lists.pop_if(|l| *l >= column) {
                ends_list |= list == column;
            }
            if let Some(last) = lines.last_mut() {
                last.after.get_or_insert(i);
            }
        }
        if let Some(list) = lists.last().filter(|_| t.first) {
            column = *list;
        } else if t.first {
            while lines.last().is_some_and(|l| l.column > column) {
                lines.pop();
            }
            head = lines.pop_if(|l| l.column == column);
            lines.push(Line { column, first: i, after: None });
        }
        match t.tok {
            Tok::LParen | Tok::LBracket => lists.push(column),
            Tok::RParen | Tok::RBracket if !t.first => drop(lists.pop()),
            Tok::RParen | Tok::RBracket => {
                let lack = lists_lacking.iter_mut().find(|l| l.0 == t.tok && l.1 > 0);
                if let Some((_, lack)) = lack.filter(|_| !ends_list && changes.len() < MAX_CHANGES)
                    && let Some(change) = change(&tokens, text, i, head, parent(&lines), file, reports)
                {
                    changes.push(change);
                    *lack -= 1;
                }
            }
            Tok::LBrace => open.push(column),
            Tok::RBrace if !t.first => drop(open.pop()),
            Tok::RBrace => {
                while open.last().is_some_and(|o| *o > column) {
                    open.pop();
                }
                let lost = open.last().is_none_or(|o| *o < column);
                if !lost {
                    open.pop();
                } else if lacking > 0
                    && changes.len() < MAX_CHANGES
                    && let Some(change) = change(&tokens, text, i, head, parent(&lines), file, reports)
                {
                    changes.push(change);
                    lacking -= 1;
                }
            }
            _ => {}
        }
    }
    apply(&tokens, &changes)
}

/// The first token below the line that the last one is deeper than.
fn parent(lines: &[Line]) -> Option<usize> {
    lines.iter().rev().nth(1).and_then(|l| l.after)
}

/// What to do for the `}` at `close`; `head` is the line above it with the same indentation, `below` the first token of
/// the line below the one that both are deeper than.
fn change(
    tokens: &[Token],
    text: &str,
    close: usize,
    head: Option<Line>,
    below: Option<usize>,
    file: FileId,
    reports: &mut Reports,
) -> Option<Change> {
    let at = tokens.get(close)?.span(file);
    let inside = head.map_or(below, |h| h.after).filter(|a| *a < close)?;
    // Lines of a head that has several stand further right than those of its block.
    let lines = (inside..close).filter(|i| tokens.get(*i).is_some_and(|t| t.first));
    let inside = lines.min_by_key(|i| tokens.get(*i).map_or(0, |t| column_of(text, t.start)))?;
    let last = tokens.get(inside.checked_sub(1)?)?;
    let line = tokens.get(head.map_or(inside, |h| h.first)..inside)?;
    if last.tok == Tok::LBrace && head.is_some() {
        return None;
    }
    // A list: `rows =`.
    let list = match tokens.get(close)?.tok {
        Tok::RParen => Some(Tok::LParen),
        Tok::RBracket => Some(Tok::LBracket),
        _ => None,
    };
    if let Some(opener) = list.filter(|_| last.tok == Tok::Eq) {
        reports.tear(errors::missing_open(last.span(file), at, opener));
        return Some(Change::Open { after: inside - 1, missing: vec![opener] });
    }
    let Some(needs) = takes_block(line).filter(|_| list.is_none()) else {
        reports.tear(errors::headless(at, tokens.get(close)?.tok, tokens.get(inside)?.span(file)));
        return Some(Change::Drop(inside, close + 1));
    };
    let mut closers = Vec::new();
    let mut opener = None;
    for t in line {
        if let Some(closer) = t.tok.closer() {
            opener = opener.or(Some(*t));
            closers.push(closer);
        } else if t.tok.is_closer() {
            closers.pop();
            opener = opener.filter(|_| !closers.is_empty());
        }
    }
    closers.reverse();
    let end = last.span(file);
    reports.tear(match opener {
        Some(open) => errors::unclosed_head(open.span(file), open.tok, end, at),
        None if needs => errors::missing_open(end, at, Tok::LBrace),
        None => errors::maybe_missing_open(at, end),
    });
    // `train b =`: what is copied is missing too. `train b = a`: so is `with`.
    let mut depth = 0usize;
    let value = line.iter().any(|t| {
        depth += usize::from(t.tok.closer().is_some());
        depth -= usize::from(t.tok.is_closer() && depth > 0);
        depth == 0 && t.tok == Tok::Eq
    });
    let mut missing = closers;
    if last.tok == Tok::Eq {
        missing.extend([Tok::Error, Tok::With]);
    } else if !last.tok.can_end_item()
        && (!last.tok.begins_item() || last.tok == Tok::If)
        && !matches!(last.tok, Tok::With | Tok::Else)
    {
        missing.push(Tok::Error);
    } else if value
        && last.tok != Tok::With
        && line.first().is_some_and(|t| t.tok != Tok::Repeat && t.tok != Tok::Level)
    {
        missing.push(Tok::With);
    }
    missing.push(Tok::LBrace);
    Some(Change::Open { after: inside - 1, missing })
}

/// Whether the tokens of a line begin a block: `Some(true)` where they mean nothing without one.
fn takes_block(line: &[Token]) -> Option<bool> {
    let (first, last) = (line.first()?.tok, line.last()?.tok);
    let second = line.get(1).map(|t| t.tok);
    let has = |tok: Tok| line.iter().any(|t| t.tok == tok);
    let block = matches!(first, Tok::Region | Tok::Repeat | Tok::In | Tok::Part | Tok::If | Tok::Dims);
    let unfinished = !last.can_end_item() && !matches!(last, Tok::RBrace | Tok::LBrace);
    let list = line.iter().filter(|t| matches!(t.tok, Tok::LParen | Tok::LBracket)).count()
        > line.iter().filter(|t| matches!(t.tok, Tok::RParen | Tok::RBracket)).count();
    if last == Tok::RBrace {
        return None;
    }
    let named = first == Tok::Ident && matches!(second, None | Some(Tok::Ident));
    if block || unfinished || list || named || first.kind().is_some() && !has(Tok::Eq) {
        Some(true)
    } else if matches!(first, Tok::Pipeline | Tok::Level) || first.kind().is_some() && second == Some(Tok::Ident) {
        Some(false)
    } else {
        None
    }
}

fn apply(tokens: &[Token], changes: &[Change]) -> Vec<Token> {
    let mut out = Vec::with_capacity(tokens.len() + 8);
    let mut changes = changes.iter().peekable();
    let mut i = 0;
    while let Some(t) = tokens.get(i) {
        match changes.peek() {
            Some(Change::Drop(from, to)) if *from == i => {
                i = *to;
                changes.next();
                continue;
            }
            Some(Change::Open { after, missing }) if *after == i => {
                out.push(*t);
                out.extend(missing.iter().map(|tok| Token::missing(*tok, t.end)));
                changes.next();
            }
            _ => out.push(*t),
        }
        i += 1;
    }
    out
}

/// Blanks before the first token of a line, which starts at `at`.
pub(super) fn column_of(text: &str, at: u32) -> usize {
    let before = text.get(..at as usize).unwrap_or("").bytes().rev();
    before.take_while(|b| matches!(b, b' ' | b'\t')).count()
}
