//! One declaration: its head, and its block by kind.

use super::items::{self, Place};
use super::scope::Sort;
use super::ty::{Thing, Ty, Whole};
use super::{Checker, Inside, errors};
use crate::eval::errors as said;
use crate::hir::schema;
use crate::source::Span;
use crate::syntax::ast::{Block, Body, Decl, Expr, Item, ItemKind, Kind, LetValue, Param, ParamKind, Ret};
use crate::units::Unit;

impl<'p> Checker<'p, '_> {
    /// A declaration at top level.
    pub(super) fn decl(&mut self, decl: &'p Decl) {
        self.scope.push();
        match decl.kind {
            Kind::Schedule => {
                self.give("p", Sort::Given, Ty::int());
                self.give("m", Sort::Given, Ty::int());
            }
            Kind::Layout => self.layout_names_in(decl),
            Kind::Model | Kind::Block => self.inside = Inside::Model,
            k if items::is_job(k) => self.job_names(k),
            k => {
                // Fields may use each other, and a level's fields too.
                for f in schema::fields(k) {
                    let ty = super::ty::named(f.ty, None, &[]).unwrap_or(Ty::Unknown);
                    self.give(f.name, Sort::Field, ty);
                }
            }
        }
        self.scope.push();
        self.head(decl);
        match &decl.body {
            Body::None => {}
            Body::Expr(e) if decl.kind == Kind::Fn => {
                self.result_typed(decl, Some(e));
                self.result(decl, e);
            }
            Body::Expr(e) => {
                let want = Ty::thing(decl.kind);
                let found = self.infer(e, Whole::Maybe);
                let table = matches!(&found, Ty::Func { decl: d, .. } if d.kind == decl.kind);
                // A finetune may be made from a train.
                if !items::is_job(decl.kind) && !table {
                    let noun = format!("the {} `{}`", decl.kind.keyword(), decl.name.text);
                    self.expect(&want, &found, &noun, e);
                }
            }
            Body::Block(b) => self.body(decl, b),
        }
        self.scope.pop();
        self.scope.pop();
    }

    /// A function says what it returns.
    fn result_typed(&mut self, decl: &'p Decl, body: Option<&'p Expr>) {
        if decl.kind != Kind::Fn || decl.ret.is_some() {
            return;
        }
        let ty = body.map(|e| self.infer_quietly(e)).and_then(|t| super::ty::type_name(&t));
        // After the parentheses: where the body begins, less the ` = ` or ` {` before it.
        let from = decl.params.as_deref().and_then(<[Param]>::last).map_or(decl.name.span, |p| p.span);
        let rest = Span { start: from.end, end: decl.span.end, ..from };
        let close = self.sources.snippet(rest).find(')').map_or(0, |i| i as u32 + 1);
        let at = Span { start: from.end + close, end: from.end + close, ..from };
        self.error(errors::result_untyped(&decl.name, at, ty));
    }

    /// Parameters, their types, domains and defaults.
    fn head(&mut self, decl: &'p Decl) {
        let params = decl.params.as_deref().unwrap_or_default();
        for param in params {
            let ty = match &param.kind {
                ParamKind::Value { ty: Some(t), .. } => self.type_of(t),
                ParamKind::Value { ty: None, .. } | ParamKind::Dim { .. } | ParamKind::Tensor(_) => {
                    self.param_ty(param)
                }
            };
            let sort = match param.kind {
                ParamKind::Value { .. } => Sort::Value,
                ParamKind::Dim { .. } => Sort::Dim,
                ParamKind::Tensor(_) => Sort::Tensor,
            };
            self.declare(&param.name, sort, ty);
        }
        for param in params {
            self.param_values(param);
        }
        if let Some(Ret::Type(t)) = &decl.ret {
            self.type_of(t);
        }
    }

    fn param_values(&mut self, param: &'p Param) {
        let wanted = self.param_ty(param);
        let what = format!("`{}`", param.name.text);
        let want = if let Ty::Number { whole, .. } = &wanted { *whole } else { Whole::Maybe };
        let (domain, default) = match &param.kind {
            ParamKind::Value { domain, default, .. } => (domain.as_ref(), default.as_ref()),
            ParamKind::Dim { default } => (None, default.as_ref()),
            ParamKind::Tensor(_) => (None, None),
        };
        if let Some(e) = domain {
            self.domain_ty(e);
        }
        if let Some(e) = default {
            let found = self.infer(e, want);
            self.expect(&wanted, &found, &what, e);
        }
    }

    /// `fn … = e` or `return e` against the declared result.
    fn result(&mut self, decl: &'p Decl, e: &'p Expr) {
        let wanted = match &decl.ret {
            Some(Ret::Type(t)) => {
                let inner = t.arg.as_ref().and_then(|a| super::ty::named(&a.name.text, None, &self.program.units));
                super::ty::named(&t.name.text, inner.as_ref(), &self.program.units).unwrap_or(Ty::Unknown)
            }
            Some(Ret::Dims(..)) | None => Ty::Unknown,
        };
        let want = if let Ty::Number { whole, .. } = &wanted { *whole } else { Whole::Maybe };
        let found = self.infer(e, want);
        self.expect(&wanted, &found, &format!("the result of `{}`", decl.name.text), e);
    }

    fn body(&mut self, decl: &'p Decl, block: &'p Block) {
        let place = Place::Decl(decl.kind);
        self.block_items(block, place);
        let known = schema::fields(decl.kind);
        let of = format!("{} `{}`", decl.kind.keyword(), decl.name.text);
        match decl.kind {
            Kind::Fn => self.fn_body(decl, block),
            Kind::Cluster => self.cluster(block),
            Kind::Model | Kind::Block => self.model(decl, block),
            Kind::Layout => self.layout_block(block, place),
            Kind::Train | Kind::Finetune | Kind::Serve | Kind::Workflow => self.job(decl, block),
            Kind::Device
            | Kind::Host
            | Kind::Link
            | Kind::Dtype
            | Kind::Precision
            | Kind::Optimizer
            | Kind::Schedule
            | Kind::Cost
            | Kind::Op
            | Kind::Table
            | Kind::Unit => {
                self.nested(block);
                if decl.kind == Kind::Op {
                    self.open += 1;
                }
                self.lets(block);
                self.fields(block, place, known, &[]);
                self.plain_items(block, place);
                if decl.kind == Kind::Op {
                    self.open -= 1;
                }
                self.missing(block, known, &of, decl.name.span, &[]);
                match decl.kind {
                    Kind::Link => self.bits_as_bytes(decl, block),
                    Kind::Device => self.usable(block),
                    Kind::Table => self.table(decl, block),
                    _ => {}
                }
            }
        }
    }

    /// Items of a declaration that is mostly fields.
    fn plain_items(&mut self, block: &'p Block, place: Place) {
        for item in &block.items {
            match &item.kind {
                ItemKind::Decl(d) if d.kind == Kind::Fn => {
                    if place == Place::Decl(Kind::Cost) {
                        self.cost_signature(d);
                    }
                    self.nested_fn(d);
                }
                ItemKind::Require { cond, .. } if items::misplaced(item, place).is_none() => {
                    self.condition(cond, "`require`");
                }
                ItemKind::In { block: inner, .. } if items::misplaced(item, place).is_none() => {
                    if let Place::Decl(kind) = place {
                        self.block_items(inner, Place::Within(kind));
                        self.fields(inner, Place::Within(kind), schema::fields(kind), &[]);
                    }
                }
                ItemKind::Section { head, block, .. } => self.section(head, block, place),
                _ => {}
            }
        }
    }

    /// The compiler calls the functions of a cost model: their parameters are fixed, only their names are free.
    fn cost_signature(&mut self, decl: &'p Decl) {
        let Some(wanted) = schema::cost_signature(&decl.name.text) else { return };
        let types: Vec<&str> = wanted.split(", ").filter_map(|p| p.split(": ").nth(1)).collect();
        let params = decl.params.as_deref().unwrap_or_default();
        let same = params.len() == types.len()
            && params.iter().zip(&types).all(|(p, t)| match &p.kind {
                ParamKind::Value { ty: Some(ty), .. } => ty.name.text == *t,
                ParamKind::Value { ty: None, .. } => true,
                ParamKind::Dim { .. } | ParamKind::Tensor(_) => false,
            });
        if !same {
            let at = params.first().zip(params.last()).map(|(a, b)| a.span.to(b.span));
            self.error(errors::cost_signature(&decl.name, wanted, at));
        }
    }

    /// Nested functions are names of the block, in any order.
    pub(super) fn nested(&mut self, block: &'p Block) {
        for item in &block.items {
            if let ItemKind::Decl(d) = &item.kind
                && d.kind == Kind::Fn
            {
                let module = self.module;
                self.declare(&d.name, Sort::Value, Ty::Func { decl: d, module });
            }
        }
    }

    pub(super) fn nested_fn(&mut self, decl: &'p Decl) {
        let owner = self.owner.replace(decl.name.span);
        self.scope.push();
        self.head(decl);
        match &decl.body {
            Body::Expr(e) => {
                self.result_typed(decl, Some(e));
                self.result(decl, e);
            }
            Body::Block(b) => {
                self.block_items(b, Place::Decl(Kind::Fn));
                self.fn_body(decl, b);
            }
            Body::None => {}
        }
        self.scope.pop();
        self.owner = owner;
    }

    fn fn_body(&mut self, decl: &'p Decl, block: &'p Block) {
        self.lets(block);
        self.result_typed(decl, None);
        let mut returns = 0;
        let mut readable = true;
        for item in &block.items {
            match &item.kind {
                ItemKind::Return(e) => {
                    returns += 1;
                    self.result(decl, e);
                }
                ItemKind::Error => readable = false,
                ItemKind::Let(_) => {}
                _ if items::misplaced(item, Place::Decl(Kind::Fn)).is_some() => readable = false,
                _ => {
                    readable = false;
                    self.error(said::wrong_kind("a function", "`let` and one `return`", "another item", item.span));
                }
            }
        }
        if returns == 0 && readable {
            self.error(said::missing_field("return", &format!("`{}`", decl.name.text), decl.name.span));
        }
    }

    /// `let`s of a block: names first, since they may stand in any order, then their values in text order.
    pub(super) fn lets(&mut self, block: &'p Block) {
        let lets =
            || block.items.iter().filter_map(|i: &'p Item| if let ItemKind::Let(l) = &i.kind { Some(l) } else { None });
        for l in lets() {
            self.declare(&l.name, Sort::Value, Ty::Unknown);
        }
        for l in lets() {
            let ty = match &l.value {
                LetValue::Is(e) => self.let_ty(l, e),
                LetValue::In(e) => self.domain_ty(e),
            };
            self.scope.retype(&l.name.text, ty);
        }
    }

    /// The block of `with`: fields of the kind, parameters, items of the kind.
    pub(super) fn with_block(&mut self, thing: Thing<'p>, block: &'p Block) {
        let place = Place::Decl(thing.kind);
        self.block_items(block, place);
        let params: Vec<&'p Param> = thing.decl.and_then(|d| d.params.as_deref()).unwrap_or_default().iter().collect();
        self.scope.push();
        match thing.kind {
            Kind::Layout => {
                let axes = self.axes.take();
                self.given_in_layout();
                match thing.decl {
                    Some(decl) => self.layout_names_in(decl),
                    // Nothing says which axes there are.
                    None => self.axes = None,
                }
                if let (Some(decl), Some(_)) = (thing.decl, &self.axes) {
                    for p in decl.params.as_deref().unwrap_or_default() {
                        let ty = self.param_ty(p);
                        self.give(&p.name.text, Sort::Field, ty);
                    }
                }
                self.axes_of(block);
                self.with_layout(block, &params);
                self.axes = axes;
            }
            Kind::Model | Kind::Block => {
                self.open += 1;
                self.fields(block, place, &[], &params);
                self.open -= 1;
            }
            k if items::is_job(k) => {
                let open = thing.decl.is_none();
                self.open += u32::from(open);
                self.job_names(k);
                self.job_items(thing, block, place);
                self.open -= u32::from(open);
            }
            Kind::Cluster => {
                self.open += 1;
                self.fields(block, place, &[], &params);
                self.cluster_items(block);
                self.open -= 1;
            }
            k => {
                for f in schema::fields(k) {
                    let ty = super::ty::named(f.ty, None, &[]).unwrap_or(Ty::Unknown);
                    self.give(f.name, Sort::Field, ty);
                }
                if k == Kind::Schedule {
                    self.give("p", Sort::Given, Ty::int());
                    self.give("m", Sort::Given, Ty::int());
                    // Functions of the base may be called.
                    self.open += 1;
                }
                self.nested(block);
                self.lets(block);
                self.fields(block, place, schema::fields(k), &params);
                self.plain_items(block, place);
                if k == Kind::Schedule {
                    self.open -= 1;
                }
            }
        }
        self.scope.pop();
    }

    /// A count such as `8 of DEVICE`: a whole plain number.
    pub(super) fn whole(&mut self, e: &'p Expr, what: &str) {
        let found = self.infer(e, Whole::Yes);
        self.expect(&Ty::int(), &found, what, e);
    }

    /// A share: a plain number.
    pub(super) fn plain(&mut self, e: &'p Expr, what: &str) {
        let found = self.infer(e, Whole::Maybe);
        self.expect(&Ty::number(Unit::none()), &found, what, e);
    }
}
