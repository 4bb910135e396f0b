//! Calls in models: of blocks, of operators with a fixed meaning, of declared ones.

use super::super::errors;
use super::super::model::Builder;
use super::arguments::Arguments;
use super::{attention, custom, experts, fixed, shape};
use crate::graph::{DimId, ValueId};
use crate::hir::Binding;
use crate::hir::schema::OPERATORS;
use crate::syntax::ast::{Arg, Expr, ExprKind, Kind, Name};

pub(super) fn call<'p>(
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
    let outer = b.standing.argument_of.replace(&name.text);
    let out = called(b, f, name, args, target, e);
    b.standing.argument_of = outer;
    out
}

fn called<'p>(
    b: &mut Builder<'p, '_, '_>,
    f: &'p Expr,
    name: &'p Name,
    args: &'p [Arg],
    target: Option<&[DimId]>,
    e: &'p Expr,
) -> Option<ValueId> {
    let module = b.scope.env.module;
    if let Some(Binding::Decl(id)) = b.eval.program.lookup(module, &name.text)
        && let crate::hir::Entry::Decl(decl) = b.eval.program.entry(id)
        && decl.kind == Kind::Op
    {
        return custom::declared(b, decl, id.module, args, target, e.span);
    }
    if let Some(block) = b.find_block(name) {
        return b.block(&block, args, e.span);
    }
    let op = name.text.as_str();
    if !OPERATORS.contains(&op) {
        if b.eval.program.lookup(module, op).is_some() {
            b.eval.sink.error(errors::operator_use(op, "to be a block or an operator to stand here", f.span));
        } else {
            let mut known = b.eval.known_names(module, None);
            known.extend(OPERATORS.iter().map(ToString::to_string));
            b.eval.sink.error(crate::eval::errors::unknown_name(op, name.span, &known));
        }
        return None;
    }
    let args = Arguments::new(op, args, e.span);
    match op {
        "attention" => attention::attention(b, &args, target),
        "select_experts" => experts::select(b, &args, target),
        "dispatch" => experts::dispatch(b, &args),
        "combine" => experts::combine(b, &args, target),
        "take" | "rename" => shape::renamed(b, &args),
        "concat" => shape::concat(b, &args, target),
        "split" | "merge" => shape::folded(b, &args, target),
        "merge_patches" => shape::regrouped(b, &args),
        "pool" => shape::pool(b, &args, target),
        "shift" => shape::shift(b, &args, target),
        "scatter" => custom::scatter(b, &args, target),
        "conv" => custom::conv(b, &args, target),
        "ssm_scan" => custom::scan(b, &args, target),
        "interact" => custom::interact(b, &args, target),
        _ => fixed::fixed(b, &args, target),
    }
}
