//! A difference of two plans as text: sections like a report's, only what differs, both figures and their difference.

use super::numbers::{dollars, gib, percent, scaled, seconds, short};
use super::page::{Line, Page, Weight, heading, name};
use super::{Style, WIDTH};
use crate::emit::diff::{Amount, Diff, Measure, Side, Words};

/// Columns of a name.
const NAME: usize = 40;

/// Columns of a figure.
const FIGURE: usize = 12;

/// Groups of stages shown; the others are counted.
const STAGES: usize = 4;

/// Bytes below which traffic is left out.
const SMALLEST: f64 = 1e3;

/// Lines of files shown; the others are counted.
const LINES: usize = 40;

/// The text of `diff`.
pub fn changes(diff: &Diff, style: Style) -> String {
    let mut page = Page::default();
    page.line(Line::plain("before  ").then(side(&diff.before)));
    page.line(Line::plain("after   ").then(side(&diff.after)));
    if diff.is_empty() {
        page.blank();
        page.line(Line::plain("nothing changes"));
    }
    section(&mut page, "LAYOUT", &diff.layout);
    figures(&mut page, "MEMORY", "on one device", &stages(&diff.memory));
    figures(&mut page, "TIME", "of a step", &diff.time);
    figures(&mut page, "TRAFFIC", "of a rank in a step", &matters(&diff.traffic, diff));
    section(&mut page, "CLAIMS", &diff.claims);
    if let Some(target) = &diff.target {
        section(&mut page, &format!("FLAGS of {}", name(&target.name, 20)), &target.options);
        for (i, line) in target.lines.iter().enumerate() {
            let new_file = i == 0 || target.lines.get(i - 1).is_none_or(|p| p.what != line.what);
            if new_file {
                page.blank();
                page.line(heading("FILE").then(format!(" {}", name(&line.what, WIDTH - 5))));
            }
            if i < LINES {
                let (sign, text) = match (&line.before, &line.after) {
                    (Some(text), _) => ('-', text),
                    (None, after) => ('+', after.as_ref().unwrap_or(&line.what)),
                };
                page.line(Line::plain(format!("  {sign} {}", name(text, WIDTH - 4))));
            }
        }
        if target.lines.len() > LINES {
            page.line(dim(format!("  and {} lines more", target.lines.len() - LINES)));
        }
    }
    page.finish(style)
}

fn dim(text: String) -> Line {
    Line::default().with(Weight::Dim, text)
}

fn side(side: &Side) -> String {
    let set: Vec<_> = side.set.iter().map(|(n, v)| format!("{}={}", name(n, 30), name(v, 30))).collect();
    let set = if set.is_empty() { String::new() } else { format!(" with {}", set.join(" ")) };
    let fits = if side.fits { "" } else { ", DOES NOT FIT" };
    format!("{} of {}{set}{fits}", name(&side.job, 30), name(&side.file, 40))
}

/// What is said otherwise, one line each.
fn section(page: &mut Page, title: &str, words: &[Words]) {
    if words.is_empty() {
        return;
    }
    page.blank();
    page.line(heading(title));
    for w in words {
        let text = match (w.before.as_deref(), w.after.as_deref()) {
            (Some(""), None) => "gone".to_owned(),
            (None, Some("")) => "new".to_owned(),
            (Some(a), Some(b)) => format!("{} -> {}", blank(a), blank(b)),
            (Some(a), None) => format!("{a} -> nothing"),
            (None, b) => format!("nothing -> {}", b.unwrap_or_default()),
        };
        let label = name(&w.what, NAME);
        let room = WIDTH - 3 - label.chars().count().max(NAME / 2);
        if text.chars().count() <= room {
            page.line(Line::plain(format!("  {label:<0$} {text}", NAME / 2)));
        } else {
            page.line(Line::plain(format!("  {label}")));
            page.wrapped(Line::plain("   "), 4, " ", &text.split(' ').map(str::to_owned).collect::<Vec<_>>());
        }
    }
}

/// An empty value, made visible.
fn blank(text: &str) -> &str {
    if text.is_empty() { "on" } else { text }
}

