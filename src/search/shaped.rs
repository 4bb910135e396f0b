//! One shape of a job, ready to judge many points: rules and unit times as columns, then each survivor's own run.

use super::{Goal, Region, Task};
use crate::analyse::rules::{self, Rule, RuleKind};
use crate::analyse::{Facts, Schedule, claims, schedule, stage};
use crate::diagnostics::{Diagnostic, Severity, Sink};
use crate::driver::{self, Shape};
use crate::elaborate::{Objective, Settings};
use crate::eval::{Env, Evaluator, Quantity, Value, Wanted};
use crate::expr::{self, Block, Graph, Node};
use crate::hir::Program;
use crate::source::{Sources, Span};
use crate::syntax::ast::{Expr, ExprKind};
use crate::units::{Unit, show};
use std::collections::BTreeMap;

/// What every point of a search gives beside its objectives.
pub(super) const SHOWN: usize = 4;

/// What became of a point.
#[derive(Clone, Debug)]
pub(super) enum Outcome {
    /// It breaks these rules of the shape, the first in order first.
    Broken(u128),
    /// Objectives (less is better), then step time, tokens a second, memory, utilisation.
    Legal(Vec<f64>),
}

/// A shape and what is prepared for it.
pub(super) struct Shaped<'p> {
    pub(super) program: &'p Program,
    /// Whether rules alone are looked at.
    light: bool,
    pub(super) shape: Shape<'p>,
    /// Rules in order; those after `early` need the counts of the schedule.
    pub(super) rules: Vec<Rule>,
    pub(super) early: usize,
    /// Which input of the graph each axis of the region is.
    pub(super) inputs: Vec<Option<usize>>,
    readings: Block,
    first: Block,
    pub(super) times: Block,
    last: Block,
    /// A node for each objective; less is better.
    pub(super) objectives: Vec<expr::Id>,
    /// What the objectives are.
    pub(super) goals: Vec<Goal>,
    schedules: BTreeMap<(u32, u32), Result<Schedule, usize>>,
}

impl<'p> Shaped<'p> {
    /// The shape that the region's point `n` has; `Err` tells why it has none.
    pub(super) fn new(task: Task<'p>, region: &Region, n: u64) -> Result<Self, Sink> {
        let mut sink = Sink::new();
        let made = Self::make(task, &region.settle(task.settings, n), region, &mut sink);
        made.ok_or(sink)
    }

