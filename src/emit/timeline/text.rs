//! The step on a terminal: one row for each stage, a letter for each stretch of time.

use super::{letter, rows};
use crate::emit::report::numbers::{gib, seconds};
use crate::simulate::{Disturbed, Event, Stage, Timeline};
use std::fmt::Write;

/// Columns of the time.
const COLUMNS: usize = 60;

/// Rows at most.
const ROWS: usize = 32;

/// The step, at most 88 columns wide.
pub fn text(timeline: &Timeline) -> String {
    let mut out = String::new();
    let count = timeline.stages.len();
    let (p, m) = (count, timeline.microbatches);
    let (step, end) = (seconds(timeline.step_time), seconds(timeline.end));
    let _ =
        writeln!(out, "{}: {}, {p} stage{}, {m} microbatches, step {step}", timeline.job, timeline.schedule, plural(p));
    if timeline.endless {
        let _ = writeln!(out, "the run has no end: it is shown until a step is as the one before");
    }
    let _ = writeln!(out, "{:<8}{:<width$}{end:>8}  busy      peak", "stage", "", width = COLUMNS - 8);
    let rows = rows(timeline, ROWS);
    for s in &rows {
        let stage = &timeline.stages[*s];
        let peak = gib(stage.peak.bytes);
        let _ = writeln!(out, "{s:>6}  {}  {:>3.0}%{peak:>11}", row(stage, timeline.end), 100.0 * stage.busy);
    }
    if rows.len() < count {
        let _ = writeln!(out, "        {} of {count} stages, evenly between the first and the last", rows.len());
    }
    out += "        F forward  B backward  W weight gradient  - messages  r reductions  u optimizer\n";
    let fullest = timeline.stages.iter().enumerate().reduce(|a, b| if b.1.peak.bytes > a.1.peak.bytes { b } else { a });
    if let Some((s, stage)) = fullest {
        let peak = &stage.peak;
        let after = peak.after.map_or_else(String::new, |op| format!(" with {op}"));
        let (bytes, usable) = (gib(peak.bytes), gib(timeline.usable));
        let _ = writeln!(out, "stage {s} is fullest: {bytes} of {usable}, at {}{after}", seconds(peak.at));
        let _ = writeln!(out, "  saved activations are {} of it", gib(peak.activations));
    }
    let slowest = timeline.stages.iter().enumerate().reduce(|a, b| if b.1.busy > a.1.busy { b } else { a });
    if let Some((s, stage)) = slowest.filter(|_| count > 1) {
        let _ = writeln!(out, "stage {s} works longest: {:.1}% of the pipeline's time", 100.0 * stage.busy);
    }
    out
}

/// How long steps take where delays are drawn.
pub fn disturbed(d: &Disturbed) -> String {
    let mut out = format!("disturbed: {} steps drawn with seed {}\n ", d.samples, d.seed);
    let shown = [("calm", d.calm), ("mean", d.mean)].into_iter();
    let quantiles = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("max", 1.0)];
    for (name, x) in shown.chain(quantiles.map(|(n, q)| (n, d.quantile(q)))) {
        let _ = write!(out, " {name} {}", seconds(x));
    }
    out.push('\n');
    out
}

fn plural(n: usize) -> &'static str {
    if n == 1 { "" } else { "s" }
}

/// What takes most of each stretch of time.
fn row(stage: &Stage, end: f64) -> String {
    let width = end / COLUMNS as f64;
    let mut letters = vec![('.', 0.0_f64); COLUMNS];
    // Time of each letter in the column at hand.
    let mut within: Vec<Vec<(char, f64)>> = vec![Vec::new(); COLUMNS];
    for Event { what, start, end } in &stage.events {
        let first = ((start / width) as usize).min(COLUMNS - 1);
        let last = ((end / width) as usize).min(COLUMNS - 1);
        for (column, within) in within.iter_mut().enumerate().take(last + 1).skip(first) {
            let (from, to) = (width * column as f64, width * (column + 1) as f64);
            let share = end.min(to) - start.max(from);
            let letter = letter(*what);
            match within.iter_mut().find(|(l, _)| *l == letter) {
                Some((_, sum)) => *sum += share,
                None => within.push((letter, share)),
            }
        }
    }
    for (shown, found) in letters.iter_mut().zip(&within) {
        let busy: f64 = found.iter().map(|(_, share)| share).sum();
        let most = found.iter().copied().reduce(|a, b| if b.1 > a.1 { b } else { a });
        if let Some(most) = most.filter(|most| most.1 >= width - busy) {
            *shown = most;
        }
    }
    letters.into_iter().map(|(letter, _)| letter).collect()
}
