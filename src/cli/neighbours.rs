//! Layouts one or two edits away: compiled like the user's own, and offered where they fit or are faster.

use super::plan::quietly;
use crate::analyse::Compiled;
use crate::diagnostics::{Applicability, Diagnostic, Edit, Fix};
use crate::elaborate::{AddedItem, Settings};
use crate::emit::report::Neighbour;
use crate::hir::{DeclId, Program};
use crate::layout::{Class, Hold, Tier};
use crate::source::{Sources, Span};
use crate::units::{Unit, show};

/// One change of a layout or job.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Change {
    /// A parameter's value, and where it is written.
    Set { name: String, value: i64, span: Span },
    /// An item added to the layout after the item at this place.
    Add { item: AddedItem, after: Span },
}

/// A neighbour and what it does.
pub(super) struct Found {
    pub(super) shown: Neighbour,
    edits: Vec<Edit>,
    memory: f64,
}

/// Schedule operations up to which neighbours are tried: each runs the schedule again.
const OPERATIONS: usize = 200_000;

fn explorable(c: &Compiled<'_>) -> bool {
    let orders = &c.schedule.orders;
    (0..orders.ranks()).map(|s| orders.order(s).len()).sum::<usize>() <= OPERATIONS
}

/// Compiles the neighbours of `c`, best first; pairs of edits only where no single one fits.
pub(super) fn explore(
    program: &Program,
    sources: &Sources,
    id: DeclId,
    settings: &Settings,
    c: &Compiled<'_>,
    fits: bool,
) -> Vec<Found> {
    if !explorable(c) {
        return Vec::new();
    }
    let changes = changes(c, sources, fits);
    let singles: Vec<Vec<Change>> = changes.iter().map(|x| vec![x.clone()]).collect();
    let mut found: Vec<Found> = singles.iter().filter_map(|x| attempt(program, sources, id, settings, c, x)).collect();
    if !fits && !found.iter().any(|f| f.shown.fits) {
        // Of the edits that help alone, those that fit together.
        let helpful: Vec<&Change> = changes
            .iter()
            .zip(&singles)
            .filter(|(_, s)| found.iter().any(|f| f.shown.edit == text(s) && f.shown.memory_change_bytes < 0))
            .map(|(x, _)| x)
            .collect();
        for (i, a) in helpful.iter().enumerate() {
            for b in &helpful[i + 1..] {
                if !same_place(a, b) {
                    let pair = vec![(*a).clone(), (*b).clone()];
                    found.extend(attempt(program, sources, id, settings, c, &pair));
                }
            }
        }
    }
    if fits {
        // A tip is worth its line from half a percent on.
        found.retain(|f| f.shown.fits && f.shown.step_change < -0.005);
    } else {
        found.retain(|f| f.shown.fits);
        // Of the microbatches that fit, the largest.
        let micro = |f: &Found| f.shown.edit.strip_prefix("micro_batch = ")?.strip_suffix(" seq")?.parse::<i64>().ok();
        let largest = found.iter().filter_map(micro).max();
        found.retain(|f| micro(f).is_none_or(|v| Some(v) == largest));
    }
    found.sort_by(|a, b| {
        a.shown.step_change.total_cmp(&b.shown.step_change).then_with(|| a.shown.edit.cmp(&b.shown.edit))
    });
    found.truncate(if fits { 3 } else { 4 });
    found
}

fn same_place(a: &Change, b: &Change) -> bool {
    let again = |x: &Change| matches!(x, Change::Add { item: AddedItem::RecomputeAll | AddedItem::RecomputeOpen, .. });
    let holds = |x: &Change| matches!(x, Change::Add { item: AddedItem::Hold(_), .. });
    match (a, b) {
        (Change::Add { .. }, Change::Add { .. }) => (again(a) && again(b)) || (holds(a) && holds(b)) || a == b,
        (Change::Set { name: x, .. }, Change::Set { name: y, .. }) => x == y,
        _ => a == b,
    }
}

