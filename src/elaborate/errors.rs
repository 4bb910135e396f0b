//! Wording of what goes wrong while a job is elaborated.

mod devices;
mod tensors;

pub(super) use devices::{covered_twice, host_missing, mesh_and_parts, parts_overlap, uncovered};
pub(super) use tensors::{
    block_dim, carried, dim_repeated, dimension_unknown, dims_mismatch, heads_ungrouped, nothing_shared, offer_name,
    operator_use, own_positions, param_from_data, product_unnamed, unknown_tensor, weight_lacks,
};

use crate::diagnostics::{Applicability, Code, Diagnostic, nearest};
use crate::limits;
use crate::source::Span;
use crate::syntax::ast::{self, Name};

pub(super) use crate::eval::errors::not_supported;

pub(super) fn missing_argument(name: &str, of: &Name, span: Span) -> Diagnostic {
    crate::eval::errors::missing_argument(name, &of.text, span, of.span)
}

/// A job that is refused without a word: `begins` is how a bug in parc is told.
pub(crate) fn unexplained(begins: &str, job: &Name) -> Diagnostic {
    Diagnostic::new(Code::NotSupported, format!("{begins} `{}`", job.text), job.span, "this job")
}

pub(crate) fn too_many_microbatches(m: f64, span: Span) -> Diagnostic {
    Diagnostic::new(Code::LimitExceeded, format!("{m} microbatches of a step exceed the limit"), span, "too many")
}

pub(crate) fn open_choice(name: &str, span: Span) -> Diagnostic {
    Diagnostic::new(Code::HolesOpen, format!("`{name}` is still open"), span, "no value yet")
        .note("a plan needs one value for everything; open choices are for a search")
        .help(format!("give a value here, or try one with `--set {name}=…`"))
}

/// `accumulation = 16` in place of the batch.
pub(super) fn batch_follows(name: &str, given: Option<i128>, micro: i128, ranks: i128, span: Span) -> Diagnostic {
    let message = format!("`{name}` follows from `batch`, which is what a job gives");
    let d = Diagnostic::new(Code::FieldUnknown, message, span, "not a field of a `train` job");
    match given.and_then(|n| n.checked_mul(micro)?.checked_mul(ranks)).filter(|n| *n > 0) {
        Some(batch) => d.note(format!("{micro} seq × {ranks} ranks × {} = {batch} seq", given.unwrap_or(0))).fix(
            format!("write `batch = {batch} seq`"),
            span,
            format!("batch = {batch} seq"),
            Applicability::Unsure,
        ),
        None => d.help("write `batch = … seq`, of all ranks and microbatches"),
    }
}

/// A format that contractions are to run in, on a device that has no peak for it.
pub(super) fn no_peak(dtype: &str, device: &str, known: &[String], span: Span) -> Diagnostic {
    let list: Vec<_> = known.iter().map(|k| format!("`{k}`")).collect();
    Diagnostic::new(
        Code::FieldMissing,
        format!("`{device}` has no peak for `{dtype}`"),
        span,
        format!("computes in `{dtype}`"),
    )
    .note(format!("it has peaks for {}", list.join(", ")))
}

/// A hole in the arguments of a model: the layout is searched, the model is given.
pub(super) fn model_open(name: &str, bool: bool, span: Span) -> Diagnostic {
    let message = format!("`{name}` of the model is open");
    let d = Diagnostic::new(Code::HolesOpen, message, span, "this shapes the model")
        .note("a search goes over layouts of one model: its shape is settled before");
    if !bool {
        return d.help(format!("write a value for `{name}`, or a job for each"));
    }
    ["true", "false"].iter().fold(d, |d, v| d.fix(format!("write `{v}`"), span, *v, Applicability::Unsure))
}

pub(super) fn misplaced(what: &str, span: Span) -> Diagnostic {
    Diagnostic::new(Code::ItemMisplaced, format!("this does not belong in {what}"), span, "not an item of it")
}

