//! Two plans compared: only what differs, in the order of a report. Nothing here is computed anew; every figure stands in
//! one of the plans.

use super::plan::{AxisRole, Plan, RecomputeInfo, RecomputePart, StageMemory};
use super::targets::Program;
use serde::Serialize;
use std::collections::BTreeMap;

/// Name and version of the schema of a difference as JSON.
pub const SCHEMA: &str = "parc-diff/1";

/// What differs between two plans.
#[derive(Clone, Debug, Serialize)]
pub struct Diff {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The plan before.
    pub before: Side,
    /// The plan after.
    pub after: Side,
    /// Model, cluster, mesh, batch, storage, schedule.
    pub layout: Vec<Words>,
    /// Bytes on one device, by pipeline rank and class.
    pub memory: Vec<Amount>,
    /// The step and its parts.
    pub time: Vec<Amount>,
    /// What a rank sends in a step, how often, and the seconds nothing hides: by level of the cluster, then by collective.
    pub traffic: Vec<Amount>,
    /// Claims that hold in one of the plans only, or stand in one only.
    pub claims: Vec<Words>,
    /// What the target is told, where one is compared.
    pub target: Option<Flags>,
}

/// One of the two plans.
#[derive(Clone, Debug, Serialize)]
pub struct Side {
    /// Its file.
    pub file: String,
    /// Its job.
    pub job: String,
    /// Values set on the command line.
    pub set: Vec<(String, String)>,
    /// Whether it fits.
    pub fits: bool,
}

/// Something said otherwise; `None` where it is not said.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Words {
    /// What it is: `tp`, `schedule`.
    pub what: String,
    /// In the plan before.
    pub before: Option<String>,
    /// In the plan after.
    pub after: Option<String>,
}

/// A figure that differs; `None` where it is not there.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Amount {
    /// What it belongs to: `stage 0-3`, `node`.
    pub group: String,
    /// What it is: `activations`, `all-reduce gradients over dp`.
    pub what: String,
    /// Its unit.
    pub unit: Measure,
    /// In the plan before.
    pub before: Option<f64>,
    /// In the plan after.
    pub after: Option<f64>,
}

/// The unit of a figure.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Bytes held.
    Held,
    /// Bytes sent.
    Sent,
    /// Seconds.
    Seconds,
    /// Tokens of a second.
    TokensPerSecond,
    /// A share of one.
    Share,
    /// Dollars.
    Dollars,
    /// How many.
    Count,
}

/// What a framework is told, compared.
#[derive(Clone, Debug, Serialize)]
pub struct Flags {
    /// The target.
    pub name: String,
    /// Options and environment, by name.
    pub options: Vec<Words>,
    /// Lines of its files that are in one of the plans only: the file, the line before, the line after.
    pub lines: Vec<Words>,
}

/// What differs between `before` and `after`, and between what a target makes of them.
pub fn diff(before: &Plan, after: &Plan, programs: Option<(&Program, &Program)>) -> Diff {
    Diff {
        schema: SCHEMA,
        before: side(before),
        after: side(after),
        layout: words(&said(before), &said(after)),
        memory: memory(before, after),
        time: amounts(&times(before), &times(after)),
        traffic: amounts(&traffic(before), &traffic(after)),
        claims: words(&claims(before), &claims(after)),
        target: programs.map(|(a, b)| flags(a, b)),
    }
}

impl Diff {
    /// Whether the plans are the same, as far as they are compared.
    pub fn is_empty(&self) -> bool {
        let target = self.target.as_ref().is_none_or(|t| t.options.is_empty() && t.lines.is_empty());
        let figures = [&self.memory, &self.time, &self.traffic];
        target && self.layout.is_empty() && self.claims.is_empty() && figures.iter().all(|f| f.is_empty())
    }
}

fn side(plan: &Plan) -> Side {
    let Plan { job, memory, .. } = plan;
    Side { file: job.file.clone(), job: job.name.clone(), set: job.set.clone(), fits: memory.fits }
}

/// Names and values in order, of one plan.
type Said = Vec<(String, String)>;

