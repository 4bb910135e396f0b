//! Everything in a layout but its mesh.

mod compute;
mod pipeline;
mod storage;

use super::super::cluster::{Cluster, Site};
use super::super::errors;
use super::super::flatten::Flat;
use super::{Builder, PipelineItem};
use crate::eval::{Env, Value, Wanted, fields_of};
use crate::layout::{Action, Class, Comm, NameId, Pad, Place, Rule};
use crate::source::Span;
use crate::syntax::ast::{self, AxisRef, Block, Expr, ExprKind, ItemKind, Name};
use smol_str::SmolStr;
use std::rc::Rc;
use storage::StoreItem;

const CLASSES: &[(&str, Class)] = &[
    ("param", Class::Param),
    ("grad", Class::Grad),
    ("state", Class::State),
    ("master", Class::Master),
    ("act", Class::Act),
    ("kv", Class::Kv),
];

const COMMS: &[(&str, Comm)] = &[
    ("gather", Comm::Gather),
    ("reduce", Comm::Reduce),
    ("p2p", Comm::P2p),
    ("dispatch", Comm::Dispatch),
    ("combine", Comm::Combine),
    ("fetch", Comm::Fetch),
    ("evict", Comm::Evict),
    ("reshard", Comm::Reshard),
];

type Fields<'p> = indexmap::IndexMap<SmolStr, (&'p Expr, Span)>;

