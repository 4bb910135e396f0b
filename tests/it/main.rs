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
