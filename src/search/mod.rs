//! Exhaustive search of a job's open choices: every point judged, the best kept, what the others broke counted.
//!
//! The space is cut into runs of points that threads take in turn. Points that shape the graph alike share one
//! ([`crate::driver::Shape`]): rules and unit times are columns over many points, and the schedule is run for those
//! that are left. What a point gives does not depend on who evaluates it, so results do not depend on threads.

mod answer;
mod bound;
mod conflict;
mod errors;
mod evaluator;
mod guided;
mod known;
mod nest;
mod report;
mod settle;
mod shaped;
mod space;

pub use answer::{Answer, Goal, Rejected, Row};
pub use conflict::explain;
pub use errors::grouped;
pub use evaluator::evaluator;
pub use report::{CannotMerge, Report};
pub use settle::{Open, legal_point, settle};
pub use space::{Axis, Fixed, Region, Space};

use crate::analyse::rules::Rule;
use crate::diagnostics::Diagnostic;
use crate::elaborate::Settings;
use crate::hir::{DeclId, Program};
use crate::limits;
use crate::source::{Sources, Span};
use indexmap::IndexMap;
use shaped::{Outcome, SHOWN, Shaped, refusal};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Points a thread takes at a time.
const RUN: u64 = 4_096;
/// Ways of failing that are told apart when nothing is legal.
const WAYS: usize = 4_096;
/// Points that are judged to say why nothing is legal.
const WHY: u64 = 1 << 18;

/// What to search and how.
#[derive(Copy, Clone, Debug)]
pub struct Task<'a> {
    /// The program.
    pub program: &'a Program,
    /// Its files.
    pub sources: &'a Sources,
    /// The job.
    pub job: DeclId,
    /// Values given from outside.
    pub settings: &'a Settings,
    /// Rows kept.
    pub top: usize,
    /// Threads.
    pub threads: usize,
    /// Whether rules alone are looked at, no times.
    pub light: bool,
    /// Points looked at, from the first.
    pub limit: u64,
    /// Spaces of up to so many points are judged point by point, larger ones as far as it takes to find the best.
    pub whole: u64,
    /// Which part of how many to search, from 0.
    pub part: (u64, u64),
    /// Ends the search with what it has, once true.
    pub stop: &'a AtomicBool,
}

impl Task<'_> {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// What one run of points gave.
#[derive(Default)]
struct Part {
    /// The best rows.
    rows: Vec<Row>,
    /// Points that broke a rule, by the rule they broke first.
    broken: IndexMap<String, (Rule, u64)>,
    /// Every rule met.
    rules: IndexMap<String, Rule>,
    /// Sets of rules that some point breaks.
    ways: BTreeMap<Vec<String>, u64>,
    legal: u64,
    goals: Vec<Goal>,
    /// Why a shape could not be made.
    refused: Option<Diagnostic>,
}

/// Searches `space`; `progress` is told how many points are done.
pub fn search(task: Task<'_>, space: &Space, progress: &(dyn Fn(u64) + Sync)) -> Answer {
    if space.points > task.whole
        && !task.light
        && let Some(found) = guided::guided(task, space, progress)
        && (found.part.legal > 0 || task.part.1 > 1 || task.stopped())
    {
        let (judged, bounded, proved) = (found.judged, found.bounded, found.proved);
        let stopped = task.stopped();
        return Answer { judged, bounded, proved, stopped, ..Answer::new(task, space, found.part) };
    }
    // Where nothing is legal, the first points say why.
    every(Task { limit: task.limit.min(task.whole.max(WHY)), ..task }, space, progress)
}

/// Judges every point of `space`.
fn every(task: Task<'_>, space: &Space, progress: &(dyn Fn(u64) + Sync)) -> Answer {
    let runs: Vec<(usize, u64, u64)> = space
        .regions
        .iter()
        .enumerate()
        .flat_map(|(r, region)| {
            (0..region.points.div_ceil(RUN)).map(move |k| (r, k * RUN, ((k + 1) * RUN).min(region.points)))
        })
        .take_while(|(r, from, _)| space.regions[*r].start + from < task.limit)
        .enumerate()
        .filter(|(i, _)| *i as u64 % task.part.1 == task.part.0)
        .map(|(_, run)| run)
        .collect();
    let (next, done) = (AtomicU64::new(0), AtomicU64::new(0));
    let work = || {
        let mut parts: Vec<(usize, Part)> = Vec::new();
        let mut shapes: (usize, Vec<Shaped<'_>>) = (0, Vec::new());
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed) as usize;
            let Some((r, from, to)) = runs.get(i).copied().filter(|_| !task.stopped()) else { return parts };
            if shapes.0 != r {
                shapes = (r, Vec::new());
            }
            let mut part = Part::default();
            part.run(task, &space.regions[r], &mut shapes.1, from, to);
            parts.push((i, part));
            progress(done.fetch_add(to - from, Ordering::Relaxed) + (to - from));
        }
    };
    let threads = task.threads.clamp(1, runs.len().max(1));
    let mut parts: Vec<(usize, Part)> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let own = work();
        let joined = others.into_iter().flat_map(|t| t.join().unwrap_or_default());
        own.into_iter().chain(joined).collect()
    });
    parts.sort_by_key(|(i, _)| *i);
    let mut all = Part::default();
    for (_, part) in parts {
        all.join(part, task.top);
    }
    let stopped = task.stopped();
    Answer { stopped, proved: !stopped, ..Answer::new(task, space, all) }
}

