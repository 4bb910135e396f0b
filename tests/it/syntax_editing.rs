//! Half-typed lines, as an editor sees them: a line of a right file ends after any of its words. One error there, or at
//! the partner of a bracket of that line; nothing elsewhere; and a mistake elsewhere is still reported.

use crate::files::{below, name, text};
use parc::diagnostics::{Diagnostic, Sink};
use parc::format::format;
use parc::source::Sources;
use parc::syntax;

/// What is wrong with a text, each with its line from 1.
pub(crate) fn said(text: &str) -> Vec<(usize, Diagnostic)> {
    let (mut sources, mut sink) = (Sources::new(), Sink::new());
    let file = sources.add("main.par", text.to_owned(), false);
    syntax::parse(&sources, file, &mut sink);
    sink.finish().into_iter().map(|d| (sources.line_col(d.primary.span).0, d)).collect()
}

/// The code of a line, without its comment.
fn code(line: &str) -> &str {
    let mut quoted = false;
    let at = line.char_indices().find(|(i, c)| {
        quoted ^= *c == '"';
        !quoted && line[*i..].starts_with("//")
    });
    line[..at.map_or(line.len(), |a| a.0)].trim_end()
}

/// The ends of what could be left of a line: after nothing, after its first word, and so on.
fn cuts(line: &str) -> Vec<usize> {
    let code = code(line);
    let mut out = Vec::new();
    let mut word = false;
    let mut quoted = false;
    for (i, c) in code.char_indices() {
        let inside = c.is_alphanumeric() || c == '_';
        if !(quoted || word && inside || i > 0 && code[..i].ends_with(' ')) {
            out.push(i);
        }
        quoted ^= c == '"';
        word = inside;
    }
    out
}

/// Lines, from 1, where the mistake of line `line` may be reported: that line, those of the partners of its brackets,
/// of the list around it, and the lines below that carry it on.
fn partners(lines: &[&str], line: usize) -> Vec<usize> {
    let mut open: Vec<(char, usize)> = Vec::new();
    let mut found = vec![line];
    let column = |l: &str| l.len() - l.trim_start().len();
    let item = lines[..line].iter().rposition(|l| column(l) <= column(lines[line - 1]) && !code(l).is_empty());
    let below = lines[line..].iter().take_while(|l| column(l) > column(lines[item.unwrap_or(0)]));
    found.extend((line + 1..).zip(below).map(|(n, _)| n).filter(|_| !code(lines[line - 1]).ends_with('{')));
    for (n, l) in lines.iter().enumerate() {
        let mut quoted = false;
        for c in code(l).chars() {
            quoted ^= c == '"';
            if quoted {
                continue;
            }
            if "([{".contains(c) {
                open.push((c, n + 1));
            } else if ")]}".contains(c)
                && let Some((bracket, o)) = open.pop()
            {
                if o == line || n + 1 == line {
                    found.extend([o, n + 1]);
                } else if bracket != '{' && (o..=n + 1).contains(&line) {
                    found.extend(o..=n + 1);
                }
            }
        }
    }
    found
}

/// The files, without mistakes, laid out as `parc fmt` does it: indentation is what tells where a half-typed line ends.
fn files() -> Vec<(String, String)> {
    let files = ["examples", "tests/specs"].iter().flat_map(|f| below(f, &["par"]));
    files.map(|f| (name(&f), format(&text(&f)).unwrap())).collect()
}

/// `lines` with line `at` (from 0) replaced.
fn with_line(lines: &[&str], at: usize, line: &str) -> String {
    let lines: Vec<&str> = lines.iter().enumerate().map(|(i, l)| if i == at { line } else { l }).collect();
    lines.join("\n") + "\n"
}

/// A file with one line cut short.
pub(crate) struct Cut<'a> {
    /// File, line and what was cut, for messages.
    pub(crate) place: String,
    /// The lines before the cut.
    pub(crate) lines: &'a [&'a str],
    /// Lines, from 1, where its mistake may be reported.
    pub(crate) places: &'a [usize],
    /// The text after the cut.
    pub(crate) broken: String,
}

/// Judges each `every`-th cut of the files that `takes` takes: what `judge` says of one is wrong with it.
pub(crate) fn judge_cuts(
    every: usize,
    takes: fn(&str) -> bool,
    mut judge: impl FnMut(&Cut) -> Option<String>,
) -> Vec<String> {
    let (mut tick, mut wrong) = (0, Vec::new());
    for (file, text) in files().into_iter().filter(|(_, text)| takes(text)) {
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let places = partners(&lines, at + 1);
            for cut in cuts(line) {
                tick += 1;
                if tick % every == 0 {
                    let place = format!("{file}:{}: `{}|{}`", at + 1, line[..cut].trim_start(), &line[cut..]);
                    let broken = with_line(&lines, at, &line[..cut]);
                    let cut = Cut { place, lines: &lines, places: &places, broken };
                    wrong.extend(judge(&cut).map(|what| format!("{}{what}", cut.place)));
                }
            }
        }
    }
    wrong
}

/// What was said, each on a line of its own.
pub(crate) fn listed(said: &[(usize, Diagnostic)]) -> String {
    said.iter().fold(String::new(), |all, (l, d)| format!("{all}\n    {l}: {}", d.message))
}

const PLANTED: &str = "let planted = = 1";

#[test]
fn a_half_typed_line_is_one_error_there() {
    // All of them take a while; every run takes each seventh.
    let every = if std::env::var_os("PARC_EVERY_CUT").is_some() { 1 } else { 7 };
    let mut tried = 0;
    let judge = |cut: &Cut| {
        tried += 1;
        let list = said(&cut.broken);
        if list.len() > 1 || list.iter().any(|(l, _)| !cut.places.contains(l)) {
            return Some(listed(&list));
        }
        // A mistake at the end of the file.
        let planted = said(&format!("{}\n{PLANTED}\n", cut.broken));
        let there = cut.lines.len() + 2;
        let missed = !planted.iter().any(|(l, _)| *l == there) || planted.len() > list.len() + 1;
        missed.then(|| format!(", planted at {there}{}", listed(&planted)))
    };
    let wrong = judge_cuts(every, |_| true, judge);
    assert!(tried * every > 10_000, "{tried}");
    // A list that goes on for several lines and is cut in its first can be read in more than one way.
    let shown: Vec<_> = wrong.iter().take(60).cloned().collect();
    assert!(wrong.len() * 500 <= tried, "{} of {tried}\n{}", wrong.len(), shown.join("\n"));
}
