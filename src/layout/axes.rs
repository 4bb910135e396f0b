//! Axes: those users name, and the fine axes they are made of.
//!
//! `fold [dp, tp] as [edp, ep]` reads the same ranks in two ways. Both are products of *fine axes*, the common
//! factorisation; placements, collectives and groups speak of fine axes only. Without folds and copies of heads each
//! mesh axis is one fine axis.

use super::Layout;
use crate::expr;
use crate::source::Span;

/// A fine axis, by position in [`Layout::axes`]; outermost first.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AxisId(pub u16);

/// A fine axis: a mesh axis, or a factor of one.
#[derive(Clone, Debug)]
pub struct Axis {
    /// The mesh axis' name; `tp.0`, `tp.1`, outermost first, where it is cut.
    pub name: String,
    /// How many ranks.
    pub size: expr::Id,
    /// Device numbers from one rank to the next.
    pub stride: expr::Id,
    /// Where the mesh axis is declared.
    pub span: Span,
}

/// An axis users name, by position in [`Layout::named`]: mesh axes first, then folded ones in text order.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NameId(pub u16);

/// An axis users name.
#[derive(Clone, Debug)]
pub struct NamedAxis {
    /// Its name.
    pub name: String,
    /// How many ranks.
    pub size: expr::Id,
    /// What it is made of, outermost first; a folded axis of one rank is made of nothing.
    pub fine: Vec<AxisId>,
    /// The folds that name it, and on which side.
    pub folds: Vec<(u16, Side)>,
    /// Where it is declared.
    pub span: Span,
}

/// The sides of `fold [from] as [to]`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Side {
    /// Listed first.
    From,
    /// Listed after `as`.
    To,
}

impl Layout {
    /// Adds a mesh axis inside those there are; strides follow from [`Layout::set_strides`].
    pub fn add_mesh_axis(&mut self, name: &str, size: expr::Id, span: Span) -> NameId {
        let fine = AxisId(self.axes.len() as u16);
        self.axes.push(Axis { name: name.into(), size, stride: size, span });
        let id = NameId(self.named.len() as u16);
        self.named.push(NamedAxis { name: name.into(), size, fine: vec![fine], folds: Vec::new(), span });
        id
    }

    /// Gives each fine axis its stride: the product of the sizes of the faster ones.
    pub fn set_strides(&mut self, graph: &mut expr::Graph) {
        let mut stride = graph.int(1);
        for axis in self.axes.iter_mut().rev() {
            axis.stride = stride;
            stride = graph.mul(stride, axis.size);
        }
    }

    /// The fine axis `id` names.
    pub fn axis(&self, id: AxisId) -> &Axis {
        &self.axes[id.0 as usize]
    }

    /// Every fine axis.
    pub fn axis_ids(&self) -> impl Iterator<Item = AxisId> + use<> {
        (0..self.axes.len() as u16).map(AxisId)
    }

    /// The axis a user calls so.
    pub fn named(&self, id: NameId) -> &NamedAxis {
        &self.named[id.0 as usize]
    }

    /// The axis of this name.
    pub fn find_axis(&self, name: &str) -> Option<NameId> {
        self.named.iter().position(|a| a.name == name).map(|at| NameId(at as u16))
    }

    /// The mesh axes, outermost first.
    pub fn mesh(&self) -> impl Iterator<Item = &NamedAxis> {
        self.named.iter().filter(|a| a.folds.iter().all(|(_, side)| *side == Side::From))
    }

