//! `parc check`: diagnostics only.

use super::project::{self, Project, open};
use super::{Common, Inputs, Outcome};
use crate::diagnostics::{Diagnostic, Severity};
use crate::driver;
use crate::search;
use crate::source::Sources;
use clap::Args;

#[derive(Args, Debug)]
pub(super) struct Arguments {
    #[command(flatten)]
    inputs: Inputs,
    /// Write the result as JSON: the jobs, and how many errors and warnings
    #[arg(long)]
    json: bool,
}

/// A project checked as far as it goes without costs.
pub(super) struct Checked {
    pub(super) sources: Sources,
    pub(super) list: Vec<Diagnostic>,
    /// Each job and whether it is right.
    jobs: Vec<(String, bool)>,
}

/// Checks a project: every file, and where they are right every job.
pub(super) fn judge(mut p: Project) -> Checked {
    let mut jobs = Vec::new();
    let clean = !p.sink.has_errors();
    for id in p.jobs.iter().filter(|_| !clean) {
        driver::check_selectors(&p.program, *id, &mut p.sink);
    }
    for id in p.jobs.iter().filter(|_| clean) {
        // A choice left open is no mistake: the job is checked at a legal point.
        let task = super::search::task(&p.program, &p.sources, *id, &p.settings, 1);
        let ok = search::legal_point(task, &mut p.sink);
        jobs.push((p.program.entry(*id).name().text.to_string(), ok));
    }
    if clean {
        driver::check_unused(&p.program, &mut p.sink);
    }
    Checked { sources: p.sources, list: p.sink.finish(), jobs }
}

pub(super) fn run(args: &Arguments, common: &Common) -> Outcome {
    let Checked { sources, list, jobs } = judge(open(&args.inputs));
    let outcome = project::report(&sources, &list, common);
    if args.json {
        let errors = list.iter().filter(|d| d.code.info().severity == Severity::Error).count();
        let jobs: Vec<_> = jobs.iter().map(|(name, ok)| serde_json::json!({ "name": name, "ok": ok })).collect();
        let value = serde_json::json!({
            "schema": "parc-check/1", "errors": errors, "warnings": list.len() - errors, "jobs": jobs,
        });
        super::print(&format!("{value}\n"));
    }
    outcome
}
