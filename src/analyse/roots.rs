//! The expression graph's roots: memory of a stage, time of a step, utilisation, price.
//!
//! Counts from [`super::stage`] are inputs. Up to [`KINDS`] distinct stages are inputs at once; a job with more keeps
//! those that decide the largest memory and the longest update.

use super::costs::{Costs, UnitCosts};
use super::flops::ModelFlops;
use super::rest::{at_rest, rest_bytes};
use super::stage::{Facts, PathFacts, StageFacts};
use super::tiers;
use crate::elaborate::Job;
use crate::expr::{self, Input, Node};
use crate::layout::{Bucket, Class, Comm, Hold, Store, Tier};
use crate::partition::{Phase, Purpose, ShardedGraph, ShardedParam, ShardedUnit};

/// Distinct stages held as inputs.
pub const KINDS: usize = 8;

/// Inputs of one stage's counts.
#[derive(Clone, Debug)]
struct StageInputs {
    units: Vec<expr::Id>,
    live: Vec<expr::Id>,
    late: Vec<expr::Id>,
    copies: Vec<expr::Id>,
    twice: Vec<expr::Id>,
    versions: expr::Id,
}

/// Roots of one stage, as functions of its counts.
#[derive(Clone, Debug)]
pub struct StageRoots {
    /// Parameters at rest, bytes.
    pub params: expr::Id,
    /// Parameters gathered for use, bytes.
    pub gathered: expr::Id,
    /// Gradients, bytes.
    pub grads: expr::Id,
    /// Optimizer state and master copy, bytes.
    pub state: expr::Id,
    /// Saved activations, bytes.
    pub activations: expr::Id,
    /// Largest working set of one operation, and message buffers, bytes.
    pub transient: expr::Id,
    /// What the allocator holds for all of it, bytes.
    pub total: expr::Id,
    /// What one device keeps in the host's memory, bytes.
    pub host: expr::Id,
    /// Seconds after the last backward: exposed reductions and gathers, the optimizer.
    pub update: expr::Id,
    /// The optimizer's part of `update`.
    pub optimizer: expr::Id,
    /// The exposed reductions' and gathers' part of `update`.
    pub exposed: expr::Id,
}

/// Every root.
#[derive(Clone, Debug)]
pub struct Roots {
    /// Saved bytes of one microbatch, by unit.
    pub saved: Vec<expr::Id>,
    /// Bytes of one microbatch kept from the backward for the gradients of parameters, by unit.
    pub late: Vec<expr::Id>,
    /// Elements at rest of parameters, by unit (a copy's for tied ones apart).
    pub stage: Vec<StageRoots>,
    /// Largest memory over the stages.
    pub peak_memory: expr::Id,
    /// Largest host memory of a node, as if all of its devices were of the stage that keeps most there.
    pub host_memory: expr::Id,
    /// Time of the critical path of the pipeline.
    pub pipeline_time: expr::Id,
    /// Longest time after the last backward over the stages.
    pub update: expr::Id,
    /// Time of a step.
    pub step_time: expr::Id,
    /// Tokens a second on all devices.
    pub tokens_per_s: expr::Id,
    /// Model FLOP of a step.
    pub flops: expr::Id,
    /// Model FLOP over peak FLOP.
    pub mfu: expr::Id,
    /// Price of a step, $.
    pub price: expr::Id,
    /// Bytes at rest, by unit.
    pub rest: Vec<expr::Id>,
    /// Bytes that what rests and what is saved may take on a rank, beside the largest working set.
    pub room: expr::Id,
    path: [Vec<expr::Id>; 5],
    path_saved: expr::Id,
    kinds: Vec<StageInputs>,
}

/// Bytes one unit saves for the backward of one microbatch, of what waits where `here` says.
pub fn saved_bytes(sharded: &ShardedGraph, graph: &mut expr::Graph, here: impl Fn(Tier) -> bool) -> Vec<expr::Id> {
    let there = |u: &ShardedUnit| u.saved.iter().filter(|s| here(s.tier)).map(|s| s.bytes).collect::<Vec<_>>();
    let per_unit = sharded.units.iter().map(there);
    per_unit
        .map(|terms| {
            let sum = graph.sum(terms);
            graph.to_real(sum)
        })
        .collect()
}

