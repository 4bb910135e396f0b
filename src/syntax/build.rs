//! What the grammar's actions call: tree nodes from byte ranges. Problems inside literals are collected.

use super::ast::{
    Arg, Block, Body, Decl, Entry, Expr, ExprKind, Index, Item, ItemKind, Kind, Let, LetValue, Name, Number, Param,
    Ret, Selector, SelectorPart, Type,
};
use super::infix::{self, Infix};
use super::{errors, literal};
use crate::diagnostics::Diagnostic;
use crate::source::{FileId, Span};
use smol_str::SmolStr;

/// What the actions share while one entry is read.
pub(super) struct Build<'a> {
    /// The file.
    pub(super) file: FileId,
    /// Its text.
    pub(super) text: &'a str,
    /// `///` lines, each with the start of the token that follows it, in order.
    pub(super) docs: &'a [(u32, SmolStr)],
    /// What was wrong in literals and braces of this entry.
    pub(super) problems: Vec<Diagnostic>,
    /// Tokens given to the grammar so far, for tests of how work grows.
    pub(super) reads: usize,
}

/// What an entry of a file gives.
pub(super) enum Entry1 {
    /// `edition 1`
    Edition(i128, Span),
    /// Anything else.
    Entry(Box<Entry>),
}

/// What follows a postfix expression.
pub(super) enum Suffix {
    Field(Name),
    Call(Vec<Arg>),
    Index(Vec<Index>),
    With(Block),
}

/// An entry of `{ … }` in an expression.
pub(super) enum Brace {
    Value(Box<Expr>),
    Field(Name, Box<Expr>),
}

/// The parameters, read in full. (A function so that the grammar needs no `Some`.)
#[expect(clippy::unnecessary_wraps, reason = "the other form of the rule gives `None`")]
pub(super) fn params(list: Vec<Param>) -> Option<Vec<Param>> {
    Some(list)
}

/// Nodes out of their boxes.
pub(super) fn unboxed<T>(list: Vec<Box<T>>) -> Vec<T> {
    list.into_iter().map(|x| *x).collect()
}

