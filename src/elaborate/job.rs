//! A `train` job: everything it is made of, assembled from its fields.

mod disturb;
mod fields;
mod lengths;
mod machines;
mod parts;
pub(super) mod paths;
mod placed;
mod values;

pub use parts::Part;

use super::cluster::Cluster;
use super::errors;
use super::layout::{self, PipelineItem};
use super::model;
use super::numerics::Numerics;
use crate::eval::{Choice, Demand, Domain, Env, Evaluator, Inside, Instance, Value, Wanted};
use crate::expr;
use crate::graph::{DataDim, OpGraph, ValueId, language_name};
use crate::hir::{DeclId, Program};
use crate::layout::{AxisId, Class, Hold, Layout, NameId, Pass, Recompute, RecomputeWhat, Scope, Store};
use crate::source::Span;
use crate::syntax::ast::{self, Expr, ItemKind, Kind};
use crate::units::{Base, Unit};
pub use disturb::{Delayed, Disturbance};
use fields::{Field, Fields, fields, is_default};
use indexmap::IndexMap;
use placed::{Counts, Placed, sharding_axes};
use smol_str::SmolStr;
use std::rc::Rc;

#[derive(Clone, Default, Debug)]
pub struct Settings {
    /// Name to whole number.
    pub values: Vec<(String, i64)>,
    /// Name to the text of a choice that is not a whole number.
    pub words: Vec<(String, String)>,
    /// Open choices that are settled, by place: the index of the value in its domain.
    pub chosen: Vec<(Span, usize)>,
    /// Items added to the layout.
    pub items: Vec<AddedItem>,
    /// Whether the command draws what `disturb` says; others price a calm step alone and refuse it.
    pub disturbed: bool,
}

/// A layout item the compiler tries on its own.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum AddedItem {
    /// `store state over` the axes that shard the batch.
    StoreState,
    /// `recompute all`
    RecomputeAll,
    /// `recompute ?`
    RecomputeOpen,
    /// How long gathered parameters live.
    Hold(Hold),
    /// `schedule = one_f_one_b` instead of the pipeline's own.
    OneForwardOneBackward,
}

impl Settings {
    /// The number given for `name`.
    pub fn number(&self, name: &str) -> Option<i64> {
        self.values.iter().rev().find(|(n, _)| n == name).map(|(_, v)| *v)
    }
}

/// How long a job is.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Length {
    /// Updates.
    Steps(f64),
    /// Tokens.
    Tokens(f64),
    /// Sequences.
    Samples(f64),
    /// Updates, by a curve over the job's own sizes.
    Curve(expr::Id),
}

/// A free parameter: an input of the graph with its value in the file.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// `tp`, `micro_batch`.
    pub name: String,
    /// Its node.
    pub input: expr::Id,
    /// Its value.
    pub value: i64,
    /// The values its declaration allows, where it lists them.
    pub domain: Option<Vec<i64>>,
    /// Where the value is written.
    pub span: Span,
}

/// `minimize e`, `maximize e`
#[derive(Clone, Debug)]
pub struct Objective<'p> {
    /// Whether more is better.
    pub maximize: bool,
    /// What; a list is a Pareto front.
    pub value: &'p Expr,
    /// The names it sees.
    pub env: Rc<Env<'p>>,
    /// The item.
    pub span: Span,
}

/// What must hold for the layout to be legal.
#[derive(Clone, Debug)]
pub struct Duty {
    /// A Bool node.
    pub cond: expr::Id,
    /// What it is about.
    pub kind: DutyKind,
    /// Where to point.
    pub span: Span,
}

/// What a [`Duty`] is about: its message needs the numbers at the point.
#[derive(Clone, Debug)]
pub enum DutyKind {
    /// The axes multiply to the devices.
    Mesh,
    /// `a / b` is whole.
    Division {
        /// Dividend.
        a: expr::Id,
        /// Divisor.
        b: expr::Id,
    },
    /// A key lies inside the table it is looked up in.
    Inside(Inside),
    /// An axis lies inside one instance of a level.
    Place {
        /// The axis.
        axis: NameId,
        /// The level's name.
        level: String,
        /// Devices below one instance.
        devices: i64,
    },
    /// Axes fill whole lines of a torus.
    Along {
        /// The axes, those of other items on the same lines included.
        axes: Vec<NameId>,
        /// The directions: `slice.x`.
        along: Vec<String>,
        /// Devices along them.
        devices: i64,
    },
    /// The batch is a whole number of microbatches.
    Batch,
    /// A fold has as many ranks on both sides.
    Fold {
        /// The folded axes.
        from: Vec<NameId>,
        /// What they are read as: names and sizes.
        to: Vec<(String, expr::Id)>,
    },
    /// Strides on the two sides of a fold divide one another.
    Nest(Box<layout::Strides>),
    /// An axis is a multiple of the indices copied along it.
    Copies,
}