/// Builds the roots of `job`.
pub fn build<'p>(
    job: &Job<'p>,
    sharded: &ShardedGraph,
    costs: &[UnitCosts],
    caller: &mut Costs<'p, '_, '_, '_>,
    peak: f64,
) -> Roots {
    let saved = saved_bytes(sharded, caller.graph(), |tier| tier == Tier::Device);
    let away = saved_bytes(sharded, caller.graph(), |tier| tier != Tier::Device);
    let on_host = saved_bytes(sharded, caller.graph(), |tier| tier == Tier::Host);
    let units = sharded.units.len();
    let late: Vec<_> = sharded.units.iter().map(|u| caller.graph().to_real(u.late)).collect();
    let rest = rest_bytes(job, sharded, caller.graph());
    let room = room(job, sharded, caller);
    let path = ["forward", "backward", "weight", "send_forward", "send_backward"].map(|what| {
        (0..units).map(|u| count_input(caller.graph(), &format!("path.{what}.{}", job.ops.units[u].name))).collect()
    });
    let path_saved =
        caller.graph().input(Input { name: "path.saved".into(), kind: expr::Kind::Real, lo: 0.0, hi: 1e9 });
    let pipeline_time = path_time(&path, costs, caller.graph());
    let pipeline_time = caller.graph().sub(pipeline_time, path_saved);
    let parts = Parts { saved: &saved, late: &late, away: &away, on_host: &on_host, pipeline_time };
    let mut kinds = Vec::new();
    let mut stage = Vec::new();
    for k in 0..KINDS {
        let name = |what: &str, u: usize| format!("stage{k}.{what}.{}", job.ops.units[u].name);
        let graph = caller.graph();
        let inputs = StageInputs {
            units: (0..units).map(|u| count_input(graph, &name("units", u))).collect(),
            live: (0..units).map(|u| count_input(graph, &name("live", u))).collect(),
            late: (0..units).map(|u| count_input(graph, &name("late", u))).collect(),
            copies: (0..units).map(|u| count_input(graph, &name("copies", u))).collect(),
            twice: (0..units).map(|u| count_input(graph, &name("twice", u))).collect(),
            versions: count_input(graph, &format!("stage{k}.versions")),
        };
        stage.push(stage_roots(job, sharded, costs, caller, &inputs, &parts));
        kinds.push(inputs);
    }
    let graph = caller.graph();
    let peak_memory = stage.iter().map(|s| s.total).reduce(|a, b| graph.max(a, b)).unwrap_or_else(|| graph.real(0.0));
    let update = stage.iter().map(|s| s.update).reduce(|a, b| graph.max(a, b)).unwrap_or_else(|| graph.real(0.0));
    let host = stage.iter().map(|s| s.host).reduce(|a, b| graph.max(a, b)).unwrap_or_else(|| graph.real(0.0));
    let sharers = graph.real(job.cluster.host().map_or(1.0, |(_, n)| n as f64));
    let host_memory = graph.mul(host, sharers);
    let step_time = graph.add(pipeline_time, update);
    let flops = ModelFlops::new(job, graph).total;
    let tokens = graph.mul(job.batch, job.sequence);
    let tokens_per_s = graph.div(tokens, step_time);
    let peak_all = graph.real(peak * job.cluster.devices as f64);
    let offered = graph.mul(step_time, peak_all);
    let mfu = graph.div(flops, offered);
    let rate = graph.real(job.cluster.price());
    let price = graph.mul(step_time, rate);
    let roots = Roots {
        saved,
        late,
        stage,
        peak_memory,
        host_memory,
        pipeline_time,
        update,
        step_time,
        tokens_per_s,
        flops,
        mfu,
        price,
        rest,
        room,
        path,
        path_saved,
        kinds,
    };
    for (id, name) in [
        (roots.peak_memory, "peak_memory"),
        (roots.step_time, "step_time"),
        (roots.tokens_per_s, "tokens_per_s"),
        (roots.mfu, "mfu"),
        (roots.price, "price"),
    ] {
        graph.name(id, name);
    }
    roots
}

