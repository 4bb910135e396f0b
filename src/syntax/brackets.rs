//! Gives every bracket its partner, so that no later layer meets a bracket without one.
//!
//! A balanced file passes untouched. In another one, line breaks and indentation say where a bracket was missed:
//! a declaration at the start of a line ends what is open, and a `}` belongs to the `{` whose line is indented like it.

use super::errors;
use super::openers::{column_of, supply};
use super::report::Reports;
use super::separate::ends;
use super::token::{Tok, Token};
use crate::source::{FileId, Span};

/// Brackets inside brackets at most, and operators around an operand.
pub(super) const MAX_NESTING: usize = 256;

/// Balances the brackets of `tokens`.
pub(super) fn balance(tokens: Vec<Token>, text: &str, file: FileId, reports: &mut Reports) -> Vec<Token> {
    let mut stack = Vec::new();
    let mut entry = 0;
    let mut balanced = true;
    for (i, t) in tokens.iter().enumerate() {
        if stack.is_empty() && t.first {
            entry = i;
        }
        if let Some(closer) = t.tok.closer() {
            stack.push(closer);
            if stack.len() > MAX_NESTING {
                reports.push(errors::too_deep(t.span(file), MAX_NESTING));
                let mut tokens = tokens;
                tokens.truncate(entry);
                // What came before may be unbalanced too, and is shorter.
                return if balanced { tokens } else { balance(tokens, text, file, reports) };
            }
        } else if t.tok.is_closer() && stack.pop() != Some(t.tok) {
            balanced = false;
        }
    }
    if balanced && stack.is_empty() {
        return tokens;
    }
    let tokens = supply(tokens, text, file, reports);
    let excess = count(&tokens, Tok::LBrace) - count(&tokens, Tok::RBrace);
    let out = Vec::with_capacity(tokens.len() + 8);
    let mut repair =
        Repair { text, file, reports, out, stack: Vec::new(), excess, closed: 0, indent: 0, halted: false };
    for (i, t) in tokens.iter().enumerate() {
        repair.take(*t, tokens.get(i + 1).map(|t| t.tok));
        if repair.halted {
            repair.out.truncate(repair.closed);
            return repair.out;
        }
    }
    let end = text.trim_end().len() as u32;
    repair.close_down_to(0, Missed::EndOfFile(Span { file, start: end, end }));
    repair.out
}

fn count(tokens: &[Token], tok: Tok) -> isize {
    tokens.iter().filter(|t| t.tok == tok).count() as isize
}

/// Where it was noticed that a bracket lacks its partner.
#[derive(Copy, Clone)]
pub(super) enum Missed {
    /// At a declaration at the start of a line.
    Declaration(Span),
    /// At another closing bracket.
    Closer(Span),
    /// At the end.
    EndOfFile(Span),
}

/// An open bracket.
#[derive(Copy, Clone)]
struct Open {
    /// Its place in the output.
    index: usize,
    tok: Tok,
    /// Blanks at the start of its line.
    indent: usize,
}

struct Repair<'a> {
    text: &'a str,
    file: FileId,
    reports: &'a mut Reports,
    out: Vec<Token>,
    stack: Vec<Open>,
    /// How many more `{` than `}` there are.
    excess: isize,
    /// Length of the output after the last bracket that closed everything.
    closed: usize,
    /// Blanks at the start of the line being read.
    indent: usize,
    /// Whether the file is nested too deeply to go on.
    halted: bool,
}

