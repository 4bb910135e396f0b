//! `parc plan`: the report of each job.

use super::neighbours;
use super::project::{self, Project, open};
use super::{Common, Inputs, Outcome};
use crate::analyse::Compiled;
use crate::analyse::claims;
use crate::diagnostics::{Diagnostic, Sink};
use crate::driver;
use crate::emit::assemble::{self, Ranks};
use crate::emit::plan::Plan;
use crate::emit::plan_json;
use crate::emit::report::{self, Neighbour, Style};
use crate::hir::DeclId;
use crate::search;
use clap::Args;

#[derive(Args, Debug)]
pub(super) struct Arguments {
    #[command(flatten)]
    inputs: Inputs,
    /// Write the plan as JSON, ranks left out
    #[arg(long)]
    json: bool,
    /// List every collective after the report: how often, how large, over what, why, and how much of it is hidden
    #[arg(long, conflicts_with = "json")]
    collectives: bool,
}

/// A job, compiled and held to its claims.
pub(super) struct Planned {
    pub(super) plan: Plan,
    pub(super) neighbours: Vec<Neighbour>,
    /// Places diagnostics of a target point to.
    pub(super) places: super::cannot::Places,
}

pub(super) fn run(args: &Arguments, common: &Common) -> Outcome {
    let mut p = open(&args.inputs);
    p.require_jobs();
    let mut reports = Vec::new();
    if !p.sink.has_errors() {
        for id in p.jobs.clone() {
            reports.extend(plan_job(&mut p, id, Ranks::Left));
        }
    }
    let list = std::mem::take(&mut p.sink).finish();
    let outcome = project::report(&p.sources, &list, common);
    let style = if common.colour(super::stdout_is_terminal()) == crate::diagnostics::render::Colour::Always {
        Style::Terminal
    } else {
        Style::Plain
    };
    for (i, planned) in reports.iter().enumerate() {
        if args.json {
            super::print(&format!("{}\n", plan_json(&planned.plan)));
        } else {
            let gap = if i > 0 { "\n" } else { "" };
            super::print(&format!("{gap}{}", report::text_with(&planned.plan, &planned.neighbours, style)));
            if args.collectives {
                super::print(&format!("\n{}", report::collectives(&planned.plan, style)));
            }
        }
    }
    outcome
}

/// Compiles one job, checks its claims and makes its plan; what is wrong goes to the project's sink.
pub(super) fn plan_job(p: &mut Project, id: DeclId, ranks: Ranks) -> Option<Planned> {
    let Project { sources, program, sink, settings, .. } = p;
    let task = super::search::task(program, sources, id, settings, super::search::cores());
    let search::Open { settings, .. } = search::settle(task, sink, &|_| {})?;
    let settings = &settings;
    let mut compiled = driver::compile(program, sources, id, settings, sink)?;
    let fits = fits(&compiled);
    let verdicts = claims::verdicts(&mut compiled, program, sources, sink);
    let expected = claims::expects_no_fit(&compiled.job.claims);
    let found = neighbours::explore(program, sources, id, settings, &compiled, fits);
    if !fits && !expected && compiled.over() <= 0.0 {
        sink.error(neighbours::host_does_not_fit(&compiled, sources));
    } else if !fits && !expected {
        let d: Diagnostic = neighbours::does_not_fit((program, id, settings), &compiled, sources, &found);
        sink.error(d);
    }
    let plan = assemble::plan(&mut compiled, program, sources, settings, &verdicts, ranks);
    let places = super::cannot::Places::new(&compiled, &p.sources);
    Some(Planned { plan, neighbours: found.into_iter().map(|f| f.shown).collect(), places })
}

/// The plan of the only job as it is: it may not fit, and its claims may fail. With the places a target points to.
pub(super) fn plan_of(p: &mut Project, ranks: Ranks) -> Option<(Plan, super::cannot::Places)> {
    let Project { sources, program, sink, settings, jobs } = p;
    let task = super::search::task(program, sources, jobs[0], settings, super::search::cores());
    let search::Open { settings, .. } = search::settle(task, sink, &|_| {})?;
    let mut compiled = driver::compile(program, sources, jobs[0], &settings, sink)?;
    let verdicts = claims::verdicts(&mut compiled, program, sources, &mut Sink::new());
    let plan = assemble::plan(&mut compiled, program, sources, &settings, &verdicts, ranks);
    let places = super::cannot::Places::new(&compiled, sources);
    Some((plan, places))
}

/// Whether every stage's memory is within what a process may use, and that of every host within what it has.
fn fits(c: &Compiled<'_>) -> bool {
    c.over() <= 0.0 && c.value(c.roots.host_memory) <= c.job.cluster.host_memory()
}

/// Compiles a job quietly: for neighbours, whose mistakes are not the user's.
pub(super) fn quietly<'p>(
    program: &'p crate::hir::Program,
    sources: &crate::source::Sources,
    id: DeclId,
    settings: &crate::elaborate::Settings,
) -> Option<Compiled<'p>> {
    let mut sink = Sink::new();
    driver::compile(program, sources, id, settings, &mut sink)
}
