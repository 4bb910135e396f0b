//! Everything known of one job at one point of its layout: what reports, claims and plans read.

use super::recompute::Chosen;
use super::{Facts, Metrics, Roots, Schedule, UnitCosts};
use crate::elaborate::Job;
use crate::expr;
use crate::optimize::Outcome;
use crate::partition::ShardedGraph;

/// Everything known of one job at one point of its layout.
#[derive(Debug)]
pub struct Compiled<'p> {
    /// The job.
    pub job: Job<'p>,
    /// Its ops, placed, with their collectives.
    pub sharded: ShardedGraph,
    /// What passes did to them, and what those that are not assumed would do.
    pub passes: Vec<Outcome>,
    /// What `recompute ?` came to, where it is written.
    pub chosen: Option<Chosen>,
    /// Its schedule.
    pub schedule: Schedule,
    /// What each unit costs.
    pub costs: Vec<UnitCosts>,
    /// What is counted at the point.
    pub facts: Facts,
    /// Memory, time and price.
    pub roots: Roots,
    /// What claims speak of.
    pub metrics: Metrics,
    /// The graph all of it is in.
    pub graph: expr::Graph,
    /// Values of the graph's inputs at the point.
    pub inputs: Vec<f64>,
    /// Dense peak of a device, FLOP/s.
    pub peak: f64,
}

impl Compiled<'_> {
    /// A root at the point.
    pub fn value(&self, id: expr::Id) -> f64 {
        self.graph.eval(&self.inputs, &[id])[0]
    }

    /// Bytes that the fullest stage has too many; below 0 where it fits.
    pub fn over(&self) -> f64 {
        self.value(self.roots.peak_memory) - self.job.cluster.device_field("usable")
    }
}
