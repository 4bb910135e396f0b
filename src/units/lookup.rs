//! Unit text (`GB/s`, `ktok`, `%`) to a scale and a [`Unit`].

use super::{Base, Unit};
use smol_str::SmolStr;

/// How many base units one written unit is: an exact ratio of whole numbers.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Scale {
    /// Numerator.
    pub num: i128,
    /// Denominator.
    pub den: i128,
}

impl Scale {
    fn times(self, other: Self) -> Option<Self> {
        let num = self.num.checked_mul(other.num)?;
        let den = self.den.checked_mul(other.den)?;
        let g = gcd(num, den);
        Some(Self { num: num / g, den: den / g })
    }

    fn inverse(self) -> Self {
        Self { num: self.den, den: self.num }
    }
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Why unit text means nothing.
#[derive(Clone, PartialEq, Debug)]
pub struct UnitError {
    /// The piece that is not known.
    pub piece: String,
    /// What was surely meant, if that is plain.
    pub meant: Option<String>,
    /// What the piece looks like, in words, where that helps.
    pub note: Option<&'static str>,
}

const DECIMAL: &[(&str, i128)] = &[
    ("k", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
    ("P", 1_000_000_000_000_000),
    ("E", 1_000_000_000_000_000_000),
    ("Z", 1_000_000_000_000_000_000_000),
];
const BINARY: &[(&str, i128)] = &[("Ki", 1 << 10), ("Mi", 1 << 20), ("Gi", 1 << 30), ("Ti", 1 << 40), ("Pi", 1 << 50)];
const SMALL: &[(&str, i128)] = &[("n", 1_000_000_000), ("u", 1_000_000), ("m", 1_000)];

/// The scale and unit of `text`. `user` says which units the program declares.
pub fn lookup(text: &str, user: &dyn Fn(&str) -> bool) -> Result<(Scale, Unit), UnitError> {
    let mut pieces = text.split('/');
    let first = pieces.next().unwrap_or_default();
    let (mut scale, mut unit) = piece(first, user)?;
    for p in pieces {
        let (s, u) = piece(p, user)?;
        scale = scale.times(s.inverse()).ok_or_else(|| unknown(text))?;
        unit = unit.div(&u);
    }
    Ok((scale, unit))
}

/// A unit's text, its prefixes above 1, whether it takes those below, its own scale, and the unit.
type Family<'a> = (&'a str, &'a [&'a [(&'a str, i128)]], bool, Scale, Unit);

fn whole(num: i128) -> Scale {
    Scale { num, den: 1 }
}

fn piece(text: &str, user: &dyn Fn(&str) -> bool) -> Result<(Scale, Unit), UnitError> {
    let watt = || Unit::base(Base::Joule).div(&Unit::time());
    let plain = |scale: Scale, unit: Unit| Ok((scale, unit));
    match text {
        "%" | "pp" => return plain(Scale { num: 1, den: 100 }, Unit::none()),
        "$" => return plain(whole(1), Unit::base(Base::Dollar)),
        "min" => return plain(whole(60), Unit::time()),
        "h" => return plain(whole(3_600), Unit::time()),
        "day" => return plain(whole(86_400), Unit::time()),
        "Wh" => return plain(whole(3_600), Unit::base(Base::Joule)),
        "kWh" => return plain(whole(3_600_000), Unit::base(Base::Joule)),
        "W" => return plain(whole(1), watt()),
        "kW" => return plain(whole(1_000), watt()),
        "MW" => return plain(whole(1_000_000), watt()),
        "mW" => return plain(Scale { num: 1, den: 1_000 }, watt()),
        _ => {}
    }
    // `MAC` is two FLOP, `b` an eighth of a byte.
    let families: &[Family] = &[
        ("B", &[BINARY, DECIMAL], false, whole(1), Unit::bytes()),
        ("b", &[BINARY, DECIMAL], false, Scale { num: 1, den: 8 }, Unit::bytes()),
        ("s", &[], true, whole(1), Unit::time()),
        ("Hz", &[DECIMAL], false, whole(1), Unit::none().div(&Unit::time())),
        ("FLOP", &[DECIMAL], false, whole(1), Unit::flop()),
        ("OP", &[DECIMAL], false, whole(1), Unit::flop()),
        ("MAC", &[DECIMAL], false, whole(2), Unit::flop()),
        ("J", &[DECIMAL], true, whole(1), Unit::base(Base::Joule)),
        ("tok", &[BINARY, DECIMAL], false, whole(1), Unit::base(Base::Tok)),
        ("seq", &[], false, whole(1), Unit::base(Base::Seq)),
        ("req", &[], false, whole(1), Unit::base(Base::Req)),
        ("step", &[], false, whole(1), Unit::base(Base::Step)),
    ];
    for (name, prefixes, small, scale, unit) in families {
        let Some(prefix) = text.strip_suffix(name) else { continue };
        if prefix.is_empty() {
            return plain(*scale, unit.clone());
        }
        if let Some((_, n)) = prefixes.iter().flat_map(|t| t.iter()).find(|(p, _)| *p == prefix) {
            return scale.times(whole(*n)).map(|s| (s, unit.clone())).ok_or_else(|| unknown(text));
        }
        if *small && let Some((_, n)) = SMALL.iter().find(|(p, _)| *p == prefix) {
            return plain(Scale { num: scale.num, den: scale.den * n }, unit.clone());
        }
    }
    if user(text) {
        return plain(whole(1), Unit::base(Base::User(SmolStr::new(text))));
    }
    Err(unknown(text))
}

/// Look-alikes people type, and what they mean.
fn unknown(text: &str) -> UnitError {
    let error = |meant: Option<String>, note| UnitError { piece: text.to_string(), meant, note };
    let lower = text.to_ascii_lowercase();
    if let Some(prefix) = lower.strip_suffix("bps") {
        let p = prefix.to_ascii_uppercase().replace('K', "k");
        return if text.ends_with("Bps") {
            error(Some(format!("{p}B/s")), Some("bytes per second"))
        } else {
            error(Some(format!("{p}b/s")), Some("bits per second"))
        };
    }
    for tail in ["flop/s", "flops", "flop"] {
        if let Some(prefix) = lower.strip_suffix(tail)
            && prefix.len() <= 1
        {
            let p = prefix.to_ascii_uppercase().replace('K', "k");
            return error(Some(format!("{p}FLOP")), Some("a count of operations; a rate is `FLOP/s`"));
        }
    }
    let words = [
        ("token", "tok"),
        ("tokens", "tok"),
        ("toks", "tok"),
        ("sequence", "seq"),
        ("sequences", "seq"),
        ("seqs", "seq"),
        ("sec", "s"),
        ("secs", "s"),
        ("seconds", "s"),
        ("hour", "h"),
        ("hours", "h"),
        ("hr", "h"),
        ("days", "day"),
        ("mins", "min"),
        ("minutes", "min"),
        ("usd", "$"),
        ("steps", "step"),
        ("requests", "req"),
        ("percent", "%"),
        ("us", "us"),
        ("µs", "us"),
    ];
    if let Some((_, meant)) = words.iter().find(|(w, _)| *w == lower) {
        return error(Some((*meant).to_string()), None);
    }
    let known = [
        "B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB", "b", "kb", "Mb", "Gb", "Tb", "s", "ms", "us", "ns",
        "FLOP", "GFLOP", "TFLOP", "PFLOP", "W", "kW", "J", "tok", "ktok", "Mtok", "Gtok", "Ttok", "seq",
    ];
    let fits: Vec<_> = known.iter().filter(|k| k.eq_ignore_ascii_case(text)).collect();
    match fits.as_slice() {
        [one] => error(Some((**one).to_string()), None),
        // `gb`: bits or bytes, nobody can tell.
        [_, _, ..] => UnitError {
            piece: text.to_string(),
            meant: None,
            note: Some("`B` is bytes, `b` is bits: write one of the two with a capital prefix"),
        },
        [] => {
            let near = known.iter().filter(|_| text.len() <= 8).min_by_key(|k| strsim::damerau_levenshtein(k, text));
            error(
                near.filter(|k| strsim::damerau_levenshtein(k, text) == 1 && text.len() > 1).map(|k| (*k).into()),
                None,
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ok(text: &str) -> (i128, i128, String) {
        let (s, u) = lookup(text, &|n| n == "img").expect(text);
        (s.num, s.den, u.to_string())
    }

    #[test]
    fn prefixes_and_quotients() {
        assert_eq!(ok("GiB"), (1 << 30, 1, "B".into()));
        assert_eq!(ok("Gb/s"), (125_000_000, 1, "B/s".into()));
        assert_eq!(ok("$/h"), (1, 3_600, "$/s".into()));
        assert_eq!(ok("us"), (1, 1_000_000, "s".into()));
        assert_eq!(ok("TFLOP/s"), (1_000_000_000_000, 1, "FLOP/s".into()));
        assert_eq!(ok("MAC"), (2, 1, "FLOP".into()));
        assert_eq!(ok("ktok"), (1_000, 1, "tok".into()));
        assert_eq!(ok("Kitok").0, 1_024);
        assert_eq!(ok("img"), (1, 1, "img".into()));
        assert_eq!(ok("%"), (1, 100, String::new()));
    }

    #[test]
    fn look_alikes_are_named() {
        let meant = |t: &str| lookup(t, &|_| false).expect_err(t).meant;
        assert_eq!(meant("Gbps").as_deref(), Some("Gb/s"));
        assert_eq!(meant("GBps").as_deref(), Some("GB/s"));
        assert_eq!(meant("TFLOPS").as_deref(), Some("TFLOP"));
        assert_eq!(meant("token").as_deref(), Some("tok"));
        assert_eq!(meant("gib").as_deref(), Some("GiB"));
        assert_eq!(meant("gb"), None, "bits or bytes: not to be guessed");
        assert_eq!(meant("wibble"), None);
    }
}
