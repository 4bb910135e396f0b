//! What to try, what was assumed, whether claims hold, what to run next.

use super::numbers::{gib, scaled, seconds};
use super::page::{Line, Page, Weight, heading, name};
use super::{Neighbour, WIDTH};
use crate::emit::plan::{PassInfo, Plan, RecomputeChoice};
use crate::emit::shell;
use crate::emit::targets::TARGETS;

/// Column at which values start.
const INDENT: usize = 9;

/// Bytes below which a pass is not worth a word.
const SMALLEST: i64 = 1_000;

pub(super) fn write(plan: &Plan, neighbours: &[Neighbour], page: &mut Page) {
    neighbourhood(neighbours, page);
    if let Some(choice) = &plan.layout.recompute_choice {
        page.wrapped(heading("AGAIN"), INDENT, ", ", &again(choice));
    }
    let passes: Vec<_> = plan.passes.iter().filter(|p| p.sent >= SMALLEST || p.work > 0).map(pass).collect();
    if !passes.is_empty() {
        page.wrapped(heading("PASSES"), INDENT, "; ", &passes);
    }
    page.wrapped(heading("ASSUMED"), INDENT, "; ", &assumed(plan));
    for claim in &plan.claims {
        let verdict = if claim.holds { "ok" } else { "FAILS" };
        let tail = format!(": {} {verdict}", name(&claim.found, 24));
        let text = name(&claim.text, WIDTH - INDENT - tail.chars().count());
        let weight = if claim.holds { Weight::Plain } else { Weight::Bold };
        page.line(Line::plain(claim.kind).pad(INDENT).with(weight, format!("{text}{tail}")));
    }
    if let Some(next) = next(plan) {
        page.line(heading("NEXT").pad(INDENT).then(next));
    }
}

/// What `recompute ?` came to.
fn again(choice: &RecomputeChoice) -> Vec<String> {
    if choice.values.is_empty() {
        return vec!["nothing: everything fits as it is kept".into()];
    }
    let mut out: Vec<_> = choice.values.iter().map(|v| v.what.clone()).collect();
    let proof = if choice.proved { "no cheaper choice fits" } else { "the best of those tried" };
    out.push(format!("which saves {} for {}: {proof}", gib(choice.bytes as f64), seconds(choice.seconds)));
    out
}

/// `drop_unused would save 2.1 GB of 32 collectives`
fn pass(p: &PassInfo) -> String {
    let verb = if p.assumed { "saves" } else { "would save" };
    let mut saved = Vec::new();
    if p.sent != 0 {
        saved.push(format!("{}B sent in {} collectives", scaled(p.sent as f64), p.collectives));
    }
    if p.work > 0 {
        saved.push(format!("{} steps of work", p.work));
    }
    let more = if p.memory > 0 { format!(" for {} more", gib(p.memory as f64)) } else { String::new() };
    format!("{} {verb} {}{more}", p.name, saved.join(" and "))
}

/// The command that writes a launch plan, if it fits and a target can run it.
fn next(plan: &Plan) -> Option<String> {
    let target = TARGETS.iter().find(|t| plan.memory.fits && (t.program)(plan).is_ok())?;
    let names = [plan.job.file.as_str(), plan.job.name.as_str()];
    let job = shell::words(if plan.job.alone { &names[..1] } else { &names });
    let options = format!("--target {} --launcher slurm", target.name);
    let whole = format!("parc build {job} {options}");
    let fits = whole.chars().count() <= WIDTH - INDENT;
    Some(if fits { whole } else { format!("parc build FILE JOB {options}") })
}

fn neighbourhood(neighbours: &[Neighbour], page: &mut Page) {
    if neighbours.is_empty() {
        return;
    }
    page.line(heading("TRY").then(format!("  {:<48}{:>14}{:>13}", "(computed)", "step", "memory")));
    for n in neighbours {
        let step = if n.step_change.is_finite() { format!("{:+.1}%", 100.0 * n.step_change) } else { "?".into() };
        let sign = if n.memory_change_bytes < 0 { "-" } else { "+" };
        let memory = format!("{sign}{}", gib(n.memory_change_bytes.unsigned_abs() as f64));
        let fits = if n.fits { "" } else { "  too big" };
        page.line(Line::plain(format!("  {:<52}{step:>11}{memory:>13}{fits}", name(&n.edit, 52))));
    }
    page.blank();
}

fn assumed(plan: &Plan) -> Vec<String> {
    let cluster = &plan.cluster;
    let mut out = Vec::new();
    if cluster.price_per_hour > 0.0 {
        out.push(format!("{} $/h a device", cluster.price_per_hour));
    }
    let compute = plan.training.precision.get("compute").map_or("", String::as_str);
    out.push(format!("dense {compute} peak {}FLOP/s", scaled(cluster.peak)).replace("  ", " "));
    out.push("mfu counts causal pairs once and no padding".into());
    out.push("sent counts rings".into());
    out.push("nothing else on the fabric".into());
    out
}
