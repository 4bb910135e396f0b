//! What to do where the grammar stops: say what is wrong, once, and mend the tokens so that it can go on.
//!
//! Where it is clear what was meant, the tokens become that. Elsewhere the smallest thing that can be left out (the
//! value of a field, the parameters of a declaration, an item) becomes [`Tok::Error`].

use super::errors::{self, Found};
use super::openers::column_of;
use super::parse::Failure;
use super::report::Reports;
use super::token::{Tok, Token};
use crate::source::{FileId, Span};

/// Lines looked at above and below one that may carry on another.
const MAX_LINES: usize = 100;

/// How an entry goes on after an error.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// Read the tokens again.
    Again,
    /// From this token on it is another entry.
    Split(usize),
    /// Nothing is left of the entry.
    Lost,
}

/// The tokens of an entry under repair.
pub(super) struct Recovery<'a> {
    pub(super) file: FileId,
    pub(super) text: &'a str,
    pub(super) tokens: Vec<Token>,
}

impl Recovery<'_> {
    /// Reports the failure and mends the tokens.
    pub(super) fn recover(&mut self, failure: &Failure, reports: &mut Reports) -> Outcome {
        let at = failure.at;
        let (start, end) = self.segment(at);
        if self.move_closer(failure, reports) {
            return Outcome::Again;
        }
        if self.torn(start, end, at, reports) {
            return self.leave_out(start, end, at);
        }
        if self.end_line(start, at) {
            return Outcome::Again;
        }
        if let Some(outcome) = self.foreign(failure, reports).or_else(|| self.meant(failure, reports)) {
            return outcome;
        }
        if self.end_line_before(at) {
            return Outcome::Again;
        }
        if !self.known(start, end) {
            let report = self.report(failure);
            // What the rest of a list that lost its beginning closes is part of the same mistake.
            reports.forget_strays(report.primary.span.end, self.end_of_lines_below(start));
            reports.tear(report);
        }
        self.leave_out(start, end, at)
    }

    /// Whether something that was reported in or around the element from `start` to `end` leaves it in pieces.
    fn torn(&self, start: usize, end: usize, at: usize, reports: &Reports) -> bool {
        // Where a bracket was put in, it was said that it is missing.
        if self.tokens.get(at).is_some_and(|t| t.repaired && t.start == t.end && t.tok != Tok::Sep) {
            return true;
        }
        // An element at the end of a brace that was not closed on its line.
        if self.tokens.get(end).is_some_and(|t| t.repaired && t.start == t.end && t.tok == Tok::RBrace) {
            let line = self.tokens.iter().take(start).rev().take_while(|t| !t.first && t.tok != Tok::LBrace).count();
            if self.before(start.saturating_sub(line)).is_some_and(|t| t.tok == Tok::LBrace) {
                return true;
            }
        }
        let same_line = |brace: &Token| {
            let between = self.tokens.get(start..=at).unwrap_or_default();
            brace.tok == Tok::LBrace && !between.iter().any(|t| t.first)
        };
        let first = self.tokens.get(start).copied();
        let from = self.before(start).filter(same_line).or(first).map_or(u32::MAX, |t| t.start);
        let to = self.before(end).map_or(0, |t| t.end + 1);
        let mut places: Vec<u32> = reports.torn(from, to).collect();
        places.sort_unstable_by(|a, b| b.cmp(a));
        // In one pass: what lies in braces of the element is another element's.
        let mut depth = 0usize;
        let mut outside = false;
        for t in self.tokens.iter().take(end).skip(start) {
            while places.pop_if(|p| *p <= t.start).is_some() {
                outside |= depth == 0;
            }
            match t.tok {
                Tok::LBrace => depth += 1,
                Tok::RBrace => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        outside |= !places.is_empty() && depth == 0;
        outside || first.is_some_and(|t| self.orphan(start, t, reports))
    }

    /// The end of the lines that follow the element from `start` and stand further right than its first.
    fn end_of_lines_below(&self, start: usize) -> u32 {
        let Some(first) = self.tokens.get(start).copied() else { return 0 };
        let column = column_of(self.text, first.start);
        let mut end = first.start as usize;
        for (i, line) in self.text.get(end..).unwrap_or("").split_inclusive('\n').take(MAX_LINES).enumerate() {
            let code = line.trim_start();
            let deeper = line.len() - code.len() > column || code.starts_with([')', ']']);
            if i > 0 && (code.is_empty() || !deeper) {
                break;
            }
            end += line.len();
        }
        end as u32
    }

    /// Whether the element that begins with `first` carries on a line above that was reported: it stands further right
    /// and is not in a block of that line.
    fn orphan(&self, start: usize, first: Token, reports: &Reports) -> bool {
        let column = column_of(self.text, first.start);
        if !first.first || column == 0 {
            return false;
        }
        let above = self.text.get(..first.start as usize - column).unwrap_or("");
        let mut line = above.len();
        let parent = above.split_inclusive('\n').rev().take(MAX_LINES).find(|l| {
            line -= l.len();
            let code = l.trim_start();
            l.len() - code.len() < column && !code.is_empty() && !code.starts_with("//")
        });
        if parent.is_none() || reports.torn(line as u32, first.start).next().is_none() {
            return false;
        }
        let mut depth = 0usize;
        let opener = self.tokens.iter().take(start).rev().find(|t| {
            depth += usize::from(t.tok == Tok::RBrace);
            let found = t.tok == Tok::LBrace && depth == 0;
            depth -= usize::from(t.tok == Tok::LBrace && depth > 0);
            found
        });
        opener.is_none_or(|o| (o.start as usize) < line)
    }

    /// Whether something in the element from `start` to `end` was reported that may well cause this failure.
    fn known(&self, start: usize, end: usize) -> bool {
        let reported = |t: Token| matches!(t.tok, Tok::Bad | Tok::Error) || t.repaired && t.tok.is_closer();
        if self.flat(start, end).any(reported) {
            return true;
        }
        // `mesh pp, dp`: the comma ended an item that was left out whole, and this is the rest of it.
        let (Some(sep), Some(left)) = (self.before(start), self.before(start.saturating_sub(1))) else { return false };
        let whole = start >= 2 && self.before(start - 2).is_none_or(|b| matches!(b.tok, Tok::Sep | Tok::LBrace));
        let same_line = self.tokens.get(start).is_some_and(|t| !t.first);
        sep.tok == Tok::Sep && sep.start < sep.end && left.tok == Tok::Error && whole && same_line
    }

    /// `shard`, and on the next line, as far right, `pad V = 8`: the first is unfinished. Ends it there; that will be
    /// reported.
    fn end_line(&mut self, start: usize, at: usize) -> bool {
        let Some(first) = self.tokens.get(start).filter(|t| t.first) else { return false };
        let column = column_of(self.text, first.start);
        let sibling = |i: &usize| {
            self.tokens.get(*i).is_some_and(|t| t.first && !t.repaired && column_of(self.text, t.start) == column)
                && self.before(*i).is_some_and(|b| !b.tok.can_end_item() && b.tok.closer().is_none())
        };
        let Some(line) = (start + 1..=at).rev().find(sibling).filter(|_| self.in_braces(at)) else { return false };
        let end = self.before(line).map_or(0, |b| b.end);
        self.tokens.insert(line, Token { repaired: false, ..Token::missing(Tok::Sep, end) });
        true
    }

    /// `cluster =`, and on the next line `role x {`: the line before is unfinished. Ends it there; that will be reported.
    fn end_line_before(&mut self, at: usize) -> bool {
        let (Some(found), Some(word)) = (self.tok(at), self.before(at)) else { return false };
        let section = (word.tok == Tok::Ident || word.tok.kind().is_some())
            && word.first
            && matches!(found, Tok::Ident | Tok::LBrace | Tok::Over | Tok::In);
        let Some(last) = self.before(at - 1).filter(|_| section && self.in_braces(at)) else { return false };
        if last.tok.can_end_item() || matches!(last.tok, Tok::LBrace | Tok::Sep) {
            return false;
        }
        self.tokens.insert(at - 1, Token { repaired: false, ..Token::missing(Tok::Sep, last.end) });
        true
    }

    /// Where a bracket was closed at the end of its line, but the grammar wants it closed here: closes it here.
    fn move_closer(&mut self, failure: &Failure, reports: &mut Reports) -> bool {
        let at = failure.at;
        let Some(after) = self.before(at).map(|b| b.end) else { return false };
        let (_, end) = self.segment(at);
        let Some(i) = (at + 1..end).find(|i| self.tokens.get(*i).is_some_and(|t| t.repaired && t.tok.is_closer()))
        else {
            return false;
        };
        let Some(t) = self.tokens.get(i).copied() else { return false };
        let Some(mark) = t.tok.spelling() else { return false };
        if !failure.expected.iter().any(|e| e.trim_matches('"') == mark) {
            return false;
        }
        self.tokens.remove(i);
        self.tokens.insert(at, Token::missing(t.tok, after));
        reports.move_insertion(t.end, after, mark);
        true
    }

    /// Leaves out everything but the name of the declaration; whether there is one.
    pub(super) fn give_up(&mut self) -> bool {
        let (Some(kind), Some(Tok::Ident)) = (self.tokens.first().copied(), self.tok(1)) else { return false };
        if kind.tok.kind().is_none() {
            return false;
        }
        let end = self.tokens.last().map_or(kind.end, |t| t.end);
        self.tokens.truncate(2);
        self.tokens.extend([Tok::LBrace, Tok::Error, Tok::RBrace].map(|t| Token::missing(t, end)));
        true
    }

    // ---- looking

    pub(super) fn tok(&self, at: usize) -> Option<Tok> {
        self.tokens.get(at).map(|t| t.tok)
    }

    pub(super) fn before(&self, at: usize) -> Option<Token> {
        at.checked_sub(1).and_then(|b| self.tokens.get(b)).copied()
    }

    pub(super) fn slice(&self, span: Span) -> &str {
        self.text.get(span.start as usize..span.end as usize).unwrap_or("")
    }

    pub(super) fn span(&self, at: usize) -> Span {
        let end = self.tokens.last().map_or(0, |t| t.end);
        self.tokens.get(at).map_or(Span { file: self.file, start: end, end }, |t| t.span(self.file))
    }

    /// The element around token `at`: between separators, or an entry whole. Brackets other than braces are no border.
    pub(super) fn segment(&self, at: usize) -> (usize, usize) {
        let mut start = at.min(self.tokens.len());
        let mut depth = 0usize;
        while let Some(t) = self.before(start) {
            if t.tok.is_closer() {
                depth += 1;
            } else if t.tok.closer().is_some() && depth > 0 {
                depth -= 1;
            } else if depth == 0 && matches!(t.tok, Tok::LBrace | Tok::Sep) {
                break;
            }
            start -= 1;
        }
        let mut end = at;
        depth = 0;
        while let Some(tok) = self.tok(end) {
            if tok.closer().is_some() {
                depth += 1;
            } else if tok.is_closer() && depth > 0 {
                depth -= 1;
            } else if depth == 0 && matches!(tok, Tok::RBrace | Tok::Sep) {
                break;
            }
            end += 1;
        }
        (start, end.min(self.tokens.len()).max(start))
    }

    /// The tokens from `start` to `end` that lie in no braces of their own.
    fn flat(&self, start: usize, end: usize) -> impl Iterator<Item = Token> {
        let mut depth = 0usize;
        self.tokens.iter().take(end).skip(start).copied().filter(move |t| {
            depth -= usize::from(t.tok == Tok::RBrace && depth > 0);
            let inside = depth > 0;
            depth += usize::from(t.tok == Tok::LBrace);
            !inside
        })
    }

    /// Whether an element begins at token `at`.
    pub(super) fn begins(&self, at: usize) -> bool {
        self.before(at).is_none_or(|b| matches!(b.tok, Tok::LBrace | Tok::LParen | Tok::Comma | Tok::Sep))
    }

    /// Whether the innermost bracket around token `at` is a brace.
    pub(super) fn in_braces(&self, at: usize) -> bool {
        let mut depth = 0usize;
        for t in self.tokens.iter().take(at).rev() {
            if t.tok.is_closer() {
                depth += 1;
            } else if t.tok.closer().is_some() {
                if depth == 0 {
                    return t.tok == Tok::LBrace;
                }
                depth -= 1;
            }
        }
        false
    }

    // ---- the general case

    fn report(&self, failure: &Failure) -> crate::diagnostics::Diagnostic {
        let (start, _) = self.segment(failure.at);
        // In the middle of an item an example of it says more than what may follow.
        let d = self.unexpected(failure);
        match self.tok(start).filter(|_| failure.at > start).and_then(errors::example) {
            Some(example) => d.help(format!("for example `{example}`")),
            None => d,
        }
    }

    fn unexpected(&self, failure: &Failure) -> crate::diagnostics::Diagnostic {
        let at = failure.at;
        let ends = self.tokens.get(at).is_none_or(|t| t.tok == Tok::Sep && t.start == t.end || t.repaired);
        let ends = ends || self.tok(at) == Some(Tok::RBrace) && self.in_braces(at);
        if let Some(before) = self.before(at).filter(|b| ends && b.tok != Tok::LBrace) {
            let span = before.span(self.file);
            return errors::unexpected(span, &Found::EndAfter(self.slice(span)), &failure.expected);
        }
        let span = self.span(at);
        // After a whole entry nothing is expected but its end.
        let line_break = ["SEP".to_owned()];
        let expected = if failure.expected.is_empty() { &line_break } else { failure.expected.as_slice() };
        errors::unexpected(span, &Found::Text(self.slice(span)), expected)
    }

    /// Replaces the smallest thing that can be left out and holds token `at`.
    pub(super) fn leave_out(&mut self, start: usize, end: usize, at: usize) -> Outcome {
        let error =
            |from: Span| Token { tok: Tok::Error, first: false, repaired: true, start: from.start, end: from.end };
        let top = start == 0;
        if start >= end || self.tok(at) == Some(Tok::Error) {
            return if self.give_up() { Outcome::Again } else { Outcome::Lost };
        }
        // `NAME = …`, `let NAME … = …`, `KIND NAME … = …`: the value.
        let head = match self.tok(start) {
            Some(Tok::Ident) => self.tok(start + 1) == Some(Tok::Eq),
            Some(Tok::Let) => true,
            Some(kind) => kind.kind().is_some() && self.tok(start + 1) == Some(Tok::Ident),
            None => false,
        };
        let mut depth = 0usize;
        let equals = (start..at.min(end)).find(|i| {
            let tok = self.tok(*i).unwrap_or(Tok::Error);
            depth += usize::from(tok.closer().is_some());
            depth = depth.saturating_sub(usize::from(tok.is_closer()));
            depth == 0 && tok == Tok::Eq
        });
        if let Some(equals) = equals.filter(|_| head) {
            let place =
                if equals + 1 < end { self.span(equals + 1).to(self.span(end - 1)) } else { self.span(equals).after() };
            self.tokens.splice(equals + 1..end, [error(place)]);
            return Outcome::Again;
        }
        // A declaration: what follows its name, up to its block; or what follows the block.
        let declares = self.tok(start).is_some_and(|t| t.kind().is_some()) && self.tok(start + 1) == Some(Tok::Ident);
        if declares && at >= start + 2 {
            let mut depth = 0usize;
            let brace = (start + 2..end).find(|i| {
                let tok = self.tok(*i).unwrap_or(Tok::Error);
                let found = depth == 0 && tok == Tok::LBrace;
                depth += usize::from(tok.closer().is_some());
                depth = depth.saturating_sub(usize::from(tok.is_closer()));
                found
            });
            match brace {
                Some(brace) if at > brace => {
                    self.tokens.drain(at..end);
                }
                Some(brace) => self.no_head(start + 2, brace),
                None => {
                    self.no_head(start + 2, end);
                    let after = self.span(start + 4).after();
                    let block = [Tok::LBrace, Tok::RBrace].map(|t| Token::missing(t, after.start));
                    self.tokens.splice(start + 5..start + 5, block);
                }
            }
            return Outcome::Again;
        }
        if top {
            return if self.give_up() { Outcome::Again } else { Outcome::Lost };
        }
        let place = self.span(start).to(self.span(end - 1));
        self.tokens.splice(start..end, [error(place)]);
        Outcome::Again
    }

    /// Replaces the head of a declaration, from token `from` to `to`, by parameters that could not be read.
    fn no_head(&mut self, from: usize, to: usize) {
        let at = self.before(from).map_or(0, |t| t.end);
        let head = [Tok::LParen, Tok::Error, Tok::RParen].map(|t| Token::missing(t, at));
        self.tokens.splice(from..to, head);
    }
}
