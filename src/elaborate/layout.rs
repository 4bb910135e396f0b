//! A layout's items, evaluated: the mesh and everything that speaks of its axes.

mod fold;
mod items;
mod mesh;
mod parts;

pub(super) use fold::copies;

use super::cluster::Cluster;
use super::errors;
use super::flatten::{Flat, flatten};
use super::job::{Duty, DutyKind, Parameter, Settings};
use crate::diagnostics::{Applicability, Code};
use crate::eval::{Domain, Env, Evaluator, Given, Hole, Instance, Num, Quantity, Truth, Value, Wanted, type_wanted};
use crate::expr::{self, Input};
use crate::layout::{Action, AttentionMethod, AxisId, Layout, NameId, Scope, Selector, SelectorPart};
use crate::source::Span;
use crate::syntax::ast::{self, AxisRef, Body, Expr, ExprKind, ItemKind, ParamKind};
use crate::units::Unit;
use indexmap::IndexMap;
use smol_str::SmolStr;
use std::rc::Rc;

/// A `pipeline` item.
#[derive(Clone, Debug)]
pub struct PipelineItem<'p> {
    /// The axis.
    pub axis: AxisId,
    /// The schedule and its arguments; defaults are not filled in.
    pub schedule: Rc<Instance<'p>>,
    /// How units become chunks.
    pub split: Split,
    /// Axes over which a message is cut in slices, sent apart and gathered inside the node.
    pub scatter_gather: Vec<NameId>,
    /// Whether their ranks have messages of their own and send them in turns, each one's slices over the links of all.
    pub in_turns: bool,
    /// The `split` field, or the item.
    pub split_span: Span,
    /// The `schedule` field, or the item.
    pub schedule_span: Span,
    /// The item.
    pub span: Span,
}

/// How units become chunks.
#[derive(Clone, PartialEq, Debug)]
pub enum Split {
    /// Equal numbers of units; each counted region is one.
    Even(Vec<String>),
    /// The cut with the least largest chunk time.
    Balanced(Vec<String>),
    /// Units of each chunk, in model order.
    Listed(Vec<u32>),
}

/// A layout as a job uses it.
#[derive(Debug)]
pub(super) struct Evaluated<'p> {
    pub(super) layout: Layout,
    pub(super) pipeline: Option<PipelineItem<'p>>,
    /// The layout's own `require`s.
    pub(super) requires: Vec<(&'p ast::Item, Rc<Env<'p>>)>,
    pub(super) name: String,
    /// What items select, each with its place.
    pub(super) scopes: Vec<(Scope, Span)>,
    /// Values and kinds of operations that items name.
    pub(super) named: Vec<Named>,
    /// Pieces of the model with layouts of their own; then the rest is empty, but for requirements.
    pub(super) parts: Vec<Part<'p>>,
    /// One pipeline over stages of several parts.
    pub(super) joined: Option<Joined<'p>>,
}

/// A `part` item.
#[derive(Debug)]
pub(super) struct Part<'p> {
    pub(super) name: &'p ast::Name,
    /// Its devices as they are written.
    pub(super) on: &'p Expr,
    pub(super) span: Span,
    /// What it covers, each with its place.
    pub(super) selectors: Vec<(Selector, Span)>,
    pub(super) cluster: Cluster<'p>,
    /// Sequences of its own microbatch, where it has one.
    pub(super) micro_batch: Option<expr::Id>,
    pub(super) evaluated: Evaluated<'p>,
    pub(super) duties: Vec<Duty>,
}

/// `pipeline over [a.pp, b.pp]`.
#[derive(Clone, Debug)]
pub struct Joined<'p> {
    /// The parts, by position, in the order of their stages.
    pub parts: Vec<usize>,
    /// The schedule of all stages.
    pub schedule: Rc<Instance<'p>>,
    /// The `schedule` field, or the item.
    pub schedule_span: Span,
}

/// Something a layout names that the model has to have.
#[derive(Debug)]
pub(super) struct Named {
    /// Where the item holds.
    pub(super) scope: Scope,
    /// Its name.
    pub(super) name: String,
    /// Whether it is a kind of operation, not a value.
    pub(super) operation: bool,
    /// Where it is named.
    pub(super) span: Span,
}

