//! `fold`: the same ranks read as other axes, and the fine axes both readings are made of.
//!
//! Which strides divide which is decided at the layout's point and recorded as duties: elsewhere the same factorisation
//! stands only where they hold.

use super::super::errors;
use super::super::flatten::Flat;
use super::{Builder, DutyKind, Strides};
use crate::eval::Evaluator;
use crate::expr::{Id, Node};
use crate::layout::{AxisId, Layout, NameId, NamedAxis, Side};
use crate::source::Span;
use crate::syntax::ast::{AxisDef, ItemKind, Name};

/// A `fold`, its sizes evaluated.
struct Fold<'p> {
    from: Vec<NameId>,
    to: Vec<(&'p AxisDef, Id)>,
}

impl<'p> Builder<'p, '_, '_, '_> {
    /// Evaluates every `fold`, cuts mesh axes into fine ones and names the new axes.
    pub(super) fn folds(&mut self, items: &[Flat<'p>]) -> Option<()> {
        let mut folds = Vec::new();
        for flat in items {
            if let ItemKind::Fold { from, to } = &flat.item.kind {
                folds.push(self.fold(flat, from, to)?);
            }
        }
        for fold in folds {
            self.unfold(&fold)?;
        }
        Some(())
    }

    fn fold(&mut self, flat: &Flat<'p>, from: &'p [Name], to: &'p [AxisDef]) -> Option<Fold<'p>> {
        let span = flat.item.span;
        let mut list: Vec<NameId> = Vec::new();
        for name in from {
            let Some(id) = self.layout.find_axis(&name.text) else {
                let known: Vec<_> = self.layout.named.iter().map(|a| a.name.clone()).collect();
                self.eval.sink.error(errors::unknown_axis(name, &known, self.layout.mesh_span));
                return None;
            };
            if list.contains(&id) {
                let first = self.layout.named(id).span;
                self.eval.sink.error(errors::axis_twice(name, first));
                return None;
            }
            list.push(id);
        }
        for (i, def) in to.iter().enumerate() {
            let earlier = to[..i].iter().find(|d| d.name.text == def.name.text).map(|d| d.name.span);
            let taken = self.layout.find_axis(&def.name.text).map(|id| self.layout.named(id).span);
            if let Some(first) = earlier.or(taken) {
                self.eval.sink.error(errors::axis_twice(&def.name, first));
                return None;
            }
        }
        let sizes: Vec<_> = list.iter().map(|id| self.layout.named(*id).size).collect();
        let whole = self.eval.graph.product(sizes);
        let sizes = self.sizes(to, &self.with_axes(&flat.env), whole)?;
        let product = self.eval.graph.product(sizes.iter().copied());
        let cond = self.eval.graph.eq(whole, product);
        let kind = DutyKind::Fold { from: list.clone(), to: to.iter().zip(&sizes).map(named).collect() };
        self.duty(cond, kind, span);
        Some(Fold { from: list, to: to.iter().zip(sizes).collect() })
    }

    /// Cuts fine axes where the axes of `fold` begin, and names these.
    fn unfold(&mut self, fold: &Fold<'p>) -> Option<()> {
        let number = self.folded;
        self.folded += 1;
        for id in &fold.from {
            self.layout.named[id.0 as usize].folds.push((number, Side::From));
        }
        // Innermost first: how many fine axes lie inside each new axis. Cuts further out leave these counts as they are.
        let mut inside = vec![0; fold.to.len()];
        let mut stride = self.eval.graph.int(1);
        for at in (0..fold.to.len()).rev() {
            inside[at] = self.begin(fold, at, stride)?;
            stride = self.eval.graph.mul(stride, fold.to[at].1);
        }
        let fine = self.folded_axes(fold);
        let mut from = 0;
        for (at, (def, size)) in fold.to.iter().enumerate() {
            // The outermost takes what is left, fine axes of one rank included.
            let end = fine.len().saturating_sub(inside[at]).max(from);
            let own = fine[from..end].to_vec();
            from = end;
            let folds = vec![(number, Side::To)];
            self.layout.named.push(NamedAxis {
                name: def.name.text.to_string(),
                size: *size,
                fine: own,
                folds,
                span: def.name.span,
            });
        }
        Some(())
    }

    /// The fine axes of the folded mesh axes, in the order the fold lists these.
    fn folded_axes(&self, fold: &Fold<'p>) -> Vec<AxisId> {
        fold.from.iter().flat_map(|id| self.layout.named(*id).fine.iter().copied()).collect()
    }

    /// Cuts a fine axis where the new axis `at` begins, whose stride among the folded ranks is `stride`, and records what
    /// must hold for that. Hands back how many fine axes then lie inside.
    fn begin(&mut self, fold: &Fold<'p>, at: usize, stride: Id) -> Option<usize> {
        let mut below = self.eval.graph.int(1);
        let fine = self.folded_axes(fold);
        for (inside, axis) in fine.iter().rev().enumerate() {
            let size = self.layout.axis(*axis).size;
            let above = self.eval.graph.mul(below, size);
            let cond = self.eval.graph.eq(stride, below);
            if self.eval.read(cond) > 0.0 {
                self.nests(fold, at, (*axis, below), stride, cond);
                return Some(inside);
            }
            let inside_this = self.eval.graph.lt(stride, above);
            if self.eval.read(inside_this) > 0.0 {
                let zero = self.eval.graph.int(0);
                let low = self.eval.graph.put(Node::Mod(stride, below));
                let low = self.eval.graph.eq(low, zero);
                let high = self.eval.graph.put(Node::Mod(above, stride));
                let high = self.eval.graph.eq(high, zero);
                let cond = self.eval.graph.put(Node::And(low, high));
                self.nests(fold, at, (*axis, below), stride, cond);
                let inner = self.eval.graph.put(Node::ExactDiv(stride, below));
                let outer = self.eval.graph.put(Node::ExactDiv(above, stride));
                self.cut_axis(*axis, outer, inner)?;
                return Some(inside + 1);
            }
            below = above;
        }
        // Outside all of them: an axis of one rank.
        Some(fine.len())
    }

    fn nests(&mut self, fold: &Fold<'p>, at: usize, (axis, below): (AxisId, Id), stride: Id, cond: Id) {
        let mesh = fold.from.iter().copied().find(|id| self.layout.named(*id).fine.contains(&axis));
        // The size to change is that of the axis inside the one that begins here.
        let changed = (at + 1).min(fold.to.len() - 1);
        let strides = Strides {
            from: fold.from.clone(),
            to: fold.to.iter().map(|(d, size)| (d.name.text.to_string(), *size, d.name.span)).collect(),
            changed,
            begins: at,
            stride,
            mesh_axis: mesh.unwrap_or(fold.from[0]),
            mesh_stride: below,
        };
        let def = fold.to[changed].0;
        let span = Span { end: def.size.as_ref().map_or(def.name.span.end, |e| e.span.end), ..def.name.span };
        self.duty(cond, DutyKind::Nest(Box::new(strides)), span);
    }

    fn cut_axis(&mut self, axis: AxisId, outer: Id, inner: Id) -> Option<()> {
        if self.layout.axes.len() >= crate::limits::MESH_AXES {
            let span = self.layout.axis(axis).span;
            self.eval.sink.error(errors::too_many_axes(self.layout.axes.len() + 1, span));
            return None;
        }
        self.layout.cut(axis, outer, inner, self.eval.graph);
        Some(())
    }

    /// A whole number at the layout's point, which fixes the shape of the graph.
    pub(super) fn at_point(&mut self, id: Id) -> i64 {
        self.eval.read(id) as i64
    }
}

fn named((def, size): (&AxisDef, &Id)) -> (String, Id) {
    (def.name.text.to_string(), *size)
}

/// Cuts the axes that split a grouped dimension, such as key heads, where there are more ranks than indices: the outer
/// part splits it, along the inner one its indices are copied. Hands back what must hold elsewhere for this to stand.
pub(in crate::elaborate) fn copies(
    layout: &mut Layout,
    dims: &[(String, Id)],
    eval: &mut Evaluator<'_, '_>,
) -> Vec<(Id, Span)> {
    let mut duties = Vec::new();
    for (dim, extent) in dims {
        let mut left = *extent;
        let mut at = 0;
        let mut split = super::axes_given_to(layout, dim);
        while at < split.len() {
            let axis = split[at];
            let (size, span) = (layout.axis(axis).size, layout.axis(axis).span);
            if whole(eval, left, size) {
                left = eval.graph.put(Node::ExactDiv(left, size));
            } else if whole(eval, size, left) {
                let one = eval.graph.int(1);
                let several = eval.graph.lt(one, left);
                if eval.read(several) > 0.0 {
                    let inner = eval.graph.put(Node::ExactDiv(size, left));
                    let (rest, zero) = (eval.graph.put(Node::Mod(size, left)), eval.graph.int(0));
                    duties.push((eval.graph.eq(rest, zero), span));
                    layout.cut(axis, left, inner, eval.graph);
                    // The outer part splits, the rest is copied along.
                    split = super::axes_given_to(layout, dim);
                    at += 1;
                }
                layout.copies.extend(split[at..].iter().map(|a| (dim.clone(), *a)));
                break;
            } else {
                break;
            }
            at += 1;
        }
    }
    duties
}

/// Whether `a / b` is whole at the point.
fn whole(eval: &mut Evaluator<'_, '_>, a: Id, b: Id) -> bool {
    let rest = eval.graph.put(Node::Mod(a, b));
    let zero = eval.graph.int(0);
    let cond = eval.graph.eq(rest, zero);
    eval.read(cond) > 0.0
}
