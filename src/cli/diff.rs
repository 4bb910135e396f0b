//! `parc diff`: what changes between two jobs, or between a job and itself with other values.

use super::plan::plan_of;
use super::project::{self, Project, open};
use super::{Common, Inputs, Outcome, Setting};
use crate::diagnostics::Diagnostic;
use crate::emit::assemble::Ranks;
use crate::emit::diff::diff;
use crate::emit::diff_json;
use crate::emit::report::{Style, changes};
use crate::emit::targets::Program;
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// A file, or `FILE:JOB` for one of its jobs
    before: String,
    /// What to compare it with; the same where it is left out
    #[arg(required_unless_present = "with")]
    after: Option<String>,
    /// Give a value on both sides
    #[arg(long, value_name = "NAME=VALUE", value_parser = super::setting)]
    set: Vec<Setting>,
    /// Give a value on the second side only
    #[arg(long, value_name = "NAME=VALUE", value_parser = super::setting)]
    with: Vec<Setting>,
    /// Compare what this framework would be told too
    #[arg(long, value_name = "NAME")]
    target: Option<String>,
    /// Write the difference as JSON
    #[arg(long)]
    json: bool,
}

/// One side, compiled.
struct Side {
    plan: crate::emit::plan::Plan,
    program: Option<Program>,
}

pub(super) fn run(args: &Arguments, common: &Common) -> Outcome {
    let target = args.target.as_deref();
    let after = args.after.as_ref().unwrap_or(&args.before);
    let (before, first) = side(&args.before, args.set.clone(), target, common, &[]);
    let with = args.set.iter().chain(&args.with).cloned().collect();
    let (after, second) = side(after, with, target, common, &first.said);
    if let (Some(before), Some(after)) = (before, after) {
        let programs = before.program.as_ref().zip(after.program.as_ref());
        let found = diff(&before.plan, &after.plan, programs);
        if args.json {
            super::print(&diff_json(&found));
        } else {
            let terminal = common.colour(super::stdout_is_terminal()) == crate::diagnostics::render::Colour::Always;
            super::print(&changes(&found, if terminal { Style::Terminal } else { Style::Plain }));
        }
    }
    first.outcome.max(second.outcome)
}

/// What was said of one side.
struct Heard {
    outcome: Outcome,
    /// As text, so that the other side need not say it again.
    said: Vec<String>,
}

fn side(
    text: &str,
    set: Vec<Setting>,
    target: Option<&str>,
    common: &Common,
    heard: &[String],
) -> (Option<Side>, Heard) {
    let (file, job) = split(text);
    let mut p = open(&Inputs { files: vec![file], job, set });
    p.require_jobs();
    p.require_one_job("write FILE:JOB");
    let done = if p.sink.has_errors() { None } else { compiled(&mut p, target) };
    let mut list = std::mem::take(&mut p.sink).finish();
    let outcome = project::outcome(&list);
    let line = |d: &Diagnostic| crate::diagnostics::render::short(std::slice::from_ref(d), &p.sources);
    list.retain(|d| !heard.contains(&line(d)));
    let said = list.iter().map(line).collect();
    project::report(&p.sources, &list, common);
    (done, Heard { outcome, said })
}

/// `FILE:JOB`, unless there is a file of that name.
fn split(text: &str) -> (PathBuf, Option<String>) {
    match text.rsplit_once(':') {
        Some((file, job)) if !std::path::Path::new(text).exists() => (file.into(), Some(job.to_owned())),
        _ => (text.into(), None),
    }
}

fn compiled(p: &mut Project, target: Option<&str>) -> Option<Side> {
    let Some(target) = target else {
        return Some(Side { plan: plan_of(p, Ranks::Left)?.0, program: None });
    };
    let target = match super::build::target(Some(target), p.program.entry(p.jobs[0]).name().span) {
        Ok(target) => target,
        Err(d) => {
            p.sink.error(*d);
            return None;
        }
    };
    let ranks = super::build::listable(p)?;
    let (plan, places) = plan_of(p, ranks)?;
    let program = match (target.program)(&plan) {
        Ok(program) => Some(program),
        Err(list) => {
            for e in list {
                p.sink.error(places.diagnostic(&e, &plan, &p.sources));
            }
            None
        }
    };
    Some(Side { plan, program })
}
