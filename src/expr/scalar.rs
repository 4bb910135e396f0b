//! The operations on single values that every evaluator shares, and that constant folding uses.
//!
//! `log2` and `exp2` are series of `+ - * /` with a fixed order, so that no maths library, which differ from one
//! another in the last bit, has a part in a result. The vector back ends do the same steps lane by lane.

/// 2^52, and 2^52 + 1023: adding the second to a small integer leaves integer + exponent bias in the low bits.
pub const TWO_52: f64 = 4_503_599_627_370_496.0;
/// See [`TWO_52`].
pub const BIASED: f64 = TWO_52 + 1023.0;

/// 2/ln 2 times 1/1, 1/3, … 1/17: `log2(m) = Σ c_k s^(2k+1)`, `s = (m-1)/(m+1)`. Within 2e-15 for |s| < 0.172.
pub const LOG2_SERIES: [f64; 9] = [
    LOG2_SCALE,
    LOG2_SCALE / 3.0,
    LOG2_SCALE / 5.0,
    LOG2_SCALE / 7.0,
    LOG2_SCALE / 9.0,
    LOG2_SCALE / 11.0,
    LOG2_SCALE / 13.0,
    LOG2_SCALE / 15.0,
    LOG2_SCALE / 17.0,
];
const LOG2_SCALE: f64 = 2.0 * std::f64::consts::LOG2_E;

/// (ln 2)^k / k! for k = 0 … 14: `2^f = Σ c_k f^k`. Within 1e-17 for |f| <= 1/2.
pub const EXP2_SERIES: [f64; 15] = {
    let mut series = [1.0; 15];
    let mut k = 1;
    while k < series.len() {
        series[k] = series[k - 1] * std::f64::consts::LN_2 / k as f64;
        k += 1;
    }
    series
};

/// Exponents `exp2` can build: below is 2^-1022, above 2^1023.
pub const EXP2_DOMAIN: (f64, f64) = (-1022.0, 1023.0);

/// Mantissas above this are halved, so that the series of `log2` is used near 1 only.
pub const LOG2_FOLD: f64 = std::f64::consts::SQRT_2;

/// Binary logarithm of a positive, normal `x`.
pub fn log2(x: f64) -> f64 {
    let bits = x.to_bits();
    let exponent = f64::from_bits((bits >> 52) | TWO_52.to_bits()) - BIASED;
    let mantissa = f64::from_bits((bits & 0x000f_ffff_ffff_ffff) | 1f64.to_bits());
    let fold = mantissa > LOG2_FOLD;
    let m = if fold { mantissa * 0.5 } else { mantissa };
    let e = if fold { exponent + 1.0 } else { exponent };
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    let sum = series(&LOG2_SERIES, z);
    e + s * sum
}

/// 2 to the `x`, saturating at 2^-1022 and 2^1023.
pub fn exp2(x: f64) -> f64 {
    let x = max(x, EXP2_DOMAIN.0);
    let x = min(x, EXP2_DOMAIN.1);
    let n = (x + 0.5).floor();
    let f = x - n;
    let sum = series(&EXP2_SERIES, f);
    sum * f64::from_bits((n + BIASED).to_bits() << 52)
}

/// A polynomial in `x`, lowest coefficient first.
fn series<const N: usize>(coefficients: &[f64; N], x: f64) -> f64 {
    let [.., last] = coefficients[..] else { return 0.0 };
    coefficients.iter().rev().skip(1).fold(last, |sum, c| sum * x + c)
}

/// The graph's `==` of Reals: of the very same numbers, which is what hash-consing and integers in lanes need.
#[expect(clippy::float_cmp, reason = "the operation is exact equality")]
pub fn equal(a: f64, b: f64) -> bool {
    a == b
}

/// The graph's `min`: one instruction, and the same everywhere because no operand is a NaN.
pub fn min(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

/// The graph's `max`.
pub fn max(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

/// `x` brought into `lo..=hi`; a NaN is `lo`.
pub fn clamp(x: f64, lo: f64, hi: f64) -> f64 {
    min(max(x, lo), hi)
}

/// ⌊a / b⌋; a divisor below 1 counts as 1.
pub fn floor_div(a: i128, b: i128) -> i128 {
    a.div_euclid(b.max(1))
}

/// ⌈a / b⌉; a divisor below 1 counts as 1.
pub fn ceil_div(a: i128, b: i128) -> i128 {
    -floor_div(-a, b)
}

/// `x` rounded down, without a call into the maths library where the target has no instruction for it.
pub fn floor(x: f64) -> f64 {
    round_by(x, |r| if r > x { r - 1.0 } else { r })
}

/// `x` rounded up; see [`floor`].
pub fn ceil(x: f64) -> f64 {
    round_by(x, |r| if r < x { r + 1.0 } else { r })
}

/// Adding 2^52 rounds to the nearest integer; `step` then moves to the wanted side.
fn round_by(x: f64, step: impl Fn(f64) -> f64) -> f64 {
    let nearest = ((x.abs() + TWO_52) - TWO_52).copysign(x);
    let rounded = step(nearest).copysign(x);
    if x.abs() < TWO_52 { rounded } else { x }
}