/// Two readings of the same ranks whose strides have to divide one another.
#[derive(Clone, Debug)]
pub struct Strides {
    /// The folded axes.
    pub from: Vec<NameId>,
    /// The axes they are read as: name, size, and where the name is written.
    pub to: Vec<(String, expr::Id, Span)>,
    /// The one of `to` whose size would change.
    pub changed: usize,
    /// The one of `to` that steps by `stride`.
    pub begins: usize,
    /// Its stride among the folded ranks.
    pub stride: expr::Id,
    /// The folded axis it begins in.
    pub mesh_axis: NameId,
    /// What that one steps by, or the part of it where others cut it.
    pub mesh_stride: expr::Id,
}

struct Builder<'p, 'e, 's, 'j> {
    eval: &'e mut Evaluator<'p, 's>,
    duties: &'j mut Vec<Duty>,
    layout: Layout,
    /// `axis data = [dp, cp]`.
    products: Vec<(String, Vec<NameId>)>,
    /// How many `fold`s were evaluated.
    folded: u16,
    devices: i64,
    scopes: Vec<(Scope, Span)>,
    named: Vec<Named>,
    /// Regions an `overlap` hides behind.
    overlap_regions: Vec<(Selector, Span)>,
    /// Where arguments of the layout are given.
    given: IndexMap<SmolStr, Span>,
    /// Whether the layout is the library's.
    library: bool,
    /// The expression that names the layout.
    used_at: Span,
}

impl<'p, 'e, 's, 'j> Builder<'p, 'e, 's, 'j> {
    /// One whose layout says nothing yet.
    fn new(
        eval: &'e mut Evaluator<'p, 's>,
        duties: &'j mut Vec<Duty>,
        devices: i64,
        given: IndexMap<SmolStr, Span>,
        library: bool,
        used_at: Span,
    ) -> Self {
        Self {
            eval,
            duties,
            layout: Layout::default(),
            products: Vec::new(),
            folded: 0,
            devices,
            scopes: Vec::new(),
            named: Vec::new(),
            overlap_regions: Vec::new(),
            given,
            library,
            used_at,
        }
    }
}

/// Evaluates `instance` on `cluster`.
pub(super) fn evaluate<'p>(
    eval: &mut Evaluator<'p, '_>,
    instance: &Instance<'p>,
    cluster: &Cluster<'p>,
    settings: &Settings,
    parameters: &mut Vec<Parameter>,
    duties: &mut Vec<Duty>,
) -> Option<Evaluated<'p>> {
    let decl = instance.decl;
    let Body::Block(block) = &decl.body else { return None };
    let mut env = on_devices(&Env::top(instance.id.module), cluster);
    let library = eval.program.module(instance.id.module).std;
    let given = instance.args.iter().map(|(name, (_, span))| (name.clone(), *span)).collect();
    let mut b = Builder::new(eval, duties, cluster.devices, given, library, instance.span);
    for param in decl.params.as_deref().unwrap_or_default() {
        let value = b.parameter(param, instance, &Rc::new(env.clone()), settings, parameters)?;
        env.bind(param.name.text.clone(), value);
    }
    let env = Rc::new(env);
    let base = Given { block, env: Rc::clone(&env) };
    let with: Vec<_> = instance
        .with
        .iter()
        .map(|g| {
            // Items of a `with` see the layout's parameters too.
            let vars = env.vars.clone();
            Given { block: g.block, env: Env::with(&g.env, vars) }
        })
        .collect();
    let items = {
        let mut decide = |cond: &'p Expr, env: &Rc<Env<'p>>| b.decide(cond, env);
        flatten(&base, &with, &mut decide)
    };
    let items = b.bind_lets(items);
    if items.iter().any(|f| matches!(f.item.kind, ItemKind::Part { .. })) {
        return b.parts(&items, cluster, &decl.name);
    }
    b.one_mesh(&items, cluster, &decl.name)
}

/// A scope inside `env` that knows the devices in use.
fn on_devices<'p>(env: &Rc<Env<'p>>, cluster: &Cluster<'p>) -> Env<'p> {
    let mut env = Env::inside(env);
    env.bind("devices", Value::int(i128::from(cluster.devices)));
    // Of several kinds none is the device; the job reports who asks for it.
    if let [(device, _)] = &cluster.kinds[..] {
        env.bind("device", Value::Record(Rc::clone(device)));
    }
    if let Some((host, _)) = cluster.host() {
        env.bind("host", Value::Record(Rc::clone(host)));
    }
    env
}