impl Build<'_> {
    pub(super) fn span(&self, l: u32, r: u32) -> Span {
        Span { file: self.file, start: l, end: r }
    }

    fn slice(&self, l: u32, r: u32) -> &str {
        self.text.get(l as usize..r as usize).unwrap_or("")
    }

    pub(super) fn name(&self, l: u32, r: u32) -> Name {
        Name { text: SmolStr::new(self.slice(l, r)), span: self.span(l, r) }
    }

    pub(super) fn string(&mut self, l: u32, r: u32) -> (SmolStr, Span) {
        let span = self.span(l, r);
        let (text, problems) = literal::string(self.slice(l, r));
        for (range, problem) in problems {
            let at = Span::new(self.file, l as usize + range.start, l as usize + range.end);
            let problem = errors::bad_escape(at, self.slice(at.start, at.end), problem);
            self.problems.push(problem);
        }
        (text, span)
    }

    pub(super) fn number(&mut self, l: u32, r: u32) -> Expr {
        let text = self.slice(l, r);
        let (digits, unit) = literal::split_unit(text);
        let hex =
            digits == "0" && unit.strip_prefix(['x', 'X']).is_some_and(|h| h.bytes().all(|b| b.is_ascii_hexdigit()));
        if hex && text.len() == digits.len() + unit.len() {
            let problem = errors::bad_number(self.span(l, r), text, literal::BadNumber::Hexadecimal);
            self.problems.push(problem);
            return self.expr(l, ExprKind::Error, r);
        }
        let value = literal::number(digits);
        let unit = (!unit.is_empty()).then(|| (SmolStr::new(unit), self.span(r - unit.len() as u32, r)));
        let digits = self.span(l, l + digits.len() as u32);
        match value {
            Ok(value) => self.expr(l, ExprKind::Number { value, unit }, r),
            Err(problem) => {
                let problem = errors::bad_number(digits, self.slice(digits.start, digits.end), problem);
                self.problems.push(problem);
                self.expr(l, ExprKind::Error, r)
            }
        }
    }

    pub(super) fn edition(&mut self, number: &Expr, l: u32, r: u32) -> Entry1 {
        let ExprKind::Number { value: Number::Int(n), unit: None } = number.kind else {
            let problem = errors::bad_edition(number.span, self.slice(number.span.start, number.span.end));
            self.problems.push(problem);
            return Entry1::Edition(1, self.span(l, r));
        };
        Entry1::Edition(n, self.span(l, r))
    }

    pub(super) fn expr(&self, l: u32, kind: ExprKind, r: u32) -> Expr {
        Expr { kind, span: self.span(l, r) }
    }

    /// `a`, `std::models::Llama3_8B`; and what other languages write for `true`, `false` and `none`.
    #[expect(clippy::unnecessary_box_returns, reason = "the grammar passes boxes")]
    pub(super) fn path(&mut self, l: u32, first: Name, mut rest: Vec<Name>, r: u32) -> Box<Expr> {
        if rest.is_empty() {
            let (right, kind) = match first.text.as_str() {
                "True" | "TRUE" => ("true", ExprKind::Bool(true)),
                "False" | "FALSE" => ("false", ExprKind::Bool(false)),
                "None" | "null" | "nil" => {
                    ("none", ExprKind::Path(vec![Name { text: "none".into(), ..first.clone() }]))
                }
                _ => return self.boxed(l, ExprKind::Path(vec![first]), r),
            };
            let message = format!("`{}` is written `{right}`", first.text);
            self.problems.push(errors::foreign_at(first.span, message, &format!("not `{right}`"), right));
            return self.boxed(l, kind, r);
        }
        rest.insert(0, first);
        self.boxed(l, ExprKind::Path(rest), r)
    }

    /// `(e)`: the value of `e`, with the brackets in its span.
    #[expect(clippy::unnecessary_box_returns, reason = "the grammar passes boxes")]
    pub(super) fn bracketed(&self, l: u32, mut e: Box<Expr>, r: u32) -> Box<Expr> {
        e.span = self.span(l, r);
        e
    }

    pub(super) fn boxed(&self, l: u32, kind: ExprKind, r: u32) -> Box<Expr> {
        Box::new(self.expr(l, kind, r))
    }

    #[expect(clippy::unnecessary_box_returns, reason = "the grammar passes boxes")]
    pub(super) fn binary(&mut self, mut a: Box<Expr>, (op, at): (Infix, Span), b: Box<Expr>) -> Box<Expr> {
        let end = b.span.end;
        if let Err(shared) = infix::join(&mut a, op, at, b) {
            let [sign, text] = [at, shared].map(|s| self.slice(s.start, s.end));
            let problem =
                if sign == ".." { errors::range_chained(at, shared) } else { errors::chained(at, sign, shared, text) };
            self.problems.push(problem);
            *a = self.expr(a.span.start, ExprKind::Error, end);
        }
        a
    }

    #[expect(clippy::unnecessary_box_returns, reason = "the grammar passes boxes")]
    pub(super) fn suffix(&self, l: u32, e: Box<Expr>, suffix: Suffix, r: u32) -> Box<Expr> {
        let kind = match suffix {
            Suffix::Field(name) => ExprKind::Field(e, name),
            Suffix::Call(args) => ExprKind::Call(e, args),
            Suffix::Index(list) => ExprKind::Index(e, list),
            Suffix::With(block) => ExprKind::With(e, block),
        };
        self.boxed(l, kind, r)
    }

    /// A set, a record, or one of them after saying that the braces mix both.
    pub(super) fn braces(&mut self, l: u32, entries: Vec<Brace>, r: u32) -> Expr {
        let mut fields = Vec::new();
        let mut values = Vec::new();
        for entry in entries {
            match entry {
                Brace::Field(name, value) => fields.push((name, *value)),
                Brace::Value(e) => values.push(*e),
            }
        }
        if fields.is_empty() && !values.is_empty() {
            return self.expr(l, ExprKind::Set(values), r);
        }
        // Braces whose end was put in may have taken in what is not theirs.
        let closed = self.slice(l, r).ends_with('}');
        let stray = values.iter().find(|e| closed && !matches!(e.kind, ExprKind::Error));
        if let (Some(stray), Some((name, value))) = (stray, fields.first()) {
            let text = self.slice(stray.span.start, stray.span.end);
            let problem = errors::mixed_braces(stray.span, text, name.span.to(value.span));
            self.problems.push(problem);
        }
        self.expr(l, ExprKind::Record(fields), r)
    }

    pub(super) fn selector(&self, l: u32, first: SelectorPart, mut parts: Vec<SelectorPart>, r: u32) -> Selector {
        parts.insert(0, first);
        Selector { parts, span: self.span(l, r) }
    }

    pub(super) fn item(&self, l: u32, kind: ItemKind, r: u32) -> Item {
        Item { docs: self.docs_before(l), kind, span: self.span(l, r) }
    }

    pub(super) fn binding(&self, l: u32, name: Name, ty: Option<Type>, value: LetValue, r: u32) -> Let {
        Let { docs: self.docs_before(l), name, ty, value, span: self.span(l, r) }
    }

    pub(super) fn unit(&self, l: u32, name: Name, value: Option<Box<Expr>>, r: u32) -> Decl {
        let body = value.map_or(Body::None, Body::Expr);
        let docs = self.docs_before(l);
        Decl { docs, kind: Kind::Unit, name, params: None, ret: None, body, span: self.span(l, r) }
    }

    /// A declaration. Where its parameters could not be read (`Some(None)`) its body begins with an error, so that
    /// later stages know that the head is not to be relied on.
    #[expect(clippy::too_many_arguments, reason = "the parts of the rule, in order")]
    #[expect(clippy::option_option, reason = "no parameters, and parameters that could not be read")]
    pub(super) fn decl(
        &self,
        l: u32,
        kind: Kind,
        name: Name,
        params: Option<Option<Vec<Param>>>,
        ret: Option<Ret>,
        mut body: Body,
        r: u32,
    ) -> Decl {
        if matches!(params, Some(None)) {
            match &mut body {
                Body::Expr(e) => e.kind = ExprKind::Error,
                Body::Block(b) => b.items.insert(0, Item { docs: Vec::new(), kind: ItemKind::Error, span: name.span }),
                Body::None => {}
            }
        }
        Decl { docs: self.docs_before(l), kind, name, params: params.flatten(), ret, body, span: self.span(l, r) }
    }

    /// The `///` lines directly before the token that starts at `at`.
    fn docs_before(&self, at: u32) -> Vec<SmolStr> {
        let from = self.docs.partition_point(|d| d.0 < at);
        self.docs.get(from..).into_iter().flatten().take_while(|d| d.0 == at).map(|d| d.1.clone()).collect()
    }
}
