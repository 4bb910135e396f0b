//! Declarations to values: devices, links, number formats become records; clusters, models and layouts instances.

use super::errors;
use super::types::{type_unit, wanted_of};
use super::{Closure, Env, Evaluator, Given, Instance, Num, Quantity, Record, Value, Wanted};
use crate::diagnostics::Reported;
use crate::hir::{DeclId, schema};
use crate::source::Span;
use crate::syntax::ast::{self, Block, Expr, ExprKind, ItemKind, Kind, Let, LetValue, ParamKind};
use crate::units::Unit;
use indexmap::IndexMap;
use smol_str::SmolStr;
use std::rc::Rc;

/// A record whose fields are being evaluated, in whatever order they need each other.
pub(super) struct Pending<'p> {
    sources: IndexMap<SmolStr, (&'p Expr, Rc<Env<'p>>, Span)>,
    done: IndexMap<SmolStr, Value<'p>>,
    active: Vec<SmolStr>,
    kind: Kind,
}

/// Field assignments of a block: name, value and the place of the name; of `NAME in DOMAIN` the domain, since a set
/// evaluates to a choice. Later ones win.
pub fn fields_of(block: &Block) -> IndexMap<SmolStr, (&Expr, Span)> {
    let mut out = IndexMap::new();
    for item in &block.items {
        match &item.kind {
            ItemKind::Assign { target, value } if target.suffixes.is_empty() => {
                out.insert(target.name.text.clone(), (&**value, target.name.span));
            }
            ItemKind::Domain { name, domain } => {
                out.insert(name.text.clone(), (&**domain, name.span));
            }
            _ => {}
        }
    }
    out
}

/// The `let`s of a block, each after those it needs: they may stand in any order. A circle, which the checker reports,
/// keeps its order.
pub fn lets_in_order(block: &Block) -> Vec<&Let> {
    let lets: Vec<&Let> =
        block.items.iter().filter_map(|i| if let ItemKind::Let(l) = &i.kind { Some(l) } else { None }).collect();
    let place: IndexMap<&str, usize> = lets.iter().enumerate().map(|(i, l)| (l.name.text.as_str(), i)).collect();
    let needs = |l: &Let| {
        let (LetValue::Is(e) | LetValue::In(e)) = &l.value;
        let mut found = Vec::new();
        crate::hir::walk_expr(e, &mut |x| {
            if let ExprKind::Path(path) = &x.kind
                && let [name] = &path[..]
            {
                found.extend(place.get(name.text.as_str()).copied());
            }
        });
        found
    };
    // Depth first: what is needed comes out before what needs it.
    let mut seen = vec![false; lets.len()];
    let mut out = Vec::with_capacity(lets.len());
    for start in 0..lets.len() {
        let mut path: Vec<(usize, Vec<usize>)> = Vec::new();
        if !std::mem::replace(&mut seen[start], true) {
            path.push((start, needs(lets[start])));
        }
        while let Some((at, left)) = path.last_mut() {
            match left.pop() {
                Some(next) if !std::mem::replace(&mut seen[next], true) => path.push((next, needs(lets[next]))),
                Some(_) => {}
                None => {
                    out.push(lets[*at]);
                    path.pop();
                }
            }
        }
    }
    out
}

/// `none` alone.
fn is_none(e: &Expr) -> bool {
    matches!(&e.kind, ExprKind::Path(p) if p.len() == 1 && p[0].text == "none")
}

/// Whether `none` is a value of the field: no master copy, no scaling.
fn takes_none(kind: Kind, field: &str) -> bool {
    kind == Kind::Precision && matches!(field, "master" | "scale")
}

/// Kinds whose value is a record of fields.
fn is_record(kind: Kind) -> bool {
    matches!(kind, Kind::Device | Kind::Host | Kind::Link | Kind::Dtype | Kind::Precision | Kind::Optimizer)
}

