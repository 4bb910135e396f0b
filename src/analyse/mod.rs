//! Memory, time and price of a partitioned job, as roots of the expression graph; and their values at one point.
//!
//! Three steps. [`costs`] inlines the cost functions for every step of every unit. [`stage`] counts, with the schedule
//! simulated at the point, what each pipeline rank holds and what lies on the critical path: these counts are inputs of
//! the graph. [`roots`] joins the two, so that the interpreter, the compiled evaluator and the explanations read one
//! graph.

pub mod claims;
mod compiled;
mod compute;
pub mod costs;
mod errors;
mod flops;
pub mod group;
pub mod legality;
pub mod metrics;
pub mod recompute;
mod rest;
pub mod roots;
pub mod rules;
pub mod schedule;
pub mod stage;
mod tiers;

pub use compiled::Compiled;
pub use compute::device_peak;
pub use costs::{Category, StepCost, UnitCosts};
pub use flops::ModelFlops;
pub use metrics::Metrics;
pub use roots::{Roots, StageRoots};
pub use schedule::Schedule;
pub use stage::{Facts, StageFacts};
pub use tiers::widths;
