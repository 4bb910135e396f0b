//! Sizes on one rank as nodes of the expression graph, with an obligation wherever something must divide.

use super::{Broken, Bytes, Obligation, Placement};
use crate::expr::{self, Node};
use crate::graph::{DimId, OpGraph, Slots, ValueId, ValueRole};
use crate::layout::{AxisId, Layout};
use crate::source::Span;
use indexmap::{IndexMap, IndexSet};

/// Bytes of a token id.
const ID_BYTES: f64 = 4.0;
/// Bytes of an element of a statistic: fp32.
pub(super) const STATISTIC_BYTES: f64 = 4.0;

/// Makes sizes.
pub(super) struct Sizes<'a> {
    pub(super) graph: &'a OpGraph,
    pub(super) layout: &'a Layout,
    pub(super) bytes: &'a Bytes,
    pub(super) exprs: &'a mut expr::Graph,
    pub(super) obligations: Vec<Obligation>,
    reasons: IndexMap<(DimId, AxisId), Span>,
    seen: IndexSet<(DimId, Vec<AxisId>)>,
}

impl<'a> Sizes<'a> {
    pub(super) fn new(
        graph: &'a OpGraph,
        layout: &'a Layout,
        bytes: &'a Bytes,
        exprs: &'a mut expr::Graph,
        reasons: IndexMap<(DimId, AxisId), Span>,
    ) -> Self {
        Self { graph, layout, bytes, exprs, obligations: Vec::new(), reasons, seen: IndexSet::new() }
    }

    /// How many ranks `axes` span together.
    pub(super) fn group(&mut self, axes: &[AxisId]) -> expr::Id {
        let layout = self.layout;
        self.exprs.product(axes.iter().map(|a| layout.axis(*a).size))
    }

    /// The extent of `dim` on one rank.
    pub(super) fn local(&mut self, dim: DimId, axes: &[AxisId]) -> expr::Id {
        let extent = self.graph.dim(dim).extent;
        if axes.is_empty() {
            return extent;
        }
        let ranks = self.group(axes);
        if self.graph.dim(dim).slots.is_some() {
            return self.exprs.ceil_div(extent, ranks);
        }
        if self.seen.insert((dim, axes.to_vec())) {
            let rest = self.exprs.put(Node::Mod(extent, ranks));
            let zero = self.exprs.int(0);
            let cond = self.exprs.eq(rest, zero);
            let rule = axes.iter().find_map(|a| self.reasons.get(&(dim, *a))).copied();
            let rule = rule.unwrap_or(self.graph.dim(dim).span);
            let what = Broken::Indivisible { dim, axes: axes.to_vec(), rule };
            self.obligations.push(Obligation { cond, what, span: rule });
        }
        self.exprs.put(Node::ExactDiv(extent, ranks))
    }

    /// Rows of an expert on the fullest rank of the group that shares the experts: as many as arrive, rounded up to
    /// tiles, not shared out evenly.
    fn rows(&mut self, slots: &Slots, dim: DimId, place: &Placement) -> expr::Id {
        let axes = place.axes_of(dim);
        let mut rows = self.local(dim, axes);
        if !slots.skew.is_even() {
            let sharers = place.axes_of(slots.experts);
            let (ranks, each) = (self.group(sharers), self.local(slots.experts, sharers));
            let fullest = slots.skew.largest(self.exprs, ranks, each);
            let rows_real = self.exprs.to_real(rows);
            let fuller = self.exprs.mul(rows_real, fullest);
            rows = self.exprs.put(Node::Ceil(fuller));
        }
        if slots.tile > 1 {
            let tile = self.exprs.int(slots.tile);
            let tiles = self.exprs.ceil_div(rows, tile);
            rows = self.exprs.mul(tiles, tile);
        }
        rows
    }

    /// The product of the extents of `dims` on one rank.
    pub(super) fn elements_of(&mut self, dims: &[DimId], place: &Placement) -> expr::Id {
        let graph = self.graph;
        let mut locals = Vec::new();
        for d in dims {
            locals.push(match &graph.dim(*d).slots {
                Some(slots) => self.rows(slots, *d, place),
                None => self.local(*d, place.axes_of(*d)),
            });
        }
        self.exprs.product(locals)
    }

    /// Elements of `value` on one rank.
    pub(super) fn elements(&mut self, value: ValueId, place: &Placement) -> expr::Id {
        let graph = self.graph;
        self.elements_of(&graph.value(value).dims, place)
    }

    /// A sum of two that may be of different kinds of number.
    pub(super) fn real_sum(&mut self, a: expr::Id, b: expr::Id) -> expr::Id {
        let (a, b) = (self.exprs.to_real(a), self.exprs.to_real(b));
        self.exprs.add(a, b)
    }

    /// `elements` × `each`; an Int where `each` is whole.
    pub(super) fn times(&mut self, elements: expr::Id, each: f64) -> expr::Id {
        let whole = each.fract().abs() < f64::EPSILON;
        let each = if whole { self.exprs.int(each as i64) } else { self.exprs.real(each) };
        self.exprs.mul(elements, each)
    }

    /// Bytes of `value` in memory on one rank.
    pub(super) fn held(&mut self, value: ValueId, place: &Placement) -> expr::Id {
        let each = match self.graph.value(value).role {
            ValueRole::Input => ID_BYTES,
            ValueRole::Param(_) => self.bytes.param,
            ValueRole::Activation => self.bytes.act,
            ValueRole::Logits => self.bytes.logits,
            ValueRole::Loss => STATISTIC_BYTES,
        };
        let elements = self.elements(value, place);
        self.times(elements, each)
    }

    /// Bytes of `value` or its gradient in a collective.
    pub(super) fn wire(&mut self, value: ValueId, place: &Placement) -> expr::Id {
        let each = match self.graph.value(value).role {
            ValueRole::Input => ID_BYTES,
            ValueRole::Param(_) => self.bytes.reduce,
            ValueRole::Activation | ValueRole::Logits => self.bytes.wire,
            ValueRole::Loss => STATISTIC_BYTES,
        };
        let elements = self.elements(value, place);
        self.times(elements, each)
    }
}
