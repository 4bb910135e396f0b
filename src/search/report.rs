//! What a search found, as data that leaves the program: for people, for spreadsheets, and to be joined with the other
//! parts of a search that several machines share.

use super::{Answer, Row, Space, Task, grouped};
use crate::elaborate::Settings;
use crate::units::{Unit, show};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// The version of the data.
const SCHEMA: &str = "parc-search/2";

/// What a search found.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
pub struct Report {
    schema: String,
    /// The job's name.
    pub job: String,
    /// Points of the whole space.
    pub points: u64,
    /// Points that obey every rule, of those judged whole.
    pub legal: u64,
    /// Points judged whole, their schedule run.
    pub judged: u64,
    /// Points that cannot be among the best, whatever their schedule does.
    pub bounded: u64,
    /// Whether nothing that was looked at may be better.
    pub proved: bool,
    /// Whether the search was stopped before its end.
    pub stopped: bool,
    /// Which part of how many, from 1.
    pub part: (u64, u64),
    /// A checksum of the choices and their values.
    space: String,
    /// Rows asked for.
    top: usize,
    /// Points that broke each rule first.
    pub rejected: Vec<Rejected>,
    /// What the search was after.
    pub goals: Vec<Goal>,
    /// The best points in their order.
    pub best: Vec<Point>,
}

/// A rule and the points that broke it first.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
pub struct Rejected {
    /// The rule.
    pub rule: String,
    /// How many points.
    pub points: u64,
    /// Its place among the rules: sort, file, position.
    order: (u8, u32, u32),
}

/// A goal.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Goal {
    /// As written.
    pub text: String,
    /// Whether more is better.
    pub maximize: bool,
}

/// A legal point.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
pub struct Point {
    /// The value of each choice, as written.
    pub choices: IndexMap<String, String>,
    /// Each goal's value.
    pub objectives: IndexMap<String, f64>,
    /// The same with units.
    shown: Vec<String>,
    /// Seconds of an update.
    pub step_time_s: f64,
    /// Tokens a second on all devices.
    pub tokens_per_s: f64,
    /// Bytes of the fullest stage.
    pub peak_memory_bytes: f64,
    /// Model FLOP over peak FLOP.
    pub mfu: f64,
    /// Its place in the space.
    index: u64,
}

/// Why reports cannot be joined.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CannotMerge {
    /// There are none.
    Nothing,
    /// They are of different spaces or goals: the second of the two, by position.
    Differs(usize),
    /// These parts are missing or twice there.
    Parts(String),
}

impl std::fmt::Display for CannotMerge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nothing => write!(f, "there is nothing to join"),
            Self::Differs(i) => write!(f, "file {} is of another search than the first", i + 1),
            Self::Parts(which) => write!(f, "{which}"),
        }
    }
}

impl Report {
    /// The report of a search.
    pub fn new(job: &str, task: Task<'_>, space: &Space, answer: &Answer) -> Self {
        let rejected = answer.rejected.iter().map(|r| {
            let order = (r.rule.kind as u8, r.rule.span.file.0, r.rule.span.start);
            Rejected { rule: r.rule.name.clone(), points: r.points, order }
        });
        let goals = answer.goals.iter().map(|g| Goal { text: g.text.clone(), maximize: g.maximize });
        let point = |row: &Row| Point {
            choices: space
                .locate(row.point)
                .map(|(region, n)| region.named(n))
                .unwrap_or_default()
                .into_iter()
                .collect(),
            objectives: answer.goals.iter().zip(&row.objectives).map(|(g, v)| (g.text.clone(), g.value(*v))).collect(),
            shown: answer.goals.iter().zip(&row.objectives).map(|(g, v)| show(g.value(*v), &g.unit)).collect(),
            step_time_s: row.step_time,
            tokens_per_s: row.tokens_per_s,
            peak_memory_bytes: row.peak_memory,
            mfu: row.mfu,
            index: row.point,
        };
        // The runner-up is kept whatever was asked for.
        let kept = if answer.goals.len() > 1 { answer.rows.len() } else { answer.rows.len().min(task.top.max(2)) };
        Self {
            schema: SCHEMA.to_string(),
            job: job.to_string(),
            points: answer.points,
            legal: answer.legal,
            judged: answer.judged,
            bounded: answer.bounded,
            proved: answer.proved,
            stopped: answer.stopped,
            part: (task.part.0 + 1, task.part.1),
            space: format!("{:016x}", checksum(space, task.settings)),
            top: task.top.max(1),
            rejected: rejected.collect(),
            goals: goals.collect(),
            best: answer.rows[..kept].iter().map(point).collect(),
        }
    }

