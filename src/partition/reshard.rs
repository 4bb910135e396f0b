//! The steps that bring a value from one placement to another.
//!
//! Slices come first and gathers last, with sums scattered in between, so that each step moves what is smallest.

use super::placement::AxisUse::{self, Partial, Split, Whole};
use super::{CollectiveKind, Placement};
use crate::layout::AxisId;
use smallvec::SmallVec;

/// One collective of a reshard.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Move {
    pub(super) kind: CollectiveKind,
    pub(super) axes: SmallVec<[AxisId; 2]>,
    /// Where the value is larger, before or after: its bytes are the collective's.
    pub(super) larger: Placement,
    /// Where it is afterwards.
    pub(super) after: Placement,
}

/// The moves from `from` to `to`; a partial sum `to` asks for is left as it is.
///
/// The axes of a dimension cut it one inside the other: only the innermost can leave, and one that comes cuts what is
/// there further. Where an outer one goes or comes, those inside it are gathered first and sliced again afterwards.
pub(super) fn moves(from: &Placement, to: &Placement) -> Vec<Move> {
    let mut out = Vec::new();
    let mut now = from.clone();
    while let Some((kind, axes, target)) = next(&now, to) {
        let after = axes.iter().fold(now.clone(), |p, a| p.with(*a, target));
        let larger = if kind == CollectiveKind::AllGather { after.clone() } else { now.clone() };
        out.push(Move { kind, axes, larger, after: after.clone() });
        now = after;
    }
    out
}

/// Axes of one collective.
type Axes = SmallVec<[AxisId; 2]>;

/// The next move: a group of axes is one collective over their product.
fn next(now: &Placement, to: &Placement) -> Option<(CollectiveKind, Axes, AxisUse)> {
    for kind in [CollectiveKind::Slice, CollectiveKind::ReduceScatter, CollectiveKind::AllToAll] {
        for (dim, wanted) in &to.dims {
            let there = now.axes_of(*dim);
            let Some(coming) = wanted.strip_prefix(there) else { continue };
            let Some(first) = coming.first() else { continue };
            let before = now.on(*first);
            let axes: Axes = coming.iter().copied().take_while(|a| now.on(*a) == before).collect();
            let fits = match (before, kind) {
                (Whole, CollectiveKind::Slice) | (Partial, CollectiveKind::ReduceScatter) => true,
                (Split(d), CollectiveKind::AllToAll) => d != *dim && now.axes_of(d).ends_with(&axes),
                _ => false,
            };
            if fits {
                return Some((kind, axes, Split(*dim)));
            }
        }
    }
    let sums: Axes = now.partial.iter().copied().filter(|a| to.on(*a) == Whole).collect();
    if !sums.is_empty() {
        return Some((CollectiveKind::AllReduce, sums, Whole));
    }
    // Gathers that are asked for, then those that make way.
    for asked in [true, false] {
        for (dim, axes) in &now.dims {
            let stays = axes.iter().zip(to.axes_of(*dim)).take_while(|(a, b)| a == b).count();
            let goes = |a: &&AxisId| !asked || to.on(**a) == Whole;
            let mut going: Axes = axes[stays..].iter().rev().take_while(goes).copied().collect();
            going.reverse();
            if !going.is_empty() {
                return Some((CollectiveKind::AllGather, going, Whole));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::DimId;

    const B: DimId = DimId(0);
    const S: DimId = DimId(1);
    const DP: AxisId = AxisId(0);
    const TP: AxisId = AxisId(1);

    fn kinds(from: &Placement, to: &Placement) -> Vec<(CollectiveKind, usize)> {
        moves(from, to).into_iter().map(|m| (m.kind, m.axes.len())).collect()
    }

    #[test]
    fn a_sum_over_two_axes_is_scattered_before_it_is_reduced() {
        let partial = Placement::default().with(DP, Partial).with(TP, Partial);
        let split = Placement::default().with(TP, Split(S));
        assert_eq!(kinds(&partial, &split), [(CollectiveKind::ReduceScatter, 1), (CollectiveKind::AllReduce, 1)]);
        assert_eq!(kinds(&partial, &Placement::default()), [(CollectiveKind::AllReduce, 2)]);
    }

    #[test]
    fn an_outer_axis_goes_before_an_inner_one_comes() {
        let from = Placement::default().with(DP, Split(B)).with(TP, Split(S));
        let to = Placement::default().with(TP, Split(B));
        assert_eq!(kinds(&from, &to), [(CollectiveKind::AllGather, 1), (CollectiveKind::AllToAll, 1)]);
        assert_eq!(moves(&from, &to).last().map(|m| m.after.clone()), Some(to));
    }

    /// Rank (i, j) of S:dp,tp holds block 2i + j of four, and of S:tp half j: what it lacks is not in its group of dp.
    #[test]
    fn an_outer_axis_goes_or_comes_after_the_inner_ones_went() {
        let both = Placement::default().with(DP, Split(S)).with(TP, Split(S));
        let inner = Placement::default().with(TP, Split(S));
        let gather = CollectiveKind::AllGather;
        assert_eq!(kinds(&both, &inner), [(gather, 2), (CollectiveKind::Slice, 1)]);
        assert_eq!(kinds(&inner, &both), [(gather, 1), (CollectiveKind::Slice, 2)]);
        let partial = inner.clone().with(DP, Partial);
        let scatter = CollectiveKind::ReduceScatter;
        assert_eq!(kinds(&partial, &both), [(gather, 1), (scatter, 1), (CollectiveKind::Slice, 1)]);
        // The inner one is free to go.
        assert_eq!(kinds(&both, &Placement::default().with(DP, Split(S))), [(gather, 1)]);
        assert_eq!(moves(&partial, &both).last().map(|m| m.after.clone()), Some(both));
    }
}
