//! Tensor expressions to ops: products by name, elementwise chains, and the operators of the language.

use super::errors;
use super::model::Builder;
use crate::eval::{Truth, Value, Wanted};
use crate::graph::{
    Attention, DataDim, DimId, MapFn, NormKind, Op, OpKind, Parameter, Value as Tensor, ValueId, ValueRole,
};
use crate::hir::schema::{OPERATORS, OPERATORS_LATER};
use crate::source::Span;
use crate::syntax::ast::{Arg, BinaryOp, DimRef, Expr, ExprKind, Name, UnaryOp};
use std::rc::Rc;

pub(super) fn tensor<'p>(b: &mut Builder<'p, '_, '_>, e: &'p Expr, target: Option<&[DimId]>) -> Option<ValueId> {
    match &e.kind {
        ExprKind::Path(path) if path.len() == 1 => variable(b, &path[0]),
        ExprKind::Field(..) => parameter_path(b, e),
        ExprKind::Param(Some((name, dims))) => parameter(b, name, dims.as_deref(), e.span),
        ExprKind::Binary(BinaryOp::Contract, at, x, y) => contract(b, x, y, target, e.span, *at),
        ExprKind::Binary(op @ (BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div), _, x, y) => {
            elementwise(b, *op, x, y, target, e.span)
        }
        ExprKind::Unary(UnaryOp::Neg, x) => {
            let x = tensor(b, x, target)?;
            Some(map(b, MapFn::Scale(-1.0), &[x], target, e.span))
        }
        ExprKind::Call(f, args) => call(b, f, args, target, e),
        ExprKind::If(c, x, y) => {
            let env = Rc::clone(&b.scope.env);
            match b.eval.eval(c, &env, &Wanted::Any) {
                Value::Bool(Truth::Known(true)) => tensor(b, x, target),
                Value::Bool(Truth::Known(false)) => tensor(b, y, target),
                Value::Error(_) => None,
                other => {
                    let noun = other.noun();
                    b.eval.sink.error(errors::wrong_value(
                        "a condition in a model",
                        "a known true or false",
                        &noun,
                        c.span,
                    ));
                    None
                }
            }
        }
        ExprKind::Error => None,
        _ => {
            b.eval.sink.error(errors::operator_use("a statement of a model", "a tensor", e.span));
            None
        }
    }
}

fn variable(b: &mut Builder<'_, '_, '_>, name: &Name) -> Option<ValueId> {
    let found = b.scope.tensors.get(&name.text).copied();
    if found.is_none() {
        let known: Vec<_> = b.scope.tensors.keys().map(ToString::to_string).collect();
        b.eval.sink.error(errors::unknown_tensor(name, &known));
    }
    found
}

/// `embed.wte`: a parameter declared before, used again.
fn parameter_path(b: &mut Builder<'_, '_, '_>, e: &Expr) -> Option<ValueId> {
    fn dotted(e: &Expr, out: &mut Vec<String>) -> bool {
        match &e.kind {
            ExprKind::Path(p) if p.len() == 1 => out.push(p[0].text.to_string()),
            ExprKind::Field(base, name) => {
                if !dotted(base, out) {
                    return false;
                }
                out.push(name.text.to_string());
            }
            _ => return false,
        }
        true
    }
    let mut parts = Vec::new();
    if !dotted(e, &mut parts) {
        b.eval.sink.error(errors::operator_use("a statement of a model", "a tensor", e.span));
        return None;
    }
    let path = parts.join(".");
    let found = b.params.get(&path).map(|(id, _)| *id);
    if found.is_none() {
        let known: Vec<_> = b.params.keys().cloned().collect();
        b.eval.sink.error(errors::unknown_parameter_path(&path, e.span, &known));
    }
    found
}

fn parameter(b: &mut Builder<'_, '_, '_>, name: &Name, dims: Option<&[DimRef]>, span: Span) -> Option<ValueId> {
    let region = b.ops.region_path(b.region);
    let path = if region.is_empty() { name.text.to_string() } else { format!("{region}.{}", name.text) };
    let Some(refs) = dims else {
        b.eval.sink.error(errors::operator_use("param", "its dimensions: `param w[H, F]`", span));
        return None;
    };
    if let Some((_, first)) = b.params.get(&path) {
        let first = *first;
        b.eval.sink.error(errors::axis_twice(name, first).note(format!("its path is `{path}`")));
        return None;
    }
    let mut ids = Vec::new();
    for r in refs {
        let id = b.known_dim(&r.name)?;
        if b.ops.dim(id).data.is_some() {
            let declared = b.ops.dim(id).span;
            b.eval.sink.error(errors::param_from_data(&r.name, declared));
            return None;
        }
        ids.push(id);
    }
    let role = ValueRole::Param(b.ops.params.len() as u32);
    let value = Tensor { name: name.text.to_string(), dims: ids, region: b.region, role, span: b.at(name.span) };
    let id = b.ops.add_value(value);
    let unit = b.unit();
    b.ops.params.push(Parameter { value: id, path: path.clone(), unit });
    b.params.insert(path, (id, name.span));
    Some(id)
}

