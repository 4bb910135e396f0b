//! Tensor expressions to ops: products by name, elementwise chains, and the operators of the language.

mod arguments;
mod attention;
mod call;
mod custom;
mod experts;
mod fixed;
mod shape;

pub(super) use experts::makes_dimension;

use super::errors;
use super::model::Builder;
use crate::eval::Wanted;
use crate::eval::builtin::FUNCTIONS;
use crate::graph::{DimId, MapFn, Op, OpKind, Parameter, Value as Tensor, ValueId, ValueRole};
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
        ExprKind::Call(f, args) => call::call(b, f, args, target, e),
        ExprKind::If(c, x, y) => {
            let chosen = if b.holds(c)? { x } else { y };
            tensor(b, chosen, target)
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
    let region = b.ops.param_path(b.region);
    let path = if region.is_empty() { name.text.to_string() } else { format!("{region}.{}", name.text) };
    let Some(refs) = dims else {
        b.eval.sink.error(errors::operator_use("param", "its dimensions: `param w[H, F]`", span));
        return None;
    };
    if let Some((_, first)) = b.params.get(&path) {
        let first = *first;
        b.eval.sink.error(errors::param_twice(name, &path, first));
        return None;
    }
    let mut ids = Vec::new();
    for r in refs {
        let id = b.known_dim(&r.name)?;
        if ids.contains(&id) {
            b.eval.sink.error(errors::dim_repeated(&r.name));
            return None;
        }
        if b.ops.dim(id).data.is_some() {
            let declared = b.ops.dim(id).span;
            let d = errors::param_from_data(&r.name, &name.text, declared);
            let d = match (refs.iter().filter(|o| o.name.text == r.name.text).count(), own_dim(b, span)) {
                (1, Some(at)) => {
                    let own =
                        |o: &DimRef| if o.name.text == r.name.text { "P".to_string() } else { o.name.text.to_string() };
                    let own = refs.iter().map(own).collect::<Vec<_>>().join(", ");
                    errors::own_positions(
                        d,
                        span,
                        &format!("take(param {}[{own}], P = {})", name.text, r.name.text),
                        at,
                    )
                }
                _ => d,
            };
            b.eval.sink.error(d);
            return None;
        }
        ids.push(id);
    }
    b.open_unit("model", span);
    let role = ValueRole::Param(b.ops.params.len() as u32);
    let value = Tensor { name: name.text.to_string(), dims: ids, region: b.region, role, span: b.at(name.span) };
    let id = b.ops.add_value(value);
    let unit = b.unit();
    b.ops.params.push(Parameter { value: id, path: path.clone(), unit });
    b.params.insert(path, (id, name.span));
    Some(id)
}

/// Where a dimension `P` could be declared beside the others of the file that `span` lies in; none where the name is
/// taken.
fn own_dim(b: &Builder<'_, '_, '_>, span: Span) -> Option<Span> {
    let declared = |d: &&crate::graph::Dim| d.data.is_none() && d.span.file == span.file;
    let first = b.ops.dims.iter().filter(declared).map(|d| d.span).min_by_key(|s| s.start)?;
    let free = b.ops.dims.iter().all(|d| d.name != "P");
    free.then_some(Span { end: first.start, ..first })
}

/// Adds an op and its result; dimensions are put in the target's order.
fn add(b: &mut Builder<'_, '_, '_>, kind: OpKind, inputs: &[ValueId], dims: Vec<DimId>, span: Span) -> ValueId {
    let role = match &kind {
        OpKind::CrossEntropy { .. } => ValueRole::Loss,
        // What is made of losses is one; ids some positions on are ids.
        OpKind::Map(f) => {
            let all = |role| inputs.iter().all(|v| b.ops.value(*v).role == role);
            match f {
                _ if all(ValueRole::Loss) => ValueRole::Loss,
                MapFn::Shift(_) if all(ValueRole::Input) => ValueRole::Input,
                _ => ValueRole::Activation,
            }
        }
        _ => ValueRole::Activation,
    };
    b.open_unit("model", span);
    b.count_value();
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
    let (p, q) = (tensor(b, x, None)?, tensor(b, y, None)?);
    let Some(target) = target else {
        unnamed(b, (x, p), (y, q), span);
        return None;
    };
    let (pd, qd) = (b.ops.value(p).dims.clone(), b.ops.value(q).dims.clone());
    let contracted: Vec<_> =
        pd.iter().filter(|d| qd.contains(d) && !target.contains(d) && !b.rides(**d)).copied().collect();
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
        // A weight that lacks what the other side brings and nothing keeps.
        let alone = |mine: &[DimId], theirs: &[DimId]| {
            mine.iter().all(|d| target.contains(d)) && theirs.iter().any(|d| !target.contains(d) && !mine.contains(d))
        };
        let weight = [(y, &qt, &qd, (x, &pt, &pd)), (x, &pt, &pd, (y, &qt, &qd))];
        for (e, own, mine, (other, others, theirs)) in weight {
            if let (ExprKind::Param(Some((name, Some(refs)))), true) = (&e.kind, alone(mine, theirs))
                && kept.is_empty()
                && let Some(first) = refs.first()
            {
                let d = errors::weight_lacks(&name.text, own, &lonely, first.name.span, b.at(e.span));
                b.eval.sink.error(d.label(other.span, format!("has [{others}]")));
                return None;
            }
        }
        b.eval.sink.error(
            errors::nothing_shared(&pt, &qt, &kept, &lonely, elementwise, at)
                .label(x.span, format!("has [{pt}]"))
                .label(y.span, format!("has [{qt}]")),
        );
        return None;
    }
    let mut dims: Vec<DimId> = pd.iter().filter(|d| !contracted.contains(d)).copied().collect();
    dims.extend(qd.iter().filter(|d| !contracted.contains(d) && !pd.contains(d)));
    let extra = dims.iter().filter(|d| !target.contains(d) && !b.rides(**d));
    let extra: Vec<_> = extra.map(|d| b.ops.dim(*d).name.clone()).collect();
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

