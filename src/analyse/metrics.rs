//! The metrics claims and searches speak of, as nodes of the expression graph.

use super::Schedule;
use super::costs::UnitCosts;
use super::roots::Roots;
use super::stage::Facts;
use crate::elaborate::{Job, Length};
use crate::eval::{Num, Quantity, Truth, Value};
use crate::expr::{self, Graph, Input, Node};
use crate::partition::{ShardedGraph, StepKind, Work};
use crate::units::{Base, Unit};
use smol_str::SmolStr;
use std::rc::Rc;

/// Metrics of one job.
#[derive(Clone, Debug)]
pub struct Metrics {
    /// Name, node and unit.
    pub nodes: Vec<(&'static str, expr::Id, Unit)>,
    /// Whether every stage fits: a Bool node.
    pub fits: expr::Id,
    /// Inputs that the schedule gives: bubble and staleness.
    pub of_schedule: [expr::Id; 2],
    /// Inputs that the simulated run gives: idle over busy time, busy seconds of a rank.
    pub of_run: [expr::Id; 2],
}

impl Metrics {
    /// Builds the metrics of `job` over its roots.
    pub fn new(
        job: &Job<'_>,
        sharded: &ShardedGraph,
        costs: &[UnitCosts],
        roots: &Roots,
        peak: f64,
        graph: &mut Graph,
    ) -> Self {
        let share = |graph: &mut Graph, name: &str| {
            graph.input(Input { name: name.to_string(), kind: expr::Kind::Real, lo: 0.0, hi: 1e12 })
        };
        let (bubble, idle, busy) =
            (share(graph, "schedule.bubble"), share(graph, "run.idle"), share(graph, "run.busy"));
        let staleness = share(graph, "schedule.staleness");
        let delay = graph.real(job.layout.update.as_ref().map_or(0, |u| u.delay) as f64);
        let age = graph.add(staleness, delay);
        let usable = graph.real(job.cluster.device_field("usable"));
        let fits = graph.le(roots.peak_memory, usable);
        let host = graph.real(job.cluster.host_memory());
        let host = graph.le(roots.host_memory, host);
        let fits = graph.and(fits, host);
        let params = counted(job.ops.params(graph, &|_| true), graph);
        let active = counted(job.ops.params_active(graph, &|_| true), graph);
        let devices = graph.int(job.cluster.devices);
        let again = recomputed(job, sharded, costs, graph);
        let flops = graph.add(roots.flops, again);
        let rate = graph.real(peak * job.cluster.devices as f64);
        let offered = graph.mul(roots.step_time, rate);
        let hfu = graph.div(flops, offered);
        // Of the whole job where its length is given, else of an update.
        let updates = updates(job, graph);
        let total_time = graph.mul(roots.step_time, updates);
        let price = graph.mul(roots.price, updates);
        let energy_step = energy(job, roots, busy, graph);
        let energy = graph.mul(energy_step, updates);
        let tokens = graph.mul(job.batch, job.sequence);
        let tokens = graph.to_real(tokens);
        let price_per_token = graph.div(roots.price, tokens);
        let (time, ratio, tok) = (Unit::time(), Unit::none(), Unit::base(Base::Tok));
        let nodes = vec![
            ("step_time", roots.step_time, time.clone()),
            ("tokens_per_s", roots.tokens_per_s, tok.div(&time)),
            ("flops", roots.flops, Unit::flop()),
            ("mfu", roots.mfu, ratio.clone()),
            ("hfu", hfu, ratio.clone()),
            ("peak_memory", roots.peak_memory, Unit::bytes()),
            ("host_memory", roots.host_memory, Unit::bytes()),
            ("bubble", bubble, ratio.clone()),
            ("idle", idle, ratio.clone()),
            ("staleness", age, Unit::base(Base::Step)),
            ("microbatches", job.microbatches, ratio.clone()),
            ("accumulation", job.microbatches, ratio.clone()),
            ("params", params, ratio.clone()),
            ("params_active", active, ratio.clone()),
            ("params_trainable", params, ratio.clone()),
            ("price", price, Unit::base(Base::Dollar)),
            ("price_per_token", price_per_token, Unit::base(Base::Dollar).div(&tok)),
            ("total_time", total_time, time),
            ("energy", energy, Unit::base(Base::Joule)),
            ("devices", devices, ratio),
        ];
        Self { nodes, fits, of_schedule: [bubble, staleness], of_run: [idle, busy] }
    }

