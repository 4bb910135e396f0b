//! `part NAME on DEVICES for SELECTORS { … }`: pieces of the model with devices, a mesh and rules of their own.

use super::super::cluster::Cluster;
use super::super::errors;
use super::super::flatten::{Flat, flatten};
use super::{Builder, Evaluated, Joined, Part, selector};
use crate::diagnostics::Diagnostic;
use crate::eval::{Env, Given, Record, Value, Wanted, fields_of};
use crate::layout::{AxisId, Layout};
use crate::limits;
use crate::source::Span;
use crate::syntax::ast::{AxisRef, Block, Expr, Item, ItemKind, Name};
use crate::units::{Base, Unit};
use smol_str::SmolStr;
use std::rc::Rc;

impl<'p> Builder<'p, '_, '_, '_> {
    /// Evaluates a layout made of parts: `items` are those of the layout itself.
    pub(super) fn parts(&mut self, items: &[Flat<'p>], cluster: &Cluster<'p>, name: &Name) -> Option<Evaluated<'p>> {
        let written: Vec<_> = items.iter().filter(|f| matches!(f.item.kind, ItemKind::Part { .. })).collect();
        if written.len() > limits::PARTS {
            let span = written[limits::PARTS].item.span;
            self.eval.sink.error(Diagnostic::over_limit("parts of a layout", written.len(), limits::PARTS, span));
            return None;
        }
        let (mut shared, mut requires, mut joins) = (Vec::new(), Vec::new(), Vec::new());
        let mut ok = true;
        for flat in items {
            match &flat.item.kind {
                ItemKind::Part { .. } => {}
                ItemKind::Require { .. } => requires.push(flat),
                ItemKind::Pipeline { axes, block } => joins.push((axes, block.as_ref(), flat)),
                ItemKind::Recompute(_) | ItemKind::Pad { .. } => shared.push(flat.clone()),
                ItemKind::Overlap { axes, .. } if axes.is_empty() => shared.push(flat.clone()),
                ItemKind::Mesh(_) => {
                    let part = written.first().map(|f| f.item.span);
                    self.eval.sink.error(errors::mesh_and_parts(flat.item.span, part));
                    ok = false;
                }
                _ => {
                    let what = "an item outside the parts of a layout";
                    self.eval.sink.error(errors::not_supported(what, flat.item.span));
                    ok = false;
                }
            }
        }
        let mut parts: Vec<Part<'p>> = Vec::new();
        for flat in written {
            let ItemKind::Part { name, on, selectors, block } = &flat.item.kind else { continue };
            if let Some(first) = parts.iter().find(|p| p.name.text == name.text) {
                self.eval.sink.error(errors::axis_twice(name, first.name.span));
                return None;
            }
            let mut list = Vec::new();
            for s in selectors {
                list.push((selector(self.eval, s, &flat.env)?, s.span));
            }
            let devices = cluster.select(self.eval, on, &flat.env)?;
            let own = cluster.within(&devices, on.span);
            parts.push(self.part((name, &**on, flat.item), list, own, (block, &flat.env), &shared)?);
        }
        if !self.disjoint(&parts) || !ok {
            return None;
        }
        let joined = match joins.as_slice() {
            [] => None,
            [(axes, block, flat)] => Some(self.joined(axes, *block, flat, &mut parts)?),
            [_, (_, _, again), ..] => {
                self.eval.sink.error(errors::not_supported("several pipelines over parts", again.item.span));
                return None;
            }
        };
        let sizes = parts.iter().map(|p| (p.name.text.clone(), axes_of(p))).collect::<Vec<_>>();
        let requires = requires.into_iter().map(|f| (f.item, Env::with(&f.env, sizes.clone()))).collect();
        Some(Evaluated {
            layout: Layout::default(),
            pipeline: None,
            requires,
            name: name.text.to_string(),
            scopes: Vec::new(),
            named: Vec::new(),
            parts,
            joined,
        })
    }

    /// One part, as a layout on its devices.
    fn part(
        &mut self,
        (name, on, item): (&'p Name, &'p Expr, &'p Item),
        selectors: Vec<(crate::layout::Selector, Span)>,
        cluster: Cluster<'p>,
        (block, env): (&'p Block, &Rc<Env<'p>>),
        shared: &[Flat<'p>],
    ) -> Option<Part<'p>> {
        let mut duties = Vec::new();
        let (given, library, used_at) = (self.given.clone(), self.library, self.used_at);
        let mut b = Builder::new(&mut *self.eval, &mut duties, cluster.devices, given, library, used_at);
        let env = Rc::new(super::on_devices(env, &cluster));
        let own = {
            let mut decide = |cond: &'p Expr, env: &Rc<Env<'p>>| b.decide(cond, env);
            flatten(&Given { block, env }, &[], &mut decide)
        };
        let own = b.bind_lets(own);
        let (settings, own): (Vec<_>, Vec<_>) =
            own.into_iter().partition(|f| matches!(f.item.kind, ItemKind::Assign { .. }));
        let mut micro_batch = None;
        for flat in &settings {
            let ItemKind::Assign { target, value } = &flat.item.kind else { continue };
            if target.name.text != "micro_batch" {
                b.eval.sink.error(errors::misplaced("a part of a layout", flat.item.span));
                return None;
            }
            let wanted = Wanted::Quantity(Unit::base(Base::Seq));
            let found = b.eval.eval(value, &flat.env, &wanted);
            match b.eval.require(found, &wanted, "`micro_batch`", value.span) {
                Value::Num(q) => {
                    let id = b.eval.node(q.num);
                    if b.at_point(id) < 1 {
                        b.eval.sink.error(errors::not_positive("micro_batch", 0, value.span));
                        return None;
                    }
                    micro_batch = Some(id);
                }
                _ => return None,
            }
        }
        let items: Vec<_> = shared.iter().cloned().chain(own).collect();
        let evaluated = b.one_mesh(&items, &cluster, name)?;
        Some(Part { name, on, span: item.span, selectors, cluster, micro_batch, evaluated, duties })
    }

    /// `pipeline over [a.pp, b.pp] { schedule }`: the stages of parts one after another.
    fn joined(
        &mut self,
        axes: &[AxisRef],
        block: Option<&'p Block>,
        flat: &Flat<'p>,
        parts: &mut [Part<'p>],
    ) -> Option<Joined<'p>> {
        let mut list = Vec::new();
        for r in axes {
            let Some(of) = &r.part else {
                self.eval.sink.error(errors::unknown_axis(&r.name, &axis_names(parts), None));
                return None;
            };
            let found = parts.iter().position(|p| p.name.text == of.text);
            let axis = found.and_then(|p| parts[p].evaluated.layout.find_axis(&r.name.text).map(|a| (p, a)));
            let Some((p, axis)) = axis else {
                self.eval.sink.error(errors::unknown_axis(&r.name, &axis_names(parts), None));
                return None;
            };
            let layout = &mut parts[p].evaluated.layout;
            let fine: Vec<AxisId> = layout.fine(&[axis]);
            if list.contains(&p) || fine.len() != 1 {
                self.eval.sink.error(errors::not_supported("a pipeline over several axes of a part", r.name.span));
                return None;
            }
            layout.pipeline = fine.first().copied();
            list.push(p);
        }
        let (mut schedule, mut schedule_span) = (None, flat.item.span);
        for (name, (e, at)) in block.map(fields_of).unwrap_or_default() {
            if name == "schedule" {
                schedule_span = e.span;
                schedule = Some(self.schedule(e, &flat.env)?);
            } else {
                self.eval.sink.error(errors::not_supported(&format!("`{name}` of a pipeline over parts"), at));
                return None;
            }
        }
        let schedule = match schedule {
            Some(s) => s,
            None => self.default_schedule(flat.item.span)?,
        };
        Some(Joined { parts: list, schedule, schedule_span })
    }

    /// Reports devices that two parts have in common without having them all in common.
    fn disjoint(&mut self, parts: &[Part<'p>]) -> bool {
        for (i, b) in parts.iter().enumerate() {
            for a in &parts[..i] {
                let (mine, other) = (b.cluster.used(), a.cluster.used());
                let common = mine.both(other);
                if mine != other && common.count() > 0 {
                    self.eval.sink.error(errors::parts_overlap((a, b), &common));
                    return false;
                }
            }
        }
        true
    }
}

/// The axes of a part by name, as a requirement sees them.
fn axes_of<'p>(part: &Part<'p>) -> Value<'p> {
    let mut record = Record::made("part", part.name.text.as_str(), part.span);
    for axis in &part.evaluated.layout.named {
        record.fields.insert(SmolStr::new(&axis.name), Value::sym(axis.size, Unit::none()));
    }
    Value::Record(Rc::new(record))
}

/// `new.pp`, `old.tp`: every axis of the parts.
fn axis_names(parts: &[Part<'_>]) -> Vec<String> {
    let of = |p: &Part<'_>| p.evaluated.layout.named.iter().map(|a| format!("{}.{}", p.name.text, a.name)).collect();
    parts.iter().flat_map(|p| -> Vec<String> { of(p) }).collect()
}
