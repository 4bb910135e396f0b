//! The blanks between two bits of one line.

use super::bits::{Bit, ends_operand, opens_block};
use crate::syntax::Tok;

/// Sets the gap before every bit, and which braces are tight.
pub(super) fn fill(bits: &mut [Bit<'_>]) {
    tighten(bits);
    let mut types = 0usize;
    // Whether the bit before is a sign before its operand, and whether an operand may end with it.
    let (mut prefix, mut operand) = (false, false);
    let mut before = Tok::Sep;
    for i in 0..bits.len() {
        let tok = bits[i].tok;
        if tok == Tok::Comment {
            bits[i].gap = 2;
            continue;
        }
        let opens_type = tok == Tok::Lt && before == Tok::Ident && in_type(bits, i, types);
        let closes_type = tok == Tok::Gt && types > 0;
        let after_type = before == Tok::Lt && types > 0;
        let star = matches!(tok, Tok::Star | Tok::StarStar) && !operand;
        let glued = prefix || after_type || opens_type || closes_type || sticks(bits, i, before, operand);
        bits[i].gap = usize::from(!glued);
        types = (types + usize::from(opens_type)).saturating_sub(usize::from(closes_type));
        prefix = tok == Tok::Minus && !operand;
        operand = ends_operand(tok) || star || closes_type;
        before = tok;
    }
}

/// Whether bit `i`, a `<` after a name, begins the argument of a type: after `:`, after `->`, or in another.
fn in_type(bits: &[Bit<'_>], i: usize, types: usize) -> bool {
    let mut code = bits[..i].iter().rev().filter(|b| b.tok != Tok::Comment).skip(1);
    match code.next().map(|b| b.tok) {
        Some(Tok::Colon | Tok::Arrow) => true,
        Some(Tok::Lt) => types > 0,
        Some(Tok::LBracket) => code.next().is_some_and(|b| b.tok == Tok::Arrow),
        _ => false,
    }
}

/// Whether bit `i` follows what is before it without a blank. `operand` says whether that may be an operand's end.
fn sticks(bits: &[Bit<'_>], i: usize, before: Tok, operand: bool) -> bool {
    let tight = |at: usize| bits[at].tight || bits[at].partner == at + 1;
    let tok = bits[i].tok;
    if matches!(tok, Tok::Comma | Tok::Sep | Tok::Colon | Tok::RParen | Tok::RBracket)
        || matches!(tok, Tok::Dot | Tok::Path | Tok::DotDot)
        || matches!(before, Tok::LParen | Tok::LBracket | Tok::Dot | Tok::Path | Tok::DotDot)
    {
        return true;
    }
    match tok {
        Tok::RBrace => tight(bits[i].partner),
        Tok::LParen | Tok::LBracket => operand && !matches!(before, Tok::Reduce | Tok::Param) || opened_tight(bits, i),
        _ => opened_tight(bits, i),
    }
}

/// Whether bit `i` is the first in a tight brace.
fn opened_tight(bits: &[Bit<'_>], i: usize) -> bool {
    i.checked_sub(1).and_then(|p| bits.get(p)).is_some_and(|p| p.tok == Tok::LBrace && p.tight)
}

/// Marks the braces of sets and of lists of imports: no blanks inside.
fn tighten(bits: &mut [Bit<'_>]) {
    let mut before = Tok::Sep;
    for i in 0..bits.len() {
        let tok = bits[i].tok;
        if tok == Tok::LBrace {
            let tight = match before {
                Tok::Path => true,
                before if opens_block(before) && before != Tok::Else => false,
                _ => is_set(bits, i),
            };
            let close = bits[i].partner;
            bits[i].tight = tight;
            bits[close].tight = tight;
        }
        if tok != Tok::Comment {
            before = tok;
        }
    }
}

/// Whether the brace at `open` holds values only: no field, no item.
fn is_set(bits: &[Bit<'_>], open: usize) -> bool {
    let close = bits[open].partner;
    let mut i = open + 1;
    let mut first = true;
    while i < close {
        let tok = bits[i].tok;
        let item = first && tok.begins_item() && tok != Tok::If;
        if item || matches!(tok, Tok::Eq | Tok::In | Tok::Via) {
            return false;
        }
        first = tok == Tok::Sep || first && tok == Tok::Comment;
        i = bits[i].partner + 1;
    }
    true
}
