//! Operators: both sides must be of one unit, or of kinds that work together.

use super::super::ty::{Ty, Whole, type_name};
use super::super::{Checker, Inside, errors};
use crate::diagnostics::{Applicability, Diagnostic};
use crate::eval::errors as said;
use crate::source::Span;
use crate::syntax::ast::{BinaryOp, Expr, ExprKind, Kind, Number, UnaryOp};
use crate::units::Unit;

impl<'p> Checker<'p, '_> {
    pub(super) fn unary(&mut self, op: UnaryOp, e: &'p Expr, want: Whole) -> Ty<'p> {
        let ty = self.infer(e, want);
        match (op, ty) {
            (UnaryOp::Not, Ty::Bool) => Ty::Bool,
            (UnaryOp::Neg, ty @ (Ty::Number { .. } | Ty::Tensor)) => ty,
            (_, Ty::Unknown) | (UnaryOp::Not, Ty::Tensor) => Ty::Unknown,
            (UnaryOp::Not, other) => self.error(said::wrong_kind("`not`", "true or false", &other.noun(), e.span)),
            (UnaryOp::Neg, other) => self.error(said::wrong_kind("`-`", "a number", &other.noun(), e.span)),
        }
    }

    /// `a + b + c …`: the left spine is walked, not recursed into, so a long sum is no deep tree.
    pub(super) fn chain(&mut self, expr: &'p Expr, want: Whole) -> Ty<'p> {
        if let Some(d) = self.dashed_name(expr) {
            return self.error(d);
        }
        let mut spine = Vec::new();
        let mut at = expr;
        let mut want = want;
        while let ExprKind::Binary(op, span, a, b) = &at.kind {
            let inner = match op {
                BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div => want,
                BinaryOp::IntDiv | BinaryOp::Mod => Whole::Yes,
                _ => Whole::Maybe,
            };
            spine.push((*op, *span, &**a, &**b, want));
            want = inner;
            at = a;
        }
        let mut left = self.infer(at, want);
        while let Some((op, span, a, b, want)) = spine.pop() {
            let inner = match op {
                BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div => want,
                BinaryOp::IntDiv | BinaryOp::Mod => Whole::Yes,
                _ => Whole::Maybe,
            };
            let right = self.infer(b, inner);
            left = self.binary(op, span, (left, a), (right, b), want);
        }
        left
    }

    fn binary(
        &mut self,
        op: BinaryOp,
        at: Span,
        (x, a): (Ty<'p>, &'p Expr),
        (y, b): (Ty<'p>, &'p Expr),
        want: Whole,
    ) -> Ty<'p> {
        use BinaryOp::{Add, And, Contract, Div, Divides, Eq, Ge, Gt, IntDiv, Le, Lt, Mod, Mul, Ne, Or, Pow, Sub};
        let truth = matches!(op, Eq | Ne | Lt | Le | Gt | Ge | Divides | And | Or);
        match (x, y) {
            (Ty::Number { unit: u, whole: p }, Ty::Number { unit: v, whole: q }) => {
                let whole = both(p, q);
                match op {
                    Add | Sub | Eq | Ne | Lt | Le | Gt | Ge if u != v => {
                        let d = self.unit_mismatch(op, at, (&u, a), (&v, b));
                        self.error(d);
                        if truth { Ty::Bool } else { Ty::Unknown }
                    }
                    Add | Sub => Ty::Number { unit: u, whole },
                    Mul => {
                        let unit = u.mul(&v);
                        Ty::Number { whole: if p == q { whole } else { Whole::Maybe }, unit }
                    }
                    Div => {
                        let exact = want == Whole::Yes && whole == Whole::Yes;
                        Ty::Number { unit: u.div(&v), whole: if exact { Whole::Yes } else { Whole::Maybe } }
                    }
                    IntDiv | Mod | Divides if p == Whole::No || q == Whole::No => {
                        let span = if p == Whole::No { a.span } else { b.span };
                        self.error(said::wrong_kind(&format!("`{}`", op.text()), "whole numbers", "a fraction", span))
                    }
                    IntDiv => Ty::Number { unit: u.div(&v), whole: Whole::Yes },
                    Mod => Ty::Number { unit: u, whole: Whole::Yes },
                    Pow => self.power(&u, whole, (&v, b)),
                    Eq | Ne | Lt | Le | Gt | Ge | Divides => Ty::Bool,
                    Contract if self.inside == Inside::Model => Ty::Tensor,
                    Contract => self.error(said::operator_kinds(op, at, ("a number", a.span), ("a number", b.span))),
                    And | Or => {
                        let (l, r) = (Ty::Number { unit: u, whole: p }.noun(), Ty::Number { unit: v, whole: q }.noun());
                        self.error(said::operator_kinds(op, at, (&l, a.span), (&r, b.span)));
                        Ty::Bool
                    }
                }
            }
            (Ty::Unknown | Ty::Tensor, _) | (_, Ty::Unknown | Ty::Tensor) if truth => Ty::Bool,
            (Ty::Tensor, _) | (_, Ty::Tensor) => Ty::Tensor,
            (Ty::Unknown, _) | (_, Ty::Unknown) => Ty::Unknown,
            (Ty::Bool, Ty::Bool) if matches!(op, And | Or | Eq | Ne) => Ty::Bool,
            (Ty::List(l), Ty::List(_)) if op == Add => Ty::List(l),
            (Ty::List(l), Ty::Number { unit, .. }) if op == Mul && unit.is_none() => Ty::List(l),
            (Ty::Number { unit, .. }, Ty::Thing(t)) if op == Mul && unit.is_none() && t.kind == Kind::Link => Ty::Links,
            (x, y) if matches!(op, Eq | Ne) && comparable(&x, &y) => Ty::Bool,
            (x, y) => {
                let d = said::operator_kinds(op, at, (&x.noun(), a.span), (&y.noun(), b.span));
                // `device / 8`: the device, where their number is meant.
                let count = [(&x, a), (&y, b)].into_iter().find(|(ty, e)| {
                    let one = matches!(&e.kind, ExprKind::Kind(Kind::Device));
                    one && matches!(ty, Ty::Thing(_)) && self.scope.find("devices").is_some()
                });
                let number = matches!(x, Ty::Number { .. }) || matches!(y, Ty::Number { .. });
                self.error(match count.filter(|_| number) {
                    Some((_, e)) => errors::device_counted(d, e.span),
                    None => d,
                });
                if truth { Ty::Bool } else { Ty::Unknown }
            }
        }
    }

    /// `u ^ e`: a quantity takes a whole literal.
    fn power(&mut self, unit: &Unit, whole: Whole, (v, e): (&Unit, &'p Expr)) -> Ty<'p> {
        if !v.is_none() {
            return self.error(said::wrong_kind("`^`", "a whole exponent between -64 and 64", &v.noun(), e.span));
        }
        if unit.is_none() {
            return Ty::Number { unit: Unit::none(), whole: if whole == Whole::Yes { Whole::Maybe } else { whole } };
        }
        match literal(e).filter(|n| n.fract() == 0.0 && n.abs() <= 64.0).and_then(|n| unit.pow(n as i64)) {
            Some(unit) => Ty::number(unit),
            None => Ty::Unknown,
        }
    }

    /// `if c then 0 else TIME`: where one branch is a bare number, that number is what to edit.
    pub(super) fn branches(&self, at: Span, (u, a): (&Unit, &'p Expr), (v, b): (&Unit, &'p Expr)) -> Diagnostic {
        let bare = |unit: &Unit, e: &Expr| unit.is_none() && literal(e).is_some();
        let (number, other, unit) = match (bare(u, a), bare(v, b)) {
            (false, true) => (b, a, u),
            (true, false) => (a, b, v),
            _ => return errors::branches(at, (a.span, u), (b.span, v), None),
        };
        let text = self.sources.snippet(number.span);
        // Nothing is nothing in every scale; other numbers need a scale chosen.
        let fix = literal(number).filter(|n| *n == 0.0).map(|_| format!("{text} {unit}"));
        errors::branches(number.span, (number.span, &Unit::none()), (other.span, unit), fix)
    }

    /// `LATENCY + n * BANDWIDTH`: one side is a product whose quotient would fit, or the other way round.
    fn swapped(&mut self, fits: &Unit, e: &'p Expr) -> Option<(Span, BinaryOp, String)> {
        // Nothing is told while quiet, and looking twice at every level would take for ever.
        if self.quiet {
            return None;
        }
        let ExprKind::Binary(op @ (BinaryOp::Mul | BinaryOp::Div), at, a, b) = &e.kind else { return None };
        let (Ty::Number { unit: u, .. }, Ty::Number { unit: v, .. }) = (self.infer_quietly(a), self.infer_quietly(b))
        else {
            return None;
        };
        let (other, unit) = if *op == BinaryOp::Mul { (BinaryOp::Div, u.div(&v)) } else { (BinaryOp::Mul, u.mul(&v)) };
        let name = |unit: &Unit| {
            let ty = Ty::number(unit.clone());
            type_name(&ty).map_or_else(|| unit.noun(), String::from)
        };
        (unit == *fits).then(|| (*at, other, format!("{} {} {} is {}", name(&u), other.text(), name(&v), name(&unit))))
    }

    /// The message of evaluation; where one side is a bare number, that number is what to edit.
    fn unit_mismatch(
        &mut self,
        op: BinaryOp,
        at: Span,
        (u, a): (&Unit, &'p Expr),
        (v, b): (&Unit, &'p Expr),
    ) -> Diagnostic {
        let d = said::unit_mismatch(op, at, (u, a.span), (v, b.span));
        let bare = |unit: &Unit, e: &Expr| unit.is_none() && literal(e).is_some();
        let (number, other, unit) = match (bare(u, a), bare(v, b)) {
            (false, true) => (b, a, u),
            (true, false) => (a, b, v),
            _ => {
                for (fits, other, wrong, unit) in [(u, a, b, v), (v, b, a, u)] {
                    if let Some((at, op, why)) = self.swapped(fits, wrong) {
                        let text = format!("use `{}`", op.text());
                        return Diagnostic::new(d.code, d.message, wrong.span, format!("this is {unit}"))
                            .label(other.span, fits.noun())
                            .help(format!("write `{}`: {why}", op.text()))
                            .fix(text, at, op.text(), Applicability::Unsure);
                    }
                }
                return d;
            }
        };
        let (text, beside) = (self.sources.snippet(number.span), self.sources.snippet(other.span));
        let mut d = Diagnostic::new(d.code, d.message, number.span, format!("`{text}` has no unit"))
            .label(other.span, unit.noun())
            .note(format!("`{beside}` is {}, `{text}` a plain number", unit.noun()));
        // The unit written on the other side is the likely one.
        if let Some((written, _)) = unit_of(other) {
            let with = format!("{text} {written}");
            d = d.help(format!("write `{with}`")).fix(
                format!("write `{with}`"),
                number.span,
                with,
                Applicability::Unsure,
            );
        }
        d
    }
}

fn both(p: Whole, q: Whole) -> Whole {
    match (p, q) {
        (Whole::Yes, Whole::Yes) => Whole::Yes,
        (Whole::No, _) | (_, Whole::No) => Whole::No,
        _ => Whole::Maybe,
    }
}

/// Kinds `==` works on.
fn comparable(x: &Ty<'_>, y: &Ty<'_>) -> bool {
    let named = |t: &Ty<'_>| matches!(t, Ty::Word(_) | Ty::Thing(_) | Ty::Func { .. } | Ty::Text | Ty::Links);
    named(x) && named(y)
}

/// The plain number a literal writes, its sign included; a unit is left out.
pub(crate) fn literal(e: &Expr) -> Option<f64> {
    match &e.kind {
        ExprKind::Number { value: Number::Int(v), .. } => Some(*v as f64),
        ExprKind::Number { value: Number::Real(v), .. } => Some(*v),
        ExprKind::Unary(UnaryOp::Neg, inner) => match &inner.kind {
            ExprKind::Number { .. } => literal(inner).map(|v| -v),
            _ => None,
        },
        _ => None,
    }
}

/// The unit text written in `e`, if it is a literal.
fn unit_of(e: &Expr) -> Option<(&str, Span)> {
    match &e.kind {
        ExprKind::Number { unit: Some((text, span)), .. } => Some((text.as_str(), *span)),
        ExprKind::Binary(BinaryOp::Add | BinaryOp::Sub, _, _, b) => unit_of(b),
        _ => None,
    }
}
