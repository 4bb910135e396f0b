//! `store`, `reduce` and `update`: how classes rest, how gradients are summed, where the optimizer runs.

use super::super::{Builder, Named};
use super::{CLASSES, is_word, word};
use crate::elaborate::cluster::Cluster;
use crate::elaborate::errors;
use crate::elaborate::flatten::Flat;
use crate::elaborate::numerics::Dtype;
use crate::eval::{Value, Wanted, fields_of};
use crate::layout::{Bucket, Class, Format, Hold, Reduce, Store, Tier, Update};
use crate::source::Span;
use crate::syntax::ast::{Arg, AxisRef, Block, Expr, ExprKind, Name};
use crate::units::{Base, Unit};

/// What a `store` item says beside its block.
pub(super) struct StoreItem<'p> {
    pub(super) names: &'p [Name],
    pub(super) axes: &'p [AxisRef],
    pub(super) on: Option<&'p Expr>,
    pub(super) as_dtype: Option<&'p Expr>,
    pub(super) block: Option<&'p Block>,
}

impl<'p> Builder<'p, '_, '_, '_> {
    pub(super) fn store(&mut self, flat: &Flat<'p>, item: &StoreItem<'p>) -> Option<()> {
        let scope = self.scope(flat)?;
        let axes = self.axes(item.axes)?;
        let span = flat.item.span;
        let mut store = Store::new(scope, Class::Param, axes, span);
        if let Some(e) = item.on {
            store.tier = self.tier(flat, e)?;
            store.tier_span = (store.tier != Tier::Device).then_some(e.span);
        }
        if let Some(e) = item.as_dtype {
            store.format = Some(self.format(flat, e)?);
        }
        for (name, (e, at)) in item.block.map(fields_of).unwrap_or_default() {
            match name.as_str() {
                "hold" => {
                    store.hold = match word(e) {
                        Some("layer") => Hold::Layer,
                        Some("microbatch") => Hold::Microbatch,
                        Some("step") => Hold::Step,
                        _ => return self.one_of("`hold`", "`layer`, `microbatch` or `step`", e),
                    }
                }
                "keep" if word(e) == Some("gathered") => store.keep_gathered = true,
                "keep" if word(e) == Some("none") => {}
                "keep" => return self.one_of("`keep`", "`gathered`", e),
                "prefetch" => store.prefetch = self.buckets(flat, "`prefetch`", 0, e)?,
                "resident" => store.resident = Some(self.buckets(flat, "`resident`", 1, e)?),
                "bucket" => store.bucket = self.bucket(flat, e)?,
                "along" => store.along = self.dimensions(e)?,
                "cache" | "skew" | "lookahead" => self.later(&format!("`{name}` of a `store`"), at),
                _ => {
                    let known =
                        ["bucket", "hold", "prefetch", "resident", "along", "keep", "cache", "skew", "lookahead"];
                    let known: Vec<_> = known.iter().map(ToString::to_string).collect();
                    self.eval.sink.error(crate::eval::errors::unknown_field(&name, at, "`store`", &known));
                    return None;
                }
            }
        }
        for name in item.names {
            match CLASSES.iter().find(|(n, _)| *n == name.text) {
                Some((_, class)) => self.layout.stores.push(Store { class: *class, ..store.clone() }),
                // Inside `in` a tensor may be named: whatever it is.
                None if !store.scope.is_everywhere() => {
                    let (scope, tensor) = (store.scope.clone(), name.text.to_string());
                    self.named.push(Named { scope, name: tensor, operation: false, span: name.span });
                    for class in [Class::Param, Class::Act] {
                        let tensor = Some(name.text.to_string());
                        self.layout.stores.push(Store { class, tensor, ..store.clone() });
                    }
                }
                None => {
                    let known: Vec<_> = CLASSES.iter().map(|(n, _)| *n).collect();
                    self.eval.sink.error(errors::unknown_class(name, &known));
                    return None;
                }
            }
        }
        Some(())
    }

    /// `shard D of state over a`: what rests split by name, and is used as it is used anyway.
    pub(super) fn store_along(
        &mut self,
        flat: &Flat<'p>,
        classes: &[Class],
        dims: &[Name],
        axes: &[AxisRef],
    ) -> Option<()> {
        let scope = self.scope(flat)?;
        let axes = self.axes(axes)?;
        for class in classes {
            let mut store = Store::new(scope.clone(), *class, axes.clone(), flat.item.span);
            store.along = dims.iter().map(|d| d.text.to_string()).collect();
            self.layout.stores.push(store);
        }
        Some(())
    }

    /// Notes the forms of `store` and `update` that memory and time do not follow yet, and what needs a host where there
    /// is none.
    pub(super) fn note_unpriced_stores(&mut self, cluster: &Cluster<'p>) {
        let mut found: Vec<(String, Span)> = Vec::new();
        let first = self.layout.stores.iter().find(|s| s.class == Class::Param).cloned();
        let state = self.layout.stores.iter().find(|s| s.class == Class::State).cloned();
        for s in &self.layout.stores {
            let mut note = |what: &str| found.push((what.to_string(), s.span));
            if s.class == Class::Master && state.as_ref().map_or(&[][..], |t| &t.axes[..]) != s.axes {
                note("storing `master` over other axes than `state`");
            }
            if s.class == Class::Act && !s.axes.is_empty() {
                note("activations split further at rest");
            }
            if s.class == Class::Act && s.format.is_some() {
                note("activations saved in another number format");
            }
            let like = first.as_ref().is_none_or(|f| s.hold == f.hold && s.prefetch == f.prefetch);
            if s.class == Class::Param && !like {
                note("parameters stored in different ways in different regions");
            }
        }
        for r in &self.layout.reduces {
            if r.format.is_some() {
                found.push(("`dtype` of a `reduce`".into(), r.span));
            }
        }
        for (what, span) in found {
            self.later(&what, span);
        }
        if cluster.host().is_none() {
            let stored = self.layout.stores.iter().filter_map(|s| s.tier_span);
            let mut at = stored.chain(self.layout.update.iter().filter(|u| u.on_host).map(|u| u.span));
            if let Some(span) = at.next() {
                let span = if self.library { self.used_at } else { span };
                self.eval.sink.error(errors::host_missing(&cluster.name, span));
            }
        }
    }

    /// `device`, `host`, `nvme(bandwidth = 6 GB/s)`.
    fn tier(&mut self, flat: &Flat<'p>, e: &'p Expr) -> Option<Tier> {
        let given = match &e.kind {
            ExprKind::Call(f, args) if is_word(f, "nvme") => match &args[..] {
                [Arg::Named(name, x)] if name.text == "bandwidth" => Some(x),
                [Arg::Positional(x)] => Some(x),
                _ => None,
            },
            _ => None,
        };
        match (word(e), given) {
            (Some("device"), _) => Some(Tier::Device),
            (Some("host"), _) => Some(Tier::Host),
            (_, Some(x)) => {
                let value = self.eval.eval(x, &flat.env, &Wanted::Quantity(Unit::bandwidth()));
                match self.eval.require(value, &Wanted::Quantity(Unit::bandwidth()), "`bandwidth`", x.span).as_f64() {
                    Some(bandwidth) if bandwidth > 0.0 => Some(Tier::Nvme { bandwidth }),
                    _ => self.one_of("`bandwidth`", "a bandwidth above 0", x).and(None),
                }
            }
            _ => self.one_of("`on`", "`device`, `host` or `nvme(bandwidth = …)`", e).and(None),
        }
    }

    /// A number format.
    fn format(&mut self, flat: &Flat<'p>, e: &'p Expr) -> Option<Format> {
        match self.eval.eval(e, &flat.env, &Wanted::Any) {
            Value::Record(r) if r.kind == "dtype" => {
                let dtype = Dtype::new(&r);
                Some(Format { name: dtype.name, bytes: dtype.bytes })
            }
            Value::Error(_) => None,
            other => {
                let noun = other.noun();
                self.eval.sink.error(errors::wrong_value("this", "a number format", &noun, e.span));
                None
            }
        }
    }

    /// A number of buckets.
    fn buckets(&mut self, flat: &Flat<'p>, what: &str, least: i128, e: &'p Expr) -> Option<i64> {
        let value = self.setting(what.trim_matches('`'), e, &flat.env);
        let number = match &value {
            Value::Num(q) => {
                let id = self.eval.node(q.num);
                Some(i128::from(self.at_point(id)))
            }
            _ => None,
        };
        match number {
            Some(n) if (least..=1 << 20).contains(&n) => Some(n as i64),
            _ => self.one_of(what, "a whole number of buckets", e).and(None),
        }
    }

    fn bucket(&mut self, flat: &Flat<'p>, e: &'p Expr) -> Option<Bucket> {
        Some(match word(e) {
            Some("tensor") => Bucket::Tensor,
            Some("region") => Bucket::Region,
            Some("layer") => Bucket::Layer,
            Some("chunk") => Bucket::Chunk,
            Some("model") => Bucket::Model,
            _ => {
                let value = self.eval.eval(e, &flat.env, &Wanted::Quantity(Unit::bytes()));
                match self.eval.require(value, &Wanted::Quantity(Unit::bytes()), "`bucket`", e.span).as_f64() {
                    Some(bytes) if bytes > 0.0 => Bucket::Bytes(bytes),
                    _ => return self.one_of("`bucket`", "`tensor`, `layer`, `model` or bytes", e).and(None),
                }
            }
        })
    }

    /// `[H, D]`: names of dimensions.
    fn dimensions(&mut self, e: &'p Expr) -> Option<Vec<String>> {
        let names: Option<Vec<_>> = match &e.kind {
            ExprKind::List(list) => list.iter().map(|x| word(x).map(ToString::to_string)).collect(),
            _ => word(e).map(|w| vec![w.to_string()]),
        };
        if names.is_none() {
            self.one_of("`along`", "a list of dimensions", e);
        }
        names
    }

    pub(super) fn reduce(
        &mut self,
        flat: &Flat<'p>,
        names: &[Name],
        axes: &[AxisRef],
        block: Option<&'p Block>,
    ) -> Option<()> {
        if let Some(name) = names.iter().find(|n| n.text != "grad") {
            self.axes(axes)?;
            self.later("reducing anything but gradients", name.span);
            return Some(());
        }
        let scope = self.scope(flat)?;
        let axes = self.axes(axes)?;
        let span = flat.item.span;
        let mut item = Reduce { scope, axes, each_microbatch: None, format: None, bucket: Bucket::Layer, span };
        for (name, (e, at)) in block.map(fields_of).unwrap_or_default() {
            match (name.as_str(), word(e)) {
                ("at", Some("microbatch")) => item.each_microbatch = Some(true),
                ("at", Some("last_microbatch")) => item.each_microbatch = Some(false),
                ("at", _) => return self.one_of("`at`", "`microbatch` or `last_microbatch`", e),
                ("bucket", _) => item.bucket = self.bucket(flat, e)?,
                ("dtype", _) => item.format = Some(self.format(flat, e)?),
                ("every" | "delay", _) => {
                    let usual = i128::from(name == "every");
                    if self.steps(flat, &format!("`{name}`"), e)? != usual {
                        self.later(&format!("`{name}` of a `reduce`"), at);
                    }
                }
                ("outer", Some("none")) => {}
                _ => self.later(&format!("`{name}` of a `reduce`"), at),
            }
        }
        self.layout.reduces.push(item);
        Some(())
    }

    /// A number of steps.
    fn steps(&mut self, flat: &Flat<'p>, what: &str, e: &'p Expr) -> Option<i128> {
        let wanted = Wanted::Quantity(Unit::base(Base::Step));
        let value = self.eval.eval(e, &flat.env, &wanted);
        match self.eval.require(value, &wanted, what, e.span) {
            Value::Num(q) => {
                let id = self.eval.node(q.num);
                Some(i128::from(self.at_point(id)))
            }
            _ => None,
        }
    }

    pub(super) fn update(&mut self, flat: &Flat<'p>, block: &'p Block) -> Option<()> {
        let span = if self.library { self.used_at } else { flat.item.span };
        let mut update = Update { on_host: false, flops: None, delay: 0, span };
        for (name, (e, at)) in fields_of(block) {
            match name.as_str() {
                "on" => match word(e) {
                    Some("host") => update.on_host = true,
                    Some("device") => {}
                    _ => return self.one_of("`on`", "`device` or `host`", e),
                },
                "flops" => {
                    let wanted = Wanted::Quantity(Unit::flop_rate());
                    let value = self.eval.eval(e, &flat.env, &wanted);
                    update.flops = self.eval.require(value, &wanted, "`flops`", e.span).as_f64();
                }
                "delay" => {
                    update.delay = i64::try_from(self.steps(flat, "`delay`", e)?).unwrap_or(i64::MAX);
                }
                _ => {
                    let known: Vec<_> = ["on", "flops", "delay"].iter().map(ToString::to_string).collect();
                    self.eval.sink.error(crate::eval::errors::unknown_field(&name, at, "`update`", &known));
                    return None;
                }
            }
        }
        self.layout.update = Some(update);
        Some(())
    }
}