/// The edits worth trying: each size one step up and down, optimizer state split, more recomputed or less, parameters
/// gathered more often or less.
fn changes(c: &Compiled<'_>, sources: &Sources, fits: bool) -> Vec<Change> {
    let mut out = Vec::new();
    for p in &c.job.parameters {
        // The batch and the sequence are what the user wants done, not how.
        if p.name == "batch" || p.name == "sequence" || p.span == c.job.span {
            continue;
        }
        let next: Vec<i64> = match &p.domain {
            Some(list) => {
                let below = list.iter().filter(|v| **v < p.value).max();
                let above = list.iter().filter(|v| **v > p.value).min();
                below.into_iter().chain(above).copied().collect()
            }
            // Activations follow the microbatch: where they do not fit, every halving may.
            None if !fits && p.name == "micro_batch" => {
                std::iter::successors(Some(p.value / 2), |v| Some(v / 2)).take_while(|v| *v >= 1).collect()
            }
            None => [p.value / 2, p.value * 2].into_iter().filter(|v| *v >= 1 && *v != p.value).collect(),
        };
        for value in next {
            // A value written in the library cannot be edited; it can be given by name where the job uses it.
            if !sources.file(p.span.file).std {
                out.push(Change::Set { name: p.name.clone(), value, span: p.span });
            }
        }
    }
    let layout = &c.job.layout;
    let last =
        layout.rules.iter().map(|r| r.span).chain(layout.stores.iter().map(|s| s.span)).chain(layout.mesh_span).max();
    // Below the layout's own rules; where those are the library's, beside the job's use of it.
    let at_job = c.job.places.get("layout").copied().filter(|s| !sources.file(s.file).std);
    let Some(after) = last.filter(|s| !sources.file(s.file).std).or(at_job) else { return out };
    let replicas = c.value(c.job.replicas) > 1.0;
    if replicas && !layout.stores.iter().any(|s| s.class == crate::layout::Class::State) {
        out.push(Change::Add { item: AddedItem::StoreState, after });
    }
    let whole = |r: &crate::layout::Recompute| r.scope.is_everywhere() && r.what == crate::layout::RecomputeWhat::All;
    if layout.open_recompute().is_none() {
        if !layout.recompute.iter().any(whole) {
            out.push(Change::Add { item: AddedItem::RecomputeAll, after });
        }
        // What does not fit makes more again, what fits less.
        out.push(Change::Add { item: AddedItem::RecomputeOpen, after });
    }
    out.extend(other_holds(c, sources));
    out.extend(fewer_in_flight(c, sources).filter(|_| !fits));
    out
}

/// Gathered parameters let go earlier and gathered again, or gathered once for longer.
fn other_holds(c: &Compiled<'_>, sources: &Sources) -> Vec<Change> {
    let gathered = |s: &&crate::layout::Store| s.class == Class::Param && !s.axes.is_empty();
    let Some(store) = c.job.layout.stores.iter().find(gathered).filter(|s| !sources.file(s.span.file).std) else {
        return Vec::new();
    };
    let others = [Hold::Layer, Hold::Microbatch, Hold::Step].into_iter().filter(|h| *h != store.hold);
    others.map(|hold| Change::Add { item: AddedItem::Hold(hold), after: store.span }).collect()
}

/// `store param over dp { hold = step }` from the item as it is written.
fn with_hold(item: &str, hold: Hold) -> String {
    let word = hold_word(hold);
    let given = item.match_indices("hold").find_map(|(at, found)| {
        let after = item.get(at + found.len()..)?.trim_start().strip_prefix('=')?;
        Some((item.get(..at)?, after.trim_start()))
    });
    if let Some((before, after)) = given {
        let rest = after.trim_start_matches(|c: char| c.is_ascii_alphabetic());
        return format!("{before}hold = {word}{rest}");
    }
    match item.strip_suffix('}') {
        Some(open) => format!("{}, hold = {word} }}", open.trim_end()),
        None => format!("{item} {{ hold = {word} }}"),
    }
}

fn hold_word(hold: Hold) -> &'static str {
    match hold {
        Hold::Layer => "layer",
        Hold::Microbatch => "microbatch",
        Hold::Step => "step",
    }
}