/// Every name of the two lists in order, those of the second at the place they have there.
fn merged<'a, T>(before: &'a [(String, T)], after: &'a [(String, T)]) -> Vec<&'a str> {
    let mut names: Vec<&str> = before.iter().map(|(n, _)| n.as_str()).collect();
    for (i, (name, _)) in after.iter().enumerate() {
        if !names.contains(&name.as_str()) {
            let previous = after.get(i.wrapping_sub(1)).and_then(|(p, _)| names.iter().position(|n| n == p));
            names.insert(previous.map_or(0, |p| p + 1), name);
        }
    }
    names
}

fn find<'a, T>(list: &'a [(String, T)], name: &str) -> Option<&'a T> {
    list.iter().find(|(n, _)| n == name).map(|(_, v)| v)
}

fn words(before: &Said, after: &Said) -> Vec<Words> {
    let row = |name: &str| Words {
        what: name.to_owned(),
        before: find(before, name).cloned(),
        after: find(after, name).cloned(),
    };
    merged(before, after).into_iter().map(row).filter(|w| w.before != w.after).collect()
}

/// What a plan says of model, cluster and layout.
fn said(plan: &Plan) -> Said {
    let mut out = Said::new();
    let mut put = |name: &str, value: String| out.push((name.to_owned(), value));
    let Plan { model, cluster, layout, training, pipeline, .. } = plan;
    put("model", model.name.clone());
    put("parameters", model.params.to_string());
    put("cluster", cluster.name.clone());
    put("devices", format!("{} x {}", cluster.devices, cluster.device));
    put("layout", layout.name.clone());
    put("mesh", format!("[{}]", layout.axes.iter().map(|a| a.name.as_str()).collect::<Vec<_>>().join(", ")));
    for axis in &layout.axes {
        put(&axis.name, axis.size.to_string());
        if axis.size > 1 {
            put(&format!("{} within", axis.name), axis.level.clone());
            put(&format!("{} does", axis.name), role(axis.role).into());
        }
    }
    put("batch", format!("{} seq", training.batch));
    put("sequence", format!("{} tok", training.sequence));
    put("micro_batch", format!("{} seq", training.micro_batch));
    put("microbatches", training.microbatches.to_string());
    put("replicas", training.replicas.to_string());
    put("optimizer", training.optimizer.clone());
    for (class, dtype) in &training.precision {
        put(&format!("{class} in"), dtype.clone());
    }
    for (class, axes) in &layout.stored {
        put(&format!("store {class} over"), axes.join(", "));
    }
    if let Some(experts) = &layout.experts {
        for axis in &experts.axes {
            put(&format!("experts over {}", axis.name), axis.size.to_string());
        }
        for (class, axes) in &experts.stored {
            put(&format!("experts store {class} over"), axes.join(", "));
        }
    }
    let switch = |on: bool| on.then(|| "yes".to_owned());
    let optional = [
        ("held for a", layout.hold.map(str::to_owned)),
        ("sequence parallel", switch(layout.sequence_parallel)),
        ("attention via", layout.context_method.map(str::to_owned)),
        ("overlap gather", switch(layout.overlap_gather)),
        ("overlap reduce", switch(layout.overlap_reduce)),
        ("overlap p2p", switch(layout.overlap_p2p)),
        ("overlap experts", switch(layout.overlap_experts)),
        ("recompute", recompute(&layout.recompute)),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            put(name, value);
        }
    }
    for (dim, from, to) in layout.pads.iter().filter(|(_, from, to)| from != to) {
        put(&format!("pad {dim}"), format!("{from} to {to}"));
    }
    if pipeline.axis.is_some() {
        put("schedule", pipeline.schedule.clone());
        for (name, value) in &pipeline.arguments {
            put(&format!("schedule {name}"), value.to_string());
        }
        put("chunks a rank", pipeline.chunks_per_rank.to_string());
        let layers: Vec<_> = plan.memory.stages.iter().map(|s| s.layers.to_string()).collect();
        put("layers of stages", layers.join(" "));
    }
    out
}

