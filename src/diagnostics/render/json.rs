//! JSON lines: one object for each diagnostic, for editors and scripts. Fields are only ever added; [`SCHEMA`] counts
//! changes of meaning.

use super::{Colour, LINES_SHOWN, place::Place, severity, text_one};
use crate::diagnostics::{Applicability, Diagnostic, Edit, Fix, Label};
use crate::source::{Sources, Span};
use serde::Serialize;

/// Version of the shape of the objects.
pub const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Line<'a> {
    schema: u32,
    code: &'a str,
    name: &'a str,
    severity: &'a str,
    message: &'a str,
    /// The primary place first.
    spans: Vec<Labelled<'a>>,
    notes: &'a [String],
    help: &'a [String],
    fixes: Vec<Mend<'a>>,
    /// What the text form shows, without colours.
    rendered: String,
}

/// The last line where some were left out.
#[derive(Serialize)]
struct More {
    schema: u32,
    /// How many diagnostics are not listed.
    more: usize,
}

#[derive(Serialize)]
struct Labelled<'a> {
    #[serde(flatten)]
    place: Region<'a>,
    primary: bool,
    label: &'a str,
}

/// Half-open ranges: bytes from 0, lines and columns (in characters) from 1.
#[derive(Serialize)]
struct Region<'a> {
    file: &'a str,
    start: usize,
    end: usize,
    line: usize,
    column: usize,
    end_line: usize,
    end_column: usize,
}

#[derive(Serialize)]
struct Mend<'a> {
    title: &'a str,
    applicability: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    effect: Option<&'a str>,
    edits: Vec<Replacement<'a>>,
}

#[derive(Serialize)]
struct Replacement<'a> {
    #[serde(flatten)]
    place: Region<'a>,
    text: &'a str,
}

/// One JSON object a line for each diagnostic; a last `{"schema":…,"more":…}` where some were left out.
pub fn json(diagnostics: &[Diagnostic], sources: &Sources) -> String {
    let mut out = String::new();
    for d in diagnostics.iter().take(LINES_SHOWN) {
        push(&mut out, &line(d, sources));
    }
    if diagnostics.len() > LINES_SHOWN {
        push(&mut out, &More { schema: SCHEMA, more: diagnostics.len() - LINES_SHOWN });
    }
    out
}

fn push(out: &mut String, object: &impl Serialize) {
    out.push_str(&serde_json::to_string(object).expect("strings and numbers always serialise"));
    out.push('\n');
}

fn line<'a>(d: &'a Diagnostic, sources: &'a Sources) -> Line<'a> {
    let info = d.code.info();
    let secondary = d.secondary.iter().filter_map(|l| labelled(l, false, sources));
    Line {
        schema: SCHEMA,
        code: info.number,
        name: info.name,
        severity: severity(d),
        message: &d.message,
        spans: labelled(&d.primary, true, sources).into_iter().chain(secondary).collect(),
        notes: &d.notes,
        help: &d.help,
        fixes: d.fixes.iter().map(|f| mend(f, sources)).collect(),
        rendered: text_one(d, sources, Colour::Never),
    }
}

fn labelled<'a>(label: &'a Label, primary: bool, sources: &'a Sources) -> Option<Labelled<'a>> {
    Some(Labelled { place: region(label.span, sources)?, primary, label: &label.text })
}

fn mend<'a>(fix: &'a Fix, sources: &'a Sources) -> Mend<'a> {
    let replacement = |e: &'a Edit| Some(Replacement { place: region(e.span, sources)?, text: &e.text });
    Mend {
        title: &fix.title,
        applicability: match fix.applicability {
            Applicability::Safe => "safe",
            Applicability::Unsure => "unsure",
            Applicability::Placeholder => "placeholder",
        },
        effect: fix.effect.as_deref(),
        edits: fix.edits.iter().filter_map(replacement).collect(),
    }
}

fn region(span: Span, sources: &Sources) -> Option<Region<'_>> {
    let place = Place::of(sources, span)?;
    let (end_line, end_column) = place.end_line_col();
    Some(Region {
        file: &place.file.name,
        start: place.start,
        end: place.end,
        line: place.line,
        column: place.column,
        end_line,
        end_column,
    })
}