/// A `require` or `expect` of the job or its layout.
#[derive(Clone, Debug)]
pub struct Claim<'p> {
    /// Which.
    pub kind: ClaimKind,
    /// The claim, or the left side of `~`.
    pub value: &'p Expr,
    /// `~ b` and its tolerance.
    pub about: Option<&'p (Box<Expr>, Option<ast::Tolerance>)>,
    /// `else "…"`.
    pub message: Option<SmolStr>,
    /// The names it sees.
    pub env: Rc<Env<'p>>,
    /// The item.
    pub span: Span,
}

impl<'p> Claim<'p> {
    /// `require COND else "…"`
    fn required(cond: &'p Expr, message: Option<SmolStr>, env: Rc<Env<'p>>, span: Span) -> Self {
        Self { kind: ClaimKind::Require, value: cond, about: None, message, env, span }
    }
}

/// Sorts of [`Claim`].
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ClaimKind {
    /// Must hold.
    Require,
    /// Is checked and reported.
    Expect,
}

/// One elaborated job.
#[derive(Debug)]
pub struct Job<'p> {
    /// What comes late.
    pub disturb: Vec<Disturbance>,
    /// Its name.
    pub name: String,
    /// Its declaration.
    pub id: DeclId,
    /// The machines.
    pub cluster: Cluster<'p>,
    /// The layout.
    pub layout: Layout,
    /// Name of the layout's declaration.
    pub layout_name: String,
    /// The pipeline, if there is one.
    pub pipeline: Option<PipelineItem<'p>>,
    /// The model as ops.
    pub ops: OpGraph,
    /// The model's name.
    pub model_name: String,
    /// Number formats and optimizer.
    pub numerics: Numerics<'p>,
    /// The cost record; functions it lacks come from the default one.
    pub cost: Vec<Rc<Instance<'p>>>,
    /// Sequences of an update.
    pub batch: expr::Id,
    /// Tokens of a sequence.
    pub sequence: expr::Id,
    /// Sequences of a microbatch on one replica.
    pub micro_batch: expr::Id,
    /// Ranks that shard the batch.
    pub replicas: expr::Id,
    /// Microbatches of an update on one rank.
    pub microbatches: expr::Id,
    /// How long the job is, where it says.
    pub length: Option<Length>,
    /// Axes that shard the batch.
    pub batch_axes: Vec<AxisId>,
    /// Free parameters, in the order of the graph's inputs.
    pub parameters: Vec<Parameter>,
    /// Values of the graph's inputs, in their order.
    pub point: Vec<f64>,
    /// What must hold.
    pub duties: Vec<Duty>,
    /// Requirements and expectations.
    pub claims: Vec<Claim<'p>>,
    /// What the runtime does beyond the rules, in the order of the passes.
    pub passes: Vec<Pass>,
    /// What a search is after.
    pub objective: Option<Objective<'p>>,
    /// Open choices, in the order of the text.
    pub choices: Vec<Choice<'p>>,
    /// Nodes whose value at the point shaped the graph, with that value.
    pub readings: Vec<(expr::Id, f64)>,
    /// Where each field is given: `layout`, `micro_batch`, …
    pub places: IndexMap<String, Span>,
    /// The job's name in its declaration.
    pub span: Span,
    /// Its pieces, where the layout gives them devices of their own; then they have the meshes, the job has none.
    pub parts: Vec<Part<'p>>,
    /// One pipeline over stages of several parts.
    pub joined: Option<layout::Joined<'p>>,
    /// Of a part: what others use of its values.
    pub leaving: Vec<ValueId>,
}

impl<'p> Job<'p> {
    /// What the job's expressions see beside what they declare: the layout's parameters and axes, the counts of the
    /// batch.
    pub fn names(&self) -> Vec<(SmolStr, Value<'p>)> {
        let counts = [self.batch, self.sequence, self.micro_batch];
        values::names((&self.layout_name, &self.layout), &self.parameters, counts, self.span)
    }
}

