//! Sets of devices as ranges of their positions in tree order.

/// Devices, as disjoint ranges in order that do not touch: from, and one past the last.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Devices {
    /// The ranges.
    pub ranges: Vec<(i64, i64)>,
}

impl Devices {
    /// Every device of a cluster of `n`.
    pub fn all(n: i64) -> Self {
        Self { ranges: vec![(0, n)] }
    }

    /// The union of ranges in any order.
    pub(super) fn of(mut ranges: Vec<(i64, i64)>) -> Self {
        ranges.retain(|(a, b)| a < b);
        ranges.sort_unstable();
        let mut out: Vec<(i64, i64)> = Vec::new();
        for (a, b) in ranges {
            match out.last_mut() {
                Some((_, end)) if a <= *end => *end = b.max(*end),
                _ => out.push((a, b)),
            }
        }
        Self { ranges: out }
    }

    /// How many.
    pub fn count(&self) -> i64 {
        self.ranges.iter().map(|(a, b)| b - a).sum()
    }

    /// Those of both.
    #[must_use]
    pub fn both(&self, other: &Self) -> Self {
        let mut out = Vec::new();
        let (mut i, mut j) = (0, 0);
        while let (Some((a, b)), Some((c, d))) = (self.ranges.get(i), other.ranges.get(j)) {
            out.push((*a.max(c), *b.min(d)));
            if b <= d {
                i += 1;
            } else {
                j += 1;
            }
        }
        Self::of(out)
    }

    /// Those not in `other`.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        let mut gaps = Vec::new();
        let mut from = i64::MIN;
        for (a, b) in &other.ranges {
            gaps.push((from, *a));
            from = *b;
        }
        gaps.push((from, i64::MAX));
        self.both(&Self { ranges: gaps })
    }
}
