//! Ranges: which values a node can take, by interval rules from the ranges of the inputs.
//!
//! Rounding is monotone, so ends computed with the evaluators' own operations bound the computed values with no
//! margin. Only the series for `log2` and `exp2`, which may step back an ulp, and Ints too wide for a double get one.

use super::scalar;
use super::{Graph, Id, Kind, Node};

/// Ints stay within ± this: 2^62.
pub const INT_LIMIT: i128 = 1 << 62;

/// Ints within ± this are exact in a double: 2^53.
pub const NARROW: i128 = 1 << 53;

/// The values a node can take, ends included. Those of a Bool are 0 and 1.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Range {
    /// Least value.
    pub lo: f64,
    /// Greatest value.
    pub hi: f64,
    /// The same, exactly, of an Int.
    pub int: Option<(i128, i128)>,
}

impl Range {
    /// Of an Int.
    pub(super) fn int(lo: i128, hi: i128) -> Self {
        Range { lo: lo as f64, hi: hi as f64, int: Some((lo, hi)) }
    }

    /// Of a Real. An end that is no number is unknown.
    pub(super) fn real(lo: f64, hi: f64) -> Self {
        Range {
            lo: if lo.is_nan() { f64::NEG_INFINITY } else { lo },
            hi: if hi.is_nan() { f64::INFINITY } else { hi },
            int: None,
        }
    }

    pub(super) fn bool() -> Self {
        Range { lo: 0.0, hi: 1.0, int: None }
    }

    /// Whether every value is narrow: an exact integer in a double.
    pub fn narrow(&self) -> bool {
        self.int.is_some_and(|(lo, hi)| -NARROW <= lo && hi <= NARROW)
    }

    /// Whether 0 is among the values.
    pub fn has_zero(&self) -> bool {
        self.lo <= 0.0 && self.hi >= 0.0
    }

    fn within_limit(&self) -> bool {
        self.int.is_some_and(|(lo, hi)| -INT_LIMIT <= lo && hi <= INT_LIMIT)
    }

    /// Both Int, as ends.
    fn ints(self, other: Range) -> Option<((i128, i128), (i128, i128))> {
        Some((self.int?, other.int?))
    }

    fn hull(values: impl IntoIterator<Item = f64> + Clone) -> Range {
        let any_nan = values.clone().into_iter().any(f64::is_nan);
        let lo = values.clone().into_iter().fold(f64::INFINITY, f64::min);
        let hi = values.into_iter().fold(f64::NEG_INFINITY, f64::max);
        if any_nan { Range::real(f64::NAN, f64::NAN) } else { Range::real(lo, hi) }
    }

    pub(super) fn add(self, b: Range) -> Range {
        match self.ints(b) {
            Some((a, b)) => Range::int(a.0 + b.0, a.1 + b.1),
            None => Range::real(self.lo + b.lo, self.hi + b.hi),
        }
    }

    pub(super) fn sub(self, b: Range) -> Range {
        match self.ints(b) {
            Some((a, b)) => Range::int(a.0 - b.1, a.1 - b.0),
            None => Range::real(self.lo - b.hi, self.hi - b.lo),
        }
    }

    pub(super) fn mul(self, b: Range) -> Range {
        if let Some((a, b)) = self.ints(b) {
            let ends = [a.0 * b.0, a.0 * b.1, a.1 * b.0, a.1 * b.1];
            let (lo, hi) = ends.iter().fold((i128::MAX, i128::MIN), |(lo, hi), e| (lo.min(*e), hi.max(*e)));
            return Range::int(lo, hi);
        }
        Range::hull([self.lo * b.lo, self.lo * b.hi, self.hi * b.lo, self.hi * b.hi])
    }

    /// The divisor is not 0, whatever its interval says.
    fn div(self, b: Range) -> Range {
        const LEAST: f64 = f64::from_bits(1);
        let (lo, hi) = match (b.lo, b.hi) {
            (lo, hi) if lo >= 0.0 => (lo.max(LEAST), hi.max(LEAST)),
            (lo, hi) if hi <= 0.0 => (lo.min(-LEAST), hi.min(-LEAST)),
            _ => (-LEAST, LEAST),
        };
        Range::hull([self.lo / lo, self.lo / hi, self.hi / lo, self.hi / hi])
    }

    /// Integer division by a divisor of at least 1, rounded by `round`.
    fn quotient(self, b: Range, round: fn(i128, i128) -> i128) -> Option<Range> {
        let (a, b) = self.ints(b)?;
        let ends = [round(a.0, b.0), round(a.0, b.1), round(a.1, b.0), round(a.1, b.1)];
        let (lo, hi) = ends.iter().fold((i128::MAX, i128::MIN), |(lo, hi), e| (lo.min(*e), hi.max(*e)));
        Some(Range::int(lo, hi))
    }