    fn make(task: Task<'p>, settings: &Settings, region: &Region, sink: &mut Sink) -> Option<Self> {
        let Task { program, sources, light, .. } = task;
        let mut shape = driver::shape(program, task.job, settings, light, sink)?;
        let mut all = rules::rules(&shape.job, &shape.sharded, &shape.called, &mut shape.graph, sources);
        let names = shape.metrics.names(&shape.job);
        let mut eval = Evaluator::new(program, &mut shape.graph, sink);
        all.extend(rules::requirements(&mut eval, &shape.job.claims, &names, sources, light)?);
        let objective = shape.job.objective.clone();
        let (objectives, goals) = match &objective {
            _ if light => (Vec::new(), Vec::new()),
            Some(o) => objective_nodes(&mut eval, o, &names, sources)?,
            None => {
                let step = Goal { text: "step_time".into(), maximize: false, unit: Unit::time() };
                (vec![shape.roots.step_time], vec![step])
            }
        };
        // What the schedule counts is known after the point's own run.
        let known = shape.job.point.len();
        let late = depends(&shape.graph, known);
        let (mut early, later): (Vec<Rule>, Vec<Rule>) = all.into_iter().partition(|r| !late[r.cond.0 as usize]);
        let place = |kind: RuleKind, name: &str, span: Span| Rule {
            cond: shape.metrics.fits,
            kind,
            name: name.into(),
            span,
            sides: None,
        };
        let job = &shape.job;
        let count = early.len();
        let pipeline = job.pipeline.as_ref();
        let schedule = pipeline.map_or("none", |p| p.schedule.decl.name.text.as_str());
        early.push(place(
            RuleKind::Schedule,
            &format!("the schedule `{schedule}` takes so many stages and microbatches"),
            pipeline.map_or(job.span, |p| p.schedule_span),
        ));
        early.push(place(
            RuleKind::Split,
            "the layers split over the stages",
            pipeline.map_or(job.span, |p| p.split_span),
        ));
        if !claims::expects_no_fit(&job.claims) {
            let at = job.places.get("layout").copied().unwrap_or(job.span);
            let usable = show(job.cluster.device_field("usable"), &Unit::bytes());
            early.push(place(
                RuleKind::Fits,
                &format!("every stage fits into {usable} of {}", job.cluster.device.name),
                at,
            ));
        }
        early.extend(later);
        let rules = early;
        let graph = &shape.graph;
        let readings: Vec<_> = job.readings.iter().map(|(id, _)| *id).collect();
        let first: Vec<_> = rules[..count].iter().map(|r| r.cond).collect();
        let p = pipeline.map(|p| job.layout.axis(p.axis).size);
        let mut times = stage::UnitValues::nodes(&shape.costs, &shape.roots);
        times.push(job.microbatches);
        times.extend(p);
        let r = &shape.roots;
        let mut last: Vec<_> = rules[count..].iter().map(|r| r.cond).collect();
        last.extend(&objectives);
        last.extend([r.step_time, r.tokens_per_s, r.peak_memory, r.mfu]);
        let inputs = region
            .axes
            .iter()
            .map(|a| {
                let choice = job.choices.iter().find(|c| c.span == a.span)?;
                let Node::Input(i) = graph.node(choice.input?) else { return None };
                Some(i.0 as usize)
            })
            .collect();
        Some(Self {
            program,
            light,
            early: count,
            inputs,
            readings: Block::new(graph, &readings),
            first: Block::new(graph, &first),
            times: Block::new(graph, &times),
            last: Block::new(graph, &last),
            goals,
            objectives,
            schedules: BTreeMap::new(),
            rules,
            shape,
        })
    }

    /// A column for each input of the graph, of the region's points `list`.
    pub(super) fn columns(&self, region: &Region, list: &[u64]) -> Vec<Vec<f64>> {
        let mut columns: Vec<Vec<f64>> = self.shape.job.point.iter().map(|v| vec![*v; list.len()]).collect();
        for (row, n) in list.iter().enumerate() {
            for ((axis, digit), input) in region.axes.iter().zip(region.digits(*n)).zip(&self.inputs) {
                if let Some(column) = input.and_then(|i| columns.get_mut(i)) {
                    column[row] = axis.value(digit) as f64;
                }
            }
        }
        columns
    }

    /// Those of `list` that have this shape, and the rest.
    pub(super) fn divide(&self, region: &Region, list: &[u64]) -> (Vec<u64>, Vec<u64>) {
        let expected: Vec<f64> = self.shape.job.readings.iter().map(|(_, v)| *v).collect();
        if expected.is_empty() {
            return (list.to_vec(), Vec::new());
        }
        let columns = self.columns(region, list);
        let columns: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
        let found = self.readings.run(list.len(), &columns);
        let same = |row: usize| found.iter().zip(&expected).all(|(c, e)| expr::scalar::equal(c[row], *e));
        let rows = list.iter().enumerate();
        let (own, rest): (Vec<_>, Vec<_>) = rows.partition(|(row, _)| same(*row));
        let plain = |v: Vec<(usize, &u64)>| v.into_iter().map(|(_, n)| *n).collect();
        (plain(own), plain(rest))
    }

