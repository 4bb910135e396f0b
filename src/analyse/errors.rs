//! Wording of what is wrong with a layout at its point: numbers included.

mod costs;

pub(super) use costs::{algorithm_unknown, constant_cost, missing_peak};

use super::schedule::Use;
use crate::diagnostics::{Applicability, Code, Diagnostic, nearest};
use crate::pipeline::split::{SplitError, Uneven};
use crate::pipeline::{ScheduleError, ScheduleOp};
use crate::source::Span;
use crate::syntax::ast::Name;

pub(super) fn open_choice(name: &str, span: Span) -> Diagnostic {
    Diagnostic::new(Code::HolesOpen, format!("`{name}` is still open"), span, "no value yet")
}

pub(super) fn run_too_long(ops: u64, limit: u64, span: Span) -> Diagnostic {
    Diagnostic::new(
        Code::LimitExceeded,
        format!("the schedule runs {ops} operations, the limit is {limit}"),
        span,
        "too long a run",
    )
    .help("a larger `micro_batch` or more data parallel ranks make fewer microbatches")
}

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

pub(super) fn schedule_lacks(f: &str, name: &Name, span: Span) -> Diagnostic {
    Diagnostic::new(Code::FieldMissing, format!("schedule `{}` has no `fn {f}`", name.text), span, "used here")
        .label(name.span, format!("`fn {f}` is missing"))
        .note("a schedule is three functions: `chunks()`, `hosts(s)` and `order(s)`")
}

pub(super) fn schedule_value(f: &str, wanted: &str, name: &Name, span: Span) -> Diagnostic {
    Diagnostic::new(
        Code::KindMismatch,
        format!("`{f}` of schedule `{}` must give {wanted}", name.text),
        span,
        "used here",
    )
    .label(name.span, "declared here")
}

/// `would`: numbers of microbatches with which it would hold.
pub(super) fn schedule_requires(
    text: &str,
    values: &str,
    would: &[i128],
    (span, rule): (Span, Span),
    place: &Use,
) -> Diagnostic {
    let mut d = Diagnostic::new(Code::RequireFailed, text, span, "this schedule cannot run here")
        .label(rule, "what it requires");
    if let Some(at) = place.ranks.filter(|_| would.is_empty()) {
        d = d.label(at, "gives p, the pipeline ranks");
    }
    let d = if values.is_empty() { d } else { d.note(format!("here {values}: p pipeline ranks, m microbatches")) };
    if would.is_empty() {
        return d;
    }
    let list = would.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ");
    let d = d.help(format!("{list} microbatches would do: change `batch` or `micro_batch`"));
    let Some((at, each)) = place.batch else { return d };
    would.iter().fold(d, |d, m| {
        let text = format!("{} seq", m * i128::from(each));
        d.fix(format!("write `batch = {text}`"), at, text, Applicability::Unsure)
    })
}

/// A schedule at one (p, m), for messages about its order.
pub(super) struct ScheduleAt<'a> {
    pub(super) name: &'a str,
    pub(super) numbers: (u32, u32),
    pub(super) used: Span,
    pub(super) decl: Span,
    /// Whether the schedule is the library's, so that its use is what can be changed.
    pub(super) std: bool,
}

impl ScheduleAt<'_> {
    fn say(&self, code: Code, message: String, label: &str) -> Diagnostic {
        let (p, m) = self.numbers;
        let d = if self.std {
            Diagnostic::new(code, message, self.used, label).label(self.decl, "declared here")
        } else {
            Diagnostic::new(code, message, self.decl, label).label(self.used, "used here")
        };
        d.note(format!(
            "for p = {p} pipeline ranks and m = {m} microbatches; F(i,c) is the forward of microbatch i in chunk c, \
             B its backward"
        ))
    }
}

pub(super) fn schedule_wrong(why: &ScheduleError, at: &ScheduleAt<'_>) -> Diagnostic {
    let (code, label) = match why {
        ScheduleError::Deadlock { .. } => (Code::ScheduleDeadlock, "waits for itself"),
        ScheduleError::TooLong { .. } => (Code::LimitExceeded, "too long a run"),
        _ => (Code::ScheduleWrong, "this order is not a schedule"),
    };
    let message = match why {
        ScheduleError::Deadlock { .. } => format!("schedule `{}` deadlocks: {why}", at.name),
        _ => format!("schedule `{}` cannot run: {why}", at.name),
    };
    at.say(code, message, label)
}

