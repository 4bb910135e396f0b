//! What each step costs: the job's cost functions, inlined over symbolic sizes.

mod collectives;

use super::compute::compute_record;
use super::{errors, group, tiers};
use crate::diagnostics::Diagnostic;
use crate::elaborate::Job;
use crate::eval::{Closure, Demand, Env, Evaluator, Instance, Num, Quantity, Truth, Value};
use crate::expr;
use crate::graph::{OpKind, RegionId};
use crate::layout::{AxisId, Comm, Tier};
use crate::limits;
use crate::partition::{Phase, Purpose, ShardedGraph, StepId, StepKind, Work};
use crate::syntax::ast::{Body, ItemKind};
use crate::units::Unit;
use indexmap::IndexMap;
use smol_str::SmolStr;
use std::rc::Rc;

/// What a step's time is spent on, for the report.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Category {
    /// Contractions.
    Matmul,
    /// Fused attention.
    Attention,
    /// Memory-bound work.
    Elementwise,
    /// A collective over these axes.
    Comm(Vec<AxisId>, Purpose),
}

/// One step and its time.
#[derive(Clone, Debug)]
pub struct StepCost {
    /// The step.
    pub step: StepId,
    /// The region it belongs to.
    pub region: RegionId,
    /// Seconds, nothing hidden.
    pub seconds: expr::Id,
    /// What it is spent on.
    pub category: Category,
    /// Whether it runs again because its result was not saved.
    pub recomputed: bool,
}

/// One unit's times, seconds on one rank.
#[derive(Clone, Debug)]
pub struct UnitCosts {
    /// Steps of a forward.
    pub forward: Vec<StepCost>,
    /// Steps of a backward.
    pub backward: Vec<StepCost>,
    /// Steps of an update.
    pub update: Vec<StepCost>,
    /// One forward, exposed communication included.
    pub f: expr::Id,
    /// One backward, exposed communication and recomputation included; without `w`.
    pub b: expr::Id,
    /// What makes the gradients of parameters, where the schedule runs it as an operation of its own; else 0.
    pub w: expr::Id,
    /// Exposed communication in `f`, `b` and `w`.
    pub comm: [expr::Id; 3],
    /// Parameter gathers hidden behind a forward's compute.
    pub hidden_f: expr::Id,
    /// Gathers and reductions hidden behind a backward's compute.
    pub hidden_b: expr::Id,
    /// Gradient reductions of an update that the layout overlaps.
    pub reduce: expr::Id,
    /// Parameter gathers of an update that the layout overlaps.
    pub gather: expr::Id,
    /// Collectives of an update that nothing overlaps.
    pub bare: expr::Id,
    /// The sum of a tied parameter's gradient between the two ranks that keep it.
    pub tied: expr::Id,
    /// The sum of all its gradients between two ranks, where a schedule keeps the unit on both.
    pub twice: expr::Id,
    /// The message to the next unit's rank.
    pub send: expr::Id,
    /// Bytes of that message.
    pub send_bytes: expr::Id,
    /// What parameters and activations that rest elsewhere or in another format add to a forward and a backward.
    pub copied: [expr::Id; 2],
    /// Copies to the device in an update, and from it, seconds, nothing hidden.
    pub moved: [expr::Id; 2],
    /// Bytes a host that runs the update reads from drives and writes back.
    pub drives: Vec<(Tier, expr::Id)>,
}

/// One phase of a unit, seconds.
pub(super) struct PhaseCost {
    /// Exposed communication included.
    pub(super) seconds: expr::Id,
    /// Compute alone.
    pub(super) compute: expr::Id,
    /// Communication hidden behind compute.
    pub(super) hidden: expr::Id,
    /// Communication that is not.
    pub(super) comm: expr::Id,
}

/// Calls the job's cost functions.
pub struct Costs<'p, 'j, 'e, 's> {
    pub(super) eval: &'e mut Evaluator<'p, 's>,
    pub(super) job: &'j Job<'p>,
    device: Value<'p>,
    compute: Value<'p>,
    groups: IndexMap<Vec<AxisId>, Value<'p>>,
    memo: IndexMap<(SmolStr, Vec<expr::Id>), expr::Id>,
    /// Whether gradients of parameters are made by operations of their own.
    split: bool,
    failed: bool,
}

