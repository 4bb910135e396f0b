//! Where each bit stands: columns and indentation, bit by bit.

use super::bits::Bit;
use crate::syntax::Tok;

/// Blanks of one level.
const STEP: usize = 2;

/// Column past which nothing is lined up below an opening bracket.
const HANG: usize = 72;

/// An open bracket.
#[derive(Copy, Clone)]
pub(super) struct Frame {
    /// Whether it is a brace around items, each of which begins a line or follows another.
    pub(super) block: bool,
    /// Indentation of the line that closes it.
    base: usize,
    /// Indentation of the lines in it.
    pub(super) inner: usize,
}

/// A walk over the bits.
#[derive(Clone, Default)]
pub(super) struct Cursor {
    /// Open brackets, outermost first.
    pub(super) frames: Vec<Frame>,
    /// Column after the last bit.
    pub(super) column: usize,
    /// Indentation of the line.
    pub(super) indent: usize,
    /// Open brackets where the line began.
    pub(super) line_depth: usize,
}

impl Cursor {
    /// Goes past bit `i`.
    pub(super) fn step(&mut self, bits: &[Bit<'_>], i: usize) {
        let bit = &bits[i];
        if bit.tok == Tok::Sep && !shown(bits, i) {
            return;
        }
        if bit.breaks > 0 || i == 0 {
            self.indent = self.indent_of(bits, i);
            self.column = self.indent;
            self.line_depth = self.frames.len();
        } else {
            self.column += bit.gap;
        }
        if bit.tok.is_closer() {
            self.frames.pop();
            self.line_depth = self.line_depth.min(self.frames.len());
        }
        if bit.tok != Tok::Comment {
            self.column += bit.width;
        }
        if bit.tok.closer().is_some() {
            self.open(bits, i);
        }
    }

    fn open(&mut self, bits: &[Bit<'_>], i: usize) {
        let ends_line = next(bits, i).is_none_or(|n| n.breaks > 0);
        let block = bits[i].tok == Tok::LBrace && !bits[i].tight;
        let base = match self.frames.last() {
            None if block => 0,
            Some(f) if block && f.block => f.inner,
            _ => self.indent,
        };
        let inner = if block || ends_line {
            base + STEP
        } else if self.column <= HANG {
            self.column
        } else {
            base + 2 * STEP
        };
        self.frames.push(Frame { block, base, inner });
    }

    /// Indentation of a line that begins with bit `i`.
    fn indent_of(&self, bits: &[Bit<'_>], i: usize) -> usize {
        let carries_on = STEP * usize::from(!bits[i].item);
        match self.frames.last() {
            Some(f) if bits[i].tok.is_closer() => f.base,
            Some(f) if f.block => f.inner + carries_on,
            Some(f) => f.inner,
            None => carries_on,
        }
    }
}

/// Whether the separator at `i` is a comma: where no line break does its work.
pub(super) fn shown(bits: &[Bit<'_>], i: usize) -> bool {
    !bits[i].text.is_empty()
}

/// The next bit that is no comment behind code.
pub(super) fn next<'b, 'a>(bits: &'b [Bit<'a>], i: usize) -> Option<&'b Bit<'a>> {
    bits[i + 1..].iter().find(|b| !b.trails())
}
