//! One way to lay out a `.par` file: text in, text with the same tree and the same comments out.
//!
//! The words, their order and the comments are the writer's, and so is where a line ends; blanks, indentation, commas
//! beside line breaks and the columns of what stands below one another are not. In order: `bits` (words and comments
//! with what lies between them), `space` (blanks between two words), `blocks` (which braces and items get lines of
//! their own), `align` (columns), `lines` (indentation, and new line breaks where a line is too long). Reads no file.

mod align;
mod bits;
mod blocks;
mod cursor;
mod lines;
mod space;

use crate::diagnostics::Sink;
use crate::source::Sources;
use crate::syntax::{self, dump};

/// Columns of a line of code; comments may go past it.
pub const WIDTH: usize = 120;

/// Why a text has no layout.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Unformatted {
    /// It has syntax errors.
    Mistakes,
    /// The result would say something else: a bug in parc.
    Changed,
}

/// `text`, laid out.
pub fn format(text: &str) -> Result<String, Unformatted> {
    let before = tree(text).ok_or(Unformatted::Mistakes)?;
    let mut bits = bits::read(text);
    space::fill(&mut bits);
    blocks::open(&mut bits);
    align::columns(&mut bits);
    let out = lines::write(&mut bits);
    if tree(&out) == Some(before) { Ok(out) } else { Err(Unformatted::Changed) }
}

/// What `text` says, without places; `None` where it has syntax errors.
fn tree(text: &str) -> Option<String> {
    let (mut sources, mut sink) = (Sources::new(), Sink::new());
    let file = sources.add("", text.to_owned(), false);
    let tree = syntax::parse(&sources, file, &mut sink);
    (!sink.has_errors()).then(|| dump::dump(&tree))
}