fn role(role: AxisRole) -> &'static str {
    match role {
        AxisRole::Data => "data parallelism",
        AxisRole::Context => "context parallelism",
        AxisRole::Tensor => "tensor parallelism",
        AxisRole::Pipeline => "the pipeline",
        AxisRole::Expert => "expert parallelism",
        AxisRole::Idle => "nothing",
    }
}

fn recompute(info: &RecomputeInfo) -> Option<String> {
    match info {
        RecomputeInfo::None => None,
        RecomputeInfo::Full => Some("every layer".into()),
        RecomputeInfo::Other(what) => Some(what.clone()),
        RecomputeInfo::Parts(parts) => {
            let names = parts.iter().map(|p| match p {
                RecomputePart::Region(region) => region.as_str(),
                RecomputePart::Norms => "the norms",
            });
            Some(names.collect::<Vec<_>>().join(", "))
        }
    }
}

fn claims(plan: &Plan) -> Said {
    let verdict = |c: &super::plan::Claim| format!("{}, {}", if c.holds { "holds" } else { "fails" }, c.found);
    plan.claims.iter().map(|c| (format!("{} {}", c.kind, c.text), verdict(c))).collect()
}

/// Figures in order: group and name, unit, value.
type Figures = Vec<(String, (String, Measure, f64))>;

/// A figure under a key of its group and name.
fn figure(group: &str, what: &str, unit: Measure, value: f64) -> (String, (String, Measure, f64)) {
    (format!("{group}\n{what}\n{unit:?}"), (what.to_owned(), unit, value))
}

fn amounts(before: &Figures, after: &Figures) -> Vec<Amount> {
    let row = |key: &str| {
        let (a, b) = (find(before, key), find(after, key));
        let (what, unit, _) = a.or(b)?;
        let group = key.split('\n').next().unwrap_or_default().to_owned();
        Some(Amount { group, what: what.clone(), unit: *unit, before: a.map(|(.., v)| *v), after: b.map(|(.., v)| *v) })
    };
    merged(before, after).into_iter().filter_map(row).filter(differs).collect()
}

/// Whether a figure is another one. A figure that is missing is zero.
fn differs(a: &Amount) -> bool {
    a.before.unwrap_or(0.0).total_cmp(&a.after.unwrap_or(0.0)).is_ne()
}

