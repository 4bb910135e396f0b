//! Wording of what goes wrong with clusters, their levels and selections of them.

use crate::diagnostics::{Applicability, Code, Diagnostic, nearest};
use crate::source::Span;
use crate::syntax::ast::Name;
use crate::units::{Unit, show};

pub(super) use super::super::errors::missing_argument;
pub(super) use crate::eval::errors::torus_sizes;

pub(super) fn count_range(what: &str, found: i128, span: Span) -> Diagnostic {
    Diagnostic::new(
        Code::OutOfRange,
        format!("`{what}` has {found} children"),
        span,
        "must be at least 1 and at most 2^40",
    )
}

pub(super) fn count_kind(what: &str, noun: &str, span: Span) -> Diagnostic {
    Diagnostic::new(
        Code::KindMismatch,
        format!("the number of children of `{what}` needs a known whole number, not {noun}"),
        span,
        format!("this is {noun}"),
    )
}

pub(super) fn level_child(noun: &str, span: Span) -> Diagnostic {
    Diagnostic::new(
        Code::ClusterShape,
        format!("a level consists of devices or of the level before it, not of {noun}"),
        span,
        format!("this is {noun}"),
    )
}

pub(super) fn level_over(noun: &str, span: Span) -> Diagnostic {
    Diagnostic::new(
        Code::ClusterShape,
        format!("a level is joined by links, not by {noun}"),
        span,
        format!("this is {noun}"),
    )
    .help("write `over NVLink4`, or `over 8 * IB_NDR` for eight links from each child")
}

pub(super) fn link_shared(link: &str, below: i64, bandwidth: f64, span: Span) -> Diagnostic {
    let all = show(bandwidth, &Unit::bandwidth());
    let each = show(bandwidth / below as f64, &Unit::bandwidth());
    Diagnostic::new(
        Code::LinkShared,
        format!("all {below} devices below share one `{link}`"),
        span,
        format!("one link of {all} for each child"),
    )
    .note(format!("{all} over {below} devices leaves {each} each"))
    .fix(
        format!("`{below} * {link}` gives each device its own"),
        span,
        format!("{below} * {link}"),
        Applicability::Unsure,
    )
    .fix(format!("`1 * {link}` says that one is meant"), span, format!("1 * {link}"), Applicability::Unsure)
}

pub(super) fn cluster_limit(devices: i128, levels: usize, span: Span) -> Diagnostic {
    Diagnostic::new(
        Code::LimitExceeded,
        format!("{devices} devices in {levels} levels exceed the limit of 2^40 devices and 16 levels"),
        span,
        "passes the limit here",
    )
}

pub(super) fn cluster_empty(name: &Name) -> Diagnostic {
    Diagnostic::new(
        Code::ClusterShape,
        format!("cluster `{}` has no devices", name.text),
        name.span,
        "no level with a device",
    )
    .help("write `level node = 8 of H100_SXM over NVLink4`")
}

/// `without` leaves nothing of the `devices` there were.
pub(super) fn all_dead(name: &Name, devices: i64, spans: &[Span]) -> Diagnostic {
    let (first, more) = spans.split_first().map_or((name.span, &[][..]), |(f, m)| (*f, m));
    let message = format!("`without` takes out all {devices} devices of cluster `{}`", name.text);
    let d = Diagnostic::new(Code::ClusterShape, message, first, "nothing is left");
    more.iter().fold(d, |d, span| d.label(*span, "and here"))
}

pub(super) fn level_field(name: &str, noun: &str, span: Span) -> Diagnostic {
    Diagnostic::new(
        Code::KindMismatch,
        format!("`{name}` of a level cannot be {noun}"),
        span,
        format!("this is {noun}"),
    )
}

/// Topologies of the language, for messages.
const TOPOLOGIES: &str = "`switch`, `ring`, `torus(x, y, …)`, `mesh2d`, `fat_tree(rails, oversubscription)`, `rail`, \
                          `dragonfly(global_links)`, `all_to_all`, `graph(links)`, `host_bridge` and `wan`";

pub(super) fn topology_unknown(word: &str, span: Span) -> Diagnostic {
    Diagnostic::new(Code::ClusterShape, format!("`{word}` is no topology"), span, "not a topology")
        .note(format!("topologies are {TOPOLOGIES}"))
}

