//! Lines of bold, dim and plain text that never grow wider than the page.

use super::{Style, WIDTH};
use crate::emit::shell;

/// How a piece of text is drawn.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Weight {
    Plain,
    Bold,
    Dim,
}

/// A line: pieces from left to right.
#[derive(Clone, Default, Debug)]
pub(super) struct Line(Vec<(Weight, String)>);

impl Line {
    /// A line of plain text.
    pub(super) fn plain(text: impl Into<String>) -> Self {
        Self(vec![(Weight::Plain, text.into())])
    }

    /// Adds plain text.
    pub(super) fn then(self, text: impl Into<String>) -> Self {
        self.with(Weight::Plain, text)
    }

    /// Adds text of this weight.
    pub(super) fn with(mut self, weight: Weight, text: impl Into<String>) -> Self {
        self.0.push((weight, text.into()));
        self
    }

    /// Adds blanks up to column `width`, at least one.
    pub(super) fn pad(self, width: usize) -> Self {
        let blanks = width.saturating_sub(self.width()).max(1);
        self.then(" ".repeat(blanks))
    }

    /// Characters.
    pub(super) fn width(&self) -> usize {
        self.0.iter().map(|(_, t)| t.chars().count()).sum()
    }
}

/// A section's heading, in a column as wide as all of them share.
pub(super) fn heading(name: &str) -> Line {
    Line::default().with(Weight::Bold, name)
}

/// `text` from a user for the page: one line without control characters, at most `limit` characters.
pub(super) fn name(text: &str, limit: usize) -> String {
    let text = shell::comment(text);
    if text.chars().count() <= limit {
        return text;
    }
    let mut out: String = text.chars().take(limit.saturating_sub(1)).collect();
    out.push('…');
    out
}

/// The lines of a report.
#[derive(Default, Debug)]
pub(super) struct Page(Vec<Line>);

impl Page {
    /// Adds a line.
    pub(super) fn line(&mut self, line: Line) {
        self.0.push(line);
    }

    /// Adds an empty line, but never two.
    pub(super) fn blank(&mut self) {
        if self.0.last().is_some_and(|l| l.width() > 0) {
            self.0.push(Line::default());
        }
    }

    /// Adds `items`, joined by `separator` and broken where they do not fit, after `first` and below column `indent`.
    pub(super) fn wrapped(&mut self, first: Line, indent: usize, separator: &str, items: &[String]) {
        let mut line = first.pad(indent);
        let mut fresh = true;
        for (i, item) in items.iter().enumerate() {
            let end = if i + 1 < items.len() { separator.trim_end() } else { "" };
            let gap = if fresh { 0 } else { separator.len() - separator.trim_end().len() };
            let item = name(item, WIDTH - indent - end.len());
            if !fresh && line.width() + gap + item.chars().count() + end.len() > WIDTH {
                self.0.push(std::mem::take(&mut line));
                line = Line::plain(" ".repeat(indent));
            } else {
                line = line.then(" ".repeat(gap));
            }
            line = line.then(format!("{item}{end}"));
            fresh = false;
        }
        self.0.push(line);
    }

    /// Adds two columns of lines; the right one starts at column 40.
    pub(super) fn beside(&mut self, left: &[Line], right: &[Line]) {
        for i in 0..left.len().max(right.len()) {
            let mut line = left.get(i).cloned().unwrap_or_default();
            if let Some(right) = right.get(i) {
                line = line.pad(39);
                line.0.extend(right.0.iter().cloned());
            }
            self.0.push(line);
        }
    }

    /// The text, with no blanks at the ends of lines.
    pub(super) fn finish(self, style: Style) -> String {
        let mut out = String::new();
        for line in self.0 {
            let start = out.len();
            let mut room = WIDTH;
            for (weight, text) in line.0 {
                let text: String = text.chars().take(room).collect();
                room -= text.chars().count();
                let code = match (style, weight) {
                    (Style::Plain, _) | (_, Weight::Plain) => None,
                    (Style::Terminal, Weight::Bold) => Some("1"),
                    (Style::Terminal, Weight::Dim) => Some("2"),
                };
                match code {
                    Some(code) if !text.trim().is_empty() => out.extend(["\u{1b}[", code, "m", &text, "\u{1b}[0m"]),
                    _ => out.push_str(&text),
                }
            }
            let end = out.get(start..).map_or(0, |l| l.trim_end().len());
            out.truncate(start + end);
            out.push('\n');
        }
        out
    }
}
