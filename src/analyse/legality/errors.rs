//! Wording of what is wrong with a mesh, a batch or what is split over axes: numbers included.

use crate::diagnostics::{Applicability, Code, Diagnostic};
use crate::source::Span;

pub(super) fn zigzag(sequence: i64, ranks: i64, axes: &str, span: Span) -> Diagnostic {
    let blocks = ranks.saturating_mul(2);
    let below = sequence / blocks * blocks;
    let legal: Vec<_> = [below, below.saturating_add(blocks)].into_iter().filter(|n| *n > 0).collect();
    let legal = legal.iter().map(|n| format!("{n} tok")).collect::<Vec<_>>().join(" and ");
    Diagnostic::new(
        Code::Indivisible,
        format!("{sequence} tokens do not divide into two blocks a rank over {axes}"),
        span,
        format!("cuts a sequence into {blocks} blocks"),
    )
    .note("`zigzag` gives each rank one block from each end of the sequence")
    .help(format!("{legal} would divide"))
}

pub(super) fn indivisible(
    dims: &[(String, i64)],
    axes: &str,
    product: i64,
    legal: &[i64],
    axis: &str,
    place: Span,
    rule: Span,
) -> Diagnostic {
    let (name, extent) = &dims[0];
    let mut d = Diagnostic::new(
        Code::Indivisible,
        format!("{name} = {extent} does not divide over {axes}"),
        place,
        format!("{extent} / {product} = {:.2}", *extent as f64 / product as f64),
    );
    if rule != place {
        d = d.label(rule, format!("gives {name} to this axis"));
    }
    for (other, n) in &dims[1..] {
        d = d.note(format!("{other} = {n} does not either: {n} / {product} = {:.2}", *n as f64 / product as f64));
    }
    if legal.is_empty() {
        d
    } else {
        let all = legal.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        d.help(format!("{axis} may be {all}"))
    }
}

/// A batch split equally over devices of several kinds; `open`: whether the rule at `span` has no block yet.
pub(super) fn equal_shares(kinds: &[&str], span: Span, open: bool) -> Diagnostic {
    let list = kinds.iter().map(|k| format!("`{k}`")).collect::<Vec<_>>();
    let list = list.split_last().map_or_else(String::new, |(last, rest)| format!("{} and {last}", rest.join(", ")));
    let d = Diagnostic::new(
        Code::SharesEqual,
        format!("{list} get equal shares of the batch"),
        span,
        "every rank gets as many sequences",
    )
    .note("at each update the faster devices wait for the slower")
    .help("`share = balanced` gives each as many as it can do in the same time");
    if open {
        let end = Span { start: span.end, ..span };
        d.fix("add `{ share = balanced }`", end, " { share = balanced }", Applicability::Unsure)
    } else {
        d
    }
}

/// A rule none of whose dimensions `model` has; `line` is the item with the line it fills.
pub(super) fn rule_idle(rule: Span, line: Span, dims: &[String], known: &[&str], model: &str) -> Diagnostic {
    let meant = dims.iter().find_map(|d| known.iter().find(|k| k.eq_ignore_ascii_case(d)));
    let list = dims.iter().map(|d| format!("`{d}`")).collect::<Vec<_>>().join(" or ");
    let d = Diagnostic::new(
        Code::RuleIdle,
        format!("this rule does nothing: no tensor of `{model}` has {list}"),
        rule,
        "shards nothing",
    );
    match meant {
        Some(name) => d.help(format!("`{name}` exists")),
        None => d.fix("remove the rule", line, "", Applicability::Unsure),
    }
}

/// Offers to say that key heads are grouped, so that one may lie on several ranks; `end` is where their extent ends.
pub(super) fn offer_grouping(d: Diagnostic, name: &str, extent: i64, of: &str, end: Span) -> Diagnostic {
    d.note(format!("`{name} = … for {of}` also lets one of the {extent} lie on several ranks")).fix(
        format!("declare `{name} = {extent} for {of}`"),
        end,
        format!(" for {of}"),
        Applicability::Unsure,
    )
}

