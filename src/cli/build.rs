//! `parc build`: launch plans, and the plan, graph or code behind them.

use super::errors;
use super::output::{self, Edited};
use super::plan::{Planned, plan_job};
use super::project::{self, Project, open};
use super::{Common, Inputs, Outcome};
use crate::diagnostics::Diagnostic;
use crate::emit::Artifacts;
use crate::emit::assemble::{MAX_RANKS, Ranks};
use crate::emit::targets::{TARGETS, Target, Where};
use crate::emit::{evaluator, graph, launchers, plan_json, targets};
use crate::source::Span;
use clap::{Args, ValueEnum};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
pub(super) struct Arguments {
    #[command(flatten)]
    inputs: Inputs,
    /// The framework that runs the job: megatron, torchtitan, deepspeed, accelerate, torch
    #[arg(long, value_name = "NAME")]
    target: Option<String>,
    /// What starts it: torchrun, slurm, jobset, trainjob, pytorchjob, leaderworkerset, ray, skypilot, mpirun
    #[arg(long, value_name = "NAME", default_value = "torchrun")]
    launcher: String,
    /// The folder to write; it is replaced as a whole or not at all
    #[arg(long, value_name = "DIR", default_value = "out")]
    out: PathBuf,
    /// Print what lies behind a plan, or write an evaluator, instead of a launch plan
    #[arg(long, value_enum)]
    emit: Option<Emit>,
    /// How `--emit graph` is written
    #[arg(long, value_enum, default_value = "text")]
    format: GraphFormat,
    /// Replace files in the folder that were edited since they were written
    #[arg(long)]
    force: bool,
    /// Write what was built as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Copy, Clone, PartialEq, Eq, ValueEnum, Debug)]
enum Emit {
    /// The plan with every rank, as JSON
    Plan,
    /// The ops of the model, the steps they become, and what each pass changes
    Graph,
    /// The expression graph of memory and time
    Expressions,
    /// The code LLVM compiles of the expression graph
    LlvmIr,
    /// A shared library with a C header and a Python module: layout parameters in; legality, memory and times out
    Evaluator,
}

#[derive(Copy, Clone, PartialEq, Eq, ValueEnum, Debug)]
enum GraphFormat {
    /// Lines to read
    Text,
    /// For graphviz
    Dot,
    /// For programs
    Json,
}

pub(super) fn run(args: &Arguments, common: &Common) -> Outcome {
    let mut p = open(&args.inputs);
    p.require_jobs();
    p.require_one_job("name one after the file");
    let mut text = None;
    let mut built = None;
    if !p.sink.has_errors() && args.emit != Some(Emit::Evaluator) {
        let id = p.jobs[0];
        settle(&mut p, id);
    }
    if !p.sink.has_errors() {
        let id = p.jobs[0];
        match args.emit {
            Some(Emit::Plan) => text = plan_with_ranks(&mut p).map(|x| plan_json(&x.plan)),
            Some(Emit::Graph) => text = graph_text(&mut p, id, args.format),
            Some(Emit::Expressions) => text = expression_text(&mut p, id),
            Some(Emit::LlvmIr) => text = llvm_text(&mut p, id),
            Some(Emit::Evaluator) => built = super::evaluator::build(&mut p, &args.out, args.force),
            None => built = launch(&mut p, args),
        }
    }
    let list = std::mem::take(&mut p.sink).finish();
    let outcome = project::report(&p.sources, &list, common);
    if let Some(text) = text {
        super::print(&format!("{}\n", text.trim_end()));
    }
    if let Some(built) = built {
        super::print(&built);
    }
    outcome
}

/// Gives open choices the values of the best point.
fn settle(p: &mut Project, id: crate::hir::DeclId) {
    let task = super::search::task(&p.program, &p.sources, id, &p.settings, super::search::cores());
    if let Some(open) = crate::search::settle(task, &mut p.sink, &|_| {}) {
        p.settings = open.settings;
    }
}

fn plan_with_ranks(p: &mut Project) -> Option<Planned> {
    let id = p.jobs[0];
    let ranks = listable(p)?;
    plan_job(p, id, ranks)
}

/// Lists every rank, where there are not too many.
pub(super) fn listable(p: &mut Project) -> Option<Ranks> {
    let id = p.jobs[0];
    let devices = crate::driver::devices(&p.program, id, &p.settings).unwrap_or(0);
    if devices > MAX_RANKS {
        let span = p.program.entry(id).name().span;
        p.sink.error(errors::too_many_ranks(devices, MAX_RANKS, span));
        return None;
    }
    Some(Ranks::Listed)
}

fn graph_text(p: &mut Project, id: crate::hir::DeclId, format: GraphFormat) -> Option<String> {
    crate::driver::check_job(&p.program, &p.sources, id, &p.settings, &mut p.sink).then_some(())?;
    let found = crate::driver::programs(&p.program, id, &p.settings, &mut p.sink)?;
    let job = &found.job;
    let shown =
        graph::Shown { job: &job.name, ops: &job.ops, layout: &job.layout, ruled: &found.ruled, passed: &found.passed };
    Some(match format {
        GraphFormat::Text => graph::text(shown),
        GraphFormat::Dot => graph::dot(shown),
        GraphFormat::Json => {
            let mut point = job.point.clone();
            point.resize(found.graph.inputs().len(), 0.0);
            graph::json(shown, &p.sources, &|ids| found.graph.eval(&point, ids))
        }
    })
}

fn expression_text(p: &mut Project, id: crate::hir::DeclId) -> Option<String> {
    let c = crate::driver::compile(&p.program, &p.sources, id, &p.settings, &mut p.sink)?;
    let (live, roots) = c.graph.live(&c.roots.all());
    let names: Vec<_> = roots.iter().map(|r| format!("%{}", r.0)).collect();
    Some(format!("{live}\n// roots: {}", names.join(" ")))
}

fn llvm_text(p: &mut Project, id: crate::hir::DeclId) -> Option<String> {
    let c = crate::driver::compile(&p.program, &p.sources, id, &p.settings, &mut p.sink)?;
    let (live, roots) = c.graph.live(&c.roots.all());
    match evaluator::llvm_ir(&live, &roots) {
        Ok(ir) => Some(ir),
        Err(why) => {
            p.sink.error(errors::not_compiled(why, c.job.span));
            None
        }
    }
}

fn launch(p: &mut Project, args: &Arguments) -> Option<String> {
    let span = p.program.entry(p.jobs[0]).name().span;
    let target = match target(args.target.as_deref(), span) {
        Ok(target) => target,
        Err(d) => {
            p.sink.error(*d);
            return None;
        }
    };
    let Some(launcher) = launchers::find(&args.launcher) else {
        let known: Vec<_> = launchers::LAUNCHERS.iter().map(|l| l.name).collect();
        p.sink.error(errors::target_unknown("launcher", Some(&args.launcher), &known, span));
        return None;
    };
    let Planned { plan, places, .. } = plan_with_ranks(p)?;
    // What does not fit or is required in vain is not launched; an expectation that fails is the user's to judge.
    if !plan.memory.fits || plan.claims.iter().any(|c| c.kind == "require" && !c.holds) {
        return None;
    }
    let program = match (target.program)(&plan) {
        Ok(program) => program,
        Err(list) => {
            for e in list {
                p.sink.error(places.diagnostic(&e, &plan, &p.sources));
            }
            return None;
        }
    };
    let artifacts = match launcher.artifacts(&plan, &program) {
        Ok(a) => a,
        Err(why) => {
            let at = places.span(&Where::Cluster);
            p.sink.error(errors::cannot_start(launcher.name, why, at));
            return None;
        }
    };
    written(p, &artifacts, &args.out, args.force)?;
    let dir = args.out.display();
    if args.json {
        let files: Vec<_> = artifacts.keys().map(|k| k.display().to_string()).collect();
        let value = serde_json::json!({
            "schema": "parc-build/1", "job": plan.job.name, "target": target.name, "version": target.version,
            "launcher": launcher.name, "out": dir.to_string(), "files": files,
        });
        return Some(format!("{value}\n"));
    }
    let mut text = format!("wrote {dir}/ for {} ({}):\n", target.title, target.version);
    for (path, artifact) in &artifacts {
        let _ = writeln!(text, "  {:<14} {:>8}", path.display(), size(artifact.bytes.len()));
    }
    let _ = writeln!(text, "start it there with: {}", launcher.start);
    Some(text)
}

/// Writes the folder; what goes wrong is reported.
pub(super) fn written(p: &mut Project, artifacts: &Artifacts, out: &Path, force: bool) -> Option<()> {
    let edited = if force { Edited::Replace } else { Edited::Keep };
    let why = output::write(artifacts, out, edited).err();
    if let Some(why) = &why {
        p.sink.error(errors::not_written(why));
    }
    why.is_none().then_some(())
}

pub(super) fn size(n: usize) -> String {
    match n {
        0..10_000 => format!("{n} B"),
        10_000..10_000_000 => format!("{:.0} kB", n as f64 / 1e3),
        _ => format!("{:.0} MB", n as f64 / 1e6),
    }
}

/// The target of this name; an unknown one is an error at `span`.
pub(super) fn target(name: Option<&str>, span: Span) -> Result<&'static Target, Box<Diagnostic>> {
    let known: Vec<_> = TARGETS.iter().map(|t| t.name).collect();
    name.and_then(targets::find).ok_or_else(|| Box::new(errors::target_unknown("target", name, &known, span)))
}
