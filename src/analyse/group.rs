//! A process group as a cost function sees it: how many ranks, over which links, shared with whom.

use crate::elaborate::{Cluster, Job, Topology};
use crate::eval::{Evaluator, Num, Quantity, Record, Truth, Value};
use crate::expr::{self, Node};
use crate::layout::{AxisId, Place};
use crate::units::Unit;
use std::rc::Rc;

/// Members of a group inside one instance of each level, innermost first.
///
/// For an axis of size n and stride s and a level of c devices that is `max(1, min(n, c div s))`, exact where sizes and
/// strides divide the levels or the other way round. Several axes multiply, innermost first.
fn members(job: &Job<'_>, axes: &[AxisId], graph: &mut expr::Graph) -> Vec<expr::Id> {
    job.cluster.levels.iter().map(|level| inside(job, axes, level.devices, graph)).collect()
}

/// Members of a group among so many devices in a row.
fn inside(job: &Job<'_>, axes: &[AxisId], devices: i64, graph: &mut expr::Graph) -> expr::Id {
    let one = graph.int(1);
    let mut inside = one;
    for axis in axes {
        let a = job.layout.axis(*axis);
        let devices = graph.int(devices);
        let reach = graph.put(Node::FloorDiv(devices, a.stride));
        let n = graph.min(a.size, reach);
        let n = graph.max(one, n);
        inside = graph.mul(inside, n);
    }
    inside
}

/// How a group lies among the children of one level.
struct Ways {
    /// Directions it spreads in: 1 where the children meet in a switch.
    directions: expr::Id,
    /// Links of one child that a ring in every direction uses at once, where one is 1.
    links: expr::Id,
    /// Steps in which everyone has reached everyone.
    hops: expr::Id,
}

/// A torus is a grid of lines, a ring one line: a direction that the group covers whole closes, and rings then run
/// both ways around, each half as long. Everywhere else a ring takes one step fewer than it has members.
fn ways(job: &Job<'_>, axes: &[AxisId], at: usize, fanout: expr::Id, graph: &mut expr::Graph) -> Ways {
    let level = &job.cluster.levels[at];
    let (sizes, wrap) = match &level.topology {
        Topology::Torus { sizes, wrap } => (sizes.iter().map(|(_, n)| *n).collect(), *wrap),
        Topology::Ring => (vec![level.children], true),
        _ => (Vec::new(), false),
    };
    let (zero, one, two) = (graph.int(0), graph.int(1), graph.int(2));
    if sizes.is_empty() {
        return Ways { directions: one, links: one, hops: graph.sub(fanout, one) };
    }
    let (mut directions, mut links, mut hops) = (Vec::new(), Vec::new(), Vec::new());
    for (n, fanout) in lines(job, axes, at, &sizes, fanout, graph) {
        let spread = graph.lt(one, fanout);
        directions.push(graph.select(spread, one, zero));
        let whole = graph.int(n);
        let closed = graph.eq(fanout, whole);
        let (around, straight) = (graph.put(Node::FloorDiv(fanout, two)), graph.sub(fanout, one));
        // Between two in a row the link that closes the line is the one they have.
        let (both, half) = if wrap && n > 2 {
            (graph.select(closed, two, one), graph.select(closed, around, straight))
        } else {
            (one, straight)
        };
        links.push(graph.select(spread, both, zero));
        hops.push(half);
    }
    let mut at_least_one = |terms: Vec<expr::Id>| {
        let sum = graph.sum(terms);
        graph.max(sum, one)
    };
    Ways { directions: at_least_one(directions), links: at_least_one(links), hops: graph.sum(hops) }
}

/// Sizes of the directions of a torus, and how far a group of `fanout` children reaches in each: along those it is
/// placed on, otherwise in the order of the devices.
fn lines(
    job: &Job<'_>,
    axes: &[AxisId],
    at: usize,
    sizes: &[i64],
    fanout: expr::Id,
    graph: &mut expr::Graph,
) -> Vec<(i64, expr::Id)> {
    let placed = |p: &&Place| p.level == at && job.layout.fine(&p.axes).iter().any(|f| axes.contains(f));
    let mut along: Vec<_> = job.layout.places.iter().filter(placed).flat_map(|p| p.along.iter().copied()).collect();
    along.sort_unstable();
    along.dedup();
    let child = if at == 0 { 1 } else { job.cluster.levels[at - 1].devices };
    let one = graph.int(1);
    let mut out = Vec::new();
    if along.is_empty() {
        let (mut reach, mut below) = (child, inside(job, axes, child, graph));
        for n in sizes {
            reach *= n;
            let here = inside(job, axes, reach, graph);
            out.push((*n, graph.put(Node::ExactDiv(here, below))));
            below = here;
        }
        return out;
    }
    let mut left = fanout;
    for n in along.iter().filter_map(|d| sizes.get(*d)) {
        let whole = graph.int(*n);
        let here = graph.min(left, whole);
        out.push((*n, here));
        let rest = graph.put(Node::FloorDiv(left, whole));
        left = graph.max(rest, one);
    }
    out
}