    /// One report of the parts of a search: the rows of a search of the whole.
    pub fn merge(parts: &[Report]) -> Result<Report, CannotMerge> {
        let Some(first) = parts.first() else { return Err(CannotMerge::Nothing) };
        let key = |r: &Report| (r.schema.clone(), r.job.clone(), r.points, r.part.1, r.space.clone(), r.goals.clone());
        if let Some(i) = parts.iter().position(|r| key(r) != key(first)) {
            return Err(CannotMerge::Differs(i));
        }
        let counted = |k: u64| parts.iter().filter(|r| r.part.0 == k).count();
        let list = |wanted: &dyn Fn(usize) -> bool| {
            let found: Vec<_> =
                (1..=first.part.1).filter(|k| wanted(counted(*k))).take(9).map(|k| k.to_string()).collect();
            found.join(", ")
        };
        let (missing, twice) = (list(&|n| n == 0), list(&|n| n > 1));
        let said = [("missing", &missing), ("there more than once", &twice)];
        let said: Vec<_> = said.iter().filter(|(_, l)| !l.is_empty()).map(|(what, l)| format!("{what}: {l}")).collect();
        if !said.is_empty() {
            return Err(CannotMerge::Parts(format!("of {} parts, {}", first.part.1, said.join("; "))));
        }
        let mut whole = first.clone();
        for other in &parts[1..] {
            whole.legal += other.legal;
            whole.judged += other.judged;
            whole.bounded += other.bounded;
            whole.proved &= other.proved;
            whole.stopped |= other.stopped;
            whole.best.extend(other.best.iter().cloned());
            for r in &other.rejected {
                match whole.rejected.iter_mut().find(|own| own.rule == r.rule) {
                    Some(own) => own.points += r.points,
                    None => whole.rejected.push(r.clone()),
                }
            }
        }
        whole.part = (1, 1);
        whole.rejected.sort_by(|a, b| a.order.cmp(&b.order).then(a.rule.cmp(&b.rule)));
        let goals = whole.goals.clone();
        let mut rows: Vec<(Row, Point)> = whole.best.drain(..).map(|p| (row(&goals, &p), p)).collect();
        let mut kept: Vec<Row> = rows.iter().map(|(r, _)| r.clone()).collect();
        super::answer::keep_best(&mut kept, goals.len(), whole.top);
        rows.retain(|(r, _)| kept.contains(r));
        let place = |p: &Point| kept.iter().position(|r| r.point == p.index);
        rows.sort_by_key(|(_, p)| place(p));
        whole.best = rows.into_iter().map(|(_, p)| p).collect();
        Ok(whole)
    }

    /// From the JSON of a report.
    pub fn read(text: &str) -> Result<Report, String> {
        let report: Report = serde_json::from_str(text).map_err(|e| e.to_string())?;
        if report.schema == SCHEMA { Ok(report) } else { Err(format!("`{}`, not `{SCHEMA}`", report.schema)) }
    }

    /// Names of every choice, in the order they are first met.
    pub fn choices(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for name in self.best.iter().flat_map(|p| p.choices.keys()) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        names
    }

    /// Rows shown: of one goal the best, of several the front.
    pub fn rows(&self) -> &[Point] {
        &self.best[..self.best.len().min(self.top)]
    }

    /// As JSON, one line.
    pub fn json(&self) -> String {
        serde_json::to_string(self).map(|s| s + "\n").unwrap_or_default()
    }

