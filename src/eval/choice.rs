//! Open choices, `?` and domains, and the value each has at one point of the search.
//!
//! A choice among whole numbers becomes an input of the graph, so that sizes stay symbolic and one graph serves every
//! value. Any other choice (a layout, a precision, a word) is settled before anything is built on it. Where a whole
//! number has to be known after all, because an `if`, a list or a cluster reads it, the reading is noted: points that
//! read the same share one graph.

use super::{Env, Evaluator, Num, Quantity, Truth, Value, Wanted, errors};
use crate::expr::{self, Input};
use crate::source::Span;
use crate::syntax::ast::{Expr, ExprKind};
use crate::units::{Unit, show};
use std::rc::Rc;

/// Values of one domain that are not a range.
const MAX_LISTED: usize = 65_536;

/// Where something is chosen: `?`, or the domain in `NAME in DOMAIN` with the names it sees.
#[derive(Clone, Debug)]
pub struct Hole<'p> {
    /// The `?`, or the domain.
    pub span: Span,
    /// The domain, where one is written.
    pub domain: Option<(&'p Expr, Rc<Env<'p>>)>,
}

/// What a choice is among.
#[derive(Clone, Debug)]
pub enum Domain<'p> {
    /// The plain whole numbers from the first up to the second, which is left out.
    Range(i128, i128),
    /// These values.
    Listed(Vec<Value<'p>>),
}

impl<'p> Domain<'p> {
    /// These plain whole numbers.
    pub fn numbers(values: impl IntoIterator<Item = i64>) -> Self {
        Self::counts(values, &Unit::none())
    }

    /// These whole numbers of `unit`.
    pub fn counts(values: impl IntoIterator<Item = i64>, unit: &Unit) -> Self {
        let value = |v: i64| Value::Num(Quantity { num: Num::Int(i128::from(v)), unit: unit.clone() });
        Self::Listed(values.into_iter().map(value).collect())
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Range(a, b) => usize::try_from((b - a).max(0)).unwrap_or(usize::MAX),
            Self::Listed(list) => list.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value at `index`.
    pub fn get(&self, index: usize) -> Option<Value<'p>> {
        match self {
            Self::Range(a, b) => Some(a + index as i128).filter(|v| v < b).map(Value::int),
            Self::Listed(list) => list.get(index).cloned(),
        }
    }

    /// The unit, if every value is a whole number an input of the graph can hold.
    fn whole(&self) -> Option<Unit> {
        let fits = |v: i128| v.unsigned_abs() <= 1 << 40;
        match self {
            Self::Range(a, b) => (fits(*a) && fits(*b)).then(Unit::none),
            Self::Listed(list) => {
                let mut unit = None;
                for v in list {
                    match v {
                        Value::Num(Quantity { num: Num::Int(n), unit: u })
                            if fits(*n) && unit.as_ref().is_none_or(|x| x == u) =>
                        {
                            unit = Some(u.clone());
                        }
                        _ => return None,
                    }
                }
                unit
            }
        }
    }

    /// The least and the greatest number.
    fn bounds(&self) -> (f64, f64) {
        match self {
            Self::Range(a, b) => (*a as f64, (*b - 1) as f64),
            Self::Listed(list) => {
                let values = || list.iter().filter_map(Value::as_f64);
                (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max))
            }
        }
    }

    /// The values as numbers, where all are whole.
    pub fn integers(&self) -> Option<Vec<i64>> {
        self.whole()?;
        (0..self.len()).map(|i| self.get(i)?.as_int().and_then(|v| i64::try_from(v).ok())).collect()
    }
}

/// One choice and the value it has at the point.
#[derive(Clone, Debug)]
pub struct Choice<'p> {
    /// What is chosen: `tp`, `micro_batch`, `layout`.
    pub name: String,
    /// The `?`, or the domain.
    pub span: Span,
    /// Among what.
    pub domain: Domain<'p>,
    /// Which of the domain's values it has.
    pub at: usize,
    /// Whether somebody settled it; else it has the first.
    pub settled: bool,
    /// The input of the graph that stands for it, where it is among whole numbers.
    pub input: Option<expr::Id>,
    value: Value<'p>,
}

impl Choice<'_> {
    /// How a report writes the value at `index`.
    pub fn text(&self, index: usize) -> String {
        self.domain.get(index).map_or_else(String::new, |v| written(&v))
    }
}

/// A value as one would write it in a domain.
fn written(value: &Value<'_>) -> String {
    match value {
        Value::Num(Quantity { num: Num::Int(v), unit }) if unit.is_none() => v.to_string(),
        Value::Num(q) => match value.as_f64() {
            Some(x) => show(x, &q.unit),
            None => "a number".into(),
        },
        Value::Bool(Truth::Known(b)) => b.to_string(),
        Value::Str(s) => s.to_string(),
        Value::Word(w) => w.name.to_string(),
        Value::Instance(i) if i.args.is_empty() => i.decl.name.text.to_string(),
        Value::Instance(i) => {
            let args: Vec<_> = i.args.iter().map(|(n, (v, _))| format!("{n} = {}", written(v))).collect();
            format!("{}({})", i.decl.name.text, args.join(", "))
        }
        Value::Hole(_) => "?".into(),
        Value::Record(r) if !r.name.is_empty() => r.name.to_string(),
        other => other.noun(),
    }
}

