//! Wording of what is wrong with a declaration before anything is evaluated.

use super::items::{Misplaced, Place};
use crate::diagnostics::{Applicability, Code, Diagnostic, Edit, nearest};
use crate::source::Span;
use crate::syntax::ast::Name;
use crate::units::Unit;

pub(super) fn misplaced(item: &Misplaced, place: Place) -> Diagnostic {
    Diagnostic::new(
        Code::ItemMisplaced,
        format!("`{}` belongs in {}, not in {}", item.word, item.home, place.noun()),
        item.span,
        format!("not an item of {}", place.noun()),
    )
}

pub(super) fn field_twice(name: &Name, first: Span) -> Diagnostic {
    Diagnostic::new(Code::FieldTwice, format!("`{}` is given twice", name.text), name.span, "given again here")
        .label(first, "first given here")
        .help("keep one of the two")
}

/// Every missing field of one declaration at once.
pub(super) fn missing_fields(names: &[&str], of: &str, span: Span) -> Diagnostic {
    let list = listed(names, "and");
    let (noun, verb) = if names.len() == 1 { ("a field", "is") } else { ("the fields", "are") };
    Diagnostic::new(Code::FieldMissing, format!("{of} needs {noun} {list}"), span, format!("{list} {verb} missing"))
}

/// A word after `recompute` that is no form of it; what Megatron calls selective is offered.
pub(super) fn recompute_form(name: &Name, item: Span) -> Diagnostic {
    let d = Diagnostic::new(
        Code::NameUnknown,
        format!("`recompute` knows no `{}`", name.text),
        name.span,
        "not a form of `recompute`",
    )
    .note("the forms are `none`, `all`, a list of values, `ops(keep = […])` and `every(n)`");
    if name.text != "selective" {
        return d;
    }
    let text = "in **.attention.core { recompute all }";
    d.note("with a fused attention kernel recomputing the core of attention saves little: the plan says how much")
        .help(format!("what Megatron calls selective is `{text}`"))
        .fix(format!("write `{text}`"), item, text, Applicability::Unsure)
}

pub(super) fn hides(name: &Name, outer: Option<Span>) -> Diagnostic {
    let d = Diagnostic::new(
        Code::NameTaken,
        format!("`{}` is already a name here", name.text),
        name.span,
        "an inner name may not hide an outer one",
    );
    match outer {
        Some(span) => d.label(span, "the outer name").help("rename one of the two"),
        None => d.note("the language gives it its meaning here").help("choose another name"),
    }
}

pub(super) fn unknown_type(name: &Name, known: &[String]) -> Diagnostic {
    let d = Diagnostic::new(Code::NameUnknown, format!("no type `{}` exists", name.text), name.span, "not a type");
    suggest(d, name, known)
}

pub(super) fn unknown_axis(name: &Name, known: &[String]) -> Diagnostic {
    let d = Diagnostic::new(
        Code::AxisUnknown,
        format!("no mesh axis `{}` exists here", name.text),
        name.span,
        "not an axis",
    );
    if known.is_empty() {
        return d.help(format!("declare it: `mesh [{} = …]`", name.text));
    }
    let all: Vec<&str> = known.iter().map(String::as_str).take(12).collect();
    let axes = if all.len() == 1 { "the only axis is" } else { "axes are" };
    let d = d.note(format!("{axes} {}", listed(&all, "and")));
    match nearest(&name.text, known.iter().map(String::as_str)) {
        // `cp` is no misspelt `dp`: two letters are too few to tell.
        Some(near) if name.text.len() > 2 => d.help(format!("`{near}` exists")).fix(
            format!("use `{near}`"),
            name.span,
            near.to_string(),
            Applicability::Unsure,
        ),
        _ => d.help(format!("add `{}` to the mesh, or leave it out here", name.text)),
    }
}

pub(super) fn axis_without_size(name: &Name) -> Diagnostic {
    Diagnostic::new(Code::NameUnknown, format!("the axis `{}` has no size", name.text), name.span, "no size is known")
        .help(format!("write `{0} = …`, or give the layout a parameter `{0}`", name.text))
}

pub(super) fn unknown_dimension(name: &Name, known: &[String]) -> Diagnostic {
    let d = Diagnostic::new(
        Code::DimensionUnknown,
        format!("no dimension `{}` is declared", name.text),
        name.span,
        "not a dimension",
    );
    suggest(d, name, known)
}

