//! Columns: `=` and `{` of lines that follow one another stand below each other, where the writer began to line them up.
//!
//! Two blanks before one of them are enough. Only blanks change.

use super::WIDTH;
use super::bits::Bit;
use super::cursor::Cursor;
use crate::syntax::Tok;
use std::collections::BTreeMap;

/// Columns by which marks of items with the same first word may differ and still be lined up.
const NEAR: usize = 12;

/// An item that begins a line.
#[derive(Copy, Clone)]
struct Row {
    /// Its first bit, and the one past the last on its line.
    from: usize,
    to: usize,
    /// Blanks before it.
    indent: usize,
    /// Whether a blank line or a comment comes before it.
    apart: bool,
}

/// Sets the gaps of what is lined up.
pub(super) fn columns(bits: &mut [Bit<'_>]) {
    for rows in rows(bits).values() {
        for group in rows.chunk_by(|_, next| !next.apart) {
            fields(bits, group);
            // Items that begin with the same word.
            for run in group
                .chunk_by(|a, b| bits_word(bits, *a) == bits_word(bits, *b))
                .map(<[Row]>::to_vec)
                .collect::<Vec<_>>()
            {
                if bits_word(bits, run[0]).is_some() {
                    line_up_near(bits, &run, |bits, row| mark(bits, row, Tok::Eq));
                }
                line_up_near(bits, &run, short_block);
            }
        }
    }
}

/// The rows of each block and of the file, by the bit that opens it.
fn rows(bits: &[Bit<'_>]) -> BTreeMap<usize, Vec<Row>> {
    let mut rows: BTreeMap<usize, Vec<Row>> = BTreeMap::new();
    let mut open = Vec::new();
    let mut apart = true;
    let mut cursor = Cursor::default();
    for (i, bit) in bits.iter().enumerate() {
        cursor.step(bits, i);
        if bit.tok.is_closer() {
            open.pop();
        }
        if bit.breaks > 0 || i == 0 {
            if bit.tok == Tok::Comment {
                apart = true;
            } else if bit.item {
                let to = (i + 1..bits.len()).find(|j| bits[*j].breaks > 0 || bits[*j].tok == Tok::Comment);
                let row = Row {
                    from: i,
                    to: to.unwrap_or(bits.len()),
                    indent: cursor.indent,
                    apart: apart || bit.breaks > 1,
                };
                rows.entry(open.last().map_or(usize::MAX, |o| *o)).or_default().push(row);
                apart = false;
            }
        }
        if bit.tok.closer().is_some() {
            open.push(i);
        }
    }
    rows
}

/// The reserved word an item begins with.
fn bits_word(bits: &[Bit<'_>], row: Row) -> Option<Tok> {
    Some(bits[row.from].tok).filter(|t| *t != Tok::Ident)
}

/// `name = …` below `name = …`, and `name[…] = …` below the like, whatever stands between them.
fn fields(bits: &mut [Bit<'_>], group: &[Row]) {
    let plain = |bits: &[Bit<'_>], row: Row| {
        let at = row.from + 1;
        (at < row.to && bits[at].tok == Tok::Eq).then_some(at)
    };
    let indexed = |bits: &[Bit<'_>], row: Row| {
        let bracket = row.from + 1;
        let opens = bracket < row.to && bits[row.from].tok == Tok::Ident && bits[bracket].tok == Tok::LBracket;
        let at = opens.then(|| bits[bracket].partner + 1)?;
        (at < row.to && bits[at].tok == Tok::Eq).then_some(at)
    };
    line_up(bits, group, plain);
    line_up(bits, group, indexed);
}

/// The first bit `tok` of a row outside brackets.
fn mark(bits: &[Bit<'_>], row: Row, tok: Tok) -> Option<usize> {
    let mut i = row.from;
    while i < row.to && bits[i].tok != Tok::Sep {
        if bits[i].tok == tok && i > row.from {
            return Some(i);
        }
        i = bits[i].partner.max(i) + 1;
    }
    None
}

/// The brace of a block that ends on its line.
fn short_block(bits: &[Bit<'_>], row: Row) -> Option<usize> {
    let brace = mark(bits, row, Tok::LBrace)?;
    let fits = row.indent + width(bits, row.from, row.to) <= WIDTH;
    (bits[brace].partner < row.to && !bits[brace].tight && fits).then_some(brace)
}

/// Lines up the marked bits of rows, apart where one is much longer than the next.
fn line_up_near(bits: &mut [Bit<'_>], rows: &[Row], marked: impl Fn(&[Bit<'_>], Row) -> Option<usize>) {
    let ends: Vec<(Row, Option<usize>)> =
        rows.iter().map(|r| (*r, marked(bits, *r).map(|m| width(bits, r.from, m)))).collect();
    let near = |a: &(Row, Option<usize>), b: &(Row, Option<usize>)| match (a.1, b.1) {
        (Some(a), Some(b)) => a.abs_diff(b) <= NEAR,
        _ => false,
    };
    for run in ends.chunk_by(near) {
        let run: Vec<Row> = run.iter().map(|r| r.0).collect();
        line_up(bits, &run, &marked);
    }
}

/// Lines up the marked bits of `rows`, if one of them was set apart and no line becomes too long.
fn line_up(bits: &mut [Bit<'_>], rows: &[Row], marked: impl Fn(&[Bit<'_>], Row) -> Option<usize>) {
    let marks: Vec<(Row, usize)> = rows.iter().filter_map(|r| marked(bits, *r).map(|m| (*r, m))).collect();
    if !marks.iter().any(|(_, m)| bits[*m].blanks > 1) {
        return;
    }
    let before = |(row, m): (Row, usize)| width(bits, row.from, m);
    let column = marks.iter().map(|m| before(*m)).max().unwrap_or(0);
    let long = |m: &(Row, usize)| {
        let whole = m.0.indent + width(bits, m.0.from, m.0.to);
        whole <= WIDTH && whole + column - before(*m) > WIDTH
    };
    if marks.iter().any(long) {
        return;
    }
    let gaps: Vec<(usize, usize)> = marks.iter().map(|m| (m.1, column - before(*m) + 1)).collect();
    for (m, gap) in gaps {
        bits[m].gap = gap;
    }
}

/// Columns from the first of these bits, which begins a line, to the end of the last.
fn width(bits: &[Bit<'_>], from: usize, to: usize) -> usize {
    let first = bits.get(from).map_or(0, |b| b.gap);
    bits[from..to].iter().map(|b| b.gap + b.width).sum::<usize>() - first
}
