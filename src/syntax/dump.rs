//! A tree as text, one item a line: for goldens and for looking at.
//!
//! Expressions are prefix forms, `(+ a (* 2 b))`; blocks are indented below their item. Spans are left out.

use super::ast::{
    Arg, AxisDef, AxisRef, Block, Body, Child, Decl, DimRef, Entry, Expr, ExprKind, File, Generator, Index, Item,
    ItemKind, Let, LetValue, Name, Number, Param, ParamKind, Ret, Selector, SelectorPart, TargetSuffix, Tolerance,
    Type, UnaryOp, Use, UseRoot,
};
use std::fmt::Write;

/// The whole of `file`.
pub fn dump(file: &File) -> String {
    let mut d = Dump { out: String::new(), indent: 0 };
    if let Some((n, _)) = file.edition {
        d.line(&format!("edition {n}"));
    }
    d.docs("//!", &file.docs);
    for entry in &file.entries {
        match entry {
            Entry::Use(u) => d.line(&import(u)),
            Entry::Decl(decl) => d.decl(decl),
            Entry::Let(l) => {
                d.docs("///", &l.docs);
                d.binding(l);
            }
        }
    }
    d.out
}

/// One expression, its blocks on one line.
pub fn expr(e: &Expr) -> String {
    match &e.kind {
        ExprKind::Number { value, unit } => {
            let value = match value {
                Number::Int(n) => n.to_string(),
                Number::Real(x) => format!("{x:?}"),
            };
            unit.as_ref().map_or(value.clone(), |(u, _)| format!("{value}`{u}`"))
        }
        ExprKind::Str(s) => format!("{s:?}"),
        ExprKind::Bool(b) => b.to_string(),
        ExprKind::Hole => "?".into(),
        ExprKind::Path(names) => join(names, "::", |n| n.text.to_string()),
        ExprKind::Kind(k) => k.keyword().into(),
        ExprKind::Param(None) => "param".into(),
        ExprKind::Param(Some((name, dims))) => {
            format!("(param {}{})", name.text, dims.as_ref().map_or(String::new(), |d| dim_refs(d)))
        }
        ExprKind::Field(e, name) => format!("(. {} {})", expr(e), name.text),
        ExprKind::Call(f, args) => format!("(call {}{})", expr(f), each(args, arg)),
        ExprKind::Index(e, list) => format!("(index {}{})", expr(e), each(list, index)),
        ExprKind::With(e, block) => format!("(with {} {})", expr(e), inline(block)),
        ExprKind::Unary(op, e) => {
            let op = match op {
                UnaryOp::Neg => "-",
                UnaryOp::Not => "not",
            };
            format!("({op} {})", expr(e))
        }
        ExprKind::Binary(op, _, a, b) => format!("({} {} {})", op.text(), expr(a), expr(b)),
        ExprKind::Range(a, b) => format!("(.. {} {})", expr(a), expr(b)),
        ExprKind::If(c, t, e) => format!("(if {} {} {})", expr(c), expr(t), expr(e)),
        ExprKind::List(list) => format!("[{}]", join(list, " ", expr)),
        ExprKind::Comprehension(e, generators) => format!("(each {}{})", expr(e), each(generators, generator)),
        ExprKind::Set(list) => format!("{{{}}}", join(list, " ", expr)),
        ExprKind::Record(fields) => format!("(record{})", each(fields, |(n, e)| format!("({} {})", n.text, expr(e)))),
        ExprKind::Error => "ERROR".into(),
    }
}

struct Dump {
    out: String,
    indent: usize,
}

