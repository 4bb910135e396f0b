//! What follows only from a line that could not be read: told already, and no mistake of its own.

use crate::diagnostics::{Code, Diagnostic, Sink};
use crate::hir::{Module, Program};
use crate::source::{Sources, Span};
use crate::syntax::ast::Entry;

/// A declaration with something unreadable in it.
struct Torn<'p> {
    span: Span,
    name: &'p str,
}

/// Takes back unknown names and arguments that a half-typed line would have explained: in the declaration that holds
/// it, and where that declaration is called.
pub(super) fn withhold(program: &Program, sources: &Sources, sink: &mut Sink) {
    let torn: Vec<Torn<'_>> = program.modules.iter().flat_map(declarations).collect();
    if torn.is_empty() {
        return;
    }
    sink.withhold(|d| {
        let names = matches!(d.code, Code::NameUnknown | Code::AxisUnknown | Code::ArgumentWrong | Code::FieldMissing);
        let at = d.primary.span;
        let inside = |t: &Torn<'_>| t.span.file == at.file && t.span.start <= at.start && at.end <= t.span.end;
        names && torn.iter().any(|t| inside(t) || d.code == Code::ArgumentWrong && calls(sources, d, t.name))
    });
}

/// The declarations of a module in whose text something was torn.
fn declarations(module: &Module) -> impl Iterator<Item = Torn<'_>> {
    let torn = &module.ast.torn;
    module.ast.entries.iter().filter_map(move |entry| {
        let Entry::Decl(d) = entry else { return None };
        let hurt = torn.iter().any(|p| d.span.start <= p.start && p.start <= d.span.end);
        hurt.then_some(Torn { span: d.span, name: d.name.text.as_str() })
    })
}

/// Whether the line of a diagnostic names the declaration.
fn calls(sources: &Sources, d: &Diagnostic, name: &str) -> bool {
    let Some(file) = sources.get(d.primary.span.file) else { return false };
    let (before, after) = file.text.split_at(file.text.floor_char_boundary(d.primary.span.start as usize));
    let line = [before.rsplit('\n').next(), after.split('\n').next()];
    line.into_iter()
        .flatten()
        .flat_map(|part| part.split(|c: char| !c.is_alphanumeric() && c != '_'))
        .any(|w| w == name)
}
