//! Operators described by their numbers: those a user declares, and a few of the language.

use super::super::errors;
use super::super::model::{Builder, volume};
use super::arguments::Arguments;
use super::{add, ordered, tensor};
use crate::eval::{Env, Value, Wanted, type_wanted};
use crate::expr;
use crate::graph::{Custom, DataDim, DimId, OpKind, ValueId, ValueRole};
use crate::hir::ModuleId;
use crate::source::Span;
use crate::syntax::ast::{Arg, Body, Decl, Expr, ExprKind, ItemKind, Name, ParamKind, Ret};
use crate::units::{Base, Unit};
use indexmap::IndexMap;
use smol_str::SmolStr;
use std::rc::Rc;

/// FLOP of a selective scan for each element and index of its state: exponential, two products and sums of the
/// recurrence, product with the output matrix (counted so in the authors' code, state-spaces/mamba).
const SCAN_FLOPS: f64 = 9.0;

/// A custom op of `flops` forward and twice that backward, nothing gathered.
fn custom(b: &mut Builder<'_, '_, '_>, name: &str, flops: expr::Id, inputs: &[ValueId]) -> Custom {
    let two = b.eval.graph.real(2.0);
    let backward_flops = b.eval.graph.mul(flops, two);
    Custom {
        name: name.to_string(),
        flops,
        backward_flops,
        read: None,
        write: None,
        saves: activations(b, inputs),
        contracts: Vec::new(),
        whole: Vec::new(),
    }
}

fn activations(b: &Builder<'_, '_, '_>, inputs: &[ValueId]) -> Vec<usize> {
    let is_param = |v: &ValueId| matches!(b.ops.value(*v).role, ValueRole::Param(_));
    inputs.iter().enumerate().filter(|(_, v)| !is_param(v)).map(|(i, _)| i).collect()
}

fn scaled(b: &mut Builder<'_, '_, '_>, dims: &[DimId], factor: f64) -> expr::Id {
    let volume = volume(b, dims);
    let factor = b.eval.graph.real(factor);
    b.eval.graph.mul(volume, factor)
}

fn tensors<'p>(b: &mut Builder<'p, '_, '_>, args: &Arguments<'p>) -> Option<Vec<ValueId>> {
    args.positional.iter().map(|e| tensor(b, e, None)).collect()
}

/// `scatter(x, z, over = S)`: rows of z take the place of some of x along S.
pub(super) fn scatter<'p>(
    b: &mut Builder<'p, '_, '_>,
    args: &Arguments<'p>,
    target: Option<&[DimId]>,
) -> Option<ValueId> {
    args.shape(b, 2..=2, Some(&["over"]))?;
    let x = tensors(b, args)?;
    let over = args.dim(b, "over")?;
    let dims = b.ops.value(x[0]).dims.clone();
    if !dims.contains(&over) {
        args.wants(b, "a tensor that has the dimension rows are put in");
        return None;
    }
    let zero = b.eval.graph.real(0.0);
    let whole = b.ops.value(x[1]).dims.iter().copied().filter(|d| !dims.contains(d)).collect();
    let kind = Custom { saves: Vec::new(), whole, ..custom(b, "scatter", zero, &x) };
    Some(add(b, OpKind::Custom(Box::new(kind)), &x, ordered(dims, target), args.span))
}

