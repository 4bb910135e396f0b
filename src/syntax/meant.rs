//! Repairs where it is clear what was meant: each says what is wrong and makes the tokens what they should be.

use super::brackets::begins_entry;
use super::errors::{self, Found};
use super::parse::Failure;
use super::recover::{Outcome, Recovery};
use super::report::Reports;
use super::token::{Tok, Token};
use crate::source::Span;

impl Recovery<'_> {
    /// Mends the tokens and says so, if the failure is one of those below.
    pub(super) fn meant(&mut self, failure: &Failure, reports: &mut Reports) -> Option<Outcome> {
        let at = failure.at;
        let found = self.tokens.get(at).copied()?;
        let here = found.span(self.file);
        let before = self.before(at);
        let wants = |t: &str| failure.expected.iter().any(|e| e.trim_matches('"') == t);
        match found.tok {
            Tok::For => return self.for_loop(at, reports),
            Tok::Colon | Tok::EqEq
                if before.is_some_and(|b| b.tok == Tok::Ident) && self.begins(at - 1) && wants("=") =>
            {
                let field = self.slice(self.span(at - 1));
                let report = if found.tok == Tok::Colon {
                    errors::colon(here, field, before.is_some_and(|b| b.end == found.start))
                } else {
                    errors::equals_for_field(here, field)
                };
                reports.push(report);
                self.put(at, Tok::Eq);
            }
            Tok::Eq if before.is_some_and(|b| b.tok == Tok::Number) && self.swallowed(at, reports) => {}
            Tok::Eq if wants("==") && !matches!(self.tok(at + 1), None | Some(Tok::Sep | Tok::RBrace)) => {
                let (start, _) = self.segment(at);
                let claims = [Tok::Require, Tok::Expect, Tok::If];
                if !self.tok(start).is_some_and(|t| claims.contains(&t)) && !wants("then") {
                    return None;
                }
                reports.push(errors::equals_for_comparison(here));
                self.put(at, Tok::EqEq);
            }
            Tok::Dot if self.tok(0) == Some(Tok::Use) => {
                let from = self.span(1);
                let mut path = from;
                for (i, t) in self.tokens.iter_mut().enumerate().skip(1).take_while(|t| t.1.tok != Tok::LBrace) {
                    if matches!(t.tok, Tok::Dot | Tok::Path | Tok::Ident | Tok::Str) {
                        path.end = t.end;
                    }
                    if t.tok == Tok::Dot && i >= at {
                        t.tok = Tok::Path;
                    }
                }
                let right = self.slice(path).replace('.', "::");
                if right == self.slice(path) {
                    return None;
                }
                reports.push(errors::dotted_path(here, path, &right));
            }
            Tok::LParen | Tok::LBracket if found.first && before.is_some_and(|b| b.tok == Tok::Sep) => {
                let last = self.before(at - 1)?;
                let gap = Span { start: last.end, end: found.start, ..here };
                let mark = found.tok.spelling().unwrap_or("");
                reports.push(errors::bracket_on_next_line(here, gap, mark, self.slice(last.span(self.file))));
                self.tokens.remove(at - 1);
            }
            _ if before.is_some_and(|b| b.tok == Tok::Dot)
                && self.before(at - 1).is_some_and(|b| b.tok == Tok::Number) =>
            {
                self.bare_point(at - 1, reports)?;
            }
            Tok::Number => {
                if !self.thousands(at, reports) && !self.missing_equals(at, reports) {
                    return None;
                }
            }
            Tok::Str if self.missing_equals(at, reports) => {}
            Tok::Ident if before.is_some_and(|b| b.tok == Tok::Number) && !found.first => {
                self.loose_prefix(at, reports)?;
            }
            Tok::Dot => self.bare_point(at, reports)?,
            Tok::StarStar if before.is_some_and(|b| b.tok.can_end_item()) && !wants("**") => {
                reports.push(errors::stars_for_power(here));
                self.put(at, Tok::Caret);
            }
            word if word.is_word()
                && wants("ID")
                && before.is_some_and(|b| !matches!(b.tok, Tok::LBrace | Tok::Sep)) =>
            {
                return self.reserved(at, reports);
            }
            _ => return self.missing_separator(failure, reports),
        }
        Some(Outcome::Again)
    }

    fn put(&mut self, at: usize, tok: Tok) {
        if let Some(t) = self.tokens.get_mut(at) {
            t.tok = tok;
        }
    }

    /// `for i in 0..n {`: taken as `repeat i = n {`.
    fn for_loop(&mut self, at: usize, reports: &mut Reports) -> Option<Outcome> {
        let first = self.tokens.get(at).is_some_and(|t| t.first) || self.begins(at);
        if !first || self.tok(at + 1) != Some(Tok::Ident) || self.tok(at + 2) != Some(Tok::In) {
            return None;
        }
        let brace = (at + 3..self.tokens.len()).find(|i| matches!(self.tok(*i), Some(Tok::LBrace | Tok::Sep)))?;
        if self.tok(brace) != Some(Tok::LBrace) {
            return None;
        }
        let here = self.span(at);
        let head = here.to(self.span(brace - 1));
        let variable = self.slice(self.span(at + 1)).to_owned();
        let mut depth = 0usize;
        let end = (brace..self.tokens.len()).find(|i| {
            depth += usize::from(self.tok(*i) == Some(Tok::LBrace));
            depth -= usize::from(self.tok(*i) == Some(Tok::RBrace));
            depth == 0
        })?;
        let used = (brace..end).any(|i| self.tok(i) == Some(Tok::Ident) && self.slice(self.span(i)) == variable);
        let from_zero = self.slice(self.span(at + 3)) == "0" && self.tok(at + 4) == Some(Tok::DotDot) && brace > at + 5;
        if from_zero {
            let count = self.slice(self.span(at + 5).to(self.span(brace - 1)));
            let right =
                format!("repeat layer = {count}{}", if used { format!(" as {variable}") } else { String::new() });
            reports.push(errors::for_loop(here, head, Some(&right)));
            self.put(at, Tok::Repeat);
            self.put(at + 2, Tok::Eq);
            self.tokens.drain(at + 3..at + 5);
        } else {
            reports.push(errors::for_loop(here, head, None));
            self.tokens.drain(at + 1..=end);
            self.put(at, Tok::Error);
        }
        if !self.begins(at) {
            let end = self.before(at).map_or(0, |b| b.end);
            self.tokens.insert(at, Token::missing(Tok::Sep, end));
        }
        Some(Outcome::Again)
    }

    /// `2,048 seq`: taken as one number.
    fn thousands(&mut self, at: usize, reports: &mut Reports) -> bool {
        let digits = |t: Token| {
            let text = self.slice(t.span(self.file));
            let digits = text.bytes().take_while(u8::is_ascii_digit).count();
            (digits, digits == text.len())
        };
        let (Some(comma), Some(number)) = (self.before(at), self.tokens.get(at).copied()) else { return false };
        let Some(lead) = self.before(at - 1).filter(|t| t.tok == Tok::Number) else { return false };
        let glued =
            comma.tok == Tok::Sep && comma.start == lead.end && comma.end == number.start && comma.end > comma.start;
        if !glued || !matches!(digits(lead), (1..=3, true)) || digits(number).0 != 3 {
            return false;
        }
        // Further groups follow as further numbers.
        let mut last = at;
        while let (Some(a), Some(c), Some(b)) =
            (self.tokens.get(last), self.tokens.get(last + 1), self.tokens.get(last + 2))
        {
            let next =
                c.tok == Tok::Sep && b.tok == Tok::Number && c.start == a.end && c.end == b.start && c.end > c.start;
            if !next || digits(*b).0 != 3 {
                break;
            }
            last += 2;
        }
        let whole = lead.span(self.file).to(self.span(last));
        let text = self.slice(whole);
        reports.push(errors::thousands(whole, text, &text.replace(',', "")));
        // The value is wrong without its commas, so nothing more is said of it.
        self.tokens.drain(at - 1..=last);
        self.put(at - 2, Tok::Error);
        true
    }

    /// `batch 256 seq`: taken with its `=`.
    fn missing_equals(&mut self, at: usize, reports: &mut Reports) -> bool {
        let Some(name) = self.before(at).filter(|b| b.tok == Tok::Ident) else { return false };
        if !self.begins(at - 1) || !self.in_braces(at) {
            return false;
        }
        let name = name.span(self.file);
        reports.push(errors::missing_equals(self.span(at), self.slice(name), name));
        self.tokens.insert(at, Token::missing(Tok::Eq, name.end));
        true
    }

    /// `tp = 4 pp = 2`: the next name was taken for the unit of the number.
    fn swallowed(&mut self, at: usize, reports: &mut Reports) -> bool {
        let Some(number) = self.before(at).map(|b| b.span(self.file)) else { return false };
        let (digits, unit) = super::literal::split_unit(self.slice(number));
        let (digits, unit) = (digits.len() as u32, unit.len() as u32);
        let name = Span { start: number.end - unit, ..number };
        if unit == 0 || digits + unit == number.end - number.start || self.slice(name).contains(['/', '$', '%']) {
            return false;
        }
        let value = Span { end: number.start + digits, ..number };
        let separator = if self.in_braces(at) { Tok::Sep } else { Tok::Comma };
        reports.push(errors::missing_separator(name, self.slice(name), value, separator));
        if let Some(t) = self.tokens.get_mut(at - 1) {
            t.end = value.end;
        }
        let word = Token { tok: Tok::Ident, first: false, repaired: false, start: name.start, end: name.end };
        self.tokens.splice(at..at, [Token::missing(separator, value.end), word]);
        true
    }

    /// `8k tok`: taken as one number. `2 h rest`: said, and left out.
    fn loose_prefix(&mut self, at: usize, reports: &mut Reports) -> Option<()> {
        const PREFIXES: [(&str, u32); 11] = [
            ("k", 3),
            ("K", 3),
            ("M", 6),
            ("G", 9),
            ("T", 12),
            ("P", 15),
            ("Ki", 0),
            ("Mi", 0),
            ("Gi", 0),
            ("Ti", 0),
            ("Pi", 0),
        ];
        let number = self.before(at)?.span(self.file);
        let word = self.span(at);
        let (digits, unit) = super::literal::split_unit(self.slice(number));
        let unit_at = Span { start: number.end - unit.len() as u32, ..number };
        if unit.is_empty() {
            return None;
        }
        let whole = number.to(word);
        // Anything between them (a comment) makes it something else.
        if !self.text.get(number.end as usize..word.start as usize).is_some_and(|t| t.trim().is_empty()) {
            return None;
        }
        if let Some((prefix, power)) = PREFIXES.iter().find(|p| p.0 == unit) {
            let name = self.slice(word);
            let prefix = if *prefix == "K" { "k" } else { prefix };
            let joined = format!("{digits} {prefix}{name}");
            let zeros = digits.bytes().all(|b| b.is_ascii_digit()) && *power > 0;
            let plain = zeros.then(|| format!("{digits}{} {name}", "0".repeat(*power as usize)));
            reports.push(errors::loose_prefix(whole, self.slice(whole), &joined, plain.as_deref()));
        } else {
            let missing = self.tok(at + 1).is_some_and(|t| t == Tok::Eq) && self.in_braces(at);
            if missing {
                reports.push(errors::missing_separator(word, self.slice(word), number, Tok::Sep));
                self.tokens.insert(at, Token::missing(Tok::Sep, number.end));
                return Some(());
            }
            if self.times_sign(at, unit_at, reports) {
                return Some(());
            }
            reports.push(errors::two_units(word, self.slice(unit_at), self.slice(word)));
        }
        self.tokens.remove(at);
        self.put(at - 1, Tok::Error);
        Some(())
    }

    /// `8 x H100_SXM` of a level: taken as `8 of H100_SXM`, and behind `over` as a product.
    fn times_sign(&mut self, at: usize, unit: Span, reports: &mut Reports) -> bool {
        let (start, _) = self.segment(at);
        if !self.slice(unit).eq_ignore_ascii_case("x") || self.tok(start) != Some(Tok::Level) {
            return false;
        }
        let links = (start..at).any(|i| self.tok(i) == Some(Tok::Over));
        let (right, tok) = if links { ("*", Tok::Star) } else { ("of", Tok::Of) };
        let glued = self.text.get(..unit.start as usize).is_some_and(|t| t.ends_with(|c: char| c.is_ascii_digit()));
        reports.push(errors::times_sign(unit, self.slice(unit), right, glued));
        if let Some(number) = self.tokens.get_mut(at - 1) {
            number.end = unit.start;
        }
        self.tokens.insert(at, Token { tok, first: false, repaired: true, start: unit.start, end: unit.end });
        true
    }

    /// `1.` or `.5`
    fn bare_point(&mut self, at: usize, reports: &mut Reports) -> Option<()> {
        let point = self.span(at);
        let glued = |i: usize| self.tokens.get(i).filter(|t| t.tok == Tok::Number).map(|t| t.span(self.file));
        let after = glued(at + 1).filter(|n| n.start == point.end);
        let before = at.checked_sub(1).and_then(glued).filter(|n| n.end == point.start);
        match (before, after) {
            (Some(n), Some(m)) => {
                let whole = n.to(m);
                let text = self.slice(whole);
                reports.push(errors::unexpected(whole, &Found::Text(text), &["NUM".into()]));
                self.tokens.drain(at..at + 2);
                self.put(at - 1, Tok::Error);
            }
            (Some(n), None) => {
                let whole = n.to(point);
                let right = format!("{}0", self.slice(whole));
                reports.push(errors::bare_point(whole, self.slice(whole), &right));
                self.tokens.remove(at);
            }
            (None, Some(m)) => {
                let whole = point.to(m);
                let right = format!("0{}", self.slice(whole));
                reports.push(errors::bare_point(whole, self.slice(whole), &right));
                self.tokens.remove(at);
            }
            (None, None) => return None,
        }
        Some(())
    }

    /// A reserved word where a name is needed: taken as that name.
    fn reserved(&mut self, at: usize, reports: &mut Reports) -> Option<Outcome> {
        let t = self.tokens.get(at).copied()?;
        let word = t.tok.spelling()?;
        let next = self.tok(at + 1);
        let declared = self.before(at).is_some_and(|b| b.tok.kind().is_some());
        let as_name = declared || matches!(next, Some(Tok::Eq | Tok::Comma | Tok::RBracket | Tok::RParen | Tok::Colon));
        if (t.tok.is_connective() || t.tok == Tok::Dim) && !as_name {
            return None;
        }
        let here = t.span(self.file);
        reports.reserved(word, here, || {
            let plain = if word == "model" { "tensor".to_owned() } else { format!("{word}_") };
            // A name that the file has already would clash.
            if self.text.contains(plain.as_str()) { format!("{word}_1") } else { plain }
        });
        self.put(at, Tok::Ident);
        Some(Outcome::Again)
    }

    /// Two items, or two entries, side by side.
    fn missing_separator(&mut self, failure: &Failure, reports: &mut Reports) -> Option<Outcome> {
        let at = failure.at;
        let t = self.tokens.get(at).copied()?;
        let before = self.before(at).filter(|b| b.tok.can_end_item())?;
        let next = self.tok(at + 1);
        let here = t.span(self.file);
        // Nothing is expected where an entry is complete.
        if failure.expected.is_empty() && begins_entry(t.tok, next) {
            reports.push(errors::missing_line_break(here, self.slice(here), before.span(self.file)));
            return Some(Outcome::Split(at));
        }
        let item = match t.tok {
            Tok::Ident => next == Some(Tok::Eq),
            Tok::In | Tok::If | Tok::Reduce => false,
            tok => tok.begins_item() && (tok.kind().is_none() || next == Some(Tok::Ident)),
        };
        let separator = if self.in_braces(at) { Tok::Sep } else { Tok::Comma };
        if !item || (separator == Tok::Comma && (t.tok != Tok::Ident || !self.in_brackets(at))) {
            return None;
        }
        reports.push(errors::missing_separator(here, self.slice(here), before.span(self.file), separator));
        self.tokens.insert(at, Token::missing(separator, before.end));
        Some(Outcome::Again)
    }

    /// Whether token `at` lies in any bracket.
    fn in_brackets(&self, at: usize) -> bool {
        let before = || self.tokens.iter().take(at);
        before().filter(|t| t.tok.closer().is_some()).count() > before().filter(|t| t.tok.is_closer()).count()
    }
}
