//! What a point cannot be better than, whatever its schedule does: a bound for every point of a shape, over the axes of
//! its region.
//!
//! The ranks of a pipeline have all forwards and backwards to do, so one of them is busy for at least their time over
//! the number of ranks; and one holds at least its part of what rests. Operations issued together may hide each other's
//! communication, so for schedules that do that communication counts for nothing. A goal that can only grow with time
//! and memory is bounded by its value at these.

use super::Region;
use super::nest::{Axis, Condition, Nest};
use super::shaped::Shaped;
use crate::analyse::rules::RuleKind;
use crate::analyse::{claims, schedule, stage};
use crate::emit::evaluator::Unavailable;
use crate::expr::{Graph, Id, Input, Kind, Node};

/// Bounds are taken this much lower, and limits this much higher, than they are computed: more than rounding can do.
pub(super) const SLACK: f64 = 1e-9;

/// The space of a shape, prepared.
pub(super) struct Bounded {
    pub(super) nest: Nest,
    /// Whether the results are a bound of each goal. Where not, there are none.
    pub(super) goals: bool,
}

impl Bounded {
    /// Prepares the region's points of this shape.
    pub(super) fn new(shaped: &Shaped<'_>, region: &Region, native: bool) -> Result<Self, Unavailable> {
        let shape = &shaped.shape;
        let job = &shape.job;
        let mut graph = Graph::new();
        let (axes, parameters) = leaves(shaped, region, &mut graph);
        let leaf = |_: &mut Graph, i: crate::expr::InputId| parameters[i.0 as usize];
        let from = &shape.graph;

        let mut conditions: Vec<Condition> = Vec::new();
        for (id, value) in &job.readings {
            let node = graph.graft(from, &[*id], &[], leaf)[0];
            let value = graph.real(*value);
            conditions.push(Condition { cond: graph.eq(node, value), rule: None });
        }
        for (i, rule) in shaped.rules[..shaped.early].iter().enumerate() {
            let cond = graph.graft(from, &[rule.cond], &[], leaf)[0];
            conditions.push(Condition { cond, rule: Some(i) });
        }
        let mut results = Vec::new();
        let bounds = Bounds::new(shaped, &mut graph, &parameters);
        let fits = shaped.rules.iter().position(|r| r.kind == RuleKind::Fits);
        if let (Some(rule), false) = (fits, claims::expects_no_fit(&job.claims)) {
            conditions.push(Condition { cond: bounds.may_fit, rule: Some(rule) });
        }
        let limits = [(shape.roots.pipeline_time, bounds.time), (shape.roots.update, bounds.update)];
        let limits = limits.into_iter().chain([(shape.roots.peak_memory, bounds.memory)]);
        let given: Vec<(Id, Id)> = limits.collect();
        let growing: Vec<Id> = given.iter().map(|(there, _)| *there).collect();
        let goals = !job.pipeline.as_ref().is_some_and(|p| schedule::habits(shaped.program, &p.schedule).endless)
            && shaped.objectives.iter().all(|o| grows(from, *o, &growing, job.point.len()));
        if goals {
            results = graph.graft(from, &shaped.objectives, &given, leaf);
        }
        conditions.retain(|c| graph.as_bool(c.cond) != Some(true));
        let nest = Nest::new(&graph, &axes, &conditions, &results, native)?;
        Ok(Self { nest, goals })
    }
}

