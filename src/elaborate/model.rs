//! A model's items to ops: dimensions, regions, repeats and blocks.

mod block;

use super::errors;
use super::operators;
use crate::eval::{Env, Evaluator, Instance, Num, Quantity, Truth, Value, Wanted, type_wanted};
use crate::expr::{self, Node};
use crate::graph::{
    DataDim, Dim, DimId, OpGraph, Region, RegionId, Unit as ModelUnit, Value as Tensor, ValueId, ValueRole,
};
use crate::layout::{Pad, PathPart};
use crate::source::Span;
use crate::syntax::ast::{self, Block, Body, Expr, ExprKind, ItemKind, Name, ParamKind, TargetSuffix};
use indexmap::IndexMap;
use smol_str::SmolStr;
use std::rc::Rc;

/// Iterations and other units a model may have.
const MAX_UNITS: i128 = 1_000_000;
/// Depth of blocks in blocks.
const MAX_BLOCKS: usize = 64;
/// Ops a model may have before its repeats are counted.
const MAX_OPS: usize = 65_536;

/// Extents of the data dimensions, from the job and the layout.
#[derive(Copy, Clone, Debug)]
pub(super) struct Extents {
    /// Sequences of a microbatch over all ranks that shard it.
    pub(super) batch: expr::Id,
    /// Tokens of a sequence.
    pub(super) sequence: expr::Id,
}

/// The data dimensions a model's inputs declare.
pub(super) fn data_dims(model: &Instance<'_>) -> Vec<(String, DataDim)> {
    let Body::Block(block) = &model.decl.body else { return Vec::new() };
    let mut out: Vec<(String, DataDim)> = Vec::new();
    for item in &block.items {
        if let ItemKind::Input { dims, .. } = &item.kind {
            for d in dims {
                if let Some(unit) = &d.unit
                    && !out.iter().any(|(n, _)| *n == *d.name.text)
                {
                    out.push((d.name.text.to_string(), data_kind(&unit.text)));
                }
            }
        }
    }
    out
}

fn data_kind(unit: &str) -> DataDim {
    match unit {
        "seq" => DataDim::Batch,
        "tok" => DataDim::Sequence,
        _ => DataDim::Other,
    }
}

/// Names in scope inside one model or block.
pub(super) struct Scope<'p> {
    pub(super) env: Rc<Env<'p>>,
    pub(super) dims: IndexMap<SmolStr, DimId>,
    pub(super) tensors: IndexMap<SmolStr, ValueId>,
}

/// Elaborates a model.
pub(super) struct Builder<'p, 'e, 's> {
    pub(super) eval: &'e mut Evaluator<'p, 's>,
    pub(super) ops: OpGraph,
    pub(super) scope: Scope<'p>,
    pub(super) region: RegionId,
    pub(super) params: IndexMap<String, (ValueId, Span)>,
    extents: Extents,
    pads: &'e [Pad],
    blocks: Vec<*const ast::Decl>,
    /// Where the model's own parameters are given, by name.
    given: IndexMap<SmolStr, Span>,
    /// Where to point for what a block of the library does: the user's call of it.
    pub(super) call_site: Option<Span>,
    repeated: bool,
    in_unit: bool,
}

pub(super) fn elaborate<'p>(
    eval: &mut Evaluator<'p, '_>,
    model: &Instance<'p>,
    span: Span,
    extents: Extents,
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
    let scope = Scope { env: Rc::new(env), dims: IndexMap::new(), tensors: IndexMap::new() };
    let mut b = Builder::new(eval, scope, span, extents, pads);
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

/// A model by itself, for showing: one sequence of one token, nothing padded.
pub fn library_model<'p>(eval: &mut Evaluator<'p, '_>, model: &Instance<'p>) -> Option<OpGraph> {
    let one = eval.graph.int(1);
    elaborate(eval, model, model.span, Extents { batch: one, sequence: one }, &[])
}

/// Whether every field of a `with` names a parameter: those were taken as arguments already.
fn only_arguments(block: &Block, decl: &ast::Decl) -> bool {
    let params = decl.params.as_deref().unwrap_or_default();
    block.items.iter().all(|i| match &i.kind {
        ItemKind::Assign { target, .. } => params.iter().any(|p| p.name.text == target.name.text),
        _ => false,
    })
}