/// Bytes that the largest working set leaves, where what the allocator holds grows evenly with what lives.
fn room<'p>(job: &Job<'p>, sharded: &ShardedGraph, caller: &mut Costs<'p, '_, '_, '_>) -> expr::Id {
    const SOME: f64 = 1_073_741_824.0;
    let graph = caller.graph();
    let (zero, some) = (graph.real(0.0), graph.real(SOME));
    let (base, more) = (caller.held(zero), caller.held(some));
    let graph = caller.graph();
    let step = graph.sub(more, base);
    let each = graph.div(step, some);
    let usable = graph.real(job.cluster.device_field("usable"));
    let left = graph.sub(usable, base);
    let live = graph.div(left, each);
    let transients: Vec<_> = sharded.units.iter().map(|u| u.transient).collect();
    let largest = transients.into_iter().reduce(|a, b| graph.max(a, b)).unwrap_or_else(|| graph.int(0));
    let largest = graph.to_real(largest);
    graph.sub(live, largest)
}

fn count_input(graph: &mut expr::Graph, name: &str) -> expr::Id {
    graph.input(Input { name: name.to_string(), kind: expr::Kind::Int, lo: 0.0, hi: 16_777_216.0 })
}

fn path_time(path: &[Vec<expr::Id>; 5], costs: &[UnitCosts], graph: &mut expr::Graph) -> expr::Id {
    let mut terms = Vec::new();
    for (u, c) in costs.iter().enumerate() {
        for (counts, seconds) in path.iter().zip([c.f, c.b, c.w, c.send, c.send]) {
            terms.push(graph.mul(counts[u], seconds));
        }
    }
    let sum = graph.sum(terms);
    graph.to_real(sum)
}

/// The tied parameters `unit` uses and another owns.
fn tied(sharded: &ShardedGraph, unit: usize) -> Vec<&ShardedParam> {
    let others = sharded.units.iter().enumerate().filter(|(owner, _)| *owner != unit);
    others.flat_map(|(_, u)| &u.params).filter(|p| p.users.contains(&(unit as u32))).collect()
}

/// What the roots of every stage read.
struct Parts<'a> {
    saved: &'a [expr::Id],
    late: &'a [expr::Id],
    /// Saved bytes that wait off the device, and those of them in the host's memory.
    away: &'a [expr::Id],
    on_host: &'a [expr::Id],
    pipeline_time: expr::Id,
}