/// A rank runs what it does not keep; `hosts` is the body of the function that says what it keeps, `fitting` one that
/// agrees with the orders.
pub(super) fn not_hosted(
    at: &ScheduleAt<'_>,
    (rank, op): (u32, ScheduleOp),
    keeps: &[u32],
    hosts: Span,
    fitting: Option<String>,
) -> Diagnostic {
    let list = match keeps {
        [] => "none".into(),
        [one] => one.to_string(),
        [first, .., last] if keeps.len() > 4 => format!("{first} to {last}"),
        [all @ .., last] => format!("{} and {last}", all.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")),
    };
    let (p, m) = at.numbers;
    let message = format!("rank {rank} runs chunk {} and keeps {list}: schedule `{}` cannot run", op.chunk, at.name);
    let d = Diagnostic::new(Code::ScheduleWrong, message, hosts, format!("for s = {rank} this is {keeps:?}"))
        .label(at.used, "used here")
        .note(format!("its order has {op}, for p = {p} pipeline ranks and m = {m} microbatches"))
        .help("a rank keeps the parameters of every chunk that its order runs");
    match fitting {
        Some(text) => d.fix(format!("write `{text}`"), hosts, text, Applicability::Unsure),
        None => d,
    }
}

/// A rank keeps several versions of its weights, but fewer than a backward reaches back.
pub(super) fn versions_few(at: &ScheduleAt<'_>, rank: usize, op: ScheduleOp, kept: u32, updates: u32) -> Diagnostic {
    let message = format!(
        "schedule `{}` cannot run: rank {rank} keeps {kept} versions of its weights, {op} needs those of {updates} \
         updates ago",
        at.name
    );
    let d = at.say(Code::ScheduleWrong, message, "too few versions");
    d.help(format!("`fn versions(s: Int) -> Int = {}` keeps enough", updates.saturating_add(1)))
}

/// A closed form of a schedule says something else than its order does.
pub(super) fn closed_form(
    what: &str,
    (said, counted): (Option<f64>, f64),
    (p, m): (u32, u32),
    values: &str,
    body: Span,
) -> Diagnostic {
    let said = said.map_or_else(|| "no number".into(), |said| said.to_string());
    let with = if values.is_empty() { String::new() } else { format!(", {values}") };
    Diagnostic::new(
        Code::ClosedForm,
        format!("{what} says {said}, the order gives {counted}"),
        body,
        "not what the order does",
    )
    .note(format!("for p = {p} pipeline ranks and m = {m} microbatches{with}"))
    .help("a closed form is never needed: without it the order is counted")
}

/// Gradients of an asynchronous schedule are computed with old weights and nobody said that they may be.
/// `after` is the last field of the job.
pub(super) fn staleness_open(name: &str, updates: u32, used: Span, after: Option<Span>) -> Diagnostic {
    let steps = if updates == 1 { "1 step".into() } else { format!("{updates} steps") };
    let item = format!("require staleness <= {updates} step");
    let d = Diagnostic::new(
        Code::StalenessOpen,
        format!("schedule `{name}` computes gradients with weights up to {steps} old"),
        used,
        "updates weights while microbatches are under way",
    )
    .note("staleness is the number of updates between the weights of a forward and the update its gradient enters")
    .help(format!("`{item}` in the job accepts it"));
    match after {
        Some(at) => {
            let end = Span { start: at.end, ..at };
            d.fix(format!("add `{item}`"), end, format!("\n  {item}"), Applicability::Unsure)
        }
        None => d,
    }
}

/// `bubble` is idle over busy time; `std`, whether the schedule is the library's, so that only numbers can change.
pub(super) fn bubble_large(name: &str, bubble: f64, (p, m): (u32, u32), span: Span, std: bool) -> Diagnostic {
    let d = Diagnostic::new(
        Code::BubbleLarge,
        format!("schedule `{name}` idles {bubble:.1} times as long as it works"),
        span,
        format!("a step takes {:.1} times the ideal time", 1.0 + bubble),
    )
    .note(format!("for p = {p} pipeline ranks and m = {m} microbatches, messages free"));
    if std { d.help("more microbatches, or fewer pipeline ranks, make the bubble smaller") } else { d }
}

pub(super) fn counted_unknown(name: &str, known: &[String], span: Span) -> Diagnostic {
    let d = Diagnostic::new(
        Code::NameUnknown,
        format!("`counting` names `{name}`, which the model does not have"),
        span,
        "in this split",
    );
    match nearest(name, known.iter().map(String::as_str)) {
        Some(near) => d.help(format!("`{near}` exists")),
        None => {
            d.note(format!("the model has {}", known.iter().map(|k| format!("`{k}`")).collect::<Vec<_>>().join(", ")))
        }
    }
}

/// `units`: name, count and whether repeated, of each unit of the model.
pub(super) fn split(why: &SplitError, units: &[(String, i64, bool)], p: u32, per: u32, span: Span) -> Diagnostic {
    match why {
        SplitError::Uneven(u) => uneven(u, units, p, per, span),
        SplitError::TooFewUnits { units: n, chunks } => Diagnostic::new(
            Code::SplitUneven,
            format!("{n} units cannot fill {chunks} chunks"),
            span,
            "more chunks than units",
        )
        .note(arithmetic(p, per))
        .help("use fewer pipeline ranks or fewer chunks a rank"),
        SplitError::ListLength { listed, chunks } => Diagnostic::new(
            Code::SplitUneven,
            format!("the list has {listed} counts, the schedule has {chunks} chunks"),
            span,
            "one count for each chunk",
        )
        .note(arithmetic(p, per))
        .fix("let `balanced` choose", span, "balanced", Applicability::Unsure),
        SplitError::EmptyChunk { chunk } => {
            Diagnostic::new(Code::SplitUneven, format!("chunk {chunk} is given no unit"), span, "every chunk needs one")
        }
        SplitError::ListSum { sum, units: n } => Diagnostic::new(
            Code::SplitUneven,
            format!("the list adds up to {sum}, the model has {n} units"),
            span,
            format!("{} lost", lost(*sum, *n)),
        )
        .note("a unit is a layer, or a region that `counting` names")
        .fix("let `balanced` choose", span, "balanced", Applicability::Unsure),
        SplitError::TooManyUnits { units: n, limit } => {
            Diagnostic::new(Code::LimitExceeded, format!("{n} units exceed the limit of {limit}"), span, "cut here")
        }
        SplitError::CostLength { .. } => {
            Diagnostic::new(Code::SplitUneven, "the model cannot be cut this way", span, "this split")
        }
    }
}

fn lost(sum: u64, units: u64) -> String {
    if sum < units {
        let n = units - sum;
        format!("{n} unit{} would be", if n == 1 { "" } else { "s" })
    } else {
        format!("{} units too many, none may be", sum - units)
    }
}

fn arithmetic(p: u32, per: u32) -> String {
    if per == 1 {
        format!("{p} pipeline ranks of 1 chunk each")
    } else {
        format!("{p} pipeline ranks × {per} chunks each = {} chunks", p * per)
    }
}

const BALANCED: &str = "`balanced` cuts anywhere, by predicted time";

fn uneven(u: &Uneven, units: &[(String, i64, bool)], p: u32, per: u32, span: Span) -> Diagnostic {
    let layers = u.layers;
    let all = layers + u.counted;
    let what = if u.counted > 0 {
        format!("{layers} layers and {} counted regions", u.counted)
    } else {
        format!("{layers} layers")
    };
    let chunks = u.chunks;
    let mut d = Diagnostic::new(
        Code::SplitUneven,
        format!("{what} do not split evenly over {chunks} chunks"),
        span,
        format!("{all} is not a multiple of {chunks}"),
    )
    .note(format!("{all} / {chunks} = {:.3}; {}", all as f64 / chunks as f64, arithmetic(p, per)));
    let outside: Vec<_> = units.iter().filter(|(_, _, repeated)| !repeated).map(|(n, _, _)| n.clone()).collect();
    if u.counted == 0 && !outside.is_empty() && (all + outside.len() as u64).is_multiple_of(chunks) {
        d = d.help(format!(
            "`even(counting = [{}])` splits {} units, {} a chunk",
            outside.join(", "),
            all + outside.len() as u64,
            (all + outside.len() as u64) / chunks
        ));
        let text = format!("even(counting = [{}])", outside.join(", "));
        d = d.fix(format!("write `{text}`"), span, text, Applicability::Unsure);
    }
    let p64 = u64::from(p.max(1));
    let of_rank: Vec<_> =
        (1..=(all / p64).min(64)).filter(|v| all.is_multiple_of(v * p64)).map(|v| v.to_string()).collect();
    if per > 1 && !of_rank.is_empty() {
        let (last, first) = of_rank.split_last().map_or(("", &[][..]), |(l, f)| (l.as_str(), f));
        let list = if first.is_empty() { last.to_string() } else { format!("{} or {last}", first.join(", ")) };
        let n = if list == "1" { "chunk" } else { "chunks" };
        d = d.help(format!("{list} {n} on each of the {p} ranks would be even"));
        return d.help(BALANCED).fix("write `balanced`", span, "balanced", Applicability::Unsure);
    }
    let near: Vec<_> = [u.fewer_chunks, u.more_chunks]
        .into_iter()
        .filter(|c| *c > 0 && all.is_multiple_of(*c))
        .map(|c| c.to_string())
        .collect();
    if !near.is_empty() {
        d = d.help(format!("{} chunks would be even", near.join(" or ")));
    }
    d.help(BALANCED).fix("write `balanced`", span, "balanced", Applicability::Unsure)
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

/// A metric of a piece of the model that has no parameter.
pub(super) fn no_parameters(path: &str, span: Span, ops: &crate::graph::OpGraph) -> Diagnostic {
    let regions = (1..ops.regions.len() as u32).map(|i| ops.region_path(crate::graph::RegionId(i)));
    let mut known: Vec<_> = regions.chain(ops.params.iter().map(|p| p.path.clone())).collect();
    known.sort();
    known.dedup();
    let d = Diagnostic::new(Code::NothingSelected, format!("no parameter lies in `{path}`"), span, "matches nothing");
    match nearest(path, known.iter().map(String::as_str)) {
        Some(near) => d.help(format!("`{near}` exists")),
        None => d,
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
