//! The integration tests, one binary: rules of the repository, and what a user sees.

mod check;
mod syntax;