/// 1F1B, where the schedule keeps more microbatches in flight than it would.
fn fewer_in_flight(c: &Compiled<'_>, sources: &Sources) -> Option<Change> {
    let pipeline = c.job.pipeline.as_ref()?;
    let most = c.facts.stages.iter().map(|s| s.in_flight).max()?;
    let own = !sources.file(pipeline.schedule_span.file).std && c.schedule.name != "one_f_one_b";
    let item = AddedItem::OneForwardOneBackward;
    (own && most > c.facts.stages.len() as i64).then_some(Change::Add { item, after: pipeline.schedule_span })
}

/// The fewest machines with which the job fits, and what it then holds: whole-number arguments of its cluster larger,
/// and with each the layout's parameters that are the number of devices.
fn more_machines(
    program: &Program,
    sources: &Sources,
    id: DeclId,
    settings: &Settings,
    c: &Compiled<'_>,
) -> Option<(String, f64)> {
    const TRIED: i64 = 16;
    let at = c.job.places.get("cluster").copied().filter(|s| !sources.file(s.file).std)?;
    let text = sources.snippet(at);
    let (name, now) = text.split(['(', ',']).skip(1).find_map(|argument| {
        let (name, value) = argument.trim_end_matches(')').split_once('=')?;
        Some((name.trim(), value.trim().parse::<i64>().ok()?))
    })?;
    let per = c.job.cluster.devices / now.max(1);
    for n in (now + 1..=now + TRIED).chain((5..=8).map(|k| now << k)) {
        let mut s = settings.clone();
        s.values.push((format!("cluster.{name}"), n));
        let devices = per * n;
        for p in c.job.parameters.iter().filter(|p| p.value == c.job.cluster.devices && p.name != "sequence") {
            s.values.push((p.name.clone(), devices));
        }
        let Some(found) = quietly(program, sources, id, &s) else { continue };
        let memory = found.value(found.roots.peak_memory);
        if memory <= found.job.cluster.device_field("usable") {
            let with: Vec<_> =
                s.values[settings.values.len() + 1..].iter().map(|(n, v)| format!("{n} = {v}")).collect();
            let with = if with.is_empty() { String::new() } else { format!(" and {}", with.join(", ")) };
            return Some((format!("{name} = {n}{with}"), memory));
        }
    }
    None
}

fn attempt(
    program: &Program,
    sources: &Sources,
    id: DeclId,
    settings: &Settings,
    c: &Compiled<'_>,
    changes: &[Change],
) -> Option<Found> {
    let mut s = settings.clone();
    for change in changes {
        match change {
            Change::Set { name, value, .. } => s.values.push((name.clone(), *value)),
            Change::Add { item, .. } => s.items.push(*item),
        }
    }
    let n = quietly(program, sources, id, &s)?;
    let (memory, step) = (n.value(n.roots.peak_memory), n.value(n.roots.step_time));
    let shown = Neighbour {
        edit: named(changes, c),
        step_change: step / c.value(c.roots.step_time) - 1.0,
        memory_change_bytes: (memory - c.value(c.roots.peak_memory)) as i64,
        fits: memory <= n.job.cluster.device_field("usable"),
    };
    Some(Found { shown, edits: edits(changes, c, sources), memory })
}

