//! The mesh: axes, sizes, strides, and where they must lie.

use super::super::cluster::{Cluster, Topology};
use super::super::errors;
use super::super::flatten::Flat;
use super::{Builder, DutyKind};
use crate::eval::{Domain, Env, Num, Quantity, Value, Wanted};
use crate::expr::{Id, Node};
use crate::layout::Place;
use crate::syntax::ast::{AxisDef, Expr, ItemKind, Name};
use crate::units::Unit;
use std::rc::Rc;

impl<'p> Builder<'p, '_, '_, '_> {
    pub(super) fn mesh(&mut self, items: &[Flat<'p>], layout: &Name) -> Option<()> {
        let mut found = None;
        for flat in items {
            if let ItemKind::Mesh(defs) = &flat.item.kind {
                found = Some((defs, flat));
            }
        }
        let Some((defs, flat)) = found else {
            self.eval.sink.error(errors::mesh_missing(layout));
            return None;
        };
        self.layout.mesh_span = Some(flat.item.span);
        if defs.len() > crate::limits::MESH_AXES {
            self.eval.sink.error(errors::too_many_axes(defs.len(), flat.item.span));
            return None;
        }
        for (i, def) in defs.iter().enumerate() {
            if let Some(first) = defs[..i].iter().find(|d| d.name.text == def.name.text) {
                self.eval.sink.error(errors::axis_twice(&def.name, first.name.span));
                return None;
            }
        }
        let devices = self.eval.graph.int(self.devices);
        let sizes = self.sizes(defs, &flat.env, devices)?;
        for (def, size) in defs.iter().zip(&sizes) {
            self.layout.add_mesh_axis(&def.name.text, *size, def.name.span);
        }
        self.layout.set_strides(self.eval.graph);
        let product = self.eval.graph.product(sizes.iter().copied());
        let cond = self.eval.graph.eq(product, devices);
        self.duty(cond, DutyKind::Mesh, flat.item.span);
        self.folds(items)?;
        for flat in items {
            if let ItemKind::Axis { name, axes } = &flat.item.kind {
                let list = self.names(axes)?;
                self.products.push((name.text.to_string(), list));
            }
        }
        Some(())
    }

    /// `env`, and the axes so far: elsewhere than in an axis position, an axis is its size.
    pub(super) fn with_axes(&self, env: &Rc<Env<'p>>) -> Rc<Env<'p>> {
        let sizes = self.layout.named.iter().map(|a| (a.name.as_str().into(), Value::sym(a.size, Unit::none())));
        Env::with(env, sizes.filter(|(name, _): &(smol_str::SmolStr, _)| env.find(name).is_none()).collect())
    }

    /// The sizes of the axes of a mesh or a fold, whose product is `whole`: `rest` takes what the others leave.
    pub(super) fn sizes(&mut self, defs: &'p [AxisDef], env: &Rc<Env<'p>>, whole: Id) -> Option<Vec<Id>> {
        let mut sizes = Vec::new();
        let mut rest = None;
        for (i, def) in defs.iter().enumerate() {
            if is_rest(def) && rest.is_none() {
                rest = Some(i);
                sizes.push(self.eval.graph.int(1));
            } else {
                sizes.push(self.axis_size(def, env)?);
            }
        }
        if let Some(i) = rest {
            let others = self.eval.graph.product(sizes.iter().copied());
            let left = self.eval.graph.put(Node::Mod(whole, others));
            let zero = self.eval.graph.int(0);
            let cond = self.eval.graph.eq(left, zero);
            sizes[i] = self.eval.graph.put(Node::ExactDiv(whole, others));
            self.duty(cond, DutyKind::Division { a: whole, b: others }, defs[i].name.span);
        }
        Some(sizes)
    }

    fn axis_size(&mut self, def: &'p AxisDef, env: &Rc<Env<'p>>) -> Option<Id> {
        let (value, span) = match &def.size {
            Some(e) => (self.eval.eval(e, env, &Wanted::Int), e.span),
            None => match env.find(&def.name.text) {
                Some(v) => (v.clone(), def.name.span),
                None => {
                    self.eval.sink.error(errors::axis_unsized(&def.name));
                    return None;
                }
            },
        };
        let value = match value {
            Value::Hole(hole) => {
                let sizes = Domain::numbers(super::super::job::divisors(self.devices));
                self.eval.choose(&def.name.text, &hole, Some(sizes))
            }
            v => v,
        };
        let what = format!("the size of axis `{}`", def.name.text);
        match self.eval.require(value, &Wanted::Int, &what, span) {
            Value::Num(Quantity { num: Num::Int(n), .. }) if n < 1 => {
                self.eval.sink.error(errors::not_positive(&def.name.text, n, span));
                None
            }
            Value::Num(q) => Some(self.eval.node(q.num)),
            _ => None,
        }
    }

    /// Each placed axis stays inside one instance of its level.
    pub(super) fn check_places(&mut self, cluster: &Cluster<'p>) {
        for place in self.layout.places.clone() {
            if !place.along.is_empty() {
                self.check_directions(&place, cluster);
                continue;
            }
            let level = &cluster.levels[place.level];
            let limit = self.eval.graph.int(level.devices);
            for axis in &place.axes {
                let mut cond = self.eval.graph.bool(true);
                for fine in self.layout.named(*axis).fine.clone() {
                    let a = self.layout.axis(fine).clone();
                    let reach = self.eval.graph.mul(a.stride, a.size);
                    // A group fits where its reach divides the level, or where it is one rank.
                    let rest = self.eval.graph.put(Node::Mod(limit, reach));
                    let zero = self.eval.graph.int(0);
                    let inside = self.eval.graph.eq(rest, zero);
                    let one = self.eval.graph.int(1);
                    let alone = self.eval.graph.eq(a.size, one);
                    let fits = self.eval.graph.put(Node::Or(inside, alone));
                    cond = self.eval.graph.put(Node::And(cond, fits));
                }
                let kind = DutyKind::Place { axis: *axis, level: level.name.clone(), devices: level.devices };
                self.duty(cond, kind, place.span);
            }
        }
    }

    /// The groups of axes along directions of a torus fill whole lines of them, each with the others placed there too.
    fn check_directions(&mut self, place: &Place, cluster: &Cluster<'p>) {
        let level = &cluster.levels[place.level];
        let Topology::Torus { sizes, .. } = &level.topology else { return };
        let shares = |p: &&Place| p.level == place.level && p.along.iter().any(|d| place.along.contains(d));
        let there: Vec<Place> = self.layout.places.iter().filter(shares).cloned().collect();
        let mut axes: Vec<_> = there.iter().flat_map(|p| p.axes.iter().copied()).collect();
        axes.sort_unstable();
        axes.dedup();
        let along = sizes.iter().enumerate().filter(|(d, _)| there.iter().any(|p| p.along.contains(d)));
        let (names, lines): (Vec<_>, Vec<i64>) = along.map(|(_, (name, n))| (name.as_str(), *n)).unzip();
        let devices = lines.iter().product();
        let ranks: Vec<_> = axes.iter().map(|a| self.layout.named(*a).size).collect();
        let ranks = self.eval.graph.product(ranks);
        let (whole, zero) = (self.eval.graph.int(devices), self.eval.graph.int(0));
        let rest = self.eval.graph.put(Node::Mod(whole, ranks));
        let cond = self.eval.graph.eq(rest, zero);
        let along = names.iter().map(|n| format!("{}.{n}", level.name)).collect();
        self.duty(cond, DutyKind::Along { axes, along, devices }, place.span);
    }

    /// A known or symbolic whole number as a value, for items that take one.
    pub(super) fn whole(&mut self, e: &'p Expr, env: &Rc<Env<'p>>, what: &str) -> Option<Id> {
        let v = self.eval.eval(e, env, &Wanted::Int);
        match self.eval.require(v, &Wanted::Int, what, e.span) {
            Value::Num(q) if q.unit == Unit::none() => Some(self.eval.node(q.num)),
            _ => None,
        }
    }
}

fn is_rest(def: &AxisDef) -> bool {
    def.size.as_ref().and_then(|e| e.name()).is_some_and(|n| n.text == "rest")
}
