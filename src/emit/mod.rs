//! From a plan to files: the plan itself, launch targets, launchers, reports.
//!
//! Everything here is a function from a [`plan::Plan`] to text or bytes; nothing touches a file. The caller
//! writes the [`Artifacts`], all or nothing.

mod artifacts;
pub mod assemble;
mod decoder;
pub mod diff;
pub mod evaluator;
pub mod graph;
mod json;
pub mod launchers;
pub mod plan;
pub mod report;
pub mod shell;
pub mod show;
pub mod targets;
pub mod timeline;

pub use artifacts::{Artifact, Artifacts, PLAN_FILE};
pub use json::{diff_json, plan_json};
