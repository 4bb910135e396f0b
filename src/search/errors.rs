//! Wording of what goes wrong with open choices.

use super::Axis;
use crate::analyse::rules::Rule;
use crate::diagnostics::{Applicability, Code, Diagnostic};
use crate::limits;
use crate::source::Span;
use std::fmt::Write;

/// More points than a search goes through.
pub(super) fn too_large(points: u128, axes: &[&Axis]) -> Diagnostic {
    let mut largest: Vec<&Axis> = axes.to_vec();
    largest.sort_by_key(|a| std::cmp::Reverse(a.len()));
    largest.dedup_by_key(|a| a.span);
    let most = largest.first().map_or(0, |a| a.len());
    // All that are within a factor of ten of the largest.
    largest.retain(|a| a.len() * 10 > most && a.len() > 1);
    largest.truncate(8);
    largest.sort_by_key(|a| (a.span.file, a.span.start));
    let limit = grouped(u128::from(limits::SEARCH_POINTS));
    let product = axes.iter().filter(|a| a.len() > 1).map(|a| a.len().to_string()).collect::<Vec<_>>();
    let message = format!("a search over {} points, the limit is {limit}", grouped(points));
    let label = |a: &Axis| format!("`{}` has {} values", a.name, a.len());
    let span = largest.first().map_or(Span::NOWHERE, |a| a.span);
    let first = largest.first().map(|a| label(a)).unwrap_or_default();
    let d = Diagnostic::new(Code::LimitExceeded, message, span, first)
        .note(format!("{} points", product.join(" × ")))
        .help("narrow the largest domains, or settle one with `--set`");
    largest.iter().skip(1).fold(d, |d, a| d.label(a.span, label(a)))
}

/// More combinations of choices that are not whole numbers than a search builds.
pub(super) fn too_many_shapes(name: &str, span: Span) -> Diagnostic {
    Diagnostic::over_limit(
        &format!("values of `{name}` that are not whole numbers"),
        "more",
        limits::SEARCH_SHAPES,
        span,
    )
}

/// Open choices and nothing that says which value is best.
pub(super) fn no_objective(open: &[(String, Span)], end: Span, indent: &str) -> Diagnostic {
    let names: Vec<_> = open.iter().map(|(n, _)| format!("`{n}`")).collect();
    let (first, span) = open.first().cloned().unwrap_or((String::new(), Span::NOWHERE));
    let message = match &names[..] {
        [one] => format!("{one} is open and nothing says which value is best"),
        _ => format!("{} are open and nothing says which values are best", names.join(", ")),
    };
    let d = Diagnostic::new(Code::HolesOpen, message, span, format!("`{first}` has no value yet"));
    let d = open.iter().skip(1).fold(d, |d, (name, at)| d.label(*at, format!("nor has `{name}`")));
    d.help("say what is best, as `minimize step_time`, or give a value with `--set`").fix(
        "add `minimize step_time`",
        end,
        format!("\n{indent}minimize step_time"),
        Applicability::Unsure,
    )
}

/// No point obeys every rule: `set` is the smallest set of rules that some point of the space always breaks.
pub(super) fn nothing_legal(set: &[Rule], points: u64, notes: Vec<String>) -> Diagnostic {
    let (message, label) = match set {
        [one] => (format!("no point of the search obeys this: {}", one.name), "every point breaks it".to_string()),
        _ => (
            format!("no point of the search obeys these {} at once", set.len()),
            "together with the others this leaves nothing".to_string(),
        ),
    };
    let span = set.first().map_or(Span::NOWHERE, |r| r.span);
    let d = Diagnostic::new(Code::SearchEmpty, message, span, label);
    let d = set.iter().skip(1).fold(d, |d, r| d.label(r.span, "and this"));
    let d = notes.into_iter().fold(d, Diagnostic::note);
    let names: Vec<_> = set.iter().map(|r| r.name.clone()).collect();
    let d = if set.len() > 1 { d.note(format!("in conflict: {}", names.join(", "))) } else { d };
    d.note(format!("{} points looked at", grouped(u128::from(points))))
}

/// None of the sizes of a microbatch divides what a rank gets.
pub(super) fn micro_batches(sizes: &[i64], batch: i64, ranks: i64, span: Span) -> Diagnostic {
    let each = batch / ranks.max(1);
    let listed = sizes.iter().take(12).map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let message = format!("none of {listed} divides the {each} sequences a rank gets");
    let d = Diagnostic::new(Code::SearchEmpty, message, span, format!("no divisor of {each}"));
    let d = if ranks > 1 {
        d.note(format!("{batch} sequences over {ranks} ranks that shard the batch are {each} each"))
    } else {
        d.note(format!("the batch is {batch} sequences"))
    };
    let legal: Vec<_> = (1..=each).filter(|n| each % n == 0).take(sizes.len()).map(|n| format!("{n} seq")).collect();
    let text = format!("{{{}}}", legal.join(", "));
    d.fix(format!("write `{text}`"), span, text, Applicability::Unsure)
}

/// An evaluator of a job whose choices shape several graphs.
pub(super) fn evaluator_of_one_graph(open: &[(String, Span)]) -> Diagnostic {
    let (first, span) = open.first().cloned().unwrap_or((String::new(), Span::NOWHERE));
    let message = "an evaluator is of one graph, and choices that are no whole numbers shape several";
    let names: Vec<_> = open.iter().map(|(n, _)| format!("`{n}`")).collect();
    Diagnostic::new(Code::HolesOpen, message, span, format!("`{first}` has no value yet"))
        .note(format!("open: {}", names.join(", ")))
        .help("settle those that are no whole numbers with `--set`")
}

/// An evaluator of a job without a legal point.
pub(super) fn evaluator_empty(span: Span) -> Diagnostic {
    let message = "no point of this job obeys every rule, so no schedule was run";
    Diagnostic::new(Code::SearchEmpty, message, span, "this job").help("`parc search` says which rules are in the way")
}

/// `1_234_567` as `1,234,567`.
pub fn grouped(n: u128) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            let _ = out.write_char(',');
        }
        let _ = out.write_char(c);
    }
    out
}
