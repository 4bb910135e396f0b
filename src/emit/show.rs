//! A declaration, evaluated, as rows of text.

use super::decoder;
use crate::diagnostics::Sink;
use crate::elaborate::{Cluster, library_model};
use crate::eval::{Evaluator, Instance, Num, Record, Truth, Value};
use crate::expr::Graph;
use crate::hir::{DeclId, Program};
use crate::source::{Sources, Span};
use crate::syntax::ast::{Kind, ParamKind};
use crate::units;
use indexmap::IndexSet;
use serde::Serialize;
use std::fmt::Write as _;
use std::rc::Rc;

/// Elements of a list that are written out.
const LISTED: usize = 100;

/// What a declaration is.
#[derive(Clone, Debug, Serialize)]
pub struct Shown {
    /// `parc-show/1`
    schema: &'static str,
    /// `device`, `model`, …
    kind: String,
    /// Its name.
    name: String,
    /// What its comment says.
    docs: Vec<String>,
    /// Where it is declared.
    place: String,
    /// Fields or parts, each with its value as text.
    rows: Vec<(String, String)>,
}

impl Shown {
    /// As text: a heading, the comment, the rows.
    pub fn text(&self) -> String {
        let mut out = format!("{} {}\n", self.kind, self.name).replace(" \n", "\n");
        for line in &self.docs {
            out.push_str(&format!("  {}\n", line.trim()).replace("  \n", "\n"));
        }
        let width = self.rows.iter().map(|(n, _)| n.chars().count()).max().unwrap_or(0);
        if !self.docs.is_empty() {
            out.push('\n');
        }
        for (name, value) in &self.rows {
            out.push_str(format!("  {name:<width$}  {value}").trim_end());
            out.push('\n');
        }
        if !self.place.is_empty() {
            let _ = writeln!(out, "\n  declared in {}", self.place);
        }
        // Strings and comments of a file must not reach a terminal as commands.
        out.replace(|c: char| c.is_control() && c != '\n', "\u{fffd}")
    }

    /// As one JSON object.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}

/// Evaluates `id` and describes it.
pub fn show(program: &Program, sources: &Sources, id: DeclId, span: Span, sink: &mut Sink) -> Option<Shown> {
    let mut graph = Graph::new();
    let mut eval = Evaluator::new(program, &mut graph, sink);
    let value = eval.entry(id, span);
    let base = |kind: &str, name: &str| Shown {
        schema: "parc-show/1",
        kind: kind.into(),
        name: name.into(),
        docs: Vec::new(),
        place: String::new(),
        rows: Vec::new(),
    };
    let mut shown = match &value {
        Value::Error(_) => return None,
        Value::Record(r) => {
            let mut s = base(r.kind, &r.name);
            s.rows = fields(r);
            s
        }
        Value::Instance(i) => {
            let mut s = base(i.decl.kind.keyword(), &i.decl.name.text);
            s.rows = instance(&mut eval, i, span)?;
            s
        }
        Value::Func(f) => {
            let mut s = base("fn", &f.decl.name.text);
            s.rows.push(("source".into(), sources.snippet(f.decl.span).to_string()));
            s
        }
        other => {
            let mut s = base("value", "");
            s.rows.push(("is".into(), text(other)));
            s
        }
    };
    describe(program, sources, id, &value, &mut shown);
    Some(shown)
}

/// The name, comment and place of what the expression names.
fn describe(program: &Program, sources: &Sources, id: DeclId, value: &Value<'_>, shown: &mut Shown) {
    let crate::hir::Entry::Let(l) = program.entry(id) else { return };
    let crate::syntax::ast::LetValue::Is(e) = &l.value else { return };
    let mut head = e;
    while let crate::syntax::ast::ExprKind::Call(f, _) | crate::syntax::ast::ExprKind::With(f, _) = &head.kind {
        head = f;
    }
    if let crate::syntax::ast::ExprKind::Path(path) = &head.kind
        && let Some(name) = path.last()
        && let Some(crate::hir::Binding::Decl(found)) = program.lookup(id.module, &name.text)
    {
        let entry = program.entry(found);
        shown.name = sources.snippet(e.span).to_string();
        shown.docs = entry.docs().iter().map(ToString::to_string).collect();
        let at = entry.name().span;
        let (line, _) = sources.line_col(at);
        shown.place = format!("{}:{line}", sources.file(at.file).name);
        if let Value::Instance(i) = value
            && i.decl.name.text != name.text
        {
            shown.rows.insert(0, (format!("is a {}", i.decl.kind.keyword()), i.decl.name.text.to_string()));
        }
    }
}

fn fields(r: &Record<'_>) -> Vec<(String, String)> {
    r.fields.iter().map(|(n, v)| (n.to_string(), text(v))).collect()
}

fn instance<'p>(eval: &mut Evaluator<'p, '_>, i: &Rc<Instance<'p>>, span: Span) -> Option<Vec<(String, String)>> {
    let params = i.decl.params.as_deref().unwrap_or_default();
    let missing: Vec<_> = params
        .iter()
        .filter(|p| matches!(&p.kind, ParamKind::Value { default: None, .. }) && !i.args.contains_key(&p.name.text))
        .map(|p| p.name.text.to_string())
        .collect();
    let mut rows: Vec<(String, String)> = i.args.iter().map(|(n, (v, _))| (n.to_string(), text(v))).collect();
    if !missing.is_empty() {
        let needs = missing.join(", ");
        let call = missing.iter().map(|m| format!("{m} = …")).collect::<Vec<_>>().join(", ");
        rows.push(("needs".into(), format!("{needs}: `parc show '{}({call})'` shows it whole", i.decl.name.text)));
        return Some(rows);
    }
    match i.decl.kind {
        Kind::Cluster => rows.extend(cluster(&Cluster::new(eval, i, span)?)),
        Kind::Model => {
            let ops = library_model(eval, i)?;
            let graph = &*eval.graph;
            rows.push(("parameters".into(), separated(decoder::params(&ops, graph))));
            let active = ops.params_active(graph, &|_| true);
            if active != decoder::params(&ops, graph) {
                rows.push(("active parameters".into(), separated(active)));
            }
            let cached = ops.cached(graph);
            if cached > 0 {
                rows.push(("cache of a token".into(), format!("{} B in bf16", separated(2 * cached))));
            }
            for (u, unit) in ops.units.iter().enumerate() {
                let one = decoder::unit_params(&ops, graph, u as u32);
                let all = one.saturating_mul(unit.count as u64);
                let each =
                    if unit.repeated { format!("  = {} x {}", unit.count, separated(one)) } else { String::new() };
                rows.push((format!("  {}", unit.name), format!("{:>15}{each}", separated(all))));
                for (path, n) in regions(&ops, graph, u as u32) {
                    rows.push((
                        format!("    {path}"),
                        format!("{:>15}{}", separated(n), if unit.repeated { "  each" } else { "" }),
                    ));
                }
            }
            let dims: IndexSet<_> = ops
                .dims
                .iter()
                .filter(|d| d.data.is_none() && d.slots.is_none())
                .map(|d| format!("{} = {}", d.name, graph.as_int(d.true_extent).unwrap_or(0)))
                .collect();
            rows.push(("dimensions".into(), dims.into_iter().collect::<Vec<_>>().join(", ")));
        }
        _ => {}
    }
    Some(rows)
}

