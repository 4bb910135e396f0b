//! `parc search`: every point of a job's open choices, the best first, and what the others broke.

use super::project::{self, open};
use super::{Common, Inputs, Outcome};
use crate::elaborate::Settings;
use crate::hir::{DeclId, Program};
use crate::search::{self, Answer, Row, Space, Task};
use crate::source::Sources;
use crate::units::{Unit, show};
use clap::Args;
use std::fmt::Write;

#[derive(Args, Debug)]
pub(super) struct Arguments {
    #[command(flatten)]
    inputs: Inputs,
    /// Show so many of the best points
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Write the result as JSON
    #[arg(long)]
    json: bool,
    /// Write the points as CSV, times in seconds, memory in bytes
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Use so many threads; all cores otherwise
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
}

/// Threads a search may use.
pub(super) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// A search over everything that is open in `job`.
pub(super) fn task<'a>(
    program: &'a Program,
    sources: &'a Sources,
    job: DeclId,
    settings: &'a Settings,
    threads: usize,
) -> Task<'a> {
    Task { program, sources, job, settings, top: 10, threads, light: false, limit: u64::MAX }
}

pub(super) fn run(args: &Arguments, common: &Common) -> Outcome {
    let mut p = open(&args.inputs);
    p.require_jobs();
    let mut out = String::new();
    for id in if p.sink.has_errors() { Vec::new() } else { p.jobs.clone() } {
        let threads = args.jobs.unwrap_or_else(cores).clamp(1, 1024);
        let task = Task { top: args.top, ..task(&p.program, &p.sources, id, &p.settings, threads) };
        let name = p.program.entry(id).name();
        let Some(space) = Space::new(&p.program, id, &p.settings, &mut p.sink) else { continue };
        if space.open.is_empty() {
            p.sink.error(super::errors::nothing_open(&name.text, name.span));
            continue;
        }
        let bar = progress_bar(space.points);
        let answer = search::search(task, &space, &|done| bar.set_position(done));
        bar.finish_and_clear();
        if answer.rows.is_empty() {
            p.sink.error(search::explain(task, &space, &answer));
            continue;
        }
        let text = match (args.json, args.csv) {
            (true, _) => json(&name.text, &space, &answer, args.top),
            (_, true) => csv(&space, &answer, args.top),
            _ => text(&name.text, &space, &answer, args.top),
        };
        let gap = if out.is_empty() || args.json || args.csv { "" } else { "\n" };
        let _ = write!(out, "{gap}{text}");
    }
    let list = std::mem::take(&mut p.sink).finish();
    let outcome = project::report(&p.sources, &list, common);
    super::print(&out);
    outcome
}

/// Drawn on a terminal alone.
pub(super) fn progress_bar(points: u64) -> indicatif::ProgressBar {
    if super::stderr_is_terminal() { indicatif::ProgressBar::new(points) } else { indicatif::ProgressBar::hidden() }
}

/// The choices of a row, with their values.
fn choices(space: &Space, row: &Row) -> Vec<(String, String)> {
    space.locate(row.point).map(|(region, n)| region.named(n)).unwrap_or_default()
}