impl<'p> Evaluator<'p, '_> {
    /// The value a declaration's name stands for.
    pub(super) fn decl_value(&mut self, decl: &'p ast::Decl, id: DeclId, env: &Rc<Env<'p>>) -> Value<'p> {
        match decl.kind {
            Kind::Fn => return Value::Func(Rc::new(Closure { decl, env: Rc::clone(env) })),
            Kind::Op => return self.error(errors::not_supported("operators of one's own", decl.name.span)),
            Kind::Unit => {
                return self.error(errors::wrong_kind("a value", "something else", "a unit", decl.name.span));
            }
            _ => {}
        }
        if let ast::Body::Expr(e) = &decl.body {
            if decl.params.is_some() {
                return self.error(errors::not_supported("a declaration with parameters made from another", e.span));
            }
            return match self.eval(e, env, &Wanted::Any) {
                Value::Record(r) => Value::Record(Rc::new(Record { name: decl.name.text.clone(), ..(*r).clone() })),
                Value::Instance(i) if is_record(i.decl.kind) => self.record_of(&i),
                other => other,
            };
        }
        let instance = Instance { decl, id, args: IndexMap::new(), with: Vec::new(), span: decl.name.span };
        if decl.params.as_ref().is_some_and(|p| !p.is_empty()) {
            return Value::Instance(Rc::new(instance));
        }
        self.finish(Rc::new(instance))
    }

    /// A record where the declaration has fields only, else the instance itself.
    pub(super) fn finish(&mut self, instance: Rc<Instance<'p>>) -> Value<'p> {
        if is_record(instance.decl.kind) { self.record_of(&instance) } else { Value::Instance(instance) }
    }

    /// An error that was given before: for values whose parts are poisoned.
    pub(super) fn reported_before(&mut self) -> Reported {
        self.sink.reported()
    }

    /// The record of a declaration such as `optimizer SGD(momentum = 0.9)`; defaults are filled in.
    pub fn record_of(&mut self, instance: &Instance<'p>) -> Value<'p> {
        let top = Env::top(instance.id.module);
        let mut env = Env::inside(&top);
        for param in instance.decl.params.as_deref().unwrap_or_default() {
            let value = match (instance.args.get(&param.name.text), &param.kind) {
                (Some((v, _)), _) => v.clone(),
                (None, ParamKind::Value { default: Some(e), .. }) => self.eval(e, &Rc::new(env.clone()), &Wanted::Any),
                (None, _) => {
                    let d = instance.decl;
                    return self.error(errors::missing_argument(
                        &param.name.text,
                        &d.name.text,
                        instance.span,
                        d.name.span,
                    ));
                }
            };
            env.bind(param.name.text.clone(), value);
        }
        let ast::Body::Block(block) = &instance.decl.body else {
            return Value::Error(self.sink.reported());
        };
        let mut given = vec![Given { block, env: Rc::new(env) }];
        given.extend(instance.with.iter().cloned());
        self.record(instance.decl.kind, &instance.decl.name.text, given, instance.decl.name.span)
    }

    /// Evaluates the fields of `given`, later blocks winning, with the defaults of the schema.
    fn record(&mut self, kind: Kind, name: &SmolStr, given: Vec<Given<'p>>, span: Span) -> Value<'p> {
        let mut sources = IndexMap::new();
        let mut functions: IndexMap<SmolStr, Value<'p>> = IndexMap::new();
        let schema = schema::fields(kind);
        let known: Vec<String> = schema.iter().map(|f| f.name.to_string()).collect();
        let before = self.sink.error_count();
        for g in &given {
            for (field, (e, at)) in fields_of(g.block) {
                let field = SmolStr::new(schema::present(kind.keyword(), &field));
                // `with { price = none }` takes the field away, where `none` is no value of its own.
                if is_none(e) && !takes_none(kind, &field) {
                    sources.swap_remove(&field);
                } else if known.iter().any(|k| *k == *field) {
                    sources.insert(field, (e, Rc::clone(&g.env), at));
                } else {
                    let of = format!("a {}", kind.keyword());
                    self.sink.error(errors::unknown_field(&field, at, &of, &known));
                }
            }
            for item in &g.block.items {
                if let ItemKind::Decl(d) = &item.kind {
                    let f = Value::Func(Rc::new(Closure { decl: d, env: Rc::clone(&g.env) }));
                    functions.insert(d.name.text.clone(), f);
                }
            }
        }
        let missing = |f: &&schema::Field| f.default.is_none() && !sources.contains_key(f.name);
        for f in schema.iter().filter(missing) {
            self.sink.error(errors::missing_field(f.name, &format!("{} `{name}`", kind.keyword()), span));
        }
        let failed = self.sink.error_count() > before;
        self.pending.push(Pending { sources, done: IndexMap::new(), active: Vec::new(), kind });
        let mut fields = IndexMap::new();
        for f in schema {
            let wanted_here = self.pending.last().is_some_and(|p| p.sources.contains_key(f.name));
            if failed && !wanted_here {
                continue;
            }
            if let Some(v) = self.pending_field(f.name) {
                fields.insert(SmolStr::new_static(f.name), v);
            }
        }
        self.pending.pop();
        fields.extend(functions);
        if failed || fields.values().any(|v| matches!(v, Value::Error(_))) {
            return Value::Error(self.sink.reported());
        }
        Value::Record(Rc::new(Record { kind: kind.keyword(), name: name.clone(), fields, given, span }))
    }

    /// The field `name` of the record under construction, evaluated when first needed.
    pub(super) fn pending_field(&mut self, name: &str) -> Option<Value<'p>> {
        let pending = self.pending.last_mut()?;
        if let Some(v) = pending.done.get(name) {
            return Some(v.clone());
        }
        let kind = pending.kind;
        let field = schema::fields(kind).iter().find(|f| f.name == name)?;
        let source = pending.sources.get(name).cloned();
        if let Some((e, _, _)) = &source
            && pending.active.iter().any(|a| a == name)
        {
            return Some(self.error(errors::recursion(e.span, name)));
        }
        pending.active.push(name.into());
        let value = match source {
            Some((e, env, _)) => self.given_field(kind, field, e, &env),
            None => self.default_field(kind, field),
        };
        if let Some(pending) = self.pending.last_mut() {
            pending.active.pop();
            pending.done.insert(name.into(), value.clone());
        }
        Some(value)
    }

    fn given_field(&mut self, kind: Kind, field: &schema::Field, e: &'p Expr, env: &Rc<Env<'p>>) -> Value<'p> {
        if field.ty == "Names" {
            return self.names_field(e, env);
        }
        let wanted = wanted_of(field.ty);
        let v = self.eval(e, env, &wanted);
        let v = self.settled(field.name, v);
        let v = self.require(v, &wanted, &format!("`{}`", field.name), e.span);
        match (field.ty, &v) {
            (_, Value::Error(_)) => v,
            ("Dtype", Value::Record(r)) if r.kind == "dtype" => v,
            ("Dtype", Value::Word(w)) if w.name == "none" || w.name == "self" => v,
            ("Dtype", other) => {
                let noun = other.noun();
                self.error(errors::wrong_kind(&format!("`{}`", field.name), "a dtype", &noun, e.span))
            }
            ("Peaks", Value::Record(r)) => {
                let r = Rc::clone(r);
                self.peaks(&r, e.span);
                v
            }
            ("Links", Value::Record(r)) if r.kind == "link" => Value::Links { count: Num::Int(1), link: Rc::clone(r) },
            ("Bytes", _) if kind == Kind::Device && field.name == "usable" => {
                let memory = self.pending_field("memory");
                if let (Some(u), Some(m)) = (v.as_f64(), memory.as_ref().and_then(Value::as_f64))
                    && u > m
                {
                    return self.error(errors::usable_above_memory(u, m, e.span));
                }
                v
            }
            _ => v,
        }
    }

    /// Every peak is a rate, alone or by accumulator.
    fn peaks(&mut self, record: &Record<'p>, span: Span) {
        for (name, v) in &record.fields {
            match v {
                Value::Record(inner) => self.peaks(inner, span),
                other => {
                    self.require(
                        other.clone(),
                        &Wanted::Quantity(Unit::flop_rate()),
                        &format!("the peak of `{name}`"),
                        span,
                    );
                }
            }
        }
    }

    /// `[m, v]`: names that mean nothing elsewhere.
    fn names_field(&mut self, e: &'p Expr, env: &Rc<Env<'p>>) -> Value<'p> {
        let mut inner = Env::inside(env);
        crate::hir::walk_expr(e, &mut |x| {
            if let ExprKind::Path(path) = &x.kind
                && let [name] = &path[..]
                && env.find(&name.text).is_none()
            {
                inner.vars.push((name.text.clone(), Value::word(name.text.clone())));
            }
        });
        match self.eval(e, &Rc::new(inner), &Wanted::Any) {
            v @ (Value::List(_) | Value::Error(_)) => v,
            other => self.error(errors::wrong_kind("`tensors`", "a list of names", &other.noun(), e.span)),
        }
    }

    fn default_field(&mut self, kind: Kind, field: &schema::Field) -> Value<'p> {
        let zero = |ty: &str| Value::Num(Quantity { num: Num::Int(0), unit: type_unit(ty).unwrap_or_default() });
        match (kind, field.name) {
            (Kind::Device, "usable") => match (self.pending_field("memory"), self.pending_field("reserve")) {
                (Some(Value::Num(memory)), Some(Value::Num(reserve))) => {
                    // A default has no place of its own.
                    let at = Span::NOWHERE;
                    self.numbers(ast::BinaryOp::Sub, at, (memory, at), (reserve, at), false)
                }
                _ => Value::Error(self.sink.reported()),
            },
            (Kind::Precision, "scale") | (Kind::Optimizer, "cost") => Value::word("none"),
            (Kind::Precision, name) => {
                let follow = match name {
                    "grad_compute" => "compute",
                    "gather" => "param",
                    "wire" | "kv" => "act",
                    _ => "",
                };
                if follow.is_empty() {
                    let dtype = field.default.unwrap_or("none");
                    if dtype == "none" { Value::word("none") } else { self.std_dtype(dtype) }
                } else {
                    self.pending_field(follow).unwrap_or_else(|| Value::word("none"))
                }
            }
            (Kind::Link, "flow_limit") => self.pending_field("bandwidth").unwrap_or_else(|| zero("Bandwidth")),
            (Kind::Link, "efficiency") => Value::Num(Quantity { num: Num::Int(1), unit: Unit::none() }),
            (Kind::Device, "sms") => Value::int(1),
            (Kind::Dtype, "computes_as") => Value::word("self"),
            (Kind::Optimizer, "shape") => Value::word("full"),
            _ => zero(field.ty),
        }
    }

    /// A number format of the standard library.
    fn std_dtype(&mut self, name: &str) -> Value<'p> {
        let pending = std::mem::take(&mut self.pending);
        let value = match self.program.std_entry(name) {
            Some(id) => self.entry(id, Span::NOWHERE),
            None => Value::word("none"),
        };
        self.pending = pending;
        value
    }

    pub(super) fn field(&mut self, base: &'p Expr, name: &'p ast::Name, env: &Rc<Env<'p>>) -> Value<'p> {
        // `layout.dp`, `site.Pod`: a bound record, or a file imported with `as`.
        if let ExprKind::Path(path) = &base.kind
            && let [alias] = &path[..]
            && env.find(&alias.text).is_none()
            && let Some(crate::hir::Binding::Module(module)) = self.program.lookup(env.module, &alias.text)
        {
            return match self.program.module(module).scope.get(&name.text) {
                Some(crate::hir::Binding::Decl(id)) => self.entry(*id, name.span),
                _ => {
                    let known: Vec<_> = self.program.module(module).scope.keys().map(ToString::to_string).collect();
                    self.error(errors::unknown_name(&name.text, name.span, &known))
                }
            };
        }
        match self.eval(base, env, &Wanted::Any) {
            Value::Record(r) => match r.fields.get(&name.text) {
                Some(v) => v.clone(),
                None => {
                    let known: Vec<_> = r.fields.keys().map(ToString::to_string).collect();
                    let of = Value::Record(Rc::clone(&r)).noun();
                    self.error(errors::unknown_field(&name.text, name.span, &of, &known))
                }
            },
            e @ Value::Error(_) => e,
            other => {
                let noun = other.noun();
                self.error(errors::unknown_field(&name.text, name.span, &noun, &[]))
            }
        }
    }

    pub(super) fn with(&mut self, base: Value<'p>, block: &'p Block, span: Span, env: &Rc<Env<'p>>) -> Value<'p> {
        let added = Given { block, env: Rc::clone(env) };
        match base {
            Value::Record(r) if !r.given.is_empty() => {
                let mut given = r.given.clone();
                given.push(added);
                match record_kind(r.kind) {
                    Some(kind) => self.record(kind, &r.name, given, span),
                    None => self.error(errors::not_supported("`with` on this record", span)),
                }
            }
            Value::Instance(i) => {
                // A field named like a parameter replaces the argument.
                let params = i.decl.params.as_deref().unwrap_or_default();
                let mut next = (*i).clone();
                for (field, (e, _)) in fields_of(block) {
                    if params.iter().any(|p| p.name.text == field) {
                        let v = self.eval(e, env, &Wanted::Any);
                        next.args.insert(field, (v, e.span));
                    }
                }
                next.with.push(added);
                next.span = span;
                Value::Instance(Rc::new(next))
            }
            e @ Value::Error(_) => e,
            other => {
                let noun = other.noun();
                self.error(errors::wrong_kind("`with`", "a declaration", &noun, span))
            }
        }
    }

    pub(super) fn index(&mut self, expr: &'p Expr, base: Value<'p>, env: &Rc<Env<'p>>) -> Value<'p> {
        let ExprKind::Index(_, indices) = &expr.kind else { return base };
        let (Value::List(list), [ast::Index::Expr(e)]) = (&base, &indices[..]) else {
            return match base {
                Value::Error(_) => base,
                _ => self.error(errors::not_supported("selecting part of this", expr.span)),
            };
        };
        match self.eval(e, env, &Wanted::Int) {
            Value::Num(Quantity { num: Num::Int(i), .. }) => match usize::try_from(i).ok().and_then(|i| list.get(i)) {
                Some(v) => v.clone(),
                None => {
                    let text = format!("an index from 0 to {}", list.len() as i128 - 1);
                    self.error(errors::wrong_kind("this list", &text, &i.to_string(), e.span))
                }
            },
            err @ Value::Error(_) => err,
            other => {
                let noun = other.noun();
                self.error(errors::wrong_kind("an index", "a known whole number", &noun, e.span))
            }
        }
    }
}

fn record_kind(kind: &str) -> Option<Kind> {
    [Kind::Device, Kind::Host, Kind::Link, Kind::Dtype, Kind::Precision, Kind::Optimizer]
        .into_iter()
        .find(|k| k.keyword() == kind)
}