pub(super) fn topology_argument(word: &str, known: &[&str], span: Span) -> Diagnostic {
    let d = Diagnostic::new(
        Code::ArgumentWrong,
        format!("`{word}` is given what it does not take"),
        span,
        "one argument too many, twice or unknown",
    );
    if known.is_empty() {
        return d.note(format!("`{word}` takes no arguments"));
    }
    d.note(format!("it takes {}", known.iter().map(|k| format!("`{k}`")).collect::<Vec<_>>().join(", ")))
}

pub(super) fn topology_count(word: &str, name: &str, noun: &str, span: Span) -> Diagnostic {
    Diagnostic::new(
        Code::KindMismatch,
        format!("`{name}` of `{word}` needs a known whole number of at least 1, not {noun}"),
        span,
        format!("`{name}` is {noun}"),
    )
}

pub(super) fn oversubscribed(span: Span) -> Diagnostic {
    Diagnostic::new(
        Code::OutOfRange,
        "`oversubscription` of `fat_tree` is a number of at least 1",
        span,
        "less than 1, or no number",
    )
    .note("it is the bandwidth below a tier over that above it: 1 is a full fat tree, 2 half of one")
}

pub(super) fn graph_links(children: i64, span: Span) -> Diagnostic {
    Diagnostic::new(
        Code::ClusterShape,
        format!("`links` of `graph` is no table of links between {children} children"),
        span,
        format!("needs {children} rows of {children} counts"),
    )
    .note(
        "row i, column j is the number of links between children i and j: the same both ways, 0 from a child to itself",
    )
}

pub(super) fn cluster_requires(name: &str, message: Option<&str>, span: Span) -> Diagnostic {
    let d = Diagnostic::new(
        Code::OutOfRange,
        format!("cluster `{name}` does not hold what it requires"),
        span,
        "does not hold",
    );
    match message {
        Some(text) => d.note(text.to_string()),
        None => d,
    }
}

pub(super) fn selection_limit(limit: usize, span: Span) -> Diagnostic {
    Diagnostic::new(
        Code::LimitExceeded,
        format!("this selects more than {limit} separate pieces of the cluster"),
        span,
        "too many pieces",
    )
}

pub(super) fn selection_form(example: &str, span: Span) -> Diagnostic {
    Diagnostic::new(Code::KindMismatch, "this names no devices", span, "not a part of the cluster")
        .help(format!("name devices by a path through the cluster's levels and labels, such as {example}"))
}

pub(super) fn selection_range(name: &str, count: i64, span: Span) -> Diagnostic {
    Diagnostic::new(
        Code::OutOfRange,
        format!("there is no such `{name}`: there are {count}, counted from 0"),
        span,
        format!("must lie in 0..{count}"),
    )
}

pub(super) fn site_form(span: Span) -> Diagnostic {
    Diagnostic::new(Code::KindMismatch, "an axis cannot be placed on this", span, "not a level or torus direction")
        .help("name a level, such as `cluster.node`, or directions of a torus, such as `[cluster.slice.x, cluster.slice.y]`")
}

pub(super) fn level_unknown(name: &Name, cluster: &str, known: &[String]) -> Diagnostic {
    let listed = known.iter().map(|k| format!("`{k}`")).collect::<Vec<_>>().join(", ");
    let mut d = Diagnostic::new(
        Code::FieldUnknown,
        format!("no level `{}` in the cluster `{cluster}`", name.text),
        name.span,
        "not a level",
    )
    .note(format!("its levels are {listed}, innermost first"));
    let near = nearest(&name.text, known.iter().map(String::as_str)).map(str::to_string);
    let offered: Vec<String> = near.map_or_else(|| known.iter().take(3).cloned().collect(), |n| vec![n]);
    for level in offered {
        d = d.fix(format!("use `{level}`"), name.span, level, Applicability::Unsure);
    }
    d
}

pub(super) fn direction_unknown(name: &Name, level: &str, topology: &str) -> Diagnostic {
    Diagnostic::new(
        Code::FieldUnknown,
        format!("level `{level}` has no direction `{}`", name.text),
        name.span,
        "not a direction",
    )
    .note(format!("only a `torus` has directions, those its sizes name; this is a `{topology}`"))
}
