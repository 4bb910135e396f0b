//! The resolved program.