pub(super) fn repeat_range(name: &str, found: i128, limit: i128, span: Span) -> Diagnostic {
    Diagnostic::new(
        Code::OutOfRange,
        format!("`{name}` is repeated {found} times"),
        span,
        format!("must be at least 0 and at most {limit}"),
    )
}

pub(super) fn format_missing(class: &str, precision: &str, span: Span) -> Diagnostic {
    Diagnostic::new(
        Code::FieldMissing,
        format!("precision `{precision}` gives `{class}` no number format"),
        span,
        format!("`{class}` is missing"),
    )
}

pub(super) fn unknown_axis(name: &Name, known: &[String], mesh: Option<Span>) -> Diagnostic {
    let d =
        Diagnostic::new(Code::AxisUnknown, format!("no mesh axis `{}` exists", name.text), name.span, "not an axis");
    let d = match mesh {
        Some(span) => d.label(span, "the mesh"),
        None => d.note("the layout has no `mesh`"),
    };
    match nearest(&name.text, known.iter().map(String::as_str)) {
        Some(near) => d.offer(near, name.span),
        None => d,
    }
}

pub(super) fn axis_twice(name: &Name, first: Span) -> Diagnostic {
    Diagnostic::new(Code::NameTaken, format!("mesh axis `{}` is declared twice", name.text), name.span, "again here")
        .label(first, "first here")
}

pub(super) fn dim_twice(name: &Name, first: Span) -> Diagnostic {
    Diagnostic::new(Code::NameTaken, format!("dimension `{}` is declared twice", name.text), name.span, "again here")
        .label(first, "first here")
}

pub(super) fn param_twice(name: &Name, path: &str, first: Span) -> Diagnostic {
    let message = format!("parameter `{}` is declared twice", name.text);
    Diagnostic::new(Code::NameTaken, message, name.span, "again here")
        .label(first, "first here")
        .note(format!("its path is `{path}`"))
        .help(format!("write `{path}` to use it again, or put one of the two into a region"))
}

/// A dimension of the data that the job says nothing of.
pub(super) fn extent_missing(dim: &Name, unit: &str, job: Span) -> Diagnostic {
    let name = &dim.text;
    let message = format!("nothing says how many `{unit}` the dimension `{name}` of the data has");
    Diagnostic::new(Code::FieldMissing, message, job, format!("its data has `{name}`"))
        .label(dim.span, "declared here")
        .help(format!("write `dims {{ {name} = … {unit} }}` in the job"))
}

/// `sequence` of a model whose data has no dimension of tokens, or several.
pub(super) fn one_length(model: &Name, dims: &[&Name], tokens: i64, span: Span) -> Diagnostic {
    let list = dims.iter().map(|d| format!("`{}`", d.text)).collect::<Vec<_>>().join(", ");
    let what = match dims.len() {
        0 => format!("`sequence` is a length in tokens, and the data of `{}` has none", model.text),
        n => format!("`sequence` is one length, and the data of `{}` has {n}: {list}", model.text),
    };
    let d = Diagnostic::new(Code::ArgumentWrong, what, span, "one length");
    let d = dims.iter().fold(d, |d, dim| d.label(dim.span, "counts tokens"));
    if dims.is_empty() {
        return d;
    }
    let each = dims.iter().map(|d| format!("{} = {tokens} tok", d.text)).collect::<Vec<_>>().join(", ");
    d.help("say each in `dims`").fix(
        format!("write `dims {{ {each} }}`"),
        span,
        format!("dims {{ {each} }}"),
        Applicability::Unsure,
    )
}

/// A dimension whose length `sequence` and `dims` both give.
pub(super) fn length_twice(dim: &str, sequence: Span, dims: Span) -> Diagnostic {
    let message = format!("the length of `{dim}` is given twice");
    Diagnostic::new(Code::FieldTwice, message, dims, "given again here")
        .label(sequence, "first given here")
        .help("keep one of the two")
}

