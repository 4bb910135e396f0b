//! What each pipeline rank holds at the point, and what lies on the critical path: counts, no sizes.
//!
//! The model's units are cut into chunks, the schedule is simulated with the predicted times, and what comes out is
//! whole numbers. They are inputs of the expression graph ([`super::roots`]), so time and memory stay expressions.

use super::costs::UnitCosts;
use super::errors;
use super::schedule::Schedule;
use crate::diagnostics::Sink;
use crate::elaborate::{Job, Split};
use crate::expr;
use crate::partition::ShardedGraph;
use crate::pipeline::split::{self, Chunk, UnitRun};
use crate::pipeline::{self, Durations, Messages, OpKind, Run, Weights};

/// Counts of one pipeline rank.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StageFacts {
    /// How many of each unit rest on it.
    pub units: Vec<i64>,
    /// How many activations of each unit are alive at its fullest moment.
    pub live: Vec<i64>,
    /// How many of each unit wait for their gradients of parameters then.
    pub late: Vec<i64>,
    /// Whether it keeps a copy of a parameter another rank owns, by unit that uses it.
    pub copies: Vec<i64>,
    /// How many of each unit another rank keeps too.
    pub twice: Vec<i64>,
    /// How often it runs each unit forward in a step.
    pub runs: Vec<i64>,
    /// Versions of its weights beyond the one in use.
    pub versions: i64,
    /// Microbatches in flight at most, counting chunks apart.
    pub in_flight: i64,
}

/// Everything counted at one point.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Pipeline ranks.
    pub stages: Vec<StageFacts>,
    /// Chunks in model order, with the rank that hosts each.
    pub chunks: Vec<(Chunk, u32)>,
    /// Forwards, backwards, and messages each way of each unit on the critical path.
    pub path: PathFacts,
    /// The simulated run, for the report.
    pub run: Run,
    /// What ranks run, in order.
    pub orders: pipeline::Schedule,
    /// How long it takes, by chunk.
    pub durations: Durations,
    /// Bytes of one microbatch by chunk: saved for the backward, and kept for gradients of parameters.
    pub bytes: [Vec<f64>; 2],
}

/// Counts along the critical path, by unit.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct PathFacts {
    /// Forwards of each unit.
    pub forward: Vec<i64>,
    /// Backwards of each unit.
    pub backward: Vec<i64>,
    /// Weight gradients of each unit.
    pub weight: Vec<i64>,
    /// Messages sent forward after each unit.
    pub send_forward: Vec<i64>,
    /// Messages sent backward after each unit.
    pub send_backward: Vec<i64>,
    /// Seconds that operations issued together save.
    pub saved: f64,
}

/// Times and bytes of the units at the point.
#[derive(Clone, Debug)]
pub struct UnitValues {
    /// Seconds of a forward.
    pub f: Vec<f64>,
    /// Seconds of a backward.
    pub b: Vec<f64>,
    /// Seconds of a weight gradient, where it is an operation of its own.
    pub w: Vec<f64>,
    /// Exposed communication in each of the three.
    pub comm: [Vec<f64>; 3],
    /// Seconds of a message.
    pub send: Vec<f64>,
    /// Bytes saved for the backward.
    pub saved: Vec<f64>,
    /// Bytes kept from the backward for the weight gradient.
    pub late: Vec<f64>,
    /// Bytes at rest: parameters, gradients, optimizer state.
    pub rest: Vec<f64>,
    /// Bytes that what rests and what is saved may take on a rank.
    pub room: f64,
}

impl UnitValues {
    /// The nodes it is made of, unit after unit in each list, the room last.
    pub fn nodes(costs: &[UnitCosts], roots: &super::Roots) -> Vec<expr::Id> {
        let of = |read: fn(&UnitCosts) -> expr::Id| costs.iter().map(read);
        let times = of(|c| c.f).chain(of(|c| c.b)).chain(of(|c| c.w));
        let comm = of(|c| c.comm[0]).chain(of(|c| c.comm[1])).chain(of(|c| c.comm[2]));
        let bytes = roots.saved.iter().chain(&roots.late).chain(&roots.rest).copied();
        times.chain(comm).chain(of(|c| c.send)).chain(bytes).chain([roots.room]).collect()
    }