/// Elaborates `id`, a `train` job of `program`.
pub fn elaborate<'p>(
    program: &'p Program,
    id: DeclId,
    settings: &Settings,
    graph: &mut expr::Graph,
    sink: &mut crate::diagnostics::Sink,
) -> Option<Job<'p>> {
    let mut eval = Evaluator::new(program, graph, sink);
    let entry = program.entry(id);
    let name = entry.name().clone();
    if let Some(kind) = entry.kind()
        && kind != Kind::Train
    {
        eval.sink.error(errors::not_supported(&format!("`{}` jobs", kind.keyword()), name.span));
        return None;
    }
    let Value::Instance(instance) = eval.entry(id, name.span) else { return None };
    if instance.decl.kind != Kind::Train {
        eval.sink.error(errors::not_supported(&format!("`{}` jobs", instance.decl.kind.keyword()), name.span));
        return None;
    }
    eval.choices.settled.clone_from(&settings.chosen);
    eval.choices.named.clone_from(&settings.words);
    let Fields { values, claims, dims, objective, lets } = fields(&mut eval, &instance, settings)?;
    let mut j = Builder { eval, values, settings, name: &name, lets };
    j.build(id, claims, dims, objective)
}

struct Builder<'p, 'a, 's> {
    eval: Evaluator<'p, 's>,
    values: IndexMap<SmolStr, Field<'p>>,
    settings: &'a Settings,
    name: &'a ast::Name,
    /// Names of the job's `let`s.
    lets: Vec<SmolStr>,
}

impl<'p> Builder<'p, '_, '_> {
    fn build(
        &mut self,
        id: DeclId,
        mut claims: Vec<Claim<'p>>,
        dims: Vec<(&'p ast::Name, Field<'p>)>,
        objective: Option<Objective<'p>>,
    ) -> Option<Job<'p>> {
        let before = self.eval.sink.error_count();
        for field in ["packing", "epochs", "minibatches", "attention_mask", "balance", "ema"] {
            if let Some(f) = self.values.get(field)
                && !is_default(field, f.expr)
            {
                let what = format!("`{field}` of a job");
                self.eval.sink.error(errors::not_supported(&what, f.expr.span));
            }
        }
        let disturb = self.disturbances();
        if let (Some(f), false) = (self.values.get("disturb"), self.settings.disturbed)
            && disturb.as_ref().is_some_and(|d| !d.is_empty())
        {
            self.eval.sink.error(errors::not_supported("`disturb` outside `parc simulate`", f.expr.span));
        }
        let cluster = self.machines();
        let model = self.instance("model", Kind::Model);
        let layout = self.instance("layout", Kind::Layout);
        let precision = self.record("precision", "bf16_mixed");
        let optimizer = self.record("optimizer", "AdamW");
        let cost = self.cost();
        let mut parameters = Vec::new();
        let mut duties = Vec::new();
        // Given in place of the batch, which follows from it.
        let derived = fields::DERIVED.iter().find_map(|n| self.values.get(*n).cloned().map(|f| (*n, f)));
        let derived = derived.filter(|_| self.field_place("batch").is_none());
        let (seq, before_batch) = (Unit::base(Base::Seq), derived.as_ref().map(|_| 1));
        let batch = self.count("batch", &seq, before_batch, None, &mut parameters);
        let lengths = model.as_ref().and_then(|(m, _)| self.lengths(m, dims, &mut parameters));
        let divisors = batch.map(|b| Domain::counts(self.divisors_of(b), &seq));
        let micro_batch = self.count("micro_batch", &seq, Some(1), divisors, &mut parameters);
        let (cluster, (model, model_span), (layout, _)) = (cluster?, model?, layout?);
        self.one_kind(&cluster, &claims)?;
        let mut evaluated =
            layout::evaluate(&mut self.eval, &layout, &cluster, self.settings, &mut parameters, &mut duties)?;
        let (batch, lengths, micro_batch) = (batch?, lengths?, micro_batch?);
        self.check_settings(&parameters)?;
        let counts = [batch, lengths.sequence, micro_batch];
        let seen = values::names((&evaluated.name, &evaluated.layout), &parameters, counts, self.name.span);
        let length = self.length(seen);
        let passes = self.passes();
        let (precision, optimizer, cost) = (precision?, optimizer?, cost?);
        super::numerics::computable(&mut self.eval, &precision.0, &cluster.device, precision.1)?;
        let numerics = Numerics::new(&mut self.eval, &precision.0, &optimizer.0, precision.1)?;

