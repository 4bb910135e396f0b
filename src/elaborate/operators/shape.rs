//! Operators that change which dimensions a tensor has.

use super::super::errors;
use super::super::model::Builder;
use super::arguments::{Arguments, names};
use super::{add, map, number, ordered, tensor};
use crate::graph::{DimId, MapFn, OpKind, ValueId};

/// `take(table, P = S)` and `rename(x, P = S)`: one dimension stands where another stood.
pub(super) fn renamed<'p>(b: &mut Builder<'p, '_, '_>, args: &Arguments<'p>) -> Option<ValueId> {
    args.shape(b, 1..=1, None)?;
    let mut x = tensor(b, args.positional[0], None)?;
    for (from, to) in args.renamings(b)? {
        let dims = replaced(b, args, x, from, to)?;
        let take = args.op == "take";
        if !take && !same_extent(b, from, to) {
            let (old, new) = (b.ops.dim(from).name.clone(), b.ops.dim(to).name.clone());
            args.wants(b, &format!("`{old}` and `{new}` to have the same extent"));
            return None;
        }
        let kind = if take { OpKind::Take { from, to } } else { OpKind::Rename { from, to } };
        x = add(b, kind, &[x], dims, args.span);
    }
    Some(x)
}

/// Whether two extents are equal, as far as is known.
fn same_extent(b: &Builder<'_, '_, '_>, x: DimId, y: DimId) -> bool {
    let extent = |d: DimId| b.eval.graph.as_int(b.ops.dim(d).true_extent);
    extent(x).zip(extent(y)).is_none_or(|(p, q)| p == q)
}

/// The dimensions of `x` with `to` in the place of `from`.
fn replaced<'p>(
    b: &mut Builder<'p, '_, '_>,
    args: &Arguments<'p>,
    x: ValueId,
    from: DimId,
    to: DimId,
) -> Option<Vec<DimId>> {
    let mut dims = b.ops.value(x).dims.clone();
    let twice = dims.contains(&to);
    match dims.iter_mut().find(|d| **d == from) {
        Some(slot) if !twice => {
            *slot = to;
            Some(dims)
        }
        _ => {
            let (old, new) = (b.ops.dim(from).name.clone(), b.ops.dim(to).name.clone());
            args.wants(b, &format!("a tensor that has `{old}` and not `{new}`"));
            None
        }
    }
}

/// `merge_patches(x, P = Q)`: neighbouring indices go together, each dimension becoming one of another extent.
pub(super) fn regrouped<'p>(b: &mut Builder<'p, '_, '_>, args: &Arguments<'p>) -> Option<ValueId> {
    args.shape(b, 1..=1, None)?;
    let x = tensor(b, args.positional[0], None)?;
    let pairs = args.renamings(b)?;
    regroup(b, args, x, pairs)
}

fn regroup<'p>(
    b: &mut Builder<'p, '_, '_>,
    args: &Arguments<'p>,
    x: ValueId,
    pairs: Vec<(DimId, DimId)>,
) -> Option<ValueId> {
    let mut dims = b.ops.value(x).dims.clone();
    for (from, to) in &pairs {
        replaced(b, args, x, *from, *to)?;
        dims.iter_mut().filter(|d| *d == from).for_each(|d| *d = *to);
    }
    Some(add(b, OpKind::Regroup { pairs }, &[x], dims, args.span))
}

/// `pool(x, over = S)` takes the mean over a dimension, `pool(x, P = Q)` over neighbours.
pub(super) fn pool<'p>(b: &mut Builder<'p, '_, '_>, args: &Arguments<'p>, target: Option<&[DimId]>) -> Option<ValueId> {
    args.shape(b, 1..=1, None)?;
    let x = tensor(b, args.positional[0], None)?;
    if args.get("over").is_none() {
        let pairs = args.renamings(b)?;
        return regroup(b, args, x, pairs);
    }
    let over = args.dim_list(b, "over")?;
    let dims = b.ops.value(x).dims.clone();
    if !over.iter().all(|d| dims.contains(d)) {
        args.wants(b, "a tensor that has what it is pooled over");
        return None;
    }
    let kept = dims.into_iter().filter(|d| !over.contains(d)).collect();
    Some(add(b, OpKind::Sum { over }, &[x], ordered(kept, target), args.span))
}

/// `shift(x, n)`: what stands `n` positions on.
pub(super) fn shift<'p>(
    b: &mut Builder<'p, '_, '_>,
    args: &Arguments<'p>,
    target: Option<&[DimId]>,
) -> Option<ValueId> {
    args.shape(b, 2..=2, Some(&["over"]))?;
    let x = tensor(b, args.positional[0], target)?;
    let by = number(b, args.positional[1]).filter(|n| n.fract().abs() < f64::EPSILON && n.abs() < 1e9);
    let Some(by) = by else {
        args.wants(b, "a tensor and a known whole number of positions");
        return None;
    };
    if args.get("over").is_some() {
        args.dim(b, "over")?;
    }
    Some(map(b, MapFn::Shift(by as i64), &[x], target, args.span))
}

