//! What rests off the device: what is fetched and evicted when, how long that takes, and what the host then holds.
//!
//! Each device copies through its share of the path of its node, as if all devices of the node copied at once, each
//! direction by itself. A parameter is fetched for each use, or as long before as its `hold` says; a gradient leaves
//! after each backward; saved activations leave after the forward that made them and come back for the backward. State
//! stays where the update runs: on the host it is never moved, on the device it comes and goes once an update.

use super::costs::{Costs, PhaseCost};
use super::group;
use crate::elaborate::Job;
use crate::eval::{Num, Quantity, Record, Value};
use crate::expr::{self, Graph};
use crate::layout::{Class, Comm, Hold, Store, Tier};
use crate::partition::{Phase, ShardedGraph, ShardedParam};
use crate::units::Unit;
use std::rc::Rc;

/// Bytes by where they come from or go to.
pub(super) type Bytes = Vec<(Tier, expr::Id)>;

/// What one unit copies between the device and the rest, of one microbatch or in an update.
#[derive(Clone, Default, Debug)]
pub(super) struct Copies {
    /// To the device: in a forward, a backward, an update.
    pub(super) fetch: [Bytes; 3],
    /// From the device.
    pub(super) evict: [Bytes; 3],
    /// Between host and drives, there and back, in an update that the host runs.
    pub(super) drives: Bytes,
    /// Parameters brought from their format at rest to that of use, for each use: bytes read, bytes written.
    pub(super) unpacked: Option<(expr::Id, expr::Id)>,
}

/// Bytes of an element of each class at rest: parameter, gradient, state without the master copy, master copy.
pub fn widths(job: &Job<'_>, p: &ShardedParam) -> [f64; 4] {
    let n = &job.numerics;
    let tensors = n.tensors as f64;
    let usual = [n.bytes("param"), n.bytes("grad"), n.bytes("state"), n.bytes("master")];
    let mut out = [0.0; 4];
    for (k, (usual, rest)) in usual.into_iter().zip(&p.rests).enumerate() {
        out[k] = rest.width.unwrap_or(usual) * if k == 2 { tensors } else { 1.0 };
    }
    // No master copy is kept, whatever format it would have.
    if usual[3] == 0.0 {
        out[3] = 0.0;
    }
    out
}

/// Bytes of each class of a parameter at rest.
pub(super) fn at_rest(job: &Job<'_>, p: &ShardedParam, graph: &mut Graph) -> [expr::Id; 4] {
    let elements = [p.rest_param, p.rest_grad, p.rest_state, p.rest_state];
    let widths = widths(job, p);
    std::array::from_fn(|k| {
        let (n, width) = (graph.to_real(elements[k]), graph.real(widths[k]));
        graph.mul(n, width)
    })
}

/// Whether the optimizer runs on the hosts.
pub(super) fn host_updates(job: &Job<'_>) -> bool {
    job.layout.update.as_ref().is_some_and(|u| u.on_host)
}

/// What unit `u` copies.
pub(super) fn copies(job: &Job<'_>, sharded: &ShardedGraph, u: usize, graph: &mut Graph) -> Copies {
    let mut out = Copies::default();
    let on_host = host_updates(job);
    let hold = job.layout.stores.iter().find(|s| s.class == Class::Param).map_or(Hold::Layer, |s| s.hold);
    for p in &sharded.units[u].params {
        let [param, grad, state, master] = at_rest(job, p, graph);
        let [at_param, at_grad, at_state, at_master] = p.rests.map(|r| r.tier);
        if at_param != Tier::Device {
            let phases: &[usize] = match hold {
                Hold::Layer => &[0, 1],
                Hold::Microbatch => &[0],
                Hold::Step => &[2],
            };
            for phase in phases {
                out.fetch[*phase].push((at_param, param));
            }
            if !on_host {
                out.evict[2].push((at_param, param));
            }
        } else if on_host {
            let (n, width) = (graph.to_real(p.rest_state), graph.real(job.numerics.bytes("param")));
            out.fetch[2].push((Tier::Host, graph.mul(n, width)));
        }
        if at_grad != Tier::Device {
            out.evict[1].push((at_grad, grad));
            if !on_host {
                out.fetch[2].push((at_grad, grad));
            }
        } else if on_host {
            let (n, width) = (graph.to_real(p.rest_state), graph.real(job.numerics.bytes("grad")));
            out.evict[2].push((Tier::Host, graph.mul(n, width)));
        }
        for (tier, bytes) in [(at_state, state), (at_master, master)] {
            match tier {
                Tier::Device => {}
                _ if !on_host => {
                    out.fetch[2].push((tier, bytes));
                    out.evict[2].push((tier, bytes));
                }
                Tier::Nvme { .. } => out.drives.push((tier, bytes)),
                Tier::Host => {}
            }
        }
    }
    let packed: Vec<_> = sharded.units[u].params.iter().filter(|p| p.rests[0].width.is_some()).collect();
    if !packed.is_empty() {
        let read: Vec<_> = packed.iter().map(|p| at_rest(job, p, graph)[0]).collect();
        let elements = graph.sum(packed.iter().map(|p| p.elements));
        let width = graph.real(job.numerics.bytes("param"));
        out.unpacked = Some((graph.sum(read), graph.mul(elements, width)));
    }
    for s in sharded.units[u].saved.iter().filter(|s| s.tier != Tier::Device) {
        let bytes = graph.to_real(s.bytes);
        out.evict[0].push((s.tier, bytes));
        out.fetch[1].push((s.tier, bytes));
    }
    out
}

