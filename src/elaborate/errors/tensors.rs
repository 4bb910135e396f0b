//! Wording of what is wrong in the statements of a model: dimensions, tensors, products and operators.

use crate::diagnostics::{Applicability, Code, Diagnostic, Edit, nearest};
use crate::source::Span;
use crate::syntax::ast::Name;

pub(in crate::elaborate) fn dimension_unknown(name: &Name, known: &[String]) -> Diagnostic {
    let d = Diagnostic::new(
        Code::DimensionUnknown,
        format!("no dimension `{}` is declared here", name.text),
        name.span,
        "not a dimension",
    );
    match nearest(&name.text, known.iter().map(String::as_str)) {
        Some(near) => d.fix(format!("use `{near}`"), name.span, near.to_string(), Applicability::Unsure),
        None if known.is_empty() => d,
        None => {
            d.note(format!("known here: {}", known.iter().map(|k| format!("`{k}`")).collect::<Vec<_>>().join(", ")))
        }
    }
}

pub(in crate::elaborate) fn param_from_data(dim: &Name, param: &str, declared: Span) -> Diagnostic {
    Diagnostic::new(
        Code::ParamFromData,
        format!("the parameter `{param}` cannot have the dimension `{}` of the data", dim.text),
        dim.span,
        "its extent comes from the job",
    )
    .label(declared, "a dimension of the data")
    .help(format!(
        "give the table a dimension of its own and take rows of it: `take(param {param}[P, …], P = {})`",
        dim.text
    ))
}

/// Offers a table of 2048 positions of its own in place of one indexed by the data.
pub(in crate::elaborate) fn own_positions(d: Diagnostic, param: Span, taken: &str, dims: Span) -> Diagnostic {
    let mut d = d.fix("give it 2048 positions of its own", param, taken, Applicability::Unsure);
    if let Some(fix) = d.fixes.last_mut() {
        fix.edits.insert(0, Edit { span: dims, text: "P = 2048, ".into() });
    }
    d
}

/// A weight without the dimensions that a product with it would have to sum over.
pub(in crate::elaborate) fn weight_lacks(
    weight: &str,
    own: &str,
    lacks: &[String],
    first: Span,
    span: Span,
) -> Diagnostic {
    let list = lacks.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
    let before = Span { end: first.start, ..first };
    Diagnostic::new(
        Code::DimensionMismatch,
        format!("`@` has nothing to sum: `{weight}` lacks {list}"),
        span,
        format!("has [{own}]"),
    )
    .note(format!(
        "the other side has {list}, the target has not: a product sums what both sides have and the target lacks"
    ))
    .fix(format!("give `{weight}` {list}"), before, format!("{}, ", lacks.join(", ")), Applicability::Unsure)
}

/// A tensor that would have one dimension twice.
pub(in crate::elaborate) fn dim_repeated(name: &Name) -> Diagnostic {
    let message = format!("a tensor has each dimension once, and `{}` is named twice", name.text);
    Diagnostic::new(Code::DimensionMismatch, message, name.span, "named again here")
        .help(format!("declare a second dimension of the same extent: `{0}2 = {0}`", name.text))
}

/// A statement's target and what its right side has do not agree.
pub(in crate::elaborate) fn dims_mismatch(
    found: &str,
    wanted: &str,
    missing: &[String],
    extra: &[String],
    span: Span,
    target: Span,
) -> Diagnostic {
    let list = |names: &[String]| names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
    let (message, label) = match (missing, extra) {
        ([], extra) => {
            (format!("the target lacks {}, which the right side has", list(extra)), format!("this has [{found}]"))
        }
        (missing, _) => (format!("nothing on the right side has {}", list(missing)), format!("this has [{found}]")),
    };
    let d =
        Diagnostic::new(Code::DimensionMismatch, message, span, label).label(target, format!("[{wanted}] is wanted"));
    if missing.is_empty() {
        d.note("a dimension is summed only by `@`, and only where both operands have it and the target does not")
    } else {
        d
    }
}

/// A product without a target, perhaps inside the arguments of an operator or block.
pub(in crate::elaborate) fn product_unnamed(argument_of: Option<&str>, span: Span) -> Diagnostic {
    let what = argument_of.map_or_else(|| "nothing implies".into(), |of| format!("`{of}` does not imply"));
    Diagnostic::new(
        Code::ProductUnnamed,
        format!("{what} the dimensions of this product"),
        span,
        "no target says which dimensions are kept",
    )
    .help("name it first, with its dimensions: `u[B, S, F] = h @ w`")
}

