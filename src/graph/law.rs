//! Laws of chance over a load relative to its mean: what is expected of the largest of several.

use crate::expr::{Graph, Id, Node, scalar};
use std::f64::consts::{LN_2, LOG2_E, PI};

/// Where the laws are computed: quarters of a standard deviation from the mean. A fixed grid, no sampling.
const GRID: std::ops::RangeInclusive<i32> = -16..=28;
/// Pieces of a quarter in the integral of the density.
const PIECES: i32 = 8;

/// How the load of an expert varies; 1 is the mean load.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Law {
    /// Always this.
    Point(f64),
    /// Lognormal with this mean and this standard deviation of the logarithm.
    Lognormal {
        /// The mean.
        mean: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
    /// Normal.
    Normal {
        /// The mean.
        mean: f64,
        /// Standard deviation.
        sd: f64,
    },
    /// Even between two ends.
    Uniform {
        /// Least.
        from: f64,
        /// Greatest.
        to: f64,
    },
    /// The load of the i-th most wanted is proportional to 1 / i^s.
    Zipf {
        /// The exponent.
        s: f64,
    },
}

impl Law {
    /// The mean of a lognormal of this median.
    pub fn mean_of(median: f64, sigma: f64) -> f64 {
        median * scalar::exp2(sigma * sigma / 2.0 * LOG2_E)
    }

    /// Whether it is a law of a load: positive, and with a spread.
    pub fn is_sound(&self) -> bool {
        let positive = |x: f64| x.is_finite() && x > 0.0;
        let spread = |x: f64| x.is_finite() && x >= 0.0;
        match *self {
            Self::Point(x) => positive(x),
            Self::Lognormal { mean, sigma } => positive(mean) && spread(sigma) && sigma <= 8.0,
            Self::Normal { mean, sd } => positive(mean) && spread(sd),
            Self::Uniform { from, to } => spread(from) && positive(to) && from <= to,
            Self::Zipf { s } => spread(s) && s <= 8.0,
        }
    }
}

impl Law {
    /// The mean.
    pub fn mean(&self) -> f64 {
        match *self {
            Self::Point(x) => x,
            Self::Lognormal { mean, .. } | Self::Normal { mean, .. } => mean,
            Self::Uniform { from, to } => f64::midpoint(from, to),
            Self::Zipf { .. } => 1.0,
        }
    }

    /// Whether every load is the mean load.
    pub fn is_even(&self) -> bool {
        *self == Self::Point(1.0)
    }

    /// The load expected of the fullest of `ranks`, each with `each` experts whose loads are drawn alike, over the mean
    /// load of an expert. Both are whole; the result is a real.
    ///
    /// The mean of several draws is taken to be of the law's own kind, with the variance over their number; of experts
    /// under Zipf's law the first rank has the most wanted.
    pub fn largest(&self, graph: &mut Graph, ranks: Id, each: Id) -> Id {
        let (ranks, each) = (graph.to_real(ranks), graph.to_real(each));
        match *self {
            Self::Point(x) => graph.real(x),
            Self::Normal { mean, sd } => normal(graph, mean, sd, ranks, each),
            Self::Uniform { from, to } => {
                // The standard deviation of an even law is its width over the root of twelve.
                let spread = (to - from) * scalar::exp2(-scalar::log2(12.0) / 2.0);
                let found = normal(graph, f64::midpoint(from, to), spread, ranks, each);
                let most = graph.real(to);
                graph.min(found, most)
            }
            Self::Lognormal { mean, sigma } => lognormal(graph, mean, sigma, ranks, each),
            Self::Zipf { s } => {
                let all = graph.mul(ranks, each);
                let (first, whole) = (harmonic(graph, s, each), harmonic(graph, s, all));
                let share = graph.div(first, whole);
                graph.mul(share, ranks)
            }
        }
    }
}

fn normal(graph: &mut Graph, mean: f64, sd: f64, ranks: Id, each: Id) -> Id {
    let mut terms = Vec::new();
    for (z, weight) in weights(graph, ranks) {
        let z = graph.real(z);
        terms.push(graph.mul(z, weight));
    }
    let highest = graph.sum(terms);
    let root = graph.put(Node::Sqrt(each));
    let (mean, sd) = (graph.real(mean), graph.real(sd));
    let sd = graph.div(sd, root);
    let above = graph.mul(sd, highest);
    graph.add(mean, above)
}

fn lognormal(graph: &mut Graph, mean: f64, sigma: f64, ranks: Id, each: Id) -> Id {
    // Variance over squared mean is exp(sigma²) − 1; over a number of draws it is that number of times less.
    let variance = graph.real(scalar::exp2(sigma * sigma * LOG2_E) - 1.0);
    let variance = graph.div(variance, each);
    let one = graph.real(1.0);
    let ratio = graph.add(one, variance);
    let doublings = graph.put(Node::Log2(ratio));
    let ln_2 = graph.real(LN_2);
    let squared = graph.mul(doublings, ln_2);
    let sigma = graph.put(Node::Sqrt(squared));
    let log2_e = graph.real(LOG2_E);
    let half = graph.real(0.5);
    let below = graph.mul(doublings, half);
    let mut terms = Vec::new();
    for (z, weight) in weights(graph, ranks) {
        let z = graph.real(z);
        let power = graph.product([sigma, z, log2_e]);
        let power = graph.sub(power, below);
        let load = graph.put(Node::Exp2(power));
        terms.push(graph.mul(load, weight));
    }
    let sum = graph.sum(terms);
    let mean = graph.real(mean);
    graph.mul(sum, mean)
}