    fn min(self, b: Range) -> Range {
        match self.ints(b) {
            Some((a, b)) => Range::int(a.0.min(b.0), a.1.min(b.1)),
            None => Range::real(self.lo.min(b.lo), self.hi.min(b.hi)),
        }
    }

    fn max(self, b: Range) -> Range {
        match self.ints(b) {
            Some((a, b)) => Range::int(a.0.max(b.0), a.1.max(b.1)),
            None => Range::real(self.lo.max(b.lo), self.hi.max(b.hi)),
        }
    }

    fn join(self, b: Range) -> Range {
        match self.ints(b) {
            Some((a, b)) => Range::int(a.0.min(b.0), a.1.max(b.1)),
            None => Range::real(self.lo.min(b.lo), self.hi.max(b.hi)),
        }
    }

    fn to_real(self) -> Range {
        if self.int.is_none() || self.narrow() {
            return Range { int: None, ..self };
        }
        // Lanes round a wide Int once an operation, `exact` once.
        let margin = self.lo.abs().max(self.hi.abs()) * 2f64.powi(-48);
        Range::real(self.lo - margin, self.hi + margin)
    }

    /// Of a function that is monotone up to an ulp or so.
    fn nearly(lo: f64, hi: f64) -> Range {
        let margin = |x: f64| (x.abs() + f64::MIN_POSITIVE) * 2f64.powi(-40);
        Range::real(lo - margin(lo), hi + margin(hi))
    }

    fn rounded(self, round: fn(f64) -> f64) -> Range {
        let (lo, hi) = (round(self.lo), round(self.hi));
        let limit = INT_LIMIT as f64;
        if -limit <= lo && hi <= limit { Range::int(lo as i128, hi as i128) } else { Range::real(lo, hi) }
    }
}

/// A node whose operands are not what its operation takes. [`Graph::put`] never makes one.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct BadNode(pub(super) &'static str);

impl Graph {
    /// The values `id` can take, given that the inputs keep their ranges.
    pub fn range(&self, id: Id) -> Range {
        self.info(id).range
    }