/// Offers to give a product the name `name`: `line` goes before the statement it stands in.
pub(in crate::elaborate) fn offer_name(
    d: Diagnostic,
    name: &str,
    line: String,
    statement: Span,
    product: Span,
) -> Diagnostic {
    let before = Span { end: statement.start, ..statement };
    d.edits(format!("call it `{name}`"), vec![(before, line), (product, name.to_string())])
}

/// A variable that leaves an iteration of a repeat with other dimensions than it entered the first.
pub(in crate::elaborate) fn carried(
    name: &str,
    repeat: &str,
    enters: &str,
    leaves: &str,
    span: Span,
    entry: Span,
) -> Diagnostic {
    Diagnostic::new(
        Code::DimensionMismatch,
        format!("`{name}` enters `{repeat}` as [{enters}] and leaves it as [{leaves}]"),
        span,
        format!("[{leaves}] here"),
    )
    .label(entry, format!("[{enters}] before the repeat"))
    .note("what an iteration leaves is what the next one finds")
}

/// `kept`: dimensions on both sides that the target keeps; `lonely`: dimensions of one side that neither the other
/// nor the target has; `elementwise`: whether `*` would fit.
pub(in crate::elaborate) fn nothing_shared(
    a: &str,
    b: &str,
    kept: &[String],
    lonely: &[String],
    elementwise: bool,
    span: Span,
) -> Diagnostic {
    let list = |names: &[String]| names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
    let mut d = Diagnostic::new(
        Code::DimensionMismatch,
        format!("`@` has nothing to sum: [{a}] and [{b}] share no dimension that the target lacks"),
        span,
        "nothing is contracted",
    );
    if !kept.is_empty() {
        d = d.note(format!("both sides have {}, and so has the target", list(kept)));
    }
    if !lonely.is_empty() {
        d = d.note(format!("neither the target nor the other side has {}", list(lonely)));
    }
    if elementwise { d.help("use `*` for an elementwise product") } else { d }
}

pub(in crate::elaborate) fn operator_use(op: &str, wants: &str, span: Span) -> Diagnostic {
    Diagnostic::new(Code::OperatorUse, format!("`{op}` needs {wants}"), span, "not what it takes")
}

/// Attention whose keys have another dimension of heads than its queries, and nothing says how they go together.
pub(in crate::elaborate) fn heads_ungrouped(
    keys: &str,
    of: &str,
    (k, n): (Option<i64>, Option<i64>),
    dim: Span,
    attention: Span,
) -> Diagnostic {
    let sizes = match (k, n) {
        (Some(k), Some(n)) => format!("`{keys}` = {k}, `{of}` = {n}"),
        _ => format!("`{keys}`, `{of}`"),
    };
    let d = Diagnostic::new(
        Code::OperatorUse,
        format!("attention needs its key heads grouped under its query heads: {sizes}"),
        dim,
        format!("not declared `for {of}`"),
    )
    .label(attention, format!("queries have `{of}`, keys and values `{keys}`"))
    .note(format!(
        "`{keys} … for {of}` also lets a key head lie on several ranks, where there are more ranks than heads"
    ));
    match (k, n) {
        (Some(k), Some(n)) => d.help(format!("`{keys}` must divide `{of}`: {n} / {k} = {:.2}", n as f64 / k as f64)),
        _ => d.help(format!("write `{keys} = … for {of}`")),
    }
}

pub(in crate::elaborate) fn unknown_tensor(name: &Name, known: &[String]) -> Diagnostic {
    crate::eval::errors::unknown_name(&name.text, name.span, known)
}

/// A block called without a dimension: what there is, and the likely one.
pub(in crate::elaborate) fn block_dim(
    d: Diagnostic,
    name: &str,
    near: Option<&str>,
    known: &[&str],
    call: Span,
) -> Diagnostic {
    let list = known.iter().take(12).map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
    let d = d
        .note(format!("the dimensions here are {list}"))
        .help(format!("declare `{name}` in `dims`, or say which one it is: `{name} = …` in the call"));
    match near {
        Some(near) => {
            let close = Span { start: call.end - 1, end: call.end - 1, ..call };
            d.fix(format!("let `{name}` be `{near}`"), close, format!(", {name} = {near}"), Applicability::Unsure)
        }
        None => d,
    }
}
