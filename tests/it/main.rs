//! The integration tests, one binary: rules of the repository, and what a user sees.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests read files, run the command, and fail by panicking"
)]

mod files;
mod tidy;
mod ui;
//! Integration tests, one binary.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(clippy::print_stderr, reason = "a test says why it was skipped")]

mod megatron_rules;
mod plan_json;
mod report;
mod sample_plans;
mod targets_megatron;
mod targets_output;
mod targets_scripts;
