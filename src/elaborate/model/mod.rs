//! A model's items to ops: dimensions, regions, repeats and blocks.

mod block;
mod dims;
mod repeat;
mod statement;

pub(super) use dims::{Extents, data_dims, data_refs, volume};

use super::errors;
use super::operators;
use crate::diagnostics::Diagnostic;
use crate::eval::{Env, Evaluator, Instance, Truth, Value, Wanted, type_wanted};
use crate::expr::{self, Input};
use crate::graph::{DimId, OpGraph, Region, RegionId, Unit as ModelUnit, ValueId};
use crate::layout::{Pad, PathPart};
use crate::source::Span;
use crate::syntax::ast::{self, Block, Body, DimRef, Expr, ExprKind, ItemKind, Name, ParamKind, TargetSuffix};
use indexmap::IndexMap;
use smol_str::SmolStr;
use std::rc::Rc;

/// Names in scope inside one model or block.
#[derive(Clone)]
pub(super) struct Scope<'p> {
    pub(super) env: Rc<Env<'p>>,
    pub(super) dims: IndexMap<SmolStr, DimId>,
    pub(super) tensors: IndexMap<SmolStr, ValueId>,
    /// Dimensions that arguments of the block have and the block does not name: its statements keep them.
    pub(super) riding: Vec<DimId>,
}

impl<'p> Scope<'p> {
    /// A scope of values alone.
    pub(super) fn of(env: Rc<Env<'p>>) -> Self {
        Self { env, dims: IndexMap::new(), tensors: IndexMap::new(), riding: Vec::new() }
    }
}

/// Where a tensor expression stands.
#[derive(Copy, Clone, Default)]
pub(super) struct Standing<'p> {
    /// The statement it is part of.
    pub(super) statement: Option<Span>,
    /// The operator or block it is an argument of.
    pub(super) argument_of: Option<&'p str>,
}

/// Elaborates a model.
pub(super) struct Builder<'p, 'e, 's> {
    pub(super) eval: &'e mut Evaluator<'p, 's>,
    pub(super) ops: OpGraph,
    pub(super) scope: Scope<'p>,
    pub(super) region: RegionId,
    pub(super) params: IndexMap<String, (ValueId, Span)>,
    extents: &'e Extents,
    pads: &'e [Pad],
    blocks: Vec<*const ast::Decl>,
    /// Where the model's own parameters are given, by name.
    given: IndexMap<SmolStr, Span>,
    /// Dimensions of the data, by name: known from the first statement on.
    data: IndexMap<SmolStr, &'p DimRef>,
    /// Where the job names the model.
    span: Span,
    /// Where to point for what a block of the library does: the user's call of it.
    pub(super) call_site: Option<Span>,
    /// Where the expression at hand stands.
    pub(super) standing: Standing<'p>,
    /// The names in the brackets left of the statement's `=`, for what makes a dimension.
    pub(super) announced: Vec<&'p Name>,
    /// Whether an iteration of a repeat is being run.
    repeated: bool,
    /// Whether ops go into the last unit.
    in_unit: bool,
    /// Name and place of a unit that the next op opens: the outermost region, or the statement.
    next_unit: Option<(String, Span)>,
    /// Values made, those that were taken away again included.
    made: usize,
}

pub(super) fn elaborate<'p>(
    eval: &mut Evaluator<'p, '_>,
    model: &Instance<'p>,
    span: Span,
    extents: &Extents,
    pads: &[Pad],
) -> Option<OpGraph> {
    let Body::Block(block) = &model.decl.body else { return None };
    let mut env = Env::inside(&Env::top(model.id.module));
    for param in model.decl.params.as_deref().unwrap_or_default() {
        let ParamKind::Value { ty, default, .. } = &param.kind else {
            eval.sink.error(errors::misplaced("the parameters of a model", param.span));
            return None;
        };
        let wanted = ty.as_ref().map_or(Wanted::Any, type_wanted);
        let value = match (model.args.get(&param.name.text), default) {
            (Some((v, _)), _) => v.clone(),
            (None, Some(e)) => {
                if let Some((a, b, at)) = inexact_default(e, &env, model, &wanted) {
                    eval.sink.error(errors::default_inexact(&param.name.text, a, b, at, e.span));
                    return None;
                }
                let v = eval.eval(e, &Rc::new(env.clone()), &wanted);
                eval.require(v, &wanted, &format!("`{}`", param.name.text), e.span)
            }
            (None, None) => {
                eval.sink.error(errors::missing_argument(&param.name.text, &model.decl.name, model.span));
                return None;
            }
        };
        match value {
            Value::Error(_) => return None,
            Value::Hole(hole) => {
                let bool = ty.as_ref().is_some_and(|t| t.name.text == "Bool");
                eval.sink.error(errors::model_open(&param.name.text, bool, hole.span));
                return None;
            }
            v => env.bind(param.name.text.clone(), v),
        }
    }
    if let Some(given) = model.with.iter().find(|g| !only_arguments(g.block, model.decl)) {
        eval.sink
            .error(errors::not_supported("`with` on a model beyond its parameters", given.block.span.unwrap_or(span)));
        return None;
    }
    let mut b = Builder::new(eval, Scope::of(Rc::new(env)), span, extents, pads);
    b.data = dims::data_refs(block);
    b.given = model.args.iter().map(|(name, (_, span))| (name.clone(), *span)).collect();
    b.items(block)?;
    if b.ops.units.is_empty() {
        b.eval.sink.error(errors::operator_use("model", "at least one statement", span));
        return None;
    }
    Some(b.ops)
}