impl<'p, 'j, 'e, 's> Costs<'p, 'j, 'e, 's> {
    /// A caller for `job`, whose schedule makes gradients of parameters in operations of their own or not (`split`);
    /// `None` if its device has no peak for its number formats.
    pub fn new(eval: &'e mut Evaluator<'p, 's>, job: &'j Job<'p>, split: bool) -> Option<Self> {
        let compute = compute_record(eval, job)?;
        let device = Value::Record(Rc::clone(&job.cluster.device));
        let (groups, memo) = (IndexMap::new(), IndexMap::new());
        Some(Self { eval, job, device, compute, groups, memo, split, failed: false })
    }

    /// The graph the costs go into.
    pub fn graph(&mut self) -> &mut expr::Graph {
        self.eval.graph
    }

    /// Whether a cost function failed; it was reported.
    pub fn failed(&self) -> bool {
        self.failed
    }

    /// Costs of every unit; `None` if a cost function failed and was reported.
    pub fn units(&mut self, sharded: &ShardedGraph) -> Option<Vec<UnitCosts>> {
        let units = (0..sharded.units.len()).map(|u| self.unit(sharded, u)).collect();
        if self.failed { None } else { Some(units) }
    }

    fn unit(&mut self, sharded: &ShardedGraph, u: usize) -> UnitCosts {
        let unit = &sharded.units[u];
        let (forward, backward, update) = (
            self.steps(sharded, &unit.forward),
            self.steps(sharded, &unit.backward),
            self.steps(sharded, &unit.update),
        );
        let late = |c: &&StepCost| self.split && sharded.flow[c.step].weight;
        let (weight, input): (Vec<&StepCost>, Vec<&StepCost>) = backward.iter().partition(late);
        let [f, b, w] = [
            self.exposed(sharded, &forward.iter().collect::<Vec<_>>(), Phase::Forward),
            self.exposed(sharded, &input, Phase::Backward),
            self.exposed(sharded, &weight, Phase::Backward),
        ];
        let hidden_b = self.eval.graph.add(b.hidden, w.hidden);
        let copies = tiers::copies(self.job, sharded, u, self.eval.graph);
        let (f, copied_f) = self.with_copies(f, &copies, Phase::Forward);
        let (b, copied_b) = self.with_copies(b, &copies, Phase::Backward);
        let moved = [tiers::seconds(self, &copies.fetch[2], true), tiers::seconds(self, &copies.evict[2], false)];
        let (mut reduce, mut gather, mut bare) = (Vec::new(), Vec::new(), Vec::new());
        for c in &update {
            match &c.category {
                Category::Comm(axes, p) if hides(self.job, *p, axes, c.region, Phase::Update).is_none() => {
                    bare.push(c.seconds);
                }
                Category::Comm(_, Purpose::ReduceGrad) => reduce.push(c.seconds),
                Category::Comm(_, Purpose::GatherParam) => gather.push(c.seconds),
                _ => bare.push(c.seconds),
            }
        }
        let (reduce, gather, bare) = (self.real_sum(&reduce), self.real_sum(&gather), self.real_sum(&bare));
        let tied = self.tied(sharded, u);
        let own = unit.params.iter().map(|p| p.rest_state).collect();
        let twice = self.between_two(own);
        let (send, send_bytes) = self.send(unit.boundary);
        UnitCosts {
            forward,
            backward,
            update,
            f: f.seconds,
            b: b.seconds,
            w: w.seconds,
            comm: [f.comm, b.comm, w.comm],
            hidden_f: f.hidden,
            hidden_b,
            reduce,
            gather,
            bare,
            tied,
            twice,
            send,
            send_bytes,
            copied: [copied_f, copied_b],
            moved,
            drives: copies.drives,
        }
    }

    /// A parameter used on two stages rests on both: its gradient is summed between them once a step, as it rests.
    fn tied(&mut self, sharded: &ShardedGraph, user: usize) -> expr::Id {
        let uses = |p: &&crate::partition::ShardedParam| p.users.contains(&(user as u32));
        let others = sharded.units.iter().enumerate().filter(|(owner, _)| *owner != user);
        let elements: Vec<_> = others.flat_map(|(_, u)| u.params.iter().filter(uses)).map(|p| p.rest_state).collect();
        self.between_two(elements)
    }