impl Part {
    /// Judges points `from..to` of `region`.
    fn run<'p>(&mut self, task: Task<'p>, region: &Region, shapes: &mut Vec<Shaped<'p>>, from: u64, to: u64) {
        let mut left: Vec<u64> = (from..to).collect();
        let mut at = 0;
        while !left.is_empty() {
            if at == shapes.len() {
                let witness = left[0];
                match Shaped::new(task, region, witness) {
                    Ok(shaped) if shapes.len() < limits::SEARCH_SHAPES => shapes.push(shaped),
                    // Too many shapes to keep: this one serves its point alone.
                    Ok(mut shaped) => {
                        let outcomes = shaped.judge(region, &[witness]);
                        self.take(&shaped, region, &[witness], outcomes, task.top);
                        left.remove(0);
                        continue;
                    }
                    Err(sink) => {
                        let (rule, diagnostic) = refusal(sink, Span::NOWHERE);
                        self.refused = self.refused.take().or(diagnostic);
                        self.count(std::slice::from_ref(&rule), 1);
                        left.remove(0);
                        continue;
                    }
                }
            }
            let (own, rest) = shapes[at].divide(region, &left);
            if !own.is_empty() {
                let outcomes = shapes[at].judge(region, &own);
                self.take(&shapes[at], region, &own, outcomes, task.top);
            }
            left = rest;
            at += 1;
        }
    }

    fn take(&mut self, shaped: &Shaped<'_>, region: &Region, points: &[u64], outcomes: Vec<Outcome>, top: usize) {
        if self.goals.is_empty() {
            self.goals.clone_from(&shaped.goals);
        }
        let mut ways: BTreeMap<u128, u64> = BTreeMap::new();
        for rule in &shaped.rules {
            if !self.rules.contains_key(&rule.name) {
                self.rules.insert(rule.name.clone(), rule.clone());
            }
        }
        for (n, outcome) in points.iter().zip(outcomes) {
            match outcome {
                Outcome::Broken(mask) => *ways.entry(mask).or_default() += 1,
                Outcome::Legal(values) => {
                    self.legal += 1;
                    let (objectives, shown) = values.split_at(values.len() - SHOWN);
                    let objectives = objectives.to_vec();
                    self.rows.push(Row {
                        point: region.start + n,
                        objectives,
                        step_time: shown[0],
                        tokens_per_s: shown[1],
                        peak_memory: shown[2],
                        mfu: shown[3],
                    });
                    if self.rows.len() >= 2 * top.max(limits::PARETO_POINTS) {
                        self.trim(top);
                    }
                }
            }
        }
        for (mask, n) in ways {
            let broken: Vec<Rule> = shaped
                .rules
                .iter()
                .enumerate()
                .filter(|(i, _)| mask >> i.min(&127) & 1 == 1)
                .map(|(_, r)| r.clone())
                .collect();
            self.count(&broken, n);
        }
    }

    /// Counts `n` points that break `rules`.
    fn count(&mut self, rules: &[Rule], n: u64) {
        let Some(first) = rules.first() else { return };
        self.broken.entry(first.name.clone()).or_insert_with(|| (first.clone(), 0)).1 += n;
        for rule in rules {
            if !self.rules.contains_key(&rule.name) {
                self.rules.insert(rule.name.clone(), rule.clone());
            }
        }
        let way: Vec<String> = rules.iter().map(|r| r.name.clone()).collect();
        if self.ways.len() < WAYS || self.ways.contains_key(&way) {
            *self.ways.entry(way).or_default() += n;
        }
    }

    fn trim(&mut self, top: usize) {
        answer::keep_best(&mut self.rows, self.goals.len(), top);
    }

    fn join(&mut self, other: Self, top: usize) {
        if self.goals.is_empty() {
            self.goals = other.goals;
        }
        self.legal += other.legal;
        self.rows.extend(other.rows);
        self.trim(top);
        for (name, (rule, n)) in other.broken {
            self.broken.entry(name).or_insert_with(|| (rule, 0)).1 += n;
        }
        for (name, rule) in other.rules {
            self.rules.entry(name).or_insert(rule);
        }
        for (way, n) in other.ways {
            if self.ways.len() < WAYS || self.ways.contains_key(&way) {
                *self.ways.entry(way).or_default() += n;
            }
        }
        self.refused = self.refused.take().or(other.refused);
    }
}
