//! Distributions as values: `lognormal(median = 900 tok, sigma = 1.0)` and its kin, with mean, percentiles and maximum.
//!
//! Closed forms where there are any. The normal law itself is a series, so that every machine gives the same bits.

use super::{Evaluator, Num, Quantity, Value, Word, errors};
use crate::expr::scalar;
use crate::source::Span;
use crate::units::Unit;
use smol_str::SmolStr;
use std::f64::consts::{LN_2, LOG2_E, PI};

/// Parts of a mixture.
const MAX_PARTS: usize = 1_024;
/// Largest mean of a Poisson law that is summed term by term; above it is taken for normal.
const POISSON_SUMMED: f64 = 10_000.0;

/// A law of chance over numbers in base units.
#[derive(Clone, PartialEq, Debug)]
pub enum Law {
    /// Always this.
    Point(f64),
    /// Even between two ends.
    Uniform(f64, f64),
    /// Mean and standard deviation.
    Normal(f64, f64),
    /// Median and standard deviation of the logarithm.
    Lognormal(f64, f64),
    /// Mean.
    Exponential(f64),
    /// Mean.
    Poisson(f64),
    /// The i-th most wanted has a share in proportion to 1 / i^s: a law of ranks, without a mean of its own.
    Zipf(f64),
    /// Weights that sum to 1, each with its law.
    Mixture(Vec<(f64, Law)>),
    /// Values in increasing order with the share of each.
    Empirical(Vec<(f64, f64)>),
}

/// A law, its unit, and the largest value it may give: what lies above is cut to it.
#[derive(Clone, PartialEq, Debug)]
pub struct Distribution {
    /// The law.
    pub law: Law,
    /// The unit of its values.
    pub unit: Unit,
    /// `max`
    pub max: Option<f64>,
}

/// What a distribution's word takes, in order; `|` between what excludes another.
pub(crate) fn parameters(word: &str) -> Option<&'static [&'static str]> {
    Some(match word {
        "point" => &["x"],
        "uniform" => &["a", "b"],
        "normal" => &["mean", "sd"],
        "lognormal" => &["median", "sigma", "max", "mean"],
        "exponential" => &["rate"],
        "poisson" => &["rate", "max", "mean"],
        "zipf" => &["s"],
        "empirical" => &["table"],
        "mixture" => &["parts"],
        _ => return None,
    })
}

/// Functions of a distribution, beside `max`.
pub(crate) const FUNCTIONS: &[&str] = &["mean", "p50", "p95", "p99"];

impl Distribution {
    /// Always `q`.
    pub fn point(x: f64, unit: Unit) -> Self {
        Self { law: Law::Point(x), unit, max: None }
    }

    /// The mean; none for a law of ranks.
    pub fn mean(&self) -> Option<f64> {
        let Some(max) = self.max else { return self.law.mean() };
        // What lies above is cut: the mean of the smaller of the two.
        match &self.law {
            Law::Lognormal(median, sigma) if *sigma > 0.0 => {
                let at = ln(max / median) / sigma;
                let whole = median * exp(sigma * sigma / 2.0);
                Some(whole * normal(at - sigma) + max * (1.0 - normal(at)))
            }
            Law::Poisson(mean) if *mean <= POISSON_SUMMED => {
                let (mut sum, mut left, mut p) = (0.0, 1.0, exp(-mean));
                let mut k = 0.0;
                while k < max && k < 4.0 * POISSON_SUMMED {
                    sum += p * k;
                    left -= p;
                    k += 1.0;
                    p *= mean / k;
                }
                Some(sum + left.max(0.0) * max)
            }
            law => law.mean().map(|m| m.min(max)),
        }
    }