pub(super) fn ragged_length(
    def: &ast::DimDef,
    found: i64,
    over: &str,
    indices: Option<i64>,
    declared: Span,
) -> Diagnostic {
    let name = &def.name.text;
    let wanted = indices.map_or_else(|| "not known".into(), |n| n.to_string());
    Diagnostic::new(
        Code::OutOfRange,
        format!("`{name}` has {found} extents, one for each index of `{over}` is needed"),
        def.extent.span,
        format!("a list of {found}"),
    )
    .label(declared, format!("`{over}` = {wanted}"))
}

/// Pieces of a dimension that do not make it up.
pub(super) fn pieces(dim: &str, whole: i64, text: &str, numbers: &str, found: i64, span: Span) -> Diagnostic {
    let message = format!("the pieces of `{dim}` do not make it up: {text} = {numbers} = {found}, `{dim}` = {whole}");
    Diagnostic::new(Code::DimensionMismatch, message, span, format!("{found} against {whole}"))
}

pub(super) fn model_limit(values: usize, tried: usize, span: Span) -> Diagnostic {
    let (limit, met) = if values > limits::MODEL_VALUES {
        (limits::MODEL_VALUES, values)
    } else {
        (limits::MODEL_VALUES_TRIED, tried)
    };
    Diagnostic::new(
        Code::LimitExceeded,
        format!("a model of {met} values exceeds the limit of {limit}"),
        span,
        "passes the limit here",
    )
    .note("iterations of a repeat at the top count once while they are equal; inside another repeat each counts")
}

pub(super) fn model_requires(message: Option<&str>, cond: Span, at: Span) -> Diagnostic {
    let text = message.unwrap_or("a requirement of the model does not hold");
    let d = Diagnostic::new(Code::RequireFailed, text, at, "does not hold");
    if at == cond { d } else { d.label(cond, "the requirement") }
}

pub(super) fn whole_layout(what: &str, span: Span) -> Diagnostic {
    let message = format!("`{what}` speaks of all devices and cannot stand in an `in`");
    Diagnostic::new(Code::ItemMisplaced, message, span, "inside an `in`")
}

pub(super) fn too_many_axes(found: usize, span: Span) -> Diagnostic {
    Diagnostic::over_limit("mesh axes after refinement", found, crate::limits::MESH_AXES, span)
}

pub(super) fn pipeline_axis(axis: &str, code: Code, span: Span, declared: Span) -> Diagnostic {
    let message = format!("`{axis}` is the axis of the pipeline and cannot split a tensor too");
    Diagnostic::new(code, message, span, format!("names `{axis}`"))
        .label(declared, "its ranks hold different layers")
        .help(format!("leave `{axis}` out here, or give the mesh another axis"))
}

pub(super) fn mesh_missing(name: &Name) -> Diagnostic {
    Diagnostic::new(Code::FieldMissing, format!("layout `{}` has no `mesh`", name.text), name.span, "a mesh is needed")
        .help("write `mesh [pp, dp, tp]`: the last axis is the fastest")
}

pub(super) fn axis_unsized(name: &Name) -> Diagnostic {
    Diagnostic::new(
        Code::NameUnknown,
        format!("mesh axis `{}` has no size", name.text),
        name.span,
        "no parameter of this name",
    )
    .help(format!("write `{0} = 8`, or declare a parameter `{0}: Int`", name.text))
}

pub(super) fn outside_domain(name: &str, found: &str, allowed: &str, span: Span, domain: Span) -> Diagnostic {
    Diagnostic::new(Code::OutOfRange, format!("`{name}` is {found}, allowed are {allowed}"), span, "outside its domain")
        .label(domain, "the domain")
}

pub(super) fn not_positive(name: &str, found: i128, span: Span) -> Diagnostic {
    if found < 1 {
        let message = format!("`{name}` is {found}, but must be at least 1");
        return Diagnostic::new(Code::OutOfRange, message, span, "below 1");
    }
    Diagnostic::new(Code::OutOfRange, format!("`{name}` is {found}, but must be at most 2^40"), span, "above 2^40")
}

