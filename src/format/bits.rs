//! Text to bits: every word, sign and comment in order, with the line breaks and blanks that lay before it.

use crate::syntax::{self, Tok};
use std::borrow::Cow;

/// A word, a sign, a separator or a comment.
pub(super) struct Bit<'a> {
    /// What it is: [`Tok::Comment`] for a comment, [`Tok::Sep`] for what ends an item.
    pub(super) tok: Tok,
    /// Its text; empty for a separator that is a line break.
    pub(super) text: Cow<'a, str>,
    /// Columns of the text.
    pub(super) width: usize,
    /// Line breaks before it: 2 where a blank line is kept.
    pub(super) breaks: u8,
    /// Blanks before it as they were written, on its line.
    pub(super) blanks: usize,
    /// Blanks before it to write, where no line break is.
    pub(super) gap: usize,
    /// Of a bracket: its partner. Elsewhere its own number.
    pub(super) partner: usize,
    /// Whether an item of a block or an entry of the file begins here, or a comment stands between items.
    pub(super) item: bool,
    /// Of a brace: whether nothing stands between it and its content, as in sets.
    pub(super) tight: bool,
    /// Of a comment behind code: the column where the code ended, and its own.
    pub(super) columns: (usize, usize),
}

impl<'a> Bit<'a> {
    fn new(tok: Tok, text: Cow<'a, str>, breaks: u8, blanks: usize) -> Self {
        let width = text.chars().count();
        Self { tok, text, width, breaks, blanks, gap: 0, partner: 0, item: false, tight: false, columns: (0, 0) }
    }

    /// Whether it is the comment of the code before it.
    pub(super) fn trails(&self) -> bool {
        self.tok == Tok::Comment && self.breaks == 0
    }
}

/// The bits of a text without syntax errors.
pub(super) fn read(text: &str) -> Vec<Bit<'_>> {
    let words = syntax::words(text);
    let mut bits: Vec<Bit<'_>> = Vec::with_capacity(words.tokens.len() + words.comments.len());
    let mut comments = words.comments.iter().map(|c| (c.0 as usize, c.1 as usize)).peekable();
    let mut end = 0;
    for t in &words.tokens {
        let (from, to) = (t.start as usize, t.end as usize);
        if t.tok == Tok::Sep {
            bits.push(Bit::new(Tok::Sep, Cow::Borrowed(","), 0, 0));
            continue;
        }
        while let Some((a, b)) = comments.next_if(|c| c.0 < from) {
            bits.push(comment(text, end, a, b));
            end = b;
        }
        let (breaks, blanks) = between(slice(text, end, from));
        let word = slice(text, from, to);
        let word = if t.tok == Tok::Number { number(word) } else { Cow::Borrowed(word) };
        let mut bit = Bit::new(t.tok, word, breaks, blanks);
        if t.tok == Tok::Comma {
            // A comma stands at the end of a line, not at the start of the next: what is before it is counted there.
            bit.breaks = 0;
            let at = bits.iter().rposition(|b| b.tok != Tok::Comment).map_or(0, |i| i + 1);
            bits.insert(at, bit);
            continue;
        }
        bits.push(bit);
        end = to;
    }
    for (a, b) in comments {
        bits.push(comment(text, end, a, b));
        end = b;
    }
    settle(&mut bits);
    bits
}

fn slice(text: &str, from: usize, to: usize) -> &str {
    text.get(from..to).unwrap_or("")
}

/// A comment, which begins a line or ends one.
fn comment(text: &str, end: usize, from: usize, to: usize) -> Bit<'_> {
    let (breaks, blanks) = between(slice(text, end, from));
    let mut bit = Bit::new(Tok::Comment, Cow::Borrowed(slice(text, from, to).trim_end()), breaks, blanks);
    let line = text.get(..from).and_then(|t| t.rsplit('\n').next()).unwrap_or("");
    bit.columns = (line.trim_end().chars().count(), line.chars().count());
    bit
}

/// Line breaks, two at most, and blanks in what lies between two words.
fn between(gap: &str) -> (u8, usize) {
    let breaks = gap.bytes().filter(|b| *b == b'\n').take(2).count() as u8;
    let blanks = gap.chars().map(|c| if c == '\t' { 2 } else { usize::from(c == ' ') }).sum();
    (breaks, blanks)
}

/// `8192   tok` as `8192 tok`, `41 %` as `41%`.
fn number(text: &str) -> Cow<'_, str> {
    let (digits, unit) = syntax::split_unit(text);
    match unit {
        "" => Cow::Borrowed(digits),
        "%" => Cow::Owned(format!("{digits}%")),
        unit => Cow::Owned(format!("{digits} {unit}")),
    }
}

/// Finds partners, and moves the line breaks that do not depend on how long anything is.
fn settle(bits: &mut Vec<Bit<'_>>) {
    drop_last_commas(bits);
    let mut open = Vec::new();
    for i in 0..bits.len() {
        bits[i].partner = i;
        if bits[i].tok.closer().is_some() {
            open.push(i);
        } else if bits[i].tok.is_closer()
            && let Some(o) = open.pop()
        {
            bits[o].partner = i;
            bits[i].partner = o;
        }
        if bits[i].breaks > 0 && i > 0 && joins(bits, i) {
            bits[i].breaks = 0;
        }
    }
    if let Some(first) = bits.first_mut() {
        first.breaks = 0;
    }
    find_items(bits);
}

/// Marks where items begin, and the comments between and after them.
fn find_items(bits: &mut [Bit<'_>]) {
    let mut begins = true;
    for bit in bits.iter_mut() {
        bit.item = begins;
        if bit.tok != Tok::Comment {
            begins = matches!(bit.tok, Tok::Sep | Tok::LBrace);
        }
    }
    let mut ends = true;
    for bit in bits.iter_mut().rev() {
        if bit.tok == Tok::Comment {
            bit.item |= ends;
        } else {
            ends = bit.tok.is_closer();
        }
    }
}

/// Leaves out the comma between a last element and its bracket on the same line.
fn drop_last_commas(bits: &mut Vec<Bit<'_>>) {
    let ends = |i: usize| bits.get(i + 1).is_some_and(|n| n.tok.is_closer() && n.breaks == 0);
    let dropped: Vec<bool> = (0..bits.len()).map(|i| bits[i].tok == Tok::Comma && ends(i)).collect();
    let mut at = 0;
    bits.retain(|_| {
        at += 1;
        !dropped[at - 1]
    });
}

/// Whether bit `i` stands on the line of what is before it: the brace of a block, `else` after one.
fn joins(bits: &[Bit<'_>], i: usize) -> bool {
    let before = bits[i - 1].tok;
    match bits[i].tok {
        Tok::LBrace => opens_block(before),
        Tok::Else => before == Tok::RBrace,
        _ => false,
    }
}

/// Whether a brace after `before` begins a block, whatever is in it.
pub(super) fn opens_block(before: Tok) -> bool {
    matches!(before, Tok::With | Tok::Dims | Tok::Else) || ends_operand(before)
}

/// Whether an operand may end with this token.
pub(super) fn ends_operand(tok: Tok) -> bool {
    tok.can_end_item() && !matches!(tok, Tok::Star | Tok::StarStar | Tok::Bad | Tok::Error) || tok == Tok::Reduce
}
