//! Arrays over named dimensions that know which indices of each they hold: a whole array holds all, a rank's piece some.

use parc::graph::DimId;

/// Which indices of which dimensions; the product of them.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Space {
    pub(super) dims: Vec<DimId>,
    /// Ascending indices of each dimension.
    pub(super) index: Vec<Vec<usize>>,
}

impl Space {
    pub(super) fn new(dims: Vec<DimId>, index: impl Fn(DimId) -> Vec<usize>) -> Self {
        let index = dims.iter().map(|d| index(*d)).collect();
        Self { dims, index }
    }

    pub(super) fn lens(&self) -> Vec<usize> {
        self.index.iter().map(Vec::len).collect()
    }

    pub(super) fn size(&self) -> usize {
        self.index.iter().map(Vec::len).product()
    }

    pub(super) fn at(&self, dim: DimId) -> Option<usize> {
        self.dims.iter().position(|d| *d == dim)
    }

    /// The indices of `dim`, which must be there.
    pub(super) fn of(&self, dim: DimId) -> &[usize] {
        &self.index[self.at(dim).unwrap_or_else(|| panic!("no dimension {dim:?} in {:?}", self.dims))]
    }

    /// Without `gone`.
    pub(super) fn without(&self, gone: &[DimId]) -> Self {
        let kept = self.dims.iter().copied().filter(|d| !gone.contains(d)).collect();
        Self::new(kept, |d| self.of(d).to_vec())
    }

    /// With one more dimension, innermost.
    pub(super) fn with(mut self, dim: DimId, index: Vec<usize>) -> Self {
        self.dims.push(dim);
        self.index.push(index);
        self
    }

    /// `from` under another name.
    pub(super) fn renamed(mut self, from: DimId, to: DimId) -> Self {
        self.dims.iter_mut().filter(|d| **d == from).for_each(|d| *d = to);
        self
    }

    /// Every dimension of either. What both have must hold the same indices: else ranks would mix up rows.
    pub(super) fn and(&self, other: &Self) -> Self {
        let mut all = self.clone();
        for (dim, index) in other.dims.iter().zip(&other.index) {
            match all.at(*dim) {
                Some(at) => assert_eq!(&all.index[at], index, "operands hold different indices of {dim:?}"),
                None => {
                    all.dims.push(*dim);
                    all.index.push(index.clone());
                }
            }
        }
        all
    }

    /// How far one step in each dimension of `all` goes here: nowhere in a dimension that is not here.
    fn strides(&self, all: &[DimId]) -> Vec<usize> {
        let mut own = vec![1; self.dims.len()];
        for at in (0..self.dims.len().saturating_sub(1)).rev() {
            own[at] = own[at + 1] * self.index[at + 1].len();
        }
        all.iter().map(|d| self.at(*d).map_or(0, |at| own[at])).collect()
    }
}

/// Calls `f` with the offsets in each of `spaces` of every point of `all`, and the point.
pub(super) fn walk(all: &Space, spaces: &[&Space], mut f: impl FnMut(&[usize], &[usize])) {
    let lens = all.lens();
    let size: usize = lens.iter().product();
    let strides: Vec<_> = spaces.iter().map(|s| s.strides(&all.dims)).collect();
    let mut point = vec![0; lens.len()];
    let mut offsets = vec![0; spaces.len()];
    for _ in 0..size {
        f(&offsets, &point);
        for at in (0..lens.len()).rev() {
            point[at] += 1;
            let back = point[at] == lens[at];
            for (offset, stride) in offsets.iter_mut().zip(&strides) {
                if back {
                    *offset -= stride[at] * (lens[at] - 1);
                } else {
                    *offset += stride[at];
                }
            }
            if !back {
                break;
            }
            point[at] = 0;
        }
    }
}

/// An array.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Array {
    pub(super) space: Space,
    /// Row-major.
    pub(super) data: Vec<f64>,
}

