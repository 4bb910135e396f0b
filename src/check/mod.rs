//! Kinds, units and dimension names, without evaluation.

use crate::diagnostics::Sink;
use crate::hir::Program;
use crate::source::Sources;

/// Checks every declaration of `program`.
pub fn check(program: &Program, sources: &Sources, sink: &mut Sink) {
    let _ = (program, sources, sink);
}