/// A class of memory and its bytes.
type Class = (&'static str, Measure, fn(&StageMemory) -> u64);

const CLASSES: [Class; 9] = [
    ("params", Measure::Held, |s| s.params),
    ("gathered", Measure::Held, |s| s.gathered),
    ("grads", Measure::Held, |s| s.grads),
    ("state", Measure::Held, |s| s.state),
    ("activations", Measure::Held, |s| s.activations),
    ("in flight", Measure::Count, |s| s.in_flight),
    ("working set", Measure::Held, |s| s.transient),
    ("allocator", Measure::Held, |s| s.overhead),
    ("total", Measure::Held, |s| s.total),
];

/// By stage, neighbours with the same figures in both plans as one.
fn memory(before: &Plan, after: &Plan) -> Vec<Amount> {
    let (a, b) = (&before.memory.stages, &after.memory.stages);
    let figures = |stage: Option<&StageMemory>| stage.map(|s| CLASSES.map(|(.., of)| of(s)));
    let all: Vec<_> = (0..a.len().max(b.len())).map(|i| (figures(a.get(i)), figures(b.get(i)))).collect();
    let mut out = Vec::new();
    for ((a, b), first, last) in super::report::numbers::runs(&all) {
        let group = if all.len() == 1 {
            "device".to_owned()
        } else {
            format!("stage {}", super::report::numbers::range(first, last))
        };
        out.extend(CLASSES.iter().enumerate().map(|(i, (what, unit, _))| Amount {
            group: group.clone(),
            what: (*what).to_owned(),
            unit: *unit,
            before: a.map(|a| a[i] as f64),
            after: b.map(|b| b[i] as f64),
        }));
    }
    out.retain(differs);
    out
}

fn times(plan: &Plan) -> Figures {
    let t = &plan.time;
    let mut out = vec![
        figure("step", "whole", Measure::Seconds, t.step),
        figure("step", "tokens/s", Measure::TokensPerSecond, t.tokens_per_s),
        figure("step", "mfu", Measure::Share, t.mfu),
        figure("step", "hfu", Measure::Share, t.hfu),
        figure("step", "bubble", Measure::Share, plan.pipeline.bubble),
        figure("step", "price", Measure::Dollars, t.price),
    ];
    out.extend(t.parts.iter().map(|(name, seconds)| figure("part", name, Measure::Seconds, *seconds)));
    out
}

/// What a collective is by, apart from the tensor.
type Kind<'a> = (&'a str, &'a [String], &'a str, &'a str);

/// Bytes a rank sends and seconds it waits, by level and link, then by collective.
fn traffic(plan: &Plan) -> Figures {
    let mut out = Figures::new();
    let mut levels: Vec<&str> = plan.cluster.levels.iter().map(|l| l.name.as_str()).collect();
    let strays = plan.collectives.iter().map(|c| c.level.as_str());
    for level in strays {
        if !levels.contains(&level) {
            levels.push(level);
        }
    }
    for level in levels {
        let info = plan.cluster.levels.iter().find(|l| l.name == level);
        let group = info.map_or(level.to_owned(), |l| match l.links {
            0 | 1 => format!("{level}, {}", l.link),
            n => format!("{level}, {n} x {}", l.link),
        });
        let (mut sent, mut exposed) = (0.0, 0.0);
        let mut kinds: BTreeMap<Kind, (f64, f64, f64)> = BTreeMap::new();
        for c in plan.collectives.iter().filter(|c| c.level == level) {
            let k = kinds.entry((c.kind, c.axes.as_slice(), c.purpose, &c.level)).or_default();
            *k = (k.0 + c.count as f64, k.1 + c.sent as f64, k.2 + c.exposed);
            sent += c.sent as f64;
            exposed += c.exposed;
        }
        if kinds.is_empty() {
            continue;
        }
        out.push(figure(&group, "everything", Measure::Sent, sent));
        out.push(figure(&group, "everything", Measure::Seconds, exposed));
        for ((kind, axes, purpose, _), (count, sent, exposed)) in kinds {
            let name = format!("{kind} {purpose} over {}", axes.join("+"));
            out.push(figure(&group, &name, Measure::Sent, sent));
            out.push(figure(&group, &name, Measure::Count, count));
            out.push(figure(&group, &name, Measure::Seconds, exposed));
        }
    }
    out
}

fn flags(before: &Program, after: &Program) -> Flags {
    let options = |p: &Program| -> Said {
        let all = p.derived.iter().chain(&p.editable).flat_map(|s| &s.options);
        let text = |o: &super::targets::CliOption| o.values.iter().map(|v| v.text().to_owned()).collect::<Vec<_>>();
        let environment = p.environment.iter().cloned();
        environment.chain(all.map(|o| (o.flag.to_owned(), text(o).join(" ")))).collect()
    };
    let mut lines = Vec::new();
    let names: Vec<_> =
        before.files.keys().chain(after.files.keys().filter(|k| !before.files.contains_key(*k))).collect();
    for name in names {
        let of = |p: &Program| -> Vec<String> {
            let bytes = p.files.get(name).map_or(&[][..], |a| a.bytes.as_slice());
            String::from_utf8_lossy(bytes).lines().map(|l| l.trim().to_owned()).collect()
        };
        let (a, b) = (of(before), of(after));
        let what = name.display().to_string();
        let only =
            |x: &[String], y: &[String]| -> Vec<String> { x.iter().filter(|l| !y.contains(l)).cloned().collect() };
        let gone = only(&a, &b).into_iter().map(|l| Words { what: what.clone(), before: Some(l), after: None });
        lines.extend(gone);
        let come = only(&b, &a).into_iter().map(|l| Words { what: what.clone(), before: None, after: Some(l) });
        lines.extend(come);
    }
    Flags { name: before.target.to_owned(), options: words(&options(before), &options(after)), lines }
}
