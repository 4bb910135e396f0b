//! Where a span really lies: any span, snapped to characters and to one line of its file.

use crate::source::{SourceFile, Sources, Span};

/// A span on the screen. Lines and columns count from 1, columns in characters.
pub(super) struct Place<'a> {
    /// The file.
    pub(super) file: &'a SourceFile,
    /// First byte, on a character boundary.
    pub(super) start: usize,
    /// One past the last byte, on a character boundary, not before `start`.
    pub(super) end: usize,
    /// Line of `start`.
    pub(super) line: usize,
    /// Column of `start`.
    pub(super) column: usize,
}

impl<'a> Place<'a> {
    /// The place of `span`; none where its file is not among `sources`.
    pub(super) fn of(sources: &'a Sources, span: Span) -> Option<Self> {
        let file = sources.get(span.file)?;
        let text = file.text.as_str();
        let mut start = text.floor_char_boundary(span.start as usize);
        let end = text.ceil_char_boundary((span.end as usize).min(text.len()));
        if start >= text.len() {
            // The end of a file is shown behind its last text, not on the empty line after it.
            start = text.trim_end().len();
        }
        let (line, column) = file.lines.line_col(text, start);
        Some(Self { file, start, end: end.max(start), line, column })
    }

    /// Text of the line of `start`, without its line break.
    pub(super) fn line_text(&self) -> &'a str {
        let text = self.file.text.as_str();
        let line = self.file.lines.range(text, self.line).and_then(|r| text.get(r)).unwrap_or("");
        line.strip_suffix('\r').unwrap_or(line)
    }

    /// How many characters to underline: those on the first line, and one for an empty span.
    pub(super) fn width(&self) -> usize {
        let text = self.file.text.get(self.start..self.end).unwrap_or("");
        text.split('\n').next().map_or(0, |t| t.trim_end().chars().count()).max(1)
    }

    /// Line and column of `end`.
    pub(super) fn end_line_col(&self) -> (usize, usize) {
        self.file.lines.line_col(&self.file.text, self.end)
    }
}