/// A word of a fixed list.
pub(super) fn unknown_word(name: &Name, what: &str, known: &[&str]) -> Diagnostic {
    let d = Diagnostic::new(Code::NameUnknown, format!("no {what} `{}` exists", name.text), name.span, "not known");
    let known: Vec<String> = known.iter().map(ToString::to_string).collect();
    suggest(d, name, &known)
}

fn suggest(d: Diagnostic, name: &Name, known: &[String]) -> Diagnostic {
    match nearest(&name.text, known.iter().map(String::as_str)) {
        Some(near) => d.offer(near, name.span),
        None if known.is_empty() => d,
        None => {
            let all: Vec<&str> = known.iter().map(String::as_str).take(12).collect();
            d.note(format!("known here: {}", listed(&all, "and")))
        }
    }
}

/// A layout's axis or parameter used in a job by its bare name.
pub(super) fn layout_name(name: &Name) -> Diagnostic {
    Diagnostic::new(Code::NameUnknown, format!("no `{}` is known here", name.text), name.span, "not known")
        .note(format!("`{}` belongs to the job's layout", name.text))
        .help(format!("write `layout.{}`", name.text))
        .fix(format!("use `layout.{}`", name.text), name.span, format!("layout.{}", name.text), Applicability::Safe)
}

pub(super) fn recursion(at: Span, name: &str, path: &[String]) -> Diagnostic {
    let d = Diagnostic::new(Code::Recursion, format!("`{name}` needs itself"), at, "comes back to itself")
        .note("declarations and functions may not be recursive, so that every evaluation ends");
    if path.len() > 1 {
        let shown: Vec<String> = path.iter().take(8).map(|p| format!("`{p}`")).collect();
        return d.note(format!("{} needs {}", shown.join(" needs "), shown[0]));
    }
    d
}

/// `+- 4%`: of the value, or points?
pub(super) fn tolerance_in_percent(
    span: Span,
    written: &str,
    value: Option<(&str, f64)>,
    percent: f64,
    operator: Span,
) -> Diagnostic {
    let n = trimmed(percent);
    let d = Diagnostic::new(
        Code::UnitMismatch,
        "`+-` of a ratio takes percentage points, not per cent",
        span,
        "percentage points or a share of the value",
    );
    let d = match value {
        Some((text, v)) => d.note(format!(
            "`{text} +- {n} pp` is {}% to {}%, `{text} within {n}%` is {}% to {}%",
            trimmed(v - percent),
            trimmed(v + percent),
            trimmed(v * (1.0 - percent / 100.0)),
            trimmed(v * (1.0 + percent / 100.0)),
        )),
        None => d,
    };
    d.help(format!("write `{n} pp` or `within {written}`"))
        .fix(format!("write `{n} pp`"), span, format!("{n} pp"), Applicability::Unsure)
        .fix(format!("write `within {written}`"), operator.to(span), format!("within {written}"), Applicability::Unsure)
}

pub(super) fn points_outside(span: Span, written: &str) -> Diagnostic {
    let percent = written.replace("pp", "%").replace(' ', "");
    Diagnostic::new(Code::UnitUnknown, "percentage points stand only after `+-`", span, "a distance, not a value")
        .help(format!("write `{percent}`"))
        .fix(format!("write `{percent}`"), span, percent, Applicability::Unsure)
}

/// A bandwidth whose bytes are surely bits.
pub(super) fn bits_as_bytes(name: &str, number: &str, span: Span) -> Diagnostic {
    let bits =
        number.parse::<f64>().map_or_else(|_| "8 times that".to_string(), |n| format!("{} Gb/s", trimmed(n * 8.0)));
    Diagnostic::new(
        Code::BitsAsBytes,
        format!("`{name}` has {number} GB/s, which is {bits}; links of its class are sold as {number} Gb/s"),
        span,
        "bytes a second",
    )
    .help(format!("write `{number} Gb/s` if bits are meant"))
    .fix(format!("use `{number} Gb/s`"), span, format!("{number} Gb/s"), Applicability::Unsure)
}

