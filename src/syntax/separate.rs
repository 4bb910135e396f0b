//! The newline rule: which line breaks and commas separate items, and which words name fields there.

use super::brackets::{MAX_NESTING, begins_entry};
use super::token::{Tok, Token};
use std::ops::Range;

/// The tokens of the grammar, and the range of each entry of the file among them.
pub(super) struct Separated {
    pub(super) tokens: Vec<Token>,
    pub(super) entries: Vec<Range<usize>>,
}

/// Applies the rule to balanced tokens.
pub(super) fn separate(tokens: &[Token]) -> Separated {
    let mut out: Vec<Token> = Vec::with_capacity(tokens.len() + tokens.len() / 4);
    let mut entries = Vec::new();
    let mut entry = 0;
    let mut frames: Vec<Tok> = Vec::new();
    for (i, t) in tokens.iter().enumerate() {
        let mut t = *t;
        let next = tokens.get(i + 1).map(|n| n.tok);
        let lines = frames.last().is_none_or(|f| *f == Tok::LBrace);
        let before = out.get(entry..).and_then(<[Token]>::last).copied();

        // A separator before this token?
        let separates = match t.tok {
            Tok::Comma => lines && !frames.is_empty(),
            Tok::Semicolon => lines,
            tok => lines && t.first && before.is_some_and(|b| ends(b.tok, tok, next)),
        };
        if separates {
            if frames.is_empty() {
                if out.len() > entry {
                    entries.push(entry..out.len());
                    entry = out.len();
                }
            } else if before.is_some_and(|b| !matches!(b.tok, Tok::Sep | Tok::LBrace)) {
                // A comma keeps its place; a line break has none.
                let (start, end) = match t.tok {
                    Tok::Comma | Tok::Semicolon => (t.start, t.end),
                    _ => before.map_or((t.start, t.start), |b| (b.end, b.end)),
                };
                out.push(Token { tok: Tok::Sep, first: false, repaired: false, start, end });
            }
        }
        match t.tok {
            Tok::Comma | Tok::Semicolon if separates => continue,
            Tok::Semicolon if next.is_none_or(Tok::is_closer) => continue,
            Tok::Semicolon => t.tok = Tok::Comma,
            Tok::RBrace => {
                out.pop_if(|b| b.tok == Tok::Sep);
            }
            _ => {}
        }

        if t.tok.is_word() {
            let before = out.get(entry..).and_then(<[Token]>::last).map(|b| b.tok);
            if names(t.tok, before, next, frames.last().copied()) {
                t.tok = Tok::Ident;
            }
        } else if t.tok.closer().is_some() {
            frames.push(t.tok);
        } else if t.tok.is_closer() {
            frames.pop();
        }
        out.push(t);
    }
    if out.len() > entry {
        entries.push(entry..out.len());
    }
    Separated { tokens: out, entries }
}

/// Whether a line break between `before` and `tok` (with `next` after it) separates.
pub(crate) fn ends(before: Tok, tok: Tok, next: Option<Tok>) -> bool {
    let field = next == Some(Tok::Eq) && (tok.is_word() || tok == Tok::Ident);
    if before.can_end_item() {
        return !tok.continues() || (tok.is_word() && field);
    }
    // The line before is unfinished. That this one begins an item all the same shows where the mistake is.
    match tok {
        _ if field => !before.begins_item() && !matches!(before, Tok::Dim | Tok::As | Tok::LBrace | Tok::Sep),
        Tok::If => false,
        Tok::Reduce => !matches!(
            before,
            Tok::Overlap | Tok::Store | Tok::Replicate | Tok::Reduce | Tok::Of | Tok::Else | Tok::LBrace | Tok::Sep
        ),
        Tok::In => !matches!(before, Tok::LBrace | Tok::Sep),
        _ => tok.begins_item() && (tok.kind().is_none() || begins_entry(tok, next)) || begins_entry(tok, next),
    }
}

/// Whether the reserved word names a field, an argument, or a part of a path.
fn names(tok: Tok, before: Option<Tok>, next: Option<Tok>, frame: Option<Tok>) -> bool {
    match before {
        Some(Tok::Dot | Tok::Path) => true,
        Some(Tok::LBrace | Tok::LParen | Tok::Comma | Tok::Sep) if frame != Some(Tok::LBracket) => match next {
            Some(Tok::Eq | Tok::EqEq | Tok::Colon) => true,
            Some(Tok::In) => matches!(tok, Tok::Param | Tok::Reduce),
            _ => false,
        },
        _ => false,
    }
}

/// The first token that lies deeper than [`MAX_NESTING`], counting brackets around it and operators beside it.
///
/// This bounds the depth of the tree from above, so that nothing that walks it can run out of stack.
pub(super) fn too_deep(tokens: &[Token]) -> Option<Token> {
    let mut frames: Vec<(usize, usize)> = vec![(0, 0)];
    for t in tokens {
        let (base, count) = frames.last_mut()?;
        match t.tok {
            Tok::Comma | Tok::Sep => *count = 0,
            Tok::Ident | Tok::Number | Tok::Str | Tok::Eq | Tok::Colon | Tok::Path | Tok::Hole => {}
            tok if tok.is_closer() => {
                frames.pop();
            }
            tok => {
                *count += 1;
                let depth = *base + *count;
                if depth > MAX_NESTING {
                    return Some(*t);
                }
                if tok.closer().is_some() {
                    frames.push((depth, 0));
                }
            }
        }
    }
    None
}
