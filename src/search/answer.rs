//! What a search found: the best points in their order, and what the others broke.

use super::{Part, Space, Task};
use crate::analyse::rules::{Rule, RuleKind};
use crate::diagnostics::Diagnostic;
use crate::limits;
use crate::units::Unit;
use std::cmp::Ordering;

/// One thing a search is after.
#[derive(Clone, PartialEq, Debug)]
pub struct Goal {
    /// As written.
    pub text: String,
    /// Whether more is better.
    pub maximize: bool,
    /// Its unit.
    pub unit: Unit,
}

impl Goal {
    /// The goal's own value behind an objective, of which less is better.
    pub fn value(&self, objective: f64) -> f64 {
        if self.maximize { 0.0 - objective } else { objective }
    }
}

/// A legal point.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// Its index among all points.
    pub point: u64,
    /// The objectives; less is better, what is maximized is negated.
    pub objectives: Vec<f64>,
    /// Seconds of an update.
    pub step_time: f64,
    /// Tokens a second.
    pub tokens_per_s: f64,
    /// Bytes of the fullest stage.
    pub peak_memory: f64,
    /// Model FLOP over peak FLOP.
    pub mfu: f64,
}

/// A rule and the points that broke it first.
#[derive(Clone, PartialEq, Debug)]
pub struct Rejected {
    /// The rule.
    pub rule: Rule,
    /// How many points.
    pub points: u64,
}

/// What a search found.
#[derive(Clone, Debug)]
pub struct Answer {
    /// All points.
    pub points: u64,
    /// Points judged whole, their schedule run, that obey every rule.
    pub legal: u64,
    /// Points judged whole, where not all were.
    pub judged: u64,
    /// Points that cannot be among the best, whatever their schedule does.
    pub bounded: u64,
    /// Whether nothing is left that may be better.
    pub proved: bool,
    /// Whether the search was stopped before its end.
    pub stopped: bool,
    /// The best points in order; of several objectives, those that no other beats.
    pub rows: Vec<Row>,
    /// What each objective is.
    pub goals: Vec<Goal>,
    /// What the others broke, in the order rules are held to.
    pub rejected: Vec<Rejected>,
    /// Every rule met.
    pub(super) rules: Vec<Rule>,
    /// Sets of rules that some point breaks together: positions in `rules`.
    pub(super) ways: Vec<Vec<usize>>,
    /// Why some points have no shape at all.
    pub(super) refused: Option<Diagnostic>,
}

impl Answer {
    pub(super) fn new(task: Task<'_>, space: &Space, mut part: Part) -> Self {
        keep_best(&mut part.rows, part.goals.len(), task.top);
        let mut rejected: Vec<_> = part.broken.into_values().map(|(rule, points)| Rejected { rule, points }).collect();
        rejected.sort_by(|a, b| order(&a.rule).cmp(&order(&b.rule)));
        let mut rules: Vec<Rule> = part.rules.into_values().collect();
        rules.sort_by(|a, b| order(a).cmp(&order(b)));
        let place = |name: &String| rules.iter().position(|r| r.name == *name);
        let ways = part.ways.keys().map(|w| w.iter().filter_map(place).collect()).collect();
        Self {
            points: space.points,
            legal: part.legal,
            judged: space.points,
            bounded: 0,
            proved: true,
            stopped: false,
            rows: part.rows,
            goals: part.goals,
            rejected,
            rules,
            ways,
            refused: part.refused,
        }
    }
}

fn order(rule: &Rule) -> (RuleKind, u32, u32, &str) {
    (rule.kind, rule.span.file.0, rule.span.start, &rule.name)
}

/// The total order of points: objectives, then less memory, then the order of the text. The devices are one number.
fn compare(a: &Row, b: &Row) -> Ordering {
    let objectives = a.objectives.iter().zip(&b.objectives).map(|(x, y)| x.total_cmp(y));
    let memory = a.peak_memory.total_cmp(&b.peak_memory);
    objectives.fold(Ordering::Equal, Ordering::then).then(memory).then(a.point.cmp(&b.point))
}

/// Whether `a` is no worse than `b` in every objective and better in one.
fn beats(a: &Row, b: &Row) -> bool {
    let mut pairs = a.objectives.iter().zip(&b.objectives);
    pairs.clone().all(|(x, y)| x <= y) && pairs.any(|(x, y)| x < y)
}

/// Sorts rows and keeps the `top` best, or of several objectives the front.
pub(super) fn keep_best(rows: &mut Vec<Row>, objectives: usize, top: usize) {
    rows.sort_by(compare);
    if objectives < 2 {
        rows.truncate(top.max(2));
        return;
    }
    // In this order whatever beats a row stands before it.
    let mut front: Vec<Row> = Vec::new();
    for row in rows.drain(..) {
        if !front.iter().any(|f| beats(f, &row)) {
            front.push(row);
        }
    }
    front.truncate(limits::PARETO_POINTS);
    *rows = front;
}
