//! TRAFFIC: collectives of a step, merged by axes, kind and purpose.

use super::layout::link;
use super::numbers::{percent, scaled, time_unit};
use super::page::{Line, Page, heading, name};
use crate::emit::plan::{CollectiveInfo, Plan};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Bytes below which a row is left out.
const SMALLEST: f64 = 1e3;

/// Most rows shown; the others are counted.
const ROWS: usize = 8;

/// A row: collectives that differ only in the tensor.
struct Row<'a> {
    first: &'a CollectiveInfo,
    sent: f64,
    busy: f64,
    exposed: f64,
}

pub(super) fn write(plan: &Plan, page: &mut Page) {
    let rows = rows(plan);
    if rows.is_empty() {
        return;
    }
    page.blank();
    let (divisor, unit) = time_unit(plan.time.step);
    let busy = format!("busy {unit}");
    page.line(
        heading("TRAFFIC")
            .then(format!(" {:<25}{:>9}   {:<26}{busy:>8}{:>9}", "per rank and step", "sent", "over", "hidden")),
    );
    for row in rows.iter().take(ROWS) {
        let c = row.first;
        let what = format!("{} {} {}", c.axes.join("+"), c.kind, c.purpose);
        let over = plan.cluster.levels.iter().find(|l| l.name == c.level);
        let over = over.map_or(c.level.clone(), |l| link(l.links, &l.link));
        let over = format!("{over}, {} ranks", c.group);
        let hidden = if row.busy > 0.0 { 1.0 - row.exposed / row.busy } else { 1.0 };
        let hidden = percent(hidden.clamp(0.0, 1.0)).replace(".0%", "%");
        page.line(Line::plain(format!(
            "  {:<31}{:>9}   {:<26}{:>8.3}{hidden:>9}",
            name(&what, 30),
            format!("{}B", scaled(row.sent)),
            name(&over, 25),
            row.busy / divisor,
        )));
    }
    if rows.len() > ROWS {
        let rest: f64 = rows[ROWS..].iter().map(|r| r.exposed).sum();
        page.line(Line::plain(format!("  and {} smaller, {:.3} {unit} not hidden", rows.len() - ROWS, rest / divisor)));
    }
}

/// Rows, those that cost most first.
fn rows(plan: &Plan) -> Vec<Row<'_>> {
    let mut rows: BTreeMap<_, Row> = BTreeMap::new();
    for c in &plan.collectives {
        let key = (&c.axes, c.kind, c.purpose, &c.level, c.group);
        let row = rows.entry(key).or_insert(Row { first: c, sent: 0.0, busy: 0.0, exposed: 0.0 });
        row.sent += c.sent as f64;
        row.busy += c.busy;
        row.exposed += c.exposed;
    }
    // A few bytes, such as the loss, are no traffic.
    let mut rows: Vec<_> = rows.into_values().filter(|r| r.sent >= SMALLEST).collect();
    let by = |x: f64, y: f64| y.partial_cmp(&x).unwrap_or(Ordering::Equal);
    rows.sort_by(|a, b| by(a.exposed, b.exposed).then(by(a.busy, b.busy)).then(by(a.sent, b.sent)));
    rows
}
