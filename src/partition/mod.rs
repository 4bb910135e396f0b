//! Rules to collectives: every value placed, every reshard derived, forward and backward.
//!
//! In: an [`OpGraph`] and a [`Layout`]. Out: a [`ShardedGraph`]. It manipulates names only and never asks for a
//! size: sizes enter as nodes of the expression graph, with obligations where they must divide.
//!
//! Every step says which tensors it reads and which it writes, and every tensor what it is of and where: the partitioned
//! program can be run, and `tests/it/numeric` does so on small arrays.
//!
//! `rules` gives every value its rule placement, `plan` every op the placements it works on; `forward`,
//! `backward` and `storage` make the steps of each unit, `saved` what is kept between the two passes.
//!
//! What the language leaves open is settled so:
//! - parameters and gradients move in buckets of a unit;
//! - the loss, a scalar, is summed over ranks once an update;
//! - `recompute all` runs the whole of its region again, its last op too, as activation checkpointing does;
//! - a product adds its gradient to one that is there already; any other sum of gradients is a step;
//! - a copy made by an all-to-all is as large as the value: the backward keeps it instead, or beside it;
//! - statistics of a split norm or loss, and ids, are kept for the backward and not counted: a few bytes a row.

mod attention;
mod backward;
mod build;
mod chains;
mod errors;
mod experts;
mod forward;
mod live;
mod open;
mod placement;
mod plan;
mod print;
mod reshard;
mod rules;
mod saved;
mod sizes;
mod storage;
mod types;
mod verify;
mod work;

pub use placement::AxisUse;
pub use print::{Listed, lines, text};
pub use storage::resting;
pub use types::{
    Broken, Bytes, Collective, CollectiveKind, Content, Obligation, Open, Phase, Placement, Purpose, Resting, Saved,
    ShardedGraph, ShardedParam, ShardedUnit, Step, StepId, StepKind, Task, Tensor, TensorId, Work,
};
pub use verify::verify;

use crate::diagnostics::Sink;
use crate::expr;
use crate::graph::{OpGraph, OpId, ValueId, ValueRole};
use crate::layout::{Hold, Layout};
use backward::Gradients;
use build::{Builder, Pass};
use indexmap::{IndexMap, IndexSet};
use live::Term;
use plan::Plan;
use sizes::Sizes;

/// What is fixed from outside instead of by the rules: for comparing with programs that state placements.
#[derive(Clone, Default, Debug)]
pub struct Fixed {
    /// Values and their placements, whatever the rules say.
    pub placements: Vec<(ValueId, Placement)>,
    /// Values whose gradient is given; without any, the backward starts at the losses.
    pub seeds: Vec<ValueId>,
}

/// Partitions `graph` by the rules of `layout`.
pub fn partition(
    graph: &OpGraph,
    layout: &Layout,
    bytes: &Bytes,
    exprs: &mut expr::Graph,
    sink: &mut Sink,
) -> ShardedGraph {
    partition_with(graph, layout, bytes, exprs, sink, &Fixed::default())
}

/// Partitions `graph` by the rules of `layout`, but for what is fixed.
pub fn partition_with(
    graph: &OpGraph,
    layout: &Layout,
    bytes: &Bytes,
    exprs: &mut expr::Graph,
    sink: &mut Sink,
    fixed: &Fixed,
) -> ShardedGraph {
    let wrong = if cfg!(debug_assertions) { crate::graph::verify(graph) } else { Vec::new() };
    debug_assert!(wrong.is_empty(), "the op graph breaks its rules:\n{}", wrong.join("\n"));
    let errors = sink.error_count();
    let mut ruled = rules::place(graph, layout, sink);
    for (value, placement) in &fixed.placements {
        ruled.placements[value.0 as usize] = placement.clone();
    }
    let plan = plan::plan(graph, layout, &ruled, sink);
    carried(graph, &plan, sink);
    let reason = |dim, axis| ruled.reasons.get(&(dim, axis)).copied();
    let rests = storage::rests(graph, layout, &plan.rest, &reason, sink);
    let sizes = Sizes::new(graph, layout, bytes, exprs, ruled.reasons.clone());
    let mut builder = Builder::new(graph, layout, &plan, sizes);
    let units = builder.units(&rests, fixed);
    let Builder { sizes, flow, tensors, .. } = builder;
    let obligations = sizes.obligations;
    let (placements, chains) = (plan.rest.clone(), plan.members.clone());
    let sharded = ShardedGraph { flow, units, placements, tensors, chains, obligations };
    if cfg!(debug_assertions) && sink.error_count() == errors {
        let broken = verify::check(graph, layout, &plan, &sharded);
        debug_assert!(broken.is_empty(), "partition broke its own rules:\n{}", broken.join("\n"));
    }
    sharded
}