pub(super) fn unknown_class(name: &Name, known: &[&str]) -> Diagnostic {
    let d = Diagnostic::new(
        Code::NameUnknown,
        format!("no class `{}` exists", name.text),
        name.span,
        "not a class of tensors",
    );
    match nearest(&name.text, known.iter().copied()) {
        Some(near) => d.fix(format!("use `{near}`"), name.span, near.to_string(), Applicability::Unsure),
        None => {
            d.note(format!("the classes are {}", known.iter().map(|k| format!("`{k}`")).collect::<Vec<_>>().join(", ")))
        }
    }
}

pub(super) fn wrong_value(what: &str, wanted: &str, noun: &str, span: Span) -> Diagnostic {
    crate::eval::errors::wrong_kind(what, wanted, noun, span)
}

/// A name in `optimize` that is no pass.
pub(super) fn unknown_pass(name: &str, span: Span) -> Diagnostic {
    let known: Vec<_> = crate::layout::Pass::ALL.iter().map(|p| p.name()).collect();
    let message = if name.is_empty() { "this is no pass".into() } else { format!("no pass is called `{name}`") };
    let listed: Vec<_> = known.iter().map(|n| format!("`{n}`")).collect();
    let d = Diagnostic::new(Code::KindMismatch, message, span, "not a pass")
        .note(format!("`optimize` is `none`, `all`, or any of {} in a list", listed.join(", ")));
    match nearest(name, known) {
        Some(near) => d.offer(near, span),
        None => d,
    }
}

pub(super) fn field_missing(name: &str, of: &str, span: Span) -> Diagnostic {
    crate::eval::errors::missing_field(name, of, span)
}

pub(super) fn unknown_parameter_path(path: &str, span: Span, known: &[String]) -> Diagnostic {
    let d = Diagnostic::new(
        Code::NameUnknown,
        format!("no parameter `{path}` was declared before this"),
        span,
        "not a parameter",
    );
    match nearest(path, known.iter().map(String::as_str)) {
        Some(near) => d.fix(format!("use `{near}`"), span, near.to_string(), Applicability::Unsure),
        None => d,
    }
}

/// A grouped dimension whose extent does not divide that of the dimension it groups.
pub(super) fn kv_heads(k: i128, n: i128, def: &ast::DimDef, of: &str, at: Span) -> Diagnostic {
    let name = &def.name.text;
    let d = Diagnostic::new(
        Code::OutOfRange,
        format!("`{name}` = {k} groups `{of}` = {n}, which is not a multiple of it"),
        at,
        format!("{n} / {k} = {:.2}", n as f64 / k as f64),
    );
    let d = if at == def.extent.span { d } else { d.label(def.name.span, format!("`{name}` is declared here")) };
    let legal: Vec<i128> = (1..=n.min(4_096)).filter(|v| n % v == 0).collect();
    let d = d.help(format!("`{name}` may be {}", around(&legal, k)));
    // A power of two first: axes that split heads are.
    let below = || legal.iter().rev().copied().filter(|v| *v < k);
    match below().find(|v| *v > 1 && v.count_ones() == 1).or_else(|| below().next()) {
        Some(v) => d.fix(format!("write `{v}` for `{k}`"), at, v.to_string(), Applicability::Unsure),
        None => d,
    }
}