impl Repair<'_> {
    fn take(&mut self, t: Token, next: Option<Tok>) {
        if t.first {
            // A line that carries on a list belongs to the line where the list began.
            let column = self.column(t.start);
            let list = self.stack.last().filter(|o| o.tok != Tok::LBrace && o.indent < column);
            self.indent = list.map_or(column, |o| o.indent);
        }
        if t.first && !self.stack.is_empty() && begins_entry(t.tok, next) && self.indent == 0 {
            self.close_down_to(0, Missed::Declaration(t.span(self.file)));
        }
        if t.tok.closer().is_some() {
            self.stack.push(Open { index: self.out.len(), tok: t.tok, indent: self.indent });
            self.out.push(t);
            if self.stack.len() > MAX_NESTING {
                self.reports.push(errors::too_deep(t.span(self.file), MAX_NESTING));
                self.halted = true;
            }
        } else if t.tok.is_closer() {
            self.close(t, next);
        } else {
            self.out.push(t);
        }
    }

    fn close(&mut self, t: Token, next: Option<Tok>) {
        let wanted = |o: &Open| o.tok.closer() == Some(t.tok);
        let Some(mut at) = self.stack.iter().rposition(wanted) else { return self.stray(t, next) };
        if t.tok == Tok::RBrace && t.first && self.excess > 0 {
            // Indentation may say that this brace closes one further out.
            let column = self.column(t.start);
            if self.stack.get(at).is_some_and(|o| o.indent > column)
                && let Some(outer) = self.stack.iter().rposition(|o| wanted(o) && o.indent == column)
            {
                at = outer;
            }
        }
        self.close_down_to(at + 1, Missed::Closer(t.span(self.file)));
        self.stack.pop();
        self.out.push(t);
        if self.stack.is_empty() {
            self.closed = self.out.len();
        }
    }

    /// A closing bracket that closes nothing: left out, or read as the one that is due.
    fn stray(&mut self, mut t: Token, next: Option<Tok>) {
        let at = t.span(self.file);
        if t.repaired {
            // It was put in, and is not in the text.
            return;
        }
        let mistaken = |o: &&Open| o.tok != Tok::LBrace && t.tok != Tok::RBrace && o.tok.closer() != next;
        if let Some(open) = self.stack.last().filter(mistaken).copied() {
            let opener = self.out.get(open.index).map_or(at, |o| o.span(self.file));
            if let Some(due) = open.tok.closer() {
                self.reports.tear(errors::wrong_closer(opener, at, open.tok, due, t.tok));
                t.tok = due;
                return self.close(t, next);
            }
        }
        // Items between the brace that closed too early and this one are part of the same mistake.
        let early = self.out.get(self.closed.wrapping_sub(1)).copied().filter(|_| self.stack.is_empty());
        let junk = self.out.get(self.closed).filter(|n| early.is_some() && !n.tok.begins_entry());
        let early = early.filter(|_| junk.is_some()).map(|e| e.span(self.file));
        if early.is_some() {
            self.out.truncate(self.closed);
        }
        self.reports.tear(errors::stray_closer(at, t.tok, early));
    }

    /// Closes every bracket from the innermost down to number `keep`, with one report.
    fn close_down_to(&mut self, keep: usize, missed: Missed) {
        let Some(innermost) = self.stack.last().copied().filter(|_| self.stack.len() > keep) else { return };
        let open = self.out.get(innermost.index).copied();
        let mut insert = Vec::new();
        let mut place = self.out.len();
        let mut finished = true;
        while self.stack.len() > keep {
            let Some(open) = self.stack.pop() else { break };
            let Some(closer) = open.tok.closer() else { break };
            place = self.place(open).max(place.min(self.out.len()) * usize::from(!insert.is_empty()));
            let last = self.out.get(place.wrapping_sub(1)).copied();
            let end = last.map_or(0, |t| t.end);
            finished &= last.is_some_and(|t| t.tok.can_end_item() || t.tok.closer().is_some());
            self.out.insert(place, Token::missing(closer, end));
            place += 1;
            self.excess -= isize::from(closer == Tok::RBrace);
            let mark = closer.spelling().unwrap_or("");
            let text = if closer == Tok::RBrace && self.lines_between(open.index, place) {
                format!("\n{}{mark}", " ".repeat(open.indent))
            } else if closer == Tok::RBrace {
                format!(" {mark}")
            } else {
                mark.to_owned()
            };
            insert.push((Span { file: self.file, start: end, end }, text));
        }
        if let Some(open) = open {
            let of = self.head(innermost.index);
            let insert = if finished { insert } else { Vec::new() };
            self.reports.tear(errors::unclosed(open.span(self.file), open.tok, of, missed, insert));
        }
    }

    /// The words that begin the line of the bracket at `index`, which say what it belongs to: `layout Small`.
    fn head(&self, index: usize) -> &str {
        let word = |i: usize| self.out.get(i).filter(|t| t.tok == Tok::Ident || t.tok.is_word());
        let Some(start) = self.out.iter().take(index + 1).rposition(|t| t.first) else { return "" };
        match (word(start), word(start + 1).filter(|_| start + 1 < index)) {
            (Some(a), Some(b)) => self.text.get(a.start as usize..b.end as usize).unwrap_or(""),
            (Some(a), None) if start < index => self.text.get(a.start as usize..a.end as usize).unwrap_or(""),
            _ => "",
        }
    }

    /// Where the partner of `open` is missing, as a place in the output.
    fn place(&self, open: Open) -> usize {
        let mut depth = 0usize;
        // Whether the lines inside are indented, so that indentation says anything.
        let mut indented = None;
        let in_list = self.stack.last().is_some_and(|o| o.tok != Tok::LBrace);
        // Whether its content began on its line.
        let began = self.out.get(open.index + 1).is_some_and(|n| !n.first);
        for (i, t) in self.out.iter().enumerate().skip(open.index + 1) {
            if depth == 0 && t.first {
                let before = self.out.get(i - 1).map_or(open.tok, |b| b.tok);
                let next = self.out.get(i + 1).map(|t| t.tok);
                let outdented = self.column(t.start) <= open.indent;
                let found = if open.tok == Tok::LBrace && in_list {
                    // A set in a list is laid out on one line.
                    true
                } else if open.tok == Tok::LBrace && began {
                    outdented
                } else if open.tok == Tok::LBrace {
                    *indented.get_or_insert(!outdented || open.indent > 0) && outdented
                        || open.indent == 0 && begins_entry(t.tok, next)
                } else if before == Tok::Comma || before.closer().is_some() {
                    outdented
                } else {
                    // A list goes on after an operator; a line that begins otherwise is the next item.
                    ends(before, t.tok, next)
                };
                if found {
                    return i;
                }
            }
            if t.tok.closer().is_some() {
                depth += 1;
            } else if t.tok.is_closer() {
                depth = depth.saturating_sub(1);
            }
        }
        self.out.len()
    }

    fn lines_between(&self, from: usize, to: usize) -> bool {
        self.out.iter().take(to).skip(from + 1).any(|t| t.first)
    }

    /// Blanks before the first token of a line, which starts at `at`.
    fn column(&self, at: u32) -> usize {
        column_of(self.text, at)
    }
}

/// Whether a line that begins with `tok`, then `next`, begins an entry of a file.
pub(super) fn begins_entry(tok: Tok, next: Option<Tok>) -> bool {
    if tok.kind().is_some() || tok == Tok::Unit || tok == Tok::Let {
        next == Some(Tok::Ident)
    } else {
        matches!(tok, Tok::Use | Tok::Edition) && next != Some(Tok::Eq)
    }
}
