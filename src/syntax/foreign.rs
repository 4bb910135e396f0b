//! What Python, YAML and C write, where the grammar stops at it: said with what to write here, and taken as that.

use super::errors;
use super::parse::Failure;
use super::recover::{Outcome, Recovery};
use super::report::Reports;
use super::token::{Tok, Token};
use crate::diagnostics::Edit;
use crate::source::Span;

/// Names of functions that are written before their argument without brackets: `p95 ttft`.
const STATISTICS: [&str; 6] = ["mean", "p50", "p90", "p95", "p99", "max"];

impl Recovery<'_> {
    /// Says what was meant and mends the tokens, if the failure is one of those below.
    pub(super) fn foreign(&mut self, failure: &Failure, reports: &mut Reports) -> Option<Outcome> {
        let at = failure.at;
        let (start, end) = self.segment(at);
        let wants = |t: &str| failure.expected.iter().any(|e| e.trim_matches('"') == t);
        let before = self.before(at);
        let glued = before.is_some_and(|b| self.tokens.get(at).is_some_and(|t| t.start == b.end));
        if let Some(outcome) = self.keyword(start, end, at, reports) {
            return Some(outcome);
        }
        match self.tok(at) {
            Some(Tok::Minus | Tok::Dot) if glued && at == start + 2 && self.declares(start) => {
                self.dashed_name(at, reports)
            }
            Some(Tok::Ident) if before.is_some_and(|b| b.tok == Tok::Ident) => self.statistic(at, reports),
            Some(Tok::Arrow) if before.is_some_and(|b| b.tok == Tok::Ident) && wants("=") => {
                Self::say(self.span(at), "`->` does not give a value", "`=` is needed", "=", reports);
                self.set(at, Tok::Eq)
            }
            Some(Tok::Gt) if glued && before.is_some_and(|b| b.tok == Tok::Eq) => {
                let (right, tok) = if self.declares(start) && self.tok(start + 2) == Some(Tok::LParen) {
                    ("->", Tok::Arrow)
                } else {
                    ("=", Tok::Eq)
                };
                let whole = self.span(at - 1).to(self.span(at));
                Self::say(whole, "`=>` is not a sign", format!("`{right}` is needed"), right, reports);
                self.tokens.remove(at);
                self.set(at - 1, tok)
            }
            Some(Tok::Colon) if self.declares(start) && wants("->") => self.head_colon(start, at, reports),
            Some(Tok::LParen) if wants("[") && !wants("(") && before.is_some_and(|b| b.tok.is_word()) => {
                self.round_list(at, reports)
            }
            Some(Tok::If) if before.is_some_and(|b| b.tok.can_end_item()) => self.conditional(start, end, at, reports),
            Some(Tok::Hole) if before.is_some_and(|b| b.tok.can_end_item()) => {
                self.conditional(start, end, at, reports)
            }
            Some(Tok::Sep | Tok::RBrace) if at == end => self.field_kind(start, at, reports),
            _ => None,
        }
    }

    fn say(at: Span, message: impl Into<String>, label: impl Into<String>, right: &str, reports: &mut Reports) {
        reports.push(errors::foreign_at(at, message, &label.into(), right));
    }

    fn set(&mut self, at: usize, tok: Tok) -> Option<Outcome> {
        self.tokens.get_mut(at)?.tok = tok;
        Some(Outcome::Again)
    }

    fn word(&self, at: usize) -> &str {
        self.slice(self.span(at))
    }

    /// Whether a declaration begins at `start`.
    fn declares(&self, start: usize) -> bool {
        self.tok(start).is_some_and(|t| t.kind().is_some()) && self.tok(start + 1) == Some(Tok::Ident)
    }

    /// A line that begins with a word of another language: `def`, `import`, `class`.
    fn keyword(&mut self, start: usize, end: usize, at: usize, reports: &mut Reports) -> Option<Outcome> {
        if self.tok(start) != Some(Tok::Ident) || at > start + 3 {
            return None;
        }
        let next = self.tok(start + 1)?;
        if !matches!(next, Tok::Ident | Tok::Str) && next.kind().is_none() || self.tokens.get(start + 1)?.first {
            return None;
        }
        let here = self.span(start);
        let first = self.word(start).to_owned();
        let line_end = (start + 1..end).find(|i| self.tokens.get(*i).is_some_and(|t| t.first)).unwrap_or(end);
        let line = here.to(self.span(line_end - 1));
        let report = match first.as_str() {
            "def" | "func" | "function" | "fun" | "lambda" => errors::foreign_word(
                here,
                format!("`{first}` does not begin a function"),
                "`fn` does",
                "write `fn NAME(PARAMETER: TYPE) -> TYPE = EXPRESSION`, or a block with `return`",
            ),
            "import" | "include" | "using" | "from" => {
                let d = errors::foreign_word(
                    here,
                    format!("`{first}` does not bring in names"),
                    "`use` does",
                    "write `use std::models::Llama3_8B` or `use \"site.par\"::{Pod}`",
                );
                match import(self.slice(line)) {
                    Some(right) => errors::with_fix(d, line, &right),
                    None => d,
                }
            }
            "const" | "var" | "val" | "static" | "auto" => {
                let d = errors::foreign_word(
                    here,
                    format!("`{first}` does not name a value"),
                    "`let` does",
                    "write `let NAME = VALUE`",
                );
                reports.push(errors::with_fix(d, here, "let"));
                return self.set(start, Tok::Let);
            }
            "class" | "struct" | "interface" | "enum" => errors::foreign_word(
                here,
                format!("there is no `{first}`"),
                "not a declaration",
                "a declaration begins with what it declares: `model`, `layout`, `cluster`, `train`",
            ),
            _ => return None,
        };
        reports.tear(report);
        Some(self.leave_out(start, end, at))
    }

    /// `train llama-70b`: taken as one name.
    fn dashed_name(&mut self, at: usize, reports: &mut Reports) -> Option<Outcome> {
        let mut last = at;
        while let (Some(a), Some(b)) = (self.tokens.get(last), self.tokens.get(last + 1)) {
            let part = matches!(b.tok, Tok::Ident | Tok::Number | Tok::Minus | Tok::Dot) || b.tok.is_word();
            if b.start != a.end || !part {
                break;
            }
            last += 1;
        }
        let whole = self.span(at - 1).to(self.span(last));
        let text = self.slice(whole).to_owned();
        if last == at || text.contains(char::is_whitespace) {
            return None;
        }
        let right = text.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        let message = format!("the name `{text}` has signs in it");
        Self::say(whole, message, "a name has letters, digits and `_`", &right, reports);
        self.tokens.drain(at..=last);
        let name = self.tokens.get_mut(at - 1)?;
        name.end = whole.end;
        Some(Outcome::Again)
    }

    /// `p95 ttft`: taken as `p95(ttft)`.
    fn statistic(&mut self, at: usize, reports: &mut Reports) -> Option<Outcome> {
        let function = self.word(at - 1).to_owned();
        if !STATISTICS.contains(&function.as_str()) || self.tokens.get(at)?.first {
            return None;
        }
        let mut last = at;
        while self.tok(last + 1) == Some(Tok::Dot) && self.tok(last + 2) == Some(Tok::Ident) {
            last += 2;
        }
        let argument = self.span(at).to(self.span(last));
        let whole = self.span(at - 1).to(argument);
        let right = format!("{function}({})", self.slice(argument));
        let message = format!("`{function}` takes its argument in brackets");
        Self::say(whole, message, "a function and its argument", &right, reports);
        self.tokens.insert(last + 1, Token { repaired: false, ..Token::missing(Tok::RParen, argument.end) });
        self.tokens.insert(at, Token { repaired: false, ..Token::missing(Tok::LParen, argument.start) });
        Some(Outcome::Again)
    }

    /// `fn f(x: Int): Int`, or `layout L:` with a body below.
    fn head_colon(&mut self, start: usize, at: usize, reports: &mut Reports) -> Option<Outcome> {
        let here = self.span(at);
        if self.tok(at + 1) == Some(Tok::Ident) && self.tokens.get(at + 1).is_some_and(|t| !t.first) {
            let message = "`:` does not announce a result".to_owned();
            let d = errors::foreign_word(here, message, "`->` is needed", "write `-> TYPE`");
            reports.push(errors::with_fix(d, here, " ->"));
            return self.set(at, Tok::Arrow);
        }
        reports.tear(errors::foreign_word(
            here,
            format!("the body of `{}` does not begin with `:`", self.word(start + 1)),
            "`{` is needed",
            "write the body in braces: `{`, its items, `}`",
        ));
        let (_, end) = self.segment(at);
        Some(self.leave_out(start, end, at))
    }

    /// `mesh (dp, tp)`: taken as `mesh [dp, tp]`.
    fn round_list(&mut self, at: usize, reports: &mut Reports) -> Option<Outcome> {
        let mut depth = 0usize;
        let close = (at..self.tokens.len()).find(|i| {
            let tok = self.tok(*i).unwrap_or(Tok::Error);
            depth += usize::from(tok.closer().is_some());
            depth -= usize::from(tok.is_closer() && depth > 0);
            depth == 0
        })?;
        let (open_at, close_at) = (self.span(at), self.span(close));
        let edits = vec![Edit { span: open_at, text: "[".into() }, Edit { span: close_at, text: "]".into() }];
        reports.push(errors::round_list(open_at, edits));
        self.set(close, Tok::RBracket)?;
        self.set(at, Tok::LBracket)
    }

    /// `a if c else b`, `c ? a : b`.
    fn conditional(&mut self, start: usize, end: usize, at: usize, reports: &mut Reports) -> Option<Outcome> {
        let python = self.tok(at) == Some(Tok::If);
        let middle = if python { Tok::Else } else { Tok::Colon };
        let middle = (at + 1..end).find(|i| self.tok(*i) == Some(middle))?;
        let equals = (start..at).find(|i| self.tok(*i) == Some(Tok::Eq))?;
        let whole = self.span(equals + 1).to(self.span(end - 1));
        let part = |a: usize, b: usize| self.slice(self.span(a).to(self.span(b.max(a + 1) - 1))).to_owned();
        let (first, second, third) = (part(equals + 1, at), part(at + 1, middle), part(middle + 1, end));
        let right = if python {
            format!("if {second} then {first} else {third}")
        } else {
            format!("if {first} then {second} else {third}")
        };
        let message = "a choice begins with its condition";
        reports.tear(errors::foreign_at(whole, message, "`if … then … else …` is needed", &right));
        Some(self.leave_out(start, end, at))
    }

    /// `model Llama3_8B` in a job: `=` is missing.
    fn field_kind(&mut self, start: usize, at: usize, reports: &mut Reports) -> Option<Outcome> {
        let kind = self.tokens.get(start).copied().filter(|_| self.declares(start) && self.in_braces(start))?;
        let equals = self.tokens.get(start..at)?.iter().any(|t| matches!(t.tok, Tok::LBrace | Tok::Arrow));
        if equals || self.word(start) == "fn" || self.word(start) == "op" {
            return None;
        }
        let name = kind.span(self.file);
        reports.push(errors::missing_equals(self.span(start + 1), self.slice(name), name));
        self.tokens.insert(start + 1, Token { repaired: false, ..Token::missing(Tok::Eq, name.end) });
        self.set(start, Tok::Ident)
    }
}

/// `use` for a line that imports: `import std.models`, `from std.models import A, B`.
fn import(line: &str) -> Option<String> {
    let path = |p: &str| {
        let fits = p.split('.').all(|s| !s.is_empty() && s.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'));
        (fits && p.starts_with("std.")).then(|| p.replace('.', "::"))
    };
    let words: Vec<&str> = line.split([' ', ',']).filter(|w| !w.is_empty()).collect();
    match *words.as_slice() {
        ["import" | "using" | "include", from] if from.matches('.').count() > 1 => Some(format!("use {}", path(from)?)),
        ["from", from, "import", one] => Some(format!("use {}::{one}", path(from)?)),
        ["from", from, "import", ref names @ ..] => Some(format!("use {}::{{{}}}", path(from)?, names.join(", "))),
        _ => None,
    }
}
