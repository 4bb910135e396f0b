//! Which blocks are tall: each item, or a line of items as it was written, on a line of its own.
//!
//! A block is tall if any line break lies in it, or if it does not fit in its line. A line of items that does not fit
//! is divided at every comma.

use super::WIDTH;
use super::bits::Bit;
use super::cursor::{Cursor, next};
use crate::syntax::{Tok, ends};

/// Sets the line breaks in and after braces.
pub(super) fn open(bits: &mut [Bit<'_>]) {
    let sums = Sums::of(bits);
    let mut cursor = Cursor::default();
    let mut last_block = None;
    for i in 0..bits.len() {
        if bits[i].tok == Tok::LBrace && !bits[i].tight {
            let close = bits[i].partner;
            let follows = i >= 2 && bits[i - 1].tok == Tok::Else && last_block == Some((i - 2, true));
            let tall = close > i + 1 && (follows || sums.broken(i, close) || !fits(bits, &sums, &cursor, i));
            if tall {
                spread(bits, i);
            }
            last_block = Some((close, tall));
        } else if bits[i].item && bits[i].breaks > 0 && bits[i].tok != Tok::Comment {
            divide(bits, &sums, &cursor, i);
        }
        if i > 0 && bits[i - 1].tok == Tok::Sep && cursor.frames.is_empty() {
            bits[i].breaks = bits[i].breaks.max(u8::from(!bits[i].trails()));
        }
        cursor.step(bits, i);
    }
    settle_separators(bits);
}

/// Widths of everything on one line, and line breaks, up to each bit.
struct Sums {
    widths: Vec<usize>,
    breaks: Vec<usize>,
}

impl Sums {
    fn of(bits: &[Bit<'_>]) -> Self {
        let mut sums = Self { widths: vec![0], breaks: vec![0] };
        let (mut width, mut breaks) = (0, 0);
        for bit in bits {
            width += bit.gap + bit.width;
            breaks += usize::from(bit.breaks > 0 || bit.tok == Tok::Comment);
            sums.widths.push(width);
            sums.breaks.push(breaks);
        }
        sums
    }

    /// Columns from before bit `from` to after bit `to`.
    fn width(&self, from: usize, to: usize) -> usize {
        self.widths[to + 1] - self.widths[from]
    }

    /// Whether a line break or a comment lies between two brackets.
    fn broken(&self, open: usize, close: usize) -> bool {
        self.breaks[close + 1] > self.breaks[open + 1]
    }
}

/// Whether the block at `open`, and what `else` adds to it, ends within the line. One in a list that the line opened
/// is the list's business: that can be broken before it.
fn fits(bits: &[Bit<'_>], sums: &Sums, cursor: &Cursor, open: usize) -> bool {
    let mut end = bits[open].partner;
    while let [otherwise, brace, ..] = &bits[end + 1..]
        && otherwise.tok == Tok::Else
        && brace.tok == Tok::LBrace
    {
        end = bits[end + 2].partner;
    }
    let in_list = cursor.frames[cursor.line_depth..].iter().any(|f| !f.block);
    in_list || cursor.column + sums.width(open, end) <= WIDTH
}

/// Gives the content of the block at `open`, and its closing brace, lines of their own.
fn spread(bits: &mut [Bit<'_>], open: usize) {
    let close = bits[open].partner;
    bits[close].breaks = 1;
    // Where no line break was, every item gets one.
    if bits[open + 1..close].iter().all(|b| b.breaks == 0 && b.tok != Tok::Comment) {
        separate(bits, open + 1, close);
    }
    if let Some(first) = (open + 1..close).find(|i| !bits[*i].trails()) {
        bits[first].breaks = 1;
    }
}

/// Divides the items on the line that begins with bit `from`, if they do not fit.
fn divide(bits: &mut [Bit<'_>], sums: &Sums, cursor: &Cursor, from: usize) {
    let mut end = from;
    let mut several = false;
    let mut i = from;
    while let Some(bit) = bits.get(i) {
        if i > from && (bit.breaks > 0 || bit.tok.is_closer() || bit.tok == Tok::Comment) {
            break;
        }
        several |= bit.tok == Tok::Sep;
        end = bit.partner.max(i);
        if sums.broken(i, end) {
            break;
        }
        i = end + 1;
    }
    let indent = cursor.frames.last().map_or(0, |f| f.inner);
    if several && indent + sums.width(from, end) > WIDTH {
        separate(bits, from, end);
    }
}

/// Begins a line after each separator between `from` and `to`, brackets inside left alone.
fn separate(bits: &mut [Bit<'_>], from: usize, to: usize) {
    let mut i = from;
    while i < to {
        if bits[i].tok == Tok::Sep && !bits[i + 1].trails() {
            bits[i + 1].breaks = bits[i + 1].breaks.max(1);
        }
        i = bits[i].partner.max(i) + 1;
    }
}

/// Leaves out the commas that a line break replaces.
fn settle_separators(bits: &mut [Bit<'_>]) {
    let mut frames = Vec::new();
    for i in 0..bits.len() {
        if bits[i].tok.closer().is_some() {
            frames.push(bits[i].tight);
        } else if bits[i].tok.is_closer() {
            frames.pop();
        }
        if bits[i].tok != Tok::Sep || frames.last() == Some(&true) {
            continue;
        }
        let Some(after) = next(bits, i).filter(|n| n.breaks > 0).map(|n| n.tok) else { continue };
        // Comments may come before the word that a line break has to keep apart.
        let mut words = bits[i + 1..].iter().filter(|b| b.tok != Tok::Comment).map(|b| b.tok);
        let word = words.next().unwrap_or(after);
        let before = bits[..i].iter().rev().find(|b| b.tok != Tok::Comment).map_or(Tok::Sep, |b| b.tok);
        if frames.is_empty() || ends(before, word, words.next()) {
            bits[i].text = "".into();
            bits[i].width = 0;
        }
    }
}