impl<'p> Builder<'p, '_, '_, '_> {
    /// Evaluates the items of one mesh.
    fn one_mesh(&mut self, items: &[Flat<'p>], cluster: &Cluster<'p>, name: &ast::Name) -> Option<Evaluated<'p>> {
        self.mesh(items, name)?;
        let items: Vec<_> = items.iter().map(|f| Flat { env: self.with_axes(&f.env), ..f.clone() }).collect();
        let mut requires = Vec::new();
        let pipeline = self.items(&items, cluster, &mut requires)?;
        self.check_places(cluster);
        if !self.check_pipeline_axis() {
            return None;
        }
        let (layout, mut scopes, named) =
            (std::mem::take(&mut self.layout), std::mem::take(&mut self.scopes), std::mem::take(&mut self.named));
        let regions = std::mem::take(&mut self.overlap_regions).into_iter();
        scopes.extend(regions.map(|(selector, span)| (Scope { nested: vec![vec![selector]] }, span)));
        let (name, parts, joined) = (name.text.to_string(), Vec::new(), None);
        Some(Evaluated { layout, pipeline, requires, name, scopes, named, parts, joined })
    }
}

impl<'p> Builder<'p, '_, '_, '_> {
    /// A parameter's value. Whole numbers become inputs of the graph, so that sizes stay symbolic.
    fn parameter(
        &mut self,
        param: &'p ast::Param,
        instance: &Instance<'p>,
        env: &Rc<Env<'p>>,
        settings: &Settings,
        parameters: &mut Vec<Parameter>,
    ) -> Option<Value<'p>> {
        let ParamKind::Value { ty, domain, default } = &param.kind else {
            self.eval.sink.error(errors::misplaced("the parameters of a layout", param.span));
            return None;
        };
        let name = &param.name.text;
        let wanted = ty.as_ref().map_or(Wanted::Any, type_wanted);
        let set = settings.number(name).map(|n| (Value::int(i128::from(n)), instance.span, true));
        let given = instance.args.get(name).map(|(v, span)| (v.clone(), *span, true));
        let (value, span, free) = match set.or(given) {
            Some(found) => found,
            None => match default {
                Some(e) => (self.eval.eval(e, env, &wanted), e.span, matches!(e.kind, ExprKind::Number { .. })),
                None => {
                    self.eval.sink.error(errors::missing_argument(name, &instance.decl.name, instance.span));
                    return None;
                }
            },
        };
        let declared = match domain {
            Some(d) => Some(self.eval.domain(d, env).ok()?),
            None => None,
        };
        let allowed = declared.as_ref().filter(|d| d.len() <= 4096).and_then(Domain::integers);
        let value = match value {
            Value::Hole(hole) => {
                let open = declared.or_else(|| self.default_domain(name, instance, &wanted, ty.as_ref()));
                self.eval.choose(name, &hole, open)
            }
            v => v,
        };
        match value {
            Value::Error(_) => None,
            Value::Num(Quantity { num: Num::Sym(id), ref unit }) if unit.is_none() => {
                if self.eval.choices.met.iter().any(|c| c.input == Some(id)) {
                    self.chosen(name, id, allowed, span, domain.as_ref().map(|d| d.span), parameters)?;
                }
                Some(self.eval.require(value, &wanted, &format!("`{name}`"), span))
                    .filter(|v| !matches!(v, Value::Error(_)))
            }
            Value::Num(Quantity { num: Num::Int(v), unit }) if unit.is_none() => {
                if let (Some(list), Some(d)) = (&allowed, domain)
                    && !list.iter().any(|x| i128::from(*x) == v)
                {
                    let text = list.iter().take(12).map(ToString::to_string).collect::<Vec<_>>().join(", ");
                    // What the command line gives is not in the file.
                    let near = if settings.number(name).is_none() { nearest(list, v) } else { Vec::new() };
                    let error = errors::outside_domain(name, &v.to_string(), &text, span, d.span);
                    self.eval.sink.error(near.iter().fold(error, |d, v| {
                        d.fix(format!("write `{name} = {v}`"), span, v.to_string(), Applicability::Unsure)
                    }));
                    return None;
                }
                let Some(value) = i64::try_from(v).ok().filter(|v| v.abs() <= 1 << 40) else {
                    self.eval.sink.error(errors::not_positive(name, v, span));
                    return None;
                };
                if !free {
                    return Some(Value::int(v));
                }
                if value < 1 && (sizes_axis(instance, name) || in_default_of_another(instance, name)) {
                    self.eval.sink.error(errors::not_positive(name, v, span));
                    return None;
                }
                // Nothing is made of it that has a size: it is a number like another.
                if value < 1 {
                    return Some(Value::int(v));
                }
                // Wide enough to try neighbours of the point, narrow enough that products of several stay whole numbers
                // on the largest cluster.
                let near = v.saturating_mul(64).max(4_096).min(i128::from(self.devices));
                let most = allowed.iter().flatten().copied().max().unwrap_or(1);
                let hi = i128::from(most).max(near).max(v);
                let input = Input { name: name.to_string(), kind: expr::Kind::Int, lo: 1.0, hi: hi as f64 };
                let id = self.eval.graph.input(input);
                self.eval.choices.point.push(value as f64);
                parameters.push(Parameter { name: name.to_string(), input: id, value, domain: allowed, span });
                Some(Value::sym(id, Unit::none()))
            }
            other => Some(self.eval.require(other, &wanted, &format!("`{name}`"), span))
                .filter(|v| !matches!(v, Value::Error(_))),
        }
    }

    /// A parameter that follows from choices: it is the graph's, and every value it may take is allowed.
    fn chosen(
        &mut self,
        name: &SmolStr,
        id: expr::Id,
        allowed: Option<Vec<i64>>,
        span: Span,
        declared: Option<Span>,
        parameters: &mut Vec<Parameter>,
    ) -> Option<()> {
        let choice = self.eval.choices.met.iter().find(|c| c.input == Some(id));
        let values = choice.and_then(|c| c.domain.integers()).unwrap_or_default();
        if let (Some(list), Some(at)) = (&allowed, declared)
            && let Some(v) = values.iter().find(|v| !list.contains(v))
        {
            let text = list.iter().take(12).map(ToString::to_string).collect::<Vec<_>>().join(", ");
            self.eval.sink.error(errors::outside_domain(name, &v.to_string(), &text, span, at));
            return None;
        }
        if let Some(v) = values.iter().find(|v| **v < 1) {
            self.eval.sink.error(errors::not_positive(name, i128::from(*v), span));
            return None;
        }
        let value = self.eval.graph.eval(&self.eval.choices.point, &[id])[0] as i64;
        let domain = if values.is_empty() { allowed } else { Some(values) };
        parameters.push(Parameter { name: name.to_string(), input: id, value, domain, span });
        Some(())
    }

    /// What `?` stands for where no domain is declared: the divisors of the devices for the size of an axis.
    fn default_domain(
        &self,
        name: &str,
        instance: &Instance<'p>,
        wanted: &Wanted,
        ty: Option<&ast::Type>,
    ) -> Option<Domain<'p>> {
        if ty.is_some_and(|t| t.name.text == "Bool") {
            return Some(Domain::Listed(vec![Value::Bool(Truth::Known(false)), Value::Bool(Truth::Known(true))]));
        }
        let sizes = sizes_axis(instance, name);
        let sizes = sizes || (*wanted == Wanted::Int && in_default_of_another(instance, name));
        sizes.then(|| Domain::numbers(super::job::divisors(self.devices)))
    }

    /// The outcome of a condition at the layout's point: it fixes the shape of the graph.
    fn decide(&mut self, cond: &'p Expr, env: &Rc<Env<'p>>) -> Option<bool> {
        match self.eval.eval(cond, env, &Wanted::Any) {
            Value::Bool(Truth::Known(b)) => Some(b),
            Value::Bool(Truth::Sym(id)) => Some(self.eval.read(id) > 0.0),
            Value::Error(_) => None,
            other => {
                let noun = other.noun();
                self.eval.sink.error(errors::wrong_value("a condition", "true or false", &noun, cond.span));
                None
            }
        }
    }

    /// Evaluates `let`s and gives their names to the items after them.
    fn bind_lets(&mut self, items: Vec<Flat<'p>>) -> Vec<Flat<'p>> {
        let mut vars = Vec::new();
        let mut out = Vec::new();
        for flat in items {
            let env = if vars.is_empty() { Rc::clone(&flat.env) } else { Env::with(&flat.env, Vec::clone(&vars)) };
            if let ItemKind::Let(l) = &flat.item.kind {
                match &l.value {
                    ast::LetValue::Is(e) => {
                        let wanted = l.ty.as_ref().map_or(Wanted::Any, type_wanted);
                        vars.push((l.name.text.clone(), self.eval.eval(e, &env, &wanted)));
                    }
                    ast::LetValue::In(e) => {
                        let hole = Hole { span: e.span, domain: Some((e, Rc::clone(&env))) };
                        vars.push((l.name.text.clone(), self.eval.choose(&l.name.text, &hole, None)));
                    }
                }
            } else {
                out.push(Flat { env, ..flat });
            }
        }
        out
    }

    /// The fine axes a list of references names, in mesh order.
    fn axes(&mut self, refs: &[AxisRef]) -> Option<Vec<AxisId>> {
        let names = self.names(refs)?;
        Some(self.layout.fine(&names))
    }

    /// The axes a list of references names; products are written out.
    fn names(&mut self, refs: &[AxisRef]) -> Option<Vec<NameId>> {
        let mut out = Vec::new();
        for r in refs {
            if let Some(part) = &r.part {
                self.eval.sink.error(errors::not_supported("parts of a model", part.span));
                return None;
            }
            if let Some(id) = self.layout.find_axis(&r.name.text) {
                out.push(id);
            } else if let Some((_, list)) = self.products.iter().find(|(n, _)| *n == *r.name.text) {
                out.extend(list.iter().copied());
            } else {
                let known: Vec<_> = self.layout.named.iter().map(|a| a.name.clone()).collect();
                self.eval.sink.error(errors::unknown_axis(&r.name, &known, self.layout.mesh_span));
                return None;
            }
        }
        out.sort_unstable();
        out.dedup();
        Some(out)
    }

    /// The ranks of a pipeline hold different layers: no item splits a tensor over them too.
    fn check_pipeline_axis(&mut self) -> bool {
        let Some(axis) = self.layout.pipeline else { return true };
        let layout = &self.layout;
        let shards = layout
            .rules
            .iter()
            .filter(|r| layout.fine(&r.axes).contains(&axis) && matches!(r.action, Action::Shard { .. }));
        let shards = shards.map(|r| (r.span, Code::ShardConflict));
        let stores = layout.stores.iter().filter(|s| s.axes.contains(&axis)).map(|s| (s.span, Code::StoreConflict));
        let via = layout.attention.iter().filter(|v| v.axes.contains(&axis)).map(|v| (v.span, Code::ShardConflict));
        let found: Vec<_> = shards.chain(stores).chain(via).collect();
        let a = layout.axis(axis);
        for (span, code) in &found {
            self.eval.sink.error(errors::pipeline_axis(&a.name, *code, *span, a.span));
        }
        found.is_empty()
    }

    fn duty(&mut self, cond: expr::Id, kind: DutyKind, span: Span) {
        self.duties.push(Duty { cond, kind, span });
    }

    /// The scope of a flattened item, its selectors checked for what this compiler can select.
    fn scope(&mut self, flat: &Flat<'p>) -> Option<Scope> {
        let mut nested = Vec::new();
        for selectors in &flat.scopes {
            let mut list = Vec::new();
            for s in *selectors {
                list.push(selector(self.eval, s, &flat.env)?);
            }
            nested.push(list);
        }
        let scope = Scope { nested };
        // Each selector of the innermost `in` has to reach something.
        if let (Some((innermost, outer)), Some(written)) = (scope.nested.split_last(), flat.scopes.last()) {
            for (selector, written) in innermost.iter().zip(*written) {
                let mut nested = outer.to_vec();
                nested.push(vec![selector.clone()]);
                self.scopes.push((Scope { nested }, written.span));
            }
        }
        Some(scope)
    }
}