    /// The all-reduce of gradients of so many elements between two ranks of the pipeline.
    fn between_two(&mut self, elements: Vec<expr::Id>) -> expr::Id {
        let zero = self.eval.graph.real(0.0);
        let Some(pipeline) = &self.job.pipeline else { return zero };
        if elements.is_empty() {
            return zero;
        }
        let axis = pipeline.axis;
        let elements = self.eval.graph.sum(elements);
        let width = self.eval.graph.real(self.job.numerics.bytes("reduce"));
        let bytes = self.eval.graph.mul(elements, width);
        // Two ranks of the pipeline's group, on its links.
        let mut pair = match self.group(&[axis]) {
            Value::Record(r) => (*r).clone(),
            other => return if let Value::Num(q) = other { self.eval.node(q.num) } else { zero },
        };
        let ranks = self.group_size(&[axis]);
        let two = self.eval.graph.int(2);
        let size = self.eval.graph.min(ranks, two);
        pair.fields.insert("size".into(), Value::sym(size, Unit::none()));
        self.call("all_reduce", vec![bytes, size, two], vec![group::bytes(bytes), Value::Record(Rc::new(pair))])
    }

    pub(super) fn real_sum(&mut self, terms: &[expr::Id]) -> expr::Id {
        let sum = self.eval.graph.sum(terms.iter().copied());
        self.eval.graph.to_real(sum)
    }

    fn steps(&mut self, sharded: &ShardedGraph, steps: &[StepId]) -> Vec<StepCost> {
        let mut out = Vec::with_capacity(steps.len());
        for id in steps {
            let step = &sharded.flow[*id];
            let (seconds, category) = match &step.kind {
                StepKind::Free { .. } => continue,
                StepKind::Compute { op, work, .. } => {
                    let category = match (work, &self.job.ops.flow[*op].kind) {
                        (Work::Matmul { .. }, _) => Category::Matmul,
                        (Work::Attention { .. }, _) | (_, OpKind::Attention(_)) => Category::Attention,
                        (Work::Elementwise { .. }, _) => Category::Elementwise,
                    };
                    (self.work(work), category)
                }
                StepKind::Collective(c) => {
                    (self.collective(c, step.region), Category::Comm(c.axes.to_vec(), c.purpose))
                }
            };
            out.push(StepCost { step: *id, region: step.region, seconds, category, recomputed: step.recomputed });
        }
        out
    }

    /// Time of a phase with what hides behind its compute taken off, and how much that is.
    ///
    /// Every collective adds its whole time unless the layout overlaps it. What is overlapped may hide behind the
    /// phase's compute, up to the stated share of it. The host issues the steps one after another, ahead of the device:
    /// a phase of many small steps takes as long as issuing them.
    fn exposed(&mut self, sharded: &ShardedGraph, steps: &[&StepCost], phase: Phase) -> PhaseCost {
        let mut busy = Vec::new();
        let mut compute = Vec::new();
        let mut hideable = Vec::new();
        let mut limit: f64 = 0.0;
        for c in steps {
            busy.push(c.seconds);
            match &sharded.flow[c.step].kind {
                StepKind::Compute { .. } | StepKind::Free { .. } => compute.push(c.seconds),
                StepKind::Collective(x) => {
                    if let Some(share) = hides(self.job, x.purpose, &x.axes, c.region, phase) {
                        hideable.push(c.seconds);
                        limit = limit.max(share);
                    }
                }
            }
        }
        let issued = self.issued(busy.len());
        let busy = self.real_sum(&busy);
        if hideable.is_empty() {
            let zero = self.eval.graph.real(0.0);
            let compute = self.real_sum(&compute);
            let comm = self.eval.graph.sub(busy, compute);
            return PhaseCost { seconds: self.eval.graph.max(busy, issued), compute, hidden: zero, comm };
        }
        let hideable = self.real_sum(&hideable);
        let compute = self.real_sum(&compute);
        let share = self.eval.graph.real(limit);
        let room = self.eval.graph.mul(compute, share);
        let hidden = self.eval.graph.min(hideable, room);
        let exposed = self.eval.graph.sub(busy, hidden);
        let comm = self.eval.graph.sub(exposed, compute);
        PhaseCost { seconds: self.eval.graph.max(exposed, issued), compute, hidden, comm }
    }

    /// Time the host needs to issue so many steps.
    fn issued(&mut self, steps: usize) -> expr::Id {
        let each = self.call("issue", Vec::new(), vec![self.device.clone()]);
        let steps = self.eval.graph.real(steps as f64);
        self.eval.graph.mul(each, steps)
    }

