//! Layouts: axes, items, and what may stand where.

use super::items::{self, Place};
use super::scope::{Local, Sort};
use super::ty::{Thing, Ty, Whole};
use super::{Checker, MAX_DEPTH, errors};
use crate::diagnostics::nearest;
use crate::eval::errors as said;
use crate::hir::schema;
use crate::syntax::ast::{
    AxisDef, AxisRef, Block, Body, Decl, Expr, ExprKind, ItemKind, Kind, Name, Param, SelectorPart,
};
use indexmap::IndexSet;
use smol_str::SmolStr;

/// Communications `overlap` speaks of.
const COMMS: &[&str] = &["gather", "reduce", "p2p", "dispatch", "combine", "fetch", "evict", "reshard", "all"];
/// Operators and collectives `via` speaks of.
const CHOICES: &[&str] = &[
    "attention",
    "dispatch",
    "combine",
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "all_to_all",
    "broadcast",
    "p2p",
    "gather",
    "reduce",
];
const CLASSES: &[&str] = &["param", "grad", "state", "master", "act", "kv"];

impl<'p> Checker<'p, '_> {
    /// Names every layout has.
    pub(super) fn given_in_layout(&mut self) {
        self.give("devices", Sort::Given, Ty::int());
        self.give("cluster", Sort::Given, Ty::thing(Kind::Cluster));
        self.give("device", Sort::Given, Ty::thing(Kind::Device));
        self.give("host", Sort::Given, Ty::thing(Kind::Host));
    }

    /// Puts what the layout `decl` has in scope: given names, its axes and parts.
    pub(super) fn layout_names_in(&mut self, decl: &'p Decl) {
        self.given_in_layout();
        self.axes = Some(Vec::new());
        match &decl.body {
            Body::Block(block) => self.axes_of(block),
            Body::Expr(_) | Body::None => self.axes = None,
        }
    }

    /// Adds the axes `block` declares.
    pub(super) fn axes_of(&mut self, block: &'p Block) {
        let mut found = Vec::new();
        let mut parts = Vec::new();
        collect_axes(block, &mut found, &mut parts, 0);
        for name in &found {
            self.scope.put_new(name, Local { ty: Ty::int(), sort: Sort::Axis, span: None });
        }
        for name in &parts {
            self.scope.put_new(name, Local { ty: Ty::Unknown, sort: Sort::Field, span: None });
        }
        if block.items.iter().any(|i| matches!(i.kind, ItemKind::Error)) {
            // What could not be read may have been the mesh.
            self.axes = None;
        }
        if let Some(axes) = &mut self.axes {
            axes.extend(found.into_iter().cloned());
        }
    }

    /// `layout { … }` of a job.
    pub(super) fn inline_layout(&mut self, block: &'p Block) {
        let axes = self.axes.replace(Vec::new());
        self.scope.push();
        self.given_in_layout();
        self.axes_of(block);
        self.block_items(block, Place::Decl(Kind::Layout));
        self.layout_block(block, Place::Decl(Kind::Layout));
        self.scope.pop();
        self.axes = axes;
    }

    /// The block of `LAYOUT with {…}`: items, and parameters given by name.
    pub(super) fn with_layout(&mut self, block: &'p Block, params: &[&'p Param]) {
        self.layout_inner(block, Place::Decl(Kind::Layout), params, 0);
    }

    pub(super) fn layout_block(&mut self, block: &'p Block, place: Place) {
        self.layout_inner(block, place, &[], 0);
    }

    fn layout_inner(&mut self, block: &'p Block, place: Place, params: &[&'p Param], depth: u32) {
        if depth > MAX_DEPTH {
            return;
        }
        self.lets(block);
        let known = if place == Place::Part { schema::block_fields("part").unwrap_or_default() } else { &[] };
        self.fields(block, place, known, params);
        for item in &block.items {
            if items::misplaced(item, place).is_some() {
                continue;
            }
            match &item.kind {
                ItemKind::Mesh(axes) => self.mesh(axes),
                ItemKind::Fold { from, to } => {
                    for name in from {
                        self.axis(name);
                    }
                    self.mesh(to);
                }
                ItemKind::Axis { axes, .. } => self.axis_refs(axes),
                ItemKind::Place { axes, on } => {
                    self.axis_refs(axes);
                    self.infer(on, Whole::Maybe);
                }
                ItemKind::Part { on, selectors, block: inner, .. } => {
                    self.infer(on, Whole::Maybe);
                    self.selectors(selectors);
                    let axes = self.axes.clone();
                    if let Some(list) = &mut self.axes {
                        let mut own = Vec::new();
                        collect_axes(inner, &mut own, &mut Vec::new(), 0);
                        list.extend(own.into_iter().cloned());
                    }
                    self.scope.push();
                    self.axes_here(inner);
                    self.block_items(inner, Place::Part);
                    self.layout_inner(inner, Place::Part, &[], depth + 1);
                    self.scope.pop();
                    self.axes = axes;
                }
                ItemKind::Shard { classes, axes, block, .. } => {
                    self.classes(classes, place);
                    self.axis_refs(axes);
                    self.item_block("shard", block.as_ref());
                }
                ItemKind::Replicate { classes, axes } => {
                    self.classes(classes, place);
                    self.axis_refs(axes);
                }
                ItemKind::Store { classes, axes, on, as_dtype, block } => {
                    self.classes(classes, place);
                    self.axis_refs(axes);
                    if let Some(e) = on {
                        self.infer_open(e);
                    }
                    if let Some(e) = as_dtype {
                        let found = self.infer(e, Whole::Maybe);
                        self.expect(&Ty::thing(Kind::Dtype), &found, "`as`", e);
                    }
                    self.item_block("store", block.as_ref());
                }
                ItemKind::Reduce { classes, axes, block } => {
                    self.classes(classes, place);
                    self.axis_refs(axes);
                    self.item_block("reduce", block.as_ref());
                }
                ItemKind::Pad { to, .. } => self.whole(to, "`pad`"),
                ItemKind::Recompute(e) => self.recompute(item.span, e),
                ItemKind::Pipeline { axes, block } => {
                    self.axis_refs(axes);
                    self.item_block("pipeline", block.as_ref());
                }
                ItemKind::Overlap { comms, axes, with, block } => {
                    for c in comms.iter().filter(|c| !COMMS.contains(&c.text.as_str())) {
                        self.error(errors::unknown_word(c, "communication", COMMS));
                    }
                    self.axis_refs(axes);
                    self.selectors(with);
                    self.item_block("overlap", block.as_ref());
                }
                ItemKind::Via { op, axes, method } => {
                    if !CHOICES.contains(&op.text.as_str()) {
                        self.error(errors::unknown_word(op, "operator or collective", CHOICES));
                    }
                    self.axis_refs(axes);
                    self.infer_open(method);
                }
                ItemKind::In { selectors, block: inner } => {
                    self.selectors(selectors);
                    self.scope.push();
                    self.block_items(inner, Place::Within(Kind::Layout));
                    self.layout_inner(inner, Place::Within(Kind::Layout), &[], depth + 1);
                    self.scope.pop();
                }
                ItemKind::If { cond, then, otherwise } => {
                    self.condition(cond, "a condition");
                    for b in std::iter::once(then).chain(otherwise) {
                        self.scope.push();
                        self.block_items(b, place);
                        self.layout_inner(b, place, &[], depth + 1);
                        self.scope.pop();
                    }
                }
                ItemKind::Require { cond, .. } => self.condition(cond, "`require`"),
                ItemKind::Section { head, block, .. } => self.section(head, block, place),
                _ => {}
            }
        }
    }

    /// A single word is one of two, or a parameter of the layout.
    fn recompute(&mut self, item: crate::source::Span, e: &'p Expr) {
        if let ExprKind::Path(path) = &e.kind
            && let [name] = &path[..]
            && !["none", "all"].contains(&name.text.as_str())
            && self.scope.find(&name.text).is_none()
        {
            self.error(errors::recompute_form(name, item));
            return;
        }
        self.infer_open(e);
    }

    /// Axes of a part are names in it.
    fn axes_here(&mut self, block: &'p Block) {
        let mut own = Vec::new();
        collect_axes(block, &mut own, &mut Vec::new(), 0);
        for name in own {
            self.scope.put_new(name, Local { ty: Ty::int(), sort: Sort::Axis, span: None });
        }
    }

    fn mesh(&mut self, axes: &'p [AxisDef]) {
        let mut seen: Vec<&'p Name> = Vec::new();
        for a in axes {
            if let Some(first) = seen.iter().find(|n| n.text == a.name.text) {
                let first = first.span;
                self.error(errors::axis_twice(&a.name, first));
            }
            seen.push(&a.name);
            match &a.size {
                Some(e) if e.name().is_some_and(|n| n.text == "rest") => {}
                Some(e) => self.whole(e, &format!("the size of `{}`", a.name.text)),
                None => {
                    let sized = self.scope.find(&a.name.text).is_some_and(|l| l.sort != Sort::Axis)
                        || self.program.lookup(self.module, &a.name.text).is_some()
                        || self.axes.is_none();
                    if !sized {
                        self.error(errors::axis_without_size(&a.name));
                    }
                }
            }
        }
    }

    pub(super) fn axis_refs(&mut self, axes: &'p [AxisRef]) {
        for a in axes {
            // `llm.tp` is an axis of a part; its axes were collected with the others.
            if a.part.is_none() {
                self.axis(&a.name);
            }
        }
    }

    fn axis(&mut self, name: &'p Name) {
        let Some(axes) = &self.axes else { return };
        if axes.contains(&name.text) || !self.told.insert((self.owner, format!("axis {}", name.text).into())) {
            return;
        }
        let known: Vec<String> =
            axes.iter().cloned().collect::<IndexSet<_>>().iter().map(ToString::to_string).collect();
        self.error(errors::unknown_axis(name, &known));
    }

    /// Outside `in`, a class is one of six; inside, a tensor's name will do.
    fn classes(&mut self, classes: &'p [Name], place: Place) {
        if matches!(place, Place::Within(_)) {
            return;
        }
        for c in classes.iter().filter(|c| !CLASSES.contains(&c.text.as_str())) {
            let plural = c.text.strip_suffix('s').filter(|s| CLASSES.contains(s));
            let near = plural.or_else(|| match c.text.as_str() {
                "parameters" | "weights" | "weight" => Some("param"),
                "gradients" | "gradient" => Some("grad"),
                "optimizer" | "optimizer_state" | "moments" => Some("state"),
                "activations" | "activation" => Some("act"),
                other => nearest(other, CLASSES.iter().copied()),
            });
            self.error(errors::unknown_class(c, near, CLASSES));
        }
    }

    pub(super) fn selectors(&mut self, list: &'p [crate::syntax::ast::Selector]) {
        for part in list.iter().flat_map(|s| &s.parts) {
            if let SelectorPart::Name(_, Some(index)) = part {
                let (crate::syntax::ast::Index::Expr(e) | crate::syntax::ast::Index::From(e)) = index;
                let found = self.infer(e, Whole::Yes);
                if !matches!(found, Ty::Range) {
                    self.expect(&Ty::int(), &found, "an index", e);
                }
            }
        }
    }

    /// A number where a layout item wants one.
    pub(super) fn claim(&mut self, e: &'p Expr) -> Ty<'p> {
        let ty = self.infer(e, Whole::Maybe);
        if let Ty::Text | Ty::List(_) | Ty::Op = ty {
            let noun = ty.noun();
            return self.error(said::wrong_kind("`expect`", "a claim that is true or false", &noun, e.span));
        }
        ty
    }
}