/// Parameters of the regions of one unit, below the unit itself.
fn regions(ops: &crate::graph::OpGraph, graph: &Graph, unit: u32) -> Vec<(String, u64)> {
    let mut out: Vec<(String, u64)> = Vec::new();
    for p in ops.params.iter().filter(|p| p.unit == unit) {
        let value = ops.value(p.value);
        let n = ops.elements(graph, &value.dims);
        let path = p.path.rsplit_once('.').map_or("", |(region, _)| region);
        let below = path.split_once('.').map_or("", |(_, rest)| rest);
        let first = below.split('.').next().unwrap_or_default();
        if first.is_empty() {
            continue;
        }
        match out.iter_mut().find(|(name, _)| name == first) {
            Some((_, sum)) => *sum = sum.saturating_add(n),
            None => out.push((first.to_string(), n)),
        }
    }
    out
}

fn cluster(c: &Cluster<'_>) -> Vec<(String, String)> {
    let mut rows = vec![("devices".to_string(), format!("{} x {}", separated(c.devices as u64), c.device.name))];
    for l in c.levels.iter().rev() {
        let each = units::show(l.child_bandwidth(), &units::Unit::bandwidth());
        let links = if l.links > 1 { format!("{} x {}", l.links, l.link.name) } else { l.link.name.to_string() };
        let reduction = if l.in_network { ", sums in the network" } else { "" };
        rows.push((
            format!("level {}", l.name),
            format!("{} children over {links} ({each} each way, {}){reduction}", l.children, l.topology.word()),
        ));
    }
    rows
}

fn separated(n: u64) -> String {
    units::show(n as f64, &units::Unit::none())
}

/// A value as a user would write it.
fn text(v: &Value<'_>) -> String {
    match v {
        Value::Num(q) => match q.num {
            Num::Int(n) => units::show(n as f64, &q.unit),
            Num::Real(x) => units::show(x, &q.unit),
            Num::Sym(_) => "depends on the layout".into(),
        },
        Value::Bool(Truth::Known(b)) => b.to_string(),
        Value::Bool(Truth::Sym(_)) => "depends on the layout".into(),
        Value::Str(s) => format!("\"{s}\""),
        Value::List(l) => {
            let more = if l.len() > LISTED { format!(", … {} in all", l.len()) } else { String::new() };
            format!("[{}{more}]", l.iter().take(LISTED).map(text).collect::<Vec<_>>().join(", "))
        }
        Value::Record(r) if r.kind.is_empty() => {
            let fields: Vec<_> = r.fields.iter().map(|(n, v)| format!("{n} = {}", text(v))).collect();
            format!("{{ {} }}", fields.join(", "))
        }
        Value::Record(r) => r.name.to_string(),
        Value::Instance(i) => i.decl.name.text.to_string(),
        Value::Func(_) => "fn".into(),
        Value::Word(w) => w.name.to_string(),
        Value::Links { count, link } => match count {
            Num::Int(n) => format!("{n} * {}", link.name),
            Num::Real(_) | Num::Sym(_) => link.name.to_string(),
        },
        Value::Op(x, y) => {
            let one = |op: &crate::eval::ScheduleOp| format!("{}({}, {})", op.kind, op.microbatch, op.chunk);
            y.map_or_else(|| one(x), |y| format!("Both({}, {})", one(x), one(&y)))
        }
        Value::Range(a, b) => format!("{a}..{b}"),
        Value::Hole(_) => "?".into(),
        Value::Error(_) => "an error".into(),
    }
}