/// A batch in tokens.
pub(super) fn batch_in_tokens(span: Span, written: &str, tokens: Option<i128>, sequence: Option<i128>) -> Diagnostic {
    let d = crate::eval::errors::wrong_unit(
        "`batch`",
        &Unit::base(crate::units::Base::Seq),
        &Unit::base(crate::units::Base::Tok),
        span,
    );
    match (tokens, sequence) {
        (Some(t), Some(s)) if s > 0 && t % s == 0 => d
            .help(format!("`batch` counts sequences: {written} / {s} tok a sequence = {} seq", t / s))
            .fix(format!("write `{} seq`", t / s), span, format!("{} seq", t / s), Applicability::Unsure),
        // Fewer tokens than one sequence has: the number is one of sequences.
        (Some(t), Some(s)) if t < s => d
            .note(format!("a sequence alone has {s} tok"))
            .help(format!("`batch` counts sequences: write `{t} seq`"))
            .fix(format!("write `{t} seq`"), span, format!("{t} seq"), Applicability::Unsure),
        (Some(t), Some(s)) if s > 0 => d
            .note(format!(
                "{written} / {s} tok a sequence = {:.2}, not a whole number of sequences",
                t as f64 / s as f64
            ))
            .help("`batch` counts sequences"),
        _ => d.help("`batch` counts sequences: divide by the tokens of one"),
    }
}

pub(super) fn level_alone(name: &Name, root: &Name, devices: Option<i128>, child: Option<(Span, &str)>) -> Diagnostic {
    let d = Diagnostic::new(
        Code::ClusterShape,
        format!("no level is made of `{}`", name.text),
        name.span,
        "belongs to nothing",
    );
    let d = match devices {
        Some(n) => d.note(format!("the last level, `{}`, is the cluster and has {n} devices", root.text)),
        None => d.note(format!("the last level, `{}`, is the cluster", root.text)),
    };
    match child {
        Some((span, text)) => d
            .label(span, format!("made of `{text}`"))
            .help(format!("make `{}` of `{}`", root.text, name.text))
            .fix(format!("use `{}`", name.text), span, name.text.to_string(), Applicability::Unsure),
        None => d,
    }
}

/// "`a`, `b` and `c`".
pub(super) fn listed(names: &[&str], word: &str) -> String {
    let quoted: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
    match quoted.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} {word} {last}", rest.join(", ")),
    }
}