/// Axes and parameters of a layout; none where its declaration is not known.
pub(super) fn layout_names(layout: Thing<'_>) -> Option<IndexSet<SmolStr>> {
    let decl = layout.decl?;
    let Body::Block(block) = &decl.body else { return None };
    let mut axes = Vec::new();
    let mut parts = Vec::new();
    collect_axes(block, &mut axes, &mut parts, 0);
    let params = decl.params.as_deref().unwrap_or_default().iter().map(|p| &p.name.text);
    Some(params.chain(axes).chain(parts).cloned().collect())
}

/// Axes and parts that `block` declares, those of its branches and parts included.
fn collect_axes<'p>(block: &'p Block, axes: &mut Vec<&'p SmolStr>, parts: &mut Vec<&'p SmolStr>, depth: u32) {
    if depth > MAX_DEPTH {
        return;
    }
    for item in &block.items {
        match &item.kind {
            ItemKind::Mesh(list) | ItemKind::Fold { to: list, .. } => axes.extend(list.iter().map(|a| &a.name.text)),
            ItemKind::Axis { name, .. } => axes.push(&name.text),
            ItemKind::Part { name, .. } => parts.push(&name.text),
            ItemKind::If { then, otherwise, .. } => {
                collect_axes(then, axes, parts, depth + 1);
                if let Some(b) = otherwise {
                    collect_axes(b, axes, parts, depth + 1);
                }
            }
            ItemKind::In { block, .. } => collect_axes(block, axes, parts, depth + 1),
            _ => {}
        }
    }
}
