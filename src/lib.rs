//! `parc`: a compiler for parallel layouts of machine-learning jobs.
//!
//! A `.par` file describes a model, a cluster and a layout. The stages, in order: [`syntax`], [`resolve`],
//! [`check`], [`elaborate`], [`partition`], [`pipeline`], [`analyse`], [`simulate`], [`emit`]. `ARCHITECTURE.md` has the map.

pub mod analyse;
pub mod check;
#[allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "the only code that touches files")]
pub mod cli;
pub mod diagnostics;
pub mod doc;
pub mod driver;
pub mod elaborate;
pub mod emit;
pub mod eval;
#[allow(clippy::disallowed_methods, reason = "the only float functions")]
pub mod expr;
pub mod format;
pub mod graph;
pub mod hir;
pub mod import;
pub mod layout;
pub mod limits;
pub mod optimize;
pub mod partition;
pub mod pipeline;
pub mod resolve;
pub mod search;
pub mod simulate;
pub mod source;
pub mod syntax;
pub mod units;
pub mod words;