/// A number without trailing zeros, at most four decimals.
pub(super) fn trimmed(v: f64) -> String {
    let text = format!("{v:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

pub(super) fn axis_twice(name: &Name, first: Span) -> Diagnostic {
    Diagnostic::new(Code::NameTaken, format!("the mesh has two axes `{}`", name.text), name.span, "named again here")
        .label(first, "first named here")
        .help("give each axis a name of its own")
}

pub(super) fn unknown_class(name: &Name, near: Option<&str>, known: &[&str]) -> Diagnostic {
    let d = Diagnostic::new(Code::NameUnknown, format!("no class `{}` exists", name.text), name.span, "not a class");
    match near {
        Some(near) => d.help(format!("the class is `{near}`")).fix(
            format!("use `{near}`"),
            name.span,
            near.to_string(),
            Applicability::Unsure,
        ),
        None => d
            .note(format!("classes are {}", listed(known, "and")))
            .help("a single tensor is named inside `in SELECTOR { … }`"),
    }
}

pub(super) fn argument_compared(name: &str, at: Span) -> Diagnostic {
    Diagnostic::new(
        Code::ArgumentWrong,
        format!("`==` compares, it does not give `{name}` a value"),
        at,
        "a comparison",
    )
    .help("an argument is given with `=`")
    .fix("use `=`", at, "=", Applicability::Unsure)
}

pub(super) fn usable_above_memory(
    span: Span,
    usable: f64,
    memory: f64,
    written: &str,
    memory_span: Span,
) -> Diagnostic {
    let show = |x| crate::units::show(x, &Unit::bytes());
    let d = Diagnostic::new(
        Code::OutOfRange,
        format!("`usable` of {} is more than `memory` of {}", show(usable), show(memory)),
        span,
        "more than there is",
    )
    .label(memory_span, format!("`{written}` is {}", show(memory)));
    // The slip of one letter, where it is one.
    match written.strip_suffix("GB") {
        Some(number) if usable <= memory * (1.024_f64 * 1.024 * 1.024) => {
            let meant = format!("{number}GiB");
            d.note("`GB` is 1000³ bytes, `GiB` 1024³").fix(
                format!("write `{meant}`"),
                memory_span,
                meant,
                Applicability::Unsure,
            )
        }
        _ => d,
    }
}

/// A function that does not say what it gives.
pub(super) fn result_untyped(name: &Name, at: Span, ty: Option<&str>) -> Diagnostic {
    let d = Diagnostic::new(
        Code::KindMismatch,
        format!("`{}` does not say what it returns", name.text),
        name.span,
        "a result type is missing",
    );
    match ty {
        Some(ty) => d.help(format!("write `-> {ty}`")).fix(
            format!("add `-> {ty}`"),
            at,
            format!(" -> {ty}"),
            Applicability::Unsure,
        ),
        None => d.help("write the type after the parameters: `-> Time`"),
    }
}

/// `?` where nothing bounds the choice.
pub(super) fn hole_unbounded(name: &str, span: Span) -> Diagnostic {
    Diagnostic::new(Code::HolesOpen, format!("nothing says what `{name}` may be"), span, "an open choice")
        .help(format!("name the choices: `{name} in {{…}}`"))
}

/// `batch` and `arrivals` of one `serve` job.
pub(super) fn load_twice(batch: Span, arrivals: Span) -> Diagnostic {
    let message = "`batch` and `arrivals` both say how many requests there are";
    Diagnostic::new(Code::FieldTwice, message, batch, "so many at once, as a closed batch")
        .label(arrivals, "so many a second")
        .note("where requests arrive, the batch follows from the load; `max_batch` bounds it")
        .fix("write `max_batch`", batch, "max_batch", Applicability::Unsure)
}

/// Rows that the longest sample does not fit into.
pub(super) fn pack_short(to: Span, row: i128, max: Span, longest: i128, text: &str) -> Diagnostic {
    let message = format!("a sample of {longest} tok fits into no row of {row} tok");
    Diagnostic::new(Code::OutOfRange, message, to, "shorter than the longest sample")
        .label(max, format!("samples of up to {text}"))
        .fix(format!("write `to = {text}`"), to, text, Applicability::Unsure)
}

pub(super) fn no_such_end(name: &Name, what: &str, known: &[String]) -> Diagnostic {
    let d = Diagnostic::new(Code::NameUnknown, format!("no {what} `{}` exists", name.text), name.span, "not declared");
    let all: Vec<&str> = known.iter().map(String::as_str).take(12).collect();
    let d = if all.is_empty() { d } else { d.note(format!("there are {}", listed(&all, "and"))) };
    match nearest(&name.text, known.iter().map(String::as_str)) {
        Some(near) => d.offer(near, name.span),
        None => d,
    }
}

/// The branches of `if … then … else` differ in unit; `fix` replaces the first one.
pub(super) fn branches(at: Span, a: (Span, &Unit), b: (Span, &Unit), fix: Option<String>) -> Diagnostic {
    let name = |unit: &Unit| {
        let ty = super::ty::Ty::number(unit.clone());
        super::ty::type_name(&ty).filter(|_| !unit.is_none()).map_or_else(|| unit.noun(), String::from)
    };
    let d = Diagnostic::new(
        Code::UnitMismatch,
        format!("the branches of `if` are {} and {}", a.1.noun(), b.1.noun()),
        at,
        if at == a.0 { a.1.noun() } else { "chooses between them".into() },
    );
    let d = if at == a.0 { d } else { d.label(a.0, a.1.noun()) };
    let d = d.label(b.0, b.1.noun());
    match fix {
        Some(text) => d.help(format!("both must be {}: write `{text}`", name(b.1))).fix(
            format!("write `{text}`"),
            a.0,
            text,
            Applicability::Unsure,
        ),
        None => d.help("both must be of one unit"),
    }
}

/// A function of a cost model whose parameters are not the ones it is called with.
pub(super) fn cost_signature(name: &Name, wanted: &str, at: Option<Span>) -> Diagnostic {
    let d = Diagnostic::new(
        Code::ArgumentWrong,
        format!("`{}` of a cost model takes `{wanted}`", name.text),
        name.span,
        "is called with other arguments",
    );
    match at {
        Some(at) => d.fix("use these parameters", at, wanted, Applicability::Unsure),
        None => d,
    }
}

pub(super) fn table_value(name: &Name) -> Diagnostic {
    Diagnostic::new(
        Code::FieldMissing,
        format!("table `{}` does not say what its value is", name.text),
        name.span,
        "`-> TYPE` is missing",
    )
    .help("write it after the keys: `table busbw(size: Bytes) -> Bandwidth { … }`")
}

/// Offers to swap two texts.
pub(super) fn swap(d: Diagnostic, first: (Span, String), second: (Span, String)) -> Diagnostic {
    let mut d = d.fix("swap the two rows", first.0, second.1, Applicability::Unsure);
    if let Some(fix) = d.fixes.last_mut() {
        fix.edits.push(Edit { span: second.0, text: first.1 });
    }
    d
}

pub(super) fn law_argument(law: &str, name: &str, takes: &[&str], span: Span) -> Diagnostic {
    let what =
        if name.is_empty() { format!("`{law}` is given too much") } else { format!("`{law}` takes no `{name}`") };
    let d = Diagnostic::new(Code::ArgumentWrong, what, span, "not a parameter of this distribution")
        .note(format!("it takes {}", listed(takes, "and")));
    match nearest(name, takes.iter().copied()) {
        Some(near) => d.offer(near, span),
        None => d,
    }
}

/// A field under the name it had.
pub(super) fn field_renamed(name: &Name, of: &str, new: &str, until: u32) -> Diagnostic {
    Diagnostic::new(
        Code::FieldRenamed,
        format!("`{}` of `{of}` is called `{new}` now", name.text),
        name.span,
        "the name it had",
    )
    .note(format!("edition {until} still knows the old name, the next does not"))
    .fix(format!("use `{new}`"), name.span, new, Applicability::Safe)
}

/// Adapters that lie where a precision keeps parameters in too few bits to be trained.
pub(super) fn adapter_format(dtype: &str, selector: &str, field: Span, adapter: Span, item: Span) -> Diagnostic {
    let end = Span { start: item.end, ..item };
    let own = "in **.lora { param = bf16, master = fp32 }";
    Diagnostic::new(
        Code::KindMismatch,
        format!("adapters are trained, and `{dtype}` cannot hold the step of an optimizer"),
        field,
        format!("holds for the adapters too: `{selector}` covers them"),
    )
    .label(adapter, "adapters here")
    .note("the matrices of an adapter lie at the path of what they adapt, as `lora.a` and `lora.b`")
    .help("give them a format of their own")
    .fix(format!("add `{own}`"), end, format!(", {own}"), Applicability::Unsure)
}

/// A word of another tool for `meant`, a `what` of the language.
pub(super) fn called(word: &str, what: &str, meant: &str, span: Span) -> Diagnostic {
    let message = format!("no {what} `{word}` exists; it is called `{meant}`");
    Diagnostic::new(Code::NameUnknown, message, span, format!("no {what}")).fix(
        format!("use `{meant}`"),
        span,
        meant,
        Applicability::Unsure,
    )
}

/// A name with dashes that spells the name `meant`.
pub(super) fn dashed_name(text: &str, meant: &str, span: Span) -> Diagnostic {
    Diagnostic::new(Code::NameUnknown, format!("`{text}` is no name: `-` subtracts"), span, "a difference")
        .help(format!("names have no `-`; `{meant}` exists"))
        .fix(format!("use `{meant}`"), span, meant, Applicability::Unsure)
}

/// The device, where the number of devices is meant.
pub(super) fn device_counted(d: Diagnostic, device: Span) -> Diagnostic {
    d.help("`devices` is their number, `device` what each of them is").fix(
        "use `devices`",
        device,
        "devices",
        Applicability::Unsure,
    )
}

/// Offers the arguments that are missing, to be filled in.
pub(super) fn fill_in(d: Diagnostic, of: &str, names: &[&str], at: Span) -> Diagnostic {
    let arguments: Vec<String> = names.iter().map(|n| format!("{n} = <{n}>")).collect();
    let text = format!("({})", arguments.join(", "));
    d.fix(format!("write `{of}{text}`"), Span { start: at.end, ..at }, text, Applicability::Placeholder)
}

/// `mesh = [dp, tp]`: an item, written as a field.
pub(super) fn item_not_field(name: &Name) -> Diagnostic {
    let message = format!("`{}` is an item, not a field", name.text);
    Diagnostic::new(Code::FieldUnknown, message, name.span, "an item")
        .help(format!("items are written without `=`: `{} …`", name.text))
}

/// A peak without its number format; `rate` is the rate as it should be written.
pub(super) fn peak_plain(rate: &str, span: Span) -> Diagnostic {
    let right = format!("{{ bf16 = {rate} }}");
    Diagnostic::new(
        Code::KindMismatch,
        "`peak` needs a record of rates by number format, not one rate",
        span,
        "of which format is not said",
    )
    .help(format!("write `peak = {right}`"))
    .fix(format!("write `{right}`"), span, right, Applicability::Unsure)
}

/// A word in a field that takes others.
pub(super) fn word_unknown(field: &str, name: &Name, words: &[&str]) -> Diagnostic {
    let d = Diagnostic::new(
        Code::KindMismatch,
        format!("`{field}` cannot be `{}`", name.text),
        name.span,
        "not one of its words",
    )
    .note(format!("it is {}", listed(words, "or")));
    match nearest(&name.text, words.iter().copied()) {
        // These need arguments, which a fix cannot know.
        Some(near @ ("torus" | "graph")) => d.help(format!("`{near}` exists")),
        Some(near) => d.offer(near, name.span),
        None => d,
    }
}
