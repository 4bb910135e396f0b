//! `parc test`: what a file says of itself. The closed forms of its schedules against what their orders do, and the
//! claims of its jobs against what is predicted.

use super::plan::plan_job;
use super::project::{self, Project, open};
use super::{Common, Inputs, Outcome};
use crate::analyse::schedule::{self, ClosedForms};
use crate::emit::assemble::Ranks;
use crate::eval::{Evaluator, Instance, Value};
use crate::expr;
use crate::hir::DeclId;
use crate::syntax::ast::{Kind, ParamKind};
use clap::Args;
use std::fmt::Write;
use std::rc::Rc;

/// Ranks and microbatches that are tried.
const RANKS: &[u32] = &[1, 2, 3, 4, 6, 8];
const MICROBATCHES: &[u32] = &[1, 2, 3, 4, 6, 8, 12, 16, 24];

/// What a parameter without a value may be.
const VALUES: &[i128] = &[1, 2, 3, 4];

#[derive(Args, Debug)]
pub(super) struct Arguments {
    #[command(flatten)]
    inputs: Inputs,
}

pub(super) fn run(args: &Arguments, common: &Common) -> Outcome {
    let mut p = open(&args.inputs);
    let mut out = String::new();
    if !p.sink.has_errors() {
        let schedules = schedules(&p);
        let jobs = p.jobs.clone();
        if schedules.is_empty() && jobs.is_empty() {
            out += "nothing to test: no schedule and no job is declared here\n";
        }
        for id in schedules {
            out += &line(&mut p, id);
        }
        for id in jobs {
            out += &claims(&mut p, id);
        }
    }
    let list = std::mem::take(&mut p.sink).finish();
    let outcome = project::report(&p.sources, &list, common);
    super::print(&out);
    outcome
}

/// The schedules that the command's own files declare.
fn schedules(p: &Project) -> Vec<DeclId> {
    let entries = p.program.roots.iter().flat_map(|m| p.program.entries(*m));
    entries.filter(|(id, _)| p.program.entry(*id).kind() == Some(Kind::Schedule)).map(|(id, _)| id).collect()
}

/// Tries one schedule; what is wrong goes to the project's sink, once.
fn line(p: &mut Project, id: DeclId) -> String {
    let name = p.program.entry(id).name().clone();
    let mut graph = expr::Graph::new();
    let mut eval = Evaluator::new(&p.program, &mut graph, &mut p.sink);
    let Value::Instance(instance) = eval.entry(id, name.span) else { return String::new() };
    let (mut tried, mut forms) = (0, ClosedForms::default());
    for given in arguments(&instance) {
        for (ranks, microbatches) in RANKS.iter().flat_map(|p| MICROBATCHES.iter().map(move |m| (*p, *m))) {
            if !schedule::allows(&p.program, &given, (ranks, microbatches)) {
                continue;
            }
            match schedule::try_forms(&mut eval, &given, name.span, (ranks, microbatches)) {
                Some(found) => forms = found,
                None => return format!("{:<16} does not hold\n", name.text),
            }
            tried += 1;
        }
    }
    let mut what = Vec::new();
    what.extend(forms.in_flight.then_some("in_flight"));
    what.extend(forms.bubble.then_some("bubble"));
    let mut out = String::new();
    let said = match what[..] {
        [] => "no closed form".into(),
        _ => format!("{} as simulated", what.join(" and ")),
    };
    let _ = writeln!(out, "{:<16} {tried:>4} pairs of p and m: {said}", name.text);
    out
}

/// Plans one job and tells what of its claims holds; what does not goes to the project's sink.
fn claims(p: &mut Project, id: DeclId) -> String {
    let name = p.program.entry(id).name().text.clone();
    let Some(planned) = plan_job(p, id, Ranks::Left) else { return format!("{name:<16} cannot be planned\n") };
    let claims = &planned.plan.claims;
    let held = claims.iter().filter(|c| c.holds).count();
    match claims.len() {
        0 => format!("{name:<16} claims nothing\n"),
        all if held == all => format!("{name:<16} {all:>4} claims hold\n"),
        all => format!("{name:<16} {held:>4} of {all} claims hold\n"),
    }
}

/// The schedule with every parameter that has no default given, each with a few values.
fn arguments<'p>(instance: &Rc<Instance<'p>>) -> Vec<Instance<'p>> {
    let mut all = vec![(**instance).clone()];
    for param in instance.decl.params.iter().flatten() {
        if !matches!(&param.kind, ParamKind::Value { default: None, .. })
            || instance.args.contains_key(&param.name.text)
        {
            continue;
        }
        all = all
            .iter()
            .flat_map(|given| {
                VALUES.iter().map(|v| {
                    let mut next = given.clone();
                    next.args.insert(param.name.text.clone(), (Value::int(*v), param.name.span));
                    next
                })
            })
            .take(64)
            .collect();
    }
    all
}