/// The host's share of a device as a tier: its path and its memory, divided by the devices that share it.
fn host_tier<'p>(job: &Job<'p>) -> (f64, f64) {
    let Some((host, devices)) = job.cluster.host() else { return (0.0, 0.0) };
    let devices = devices as f64;
    let field = |r: &Record<'p>, name: &str| r.fields.get(name).and_then(Value::as_f64).unwrap_or(0.0);
    let (path, latency) = match host.fields.get("path") {
        Some(Value::Links { count, link }) => {
            let count = match count {
                Num::Int(n) => *n as f64,
                Num::Real(x) => *x,
                Num::Sym(_) => 1.0,
            };
            (count * field(link, "bandwidth") * field(link, "efficiency"), field(link, "latency"))
        }
        Some(Value::Record(link)) => (field(link, "bandwidth") * field(link, "efficiency"), field(link, "latency")),
        _ => (0.0, 0.0),
    };
    (path.min(field(host, "bandwidth")) / devices, latency)
}

/// A kind of memory as a cost function sees it from one device.
pub(super) fn tier_record<'p>(job: &Job<'p>, tier: Tier) -> Value<'p> {
    let (path, latency) = host_tier(job);
    let devices = job.cluster.host().map_or(1.0, |(_, n)| n as f64);
    let (kind, bandwidth, latency) = match tier {
        Tier::Device => ("device", job.cluster.device_field("hbm"), 0.0),
        Tier::Host => ("host", path, latency),
        Tier::Nvme { bandwidth } => ("nvme", path.min(bandwidth / devices), latency),
    };
    let mut r = Record::made("tier", kind, job.span);
    r.fields.insert("kind".into(), Value::word(kind));
    r.fields.insert("bandwidth".into(), Value::real(bandwidth, Unit::bandwidth()));
    r.fields.insert("latency".into(), Value::real(latency, Unit::time()));
    Value::Record(Rc::new(r))
}

/// All bytes of one kind of memory together.
fn by_tier(bytes: &[(Tier, expr::Id)], graph: &mut Graph) -> Bytes {
    let mut out: Vec<(Tier, Vec<expr::Id>)> = Vec::new();
    for (tier, n) in bytes {
        match out.iter_mut().find(|(t, _)| t == tier) {
            Some((_, list)) => list.push(*n),
            None => out.push((*tier, vec![*n])),
        }
    }
    out.into_iter().map(|(tier, list)| (tier, graph.sum(list))).collect()
}

/// Seconds of copies: those of one direction follow one another.
pub(super) fn seconds(caller: &mut Costs<'_, '_, '_, '_>, bytes: &Bytes, to_device: bool) -> expr::Id {
    let mut terms = Vec::new();
    for (tier, n) in by_tier(bytes, caller.graph()) {
        let (from, to) = if to_device { (tier, Tier::Device) } else { (Tier::Device, tier) };
        terms.push(caller.copy(n, from, to));
    }
    let graph = caller.graph();
    let sum = graph.sum(terms);
    graph.to_real(sum)
}