/// A parameter's name and value.
type Valued<'e> = (&'e str, i128);

/// A default `x / y` of a whole number that is not whole because of the argument given for `y`: the names and values of
/// both, and where that argument is.
fn inexact_default<'e>(
    default: &'e Expr,
    env: &Env<'_>,
    model: &Instance<'_>,
    wanted: &Wanted,
) -> Option<(Valued<'e>, Valued<'e>, Span)> {
    let ExprKind::Binary(ast::BinaryOp::Div, _, x, y) = &default.kind else { return None };
    let (ExprKind::Path(x), ExprKind::Path(y)) = (&x.kind, &y.kind) else { return None };
    let ([x], [y]) = (&x[..], &y[..]) else { return None };
    let (a, b) = (env.find(&x.text)?.as_int()?, env.find(&y.text)?.as_int()?);
    let (_, at) = model.args.get(&y.text)?;
    (*wanted == Wanted::Int && b > 0 && a % b != 0).then_some(((&x.text, a), (&y.text, b), *at))
}

/// A model by itself, for showing: as much data as anyone likes, nothing padded.
pub fn library_model<'p>(eval: &mut Evaluator<'p, '_>, model: &Instance<'p>) -> Option<OpGraph> {
    let data = Input { name: "data".into(), kind: expr::Kind::Int, lo: 1.0, hi: f64::from(1 << 20) };
    let data = eval.graph.input(data);
    elaborate(eval, model, model.span, &Extents::all(data), &[])
}

/// Whether every field of a `with` names a parameter: those were taken as arguments already.
fn only_arguments(block: &Block, decl: &ast::Decl) -> bool {
    let params = decl.params.as_deref().unwrap_or_default();
    block.items.iter().all(|i| match &i.kind {
        ItemKind::Assign { target, .. } => params.iter().any(|p| p.name.text == target.name.text),
        _ => false,
    })
}

/// The names in the brackets of a statement's target, if it has brackets.
fn dims_of_target(target: &ast::Target) -> Result<Option<Vec<&Name>>, Box<Diagnostic>> {
    match &target.suffixes[..] {
        [] => Ok(None),
        [TargetSuffix::Index(list)] => {
            let names = list.iter().map(|i| match i {
                ast::Index::Expr(e) => e.name(),
                ast::Index::From(_) => None,
            });
            let names: Option<Vec<_>> = names.collect();
            let wrong = || Box::new(errors::operator_use("a target", "names of dimensions", target.span));
            names.map(Some).ok_or_else(wrong)
        }
        _ => Err(Box::new(errors::misplaced("a model", target.span))),
    }
}

impl<'p, 'e, 's> Builder<'p, 'e, 's> {
    /// Nothing elaborated yet, with `scope` known.
    pub(super) fn new(
        eval: &'e mut Evaluator<'p, 's>,
        scope: Scope<'p>,
        span: Span,
        extents: &'e Extents,
        pads: &'e [Pad],
    ) -> Self {
        Builder {
            eval,
            ops: OpGraph::new(span),
            scope,
            region: RegionId(0),
            params: IndexMap::new(),
            extents,
            pads,
            blocks: Vec::new(),
            given: IndexMap::new(),
            data: IndexMap::new(),
            span,
            call_site: None,
            standing: Standing::default(),
            announced: Vec::new(),
            repeated: false,
            in_unit: false,
            next_unit: None,
            made: 0,
        }
    }
}

