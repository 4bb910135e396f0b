//! Clusters: levels, what they are made of, and their fields.

use super::expr::literal;
use super::items::Place;
use super::scope::{Local, Sort};
use super::ty::{Ty, Whole};
use super::{Checker, errors, fields};
use crate::eval::errors as said;
use crate::hir::schema;
use crate::syntax::ast::{Arg, Block, Child, Expr, ExprKind, ItemKind, Kind, Name};

impl<'p> Checker<'p, '_> {
    pub(super) fn cluster(&mut self, block: &'p Block) {
        self.lets(block);
        self.cluster_items(block);
        self.levels_used(block);
    }

    /// Levels in order: a child is a device or a level above it in the text.
    pub(super) fn cluster_items(&mut self, block: &'p Block) {
        for item in &block.items {
            match &item.kind {
                ItemKind::Level { name, children, over, block, .. } => {
                    for child in children {
                        self.whole(&child.count, "the count of a level");
                        self.child(child);
                    }
                    let link = self.infer(over, Whole::Maybe);
                    match &link {
                        Ty::Links | Ty::Unknown => {}
                        Ty::Thing(t) if t.kind == Kind::Link => {}
                        other => {
                            let noun = other.noun();
                            self.error(said::wrong_kind("`over` of a level", "a link", &noun, over.span));
                        }
                    }
                    if let Some(inner) = block {
                        self.level_block(children, inner);
                    }
                    // A level lives in paths; its name hides nothing.
                    let level = Local { ty: Ty::Unknown, sort: Sort::Field, span: Some(name.span) };
                    self.scope.put(&name.text, level);
                }
                ItemKind::Require { cond, .. } => self.condition(cond, "`require`"),
                ItemKind::Section { head, block, .. } => self.section(head, block, Place::Decl(Kind::Cluster)),
                _ => {}
            }
        }
    }

    fn child(&mut self, child: &'p Child) {
        let found = self.infer(&child.of, Whole::Maybe);
        match &found {
            Ty::Unknown => {}
            Ty::Thing(t) if t.kind == Kind::Device => {}
            other => {
                let noun = other.noun();
                self.error(said::wrong_kind("a level", "a device or another level", &noun, child.of.span));
            }
        }
    }

    fn level_block(&mut self, children: &'p [Child], block: &'p Block) {
        self.scope.push();
        for f in schema::level_fields() {
            let ty = super::ty::named(f.ty, None, &[]).unwrap_or(Ty::Unknown);
            self.scope.put_new(&f.name.into(), Local { ty, sort: Sort::Field, span: None });
        }
        self.block_items(block, Place::Section("level"));
        self.fields(block, Place::Section("level"), schema::level_fields(), &[]);
        self.scope.pop();
        let [child] = children else { return };
        for item in &block.items {
            if let ItemKind::Assign { target, value } = &item.kind
                && target.name.text == "topology"
            {
                self.torus(child, value);
            }
        }
    }

    /// Sizes of a torus must multiply to the count, where both are written out.
    fn torus(&mut self, child: &'p Child, topology: &'p Expr) {
        let ExprKind::Call(callee, args) = &topology.kind else { return };
        let named = |e: &Expr| matches!(&e.kind, ExprKind::Path(p) if p.last().is_some_and(|n| n.text == "torus"));
        if !named(callee) {
            return;
        }
        let mut sizes = Vec::new();
        let (mut place, mut last) = (None, None);
        for arg in args {
            let Arg::Named(n, e) = arg else { continue };
            if n.text == "wrap" {
                continue;
            }
            let Some(v) = literal(e) else { return };
            sizes.push(v as i128);
            let span = n.span.to(e.span);
            last = Some(e.span);
            place = Some(place.map_or(span, |p: crate::source::Span| p.to(span)));
        }
        let (Some(count), Some(place)) = (literal(&child.count), place) else { return };
        let product = sizes.iter().try_fold(1i128, |a, b| a.checked_mul(*b));
        if let Some(product) = product.filter(|p| *p != count as i128) {
            self.error(said::torus_sizes(place, &sizes, product, count as i128, Some(child.count.span), last));
        }
    }

    /// Every level but the last is a child of another.
    fn levels_used(&mut self, block: &'p Block) {
        let mut levels: Vec<(&'p Name, &'p [Child])> = Vec::new();
        for item in &block.items {
            match &item.kind {
                ItemKind::Level { name, children, .. } => levels.push((name, children)),
                ItemKind::Error => return,
                _ => {}
            }
        }
        let Some(((root, root_children), below)) = levels.split_last() else { return };
        let of = |c: &'p Child| match &fields::callee(&c.of).kind {
            ExprKind::Path(p) if p.len() == 1 => Some(&p[0].text),
            _ => None,
        };
        for (name, own) in below {
            let used = levels.iter().any(|(_, children)| children.iter().any(|c| of(c) == Some(&name.text)));
            if used {
                continue;
            }
            // The root made of what this level is made of: the usual slip.
            let (mut devices, mut child) = (None, None);
            if let ([c], [inner]) = (root_children, own)
                && of(c).is_some()
                && of(c) == of(inner)
            {
                devices = literal(&c.count).map(|v| v as i128);
                child = Some((c.of.span, self.sources.snippet(c.of.span)));
            }
            self.error(errors::level_alone(name, root, devices, child));
            return;
        }
    }
}
