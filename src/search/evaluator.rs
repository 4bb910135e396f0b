//! A job as an evaluator that other programs call: layout parameters in; legality, memory and times out.

use super::known::{self, Count, Known, Slots};
use super::shaped::{Shaped, refusal};
use super::{Region, Space, Task, errors};
use crate::analyse::rules::RuleKind;
use crate::diagnostics::Sink;
use crate::emit::evaluator::product::{Column, Evaluator};
use crate::expr::{Graph, Id, Input, Kind, Node, Table};
use crate::limits;
use crate::source::Span;
use crate::units::{Base, Unit};
use std::collections::BTreeMap;

/// Points whose schedule is run.
const RUNS: usize = 4_096;
/// Operations of all runs together.
const OPERATIONS: usize = 4_000_000;
/// The same where nothing is open.
const BESIDE: usize = 50_000;
/// Points among which runs are chosen.
const POINTS: u64 = 65_536;

/// The evaluator of the task's job. Where the layout has open choices it knows the schedules of all their legal points;
/// where it has none, that of the file and of the numbers of ranks and microbatches beside it.
pub fn evaluator(task: Task<'_>, space: &Space, sink: &mut Sink) -> Option<Evaluator> {
    let [region] = &space.regions[..] else {
        sink.error(errors::evaluator_of_one_graph(&space.open));
        return None;
    };
    let (mut shaped, points) = legal_shape(task, region, sink)?;
    let runs = Runs::new(&mut shaped, &points);
    let Some(runs) = runs else {
        sink.error(errors::evaluator_empty(shaped.shape.job.span));
        return None;
    };
    Some(build(&shaped, region, &runs))
}

/// The first shape with legal points, and these as lists of inputs.
fn legal_shape<'p>(task: Task<'p>, region: &Region, sink: &mut Sink) -> Option<(Shaped<'p>, Vec<Vec<f64>>)> {
    let mut left: Vec<u64> = (0..region.points.min(POINTS)).collect();
    let mut refused = None;
    for _ in 0..limits::SEARCH_SHAPES {
        let Some(witness) = left.first().copied() else { break };
        let shaped = match Shaped::new(task, region, witness) {
            Ok(shaped) => shaped,
            Err(why) => {
                refused = refused.or(refusal(why, Span::NOWHERE).1);
                left.remove(0);
                continue;
            }
        };
        let (own, rest) = shaped.divide(region, &left);
        let columns = if region.axes.is_empty() { beside(&shaped) } else { shaped.columns(region, &own) };
        let n = columns.first().map_or(own.len(), Vec::len);
        let views: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
        let sound = shaped.sound(n, &views);
        let points: Vec<Vec<f64>> =
            (0..n).filter(|row| sound[*row]).map(|row| columns.iter().map(|c| c[row]).collect()).collect();
        if !points.is_empty() {
            return Some((shaped, points));
        }
        left = rest;
    }
    sink.error(refused.unwrap_or_else(|| errors::evaluator_empty(Span::NOWHERE)));
    None
}

/// The point of the file, and those with some of its parameters halved or doubled, fewest changes first.
fn beside(shaped: &Shaped<'_>) -> Vec<Vec<f64>> {
    let job = &shaped.shape.job;
    let mut points = vec![(0, job.point.clone())];
    for p in job.parameters.iter().filter(|p| p.name != "sequence").take(6) {
        let Node::Input(i) = shaped.shape.graph.node(p.input) else { continue };
        let i = i.0 as usize;
        for (changes, point) in points.clone() {
            let with = |v: f64| {
                let mut point = point.clone();
                point[i] = v;
                (changes + 1, point)
            };
            points.extend([2.0 * point[i], (point[i] / 2.0).floor()].into_iter().filter(|v| *v >= 1.0).map(with));
        }
    }
    points.sort_by_key(|(changes, _)| *changes);
    (0..job.point.len()).map(|i| points.iter().map(|(_, point)| point[i]).collect()).collect()
}

/// What the runs of some points counted, by key.
struct Runs {
    /// What a key is made of: nodes of the shape's graph.
    parts: Vec<Id>,
    keys: BTreeMap<Vec<i64>, Known>,
    /// Whether the time of a point is that of its own run, and not of the longest path known.
    own: bool,
    /// Points run.
    points: usize,
}

