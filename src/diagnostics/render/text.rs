//! The long form, a frame with the source around each label. The only user of ariadne.
//!
//! Ariadne counts lines its own way, panics inside characters, reads whole files and keeps colour codes when told not
//! to. So it is given an excerpt: the labelled lines alone, at their own line numbers, cleaned and of bounded length;
//! spans count characters of that excerpt.

use super::{Colour, clean, header, one_line, place::Place, push_more, severity, visible};
use crate::diagnostics::{Applicability, Diagnostic, Fix, Label, Severity};
use crate::source::Sources;
use ariadne::{Cache, Color, Config, IndexType, LabelAttach, Report, ReportKind, Source};
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::ops::Range;

/// How many diagnostics [`text`] draws.
pub const TEXT_SHOWN: usize = 50;

/// How many secondary labels one frame draws.
const LABELS_SHOWN: usize = 12;

/// Lines are cut here, in characters; a label that starts further right is named without its line.
const LINE_SHOWN: usize = 400;

/// A label further down is named without its line: the excerpt holds a line break for each line above.
const LAST_LINE_SHOWN: usize = 100_000;

/// Every diagnostic with its source, the first [`TEXT_SHOWN`] of them, an empty line after each.
pub fn text(diagnostics: &[Diagnostic], sources: &Sources, colour: Colour) -> String {
    let mut out = String::new();
    for d in diagnostics.iter().take(TEXT_SHOWN) {
        out.push_str(&text_one(d, sources, colour));
        out.push('\n');
    }
    push_more(&mut out, diagnostics, TEXT_SHOWN);
    out
}

/// One diagnostic with its source.
pub fn text_one(d: &Diagnostic, sources: &Sources, colour: Colour) -> String {
    let Excerpted { files, labels, primary } = excerpts(d, sources);
    // A file that could not be read has no line to show.
    let labels = if is_empty(d, sources) { Vec::new() } else { labels };
    let drawn = if labels.is_empty() { bare(d, sources) } else { draw(d, files, &labels, primary) };
    let mut out = match colour {
        Colour::Always => drawn,
        Colour::Never => without_escapes(&drawn),
    };
    let indent = margin(&out);
    let items = footer(d, sources);
    if !items.is_empty() && !labels.is_empty() {
        let _ = writeln!(out, "{indent}│");
    }
    for (word, text) in items {
        push_item(&mut out, &indent, colour, word, &text);
    }
    out
}

/// A label as ariadne gets it.
struct Drawn {
    file: usize,
    chars: Range<usize>,
    line: usize,
    text: String,
    primary: bool,
}

/// The labelled lines of one file.
struct Excerpt {
    name: String,
    source: Source<String>,
}

/// The frame, without ariadne's closing rule.
fn draw(d: &Diagnostic, mut excerpts: Vec<Excerpt>, labels: &[Drawn], primary: Range<usize>) -> String {
    let title = format!("{}[{}]", severity(d), d.code);
    let config =
        Config::default().with_index_type(IndexType::Char).with_label_attach(LabelAttach::Start).with_tab_width(4);
    let report = Report::build(ReportKind::Custom(&title, title_colour(d)), (0, primary))
        .with_config(config)
        .with_message(one_line(&clean(&d.message)))
        .with_labels(labels.iter().enumerate().map(|(order, l)| {
            ariadne::Label::new((l.file, l.chars.clone()))
                .with_message(&l.text)
                .with_color(if l.primary { title_colour(d) } else { Color::Blue })
                .with_order(order as i32)
                .with_priority(i32::from(l.primary))
        }))
        .finish();
    let mut bytes = Vec::new();
    report.write(Excerpts(&mut excerpts), &mut bytes).expect("a vector takes every byte");
    tighten(&String::from_utf8_lossy(&bytes))
}

/// Ariadne's frame without its closing rule, without the blank rows between leaders, and without the leader of a
/// label that says nothing.
fn tighten(drawn: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    let all: Vec<&str> = drawn.lines().map(str::trim_end).collect();
    for line in all.iter().take(all.len().saturating_sub(1)) {
        let plain = without_escapes(line);
        let below = plain.trim_start().strip_prefix('│').unwrap_or("").trim();
        if !below.is_empty() && below.chars().all(|c| matches!(c, '│' | ' ')) {
            continue;
        }
        if below.starts_with('╰') && below.chars().all(|c| matches!(c, '╰' | '─' | ' ')) {
            if let Some(underline) = lines.last_mut() {
                *underline = underline.replace('┬', "─");
            }
            continue;
        }
        lines.push((*line).to_owned());
    }
    lines.join("\n") + "\n"
}