impl<'p, 'e, 's> Builder<'p, 'e, 's> {
    /// Nothing elaborated yet, with `scope` known.
    pub(super) fn new(
        eval: &'e mut Evaluator<'p, 's>,
        scope: Scope<'p>,
        span: Span,
        extents: Extents,
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
            call_site: None,
            repeated: false,
            in_unit: false,
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
                    let opened = self.open_unit(&name.text, 1, false, name.span);
                    let outer = self.enter(&[PathPart::Name(name.text.to_string())], name.span);
                    let result = self.items(block);
                    self.region = outer;
                    self.in_unit &= !opened;
                    if let Some(value) = result? {
                        return Some(Some(value));
                    }
                }
                ItemKind::Repeat { name, count, index, block } => self.repeat(name, count, index.as_ref(), block)?,
                ItemKind::If { cond, then, otherwise } => {
                    let env = Rc::clone(&self.scope.env);
                    let chosen = match self.eval.eval(cond, &env, &Wanted::Any) {
                        Value::Bool(Truth::Known(true)) => Some(then),
                        Value::Bool(Truth::Known(false)) => otherwise.as_ref(),
                        Value::Error(_) => return None,
                        other => {
                            let noun = other.noun();
                            self.eval.sink.error(errors::wrong_value(
                                "a condition in a model",
                                "a known true or false",
                                &noun,
                                cond.span,
                            ));
                            return None;
                        }
                    };
                    if let Some(b) = chosen
                        && let Some(value) = self.items(b)?
                    {
                        return Some(Some(value));
                    }
                }
                ItemKind::Assign { target, value } => self.assign(target, value)?,
                ItemKind::Return(e) => {
                    let value = self.returned(e)?;
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

    /// Opens a unit unless one is open; says whether it did.
    pub(super) fn open_unit(&mut self, name: &str, count: i64, repeated: bool, span: Span) -> bool {
        if self.in_unit {
            return false;
        }
        self.ops.units.push(ModelUnit { name: name.to_string(), count, repeated, span });
        self.in_unit = true;
        true
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

    fn repeat(&mut self, name: &'p Name, count: &'p Expr, index: Option<&Name>, block: &'p Block) -> Option<()> {
        if let Some(index) = index {
            self.eval.sink.error(errors::not_supported("iterations that differ (`repeat … as`)", index.span));
            return None;
        }
        if self.in_unit || self.repeated {
            self.eval.sink.error(errors::not_supported("a repeat inside a region, a block or a repeat", name.span));
            return None;
        }
        let env = Rc::clone(&self.scope.env);
        let value = self.eval.eval(count, &env, &Wanted::Int);
        let n = match self.eval.require(value, &Wanted::Int, &format!("the count of `{}`", name.text), count.span) {
            Value::Num(Quantity { num: Num::Int(n), .. }) if (0..=MAX_UNITS).contains(&n) => n as i64,
            Value::Num(Quantity { num: Num::Int(n), .. }) => {
                self.eval.sink.error(errors::repeat_range(&name.text, n, MAX_UNITS, count.span));
                return None;
            }
            Value::Error(_) => return None,
            other => {
                let noun = other.noun();
                self.eval.sink.error(errors::wrong_value("a repeat", "a known whole number", &noun, count.span));
                return None;
            }
        };
        if n == 0 {
            return Some(());
        }
        let before = self.scope.tensors.clone();
        let opened = self.open_unit(&name.text, n, true, name.span);
        let outer = self.enter(&[PathPart::Name(name.text.to_string()), PathPart::Iteration], name.span);
        self.repeated = true;
        self.items(block)?;
        self.repeated = false;
        self.region = outer;
        self.in_unit &= !opened;
        // What a body leaves is what the next iteration finds: carried values keep their dimensions.
        for (tensor, old) in &before {
            if let Some(new) = self.scope.tensors.get(tensor)
                && self.ops.value(*new).dims != self.ops.value(*old).dims
            {
                let (found, wanted) = (self.dims_text(*new), self.dims_text(*old));
                let assigned = block.items.iter().rev().find_map(|i| match &i.kind {
                    ItemKind::Assign { target, .. } if target.name.text == *tensor => Some(target.span),
                    _ => None,
                });
                let span = assigned.unwrap_or(self.ops.value(*new).span);
                let entry = self.ops.value(*old).span;
                self.eval.sink.error(errors::carried(tensor, &name.text, &wanted, &found, span, entry));
                return None;
            }
        }
        // Values made inside a body are its own.
        self.scope.tensors.retain(|name, _| before.contains_key(name));
        Some(())
    }

    fn dim(&mut self, def: &'p ast::DimDef) -> Option<()> {
        if let Some(over) = &def.ragged {
            self.eval.sink.error(errors::not_supported("ragged dimensions", over.span));
            return None;
        }
        if let Some(old) = self.scope.dims.get(&def.name.text) {
            let first = self.ops.dim(*old).span;
            self.eval.sink.error(errors::axis_twice(&def.name, first));
            return None;
        }
        let env = Rc::clone(&self.scope.env);
        let value = self.eval.eval(&def.extent, &env, &Wanted::Int);
        let what = format!("the extent of `{}`", def.name.text);
        let q = match self.eval.require(value, &Wanted::Int, &what, def.extent.span) {
            Value::Num(q) => q,
            Value::Hole(hole) => {
                self.eval.sink.error(errors::model_open(&def.name.text, false, hole.span));
                return None;
            }
            _ => return None,
        };
        if let Num::Int(n) = q.num
            && !(1..=1 << 40).contains(&n)
        {
            self.eval.sink.error(errors::not_positive(&def.name.text, n, def.extent.span));
            return None;
        }
        let groups = match &def.grouped {
            None => None,
            Some(of) => {
                let Some(id) = self.scope.dims.get(&of.text).copied() else {
                    self.unknown_dim(of);
                    return None;
                };
                let n = self.eval.graph.as_int(self.ops.dim(id).true_extent);
                if let (Num::Int(k), Some(n)) = (q.num, n)
                    && i128::from(n) % k != 0
                {
                    let given = match &def.extent.kind {
                        ExprKind::Path(p) if p.len() == 1 => self.given.get(&p[0].text).copied(),
                        _ => None,
                    };
                    let at = given.unwrap_or(def.extent.span);
                    self.eval.sink.error(errors::kv_heads(k, i128::from(n), def, &of.text, at));
                    return None;
                }
                Some(id)
            }
        };
        let true_extent = self.eval.node(q.num);
        let extent = match self.pads.iter().find(|p| p.dim == *def.name.text) {
            None => true_extent,
            Some(pad) => {
                let tiles = self.eval.graph.put(Node::CeilDiv(true_extent, pad.to));
                self.eval.graph.mul(tiles, pad.to)
            }
        };
        let dim = Dim { name: def.name.text.to_string(), extent, true_extent, data: None, groups, span: def.name.span };
        let id = self.ops.add_dim(dim);
        self.scope.dims.insert(def.name.text.clone(), id);
        self.scope.env = Env::with(&env, vec![(def.name.text.clone(), Value::Num(q))]);
        Some(())
    }

    fn input(&mut self, name: &'p Name, dims: &'p [ast::DimRef]) -> Option<()> {
        let mut ids = Vec::new();
        for d in dims {
            let known = self.scope.dims.get(&d.name.text).copied();
            let id = match (&d.unit, known) {
                (_, Some(id)) => id,
                (None, None) => {
                    self.unknown_dim(&d.name);
                    return None;
                }
                (Some(unit), None) => {
                    let kind = data_kind(&unit.text);
                    let extent = match kind {
                        DataDim::Batch => self.extents.batch,
                        DataDim::Sequence => self.extents.sequence,
                        DataDim::Other => {
                            let what = format!("data counted in `{}`", unit.text);
                            self.eval.sink.error(errors::not_supported(&what, unit.span));
                            return None;
                        }
                    };
                    if self.ops.dims.iter().any(|d| d.data == Some(kind)) {
                        let what = format!("two dimensions of the data counted in `{}`", unit.text);
                        self.eval.sink.error(errors::not_supported(&what, unit.span));
                        return None;
                    }
                    let text = d.name.text.to_string();
                    let dim = Dim {
                        name: text,
                        extent,
                        true_extent: extent,
                        data: Some(kind),
                        groups: None,
                        span: d.name.span,
                    };
                    let id = self.ops.add_dim(dim);
                    self.scope.dims.insert(d.name.text.clone(), id);
                    id
                }
            };
            ids.push(id);
        }
        let value = Tensor {
            name: name.text.to_string(),
            dims: ids,
            region: self.region,
            role: ValueRole::Input,
            span: name.span,
        };
        let id = self.ops.add_value(value);
        self.scope.tensors.insert(name.text.clone(), id);
        Some(())
    }

    fn assign(&mut self, target: &'p ast::Target, value: &'p Expr) -> Option<()> {
        let opened = self.open_unit(&target.name.text, 1, false, target.span);
        let dims = match &target.suffixes[..] {
            [] => self.scope.tensors.get(&target.name.text).map(|v| self.ops.value(*v).dims.clone()),
            [TargetSuffix::Index(list)] => {
                let mut dims = Vec::new();
                for i in list {
                    let ast::Index::Expr(Expr { kind: ExprKind::Path(p), .. }) = i else {
                        self.eval.sink.error(errors::operator_use("a target", "names of dimensions", target.span));
                        return None;
                    };
                    dims.push(self.known_dim(&p[0])?);
                }
                Some(dims)
            }
            _ => {
                self.eval.sink.error(errors::misplaced("a model", target.span));
                return None;
            }
        };
        let before = self.ops.values.len();
        let id = self.tensor(value, dims.as_deref())?;
        if let Some(dims) = &dims {
            self.check_dims(id, dims, value.span, target.span)?;
        }
        if id.0 as usize >= before && self.ops.value(id).name.is_empty() {
            self.ops.values[id.0 as usize].name = target.name.text.to_string();
        }
        self.scope.tensors.insert(target.name.text.clone(), id);
        if self.ops.values.len() > MAX_OPS {
            self.eval.sink.error(errors::not_supported("a model of more than 65,536 values", value.span));
            return None;
        }
        self.in_unit &= !opened;
        Some(())
    }

    /// The value of `return e`: its target is the block's result.
    fn returned(&mut self, e: &'p Expr) -> Option<ValueId> {
        let dims = self.result_dims()?;
        let id = self.tensor(e, dims.as_ref().map(|(d, _)| d.as_slice()))?;
        if let Some((dims, span)) = &dims {
            self.check_dims(id, dims, e.span, *span)?;
        }
        Some(id)
    }

    /// The dimensions the block being run announces.
    #[expect(clippy::option_option, reason = "the outer level says whether something was reported")]
    fn result_dims(&mut self) -> Option<Option<(Vec<DimId>, Span)>> {
        let Some(Value::List(names)) = self.scope.env.find("return").cloned() else { return Some(None) };
        let mut dims = Vec::new();
        for v in names.iter() {
            let Value::Str(name) = v else { continue };
            dims.push(*self.scope.dims.get(name)?);
        }
        let span = self.call_site.unwrap_or(self.ops.regions[self.region.0 as usize].span);
        Some(Some((dims, span)))
    }

    pub(super) fn check_dims(&mut self, id: ValueId, wanted: &[DimId], span: Span, target: Span) -> Option<()> {
        let found = &self.ops.value(id).dims;
        let name = |d: &DimId| self.ops.dim(*d).name.clone();
        let missing: Vec<_> = wanted.iter().filter(|d| !found.contains(d)).map(name).collect();
        let extra: Vec<_> = found.iter().filter(|d| !wanted.contains(d)).map(name).collect();
        if missing.is_empty() && extra.is_empty() {
            return Some(());
        }
        let wanted: Vec<_> = wanted.iter().map(name).collect();
        let found = self.dims_text(id);
        self.eval.sink.error(errors::dims_mismatch(
            &found,
            &wanted.join(", "),
            &missing,
            &extra,
            self.at(span),
            target,
        ));
        None
    }

    /// Where to point for something at `span`: inside the library, the user's call.
    pub(super) fn at(&self, span: Span) -> Span {
        self.call_site.unwrap_or(span)
    }

    pub(super) fn dims_text(&self, id: ValueId) -> String {
        let dims = &self.ops.value(id).dims;
        dims.iter().map(|d| self.ops.dim(*d).name.clone()).collect::<Vec<_>>().join(", ")
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
