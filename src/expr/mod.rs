//! The expression graph: every number the compiler derives, over the layout's parameters.
//!
//! Nodes are hash-consed: equal nodes are one node. [`Graph::put`] is the only constructor; it folds constants,
//! simplifies and shares. Units were checked before and are erased here: bytes, seconds, FLOP as plain numbers
//! in base units. The order of operations is the meaning: every evaluator does the same IEEE-754 operations in
//! the same order, so they agree bit for bit.

mod graph;

pub use graph::{Graph, Id, Input, InputId, Kind, Node};