fn title_colour(d: &Diagnostic) -> Color {
    match d.code.info().severity {
        Severity::Error => Color::Red,
        Severity::Warning => Color::Yellow,
    }
}

/// Whether the primary place is in a file of no text.
fn is_empty(d: &Diagnostic, sources: &Sources) -> bool {
    Place::of(sources, d.primary.span).is_some_and(|p| p.file.text.is_empty())
}

/// The header and the place, for a diagnostic whose source is not shown.
fn bare(d: &Diagnostic, sources: &Sources) -> String {
    let mut out = one_line(&header(d)) + "\n";
    if let Some(p) = Place::of(sources, d.primary.span).filter(|_| !is_empty(d, sources)) {
        let _ = writeln!(out, "   at {}:{}:{}", one_line(&clean(&p.file.name)), p.line, p.column);
    }
    out
}

/// What of the sources a frame shows.
#[derive(Default)]
struct Excerpted {
    /// Every file with a label, the primary label's first.
    files: Vec<Excerpt>,
    /// The labels in drawing order: files, then lines downward, then columns from the right, so that no leader crosses
    /// another. None where the primary place cannot be shown.
    labels: Vec<Drawn>,
    /// Characters of the primary place in the first file.
    primary: Range<usize>,
}

fn excerpts(d: &Diagnostic, sources: &Sources) -> Excerpted {
    let mut files: Vec<u32> = Vec::new();
    let mut lines: Vec<BTreeMap<usize, (String, usize)>> = Vec::new();
    let mut found: Vec<(usize, Place<'_>, &Label, bool)> = Vec::new();
    let secondary = d.secondary.iter().take(LABELS_SHOWN).map(|l| (l, false));
    for (label, primary) in std::iter::once((&d.primary, true)).chain(secondary) {
        let Some(place) = Place::of(sources, label.span) else { continue };
        if place.line > LAST_LINE_SHOWN || place.column > LINE_SHOWN {
            continue;
        }
        let id = label.span.file.0;
        let file = files.iter().position(|f| *f == id).unwrap_or_else(|| {
            files.push(id);
            lines.push(BTreeMap::new());
            files.len() - 1
        });
        lines[file].entry(place.line).or_insert_with(|| (shown(place.line_text()), 0));
        found.push((file, place, label, primary));
    }
    if found.first().is_none_or(|(.., primary)| !primary) {
        return Excerpted::default();
    }
    let excerpts: Vec<Excerpt> = lines.iter_mut().zip(&files).map(|(lines, id)| excerpt(lines, *id, sources)).collect();
    let mut labels: Vec<Drawn> = found
        .iter()
        .map(|(file, place, label, primary)| {
            let (text, offset) = &lines[*file][&place.line];
            let from = place.column - 1;
            let to = (from + place.width()).min(text.chars().count()).max(from + 1);
            Drawn {
                file: *file,
                chars: offset + from..offset + to,
                line: place.line,
                text: one_line(&clean(&label.text)),
                primary: *primary,
            }
        })
        .collect();
    let primary = labels.first().map_or(0..0, |l| l.chars.clone());
    // An unlabelled place beside labelled ones on its line adds nothing: the frame's head names it.
    let told: Vec<(usize, usize)> = labels.iter().filter(|l| !l.text.is_empty()).map(|l| (l.file, l.line)).collect();
    labels.retain(|l| !l.text.is_empty() || !told.contains(&(l.file, l.line)));
    labels.sort_by_key(|l| (l.file, l.line, std::cmp::Reverse(l.chars.start), !l.primary));
    Excerpted { files: excerpts, labels, primary }
}

/// `lines` at their own line numbers, and into each the offset of its first character.
fn excerpt(lines: &mut BTreeMap<usize, (String, usize)>, file: u32, sources: &Sources) -> Excerpt {
    let mut text = String::new();
    let (mut chars, mut at) = (0, 1);
    for (line, (shown, offset)) in lines.iter_mut() {
        for _ in at..*line {
            text.push('\n');
        }
        chars += line - at;
        *offset = chars;
        text.push_str(shown);
        text.push('\n');
        chars += shown.chars().count() + 1;
        at = line + 1;
    }
    let name = sources.get(crate::source::FileId(file)).map_or("", |f| f.name.as_str());
    Excerpt { name: one_line(&clean(name)), source: Source::from(text) }
}

/// A line of source as it is shown.
fn shown(line: &str) -> String {
    let mut text: String = line.chars().take(LINE_SHOWN).map(visible).collect();
    if line.chars().nth(LINE_SHOWN).is_some() {
        text.push('…');
    }
    text
}

struct Excerpts<'a>(&'a mut Vec<Excerpt>);

