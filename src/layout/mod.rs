//! An evaluated layout: mesh, rules, storage, pipeline. Sizes are nodes of the expression graph.

mod selector;

pub use selector::{PathPart, Scope, Selector, SelectorPart};

use crate::expr;
use crate::source::Span;

/// A mesh axis, by position in [`Layout::axes`]; outermost first.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AxisId(pub u16);

/// A mesh axis.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Its name.
    pub name: String,
    /// How many ranks.
    pub size: expr::Id,
    /// Product of the sizes of the faster axes.
    pub stride: expr::Id,
    /// Where it is declared.
    pub span: Span,
}

/// What a rule speaks of.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Class {
    /// Parameters in use and at rest.
    Param,
    /// Gradients of parameters.
    Grad,
    /// Optimizer state; the master copy too, unless stored by name.
    State,
    /// The master copy.
    Master,
    /// Activations.
    Act,
    /// The key-value cache.
    Kv,
}

impl Class {
    /// As the language writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Param => "param",
            Self::Grad => "grad",
            Self::State => "state",
            Self::Master => "master",
            Self::Act => "act",
            Self::Kv => "kv",
        }
    }
}

/// A `shard` or `replicate` item.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The regions it holds in.
    pub scope: Scope,
    /// The axes it decides, each on its own.
    pub axes: Vec<AxisId>,
    /// What it does.
    pub action: Action,
    /// The item.
    pub span: Span,
}

/// What a [`Rule`] does.
#[derive(Clone, Debug)]
pub enum Action {
    /// Gives the axis to the first listed dimension the tensor has.
    Shard {
        /// Dimensions of a tensor of one of `classes`, by name.
        dims: Vec<String>,
        /// The classes spoken of.
        classes: Vec<Class>,
        /// Dimensions tried next, for activations only.
        otherwise: Vec<String>,
    },
    /// Keeps whole.
    Replicate {
        /// The classes spoken of.
        classes: Vec<Class>,
    },
}

/// A `store` item: how a class rests between uses.
#[derive(Clone, Debug)]
pub struct Store {
    /// The regions it holds in.
    pub scope: Scope,
    /// The class.
    pub class: Class,
    /// The axes it is split over at rest.
    pub axes: Vec<AxisId>,
    /// How long a gathered parameter lives.
    pub hold: Hold,
    /// `keep = gathered`: activations gathered in the forward stay for the backward.
    pub keep_gathered: bool,
    /// Buckets fetched ahead.
    pub prefetch: i64,
    /// The item.
    pub span: Span,
}

/// How long a gathered parameter lives.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Hold {
    /// Freed after use, gathered again for the backward.
    Layer,
    /// Until the backward of its microbatch.
    Microbatch,
    /// Gathered once a step.
    Step,
}

/// A `recompute` item.
#[derive(Clone, Debug)]
pub struct Recompute {
    /// The regions it holds in.
    pub scope: Scope,
    /// What is not saved.
    pub what: RecomputeWhat,
    /// The item.
    pub span: Span,
}

/// What a [`Recompute`] does not save.
#[derive(Clone, PartialEq, Debug)]
pub enum RecomputeWhat {
    /// Everything is saved.
    None,
    /// Only what enters the region is kept; outside any `in`, what enters each iteration.
    All,
    /// The values of these names.
    Values(Vec<String>),
}

/// An `overlap` item.
#[derive(Clone, Debug)]
pub struct Overlap {
    /// What may hide.
    pub comm: Comm,
    /// Over these axes; none means all.
    pub axes: Vec<AxisId>,
    /// Behind which phase.
    pub forward: bool,
    /// Behind which phase.
    pub backward: bool,
    /// Share of the hiding work's time that may be used.
    pub limit: f64,
    /// The item.
    pub span: Span,
}

/// Kinds of communication an overlap may name.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Comm {
    /// Parameters gathered from where they rest.
    Gather,
    /// Gradients summed.
    Reduce,
    /// Messages between stages.
    P2p,
    /// Reshards of activations.
    Reshard,
}

impl Comm {
    /// As the language writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gather => "gather",
            Self::Reduce => "reduce",
            Self::P2p => "p2p",
            Self::Reshard => "reshard",
        }
    }
}

/// A `pad` item.
#[derive(Clone, Debug)]
pub struct Pad {
    /// The dimension.
    pub dim: String,
    /// Rounded up to a multiple of this.
    pub to: expr::Id,
    /// The item.
    pub span: Span,
}

/// A `place` item.
#[derive(Clone, Debug)]
pub struct Place {
    /// The axes.
    pub axes: Vec<AxisId>,
    /// The cluster level their groups must lie in, by position (innermost first).
    pub level: usize,
    /// The item.
    pub span: Span,
}

/// A `reduce` item.
#[derive(Clone, Debug)]
pub struct Reduce {
    /// The axes it speaks for.
    pub axes: Vec<AxisId>,
    /// At each microbatch, or at the last; `None` follows the stores.
    pub each_microbatch: Option<bool>,
    /// The item.
    pub span: Span,
}

/// `OP over AXES via METHOD` of attention.
#[derive(Clone, Debug)]
pub struct AttentionVia {
    /// The axes.
    pub axes: Vec<AxisId>,
    /// How keys and values meet queries.
    pub method: AttentionMethod,
    /// Whether each rank takes two blocks of the sequence, one from each end.
    pub zigzag: bool,
    /// The item.
    pub span: Span,
}

/// How attention runs over a sharded sequence.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum AttentionMethod {
    /// Blocks of keys and values go round.
    Ring,
    /// Keys and values are gathered.
    AllGather,
    /// Heads are traded for sequence.
    AllToAll,
}

/// A layout with its sizes as expressions.
#[derive(Clone, Default, Debug)]
pub struct Layout {
    /// Mesh axes, outermost first: the last is fastest.
    pub axes: Vec<Axis>,
    /// `shard` and `replicate`, in text order.
    pub rules: Vec<Rule>,
    /// `store`, one entry for each class named.
    pub stores: Vec<Store>,
    /// `recompute`.
    pub recompute: Vec<Recompute>,
    /// `overlap`, one entry for each kind named.
    pub overlaps: Vec<Overlap>,
    /// `pad`.
    pub pads: Vec<Pad>,
    /// `place`.
    pub places: Vec<Place>,
    /// `reduce`.
    pub reduces: Vec<Reduce>,
    /// `attention over … via …`.
    pub attention: Vec<AttentionVia>,
    /// The axis of the pipeline, if there is one.
    pub pipeline: Option<AxisId>,
    /// The `mesh` item.
    pub mesh_span: Option<Span>,
}

impl Layout {
    /// The axis `id` names.
    pub fn axis(&self, id: AxisId) -> &Axis {
        &self.axes[id.0 as usize]
    }

    /// Every axis.
    pub fn axis_ids(&self) -> impl Iterator<Item = AxisId> + use<> {
        (0..self.axes.len() as u16).map(AxisId)
    }
}
