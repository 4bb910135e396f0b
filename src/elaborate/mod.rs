//! One job to ops over named dimensions, on a cluster, under a layout.
//!
//! In: the resolved program and the name of a job. Out: a [`Job`], whose sizes are nodes of the expression graph
//! over the layout's parameters, and the point those parameters have in the file.

mod alone;
mod cluster;
pub(crate) mod errors;
mod flatten;
mod job;
mod layout;
mod model;
mod numerics;
mod operators;
mod selected;

pub use alone::alone;
pub use cluster::{Cluster, Devices, Level, Site, Topology};
pub use job::{
    AddedItem, Claim, ClaimKind, Delayed, Disturbance, Duty, DutyKind, Job, Length, Objective, Parameter, Part,
    Settings, elaborate,
};
pub use layout::{Joined, PipelineItem, Split, Strides};
pub use model::library_model;
pub use numerics::{Dtype, Numerics};
pub use selected::selectors;