    /// Kind and range of `node`, whose operands are in the graph.
    pub(super) fn infer(&self, node: Node) -> Result<(Kind, Range), BadNode> {
        let range = |id: Id| self.range(id);
        let need = |ok: bool, what| if ok { Ok(()) } else { Err(BadNode(what)) };
        let is = |id: Id, kind: Kind| need(self.kind(id) == kind, "an operand is of the wrong kind");
        let real = |range: Range| Ok((Kind::Real, range));
        let arithmetic = |a: Id, b: Id, of: fn(Range, Range) -> Range| {
            is(b, self.kind(a))?;
            need(self.kind(a) != Kind::Bool, "arithmetic on a Bool")?;
            let range = of(range(a), range(b));
            need(self.kind(a) == Kind::Real || range.within_limit(), "an Int beyond 2^62")?;
            Ok((self.kind(a), range))
        };
        let quotient = |a: Id, b: Id, round: fn(i128, i128) -> i128| {
            is(a, Kind::Int)?;
            is(b, Kind::Int)?;
            need(range(b).lo >= 1.0, "a divisor that may be below 1")?;
            let range = range(a).quotient(range(b), round).ok_or(BadNode("an Int without a range"))?;
            Ok((Kind::Int, range))
        };
        let rounded = |a: Id, round: fn(f64) -> f64| {
            is(a, Kind::Real)?;
            let range = range(a).rounded(round);
            Ok((if range.int.is_some() { Kind::Int } else { Kind::Real }, range))
        };
        match node {
            Node::Int(v) => {
                let range = Range::int(v.into(), v.into());
                need(range.within_limit(), "an Int beyond 2^62")?;
                Ok((Kind::Int, range))
            }
            Node::Real(bits) => {
                let v = f64::from_bits(bits);
                need(v.is_finite(), "a constant that is not finite")?;
                real(Range::real(v, v))
            }
            Node::Bool(v) => {
                let v = f64::from(u8::from(v));
                Ok((Kind::Bool, Range { lo: v, hi: v, int: None }))
            }
            Node::Input(i) => {
                let input = self.inputs().get(i.0 as usize).ok_or(BadNode("an input that is not declared"))?;
                let range = match input.kind {
                    Kind::Int => Range::int(input.lo as i128, input.hi as i128),
                    Kind::Real => Range::real(input.lo, input.hi),
                    Kind::Bool => Range::bool(),
                };
                Ok((input.kind, range))
            }
            Node::Add(a, b) => arithmetic(a, b, Range::add),
            Node::Sub(a, b) => arithmetic(a, b, Range::sub),
            Node::Mul(a, b) => arithmetic(a, b, Range::mul),
            Node::Min(a, b) => arithmetic(a, b, Range::min),
            Node::Max(a, b) => arithmetic(a, b, Range::max),
            Node::Div(a, b) => {
                is(a, Kind::Real)?;
                is(b, Kind::Real)?;
                need(self.never_zero(b), "a divisor that may be 0")?;
                real(range(a).div(range(b)))
            }
            Node::ToReal(a) => {
                is(a, Kind::Int)?;
                real(range(a).to_real())
            }
            Node::Floor(a) => rounded(a, f64::floor),
            Node::Ceil(a) => rounded(a, f64::ceil),
            Node::Sqrt(a) => {
                is(a, Kind::Real)?;
                need(range(a).lo >= 0.0, "a root of what may be negative")?;
                real(Range::real(range(a).lo.sqrt(), range(a).hi.sqrt()))
            }
            Node::Log2(a) => {
                is(a, Kind::Real)?;
                need(range(a).lo >= f64::MIN_POSITIVE, "a logarithm of what may be 0")?;
                real(Range::nearly(scalar::log2(range(a).lo), scalar::log2(range(a).hi)))
            }
            Node::Exp2(a) => {
                is(a, Kind::Real)?;
                real(Range::nearly(scalar::exp2(range(a).lo), scalar::exp2(range(a).hi)))
            }
            Node::FloorDiv(a, b) | Node::ExactDiv(a, b) => quotient(a, b, scalar::floor_div),
            Node::CeilDiv(a, b) => quotient(a, b, scalar::ceil_div),
            Node::Mod(a, b) => {
                let (kind, quotient) = quotient(a, b, scalar::floor_div)?;
                let (a, b) = range(a).ints(range(b)).ok_or(BadNode("an Int without a range"))?;
                let range = match quotient.int {
                    Some((q, p)) if q == p && b.0 == b.1 => Range::int(a.0 - q * b.0, a.1 - q * b.0),
                    _ if a.0 >= 0 => Range::int(0, a.1.min(b.1 - 1)),
                    _ => Range::int(0, b.1 - 1),
                };
                Ok((kind, range))
            }
            Node::Select(c, a, b) => {
                is(c, Kind::Bool)?;
                is(b, self.kind(a))?;
                Ok((self.kind(a), range(a).join(range(b))))
            }
            Node::Lookup(table, index) => {
                is(index, Kind::Int)?;
                let table = self.tables().get(table.0 as usize).ok_or(BadNode("a table that is not declared"))?;
                let last = table.values.len() as i128 - 1;
                need(range(index).int.is_some_and(|(lo, hi)| lo >= 0 && hi <= last), "an index that may be outside")?;
                let lo = table.values.iter().copied().fold(f64::INFINITY, f64::min);
                let hi = table.values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let ends =
                    if table.kind == Kind::Int { Range::int(lo as i128, hi as i128) } else { Range::real(lo, hi) };
                Ok((table.kind, ends))
            }
            Node::Le(a, b) | Node::Lt(a, b) => {
                is(b, self.kind(a))?;
                need(self.kind(a) != Kind::Bool, "an order of Bools")?;
                Ok((Kind::Bool, Range::bool()))
            }
            Node::Eq(a, b) => {
                is(b, self.kind(a))?;
                Ok((Kind::Bool, Range::bool()))
            }
            Node::And(a, b) | Node::Or(a, b) => {
                is(a, Kind::Bool)?;
                is(b, Kind::Bool)?;
                Ok((Kind::Bool, Range::bool()))
            }
            Node::Not(a) => {
                is(a, Kind::Bool)?;
                Ok((Kind::Bool, Range::bool()))
            }
        }
    }

    /// Whether the Real `id` cannot be 0: by its range, or because it is `if x == 0 then k else x`.
    pub(super) fn never_zero(&self, id: Id) -> bool {
        if !self.range(id).has_zero() {
            return true;
        }
        let Node::Select(cond, k, x) = self.node(id) else { return false };
        let Node::Eq(p, q) = self.node(cond) else { return false };
        let zero = |id| self.as_real(id).is_some_and(|v| v == 0.0);
        !self.range(k).has_zero() && ((p == x && zero(q)) || (q == x && zero(p)))
    }
}