    /// As CSV: times in seconds, memory in bytes.
    pub fn csv(&self) -> String {
        let names = self.choices();
        // Quoted where a cell would end early.
        let cell = |s: &str| {
            if s.contains([',', '"', '\n']) { format!("\"{}\"", s.replace('"', "\"\"")) } else { s.to_string() }
        };
        let goals: Vec<_> = self.goals.iter().map(|g| g.text.as_str()).filter(|g| !OWN.contains(g)).collect();
        let head = names.iter().copied().chain(goals.iter().copied());
        let mut out = head.map(cell).chain(COLUMNS.map(String::from)).collect::<Vec<_>>().join(",");
        out.push('\n');
        for p in self.rows() {
            let choices = names.iter().map(|n| cell(p.choices.get(*n).map_or("", String::as_str)));
            let goals = goals.iter().map(|g| p.objectives.get(*g).map_or_else(String::new, ToString::to_string));
            let own = [p.step_time_s, p.tokens_per_s, p.peak_memory_bytes, p.mfu].map(|v| v.to_string());
            out.push_str(&choices.chain(goals).chain(own).collect::<Vec<_>>().join(","));
            out.push('\n');
        }
        out
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let number = |n: u64| grouped(u128::from(n));
        let counted = |n: u64, what: &str| format!("{} {what}{}", number(n), if n == 1 { "" } else { "s" });
        let of_part =
            if self.part.1 > 1 { format!(", part {} of {}", self.part.0, self.part.1) } else { String::new() };
        let whole = self.judged == self.points;
        let run = if whole { String::new() } else { format!(" of {} judged whole", number(self.judged)) };
        let _ = writeln!(
            out,
            "{}: {}{of_part}, {} legal{run}",
            self.job,
            counted(self.points, "point"),
            number(self.legal)
        );
        let left = [(self.bounded, "cannot be among the best, whatever their schedule does")];
        let left = left.iter().filter(|(n, _)| *n > 0);
        let rejected = self.rejected.iter().map(|r| (r.points, format!("rejected: {}", r.rule)));
        let lines: Vec<_> = rejected.chain(left.map(|(n, what)| (*n, (*what).to_string()))).collect();
        let width = lines.iter().map(|(n, _)| number(*n).len()).max().unwrap_or(0);
        for (n, what) in &lines {
            let _ = writeln!(out, "  {:>width$} {what}", number(*n));
        }
        if self.stopped {
            let _ = writeln!(out, "  stopped: what follows is the best of what was looked at");
        } else if !self.proved {
            let _ = writeln!(out, "  not proved: more points than can be judged are as good as their bounds");
        }
        let names = self.choices();
        let others: Vec<usize> =
            (0..self.goals.len()).filter(|g| !OWN.contains(&self.goals[*g].text.as_str())).collect();
        let mut head = vec!["#".to_string()];
        head.extend(names.iter().map(ToString::to_string));
        head.extend(others.iter().map(|g| self.goals[*g].text.clone()));
        head.extend(["step time", "tokens/s", "memory", "MFU"].map(String::from));
        let mut table = vec![head];
        for (i, p) in self.rows().iter().enumerate() {
            let mut line = vec![(i + 1).to_string()];
            line.extend(names.iter().map(|n| p.choices.get(*n).cloned().unwrap_or_default()));
            line.extend(others.iter().map(|g| p.shown.get(*g).cloned().unwrap_or_default()));
            line.push(show(p.step_time_s, &Unit::time()));
            line.push(grouped(p.tokens_per_s as u128));
            line.push(format!("{:.1} GiB", p.peak_memory_bytes / f64::from(1 << 30)));
            line.push(format!("{:.1}%", 100.0 * p.mfu));
            table.push(line);
        }
        let widths: Vec<usize> =
            (0..table[0].len()).map(|c| table.iter().map(|l| l[c].chars().count()).max().unwrap_or(0)).collect();
        let _ = writeln!(out);
        for line in &table {
            let padded: Vec<_> = line.iter().zip(&widths).map(|(cell, w)| format!("{cell:>w$}")).collect();
            let _ = writeln!(out, "  {}", padded.join("  ").trim_end());
        }
        if let Some(why) = self.runner_up() {
            let _ = writeln!(out, "\n{why}");
        }
        out
    }

    /// The second best point and why it is not the best.
    fn runner_up(&self) -> Option<String> {
        if self.goals.len() > 1 {
            let n = self.best.len();
            return Some(format!("{n} point{} that no other beats in every objective", if n == 1 { "" } else { "s" }));
        }
        let [best, next, ..] = &self.best[..] else { return Some("no other point is legal".into()) };
        let goal = self.goals.first()?;
        let named: Vec<_> = next.choices.iter().map(|(n, v)| format!("{n} = {v}")).collect();
        let ((_, a), (_, b)) = (best.objectives.first()?, next.objectives.first()?);
        let why = if a.to_bits() != b.to_bits() {
            format!("`{}` is {} against {}", goal.text, next.shown.first()?, best.shown.first()?)
        } else if best.peak_memory_bytes < next.peak_memory_bytes {
            "as good, with more memory".into()
        } else {
            "as good, and later in the text".into()
        };
        Some(format!("runner-up: {}: {why}", named.join(", ")))
    }

    /// As one HTML file: the points over any two of their numbers, and a table with filters.
    pub fn page(&self) -> String {
        // Nothing in a string can end the script.
        PAGE.replace(MARK, &self.json().replace('<', "\\u003c"))
    }
}

/// The page around the data, and where that goes.
const PAGE: &str = include_str!("page.html");
const MARK: &str = "/*DATA*/null";

/// Metrics that every row shows.
const OWN: [&str; 4] = ["step_time", "tokens_per_s", "peak_memory", "mfu"];
const COLUMNS: [&str; 4] = ["step_time_s", "tokens_per_s", "peak_memory_bytes", "mfu"];

/// The row a point was.
fn row(goals: &[Goal], p: &Point) -> Row {
    let objective = |g: &Goal| {
        let v = p.objectives.get(&g.text).copied().unwrap_or(f64::INFINITY);
        if g.maximize { 0.0 - v } else { v }
    };
    Row {
        point: p.index,
        objectives: goals.iter().map(objective).collect(),
        step_time: p.step_time_s,
        tokens_per_s: p.tokens_per_s,
        peak_memory: p.peak_memory_bytes,
        mfu: p.mfu,
    }
}

/// FNV-1a of what is open and what was given.
fn checksum(space: &Space, settings: &Settings) -> u64 {
    let mut text = String::new();
    for region in &space.regions {
        for fixed in &region.fixed {
            let _ = write!(text, "{}={};", fixed.name, fixed.text);
        }
        for axis in &region.axes {
            let _ = write!(text, "{}:{};", axis.name, axis.len());
            for i in [0, axis.len().saturating_sub(1)] {
                let _ = write!(text, "{},", axis.value(i));
            }
        }
    }
    for (name, value) in &settings.values {
        let _ = write!(text, "{name}={value};");
    }
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}