/// Whether `e` names `name`.
fn names(e: &Expr, name: &str) -> bool {
    let mut found = false;
    crate::hir::walk_expr(e, &mut |x| {
        found |= matches!(&x.kind, ExprKind::Path(p) if p.len() == 1 && p[0].text == name);
    });
    found
}

/// Whether a mesh of the layout is made from the parameter `name`.
fn sizes_axis(instance: &Instance<'_>, name: &str) -> bool {
    let Body::Block(own) = &instance.decl.body else { return false };
    let blocks = std::iter::once(own).chain(instance.with.iter().map(|g| g.block));
    blocks.flat_map(|b| &b.items).any(|item| match &item.kind {
        ItemKind::Mesh(defs) => defs.iter().any(|d| match &d.size {
            None => d.name.text == name,
            Some(e) => names(e, name),
        }),
        _ => false,
    })
}

/// Whether the default of another parameter, such as `dp = devices / (tp * pp)`, is made from `name`.
fn in_default_of_another(instance: &Instance<'_>, name: &str) -> bool {
    instance.decl.params.iter().flatten().any(|p| match &p.kind {
        ParamKind::Value { default: Some(e), .. } => names(e, name) && names(e, "devices"),
        _ => false,
    })
}

/// The values of `list` next to `v`, below and above.
fn nearest(list: &[i64], v: i128) -> Vec<i64> {
    let below = list.iter().filter(|x| i128::from(**x) < v).max();
    let above = list.iter().filter(|x| i128::from(**x) > v).min();
    below.into_iter().chain(above).copied().collect()
}