/// Adds an op and its result; dimensions are put in the target's order.
fn add(b: &mut Builder<'_, '_, '_>, kind: OpKind, inputs: &[ValueId], dims: Vec<DimId>, span: Span) -> ValueId {
    let role = if matches!(kind, OpKind::CrossEntropy { .. }) { ValueRole::Loss } else { ValueRole::Activation };
    let span = b.at(span);
    let value = Tensor { name: String::new(), dims, region: b.region, role, span };
    let output = b.ops.add_value(value);
    let op = Op { kind, inputs: inputs.to_vec(), output, region: b.region, unit: b.unit(), span };
    b.ops.add_op(op);
    output
}

fn ordered(mut dims: Vec<DimId>, target: Option<&[DimId]>) -> Vec<DimId> {
    if let Some(t) = target {
        dims.sort_by_key(|d| t.iter().position(|x| x == d).unwrap_or(usize::MAX));
    }
    dims
}

/// An elementwise op over tensors; the result has every dimension of its operands.
fn map(b: &mut Builder<'_, '_, '_>, f: MapFn, inputs: &[ValueId], target: Option<&[DimId]>, span: Span) -> ValueId {
    let mut dims: Vec<DimId> = Vec::new();
    for id in inputs {
        for d in &b.ops.value(*id).dims {
            if !dims.contains(d) {
                dims.push(*d);
            }
        }
    }
    add(b, OpKind::Map(f), inputs, ordered(dims, target), span)
}

fn contract<'p>(
    b: &mut Builder<'p, '_, '_>,
    x: &'p Expr,
    y: &'p Expr,
    target: Option<&[DimId]>,
    span: Span,
    at_operator: Span,
) -> Option<ValueId> {
    let Some(target) = target else {
        let at = b.at(span);
        b.eval.sink.error(errors::product_unnamed(at));
        return None;
    };
    let (p, q) = (tensor(b, x, None)?, tensor(b, y, None)?);
    let (pd, qd) = (b.ops.value(p).dims.clone(), b.ops.value(q).dims.clone());
    let contracted: Vec<_> = pd.iter().filter(|d| qd.contains(d) && !target.contains(d)).copied().collect();
    if contracted.is_empty() {
        let (pt, qt) = (b.dims_text(p), b.dims_text(q));
        let at = b.at(at_operator);
        let names = |list: Vec<&DimId>| list.iter().map(|d| b.ops.dim(**d).name.clone()).collect::<Vec<_>>();
        let kept = names(pd.iter().filter(|d| qd.contains(d)).collect());
        let lonely = names(
            pd.iter()
                .filter(|d| !qd.contains(d))
                .chain(qd.iter().filter(|d| !pd.contains(d)))
                .filter(|d| !target.contains(d))
                .collect(),
        );
        let elementwise = pd.iter().all(|d| target.contains(d)) && qd.iter().all(|d| target.contains(d));
        b.eval.sink.error(
            errors::nothing_shared(&pt, &qt, &kept, &lonely, elementwise, at)
                .label(x.span, format!("has [{pt}]"))
                .label(y.span, format!("has [{qt}]")),
        );
        return None;
    }
    let mut dims: Vec<DimId> = pd.iter().filter(|d| !contracted.contains(d)).copied().collect();
    dims.extend(qd.iter().filter(|d| !contracted.contains(d) && !pd.contains(d)));
    let extra: Vec<_> = dims.iter().filter(|d| !target.contains(d)).map(|d| b.ops.dim(*d).name.clone()).collect();
    if !extra.is_empty() {
        let found = dims.iter().map(|d| b.ops.dim(*d).name.clone()).collect::<Vec<_>>().join(", ");
        let wanted = target.iter().map(|d| b.ops.dim(*d).name.clone()).collect::<Vec<_>>().join(", ");
        let at = b.at(span);
        let (pt, qt) = (b.dims_text(p), b.dims_text(q));
        let d = errors::dims_mismatch(&found, &wanted, &[], &extra, at, at);
        let d = crate::diagnostics::Diagnostic { secondary: Vec::new(), ..d };
        b.eval.sink.error(
            d.label(x.span, format!("has [{pt}]"))
                .label(y.span, format!("has [{qt}]"))
                .note(format!("the target is [{wanted}]")),
        );
        return None;
    }
    Some(add(b, OpKind::Contract { contracted }, &[p, q], ordered(dims, Some(target)), span))
}

