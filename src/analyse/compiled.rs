//! Everything known of one job at one point of its layout: what reports, claims and plans read.

use super::{Facts, Metrics, Roots, Schedule, UnitCosts};
use crate::elaborate::Job;
use crate::expr;
use crate::partition::ShardedGraph;

/// Everything known of one job at one point of its layout.
#[derive(Debug)]
pub struct Compiled<'p> {
    /// The job.
    pub job: Job<'p>,
    /// Its ops, placed, with their collectives.
    pub sharded: ShardedGraph,
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
}