impl<'p> Builder<'p, '_, '_> {
    /// Runs items in order; gives the value of `return`, if one is met.
    #[expect(clippy::option_option, reason = "the outer level says whether something was reported")]
    pub(super) fn items(&mut self, block: &'p Block) -> Option<Option<(ValueId, Span)>> {
        for item in &block.items {
            match &item.kind {
                ItemKind::Dims(defs) => {
                    for def in defs {
                        self.dim(def)?;
                    }
                }
                ItemKind::Input { name, dims } => self.input(name, dims)?,
                ItemKind::Let(l) => {
                    let ast::LetValue::Is(e) = &l.value else {
                        self.eval.sink.error(errors::not_supported("a domain in a model", item.span));
                        return None;
                    };
                    let env = Rc::clone(&self.scope.env);
                    let v = self.eval.eval(e, &env, &l.ty.as_ref().map_or(Wanted::Any, type_wanted));
                    self.scope.env = Env::with(&env, vec![(l.name.text.clone(), v)]);
                }
                ItemKind::Region { name, block } => {
                    if let Some(value) = self.region(name, block)? {
                        return Some(Some(value));
                    }
                }
                ItemKind::Repeat { name, count, index, block } => self.repeat(name, count, index.as_ref(), block)?,
                ItemKind::If { cond, then, otherwise } => {
                    let chosen = if self.holds(cond)? { Some(then) } else { otherwise.as_ref() };
                    if let Some(b) = chosen
                        && let Some(value) = self.items(b)?
                    {
                        return Some(Some(value));
                    }
                }
                ItemKind::Require { cond, message } => {
                    if !self.holds(cond)? {
                        let at = self.at(item.span);
                        self.eval.sink.error(errors::model_requires(message.as_deref(), cond.span, at));
                        return None;
                    }
                }
                ItemKind::Assign { target, value } => self.standing_in(item.span, |b| b.assign(target, value))?,
                ItemKind::Return(e) => {
                    let value = self.standing_in(item.span, |b| b.returned(e))?;
                    return Some(Some((value, e.span)));
                }
                ItemKind::Error => return None,
                _ => {
                    self.eval.sink.error(errors::misplaced("a model", item.span));
                    return None;
                }
            }
        }
        Some(None)
    }

    /// Runs a statement.
    fn standing_in<R>(&mut self, statement: Span, run: impl FnOnce(&mut Self) -> R) -> R {
        let here = Standing { statement: Some(statement), argument_of: None };
        let outer = std::mem::replace(&mut self.standing, here);
        let out = run(self);
        self.standing = outer;
        out
    }

    /// A condition over what is known of the model.
    pub(super) fn holds(&mut self, cond: &'p Expr) -> Option<bool> {
        let env = Rc::clone(&self.scope.env);
        match self.eval.eval(cond, &env, &Wanted::Any) {
            Value::Bool(Truth::Known(known)) => Some(known),
            Value::Error(_) => None,
            other => {
                let (what, noun) = ("a condition in a model", other.noun());
                self.eval.sink.error(errors::wrong_value(what, "a known true or false", &noun, cond.span));
                None
            }
        }
    }

    /// A region names a path and opens no scope; the outermost names the units of what is in it.
    #[expect(clippy::option_option, reason = "the outer level says whether something was reported")]
    fn region(&mut self, name: &'p Name, block: &'p Block) -> Option<Option<(ValueId, Span)>> {
        let outermost = !self.in_unit && self.next_unit.is_none();
        if outermost {
            self.next_unit = Some((name.text.to_string(), name.span));
        }
        let outer = self.enter(&[PathPart::Name(name.text.to_string())], name.span);
        let result = self.items(block);
        self.region = outer;
        if outermost {
            self.next_unit = None;
            self.in_unit = false;
        }
        result
    }

    /// Opens a unit unless ops go into one already.
    pub(super) fn open_unit(&mut self, name: &str, span: Span) {
        if !self.in_unit {
            let (name, span) = self.next_unit.clone().unwrap_or_else(|| (name.to_string(), span));
            self.ops.units.push(ModelUnit { name, count: 1, repeated: false, span });
            self.in_unit = true;
        }
    }

    /// Counts a value, against the limits of a model.
    pub(super) fn count_value(&mut self) {
        self.made += 1;
    }

    pub(super) fn unit(&self) -> u32 {
        (self.ops.units.len() as u32).saturating_sub(1)
    }

    fn enter(&mut self, parts: &[PathPart], span: Span) -> RegionId {
        let outer = self.region;
        let mut path = self.ops.regions[outer.0 as usize].path.clone();
        path.extend(parts.iter().cloned());
        self.ops.regions.push(Region { path, span: self.call_site.unwrap_or(span) });
        self.region = RegionId(self.ops.regions.len() as u32 - 1);
        outer
    }

    pub(super) fn known_dim(&mut self, name: &Name) -> Option<DimId> {
        let found = self.scope.dims.get(&name.text).copied();
        if found.is_none() {
            self.unknown_dim(name);
        }
        found
    }

    pub(super) fn unknown_dim(&mut self, name: &Name) {
        let known: Vec<_> = self.scope.dims.keys().map(ToString::to_string).collect();
        self.eval.sink.error(errors::dimension_unknown(name, &known));
    }

    /// The value of a tensor expression.
    pub(super) fn tensor(&mut self, e: &'p Expr, target: Option<&[DimId]>) -> Option<ValueId> {
        operators::tensor(self, e, target)
    }
}