/// A product whose target nothing gives: where one side is a weight, what it keeps is clear, and a name is offered.
fn unnamed(b: &mut Builder<'_, '_, '_>, (x, p): (&Expr, ValueId), (y, q): (&Expr, ValueId), span: Span) {
    let d = errors::product_unnamed(b.standing.argument_of, b.at(span));
    let named = match (&x.kind, &y.kind, b.standing.statement) {
        (ExprKind::Path(left), ExprKind::Param(Some((weight, Some(_)))), Some(statement))
            if left.len() == 1 && b.call_site.is_none() =>
        {
            let (pd, qd) = (&b.ops.value(p).dims, &b.ops.value(q).dims);
            let kept = pd.iter().filter(|d| !qd.contains(d)).chain(qd.iter().filter(|d| !pd.contains(d)));
            let kept: Vec<_> = kept.map(|d| b.ops.dim(*d).name.clone()).collect();
            let free = |name: &&str| {
                let module = b.scope.env.module;
                !name.is_empty()
                    && !crate::syntax::is_reserved(name)
                    && !b.scope.tensors.contains_key(*name)
                    && b.scope.env.find(name).is_none()
                    && b.eval.program.lookup(module, name).is_none()
            };
            let own = weight.text.strip_prefix("w_").or_else(|| weight.text.strip_prefix('w')).unwrap_or_default();
            let name = [own, "y", "u", "z"].into_iter().find(free);
            let whole = kept.len() < pd.len() + qd.len();
            let text = format!("{} @ param {}[{}]", left[0].text, weight.text, b.dims_text(q));
            name.filter(|_| whole).map(|name| (name, format!("{name}[{}] = {text}, ", kept.join(", ")), statement))
        }
        _ => None,
    };
    b.eval.sink.error(match named {
        Some((name, line, statement)) => errors::offer_name(d, name, line, statement, span),
        None => d,
    });
}

fn elementwise<'p>(
    b: &mut Builder<'p, '_, '_>,
    op: BinaryOp,
    x: &'p Expr,
    y: &'p Expr,
    target: Option<&[DimId]>,
    span: Span,
) -> Option<ValueId> {
    let (left, right) = (scalar(b, x)?, scalar(b, y)?);
    let (constant, of) = match (left, right) {
        (Some(c), _) => (c, y),
        (None, Some(c)) => (c, x),
        (None, None) => {
            let (p, q) = (tensor(b, x, target)?, tensor(b, y, target)?);
            let f = match op {
                BinaryOp::Add => MapFn::Add,
                BinaryOp::Sub => MapFn::Sub,
                BinaryOp::Mul => MapFn::Mul,
                _ => MapFn::Div,
            };
            return Some(map(b, f, &[p, q], target, span));
        }
    };
    let value = tensor(b, of, target)?;
    let on_left = left.is_some();
    let f = match op {
        BinaryOp::Mul => MapFn::Scale(constant),
        BinaryOp::Add => MapFn::Offset(constant),
        BinaryOp::Sub if !on_left => MapFn::Offset(-constant),
        BinaryOp::Sub => {
            let negative = map(b, MapFn::Scale(-1.0), &[value], target, span);
            return Some(map(b, MapFn::Offset(constant), &[negative], target, span));
        }
        _ if on_left => MapFn::Inverse(constant),
        _ => MapFn::Scale(1.0 / constant),
    };
    Some(map(b, f, &[value], target, span))
}

/// The number an operand is, if it is not a tensor.
#[expect(clippy::option_option, reason = "the outer level says whether something was reported")]
fn scalar<'p>(b: &mut Builder<'p, '_, '_>, e: &'p Expr) -> Option<Option<f64>> {
    if !is_number(b, e) {
        return Some(None);
    }
    match number(b, e) {
        Some(v) => Some(Some(v)),
        None => {
            b.eval.sink.error(errors::operator_use("a factor", "a known number", e.span));
            None
        }
    }
}

/// Whether an expression speaks of numbers alone.
fn is_number(b: &Builder<'_, '_, '_>, e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Number { .. } => true,
        ExprKind::Path(p) if p.len() == 1 => {
            let name = &p[0].text;
            let value =
                || b.scope.env.find(name).is_some() || b.eval.program.lookup(b.scope.env.module, name).is_some();
            !b.scope.tensors.contains_key(name) && value()
        }
        ExprKind::Unary(_, x) => is_number(b, x),
        ExprKind::Binary(op, _, x, y) => *op != BinaryOp::Contract && is_number(b, x) && is_number(b, y),
        ExprKind::If(_, x, y) => is_number(b, x) && is_number(b, y),
        ExprKind::Call(f, args) => {
            let function =
                matches!(&f.kind, ExprKind::Path(p) if p.len() == 1 && FUNCTIONS.contains(&p[0].text.as_str()));
            function && args.iter().all(|a| matches!(a, Arg::Positional(x) if is_number(b, x)))
        }
        _ => false,
    }
}

/// A known number.
fn number<'p>(b: &mut Builder<'p, '_, '_>, e: &'p Expr) -> Option<f64> {
    let env = Rc::clone(&b.scope.env);
    b.eval.eval(e, &env, &Wanted::Any).as_f64()
}