/// An iteration must hand a variable on as it received it: the first reads it from before the repeat, the others from
/// the one before.
fn carried(graph: &OpGraph, plan: &Plan, sink: &mut Sink) {
    // By unit and name: what enters, in the order of use.
    let mut entering: IndexMap<(u32, &str), ValueId> = IndexMap::new();
    for (_, op) in graph.ops() {
        for value in &op.inputs {
            let before = graph.producer(*value).is_some_and(|p| graph.flow[p].unit < op.unit);
            if before && graph.units[op.unit as usize].repeated {
                entering.entry((op.unit, graph.value(*value).name.as_str())).or_insert(*value);
            }
        }
    }
    for (_, op) in graph.ops() {
        let leaves = plan.uses[op.output.0 as usize].iter().any(|(user, _)| graph.flow[*user].unit > op.unit);
        let out = graph.value(op.output);
        let Some(enters) = entering.get(&(op.unit, out.name.as_str())).filter(|_| leaves) else { continue };
        let unit = &graph.units[op.unit as usize];
        let (before, after) = (plan.rest(*enters), plan.rest(op.output));
        if graph.value(*enters).dims == out.dims && before != after && unit.count > 1 {
            sink.error(errors::carried_otherwise(out.span, &graph.describe(op.output), &unit.name));
        }
    }
}

/// What one unit has in hand while its steps are made.
struct UnitPart {
    /// Its ops in program order; of a chain, the last.
    ops: Vec<OpId>,
    /// The parameters it uses.
    params: IndexSet<ValueId>,
    unit: ShardedUnit,
}

