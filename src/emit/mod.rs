//! From a plan to files: the plan itself, launch targets, launchers, reports.

pub mod plan;
