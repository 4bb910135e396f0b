//! Fused attention: which dimensions are positions, heads and widths.

use super::super::errors;
use super::super::model::Builder;
use super::arguments::Arguments;
use super::{add, ordered, tensor};
use crate::eval::{Value, Wanted};
use crate::expr;
use crate::graph::{Attention, DataDim, DimId, OpKind, ValueId};
use crate::syntax::ast::{Expr, ExprKind};
use std::rc::Rc;

const WANTS: &str = "q[B, S, N, D], k[B, S, K, D] and v[B, S, K, D]: a batch, a sequence, heads and a width each";

/// Positions, heads and width of one operand.
#[derive(Copy, Clone)]
struct Parts {
    positions: DimId,
    heads: DimId,
    width: DimId,
}

/// `attention(q, k, v, causal, cache = [k, v], window = none, sinks = s)`
pub(super) fn attention<'p>(
    b: &mut Builder<'p, '_, '_>,
    args: &Arguments<'p>,
    target: Option<&[DimId]>,
) -> Option<ValueId> {
    args.shape(b, 3..=3, Some(&["causal", "cache", "window", "sinks"]))?;
    let mut x = Vec::new();
    for e in &args.positional {
        x.push(tensor(b, e, None)?);
    }
    let causal = args.truth(b, "causal", false)?;
    let window = match args.get("window") {
        Some(e) => window(b, e)?,
        None => None,
    };
    let cache = match args.get("cache") {
        Some(e) => cached(b, e)?,
        None => x[1..].to_vec(),
    };
    let at = b.at(args.span);
    let (Some(q), Some(k), Some(v)) = (parts(b, x[0]), parts(b, x[1]), parts(b, x[2])) else {
        args.wants(b, WANTS);
        return None;
    };
    let extent = |d: DimId| b.eval.graph.as_int(b.ops.dim(d).true_extent);
    // Without `for N` the heads are grouped all the same where they divide; but then none lies on several ranks.
    let divides = matches!((extent(k.heads), extent(q.heads)), (Some(k), Some(n)) if k > 0 && n % k == 0);
    let grouped = k.heads == q.heads || b.ops.dim(k.heads).groups == Some(q.heads) || divides;
    if !grouped && k.heads == v.heads && q.width == k.width {
        let (of, keys) = (b.ops.dim(q.heads).clone(), b.ops.dim(k.heads).clone());
        let written = |d: &crate::graph::Dim| b.eval.graph.as_int(d.true_extent);
        let numbers = (written(&keys), written(&of));
        b.eval.sink.error(errors::heads_ungrouped(&keys.name, &of.name, numbers, keys.span, at));
        return None;
    }
    if k.positions != v.positions || k.heads != v.heads || q.width != k.width || !grouped {
        args.wants(b, WANTS);
        return None;
    }
    if causal && q.positions != k.positions {
        args.wants(b, "queries and keys of the same positions where it is causal");
        return None;
    }
    // A weight for each head that no key takes: sinks.
    if let Some(e) = args.get("sinks") {
        let sinks = tensor(b, e, None)?;
        if b.ops.value(sinks).dims != [q.heads] {
            args.wants(b, "`sinks` of the dimension of its query heads");
            return None;
        }
        x.push(sinks);
    }
    let kind = Attention {
        causal,
        window,
        sequence: q.positions,
        keys: k.positions,
        heads: q.heads,
        kv_heads: k.heads,
        head_dim: q.width,
        value_dim: v.width,
        cache,
    };
    let dims = b.ops.value(x[0]).dims.iter().map(|d| if *d == q.width { v.width } else { *d });
    let dims = ordered(dims.collect(), target);
    Some(add(b, OpKind::Attention(kind), &x, dims, args.span))
}

/// The innermost dimension of tokens is the positions; the two that are no data are heads and width.
fn parts(b: &Builder<'_, '_, '_>, id: ValueId) -> Option<Parts> {
    let dims = &b.ops.value(id).dims;
    let positions = *dims.iter().rev().find(|d| b.ops.dim(**d).data == Some(DataDim::Sequence))?;
    let rest: Vec<_> = dims.iter().filter(|d| b.ops.dim(**d).data.is_none() && !b.rides(**d)).collect();
    if let [heads, width] = rest[..] { Some(Parts { positions, heads: *heads, width: *width }) } else { None }
}

/// `window = none`, a number of tokens, or an expression of either.
#[expect(clippy::option_option, reason = "the outer level says whether something was reported")]
fn window<'p>(b: &mut Builder<'p, '_, '_>, e: &'p Expr) -> Option<Option<expr::Id>> {
    let env = Rc::clone(&b.scope.env);
    match b.eval.eval(e, &env, &Wanted::Any) {
        Value::Word(w) if w.name == "none" => Some(None),
        Value::Num(q) if q.unit.is_none() || q.unit == crate::units::Unit::base(crate::units::Base::Tok) => {
            let node = b.eval.node(q.num);
            if b.eval.graph.kind(node) == expr::Kind::Int && b.eval.graph.as_int(node).is_none_or(|n| n > 0) {
                return Some(Some(node));
            }
            b.eval.sink.error(errors::operator_use("window", "`none` or a whole number of tokens above 0", e.span));
            None
        }
        Value::Error(_) => None,
        _ => {
            b.eval.sink.error(errors::operator_use("window", "`none` or a number of tokens", e.span));
            None
        }
    }
}

/// `cache = [ck, kr]`: tensors made before.
fn cached<'p>(b: &mut Builder<'p, '_, '_>, e: &'p Expr) -> Option<Vec<ValueId>> {
    let list = match &e.kind {
        ExprKind::List(list) => list.as_slice(),
        _ => std::slice::from_ref(e),
    };
    let mut out = Vec::new();
    for e in list {
        let Some(name) = super::arguments::plain_name(e) else {
            b.eval.sink.error(errors::operator_use("cache", "names of tensors", e.span));
            return None;
        };
        out.push(super::variable(b, name)?);
    }
    Some(out)
}
