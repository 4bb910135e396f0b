//! A process group as a cost function sees it: how many ranks, over which links, shared with whom.

use crate::elaborate::{Cluster, Job};
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
    let one = graph.int(1);
    let mut out = Vec::new();
    for level in &job.cluster.levels {
        let mut inside = one;
        for axis in axes {
            let a = job.layout.axis(*axis);
            let devices = graph.int(level.devices);
            let reach = graph.put(Node::FloorDiv(devices, a.stride));
            let n = graph.min(a.size, reach);
            let n = graph.max(one, n);
            inside = graph.mul(inside, n);
        }
        out.push(inside);
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
        let width = graph.real(level.child_bandwidth() * directions(job, axes, at) as f64);
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
        span.fields.insert("fanout".into(), Value::sym(fanout, Unit::none()));
        span.fields.insert("link".into(), Value::Record(Rc::clone(&level.link)));
        span.fields.insert("links".into(), Value::int(i128::from(level.links)));
        span.fields.insert("topology".into(), Value::word(level.topology.word()));
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

/// Along how many directions of a torus `axes` are placed: a child has links of its own in each.
fn directions(job: &Job<'_>, axes: &[AxisId], level: usize) -> usize {
    let layout = &job.layout;
    let placed = |p: &&Place| p.level == level && layout.fine(&p.axes).iter().any(|f| axes.contains(f));
    let mut along: Vec<_> = layout.places.iter().filter(placed).flat_map(|p| p.along.iter().copied()).collect();
    along.sort_unstable();
    along.dedup();
    along.len().max(1)
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