/// The region's axes as inputs of `graph`, and what stands for each input of the shape.
fn leaves(shaped: &Shaped<'_>, region: &Region, graph: &mut Graph) -> (Vec<Axis>, Vec<Id>) {
    let mut axes: Vec<Axis> = Vec::new();
    let mut inputs = Vec::new();
    let mut stride = region.points;
    for axis in &region.axes {
        let values: Vec<f64> = (0..axis.len()).map(|i| axis.value(i) as f64).collect();
        stride /= values.len().max(1) as u64;
        let lo = values.iter().copied().fold(f64::INFINITY, f64::min);
        let hi = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        inputs.push(graph.input(Input { name: axis.name.clone(), kind: Kind::Int, lo, hi }));
        axes.push(Axis { values, stride });
    }
    if axes.is_empty() {
        // A space of one point still has a level.
        graph.input(Input { name: "point".into(), kind: Kind::Int, lo: 0.0, hi: 0.0 });
        axes.push(Axis { values: vec![0.0], stride: 0 });
    }
    let shape = &shaped.shape;
    let parameters = (0..shape.graph.inputs().len()).map(|i| {
        if let Some(axis) = shaped.inputs.iter().position(|input| *input == Some(i)) {
            return inputs[axis];
        }
        let value = shape.job.point.get(i).copied().unwrap_or(0.0);
        match shape.graph.inputs()[i].kind {
            Kind::Int => graph.int(value as i64),
            Kind::Real => graph.real(value),
            Kind::Bool => graph.bool(value > 0.0),
        }
    });
    let parameters = parameters.collect();
    (axes, parameters)
}

/// Nodes that time and memory cannot be below.
struct Bounds {
    time: Id,
    update: Id,
    memory: Id,
    /// Whether what rests may fit.
    may_fit: Id,
}

impl Bounds {
    fn new(shaped: &Shaped<'_>, graph: &mut Graph, parameters: &[Id]) -> Self {
        let (shape, job) = (&shaped.shape, &shaped.shape.job);
        let r = &shape.roots;
        let units = job.ops.units.len();
        let leaf = |_: &mut Graph, i: crate::expr::InputId| parameters[i.0 as usize];
        let mut wanted = stage::UnitValues::nodes(&shape.costs, r);
        let stages = job.pipeline.as_ref().map(|p| job.layout.axis(p.axis).size);
        wanted.push(job.microbatches);
        wanted.extend(stages);
        let own = graph.graft(&shape.graph, &wanted, &[], leaf);
        let joined = job.pipeline.as_ref().is_some_and(|p| schedule::habits(shaped.program, &p.schedule).joins);
        let (microbatches, one) = (own[10 * units + 1], graph.int(1));
        let stages = own.get(10 * units + 2).copied().unwrap_or(one);
        let counts: Vec<Id> = job.ops.units.iter().map(|u| graph.int(u.count)).collect();
        let mut work = Vec::new();
        let mut rest = Vec::new();
        for (u, count) in counts.iter().enumerate() {
            for phase in 0..3 {
                let mut seconds = own[phase * units + u];
                if joined {
                    // What hides at most is all of it.
                    let zero = graph.real(0.0);
                    seconds = graph.sub(seconds, own[(3 + phase) * units + u]);
                    seconds = graph.max(seconds, zero);
                }
                work.push(graph.mul(*count, seconds));
            }
            rest.push(graph.mul(*count, own[9 * units + u]));
        }
        let each = |graph: &mut Graph, terms: Vec<Id>| {
            let sum = graph.sum(terms);
            graph.div(sum, stages)
        };
        let (each_work, each_rest) = (each(graph, work), each(graph, rest));
        let time = graph.mul(microbatches, each_work);
        // One rank holds everything, so what it holds and updates is known.
        let whole = whole(shaped, graph, parameters, &counts);
        let alone = graph.eq(stages, one);
        let zero = graph.real(0.0);
        let update = graph.select(alone, whole.1, zero);
        let memory = graph.select(alone, whole.0, each_rest);
        let more = graph.real(1.0 + SLACK);
        let room = graph.mul(own[10 * units], more);
        let usable = graph.real(job.cluster.device_field("usable") * (1.0 + SLACK));
        let (rests, holds) = (graph.le(each_rest, room), graph.le(whole.0, usable));
        let may_fit = graph.select(alone, holds, rests);
        Self { time, update, memory, may_fit }
    }
}

