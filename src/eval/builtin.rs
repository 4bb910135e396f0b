//! Built-in functions and the fixed words of the language.

use super::{Evaluator, MAX_LIST, Num, Quantity, ScheduleOp, Truth, Value};
use super::{chance, errors};
use crate::expr::{Kind, Node};
use crate::source::Span;
use crate::syntax::ast::BinaryOp;
use crate::units::Unit;
use std::rc::Rc;

/// Functions every expression may call.
pub(crate) const FUNCTIONS: &[&str] = &[
    "min", "max", "abs", "sqrt", "log2", "exp", "floor", "ceil", "ceil_div", "gcd", "divisors", "contains", "sum",
    "any", "all", "len", "flatten", "F", "B", "W", "U", "Both",
];

impl<'p> Evaluator<'p, '_> {
    /// Applies the built-in `name`; arguments are evaluated.
    pub(super) fn builtin(&mut self, name: &str, args: &[(Value<'p>, Span)], span: Span) -> Value<'p> {
        if let Some(e) = args.iter().find_map(|(v, _)| if let Value::Error(_) = v { Some(v.clone()) } else { None }) {
            return e;
        }
        let want = |n: usize| args.len() == n;
        match name {
            "max" if want(1) && matches!(&args[0].0, Value::Word(w) if chance::parameters(&w.name).is_some()) => {
                self.of_distribution(name, &args[0].0, args[0].1)
            }
            "min" | "max" | "sum" | "any" | "all" | "len" | "flatten" if want(1) => {
                self.over_list(name, &args[0], span)
            }
            "min" | "max" if args.len() > 1 => self.fold(name, args, span),
            "abs" | "sqrt" | "log2" | "exp" | "floor" | "ceil" if want(1) => self.unary_math(name, &args[0]),
            "ceil_div" | "gcd" if want(2) => self.whole_pair(name, &args[0], &args[1]),
            "divisors" if want(1) => self.divisors(&args[0]),
            "contains" if want(2) => self.contains(&args[0], &args[1]),
            "F" | "B" | "W" if want(2) => self.schedule_op(name, &args[0], &args[1]),
            "U" if want(1) => {
                let zero = (Value::int(0), span);
                self.schedule_op(name, &zero, &args[0])
            }
            "Both" if want(2) => match (&args[0].0, &args[1].0) {
                (Value::Op(x, None), Value::Op(y, None)) => Value::Op(*x, Some(*y)),
                (Value::Op(_, None), other) => {
                    self.error(errors::wrong_kind("`Both`", "two operations", &other.noun(), args[1].1))
                }
                (other, _) => self.error(errors::wrong_kind("`Both`", "two operations", &other.noun(), args[0].1)),
            },
            _ => {
                let n = match name {
                    "ceil_div" | "gcd" | "contains" | "F" | "B" | "W" | "Both" => 2,
                    _ => 1,
                };
                self.error(errors::too_many_arguments(name, n, span))
            }
        }
    }

    fn schedule_op(&mut self, name: &str, i: &(Value<'p>, Span), c: &(Value<'p>, Span)) -> Value<'p> {
        match (i.0.as_int(), c.0.as_int()) {
            (Some(microbatch), Some(chunk)) => {
                let kind = name.chars().next().unwrap_or('F');
                Value::Op(ScheduleOp { kind, microbatch, chunk }, None)
            }
            (None, _) => self.error(errors::wrong_kind("a microbatch", "a known whole number", &i.0.noun(), i.1)),
            (_, None) => self.error(errors::wrong_kind("a chunk", "a known whole number", &c.0.noun(), c.1)),
        }
    }

    fn over_list(&mut self, name: &str, (value, span): &(Value<'p>, Span), at: Span) -> Value<'p> {
        let list = match value {
            Value::List(list) => Rc::clone(list),
            Value::Range(a, b) if b - a <= MAX_LIST => Rc::new((*a..*b).map(Value::int).collect()),
            Value::Range(a, b) => return self.error(errors::list_too_long(*span, b - a, MAX_LIST)),
            other => return self.error(errors::wrong_kind(&format!("`{name}`"), "a list", &other.noun(), *span)),
        };
        let items: Vec<_> = list.iter().map(|v| (v.clone(), *span)).collect();
        match name {
            "len" => Value::int(items.len() as i128),
            "flatten" => {
                let mut out = Vec::new();
                for (v, _) in items {
                    match v {
                        Value::List(inner) => out.extend(inner.iter().cloned()),
                        other => {
                            return self.error(errors::wrong_kind(
                                "`flatten`",
                                "a list of lists",
                                &other.noun(),
                                *span,
                            ));
                        }
                    }
                    if out.len() as i128 > MAX_LIST {
                        return self.error(errors::list_too_long(at, out.len() as i128, MAX_LIST));
                    }
                }
                Value::List(Rc::new(out))
            }
            "any" | "all" => {
                let mut out = Truth::Known(name == "all");
                for (v, _) in items {
                    let Value::Bool(t) = v else {
                        return self.error(errors::wrong_kind(&format!("`{name}`"), "true or false", &v.noun(), *span));
                    };
                    out = match (out, t) {
                        (Truth::Known(a), Truth::Known(b)) => Truth::Known(if name == "all" { a && b } else { a || b }),
                        (a, b) => {
                            let (a, b) = (self.truth_node(a), self.truth_node(b));
                            Truth::Sym(self.graph.put(if name == "all" { Node::And(a, b) } else { Node::Or(a, b) }))
                        }
                    };
                }
                Value::Bool(out)
            }
            "sum" if items.is_empty() => Value::int(0),
            _ if items.is_empty() => {
                self.error(errors::wrong_kind(&format!("`{name}`"), "a list that is not empty", "an empty one", *span))
            }
            _ => self.fold(name, &items, at),
        }
    }

    fn fold(&mut self, name: &str, items: &[(Value<'p>, Span)], at: Span) -> Value<'p> {
        let mut out: Option<(Quantity, Span)> = None;
        for (v, span) in items {
            let q = match v {
                Value::Num(q) => q.clone(),
                Value::Error(_) => return v.clone(),
                other => return self.error(errors::wrong_kind(&format!("`{name}`"), "numbers", &other.noun(), *span)),
            };
            let Some((sum, first)) = out.take() else {
                out = Some((q, *span));
                continue;
            };
            if sum.unit != q.unit {
                return self.error(errors::unit_mismatch(BinaryOp::Le, at, (&sum.unit, first), (&q.unit, *span)));
            }
            let next = if name == "sum" {
                match self.numbers(BinaryOp::Add, at, (sum, first), (q, *span), false) {
                    Value::Num(q) => q,
                    e => return e,
                }
            } else {
                Quantity { num: self.pick(name, sum.num, q.num), unit: sum.unit }
            };
            out = Some((next, first));
        }
        out.map_or_else(|| Value::int(0), |(q, _)| Value::Num(q))
    }

    /// The smaller or larger of two; defined by one comparison, as every evaluator of the graph does.
    fn pick(&mut self, name: &str, a: Num, b: Num) -> Num {
        match (a, b) {
            (Num::Int(x), Num::Int(y)) => Num::Int(if name == "min" { x.min(y) } else { x.max(y) }),
            (Num::Sym(_), _) | (_, Num::Sym(_)) => {
                let (x, y) = (self.node(a), self.node(b));
                Num::Sym(if name == "min" { self.graph.min(x, y) } else { self.graph.max(x, y) })
            }
            (x, y) => {
                let (x, y) = (super::arith::known(x), super::arith::known(y));
                Num::Real(if name == "min" { x.min(y) } else { x.max(y) })
            }
        }
    }

    fn unary_math(&mut self, name: &str, (value, span): &(Value<'p>, Span)) -> Value<'p> {
        let Value::Num(q) = value else {
            return self.error(errors::wrong_kind(&format!("`{name}`"), "a number", &value.noun(), *span));
        };
        if !matches!(name, "abs") && !q.unit.is_none() {
            return self.error(errors::wrong_unit(&format!("the argument of `{name}`"), &Unit::none(), &q.unit, *span));
        }
        if let (true, Some(v)) = (matches!(name, "sqrt" | "log2"), value.as_f64())
            && (v < 0.0 || (name == "log2" && v <= 0.0))
        {
            return self.error(errors::wrong_kind(&format!("`{name}`"), "a positive number", &format!("{v}"), *span));
        }
        let num = match (name, q.num) {
            ("floor" | "ceil", Num::Int(v)) => Num::Int(v),
            ("abs", Num::Int(v)) => Num::Int(v.abs()),
            ("abs", Num::Real(v)) => Num::Real(v.abs()),
            ("floor", Num::Real(v)) => Num::Int(v.floor() as i128),
            ("ceil", Num::Real(v)) => Num::Int(v.ceil() as i128),
            (_, num) => {
                let id = self.node(num);
                let id = self.math_node(name, id);
                // A known argument folds to a known result.
                match (num, self.graph.as_real(id)) {
                    (Num::Sym(_), _) | (_, None) => Num::Sym(id),
                    (_, Some(v)) => Num::Real(v),
                }
            }
        };
        Value::Num(Quantity { num, unit: q.unit.clone() })
    }

    fn math_node(&mut self, name: &str, id: crate::expr::Id) -> crate::expr::Id {
        match name {
            "abs" => {
                let zero = self.graph.int(0);
                let neg = self.graph.sub(zero, id);
                self.graph.max(id, neg)
            }
            "floor" | "ceil" if self.graph.kind(id) == Kind::Int => id,
            "floor" => self.graph.put(Node::Floor(id)),
            "ceil" => self.graph.put(Node::Ceil(id)),
            "sqrt" => {
                let id = self.graph.to_real(id);
                self.graph.put(Node::Sqrt(id))
            }
            "log2" => {
                let id = self.graph.to_real(id);
                self.graph.put(Node::Log2(id))
            }
            _ => {
                let id = self.graph.to_real(id);
                let factor = self.graph.real(std::f64::consts::LOG2_E);
                let scaled = self.graph.mul(id, factor);
                self.graph.put(Node::Exp2(scaled))
            }
        }
    }

    fn whole_pair(&mut self, name: &str, a: &(Value<'p>, Span), b: &(Value<'p>, Span)) -> Value<'p> {
        let (Value::Num(x), Value::Num(y)) = (&a.0, &b.0) else {
            return self.error(errors::wrong_kind(&format!("`{name}`"), "whole numbers", &a.0.noun(), a.1));
        };
        let unit = if name == "ceil_div" { x.unit.div(&y.unit) } else { x.unit.clone() };
        let num = match (x.num, y.num) {
            (Num::Int(_), Num::Int(q)) if q <= 0 => return self.error(errors::division_by_zero(b.1)),
            (Num::Int(p), Num::Int(q)) if name == "ceil_div" => {
                Num::Int(p.div_euclid(q) + i128::from(p.rem_euclid(q) > 0))
            }
            (Num::Int(p), Num::Int(q)) => {
                let (mut p, mut q) = (p.abs(), q.abs());
                while q != 0 {
                    (p, q) = (q, p % q);
                }
                Num::Int(p)
            }
            (Num::Real(_), _) | (_, Num::Real(_)) => {
                return self.error(errors::wrong_kind(&format!("`{name}`"), "whole numbers", "a fraction", a.1));
            }
            (p, q) if name == "ceil_div" => {
                let (p, q) = (self.node(p), self.node(q));
                Num::Sym(self.graph.put(Node::CeilDiv(p, q)))
            }
            _ => return self.error(errors::not_supported("`gcd` of layout parameters", a.1)),
        };
        Value::Num(Quantity { num, unit })
    }

    fn divisors(&mut self, (value, span): &(Value<'p>, Span)) -> Value<'p> {
        match value.as_int() {
            Some(n) if (1..=1 << 40).contains(&n) => {
                let mut low = Vec::new();
                let mut high = Vec::new();
                let mut d = 1;
                while d * d <= n {
                    if n % d == 0 {
                        low.push(Value::int(d));
                        if d * d != n {
                            high.push(Value::int(n / d));
                        }
                    }
                    d += 1;
                }
                low.extend(high.into_iter().rev());
                Value::List(Rc::new(low))
            }
            _ => self.error(errors::wrong_kind("`divisors`", "a known whole number up to 2^40", &value.noun(), *span)),
        }
    }

    fn contains(&mut self, list: &(Value<'p>, Span), x: &(Value<'p>, Span)) -> Value<'p> {
        match (&list.0, x.0.as_f64()) {
            (Value::List(items), Some(v)) => {
                let found = items.iter().filter_map(Value::as_f64).any(|i| i.total_cmp(&v).is_eq());
                Value::Bool(Truth::Known(found))
            }
            (Value::Range(a, b), Some(v)) => Value::Bool(Truth::Known(*a as f64 <= v && v < *b as f64)),
            (Value::List(_) | Value::Range(..), None) => {
                self.error(errors::wrong_kind("`contains`", "a known number", &x.0.noun(), x.1))
            }
            (other, _) => self.error(errors::wrong_kind("`contains`", "a list", &other.noun(), list.1)),
        }
    }
}