    /// Fills in what the schedule and its run give.
    pub fn put(&self, graph: &Graph, schedule: &Schedule, facts: &Facts, inputs: &mut [f64]) {
        let busy: f64 = facts.run.busy.iter().sum();
        let idle: f64 = facts.run.idle.iter().sum();
        let ratio = if busy > 0.0 { idle / busy } else { 0.0 };
        let share = busy / facts.run.busy.len().max(1) as f64;
        let ids = self.of_schedule.into_iter().chain(self.of_run);
        for (id, value) in ids.zip([schedule.bubble, f64::from(schedule.staleness), ratio, share]) {
            if let Node::Input(i) = graph.node(id) {
                inputs[i.0 as usize] = value;
            }
        }
    }

    /// The names every claim and objective sees: metrics, the layout's parameters and axes, device and job fields.
    pub fn names<'p>(&self, job: &Job<'p>) -> Vec<(SmolStr, Value<'p>)> {
        let symbol = |id, unit: &Unit| Value::Num(Quantity { num: Num::Sym(id), unit: unit.clone() });
        let mut vars: Vec<_> = self.nodes.iter().map(|(n, id, u)| (SmolStr::new_static(n), symbol(*id, u))).collect();
        vars.push(("fits".into(), Value::Bool(Truth::Sym(self.fits))));
        vars.push(("device".into(), Value::Record(Rc::clone(&job.cluster.device))));
        vars.extend(job.cluster.host().map(|(host, _)| ("host".into(), Value::Record(Rc::clone(host)))));
        vars.extend(job.names());
        vars
    }
}

/// A count of parameters as a node.
fn counted(count: u64, graph: &mut Graph) -> expr::Id {
    graph.real(count as f64)
}

/// FLOP of contractions and attention that run a second time, in an update on all devices.
fn recomputed(job: &Job<'_>, sharded: &ShardedGraph, costs: &[UnitCosts], graph: &mut Graph) -> expr::Id {
    let mut terms = Vec::new();
    for (unit, costs) in job.ops.units.iter().zip(costs) {
        for cost in costs.backward.iter().filter(|s| s.recomputed) {
            let StepKind::Compute { work, .. } = &sharded.flow[cost.step].kind else { continue };
            let (times, factors, widths) = match work {
                Work::Matmul { m, n, k, batch } => (2.0, vec![*m, *n, *k, *batch], None),
                Work::Attention { q, kv, heads, d_qk, d_v, batch, pairs, .. } => {
                    (2.0, vec![*q, *kv, *heads, *batch, *pairs], Some((*d_qk, *d_v)))
                }
                Work::Elementwise { .. } => continue,
            };
            let mut factors: Vec<_> = factors.into_iter().map(|f| graph.to_real(f)).collect();
            if let Some((a, b)) = widths {
                let width = graph.add(a, b);
                factors.push(graph.to_real(width));
            }
            factors.push(graph.real(times * unit.count as f64));
            terms.push(graph.product(factors));
        }
    }
    let each = graph.sum(terms);
    let stages = match &job.pipeline {
        Some(p) => job.layout.axis(p.axis).size,
        None => graph.int(1),
    };
    let devices = graph.real(job.cluster.devices as f64);
    let ranks = graph.div(devices, stages);
    let all = graph.mul(each, ranks);
    let m = graph.to_real(job.microbatches);
    graph.mul(all, m)
}

/// Updates of the whole job; 1 where no length is given.
fn updates(job: &Job<'_>, graph: &mut Graph) -> expr::Id {
    let (batch, sequence) = (graph.to_real(job.batch), graph.to_real(job.sequence));
    match job.length {
        None => graph.real(1.0),
        Some(Length::Steps(n)) => graph.real(n),
        Some(Length::Curve(n)) => n,
        Some(Length::Samples(n)) => {
            let n = graph.real(n);
            graph.div(n, batch)
        }
        Some(Length::Tokens(n)) => {
            let n = graph.real(n);
            let each = graph.mul(batch, sequence);
            graph.div(n, each)
        }
    }
}

/// Energy of an update: every device idles at its idle power and adds the rest while it is busy.
fn energy(job: &Job<'_>, roots: &Roots, busy: expr::Id, graph: &mut Graph) -> expr::Id {
    let (power, idle) = (job.cluster.device_field("power"), job.cluster.device_field("idle_power"));
    let devices = job.cluster.devices as f64;
    let rest = graph.real(idle * devices);
    let rest = graph.mul(roots.step_time, rest);
    // The update keeps every rank busy.
    let update = graph.sub(roots.step_time, roots.pipeline_time);
    let working = graph.add(busy, update);
    let more = graph.real((power - idle).max(0.0) * devices);
    let more = graph.mul(working, more);
    graph.add(rest, more)
}
