//! Which operator binds tighter: an expression grows by an operator and an operand at a time.
//!
//! The grammar reads operands and operators in the order they come. A rule for each strength would carry every operand
//! through all of them.

use super::ast::{BinaryOp, Expr, ExprKind, UnaryOp};
use crate::source::Span;
use std::mem;

/// What stands between two operands.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Infix {
    /// `a + b`
    Op(BinaryOp),
    /// `a..b`
    Range,
}

/// How tightly operators bind, the loosest first.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Strength {
    Or,
    And,
    Not,
    Comparison,
    Range,
    Sum,
    Product,
    Sign,
    Power,
}

impl Strength {
    fn of(op: Infix) -> Self {
        match op {
            Infix::Range => Self::Range,
            Infix::Op(op) => match op {
                BinaryOp::Or => Self::Or,
                BinaryOp::And => Self::And,
                BinaryOp::Eq
                | BinaryOp::Ne
                | BinaryOp::Lt
                | BinaryOp::Le
                | BinaryOp::Gt
                | BinaryOp::Ge
                | BinaryOp::Divides => Self::Comparison,
                BinaryOp::Add | BinaryOp::Sub => Self::Sum,
                BinaryOp::Mul | BinaryOp::Div | BinaryOp::IntDiv | BinaryOp::Mod | BinaryOp::Contract => Self::Product,
                BinaryOp::Pow => Self::Power,
            },
        }
    }
}

/// The operator that ends with `e`'s last operand: how tightly it binds, and that operand. None where brackets close
/// after it, which leaves the operand short of `e`'s end.
fn last(e: &mut Expr) -> Option<(Strength, &mut Expr)> {
    let end = e.span.end;
    let (strength, operand) = match &mut e.kind {
        ExprKind::Binary(op, _, _, b) => (Strength::of(Infix::Op(*op)), b),
        ExprKind::Range(_, b) => (Strength::Range, b),
        ExprKind::Unary(UnaryOp::Not, b) => (Strength::Not, b),
        ExprKind::Unary(UnaryOp::Neg, b) => (Strength::Sign, b),
        _ => return None,
    };
    (operand.span.end == end).then_some((strength, &mut **operand))
}

/// Makes `e` the expression `e op b`, where `op` takes of `e` what binds at least as tightly as itself. `Err` is the
/// last operand of a comparison or range in `e` that `op` would have to continue, which neither does.
///
/// It descends as deep as operators nest in `e`, which is limited before anything is parsed.
pub(super) fn join(e: &mut Expr, op: Infix, at: Span, b: Box<Expr>) -> Result<(), Span> {
    let own = Strength::of(op);
    let end = b.span.end;
    let whole = e.span;
    if let Some((left, operand)) = last(e) {
        if left == own && matches!(own, Strength::Comparison | Strength::Range) {
            return Err(operand.span);
        }
        if left < own || own == Strength::Power && left == own {
            join(operand, op, at, b)?;
            e.span.end = end;
            return Ok(());
        }
    }
    let span = Span { end, ..whole };
    let a = Box::new(mem::replace(e, Expr { kind: ExprKind::Error, span }));
    e.kind = match op {
        Infix::Op(op) => ExprKind::Binary(op, at, a, b),
        Infix::Range => ExprKind::Range(a, b),
    };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::ast::{Entry, LetValue};
    use super::super::parse;
    use super::*;
    use crate::diagnostics::Sink;
    use crate::source::Sources;

    /// `text` with brackets around everything that an operator takes.
    fn bracketed(text: &str) -> Option<String> {
        let (mut sources, mut sink) = (Sources::new(), Sink::new());
        let file = sources.add("a.par", format!("edition 1\nlet x = {text}\n"), false);
        let tree = parse(&sources, file, &mut sink);
        let Some(Entry::Let(binding)) = tree.entries.into_iter().next() else { return None };
        let LetValue::Is(e) = binding.value else { return None };
        (!sink.has_errors()).then(|| shown(&e, &sources.file(file).text))
    }

    fn shown(e: &Expr, text: &str) -> String {
        match &e.kind {
            ExprKind::Binary(op, _, a, b) => format!("({} {} {})", shown(a, text), op.text(), shown(b, text)),
            ExprKind::Range(a, b) => format!("({} .. {})", shown(a, text), shown(b, text)),
            ExprKind::Unary(UnaryOp::Not, a) => format!("(not {})", shown(a, text)),
            ExprKind::Unary(UnaryOp::Neg, a) => format!("(-{})", shown(a, text)),
            ExprKind::Path(path) => path[0].text.to_string(),
            _ => text[e.span.start as usize..e.span.end as usize].to_string(),
        }
    }

    #[test]
    fn operators_bind_as_the_reference_says() {
        let table = [
            ("a + b * c", "(a + (b * c))"),
            ("a * b + c", "((a * b) + c)"),
            ("a - b - c", "((a - b) - c)"),
            ("a / b * c @ d", "(((a / b) * c) @ d)"),
            ("(a - b) * c", "((a - b) * c)"),
            ("a * (b + c) ^ d", "(a * ((b + c) ^ d))"),
            ("a ^ b ^ c", "(a ^ (b ^ c))"),
            ("(a ^ b) ^ c", "((a ^ b) ^ c)"),
            ("-a ^ b", "(-(a ^ b))"),
            ("(-a) ^ b", "((-a) ^ b)"),
            ("-a * b", "((-a) * b)"),
            ("2 * -a ^ b ^ -c * d", "((2 * (-(a ^ (b ^ (-c))))) * d)"),
            ("a..b + 1", "(a .. (b + 1))"),
            ("a + 1..b == c", "(((a + 1) .. b) == c)"),
            ("a == b and not c < d or e", "(((a == b) and (not (c < d))) or e)"),
            ("not a and b", "((not a) and b)"),
            ("not not a == b", "(not (not (a == b)))"),
            ("a or b and c or d", "((a or (b and c)) or d)"),
            ("(a < b) == (c < d)", "((a < b) == (c < d))"),
            ("a mod b div c divides d - e", "(((a mod b) div c) divides (d - e))"),
        ];
        for (text, want) in table {
            assert_eq!(bracketed(text).as_deref(), Some(want), "{text}");
        }
    }

    #[test]
    fn comparisons_and_ranges_stand_alone() {
        for text in ["a < b < c", "a == b != c", "not a < b <= c", "a..b..c", "a + not b", "a < not b", "- not a"] {
            assert_eq!(bracketed(text), None, "{text}");
        }
    }
}