    /// Judges the region's points `list`, all of this shape.
    pub(super) fn judge(&mut self, region: &Region, list: &[u64]) -> Vec<Outcome> {
        let columns = self.columns(region, list);
        let views: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
        let first = self.first.run(list.len(), &views);
        let mut out: Vec<Outcome> =
            (0..list.len()).map(|row| Outcome::Broken(mask(first.iter().map(|c| c[row] > 0.0)))).collect();
        let sound: Vec<usize> = (0..list.len()).filter(|row| matches!(out[*row], Outcome::Broken(0))).collect();
        if sound.is_empty() {
            return out;
        }
        if self.light {
            for row in sound {
                out[row] = Outcome::Legal(vec![0.0; SHOWN]);
            }
            return out;
        }
        let columns: Vec<Vec<f64>> = columns.iter().map(|c| sound.iter().map(|row| c[*row]).collect()).collect();
        let views: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
        let times = self.times.run(sound.len(), &views);
        let mut run = Vec::new();
        let mut counted: Vec<Vec<f64>> = Vec::new();
        for (i, row) in sound.iter().enumerate() {
            let point: Vec<f64> = columns.iter().map(|c| c[i]).collect();
            let at: Vec<f64> = times.iter().map(|c| c[i]).collect();
            match self.counts(&point, &at) {
                Ok(inputs) => {
                    run.push(*row);
                    counted.push(inputs);
                }
                Err(rule) => out[*row] = Outcome::Broken(bit(rule)),
            }
        }
        let width = counted.first().map_or(0, Vec::len);
        let columns: Vec<Vec<f64>> = (0..width).map(|c| counted.iter().map(|point| point[c]).collect()).collect();
        let views: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
        let last = self.last.run(run.len(), &views);
        let conds = self.rules.len() - self.early;
        for (i, row) in run.iter().enumerate() {
            // The first two are of the schedule and the split: settled above.
            let held = last[..conds].iter().enumerate().map(|(c, column)| c < 2 || column[i] > 0.0);
            let broken = mask(held);
            out[*row] = if broken == 0 {
                Outcome::Legal(last[conds..].iter().map(|c| c[i]).collect())
            } else {
                Outcome::Broken(broken.checked_shl(self.early as u32).unwrap_or(0))
            };
        }
        out
    }

    /// The graph's inputs at a point, its schedule run; or the rule that it breaks.
    fn counts(&mut self, point: &[f64], times: &[f64]) -> Result<Vec<f64>, usize> {
        let (key, facts) = self.facts(times)?;
        let (shape, schedule) = (&self.shape, &self.schedules[&key]);
        let mut inputs = shape.roots.inputs(&shape.graph, point, &facts);
        if let Ok(schedule) = schedule {
            shape.metrics.put(&shape.graph, schedule, &facts, &mut inputs);
        }
        Ok(inputs)
    }

    /// The schedule with so many ranks and microbatches, once it was met.
    pub(super) fn schedule(&self, key: (u32, u32)) -> Option<&Schedule> {
        self.schedules.get(&key)?.as_ref().ok()
    }

    /// Ranks and microbatches at a point whose `times` block gave these values, and what its run counts; or the rule that
    /// it breaks.
    pub(super) fn facts(&mut self, times: &[f64]) -> Result<((u32, u32), Facts), usize> {
        let shape = &self.shape;
        let pipelined = usize::from(shape.job.pipeline.is_some());
        let (values, numbers) = times.split_at(times.len() - 1 - pipelined);
        let values = stage::UnitValues::read(values);
        let m = numbers[0];
        let p = numbers.get(1).copied().unwrap_or(1.0);
        let (p, m) = (p as u32, if m <= f64::from(u32::MAX) { m as u32 } else { u32::MAX });
        let (program, early) = (self.program, self.early);
        let job = &shape.job;
        let pipeline = job.pipeline.as_ref();
        let entry = self.schedules.entry((p, m)).or_insert_with(|| {
            let (mut graph, mut sink) = (Graph::new(), Sink::new());
            let made = match pipeline {
                None => schedule::single(m),
                Some(item) => {
                    let mut eval = Evaluator::new(program, &mut graph, &mut sink);
                    let made = schedule::evaluate(&mut eval, item, (p, m), &schedule::Use::default());
                    let may = |s: &Schedule, sink: &mut Sink| {
                        s.keeps_none().is_none() && schedule::staleness_accepted(job, s, sink)
                    };
                    made.filter(|s| may(s, &mut Sink::new()))
                }
            };
            made.ok_or(early)
        });
        let schedule = match entry {
            Ok(s) => s,
            Err(rule) => return Err(*rule),
        };
        let chunks = stage::cut(&shape.job, schedule, &values, &mut Sink::new()).ok_or(early + 1)?;
        Ok(((p, m), stage::count(&shape.job, &shape.sharded, schedule, chunks, &values)))
    }

