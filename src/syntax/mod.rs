//! Text to syntax tree: tokens, the newline rule, the grammar, recovery.
//!
//! [`parse`] never fails: what could not be read became `Error` nodes, each with a diagnostic.

pub mod ast;
mod parse;

pub use parse::parse;