    /// From the values of [`Self::nodes`].
    pub fn read(values: &[f64]) -> Self {
        let units = values.len() / 10;
        let list = |k: usize| values[k * units..(k + 1) * units].to_vec();
        Self {
            f: list(0),
            b: list(1),
            w: list(2),
            comm: [list(3), list(4), list(5)],
            send: list(6),
            saved: list(7),
            late: list(8),
            rest: list(9),
            room: values[10 * units],
        }
    }

    /// Reads them off the graph at `inputs`.
    pub fn at(graph: &expr::Graph, inputs: &[f64], costs: &[UnitCosts], roots: &super::Roots) -> Self {
        Self::read(&graph.eval(inputs, &Self::nodes(costs, roots)))
    }

    /// No costs: for what can be cut without.
    pub fn none(units: usize) -> Self {
        let zero = || vec![0.0; units];
        let comm = [zero(), zero(), zero()];
        let (rest, room) = (zero(), f64::MAX);
        Self { f: zero(), b: zero(), w: zero(), comm, send: zero(), saved: zero(), late: zero(), rest, room }
    }
}

/// Cuts the model into chunks of the schedule.
pub fn cut(job: &Job<'_>, schedule: &Schedule, values: &UnitValues, sink: &mut Sink) -> Option<Vec<Chunk>> {
    let counted: &[String] = match job.pipeline.as_ref().map(|p| &p.split) {
        Some(Split::Even(names) | Split::Balanced(names)) => names,
        Some(Split::Listed(_)) | None => &[],
    };
    let split_span = job.pipeline.as_ref().map_or(job.span, |p| p.split_span);
    if let Some(name) = counted.iter().find(|n| !job.ops.units.iter().any(|u| u.name == **n)) {
        let known: Vec<_> = job.ops.units.iter().map(|u| u.name.clone()).collect();
        sink.error(errors::counted_unknown(name, &known, split_span));
        return None;
    }
    let runs: Vec<UnitRun> = job
        .ops
        .units
        .iter()
        .enumerate()
        .map(|(i, u)| UnitRun {
            index: i as u32,
            count: u.count as u32,
            repeated: u.repeated,
            counted: counted.contains(&u.name),
        })
        .collect();
    let chunks = schedule.chunks;
    let result = match job.pipeline.as_ref().map(|p| &p.split) {
        None | Some(Split::Even(_)) => split::even(&runs, chunks),
        Some(Split::Listed(counts)) => split::listed(&runs, counts, chunks),
        Some(Split::Balanced(_)) => {
            let costs: Vec<f64> = (0..values.f.len()).map(|u| values.f[u] + values.b[u] + values.w[u]).collect();
            let mut in_flight = vec![0; chunks as usize];
            for live in pipeline::in_flight(&schedule.orders, Weights::default()).iter().flat_map(|f| &f.at_peak) {
                let most = &mut in_flight[live.chunk as usize];
                *most = live.microbatches.max(*most);
            }
            let limit = values.room;
            let room = split::Room { rest: &values.rest, saved: &values.saved, in_flight: &in_flight, limit };
            split::balanced_within(&runs, &costs, chunks, room)
        }
    };
    match result {
        Ok(chunks) => Some(chunks),
        Err(why) => {
            let names: Vec<_> = job.ops.units.iter().map(|u| (u.name.clone(), u.count, u.repeated)).collect();
            let (p, per) = pipeline_shape(job, schedule);
            sink.error(errors::split(&why, &names, p, per, split_span));
            None
        }
    }
}

/// Stages and chunks on one of them.
fn pipeline_shape(job: &Job<'_>, schedule: &Schedule) -> (u32, u32) {
    let p = if job.pipeline.is_some() { schedule.orders.ranks() as u32 } else { 1 };
    (p, schedule.chunks / p.max(1))
}

