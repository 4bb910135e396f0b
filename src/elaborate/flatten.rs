//! A layout's or job's items with `in` and `with` folded away: each item once, with the scopes it stands in.

use crate::eval::{Env, Given};
use crate::syntax::ast::{self, AxisRef, Block, Item, ItemKind, Name, Selector};
use std::rc::Rc;

/// An item, the `in` scopes around it (outermost first), and the names it sees.
#[derive(Clone, Debug)]
pub(super) struct Flat<'p> {
    pub(super) scopes: Vec<&'p [Selector]>,
    pub(super) item: &'p Item,
    pub(super) env: Rc<Env<'p>>,
    /// Axes of a `shard` or `replicate` that a later `with` took over.
    pub(super) without: Vec<AxisRef>,
}

/// Decides an `if` at the point of the layout; `None` where the condition was wrong and reported.
pub(super) type Decide<'p, 'f> = dyn FnMut(&'p ast::Expr, &Rc<Env<'p>>) -> Option<bool> + 'f;

/// The items of `block` and of each `with`, later ones replacing their like as `docs/reference` says.
pub(super) fn flatten<'p>(base: &Given<'p>, with: &[Given<'p>], decide: &mut Decide<'p, '_>) -> Vec<Flat<'p>> {
    let mut out = Vec::new();
    collect(base.block, &base.env, &mut Vec::new(), decide, &mut out);
    for given in with {
        let mut added = Vec::new();
        collect(given.block, &given.env, &mut Vec::new(), decide, &mut added);
        for new in &added {
            out.retain_mut(|old| !replaced(old, new));
        }
        out.extend(added);
    }
    out
}

fn collect<'p>(
    block: &'p Block,
    env: &Rc<Env<'p>>,
    scopes: &mut Vec<&'p [Selector]>,
    decide: &mut Decide<'p, '_>,
    out: &mut Vec<Flat<'p>>,
) {
    for item in &block.items {
        match &item.kind {
            ItemKind::In { selectors, block } => {
                scopes.push(selectors);
                collect(block, env, scopes, decide, out);
                scopes.pop();
            }
            ItemKind::If { cond, then, otherwise } => match (decide(cond, env), otherwise) {
                (Some(true), _) => collect(then, env, scopes, decide, out),
                (Some(false), Some(b)) => collect(b, env, scopes, decide, out),
                (Some(false) | None, _) => {}
            },
            _ => out.push(Flat { scopes: scopes.clone(), item, env: Rc::clone(env), without: Vec::new() }),
        }
    }
}

/// Whether `new`, of a later `with`, takes the place of `old`; a rule may lose some of its axes only.
fn replaced(old: &mut Flat<'_>, new: &Flat<'_>) -> bool {
    if !same_scopes(&old.scopes, &new.scopes) {
        return matches!(
            (&old.item.kind, &new.item.kind),
            (ItemKind::Fold { .. } | ItemKind::Place { .. }, ItemKind::Mesh(_))
        );
    }
    match (&old.item.kind, &new.item.kind) {
        (
            ItemKind::Shard { axes: a, .. } | ItemKind::Replicate { axes: a, .. },
            ItemKind::Shard { axes: b, .. } | ItemKind::Replicate { axes: b, .. },
        ) => {
            old.without.extend(a.iter().filter(|x| b.iter().any(|y| same_axis(x, y))).cloned());
            a.iter().all(|x| old.without.iter().any(|y| same_axis(x, y)))
        }
        (ItemKind::Mesh(_) | ItemKind::Fold { .. } | ItemKind::Place { .. }, ItemKind::Mesh(_))
        | (ItemKind::Recompute(_), ItemKind::Recompute(_))
        | (ItemKind::Objective { .. }, ItemKind::Objective { .. }) => true,
        (ItemKind::Store { classes: a, .. }, ItemKind::Store { classes: b, .. })
        | (ItemKind::Reduce { classes: a, .. }, ItemKind::Reduce { classes: b, .. })
        | (ItemKind::Overlap { comms: a, .. }, ItemKind::Overlap { comms: b, .. }) => same_names(a, b),
        (ItemKind::Via { op: a, axes: x, .. }, ItemKind::Via { op: b, axes: y, .. }) => {
            a.text == b.text && x.len() == y.len() && x.iter().zip(y).all(|(p, q)| same_axis(p, q))
        }
        (ItemKind::Pad { dim: a, .. }, ItemKind::Pad { dim: b, .. })
        | (ItemKind::Axis { name: a, .. }, ItemKind::Axis { name: b, .. }) => a.text == b.text,
        (ItemKind::Let(a), ItemKind::Let(b)) => a.name.text == b.name.text,
        _ => false,
    }
}

fn same_axis(a: &AxisRef, b: &AxisRef) -> bool {
    a.name.text == b.name.text && a.part.as_ref().map(|n| &n.text) == b.part.as_ref().map(|n| &n.text)
}

fn same_names(a: &[Name], b: &[Name]) -> bool {
    a.len() == b.len() && a.iter().all(|x| b.iter().any(|y| x.text == y.text))
}

/// Equal selectors, whatever their place in the file.
fn same_scopes(a: &[&[Selector]], b: &[&[Selector]]) -> bool {
    let text = |scopes: &[&[Selector]]| -> Vec<Vec<Vec<String>>> {
        scopes.iter().map(|s| s.iter().map(|x| x.parts.iter().map(part_text).collect()).collect()).collect()
    };
    text(a) == text(b)
}

fn part_text(part: &ast::SelectorPart) -> String {
    match part {
        ast::SelectorPart::Name(name, None) => name.text.to_string(),
        ast::SelectorPart::Name(name, Some(i)) => format!("{}[{i:?}]", name.text),
        ast::SelectorPart::One => "*".into(),
        ast::SelectorPart::Any => "**".into(),
    }
}
