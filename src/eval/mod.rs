//! Expressions to values.
//!
//! One evaluator for everything: a number is either known or a node of the expression graph, so the same code
//! evaluates a device's fields, inlines a cost function over symbolic sizes and runs a schedule's generator.

mod arith;
pub(crate) mod builtin;
mod call;
pub(crate) mod chance;
mod choice;
pub(crate) mod errors;
mod record;
mod table;
mod types;
mod value;

pub use call::metric_of;
pub use chance::{Distribution, Law};
pub use choice::{Choice, Choices, Domain, Hole};
pub use record::{fields_of, lets_in_order};
pub use table::{Inside, Table};
pub use types::{Wanted, type_unit, type_wanted};
pub use value::{Closure, Env, Given, Instance, Num, Quantity, Record, ScheduleOp, Truth, Value, Word};

use crate::diagnostics::{Diagnostic, Sink};
use crate::expr;
use crate::hir::{Binding, DeclId, Entry, ModuleId, Program};
use crate::source::Span;
use crate::syntax::ast::{self, Expr, ExprKind};
use crate::units::{self, Unit};
use indexmap::IndexMap;
use smol_str::SmolStr;
use std::rc::Rc;

/// Elements one top-level evaluation may produce; `docs/reference`
pub const MAX_ELEMENTS: u64 = 16_000_000;
/// Elements of one list.
pub const MAX_LIST: i128 = 1_048_576;
/// Depth of calls: functions are not recursive, so this only bounds chains.
const MAX_DEPTH: u32 = 200;

/// A condition that must hold at a legal point, met while evaluating.
#[derive(Clone, Debug)]
pub struct Condition {
    /// A Bool node.
    pub cond: expr::Id,
    /// Where it comes from.
    pub what: Demand,
    /// The division, or the call of the table.
    pub span: Span,
}

/// What a [`Condition`] comes from.
#[derive(Clone, Debug)]
pub enum Demand {
    /// `a` and `b` of an exact division `a / b`.
    Division(expr::Id, expr::Id),
    /// A key of a table lies inside it.
    Inside(Inside),
}

/// Evaluates expressions of one program into one graph.
pub struct Evaluator<'p, 's> {
    /// The program.
    pub program: &'p Program,
    /// Where symbolic numbers go.
    pub graph: &'s mut expr::Graph,
    /// Where diagnostics go.
    pub sink: &'s mut Sink,
    /// Exact divisions and table keys of symbolic numbers met so far.
    pub conditions: Vec<Condition>,
    /// Open choices and the point they have.
    pub choices: Choices<'p>,
    /// Metrics asked for with an argument, such as `params(mtp)`, by name and path.
    pub applied: IndexMap<(SmolStr, Vec<String>), Value<'p>>,
    cache: IndexMap<DeclId, Value<'p>>,
    /// Tables by the blocks they were made from; none for those that are wrong.
    tables: IndexMap<Vec<*const ast::Block>, Option<Rc<Table>>>,
    active: Vec<DeclId>,
    pending: Vec<record::Pending<'p>>,
    calls: Vec<*const ast::Decl>,
    fuel: u64,
    depth: u32,
}

impl<'p, 's> Evaluator<'p, 's> {
    /// An evaluator that has seen nothing.
    pub fn new(program: &'p Program, graph: &'s mut expr::Graph, sink: &'s mut Sink) -> Self {
        Self {
            program,
            graph,
            sink,
            conditions: Vec::new(),
            choices: Choices::default(),
            applied: IndexMap::new(),
            cache: IndexMap::new(),
            tables: IndexMap::new(),
            active: Vec::new(),
            pending: Vec::new(),
            calls: Vec::new(),
            fuel: MAX_ELEMENTS,
            depth: 0,
        }
    }