fn text(changes: &[Change]) -> String {
    let one = |x: &Change| match x {
        Change::Set { name, value, .. } if name == "micro_batch" => format!("micro_batch = {value} seq"),
        Change::Set { name, value, .. } => format!("{name} = {value}"),
        Change::Add { item: AddedItem::StoreState, .. } => "store state".into(),
        Change::Add { item: AddedItem::RecomputeAll, .. } => "recompute all".into(),
        Change::Add { item: AddedItem::RecomputeOpen, .. } => "recompute ?".into(),
        Change::Add { item: AddedItem::Hold(hold), .. } => format!("hold = {}", hold_word(*hold)),
        Change::Add { item: AddedItem::OneForwardOneBackward, .. } => "schedule = one_f_one_b".into(),
    };
    changes.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// The same with the axes a `store` needs.
fn named(changes: &[Change], c: &Compiled<'_>) -> String {
    text(changes).replace("store state", &store_item(c))
}

fn store_item(c: &Compiled<'_>) -> String {
    let axes = c.job.layout.names(&c.job.batch_axes);
    match &axes[..] {
        [one] => format!("store state over {one}"),
        _ => format!("store state over [{}]", axes.join(", ")),
    }
}

fn edits(changes: &[Change], c: &Compiled<'_>, sources: &Sources) -> Vec<Edit> {
    let one = |x: &Change| match x {
        Change::Set { name, value, span } => {
            let unit = if name == "micro_batch" { " seq" } else { "" };
            Edit { span: *span, text: format!("{value}{unit}") }
        }
        Change::Add { item, after } => {
            let text = match item {
                AddedItem::StoreState => store_item(c),
                AddedItem::RecomputeAll => "recompute all".into(),
                AddedItem::RecomputeOpen => "recompute ?".into(),
                AddedItem::Hold(hold) => {
                    return Edit { span: *after, text: with_hold(sources.snippet(*after), *hold) };
                }
                AddedItem::OneForwardOneBackward => {
                    return Edit { span: *after, text: "one_f_one_b".into() };
                }
            };
            if c.job.places.get("layout") == Some(after) {
                let end = Span { start: after.end, ..*after };
                return Edit { span: end, text: format!(" with {{ {text} }}") };
            }
            Edit { span: end_of_line(*after, sources), text: format!("\n{}{text}", indent(*after, sources)) }
        }
    };
    changes.iter().map(one).collect()
}

/// The end of the line `span` ends on: what is added goes below it, comments stay where they are.
fn end_of_line(span: Span, sources: &Sources) -> Span {
    let rest = sources.file(span.file).text.get(span.end as usize..).unwrap_or_default();
    let n = rest.find(['\n', '\r']).unwrap_or(rest.len()) as u32;
    Span { start: span.end + n, end: span.end + n, ..span }
}

fn indent(span: Span, sources: &Sources) -> String {
    let before = sources.file(span.file).text.get(..span.start as usize).unwrap_or_default();
    let line = before.rsplit('\n').next().unwrap_or_default();
    line.chars().take_while(|ch| ch.is_whitespace()).collect()
}

/// The error of a job that puts more on its hosts than they have.
pub(super) fn host_does_not_fit(c: &Compiled<'_>, sources: &Sources) -> Diagnostic {
    let bytes = |x: f64| show(x, &Unit::bytes());
    let (needs, has) = (c.value(c.roots.host_memory), c.job.cluster.host_memory());
    let host = c.job.cluster.host();
    let name = host.map_or("the host", |(r, _)| r.name.as_str());
    let devices = host.map_or(1, |(_, n)| n);
    let at = |s: &crate::layout::Store| s.tier_span.filter(|span| s.tier == Tier::Host && !sources.file(span.file).std);
    let stored = c.job.layout.stores.iter().find_map(at);
    let span = stored.or_else(|| c.job.places.get("layout").copied()).unwrap_or(c.job.span);
    let message = format!("a node puts {} on its host, `{name}` has {}", bytes(needs), bytes(has));
    let d = super::errors::does_not_fit(message, span, format!("{} too much", bytes(needs - has)));
    let mut classes: Vec<(&str, f64)> = Vec::new();
    let mut add = |name: &'static str, bytes: f64| match classes.iter_mut().find(|(n, _)| *n == name) {
        Some((_, sum)) => *sum += bytes,
        None => classes.push((name, bytes)),
    };
    let stages = c.facts.stages.iter().map(|s| (c.roots.stage_values(&c.graph, &c.inputs, s).host, s));
    let Some((_, facts)) = stages.max_by(|(a, _), (b, _)| a.total_cmp(b)) else { return d };
    for (u, unit) in c.sharded.units.iter().enumerate() {
        for p in &unit.params {
            let widths = crate::analyse::widths(&c.job, p);
            let elements = [p.rest_param, p.rest_grad, p.rest_state, p.rest_state];
            let names = ["parameters", "gradients", "optimizer state", "master copies"];
            for k in (0..4).filter(|k| p.rests[*k].tier == Tier::Host) {
                add(names[k], c.value(elements[k]) * widths[k] * facts.units[u] as f64);
            }
        }
        for s in unit.saved.iter().filter(|s| s.tier == Tier::Host) {
            add("activations", c.value(s.bytes) * facts.live[u] as f64);
        }
    }
    classes.retain(|(_, b)| *b > 0.0);
    classes.sort_by(|a, b| b.1.total_cmp(&a.1));
    let list: Vec<_> = classes.iter().map(|(n, b)| format!("{n} {}", bytes(b * devices as f64))).collect();
    d.note(format!("of the {devices} devices of a node: {}", list.join(", ")))
        .help("keep a class on the device, split it over more devices, or put it on drives: `on nvme(bandwidth = …)`")
}

