//! `recompute`, `overlap` and `OP over AXES via METHOD`.

use super::super::{Builder, Named, selector};
use super::{COMMS, is_word, word};
use crate::elaborate::errors;
use crate::elaborate::flatten::Flat;
use crate::eval::{Env, fields_of};
use crate::layout::{
    AttentionMethod, AttentionVia, AxisId, CollectiveVia, Comm, KeptKind, Overlap, Recompute, RecomputeWhat, Scope,
};
use crate::syntax::ast::{self, Arg, AxisRef, Block, Expr, ExprKind, Name, SelectorPart};
use std::rc::Rc;

impl<'p> Builder<'p, '_, '_, '_> {
    pub(super) fn recompute(&mut self, flat: &Flat<'p>, e: &'p Expr) -> Option<()> {
        let scope = self.scope(flat)?;
        let what = match &e.kind {
            ExprKind::List(list) => {
                let names = list.iter().map(|x| word(x).map(ToString::to_string)).collect::<Option<Vec<_>>>();
                let Some(names) = names else { return self.one_of("`recompute`", "a list of value names", e) };
                for (name, x) in names.iter().zip(list) {
                    self.named.push(Named { scope: scope.clone(), name: name.clone(), operation: false, span: x.span });
                }
                RecomputeWhat::Values(names)
            }
            ExprKind::Hole => RecomputeWhat::Chosen(Vec::new()),
            ExprKind::Call(f, args) if is_word(f, "ops") => {
                RecomputeWhat::Except(self.kept_kinds(flat, &scope, args, e)?)
            }
            ExprKind::Call(f, args) if is_word(f, "every") => match &args[..] {
                [Arg::Positional(n)] => RecomputeWhat::Every(self.count(&flat.env, n, e)?),
                _ => return self.one_of("`every`", "a number of iterations", e),
            },
            _ => match word(e) {
                Some("none") => RecomputeWhat::None,
                Some("all") => RecomputeWhat::All,
                _ => return self.one_of("`recompute`", FORMS, e),
            },
        };
        if matches!(what, RecomputeWhat::Every(n) if n > 1) {
            self.later("recomputing runs of several iterations", e.span);
        }
        self.layout.recompute.push(Recompute { scope, what, span: flat.item.span });
        Some(())
    }

    /// `keep = [matmul, attention.every(2)]`
    fn kept_kinds(&mut self, flat: &Flat<'p>, scope: &Scope, args: &'p [Arg], e: &Expr) -> Option<Vec<KeptKind>> {
        let kept = match args {
            [Arg::Named(name, e)] if name.text == "keep" => e.list(),
            _ => None,
        };
        let Some(list) = kept else {
            return self.one_of("`ops`", "`keep = […]`, a list of operators", e).and(None);
        };
        let mut out = Vec::new();
        for x in list {
            let (kind, every) = match &x.kind {
                ExprKind::Call(f, args) => match (&f.kind, &args[..]) {
                    (ExprKind::Field(base, name), [Arg::Positional(n)]) if name.text == "every" => {
                        (word(base), self.count(&flat.env, n, x)?)
                    }
                    _ => (None, 1),
                },
                _ => (word(x), 1),
            };
            match kind {
                Some(kind) => {
                    let name = kind.to_string();
                    self.named.push(Named { scope: scope.clone(), name, operation: true, span: x.span });
                    out.push(KeptKind { kind: kind.to_string(), every });
                }
                None => return self.one_of("`keep`", "operators such as `matmul` or `matmul.every(2)`", x).and(None),
            }
        }
        Some(out)
    }

    /// A whole number above 0, at the layout's point: it shapes the graph.
    fn count(&mut self, env: &Rc<Env<'p>>, n: &'p Expr, e: &Expr) -> Option<i64> {
        let id = self.whole(n, env, "`every`")?;
        match self.at_point(id) {
            n if n >= 1 => Some(n),
            _ => self.one_of("`every`", "a whole number above 0", e).and(None),
        }
    }

    pub(super) fn overlap(
        &mut self,
        flat: &Flat<'p>,
        comms: &[Name],
        axes: &[AxisRef],
        with: &'p [ast::Selector],
        block: Option<&'p Block>,
    ) -> Option<()> {
        let axes = self.axes(axes)?;
        let scope = self.scope(flat)?;
        let span = flat.item.span;
        let (mut forward, mut backward, mut regions) = (false, false, false);
        for s in with {
            match &s.parts[..] {
                [SelectorPart::Name(n, None)] if n.text == "forward" => forward = true,
                [SelectorPart::Name(n, None)] if n.text == "backward" => backward = true,
                [SelectorPart::Name(n, None)] if n.text == "step" => (forward, backward) = (true, true),
                _ => {
                    regions = true;
                    self.overlap_regions.push((selector(self.eval, s, &flat.env)?, s.span));
                    self.later("overlapping with a region", s.span);
                }
            }
        }
        let mut limit = 1.0;
        for (name, (e, at)) in block.map(fields_of).unwrap_or_default() {
            match (name.as_str(), self.setting(&name, e, &flat.env).as_f64()) {
                ("limit", Some(x)) if (0.0..=1.0).contains(&x) => limit = x,
                ("limit", _) => return self.one_of("`limit`", "a share from 0% to 100%", e),
                ("sms", Some(0.0)) => {}
                ("batches", Some(x)) if (x - 1.0).abs() < f64::EPSILON => {}
                ("sms" | "batches", Some(x)) if x >= 0.0 && x.fract() == 0.0 => {
                    self.later(&format!("`{name}` of an `overlap`"), at);
                }
                _ => return self.one_of(&format!("`{name}`"), "a whole number", e),
            }
        }
        for name in comms {
            let list: Vec<Comm> = if name.text == "all" {
                COMMS.iter().map(|(_, c)| *c).collect()
            } else {
                match COMMS.iter().find(|(n, _)| *n == name.text) {
                    Some((_, c)) => vec![*c],
                    None => {
                        let known: Vec<_> = COMMS.iter().map(|(n, _)| *n).collect();
                        self.eval.sink.error(errors::unknown_class(name, &known));
                        return None;
                    }
                }
            };
            for comm in list {
                let whole = forward && backward && limit >= 1.0;
                if comm == Comm::Reshard && !regions {
                    self.later("hiding the reshards of activations", name.span);
                } else if comm == Comm::P2p && !whole && !regions {
                    self.later("hiding messages between stages in one direction or in part", span);
                } else if !regions {
                    let (axes, scope) = (axes.clone(), scope.clone());
                    self.layout.overlaps.push(Overlap { scope, comm, axes, forward, backward, limit, span });
                }
            }
        }
        Some(())
    }

    pub(super) fn via(&mut self, op: &Name, axes: &[AxisRef], method: &'p Expr, flat: &Flat<'p>) -> Option<()> {
        let axes = self.axes(axes)?;
        let (name, args) = match &method.kind {
            ExprKind::Call(f, args) => (word(f), args.as_slice()),
            _ => (word(method), &[][..]),
        };
        if op.text != "attention" {
            return self.via_of_collective(op, axes, method, flat);
        }
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
                    self.later("a ring of unequal work (`contiguous`)", e.span);
                }
                Arg::Positional(e) if word(e) == Some("contiguous") => {}
                _ => return self.one_of("the order of a method", "`zigzag` or `contiguous`", method),
            }
        }
        let scope = self.scope(flat)?;
        self.layout.attention.push(AttentionVia { axes, scope, method: method_of, zigzag, span: flat.item.span });
        Some(())
    }

    /// `via ring`, `via all_to_all(hierarchical, …)`.
    fn via_of_collective(&mut self, op: &Name, axes: Vec<AxisId>, method: &'p Expr, flat: &Flat<'p>) -> Option<()> {
        let mut named = method;
        if let ExprKind::Call(f, args) = &method.kind
            && is_word(f, "all_to_all")
        {
            for arg in args {
                match arg {
                    Arg::Positional(e) => named = e,
                    Arg::Named(name, _) | Arg::Domain(name, _) => {
                        self.later(&format!("`{}` of an all-to-all", name.text), name.span);
                    }
                }
            }
        }
        let Some(name) = word(named).filter(|n| METHODS.contains(n)) else {
            let wanted = METHODS.map(|m| format!("`{m}`")).join(", ");
            return self.one_of("a method", &wanted, named);
        };
        if name == "all_gather" {
            self.later("dispatching by an all-gather", named.span);
        }
        let direct = ["auto", "all_to_all", "all_gather"].contains(&name);
        let via = CollectiveVia {
            of: op.text.to_string(),
            axes,
            scope: self.scope(flat)?,
            method: (!direct).then(|| name.to_string()),
            method_span: named.span,
        };
        self.layout.vias.push(via);
        Some(())
    }
}

/// What `recompute` may say.
const FORMS: &str = "`none`, `all`, names of values, `ops(keep = […])` or `every(n)`";

/// How a collective may be carried out; `all_to_all` with arguments of its own.
const METHODS: [&str; 9] =
    ["auto", "ring", "tree", "hierarchical", "in_network", "pairwise", "low_latency", "all_to_all", "all_gather"];