fn elementwise<'p>(
    b: &mut Builder<'p, '_, '_>,
    op: BinaryOp,
    x: &'p Expr,
    y: &'p Expr,
    target: Option<&[DimId]>,
    span: Span,
) -> Option<ValueId> {
    match (scalar(b, x)?, scalar(b, y)?) {
        (None, None) => {
            let (p, q) = (tensor(b, x, target)?, tensor(b, y, target)?);
            let f = match op {
                BinaryOp::Add => MapFn::Add,
                BinaryOp::Sub => MapFn::Sub,
                BinaryOp::Mul => MapFn::Mul,
                _ => MapFn::Div,
            };
            Some(map(b, f, &[p, q], target, span))
        }
        (Some(c), None) if op == BinaryOp::Mul => {
            let q = tensor(b, y, target)?;
            Some(map(b, MapFn::Scale(c), &[q], target, span))
        }
        (None, Some(c)) if op == BinaryOp::Mul || op == BinaryOp::Div => {
            let p = tensor(b, x, target)?;
            let factor = if op == BinaryOp::Mul { c } else { 1.0 / c };
            Some(map(b, MapFn::Scale(factor), &[p], target, span))
        }
        _ => {
            b.eval.sink.error(errors::not_supported("sums of a tensor and a number", span));
            None
        }
    }
}

/// The number an operand is, if it is not a tensor.
#[expect(clippy::option_option, reason = "the outer level says whether something was reported")]
fn scalar<'p>(b: &mut Builder<'p, '_, '_>, e: &'p Expr) -> Option<Option<f64>> {
    let is_number = match &e.kind {
        ExprKind::Number { .. } => true,
        ExprKind::Path(p) if p.len() == 1 => {
            !b.scope.tensors.contains_key(&p[0].text) && b.scope.env.find(&p[0].text).is_some()
        }
        _ => false,
    };
    if !is_number {
        return Some(None);
    }
    let env = Rc::clone(&b.scope.env);
    match b.eval.eval(e, &env, &Wanted::Any).as_f64() {
        Some(v) => Some(Some(v)),
        None => {
            b.eval.sink.error(errors::operator_use("a factor", "a known number", e.span));
            None
        }
    }
}

fn call<'p>(
    b: &mut Builder<'p, '_, '_>,
    f: &'p Expr,
    args: &'p [Arg],
    target: Option<&[DimId]>,
    e: &'p Expr,
) -> Option<ValueId> {
    let ExprKind::Path(path) = &f.kind else {
        b.eval.sink.error(errors::operator_use("a call", "an operator or a block", f.span));
        return None;
    };
    let name = &path[path.len() - 1];
    if let Some(block) = b.find_block(name) {
        return b.block(&block, args, e.span);
    }
    let op = name.text.as_str();
    if OPERATORS_LATER.contains(&op) {
        b.eval.sink.error(errors::not_supported(&format!("the operator `{op}`"), f.span));
        return None;
    }
    if !OPERATORS.contains(&op) {
        let module = b.scope.env.module;
        if b.eval.program.lookup(module, op).is_some() {
            b.eval.sink.error(errors::operator_use(op, "to be a block or an operator to stand here", f.span));
        } else {
            let mut known = b.eval.known_names(module, None);
            known.extend(OPERATORS.iter().chain(OPERATORS_LATER).map(ToString::to_string));
            b.eval.sink.error(crate::eval::errors::unknown_name(op, name.span, &known));
        }
        return None;
    }
    operator(b, op, args, target, e.span)
}

/// Positional arguments, and named ones.
fn split_args(args: &[Arg]) -> (Vec<&Expr>, Vec<(&Name, &Expr)>) {
    let mut positional = Vec::new();
    let mut named = Vec::new();
    for a in args {
        match a {
            Arg::Positional(e) => positional.push(e),
            Arg::Named(n, e) | Arg::Domain(n, e) => named.push((n, e)),
        }
    }
    (positional, named)
}

