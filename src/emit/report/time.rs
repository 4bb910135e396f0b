//! TIME: parts of the step, with bars.

use super::numbers::time_unit;
use super::page::{Line, heading, name};
use crate::emit::plan::Plan;

/// Most parts shown; the smallest others are added up.
const PARTS: usize = 10;

/// Characters of the longest bar.
const BAR: f64 = 10.0;

/// The left half of the middle of a report: at most 38 columns.
pub(super) fn rows(plan: &Plan) -> Vec<Line> {
    let (divisor, unit) = time_unit(plan.time.step);
    let digits = if plan.time.step / divisor >= 9.995 { 1 } else { 2 };
    let mut rows = vec![heading("TIME").then(format!("  {unit}/step"))];
    let mut parts = plan.time.parts.clone();
    if parts.len() > PARTS {
        let rest = parts.split_off(PARTS - 1);
        parts.push((format!("{} others", rest.len()), rest.iter().map(|(_, s)| s).sum()));
    }
    let largest = parts.iter().map(|(_, s)| *s).fold(0.0, f64::max);
    for (part, seconds) in &parts {
        let bar = (BAR * seconds / largest).round();
        let bar = "#".repeat(if bar.is_finite() { bar.clamp(0.0, BAR) as usize } else { 0 });
        let label = name(part, 18);
        rows.push(Line::plain(format!("  {label:<18}{:>7.digits$}  {bar}", seconds / divisor)));
    }
    rows.push(Line::plain(format!("  {:<18}{:>7.digits$}", "step", plan.time.step / divisor)));
    rows
}