/// The choices met while one job is evaluated, and the point they have.
#[derive(Clone, Default, Debug)]
pub struct Choices<'p> {
    /// Choices settled from outside: the place, and the index of the value.
    pub settled: Vec<(Span, usize)>,
    /// Choices settled by name and the text of the value.
    pub named: Vec<(String, String)>,
    /// Those met, in the order of evaluation.
    pub met: Vec<Choice<'p>>,
    /// Values of the graph's inputs at the point, in their order.
    pub point: Vec<f64>,
    /// Nodes whose value had to be known, with the value they had.
    pub readings: Vec<(expr::Id, f64)>,
}

impl<'p> Evaluator<'p, '_> {
    /// The value of the choice `hole`; `default` is among what, where no domain is written.
    pub fn choose(&mut self, name: &str, hole: &Hole<'p>, default: Option<Domain<'p>>) -> Value<'p> {
        if let Some(c) = self.choices.met.iter().find(|c| c.span == hole.span) {
            return c.value.clone();
        }
        let domain = match &hole.domain {
            Some((e, env)) => match self.domain(e, env) {
                Ok(domain) => domain,
                Err(e) => return e,
            },
            None => match default {
                Some(domain) => domain,
                None => return self.error(errors::nothing_says(name, hole.span)),
            },
        };
        if domain.is_empty() {
            return self.error(errors::no_values(name, hole.span));
        }
        let by_name = self.choices.named.iter().rev().find(|(n, _)| n == name).map(|(_, text)| text.clone());
        let mut settled = self.choices.settled.iter().find(|(s, _)| *s == hole.span).map(|(_, i)| *i);
        if let (Some(text), None) = (by_name, settled) {
            settled = (0..domain.len().min(MAX_LISTED)).find(|i| domain.get(*i).is_some_and(|v| written(&v) == text));
            if settled.is_none() {
                let known: Vec<_> = (0..domain.len().min(12)).filter_map(|i| Some(written(&domain.get(i)?))).collect();
                return self.error(errors::not_among(name, &text, &known, hole.span));
            }
        }
        let at = settled.unwrap_or(0).min(domain.len() - 1);
        let (input, value) = match (domain.whole(), domain.get(at)) {
            (Some(unit), Some(Value::Num(Quantity { num: Num::Int(v), .. }))) => {
                let (lo, hi) = domain.bounds();
                let input = Input { name: name.to_string(), kind: expr::Kind::Int, lo, hi };
                let id = self.graph.input(input);
                self.choices.point.push(v as f64);
                (Some(id), Value::sym(id, unit))
            }
            (_, Some(value)) => (None, value),
            (_, None) => return self.error(errors::no_values(name, hole.span)),
        };
        let choice = Choice {
            name: name.to_string(),
            span: hole.span,
            domain,
            at,
            settled: settled.is_some(),
            input,
            value: value.clone(),
        };
        self.choices.met.push(choice);
        value
    }

    /// `value` with an open choice settled and known.
    pub fn settled(&mut self, name: &str, value: Value<'p>) -> Value<'p> {
        match value {
            Value::Hole(hole) => {
                let chosen = self.choose(name, &hole, None);
                self.known(chosen)
            }
            other => other,
        }
    }

    /// What `e` lists: a set, a list or a range.
    pub fn domain(&mut self, e: &'p Expr, env: &Rc<Env<'p>>) -> Result<Domain<'p>, Value<'p>> {
        let list = match &e.kind {
            ExprKind::Set(list) => list.iter().map(|x| self.eval(x, env, &Wanted::Any)).collect(),
            _ => match self.eval(e, env, &Wanted::Any) {
                Value::List(l) => l.to_vec(),
                Value::Range(a, b) => return Ok(Domain::Range(a, b)),
                v @ Value::Error(_) => return Err(v),
                other => {
                    let noun = other.noun();
                    return Err(self.error(errors::wrong_kind("a domain", "a set, a list or a range", &noun, e.span)));
                }
            },
        };
        let failed = list.iter().find(|v| matches!(v, Value::Error(_)));
        match failed {
            Some(v) => Err(v.clone()),
            None => Ok(Domain::Listed(list)),
        }
    }

    /// The value of a node at the point, noted as one that had to be known.
    pub fn read(&mut self, id: expr::Id) -> f64 {
        let value = self.graph.eval(&self.choices.point, &[id])[0];
        let constant = self.graph.as_real(id).is_some() || self.graph.as_bool(id).is_some();
        if !constant && !self.choices.readings.iter().any(|(n, _)| *n == id) {
            self.choices.readings.push((id, value));
        }
        value
    }

    /// `value` with a symbolic number replaced by what it is at the point.
    pub fn known(&mut self, value: Value<'p>) -> Value<'p> {
        // Away from a job's own evaluation there is no point to read at.
        if self.choices.point.len() < self.graph.inputs().len() {
            return value;
        }
        match value {
            Value::Num(Quantity { num: Num::Sym(id), unit }) => {
                let v = self.read(id);
                let whole = self.graph.kind(id) == expr::Kind::Int;
                let num = if whole { Num::Int(v as i128) } else { Num::Real(v) };
                Value::Num(Quantity { num, unit })
            }
            Value::Bool(Truth::Sym(id)) => Value::Bool(Truth::Known(self.read(id) > 0.0)),
            other => other,
        }
    }
}