fn stage_roots<'p>(
    job: &Job<'p>,
    sharded: &ShardedGraph,
    costs: &[UnitCosts],
    caller: &mut Costs<'p, '_, '_, '_>,
    inputs: &StageInputs,
    parts: &Parts<'_>,
) -> StageRoots {
    let n = &job.numerics;
    let grad_extra = caller.constant("grad_extra");
    let graph = caller.graph();
    let zero = graph.real(0.0);
    let mut grad_copies = Vec::new();
    let (mut params, mut grads, mut state, mut acts, mut host) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut states, mut read, mut write, mut drives) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut gathered_all, mut gathered_largest, mut bucket_grad, mut transient) = (Vec::new(), zero, zero, zero);
    let (mut tensor_largest, mut state_away, mut acts_away) = (zero, zero, zero);
    let (mut reduce, mut gather, mut fetch, mut evict, mut bare) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut forward, mut backward) = (Vec::new(), Vec::new());
    for (u, cost) in costs.iter().enumerate() {
        let (count, live, copy) = (inputs.units[u], inputs.live[u], inputs.copies[u]);
        let none = graph.int(0);
        let present = graph.lt(none, count);
        let own = at_rest(job, &sharded.units[u].params.iter().collect::<Vec<_>>(), graph);
        let shared = at_rest(job, &tied(sharded, u), graph);
        let mut add = |list: &mut Vec<expr::Id>, own: expr::Id, shared: expr::Id| {
            list.push(graph.mul(count, own));
            list.push(graph.mul(copy, shared));
        };
        add(&mut params, own.here[0], shared.here[0]);
        add(&mut grads, own.here[1], shared.here[1]);
        add(&mut grad_copies, own.used, shared.used);
        add(&mut state, own.here[2], shared.here[2]);
        add(&mut host, own.host, shared.host);
        for (list, each) in [(&mut states, own.state), (&mut read, own.update[0]), (&mut write, own.update[1])] {
            list.push(graph.mul(count, each));
        }
        acts.push(graph.mul(live, parts.saved[u]));
        acts.push(graph.mul(inputs.late[u], parts.late[u]));
        host.push(graph.mul(live, parts.on_host[u]));
        let mut largest = |so_far: &mut expr::Id, bytes: expr::Id| {
            let here = graph.select(present, bytes, zero);
            *so_far = graph.max(*so_far, here);
        };
        largest(&mut state_away, own.away);
        largest(&mut acts_away, parts.away[u]);
        let missing = graph.sub(own.used, own.param);
        let mut largest = |so_far: &mut expr::Id, bytes: expr::Id| {
            let here = graph.select(present, bytes, zero);
            *so_far = graph.max(*so_far, here);
        };
        largest(&mut gathered_largest, missing);
        largest(&mut tensor_largest, own.largest);
        gathered_all.push(graph.mul(count, missing));
        let unshared = graph.sub(own.used, own.grad);
        let part = graph.lt(own.grad, own.used);
        let bucket = graph.select(part, own.used, unshared);
        let bucket = graph.select(present, bucket, zero);
        bucket_grad = graph.max(bucket_grad, bucket);
        let buffers = if job.pipeline.is_some() { graph.add(cost.send_bytes, cost.send_bytes) } else { graph.int(0) };
        let working = graph.to_real(sharded.units[u].transient);
        let working = graph.add(working, buffers);
        let working = graph.select(present, working, zero);
        transient = graph.max(transient, working);
        reduce.push(graph.mul(count, cost.reduce));
        gather.push(graph.mul(count, cost.gather));
        fetch.push(graph.mul(count, cost.moved[0]));
        evict.push(graph.mul(count, cost.moved[1]));
        drives.extend(cost.drives.iter().map(|(tier, bytes)| (*tier, graph.mul(count, *bytes))));
        bare.push(graph.mul(count, cost.bare));
        bare.push(graph.mul(copy, cost.tied));
        bare.push(graph.mul(inputs.twice[u], cost.twice));
        forward.push(graph.mul(count, cost.f));
        backward.push(graph.mul(count, cost.b));
        backward.push(graph.mul(count, cost.w));
    }
    let mut sum = |terms: Vec<expr::Id>| {
        let s = graph.sum(terms);
        graph.to_real(s)
    };
    let (params, grads_rest, state, activations, host) = (sum(params), sum(grads), sum(state), sum(acts), sum(host));
    let (states, read, write) = (sum(states), sum(read), sum(write));
    let stashed = graph.mul(params, inputs.versions);
    let params = graph.add(params, stashed);
    let store = store_of(job, Class::Param);
    let gathered_elements = match store.map_or(Hold::Layer, |s| s.hold) {
        Hold::Layer => {
            let ahead = graph.int(tiers::resident(store));
            let all = graph.sum(gathered_all);
            let bucket = match store.map_or(Bucket::Layer, |s| s.bucket) {
                Bucket::Layer | Bucket::Region => gathered_largest,
                Bucket::Tensor => graph.min(tensor_largest, gathered_largest),
                Bucket::Chunk | Bucket::Model => graph.to_real(all),
                Bucket::Bytes(bytes) => graph.real(bytes / n.bytes("param").max(f64::MIN_POSITIVE)),
            };
            let ahead = graph.mul(ahead, bucket);
            graph.min(ahead, all)
        }
        Hold::Microbatch | Hold::Step => graph.sum(gathered_all),
    };
    let width = graph.real(n.bytes("param"));
    let gathered = graph.mul(gathered_elements, width);
    let width = graph.real(n.bytes("grad"));
    let bucket = graph.mul(bucket_grad, width);
    let copies = graph.sum(grad_copies);
    let each = graph.real(grad_extra);
    let copies = graph.mul(copies, each);
    let grads = graph.sum([grads_rest, bucket, copies]);
    let on_host = tiers::host_updates(job);
    // What comes and goes takes room for the buckets that are there.
    let buffer = |graph: &mut expr::Graph, class, bytes| {
        let buckets = graph.int(tiers::resident(store_of(job, class)));
        graph.mul(buckets, bytes)
    };
    let passing = if on_host { zero } else { buffer(graph, Class::State, state_away) };
    let state = graph.add(state, passing);
    let passing = buffer(graph, Class::Act, acts_away);
    let activations = graph.add(activations, passing);
    let live = graph.sum([params, gathered, grads, state, activations, transient]);
    let total = caller.held(live);

    let graph = caller.graph();
    let flops_each = graph.real(n.flops_per_param);
    let flops = graph.mul(states, flops_each);
    let optimizer = if on_host {
        let host = tiers::host_update(caller, job, (read, write, flops), &drives);
        let graph = caller.graph();
        // What may come late is done beside the steps until then.
        let steps = graph.real(job.layout.update.as_ref().map_or(0, |u| u.delay) as f64);
        let beside = graph.mul(steps, parts.pipeline_time);
        let left = graph.sub(host, beside);
        graph.max(left, zero)
    } else {
        caller.elementwise(read, write, flops)
    };

    let graph = caller.graph();
    let count = graph.sum(inputs.units.iter().copied());
    let mut exposed = bare;
    for (terms, behind, limit) in [
        (reduce, &backward, overlap_limit(job, Purpose::ReduceGrad)),
        (gather, &forward, overlap_limit(job, Purpose::GatherParam)),
        (fetch, &forward, tiers::copies_hide(job, Comm::Fetch, Phase::Update)),
        (evict, &backward, tiers::copies_hide(job, Comm::Evict, Phase::Update)),
    ] {
        // Bucket by bucket behind one microbatch's compute: the last bucket has nothing left to hide behind.
        let total = graph.sum(terms);
        let room = graph.sum(behind.iter().copied());
        let limit = graph.real(limit);
        let room = graph.mul(room, limit);
        let left = graph.sub(total, room);
        let one = graph.int(1);
        let buckets = graph.max(count, one);
        let last = graph.div(total, buckets);
        exposed.push(graph.max(left, last));
    }
    let exposed = graph.sum(exposed);
    let exposed = graph.to_real(exposed);
    let update = graph.add(optimizer, exposed);
    StageRoots { params, gathered, grads, state, activations, transient, total, host, update, optimizer, exposed }
}