fn operator<'p>(
    b: &mut Builder<'p, '_, '_>,
    op: &str,
    args: &'p [Arg],
    target: Option<&[DimId]>,
    span: Span,
) -> Option<ValueId> {
    let (positional, named) = split_args(args);
    let takes = match op {
        "embed" | "rms_norm" => 2,
        "layer_norm" | "attention" => 3,
        _ => 1,
    };
    let allowed: &[&str] = match op {
        "attention" => &["causal", "cache", "window"],
        "cross_entropy" => &["over", "chunks"],
        "softmax" => &["over"],
        "rope" => &["base"],
        _ => &[],
    };
    if positional.len() != takes {
        let at = b.at(span);
        b.eval.sink.error(errors::operator_use(
            op,
            &format!("{takes} tensor{}", if takes == 1 { "" } else { "s" }),
            at,
        ));
        return None;
    }
    if !matches!(op, "take" | "rename")
        && let Some((n, _)) = named.iter().find(|(n, _)| !allowed.contains(&n.text.as_str()))
    {
        let known: Vec<_> = allowed.iter().map(ToString::to_string).collect();
        b.eval.sink.error(crate::eval::errors::unknown_argument(&n.text, n.span, op, &known, n.span));
        return None;
    }
    let passes_target = matches!(op, "rms_norm" | "layer_norm" | "silu" | "gelu" | "relu" | "rope");
    let mut x = Vec::new();
    for (i, e) in positional.iter().enumerate() {
        x.push(tensor(b, e, if i == 0 && passes_target { target } else { None })?);
    }
    let dims = |b: &Builder<'_, '_, '_>, id: ValueId| b.ops.value(id).dims.clone();
    match op {
        "silu" => Some(map(b, MapFn::Silu, &x, target, span)),
        "gelu" => Some(map(b, MapFn::Gelu, &x, target, span)),
        "relu" => Some(map(b, MapFn::Relu, &x, target, span)),
        "rope" => {
            let base = match named.first() {
                Some((_, e)) => {
                    let env = Rc::clone(&b.scope.env);
                    b.eval.eval(e, &env, &Wanted::Any).as_f64()
                }
                None => Some(10_000.0),
            };
            let Some(base) = base.filter(|v| *v > 1.0) else {
                b.eval.sink.error(errors::operator_use("rope", "a base above 1", span));
                return None;
            };
            Some(map(b, MapFn::Rope(base), &x, target, span))
        }
        "rms_norm" | "layer_norm" => {
            let gain = dims(b, x[1]);
            let [over] = gain[..] else {
                b.eval.sink.error(errors::operator_use(op, "a gain of one dimension", positional[1].span));
                return None;
            };
            if !dims(b, x[0]).contains(&over) {
                let (found, wanted) = (b.dims_text(x[0]), b.dims_text(x[1]));
                let missing = [b.ops.dim(over).name.clone()];
                let at = b.at(positional[0].span);
                b.eval.sink.error(errors::dims_mismatch(&found, &wanted, &missing, &[], at, b.at(positional[1].span)));
                return None;
            }
            let kind = if op == "rms_norm" { NormKind::Rms } else { NormKind::Layer };
            let d = dims(b, x[0]);
            Some(add(b, OpKind::Norm { kind, over }, &x, d, span))
        }
        "embed" => {
            let (ids, table) = (dims(b, x[0]), dims(b, x[1]));
            let [over, width @ ..] = &table[..] else {
                b.eval.sink.error(errors::operator_use("embed", "a table of rows", positional[1].span));
                return None;
            };
            let mut d = ids;
            d.extend_from_slice(width);
            Some(add(b, OpKind::Embed { over: *over }, &x, ordered(d, target), span))
        }
        "take" | "rename" => {
            let [(old, Expr { kind: ExprKind::Path(path), .. })] = &named[..] else {
                b.eval.sink.error(errors::operator_use(op, "one `OLD = NEW` of dimensions", span));
                return None;
            };
            let (from, to) = (b.known_dim(old)?, b.known_dim(&path[0])?);
            let mut d = dims(b, x[0]);
            let Some(slot) = d.iter_mut().find(|d| **d == from) else {
                b.unknown_dim(old);
                return None;
            };
            *slot = to;
            let kind = if op == "take" { OpKind::Take { from, to } } else { OpKind::Rename { from, to } };
            Some(add(b, kind, &x, d, span))
        }
        "softmax" => {
            let over = named_dim(b, &named, "softmax", span)?;
            let d = dims(b, x[0]);
            Some(add(b, OpKind::Softmax { over }, &x, d, span))
        }
        "cross_entropy" => {
            if let Some((n, e)) = named.iter().find(|(n, _)| n.text == "chunks")
                && !matches!(e.kind, ExprKind::Number { value: crate::syntax::ast::Number::Int(1), .. })
            {
                b.eval.sink.error(errors::not_supported("a loss in chunks", n.span));
                return None;
            }
            let over: Vec<_> = named.iter().filter(|(n, _)| n.text == "over").copied().collect();
            let over = named_dim(b, &over, "cross_entropy", span)?;
            if !dims(b, x[0]).contains(&over) {
                b.eval.sink.error(errors::operator_use(
                    "cross_entropy",
                    "logits that have the dimension it goes over",
                    span,
                ));
                return None;
            }
            let logits = &mut b.ops.values[x[0].0 as usize];
            if logits.role == ValueRole::Activation {
                logits.role = ValueRole::Logits;
            }
            Some(add(b, OpKind::CrossEntropy { over }, &x, Vec::new(), span))
        }
        _ => attention(b, &x, &named, target, span),
    }
}

