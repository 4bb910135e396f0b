//! Quantities: base units, prefixes, the algebra of exponents, and how a number is shown.
//!
//! A leaf: it knows nothing of the language. Every quantity is held in base units (bytes, seconds, FLOP, joule,
//! dollar, and the counts), so a [`Unit`] is exponents only.

mod lookup;
mod show;

pub use lookup::{Scale, UnitError, lookup};
pub use show::show;

use smallvec::SmallVec;
use smol_str::SmolStr;
use std::fmt;

/// What quantities are made of.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Base {
    /// Bytes; a bit is an eighth.
    Byte,
    /// Seconds.
    Second,
    /// Floating-point operations; an integer operation is one, a multiply-add two.
    Flop,
    /// Joules.
    Joule,
    /// Dollars.
    Dollar,
    /// Tokens.
    Tok,
    /// Sequences.
    Seq,
    /// Requests.
    Req,
    /// Optimizer steps.
    Step,
    /// A unit the program declares.
    User(SmolStr),
}

/// A product of powers of base units; empty for plain numbers.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Unit(SmallVec<[(Base, i8); 2]>);

impl Unit {
    /// Plain numbers.
    pub fn none() -> Self {
        Self::default()
    }

    /// One base unit.
    pub fn base(base: Base) -> Self {
        Self(SmallVec::from_iter([(base, 1)]))
    }

    /// Bytes.
    pub fn bytes() -> Self {
        Self::base(Base::Byte)
    }

    /// Time.
    pub fn time() -> Self {
        Self::base(Base::Second)
    }

    /// FLOP.
    pub fn flop() -> Self {
        Self::base(Base::Flop)
    }

    /// Bytes a second.
    pub fn bandwidth() -> Self {
        Self::bytes().div(&Self::time())
    }

    /// FLOP a second.
    pub fn flop_rate() -> Self {
        Self::flop().div(&Self::time())
    }

    /// Whether this is a plain number.
    pub fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    /// `self · other`
    #[must_use]
    pub fn mul(&self, other: &Self) -> Self {
        self.combine(other, 1)
    }

    /// `self / other`
    #[must_use]
    pub fn div(&self, other: &Self) -> Self {
        self.combine(other, -1)
    }

    /// `self ^ power`; `None` where an exponent would leave −100..100.
    pub fn pow(&self, power: i64) -> Option<Self> {
        let mut out = Self::none();
        if power == 0 {
            return Some(out);
        }
        for (base, e) in &self.0 {
            let e = i64::from(*e).checked_mul(power).filter(|e| e.abs() <= 100)?;
            out.0.push((base.clone(), e as i8));
        }
        Some(out)
    }

    fn combine(&self, other: &Self, sign: i8) -> Self {
        let mut out = self.clone();
        for (base, e) in &other.0 {
            match out.0.binary_search_by(|(b, _)| b.cmp(base)) {
                Ok(i) => {
                    out.0[i].1 = out.0[i].1.saturating_add(e.saturating_mul(sign));
                    if out.0[i].1 == 0 {
                        out.0.remove(i);
                    }
                }
                Err(i) => out.0.insert(i, (base.clone(), e.saturating_mul(sign))),
            }
        }
        out
    }

    /// What a user calls a quantity of this unit: "bytes", "a bandwidth", "a plain number".
    pub fn noun(&self) -> String {
        let known = [
            (Self::none(), "a plain number"),
            (Self::bytes(), "bytes"),
            (Self::time(), "time"),
            (Self::flop(), "FLOP"),
            (Self::bandwidth(), "bandwidth"),
            (Self::flop_rate(), "FLOP/s"),
            (Self::base(Base::Joule), "energy"),
            (Self::base(Base::Joule).div(&Self::time()), "power"),
            (Self::base(Base::Dollar), "money"),
            (Self::base(Base::Dollar).div(&Self::time()), "a price per time"),
            (Self::base(Base::Tok), "tokens"),
            (Self::base(Base::Seq), "sequences"),
            (Self::base(Base::Req), "requests"),
            (Self::base(Base::Step), "steps"),
        ];
        known.iter().find(|(u, _)| u == self).map_or_else(|| self.to_string(), |(_, n)| (*n).to_string())
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |b: &Base| -> SmolStr {
            match b {
                Base::Byte => "B".into(),
                Base::Second => "s".into(),
                Base::Flop => "FLOP".into(),
                Base::Joule => "J".into(),
                Base::Dollar => "$".into(),
                Base::Tok => "tok".into(),
                Base::Seq => "seq".into(),
                Base::Req => "req".into(),
                Base::Step => "step".into(),
                Base::User(n) => n.clone(),
            }
        };
        let power = |e: i8| if e == 1 { String::new() } else { format!("^{e}") };
        let mut over: Vec<_> =
            self.0.iter().filter(|(_, e)| *e > 0).map(|(b, e)| format!("{}{}", name(b), power(*e))).collect();
        let under: Vec<_> =
            self.0.iter().filter(|(_, e)| *e < 0).map(|(b, e)| format!("/{}{}", name(b), power(-e))).collect();
        if over.is_empty() && !under.is_empty() {
            over.push("1".into());
        }
        write!(f, "{}{}", over.join("·"), under.join(""))
    }
}

impl fmt::Debug for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn unit() -> impl Strategy<Value = Unit> {
        let bases = [Base::Byte, Base::Second, Base::Flop, Base::Tok, Base::User("img".into())];
        prop::collection::vec((0usize..5, -3i8..4), 0..4).prop_map(move |terms| {
            terms.into_iter().fold(Unit::none(), |u, (b, e)| {
                let power = Unit::base(bases[b].clone()).pow(i64::from(e)).expect("small");
                u.mul(&power)
            })
        })
    }

    proptest! {
        #[test]
        fn units_are_an_abelian_group(a in unit(), b in unit(), c in unit()) {
            prop_assert_eq!(a.mul(&b), b.mul(&a));
            prop_assert_eq!(a.mul(&b).mul(&c), a.mul(&b.mul(&c)));
            prop_assert_eq!(a.mul(&b).div(&b), a.clone());
            prop_assert_eq!(a.pow(2).expect("small"), a.mul(&a));
            prop_assert!(a.div(&a).is_none());
        }
    }

    #[test]
    fn nouns_and_text() {
        assert_eq!(Unit::bandwidth().to_string(), "B/s");
        assert_eq!(Unit::bandwidth().noun(), "bandwidth");
        assert_eq!(Unit::none().div(&Unit::time()).to_string(), "1/s");
    }
}
