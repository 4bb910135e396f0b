//! COLLECTIVES: every one of a step on the busiest rank, with its cause; two lines each.

use super::Style;
use super::numbers::{grouped, percent, scaled, time_unit};
use super::page::{Line, Page, heading, name};
use crate::emit::plan::Plan;

/// Every collective of `plan`, the longest first.
pub fn collectives(plan: &Plan, style: Style) -> String {
    let mut page = Page::default();
    let (divisor, unit) = time_unit(plan.time.step);
    let busy = format!("busy {unit}");
    page.line(
        heading("COLLECTIVES")
            .then(format!(" {:<33}{:>10}{:>12}{:>11}{busy:>9}", "per rank and step", "times", "bytes", "sent")),
    );
    for c in &plan.collectives {
        let what = format!("{} {} over {}", c.kind, c.purpose, c.axes.join("+"));
        let group = format!("{} ranks", grouped(c.group));
        page.line(Line::plain(format!(
            "  {:<43}{:>10}{:>11}B{:>10}B{:>9.3}",
            name(&what, 42),
            grouped(c.count),
            scaled(c.bytes as f64),
            scaled(c.sent as f64),
            c.busy / divisor,
        )));
        let hidden = if c.busy > 0.0 { (1.0 - c.exposed / c.busy).clamp(0.0, 1.0) } else { 1.0 };
        let place = if c.place.is_empty() { String::new() } else { format!(", {}", c.place) };
        let cause = format!("{}{place}", c.what);
        let level = if c.level.is_empty() { String::new() } else { format!(" in {}", c.level) };
        let share = format!("{} hidden", percent(hidden).replace(".0%", "%"));
        page.line(Line::plain(format!(
            "    {:<46} {:>22}{share:>15}",
            name(&cause, 46),
            name(&format!("{group}{level}"), 22)
        )));
    }
    if plan.collectives.is_empty() {
        page.line(Line::plain("  none"));
    }
    page.finish(style)
}