/// The group of `axes` as the record a cost function takes.
pub(super) fn group<'p>(eval: &mut Evaluator<'p, '_>, job: &Job<'p>, axes: &[AxisId]) -> Value<'p> {
    let graph = &mut *eval.graph;
    let sizes: Vec<_> = axes.iter().map(|a| job.layout.axis(*a).size).collect();
    let size = graph.product(sizes);
    let inside = members(job, axes, graph);
    let one = graph.int(1);
    let mut below = one;
    let mut spans = Vec::new();
    let mut touched = Record::made("touched", "", job.span);
    // The narrowest span decides the bandwidth; the widest latency is met once a step.
    let mut bandwidth = graph.real(f64::MAX / 4.0);
    let mut sharing = one;
    let mut latency = graph.real(0.0);
    let mut in_network = graph.bool(true);
    let mut child = 1_i64;
    for (at, (level, here)) in job.cluster.levels.iter().zip(&inside).enumerate() {
        let fanout = graph.put(Node::ExactDiv(*here, below));
        let crossed = graph.lt(one, fanout);
        let ways = ways(job, axes, at, fanout, graph);
        let width = graph.real(level.child_bandwidth());
        let width = graph.mul(width, ways.directions);
        // Ranks below one child, each in a group of this axis, over the members of one group there.
        let ranks = graph.int(child);
        let siblings = graph.put(Node::FloorDiv(ranks, below));
        let siblings = graph.max(one, siblings);
        let share = graph.div(width, siblings);
        let so_far = graph.div(bandwidth, sharing);
        let narrower = graph.lt(share, so_far);
        let decides = graph.put(Node::And(crossed, narrower));
        bandwidth = graph.select(decides, width, bandwidth);
        sharing = graph.select(decides, siblings, sharing);
        let far = graph.real(level.latency());
        let longer = graph.max(latency, far);
        latency = graph.select(crossed, longer, latency);
        if !level.in_network {
            let stays = graph.put(Node::Not(crossed));
            in_network = graph.put(Node::And(in_network, stays));
        }
        let mut span = Record::made("span", level.name.as_str(), job.span);
        let mut say = |name: &str, value: Value<'p>| span.fields.insert(name.into(), value);
        say("fanout", Value::sym(fanout, Unit::none()));
        say("link", Value::Record(Rc::clone(&level.link)));
        say("links", Value::int(i128::from(level.links)));
        say("topology", Value::word(level.topology.word()));
        say("below", Value::sym(below, Unit::none()));
        say("members", Value::sym(*here, Unit::none()));
        say("bandwidth", Value::real(level.child_bandwidth(), Unit::bandwidth()));
        say("latency", Value::real(level.latency(), Unit::time()));
        say("sharing", Value::sym(siblings, Unit::none()));
        say("in_network", Value::Bool(Truth::Known(level.in_network)));
        say("network", Value::Bool(Truth::Known(child > 1)));
        say("directions", Value::sym(ways.directions, Unit::none()));
        say("ways", Value::sym(ways.links, Unit::none()));
        say("hops", Value::sym(ways.hops, Unit::none()));
        spans.push(Value::Record(Rc::new(span)));
        // How many children of the level the group touches: members over those in one child.
        let children = graph.put(Node::CeilDiv(size, below));
        touched.fields.insert(child_name(&job.cluster, child).into(), Value::sym(children, Unit::none()));
        below = *here;
        child = level.devices;
    }
    let mut g = Record::made("group", "", job.span);
    let mut put = |name: &str, value: Value<'p>| g.fields.insert(name.into(), value);
    put("size", Value::sym(size, Unit::none()));
    put("latency", Value::sym(latency, Unit::time()));
    put("bandwidth", Value::sym(bandwidth, Unit::bandwidth()));
    put("sharing", Value::sym(sharing, Unit::none()));
    put("in_network", Value::Bool(Truth::Sym(in_network)));
    put("spans", Value::List(Rc::new(spans)));
    put("touched", Value::Record(Rc::new(touched)));
    Value::Record(Rc::new(g))
}

/// The name of what has `devices` devices: a level, or the device itself.
fn child_name(cluster: &Cluster<'_>, devices: i64) -> String {
    cluster.levels.iter().find(|l| l.devices == devices).map_or_else(|| "device".into(), |l| l.name.clone())
}

/// The outermost level that a group of `axes` crosses at the point, by position; none for a group of one rank.
pub fn outermost_level(job: &Job<'_>, axes: &[AxisId], graph: &mut expr::Graph, inputs: &[f64]) -> Option<usize> {
    let inside = members(job, axes, graph);
    let values = graph.eval(inputs, &inside);
    let mut below = 1.0;
    let mut found = None;
    for (i, here) in values.into_iter().enumerate() {
        if here > below {
            found = Some(i);
        }
        below = here;
    }
    found
}

/// A number for a cost function.
pub(super) fn bytes<'p>(id: expr::Id) -> Value<'p> {
    Value::Num(Quantity { num: Num::Sym(id), unit: Unit::bytes() })
}