    /// Reports every cost function that gives, at `point`, what is no time or no size: below zero or beyond all bounds.
    pub fn check(&mut self, point: &[f64]) -> bool {
        let ids: Vec<_> = self.memo.values().copied().collect();
        let found = self.eval.graph.eval(point, &ids);
        let mut told: Vec<&SmolStr> = Vec::new();
        for ((name, _), value) in self.memo.keys().zip(found) {
            if (0.0..=limits::MAGNITUDE as f64).contains(&value) || told.contains(&name) {
                continue;
            }
            told.push(name);
            let job = self.job.places.get("cost").copied().unwrap_or(self.job.span);
            let span = self.function(name).map_or(job, |f| f.decl.name.span);
            let unit = if name == "held" { Unit::bytes() } else { Unit::time() };
            self.eval.sink.error(errors::cost_absurd(name, value, &unit, &self.job.name, span));
        }
        let fair = told.is_empty();
        let sound = self.demands(point);
        fair && sound
    }

    /// Reports what a cost function demands of its arguments and does not get at `point`.
    fn demands(&mut self, point: &[f64]) -> bool {
        let mut sound = true;
        for c in std::mem::take(&mut self.eval.conditions) {
            let read = |eval: &Evaluator<'_, '_>, id| eval.graph.eval(point, &[id])[0];
            if read(self.eval, c.cond) != 0.0 {
                continue;
            }
            let said = match &c.what {
                Demand::Division(a, b) => {
                    let (a, b) = (read(self.eval, *a), read(self.eval, *b));
                    crate::eval::errors::inexact(a as i128, b as i128, c.span)
                }
                Demand::Inside(inside) => {
                    let said = inside.said(read(self.eval, inside.key()), c.span);
                    if !inside.is_error() {
                        self.eval.sink.warn(said.note(format!("met in job `{}`", self.job.name)));
                        continue;
                    }
                    said
                }
            };
            self.eval.sink.error(said.note(format!("met in job `{}`", self.job.name)));
            sound = false;
        }
        sound
    }

    /// What every cost function gave, each value once.
    pub fn values(&self) -> Vec<expr::Id> {
        self.memo.values().copied().collect()
    }

    fn work(&mut self, work: &Work) -> expr::Id {
        let int = |id: &expr::Id| Value::sym(*id, Unit::none());
        match work {
            Work::Matmul { m, n, k, batch } => {
                let args = vec![int(m), int(n), int(k), int(batch), self.device.clone(), self.compute.clone()];
                self.call("matmul", vec![*m, *n, *k, *batch], args)
            }
            Work::Attention { q, kv, heads, kv_heads, d_qk, d_v, batch, pairs, backward } => {
                let key = [*q, *kv, *heads, *kv_heads, *d_qk, *d_v, *batch];
                let mut args: Vec<_> = key.iter().map(int).collect();
                let known = self.eval.graph.as_real(*pairs);
                args.push(known.map_or(Value::sym(*pairs, Unit::none()), |x| Value::real(x, Unit::none())));
                args.push(Value::Bool(Truth::Known(*backward)));
                args.push(self.device.clone());
                args.push(self.compute.clone());
                let mut key = key.to_vec();
                key.push(*pairs);
                key.push(self.eval.graph.bool(*backward));
                self.call("attention", key, args)
            }
            Work::Elementwise { read, write, flops } => self.elementwise(*read, *write, *flops),
        }
    }

    /// Memory-bound work: bytes read and written, FLOP.
    pub fn elementwise(&mut self, read: expr::Id, write: expr::Id, flops: expr::Id) -> expr::Id {
        let work = Value::Num(Quantity { num: Num::Sym(flops), unit: Unit::flop() });
        let args = vec![group::bytes(read), group::bytes(write), work, self.device.clone()];
        self.call("elementwise", vec![read, write, flops], args)
    }

    /// What a cost function without arguments says, bytes for each element: see [`constant`].
    pub fn constant(&mut self, name: &str) -> f64 {
        let said = constant(self.eval, self.job, name);
        self.failed |= said.is_none();
        said.unwrap_or(0.0)
    }

    /// What the allocator holds for `live` bytes.
    pub fn held(&mut self, live: expr::Id) -> expr::Id {
        let args = vec![group::bytes(live), self.device.clone()];
        self.call("held", vec![live], args)
    }