/// The error of a job that needs more memory than its devices offer.
pub(super) fn does_not_fit(
    (program, id, settings): (&Program, DeclId, &Settings),
    c: &Compiled<'_>,
    sources: &Sources,
    found: &[Found],
) -> Diagnostic {
    let usable = c.job.cluster.device_field("usable");
    let bytes = |x: f64| show(x, &Unit::bytes());
    let stages: Vec<_> = c.facts.stages.iter().map(|s| c.roots.stage_values(&c.graph, &c.inputs, s)).collect();
    let worst =
        (0..stages.len()).max_by(|a, b| stages[*a].total.total_cmp(&stages[*b].total).then(b.cmp(a))).unwrap_or(0);
    let (v, facts) = (&stages[worst], &c.facts.stages[worst]);
    let device = &c.job.cluster.device.name;
    let who = if stages.len() > 1 { format!("stage {worst}") } else { "every rank".into() };
    let message = format!("{who} needs {} per device, {device} offers {}", bytes(v.total), bytes(usable));

    // What one would change first: the microbatch where activations weigh most, else the layout.
    let micro = c.value(c.job.micro_batch);
    let activations = v.activations + v.transient;
    let at_rest = v.params + v.grads + v.state + v.gathered;
    let place = |name: &str| c.job.places.get(name).copied();
    let more = if found.is_empty() { more_machines(program, sources, id, settings, c) } else { None };
    let schedule = fewer_in_flight(c, sources)
        .filter(|_| found.iter().any(|f| f.shown.edit.contains("one_f_one_b")))
        .and(c.job.pipeline.as_ref());
    let (span, label) = match place("micro_batch") {
        _ if schedule.is_some() && activations > at_rest => {
            let at = schedule.map_or(c.job.span, |p| p.schedule_span);
            (at, format!("keeps {} microbatches in flight: activations {}", facts.in_flight, bytes(v.activations)))
        }
        // Nothing to change of the layout helps: it is machines that lack.
        _ if more.is_some() && at_rest > usable => {
            let span = place("cluster").unwrap_or(c.job.span);
            (span, format!("{} too little on each device", bytes(v.total - usable)))
        }
        Some(span) if activations > at_rest && micro > 1.0 => (span, format!("activations: {}", bytes(activations))),
        _ => {
            let span = place("layout").unwrap_or(c.job.span);
            (span, format!("{} too much", bytes(v.total - usable)))
        }
    };
    let mut d = super::errors::does_not_fit(message, span, label);
    let mut parts = vec![
        ("parameters", v.params),
        ("gathered parameters", v.gathered),
        ("gradients", v.grads),
        ("optimizer state", v.state),
        ("activations", v.activations),
        ("working set of one operation", v.transient),
    ];
    parts.retain(|(_, x)| *x >= 0.005 * v.total);
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    let list: Vec<_> = parts.iter().map(|(n, x)| format!("{n} {}", bytes(*x))).collect();
    d = d.note(list.join(", "));
    let layers: i64 = c.job.ops.units.iter().zip(&facts.units).filter(|(u, _)| u.repeated).map(|(_, n)| *n).sum();
    d = d.note(format!(
        "{layers} layers on the rank, {} microbatch{} in flight, micro_batch {micro} seq",
        facts.in_flight,
        if facts.in_flight == 1 { "" } else { "es" }
    ));
    for largest in crate::emit::assemble::largest(c, facts, sources).iter().take(3) {
        let class = largest.class;
        let note = format!(
            "{class} `{}` in {}: {} ({})",
            largest.what,
            if largest.region.is_empty() { "the model" } else { &largest.region },
            bytes(largest.bytes as f64),
            largest.place
        );
        // Tensors that look alike are named once.
        if !d.notes.contains(&note) {
            d = d.note(note);
        }
    }
    if let Some(arithmetic) = largest_saved(c, facts) {
        d = d.note(arithmetic);
    }
    let stages_list = stages.iter().map(|s| bytes(s.total)).collect::<Vec<_>>();
    if (2..=16).contains(&stages_list.len()) {
        d = d.note(format!("stages need {}", stages_list.join(", ")));
    }
    let whole = |r: &crate::layout::Recompute| r.scope.is_everywhere() && r.what == crate::layout::RecomputeWhat::All;
    if activations > at_rest && !c.job.layout.recompute.iter().any(whole) {
        d = d.help("`recompute all` keeps the input of each layer alone, for a second forward");
    }
    if found.is_empty() && !explorable(c) {
        return d.note("the schedule is too long to try other layouts");
    }
    if let Some((what, memory)) = more {
        return d.help(format!("`{what}` is the least that fits, at {}", bytes(memory)));
    }
    if found.is_empty() {
        return d.help("no layout one or two edits away fits: more devices, or a smaller model or batch");
    }
    for f in found {
        let effect = format!("fits at {}, step time {:+.1}%", bytes(f.memory), 100.0 * f.shown.step_change);
        if f.edits.is_empty() {
            d = d.help(format!("`{}` {effect}", f.shown.edit));
            continue;
        }
        d.fixes.push(Fix {
            title: format!("write `{}`", f.shown.edit),
            edits: f.edits.clone(),
            applicability: Applicability::Unsure,
            effect: Some(effect),
        });
    }
    d
}