/// Memory of a rank that has every unit and one microbatch of each, and how long its update takes.
fn whole(shaped: &Shaped<'_>, graph: &mut Graph, parameters: &[Id], counts: &[Id]) -> (Id, Id) {
    let (shape, r) = (&shaped.shape, &shaped.shape.roots);
    let units: Vec<i64> = shape.job.ops.units.iter().map(|u| u.count).collect();
    let none = vec![0; counts.len()];
    let facts = stage::StageFacts {
        units: units.clone(),
        live: units,
        late: none.clone(),
        copies: none.clone(),
        twice: none.clone(),
        runs: none,
        versions: 0,
        in_flight: 1,
    };
    let given: Vec<(Id, Id)> =
        r.stage_counts(&facts).into_iter().map(|(there, n)| (there, graph.int(n as i64))).collect();
    let wanted = [r.stage[0].total, r.stage[0].update];
    let made = graph.graft(&shape.graph, &wanted, &given, |_, i| parameters[i.0 as usize]);
    (made[0], made[1])
}

/// How a node changes when leaves grow.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Change {
    Still,
    Up,
    Down,
}

/// Whether `id` never falls when `leaves` grow, and reads no other input from `known` on.
fn grows(graph: &Graph, id: Id, leaves: &[Id], known: usize) -> bool {
    let mut changes: Vec<Option<Change>> = vec![None; graph.len()];
    let mut positive: Vec<bool> = vec![false; graph.len()];
    for node in graph.ids().filter(|n| *n <= id) {
        let leaf = leaves.contains(&node);
        positive[node.0 as usize] = leaf || graph.range(node).lo >= 0.0 || {
            let of = |id: Id| positive[id.0 as usize];
            match graph.node(node) {
                Node::Add(a, b) | Node::Mul(a, b) | Node::Div(a, b) | Node::Min(a, b) => of(a) && of(b),
                Node::Max(a, b) => of(a) || of(b),
                Node::ToReal(a) => of(a),
                Node::Select(_, _, x) => divisor(graph, node) == Some(x) && of(x),
                _ => false,
            }
        };
        changes[node.0 as usize] =
            if leaf { Some(Change::Up) } else { change(graph, node, (&changes, &positive), known) };
    }
    matches!(changes[id.0 as usize], Some(Change::Still | Change::Up))
}

/// The node behind `if x == 0 then 1 else x`, which the graph puts where it divides by `x`.
fn divisor(graph: &Graph, id: Id) -> Option<Id> {
    let Node::Select(cond, _, x) = graph.node(id) else { return None };
    let Node::Eq(a, b) = graph.node(cond) else { return None };
    (a == x || b == x).then_some(x)
}

fn change(graph: &Graph, id: Id, (changes, positive): (&[Option<Change>], &[bool]), known: usize) -> Option<Change> {
    use Change::{Down, Still, Up};
    let of = |id: Id| changes[id.0 as usize];
    let turned = |c: Change| match c {
        Still => Still,
        Up => Down,
        Down => Up,
    };
    let both = |a: Option<Change>, b: Option<Change>| match (a?, b?) {
        (a, b) if a == b => Some(a),
        (Still, x) | (x, Still) => Some(x),
        _ => None,
    };
    let positive = |id: Id| positive[id.0 as usize];
    match graph.node(id) {
        Node::Input(i) => ((i.0 as usize) < known).then_some(Still),
        Node::Add(a, b) | Node::Min(a, b) | Node::Max(a, b) => both(of(a), of(b)),
        Node::Sub(a, b) => both(of(a), of(b).map(turned)),
        Node::Mul(a, b) if positive(a) && positive(b) => both(of(a), of(b)),
        Node::Div(a, b) if positive(a) && positive(b) => both(of(a), of(b).map(turned)),
        Node::ToReal(a) | Node::Floor(a) | Node::Ceil(a) | Node::Sqrt(a) => of(a),
        Node::Select(_, _, x) if divisor(graph, id) == Some(x) => of(x),
        node => node.operands().iter().all(|o| of(*o) == Some(Still)).then_some(Still),
    }
}