/// `conv(x, w, P = Q)`: the dimensions of w that neither x nor the target has are its window, those both operands have
/// and the target lacks are summed over, and P becomes Q where the window moves by more than one.
pub(super) fn conv<'p>(b: &mut Builder<'p, '_, '_>, args: &Arguments<'p>, target: Option<&[DimId]>) -> Option<ValueId> {
    args.shape(b, 2..=2, None)?;
    let Some(target) = target else {
        let at = b.at(args.span);
        b.eval.sink.error(errors::product_unnamed(None, at));
        return None;
    };
    let x = tensors(b, args)?;
    let moved = if args.named.is_empty() { Vec::new() } else { args.renamings(b)? };
    let (a, w) = (b.ops.value(x[0]).dims.clone(), b.ops.value(x[1]).dims.clone());
    let keeps = |b: &Builder<'_, '_, '_>, d: &DimId| target.contains(d) || b.rides(*d);
    let contracts: Vec<_> = a.iter().copied().filter(|d| w.contains(d) && !keeps(b, d)).collect();
    let step = |d: &DimId| moved.iter().find(|(from, _)| from == d).map_or(*d, |(_, to)| *to);
    let mut dims: Vec<_> = a.iter().filter(|d| !contracts.contains(d)).map(step).collect();
    dims.extend(w.iter().copied().filter(|d| !a.contains(d) && keeps(b, d) && !dims.contains(d)).collect::<Vec<_>>());
    let window: Vec<_> = w.iter().copied().filter(|d| !a.contains(d) && !dims.contains(d)).collect();
    let all = [&dims[..], &contracts, &window].concat();
    let flops = scaled(b, &all, 2.0);
    // A window reaches over the edge of what a rank has.
    let whole = a.iter().copied().filter(|d| moved.iter().any(|(from, _)| from == d) || positions(b, *d)).collect();
    let kind = Custom { contracts, whole, ..custom(b, "conv", flops, &x) };
    Some(add(b, OpKind::Custom(Box::new(kind)), &x, ordered(dims, Some(target)), args.span))
}

fn positions(b: &Builder<'_, '_, '_>, dim: DimId) -> bool {
    b.ops.dim(dim).data == Some(DataDim::Sequence)
}

/// `ssm_scan(x, dt, a, b, c, …)`: a recurrence over the positions of x, with the dimensions x lacks as its state.
pub(super) fn scan<'p>(b: &mut Builder<'p, '_, '_>, args: &Arguments<'p>, target: Option<&[DimId]>) -> Option<ValueId> {
    args.shape(b, 1..=usize::MAX, Some(&[]))?;
    let x = tensors(b, args)?;
    let dims = b.ops.value(x[0]).dims.clone();
    let mut all = dims.clone();
    for v in &x[1..] {
        for d in &b.ops.value(*v).dims {
            if !all.contains(d) && !b.rides(*d) {
                all.push(*d);
            }
        }
    }
    let flops = scaled(b, &all, SCAN_FLOPS);
    let whole = dims.iter().copied().filter(|d| positions(b, *d)).collect();
    let kind = Custom { whole, ..custom(b, "ssm_scan", flops, &x) };
    Some(add(b, OpKind::Custom(Box::new(kind)), &x, ordered(dims, target), args.span))
}

/// `interact(x, over = [G, W], out = O)`: products of every pair of the G vectors of width W, as one vector.
pub(super) fn interact<'p>(
    b: &mut Builder<'p, '_, '_>,
    args: &Arguments<'p>,
    target: Option<&[DimId]>,
) -> Option<ValueId> {
    args.shape(b, 1..=1, Some(&["over", "out"]))?;
    let x = tensors(b, args)?;
    let over = args.dim_list(b, "over")?;
    let out = args.dim(b, "out")?;
    let dims = b.ops.value(x[0]).dims.clone();
    if over.len() != 2 || !over.iter().all(|d| dims.contains(d)) {
        args.wants(b, "`over = [VECTORS, WIDTH]` of the dimensions it has");
        return None;
    }
    let flops = scaled(b, &[&dims[..], &over[..1]].concat(), 2.0);
    let mut kept: Vec<_> = dims.into_iter().filter(|d| !over.contains(d)).collect();
    kept.push(out);
    let kind = Custom { whole: over, ..custom(b, "interact", flops, &x) };
    Some(add(b, OpKind::Custom(Box::new(kind)), &x, ordered(kept, target), args.span))
}