impl Cache<usize> for Excerpts<'_> {
    type Storage = String;

    fn fetch(&mut self, id: &usize) -> Result<&Source<String>, impl fmt::Debug> {
        self.0.get(*id).map(|e| &e.source).ok_or("an excerpt was made for every label")
    }

    fn display<'a>(&self, id: &'a usize) -> Option<impl fmt::Display + 'a> {
        self.0.get(*id).map(|e| e.name.clone())
    }
}

/// Notes, help and fixes in this order.
fn footer(d: &Diagnostic, sources: &Sources) -> Vec<(&'static str, String)> {
    let mut items: Vec<(&'static str, String)> = Vec::new();
    items.extend(d.notes.iter().map(|n| ("note", n.clone())));
    if d.secondary.len() > LABELS_SHOWN {
        items.push(("note", format!("{} more places are involved", d.secondary.len() - LABELS_SHOWN)));
    }
    items.extend(d.help.iter().map(|h| ("help", h.clone())));
    items.extend(d.fixes.iter().map(|f| ("fix", fix_line(f, sources))));
    items
}

/// `use `Gb/s`: `400 Gbps` → `400 Gb/s`; step time +3.1%`.
fn fix_line(fix: &Fix, sources: &Sources) -> String {
    let mut out = fix.title.clone();
    let edits: Vec<String> = fix
        .edits
        .iter()
        .filter(|e| !e.text.is_empty() && !e.text.contains('\n') && !fix.title.contains(e.text.trim()))
        .map(|e| {
            let old = Place::of(sources, e.span).and_then(|p| p.file.text.get(p.start..p.end)).unwrap_or("");
            if old.is_empty() || old.contains('\n') {
                format!("`{}`", e.text.trim())
            } else {
                format!("`{old}` → `{}`", e.text)
            }
        })
        .collect();
    if !edits.is_empty() {
        let _ = write!(out, ": {}", edits.join(", "));
    }
    if let Some(effect) = &fix.effect {
        let _ = write!(out, "; {effect}");
    }
    match fix.applicability {
        Applicability::Safe | Applicability::Unsure => {}
        Applicability::Placeholder => out.push_str(" (fill in the `<…>`)"),
    }
    out
}

/// One item below the frame: `   = note: …`, later lines indented under the first.
fn push_item(out: &mut String, indent: &str, colour: Colour, word: &str, text: &str) {
    let text = clean(text);
    let (on, off) = match colour {
        Colour::Always => ("\u{1b}[1m", "\u{1b}[0m"),
        Colour::Never => ("", ""),
    };
    for (i, line) in text.lines().enumerate() {
        let line = match i {
            0 => format!("{indent}= {on}{word}{off}: {line}"),
            _ => format!("{indent}  {:width$}  {line}", "", width = word.len()),
        };
        out.push_str(line.trim_end());
        out.push('\n');
    }
}

/// The blanks that put an item under the frame's bar.
fn margin(frame: &str) -> String {
    let plain = without_escapes(frame);
    let bar = plain.lines().nth(1).and_then(|l| l.chars().position(|c| c == '╭'));
    " ".repeat(bar.unwrap_or(3))
}

/// `text` without ANSI escape sequences. What was escaped was already made visible, so these are all ariadne's.
pub(super) fn without_escapes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        out.push_str(before);
        rest = after.split_once('m').map_or("", |(_, tail)| tail);
    }
    out.push_str(rest);
    out.lines().map(str::trim_end).fold(String::new(), |all, line| all + line + "\n")
}