impl Dump {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "{:1$}{text}", "", self.indent);
    }

    fn docs(&mut self, mark: &str, docs: &[smol_str::SmolStr]) {
        for doc in docs {
            self.line(format!("{mark} {doc}").trim_end());
        }
    }

    /// `head`, and what follows below it.
    fn block(&mut self, head: &str, block: &Block) {
        self.line(head);
        self.indent += 2;
        block.items.iter().for_each(|i| self.item(i));
        self.indent -= 2;
    }

    fn maybe_block(&mut self, head: &str, block: Option<&Block>) {
        match block {
            Some(b) => self.block(&format!("{head} {{}}"), b),
            None => self.line(head),
        }
    }

    fn binding(&mut self, l: &Let) {
        let ty = l.ty.as_ref().map_or(String::new(), |t| format!(": {}", type_name(t)));
        let (sign, e) = match &l.value {
            LetValue::Is(e) => ("=", e),
            LetValue::In(e) => ("in", e),
        };
        self.value(&format!("let {}{ty} {sign}", l.name.text), e);
    }

    /// A line that ends in an expression; a `with` at its top has its items below.
    fn value(&mut self, head: &str, e: &Expr) {
        if let ExprKind::With(base, block) = &e.kind {
            self.block(&format!("{head} {} with", expr(base)), block);
        } else {
            self.line(&format!("{head} {}", expr(e)));
        }
    }

    fn decl(&mut self, d: &Decl) {
        self.docs("///", &d.docs);
        let params = d.params.as_ref().map_or(String::new(), |p| format!("({})", join(p, ", ", param)));
        let ret = match &d.ret {
            None => String::new(),
            Some(Ret::Type(t)) => format!(" -> {}", type_name(t)),
            Some(Ret::Dims(dims, _)) => format!(" -> [{}]", join(dims, " ", type_name)),
        };
        let head = format!("{} {}{params}{ret}", d.kind.keyword(), d.name.text);
        match &d.body {
            Body::Expr(e) => self.value(&format!("{head} ="), e),
            Body::Block(b) => self.block(&head, b),
            Body::None => self.line(&head),
        }
    }

    fn item(&mut self, item: &Item) {
        if !matches!(item.kind, ItemKind::Decl(_)) {
            self.docs("///", &item.docs);
        }
        match &item.kind {
            ItemKind::Assign { target, value } => {
                let suffixes = target.suffixes.iter().map(|s| match s {
                    TargetSuffix::Index(list) => format!("[{}]", join(list, " ", index)),
                    TargetSuffix::Field(n) => format!(".{}", n.text),
                });
                let suffixes: String = suffixes.collect();
                self.value(&format!("{}{suffixes} =", target.name.text), value);
            }
            ItemKind::Domain { name, domain } => self.line(&format!("{} in {}", name.text, expr(domain))),
            ItemKind::Let(l) => self.binding(l),
            ItemKind::Section { head, name, block } => {
                let name = name.as_ref().map_or(String::new(), |n| format!(" {}", n.text));
                self.block(&format!("section {}{name}", head.text), block);
            }
            ItemKind::Decl(d) => self.decl(d),
            ItemKind::Require { cond, message } => {
                let message = message.as_ref().map_or(String::new(), |m| format!(" else {m:?}"));
                self.line(&format!("require {}{message}", expr(cond)));
            }
            ItemKind::Expect { value, about } => {
                let about = about.as_ref().map_or(String::new(), |(e, tolerance)| {
                    let tolerance = match tolerance {
                        None => String::new(),
                        Some(Tolerance::Absolute(t)) => format!(" +- {}", expr(t)),
                        Some(Tolerance::Relative(t)) => format!(" within {}", expr(t)),
                    };
                    format!(" ~ {}{tolerance}", expr(e))
                });
                self.line(&format!("expect {}{about}", expr(value)));
            }
            ItemKind::Objective { maximize, value } => {
                self.line(&format!("{} {}", if *maximize { "maximize" } else { "minimize" }, expr(value)));
            }
            ItemKind::If { cond, then, otherwise } => {
                self.block(&format!("if {}", expr(cond)), then);
                if let Some(b) = otherwise {
                    self.block("else", b);
                }
            }
            ItemKind::In { selectors: s, block } => self.block(&format!("in {}", selectors(s)), block),
            ItemKind::Level { name, children, over, block } => {
                let head = format!("level {} = [{}] over {}", name.text, join(children, ", ", child), expr(over));
                self.maybe_block(&head, block.as_ref());
            }
            ItemKind::Dims(defs) => {
                self.line("dims");
                self.indent += 2;
                for d in defs {
                    let ragged = d.ragged.as_ref().map_or(String::new(), |n| format!("[{}]", n.text));
                    let grouped = d.grouped.as_ref().map_or(String::new(), |n| format!(" for {}", n.text));
                    self.line(&format!("{}{ragged} = {}{grouped}", d.name.text, expr(&d.extent)));
                }
                self.indent -= 2;
            }
            ItemKind::Input { name, dims } => self.line(&format!("input {}{}", name.text, dim_refs(dims))),
            ItemKind::Region { name, block } => self.block(&format!("region {}", name.text), block),
            ItemKind::Repeat { name, count, index, block } => {
                let index = index.as_ref().map_or(String::new(), |i| format!(" as {}", i.text));
                self.block(&format!("repeat {} = {}{index}", name.text, expr(count)), block);
            }
            ItemKind::Return(e) => self.value("return", e),
            ItemKind::Mesh(axes) => self.line(&format!("mesh {}", axis_defs(axes))),
            ItemKind::Axis { name, axes: a } => self.line(&format!("axis {} = {}", name.text, axes(a))),
            ItemKind::Fold { from, to } => self.line(&format!("fold {} as {}", names(from), axis_defs(to))),
            ItemKind::Place { axes: a, on } => self.line(&format!("place {} on {}", axes(a), expr(on))),
            ItemKind::Part { name, on, selectors: s, block } => {
                let of = if s.is_empty() { String::new() } else { format!(" for {}", selectors(s)) };
                self.block(&format!("part {} on {}{of}", name.text, expr(on)), block);
            }
            ItemKind::Shard { dims, classes, axes: a, otherwise, block } => {
                let of = some("of", names, classes);
                let otherwise = some("else", names, otherwise);
                self.maybe_block(&format!("shard {}{of} over {}{otherwise}", names(dims), axes(a)), block.as_ref());
            }
            ItemKind::Replicate { classes, axes: a } => {
                self.line(&format!("replicate {} over {}", names(classes), axes(a)));
            }
            ItemKind::Store { classes, axes: a, on, as_dtype, block } => {
                let over = some("over", axes, a);
                let on = on.as_ref().map_or(String::new(), |e| format!(" on {}", expr(e)));
                let dtype = as_dtype.as_ref().map_or(String::new(), |e| format!(" as {}", expr(e)));
                self.maybe_block(&format!("store {}{over}{on}{dtype}", names(classes)), block.as_ref());
            }
            ItemKind::Reduce { classes, axes: a, block } => {
                self.maybe_block(&format!("reduce {} over {}", names(classes), axes(a)), block.as_ref());
            }
            ItemKind::Pad { dim, to } => self.line(&format!("pad {} = {}", dim.text, expr(to))),
            ItemKind::Recompute(e) => self.line(&format!("recompute {}", expr(e))),
            ItemKind::Pipeline { axes: a, block } => {
                self.maybe_block(&format!("pipeline over {}", axes(a)), block.as_ref());
            }
            ItemKind::Overlap { comms, axes: a, with, block } => {
                let over = some("over", axes, a);
                self.maybe_block(&format!("overlap {}{over} with {}", names(comms), selectors(with)), block.as_ref());
            }
            ItemKind::Via { op, axes: a, method } => {
                self.line(&format!("{} over {} via {}", op.text, axes(a), expr(method)));
            }
            ItemKind::Error => self.line("ERROR"),
        }
    }
}