/// Names of every choice, in the order of the text.
fn columns(space: &Space) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (name, _) in &space.open {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

fn cells(space: &Space, row: &Row, names: &[String]) -> Vec<String> {
    let values = choices(space, row);
    let of = |name: &String| values.iter().find(|(n, _)| n == name).map_or_else(String::new, |(_, v)| v.clone());
    names.iter().map(of).collect()
}

/// Metrics that every row shows.
const OWN: [&str; 4] = ["step_time", "tokens_per_s", "peak_memory", "mfu"];

/// Rows shown: of one objective the best, of several the whole front.
fn shown(answer: &Answer, top: usize) -> &[Row] {
    &answer.rows[..answer.rows.len().min(top.max(1))]
}

fn text(job: &str, space: &Space, answer: &Answer, top: usize) -> String {
    let mut out = String::new();
    let counted =
        |n: u64, what: &str| format!("{} {what}{}", search::grouped(u128::from(n)), if n == 1 { "" } else { "s" });
    let _ = writeln!(
        out,
        "{job}: {}, {} legal",
        counted(answer.points, "point"),
        search::grouped(u128::from(answer.legal))
    );
    let width = answer.rejected.iter().map(|r| search::grouped(u128::from(r.points)).len()).max().unwrap_or(0);
    for r in &answer.rejected {
        let n = search::grouped(u128::from(r.points));
        let _ = writeln!(out, "  {n:>width$} rejected: {}", r.rule.name);
    }
    let names = columns(space);
    let mut table: Vec<Vec<String>> = Vec::new();
    let mut head = vec!["#".to_string()];
    head.extend(names.iter().cloned());
    let others: Vec<usize> =
        (0..answer.goals.len()).filter(|g| !OWN.contains(&answer.goals[*g].text.as_str())).collect();
    head.extend(others.iter().map(|g| answer.goals[*g].text.clone()));
    head.extend(["step time", "tokens/s", "memory", "MFU"].map(String::from));
    table.push(head);
    for (i, row) in shown(answer, top).iter().enumerate() {
        let mut line = vec![(i + 1).to_string()];
        line.extend(cells(space, row, &names));
        line.extend(others.iter().map(|g| {
            let goal = &answer.goals[*g];
            show(goal.value(row.objectives[*g]), &goal.unit)
        }));
        line.push(show(row.step_time, &Unit::time()));
        line.push(search::grouped(row.tokens_per_s as u128));
        line.push(format!("{:.1} GiB", row.peak_memory / f64::from(1 << 30)));
        line.push(format!("{:.1}%", 100.0 * row.mfu));
        table.push(line);
    }
    let widths: Vec<usize> =
        (0..table[0].len()).map(|c| table.iter().map(|l| l[c].chars().count()).max().unwrap_or(0)).collect();
    let _ = writeln!(out);
    for line in &table {
        let padded: Vec<_> = line.iter().zip(&widths).map(|(cell, w)| format!("{cell:>w$}")).collect();
        let _ = writeln!(out, "  {}", padded.join("  ").trim_end());
    }
    if let Some(why) = runner_up(space, answer) {
        let _ = writeln!(out, "\n{why}");
    }
    out
}

/// The second best point and why it is not the best.
fn runner_up(space: &Space, answer: &Answer) -> Option<String> {
    if answer.goals.len() > 1 {
        let n = answer.rows.len();
        return Some(format!("{n} point{} that no other beats in every objective", if n == 1 { "" } else { "s" }));
    }
    let [best, next, ..] = &answer.rows[..] else { return Some("no other point is legal".into()) };
    let (a, b, goal) = (best.objectives.first()?, next.objectives.first()?, answer.goals.first()?);
    let named: Vec<_> = choices(space, next).iter().map(|(n, v)| format!("{n} = {v}")).collect();
    let why = if a < b {
        let shown = |v: f64| show(goal.value(v), &goal.unit);
        format!("`{}` is {} against {}", goal.text, shown(*b), shown(*a))
    } else if best.peak_memory < next.peak_memory {
        "as good, with more memory".into()
    } else {
        "as good, and later in the text".into()
    };
    Some(format!("runner-up: {}: {why}", named.join(", ")))
}

fn json(job: &str, space: &Space, answer: &Answer, top: usize) -> String {
    // Each objective's own value, under its text.
    let objectives = |r: &Row| -> serde_json::Map<String, serde_json::Value> {
        let pairs = answer.goals.iter().zip(&r.objectives);
        pairs.map(|(g, v)| (g.text.clone(), g.value(*v).into())).collect()
    };
    let row = |r: &Row| {
        let values: serde_json::Map<String, serde_json::Value> =
            choices(space, r).into_iter().map(|(n, v)| (n, v.into())).collect();
        serde_json::json!({
            "choices": values, "objectives": objectives(r), "step_time_s": r.step_time,
            "tokens_per_s": r.tokens_per_s, "peak_memory_bytes": r.peak_memory, "mfu": r.mfu,
        })
    };
    let rejected: Vec<_> =
        answer.rejected.iter().map(|r| serde_json::json!({ "rule": r.rule.name, "points": r.points })).collect();
    let rows: Vec<_> = shown(answer, top).iter().map(row).collect();
    let value = serde_json::json!({
        "schema": "parc-search/1", "job": job, "points": answer.points, "legal": answer.legal,
        "rejected": rejected, "best": rows,
    });
    format!("{value}\n")
}

fn csv(space: &Space, answer: &Answer, top: usize) -> String {
    let names = columns(space);
    // Quoted where a cell would end early.
    let cell = |s: &String| if s.contains([',', '"']) { format!("\"{}\"", s.replace('"', "\"\"")) } else { s.clone() };
    let mut out = names.iter().map(cell).collect::<Vec<_>>().join(",");
    out.push_str(",step_time_s,tokens_per_s,peak_memory_bytes,mfu\n");
    for row in shown(answer, top) {
        let cells: Vec<_> = cells(space, row, &names).iter().map(cell).collect();
        let _ =
            writeln!(out, "{},{},{},{},{}", cells.join(","), row.step_time, row.tokens_per_s, row.peak_memory, row.mfu);
    }
    out
}
