//! Rows of a table from a file of comma-separated values, whose text the resolver read.

use super::super::{Env, Evaluator, Quantity, Value, Wanted};
use super::{Column, Row, errors, unit_of};
use crate::limits;
use crate::source::Span;
use crate::syntax::ast::{Arg, Expr, ExprKind};
use std::rc::Rc;

/// Where a column's numbers are: header, what one is worth, and the place of `column(…)`.
struct From {
    header: String,
    unit: Quantity,
    span: Span,
}

impl<'p> Evaluator<'p, '_> {
    /// `from = csv("f.csv", key = column("header", UNIT), value = column(…))`
    pub(super) fn file_rows(&mut self, e: &'p Expr, env: &Rc<Env<'p>>, columns: &[Column]) -> Option<Vec<Row>> {
        let names: Vec<&str> = columns.iter().map(|c| c.name.as_str()).collect();
        let parts = crate::hir::csv_call(e);
        let Some((name, path, args)) = parts else {
            self.sink.error(errors::source_form(&names, e.span));
            return None;
        };
        let mut sources: Vec<Option<From>> = columns.iter().map(|_| None).collect();
        for arg in args {
            let place = match arg {
                Arg::Named(n, e) => columns.iter().position(|c| c.name == n.text).map(|i| (i, e)),
                Arg::Positional(_) | Arg::Domain(..) => None,
            };
            let Some((i, e)) = place else {
                self.sink.error(errors::source_form(&names, arg_span(arg)));
                return None;
            };
            sources[i] = Some(self.column(e, env, &columns[i], &names)?);
        }
        let missing = columns.iter().zip(&sources).find(|(_, s)| s.is_none());
        if let Some((column, _)) = missing {
            self.sink.error(errors::column_missing(&column.name, e.span));
            return None;
        }
        let sources: Vec<From> = sources.into_iter().flatten().collect();
        // Not read: that was reported where files are read.
        let Some(text) = self.program.data.get(&name.span).cloned() else {
            self.reported_before();
            return None;
        };
        self.parse(&text, path, &sources)
    }

    fn column(&mut self, e: &'p Expr, env: &Rc<Env<'p>>, column: &Column, names: &[&str]) -> Option<From> {
        let ExprKind::Call(f, args) = &e.kind else {
            self.sink.error(errors::source_form(names, e.span));
            return None;
        };
        let (header, unit) = match (super::word(f), &args[..]) {
            (Some("column"), [Arg::Positional(h)]) => (h, None),
            (Some("column"), [Arg::Positional(h), Arg::Positional(u)]) => (h, Some(u)),
            _ => {
                self.sink.error(errors::source_form(names, e.span));
                return None;
            }
        };
        let ExprKind::Str(header) = &header.kind else {
            self.sink.error(errors::source_form(names, header.span));
            return None;
        };
        let wanted = Wanted::Quantity(unit_of(&column.wanted));
        let unit = match unit {
            Some(u) => {
                let value = self.eval(u, env, &Wanted::Any);
                let value = self.require(value, &wanted, &format!("a number of column `{}`", column.name), u.span);
                let Value::Num(q) = value else { return None };
                q
            }
            None if unit_of(&column.wanted).is_none() => {
                Quantity { num: super::Num::Int(1), unit: unit_of(&column.wanted) }
            }
            None => {
                self.sink.error(errors::column_unit(&column.name, &unit_of(&column.wanted), e.span));
                return None;
            }
        };
        Some(From { header: header.to_string(), unit, span: e.span })
    }

    fn parse(&mut self, text: &str, path: &str, sources: &[From]) -> Option<Vec<Row>> {
        // A byte order mark is not part of the first header.
        let mut lines = text.strip_prefix('\u{feff}').unwrap_or(text).lines().enumerate();
        let headers = lines.next().map(|(_, l)| cells(l)).unwrap_or_default();
        let mut places = Vec::with_capacity(sources.len());
        for source in sources {
            match headers.iter().position(|h| *h == source.header) {
                Some(i) => places.push(i),
                None => {
                    self.sink.error(errors::header_missing(&source.header, path, &headers, source.span));
                    return None;
                }
            }
        }
        let mut out = Vec::new();
        for (i, line) in lines.filter(|(_, l)| !l.trim().is_empty()) {
            let cells = cells(line);
            if out.len() >= limits::TABLE_ROWS {
                self.sink.error(errors::row_count(out.len() + 1, sources[0].span));
                return None;
            }
            let mut row = Vec::with_capacity(sources.len());
            for (source, place) in sources.iter().zip(&places) {
                let cell = cells.get(*place).map_or("", String::as_str);
                match cell.parse::<f64>().ok().filter(|v| v.is_finite()) {
                    Some(v) => row.push((Self::scaled(v, &source.unit), source.span)),
                    None => {
                        self.sink.error(errors::cell(cell, &source.header, path, i + 1, source.span));
                        return None;
                    }
                }
            }
            out.push(row);
        }
        Some(out)
    }
}

fn arg_span(arg: &Arg) -> Span {
    match arg {
        Arg::Positional(e) | Arg::Named(_, e) | Arg::Domain(_, e) => e.span,
    }
}

/// The cells of a line: separated by commas, blanks around them dropped, `"` around a cell that holds a comma.
fn cells(line: &str) -> Vec<String> {
    let (mut out, mut cell, mut quoted) = (Vec::new(), String::new(), false);
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                cell.push('"');
                chars.next();
            }
            '"' => quoted = !quoted,
            ',' if !quoted => out.push(std::mem::take(&mut cell).trim().to_string()),
            c => cell.push(c),
        }
    }
    out.push(cell.trim().to_string());
    out
}