impl Runs {
    fn new(shaped: &mut Shaped<'_>, points: &[Vec<f64>]) -> Option<Self> {
        let open = shaped.shape.job.choices.iter().any(|c| !c.settled);
        let most = if open { OPERATIONS } else { BESIDE };
        let mut runs = Self { parts: Vec::new(), keys: BTreeMap::new(), own: false, points: 0 };
        let mut operations = 0;
        for point in points {
            let columns: Vec<&[f64]> = point.iter().map(std::slice::from_ref).collect();
            let times: Vec<f64> = shaped.times.run(1, &columns).iter().map(|c| c[0]).collect();
            let Ok((key, facts)) = shaped.facts(&times) else { continue };
            let Some(schedule) = shaped.schedule(key) else { continue };
            if runs.keys.is_empty() {
                runs.own = !known::follows(&shaped.shape, schedule);
                runs.parts = if runs.own { all_inputs(shaped) } else { ranks_and_microbatches(shaped) };
            }
            let of_key =
                if runs.own { point.iter().map(|v| *v as i64).collect() } else { vec![key.0.into(), key.1.into()] };
            runs.keys.entry(of_key).or_insert_with(|| Known::new(schedule)).add(&facts);
            runs.points += 1;
            operations += (0..schedule.orders.ranks()).map(|s| schedule.orders.order(s).len()).sum::<usize>();
            if runs.points >= RUNS || operations > most {
                break;
            }
        }
        (!runs.keys.is_empty()).then_some(runs)
    }
}

fn all_inputs(shaped: &Shaped<'_>) -> Vec<Id> {
    let shape = &shaped.shape;
    let count = shape.job.point.len();
    let inputs = shape.graph.ids().filter_map(|id| match shape.graph.node(id) {
        Node::Input(i) if (i.0 as usize) < count => Some((i.0, id)),
        _ => None,
    });
    // In the order of the columns.
    inputs.collect::<BTreeMap<_, _>>().into_values().collect()
}

fn ranks_and_microbatches(shaped: &Shaped<'_>) -> Vec<Id> {
    let job = &shaped.shape.job;
    let ranks = job.pipeline.as_ref().map(|p| job.layout.axis(p.axis).size);
    ranks.into_iter().chain([job.microbatches]).collect()
}

fn build(shaped: &Shaped<'_>, region: &Region, runs: &Runs) -> Evaluator {
    let (shape, job) = (&shaped.shape, &shaped.shape.job);
    let mut graph = Graph::new();
    let declared = shape.graph.inputs().iter().take(job.point.len());
    let parameters: Vec<Id> = declared.clone().map(|i| graph.input(i.clone())).collect();
    let leaf = |_: &mut Graph, i: crate::expr::InputId| parameters[i.0 as usize];
    let parts = graph.graft(&shape.graph, &runs.parts, &[], leaf);
    let with_ranks = parts.len() > 1 || job.pipeline.is_some();
    let keys: Vec<Vec<i64>> =
        runs.keys.keys().map(|k| if with_ranks || runs.own { k.clone() } else { k[1..].to_vec() }).collect();
    let (index, is_known) = find(&mut graph, &parts, &keys);
    let known: Vec<&Known> = runs.keys.values().collect();
    let slots = Slots::of(known.iter().copied());
    let count = |g: &mut Graph, count: Count| {
        let values = known.iter().map(|k| count.value(&shape.roots, k)).collect();
        let real = matches!(count, Count::Schedule(_) | Count::Path(_, 0));
        let table = g.table(Table { kind: if real { Kind::Real } else { Kind::Int }, values });
        g.lookup(table, index)
    };
    let metrics: Vec<_> = shape.metrics.nodes.iter().filter(|(_, id, _)| !reads_run(shaped, *id)).collect();
    let mut roots: Vec<Id> = metrics.iter().map(|(_, id, _)| *id).collect();
    roots.extend([shape.roots.pipeline_time, shape.roots.update]);
    let conds: Vec<_> =
        shaped.rules.iter().filter(|r| !matches!(r.kind, RuleKind::Schedule | RuleKind::Split)).collect();
    let wanted: Vec<Id> = roots.iter().copied().chain(conds.iter().map(|r| r.cond)).collect();
    let made = known::graft(shape, &mut graph, &parameters, slots, &wanted, count);
    let (values, held) = made.split_at(roots.len());

    let mut rules: Vec<(String, Id)> = Vec::new();
    if !job.readings.is_empty() {
        let nodes: Vec<Id> = job.readings.iter().map(|(id, _)| *id).collect();
        let nodes = graph.graft(&shape.graph, &nodes, &[], leaf);
        let expected = job.readings.iter().map(|(_, v)| *v);
        let same = nodes.into_iter().zip(expected).fold(graph.bool(true), |all, (node, v)| {
            let v = graph.real(v);
            let same = graph.eq(node, v);
            graph.and(all, same)
        });
        rules.push(("the choices that shape the graph are those compiled".into(), same));
    }
    let late = conds.iter().position(|r| r.kind > RuleKind::Split).unwrap_or(conds.len());
    for (i, (rule, cond)) in conds.iter().zip(held).enumerate() {
        if i == late {
            rules.push((UNKNOWN.into(), is_known));
        }
        rules.push((rule.name.clone(), *cond));
    }
    if late == conds.len() {
        rules.push((UNKNOWN.into(), is_known));
    }
    let legal = graph.int(0);
    let status = rules.iter().enumerate().rev().fold(legal, |rest, (i, (_, cond))| {
        let broken = graph.int(i as i64 + 1);
        graph.select(*cond, rest, broken)
    });
    let unit = |name: &str| match name {
        "batch" | "micro_batch" => Unit::base(Base::Seq),
        "sequence" => Unit::base(Base::Tok),
        _ => Unit::none(),
    };
    let mut inputs: Vec<Column> = Vec::new();
    for (i, at) in declared.zip(&job.point) {
        let same = inputs.iter().filter(|c| c.name.split('#').next() == Some(i.name.as_str())).count();
        let name = if same == 0 { i.name.clone() } else { format!("{}#{}", i.name, same + 1) };
        inputs.push(column(&name, &unit(&i.name), Some((i, *at))));
    }
    let mut outputs = vec![column("status", &Unit::none(), None)];
    outputs.extend(metrics.iter().map(|(name, _, unit)| column(name, unit, None)));
    outputs.extend(["pipeline_time", "update_time"].map(|name| column(name, &Unit::time(), None)));
    Evaluator {
        job: job.name.clone(),
        inputs,
        outputs,
        rules: rules.into_iter().map(|(name, _)| name).collect(),
        roots: std::iter::once(status).chain(values.iter().copied()).collect(),
        graph,
        runs: runs.points,
        keys: keys.len(),
        own_runs: runs.own,
        open: region.axes.iter().map(|a| a.name.clone()).collect(),
    }
}