/// The middle of each step of the grid, and the chance that the largest of `ranks` standard normals lies in it.
fn weights(graph: &mut Graph, ranks: Id) -> Vec<(f64, Id)> {
    let mut out = Vec::new();
    let mut below = graph.real(0.0);
    for quarter in GRID {
        let z = f64::from(quarter) / 4.0;
        let last = quarter == *GRID.end();
        let to = if last { graph.real(1.0) } else { power(graph, below_normal(z), ranks) };
        let chance = graph.sub(to, below);
        out.push((z - 0.125, chance));
        below = to;
    }
    out
}

/// `x` to the `n`.
fn power(graph: &mut Graph, x: f64, n: Id) -> Id {
    let doublings = graph.real(scalar::log2(x));
    let power = graph.mul(doublings, n);
    graph.put(Node::Exp2(power))
}

/// The chance that a standard normal lies below `z`: Simpson's rule on the density.
fn below_normal(z: f64) -> f64 {
    let density = |x: f64| scalar::exp2(-x * x / 2.0 * LOG2_E);
    let far = if z < 0.0 { -z } else { z };
    let steps = PIECES * (far * 4.0) as i32;
    let width = 0.25 / f64::from(PIECES);
    let mut sum = 0.0;
    for i in 0..steps {
        let x = f64::from(i) * width;
        sum += (density(x) + 4.0 * density(x + width / 2.0) + density(x + width)) * width / 6.0;
    }
    // One over the root of twice pi.
    let half = sum * scalar::exp2(-scalar::log2(2.0 * PI) / 2.0);
    if z < 0.0 { 0.5 - half } else { 0.5 + half }
}

/// The sum of 1 / i^s up to `n`: its integral and half of both ends.
fn harmonic(graph: &mut Graph, s: f64, n: Id) -> Id {
    let doublings = graph.put(Node::Log2(n));
    let one = graph.real(1.0);
    let exponent = graph.real(-s);
    let last = graph.mul(doublings, exponent);
    let last = graph.put(Node::Exp2(last));
    let ends = graph.add(one, last);
    let half = graph.real(0.5);
    let ends = graph.mul(ends, half);
    let left = 1.0 - s;
    let integral = if left.abs() < 1e-9 {
        let ln_2 = graph.real(LN_2);
        graph.mul(doublings, ln_2)
    } else {
        let exponent = graph.real(left);
        let grown = graph.mul(doublings, exponent);
        let grown = graph.put(Node::Exp2(grown));
        let over = graph.sub(grown, one);
        let left = graph.real(left);
        graph.div(over, left)
    };
    graph.add(integral, ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn largest(law: Law, ranks: i64, each: i64) -> f64 {
        let mut graph = Graph::new();
        let (ranks, each) = (graph.int(ranks), graph.int(each));
        let id = law.largest(&mut graph, ranks, each);
        graph.eval(&[], &[id])[0]
    }

    fn close(found: f64, expected: f64, within: f64) {
        assert!((found - expected).abs() <= within, "{found} against {expected}");
    }

    /// Expected maxima of standard normals: 0.5642 of 2, 1.4236 of 8, 2.3437 of 64 (Harter 1961, table 1).
    #[test]
    fn the_largest_of_several_normals() {
        let of = |ranks| largest(Law::Normal { mean: 1.0, sd: 1.0 }, ranks, 1) - 1.0;
        close(of(1), 0.0, 0.001);
        close(of(2), 0.5642, 0.003);
        close(of(8), 1.4236, 0.003);
        close(of(64), 2.3437, 0.005);
    }

    /// Four experts a rank: half the standard deviation.
    #[test]
    fn several_experts_of_a_rank_even_each_other_out() {
        let of = |each| largest(Law::Normal { mean: 1.0, sd: 0.4 }, 8, each) - 1.0;
        close(of(4), of(1) / 2.0, 1e-9);
        close(largest(Law::Lognormal { mean: 1.0, sigma: 0.1 }, 8, 1), 1.0 + 0.1 * 1.4236 + 0.005, 0.01);
        close(largest(Law::Lognormal { mean: 1.0, sigma: 0.1 }, 1, 8), 1.0, 0.001);
    }

    /// 1, 1/2, 1/3, 1/4 sum to 25/12: of two ranks with two each the first has 18/25 of the load, 1.44 of the mean.
    #[test]
    fn under_zipfs_law_the_first_rank_has_the_most() {
        close(largest(Law::Zipf { s: 1.0 }, 2, 2), 1.44, 0.02);
        close(largest(Law::Zipf { s: 0.0 }, 4, 8), 1.0, 1e-9);
        close(largest(Law::Point(1.5), 4, 8), 1.5, 0.0);
    }
}