/// The first `store` of a class.
fn store_of<'j>(job: &'j Job<'_>, class: Class) -> Option<&'j Store> {
    job.layout.stores.iter().find(|s| s.class == class)
}

/// The largest share of compute that an overlap of this purpose may use; what none covers is counted apart.
fn overlap_limit(job: &Job<'_>, purpose: Purpose) -> f64 {
    let comm = if purpose == Purpose::ReduceGrad { Comm::Reduce } else { Comm::Gather };
    job.layout.overlaps.iter().filter(|o| o.comm == comm).map(|o| o.limit).fold(0.0, f64::max)
}

impl Roots {
    /// What an evaluator computes: memory, times, rates, price.
    pub fn all(&self) -> Vec<expr::Id> {
        vec![self.step_time, self.peak_memory, self.tokens_per_s, self.mfu, self.price, self.flops, self.pipeline_time]
    }

    /// The graph's inputs at the point with the counts of `facts`: every input, in order.
    ///
    /// Of more than [`KINDS`] distinct stages those are kept that are fullest and that have the longest update.
    pub fn inputs(&self, graph: &expr::Graph, point: &[f64], facts: &Facts) -> Vec<f64> {
        let mut inputs = point.to_vec();
        inputs.resize(graph.inputs().len(), 0.0);
        self.put_path(graph, &facts.path, &mut inputs);
        let mut distinct: Vec<&StageFacts> = Vec::new();
        for s in &facts.stages {
            if !distinct.contains(&s) {
                distinct.push(s);
            }
        }
        if distinct.len() > KINDS {
            let scored: Vec<(f64, f64)> = distinct
                .iter()
                .map(|s| {
                    let v = self.stage_values(graph, &inputs, s);
                    (v.total, v.update)
                })
                .collect();
            let mut order: Vec<usize> = (0..distinct.len()).collect();
            order.sort_by(|a, b| scored[*b].0.total_cmp(&scored[*a].0).then(a.cmp(b)));
            let slowest = (0..distinct.len()).max_by(|a, b| scored[*a].1.total_cmp(&scored[*b].1).then(b.cmp(a)));
            let mut keep: Vec<usize> = order.into_iter().take(KINDS - 1).collect();
            keep.extend(slowest.filter(|s| !keep.contains(s)));
            distinct = keep.into_iter().map(|i| distinct[i]).collect();
        }
        for (k, kind) in self.kinds.iter().enumerate() {
            // Fewer stages than kinds: the last is repeated.
            if let Some(s) = distinct.get(k).or_else(|| distinct.last()) {
                put_stage(graph, kind, s, &mut inputs);
            }
        }
        inputs
    }

