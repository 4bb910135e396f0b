//! `parc search`: every point of a job's open choices, the best first, and what the others broke.

use super::project::{self, open};
use super::{Common, Inputs, Outcome};
use crate::diagnostics::Sink;
use crate::elaborate::Settings;
use crate::hir::{DeclId, Program};
use crate::search::{self, Report, Space, Task};
use crate::source::Sources;
use clap::Args;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

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
    /// Write the points as an HTML page with a plot and filters
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Search only this part of the space: `2/8` is the second of eight
    #[arg(long, value_name = "K/N", value_parser = part, conflicts_with_all = ["csv", "merge"])]
    part: Option<(u64, u64)>,
    /// The FILEs are the JSON of all parts: show the result of the whole
    #[arg(long)]
    merge: bool,
    /// Use so many threads; all cores otherwise
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
}

/// `2/8`, from 0.
fn part(text: &str) -> Result<(u64, u64), String> {
    let parts =
        text.split_once('/').and_then(|(k, n)| Some((k.trim().parse::<u64>().ok()?, n.trim().parse::<u64>().ok()?)));
    match parts {
        Some((k, n)) if 1 <= k && k <= n && n <= 65_536 => Ok((k - 1, n)),
        _ => Err("write K/N, such as 2/8, with K from 1 to N".into()),
    }
}

/// Points of a space up to which every one is judged.
const WHOLE: u64 = 20_000;

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
    static NEVER: AtomicBool = AtomicBool::new(false);
    Task {
        program,
        sources,
        job,
        settings,
        top: 10,
        threads,
        light: false,
        limit: u64::MAX,
        whole: WHOLE,
        part: (0, 1),
        stop: &NEVER,
    }
}

pub(super) fn run(args: &Arguments, common: &Common) -> Outcome {
    if args.merge {
        return merge(args, common);
    }
    let mut p = open(&args.inputs);
    p.require_jobs();
    let mut reports = Vec::new();
    let stop = super::interrupt::watch();
    for id in if p.sink.has_errors() { Vec::new() } else { p.jobs.clone() } {
        let threads = args.jobs.unwrap_or_else(cores).clamp(1, 1024);
        let own = task(&p.program, &p.sources, id, &p.settings, threads);
        let whole = if args.part.is_some() { 0 } else { WHOLE };
        let task = Task { top: args.top, part: args.part.unwrap_or((0, 1)), whole, stop, ..own };
        let name = p.program.entry(id).name();
        let Some(space) = Space::new(&p.program, id, &p.settings, &mut p.sink) else { continue };
        if space.open.is_empty() {
            p.sink.error(super::errors::nothing_open(&name.text, name.span));
            continue;
        }
        let bar = progress_bar(space.points);
        let answer = search::search(task, &space, &|done| bar.set_position(done));
        bar.finish_and_clear();
        if answer.rows.is_empty() && args.part.is_none() && !answer.stopped {
            p.sink.error(search::explain(task, &space, &answer));
            continue;
        }
        reports.push(Report::new(&name.text, task, &space, &answer));
    }
    let out = shown(args, &reports, &mut p.sink);
    let list = std::mem::take(&mut p.sink).finish();
    let outcome = project::report(&p.sources, &list, common);
    super::print(&out);
    outcome
}

/// The reports as asked for; the page is written.
fn shown(args: &Arguments, reports: &[Report], sink: &mut Sink) -> String {
    if let (Some(path), Some(report)) = (&args.html, reports.first())
        && let Err(why) = std::fs::write(path, report.page())
    {
        sink.error(super::errors::page_not_written(&path.display(), &why));
    }
    let one = |r: &Report| match (args.json || args.part.is_some(), args.csv) {
        (true, _) => r.json(),
        (_, true) => r.csv(),
        _ => r.text(),
    };
    let gap = if args.json || args.csv || args.part.is_some() { "" } else { "\n" };
    reports.iter().map(one).collect::<Vec<_>>().join(gap)
}

/// Joins the parts of a search.
fn merge(args: &Arguments, common: &Common) -> Outcome {
    let mut sink = Sink::new();
    let mut parts = Vec::new();
    for path in &args.inputs.files {
        let read = std::fs::read_to_string(path).map_err(|e| e.to_string());
        match read.and_then(|text| Report::read(&text)) {
            Ok(report) => parts.push(report),
            Err(why) => {
                sink.error(super::errors::part_unreadable(&path.display(), &why));
            }
        }
    }
    let mut out = String::new();
    if parts.len() == args.inputs.files.len() {
        match Report::merge(&parts) {
            Ok(report) => out = shown(args, &[report], &mut sink),
            Err(why) => {
                sink.error(super::errors::parts_apart(&why));
            }
        }
    }
    let outcome = project::report(&Sources::new(), &sink.finish(), common);
    super::print(&out);
    outcome
}

/// Drawn on a terminal alone.
pub(super) fn progress_bar(points: u64) -> indicatif::ProgressBar {
    if super::stderr_is_terminal() { indicatif::ProgressBar::new(points) } else { indicatif::ProgressBar::hidden() }
}