/// Simulates the schedule over `chunks` and counts.
pub fn count(
    job: &Job<'_>,
    sharded: &ShardedGraph,
    schedule: &Schedule,
    chunks: Vec<Chunk>,
    values: &UnitValues,
) -> Facts {
    let kinds = job.ops.units.len();
    let held: Vec<Vec<i64>> = chunks.iter().map(|c| by_unit(c, kinds)).collect();
    let sum = |held: &[i64], per: &[f64]| -> f64 { held.iter().zip(per).map(|(n, x)| *n as f64 * x).sum() };
    let of = |per: &[f64]| -> Vec<f64> { held.iter().map(|c| sum(c, per)).collect() };
    let last_unit: Vec<usize> = chunks.iter().map(last_unit).collect();
    let borders = chunks.len().saturating_sub(1);
    let send: Vec<f64> = last_unit.iter().take(borders).map(|u| values.send[*u]).collect();
    let overlapped = job.layout.overlaps.iter().any(|o| o.comm == crate::layout::Comm::P2p);
    let [f_comm, b_comm, w_comm] = [0, 1, 2].map(|phase| of(&values.comm[phase]));
    let durations = Durations {
        f: of(&values.f),
        b: of(&values.b),
        w: of(&values.w),
        f_comm,
        b_comm,
        w_comm,
        send_forward: send.clone(),
        send_backward: send,
        messages: if overlapped { Messages::Overlapped } else { Messages::Exposed },
    };
    let orders = schedule.orders.clone().dispatched(&durations);
    let run = pipeline::simulate(&orders, &durations);
    let mut path = PathFacts {
        forward: vec![0; kinds],
        backward: vec![0; kinds],
        weight: vec![0; kinds],
        saved: run.path.saved,
        send_forward: vec![0; kinds],
        send_backward: vec![0; kinds],
    };
    for (c, chunk) in held.iter().enumerate() {
        for (u, n) in chunk.iter().enumerate() {
            path.forward[u] += n * run.path.f[c] as i64;
            path.backward[u] += n * run.path.b[c] as i64;
            path.weight[u] += n * run.path.w[c] as i64;
        }
        if c < borders {
            path.send_forward[last_unit[c]] += run.path.send_forward[c] as i64;
            path.send_backward[last_unit[c]] += run.path.send_backward[c] as i64;
        }
    }
    let bytes = [of(&values.saved), of(&values.late)];
    let flights = pipeline::in_flight(&orders, Weights { saved: &bytes[0], late: &bytes[1] });
    let ranks = orders.ranks();
    let microbatches = i64::from(orders.microbatches());
    let mut keepers = vec![0; chunks.len()];
    for c in (0..ranks).flat_map(|s| orders.hosts(s)) {
        keepers[*c as usize] += 1;
    }
    let stages = (0..ranks)
        .map(|s| {
            let (mut units, mut twice) = (vec![0; kinds], vec![0; kinds]);
            for c in orders.hosts(s) {
                for (u, n) in held[*c as usize].iter().enumerate() {
                    units[u] += n;
                    twice[u] += if keepers[*c as usize] > 1 { *n } else { 0 };
                }
            }
            let (mut live, mut late) = (vec![0; kinds], vec![0; kinds]);
            for l in &flights[s].at_peak {
                for (u, n) in held[l.chunk as usize].iter().enumerate() {
                    live[u] += n * i64::from(l.microbatches);
                    late[u] += n * i64::from(l.late);
                }
            }
            let mut runs = vec![0; kinds];
            for op in orders.order(s).iter().filter(|op| op.kind == OpKind::F && op.microbatch < microbatches) {
                for (u, n) in held[op.chunk as usize].iter().enumerate() {
                    runs[u] += n;
                }
            }
            let copies = copies(sharded, &units);
            let versions = schedule.versions.get(s).map_or(0, |n| i64::from(*n) - 1);
            let in_flight = i64::from(flights[s].most);
            StageFacts { units, live, late, copies, twice, runs, versions, in_flight }
        })
        .collect();
    let host = |c: usize| -> u32 { (0..ranks).find(|s| orders.hosts(*s).contains(&(c as u32))).unwrap_or(0) as u32 };
    let chunks = chunks.into_iter().enumerate().map(|(c, chunk)| (chunk, host(c))).collect();
    Facts { stages, chunks, path, run, orders, durations, bytes }
}

/// How many of each unit a chunk runs.
pub fn by_unit(chunk: &Chunk, kinds: usize) -> Vec<i64> {
    let mut out = vec![0; kinds];
    for part in &chunk.parts {
        out[part.index as usize] += i64::from(part.count);
    }
    out
}

/// The unit whose result leaves a chunk.
fn last_unit(chunk: &Chunk) -> usize {
    chunk.parts.last().map_or(0, |p| p.index as usize)
}

/// For each unit: 1 where it is on the rank and uses a tied parameter whose owner is not.
fn copies(sharded: &ShardedGraph, units: &[i64]) -> Vec<i64> {
    let mut out = vec![0; units.len()];
    for (owner, unit) in sharded.units.iter().enumerate() {
        for param in &unit.params {
            for user in &param.users {
                let user = *user as usize;
                if user != owner && units[user] > 0 && units[owner] == 0 {
                    out[user] = 1;
                }
            }
        }
    }
    out
}
