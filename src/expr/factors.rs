//! Integer sums and products in a canonical shape, and factors common to a dividend and a divisor.
//!
//! A product of Ints is rebuilt over its sorted factors with one constant last, a sum keeps one constant last: so
//! `B * S * H` and `H * S * B` are one node, and `(mb * dp) / dp` is `mb`. All laws here are exact for Ints.

use super::{Graph, INT_LIMIT, Id, Kind, Node};

/// More factors than this are not taken apart, so that a long product costs linear work.
const MOST_FACTORS: usize = 16;

/// `coef` times the factors, which are sorted.
struct Product {
    coef: i128,
    factors: Vec<Id>,
}

impl Graph {
    /// Takes a product apart. Looks through [`Node::ToReal`], since a product too large for an Int is one of Reals.
    fn factors(&self, id: Id) -> Product {
        let mut product = Product { coef: 1, factors: Vec::new() };
        let mut open = vec![id];
        let mut steps = 0;
        while let Some(id) = open.pop() {
            steps += 1;
            let constant = match (self.range(id).int, self.as_real(id)) {
                (Some((lo, hi)), _) if lo == hi => Some(lo),
                (None, Some(v)) if v.trunc().to_bits() == v.to_bits() && v.abs() < 2f64.powi(53) => Some(v as i128),
                _ => None,
            };
            let folded = constant.and_then(|v| product.coef.checked_mul(v)).filter(|v| v.abs() <= INT_LIMIT);
            let room = product.factors.len() + open.len() + 2 <= MOST_FACTORS && steps < 4 * MOST_FACTORS;
            match (folded, self.node(id)) {
                (Some(coef), _) => product.coef = coef,
                (None, Node::Mul(a, b)) if room => open.extend([b, a]),
                (None, Node::ToReal(a)) if room => open.push(a),
                _ => product.factors.push(id),
            }
        }
        product.factors.sort_unstable();
        product
    }

    /// Whether a product, Int or outgrown, is one of Ints.
    pub(super) fn is_whole(&self, id: Id) -> bool {
        self.factors(id).factors.iter().all(|factor| self.kind(*factor) == Kind::Int)
    }

    /// The product of Ints, canonical.
    pub(super) fn int_product(&mut self, a: Id, b: Id) -> Id {
        let plain = Node::Mul(a.min(b), a.max(b));
        let (p, q) = (self.factors(a), self.factors(b));
        let coef = p.coef * q.coef;
        let too_many = p.factors.len() + q.factors.len() > MOST_FACTORS || coef.abs() > INT_LIMIT;
        if too_many || self.infer(plain).is_err() {
            return self.finish(plain);
        }
        let mut factors = [p.factors, q.factors].concat();
        factors.sort_unstable();
        self.rebuild(coef, &factors)
    }

    fn rebuild(&mut self, coef: i128, factors: &[Id]) -> Id {
        let constant = self.int(i64::try_from(coef).expect("coefficients stay within 2^62"));
        let Some((first, rest)) = factors.split_first() else { return constant };
        if coef == 0 {
            return constant;
        }
        let mut product = *first;
        for factor in rest {
            product = self.times(product, *factor);
        }
        if coef == 1 { product } else { self.times(product, constant) }
    }

    /// One multiplication that is not taken apart again.
    fn times(&mut self, a: Id, b: Id) -> Id {
        let (a, b) = self.same(a, b);
        self.finish(Node::Mul(a.min(b), a.max(b)))
    }

    /// `a + sign * b` of Ints: constants are gathered, equal terms counted.
    pub(super) fn int_sum(&mut self, a: Id, b: Id, sign: i128) -> Id {
        let plain = if sign > 0 { Node::Add(a.min(b), a.max(b)) } else { Node::Sub(a, b) };
        let ((x, p), (y, q)) = (self.split_offset(a), self.split_offset(b));
        let offset = p + sign * q;
        if offset.abs() > INT_LIMIT {
            return self.finish(plain);
        }
        let constant = self.int(offset as i64);
        let terms = match (x, y) {
            (None, None) => return constant,
            (Some(x), None) => x,
            (None, Some(y)) if sign > 0 => y,
            (None, Some(y)) => return self.finish(Node::Sub(constant, y)),
            (Some(x), Some(y)) => {
                let ((k, u), (l, v)) = (self.split_coef(x), self.split_coef(y));
                let count = k + sign * l;
                let inner = if sign > 0 { Node::Add(x.min(y), x.max(y)) } else { Node::Sub(x, y) };
                if self.infer(inner).is_err() || count.abs() > INT_LIMIT {
                    return self.finish(plain);
                }
                if u == v {
                    let count = self.int(count as i64);
                    self.int_product(count, u)
                } else {
                    self.finish(inner)
                }
            }
        };
        if offset == 0 || self.kind(terms) != Kind::Int {
            return if offset == 0 { terms } else { self.finish(plain) };
        }
        self.finish(Node::Add(terms.min(constant), terms.max(constant)))
    }

    /// `x + c` as (x, c).
    fn split_offset(&self, id: Id) -> (Option<Id>, i128) {
        if let Some(v) = self.as_int(id) {
            return (None, v.into());
        }
        if let Node::Add(a, b) = self.node(id) {
            for (x, c) in [(a, b), (b, a)] {
                if let Some(c) = self.as_int(c) {
                    return (Some(x), c.into());
                }
            }
        }
        (Some(id), 0)
    }

    /// `c * x` as (c, x).
    fn split_coef(&self, id: Id) -> (i128, Id) {
        if let Node::Mul(a, b) = self.node(id) {
            for (x, c) in [(a, b), (b, a)] {
                if let Some(c) = self.as_int(c) {
                    return (c.into(), x);
                }
            }
        }
        (1, id)
    }

    /// Dividend, divisor and what both were divided by, if they have a factor in common that is at least 1.
    pub(super) fn cancel(&mut self, a: Id, b: Id) -> Option<(Id, Id, Id)> {
        let (mut p, q) = (self.factors(a), self.factors(b));
        if p.coef == 0 || q.coef == 0 {
            return None;
        }
        let (mut common, mut rest) = (Vec::new(), Vec::new());
        for factor in q.factors {
            let positive = self.range(factor).int.is_some_and(|(lo, _)| lo >= 1);
            match p.factors.iter().position(|f| *f == factor) {
                Some(at) if positive => common.push(p.factors.remove(at)),
                _ => rest.push(factor),
            }
        }
        let divisor = gcd(p.coef.abs(), q.coef.abs());
        if common.is_empty() && divisor == 1 {
            return None;
        }
        let a = self.rebuild(p.coef / divisor, &p.factors);
        let b = self.rebuild(q.coef / divisor, &rest);
        Some((a, b, self.rebuild(divisor, &common)))
    }
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { gcd(b, a % b) }
}
