//! Mixture of experts: choices, dispatch to slots, and back.

use super::super::errors;
use super::super::model::Builder;
use super::arguments::Arguments;
use super::{add, ordered, tensor};
use crate::eval::{Value, Wanted};
use crate::expr::Node;
use crate::graph::{Dim, DimId, Law, OpKind, Route, Slots, ValueId};
use crate::syntax::ast::{Expr, ExprKind};
use std::rc::Rc;

/// The dimension of a token's choices; no declared name is two words.
const CHOICES: &str = "choices of a token";

/// Whether a statement's right side makes a dimension that its target names.
pub(in crate::elaborate) fn makes_dimension(e: &Expr) -> bool {
    matches!(&e.kind, ExprKind::Call(f, _) if matches!(&f.kind, ExprKind::Path(p) if p.len() == 1 && p[0].text == "dispatch"))
}

/// `select_experts(g, over = E, k = 2, groups = 1, keep = 0)`
pub(super) fn select<'p>(
    b: &mut Builder<'p, '_, '_>,
    args: &Arguments<'p>,
    target: Option<&[DimId]>,
) -> Option<ValueId> {
    args.shape(b, 1..=1, Some(&["over", "k", "groups", "keep"]))?;
    let g = tensor(b, args.positional[0], None)?;
    let experts = args.dim(b, "over")?;
    let k = args.whole(b, "k", 1)?;
    let groups = args.whole(b, "groups", 1)?;
    let kept = args.whole(b, "keep", 0)?;
    let dims = b.ops.value(g).dims.clone();
    if !dims.contains(&experts) {
        args.wants(b, "scores that have the dimension of the experts");
        return None;
    }
    if let Some(n) = b.eval.graph.as_int(b.ops.dim(experts).true_extent)
        && (k < 1 || k > n || groups < 1 || n % groups != 0)
    {
        args.wants(b, &format!("`k` from 1 to the {n} experts, and `groups` that divide them"));
        return None;
    }
    let extent = b.eval.graph.int(k);
    let choices = b.ops.add_dim(Dim::plain(CHOICES, extent, args.span));
    let mut out: Vec<_> = dims.into_iter().filter(|d| *d != experts).collect();
    out.push(choices);
    Some(add(b, OpKind::Select { experts, choices, groups, kept }, &[g], ordered(out, target), args.span))
}

/// The dimensions of a choice: what made it.
fn chosen(b: &Builder<'_, '_, '_>, route: ValueId) -> Option<(DimId, DimId)> {
    let op = b.ops.producer(route)?;
    match b.ops.flow[op].kind {
        OpKind::Select { experts, choices, .. } => Some((experts, choices)),
        _ => None,
    }
}

/// `t[E, T, H] = dispatch(h, route, skew, tile)`: T slots an expert, as many as it gets on average.
pub(super) fn dispatch<'p>(b: &mut Builder<'p, '_, '_>, args: &Arguments<'p>) -> Option<ValueId> {
    args.shape(b, 2..=2, Some(&["skew", "tile"]))?;
    let (h, route) = (tensor(b, args.positional[0], None)?, tensor(b, args.positional[1], None)?);
    let Some((experts, choices)) = chosen(b, route) else {
        args.wants(b, "tokens, and what `select_experts` gave");
        return None;
    };
    let route_dims = b.ops.value(route).dims.clone();
    let tokens: Vec<_> = route_dims.into_iter().filter(|d| *d != choices).collect();
    let dims = b.ops.value(h).dims.clone();
    if !tokens.iter().all(|d| dims.contains(d)) {
        args.wants(b, "tokens that have the dimensions of their choices");
        return None;
    }
    let skew = match args.get("skew") {
        Some(e) => law(b, e)?,
        None => Law::Point(1.0),
    };
    let tile = args.whole(b, "tile", 1)?.max(1);
    let names = std::mem::take(&mut b.announced);
    let fresh: Vec<_> = names.iter().filter(|n| !b.scope.dims.contains_key(&n.text)).collect();
    let known =
        names.iter().filter_map(|n| b.scope.dims.get(&n.text)).find(|d| b.ops.dim(**d).slots.is_some()).copied();
    let slots = match (&fresh[..], known) {
        ([name], _) => {
            // Tokens times choices over experts, the last one's slots perhaps not full.
            let mut all: Vec<_> = tokens.iter().map(|d| b.ops.dim(*d).extent).collect();
            all.push(b.ops.dim(choices).extent);
            let all = b.eval.graph.product(all);
            let each = b.eval.graph.put(Node::CeilDiv(all, b.ops.dim(experts).true_extent));
            let slots = Some(Slots { experts, skew, tile });
            let dim = Dim { slots, ..Dim::plain(name.text.as_str(), each, name.span) };
            b.declare(&name.text, dim)
        }
        ([], Some(known)) => known,
        _ => {
            args.wants(b, "a target that names its slots: `t[E, T, H] = dispatch(…)`");
            return None;
        }
    };
    let mut out = vec![experts, slots];
    out.extend(dims.into_iter().filter(|d| !tokens.contains(d)));
    Some(add(b, OpKind::Dispatch(Route { experts, slots, choices }), &[h, route], out, args.span))
}