    /// Reports `diagnostic` and gives the value that stands for it.
    pub fn error(&mut self, diagnostic: Diagnostic) -> Value<'p> {
        Value::Error(self.sink.error(diagnostic))
    }

    /// The value of a top-level declaration or `let`.
    pub fn entry(&mut self, id: DeclId, at: Span) -> Value<'p> {
        if let Some(v) = self.cache.get(&id) {
            return v.clone();
        }
        let entry = self.program.entry(id);
        if self.active.contains(&id) {
            return self.error(errors::recursion(at, &entry.name().text));
        }
        if self.active.is_empty() {
            self.fuel = MAX_ELEMENTS;
        }
        self.active.push(id);
        let pending = std::mem::take(&mut self.pending);
        let env = Env::top(id.module);
        let value = match entry {
            Entry::Let(l) => match &l.value {
                ast::LetValue::Is(e) => {
                    let wanted = l.ty.as_ref().map_or(Wanted::Any, type_wanted);
                    self.eval(e, &env, &wanted)
                }
                ast::LetValue::In(e) => self.error(errors::not_supported("a domain on a top-level `let`", e.span)),
            },
            Entry::Decl(d) => self.decl_value(d, id, &env),
        };
        self.pending = pending;
        self.active.pop();
        self.cache.insert(id, value.clone());
        value
    }

    /// Lets so many elements be evaluated at least: for what a limit of its own bounds.
    pub fn allow(&mut self, elements: u64) {
        self.fuel = self.fuel.max(elements);
    }

    /// The value of `expr`; `wanted` says whether a whole number is expected.
    pub fn eval(&mut self, expr: &'p Expr, env: &Rc<Env<'p>>, wanted: &Wanted) -> Value<'p> {
        if self.fuel == 0 {
            return self.error(errors::out_of_budget(expr.span, MAX_ELEMENTS));
        }
        self.fuel -= 1;
        if self.depth >= MAX_DEPTH {
            return self.error(errors::out_of_budget(expr.span, u64::from(MAX_DEPTH)));
        }
        self.depth += 1;
        let value = self.eval_inner(expr, env, wanted);
        self.depth -= 1;
        value
    }

    fn eval_inner(&mut self, expr: &'p Expr, env: &Rc<Env<'p>>, wanted: &Wanted) -> Value<'p> {
        match &expr.kind {
            ExprKind::Number { value, unit } => self.number(*value, unit.as_ref(), expr.span),
            ExprKind::Str(s) => Value::Str(s.clone()),
            ExprKind::Bool(b) => Value::Bool(Truth::Known(*b)),
            ExprKind::Hole => Value::Hole(Rc::new(Hole { span: expr.span, domain: None })),
            ExprKind::Path(path) => self.path(path, env, expr.span),
            ExprKind::Kind(kind) => match env.find(kind.keyword()) {
                Some(v) => v.clone(),
                None => self.pending_field(kind.keyword()).unwrap_or_else(|| Value::word(kind.keyword())),
            },
            ExprKind::Param(_) => Value::word("param"),
            ExprKind::Field(e, name) => self.field(e, name, env),
            ExprKind::Call(f, args) => self.call(f, args, expr.span, env, wanted),
            ExprKind::Index(e, _) => {
                let base = self.eval(e, env, &Wanted::Any);
                self.index(expr, base, env)
            }
            ExprKind::With(e, block) => {
                let base = self.eval(e, env, &Wanted::Any);
                self.with(base, block, expr.span, env)
            }
            ExprKind::Unary(op, e) => {
                let v = self.eval(e, env, wanted);
                self.unary(*op, v, e.span)
            }
            ExprKind::Binary(op, at, a, b) => self.binary(*op, *at, a, b, env, wanted),
            ExprKind::Range(a, b) => {
                let (x, y) = (self.eval(a, env, &Wanted::Int), self.eval(b, env, &Wanted::Int));
                let (x, y) = (self.known(x), self.known(y));
                match (x.as_int(), y.as_int()) {
                    (Some(x), Some(y)) => Value::Range(x, y),
                    _ if matches!(x, Value::Error(_)) => x,
                    _ if matches!(y, Value::Error(_)) => y,
                    _ => self.error(errors::wrong_kind("a range", "whole numbers", &x.noun(), expr.span)),
                }
            }
            ExprKind::If(c, a, b) => self.conditional(c, a, b, env, wanted),
            ExprKind::List(list) => {
                let mut out = Vec::with_capacity(list.len());
                for e in list {
                    out.push(self.eval(e, env, &Wanted::Any));
                }
                Value::List(Rc::new(out))
            }
            ExprKind::Comprehension(body, generators) => self.comprehension(body, generators, env),
            ExprKind::Set(_) => Value::Hole(Rc::new(Hole { span: expr.span, domain: Some((expr, Rc::clone(env))) })),
            ExprKind::Record(fields) => {
                let mut record = Record::made("", "", expr.span);
                for (name, e) in fields {
                    let v = self.eval(e, env, &Wanted::Any);
                    if record.fields.insert(name.text.clone(), v).is_some() {
                        self.sink.error(errors::argument_twice(&name.text, name.span));
                    }
                }
                Value::Record(Rc::new(record))
            }
            ExprKind::Error => Value::Error(self.sink.reported()),
        }
    }

    fn number(&mut self, value: ast::Number, unit: Option<&(SmolStr, Span)>, span: Span) -> Value<'p> {
        let (scale, unit) = match unit {
            None => (units::Scale { num: 1, den: 1 }, Unit::none()),
            Some((text, at)) => match units::lookup(text, &|n| self.program.units.iter().any(|u| u == n)) {
                Ok(found) => found,
                Err(e) => return self.error(errors::unknown_unit(&e, *at)),
            },
        };
        let num = match value {
            ast::Number::Int(v) => match v.checked_mul(scale.num) {
                Some(v) if v.abs() > 1 << 100 => return self.error(errors::too_large(span)),
                Some(v) if v % scale.den == 0 => Num::Int(v / scale.den),
                Some(v) => Num::Real(v as f64 / scale.den as f64),
                None => return self.error(errors::too_large(span)),
            },
            ast::Number::Real(v) => {
                let x = v * scale.num as f64 / scale.den as f64;
                // `3.35 TB/s` is a whole number of bytes a second.
                if !unit.is_none() && x.fract().abs() <= 0.0 && x.abs() < 9e15 {
                    Num::Int(x as i128)
                } else {
                    Num::Real(x)
                }
            }
        };
        Value::Num(Quantity { num, unit })
    }

    fn path(&mut self, path: &'p [ast::Name], env: &Rc<Env<'p>>, span: Span) -> Value<'p> {
        match path {
            [name] => self.name(name, env),
            [root, group, name] if root.text == "std" => match self.program.std_path(&group.text, &name.text) {
                Some(id) => self.entry(id, span),
                None => self.unknown(name, env),
            },
            [first, ..] => self.unknown(first, env),
            [] => self.error(errors::unknown_name("", span, &[])),
        }
    }

    fn name(&mut self, name: &'p ast::Name, env: &Rc<Env<'p>>) -> Value<'p> {
        if let Some(v) = env.find(&name.text) {
            return v.clone();
        }
        if let Some(v) = self.pending_field(&name.text) {
            return v;
        }
        match self.program.lookup(env.module, &name.text) {
            Some(Binding::Decl(id)) => self.entry(id, name.span),
            Some(Binding::Module(_)) => {
                self.error(errors::wrong_kind("a value", "a name in the file", "the file itself", name.span))
            }
            None if crate::hir::schema::is_word(&name.text) => Value::word(name.text.clone()),
            None => self.unknown(name, env),
        }
    }

    /// Reports that `name` is not known, with the nearest name that is.
    pub fn unknown(&mut self, name: &ast::Name, env: &Rc<Env<'p>>) -> Value<'p> {
        let known = self.known_names(env.module, Some(env));
        self.error(errors::unknown_name(&name.text, name.span, &known))
    }

    /// Every name a user could mean in `module`.
    pub fn known_names(&self, module: ModuleId, env: Option<&Env<'p>>) -> Vec<String> {
        let local = env.map(Env::names).unwrap_or_default();
        let own = self.program.module(module).scope.keys().cloned();
        let all = local.into_iter().chain(own).chain(self.program.prelude_names.iter().cloned());
        all.map(String::from).chain(builtin::FUNCTIONS.iter().map(|f| (*f).to_string())).collect()
    }

    fn conditional(&mut self, c: &'p Expr, a: &'p Expr, b: &'p Expr, env: &Rc<Env<'p>>, wanted: &Wanted) -> Value<'p> {
        match self.eval(c, env, &Wanted::Any) {
            Value::Bool(Truth::Known(true)) => self.eval(a, env, wanted),
            Value::Bool(Truth::Known(false)) => self.eval(b, env, wanted),
            Value::Bool(Truth::Sym(cond)) => {
                // What a branch demands it demands only where it is taken.
                let before = self.conditions.len();
                let x = self.eval(a, env, wanted);
                let between = self.conditions.len();
                let y = self.eval(b, env, wanted);
                let other = self.graph.not(cond);
                for (i, c) in self.conditions.iter_mut().enumerate().skip(before) {
                    let untaken = if i < between { other } else { cond };
                    c.cond = self.graph.or(untaken, c.cond);
                }
                match (x, y) {
                    (Value::Num(x), Value::Num(y)) if x.unit == y.unit => {
                        let (i, j) = (self.node(x.num), self.node(y.num));
                        Value::sym(self.graph.select(cond, i, j), x.unit)
                    }
                    (Value::Num(x), Value::Num(y)) => self.error(errors::unit_mismatch(
                        ast::BinaryOp::Eq,
                        c.span,
                        (&x.unit, a.span),
                        (&y.unit, b.span),
                    )),
                    (e @ Value::Error(_), _) | (_, e @ Value::Error(_)) => e,
                    _ => self.error(errors::not_supported(
                        "choosing between values that are not numbers by a condition over layout parameters",
                        c.span,
                    )),
                }
            }
            e @ Value::Error(_) => e,
            other => self.error(errors::wrong_kind("a condition", "true or false", &other.noun(), c.span)),
        }
    }

    fn comprehension(&mut self, body: &'p Expr, generators: &'p [ast::Generator], env: &Rc<Env<'p>>) -> Value<'p> {
        let mut out = Vec::new();
        match self.generate(body, generators, env, &mut out) {
            Ok(()) => Value::List(Rc::new(out)),
            Err(e) => e,
        }
    }

    fn generate(
        &mut self,
        body: &'p Expr,
        generators: &'p [ast::Generator],
        env: &Rc<Env<'p>>,
        out: &mut Vec<Value<'p>>,
    ) -> Result<(), Value<'p>> {
        let Some((first, rest)) = generators.split_first() else {
            if out.len() as i128 >= MAX_LIST {
                return Err(self.error(errors::list_too_long(body.span, out.len() as i128 + 1, MAX_LIST)));
            }
            let v = self.eval(body, env, &Wanted::Any);
            if let Value::Error(_) = v {
                return Err(v);
            }
            out.push(v);
            return Ok(());
        };
        let over = self.eval(&first.over, env, &Wanted::Any);
        let items: Box<dyn Iterator<Item = Value<'p>>> = match over {
            Value::Range(a, b) if b - a > MAX_LIST => {
                return Err(self.error(errors::list_too_long(first.over.span, b - a, MAX_LIST)));
            }
            Value::Range(a, b) => Box::new((a..b).map(Value::int)),
            Value::List(list) => Box::new((0..list.len()).map(move |i| list[i].clone())),
            e @ Value::Error(_) => return Err(e),
            other => {
                return Err(self.error(errors::wrong_kind(
                    "`for … in`",
                    "a list or a range",
                    &other.noun(),
                    first.over.span,
                )));
            }
        };
        for item in items {
            let inner = Env::with(env, vec![(first.name.text.clone(), item)]);
            if let Some(cond) = &first.cond {
                match self.eval(cond, &inner, &Wanted::Any) {
                    Value::Bool(Truth::Known(true)) => {}
                    Value::Bool(Truth::Known(false)) => continue,
                    e @ Value::Error(_) => return Err(e),
                    other => {
                        return Err(self.error(errors::wrong_kind(
                            "`if` in a list",
                            "a known true or false",
                            &other.noun(),
                            cond.span,
                        )));
                    }
                }
            }
            self.generate(body, rest, &inner, out)?;
        }
        Ok(())
    }

    /// `num` as a node.
    pub fn node(&mut self, num: Num) -> expr::Id {
        match num {
            Num::Int(v) => match i64::try_from(v) {
                Ok(v) => self.graph.int(v),
                Err(_) => self.graph.real(v as f64),
            },
            Num::Real(v) => self.graph.real(v),
            Num::Sym(id) => id,
        }
    }
}
