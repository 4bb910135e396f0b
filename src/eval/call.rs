//! Calls: built-ins, functions, words, and declarations given their arguments.

use super::builtin::FUNCTIONS;
use super::types::wanted_of;
use super::{Closure, Env, Evaluator, Hole, Instance, Value, Wanted, Word, type_wanted};
use super::{chance, errors};
use crate::hir::schema::is_word;
use crate::source::Span;
use crate::syntax::ast::{self, Arg, Expr, ExprKind, Param, ParamKind};
use smol_str::SmolStr;
use std::rc::Rc;

/// One slot for each parameter: the argument and its place.
type Slots<'p> = Vec<Option<(Value<'p>, Span)>>;

/// An argument after evaluation.
pub(super) struct Given<'p> {
    name: Option<ast::Name>,
    value: Value<'p>,
    span: Span,
}

impl<'p> Evaluator<'p, '_> {
    pub(super) fn call(
        &mut self,
        callee: &'p Expr,
        args: &'p [Arg],
        span: Span,
        env: &Rc<Env<'p>>,
        wanted: &Wanted,
    ) -> Value<'p> {
        if let ExprKind::Path(path) = &callee.kind
            && let [name] = &path[..]
            && env.find(&name.text).is_none()
            && self.program.lookup(env.module, &name.text).is_none()
        {
            if FUNCTIONS.contains(&name.text.as_str()) {
                let inner = if *wanted == Wanted::Int && matches!(name.text.as_str(), "min" | "max") {
                    Wanted::Int
                } else {
                    Wanted::Any
                };
                let values =
                    args.iter().map(|a| (self.eval(arg_expr(a), env, &inner), arg_expr(a).span)).collect::<Vec<_>>();
                return self.builtin(&name.text, &values, span);
            }
            if let ([Arg::Positional(e)], true) = (args, chance::FUNCTIONS.contains(&name.text.as_str())) {
                let value = self.eval(e, env, &Wanted::Any);
                return self.of_distribution(&name.text, &value, e.span);
            }
            if is_word(&name.text) && self.pending_field(&name.text).is_none() {
                return self.word(name, args, env);
            }
        }
        if let ExprKind::Field(base, method) = &callee.kind {
            let object = self.eval(base, env, &Wanted::Any);
            if let (Value::Record(r), "span") = (&object, method.text.as_str())
                && r.kind == "group"
            {
                return self.group_span(r, args, span, env);
            }
            if let Value::Error(_) = object {
                return object;
            }
        }
        let f = self.eval(callee, env, &Wanted::Any);
        match f {
            Value::Func(f) => {
                let given = self.arguments(args, env);
                self.apply(&f, given, span)
            }
            Value::Instance(i) => {
                let given = self.arguments(args, env);
                self.instantiate(&i, given, span)
            }
            e @ Value::Error(_) => e,
            other => match metric_of(callee, args).and_then(|key| self.applied.get(&key).cloned()) {
                Some(value) => value,
                None => {
                    self.error(errors::wrong_kind("a call", "a function or a declaration", &other.noun(), callee.span))
                }
            },
        }
    }

    fn word(&mut self, name: &'p ast::Name, args: &'p [Arg], env: &Rc<Env<'p>>) -> Value<'p> {
        let mut out = Vec::new();
        for arg in args {
            let (label, e) = match arg {
                Arg::Positional(e) => (None, e),
                Arg::Named(n, e) | Arg::Domain(n, e) => (Some(n.text.clone()), e),
            };
            let v = self.eval(e, env, &Wanted::Any);
            if let Value::Error(_) = v {
                return v;
            }
            out.push((label, v));
        }
        Value::Word(Rc::new(Word { name: name.text.clone(), args: out }))
    }

    /// `g.span("node")`: how many children of that level the group touches.
    fn group_span(&mut self, group: &super::Record<'p>, args: &'p [Arg], span: Span, env: &Rc<Env<'p>>) -> Value<'p> {
        let level = match args {
            [Arg::Positional(e)] => self.eval(e, env, &Wanted::Any),
            _ => return self.error(errors::too_many_arguments("span", 1, span)),
        };
        let (Value::Str(level), Some(Value::Record(touched))) = (&level, group.fields.get("touched")) else {
            return self.error(errors::wrong_kind("`span`", "the name of a level in quotes", &level.noun(), span));
        };
        match touched.fields.get(level) {
            Some(v) => v.clone(),
            None => {
                let known: Vec<_> = touched.fields.keys().map(ToString::to_string).collect();
                self.error(errors::unknown_name(level, span, &known))
            }
        }
    }

    fn arguments(&mut self, args: &'p [Arg], env: &Rc<Env<'p>>) -> Vec<Given<'p>> {
        let mut out = Vec::new();
        for arg in args {
            let (name, e) = match arg {
                Arg::Positional(e) => (None, e),
                Arg::Named(n, e) => (Some(n.clone()), e),
                Arg::Domain(n, e) => {
                    let hole = Hole { span: e.span, domain: Some((e, Rc::clone(env))) };
                    out.push(Given { name: Some(n.clone()), value: Value::Hole(Rc::new(hole)), span: e.span });
                    continue;
                }
            };
            out.push(Given { name, value: self.eval(e, env, &Wanted::Any), span: e.span });
        }
        out
    }

    /// Matches arguments to parameters, one slot for each; what is wrong is reported and left out.
    fn bind(&mut self, params: &'p [Param], given: Vec<Given<'p>>, of: &ast::Name) -> Slots<'p> {
        let mut slots: Slots<'p> = vec![None; params.len()];
        for (i, g) in given.into_iter().enumerate() {
            let at = match &g.name {
                Some(name) => params.iter().position(|p| p.name.text == name.text),
                None => (i < params.len()).then_some(i),
            };
            let Some(at) = at else {
                let known: Vec<_> = params.iter().map(|p| p.name.text.to_string()).collect();
                self.sink.error(match &g.name {
                    Some(name) => errors::unknown_argument(&name.text, name.span, &of.text, &known, of.span),
                    None => errors::too_many_arguments(&of.text, params.len(), g.span),
                });
                continue;
            };
            let param = &params[at];
            let wanted = self.param_wanted(param);
            let value = if self.fits(&g.value, &wanted) {
                g.value
            } else {
                self.require(g.value, &wanted, &format!("`{}`", param.name.text), g.span)
            };
            if slots[at].replace((value, g.span)).is_some() {
                self.sink.error(errors::argument_twice(&param.name.text, g.span));
            }
        }
        slots
    }

    fn param_wanted(&self, param: &Param) -> Wanted {
        match &param.kind {
            ParamKind::Value { ty: Some(ty), .. } => match self.user_type(&ty.name.text) {
                Some(unit) => Wanted::Quantity(crate::units::Unit::base(crate::units::Base::User(unit))),
                None => type_wanted(ty),
            },
            ParamKind::Value { ty: None, .. } | ParamKind::Tensor(_) => Wanted::Any,
            ParamKind::Dim { .. } => wanted_of("Int"),
        }
    }

    /// A declaration with arguments: a record where its fields are all it has, else an instance.
    fn instantiate(&mut self, base: &Instance<'p>, given: Vec<Given<'p>>, span: Span) -> Value<'p> {
        let params = base.decl.params.as_deref().unwrap_or_default();
        let failed =
            given.iter().find_map(|g| if let Value::Error(e) = g.value { Some(Value::Error(e)) } else { None });
        let before = self.sink.error_count();
        let mut args = base.args.clone();
        let slots = self.bind(params, given, &base.decl.name);
        if base.decl.kind == ast::Kind::Table && failed.is_none() && self.sink.error_count() == before {
            return self.ask(base, &slots, span);
        }
        let bound = params.iter().zip(slots).filter_map(|(p, slot)| Some((p.name.text.clone(), slot?)));
        args.extend(bound);
        if let Some(e) = failed {
            return e;
        }
        if self.sink.error_count() > before {
            return Value::Error(self.reported_before());
        }
        let instance = Instance { args, span, ..base.clone() };
        self.finish(Rc::new(instance))
    }

    /// The value of a table at keys given by position or name.
    fn ask(&mut self, table: &Instance<'p>, keys: &Slots<'p>, span: Span) -> Value<'p> {
        let params = table.decl.params.as_deref().unwrap_or_default();
        let mut found = Vec::with_capacity(keys.len());
        for (param, key) in params.iter().zip(keys) {
            match key {
                Some((Value::Num(q), _)) => found.push(q.clone()),
                Some((Value::Hole(_), at)) => {
                    return self.error(errors::wrong_kind(
                        &format!("`{}`", param.name.text),
                        "a number",
                        "an open choice",
                        *at,
                    ));
                }
                Some((Value::Error(e), _)) => return Value::Error(*e),
                Some((other, at)) => {
                    let noun = other.noun();
                    return self.error(errors::wrong_kind(&format!("`{}`", param.name.text), "a number", &noun, *at));
                }
                None => {
                    let name = &table.decl.name;
                    return self.error(errors::missing_argument(&param.name.text, &name.text, span, name.span));
                }
            }
        }
        match self.table(table) {
            Some(rows) => self.look_up(&rows, &found, span),
            None => Value::Error(self.reported_before()),
        }
    }

    /// Applies a user's function to evaluated values; a parameter without one takes its default.
    fn apply(&mut self, f: &Closure<'p>, given: Vec<Given<'p>>, span: Span) -> Value<'p> {
        let params = f.decl.params.as_deref().unwrap_or_default();
        let before = self.sink.error_count();
        let failed =
            given.iter().find_map(|g| if let Value::Error(e) = g.value { Some(Value::Error(e)) } else { None });
        let args = self.bind(params, given, &f.decl.name);
        if let Some(e) = failed {
            return e;
        }
        if self.sink.error_count() > before {
            return Value::Error(self.reported_before());
        }
        self.run(f, args, span)
    }

    /// Calls `f` with values by position: how the compiler calls cost functions and schedules.
    pub fn invoke(&mut self, f: &Closure<'p>, args: Vec<Value<'p>>, span: Span) -> Value<'p> {
        let given = args.into_iter().map(|value| Given { name: None, value, span }).collect();
        self.apply(f, given, span)
    }

    fn run(&mut self, f: &Closure<'p>, args: Slots<'p>, span: Span) -> Value<'p> {
        let key: *const ast::Decl = f.decl;
        if self.calls.contains(&key) {
            return self.error(errors::recursion(span, &f.decl.name.text));
        }
        let mut env = Env::inside(&f.env);
        for (param, given) in f.decl.params.as_deref().unwrap_or_default().iter().zip(args) {
            let value = match (given, &param.kind) {
                (Some((v, _)), _) => v,
                (None, ParamKind::Value { default: Some(e), .. } | ParamKind::Dim { default: Some(e) }) => {
                    self.eval(e, &Rc::new(env.clone()), &Wanted::Any)
                }
                (None, _) => {
                    return self.error(errors::missing_argument(
                        &param.name.text,
                        &f.decl.name.text,
                        span,
                        f.decl.name.span,
                    ));
                }
            };
            env.bind(param.name.text.clone(), value);
        }
        self.calls.push(key);
        let pending = std::mem::take(&mut self.pending);
        let value = self.body(f.decl, Rc::new(env));
        self.pending = pending;
        self.calls.pop();
        value
    }

    fn body(&mut self, decl: &'p ast::Decl, env: Rc<Env<'p>>) -> Value<'p> {
        let wanted = match &decl.ret {
            Some(ast::Ret::Type(ty)) => type_wanted(ty),
            Some(ast::Ret::Dims(..)) | None => Wanted::Any,
        };
        let check = |eval: &mut Self, v: Value<'p>, span: Span| {
            if eval.fits(&v, &wanted) {
                return v;
            }
            eval.require(v, &wanted, &format!("the result of `{}`", decl.name.text), span)
        };
        match &decl.body {
            ast::Body::Expr(e) => {
                let v = self.eval(e, &env, &wanted);
                check(self, v, e.span)
            }
            ast::Body::Block(block) => {
                let mut env = env;
                for l in super::lets_in_order(block) {
                    let ast::LetValue::Is(e) = &l.value else {
                        return self.error(errors::not_supported("a domain in a function", l.name.span));
                    };
                    let v = self.eval(e, &env, &l.ty.as_ref().map_or(Wanted::Any, type_wanted));
                    env = Env::with(&env, vec![(l.name.text.clone(), v)]);
                }
                let result = block.items.iter().find_map(|i| match &i.kind {
                    ast::ItemKind::Return(e) => Some(e),
                    _ => None,
                });
                if let Some(e) = result {
                    let v = self.eval(e, &env, &wanted);
                    return check(self, v, e.span);
                }
                self.error(errors::missing_field("return", &format!("`{}`", decl.name.text), decl.name.span))
            }
            ast::Body::None => {
                self.error(errors::missing_field("return", &format!("`{}`", decl.name.text), decl.name.span))
            }
        }
    }
}

fn arg_expr(arg: &Arg) -> &Expr {
    match arg {
        Arg::Positional(e) | Arg::Named(_, e) | Arg::Domain(_, e) => e,
    }
}

/// A call such as `params(decoder.moe)`: a metric and the path it is asked for.
pub fn metric_of(callee: &Expr, args: &[Arg]) -> Option<(SmolStr, Vec<String>)> {
    fn path(e: &Expr, out: &mut Vec<String>) -> bool {
        match &e.kind {
            ExprKind::Path(p) if p.len() == 1 => out.push(p[0].text.to_string()),
            ExprKind::Kind(kind) => out.push(kind.keyword().to_string()),
            ExprKind::Field(base, name) => {
                if !path(base, out) {
                    return false;
                }
                out.push(name.text.to_string());
            }
            _ => return false,
        }
        true
    }
    let ExprKind::Path(name) = &callee.kind else { return None };
    let ([name], [Arg::Positional(e)]) = (&name[..], args) else { return None };
    let mut parts = Vec::new();
    path(e, &mut parts).then(|| (name.text.clone(), parts))
}
