//! Adapters of a `finetune` job against its precision: what is trained is kept in a format that can take a step.

use super::{Checker, MAX_DEPTH, errors};
use crate::hir::{Binding, Entry, ModuleId};
use crate::limits;
use crate::source::Span;
use crate::syntax::ast::{Block, Body, Expr, ExprKind, ItemKind, Kind, LetValue, Name, Number, Selector, SelectorPart};

/// `in SELECTOR { param = DTYPE }` of a precision.
struct Kept<'p> {
    selector: &'p Selector,
    dtype: &'p Name,
    /// The field.
    field: Span,
    /// The `in` item.
    item: Span,
}

/// One part of a path that may hold wildcards.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Part<'p> {
    Name(&'p str),
    One,
    Any,
}

impl<'p> Checker<'p, '_> {
    /// Adapters lie below the parameters they adapt, and what a precision says there holds for them as well.
    pub(super) fn adapters(&mut self, job: &'p Block) {
        let adapted: Vec<(&Selector, Span)> = job
            .items
            .iter()
            .filter_map(
                |i| if let ItemKind::In { selectors, block } = &i.kind { Some((selectors, block)) } else { None },
            )
            .flat_map(|(selectors, block)| {
                let lora = super::job::field(block, "adapter").filter(|e| matches!(e.kind, ExprKind::Call(..)));
                selectors.iter().filter_map(move |s| Some((s, lora?.span)))
            })
            .collect();
        let (Some(precision), false) = (super::job::field(job, "precision"), adapted.is_empty()) else { return };
        let mut kept = Vec::new();
        self.kept(precision, self.module, &mut kept, 0);
        for (selector, adapter) in adapted {
            let path: Vec<Part<'_>> = parts(selector).into_iter().chain([Part::Name("lora"), Part::One]).collect();
            // The deepest `in` decides, of equally deep ones the later.
            let deepest = kept.iter().filter_map(|k| Some((depth(&parts(k.selector), &path)?, k)));
            let Some((_, k)) = deepest.max_by_key(|(depth, _)| *depth) else { continue };
            if self.bits(k.dtype).is_some_and(|bits| bits < 8.0) {
                let lies_in = self.sources.snippet(k.selector.span);
                let d = errors::adapter_format(&k.dtype.text, lies_in, k.field, adapter, k.item);
                self.error(d);
                return;
            }
        }
    }

    /// What the precision `e` and those it is made from keep parameters as, region by region; the outermost `with` last.
    fn kept(&self, e: &'p Expr, module: ModuleId, out: &mut Vec<Kept<'p>>, depth: u32) {
        if depth > MAX_DEPTH {
            return;
        }
        match &e.kind {
            ExprKind::With(base, block) => {
                self.kept(base, module, out, depth + 1);
                kept_in(block, out);
            }
            ExprKind::Call(base, _) => self.kept(base, module, out, depth + 1),
            _ => match self.base_name(e, module).map(|id| (id, self.program.entry(id))) {
                Some((id, Entry::Decl(decl))) => match &decl.body {
                    Body::Expr(e) => self.kept(e, id.module, out, depth + 1),
                    Body::Block(block) => kept_in(block, out),
                    Body::None => {}
                },
                Some((id, Entry::Let(l))) => {
                    if let LetValue::Is(e) = &l.value {
                        self.kept(e, id.module, out, depth + 1);
                    }
                }
                None => {}
            },
        }
    }

    /// The bits of an element of the number format `name`, where they are written out.
    fn bits(&self, name: &Name) -> Option<f64> {
        let Some(Binding::Decl(id)) = self.program.lookup(self.module, &name.text) else { return None };
        let Entry::Decl(decl) = self.program.entry(id) else { return None };
        let Body::Block(block) = &decl.body else { return None };
        match &super::job::field(block, "bits").filter(|_| decl.kind == Kind::Dtype)?.kind {
            ExprKind::Number { value: Number::Int(n), .. } => Some(*n as f64),
            ExprKind::Number { value: Number::Real(n), .. } => Some(*n),
            _ => None,
        }
    }
}

fn kept_in<'p>(block: &'p Block, out: &mut Vec<Kept<'p>>) {
    for item in &block.items {
        let ItemKind::In { selectors, block } = &item.kind else { continue };
        for field in &block.items {
            let ItemKind::Assign { target, value } = &field.kind else { continue };
            if let ExprKind::Path(path) = &value.kind
                && let [dtype] = &path[..]
                && target.name.text == "param"
                && target.suffixes.is_empty()
            {
                let kept = |selector| Kept { selector, dtype, field: field.span, item: item.span };
                out.extend(selectors.iter().map(kept));
            }
        }
    }
}

fn parts(selector: &Selector) -> Vec<Part<'_>> {
    let mut out = Vec::new();
    for p in selector.parts.iter().take(limits::NESTING) {
        match p {
            SelectorPart::Name(name, index) => {
                out.push(Part::Name(&name.text));
                out.extend(index.as_ref().map(|_| Part::One));
            }
            SelectorPart::One => out.push(Part::One),
            SelectorPart::Any => out.push(Part::Any),
        }
    }
    out
}

/// Length of the shortest prefix of `path` that `selector` may match; it covers everything below.
fn depth(selector: &[Part<'_>], path: &[Part<'_>]) -> Option<usize> {
    // Whether the first parts of each may be the same path: row by row, as for two texts with wildcards.
    let mut row = vec![false; path.len() + 1];
    row[0] = true;
    for at in 1..=path.len() {
        row[at] = row[at - 1] && path[at - 1] == Part::Any;
    }
    for part in selector {
        let before = std::mem::replace(&mut row, vec![false; path.len() + 1]);
        row[0] = before[0] && *part == Part::Any;
        for at in 1..=path.len() {
            let other = path[at - 1];
            let both = match (part, other) {
                (Part::Name(a), Part::Name(b)) => *a == b,
                _ => true,
            };
            row[at] = (before[at - 1] && both)
                || (*part == Part::Any && (before[at] || row[at - 1]))
                || (other == Part::Any && (row[at - 1] || before[at]));
        }
    }
    row.iter().position(|m| *m)
}
