//! What is stored in pieces: a rank's part of a tensor cut once more, flat or along a dimension.

use super::array::{Array, Space};
use super::execute::Run;
use parc::graph::DimId;
use parc::partition::Tensor;
use smallvec::SmallVec;

/// Positions in the piece that the placement leaves a rank.
const FLAT: DimId = DimId(u32::MAX - 2);

/// The positions of a cut tensor that a device holds: cut by one axis after another, each time into equal pieces, the
/// last one perhaps short.
fn positions(run: &Run<'_>, tensor: &Tensor, device: usize) -> Vec<usize> {
    let whole = run.space(tensor, device);
    let mut blocks: Vec<Vec<usize>> = match tensor.along.and_then(|d| whole.at(d)) {
        None => (0..whole.size()).map(|p| vec![p]).collect(),
        Some(at) => {
            let inner: usize = whole.lens()[at + 1..].iter().product();
            let len = whole.index[at].len();
            (0..len).map(|i| (0..whole.size()).filter(|p| p / inner % len == i).collect()).collect()
        }
    };
    for axis in &tensor.cut {
        let each = blocks.len().div_ceil(run.size(*axis));
        let from = (run.coordinate(device, *axis) * each).min(blocks.len());
        let to = (from + each).min(blocks.len());
        blocks = blocks[from..to].to_vec();
    }
    let mut all: Vec<_> = blocks.into_iter().flatten().collect();
    all.sort_unstable();
    all
}

/// What a device holds of a tensor.
pub(super) fn space(run: &Run<'_>, tensor: &Tensor, device: usize) -> Space {
    if tensor.cut.is_empty() {
        return run.space(tensor, device);
    }
    Space { dims: vec![FLAT], index: vec![positions(run, tensor, device)] }
}

/// The cut of what the placement leaves a device.
pub(super) fn cut(run: &Run<'_>, tensor: &Tensor, device: usize, piece: &Array) -> Array {
    if tensor.cut.is_empty() {
        return piece.clone();
    }
    let index = positions(run, tensor, device);
    let data = index.iter().map(|p| piece.data[*p]).collect();
    Array { space: Space { dims: vec![FLAT], index: vec![index] }, data }
}

/// What a device holds of `old`, named as `new` names it: by positions where either is cut.
pub(super) fn opened(run: &Run<'_>, old: &Tensor, new: &Tensor, device: usize, held: &Array) -> Array {
    if old.cut.is_empty() == new.cut.is_empty() {
        return held.clone();
    }
    let whole = Tensor { cut: SmallVec::new(), along: None, ..old.clone() };
    let space = run.space(&whole, device);
    if old.cut.is_empty() {
        let index = (0..space.size()).collect();
        return Array { space: Space { dims: vec![FLAT], index: vec![index] }, data: held.data.clone() };
    }
    // One element of the space after another: the piece is spread out, what is elsewhere is left out.
    Array { space: Space { dims: vec![FLAT], index: held.space.index.clone() }, data: held.data.clone() }
}

/// Where the elements of `to` lie in `from`: pairs of positions.
pub(super) fn spots(to: &Space, from: &Space) -> Vec<(usize, usize)> {
    if to == from {
        return (0..to.size()).map(|at| (at, at)).collect();
    }
    let by_position = from.dims == [FLAT] && to.dims != [FLAT];
    if by_position {
        return from.index[0].iter().enumerate().map(|(at, p)| (*p, at)).collect();
    }
    let mut out = Vec::new();
    let find: Vec<Vec<Option<usize>>> = to
        .dims
        .iter()
        .zip(&to.index)
        .map(|(d, index)| {
            let own = from.of(*d);
            index.iter().map(|i| own.binary_search(i).ok()).collect()
        })
        .collect();
    let (lens, theirs) = (to.lens(), from.lens());
    let axes: Vec<_> = to.dims.iter().map(|d| from.at(*d).expect("the same dimensions")).collect();
    let strides: Vec<usize> = axes.iter().map(|at| theirs[at + 1..].iter().product()).collect();
    let mut at = 0;
    super::array::walk(to, &[], |_, point| {
        let offset = point.iter().enumerate().try_fold(0, |o, (d, p)| Some(o + find[d][*p]? * strides[d]));
        out.extend(offset.map(|from| (at, from)));
        at += 1;
    });
    debug_assert_eq!(at, lens.iter().product::<usize>());
    out
}