/// A call of an `op` declaration.
pub(super) fn declared<'p>(
    b: &mut Builder<'p, '_, '_>,
    decl: &'p Decl,
    module: ModuleId,
    args: &'p [Arg],
    target: Option<&[DimId]>,
    span: Span,
) -> Option<ValueId> {
    let args = Arguments::new(&decl.name.text, args, span);
    let mut env = Env::inside(&Env::top(module));
    let mut dims: IndexMap<SmolStr, DimId> = IndexMap::new();
    let (mut inputs, mut operands) = (Vec::new(), Vec::new());
    let mut given = args.positional.iter();
    for param in decl.params.iter().flatten() {
        let name = &param.name;
        let e = args.get(&name.text).or_else(|| given.next().copied());
        match (&param.kind, e) {
            (ParamKind::Tensor(refs), Some(e)) => {
                let id = tensor(b, e, None)?;
                bind_dims(b, &args, refs.iter().map(|r| &r.name), id, &mut dims)?;
                inputs.push(id);
                operands.push(&name.text);
            }
            (ParamKind::Dim { .. }, Some(e)) => {
                let Some(dim) = super::arguments::plain_name(e) else {
                    b.eval.sink.error(errors::operator_use(&name.text, "a dimension", e.span));
                    return None;
                };
                let id = b.known_dim(dim)?;
                dims.insert(name.text.clone(), id);
            }
            (ParamKind::Dim { .. }, None) => {
                let id = b.known_dim(name)?;
                dims.insert(name.text.clone(), id);
            }
            (ParamKind::Value { ty, default, .. }, e) => {
                let wanted = ty.as_ref().map_or(Wanted::Any, type_wanted);
                let value = match (e, default) {
                    (Some(e), _) => {
                        let outer = Rc::clone(&b.scope.env);
                        let v = b.eval.eval(e, &outer, &wanted);
                        b.eval.require(v, &wanted, &format!("`{}`", name.text), e.span)
                    }
                    (None, Some(e)) => b.eval.eval(e, &Rc::new(env.clone()), &wanted),
                    (None, None) => {
                        b.eval.sink.error(errors::missing_argument(&name.text, &decl.name, span));
                        return None;
                    }
                };
                if let Value::Error(_) = value {
                    return None;
                }
                env.bind(name.text.clone(), value);
            }
            (ParamKind::Tensor(_), None) => {
                b.eval.sink.error(errors::missing_argument(&name.text, &decl.name, span));
                return None;
            }
        }
    }
    let Some(Ret::Dims(list, _)) = &decl.ret else {
        b.eval.sink.error(errors::operator_use(&decl.name.text, "a result: `-> [B, S, H]`", decl.name.span));
        return None;
    };
    let mut out = Vec::new();
    for r in list {
        let id = match dims.get(&r.name.text) {
            Some(id) => *id,
            None => b.known_dim(&r.name)?,
        };
        dims.insert(r.name.text.clone(), id);
        out.push(id);
    }
    // Dimensions of the operands that the declaration does not name ride along.
    for v in &inputs {
        for d in &b.ops.value(*v).dims {
            if !dims.values().any(|known| known == d) && !out.contains(d) {
                out.push(*d);
            }
        }
    }
    for (name, id) in &dims {
        let extent = b.ops.dim(*id).true_extent;
        let value = match b.eval.graph.as_int(extent) {
            Some(n) => Value::int(i128::from(n)),
            None => Value::sym(extent, Unit::none()),
        };
        env.bind(name.clone(), value);
    }
    let kind = fields(b, decl, &Rc::new(env), &dims, (&inputs, &operands))?;
    Some(add(b, OpKind::Custom(Box::new(kind)), &inputs, ordered(out, target), span))
}