/// A sequence that does not divide over the axes that split it.
pub(super) fn length(
    (name, extent): (&str, i64),
    axes: &str,
    product: i64,
    (field, at): (&str, Span),
    rule: Span,
) -> Diagnostic {
    let below = extent / product * product;
    let near: Vec<i64> = [below, below + product].into_iter().filter(|n| *n > 0).collect();
    let list = near.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ");
    let d = Diagnostic::new(
        Code::Indivisible,
        format!("{name} = {extent} does not divide over {axes}"),
        at,
        format!("{extent} / {product} = {:.2}", extent as f64 / product as f64),
    )
    .label(rule, format!("splits {name}"))
    .help(format!("{list} tokens would do"));
    near.iter()
        .fold(d, |d, n| d.fix(format!("write `{field} = {n} tok`"), at, format!("{n} tok"), Applicability::Unsure))
}

/// Offers to pad a table's rows, such as a vocabulary, to what divides.
pub(super) fn offer_pad(
    d: Diagnostic,
    name: &str,
    extent: i64,
    axes: &[String],
    product: i64,
    rule: Span,
) -> Diagnostic {
    let tile = 128 * product;
    let padded = (extent + tile - 1) / tile * tile;
    let item = format!("pad {name} = 128 * {}", axes.join(" * "));
    let end = Span { start: rule.end, ..rule };
    d.help(format!("`{item}` makes {name} {padded}: {} unused rows", padded - extent)).fix(
        format!("add `{item}`"),
        end,
        format!("\n  {item}"),
        Applicability::Unsure,
    )
}

pub(super) fn mesh(
    axes: &str,
    sizes: &str,
    product: i64,
    devices: i64,
    span: Span,
    help: Option<String>,
) -> Diagnostic {
    let what = if product < devices {
        format!("leaves {} of {devices} devices idle", devices - product)
    } else {
        format!("needs {product} devices, there are {devices}")
    };
    let d = Diagnostic::new(
        Code::MeshProduct,
        format!("the mesh {axes} = {sizes} = {product} {what}"),
        span,
        format!("{product} ranks"),
    )
    .note(format!("the axes of a mesh must multiply to the devices of the job, {devices}"));
    match help {
        Some(h) => d.help(h),
        None => d,
    }
}

pub(super) fn division(a: i64, b: i64, text: &str, span: Span, factors: &str) -> Diagnostic {
    let d = Diagnostic::new(
        Code::InexactDivision,
        format!("`{text}` is not a whole number: {a} does not divide by {b}"),
        span,
        format!("{a} / {b} = {:.2}", a as f64 / b as f64),
    );
    if factors.is_empty() { d } else { d.note(format!("here {factors}")) }
}

/// [`division`] at the parameter one would change: `listed` are the factors of `b`, `legal` values of the parameter.
pub(super) fn division_by_parameter(
    a: i64,
    b: i64,
    listed: &[String],
    name: &str,
    at: Span,
    legal: &[i64],
) -> Diagnostic {
    let d = Diagnostic::new(
        Code::InexactDivision,
        format!("{a} does not divide by {b}"),
        at,
        format!("{a} / {b} = {:.2}", a as f64 / b as f64),
    );
    let d = if listed.len() > 1 { d.note(format!("here {}", listed.join(", "))) } else { d };
    if legal.is_empty() {
        return d;
    }
    let list = legal.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    d.help(format!("{name} may be {list}"))
}

pub(super) fn place(axis: &str, size: i64, stride: i64, level: &str, devices: i64, span: Span) -> Diagnostic {
    let reach = size * stride;
    let message = if reach > devices {
        format!("a group of {axis} does not fit in one {level}")
    } else {
        format!("groups of {axis} straddle two instances of {level}")
    };
    Diagnostic::new(Code::PlaceSpans, message, span, format!("{axis} must lie inside one {level}"))
        .note(format!("{axis} = {size} at stride {stride} reaches over {reach} devices, a {level} has {devices}"))
        .help(if stride > 1 && size <= devices {
            "the last axis of a mesh has stride 1".to_string()
        } else {
            format!("{axis} may be at most {}", (devices / stride).max(1))
        })
}

/// The ranks of axes do not fill lines of a torus.
pub(super) fn along(axes: &[(&str, i64)], along: &[String], devices: i64, span: Span) -> Diagnostic {
    let names = axes.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" × ");
    let sizes = axes.iter().map(|(_, n)| n.to_string()).collect::<Vec<_>>().join(" × ");
    let ranks: i64 = axes.iter().map(|(_, n)| n).product();
    let lines = along.join(" × ");
    let message = if ranks > devices {
        format!("a group of {names} does not fit along {lines}")
    } else {
        format!("groups of {names} do not fill {lines} evenly")
    };
    Diagnostic::new(Code::PlaceSpans, message, span, format!("{names} must divide {devices} devices"))
        .note(format!("{names} = {sizes}{}, there are {devices} devices along {lines}", product(axes.len(), ranks)))
}

