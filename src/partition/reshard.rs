//! The steps that bring a value from one placement to another.
//!
//! Slices come first and gathers last, with sums scattered in between, so that each step moves what is smallest.

use super::placement::AxisUse::{self, Partial, Split, Whole};
use super::{CollectiveKind, Placement};
use crate::graph::DimId;
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

/// Axes that do the same between the same two dimensions.
type Group = ((Option<DimId>, Option<DimId>), SmallVec<[AxisId; 2]>);

/// The moves from `from` to `to`; a partial sum `to` asks for is left as it is.
pub(super) fn moves(from: &Placement, to: &Placement) -> Vec<Move> {
    let mut axes = from.axes();
    axes.extend(to.axes());
    axes.sort();
    axes.dedup();
    let mut out = Vec::new();
    let mut now = from.clone();
    for kind in [
        CollectiveKind::Slice,
        CollectiveKind::ReduceScatter,
        CollectiveKind::AllToAll,
        CollectiveKind::AllReduce,
        CollectiveKind::AllGather,
    ] {
        // A group is one collective over the product of its axes.
        let mut groups: Vec<Group> = Vec::new();
        for axis in axes.iter().copied() {
            let (before, after) = (from.on(axis), to.on(axis));
            if step(before, after) != Some(kind) {
                continue;
            }
            let key = (dim(before), dim(after));
            match groups.iter_mut().find(|(k, _)| *k == key) {
                Some((_, group)) => group.push(axis),
                None => groups.push((key, std::iter::once(axis).collect())),
            }
        }
        for (_, group) in groups {
            let after = group.iter().fold(now.clone(), |p, a| p.with(*a, to.on(*a)));
            let larger = if kind == CollectiveKind::AllGather { after.clone() } else { now.clone() };
            out.push(Move { kind, axes: group, larger, after: after.clone() });
            now = after;
        }
    }
    out
}

fn dim(on: AxisUse) -> Option<DimId> {
    match on {
        Split(d) => Some(d),
        Whole | Partial => None,
    }
}

/// The table: what one axis costs.
fn step(from: AxisUse, to: AxisUse) -> Option<CollectiveKind> {
    match (from, to) {
        (Partial, Whole) => Some(CollectiveKind::AllReduce),
        (Partial, Split(_)) => Some(CollectiveKind::ReduceScatter),
        (Split(_), Whole) => Some(CollectiveKind::AllGather),
        (Split(a), Split(b)) if a != b => Some(CollectiveKind::AllToAll),
        (Whole, Split(_)) => Some(CollectiveKind::Slice),
        (Whole, Whole) | (Split(_), Split(_)) | (Whole | Split(_) | Partial, Partial) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn the_last_move_ends_where_asked() {
        let from = Placement::default().with(DP, Split(B)).with(TP, Split(S));
        let to = Placement::default().with(TP, Split(B));
        let moves = moves(&from, &to);
        assert_eq!(moves.last().map(|m| m.after.clone()), Some(to));
        assert_eq!(moves[0].kind, CollectiveKind::AllToAll);
    }
}