    pub(super) fn call(&mut self, name: impl Into<SmolStr>, key: Vec<expr::Id>, args: Vec<Value<'p>>) -> expr::Id {
        let key = (name.into(), key);
        if let Some(id) = self.memo.get(&key) {
            return *id;
        }
        let name = &key.0;
        let id = match self.function(name) {
            Some(f) => {
                let span = self.job.places.get("cost").copied().unwrap_or(self.job.span);
                match self.eval.invoke(&f, args, span) {
                    Value::Num(q) => {
                        let node = self.eval.node(q.num);
                        self.eval.graph.to_real(node)
                    }
                    _ => {
                        self.failed = true;
                        self.eval.graph.real(0.0)
                    }
                }
            }
            None => {
                let span = self.job.places.get("cost").copied().unwrap_or(self.job.span);
                self.eval.sink.error(errors::cost_missing(name, span));
                self.failed = true;
                self.eval.graph.real(0.0)
            }
        };
        self.memo.insert(key, id);
        id
    }

    /// Says what is wrong with a cost, so that nothing is planned.
    fn refuse(&mut self, what: Diagnostic) {
        self.eval.sink.error(what);
        self.failed = true;
    }

    /// Names of every cost function there is.
    fn functions(&self) -> impl Iterator<Item = &'p str> {
        let blocks =
            self.job.cost.iter().filter_map(|c| if let Body::Block(b) = &c.decl.body { Some(b) } else { None });
        blocks.flat_map(|b| &b.items).filter_map(|i| match &i.kind {
            ItemKind::Decl(d) => Some(d.name.text.as_str()),
            _ => None,
        })
    }

    /// The cost function `name`: of the job's record, its `with` blocks first, then of the default.
    fn function(&self, name: &str) -> Option<Closure<'p>> {
        self.job.cost.iter().find_map(|c| find_function(c, name))
    }
}

/// The known number that the cost function `name`, which has no arguments, gives: bytes that a kernel or a framework
/// holds for an element beside what the graph counts. `None` if it gives none, which is reported.
pub fn constant<'p>(eval: &mut Evaluator<'p, '_>, job: &Job<'p>, name: &str) -> Option<f64> {
    let f = job.cost.iter().find_map(|c| find_function(c, name))?;
    let span = job.places.get("cost").copied().unwrap_or(job.span);
    let said = eval.invoke(&f, Vec::new(), span);
    match said.as_f64() {
        Some(x) if (0.0..=limits::MAGNITUDE as f64).contains(&x) => Some(x),
        _ => {
            eval.sink.error(errors::constant_cost(name, f.decl.name.span));
            None
        }
    }
}

/// The function `name` of a cost or schedule, the newest `with` first.
pub(crate) fn find_function<'p>(instance: &Instance<'p>, name: &str) -> Option<Closure<'p>> {
    let Body::Block(block) = &instance.decl.body else { return None };
    let own = (block, Env::top(instance.id.module));
    let blocks = instance.with.iter().rev().map(|g| (g.block, Rc::clone(&g.env))).chain(std::iter::once(own));
    for (block, env) in blocks {
        for item in &block.items {
            if let ItemKind::Decl(d) = &item.kind
                && d.name.text == name
            {
                return Some(Closure { decl: d, env });
            }
        }
    }
    None
}

/// Whether the layout overlaps a step of `phase`.
pub fn overlapped(job: &Job<'_>, step: &StepCost, phase: Phase) -> bool {
    match &step.category {
        Category::Comm(axes, purpose) => hides(job, *purpose, axes, step.region, phase).is_some(),
        Category::Matmul | Category::Attention | Category::Elementwise => false,
    }
}

/// The share of a phase's compute that a collective may hide behind; none where nothing overlaps it.
pub fn hides(job: &Job<'_>, purpose: Purpose, axes: &[AxisId], region: RegionId, phase: Phase) -> Option<f64> {
    let path = &job.ops.regions[region.0 as usize].path;
    let comm = match purpose {
        Purpose::GatherParam => Comm::Gather,
        Purpose::ReduceGrad => Comm::Reduce,
        Purpose::Reshard | Purpose::Statistics | Purpose::Dispatch | Purpose::Combine => return None,
    };
    let covers = |o: &&crate::layout::Overlap| {
        let phase_fits = match phase {
            Phase::Forward => o.forward,
            Phase::Backward => o.backward,
            // What an update sends hides behind the forward after it or the backward before it.
            Phase::Update => o.forward || o.backward,
        };
        o.comm == comm
            && phase_fits
            && o.scope.depth(path).is_some()
            && (o.axes.is_empty() || axes.iter().all(|a| o.axes.contains(a)))
    };
    job.layout.overlaps.iter().find(covers).map(|o| o.limit)
}