    /// The value below which a share `q` lies, `0 < q < 1`; none for a law of ranks.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let x = self.law.quantile(q)?;
        Some(self.max.map_or(x, |m| x.min(m)))
    }

    /// The largest value: `max`, the law's end, or of a law without end its 99.9th percentile.
    pub fn largest(&self) -> Option<f64> {
        let end = match &self.law {
            Law::Point(x) | Law::Uniform(_, x) => Some(*x),
            Law::Empirical(values) => values.last().map(|(v, _)| *v),
            Law::Normal(..)
            | Law::Lognormal(..)
            | Law::Exponential(_)
            | Law::Poisson(_)
            | Law::Zipf(_)
            | Law::Mixture(_) => None,
        };
        match (self.max, end) {
            (Some(m), Some(e)) => Some(m.min(e)),
            (Some(m), None) => Some(m),
            (None, Some(e)) => Some(e),
            (None, None) => self.law.quantile(0.999),
        }
    }
}

impl Law {
    fn mean(&self) -> Option<f64> {
        Some(match self {
            Self::Point(x) => *x,
            Self::Uniform(a, b) => (a + b) / 2.0,
            Self::Normal(mean, _) | Self::Exponential(mean) | Self::Poisson(mean) => *mean,
            Self::Lognormal(median, sigma) => median * exp(sigma * sigma / 2.0),
            Self::Zipf(_) => return None,
            Self::Mixture(parts) => parts.iter().map(|(w, l)| Some(w * l.mean()?)).sum::<Option<f64>>()?,
            Self::Empirical(values) => values.iter().map(|(v, share)| v * share).sum(),
        })
    }

    fn quantile(&self, q: f64) -> Option<f64> {
        Some(match self {
            Self::Point(x) => *x,
            Self::Uniform(a, b) => a + q * (b - a),
            Self::Normal(mean, sd) => mean + sd * normal_quantile(q),
            Self::Lognormal(median, sigma) => median * exp(sigma * normal_quantile(q)),
            Self::Exponential(mean) => -mean * ln(1.0 - q),
            Self::Poisson(mean) if *mean > POISSON_SUMMED => mean + mean.sqrt() * normal_quantile(q),
            Self::Poisson(mean) => {
                let (mut k, mut p) = (0.0, exp(-mean));
                let mut below = p;
                while below < q && k < 4.0 * POISSON_SUMMED {
                    k += 1.0;
                    p *= mean / k;
                    below += p;
                }
                k
            }
            Self::Zipf(_) => return None,
            Self::Empirical(values) => {
                let mut below = 0.0;
                let found = values.iter().find(|(_, share)| {
                    below += share;
                    below >= q
                });
                found.or(values.last())?.0
            }
            Self::Mixture(parts) => {
                // Between the least and the largest of the parts' own quantiles, by halving.
                let own: Vec<f64> = parts.iter().map(|(_, l)| l.quantile(q)).collect::<Option<_>>()?;
                let (mut lo, mut hi) = own.iter().fold((f64::MAX, f64::MIN), |(a, b), x| (a.min(*x), b.max(*x)));
                for _ in 0..64 {
                    let middle = lo + (hi - lo) / 2.0;
                    let below: f64 = parts.iter().map(|(w, l)| w * l.below(middle)).sum();
                    if below < q { lo = middle } else { hi = middle }
                }
                hi
            }
        })
    }

    /// The share at or below `x`.
    fn below(&self, x: f64) -> f64 {
        match self {
            Self::Point(at) => f64::from(x >= *at),
            Self::Uniform(a, b) => ((x - a) / (b - a)).clamp(0.0, 1.0),
            Self::Normal(mean, sd) => normal((x - mean) / sd),
            Self::Lognormal(median, sigma) => {
                if x <= 0.0 {
                    0.0
                } else {
                    normal(ln(x / median) / sigma)
                }
            }
            Self::Exponential(mean) => 1.0 - exp(-x.max(0.0) / mean),
            Self::Poisson(mean) => normal((x + 0.5 - mean) / mean.sqrt()),
            Self::Zipf(_) => 0.0,
            Self::Mixture(parts) => parts.iter().map(|(w, l)| w * l.below(x)).sum(),
            Self::Empirical(values) => values.iter().take_while(|(v, _)| *v <= x).map(|(_, share)| share).sum(),
        }
    }
}