    /// The fine axes of `names`, in mesh order.
    pub fn fine(&self, names: &[NameId]) -> Vec<AxisId> {
        let mut all: Vec<_> = names.iter().flat_map(|n| self.named(*n).fine.iter().copied()).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The mesh axis a fine axis is of, as a user knows it.
    pub fn mesh_name(&self, axis: AxisId) -> &str {
        self.mesh().find(|a| a.fine.contains(&axis)).map_or(&self.axis(axis).name, |a| &a.name)
    }

    /// Whether the indices of `dim` are copied along `axis`.
    pub fn copied(&self, dim: &str, axis: AxisId) -> bool {
        self.copies.iter().any(|(d, a)| *a == axis && d == dim)
    }

    /// Whether two axes have ranks in common: they share a fine axis, or stand on the two sides of a fold, whatever
    /// their sizes.
    pub fn share(&self, a: NameId, b: NameId) -> bool {
        let (a, b) = (self.named(a), self.named(b));
        let opposite = |(fold, side): &(u16, Side)| b.folds.iter().any(|(f, s)| f == fold && s != side);
        a.fine.iter().any(|f| b.fine.contains(f)) || a.folds.iter().any(opposite)
    }

    /// The names a user knows `axes` by: the axes that cover them, the widest first where several do, then factors.
    pub fn names(&self, axes: &[AxisId]) -> Vec<String> {
        self.names_where(axes, &|_| true)
    }

    /// As [`Layout::names`], of the axes that are `wide`: those of one rank are part of any name and need none.
    pub fn names_where(&self, axes: &[AxisId], wide: &dyn Fn(AxisId) -> bool) -> Vec<String> {
        let mut left: Vec<_> = axes.iter().copied().filter(|a| wide(*a)).collect();
        let of = |a: &NamedAxis| a.fine.iter().copied().filter(|f| wide(*f)).collect::<Vec<_>>();
        let mut out: Vec<(AxisId, String)> = Vec::new();
        while let Some(axis) = left.first().copied() {
            let inside = |a: &&NamedAxis| a.fine.contains(&axis) && of(a).iter().all(|f| left.contains(f));
            let widest = self.named.iter().rev().filter(inside).max_by_key(|a| of(a).len());
            let (name, covered) = match widest {
                // Of equally wide names the mesh's is the one everybody knows.
                Some(a) => {
                    let same = self.named.iter().find(|b| of(b) == of(a)).unwrap_or(a);
                    (same.name.clone(), of(same))
                }
                None => (self.axis(axis).name.clone(), vec![axis]),
            };
            left.retain(|f| !covered.contains(f));
            out.push((axis, name));
        }
        out.sort();
        out.into_iter().map(|(_, name)| name).collect()
    }

    /// Cuts a fine axis in two: `outer` ranks, each of `inner`. Every place that names it then names both.
    pub fn cut(&mut self, at: AxisId, outer: expr::Id, inner: expr::Id, graph: &mut expr::Graph) {
        let old = self.axis(at).clone();
        let mesh = self.mesh().find(|a| a.fine.contains(&at)).map_or(old.name.clone(), |a| a.name.clone());
        let stride = graph.mul(old.stride, inner);
        let i = at.0 as usize;
        self.axes[i] = Axis { size: outer, stride, ..old.clone() };
        self.axes.insert(i + 1, Axis { size: inner, ..old });
        let renumber = |list: &mut Vec<AxisId>| {
            *list = list
                .iter()
                .flat_map(|a| match a.0.cmp(&at.0) {
                    std::cmp::Ordering::Less => vec![*a],
                    std::cmp::Ordering::Equal => vec![at, AxisId(at.0 + 1)],
                    std::cmp::Ordering::Greater => vec![AxisId(a.0 + 1)],
                })
                .collect();
        };
        self.named.iter_mut().for_each(|a| renumber(&mut a.fine));
        self.stores.iter_mut().for_each(|s| renumber(&mut s.axes));
        self.overlaps.iter_mut().for_each(|o| renumber(&mut o.axes));
        self.reduces.iter_mut().for_each(|r| renumber(&mut r.axes));
        self.attention.iter_mut().for_each(|v| renumber(&mut v.axes));
        for (_, axis) in &mut self.copies {
            if *axis > at {
                axis.0 += 1;
            }
        }
        if let Some(axis) = self.pipeline.as_mut().filter(|a| **a > at) {
            axis.0 += 1;
        }
        // `tp.0`, `tp.1`: factors of one mesh axis, outermost first.
        let fine = self.mesh().find(|a| a.name == mesh).map(|a| a.fine.clone()).unwrap_or_default();
        for (n, axis) in fine.iter().enumerate() {
            self.axes[axis.0 as usize].name = format!("{mesh}.{n}");
        }
    }
}