        if let Some(span) = lengths.several {
            evaluated.layout.later.push(("lengths of several dimensions".into(), span));
        }
        let input = model::data_dims(&model);
        let batch_name = input.iter().find(|(_, d)| *d == DataDim::Batch).map(|(n, _)| n.clone());
        let batch_axes = batch_name.as_ref().map(|n| sharding_axes(&evaluated.layout, n)).unwrap_or_default();
        let other = self.settings.items.contains(&AddedItem::OneForwardOneBackward);
        if let (true, Some(pipeline)) = (other, &mut evaluated.pipeline)
            && let Some(id) = self.eval.program.std_entry("one_f_one_b")
            && let Value::Instance(schedule) = self.eval.entry(id, model_span)
        {
            pipeline.schedule = schedule;
        }
        add_items(&mut evaluated.layout, &self.settings.items, &batch_axes, model_span);
        let counts = Counts { batch, micro_batch, all: None, sequence: lengths.sequence, named: lengths.named };
        if let Some((name, field)) = derived {
            let axes = match evaluated.parts.first() {
                Some(_) => Vec::new(),
                None => batch_axes.iter().map(|a| evaluated.layout.axis(*a).size).collect(),
            };
            self.batch_of(name, &field, micro_batch, &axes);
            return None;
        }
        let (parts, joined) = (std::mem::take(&mut evaluated.parts), evaluated.joined.take());
        let named_model = (&*model, model_span);
        let (ops, placed, pieces) = if parts.is_empty() {
            let borders = evaluated.scopes.iter().flat_map(|(s, _)| s.nested.iter().flatten());
            let borders: Vec<_> = borders.flat_map(crate::layout::Selector::borders).collect();
            let mut placed = self.placed(&mut evaluated, named_model, &counts, &borders, &mut duties)?;
            self.check_selectors(&evaluated.scopes, &placed.ops);
            self.check_named(&evaluated.named, &placed.ops);
            (std::mem::take(&mut placed.ops), placed, Vec::new())
        } else {
            for part in &parts {
                super::numerics::computable(&mut self.eval, &precision.0, &part.cluster.device, precision.1)?;
            }
            let (whole, pieces) = self.place_parts(parts, joined.as_ref(), named_model, &counts)?;
            let first = pieces.first()?.placed();
            let placed = Placed { ops: OpGraph::default(), batch_axes: Vec::new(), ..*first };
            (whole, placed, pieces)
        };
        for c in std::mem::take(&mut self.eval.conditions) {
            let kind = match c.what {
                Demand::Division(a, b) => DutyKind::Division { a, b },
                Demand::Inside(inside) => DutyKind::Inside(inside),
            };
            duties.push(Duty { cond: c.cond, kind, span: c.span });
        }
        if self.eval.sink.error_count() > before {
            return None;
        }
        for (item, env) in evaluated.requires {
            if let ItemKind::Require { cond, message } = &item.kind {
                claims.push(Claim::required(cond, message.clone(), env, item.span));
            }
        }
        let choices = std::mem::take(&mut self.eval.choices);
        let mut met = choices.met;
        met.sort_by_key(|c| (c.span.file, c.span.start));
        let places = self.values.iter().map(|(n, f)| (n.to_string(), f.expr.span)).collect();
        let mut job = Job {
            name: self.name.text.to_string(),
            id,
            cluster,
            layout: evaluated.layout,
            layout_name: evaluated.name,
            pipeline: evaluated.pipeline,
            ops,
            model_name: self.written("model").unwrap_or_else(|| model.decl.name.text.to_string()),
            numerics,
            cost,
            batch,
            sequence: counts.sequence,
            micro_batch,
            replicas: placed.replicas,
            microbatches: placed.microbatches,
            length,
            passes,
            batch_axes: placed.batch_axes,
            parameters,
            point: choices.point,
            duties,
            claims,
            objective,
            disturb: disturb.unwrap_or_default(),
            choices: met,
            readings: choices.readings,
            places,
            span: self.name.span,
            parts: Vec::new(),
            joined,
            leaving: Vec::new(),
        };
        job.parts = pieces.into_iter().map(|piece| piece.job(&job)).collect();
        Some(job)
    }

    /// Says which batch a number of microbatches means.
    fn batch_of(&mut self, name: &str, field: &Field<'p>, micro_batch: expr::Id, replicas: &[expr::Id]) {
        let given = self.eval.eval(field.expr, &field.env, &Wanted::Any).as_int();
        let replicas = self.eval.graph.product(replicas.iter().copied());
        let read = |id| self.eval.graph.eval(&self.eval.choices.point, &[id])[0] as i128;
        let (micro, ranks) = (read(micro_batch), read(replicas));
        self.eval.sink.error(errors::batch_follows(name, given, micro, ranks, field.span));
    }

    /// The divisors of a count, over all values it may have.
    fn divisors_of(&self, count: expr::Id) -> Vec<i64> {
        let listed = self.eval.choices.met.iter().find(|c| c.input == Some(count)).and_then(|c| c.domain.integers());
        let at_point = || vec![self.eval.graph.eval(&self.eval.choices.point, &[count])[0] as i64];
        let mut all: Vec<i64> = listed.unwrap_or_else(at_point).into_iter().flat_map(divisors).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    fn check_settings(&mut self, parameters: &[Parameter]) -> Option<()> {
        for (name, _) in &self.settings.values {
            // What `cluster.` names was looked up with the cluster.
            if !name.starts_with("cluster.")
                && !parameters.iter().any(|p| p.name == *name)
                && !self.lets.iter().any(|l| *l == *name)
            {
                let lets = self.lets.iter().map(ToString::to_string);
                let known: Vec<_> = parameters.iter().map(|p| p.name.clone()).chain(lets).collect();
                self.eval.sink.error(errors::set_unknown(name, &known, self.name.span));
                return None;
            }
        }
        Some(())
    }

    /// Each selector reaches something.
    fn check_selectors(&mut self, scopes: &[(Scope, Span)], ops: &OpGraph) {
        let mut told: Vec<Span> = Vec::new();
        for (scope, span) in scopes {
            if !told.contains(span)
                && let Some(error) = paths::missed(scope, *span, ops)
            {
                self.eval.sink.error(error);
                told.push(*span);
            }
        }
    }

    /// Each value and each kind of operation that a layout names exists where it is named.
    fn check_named(&mut self, named: &[layout::Named], ops: &OpGraph) {
        let path = |region: crate::graph::RegionId| &ops.regions[region.0 as usize].path;
        for n in named {
            let here = |region| n.scope.depth(path(region)).is_some();
            let mut known: Vec<String> = if n.operation {
                ops.ops().filter(|(_, op)| here(op.region)).map(|(_, op)| language_name(&op.kind)).collect()
            } else {
                ops.values.iter().filter(|v| here(v.region) && !v.name.is_empty()).map(|v| v.name.clone()).collect()
            };
            known.sort_unstable();
            known.dedup();
            if !known.contains(&n.name) {
                // Of several that are named together each is meant once.
                let taken = |k: &String| named.iter().any(|o| o.name == *k && o.scope == n.scope);
                let free: Vec<&str> = known.iter().filter(|k| !taken(k)).map(String::as_str).collect();
                self.eval.sink.error(errors::value_unknown(&n.name, n.span, &known, &free));
            }
        }
    }
}