/// Up to three values of a sorted list on each side of `at`.
fn around(list: &[i128], at: i128) -> String {
    let split = list.partition_point(|v| *v < at);
    let near = &list[split.saturating_sub(3)..(split + 3).min(list.len())];
    near.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// A parameter left to its default `x / y`, which is not whole.
pub(super) fn default_inexact(
    param: &str,
    (x, a): (&str, i128),
    (y, b): (&str, i128),
    at: Span,
    default: Span,
) -> Diagnostic {
    let d = Diagnostic::new(
        Code::InexactDivision,
        format!("`{x}` = {a} does not divide by `{y}` = {b}"),
        at,
        format!("{a} / {b} = {:.2}", a as f64 / b as f64),
    )
    .label(default, format!("the default of `{param}`"));
    // The nearest divisor, and what would make the division unneeded.
    let near = (1..b.min(65_536)).find_map(|step| [b + step, b - step].into_iter().find(|v| *v <= a && a % v == 0));
    let d = d.help(format!("give `{param}` a value, or choose `{y}` so that it divides {a}"));
    match near {
        Some(v) => d.fix(format!("write `{y} = {v}`"), at, v.to_string(), Applicability::Unsure),
        None => d,
    }
}

pub(super) fn set_unknown(name: &str, known: &[String], span: Span) -> Diagnostic {
    let d = Diagnostic::new(Code::NameUnknown, format!("`--set {name}` names nothing in this job"), span, "this job");
    match nearest(name, known.iter().map(String::as_str)) {
        Some(near) => d.help(format!("`{near}` exists")),
        None => d.note(format!("it has {}", known.iter().map(|k| format!("`{k}`")).collect::<Vec<_>>().join(", "))),
    }
}

pub(super) fn loss_missing(model: &Name, span: Span) -> Diagnostic {
    Diagnostic::new(Code::OperatorUse, format!("`{}` has no loss to train on", model.text), span, "trained here")
        .label(model.span, "no `cross_entropy` in it")
        .help("end the model with `loss = cross_entropy(logits, over = V)`")
}

/// `free`: those of `known` that the item does not name already.
pub(super) fn value_unknown(name: &str, span: Span, known: &[String], free: &[&str]) -> Diagnostic {
    let message = format!("no value `{name}` is computed here");
    let list = known.iter().take(10).map(|k| format!("`{k}`")).collect::<Vec<_>>().join(", ");
    let d = Diagnostic::new(Code::NothingSelected, message, span, "matches nothing");
    let d = if known.is_empty() { d } else { d.note(format!("its values are {list}")) };
    // `values` of `[q, k, v]`: the only one left that begins like it.
    let begins: Vec<&str> = free.iter().copied().filter(|k| name.starts_with(k) || k.starts_with(name)).collect();
    let begins = begins.first().copied().filter(|_| begins.len() == 1);
    match nearest(name, free.iter().copied()).or(begins) {
        Some(near) => d.offer(near, span),
        None => d,
    }
}

/// A selector that reaches no region, and the one it was meant to be.
pub(super) fn nothing_selected(selector: &str, span: Span, near: Option<&str>, known: &[String]) -> Diagnostic {
    let d = Diagnostic::new(
        Code::NothingSelected,
        format!("`{selector}` matches nothing in the model"),
        span,
        "matches nothing",
    );
    match near {
        Some(near) => d.offer(near, span),
        None => d.note(format!(
            "its regions are {}",
            known.iter().take(10).map(|k| format!("`{k}`")).collect::<Vec<_>>().join(", ")
        )),
    }
}

/// `device` where the cluster has several kinds.
pub(super) fn several_devices(word: &str, cluster: &str, kinds: &[&str], span: Span) -> Diagnostic {
    let listed = kinds.iter().map(|k| format!("`{k}`")).collect::<Vec<_>>().join(", ");
    Diagnostic::new(
        Code::SeveralDevices,
        format!("`{word}` could be several: `{cluster}` has devices of {} kinds", kinds.len()),
        span,
        "not one device",
    )
    .note(format!("its devices are {listed}"))
    .help("name the one that is meant; that all of them have room is what `fits` says, and every job has to")
}

/// An entry of `disturb` that is not what it may be.
pub(super) fn disturbance(wanted: &str, span: Span) -> Diagnostic {
    Diagnostic::new(Code::KindMismatch, format!("`disturb` takes {wanted} here"), span, "this is something else")
}