fn join<T>(list: &[T], between: &str, show: impl Fn(&T) -> String) -> String {
    list.iter().map(show).collect::<Vec<_>>().join(between)
}

/// Each with a blank before it.
fn each<T>(list: &[T], show: impl Fn(&T) -> String) -> String {
    list.iter().fold(String::new(), |out, x| out + " " + &show(x))
}

/// ` word LIST`, or nothing for an empty list.
fn some<T>(word: &str, show: impl Fn(&[T]) -> String, list: &[T]) -> String {
    if list.is_empty() { String::new() } else { format!(" {word} {}", show(list)) }
}

fn inline(block: &Block) -> String {
    let mut d = Dump { out: String::new(), indent: 0 };
    block.items.iter().for_each(|i| d.item(i));
    let lines: Vec<&str> = d.out.lines().map(str::trim).collect();
    format!("{{{}}}", lines.join("; "))
}

fn import(u: &Use) -> String {
    let root = match &u.root {
        UseRoot::Name(n) => n.text.to_string(),
        UseRoot::File(path, _) => format!("{path:?}"),
    };
    let path = u.path.iter().fold(String::new(), |out, n| out + "::" + &n.text);
    let renamed = |n: &Option<Name>| n.as_ref().map_or(String::new(), |n| format!(" as {}", n.text));
    let list = u.names.as_ref().map_or(String::new(), |list| {
        format!("::{{{}}}", join(list, ", ", |(n, alias)| format!("{}{}", n.text, renamed(alias))))
    });
    format!("use {root}{path}{list}{}", renamed(&u.alias))
}

