//! Everything in a layout but its mesh.

use super::super::cluster::Cluster;
use super::super::errors;
use super::super::flatten::Flat;
use super::{Builder, PipelineItem, Split};
use crate::eval::{Env, Instance, Value, Wanted, fields_of};
use crate::layout::{
    Action, AttentionMethod, AttentionVia, AxisId, Class, Comm, Hold, Overlap, Pad, Place, Recompute, RecomputeWhat,
    Reduce, Rule, Store,
};
use crate::source::Span;
use crate::syntax::ast::{self, Arg, AxisRef, Block, Expr, ExprKind, ItemKind, Name, SelectorPart};
use smol_str::SmolStr;
use std::rc::Rc;

const CLASSES: &[(&str, Class)] = &[
    ("param", Class::Param),
    ("grad", Class::Grad),
    ("state", Class::State),
    ("master", Class::Master),
    ("act", Class::Act),
    ("kv", Class::Kv),
];

const COMMS: &[(&str, Option<Comm>)] = &[
    ("gather", Some(Comm::Gather)),
    ("reduce", Some(Comm::Reduce)),
    ("p2p", Some(Comm::P2p)),
    ("reshard", Some(Comm::Reshard)),
    // Nothing of these kinds exists in a dense model whose state stays on the device.
    ("dispatch", None),
    ("combine", None),
    ("fetch", None),
    ("evict", None),
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
                self.unsupported(&format!("`{what}` for part of the model"), span);
                ok = false;
                continue;
            }
            let done = match &flat.item.kind {
                ItemKind::Mesh(_) | ItemKind::Axis { .. } | ItemKind::Let(_) => Some(()),
                ItemKind::Shard { dims, classes, axes, otherwise, block } => {
                    self.shard(flat, dims, classes, axes, otherwise, block.as_ref())
                }
                ItemKind::Replicate { classes, axes } => self.replicate(flat, classes, axes),
                ItemKind::Store { classes, axes, on, as_dtype, block } => {
                    if let Some(e) = on.as_ref().filter(|e| !is_word(e, "device")) {
                        self.unsupported("storing off the device", e.span)
                    } else if let Some(e) = as_dtype {
                        self.unsupported("storing in another number format", e.span)
                    } else {
                        self.store(flat, classes, axes, block.as_ref())
                    }
                }
                ItemKind::Reduce { classes, axes, block } => self.reduce(flat, classes, axes, block.as_ref()),
                ItemKind::Pad { dim, to } => self.whole(to, &flat.env, "`pad`").map(|to| {
                    self.layout.pads.push(Pad { dim: dim.text.to_string(), to, span });
                }),
                ItemKind::Recompute(e) => self.recompute(flat, e),
                ItemKind::Place { axes, on } => self.axes(axes).and_then(|axes| {
                    let level = self.level(on, cluster)?;
                    self.layout.places.push(Place { axes, level, span });
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
                ItemKind::Section { head, .. } if head.text == "update" => self.unsupported("`update`", span),
                ItemKind::Fold { .. } | ItemKind::Part { .. } | ItemKind::Error => None,
                _ => {
                    self.eval.sink.error(errors::misplaced("a layout", span));
                    None
                }
            };
            ok &= done.is_some();
        }
        if let Some(span) = self.unlike_param_stores() {
            self.unsupported("parameters stored in different ways in different regions", span);
            ok = false;
        }
        let pipeline = match pipeline {
            None => None,
            Some((axes, fields, flat)) => Some(self.pipeline(&axes, &fields, flat)?),
        };
        ok.then_some(pipeline)
    }

    /// A `store param` whose `hold` or `prefetch` differs from another's.
    fn unlike_param_stores(&self) -> Option<Span> {
        let mut params = self.layout.stores.iter().filter(|s| s.class == Class::Param);
        let first = params.next()?;
        params.find(|s| s.hold != first.hold || s.prefetch != first.prefetch).map(|s| s.span)
    }

    fn unsupported(&mut self, what: &str, span: Span) -> Option<()> {
        self.eval.sink.error(errors::not_supported(what, span));
        None
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
    fn rule_axes(&mut self, flat: &Flat<'p>, axes: &[AxisRef]) -> Option<Vec<AxisId>> {
        let kept: Vec<_> =
            axes.iter().filter(|a| !flat.without.iter().any(|w| w.name.text == a.name.text)).cloned().collect();
        self.axes(&kept)
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
        if let Some(item) = block.and_then(|b| b.items.first()) {
            return self.unsupported("unequal shares, copies and balanced placement of a `shard`", item.span);
        }
        let scope = self.scope(flat)?;
        if let Some(name) = classes.iter().find(|n| !matches!(n.text.as_str(), "param" | "act"))
            && CLASSES.iter().any(|(known, _)| *known == name.text)
        {
            return self.unsupported(&format!("sharding `{}` apart from the parameters", name.text), name.span);
        }
        let classes = self.classes(classes, &[Class::Param, Class::Act, Class::Kv])?;
        let axes = self.rule_axes(flat, axes)?;
        let text = |names: &[Name]| names.iter().map(|n| n.text.to_string()).collect();
        let action = Action::Shard { dims: text(dims), classes, otherwise: text(otherwise) };
        self.layout.rules.push(Rule { scope, axes, action, span: flat.item.span });
        Some(())
    }

    fn replicate(&mut self, flat: &Flat<'p>, classes: &[Name], axes: &[AxisRef]) -> Option<()> {
        let scope = self.scope(flat)?;
        let classes = self.classes(classes, &[Class::Param, Class::Act, Class::Kv])?;
        let axes = self.rule_axes(flat, axes)?;
        self.layout.rules.push(Rule { scope, axes, action: Action::Replicate { classes }, span: flat.item.span });
        Some(())
    }

    fn store(&mut self, flat: &Flat<'p>, names: &[Name], axes: &[AxisRef], block: Option<&'p Block>) -> Option<()> {
        let scope = self.scope(flat)?;
        let classes = self.classes(names, &[])?;
        let axes = self.axes(axes)?;
        let (mut hold, mut keep_gathered, mut prefetch) = (Hold::Layer, false, 1);
        for (name, (e, at)) in block.map(fields_of).unwrap_or_default() {
            match name.as_str() {
                "hold" => {
                    hold = match word(e) {
                        Some("layer") => Hold::Layer,
                        Some("microbatch") => Hold::Microbatch,
                        Some("step") => Hold::Step,
                        _ => return self.one_of("`hold`", "`layer`, `microbatch` or `step`", e),
                    }
                }
                "keep" if word(e) == Some("gathered") => keep_gathered = true,
                "keep" => return self.one_of("`keep`", "`gathered`", e),
                "prefetch" => match self.setting("prefetch", e, &flat.env).as_int() {
                    Some(n) if (0..=1 << 20).contains(&n) => prefetch = n as i64,
                    _ => return self.one_of("`prefetch`", "a whole number of buckets", e),
                },
                // The bucket is a layer wherever one is needed; a finer one changes latency only.
                "bucket" if matches!(word(e), Some("layer")) => {}
                "bucket" | "resident" | "along" | "cache" | "skew" | "lookahead" => {
                    return self.unsupported(&format!("`{name}` of a `store`"), at);
                }
                _ => {
                    let known =
                        ["bucket", "hold", "prefetch", "resident", "along", "keep", "cache", "skew", "lookahead"];
                    let known: Vec<_> = known.iter().map(ToString::to_string).collect();
                    self.eval.sink.error(crate::eval::errors::unknown_field(&name, at, "`store`", &known));
                    return None;
                }
            }
        }
        for (class, name) in classes.iter().copied().zip(names) {
            let ignored = match class {
                Class::Act => !keep_gathered,
                Class::Master | Class::Kv => true,
                Class::Param | Class::Grad | Class::State => false,
            };
            if ignored {
                return self.unsupported(&format!("storing `{}` apart", class.name()), name.span);
            }
            let axes = axes.clone();
            let scope = scope.clone();
            self.layout.stores.push(Store { scope, class, axes, hold, keep_gathered, prefetch, span: flat.item.span });
        }
        Some(())
    }

    fn one_of(&mut self, what: &str, wanted: &str, e: &Expr) -> Option<()> {
        self.eval.sink.error(errors::wrong_value(what, wanted, "something else", e.span));
        None
    }

    fn reduce(&mut self, flat: &Flat<'p>, names: &[Name], axes: &[AxisRef], block: Option<&'p Block>) -> Option<()> {
        if let Some(name) = names.iter().find(|n| n.text != "grad") {
            return self.unsupported("reducing anything but gradients", name.span);
        }
        let axes = self.axes(axes)?;
        let mut each_microbatch = None;
        for (name, (e, at)) in block.map(fields_of).unwrap_or_default() {
            match (name.as_str(), word(e)) {
                ("at", Some("microbatch")) => each_microbatch = Some(true),
                ("at", Some("last_microbatch")) => each_microbatch = Some(false),
                ("bucket", Some("model" | "layer")) => {}
                _ => return self.unsupported(&format!("`{name}` of a `reduce`"), at),
            }
        }
        self.layout.reduces.push(Reduce { axes, each_microbatch, span: flat.item.span });
        Some(())
    }

    /// The value of a field in an item's block, a choice settled.
    fn setting(&mut self, name: &str, e: &'p Expr, env: &Rc<Env<'p>>) -> Value<'p> {
        let value = self.eval.eval(e, env, &Wanted::Any);
        self.eval.settled(name, value)
    }

    fn recompute(&mut self, flat: &Flat<'p>, e: &'p Expr) -> Option<()> {
        let what = match &e.kind {
            ExprKind::List(list) => {
                let names = list.iter().map(|x| word(x).map(ToString::to_string)).collect::<Option<Vec<_>>>();
                match names {
                    Some(names) => RecomputeWhat::Values(names),
                    None => return self.one_of("`recompute`", "a list of value names", e),
                }
            }
            ExprKind::Hole => {
                self.eval.sink.error(errors::not_supported("choosing what to recompute", e.span));
                return None;
            }
            _ => match word(e) {
                Some("none") => RecomputeWhat::None,
                Some("all") => RecomputeWhat::All,
                _ => return self.unsupported("this form of `recompute`", e.span),
            },
        };
        let scope = self.scope(flat)?;
        self.layout.recompute.push(Recompute { scope, what, span: flat.item.span });
        Some(())
    }

    fn overlap(
        &mut self,
        flat: &Flat<'p>,
        comms: &[Name],
        axes: &[AxisRef],
        with: &[ast::Selector],
        block: Option<&'p Block>,
    ) -> Option<()> {
        let axes = self.axes(axes)?;
        let (mut forward, mut backward) = (false, false);
        for s in with {
            match &s.parts[..] {
                [SelectorPart::Name(n, None)] if n.text == "forward" => forward = true,
                [SelectorPart::Name(n, None)] if n.text == "backward" => backward = true,
                [SelectorPart::Name(n, None)] if n.text == "step" => (forward, backward) = (true, true),
                _ => return self.unsupported("overlapping with a region", s.span),
            }
        }
        let mut limit = 1.0;
        for (name, (e, at)) in block.map(fields_of).unwrap_or_default() {
            match (name.as_str(), self.setting(&name, e, &flat.env).as_f64()) {
                ("limit", Some(x)) if (0.0..=1.0).contains(&x) => limit = x,
                ("limit", _) => return self.one_of("`limit`", "a share from 0% to 100%", e),
                _ => return self.unsupported(&format!("`{name}` of an `overlap`"), at),
            }
        }
        for name in comms {
            let list: Vec<Comm> = if name.text == "all" {
                COMMS.iter().filter_map(|(_, c)| *c).collect()
            } else {
                match COMMS.iter().find(|(n, _)| *n == name.text) {
                    Some((_, c)) => c.iter().copied().collect(),
                    None => {
                        let known: Vec<_> = COMMS.iter().map(|(n, _)| *n).collect();
                        self.eval.sink.error(errors::unknown_class(name, &known));
                        return None;
                    }
                }
            };
            for comm in list {
                if comm == Comm::Reshard {
                    return self.unsupported("hiding the reshards of activations", name.span);
                }
                if comm == Comm::P2p && !(forward && backward && limit >= 1.0) {
                    return self
                        .unsupported("hiding messages between stages in one direction or in part", flat.item.span);
                }
                let axes = axes.clone();
                self.layout.overlaps.push(Overlap { comm, axes, forward, backward, limit, span: flat.item.span });
            }
        }
        Some(())
    }

    fn via(&mut self, op: &Name, axes: &[AxisRef], method: &Expr, flat: &Flat<'p>) -> Option<()> {
        if op.text != "attention" {
            return self.unsupported("choosing an algorithm for a collective", op.span);
        }
        let axes = self.axes(axes)?;
        let (name, args) = match &method.kind {
            ExprKind::Call(f, args) => (word(f), args.as_slice()),
            _ => (word(method), &[][..]),
        };
        let method_of = match name {
            Some("ring") => AttentionMethod::Ring,
            Some("all_gather") => AttentionMethod::AllGather,
            Some("all_to_all") => AttentionMethod::AllToAll,
            _ => return self.one_of("a method of attention", "`ring`, `all_gather` or `all_to_all`", method),
        };
        let mut zigzag = false;
        for arg in args {
            match arg {
                Arg::Positional(e) if word(e) == Some("zigzag") => zigzag = true,
                // The last rank of a causal ring would do nearly all of its pairs, the first almost none.
                Arg::Positional(e) if word(e) == Some("contiguous") && method_of == AttentionMethod::Ring => {
                    return self.unsupported("a ring of unequal work (`contiguous`)", e.span);
                }
                Arg::Positional(e) if word(e) == Some("contiguous") => {}
                _ => return self.one_of("the order of a method", "`zigzag` or `contiguous`", method),
            }
        }
        self.layout.attention.push(AttentionVia { axes, method: method_of, zigzag, span: flat.item.span });
        Some(())
    }

    fn pipeline(&mut self, axes: &[AxisRef], fields: &Fields<'p>, flat: &Flat<'p>) -> Option<PipelineItem<'p>> {
        let list = self.axes(axes)?;
        let [axis] = list[..] else {
            self.eval.sink.error(errors::not_supported("a pipeline over several axes", flat.item.span));
            return None;
        };
        let span = flat.item.span;
        let (mut split, mut split_span) = (Split::Balanced(Vec::new()), span);
        let (mut schedule, mut schedule_span) = (None, span);
        let (mut scatter_gather, mut in_turns) = (Vec::new(), false);
        for (name, (e, at)) in fields {
            match name.as_str() {
                "schedule" => {
                    schedule_span = self.given_at(e);
                    schedule = Some(self.schedule(e, &flat.env)?);
                }
                "split" => {
                    split_span = e.span;
                    split = self.split(e, &flat.env)?;
                }
                "p2p" => match &e.kind {
                    ExprKind::Path(_) if word(e) == Some("direct") => {}
                    ExprKind::Call(f, args) if matches!(word(f), Some("scatter_gather" | "temporal_sharing")) => {
                        in_turns = word(f) == Some("temporal_sharing");
                        for arg in args {
                            if let Arg::Positional(Expr { kind: ExprKind::Path(p), .. }) = arg
                                && let [name] = &p[..]
                            {
                                scatter_gather.extend(self.axes(&[AxisRef { part: None, name: name.clone() }])?);
                            }
                        }
                    }
                    _ => {
                        self.unsupported("this way of sending between stages", e.span)?;
                    }
                },
                "inner" if matches!(e.kind, ExprKind::Bool(false)) => {}
                "inner" => {
                    self.unsupported("pipelines over inner repeats", e.span)?;
                }
                _ => {
                    let known: Vec<_> = ["schedule", "split", "p2p", "inner"].iter().map(ToString::to_string).collect();
                    self.eval.sink.error(crate::eval::errors::unknown_field(name, *at, "`pipeline`", &known));
                    return None;
                }
            }
        }
        let schedule = match schedule {
            Some(s) => s,
            None => self.default_schedule(span)?,
        };
        self.layout.pipeline = Some(axis);
        Some(PipelineItem { axis, schedule, split, scatter_gather, in_turns, split_span, schedule_span, span })
    }

    /// Where a value is given: the argument, where `e` is only the name of the layout's parameter; else `e`. In a layout
    /// of the library that nobody gave an argument, the use of the layout.
    fn given_at(&self, e: &Expr) -> Span {
        let argument = match &e.kind {
            ExprKind::Path(p) if p.len() == 1 => self.given.get(&p[0].text).copied(),
            _ => None,
        };
        argument.or_else(|| self.library.then_some(self.used_at)).unwrap_or(e.span)
    }

    fn default_schedule(&mut self, span: Span) -> Option<Rc<Instance<'p>>> {
        let id = self.eval.program.std_entry("one_f_one_b")?;
        match self.eval.entry(id, span) {
            Value::Instance(i) => Some(i),
            _ => None,
        }
    }

    /// A schedule value. Arguments over layout parameters are taken at the point: they shape its order.
    fn schedule(&mut self, e: &'p Expr, env: &Rc<Env<'p>>) -> Option<Rc<Instance<'p>>> {
        let value = match self.eval.eval(e, env, &Wanted::Any) {
            Value::Hole(hole) => self.eval.choose("schedule", &hole, None),
            v => v,
        };
        match value {
            Value::Instance(i) if i.decl.kind == ast::Kind::Schedule => {
                let mut at_point = (*i).clone();
                for (name, (value, _)) in &mut at_point.args {
                    if let Value::Hole(hole) = value {
                        let hole = Rc::clone(hole);
                        *value = self.eval.choose(name, &hole, None);
                    }
                    *value = self.eval.known(value.clone());
                }
                at_point.span = e.span;
                Some(Rc::new(at_point))
            }
            Value::Error(_) => None,
            other => {
                let noun = other.noun();
                self.eval.sink.error(errors::wrong_value("`schedule`", "a schedule", &noun, e.span));
                None
            }
        }
    }

    fn split(&mut self, e: &'p Expr, env: &Rc<Env<'p>>) -> Option<Split> {
        let (name, args) = match &e.kind {
            ExprKind::Call(f, args) => (word(f), args.as_slice()),
            ExprKind::Path(_) => (word(e), &[][..]),
            _ => (None, &[][..]),
        };
        match name {
            Some("even") => Some(Split::Even(self.counting(args, e)?)),
            Some("balanced") => Some(Split::Balanced(self.counting(args, e)?)),
            _ => match self.eval.eval(e, env, &Wanted::Any) {
                Value::List(l) => {
                    let counts: Option<Vec<u32>> = l
                        .iter()
                        .map(|v| self.eval.known(v.clone()).as_int().and_then(|n| u32::try_from(n).ok()))
                        .collect();
                    if counts.is_none() {
                        self.one_of("`split`", "a list of whole numbers", e);
                    }
                    counts.map(Split::Listed)
                }
                Value::Error(_) => None,
                other => {
                    let noun = other.noun();
                    self.eval.sink.error(errors::wrong_value("`split`", "`even`, `balanced` or a list", &noun, e.span));
                    None
                }
            },
        }
    }

    /// `counting = [embed, head]`: names of regions.
    fn counting(&mut self, args: &'p [Arg], e: &Expr) -> Option<Vec<String>> {
        let mut out = Vec::new();
        for arg in args {
            match arg {
                Arg::Named(n, Expr { kind: ExprKind::List(list), .. }) if n.text == "counting" => {
                    for x in list {
                        match word(x) {
                            Some(w) => out.push(w.to_string()),
                            None => {
                                self.one_of("`counting`", "names of regions", x)?;
                            }
                        }
                    }
                }
                Arg::Named(n, x) if n.text == "by" && word(x) == Some("time") => {}
                _ => {
                    self.one_of("a split", "`counting = […]`", e)?;
                }
            }
        }
        Some(out)
    }
}

/// The keyword of an item that speaks of the whole layout here, though the language lets it stand in an `in`.
fn whole_layout_only(item: &ItemKind) -> Option<&'static str> {
    Some(match item {
        ItemKind::Overlap { .. } => "overlap",
        ItemKind::Reduce { .. } => "reduce",
        ItemKind::Pad { .. } => "pad",
        ItemKind::Via { .. } => "via",
        ItemKind::Place { .. } => "place",
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