fn ln(x: f64) -> f64 {
    scalar::log2(x.max(f64::MIN_POSITIVE)) * LN_2
}

fn exp(x: f64) -> f64 {
    scalar::exp2(x * LOG2_E)
}

/// The share of the standard normal law at or below `x`: 1/2 + φ(x) (x + x³/3 + x⁵/15 + …), exact to rounding within 8
/// standard deviations (Marsaglia 2004).
fn normal(x: f64) -> f64 {
    if x.abs() > 8.0 {
        return f64::from(x > 0.0);
    }
    let (mut sum, mut term, mut k) = (x, x, 1.0);
    while term.abs() > 1e-17 * sum.abs().max(1e-300) && k < 400.0 {
        k += 2.0;
        term *= x * x / k;
        sum += term;
    }
    0.5 + sum * exp(-x * x / 2.0) / (2.0 * PI).sqrt()
}

/// The inverse of [`normal`] by halving.
fn normal_quantile(q: f64) -> f64 {
    let (mut lo, mut hi) = (-8.0, 8.0);
    for _ in 0..60 {
        let middle: f64 = f64::midpoint(lo, hi);
        if normal(middle) < q { lo = middle } else { hi = middle }
    }
    hi
}

impl<'p> Evaluator<'p, '_> {
    /// `value` as a distribution: one written as such, or a number, which is always itself. What is wrong is reported.
    pub fn distribution(&mut self, value: &Value<'p>, span: Span) -> Option<Distribution> {
        match value {
            Value::Num(q) => match known(q) {
                Some(x) => Some(Distribution::point(x, q.unit.clone())),
                None => {
                    self.sink.error(errors::wrong_kind("a distribution", "known numbers", "one of the layout", span));
                    None
                }
            },
            Value::Word(w) if parameters(&w.name).is_some() => self.law(w, span),
            Value::Error(_) => None,
            other => {
                let noun = other.noun();
                self.sink.error(errors::wrong_kind("this", "a number or a distribution", &noun, span));
                None
            }
        }
    }

    /// `mean(d)`, `p95(d)`, `max(d)`.
    pub(super) fn of_distribution(&mut self, name: &str, value: &Value<'p>, span: Span) -> Value<'p> {
        let Some(d) = self.distribution(value, span) else { return Value::Error(self.reported_before()) };
        let found = match name {
            "mean" => d.mean(),
            "p50" => d.quantile(0.5),
            "p95" => d.quantile(0.95),
            "p99" => d.quantile(0.99),
            _ => d.largest(),
        };
        match found {
            Some(x) => Value::real(x, d.unit),
            None => self.error(errors::wrong_kind(&format!("`{name}`"), "a law of numbers", "a law of ranks", span)),
        }
    }

    fn law(&mut self, word: &Word<'p>, span: Span) -> Option<Distribution> {
        let params = parameters(&word.name)?;
        let mut given: Vec<(SmolStr, &Value<'p>)> = Vec::new();
        for (i, (name, value)) in word.args.iter().enumerate() {
            let name = name.clone().or_else(|| params.get(i).map(|p| SmolStr::new_static(p)));
            match name.filter(|n| params.contains(&n.as_str()) && given.iter().all(|(g, _)| g != n)) {
                Some(name) => given.push((name, value)),
                None => return self.unsound(&word.name, "is given what it does not take", span),
            }
        }
        let get = |name: &str| given.iter().find(|(n, _)| n == name).map(|(_, v)| *v);
        let number = |name: &str| match get(name) {
            Some(Value::Num(q)) => known(q).map(|x| (x, q.unit.clone())),
            _ => None,
        };
        let Some((law, unit)) = (match word.name.as_str() {
            "point" => number("x").map(|(x, u)| (Law::Point(x), u)),
            "uniform" => match (number("a"), number("b")) {
                (Some((a, u)), Some((b, v))) if u == v && a < b => Some((Law::Uniform(a, b), u)),
                _ => None,
            },
            "normal" => match (number("mean"), number("sd")) {
                (Some((mean, u)), Some((sd, v))) if u == v && sd > 0.0 => Some((Law::Normal(mean, sd), u)),
                _ => None,
            },
            "lognormal" => match (number("median"), number("mean"), number("sigma")) {
                (Some((median, u)), None, Some((sigma, v))) if v.is_none() && sigma > 0.0 && median > 0.0 => {
                    Some((Law::Lognormal(median, sigma), u))
                }
                (None, Some((mean, u)), Some((sigma, v))) if v.is_none() && sigma > 0.0 && mean > 0.0 => {
                    Some((Law::Lognormal(mean / exp(sigma * sigma / 2.0), sigma), u))
                }
                _ => None,
            },
            "exponential" => match number("rate") {
                Some((rate, u)) if rate > 0.0 => Some((Law::Exponential(1.0 / rate), Unit::none().div(&u))),
                _ => None,
            },
            "poisson" => match (number("rate"), number("mean")) {
                (Some((mean, u)), None) | (None, Some((mean, u))) if mean > 0.0 => Some((Law::Poisson(mean), u)),
                _ => None,
            },
            "zipf" => match number("s") {
                Some((s, u)) if u.is_none() && s >= 0.0 => Some((Law::Zipf(s), u)),
                _ => None,
            },
            "empirical" => match get("table") {
                Some(Value::Instance(i)) => {
                    let table = self.table(i)?;
                    table.shares().map(|(values, unit)| (Law::Empirical(values), unit))
                }
                _ => None,
            },
            _ => return self.mixture(get("parts"), span),
        }) else {
            return self.unsound(&word.name, "does not get the numbers it needs", span);
        };
        let max = match get("max") {
            None => None,
            Some(_) => match number("max") {
                Some((x, u)) if u == unit => Some(x),
                _ => return self.unsound(&word.name, "needs a `max` in its own unit", span),
            },
        };
        Some(Distribution { law, unit, max })
    }

    /// `mixture([[w, d], …])`: weights in proportion.
    fn mixture(&mut self, parts: Option<&Value<'p>>, span: Span) -> Option<Distribution> {
        let Some(Value::List(parts)) = parts else {
            return self.unsound("mixture", "needs a list of `[weight, distribution]`", span);
        };
        let mut out: Vec<(f64, Law)> = Vec::new();
        let mut unit = None;
        for part in parts.iter() {
            let Value::List(pair) = part else {
                return self.unsound("mixture", "needs a list of `[weight, distribution]`", span);
            };
            let weight = pair.first().and_then(Value::as_f64).filter(|w| *w > 0.0 && w.is_finite());
            let (Some(weight), Some(law)) = (weight, pair.get(1)) else {
                return self.unsound("mixture", "needs weights above 0", span);
            };
            let part = self.distribution(law, span)?;
            if unit.get_or_insert_with(|| part.unit.clone()) != &part.unit || out.len() >= MAX_PARTS {
                return self.unsound("mixture", "needs at most 1024 parts of one unit", span);
            }
            out.push((weight, part.law));
        }
        let total: f64 = out.iter().map(|(w, _)| w).sum();
        for (w, _) in &mut out {
            *w /= total;
        }
        match unit {
            Some(unit) => Some(Distribution { law: Law::Mixture(out), unit, max: None }),
            None => self.unsound("mixture", "needs a part", span),
        }
    }

    fn unsound(&mut self, word: &str, why: &str, span: Span) -> Option<Distribution> {
        let takes = parameters(word).unwrap_or_default().join("`, `");
        self.sink.error(errors::not_distributed(word, why, &takes, span));
        None
    }
}

fn known(q: &Quantity) -> Option<f64> {
    match q.num {
        Num::Int(n) => Some(n as f64),
        Num::Real(x) => Some(x),
        Num::Sym(_) => None,
    }
}
