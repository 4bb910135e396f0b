//! Wording of what is wrong with a layout at its point: numbers included.

mod claims;
mod costs;

pub(super) use claims::{expect_failed, require_failed};
pub(super) use costs::{algorithm_unknown, constant_cost, cost_absurd, cost_missing, missing_peak};

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
pub(super) fn staleness_open(who: &str, updates: i64, used: Span, after: Option<Span>) -> Diagnostic {
    let steps = if updates == 1 { "1 step".into() } else { format!("{updates} steps") };
    let item = format!("require staleness <= {updates} step");
    let d = Diagnostic::new(
        Code::StalenessOpen,
        format!("{who} computes gradients with weights up to {steps} old"),
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