/// `concat(a, b, over = D)`: what each operand has and the target lacks is its piece of D.
pub(super) fn concat<'p>(
    b: &mut Builder<'p, '_, '_>,
    args: &Arguments<'p>,
    target: Option<&[DimId]>,
) -> Option<ValueId> {
    args.shape(b, 2..=usize::MAX, Some(&["over"]))?;
    let over = args.dim(b, "over")?;
    let Some(target) = target.filter(|t| t.contains(&over)) else {
        args.wants(b, "a target that has the dimension it goes along: `k[B, S, N, D] = concat(…, over = D)`");
        return None;
    };
    let (mut inputs, mut pieces) = (Vec::new(), Vec::new());
    for e in &args.positional {
        let x = tensor(b, e, None)?;
        let dims = b.ops.value(x).dims.clone();
        let own: Vec<_> =
            dims.iter().copied().filter(|d| *d == over || (!target.contains(d) && !b.rides(*d))).collect();
        let extent = match own[..] {
            [] => Some(1),
            [d] => b.eval.graph.as_int(b.ops.dim(d).true_extent),
            _ => {
                let (found, wanted) = (b.dims_text(x), dim_names(b, target));
                let extra: Vec<_> = own.iter().map(|d| b.ops.dim(*d).name.clone()).collect();
                let at = b.at(e.span);
                b.eval.sink.error(errors::dims_mismatch(&found, &wanted, &[], &extra, at, at));
                return None;
            }
        };
        pieces.push((own.first().copied(), extent));
        inputs.push(x);
    }
    let all: Option<Vec<i64>> = pieces.iter().map(|(_, n)| *n).collect();
    let whole = b.eval.graph.as_int(b.ops.dim(over).true_extent);
    if let (Some(all), Some(whole)) = (all, whole)
        && all.iter().sum::<i64>() != whole
    {
        let name = |d: &Option<DimId>| d.map_or_else(|| "1".to_string(), |d| b.ops.dim(d).name.clone());
        let text: Vec<_> = pieces.iter().map(|(d, _)| name(d)).collect();
        let numbers: Vec<_> = all.iter().map(ToString::to_string).collect();
        let (over, at) = (b.ops.dim(over).name.clone(), b.at(args.span));
        let sum = all.iter().sum();
        b.eval.sink.error(errors::pieces(&over, whole, &text.join(" + "), &numbers.join(" + "), sum, at));
        return None;
    }
    let mut dims = target.to_vec();
    for x in &inputs {
        let riding = b.ops.value(*x).dims.iter().copied().filter(|d| b.rides(*d) && !dims.contains(d));
        dims.extend(riding.collect::<Vec<_>>());
    }
    Some(add(b, OpKind::Concat { over }, &inputs, dims, args.span))
}

fn dim_names(b: &Builder<'_, '_, '_>, dims: &[DimId]) -> String {
    dims.iter().map(|d| b.ops.dim(*d).name.clone()).collect::<Vec<_>>().join(", ")
}

/// `split(x, H = [N, D])` and its inverse `merge(x, H = [N, D])`.
pub(super) fn folded<'p>(
    b: &mut Builder<'p, '_, '_>,
    args: &Arguments<'p>,
    target: Option<&[DimId]>,
) -> Option<ValueId> {
    args.shape(b, 1..=1, None)?;
    let x = tensor(b, args.positional[0], None)?;
    let [(one, list)] = args.named[..] else {
        args.wants(b, "one `ONE = [SEVERAL, …]` of dimensions");
        return None;
    };
    let Some(several) = names(list) else {
        args.wants(b, "one `ONE = [SEVERAL, …]` of dimensions");
        return None;
    };
    let (one, several) = (b.known_dim(one)?, b.known_dims(&several)?);
    let extent = |b: &Builder<'_, '_, '_>, d: &DimId| b.eval.graph.as_int(b.ops.dim(*d).true_extent);
    let product: Option<i64> = several.iter().map(|d| extent(b, d)).try_fold(1i64, |p, n| p.checked_mul(n?));
    if let (Some(product), Some(whole)) = (product, extent(b, &one))
        && product != whole
    {
        let text = dim_names(b, &several).replace(", ", " · ");
        let at = b.at(args.span);
        let numbers: Vec<_> = several.iter().filter_map(|d| extent(b, d)).map(|n| n.to_string()).collect();
        b.eval.sink.error(errors::pieces(&b.ops.dim(one).name, whole, &text, &numbers.join(" · "), product, at));
        return None;
    }
    let split = args.op == "split";
    let (gone, come) = if split { (vec![one], several.clone()) } else { (several.clone(), vec![one]) };
    let mut dims = b.ops.value(x).dims.clone();
    let Some(at) = dims.iter().position(|d| gone.contains(d)).filter(|_| gone.iter().all(|d| dims.contains(d))) else {
        args.wants(b, &format!("a tensor that has [{}]", dim_names(b, &gone)));
        return None;
    };
    dims.splice(at..at, come);
    dims.retain(|d| !gone.contains(d));
    let kind =
        if split { OpKind::Split { from: one, into: several } } else { OpKind::Merge { from: several, into: one } };
    Some(add(b, kind, &[x], ordered(dims, target), args.span))
}
