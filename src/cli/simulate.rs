//! `parc simulate`: one step of each job in time.

use super::project::{self, open};
use super::{Common, Inputs, Outcome};
use crate::analyse::Compiled;
use crate::diagnostics::{Diagnostic, Sink};
use crate::driver;
use crate::emit::assemble::{self, Ranks};
use crate::emit::timeline;
use crate::eval::errors::not_supported;
use crate::hir::DeclId;
use crate::limits;
use crate::simulate::{Disturbed, disturbed, simulate};
use clap::Args;
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
pub(super) struct Arguments {
    #[command(flatten)]
    inputs: Inputs,
    /// Write a trace for Perfetto to this file
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Write a page with timeline, memory and collectives to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Steps drawn where `disturb` delays things
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    samples: u32,
    /// Seed of what is drawn
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// What is shown of one job.
struct Shown {
    text: String,
    trace: Option<String>,
    page: Option<String>,
}

pub(super) fn run(args: &Arguments, common: &Common) -> Outcome {
    let mut p = open(&args.inputs);
    p.settings.disturbed = true;
    p.require_jobs();
    let mut all = Vec::new();
    if !p.sink.has_errors() {
        if p.jobs.len() > 1 && (args.trace.is_some() || args.html.is_some()) {
            super::complain("error: a trace or page is of one job: name it after the file\n");
            return Outcome::Wrong;
        }
        for id in p.jobs.clone() {
            all.extend(show(&mut p, id, args));
        }
    }
    let list = std::mem::take(&mut p.sink).finish();
    let mut outcome = project::report(&p.sources, &list, common);
    for (i, shown) in all.iter().enumerate() {
        super::print(&format!("{}{}", if i > 0 { "\n" } else { "" }, shown.text));
        for (path, text) in [(&args.trace, &shown.trace), (&args.html, &shown.page)] {
            let (Some(path), Some(text)) = (path, text) else { continue };
            if let Err(e) = put(path, text) {
                super::complain(&format!("error: cannot write `{}`: {e}\n", path.display()));
                outcome = Outcome::Wrong;
            }
        }
    }
    outcome
}

fn show(p: &mut project::Project, id: DeclId, args: &Arguments) -> Option<Shown> {
    let project::Project { sources, program, sink, settings, .. } = p;
    let mut compiled = driver::compile(program, sources, id, settings, sink)?;
    let timeline = simulate(&compiled);
    let mut text = timeline::text(&timeline);
    if let Some(d) = drawn(&compiled, args, sink) {
        text.push_str(&timeline::disturbed(&d));
    }
    let trace = args.trace.as_ref().map(|_| timeline::trace(&timeline));
    let page = args.html.as_ref().map(|_| {
        let plan = assemble::plan(&mut compiled, program, sources, settings, &[], Ranks::Left);
        timeline::page(&timeline, &plan)
    });
    Some(Shown { text, trace, page })
}

/// Steps under the job's disturbances, as many as the limit allows.
fn drawn(c: &Compiled<'_>, args: &Arguments, sink: &mut Sink) -> Option<Disturbed> {
    if c.job.disturb.is_empty() {
        return None;
    }
    if c.facts.orders.is_endless() {
        sink.error(not_supported("disturbing a run without end", c.job.span));
        return None;
    }
    let ops: u64 = (0..c.facts.orders.ranks()).map(|s| c.facts.orders.order(s).len() as u64).sum();
    let all = ops.saturating_mul(u64::from(args.samples));
    if all > limits::DISTURBED_OPS {
        let d = Diagnostic::over_limit("operations of all drawn steps", all, limits::DISTURBED_OPS, c.job.span);
        sink.error(d.help("draw fewer with `--samples`"));
        return None;
    }
    disturbed(c, args.samples, args.seed)
}

/// Writes a file whole or not at all: beside its place first, then over it.
fn put(path: &Path, text: &str) -> std::io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".parc-part");
    let part = path.with_file_name(name);
    fs::write(&part, text)?;
    fs::rename(&part, path).inspect_err(|_| drop(fs::remove_file(&part)))
}