/// `combine(u, route)`: the adjoint of the dispatch.
pub(super) fn combine<'p>(
    b: &mut Builder<'p, '_, '_>,
    args: &Arguments<'p>,
    target: Option<&[DimId]>,
) -> Option<ValueId> {
    args.shape(b, 2..=2, Some(&[]))?;
    let (u, route) = (tensor(b, args.positional[0], None)?, tensor(b, args.positional[1], None)?);
    let dims = b.ops.value(u).dims.clone();
    let slots = dims.iter().copied().find(|d| b.ops.dim(*d).slots.is_some());
    let (Some((experts, choices)), Some(slots)) = (chosen(b, route), slots) else {
        args.wants(b, "slots of experts, and what `select_experts` gave");
        return None;
    };
    if !dims.contains(&experts) {
        args.wants(b, "slots of the experts that were chosen");
        return None;
    }
    let mut out: Vec<_> = b.ops.value(route).dims.iter().copied().filter(|d| *d != choices).collect();
    out.extend(dims.into_iter().filter(|d| *d != experts && *d != slots));
    let kind = OpKind::Combine(Route { experts, slots, choices });
    Some(add(b, kind, &[u, route], ordered(out, target), args.span))
}

/// A law of the load of an expert over the mean load.
fn law<'p>(b: &mut Builder<'p, '_, '_>, e: &'p Expr) -> Option<Law> {
    let env = Rc::clone(&b.scope.env);
    let value = b.eval.eval(e, &env, &Wanted::Any);
    if let Value::Error(_) = value {
        return None;
    }
    if let Some(x) = value.as_f64().filter(|x| *x > 0.0) {
        return Some(Law::Point(x));
    }
    let found = if let Value::Word(w) = &value {
        let at = |name: &str, i: usize| {
            let named = w.args.iter().find(|(n, _)| n.as_ref().is_some_and(|n| n == name));
            let found = named.or_else(|| w.args.get(i).filter(|(n, _)| n.is_none()));
            found.and_then(|(_, v)| v.as_f64())
        };
        match w.name.as_str() {
            "point" => at("x", 0).map(Law::Point),
            "uniform" => at("from", 0).zip(at("to", 1)).map(|(from, to)| Law::Uniform { from, to }),
            "normal" => at("mean", 0).zip(at("sd", 1)).map(|(mean, sd)| Law::Normal { mean, sd }),
            "lognormal" => at("sigma", 1).and_then(|sigma| {
                // The mean of a lognormal is its median times exp(sigma² / 2).
                let mean = at("mean", 0).or_else(|| at("median", usize::MAX).map(|m| Law::mean_of(m, sigma)));
                mean.map(|mean| Law::Lognormal { mean, sigma })
            }),
            "zipf" => at("s", 0).map(|s| Law::Zipf { s }),
            _ => None,
        }
    } else {
        None
    };
    match found.filter(Law::is_sound) {
        Some(law) => Some(law),
        None => {
            let wants = "a law of the load of an expert over the mean load: `point(1.0)`, `lognormal(mean = 1.0, sigma = 0.1)`, `zipf(s = 0.4)`";
            b.eval.sink.error(errors::operator_use("skew", wants, e.span));
            None
        }
    }
}