impl Builder<'_> {
    fn units(&mut self, rests: &[storage::Rest], fixed: &Fixed) -> Vec<ShardedUnit> {
        let mut parts = self.forwards(rests);
        let gradients = self.backwards(&mut parts, rests, fixed);
        self.updates(&mut parts, rests, gradients);
        parts.into_iter().map(|p| p.unit).collect()
    }

    /// The forward of every unit, in order.
    fn forwards(&mut self, rests: &[storage::Rest]) -> Vec<UnitPart> {
        let mut ops = vec![Vec::new(); self.graph.units.len()];
        let mut params = vec![IndexSet::new(); self.graph.units.len()];
        for (id, op) in self.graph.ops() {
            if self.plan.tail[id.index()] == id {
                ops[op.unit as usize].push(id);
            }
            params[op.unit as usize].extend(op.inputs.iter().copied().filter(|v| self.is_param(*v)));
        }
        let boundaries = self.boundaries();
        let mut parts = Vec::new();
        for (at, ((ops, params), boundary)) in ops.into_iter().zip(params).zip(boundaries).enumerate() {
            let unit = at as u32;
            let mut pass = Pass::new(Phase::Forward, unit, false);
            self.gather(&mut pass, &params, rests, |hold| hold != Hold::Step);
            self.forward(&mut pass, &ops);
            let zero = self.sizes.exprs.int(0);
            let unit = ShardedUnit {
                forward: pass.steps,
                backward: Vec::new(),
                update: Vec::new(),
                saved: Vec::new(),
                open: Vec::new(),
                transient: zero,
                late: zero,
                params: Vec::new(),
                boundary,
            };
            parts.push(UnitPart { ops, params, unit });
        }
        parts
    }

    /// The backward of every unit, last first. Hands back each parameter's gradient in every unit that used it.
    fn backwards(&mut self, parts: &mut [UnitPart], rests: &[storage::Rest], fixed: &Fixed) -> ParamGrads {
        let mut grads = Gradients::default();
        let mut seeds = fixed.seeds.clone();
        if seeds.is_empty() {
            // A loss that goes into another is reached from that one.
            let losses = self.graph.ops().map(|(_, op)| op.output);
            let last = |v: &ValueId| self.plan.uses[v.0 as usize].is_empty();
            seeds = losses.filter(|v| self.graph.value(*v).role == ValueRole::Loss && last(v)).collect();
        }
        for seed in &seeds {
            let place = self.plan.rest(*seed).summed();
            let bytes = self.mem(*seed, &place);
            let buffer = Some(grads.live.alloc(bytes));
            let tensor = self.whole(*seed, Content::Gradient, place);
            grads.values.insert(*seed, vec![Term { tensor, buffer }]);
        }
        let mut out = ParamGrads::new();
        if seeds.is_empty() {
            return out;
        }
        for (at, part) in parts.iter_mut().enumerate().rev() {
            let unit = at as u32;
            let kept = self.kept(unit, &part.ops);
            let tensors = kept.saved.iter().filter_map(|s| s.tensor);
            self.saved = tensors.map(|t| ((self.tensors[t.0 as usize].value, self.place(t).clone()), t)).collect();
            let mut pass = Pass::new(Phase::Backward, unit, false);
            self.gather(&mut pass, &part.params, rests, |hold| hold == Hold::Layer);
            // What runs again comes first; its copies are its own, but for those that are kept.
            let mut again = Pass::new(Phase::Backward, unit, true);
            again.made.clone_from(&pass.made);
            self.forward(&mut again, &kept.again);
            pass.steps.extend(again.steps);
            pass.made.extend(again.made);
            let stay = again.copies.into_iter().filter(|(key, _)| self.stays(key.2, key.0, &key.1));
            pass.copies.extend(stay);
            let working = self.backward(&mut pass, &part.ops, &mut grads);
            let remade = kept.remade.iter().map(|(v, p)| self.mem(*v, p)).collect::<Vec<_>>();
            let remade = remade.into_iter().chain(kept.remade_extra);
            let remade = self.sizes.exprs.sum(remade);
            part.unit.transient = self.sizes.exprs.add(remade, working);
            part.unit.saved = kept.saved;
            part.unit.open = kept.open;
            let late = std::mem::take(&mut grads.late);
            part.unit.late = self.sizes.exprs.sum(late.into_values());
            let terms = self.param_terms(&mut pass, &mut grads);
            for (value, gradient) in self.reduce(&mut pass, terms, rests) {
                out.entry(value).or_default().push(gradient);
            }
            part.unit.backward = pass.steps;
        }
        out
    }

    /// What is done once an update, in every unit.
    fn updates(&mut self, parts: &mut [UnitPart], rests: &[storage::Rest], mut grads: ParamGrads) {
        let mut users: IndexMap<ValueId, Vec<u32>> = IndexMap::new();
        for (at, part) in parts.iter().enumerate() {
            for value in &part.params {
                users.entry(*value).or_default().push(at as u32);
            }
        }
        let trains = !grads.is_empty();
        let mut owned: Vec<Vec<ValueId>> = vec![Vec::new(); parts.len()];
        for parameter in &self.graph.params {
            owned[parameter.unit as usize].push(parameter.value);
        }
        for (at, (part, owned)) in parts.iter_mut().zip(owned).enumerate() {
            let unit = at as u32;
            let mut pass = Pass::new(Phase::Update, unit, false);
            self.gather(&mut pass, &part.params, rests, |hold| hold == Hold::Step);
            let mut used = Vec::new();
            for value in &owned {
                if let Some(terms) = grads.shift_remove(value) {
                    used.push((*value, self.over_units(&mut pass, terms)));
                }
            }
            let partial: IndexMap<_, _> = used.iter().map(|(v, g)| (*v, g.partial.clone())).collect();
            let reduced = self.reduce(&mut pass, used, rests);
            let mut gradients: IndexMap<_, _> = reduced.into_iter().map(|(v, g)| (v, g.tensor)).collect();
            let updated = self.after_update(&mut pass, &owned, rests, &mut gradients, trains);
            for (value, (updated, settled)) in updated {
                let rest = &rests[self.param_index(value)];
                let users = users.get(&value).cloned().unwrap_or_default();
                let axes = partial.get(&value).map_or(&[][..], Vec::as_slice);
                let gradient = gradients.get(&value).copied();
                part.unit.params.push(self.sharded_param(value, rest, axes, users, (gradient, updated, settled)));
            }
            self.sum_losses(&mut pass);
            part.unit.update = pass.steps;
        }
    }

    /// For each unit, bytes of activations made in it or before and used after it.
    fn boundaries(&mut self) -> Vec<expr::Id> {
        let mut live = vec![Vec::new(); self.graph.units.len()];
        for (_, op) in self.graph.ops() {
            let users = self.plan.uses[op.output.0 as usize].iter().map(|(user, _)| self.graph.flow[*user].unit);
            let Some(last) = users.max().filter(|last| *last > op.unit) else { continue };
            let place = self.plan.rest(op.output).clone();
            let bytes = self.sizes.wire(op.output, &place);
            for unit in op.unit..last {
                live[unit as usize].push(bytes);
            }
        }
        live.into_iter().map(|bytes| self.sizes.exprs.sum(bytes)).collect()
    }
}

/// By parameter: its gradient in each unit that used it.
type ParamGrads = IndexMap<ValueId, Vec<storage::ParamGrad>>;