impl Array {
    pub(super) fn filled(space: Space, value: f64) -> Self {
        let data = vec![value; space.size()];
        Self { space, data }
    }

    /// By the indices of each point.
    pub(super) fn made(space: Space, mut f: impl FnMut(&[usize]) -> f64) -> Self {
        let mut data = Vec::with_capacity(space.size());
        let mut indices = vec![0; space.dims.len()];
        walk(&space, &[], |_, point| {
            for (at, p) in point.iter().enumerate() {
                indices[at] = space.index[at][*p];
            }
            data.push(f(&indices));
        });
        Self { space, data }
    }

    pub(super) fn map(&self, f: impl Fn(f64) -> f64) -> Self {
        Self { space: self.space.clone(), data: self.data.iter().map(|x| f(*x)).collect() }
    }

    /// `f` of two, broadcast by name.
    pub(super) fn zip(&self, other: &Self, f: impl Fn(f64, f64) -> f64) -> Self {
        let space = self.space.and(&other.space);
        let mut data = Vec::with_capacity(space.size());
        walk(&space, &[&self.space, &other.space], |o, _| data.push(f(self.data[o[0]], other.data[o[1]])));
        Self { space, data }
    }

    /// The product of `factors`, summed into `target`: what the target lacks is summed over.
    pub(super) fn sum_of(factors: &[&Self], target: &Space) -> Self {
        let all = factors.iter().fold(target.clone(), |s, f| s.and(&f.space));
        let mut out = Self::filled(target.clone(), 0.0);
        let mut spaces = vec![target];
        spaces.extend(factors.iter().map(|f| &f.space));
        walk(&all, &spaces, |o, _| {
            let product: f64 = factors.iter().zip(&o[1..]).map(|(f, at)| f.data[*at]).product();
            out.data[o[0]] += product;
        });
        out
    }

    /// The largest over `gone`.
    pub(super) fn max_over(&self, gone: &[DimId]) -> Self {
        let target = self.space.without(gone);
        let mut out = Self::filled(target, f64::NEG_INFINITY);
        let space = out.space.clone();
        walk(&self.space, &[&space, &self.space], |o, _| out.data[o[0]] = out.data[o[0]].max(self.data[o[1]]));
        out
    }

    /// The same with dimension `dim` read at positions `pick`, which become `index` of the dimension `named`.
    pub(super) fn picked(&self, dim: DimId, pick: &[usize], named: DimId, index: Vec<usize>) -> Self {
        let at = self.space.at(dim).expect("the dimension is there");
        let mut space = self.space.clone();
        space.dims[at] = named;
        space.index[at] = index;
        let inner: usize = self.space.lens()[at + 1..].iter().product();
        let len = self.space.index[at].len();
        let outer: usize = self.space.lens()[..at].iter().product();
        let mut data = Vec::with_capacity(space.size());
        for o in 0..outer {
            for p in pick {
                data.extend_from_slice(&self.data[(o * len + p) * inner..][..inner]);
            }
        }
        Self { space, data }
    }

    /// The part at `index` of `dim`; all of it must be here.
    pub(super) fn part(&self, dim: DimId, index: &[usize]) -> Self {
        let own = self.space.of(dim);
        let find =
            |i: &usize| own.binary_search(i).unwrap_or_else(|_| panic!("index {i} of {dim:?} is not on the rank"));
        let pick: Vec<_> = index.iter().map(find).collect();
        self.picked(dim, &pick, dim, index.to_vec())
    }

    /// The part in `space`, dimensions in its order.
    pub(super) fn within(&self, space: &Space) -> Self {
        let mut part = self.clone();
        for (dim, index) in space.dims.iter().zip(&space.index) {
            if part.space.of(*dim) != index {
                part = part.part(*dim, index);
            }
        }
        if part.space.dims == space.dims { part } else { Self::sum_of(&[&part], space) }
    }
}
