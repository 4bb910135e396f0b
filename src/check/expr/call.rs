//! Calls: built-ins, functions, operators of models, words, and declarations given their arguments.

use super::super::ty::{Thing, Ty, Whole};
use super::super::{Checker, Inside};
use super::arg_expr;
use crate::diagnostics::Applicability;
use crate::eval::builtin::FUNCTIONS;
use crate::eval::chance;
use crate::eval::errors as said;
use crate::hir::{ModuleId, schema};
use crate::source::Span;
use crate::syntax::ast::{Arg, BinaryOp, Decl, Expr, ExprKind, Kind, Param, ParamKind, Ret};
use crate::units::Unit;
use crate::words::{self, Instead};
use std::rc::Rc;

impl<'p> Checker<'p, '_> {
    /// The type of a call. `partial`: what is missing may still be given by `with`.
    pub(super) fn call(&mut self, callee: &'p Expr, args: &'p [Arg], span: Span, want: Whole, partial: bool) -> Ty<'p> {
        if let ExprKind::Path(path) = &callee.kind
            && let [name] = &path[..]
            && self.program.lookup(self.module, &name.text).is_none()
        {
            let text = name.text.as_str();
            let local = self.scope.find(text).map(|l| l.sort);
            match local {
                Some(super::Sort::Field) if super::super::job::metric(text).is_some() => {
                    // An argument of a metric is an axis, a pool, a role or a path.
                    for arg in args {
                        self.infer_open(arg_expr(arg));
                    }
                    return super::super::job::metric(text).unwrap_or(Ty::Unknown);
                }
                None if FUNCTIONS.contains(&text) && (self.inside != Inside::Model || !schema::is_operator(text)) => {
                    return self.builtin(text, args, span, want);
                }
                None if self.inside == Inside::Model && schema::is_operator(text) => {
                    for arg in args {
                        self.infer(arg_expr(arg), Whole::Maybe);
                    }
                    return Ty::Tensor;
                }
                None if matches!(text, "mean" | "p50" | "p95" | "p99") => {
                    // Of a distribution: of its unit.
                    let mut ty = Ty::Unknown;
                    for arg in args {
                        ty = self.infer_open(arg_expr(arg));
                    }
                    return if let Ty::Dist(unit) = ty { Ty::number(unit) } else { ty };
                }
                None if schema::is_word(text) || self.open > 0 => {
                    return self.word(text, args);
                }
                Some(_) | None => {}
            }
        }
        let f = self.infer(callee, Whole::Maybe);
        match f {
            Ty::Func { decl, module } => {
                self.arguments(decl, args, span, partial, false, None);
                let back = std::mem::replace(&mut self.module, module);
                let ty = match &decl.ret {
                    Some(Ret::Type(ty)) => self.type_of(ty),
                    Some(Ret::Dims(..)) | None => Ty::Unknown,
                };
                self.module = back;
                ty
            }
            Ty::Thing(thing) => match thing.decl {
                Some(decl) if thing.kind == Kind::Block => {
                    self.arguments(decl, args, span, partial, true, None);
                    Ty::Tensor
                }
                Some(decl) => {
                    self.arguments(decl, args, span, partial, false, thing.made);
                    Ty::Thing(Thing { applied: true, ..thing })
                }
                None => {
                    self.loose(args);
                    Ty::Thing(thing)
                }
            },
            Ty::Unknown | Ty::Tensor | Ty::Word(_) => {
                let field = matches!(callee.kind, ExprKind::Field(..));
                self.open += u32::from(field);
                self.loose(args);
                self.open -= u32::from(field);
                Ty::Unknown
            }
            // `training.bubble(pp)`: a metric with an argument.
            other if matches!(callee.kind, ExprKind::Field(..)) => {
                for arg in args {
                    self.infer_open(arg_expr(arg));
                }
                other
            }
            other => {
                self.loose(args);
                self.error(said::wrong_kind("a call", "a function or a declaration", &other.noun(), callee.span))
            }
        }
    }

    fn loose(&mut self, args: &'p [Arg]) {
        for arg in args {
            self.infer(arg_expr(arg), Whole::Maybe);
        }
    }

    /// A word with arguments: regions, kinds of operation and the like are named, not defined.
    fn word(&mut self, word: &str, args: &'p [Arg]) -> Ty<'p> {
        for arg in args {
            let names = match arg {
                Arg::Named(n, _) => matches!(n.text.as_str(), "counting" | "keep" | "by" | "on" | "links"),
                Arg::Positional(_) | Arg::Domain(..) => matches!(word, "ops" | "every"),
            };
            if names {
                self.infer_open(arg_expr(arg));
            } else if chance::parameters(word).is_none() {
                self.infer(arg_expr(arg), Whole::Maybe);
            }
        }
        if chance::parameters(word).is_some() { self.law(word, args) } else { Ty::Unknown }
    }

    /// `lognormal(median = 900 tok, …)`: a distribution of the unit its numbers have; they agree.
    fn law(&mut self, word: &str, args: &'p [Arg]) -> Ty<'p> {
        let params = chance::parameters(word).unwrap_or_default();
        let mut first: Option<(Unit, Span)> = None;
        for (i, arg) in args.iter().enumerate() {
            let e = arg_expr(arg);
            let (name, at) = match arg {
                Arg::Named(n, _) | Arg::Domain(n, _) => (n.text.as_str(), n.span),
                Arg::Positional(_) => (params.get(i).copied().unwrap_or_default(), e.span),
            };
            let ty = self.infer(e, Whole::Maybe);
            if !params.contains(&name) {
                let takes: Vec<&str> = params.to_vec();
                return self.error(super::super::errors::law_argument(word, name, &takes, at));
            }
            let Ty::Number { unit, .. } = ty else { continue };
            match (&first, name) {
                (_, "sigma" | "s") if !unit.is_none() => {
                    return self.error(said::wrong_unit(
                        &format!("`{name}` of `{word}`"),
                        &Unit::none(),
                        &unit,
                        e.span,
                    ));
                }
                (_, "sigma" | "s") => {}
                (Some((u, place)), _) if *u != unit => {
                    let d = said::wrong_unit(&format!("`{name}` of `{word}`"), u, &unit, e.span);
                    return self.error(d.label(*place, format!("{} here", u.noun())));
                }
                (Some(_), _) => {}
                (None, _) => first = Some((unit, e.span)),
            }
        }
        match (word, first) {
            ("zipf" | "empirical" | "mixture", _) | (_, None) => Ty::Unknown,
            ("exponential", Some((rate, _))) => Ty::Dist(Unit::none().div(&rate)),
            (_, Some((unit, _))) => Ty::Dist(unit),
        }
    }

    fn builtin(&mut self, name: &str, args: &'p [Arg], span: Span, want: Whole) -> Ty<'p> {
        let inner = if matches!(name, "min" | "max") { want } else { Whole::Maybe };
        let types: Vec<(Ty<'p>, Span)> =
            args.iter().map(|a| (self.infer(arg_expr(a), inner), arg_expr(a).span)).collect();
        let takes = match name {
            "min" | "max" => None,
            "ceil_div" | "gcd" | "contains" | "F" | "B" | "W" | "Both" => Some(2),
            _ => Some(1),
        };
        if let Some(n) = takes
            && types.len() != n
        {
            return self.error(said::too_many_arguments(name, n, span));
        }
        match (name, &types[..]) {
            ("min" | "max", [(Ty::List(inner), _)]) => (**inner).clone(),
            ("max", [(Ty::Dist(unit), _)]) => Ty::number(unit.clone()),
            ("sum", [(Ty::List(inner), _)]) => match &**inner {
                Ty::Number { .. } => (**inner).clone(),
                _ => Ty::Unknown,
            },
            ("min" | "max", [(first, at), rest @ ..]) if !rest.is_empty() => {
                let Ty::Number { unit, whole } = first else { return Ty::Unknown };
                let mut whole = *whole;
                for (ty, span2) in rest {
                    match ty {
                        Ty::Number { unit: u, .. } if u != unit => {
                            let le = crate::syntax::ast::BinaryOp::Le;
                            return self.error(said::unit_mismatch(le, span, (unit, *at), (u, *span2)));
                        }
                        Ty::Number { whole: w, .. } if *w == whole => {}
                        _ => whole = Whole::Maybe,
                    }
                }
                Ty::Number { unit: unit.clone(), whole }
            }
            ("abs", [(ty @ Ty::Number { .. }, _)]) => ty.clone(),
            ("sqrt" | "log2" | "exp" | "floor" | "ceil", [(Ty::Number { unit, .. }, at)]) => {
                if !unit.is_none() {
                    let what = format!("the argument of `{name}`");
                    return self.error(said::wrong_unit(&what, &Unit::none(), unit, *at));
                }
                let whole = if matches!(name, "floor" | "ceil") { Whole::Yes } else { Whole::No };
                Ty::Number { unit: Unit::none(), whole }
            }
            ("abs" | "sqrt" | "log2" | "exp" | "floor" | "ceil", [(ty, at)]) if !ty.is_unknown() => {
                self.error(said::wrong_kind(&format!("`{name}`"), "a number", &ty.noun(), *at))
            }
            ("ceil_div" | "gcd", [(Ty::Number { unit: u, whole: p }, a), (Ty::Number { unit: v, whole: q }, b)]) => {
                if *p == Whole::No || *q == Whole::No {
                    let at = if *p == Whole::No { *a } else { *b };
                    return self.error(said::wrong_kind(&format!("`{name}`"), "whole numbers", "a fraction", at));
                }
                let unit = if name == "ceil_div" { u.div(v) } else { u.clone() };
                Ty::Number { unit, whole: Whole::Yes }
            }
            ("len" | "flatten" | "sum" | "any" | "all", [(ty, at)])
                if !matches!(ty, Ty::List(_) | Ty::Range) && !ty.is_unknown() =>
            {
                self.error(said::wrong_kind(&format!("`{name}`"), "a list", &ty.noun(), *at))
            }
            ("flatten", [(Ty::List(inner), at)]) => match &**inner {
                Ty::List(innermost) => Ty::List(Rc::clone(innermost)),
                Ty::Unknown => Ty::Unknown,
                other => {
                    let noun = other.noun();
                    self.error(said::wrong_kind("`flatten`", "a list of lists", &noun, *at))
                }
            },
            ("len", _) => Ty::int(),
            ("any" | "all" | "contains", _) => Ty::Bool,
            ("divisors", _) => Ty::List(Rc::new(Ty::int())),
            ("F" | "B" | "W" | "U" | "Both", _) => Ty::Op,
            _ => Ty::Unknown,
        }
    }

    /// Arguments against the parameters of `decl`, some of which `made` may give.
    fn arguments(
        &mut self,
        decl: &'p Decl,
        args: &'p [Arg],
        span: Span,
        partial: bool,
        block: bool,
        made: Option<(&'p Decl, ModuleId)>,
    ) {
        let params = decl.params.as_deref().unwrap_or_default();
        let mut given: Vec<&Param> = Vec::new();
        let mut wrong = false;
        for (i, arg) in args.iter().enumerate() {
            let e = arg_expr(arg);
            // `Mine(tp == 4)`
            if let (Arg::Positional(_), ExprKind::Binary(BinaryOp::Eq, at, left, _)) = (arg, &e.kind)
                && let ExprKind::Path(path) = &left.kind
                && let [name] = &path[..]
                && params.iter().any(|p| p.name.text == name.text)
            {
                wrong = true;
                self.error(super::super::errors::argument_compared(&name.text, *at));
                continue;
            }
            let param = match arg {
                Arg::Positional(_) => params.get(i),
                Arg::Named(n, _) | Arg::Domain(n, _) => params.iter().find(|p| p.name.text == n.text),
            };
            let Some(param) = param else {
                self.infer(e, Whole::Maybe);
                // Blocks are generic over every dimension they name.
                if block && matches!(arg, Arg::Named(n, _) if n.text.starts_with(|c: char| c.is_ascii_uppercase())) {
                    continue;
                }
                wrong = true;
                self.argument_unknown(decl, arg, params);
                continue;
            };
            if given.iter().any(|g| std::ptr::eq(*g, param)) {
                self.error(said::argument_twice(&param.name.text, e.span));
                wrong = true;
                continue;
            }
            given.push(param);
            let wanted = self.param_ty(param);
            match arg {
                Arg::Domain(_, e) => {
                    self.domain_ty(e);
                }
                Arg::Positional(e) | Arg::Named(_, e) => {
                    let want = if let Ty::Number { whole, .. } = &wanted { *whole } else { Whole::Maybe };
                    let found = self.infer(e, want);
                    self.expect(&wanted, &found, &format!("`{}`", param.name.text), e);
                }
            }
        }
        if wrong || partial {
            return;
        }
        let needs = |p: &&Param| match &p.kind {
            ParamKind::Value { default, .. } => default.is_none(),
            // A block takes the caller's dimension of the same name.
            ParamKind::Dim { default } => default.is_none() && !block,
            ParamKind::Tensor(_) => true,
        };
        if let Some(missing) = params
            .iter()
            .filter(needs)
            .find(|p| !given.iter().any(|g| std::ptr::eq(*g, *p)) && !self.gives(made, &p.name.text))
        {
            let d = said::missing_argument(&missing.name.text, &decl.name.text, span, decl.name.span);
            self.error(d);
        }
    }

    fn argument_unknown(&mut self, decl: &'p Decl, arg: &'p Arg, params: &'p [Param]) {
        let known: Vec<String> = params.iter().map(|p| p.name.text.to_string()).collect();
        let (Arg::Named(n, _) | Arg::Domain(n, _)) = arg else {
            self.error(said::too_many_arguments(&decl.name.text, params.len(), arg_expr(arg).span));
            return;
        };
        let mut d = said::unknown_argument(&n.text, n.span, &decl.name.text, &known, decl.name.span);
        let meant = match words::advice(&n.text, "", words::Place::Argument).map(|a| a.instead) {
            Some(Instead::Name(meant)) if known.iter().any(|k| k == meant) => Some(meant),
            _ => None,
        };
        let advice = words::advice(&n.text, "", words::Place::Layout).filter(|_| decl.kind == Kind::Layout);
        // A word with a meaning is no misspelling: `vpp` is not `pp`.
        if meant.is_some() || advice.is_some() {
            let all: Vec<&str> = known.iter().map(String::as_str).collect();
            let it_has = format!("it has {}", super::super::errors::listed(&all, "and"));
            (d.help, d.fixes, d.notes) = (Vec::new(), Vec::new(), vec![it_has]);
            d = match (meant, advice) {
                (Some(to), _) => d.help(format!("`{}` is `{to}` here", n.text)).fix(
                    format!("use `{to}`"),
                    n.span,
                    to,
                    Applicability::Unsure,
                ),
                (None, Some(advice)) => d.help(advice.help),
                (None, None) => d,
            };
        }
        self.error(d);
    }

    /// Whether a required parameter of `thing` was given: `layout = Mine` where `Mine(tp: Int)`.
    pub(crate) fn needs_arguments(&mut self, thing: &Thing<'p>, at: Span) {
        let Some(decl) = thing.decl.filter(|_| !thing.applied) else { return };
        let params = decl.params.as_deref().unwrap_or_default();
        let required = |p: &&Param| matches!(&p.kind, ParamKind::Value { default: None, .. });
        let open: Vec<_> = params.iter().filter(required).filter(|p| !self.gives(thing.made, &p.name.text)).collect();
        let Some(param) = open.first() else { return };
        let d = said::missing_argument(&param.name.text, &decl.name.text, at, decl.name.span);
        // Only a plain name has no parentheses yet.
        let plain = self.sources.snippet(at).chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        self.error(if plain {
            let names: Vec<&str> = open.iter().map(|p| p.name.text.as_str()).collect();
            super::super::errors::fill_in(d, self.sources.snippet(at), &names, at)
        } else {
            d
        });
    }
}
