//! `recompute ?`: the values made again so that every stage fits at the least cost, from predicted times and bytes.
//!
//! The question comes from `partition`, its prices from the cost functions, what is in flight from a run of the schedule;
//! `optimize::recompute` solves it. What comes out is compiled like any other layout, and held to the memory it takes.

use super::{Compiled, UnitCosts};
use crate::expr;
use crate::graph::ValueId;
use crate::optimize::recompute::{Item, Set, Stage, cheapest, front};
use crate::partition::{ShardedGraph, StepId};
use indexmap::IndexMap;

/// What is open in every unit, with prices.
#[derive(Debug)]
pub struct Question {
    units: Vec<Unit>,
}

#[derive(Debug)]
struct Unit {
    items: Vec<Item>,
    /// The value of each item.
    values: Vec<ValueId>,
    /// The sets worth choosing, the quickest first.
    front: Vec<Set>,
    proved: bool,
}

/// What was chosen.
#[derive(Clone, PartialEq, Debug)]
pub struct Chosen {
    /// The values made again, in the order of the model.
    pub values: Vec<ChosenValue>,
    /// Whether no other choice that fits is cheaper, of those that take as much memory as predicted.
    pub proved: bool,
    /// Position of the set chosen in each unit.
    sets: Vec<usize>,
    /// Seconds of what runs again in each unit for one microbatch, copies included.
    seconds: Vec<f64>,
}

/// A value that is made again.
#[derive(Clone, PartialEq, Debug)]
pub struct ChosenValue {
    /// The value.
    pub value: ValueId,
    /// The unit it belongs to.
    pub unit: u32,
    /// Bytes of one microbatch that are not kept.
    pub bytes: f64,
    /// Seconds to make it again for one microbatch, copies of what it is made from apart.
    pub seconds: f64,
}

impl Question {
    /// The question `sharded` leaves open, priced at `point`.
    pub fn new(sharded: &ShardedGraph, costs: &[UnitCosts], graph: &expr::Graph, point: &[f64]) -> Self {
        let units = sharded.units.iter().zip(costs).map(|(unit, costs)| {
            let seconds: IndexMap<StepId, expr::Id> = costs.forward.iter().map(|c| (c.step, c.seconds)).collect();
            let mut items = Vec::new();
            for open in &unit.open {
                let steps = open.steps.as_ref().map(|steps| {
                    let ids: Vec<_> = steps.iter().filter_map(|s| seconds.get(s).copied()).collect();
                    graph.eval(point, &ids).iter().sum()
                });
                items.push(Item {
                    seconds: steps,
                    kept: open.kept.map(|id| graph.eval(point, &[id])[0]),
                    ready: graph.eval(point, &[open.ready])[0],
                    needed: open.needed,
                    from: open.from.clone(),
                });
            }
            let (front, proved) = front(&items);
            Unit { items, values: unit.open.iter().map(|o| o.value).collect(), front, proved }
        });
        Self { units: units.collect() }
    }

    /// The choice that keeps least, whatever it costs.
    pub fn smallest(&self) -> Chosen {
        let least = |unit: &Unit| {
            let by = |a: &(usize, &Set), b: &(usize, &Set)| {
                a.1.kept.total_cmp(&b.1.kept).then(a.1.ready.total_cmp(&b.1.ready))
            };
            unit.front.iter().enumerate().min_by(by).map_or(0, |(i, _)| i)
        };
        self.chosen(self.units.iter().map(least).collect(), true)
    }

    /// The cheapest choice of which every stage of `c`, compiled with `from`, is predicted to fit with `spare` bytes left.
    pub fn answer(&self, c: &Compiled<'_>, from: &Chosen, spare: f64) -> Option<Chosen> {
        let values = |ids: Vec<expr::Id>| c.graph.eval(&c.inputs, &ids);
        let transients = values(c.sharded.units.iter().map(|u| u.transient).collect());
        let sends = values(c.costs.iter().map(|u| u.send_bytes).collect());
        let limit = c.value(c.roots.room) + transients.iter().copied().fold(0.0, f64::max) - spare;
        let before: Vec<&Set> = self.units.iter().zip(&from.sets).map(|(u, i)| &u.front[*i]).collect();
        let stages = c.facts.stages.iter().map(|facts| {
            let v = c.roots.stage_values(&c.graph, &c.inputs, facts);
            let live: Vec<f64> = facts.live.iter().map(|n| *n as f64).collect();
            let counted: f64 = live.iter().zip(&before).map(|(n, set)| n * set.kept).sum();
            let buffers = if c.job.pipeline.is_some() { 2.0 } else { 0.0 };
            let working = (0..self.units.len()).map(|u| {
                let own = transients[u] - before[u].ready + buffers * sends[u];
                (facts.units[u] > 0).then_some(own)
            });
            let rest = v.params + v.gathered + v.grads + v.state + v.activations - counted;
            Stage { room: limit - rest, live, working: working.collect() }
        });
        let stages: Vec<Stage> = stages.collect();
        let fronts: Vec<Vec<Set>> = self.units.iter().map(|u| u.front.clone()).collect();
        // What is not on the critical path is still not free.
        let weights: Vec<f64> = c.facts.path.backward.iter().map(|n| *n as f64 + 1e-3).collect();
        let choice = cheapest(&fronts, &weights, &stages)?;
        Some(self.chosen(choice.sets, choice.proved && self.units.iter().all(|u| u.proved)))
    }

    fn chosen(&self, sets: Vec<usize>, proved: bool) -> Chosen {
        let mut values = Vec::new();
        for (u, (unit, at)) in self.units.iter().zip(&sets).enumerate() {
            let again = unit.front.get(*at).map_or(&[][..], |set| &set.again);
            for i in again.iter().filter(|i| unit.items[**i].kept.is_some()) {
                let item = &unit.items[*i];
                let bytes = item.kept.filter(|_| item.needed).unwrap_or(0.0);
                let seconds = item.seconds.unwrap_or(0.0);
                values.push(ChosenValue { value: unit.values[*i], unit: u as u32, bytes, seconds });
            }
        }
        let seconds = self.units.iter().zip(&sets).map(|(u, at)| u.front.get(*at).map_or(0.0, |set| set.seconds));
        Chosen { values, proved, seconds: seconds.collect(), sets }
    }
}

impl Chosen {
    /// The values, by position among those of the op graph, ascending.
    pub fn positions(&self) -> Vec<u32> {
        let mut all: Vec<_> = self.values.iter().map(|v| v.value.0).collect();
        all.sort_unstable();
        all
    }

    /// Seconds that running again takes of one step, along its critical path, and bytes that it saves on the fullest stage.
    pub fn effect(&self, c: &Compiled<'_>) -> (f64, f64) {
        let seconds = self.seconds.iter().zip(&c.facts.path.backward).map(|(s, n)| s * *n as f64).sum();
        let saved = |facts: &super::StageFacts| -> f64 {
            self.values.iter().map(|v| v.bytes * facts.live[v.unit as usize] as f64).sum()
        };
        (seconds, c.facts.stages.iter().map(saved).fold(0.0, f64::max))
    }
}
