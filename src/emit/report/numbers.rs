//! Numbers in units people read.

/// Bytes of a GiB.
pub(super) const GIB: f64 = 1_073_741_824.0;

/// Three significant digits without an exponent: `0.34`, `6.95`, `48.0`, `512`.
pub(super) fn short(x: f64) -> String {
    match x.abs() {
        a if !a.is_finite() => "?".into(),
        a if a >= 99.95 => format!("{x:.0}"),
        a if a >= 9.995 => format!("{x:.1}"),
        a if a >= 0.0995 || a == 0.0 => format!("{x:.2}"),
        a if a >= 0.00995 => format!("{x:.3}"),
        _ => format!("{x:.1e}"),
    }
}

/// With a decimal prefix: `1.50 T`, `70.6 G`; the caller appends the unit.
pub(super) fn scaled(x: f64) -> String {
    let (divisor, prefix) = match x.abs() {
        a if a >= 999.5e12 => (1e15, "P"),
        a if a >= 999.5e9 => (1e12, "T"),
        a if a >= 999.5e6 => (1e9, "G"),
        a if a >= 999.5e3 => (1e6, "M"),
        a if a >= 999.5 => (1e3, "k"),
        _ => (1.0, ""),
    };
    format!("{} {prefix}", short(x / divisor))
}

/// A count of parameters: `8.03 B`, `406 B`, `1.02 T`.
pub(super) fn params(n: u64) -> String {
    scaled(n as f64).replace('G', "B").trim_end().into()
}

/// Seconds: `48.0 s`, `812 ms`, `41.0 us`.
pub(in crate::emit) fn seconds(s: f64) -> String {
    let (divisor, unit) = time_unit(s);
    format!("{} {unit}", short(s / divisor))
}

/// The unit a time of this size is given in, and its length in seconds.
pub(super) fn time_unit(s: f64) -> (f64, &'static str) {
    match s {
        s if s >= 0.9995 || !s.is_finite() => (1.0, "s"),
        s if s >= 0.9995e-3 => (1e-3, "ms"),
        _ => (1e-6, "us"),
    }
}

/// A long time: `132 days`, `14.2 hours`, `3 years`.
pub(super) fn duration(s: f64) -> String {
    match s / 86400.0 {
        d if d >= 3652.5 => format!("{} years", short(d / 365.25)),
        d if d >= 2.0 => format!("{} days", short(d)),
        _ => format!("{} hours", short(s / 3600.0)),
    }
}

/// GiB of memory: `39.3 GiB`.
pub(in crate::emit) fn gib(bytes: f64) -> String {
    match bytes.abs() {
        b if b >= 0.1 * GIB || b == 0.0 => format!("{:.1} GiB", bytes / GIB),
        _ => format!("{:.1} MiB", bytes / GIB * 1024.0),
    }
}

/// Dollars: `$10.92`, `$2.60 M`, `$0.0012`.
pub(super) fn dollars(x: f64) -> String {
    match x.abs() {
        a if !a.is_finite() => "$?".into(),
        a if a >= 10_000.0 => format!("${}", scaled(x).replace('G', "B").trim_end()),
        a if a >= 0.1 || a == 0.0 => format!("${x:.2}"),
        _ => format!("${}", short(x)),
    }
}

/// With thousands apart: `129,024`.
pub(super) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// A share: `49.1%`.
pub(super) fn percent(x: f64) -> String {
    if x.is_finite() { format!("{:.1}%", 100.0 * x) } else { "?%".into() }
}

/// Runs of equal neighbours: what they are, and the first and last index.
pub(in crate::emit) fn runs<T: PartialEq>(items: &[T]) -> Vec<(&T, usize, usize)> {
    let mut out: Vec<(&T, usize, usize)> = Vec::new();
    for (i, item) in items.iter().enumerate() {
        match out.last_mut() {
            Some((same, _, last)) if *same == item => *last = i,
            _ => out.push((item, i, i)),
        }
    }
    out
}

/// `3`, or `1-14`.
pub(in crate::emit) fn range(first: usize, last: usize) -> String {
    if first == last { first.to_string() } else { format!("{first}-{last}") }
}

/// `1 node`, `64 nodes`.
pub(super) fn plural(n: u64, word: &str) -> String {
    format!("{} {word}{}", grouped(n), if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_three_digits_and_change_unit_at_the_right_place() {
        assert_eq!([short(47.96), short(6.951), short(511.6), short(0.339)], ["48.0", "6.95", "512", "0.34"]);
        assert_eq!([scaled(1.5e12), scaled(999.9e9), scaled(12.0)], ["1.50 T", "1.00 T", "12.0 "]);
        assert_eq!([params(8_030_261_248), params(405_853_388_800)], ["8.03 B", "406 B"]);
        assert_eq!([seconds(0.8123), seconds(1.0), seconds(41e-6)], ["812 ms", "1.00 s", "41.0 us"]);
        assert_eq!([dollars(10.923), dollars(2.6e6), dollars(0.0)], ["$10.92", "$2.60 M", "$0.00"]);
        assert_eq!([grouped(129_024), grouped(7), grouped(1_000_000)], ["129,024", "7", "1,000,000"]);
        assert_eq!(short(f64::NAN), "?");
    }
}
