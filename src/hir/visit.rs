//! A walk over every expression of a tree.

use crate::syntax::ast::{
    Arg, Block, Body, Decl, Entry, Expr, ExprKind, File, Index, Item, ItemKind, LetValue, ParamKind, Selector,
    SelectorPart, TargetSuffix, Tolerance,
};

/// `csv("FILE", …)`: the string, its text and the other arguments.
pub fn csv_call(e: &Expr) -> Option<(&Expr, &str, &[Arg])> {
    let ExprKind::Call(f, args) = &e.kind else { return None };
    let ExprKind::Path(path) = &f.kind else { return None };
    match (&path[..], args.split_first()) {
        ([word], Some((Arg::Positional(name), rest))) if word.text == "csv" => match &name.kind {
            ExprKind::Str(file) => Some((name, file, rest)),
            _ => None,
        },
        _ => None,
    }
}

/// Calls `visit` on every expression of `file`, outer before inner.
pub fn walk_file<'a>(file: &'a File, visit: &mut dyn FnMut(&'a Expr)) {
    for entry in &file.entries {
        match entry {
            Entry::Use(_) => {}
            Entry::Decl(d) => exprs_of_decl(d, visit),
            Entry::Let(l) => let_value(&l.value, visit),
        }
    }
}

/// Calls `visit` on every expression of `decl`.
pub fn exprs_of_decl<'a>(decl: &'a Decl, visit: &mut dyn FnMut(&'a Expr)) {
    for param in decl.params.iter().flatten() {
        match &param.kind {
            ParamKind::Value { domain, default, .. } => {
                for e in domain.iter().chain(default) {
                    walk_expr(e, visit);
                }
            }
            ParamKind::Dim { default } => {
                if let Some(e) = default {
                    walk_expr(e, visit);
                }
            }
            ParamKind::Tensor(_) => {}
        }
    }
    match &decl.body {
        Body::Expr(e) => walk_expr(e, visit),
        Body::Block(b) => block(b, visit),
        Body::None => {}
    }
}

fn let_value<'a>(value: &'a LetValue, visit: &mut dyn FnMut(&'a Expr)) {
    match value {
        LetValue::Is(e) | LetValue::In(e) => walk_expr(e, visit),
    }
}

fn block<'a>(b: &'a Block, visit: &mut dyn FnMut(&'a Expr)) {
    for item in &b.items {
        walk_item(item, visit);
    }
}

fn index<'a>(i: &'a Index, visit: &mut dyn FnMut(&'a Expr)) {
    match i {
        Index::Expr(e) | Index::From(e) => walk_expr(e, visit),
    }
}

fn selectors<'a>(list: &'a [Selector], visit: &mut dyn FnMut(&'a Expr)) {
    for part in list.iter().flat_map(|s| &s.parts) {
        if let SelectorPart::Name(_, Some(i)) = part {
            index(i, visit);
        }
    }
}

