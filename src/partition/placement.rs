//! Placements read and written one axis at a time: every rule decides each mesh axis on its own.

use super::Placement;
use crate::graph::{DimId, OpGraph, ValueId};
use crate::layout::{AxisId, Layout};
use smallvec::SmallVec;

/// What one mesh axis does to a value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum AxisUse {
    /// Every rank along the axis has the same.
    Whole,
    /// The axis splits this dimension.
    Split(DimId),
    /// Every rank along the axis has a term of the sum.
    Partial,
}

impl Placement {
    /// What `axis` does.
    pub fn on(&self, axis: AxisId) -> AxisUse {
        if self.partial.contains(&axis) {
            return AxisUse::Partial;
        }
        let split = self.dims.iter().find(|(_, axes)| axes.contains(&axis));
        split.map_or(AxisUse::Whole, |(dim, _)| AxisUse::Split(*dim))
    }

    /// The same placement with `axis` doing `to`.
    #[must_use]
    pub fn with(mut self, axis: AxisId, to: AxisUse) -> Self {
        self.partial.retain(|a| *a != axis);
        for (_, axes) in &mut self.dims {
            axes.retain(|a| *a != axis);
        }
        self.dims.retain(|(_, axes)| !axes.is_empty());
        match to {
            AxisUse::Whole => {}
            AxisUse::Partial => {
                self.partial.push(axis);
                self.partial.sort();
            }
            AxisUse::Split(dim) => match self.dims.binary_search_by_key(&dim, |(d, _)| *d) {
                Ok(at) => {
                    self.dims[at].1.push(axis);
                    self.dims[at].1.sort();
                }
                Err(at) => self.dims.insert(at, (dim, std::iter::once(axis).collect())),
            },
        }
        self
    }

    /// The axes of `dim`, outermost first.
    pub fn axes_of(&self, dim: DimId) -> &[AxisId] {
        self.dims.iter().find(|(d, _)| *d == dim).map_or(&[], |(_, axes)| axes)
    }

    /// Every axis that splits a dimension or leaves a partial sum, in mesh order.
    pub fn axes(&self) -> Vec<AxisId> {
        let split = self.dims.iter().flat_map(|(_, axes)| axes.iter().copied());
        let mut all: Vec<_> = split.chain(self.partial.iter().copied()).collect();
        all.sort();
        all
    }

    /// The placement of the finished sum: partial axes whole.
    #[must_use]
    pub fn summed(&self) -> Self {
        Self { dims: self.dims.clone(), partial: SmallVec::new() }
    }

    /// Whether a rank holds as much of a value here as at `other`: the same axes split it.
    pub(super) fn is_as_large_as(&self, other: &Self) -> bool {
        self.partial.is_empty() && other.partial.is_empty() && self.axes() == other.axes()
    }

    /// The same with each axis' use replaced by `f` of it.
    #[must_use]
    pub fn map(&self, f: impl Fn(AxisUse) -> AxisUse) -> Self {
        self.axes().into_iter().fold(Self::default(), |p, a| p.with(a, f(self.on(a))))
    }

    /// What is left of it for a value that has only `dims`.
    #[must_use]
    pub fn restricted(&self, dims: &[DimId]) -> Self {
        self.map(|u| match u {
            AxisUse::Split(d) if !dims.contains(&d) => AxisUse::Whole,
            AxisUse::Whole | AxisUse::Split(_) | AxisUse::Partial => u,
        })
    }

    /// Text such as `B:dp S:cp,tp +tp`, dimensions in the value's order; `whole` where no axis does anything.
    pub fn text(&self, value: ValueId, graph: &OpGraph, layout: &Layout) -> String {
        let names = |axes: &[AxisId]| layout.names(axes).join(",");
        let dims = graph.value(value).dims.iter().filter(|d| !self.axes_of(**d).is_empty());
        let mut parts: Vec<_> = dims.map(|d| format!("{}:{}", graph.dim(*d).name, names(self.axes_of(*d)))).collect();
        if !self.partial.is_empty() {
            parts.push(format!("sum:{}", names(&self.partial)));
        }
        if parts.is_empty() { "whole".into() } else { parts.join(" ") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_of_a_dimension_stay_in_mesh_order() {
        let s = AxisUse::Split(DimId(1));
        let placement = Placement::default().with(AxisId(2), s).with(AxisId(1), s).with(AxisId(0), AxisUse::Partial);
        assert_eq!(placement.axes_of(DimId(1)), [AxisId(1), AxisId(2)]);
        assert_eq!(placement.on(AxisId(0)), AxisUse::Partial);
        assert_eq!(placement.clone().with(AxisId(1), AxisUse::Whole).axes_of(DimId(1)), [AxisId(2)]);
        assert_eq!(placement.summed().restricted(&[]), Placement::default());
    }
}
