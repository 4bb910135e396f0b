//! Paths of a model that a layout selects.

use super::super::errors;
use crate::diagnostics::Diagnostic;
use crate::graph::{OpGraph, RegionId};
use crate::layout::{PathPart, Scope};
use crate::source::Span;

/// Regions a wrong selector is compared with.
const COMPARED: usize = 1_024;

/// What to say of a scope, written at `span`, that reaches no region of `ops`.
pub(in crate::elaborate) fn missed(scope: &Scope, span: Span, ops: &OpGraph) -> Option<Diagnostic> {
    if scope.is_everywhere() || ops.regions.iter().any(|r| scope.depth(&r.path).is_some()) {
        return None;
    }
    // What the outer selectors leave to the innermost.
    let (innermost, outer) = scope.nested.split_last()?;
    let outer = Scope { nested: outer.to_vec() };
    let below: Vec<&[PathPart]> =
        ops.regions.iter().filter_map(|r| r.path.get(outer.depth(&r.path)?..)).filter(|p| !p.is_empty()).collect();
    let below = &below[..below.len().min(COMPARED)];
    let near = innermost.iter().find_map(|s| s.nearest(below)).map(|s| s.text());
    let mut known: Vec<_> = (1..ops.regions.len() as u32).map(|i| ops.selector_path(RegionId(i))).collect();
    known.dedup();
    Some(errors::nothing_selected(&scope.text(), span, near.as_deref(), &known))
}