    fn put_path(&self, graph: &expr::Graph, path: &PathFacts, inputs: &mut [f64]) {
        for (id, value) in self.path_counts(path) {
            put(graph, id, value, inputs);
        }
    }

    /// The inputs of the critical path with their values, always in one order.
    pub fn path_counts(&self, path: &PathFacts) -> Vec<(expr::Id, f64)> {
        let counts = [&path.forward, &path.backward, &path.weight, &path.send_forward, &path.send_backward];
        let lists = self.path.iter().zip(counts);
        let each = lists.flat_map(|(ids, counts)| ids.iter().zip(counts).map(|(id, n)| (*id, *n as f64)));
        std::iter::once((self.path_saved, path.saved)).chain(each).collect()
    }

    /// The inputs of the first of [`Self::stage`] with the counts of `stage`, always in one order.
    pub fn stage_counts(&self, stage: &StageFacts) -> Vec<(expr::Id, f64)> {
        stage_counts(&self.kinds[0], stage)
    }

    /// What one stage holds and how long its update takes, at the point.
    pub fn stage_values(&self, graph: &expr::Graph, inputs: &[f64], stage: &StageFacts) -> StageValues {
        let mut inputs = inputs.to_vec();
        put_stage(graph, &self.kinds[0], stage, &mut inputs);
        let s = &self.stage[0];
        let ids = [
            s.params,
            s.gathered,
            s.grads,
            s.state,
            s.activations,
            s.transient,
            s.total,
            s.update,
            s.optimizer,
            s.exposed,
            s.host,
        ];
        let v = graph.eval(&inputs, &ids);
        StageValues {
            params: v[0],
            gathered: v[1],
            grads: v[2],
            state: v[3],
            activations: v[4],
            transient: v[5],
            total: v[6],
            update: v[7],
            optimizer: v[8],
            exposed: v[9],
            host: v[10],
        }
    }
}

/// [`StageRoots`] at a point.
#[derive(Copy, Clone, Debug)]
#[expect(missing_docs, reason = "the fields are those of `StageRoots`")]
pub struct StageValues {
    pub params: f64,
    pub gathered: f64,
    pub grads: f64,
    pub state: f64,
    pub activations: f64,
    pub transient: f64,
    pub total: f64,
    pub update: f64,
    pub optimizer: f64,
    pub exposed: f64,
    pub host: f64,
}

fn put(graph: &expr::Graph, id: expr::Id, value: f64, inputs: &mut [f64]) {
    if let Node::Input(i) = graph.node(id) {
        inputs[i.0 as usize] = value;
    }
}

fn put_stage(graph: &expr::Graph, kind: &StageInputs, stage: &StageFacts, inputs: &mut [f64]) {
    for (id, value) in stage_counts(kind, stage) {
        put(graph, id, value, inputs);
    }
}

fn stage_counts(kind: &StageInputs, stage: &StageFacts) -> Vec<(expr::Id, f64)> {
    let lists = [
        (&kind.units, &stage.units),
        (&kind.live, &stage.live),
        (&kind.late, &stage.late),
        (&kind.copies, &stage.copies),
        (&kind.twice, &stage.twice),
    ];
    let each = lists.into_iter().flat_map(|(ids, counts)| ids.iter().zip(counts).map(|(id, n)| (*id, *n as f64)));
    std::iter::once((kind.versions, stage.versions as f64)).chain(each).collect()
}
