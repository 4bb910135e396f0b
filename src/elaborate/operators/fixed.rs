//! Operators of one or two tensors: elementwise functions, norms, lookups, losses.

use super::super::errors;
use super::super::model::Builder;
use super::arguments::Arguments;
use super::{add, map, ordered, tensor};
use crate::graph::{DimId, MapFn, NormKind, OpKind, ValueId, ValueRole};

/// Base of the rotary frequencies where none is given (Su et al. 2021, arXiv 2104.09864).
const ROPE_BASE: f64 = 10_000.0;

pub(super) fn fixed<'p>(
    b: &mut Builder<'p, '_, '_>,
    args: &Arguments<'p>,
    target: Option<&[DimId]>,
) -> Option<ValueId> {
    match args.op {
        "rope" => {
            let base = args.real(b, "base", ROPE_BASE)?;
            if base <= 1.0 {
                args.wants(b, "a base above 1");
                return None;
            }
            function(b, args, &["base"], MapFn::Rope(base), target)
        }
        "silu" => function(b, args, &[], MapFn::Silu, target),
        "gelu" => function(b, args, &[], MapFn::Gelu, target),
        "relu" => function(b, args, &[], MapFn::Relu, target),
        "sigmoid" => function(b, args, &[], MapFn::Sigmoid, target),
        "tanh" => function(b, args, &[], MapFn::Tanh, target),
        "rms_norm" => norm(b, args, NormKind::Rms, target),
        "layer_norm" => norm(b, args, NormKind::Layer, target),
        "embed" | "embed_bag" => embed(b, args, target),
        "softmax" => {
            args.shape(b, 1..=1, Some(&["over"]))?;
            let x = tensor(b, args.positional[0], None)?;
            let over = args.dim(b, "over")?;
            let dims = b.ops.value(x).dims.clone();
            if !dims.contains(&over) {
                args.wants(b, "a tensor that has the dimension it goes over");
                return None;
            }
            Some(add(b, OpKind::Softmax { over }, &[x], dims, args.span))
        }
        _ => loss(b, args),
    }
}

/// An elementwise function of one tensor.
fn function<'p>(
    b: &mut Builder<'p, '_, '_>,
    args: &Arguments<'p>,
    names: &[&str],
    f: MapFn,
    target: Option<&[DimId]>,
) -> Option<ValueId> {
    args.shape(b, 1..=1, Some(names))?;
    let x = tensor(b, args.positional[0], target)?;
    Some(map(b, f, &[x], target, args.span))
}

/// x, then a gain and for layer norm a bias; without a gain, `over` says what is normalised.
fn norm<'p>(
    b: &mut Builder<'p, '_, '_>,
    args: &Arguments<'p>,
    kind: NormKind,
    target: Option<&[DimId]>,
) -> Option<ValueId> {
    let most = if kind == NormKind::Rms { 2 } else { 3 };
    args.shape(b, 1..=most, Some(&["over"]))?;
    let mut x = Vec::new();
    for (i, e) in args.positional.iter().enumerate() {
        x.push(tensor(b, e, if i == 0 { target } else { None })?);
    }
    let dims = b.ops.value(x[0]).dims.clone();
    let over = match (args.get("over"), x.get(1)) {
        (Some(_), _) => args.dim_list(b, "over")?,
        (None, Some(gain)) => b.ops.value(*gain).dims.clone(),
        (None, None) => {
            args.wants(b, "a gain, or `over = DIMENSION`");
            return None;
        }
    };
    let missing: Vec<_> = over.iter().filter(|d| !dims.contains(d)).map(|d| b.ops.dim(*d).name.clone()).collect();
    if over.is_empty() || !missing.is_empty() {
        let wanted: Vec<_> = over.iter().map(|d| b.ops.dim(*d).name.clone()).collect();
        let found = b.dims_text(x[0]);
        let (at, gain) = (b.at(args.positional[0].span), args.positional.get(1).map_or(args.span, |e| e.span));
        let gain = b.at(gain);
        b.eval.sink.error(errors::dims_mismatch(&found, &wanted.join(", "), &missing, &[], at, gain));
        return None;
    }
    Some(add(b, OpKind::Norm { kind, over }, &x, dims, args.span))
}

/// Ids, then a table whose first dimension that the ids lack are its rows; `embed_bag` adds the rows of a bag up.
fn embed<'p>(b: &mut Builder<'p, '_, '_>, args: &Arguments<'p>, target: Option<&[DimId]>) -> Option<ValueId> {
    let is_bag = args.op == "embed_bag";
    args.shape(b, 2..=2, Some(if is_bag { &["over"] } else { &[] }))?;
    let (x, t) = (tensor(b, args.positional[0], None)?, tensor(b, args.positional[1], None)?);
    let bag = if is_bag { Some(args.dim(b, "over")?) } else { None };
    let (ids, table) = (b.ops.value(x).dims.clone(), b.ops.value(t).dims.clone());
    let own: Vec<_> = table.iter().copied().filter(|d| !ids.contains(d)).collect();
    let [over, width @ ..] = &own[..] else {
        let at = b.at(args.positional[1].span);
        b.eval.sink.error(errors::operator_use(args.op, "a table of rows", at));
        return None;
    };
    if bag.is_some_and(|d| !ids.contains(&d)) {
        args.wants(b, "ids that have the dimension it adds up");
        return None;
    }
    let mut dims: Vec<_> = ids.into_iter().filter(|d| Some(*d) != bag).collect();
    dims.extend_from_slice(width);
    let dims = ordered(dims, target);
    Some(add(b, OpKind::Embed { over: *over, bag }, &[x, t], dims, args.span))
}

/// `cross_entropy(logits, over = V)` and `binary_cross_entropy(logits)`.
fn loss<'p>(b: &mut Builder<'p, '_, '_>, args: &Arguments<'p>) -> Option<ValueId> {
    let classes = args.op == "cross_entropy";
    args.shape(b, 1..=1, Some(if classes { &["over", "chunks"] } else { &[] }))?;
    let x = tensor(b, args.positional[0], None)?;
    let chunks = args.whole(b, "chunks", 1)?;
    if chunks < 1 {
        args.wants(b, "one chunk or more");
        return None;
    }
    let over = if classes { Some(args.dim(b, "over")?) } else { None };
    if over.is_some_and(|d| !b.ops.value(x).dims.contains(&d)) {
        args.wants(b, "logits that have the dimension it goes over");
        return None;
    }
    let logits = &mut b.ops.values[x.0 as usize];
    if logits.role == ValueRole::Activation {
        logits.role = ValueRole::Logits;
    }
    Some(add(b, OpKind::CrossEntropy { over, chunks }, &[x], Vec::new(), args.span))
}