fn named_dim(b: &mut Builder<'_, '_, '_>, named: &[(&Name, &Expr)], op: &str, span: Span) -> Option<DimId> {
    match named {
        [(_, Expr { kind: ExprKind::Path(path), .. })] => b.known_dim(&path[0]),
        _ => {
            b.eval.sink.error(errors::operator_use(op, "`over = DIMENSION`", span));
            None
        }
    }
}

fn attention<'p>(
    b: &mut Builder<'p, '_, '_>,
    x: &[ValueId],
    named: &[(&'p Name, &'p Expr)],
    target: Option<&[DimId]>,
    span: Span,
) -> Option<ValueId> {
    let mut causal = false;
    for (n, e) in named {
        match n.text.as_str() {
            "causal" => {
                let env = Rc::clone(&b.scope.env);
                match b.eval.eval(e, &env, &Wanted::Any) {
                    Value::Bool(Truth::Known(v)) => causal = v,
                    _ => {
                        b.eval.sink.error(errors::operator_use("causal", "true or false", e.span));
                        return None;
                    }
                }
            }
            "window" if !matches!(&e.kind, ExprKind::Path(p) if p[0].text == "none") => {
                b.eval.sink.error(errors::not_supported("attention over a window", e.span));
                return None;
            }
            // `cache` says what a server keeps; training keeps none.
            _ => {}
        }
    }
    let at = b.at(span);
    let wants = "q[B, S, N, D], k[B, S, K, D] and v[B, S, K, D]: a batch, a sequence, heads and a width each";
    let parts = |b: &Builder<'_, '_, '_>, id: ValueId| -> Option<(DimId, DimId, DimId)> {
        let dims = &b.ops.value(id).dims;
        let sequence = dims.iter().find(|d| b.ops.dim(**d).data == Some(DataDim::Sequence))?;
        let rest: Vec<_> = dims.iter().filter(|d| b.ops.dim(**d).data.is_none()).collect();
        if let [heads, width] = rest[..] { Some((*sequence, *heads, *width)) } else { None }
    };
    let (Some(q), Some(k), Some(v)) = (parts(b, x[0]), parts(b, x[1]), parts(b, x[2])) else {
        b.eval.sink.error(errors::operator_use("attention", wants, at));
        return None;
    };
    let grouped = k.1 == q.1 || b.ops.dim(k.1).groups == Some(q.1);
    if !grouped && q.0 == k.0 && k.1 == v.1 && q.2 == k.2 {
        let (of, keys) = (b.ops.dim(q.1).clone(), b.ops.dim(k.1).clone());
        let written = |d: &crate::graph::Dim| b.eval.graph.as_int(d.true_extent);
        let numbers = (written(&keys), written(&of));
        b.eval.sink.error(errors::heads_ungrouped(&keys.name, &of.name, numbers, keys.span, at));
        return None;
    }
    if q.0 != k.0 || k.0 != v.0 || k.1 != v.1 || q.2 != k.2 || !grouped {
        b.eval.sink.error(errors::operator_use("attention", wants, at));
        return None;
    }
    let kind = Attention { causal, sequence: q.0, heads: q.1, kv_heads: k.1, head_dim: q.2, value_dim: v.2 };
    let mut dims = b.ops.value(x[0]).dims.clone();
    for d in &mut dims {
        if *d == q.2 {
            *d = v.2;
        }
    }
    Some(add(b, OpKind::Attention(kind), x, ordered(dims, target), span))
}