/// A selector as the layout holds it.
pub(super) fn selector<'p>(eval: &mut Evaluator<'p, '_>, s: &'p ast::Selector, env: &Rc<Env<'p>>) -> Option<Selector> {
    let mut parts = Vec::new();
    for p in &s.parts {
        match p {
            ast::SelectorPart::Name(name, index) => {
                parts.push(SelectorPart::Name(name.text.to_string()));
                if let Some(index) = index {
                    parts.push(iterations(eval, index, env)?);
                }
            }
            ast::SelectorPart::One => parts.push(SelectorPart::One),
            ast::SelectorPart::Any => parts.push(SelectorPart::Any),
        }
    }
    Some(Selector { parts })
}

/// `[3]`, `[0..cut]`, `[cut..]`: which iterations, at the layout's point.
fn iterations<'p>(eval: &mut Evaluator<'p, '_>, index: &'p ast::Index, env: &Rc<Env<'p>>) -> Option<SelectorPart> {
    let mut number = |e: &'p Expr| -> Option<u32> {
        let value = eval.eval(e, env, &Wanted::Int);
        let value = eval.known(value);
        match value.as_int().map(u32::try_from) {
            Some(Ok(n)) => Some(n),
            _ => {
                if !matches!(value, Value::Error(_)) {
                    let noun = value.noun();
                    eval.sink.error(errors::wrong_value("an index", "the number of an iteration", &noun, e.span));
                }
                None
            }
        }
    };
    match index {
        ast::Index::From(e) => Some(SelectorPart::Iterations { from: number(e)?, to: None }),
        ast::Index::Expr(e) => match &e.kind {
            ExprKind::Range(from, to) => Some(SelectorPart::Iterations { from: number(from)?, to: Some(number(to)?) }),
            _ => {
                let from = number(e)?;
                Some(SelectorPart::Iterations { from, to: Some(from.saturating_add(1)) })
            }
        },
    }
}

/// The fine axes that may split `dim`, in mesh order: of the rules that name it, and of attention that trades heads.
pub(super) fn axes_given_to(layout: &Layout, dim: &str) -> Vec<AxisId> {
    let named =
        |r: &&crate::layout::Rule| matches!(&r.action, Action::Shard { dims, .. } if dims.iter().any(|d| d == dim));
    let ruled = layout.rules.iter().filter(named).flat_map(|r| layout.fine(&r.axes));
    let traded = layout.attention.iter().filter(|v| v.method == AttentionMethod::AllToAll);
    let mut all: Vec<_> = ruled.chain(traded.flat_map(|v| v.axes.iter().copied())).collect();
    all.sort_unstable();
    all.dedup();
    all
}
