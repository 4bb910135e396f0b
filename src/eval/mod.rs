//! Expressions to values: numbers with units, records, functions.