/// The largest saved activation of a stage, its bytes worked out: `16 × 8192 × 128256 × 4 B = 62.6 GiB`.
fn largest_saved(c: &Compiled<'_>, facts: &crate::analyse::StageFacts) -> Option<String> {
    let units = c.sharded.units.iter().zip(&facts.live).filter(|(_, live)| **live > 0);
    let all = units.flat_map(|(u, live)| u.saved.iter().map(move |s| (s, *live)));
    let weigh = |(s, live): &(&crate::partition::Saved, i64)| c.value(s.bytes) * *live as f64;
    let (saved, live) = all.reduce(|a, b| if weigh(&b) > weigh(&a) { b } else { a })?;
    let value = c.job.ops.value(saved.value);
    let place = &c.sharded.placements[saved.value.0 as usize];
    let extent = |dim: &crate::graph::DimId| {
        let whole = c.value(c.job.ops.dims[dim.0 as usize].extent);
        let axes = place.dims.iter().filter(|(d, _)| d == dim).flat_map(|(_, axes)| axes.iter());
        axes.fold(whole, |n, a| n / c.value(c.job.layout.axis(*a).size))
    };
    let extents: Vec<f64> = value.dims.iter().map(extent).collect();
    let (each, elements) = (c.value(saved.bytes), extents.iter().product::<f64>());
    let width = each / elements;
    let times = extents.iter().map(|n| format!("{n:.0}")).collect::<Vec<_>>().join(" × ");
    let copies = if live > 1 { format!(", {live} times") } else { String::new() };
    let name = c.job.ops.describe(saved.value);
    let name = if name.starts_with('[') { format!("value{name}") } else { name };
    (elements > 0.0 && width > 0.0)
        .then(|| format!("`{name}`: {times} × {width:.0} B = {}{copies}", show(each, &Unit::bytes())))
}
