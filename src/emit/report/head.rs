//! The first five lines: what, verdict, speed, money, memory.

use super::WIDTH;
use super::numbers::{dollars, duration, gib, grouped, params, percent, plural, scaled, seconds};
use super::page::{Line, Page, Weight, name};
use crate::emit::plan::Plan;
use std::fmt::Write;

/// Tokens that time and money are also given for, where a job does not say how long it is.
const RUN_TOKENS: f64 = 1e12;

pub(super) fn write(plan: &Plan, page: &mut Page) {
    title(plan, page);
    let job = &plan.job;
    let std_hash: String = plan.std_hash.chars().take(6).collect();
    let mut origin = format!("{}, edition {}, std {std_hash}", name(&job.file, 40), job.edition);
    if !job.set.is_empty() {
        let set: Vec<_> = job.set.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let _ = write!(origin, ", set {}", set.join(" "));
    }
    page.line(Line::default().with(Weight::Dim, name(&origin, WIDTH)));
    let time = &plan.time;
    let devices = plan.cluster.devices.max(1) as f64;
    page.line(Line::plain(format!(
        "  {}/step   {}tok/s   {}tok/s/device   mfu {}  hfu {}",
        seconds(time.step),
        scaled(time.tokens_per_s),
        scaled(time.tokens_per_s / devices),
        percent(time.mfu),
        percent(time.hfu)
    )));
    money(plan, page);
    memory(plan, page);
}

fn title(plan: &Plan, page: &mut Page) {
    let cluster = &plan.cluster;
    let verdict = verdict(plan);
    let room = WIDTH - verdict.chars().count() - 2;
    let mut what = format!(
        "{}: {}, {}, on {} x {}",
        plan.job.name,
        plan.model.name,
        params(plan.model.params),
        grouped(cluster.devices),
        cluster.device
    );
    if let Some(level) = cluster.levels.first().filter(|l| l.devices > 0) {
        let nodes = format!(" ({})", plural(cluster.devices.div_ceil(level.devices), &level.name));
        if what.chars().count() + nodes.chars().count() <= room {
            what += &nodes;
        }
    }
    let line = Line::default().with(Weight::Bold, name(&what, room));
    page.line(line.pad(room + 2).with(Weight::Bold, verdict));
}

/// Whether it fits, and whether what the file claims holds.
fn verdict(plan: &Plan) -> String {
    let mut verdict = String::from(if plan.memory.fits { "FITS" } else { "DOES NOT FIT" });
    let count =
        |kind: &str, failing: bool| plan.claims.iter().filter(|c| c.kind == kind && !(failing && c.holds)).count();
    for kind in ["require", "expect"] {
        match (count(kind, true), count(kind, false)) {
            (0, _) => {}
            (1, 1) => verdict.extend(["   ", kind, " FAILS"]),
            (failing, all) => {
                let _ = write!(verdict, "   {failing} of {all} {kind}s FAIL");
            }
        }
    }
    if plan.claims.iter().all(|c| c.holds) && !plan.claims.is_empty() {
        verdict += if count("expect", false) > 0 { "   expects OK" } else { "   requires OK" };
    }
    verdict
}

fn money(plan: &Plan, page: &mut Page) {
    let tokens = plan.training.batch as f64 * plan.training.sequence as f64;
    let (steps, run) = match plan.training.steps {
        Some(n) => (n as f64, String::new()),
        None => ((RUN_TOKENS / tokens).ceil(), "1 Ttok = ".into()),
    };
    let price = plan.time.price;
    let mut line = if price > 0.0 {
        format!("  {}/step   {}/Mtok", dollars(price), dollars(price / tokens * 1e6))
    } else {
        "  no price known".into()
    };
    if steps.is_finite() && steps >= 1.0 {
        let time = duration(steps * plan.time.step);
        let _ = write!(line, "   {run}{} steps = {time}", grouped(steps as u64));
        if price > 0.0 {
            let _ = write!(line, " = {}", dollars(steps * price));
        }
    }
    page.line(Line::plain(line));
}

fn memory(plan: &Plan, page: &mut Page) {
    let heaviest = plan.memory.stages.get(plan.memory.heaviest as usize).map_or(0, |s| s.total) as f64;
    let usable = plan.cluster.usable as f64;
    let stage = if plan.memory.stages.len() > 1 { format!(", stage {}", plan.memory.heaviest) } else { String::new() };
    if plan.memory.fits {
        page.line(Line::plain(format!("  fullest rank {} of {}{stage}", bare_gib(heaviest), gib(usable))));
        return;
    }
    let text = format!(
        "  fullest rank needs {} of {}{stage}: {} too much",
        bare_gib(heaviest),
        gib(usable),
        gib((heaviest - usable).max(0.0))
    );
    page.line(Line::default().with(Weight::Bold, text));
}

/// The figure of [`gib`] without its unit, where the unit follows later.
fn bare_gib(bytes: f64) -> String {
    let text = gib(bytes);
    text.strip_suffix(" GiB").map_or(text.clone(), str::to_owned)
}
