//! Wording of what is wrong with the devices of a layout: its parts, and hosts that are not there.

use super::super::cluster::Devices;
use super::super::layout::Part;
use crate::diagnostics::{Applicability, Code, Diagnostic};
use crate::source::Span;
use crate::syntax::ast::{Expr, ExprKind, Index, Number};

/// A mesh beside parts that have their own.
pub(in crate::elaborate) fn mesh_and_parts(mesh: Span, part: Option<Span>) -> Diagnostic {
    let d = Diagnostic::new(
        Code::PartsWrong,
        "a layout of parts has a mesh in each part, none of its own",
        mesh,
        "not here",
    );
    match part {
        Some(at) => d.label(at, "a part with devices of its own"),
        None => d,
    }
}

/// Two parts share some devices, but not all.
pub(in crate::elaborate) fn parts_overlap((a, b): (&Part<'_>, &Part<'_>), common: &Devices) -> Diagnostic {
    let (first, second) = (&a.name.text, &b.name.text);
    let shared = common.count();
    let message =
        format!("parts `{first}` and `{second}` share {shared} devices, but not all: they must be equal or disjoint");
    let mut d = Diagnostic::new(Code::PartsWrong, message, b.on.span, format!("devices of `{second}`"))
        .label(a.on.span, format!("devices of `{first}`"))
        .note("parts on equal devices take turns, parts on disjoint ones run at the same time");
    if let (Some((level, x)), Some((other, y))) = (instances(a.on), instances(b.on))
        && level == other
    {
        let (from, to) = (x.0.max(y.0), x.1.min(y.1));
        let list: Vec<_> = (from..to).map(|n| format!("{level}[{n}]")).take(8).collect();
        d = d.note(format!("both have {}", list.join(", ")));
        for (range, this, name) in [(x.2, x, first), (y.2, y, second)] {
            // What is left of it without the instances in common, where these are at one of its ends.
            let left = match (this.0 < from, to < this.1) {
                (true, false) => format!("{}..{from}", this.0),
                (false, true) => format!("{to}..{}", this.1),
                (true, true) | (false, false) => continue,
            };
            d = d.edits(format!("give `{name}` `{level}[{left}]`"), vec![(range, left)]);
        }
    }
    d
}

/// `cluster.node[0..2]`: the level, the instances and where these are written.
fn instances(on: &Expr) -> Option<(&str, (i128, i128, Span))> {
    let ExprKind::Index(base, list) = &on.kind else { return None };
    let (ExprKind::Field(_, level), [Index::Expr(range)]) = (&base.kind, &list[..]) else { return None };
    let ExprKind::Range(from, to) = &range.kind else { return None };
    let number = |e: &Expr| match &e.kind {
        ExprKind::Number { value: Number::Int(n), unit: None } => Some(*n),
        _ => None,
    };
    Some((&level.text, (number(from)?, number(to)?, range.span)))
}

/// Some of the model is in no part.
pub(in crate::elaborate) fn uncovered(missing: &[String], last: &Part<'_>) -> Diagnostic {
    let list = missing.iter().map(|m| format!("`{m}`")).collect::<Vec<_>>().join(", ");
    let is = if missing.len() == 1 { "is" } else { "are" };
    let spans: Vec<Span> = last.selectors.iter().map(|(_, s)| *s).collect();
    let (first, end) = match (spans.first(), spans.last()) {
        (Some(first), Some(end)) => (*first, *end),
        _ => (last.span, last.span),
    };
    let d =
        Diagnostic::new(Code::PartsWrong, format!("{list} {is} in no part"), first.to(end), "covered by the last part")
            .note("the parts of a layout cover the model exactly once");
    let names = missing.join(", ");
    let after = Span { start: end.end, ..end };
    let title = format!("add {list} to `{}`", last.name.text);
    match spans.len() {
        0 => d,
        1 => {
            let before = Span { end: first.start, ..first };
            d.edits(title, vec![(before, "[".into()), (after, format!(", {names}]"))])
        }
        _ => d.fix(title, after, format!(", {names}"), Applicability::Unsure),
    }
}

/// Some of the model is in two parts.
pub(in crate::elaborate) fn covered_twice(what: &str, first: &str, second: &str, at: Span) -> Diagnostic {
    Diagnostic::new(Code::PartsWrong, format!("`{what}` is in parts `{first}` and `{second}`"), at, "covers it again")
        .note("the parts of a layout cover the model exactly once")
}

/// Something rests or runs on a host, and the cluster has none.
pub(in crate::elaborate) fn host_missing(cluster: &str, span: Span) -> Diagnostic {
    Diagnostic::new(Code::FieldMissing, format!("no level of `{cluster}` has a host"), span, "needs one")
        .note("a host says how much memory a node has, how fast its processors are and what links lead to its devices")
        .help("write `host = Xeon_2TB`, or a host of your own, in the block of the level that is a node")
}
