//! How a quantity is written for people: a prefix that fits, three or four digits.

use super::{Base, Unit};

const BYTES: &[(f64, &str)] = &[
    (1_125_899_906_842_624.0, "PiB"),
    (1_099_511_627_776.0, "TiB"),
    (1_073_741_824.0, "GiB"),
    (1_048_576.0, "MiB"),
    (1_024.0, "KiB"),
    (1.0, "B"),
];
const RATE: &[(f64, &str)] = &[(1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")];
const FLOP: &[(f64, &str)] = &[
    (1e21, "ZFLOP"),
    (1e18, "EFLOP"),
    (1e15, "PFLOP"),
    (1e12, "TFLOP"),
    (1e9, "GFLOP"),
    (1e6, "MFLOP"),
    (1.0, "FLOP"),
];
const TIME: &[(f64, &str)] =
    &[(86_400.0 * 2.0, "day"), (7_200.0, "h"), (1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")];
const RATES: &[(f64, &str)] = &[(1e9, "GHz"), (1e6, "MHz"), (1e3, "kHz"), (1.0, "Hz")];

/// `value`, in base units of `unit`, as text: `72.4 GiB`, `40.2 TFLOP/s`, `2.10 ms`, `8,192 tok`.
pub fn show(value: f64, unit: &Unit) -> String {
    let scaled = |value: f64, steps: &[(f64, &str)], tail: &str| {
        let (scale, name) = steps.iter().find(|(s, _)| value.abs() >= *s).unwrap_or(&steps[steps.len() - 1]);
        format!("{} {name}{tail}", digits(value / scale))
    };
    if *unit == Unit::none().div(&Unit::time()) {
        scaled(value, RATES, "")
    } else if *unit == Unit::bytes() {
        scaled(value, BYTES, "")
    } else if *unit == Unit::bandwidth() {
        scaled(value, RATE, "")
    } else if *unit == Unit::flop() {
        scaled(value, FLOP, "")
    } else if *unit == Unit::flop_rate() {
        scaled(value, FLOP, "/s")
    } else if *unit == Unit::time() {
        match value {
            v if v.abs() >= 172_800.0 => format!("{} day", digits(v / 86_400.0)),
            v if v.abs() >= 7_200.0 => format!("{} h", digits(v / 3_600.0)),
            0.0 => "0 s".into(),
            v => scaled(v, &TIME[2..], ""),
        }
    } else if *unit == Unit::base(Base::Dollar) {
        format!("${}", digits(value))
    } else if *unit == Unit::base(Base::Dollar).div(&Unit::time()) {
        format!("{} $/h", digits(value * 3_600.0))
    } else if *unit == Unit::base(Base::Joule).div(&Unit::time()) {
        format!("{} W", digits(value))
    } else if unit.is_none() {
        digits(value)
    } else {
        format!("{} {unit}", digits(value))
    }
}

/// Whole numbers in full with separators; others with about three digits that matter.
fn digits(value: f64) -> String {
    if value.fract().abs() <= 0.0 && value.abs() < 1e15 {
        return separated(value as i64);
    }
    match value.abs() {
        v if v >= 1e15 => format!("{value:.3e}"),
        v if v >= 1_000.0 => separated(value.round() as i64),
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 1.0 => format!("{value:.2}"),
        v if v >= 0.001 => format!("{value:.3}"),
        _ => format!("{value:.2e}"),
    }
}

fn separated(value: i64) -> String {
    let digits = value.unsigned_abs().to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    if value < 0 { format!("-{out}") } else { out }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_read_these() {
        assert_eq!(show(80.0 * 1_073_741_824.0, &Unit::bytes()), "80 GiB");
        assert_eq!(show(5e10, &Unit::bandwidth()), "50 GB/s");
        assert_eq!(show(989.4e12, &Unit::flop_rate()), "989 TFLOP/s");
        assert_eq!(show(0.0021, &Unit::time()), "2.10 ms");
        assert_eq!(show(8192.0, &Unit::base(Base::Tok)), "8,192 tok");
        assert_eq!(show(2.5 / 3600.0, &Unit::base(Base::Dollar).div(&Unit::time())), "2.50 $/h");
    }
}
