//! Source text: files, spans, line numbers, and where text may be read from.
//!
//! Nothing here prints or opens a file: text enters through a [`World`].

mod lines;
mod stdlib;
mod world;

pub use lines::LineIndex;
pub use stdlib::{STDLIB, library_files, stdlib_file};
pub use world::{MemoryWorld, ReadError, World};

use std::fmt;

/// One file of a compilation, by position in its [`Sources`].
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FileId(pub u32);

/// A half-open range of UTF-8 bytes in one file.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// No place: for what no line of any file causes, such as a wrong command line.
    pub const NOWHERE: Self = Self { file: FileId(u32::MAX), start: 0, end: 0 };

    /// The range `start..end` of `file`.
    pub fn new(file: FileId, start: usize, end: usize) -> Self {
        Self { file, start: start as u32, end: end as u32 }
    }

    /// The smallest span that covers both; `self` if they lie in different files.
    #[must_use]
    pub fn to(self, other: Self) -> Self {
        if self.file == other.file {
            Self { file: self.file, start: self.start.min(other.start), end: self.end.max(other.end) }
        } else {
            self
        }
    }

    /// The empty span at the end of this one.
    #[must_use]
    pub fn after(self) -> Self {
        Self { start: self.end, ..self }
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}..{}", self.file.0, self.start, self.end)
    }
}

/// A value and where it was written.
#[derive(Clone, PartialEq, Debug)]
pub struct Spanned<T> {
    /// The value.
    pub node: T,
    /// Where it stands.
    pub span: Span,
}

impl<T> Spanned<T> {
    /// `node`, written at `span`.
    pub fn new(node: T, span: Span) -> Self {
        Self { node, span }
    }
}

/// The text of one file and its name as the user gave it.
#[derive(Debug)]
pub struct SourceFile {
    /// The path the user gave, or `std/hardware/hosts.par` for the standard library.
    pub name: String,
    /// The whole text.
    pub text: String,
    /// Line starts of `text`.
    pub lines: LineIndex,
    /// Whether the file belongs to the embedded standard library.
    pub std: bool,
}

/// Every file read for one compilation.
#[derive(Debug, Default)]
pub struct Sources {
    files: Vec<SourceFile>,
}

impl Sources {
    /// No files.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file and names it.
    pub fn add(&mut self, name: impl Into<String>, text: String, std: bool) -> FileId {
        let id = FileId(self.files.len() as u32);
        let lines = LineIndex::new(&text);
        self.files.push(SourceFile { name: name.into(), text, lines, std });
        id
    }

    /// The file `id` names.
    pub fn file(&self, id: FileId) -> &SourceFile {
        &self.files[id.0 as usize]
    }

    /// The file `id` names, if it is one of these.
    pub fn get(&self, id: FileId) -> Option<&SourceFile> {
        self.files.get(id.0 as usize)
    }

    /// The text under `span`; empty where the span leaves the text or cuts a character.
    pub fn snippet(&self, span: Span) -> &str {
        self.file(span.file).text.get(span.start as usize..span.end as usize).unwrap_or("")
    }

    /// `span` with its indentation and line break, where nothing else stands on its lines: what to take out to remove it.
    pub fn whole_lines(&self, span: Span) -> Span {
        let text = &self.file(span.file).text;
        let (start, end) = (span.start as usize, span.end as usize);
        let first = text.get(..start).and_then(|t| t.rfind('\n')).map_or(0, |i| i + 1);
        let last = text.get(end..).and_then(|t| t.find('\n')).map_or(text.len(), |i| end + i + 1);
        let blank = |a, b| text.get(a..b).is_some_and(|t: &str| t.trim().is_empty());
        if blank(first, start) && blank(end, last) { Span::new(span.file, first, last) } else { span }
    }

    /// Line and column of the start of `span`, both from 1, columns in characters.
    pub fn line_col(&self, span: Span) -> (usize, usize) {
        let file = self.file(span.file);
        file.lines.line_col(&file.text, span.start as usize)
    }

    /// `name:line:column` of the start of `span`.
    pub fn place(&self, span: Span) -> String {
        let (line, col) = self.line_col(span);
        format!("{}:{line}:{col}", self.file(span.file).name)
    }

    /// All files in the order they were added.
    pub fn iter(&self) -> impl Iterator<Item = (FileId, &SourceFile)> {
        self.files.iter().enumerate().map(|(i, f)| (FileId(i as u32), f))
    }
}