    /// Whether each of the points with these columns has this shape and obeys every rule that needs no schedule.
    pub(super) fn sound(&self, n: usize, columns: &[&[f64]]) -> Vec<bool> {
        let expected = self.shape.job.readings.iter().map(|(_, v)| *v);
        let (read, held) = (self.readings.run(n, columns), self.first.run(n, columns));
        let same = |row: usize| read.iter().zip(expected.clone()).all(|(c, e)| expr::scalar::equal(c[row], e));
        (0..n).map(|row| same(row) && held.iter().all(|c| c[row] > 0.0)).collect()
    }

    /// Nodes of the shape at the region's points `list`; `None` where one needs the counts of the schedule.
    pub(super) fn values(&self, region: &Region, list: &[u64], ids: &[expr::Id]) -> Option<Vec<Vec<f64>>> {
        let late = depends(&self.shape.graph, self.shape.job.point.len());
        if ids.iter().any(|id| late[id.0 as usize]) {
            return None;
        }
        let columns = self.columns(region, list);
        let views: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
        Some(Block::new(&self.shape.graph, ids).run(list.len(), &views))
    }
}

/// Why a shape could not be made, as a rule.
pub(super) fn refusal(sink: Sink, job: Span) -> (Rule, Option<Diagnostic>) {
    let found = sink.finish().into_iter().find(|d| d.code.info().severity == Severity::Error);
    let (name, span) = match &found {
        Some(d) => (format!("no error: {}", d.message), d.primary.span),
        None => ("the layout can be partitioned".to_string(), job),
    };
    (Rule { cond: expr::Id(0), kind: RuleKind::Division, name, span, sides: None }, found)
}

/// Bit `i` set where the i-th does not hold; more than 128 share the last bit.
fn mask(held: impl Iterator<Item = bool>) -> u128 {
    held.enumerate().filter(|(_, h)| !h).fold(0, |m, (i, _)| m | bit(i))
}

fn bit(i: usize) -> u128 {
    1 << i.min(127)
}

/// Whether each node depends on an input from `known` on.
fn depends(graph: &Graph, known: usize) -> Vec<bool> {
    let mut out: Vec<bool> = Vec::with_capacity(graph.len());
    for id in graph.ids() {
        let node = graph.node(id);
        let own = matches!(node, Node::Input(i) if i.0 as usize >= known);
        let below = node.operands().iter().any(|o| out[o.0 as usize]);
        out.push(own || below);
    }
    out
}

/// A node for each objective; less is better.
fn objective_nodes<'p>(
    eval: &mut Evaluator<'p, '_>,
    objective: &Objective<'p>,
    names: &[(smol_str::SmolStr, Value<'p>)],
    sources: &Sources,
) -> Option<(Vec<expr::Id>, Vec<Goal>)> {
    let env = Env::with(&objective.env, names.to_vec());
    let parts: &'p [Expr] = match &objective.value.kind {
        ExprKind::List(list) => list.as_slice(),
        _ => std::slice::from_ref(objective.value),
    };
    let (mut out, mut goals) = (Vec::new(), Vec::new());
    for e in parts {
        match eval.eval(e, &env, &Wanted::Any) {
            Value::Num(Quantity { num, unit }) => {
                let text = sources.snippet(e.span).split_whitespace().collect::<Vec<_>>().join(" ");
                goals.push(Goal { text, maximize: objective.maximize, unit });
                let node = eval.node(num);
                let node = eval.graph.to_real(node);
                let zero = eval.graph.real(0.0);
                out.push(if objective.maximize { eval.graph.sub(zero, node) } else { node });
            }
            Value::Error(_) => return None,
            other => {
                let noun = other.noun();
                eval.sink.error(crate::eval::errors::wrong_kind("an objective", "a number", &noun, e.span));
                return None;
            }
        }
    }
    Some((out, goals))
}