impl<'p> Builder<'p, '_, '_, '_> {
    /// Evaluates every item; gives the pipeline, if there is one.
    #[expect(clippy::option_option, reason = "the outer level says whether something was reported")]
    pub(super) fn items(
        &mut self,
        items: &[Flat<'p>],
        cluster: &Cluster<'p>,
        requires: &mut Vec<(&'p ast::Item, Rc<Env<'p>>)>,
    ) -> Option<Option<PipelineItem<'p>>> {
        let mut pipeline: Option<(Vec<AxisRef>, Fields<'p>, &Flat<'p>)> = None;
        let mut ok = true;
        for flat in items {
            let span = flat.item.span;
            if let Some(what) = whole_layout_only(&flat.item.kind)
                && !flat.scopes.is_empty()
            {
                self.eval.sink.error(errors::whole_layout(what, span));
                ok = false;
                continue;
            }
            let done = match &flat.item.kind {
                ItemKind::Mesh(_) | ItemKind::Fold { .. } | ItemKind::Axis { .. } | ItemKind::Let(_) => Some(()),
                ItemKind::Shard { dims, classes, axes, otherwise, block } => {
                    self.shard(flat, dims, classes, axes, otherwise, block.as_ref())
                }
                ItemKind::Replicate { classes, axes } => self.replicate(flat, classes, axes),
                ItemKind::Store { classes, axes, on, as_dtype, block } => {
                    let (on, as_dtype, block) = (on.as_deref(), as_dtype.as_deref(), block.as_ref());
                    self.store(flat, &StoreItem { names: classes, axes, on, as_dtype, block })
                }
                ItemKind::Reduce { classes, axes, block } => self.reduce(flat, classes, axes, block.as_ref()),
                ItemKind::Pad { dim, to } => self.pad(flat, &dim.text, to),
                ItemKind::Recompute(e) => self.recompute(flat, e),
                ItemKind::Place { axes, on } => self.names(axes).and_then(|axes| {
                    let (level, along) = match cluster.site(self.eval, on)? {
                        Site::Level(level) => (level, Vec::new()),
                        Site::Directions { level, along } => (level, along),
                    };
                    self.layout.places.push(Place { axes, level, along, span });
                    Some(())
                }),
                ItemKind::Overlap { comms, axes, with, block } => self.overlap(flat, comms, axes, with, block.as_ref()),
                ItemKind::Via { op, axes, method } => self.via(op, axes, method, flat),
                ItemKind::Pipeline { axes, block } => {
                    let fields = block.as_ref().map(fields_of).unwrap_or_default();
                    match &mut pipeline {
                        // A later `with` changes fields of the same pipeline.
                        Some((_, old, _)) => old.extend(fields),
                        None => pipeline = Some((axes.clone(), fields, flat)),
                    }
                    Some(())
                }
                ItemKind::Require { .. } => {
                    requires.push((flat.item, Rc::clone(&flat.env)));
                    Some(())
                }
                ItemKind::Section { head, block, .. } if head.text == "update" => self.update(flat, block),
                ItemKind::Part { .. } | ItemKind::Error => None,
                _ => {
                    self.eval.sink.error(errors::misplaced("a layout", span));
                    None
                }
            };
            ok &= done.is_some();
        }
        self.note_unpriced_stores(cluster);
        let pipeline = match pipeline {
            None => None,
            Some((axes, fields, flat)) => Some(self.pipeline(&axes, &fields, flat)?),
        };
        ok.then_some(pipeline)
    }

    /// The value of a field in an item's block, a choice settled.
    fn setting(&mut self, name: &str, e: &'p Expr, env: &Rc<Env<'p>>) -> Value<'p> {
        let value = self.eval.eval(e, env, &Wanted::Any);
        self.eval.settled(name, value)
    }

    /// Notes what is right and not priced yet, at the user's line.
    pub(super) fn later(&mut self, what: &str, span: Span) {
        let span = if self.library { self.used_at } else { span };
        self.layout.later.push((what.to_string(), span));
    }

    /// A dimension rounded up to a multiple.
    fn pad(&mut self, flat: &Flat<'p>, dim: &str, to: &'p Expr) -> Option<()> {
        if !flat.scopes.is_empty() {
            self.later("`pad` for part of the model", flat.item.span);
            return self.whole(to, &flat.env, "`pad`").map(|_| ());
        }
        let to = self.whole(to, &flat.env, "`pad`")?;
        self.layout.pads.push(Pad { dim: dim.to_string(), to, span: flat.item.span });
        Some(())
    }

    fn classes(&mut self, names: &[Name], default: &[Class]) -> Option<Vec<Class>> {
        if names.is_empty() {
            return Some(default.to_vec());
        }
        let mut out = Vec::new();
        for name in names {
            match CLASSES.iter().find(|(n, _)| *n == name.text) {
                Some((_, class)) => out.push(*class),
                None => {
                    let known: Vec<_> = CLASSES.iter().map(|(n, _)| *n).collect();
                    self.eval.sink.error(errors::unknown_class(name, &known));
                    return None;
                }
            }
        }
        Some(out)
    }

    /// Axes of a rule, less those a later `with` took over.
    fn rule_axes(&mut self, flat: &Flat<'p>, axes: &[AxisRef]) -> Option<Vec<NameId>> {
        let kept: Vec<_> =
            axes.iter().filter(|a| !flat.without.iter().any(|w| w.name.text == a.name.text)).cloned().collect();
        self.names(&kept)
    }

    fn shard(
        &mut self,
        flat: &Flat<'p>,
        dims: &[Name],
        classes: &[Name],
        axes: &[AxisRef],
        otherwise: &[Name],
        block: Option<&'p Block>,
    ) -> Option<()> {
        let mut unequal = false;
        for (name, (e, at)) in block.map(fields_of).unwrap_or_default() {
            match name.as_str() {
                "pad" => {
                    for dim in dims {
                        self.pad(flat, &dim.text, e)?;
                    }
                }
                "share" | "placement" if word(e).is_some_and(|w| w == "none" || w == "equal") => {}
                _ => {
                    unequal |= matches!(name.as_str(), "share" | "placement");
                    self.later(&format!("`{name}` of a `shard`"), at);
                }
            }
        }
        let classes = self.classes(classes, &[Class::Param, Class::Act, Class::Kv])?;
        let (at_rest, in_use): (Vec<Class>, Vec<Class>) =
            classes.into_iter().partition(|c| matches!(c, Class::Grad | Class::State | Class::Master));
        if !at_rest.is_empty() {
            self.store_along(flat, &at_rest, dims, axes)?;
        }
        if in_use.is_empty() {
            return Some(());
        }
        let (scope, classes) = (self.scope(flat)?, in_use);
        let axes = self.rule_axes(flat, axes)?;
        let text = |names: &[Name]| names.iter().map(|n| n.text.to_string()).collect();
        let action = Action::Shard { dims: text(dims), classes, otherwise: text(otherwise) };
        self.layout.rules.push(Rule { scope, axes, action, unequal, span: flat.item.span });
        Some(())
    }

    fn replicate(&mut self, flat: &Flat<'p>, classes: &[Name], axes: &[AxisRef]) -> Option<()> {
        let scope = self.scope(flat)?;
        let classes = self.classes(classes, &[Class::Param, Class::Act, Class::Kv])?;
        let axes = self.rule_axes(flat, axes)?;
        let action = Action::Replicate { classes };
        self.layout.rules.push(Rule { scope, axes, action, unequal: false, span: flat.item.span });
        Some(())
    }

    pub(super) fn one_of(&mut self, what: &str, wanted: &str, e: &Expr) -> Option<()> {
        let found = e.name().map_or("something else".into(), |n| format!("`{}`", n.text));
        self.eval.sink.error(errors::wrong_value(what, wanted, &found, e.span));
        None
    }
}

/// The keyword of an item that speaks of all devices of the layout and stands in no `in`.
fn whole_layout_only(item: &ItemKind) -> Option<&'static str> {
    Some(match item {
        ItemKind::Mesh(_) => "mesh",
        ItemKind::Axis { .. } => "axis",
        ItemKind::Pipeline { .. } => "pipeline",
        _ => return None,
    })
}

/// A single name, whether an identifier or a keyword used as one.
fn word(e: &Expr) -> Option<&str> {
    match &e.kind {
        ExprKind::Path(p) if p.len() == 1 => Some(&p[0].text),
        ExprKind::Kind(k) => Some(k.keyword()),
        _ => None,
    }
}

fn is_word(e: &Expr, name: &str) -> bool {
    word(e) == Some(name)
}