/// The divisors of `n`, least first; of a number beyond 2^40 none.
pub(super) fn divisors(n: i64) -> Vec<i64> {
    if !(1..=1 << 40).contains(&n) {
        return Vec::new();
    }
    let small: Vec<i64> = (1..=n.isqrt()).filter(|d| n % d == 0).collect();
    let large: Vec<i64> = small.iter().rev().map(|d| n / d).filter(|d| n / d != *d).collect();
    small.into_iter().chain(large).collect()
}

/// Adds the items that are being tried.
fn add_items(layout: &mut Layout, items: &[AddedItem], batch_axes: &[AxisId], span: Span) {
    for item in items {
        match item {
            AddedItem::StoreState => {
                layout.stores.push(Store::new(Scope::default(), Class::State, batch_axes.to_vec(), span));
            }
            AddedItem::RecomputeAll | AddedItem::RecomputeOpen => {
                let all = *item == AddedItem::RecomputeAll;
                let what = if all { RecomputeWhat::All } else { RecomputeWhat::Chosen(Vec::new()) };
                layout.recompute.retain(|r| !r.scope.is_everywhere());
                layout.recompute.push(Recompute { scope: Scope::default(), what, span });
            }
            AddedItem::Hold(hold) => {
                layout.stores.iter_mut().filter(|s| s.class == Class::Param).for_each(|s| s.hold = *hold);
            }
            // Changed where the pipeline is at hand.
            AddedItem::OneForwardOneBackward => {}
        }
    }
}
