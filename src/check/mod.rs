//! Kinds, units and dimension names, without evaluation.