/// ` = 32` after the factors of a product; nothing after a single number.
fn product(factors: usize, product: i64) -> String {
    if factors > 1 { format!(" = {product}") } else { String::new() }
}

pub(super) fn batch(
    batch: i64,
    micro: i64,
    replicas: i64,
    legal: &[i64],
    span: Span,
    micro_span: Option<Span>,
) -> Diagnostic {
    let all = micro * replicas;
    let near: Vec<_> = legal.iter().map(ToString::to_string).collect();
    let mut d = Diagnostic::new(
        Code::BatchIndivisible,
        format!("{batch} sequences are not a whole number of microbatches of {all}"),
        span,
        format!("{batch} / {all} = {:.2}", batch as f64 / all as f64),
    )
    .note(format!(
        "a microbatch is {micro} seq on each of {replicas} ranks that shard the batch: {micro} × {replicas} = {all}"
    ));
    if !near.is_empty() {
        d = d.help(format!("a batch of {} would be", near.join(" or ")));
    }
    for n in legal {
        d = d.fix(format!("write `batch = {n} seq`"), span, format!("{n} seq"), Applicability::Unsure);
    }
    let smaller = (1..micro.min(65_536)).rev().find(|v| batch % (v * replicas) == 0);
    match (smaller, micro_span) {
        (Some(v), Some(at)) => {
            d.fix(format!("write `micro_batch = {v} seq`"), at, format!("{v} seq"), Applicability::Unsure)
        }
        _ => d,
    }
}

/// A mesh axis of `ranks` ranks that nothing speaks of.
///
/// `meant` is an item that would use it, and the mesh it would stand below.
pub(super) fn axis_idle(axis: Span, name: &str, ranks: i64, meant: Option<(String, Span)>) -> Diagnostic {
    let message = format!("mesh axis `{name}` does nothing: nothing is split over it");
    let d = Diagnostic::new(Code::AxisIdle, message, axis, "named by no `shard`, `store` or `pipeline`")
        .note(format!("its {ranks} ranks do the same work on the same data"));
    match meant {
        Some((item, mesh)) => d.help(format!("`{item}` uses it")).fix(
            format!("add `{item}`"),
            Span { start: mesh.end, ..mesh },
            format!("\n  {item}"),
            Applicability::Unsure,
        ),
        None => d,
    }
}

/// The axes of a fold do not multiply to those they are read from.
pub(super) fn fold_product(from: &[(String, i64)], to: &[(String, i64)], span: Span) -> Diagnostic {
    let product = |list: &[(String, i64)]| list.iter().fold(1_i64, |a, (_, n)| a.saturating_mul(*n));
    let text = |list: &[(String, i64)]| {
        let names = list.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(" × ");
        let sizes = list.iter().map(|(_, n)| n.to_string()).collect::<Vec<_>>().join(" × ");
        if list.len() == 1 { format!("{names} = {sizes}") } else { format!("{names} = {sizes} = {}", product(list)) }
    };
    let message = format!("the fold reads {} as {}", text(from), text(to));
    Diagnostic::new(Code::MeshProduct, message, span, format!("{} ranks and {}", product(from), product(to)))
        .note("a fold names the same ranks anew: both sides multiply to the same number")
        .help("one of the new axes may be `rest`")
}

/// A new axis of a fold begins where no axis of the mesh can be cut: `begins` is that axis and its stride, `mesh` the
/// axis of the mesh there and its stride, `changed` the axis inside it, whose size decides.
pub(super) fn nest(
    (changed, size): (&str, i64),
    (begins, stride): (&str, i64),
    (mesh, mesh_stride): (&str, i64),
    legal: &[i64],
    span: Span,
) -> Diagnostic {
    let message = format!("`{changed}` = {size} does not nest in the mesh: strides {mesh_stride} and {stride}");
    let d = Diagnostic::new(Code::AxesNest, message, span, format!("`{begins}` then steps over {stride} ranks"))
        .note(format!(
            "`{mesh}` steps over {mesh_stride} ranks, `{begins}` over {stride}: one must divide the other, so that both \
             are made of whole pieces of the mesh"
        ));
    let list = legal.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if list.is_empty() { d } else { d.help(format!("`{changed}` may be {list}")) }
}
