//! Expressions to types.

mod call;
mod operators;

pub(super) use operators::literal;

use super::scope::{Local, Sort};
use super::ty::{self, Thing, Ty, Whole};
use super::{Checker, Inside, MAX_DEPTH, errors};
use crate::diagnostics::Diagnostic;
use crate::eval::builtin::FUNCTIONS;
use crate::eval::errors as said;
use crate::hir::{Binding, schema};
use crate::source::Span;
use crate::syntax::ast::{self, Arg, BinaryOp, Body, Expr, ExprKind, Generator, Index, ItemKind, Kind, Name};
use crate::units::{self, Unit};
use crate::words::{self, Instead};
use smol_str::SmolStr;
use std::rc::Rc;

/// Unknown names that get a suggestion.
const MAX_SUGGESTED: usize = 200;
/// Words only some items take; evaluation does not meet them yet.
const MORE_WORDS: &[&str] = &[
    "mtp",
    "draft",
    "csv",
    "column",
    "rest",
    "delay",
    "p2p",
    "mean",
    "p50",
    "p95",
    "p99",
    "explain",
    "reduce",
    "param",
    "interaction",
];

impl<'p> Checker<'p, '_> {
    /// The type of `expr`; mistakes inside are reported. `want` says whether a whole number is expected.
    pub(super) fn infer(&mut self, expr: &'p Expr, want: Whole) -> Ty<'p> {
        if self.depth >= MAX_DEPTH {
            return Ty::Unknown;
        }
        self.depth += 1;
        let ty = self.infer_inner(expr, want);
        self.depth -= 1;
        ty
    }

    /// `infer` where names may mean what only the item around them knows.
    pub(super) fn infer_open(&mut self, expr: &'p Expr) -> Ty<'p> {
        self.open += 1;
        let ty = self.infer(expr, Whole::Maybe);
        self.open -= 1;
        ty
    }

    /// The type of `expr`; its mistakes are told when it is checked.
    pub(super) fn infer_quietly(&mut self, expr: &'p Expr) -> Ty<'p> {
        let mut quiet = crate::diagnostics::Sink::new();
        // What is remembered meanwhile would never be told.
        let (told, types) = (self.told.len(), self.types.len());
        std::mem::swap(self.sink, &mut quiet);
        let before = std::mem::replace(&mut self.quiet, true);
        let ty = self.infer(expr, Whole::Maybe);
        self.quiet = before;
        std::mem::swap(self.sink, &mut quiet);
        self.told.truncate(told);
        self.types.truncate(types);
        ty
    }

    fn infer_inner(&mut self, expr: &'p Expr, want: Whole) -> Ty<'p> {
        match &expr.kind {
            ExprKind::Number { value, unit } => self.number(*value, unit.as_ref(), expr.span),
            ExprKind::Str(_) => Ty::Text,
            ExprKind::Bool(_) => Ty::Bool,
            ExprKind::Hole | ExprKind::Error => Ty::Unknown,
            ExprKind::Path(path) => self.path(path, expr.span),
            // `cost`: the field has the name that others give the price.
            ExprKind::Kind(kind @ Kind::Cost) if self.metric_meant(kind.keyword(), expr.span) => Ty::Unknown,
            ExprKind::Kind(kind) => match self.scope.find(kind.keyword()) {
                Some(local) => local.ty.clone(),
                None if self.open > 0 => Ty::Unknown,
                None => Ty::Word(kind.keyword().into()),
            },
            ExprKind::Param(_) => {
                if self.inside == Inside::Model {
                    Ty::Tensor
                } else {
                    Ty::Word("param".into())
                }
            }
            ExprKind::Field(base, name) => self.field(base, name),
            ExprKind::Call(callee, args) => self.call(callee, args, expr.span, want, false),
            ExprKind::Index(base, indices) => {
                let base = self.infer(base, Whole::Maybe);
                for index in indices {
                    match index {
                        Index::Expr(e) | Index::From(e) => {
                            self.infer(e, Whole::Yes);
                        }
                    }
                }
                match (base, &indices[..]) {
                    (Ty::List(inner), [Index::Expr(e)]) if !matches!(e.kind, ExprKind::Range(..)) => (*inner).clone(),
                    _ => Ty::Unknown,
                }
            }
            ExprKind::With(base, block) => self.with(base, block),
            ExprKind::Unary(op, e) => self.unary(*op, e, want),
            ExprKind::Binary(..) => self.chain(expr, want),
            ExprKind::Range(a, b) => {
                for e in [a, b] {
                    let ty = self.infer(e, Whole::Yes);
                    if !matches!(ty, Ty::Number { .. }) && !ty.is_unknown() {
                        return self.error(said::wrong_kind("a range", "whole numbers", &ty.noun(), e.span));
                    }
                }
                Ty::Range
            }
            ExprKind::If(cond, then, other) => {
                self.condition(cond, "a condition");
                let (x, y) = (self.infer(then, want), self.infer(other, want));
                match (&x, &y) {
                    (Ty::Number { unit: u, .. }, Ty::Number { unit: v, .. }) if u != v => {
                        let d = self.branches(cond.span, (u, then), (v, other));
                        self.error(d)
                    }
                    (Ty::Number { unit, whole: a }, Ty::Number { whole: b, .. }) => {
                        let whole = if a == b { *a } else { Whole::Maybe };
                        Ty::Number { unit: unit.clone(), whole }
                    }
                    (Ty::Bool, Ty::Bool) => Ty::Bool,
                    (Ty::List(_), Ty::List(_)) => x,
                    _ => Ty::Unknown,
                }
            }
            ExprKind::List(list) => {
                let mut item = Ty::Unknown;
                for (i, e) in list.iter().enumerate() {
                    let ty = self.infer(e, Whole::Maybe);
                    if i == 0 {
                        item = ty;
                    }
                }
                Ty::List(Rc::new(if list.len() == 1 { item } else { like(item) }))
            }
            ExprKind::Set(list) => {
                for e in list {
                    self.infer(e, Whole::Maybe);
                }
                Ty::Unknown
            }
            ExprKind::Record(fields) => {
                let mut out: Vec<(SmolStr, Ty<'p>)> = Vec::new();
                for (name, e) in fields {
                    let ty = self.infer(e, Whole::Maybe);
                    out.push((name.text.clone(), ty));
                }
                Ty::Record(Rc::new(out))
            }
            ExprKind::Comprehension(body, generators) => {
                let item = self.comprehension(body, generators);
                Ty::List(Rc::new(item))
            }
        }
    }

    fn comprehension(&mut self, body: &'p Expr, generators: &'p [Generator]) -> Ty<'p> {
        for g in generators {
            let over = self.infer(&g.over, Whole::Maybe);
            let item = match &over {
                Ty::List(inner) => (**inner).clone(),
                Ty::Range => Ty::int(),
                Ty::Unknown | Ty::Tensor => Ty::Unknown,
                other => {
                    let noun = other.noun();
                    self.error(said::wrong_kind("`for … in`", "a list or a range", &noun, g.over.span))
                }
            };
            self.scope.push();
            self.declare(&g.name, Sort::Value, item);
            if let Some(cond) = &g.cond {
                self.condition(cond, "`if` in a list");
            }
        }
        let ty = self.infer(body, Whole::Maybe);
        for _ in generators {
            self.scope.pop();
        }
        ty
    }

    /// A condition is true or false.
    pub(super) fn condition(&mut self, cond: &'p Expr, what: &str) {
        match self.infer(cond, Whole::Maybe) {
            Ty::Bool | Ty::Unknown | Ty::Tensor => {}
            other => {
                self.error(said::wrong_kind(what, "true or false", &other.noun(), cond.span));
            }
        }
    }

    pub(super) fn number(&mut self, value: ast::Number, unit: Option<&(SmolStr, Span)>, span: Span) -> Ty<'p> {
        let unit = match unit {
            None => Unit::none(),
            Some((text, _)) if text == "pp" => {
                return self.error(errors::points_outside(span, self.sources.snippet(span)));
            }
            Some((text, at)) => match units::lookup(text, &|n| self.program.units.iter().any(|u| u == n)) {
                Ok((_, unit)) if !unit.is_none() => unit,
                // A per cent is a fraction.
                Ok((_, unit)) => return Ty::Number { unit, whole: Whole::Maybe },
                Err(e) => return self.error(said::unknown_unit(&e, *at)),
            },
        };
        let whole = match value {
            ast::Number::Int(_) => Whole::Yes,
            ast::Number::Real(v) if unit.is_none() && v.fract() != 0.0 => Whole::No,
            ast::Number::Real(_) => Whole::Maybe,
        };
        Ty::Number { unit, whole }
    }

    fn path(&mut self, path: &'p [Name], span: Span) -> Ty<'p> {
        match path {
            [name] => self.name(name),
            [root, _, name] if root.text == "std" => {
                if let Some(id) = self.program.std_entry(&name.text) {
                    return self.entry_ty(id);
                }
                let known = self.known_names();
                self.error(said::unknown_name(&name.text, name.span, &known))
            }
            [first, ..] => {
                let known = self.known_names();
                self.error(said::unknown_name(&first.text, span, &known))
            }
            [] => Ty::Unknown,
        }
    }

    fn name(&mut self, name: &'p Name) -> Ty<'p> {
        if let Some(local) = self.scope.find(&name.text) {
            let ty = local.ty.clone();
            if let Ty::Func { decl, .. } = &ty {
                let target = decl.name.span;
                self.uses(target, name.span);
            }
            return ty;
        }
        match self.program.lookup(self.module, &name.text) {
            Some(Binding::Decl(id)) => {
                self.uses(self.program.entry(id).name().span, name.span);
                self.entry_ty(id)
            }
            Some(Binding::Module(_)) => {
                self.error(said::wrong_kind("a value", "a name in the file", "the file itself", name.span))
            }
            None if self.import_failed(&name.text) => Ty::Unknown,
            None if self.metric_meant(&name.text, name.span) => Ty::Unknown,
            None if schema::is_word(&name.text) => Ty::Word(name.text.clone()),
            None if FUNCTIONS.contains(&name.text.as_str()) || MORE_WORDS.contains(&name.text.as_str()) => Ty::Unknown,
            None if self.inside == Inside::Model && schema::is_operator(&name.text) => Ty::Unknown,
            None if self.regions.contains(&name.text) || self.open > 0 => Ty::Unknown,
            None => self.unknown(name),
        }
    }

    /// Other tools' word for a metric, in a claim: said with the metric.
    fn metric_meant(&mut self, word: &str, span: Span) -> bool {
        if self.inside != Inside::Claim || self.open > 0 {
            return false;
        }
        let advice = words::advice(word, "", words::Place::Metric);
        let Some(Instead::Name(metric)) = advice.map(|a| a.instead) else { return false };
        if self.told.insert((self.owner, word.into())) {
            self.error(errors::called(word, "metric", metric, span));
        }
        true
    }

    /// `Llama-3-8B`: names with dashes, read as differences; the declaration that the letters and digits spell.
    pub(super) fn dashed_name(&self, e: &Expr) -> Option<Diagnostic> {
        const LONGEST: usize = 64;
        let ExprKind::Binary(BinaryOp::Sub, ..) = &e.kind else { return None };
        let text = self.sources.snippet(e.span);
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if text.len() > LONGEST || !text.starts_with(|c: char| c.is_ascii_alphabetic()) || !text.chars().all(plain) {
            return None;
        }
        let letters = |s: &str| s.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
        let wanted = letters(text);
        let own = self.program.module(self.module).scope.keys();
        let meant = own.chain(&self.program.prelude_names).find(|n| letters(n) == wanted)?;
        Some(errors::dashed_name(text, meant, e.span))
    }

    /// Reports an unknown name, once in each declaration.
    fn unknown(&mut self, name: &Name) -> Ty<'p> {
        if !self.told.insert((self.owner, name.text.clone())) {
            return Ty::Unknown;
        }
        if let Some(layout) = self.job_layout
            && super::layout::layout_names(layout).is_some_and(|names| names.contains(&name.text))
        {
            return self.error(errors::layout_name(name));
        }
        let known = self.known_names();
        self.error(said::unknown_name(&name.text, name.span, &known))
    }

    /// Every name a user could mean here.
    fn known_names(&self) -> Vec<String> {
        // A file full of unknown names needs no suggestion for each.
        if self.told.len() > MAX_SUGGESTED {
            return Vec::new();
        }
        let mut out: Vec<String> = self.scope.names().map(ToString::to_string).collect();
        out.extend(self.program.module(self.module).scope.keys().map(ToString::to_string));
        out.extend(FUNCTIONS.iter().map(ToString::to_string));
        if self.inside == Inside::Model {
            out.extend(schema::OPERATORS.iter().map(ToString::to_string));
        }
        out.extend(self.program.prelude_names.iter().map(ToString::to_string));
        out
    }

    fn field(&mut self, base: &'p Expr, name: &'p Name) -> Ty<'p> {
        if let ExprKind::Path(path) = &base.kind
            && let [alias] = &path[..]
            && self.scope.find(&alias.text).is_none()
            && let Some(Binding::Module(module)) = self.program.lookup(self.module, &alias.text)
        {
            return match self.program.module(module).scope.get(&name.text) {
                Some(Binding::Decl(id)) => {
                    self.uses(self.program.entry(*id).name().span, name.span);
                    self.entry_ty(*id)
                }
                Some(Binding::Module(_)) => Ty::Unknown,
                None => {
                    let known: Vec<_> = self.program.module(module).scope.keys().map(ToString::to_string).collect();
                    self.error(said::unknown_name(&name.text, name.span, &known))
                }
            };
        }
        // `embed.wte`: a path of the model, even where `embed` is an operator too.
        if let ExprKind::Path(path) = &base.kind
            && let [root] = &path[..]
            && self.regions.contains(&root.text)
            && self.scope.find(&root.text).is_none()
        {
            return Ty::Tensor;
        }
        let ty = self.infer(base, Whole::Maybe);
        self.field_of(&ty, base, name)
    }

    fn field_of(&mut self, ty: &Ty<'p>, base: &'p Expr, name: &'p Name) -> Ty<'p> {
        match ty {
            Ty::Record(fields) => {
                if let Some((_, ty)) = fields.iter().find(|(n, _)| *n == name.text) {
                    return ty.clone();
                }
                let known: Vec<_> = fields.iter().map(|(n, _)| n.to_string()).collect();
                self.error(said::unknown_field(&name.text, name.span, "a record", &known))
            }
            Ty::Made(made) => {
                let fields = ty::made_fields(made);
                match fields.iter().find(|(n, _)| *n == name.text) {
                    Some((_, ty)) => ty::named(ty, None, &[]).unwrap_or(Ty::Unknown),
                    None if *made == "Group" && name.text == "span" => Ty::Unknown,
                    None => {
                        let known: Vec<_> = fields.iter().map(|(n, _)| (*n).to_string()).collect();
                        self.error(said::unknown_field(&name.text, name.span, &format!("a `{made}`"), &known))
                    }
                }
            }
            Ty::Thing(thing) => self.thing_field(*thing, name),
            Ty::Word(word) if self.open == 0 && matches!(base.kind, ExprKind::Kind(_)) => {
                self.error(said::unknown_name(word, base.span, &[]))
            }
            Ty::Unknown | Ty::Tensor | Ty::Word(_) | Ty::List(_) | Ty::Func { .. } | Ty::Dist(_) => Ty::Unknown,
            Ty::Number { .. } | Ty::Bool | Ty::Text | Ty::Range | Ty::Links | Ty::Op => {
                if self.open > 0 {
                    return Ty::Unknown;
                }
                self.error(said::unknown_field(&name.text, name.span, &ty.noun(), &[]))
            }
        }
    }

    fn thing_field(&mut self, thing: Thing<'p>, name: &'p Name) -> Ty<'p> {
        let noun = Ty::Thing(thing).noun();
        match thing.kind {
            Kind::Device | Kind::Host | Kind::Link | Kind::Dtype | Kind::Precision | Kind::Optimizer => {
                let fields = schema::fields(thing.kind);
                if let Some(f) = fields.iter().find(|f| f.name == name.text) {
                    return ty::named(f.ty, None, &[]).unwrap_or(Ty::Unknown);
                }
                if thing.decl.is_some_and(|d| has_fn(d, &name.text)) {
                    return Ty::Unknown;
                }
                let known: Vec<_> = fields.iter().map(|f| f.name.to_string()).collect();
                self.error(said::unknown_field(&name.text, name.span, &noun, &known))
            }
            Kind::Layout => match super::layout::layout_names(thing) {
                Some(names) if !names.contains(&name.text) => {
                    let known: Vec<_> = names.iter().map(ToString::to_string).collect();
                    self.error(said::unknown_field(&name.text, name.span, &noun, &known))
                }
                Some(_) => Ty::int_like(thing, &name.text),
                None => Ty::Unknown,
            },
            Kind::Train | Kind::Finetune | Kind::Serve | Kind::Workflow => match super::job::metric(&name.text) {
                Some(ty) => ty,
                None => schema::fields(thing.kind)
                    .iter()
                    .find(|f| f.name == name.text)
                    .and_then(|f| ty::named(f.ty, None, &[]))
                    .unwrap_or(Ty::Unknown),
            },
            Kind::Fn
            | Kind::Op
            | Kind::Table
            | Kind::Cluster
            | Kind::Schedule
            | Kind::Cost
            | Kind::Model
            | Kind::Block
            | Kind::Unit => Ty::Unknown,
        }
    }

    fn with(&mut self, base: &'p Expr, block: &'p ast::Block) -> Ty<'p> {
        let ty = match &base.kind {
            // What a call leaves out, the block may give.
            ExprKind::Call(callee, args) => self.call(callee, args, base.span, Whole::Maybe, true),
            _ => self.infer(base, Whole::Maybe),
        };
        match ty {
            Ty::Thing(thing) => {
                self.with_block(thing, block);
                let gives = |item: &ast::Item| matches!(&item.kind, ItemKind::Assign { .. } | ItemKind::Domain { .. });
                let applied = thing.applied || block.items.iter().any(gives);
                Ty::Thing(Thing { applied, ..thing })
            }
            Ty::Func { decl, module } if decl.kind == Kind::Table => {
                self.fields(block, super::items::Place::Decl(Kind::Table), schema::fields(Kind::Table), &[]);
                Ty::Func { decl, module }
            }
            other => {
                if let Ty::Number { .. } | Ty::Bool | Ty::Text | Ty::Func { .. } | Ty::Range | Ty::Op = other {
                    self.error(said::wrong_kind("`with`", "a declaration", &other.noun(), base.span));
                }
                Ty::Unknown
            }
        }
    }

    /// Puts a name the language gives into scope.
    pub(super) fn give(&mut self, name: &str, sort: Sort, ty: Ty<'p>) {
        self.scope.put(&SmolStr::new(name), Local { ty, sort, span: None });
    }
}

impl<'p> Ty<'p> {
    /// An axis or a parameter of a layout: whole, unless its parameter says otherwise.
    fn int_like(layout: Thing<'p>, name: &str) -> Self {
        let param = layout.decl.and_then(|d| d.params.as_deref()?.iter().find(|p| p.name.text == name));
        match param.map(|p| &p.kind) {
            Some(ast::ParamKind::Value { ty: Some(ty), .. }) if ty.name.text != "Int" => Self::Unknown,
            _ => Self::int(),
        }
    }
}

/// The type of every element, as far as the first tells: numbers may differ in being whole.
fn like(first: Ty<'_>) -> Ty<'_> {
    match first {
        Ty::Number { unit, .. } => Ty::Number { unit, whole: Whole::Maybe },
        Ty::Op => Ty::Op,
        Ty::List(inner) => Ty::List(inner),
        _ => Ty::Unknown,
    }
}

fn has_fn(decl: &ast::Decl, name: &str) -> bool {
    let Body::Block(block) = &decl.body else { return false };
    block.items.iter().any(|i| matches!(&i.kind, ItemKind::Decl(d) if d.name.text == name))
}

/// The expression of an argument.
pub(super) fn arg_expr(arg: &Arg) -> &Expr {
    match arg {
        Arg::Positional(e) | Arg::Named(_, e) | Arg::Domain(_, e) => e,
    }
}
