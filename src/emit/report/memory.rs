//! MEMORY: one column for every stage that differs from its neighbours.

use super::WIDTH;
use super::numbers::{GIB, gib, range, runs};
use super::page::{Line, Page, Weight, heading, name};
use crate::emit::plan::{Plan, StageMemory};

/// Columns of the labels.
const LABEL: usize = 18;

/// Columns of the whole half.
const HALF: usize = WIDTH - 39;

/// A row: its label and its figure for a stage.
type Row<'a> = (String, Box<dyn Fn(&StageMemory) -> String + 'a>);

/// The right half of the middle of a report.
pub(super) fn rows(plan: &Plan) -> Vec<Line> {
    let stages = &plan.memory.stages;
    let heaviest = stages.iter().map(|s| s.total).max().unwrap_or(0) as f64;
    let (divisor, unit) = if heaviest >= GIB { (GIB, "GiB") } else { (GIB / 1024.0, "MiB") };
    let digits = if heaviest / divisor >= 9.95 { 1 } else { 2 };
    let figure = move |bytes: f64| format!("{:.digits$}", bytes / divisor);
    let rows = table(plan, &figure);
    let cells: Vec<Vec<String>> = stages.iter().map(|s| rows.iter().map(|(_, f)| f(s)).collect()).collect();
    let groups = runs(&cells);
    let columns: Vec<(String, &Vec<String>, bool)> = groups
        .iter()
        .map(|(cells, first, last)| {
            let heavy = (*first..=*last).contains(&(plan.memory.heaviest as usize));
            let title = if stages.len() == 1 { "device".into() } else { range(*first, *last) };
            (title, *cells, heavy)
        })
        .collect();
    let all = columns.len();
    let columns = select(columns);
    let widths: Vec<usize> = columns.iter().map(width).collect();
    let stage = if stages.len() > 1 { "stage" } else { "" };
    let mut title = heading("MEMORY").then(format!("  {unit:<4}{stage:>6}"));
    title = pad_to(title, LABEL);
    for ((text, ..), width) in columns.iter().zip(&widths) {
        title = title.then(format!("{text:>width$}"));
    }
    let mut lines = vec![title];
    for (i, (label, _)) in rows.iter().enumerate() {
        if columns.iter().all(|(_, cells, _)| cells[i].parse() == Ok(0.0)) {
            continue;
        }
        let weight = if label == "total" { Weight::Bold } else { Weight::Plain };
        let mut line = Line::default().with(weight, format!("  {label:<0$}", LABEL - 2));
        for ((_, cells, _), width) in columns.iter().zip(&widths) {
            line = line.with(weight, format!("{:>width$}", cells[i]));
        }
        lines.push(line);
    }
    if columns.len() < all {
        let note = format!("  {} of {all} different stages shown", columns.len());
        lines.push(Line::default().with(Weight::Dim, note));
    }
    lines
}

/// Every row in order.
fn table<'a>(plan: &'a Plan, figure: &'a impl Fn(f64) -> String) -> Vec<Row<'a>> {
    let dtype = |class: &str| plan.training.precision.get(class).map_or("", String::as_str);
    let label = |text: &str, more: String| name(format!("{text} {more}").trim_end(), LABEL - 3);
    let shards = |class: &str| {
        let names = plan.layout.stored.get(class).map_or(&[][..], Vec::as_slice);
        let axes = plan.layout.axes.iter().filter(|a| names.contains(&a.name));
        match axes.fold(1_u64, |n, a| n.saturating_mul(a.size)) {
            1 => String::new(),
            n => format!("/{n}"),
        }
    };
    let with = |class: &str| format!("{} {}", dtype(class), shards(class));
    let bytes = |of: fn(&StageMemory) -> u64| Box::new(move |s: &StageMemory| figure(of(s) as f64));
    let usable = plan.cluster.usable as f64;
    vec![
        (label("params", with("param")), bytes(|s| s.params)),
        (label("gathered", String::new()), bytes(|s| s.gathered)),
        (label("grads", with("grad")), bytes(|s| s.grads)),
        (label("state", with("state")), bytes(|s| s.state)),
        (label("activations", String::new()), bytes(|s| s.activations)),
        (label("  in flight", String::new()), Box::new(|s: &StageMemory| s.in_flight.to_string())),
        (label("working set", String::new()), bytes(|s| s.transient)),
        (label("allocator", String::new()), bytes(|s| s.overhead)),
        (label("total", String::new()), bytes(|s| s.total)),
        (label("on the host", String::new()), bytes(|s| s.host)),
        (label("free of", figure(usable)), Box::new(move |s: &StageMemory| figure(usable - s.total as f64))),
    ]
}

type Column<'a> = (String, &'a Vec<String>, bool);

fn width((title, cells, _): &Column) -> usize {
    let widest = cells.iter().chain([title]).map(|c| c.chars().count()).max();
    (widest.unwrap_or(0) + 1).max(6)
}

/// As many columns as fit: the first, the last, the heaviest, and others evenly between.
fn select(columns: Vec<Column>) -> Vec<Column> {
    let room = (HALF - LABEL) / columns.iter().map(width).max().unwrap_or(6);
    let last = columns.len().saturating_sub(1);
    if columns.len() <= room.max(1) {
        return columns;
    }
    let heaviest = columns.iter().position(|(.., heavy)| *heavy).unwrap_or(0);
    let mut kept = vec![heaviest];
    for i in [0, last].into_iter().chain((1..room).map(|i| i * last / room.max(1))).chain(0..=last) {
        if kept.len() < room && !kept.contains(&i) {
            kept.push(i);
        }
    }
    columns.into_iter().enumerate().filter(|(i, _)| kept.contains(i)).map(|(_, c)| c).collect()
}

fn pad_to(line: Line, width: usize) -> Line {
    if line.width() < width { line.pad(width) } else { line }
}

/// The largest tensors of the fullest stage, where it does not fit.
pub(super) fn largest(plan: &Plan, page: &mut Page) {
    let stage = plan.memory.stages.get(plan.memory.heaviest as usize);
    let largest = stage.map_or(&[][..], |s| s.largest.as_slice());
    if plan.memory.fits || largest.is_empty() {
        return;
    }
    page.blank();
    page.line(heading("LARGEST").then(format!(" on stage {}", plan.memory.heaviest)));
    for c in largest.iter().take(4) {
        let what = format!("{} in {}, {}", c.what, c.region, c.class);
        let line = format!("  {:<50} {:<22} {:>11}", name(&what, 50), name(&c.place, 22), gib(c.bytes as f64));
        page.line(Line::plain(line));
    }
}
