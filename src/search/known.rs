//! What runs of a schedule counted, put into a shape's graph.
//!
//! A run gives whole numbers: how often each unit is on the critical path, what each rank holds at its fullest moment.
//! Where the order of operations is fixed, a path stays a path at other times, so the longest known path bounds the
//! time from below and is the time where the point's own run is among those known. What ranks hold depends on the
//! order and on how the layers are cut.

use crate::analyse::stage::{Facts, PathFacts, StageFacts};
use crate::analyse::{Roots, Schedule};
use crate::driver::Shape;
use crate::elaborate::Split;
use crate::expr::{Graph, Id, Node};

/// What runs with one number of ranks and microbatches counted.
#[derive(Clone, Debug)]
pub(super) struct Known {
    /// Critical paths met.
    pub(super) paths: Vec<PathFacts>,
    /// Ranks that differ; those are left out of which another holds no less of anything.
    pub(super) stages: Vec<StageFacts>,
    /// Bubble and staleness.
    pub(super) schedule: [f64; 2],
}

impl Known {
    pub(super) fn new(schedule: &Schedule) -> Self {
        let schedule = [schedule.bubble, f64::from(schedule.staleness)];
        Self { paths: Vec::new(), stages: Vec::new(), schedule }
    }

    /// Adds what a run counted; whether anything is new.
    pub(super) fn add(&mut self, facts: &Facts) -> bool {
        let mut new = false;
        if !self.paths.contains(&facts.path) {
            self.paths.push(facts.path.clone());
            new = true;
        }
        for s in &facts.stages {
            if !self.stages.iter().any(|k| covers(k, s)) {
                self.stages.retain(|k| !covers(s, k));
                self.stages.push(s.clone());
                new = true;
            }
        }
        new
    }
}

/// Whether a rank holds what another does and no less of anything that lives for a while.
fn covers(a: &StageFacts, b: &StageFacts) -> bool {
    let no_less = |x: &[i64], y: &[i64]| x.iter().zip(y).all(|(x, y)| x >= y);
    let same = a.units == b.units && a.copies == b.copies && a.twice == b.twice;
    same && a.versions >= b.versions && no_less(&a.live, &b.live) && no_less(&a.late, &b.late)
}

/// Whether what a run counts follows from ranks and microbatches, but for which path is the longest.
pub(super) fn follows(shape: &Shape<'_>, schedule: &Schedule) -> bool {
    let cut_by_cost = matches!(shape.job.pipeline.as_ref().map(|p| &p.split), Some(Split::Balanced(_)));
    !cut_by_cost && schedule.orders.is_strict()
}

/// A count in a graph: of which path or rank, and its place in the list of counts.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Count {
    Path(usize, usize),
    Stage(usize, usize),
    Schedule(usize),
}

impl Count {
    /// Its value in what is known; ranks and paths beyond those known repeat the last.
    pub(super) fn value(self, roots: &Roots, known: &Known) -> f64 {
        match self {
            Self::Path(k, at) => {
                let path = known.paths.get(k).or_else(|| known.paths.last());
                path.map_or(0.0, |p| roots.path_counts(p)[at].1)
            }
            Self::Stage(k, at) => {
                let stage = known.stages.get(k).or_else(|| known.stages.last());
                stage.map_or(0.0, |s| roots.stage_counts(s)[at].1)
            }
            Self::Schedule(at) => known.schedule[at],
        }
    }
}

/// How many paths and ranks a graph has room for.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Slots {
    pub(super) paths: usize,
    pub(super) stages: usize,
}

impl Slots {
    /// Room for all of `known`.
    pub(super) fn of<'k>(known: impl Iterator<Item = &'k Known>) -> Self {
        known.fold(Self { paths: 1, stages: 1 }, |s, k| Self {
            paths: s.paths.max(k.paths.len()),
            stages: s.stages.max(k.stages.len()),
        })
    }
}

/// Puts `roots` of a shape into `graph`, with `parameters` as the job's inputs and `count` giving each count. What only
/// the point's own run tells is 0.
pub(super) fn graft(
    shape: &Shape<'_>,
    graph: &mut Graph,
    parameters: &[Id],
    slots: Slots,
    roots: &[Id],
    mut count: impl FnMut(&mut Graph, Count) -> Id,
) -> Vec<Id> {
    let (from, r) = (&shape.graph, &shape.roots);
    let leaf_of = |id: Id| match from.node(id) {
        Node::Input(i) => Some(i),
        _ => None,
    };
    let units = shape.sharded.units.len();
    let blank = vec![0; units];
    let path = PathFacts {
        forward: blank.clone(),
        backward: blank.clone(),
        weight: blank.clone(),
        send_forward: blank.clone(),
        send_backward: blank.clone(),
        saved: 0.0,
    };
    let places: Vec<_> = r.path_counts(&path).into_iter().map(|(id, _)| leaf_of(id)).collect();
    let mut time = None;
    for k in 0..slots.paths.max(1) {
        let own = graph.graft(from, &[r.pipeline_time], &[], |g, i| match places.iter().position(|p| *p == Some(i)) {
            Some(at) => count(g, Count::Path(k, at)),
            None => parameter(g, parameters, i.0),
        })[0];
        time = Some(time.map_or(own, |t| graph.max(t, own)));
    }
    let stage = StageFacts {
        units: blank.clone(),
        live: blank.clone(),
        late: blank.clone(),
        copies: blank.clone(),
        twice: blank.clone(),
        runs: blank,
        versions: 0,
        in_flight: 0,
    };
    let places: Vec<_> = r.stage_counts(&stage).into_iter().map(|(id, _)| leaf_of(id)).collect();
    let (mut memory, mut update) = (None, None);
    for k in 0..slots.stages.max(1) {
        let wanted = [r.stage[0].total, r.stage[0].update];
        let own = graph.graft(from, &wanted, &[], |g, i| match places.iter().position(|p| *p == Some(i)) {
            Some(at) => count(g, Count::Stage(k, at)),
            None => parameter(g, parameters, i.0),
        });
        memory = Some(memory.map_or(own[0], |m| graph.max(m, own[0])));
        update = Some(update.map_or(own[1], |u| graph.max(u, own[1])));
    }
    let joined = [(r.pipeline_time, time), (r.peak_memory, memory), (r.update, update)];
    let given: Vec<(Id, Id)> = joined.into_iter().filter_map(|(there, here)| Some((there, here?))).collect();
    let of_schedule = shape.metrics.of_schedule.map(leaf_of);
    graph.graft(from, roots, &given, |g, i| match of_schedule.iter().position(|p| *p == Some(i)) {
        Some(at) => count(g, Count::Schedule(at)),
        None => parameter(g, parameters, i.0),
    })
}

fn parameter(graph: &mut Graph, parameters: &[Id], i: u32) -> Id {
    parameters.get(i as usize).copied().unwrap_or_else(|| graph.int(0))
}