/// Seconds an update that runs on the host takes, for the state of one device: the processors' work with that of the
/// other devices of the node beside it, what comes from drives and goes back there.
pub(super) fn host_update<'p>(
    caller: &mut Costs<'p, '_, '_, '_>,
    job: &Job<'p>,
    (read, write, work): (expr::Id, expr::Id, expr::Id),
    drives: &[(Tier, expr::Id)],
) -> expr::Id {
    let Some((host, devices)) = job.cluster.host() else { return caller.graph().real(0.0) };
    let mut host = (**host).clone();
    if let Some(flops) = job.layout.update.as_ref().and_then(|u| u.flops) {
        host.fields.insert("flops".into(), Value::real(flops, Unit::flop_rate()));
    }
    let host = Value::Record(Rc::new(host));
    let all = caller.graph().real(devices as f64);
    let [read, write, work] = [read, write, work].map(|x| caller.graph().mul(x, all));
    let quantity = |id, unit| Value::Num(Quantity { num: Num::Sym(id), unit });
    let args = vec![quantity(read, Unit::bytes()), quantity(write, Unit::bytes()), quantity(work, Unit::flop()), host];
    let mut terms = vec![caller.call("host_update", vec![read, write, work], args)];
    for (tier, n) in by_tier(drives, caller.graph()) {
        terms.push(caller.copy(n, tier, Tier::Host));
        terms.push(caller.copy(n, Tier::Host, tier));
    }
    let graph = caller.graph();
    let sum = graph.sum(terms);
    graph.to_real(sum)
}

/// The buckets of a class that are on the device at once where it rests elsewhere.
pub(super) fn resident(store: Option<&Store>) -> i64 {
    store.map_or(2, |s| s.resident.unwrap_or(s.prefetch + 1))
}

impl Costs<'_, '_, '_, '_> {
    /// Bytes copied from one kind of memory to another.
    pub fn copy(&mut self, bytes: expr::Id, from: Tier, to: Tier) -> expr::Id {
        let end = |tier| match tier {
            Tier::Device => (0, 0.0),
            Tier::Host => (1, 0.0),
            Tier::Nvme { bandwidth } => (2, bandwidth),
        };
        let mut key = vec![bytes];
        for (kind, bandwidth) in [end(from), end(to)] {
            key.extend([self.eval.graph.int(kind), self.eval.graph.real(bandwidth)]);
        }
        let args = vec![group::bytes(bytes), tier_record(self.job, from), tier_record(self.job, to)];
        self.call("copy", key, args)
    }

    /// A phase with its copies from and to the host, each direction behind the phase's compute where an `overlap` says
    /// so, and with its parameters unpacked; and what that adds to it.
    pub(super) fn with_copies(
        &mut self,
        phase_cost: PhaseCost,
        copies: &Copies,
        phase: Phase,
    ) -> (PhaseCost, expr::Id) {
        let at = usize::from(phase != Phase::Forward);
        let mut exposed = Vec::new();
        for (comm, bytes, to_device) in
            [(Comm::Fetch, &copies.fetch[at], true), (Comm::Evict, &copies.evict[at], false)]
        {
            if bytes.is_empty() {
                continue;
            }
            let each = seconds(self, bytes, to_device);
            let share = self.eval.graph.real(copies_hide(self.job, comm, phase));
            let room = self.eval.graph.mul(phase_cost.compute, share);
            let left = self.eval.graph.sub(each, room);
            let zero = self.eval.graph.real(0.0);
            exposed.push(self.eval.graph.max(left, zero));
        }
        let copied = self.real_sum(&exposed);
        let comm = self.eval.graph.add(phase_cost.comm, copied);
        let unpacked = copies.unpacked.map(|(read, write)| {
            let none = self.eval.graph.int(0);
            self.elementwise(read, write, none)
        });
        exposed.extend(unpacked);
        if exposed.is_empty() {
            return (phase_cost, copied);
        }
        let exposed = self.real_sum(&exposed);
        let seconds = self.eval.graph.add(phase_cost.seconds, exposed);
        (PhaseCost { seconds, comm, ..phase_cost }, exposed)
    }
}

/// The share of a phase's compute that copies from or to the host may hide behind; 0 where nothing overlaps them.
pub(super) fn copies_hide(job: &Job<'_>, comm: Comm, phase: Phase) -> f64 {
    let covers = |o: &&crate::layout::Overlap| {
        o.comm == comm
            && match phase {
                Phase::Forward => o.forward,
                Phase::Backward => o.backward,
                Phase::Update => o.forward || o.backward,
            }
    };
    job.layout.overlaps.iter().filter(covers).map(|o| o.limit).fold(0.0, f64::max)
}
