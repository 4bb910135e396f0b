//! Operators: units checked, known numbers computed, others put into the graph.

use super::errors;
use super::{Condition, Demand, Env, Evaluator, MAX_LIST, Num, Quantity, Truth, Value, Wanted};
use crate::expr::{Kind, Node};
use crate::source::Span;
use crate::syntax::ast::{BinaryOp, Expr, UnaryOp};
use crate::units::Unit;
use std::rc::Rc;

impl<'p> Evaluator<'p, '_> {
    pub(super) fn unary(&mut self, op: UnaryOp, v: Value<'p>, span: Span) -> Value<'p> {
        match (op, v) {
            (_, e @ Value::Error(_)) => e,
            (UnaryOp::Not, Value::Bool(Truth::Known(b))) => Value::Bool(Truth::Known(!b)),
            (UnaryOp::Not, Value::Bool(Truth::Sym(id))) => Value::Bool(Truth::Sym(self.graph.put(Node::Not(id)))),
            (UnaryOp::Neg, Value::Num(q)) => {
                let num = match q.num {
                    Num::Int(v) => Num::Int(-v),
                    Num::Real(v) => Num::Real(-v),
                    Num::Sym(id) => {
                        let zero = self.graph.int(0);
                        Num::Sym(self.graph.sub(zero, id))
                    }
                };
                Value::Num(Quantity { num, unit: q.unit })
            }
            (UnaryOp::Not, other) => self.error(errors::wrong_kind("`not`", "true or false", &other.noun(), span)),
            (UnaryOp::Neg, other) => self.error(errors::wrong_kind("`-`", "a number", &other.noun(), span)),
        }
    }

    pub(super) fn binary(
        &mut self,
        op: BinaryOp,
        at: Span,
        a: &'p Expr,
        b: &'p Expr,
        env: &Rc<Env<'p>>,
        wanted: &Wanted,
    ) -> Value<'p> {
        use BinaryOp::{Add, And, Div, IntDiv, Mod, Mul, Or, Sub};
        let inner = match op {
            Add | Sub | Mul | Div if *wanted == Wanted::Int => Wanted::Int,
            IntDiv | Mod => Wanted::Int,
            _ => Wanted::Any,
        };
        let x = self.eval(a, env, &inner);
        if let Value::Error(_) = x {
            // The right side is still looked at, so that its own mistakes are told too.
            let _ = self.eval(b, env, &inner);
            return x;
        }
        match (op, &x) {
            (And, Value::Bool(Truth::Known(false))) | (Or, Value::Bool(Truth::Known(true))) => return x,
            _ => {}
        }
        let y = self.eval(b, env, &inner);
        if let Value::Error(_) = y {
            return y;
        }
        match (x, y) {
            (Value::Num(p), Value::Num(q)) => self.numbers(op, at, (p, a.span), (q, b.span), *wanted == Wanted::Int),
            (Value::Bool(p), Value::Bool(q)) => self.truths(op, at, p, q, (a.span, b.span)),
            (Value::Num(Quantity { num, unit }), Value::Record(link))
                if op == Mul && unit.is_none() && link.kind == "link" =>
            {
                Value::Links { count: num, link }
            }
            (Value::List(p), Value::List(q)) if op == Add => {
                let n = (p.len() + q.len()) as i128;
                if n > MAX_LIST {
                    return self.error(errors::list_too_long(at, n, MAX_LIST));
                }
                let mut out = Rc::try_unwrap(p).unwrap_or_else(|p| (*p).clone());
                out.extend(q.iter().cloned());
                Value::List(Rc::new(out))
            }
            (Value::List(p), Value::Num(Quantity { num: Num::Int(n), unit })) if op == Mul && unit.is_none() => {
                let total = n.saturating_mul(p.len() as i128);
                if total > MAX_LIST {
                    return self.error(errors::list_too_long(at, total, MAX_LIST));
                }
                let n = usize::try_from(n).unwrap_or(0);
                Value::List(Rc::new(p.iter().cloned().cycle().take(p.len() * n).collect()))
            }
            (p, q) => self.others(op, at, (&p, a.span), (&q, b.span)),
        }
    }

    /// Words, text and choices compare; nothing else works on what is not a number.
    fn others(&mut self, op: BinaryOp, at: Span, x: (&Value<'p>, Span), y: (&Value<'p>, Span)) -> Value<'p> {
        let equal = match (x.0, y.0) {
            (Value::Word(p), Value::Word(q)) => Some(p.name == q.name),
            (Value::Str(p), Value::Str(q)) => Some(p == q),
            (Value::Record(p), Value::Record(q)) if p.kind == q.kind => Some(p.name == q.name),
            (Value::Record(_) | Value::Instance(_), Value::Word(w))
            | (Value::Word(w), Value::Record(_) | Value::Instance(_))
                if w.name == "none" =>
            {
                Some(false)
            }
            _ => None,
        };
        match (op, equal) {
            (BinaryOp::Eq, Some(e)) => Value::Bool(Truth::Known(e)),
            (BinaryOp::Ne, Some(e)) => Value::Bool(Truth::Known(!e)),
            _ => self.error(errors::operator_kinds(op, at, (&x.0.noun(), x.1), (&y.0.noun(), y.1))),
        }
    }

    fn truths(&mut self, op: BinaryOp, at: Span, p: Truth, q: Truth, spans: (Span, Span)) -> Value<'p> {
        use BinaryOp::{And, Eq, Ne, Or};
        if let (Truth::Known(p), Truth::Known(q)) = (p, q) {
            let v = match op {
                And => p && q,
                Or => p || q,
                Eq => p == q,
                Ne => p != q,
                _ => {
                    let noun = "true or false";
                    return self.error(errors::operator_kinds(op, at, (noun, spans.0), (noun, spans.1)));
                }
            };
            return Value::Bool(Truth::Known(v));
        }
        let (i, j) = (self.truth_node(p), self.truth_node(q));
        let id = match op {
            And => self.graph.put(Node::And(i, j)),
            Or => self.graph.put(Node::Or(i, j)),
            _ => return self.error(errors::not_supported("comparing conditions over layout parameters", at)),
        };
        Value::Bool(Truth::Sym(id))
    }

    /// `truth` as a Bool node.
    pub fn truth_node(&mut self, truth: Truth) -> crate::expr::Id {
        match truth {
            Truth::Known(b) => self.graph.bool(b),
            Truth::Sym(id) => id,
        }
    }

    fn is_int(&self, num: Num) -> bool {
        match num {
            Num::Int(_) => true,
            Num::Real(_) => false,
            Num::Sym(id) => self.graph.kind(id) == Kind::Int,
        }
    }

    /// `x OP y` of numbers.
    pub(super) fn numbers(
        &mut self,
        op: BinaryOp,
        at: Span,
        (x, x_span): (Quantity, Span),
        (y, y_span): (Quantity, Span),
        exact: bool,
    ) -> Value<'p> {
        use BinaryOp::{Add, And, Contract, Div, Divides, Eq, Ge, Gt, IntDiv, Le, Lt, Mod, Mul, Ne, Or, Pow, Sub};
        let whole = self.is_int(x.num) && self.is_int(y.num);
        match op {
            Add | Sub | Eq | Ne | Lt | Le | Gt | Ge if x.unit != y.unit => {
                return self.error(errors::unit_mismatch(op, at, (&x.unit, x_span), (&y.unit, y_span)));
            }
            IntDiv | Mod | Divides if !whole => {
                let (span, bad) = if self.is_int(x.num) { (y_span, "a fraction") } else { (x_span, "a fraction") };
                return self.error(errors::wrong_kind(&format!("`{}`", op.text()), "whole numbers", bad, span));
            }
            _ => {}
        }
        let number = |num, unit| Value::Num(Quantity { num, unit });
        match op {
            Add => self.plus_like(op, at, x.num, y.num).map_or_else(|e| e, |n| number(n, x.unit)),
            Sub => self.plus_like(op, at, x.num, y.num).map_or_else(|e| e, |n| number(n, x.unit)),
            Mul => self.plus_like(op, at, x.num, y.num).map_or_else(|e| e, |n| number(n, x.unit.mul(&y.unit))),
            Div => {
                let unit = x.unit.div(&y.unit);
                if exact && whole && unit.is_none() {
                    return self.exact_div(x.num, y.num, Span { end: y_span.end, ..x_span }, y_span);
                }
                self.real_div(x.num, y.num, y_span).map_or_else(|e| e, |n| number(n, unit))
            }
            IntDiv | Mod => {
                let unit = if op == IntDiv { x.unit.div(&y.unit) } else { x.unit.clone() };
                self.floor_like(op, x.num, y.num, y_span).map_or_else(|e| e, |n| number(n, unit))
            }
            Divides => match (x.num, y.num) {
                (Num::Int(0), _) => self.error(errors::division_by_zero(x_span)),
                (Num::Int(a), Num::Int(b)) => Value::Bool(Truth::Known(b % a == 0)),
                (a, b) => {
                    let (a, b) = (self.node(a), self.node(b));
                    let rest = self.graph.put(Node::Mod(b, a));
                    let zero = self.graph.int(0);
                    Value::Bool(Truth::Sym(self.graph.eq(rest, zero)))
                }
            },
            Pow => self.power(&x, &y, at, y_span),
            Eq | Ne | Lt | Le | Gt | Ge => self.compare(op, x.num, y.num),
            Contract => self.error(errors::operator_kinds(op, at, ("a number", x_span), ("a number", y_span))),
            And | Or => {
                let (a, b) = (Value::Num(x).noun(), Value::Num(y).noun());
                self.error(errors::operator_kinds(op, at, (&a, x_span), (&b, y_span)))
            }
        }
    }

    fn plus_like(&mut self, op: BinaryOp, at: Span, x: Num, y: Num) -> Result<Num, Value<'p>> {
        match (x, y) {
            (Num::Int(a), Num::Int(b)) => {
                let v = match op {
                    BinaryOp::Add => a.checked_add(b),
                    BinaryOp::Sub => a.checked_sub(b),
                    _ => a.checked_mul(b),
                };
                match v {
                    Some(v) if v.abs() <= 1 << 100 => Ok(Num::Int(v)),
                    _ => Err(self.error(errors::too_large(at))),
                }
            }
            (Num::Sym(_), _) | (_, Num::Sym(_)) => {
                let (a, b) = (self.node(x), self.node(y));
                Ok(Num::Sym(match op {
                    BinaryOp::Add => self.graph.add(a, b),
                    BinaryOp::Sub => self.graph.sub(a, b),
                    _ => self.graph.mul(a, b),
                }))
            }
            (a, b) => {
                let (a, b) = (known(a), known(b));
                let v = match op {
                    BinaryOp::Add => a + b,
                    BinaryOp::Sub => a - b,
                    _ => a * b,
                };
                if v.is_finite() { Ok(Num::Real(v)) } else { Err(self.error(errors::too_large(at))) }
            }
        }
    }

    fn exact_div(&mut self, x: Num, y: Num, at: Span, y_span: Span) -> Value<'p> {
        let plain = |num| Value::Num(Quantity { num, unit: Unit::none() });
        match (x, y) {
            (_, Num::Int(0)) => self.error(errors::division_by_zero(y_span)),
            (Num::Int(a), Num::Int(b)) if a % b == 0 => plain(Num::Int(a / b)),
            (Num::Int(a), Num::Int(b)) => self.error(errors::inexact(a, b, at)),
            (x, y) => {
                let (a, b) = (self.node(x), self.node(y));
                let rest = self.graph.put(Node::Mod(a, b));
                let zero = self.graph.int(0);
                let cond = self.graph.eq(rest, zero);
                self.conditions.push(Condition { cond, what: Demand::Division(a, b), span: at });
                plain(Num::Sym(self.graph.put(Node::ExactDiv(a, b))))
            }
        }
    }

    fn real_div(&mut self, x: Num, y: Num, y_span: Span) -> Result<Num, Value<'p>> {
        match (x, y) {
            (Num::Sym(_), _) | (_, Num::Sym(_)) => {
                let (a, b) = (self.node(x), self.node(y));
                Ok(Num::Sym(self.graph.div(a, b)))
            }
            (a, b) => {
                let d = known(b);
                if d == 0.0 { Err(self.error(errors::division_by_zero(y_span))) } else { Ok(Num::Real(known(a) / d)) }
            }
        }
    }

    fn floor_like(&mut self, op: BinaryOp, x: Num, y: Num, y_span: Span) -> Result<Num, Value<'p>> {
        match (x, y) {
            (_, Num::Int(b)) if b <= 0 => Err(self.error(errors::division_by_zero(y_span))),
            (Num::Int(a), Num::Int(b)) => {
                Ok(Num::Int(if op == BinaryOp::IntDiv { a.div_euclid(b) } else { a.rem_euclid(b) }))
            }
            (x, y) => {
                let (a, b) = (self.node(x), self.node(y));
                let node = if op == BinaryOp::IntDiv { Node::FloorDiv(a, b) } else { Node::Mod(a, b) };
                Ok(Num::Sym(self.graph.put(node)))
            }
        }
    }

    fn power(&mut self, x: &Quantity, y: &Quantity, at: Span, y_span: Span) -> Value<'p> {
        let n = match y.num {
            Num::Int(n) if y.unit.is_none() && (-64..=64).contains(&n) => n as i64,
            _ => {
                return self.error(errors::wrong_kind(
                    "`^`",
                    "a whole exponent between -64 and 64",
                    "another value",
                    y_span,
                ));
            }
        };
        let Some(unit) = x.unit.pow(n) else { return self.error(errors::too_large(at)) };
        let mut out = Num::Int(1);
        for _ in 0..n.unsigned_abs() {
            match self.plus_like(BinaryOp::Mul, at, out, x.num) {
                Ok(v) => out = v,
                Err(e) => return e,
            }
        }
        if n < 0 {
            match self.real_div(Num::Int(1), out, y_span) {
                Ok(v) => out = v,
                Err(e) => return e,
            }
        }
        Value::Num(Quantity { num: out, unit })
    }

    fn compare(&mut self, op: BinaryOp, x: Num, y: Num) -> Value<'p> {
        use BinaryOp::{Eq, Ge, Gt, Le, Lt};
        match (x, y) {
            (Num::Sym(_), _) | (_, Num::Sym(_)) => {
                let (a, b) = (self.node(x), self.node(y));
                let id = match op {
                    Eq => self.graph.eq(a, b),
                    Lt => self.graph.lt(a, b),
                    Le => self.graph.le(a, b),
                    Gt => self.graph.lt(b, a),
                    Ge => self.graph.le(b, a),
                    _ => {
                        let same = self.graph.eq(a, b);
                        self.graph.put(Node::Not(same))
                    }
                };
                Value::Bool(Truth::Sym(id))
            }
            (Num::Int(a), Num::Int(b)) => Value::Bool(Truth::Known(holds(op, a.cmp(&b)))),
            (a, b) => Value::Bool(Truth::Known(known(a).partial_cmp(&known(b)).is_some_and(|o| holds(op, o)))),
        }
    }
}

fn holds(op: BinaryOp, order: std::cmp::Ordering) -> bool {
    match op {
        BinaryOp::Eq => order.is_eq(),
        BinaryOp::Ne => order.is_ne(),
        BinaryOp::Lt => order.is_lt(),
        BinaryOp::Le => order.is_le(),
        BinaryOp::Gt => order.is_gt(),
        _ => order.is_ge(),
    }
}

/// A number that is known, as a double.
pub(super) fn known(num: Num) -> f64 {
    match num {
        Num::Int(v) => v as f64,
        Num::Real(v) => v,
        Num::Sym(_) => unreachable!("callers match nodes before"),
    }
}
