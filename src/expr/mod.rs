//! The expression graph: every number the compiler derives, over the layout's parameters.
//!
//! Nodes are hash-consed: equal nodes are one node. [`Graph::put`] is the only constructor; it folds constants,
//! simplifies and shares. Units were checked before and are erased here: bytes, seconds, FLOP as plain numbers
//! in base units. The order of operations is the meaning: every evaluator does the same IEEE-754 operations in
//! the same order, so they agree bit for bit.
//!
//! # Integers
//!
//! An Int node's range, computed from the ranges of the inputs, lies within ±2^62 ([`INT_LIMIT`]); sums, differences
//! and products that could leave it become Real when they are put, with one rounding an operation. Nothing overflows,
//! and no evaluator checks for it. Within ±2^53 ([`NARROW`]) an Int is *narrow*: an `f64` holds it exactly, so vector
//! evaluators keep Ints in double lanes. A wider Int is exact in [`Evaluation`] and rounded in lanes; a discrete node
//! (a division, [`Node::Mod`], [`Node::Eq`]) that reads a rounded one makes the graph [`Graph::exact_only`].
//!
//! # Total operations
//!
//! No evaluator ever meets a NaN or an infinity. Divisors that could be 0 are replaced ([`Graph::divisor_guard`] says
//! what must hold for the replacement not to show), operands of `sqrt` and `log2` are clamped to their domain, Reals
//! that could overflow saturate at ±`f64::MAX`, and inputs are clamped to their promised range.

mod block;
mod exact;
mod factors;
mod graph;
mod listing;
mod live;
mod node;
mod range;
pub mod scalar;
mod simplify;
pub mod wire;

#[cfg(test)]
mod random;
#[cfg(test)]
mod tests;

pub use block::{Block, WIDTH};
pub use exact::{Evaluation, Number};
pub use graph::Graph;
pub use node::{Id, Input, InputId, Kind, Node, Table, TableId};
pub use range::{INT_LIMIT, NARROW, Range};
