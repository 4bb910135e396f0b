//! `$(( … ))`: sums of whole numbers and of variables that hold one. What else bash allows there is not read.

use crate::limits::IMPORT_NESTING;

/// The value of `text`, if every variable has one and nothing overflows.
pub(super) fn value(text: &str, lookup: &dyn Fn(&str) -> Option<i64>) -> Option<i64> {
    let mut s = Sum { text, at: 0, lookup };
    let value = s.sum(0)?;
    s.blank();
    (s.at == text.len()).then_some(value)
}

struct Sum<'a> {
    text: &'a str,
    at: usize,
    lookup: &'a dyn Fn(&str) -> Option<i64>,
}

impl Sum<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn blank(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn eat(&mut self, c: char) -> bool {
        self.blank();
        let found = self.rest().starts_with(c);
        self.at += usize::from(found);
        found
    }

    fn sum(&mut self, depth: usize) -> Option<i64> {
        let mut left = self.product(depth)?;
        loop {
            if self.eat('+') {
                left = left.checked_add(self.product(depth)?)?;
            } else if self.eat('-') {
                left = left.checked_sub(self.product(depth)?)?;
            } else {
                return Some(left);
            }
        }
    }

    fn product(&mut self, depth: usize) -> Option<i64> {
        let mut left = self.atom(depth)?;
        loop {
            if self.eat('*') {
                left = left.checked_mul(self.atom(depth)?)?;
            } else if self.eat('/') {
                left = left.checked_div(self.atom(depth)?)?;
            } else if self.eat('%') {
                left = left.checked_rem(self.atom(depth)?)?;
            } else {
                return Some(left);
            }
        }
    }

    fn atom(&mut self, depth: usize) -> Option<i64> {
        if depth > IMPORT_NESTING {
            return None;
        }
        if self.eat('-') {
            return self.atom(depth + 1)?.checked_neg();
        }
        if self.eat('(') {
            let inner = self.sum(depth + 1)?;
            return self.eat(')').then_some(inner);
        }
        self.eat('$');
        let braced = self.eat('{');
        self.blank();
        let rest = self.rest();
        let n = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let word = rest.get(..n).unwrap_or_default().to_owned();
        self.at += n;
        if braced && !self.eat('}') {
            return None;
        }
        if word.starts_with(|c: char| c.is_ascii_digit()) { word.parse().ok() } else { (self.lookup)(&word) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_bash() {
        let lookup = |name: &str| (name == "N").then_some(4);
        let of = |text: &str| value(text, &lookup);
        assert_eq!(of("$N * 8"), Some(32));
        assert_eq!(of("(N + 2) * ${N} / 5 % 3 - -1"), Some(2));
        assert_eq!((of("N / 0"), of("M * 2"), of("N >> 1"), of("")), (None, None, None, None));
        assert_eq!(of("9223372036854775807 + 1"), None);
        assert_eq!(of(&"(".repeat(100_000)), None);
    }
}
