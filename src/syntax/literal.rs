//! Numbers and strings: from their text to their value.

use super::ast::Number;
use smol_str::SmolStr;
use std::ops::Range;

/// Why a number has no value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum BadNumber {
    /// A whole number above `i128::MAX`.
    TooLarge,
    /// A real number above the largest `f64`.
    Infinite,
    /// `0x1F`
    Hexadecimal,
}

/// Why an escape has no value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum BadEscape {
    /// `\q`
    Unknown,
    /// `\u{…}` without a character of that number.
    NoCharacter,
}

/// The digits of a number token, and its unit (empty where it has none).
pub(crate) fn split_unit(text: &str) -> (&str, &str) {
    let bytes = text.as_bytes();
    let digits = |mut i: usize| {
        while bytes.get(i).is_some_and(|b| b.is_ascii_digit() || *b == b'_') {
            i += 1;
        }
        i
    };
    let is_digit = |i: usize| bytes.get(i).is_some_and(u8::is_ascii_digit);
    let mut end = digits(0);
    if bytes.get(end) == Some(&b'.') && is_digit(end + 1) {
        end += 1;
        while is_digit(end) {
            end += 1;
        }
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        if is_digit(end + 1 + sign) {
            end += 1 + sign;
            while is_digit(end) {
                end += 1;
            }
        }
    }
    let (number, rest) = text.split_at(end);
    (number, rest.trim_start_matches([' ', '\t']))
}

/// The value of the digits of a number.
///
/// A number without `.` or exponent is whole, and so is one whose exponent leaves it whole (`40e6`, `405.9e9`).
pub(super) fn number(digits: &str) -> Result<Number, BadNumber> {
    let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
        Some((m, e)) => (m, Some(e)),
        None => (digits, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let shift = match exponent {
        None if fraction.is_empty() => Some(0),
        None => None,
        // An exponent too long for an i64 is settled by the real below.
        Some(e) => e.parse::<i64>().ok(),
    };
    if let Some(shift) = shift {
        let fraction = if exponent.is_some() { fraction.trim_end_matches('0') } else { fraction };
        let zeros = shift.saturating_sub(fraction.len() as i64);
        if zeros >= 0 {
            return integer(whole.bytes().chain(fraction.bytes()), zeros).map(Number::Int);
        }
    }
    let plain: String = digits.chars().filter(|c| *c != '_').collect();
    match plain.parse::<f64>() {
        Ok(x) if x.is_finite() => Ok(Number::Real(x)),
        _ => Err(BadNumber::Infinite),
    }
}

/// The integer with these digits and `zeros` zeros after them.
fn integer(digits: impl Iterator<Item = u8>, zeros: i64) -> Result<i128, BadNumber> {
    let mut n: i128 = 0;
    for d in digits.filter(u8::is_ascii_digit) {
        n = n.checked_mul(10).and_then(|n| n.checked_add(i128::from(d - b'0'))).ok_or(BadNumber::TooLarge)?;
    }
    if n == 0 {
        return Ok(0);
    }
    let zeros = u32::try_from(zeros).map_err(|_| BadNumber::TooLarge)?;
    10i128.checked_pow(zeros).and_then(|p| n.checked_mul(p)).ok_or(BadNumber::TooLarge)
}

/// The text of a string token, which may lack its closing quote, and the ranges of its wrong escapes.
pub(super) fn string(token: &str) -> (SmolStr, Vec<(Range<usize>, BadEscape)>) {
    let quote = token.chars().next().map_or(0, char::len_utf8);
    let body = token.get(quote..).unwrap_or("");
    let body = body.strip_suffix(['"', '\'', '\u{201c}', '\u{201d}']).unwrap_or(body);
    if !body.contains('\\') {
        return (SmolStr::new(body), Vec::new());
    }
    let mut out = String::with_capacity(body.len());
    let mut problems = Vec::new();
    let mut rest = body;
    while let Some(at) = rest.find('\\') {
        out.push_str(rest.get(..at).unwrap_or(""));
        let start = quote + body.len() - rest.len() + at;
        let after = rest.get(at + 1..).unwrap_or("");
        let (len, value) = escape(after);
        match value {
            Ok(c) => out.push(c),
            Err(problem) => problems.push((start..start + 1 + len, problem)),
        }
        rest = after.get(len..).unwrap_or("");
    }
    out.push_str(rest);
    (SmolStr::new(out), problems)
}

/// The escape at the start of `text` (its backslash left out): its length and its character.
fn escape(text: &str) -> (usize, Result<char, BadEscape>) {
    match text.chars().next() {
        Some(c @ ('"' | '\\' | '\'')) => (1, Ok(c)),
        Some('n') => (1, Ok('\n')),
        Some('t') => (1, Ok('\t')),
        Some('u') => {
            let hex = text.strip_prefix("u{").and_then(|t| t.split_once('}')).map(|(hex, _)| hex);
            match hex {
                Some(hex) if (1..=6).contains(&hex.len()) && hex.bytes().all(|b| b.is_ascii_hexdigit()) => {
                    let c = u32::from_str_radix(hex, 16).ok().and_then(char::from_u32);
                    (hex.len() + 3, c.ok_or(BadEscape::NoCharacter))
                }
                Some(_) | None => (1, Err(BadEscape::NoCharacter)),
            }
        }
        Some(c) => (c.len_utf8(), Err(BadEscape::Unknown)),
        None => (0, Err(BadEscape::Unknown)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exponent_that_leaves_it_whole_makes_an_integer() {
        assert_eq!(number("40e6"), Ok(Number::Int(40_000_000)));
        assert_eq!(number("405.9e9"), Ok(Number::Int(405_900_000_000)));
        assert_eq!(number("1_000"), Ok(Number::Int(1000)));
        assert_eq!(number("1.5e0"), Ok(Number::Real(1.5)));
        assert_eq!(number("1.0"), Ok(Number::Real(1.0)));
        assert_eq!(number("25e-1"), Ok(Number::Real(2.5)));
    }

    #[test]
    fn what_no_number_holds_is_an_error() {
        assert_eq!(number("1e39"), Err(BadNumber::TooLarge));
        assert_eq!(number("170141183460469231731687303715884105727"), Ok(Number::Int(i128::MAX)));
        assert_eq!(number("170141183460469231731687303715884105728"), Err(BadNumber::TooLarge));
        assert_eq!(number("0e99999999999999999999"), Ok(Number::Real(0.0)));
        assert_eq!(number("1e99999999999999999999"), Err(BadNumber::Infinite));
        assert_eq!(number("1e-400"), Ok(Number::Real(0.0)));
    }

    #[test]
    fn the_unit_is_what_follows_the_digits() {
        assert_eq!(split_unit("3.35 TB/s"), ("3.35", "TB/s"));
        assert_eq!(split_unit("2.5 $/h"), ("2.5", "$/h"));
        assert_eq!(split_unit("41%"), ("41", "%"));
        assert_eq!(split_unit("1e12 tok"), ("1e12", "tok"));
        assert_eq!(split_unit("3 eV"), ("3", "eV"));
        assert_eq!(split_unit("3eV"), ("3", "eV"));
    }

    #[test]
    fn escapes() {
        assert_eq!(string(r#""a\n\u{e9}\\""#), (SmolStr::new("a\n\u{e9}\\"), vec![]));
        assert_eq!(string(r#""a\qb""#), (SmolStr::new("ab"), vec![(2..4, BadEscape::Unknown)]));
        assert_eq!(string(r#""\u{d800}x""#), (SmolStr::new("x"), vec![(1..9, BadEscape::NoCharacter)]));
    }
}