/// Traffic that is more than a trifle on one of the sides.
fn matters(all: &[Amount], diff: &Diff) -> Vec<Amount> {
    let step = diff.time.iter().find(|a| a.what == "whole").and_then(|a| a.before).unwrap_or(0.0);
    let least = |unit| match unit {
        Measure::Sent => SMALLEST,
        Measure::Seconds => step / 1e3,
        Measure::Held | Measure::TokensPerSecond | Measure::Share | Measure::Dollars | Measure::Count => 0.0,
    };
    let large = |a: &&Amount| a.before.unwrap_or(0.0).max(a.after.unwrap_or(0.0)) >= least(a.unit);
    all.iter().filter(large).cloned().collect()
}

/// Of many groups of stages those in front and the last.
fn stages(all: &[Amount]) -> Vec<Amount> {
    let mut groups: Vec<&str> = all.iter().map(|a| a.group.as_str()).collect();
    groups.dedup();
    if groups.len() <= STAGES {
        return all.to_vec();
    }
    let kept: Vec<&str> = groups.iter().take(STAGES - 1).chain(groups.last()).copied().collect();
    let mut out: Vec<Amount> = all.iter().filter(|a| kept.contains(&a.group.as_str())).cloned().collect();
    // The last group says how many stand between.
    let hidden = groups.len() - kept.len();
    let last = groups.last().map(|g| (*g).to_owned()).unwrap_or_default();
    for a in out.iter_mut().filter(|a| a.group == last) {
        a.group = format!("{last} ({hidden} others not shown)");
    }
    out
}

/// Figures with their differences, under the names of their groups.
fn figures(page: &mut Page, title: &str, of: &str, amounts: &[Amount]) {
    if amounts.is_empty() {
        return;
    }
    page.blank();
    let columns = format!("{:>FIGURE$}{:>FIGURE$}{:>FIGURE$}{:>9}", "before", "after", "change", "");
    page.line(heading(title).then(format!(" {of:<0$}{columns}", NAME + 1 - title.len())));
    let (mut group, mut what) = ("", "");
    for a in amounts {
        if a.group != group {
            (group, what) = (&a.group, "");
            page.line(dim(format!("  {}", name(group, WIDTH - 2))));
        }
        let (before, after) = (a.before.unwrap_or(0.0), a.after.unwrap_or(0.0));
        let shown = |x: Option<f64>| x.map_or("-".into(), |x| figure(a.unit, x));
        let change = after - before;
        let sign = if change > 0.0 { "+" } else { "-" };
        let relative = change / before;
        let relative = match a.unit {
            Measure::Share => String::new(),
            _ if !relative.is_finite() => "new".to_owned(),
            _ if a.after.is_none() => "gone".to_owned(),
            _ => format!("{sign}{}", percent(relative.abs())),
        };
        let change = match a.unit {
            Measure::Share => format!("{sign}{} pp", short(100.0 * change.abs())),
            _ => format!("{sign}{}", figure(a.unit, change.abs())),
        };
        let aspect = match a.unit {
            Measure::Seconds if title == "TRAFFIC" => "not hidden",
            Measure::Count if title == "TRAFFIC" => "number",
            _ => "",
        };
        let label = match (aspect, a.what == what) {
            ("", _) => name(&a.what, NAME - 2),
            (aspect, true) => format!("  {aspect}"),
            (aspect, false) => format!("{}, {aspect}", name(&a.what, NAME - 4 - aspect.len())),
        };
        what = &a.what;
        let line = format!(
            "    {label:<0$}{1:>FIGURE$}{2:>FIGURE$}{change:>FIGURE$}{relative:>9}",
            NAME - 2,
            shown(a.before),
            shown(a.after),
        );
        let weight = if matches!(a.what.as_str(), "total" | "whole") { Weight::Bold } else { Weight::Plain };
        page.line(Line::default().with(weight, line));
    }
}

fn figure(unit: Measure, x: f64) -> String {
    match unit {
        Measure::Held => gib(x),
        Measure::Sent => format!("{}B", scaled(x)),
        Measure::Seconds => seconds(x),
        Measure::TokensPerSecond => scaled(x).trim_end().to_owned(),
        Measure::Share => percent(x),
        Measure::Dollars => dollars(x),
        Measure::Count => format!("{x:.0}"),
    }
}