fn walk_item<'a>(item: &'a Item, visit: &mut dyn FnMut(&'a Expr)) {
    match &item.kind {
        ItemKind::Assign { target, value } => {
            for suffix in &target.suffixes {
                if let TargetSuffix::Index(list) = suffix {
                    for i in list {
                        index(i, visit);
                    }
                }
            }
            walk_expr(value, visit);
        }
        ItemKind::Domain { domain: e, .. }
        | ItemKind::Require { cond: e, .. }
        | ItemKind::Objective { value: e, .. }
        | ItemKind::Return(e)
        | ItemKind::Place { on: e, .. }
        | ItemKind::Pad { to: e, .. }
        | ItemKind::Recompute(e)
        | ItemKind::Via { method: e, .. } => walk_expr(e, visit),
        ItemKind::Let(l) => let_value(&l.value, visit),
        ItemKind::Section { block: b, .. } | ItemKind::Region { block: b, .. } => block(b, visit),
        ItemKind::Decl(d) => exprs_of_decl(d, visit),
        ItemKind::Expect { value, about } => {
            walk_expr(value, visit);
            if let Some((e, tolerance)) = about {
                walk_expr(e, visit);
                if let Some(Tolerance::Absolute(t) | Tolerance::Relative(t)) = tolerance {
                    walk_expr(t, visit);
                }
            }
        }
        ItemKind::If { cond, then, otherwise } => {
            walk_expr(cond, visit);
            block(then, visit);
            if let Some(b) = otherwise {
                block(b, visit);
            }
        }
        ItemKind::In { selectors: s, block: b } => {
            selectors(s, visit);
            block(b, visit);
        }
        ItemKind::Level { children, over, block: b, .. } => {
            for child in children {
                walk_expr(&child.count, visit);
                walk_expr(&child.of, visit);
            }
            walk_expr(over, visit);
            if let Some(b) = b {
                block(b, visit);
            }
        }
        ItemKind::Dims(defs) => {
            for def in defs {
                walk_expr(&def.extent, visit);
            }
        }
        ItemKind::Repeat { count, block: b, .. } => {
            walk_expr(count, visit);
            block(b, visit);
        }
        ItemKind::Mesh(axes) | ItemKind::Fold { to: axes, .. } => {
            for e in axes.iter().filter_map(|a| a.size.as_ref()) {
                walk_expr(e, visit);
            }
        }
        ItemKind::Part { on, selectors: s, block: b, .. } => {
            walk_expr(on, visit);
            selectors(s, visit);
            block(b, visit);
        }
        ItemKind::Store { on, as_dtype, block: b, .. } => {
            for e in on.iter().chain(as_dtype) {
                walk_expr(e, visit);
            }
            if let Some(b) = b {
                block(b, visit);
            }
        }
        ItemKind::Overlap { with, block: b, .. } => {
            selectors(with, visit);
            if let Some(b) = b {
                block(b, visit);
            }
        }
        ItemKind::Shard { block: b, .. } | ItemKind::Reduce { block: b, .. } | ItemKind::Pipeline { block: b, .. } => {
            if let Some(b) = b {
                block(b, visit);
            }
        }
        ItemKind::Input { .. } | ItemKind::Axis { .. } | ItemKind::Replicate { .. } | ItemKind::Error => {}
    }
}

/// Calls `visit` on `expr` and everything inside it.
pub fn walk_expr<'a>(expr: &'a Expr, visit: &mut dyn FnMut(&'a Expr)) {
    visit(expr);
    match &expr.kind {
        ExprKind::Number { .. }
        | ExprKind::Str(_)
        | ExprKind::Bool(_)
        | ExprKind::Hole
        | ExprKind::Path(_)
        | ExprKind::Kind(_)
        | ExprKind::Param(_)
        | ExprKind::Error => {}
        ExprKind::Field(e, _) | ExprKind::Unary(_, e) => walk_expr(e, visit),
        ExprKind::Call(f, args) => {
            walk_expr(f, visit);
            for arg in args {
                match arg {
                    Arg::Positional(e) | Arg::Named(_, e) | Arg::Domain(_, e) => walk_expr(e, visit),
                }
            }
        }
        ExprKind::Index(e, list) => {
            walk_expr(e, visit);
            for i in list {
                index(i, visit);
            }
        }
        ExprKind::With(e, b) => {
            walk_expr(e, visit);
            block(b, visit);
        }
        ExprKind::Binary(_, _, a, b) | ExprKind::Range(a, b) => {
            walk_expr(a, visit);
            walk_expr(b, visit);
        }
        ExprKind::If(a, b, c) => {
            for e in [a, b, c] {
                walk_expr(e, visit);
            }
        }
        ExprKind::List(list) | ExprKind::Set(list) => {
            for e in list {
                walk_expr(e, visit);
            }
        }
        ExprKind::Comprehension(e, generators) => {
            walk_expr(e, visit);
            for g in generators {
                walk_expr(&g.over, visit);
                if let Some(c) = &g.cond {
                    walk_expr(c, visit);
                }
            }
        }
        ExprKind::Record(fields) => {
            for (_, e) in fields {
                walk_expr(e, visit);
            }
        }
    }
}