fn type_name(t: &Type) -> String {
    t.arg.as_ref().map_or(t.name.text.to_string(), |a| format!("{}<{}>", t.name.text, type_name(a)))
}

fn param(p: &Param) -> String {
    match &p.kind {
        ParamKind::Value { ty, domain, default } => {
            let ty = ty.as_ref().map_or(String::new(), |t| format!(": {}", type_name(t)));
            let domain = domain.as_ref().map_or(String::new(), |e| format!(" in {}", expr(e)));
            let default = default.as_ref().map_or(String::new(), |e| format!(" = {}", expr(e)));
            format!("{}{ty}{domain}{default}", p.name.text)
        }
        ParamKind::Dim { default } => {
            format!("dim {}{}", p.name.text, default.as_ref().map_or(String::new(), |e| format!(" = {}", expr(e))))
        }
        ParamKind::Tensor(dims) => format!("{}{}", p.name.text, dim_refs(dims)),
    }
}

fn dim_refs(dims: &[DimRef]) -> String {
    let one = |d: &DimRef| d.unit.as_ref().map_or(d.name.text.to_string(), |u| format!("{}:{}", d.name.text, u.text));
    format!("[{}]", join(dims, " ", one))
}

fn names(list: &[Name]) -> String {
    format!("[{}]", join(list, " ", |n| n.text.to_string()))
}

fn axes(list: &[AxisRef]) -> String {
    let one = |a: &AxisRef| a.part.as_ref().map_or(String::new(), |p| format!("{}.", p.text)) + &a.name.text;
    format!("[{}]", join(list, " ", one))
}

fn axis_defs(list: &[AxisDef]) -> String {
    let one =
        |a: &AxisDef| a.size.as_ref().map_or(a.name.text.to_string(), |e| format!("{} = {}", a.name.text, expr(e)));
    format!("[{}]", join(list, ", ", one))
}

fn selectors(list: &[Selector]) -> String {
    let part = |p: &SelectorPart| match p {
        SelectorPart::Name(n, None) => n.text.to_string(),
        SelectorPart::Name(n, Some(i)) => format!("{}[{}]", n.text, index(i)),
        SelectorPart::One => "*".into(),
        SelectorPart::Any => "**".into(),
    };
    format!("[{}]", join(list, " ", |s| join(&s.parts, ".", part)))
}

fn child(c: &Child) -> String {
    let label = c.label.as_ref().map_or(String::new(), |l| format!("{}: ", l.text));
    format!("{label}{} of {}", expr(&c.count), expr(&c.of))
}

fn index(i: &Index) -> String {
    match i {
        Index::Expr(e) => expr(e),
        Index::From(e) => format!("(.. {})", expr(e)),
    }
}

fn arg(a: &Arg) -> String {
    match a {
        Arg::Positional(e) => expr(e),
        Arg::Named(n, e) => format!("({} = {})", n.text, expr(e)),
        Arg::Domain(n, e) => format!("({} in {})", n.text, expr(e)),
    }
}

fn generator(g: &Generator) -> String {
    let cond = g.cond.as_ref().map_or(String::new(), |c| format!(" if {}", expr(c)));
    format!("(for {} in {}{cond})", g.name.text, expr(&g.over))
}