/// The rule broken where the schedule was not run.
const UNKNOWN: &str = "the schedule was run for so many stages and microbatches";

fn column(name: &str, unit: &Unit, input: Option<(&Input, f64)>) -> Column {
    let (lo, hi) = input.map_or((0.0, 0.0), |(i, _)| (i.lo, i.hi));
    Column { name: name.to_string(), unit: unit.to_string(), lo, hi, default: input.map_or(0.0, |(_, at)| at) }
}

/// Whether a metric reads what only the point's own run tells.
fn reads_run(shaped: &Shaped<'_>, id: Id) -> bool {
    let mut read = false;
    Graph::new().graft(&shaped.shape.graph, &[id], &[], |g, i| {
        read |= shaped.shape.metrics.of_run.iter().any(|run| shaped.shape.graph.node(*run) == Node::Input(i));
        g.input(shaped.shape.graph.inputs()[i.0 as usize].clone())
    });
    read
}

/// Where `parts` stand in the sorted list of keys, and whether they are in it: halvings without a branch.
fn find(graph: &mut Graph, parts: &[Id], keys: &[Vec<i64>]) -> (Id, Id) {
    let ends = |i: usize| {
        let of_part = keys.iter().map(|k| k[i]);
        (of_part.clone().min().unwrap_or(0), of_part.max().unwrap_or(0))
    };
    let ends: Vec<(i64, i64)> = (0..parts.len()).map(ends).collect();
    let mut inside = graph.bool(true);
    let mut code = graph.int(0);
    for (part, (least, most)) in parts.iter().zip(&ends) {
        let (bottom, top, radix) = (graph.int(*least), graph.int(*most), graph.int(most - least + 1));
        let (above, below) = (graph.le(bottom, *part), graph.le(*part, top));
        let between = graph.and(above, below);
        inside = graph.and(inside, between);
        let part = graph.max(*part, bottom);
        let part = graph.min(part, top);
        let part = graph.sub(part, bottom);
        code = graph.mul(code, radix);
        code = graph.add(code, part);
    }
    let number = |k: &Vec<i64>| {
        let digits = k.iter().zip(&ends);
        digits.fold(0.0, |n, (v, (least, most))| n * (most - least + 1) as f64 + (v - least) as f64)
    };
    let table = graph.table(Table { kind: Kind::Int, values: keys.iter().map(number).collect() });
    let last = graph.int(keys.len() as i64 - 1);
    let mut at = graph.int(0);
    for bit in (0..usize::BITS - keys.len().leading_zeros()).rev() {
        let step = graph.int(1 << bit);
        let next = graph.add(at, step);
        let next = graph.min(next, last);
        let there = graph.lookup(table, next);
        let far = graph.le(there, code);
        at = graph.select(far, next, at);
    }
    let found = graph.lookup(table, at);
    let same = graph.eq(found, code);
    (at, graph.and(inside, same))
}
