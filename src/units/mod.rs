//! Quantities: units, prefixes, the algebra of dimensions.
