//! Bits to text: indentation, new line breaks where a line is too long, and comments behind code in one column.

use super::WIDTH;
use super::bits::Bit;
use super::cursor::{Cursor, shown};
use crate::syntax::Tok;

/// A line to write.
struct Line<'a> {
    blank_before: bool,
    indent: usize,
    code: String,
    /// Columns of the code with its indentation.
    width: usize,
    /// The comment behind the code, and the columns where the code ended and the comment began in the source.
    comment: Option<(&'a str, (usize, usize))>,
}

/// A place where a line may be broken: the bit that would begin the next line, and how loosely it holds.
struct Place {
    at: usize,
    looseness: usize,
}

/// The text of `bits`; adds line breaks to them.
pub(super) fn write(bits: &mut [Bit<'_>]) -> String {
    let mut lines: Vec<Line<'_>> = Vec::new();
    let mut cursor = Cursor::default();
    let mut start = (0, cursor.clone());
    let mut places: Vec<Place> = Vec::new();
    let mut i = 0;
    while i < bits.len() {
        if bits[i].breaks > 0 || i == 0 {
            start = (i, cursor.clone());
            places.clear();
        } else if let Some(looseness) = looseness(bits, i, &cursor) {
            places.push(Place { at: i, looseness });
        }
        cursor.step(bits, i);
        if cursor.column > WIDTH
            && let Some(place) = places.iter().rev().min_by_key(|p| p.looseness)
        {
            // The line is read again with the break in it.
            bits[place.at].breaks = 1;
            (i, cursor) = start.clone();
            places.clear();
            cursor.step(bits, i);
        }
        i += 1;
    }
    let mut cursor = Cursor::default();
    for i in 0..bits.len() {
        cursor.step(bits, i);
        let bit = &bits[i];
        let first = bit.breaks > 0 || i == 0;
        if first {
            let closes = bit.tok.is_closer();
            let opened = i > 0 && bits[i - 1].tok.closer().is_some();
            let blank_before = bit.breaks > 1 && !closes && !opened;
            lines.push(Line { blank_before, indent: cursor.indent, code: String::new(), width: 0, comment: None });
        }
        let Some(line) = lines.last_mut() else { continue };
        if bit.tok == Tok::Comment && !first {
            line.comment = Some((bit.text.as_ref(), bit.columns));
        } else if bit.tok != Tok::Sep || shown(bits, i) {
            if !first {
                line.code.extend(std::iter::repeat_n(' ', bit.gap));
            }
            line.code.push_str(&bit.text);
            line.width = line.indent + line.code.chars().count();
        }
    }
    join(&lines)
}

/// How loosely bit `i` holds to what is before it on its line; `None` where no line may begin with it. Outer brackets
/// are looser than inner ones; after a comma is looser than before an operator.
fn looseness(bits: &[Bit<'_>], i: usize, cursor: &Cursor) -> Option<usize> {
    // What lies in a block on this line stays there.
    if cursor.frames.get(cursor.line_depth..).is_some_and(|f| f.iter().any(|f| f.block)) {
        return None;
    }
    let depth = 2 * cursor.frames.len();
    let in_list = cursor.frames.last().is_some_and(|f| !f.block);
    let after_comma = in_list && matches!(bits[i - 1].tok, Tok::Comma | Tok::Sep);
    let operator = match bits[i].tok {
        Tok::And | Tok::Or | Tok::Then | Tok::Else | Tok::Plus => true,
        Tok::Minus | Tok::Star => bits[i].gap > 0 && bits.get(i + 1).is_some_and(|n| n.gap > 0),
        _ => false,
    };
    if after_comma && bits[i].tok != Tok::Comment { Some(depth) } else { operator.then_some(depth + 1) }
}

fn join(lines: &[Line<'_>]) -> String {
    let mut out = String::new();
    let mut at = 0;
    while at < lines.len() {
        // Comments on lines that follow one another share a column, as far from the code as they were.
        let run = lines[at..].iter().take_while(|l| l.comment.is_some()).count();
        let comments = lines[at..at + run].iter().filter_map(|l| l.comment);
        let near = comments.clone().map(|c| c.1.1).min().unwrap_or(0);
        let far = comments.map(|c| c.1.0).max().unwrap_or(0);
        let gap = near.saturating_sub(far).max(2);
        let column = lines[at..at + run].iter().map(|l| l.width).max().unwrap_or(0) + gap;
        for line in &lines[at..at + run.max(1)] {
            if line.blank_before {
                out.push('\n');
            }
            out.extend(std::iter::repeat_n(' ', line.indent));
            out.push_str(&line.code);
            if let Some((comment, _)) = line.comment {
                out.extend(std::iter::repeat_n(' ', column - line.width));
                out.push_str(comment);
            }
            out.push('\n');
        }
        at += run.max(1);
    }
    out
}