/// The caller's dimensions for the names of an operand: the same name, or the one in its place.
fn bind_dims<'p>(
    b: &mut Builder<'p, '_, '_>,
    args: &Arguments<'p>,
    names: impl Iterator<Item = &'p Name>,
    operand: ValueId,
    dims: &mut IndexMap<SmolStr, DimId>,
) -> Option<()> {
    for name in names {
        let outer = args.get(&name.text).and_then(super::arguments::plain_name).unwrap_or(name);
        let id = b.known_dim(outer)?;
        if !b.ops.value(operand).dims.contains(&id) {
            let (found, missing) = (b.dims_text(operand), [b.ops.dim(id).name.clone()]);
            let at = b.at(args.span);
            b.eval.sink.error(errors::dims_mismatch(&found, &name.text, &missing, &[], at, name.span));
            return None;
        }
        dims.insert(name.text.clone(), id);
    }
    Some(())
}

/// The numbers an `op` gives, over the whole of its dimensions.
fn fields<'p>(
    b: &mut Builder<'p, '_, '_>,
    decl: &'p Decl,
    env: &Rc<Env<'p>>,
    dims: &IndexMap<SmolStr, DimId>,
    (inputs, operands): (&[ValueId], &[&SmolStr]),
) -> Option<Custom> {
    let Body::Block(block) = &decl.body else { return None };
    let mut field: IndexMap<&str, &'p Expr> = IndexMap::new();
    for item in &block.items {
        if let ItemKind::Assign { target, value } = &item.kind {
            field.insert(target.name.text.as_str(), value);
        }
    }
    let Some(flops) = field.get("flops") else {
        b.eval.sink.error(errors::field_missing("flops", &format!("op `{}`", decl.name.text), decl.name.span));
        return None;
    };
    let flops = measure(b, flops, env, &Unit::flop(), "flops")?;
    let mut kind = custom(b, &decl.name.text, flops, inputs);
    if let Some(e) = field.get("backward_flops") {
        // `2 * flops` speaks of the field before it.
        let env = Env::with(env, vec![("flops".into(), Value::sym(flops, Unit::flop()))]);
        kind.backward_flops = measure(b, e, &env, &Unit::flop(), "backward_flops")?;
    }
    if let Some(e) = field.get("read") {
        kind.read = Some(measure(b, e, env, &Unit::base(Base::Byte), "read")?);
    }
    if let Some(e) = field.get("write") {
        kind.write = Some(measure(b, e, env, &Unit::base(Base::Byte), "write")?);
    }
    if let Some(e) = field.get("saves") {
        let at = |n: &Name| operands.iter().position(|o| **o == n.text);
        let saves = list_of(b, e, "operands", &at)?;
        kind.saves = saves;
    }
    for (name, into) in [("contracts", &mut kind.contracts), ("whole", &mut kind.whole)] {
        if let Some(e) = field.get(name) {
            *into = list_of(b, e, "dimensions", &|n: &Name| dims.get(&n.text).copied())?;
        }
    }
    Some(kind)
}

/// A number of this unit, as a real node; a plain number is taken to be in it.
fn measure<'p>(
    b: &mut Builder<'p, '_, '_>,
    e: &'p Expr,
    env: &Rc<Env<'p>>,
    unit: &Unit,
    what: &str,
) -> Option<expr::Id> {
    match b.eval.eval(e, env, &Wanted::Any) {
        Value::Num(q) if q.unit == *unit || q.unit.is_none() => {
            let node = b.eval.node(q.num);
            Some(b.eval.graph.to_real(node))
        }
        Value::Error(_) => None,
        other => {
            let noun = other.noun();
            b.eval.sink.error(errors::wrong_value(&format!("`{what}`"), &unit.noun(), &noun, e.span));
            None
        }
    }
}

fn list_of<T>(b: &mut Builder<'_, '_, '_>, e: &Expr, what: &str, find: &dyn Fn(&Name) -> Option<T>) -> Option<Vec<T>> {
    let list = match &e.kind {
        ExprKind::List(list) => list.as_slice(),
        _ => std::slice::from_ref(e),
    };
    let found: Option<Vec<T>> = list.iter().map(|e| super::arguments::plain_name(e).and_then(find)).collect();
    if found.is_none() {
        b.eval.sink.error(errors::operator_use("an `op`", &format!("a list of its own {what} here"), e.span));
    }
    found
}
