//! An evaluated layout: mesh, rules, storage, pipeline. Sizes are nodes of the expression graph.

mod axes;
mod pass;
mod selector;
mod storage;

pub use axes::{Axis, AxisId, NameId, NamedAxis, Side};
pub use pass::Pass;
pub use selector::{PathPart, Scope, Selector, SelectorPart};
pub use storage::{Bucket, Format, Hold, Reduce, Store, Tier, Update};

use crate::expr;
use crate::source::Span;

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
    pub axes: Vec<NameId>,
    /// What it does.
    pub action: Action,
    /// Whether ranks may take shares that differ.
    pub unequal: bool,
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
    /// All but the results of these kinds of operation.
    Except(Vec<KeptKind>),
    /// All but what enters each n-th iteration.
    Every(i64),
    /// `?`: those that were chosen, by position among the values of the op graph; none until then.
    Chosen(Vec<u32>),
}

impl RecomputeWhat {
    /// Whether it makes nothing again.
    pub fn is_nothing(&self) -> bool {
        match self {
            Self::None => true,
            Self::Chosen(values) => values.is_empty(),
            Self::All | Self::Values(_) | Self::Except(_) | Self::Every(_) => false,
        }
    }
}

/// `matmul`, `matmul.every(2)` in `ops(keep = […])`: results that are saved.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeptKind {
    /// The kind, as the language calls the operator; `matmul` is any product.
    pub kind: String,
    /// Every so many in program order.
    pub every: i64,
}

/// An `overlap` item.
#[derive(Clone, Debug)]
pub struct Overlap {
    /// The regions whose communication it speaks of.
    pub scope: Scope,
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
    /// Tokens sent to their experts.
    Dispatch,
    /// Results of experts sent back.
    Combine,
    /// What comes from the host or from drives.
    Fetch,
    /// What goes there.
    Evict,
}

impl Comm {
    /// As the language writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gather => "gather",
            Self::Reduce => "reduce",
            Self::P2p => "p2p",
            Self::Reshard => "reshard",
            Self::Dispatch => "dispatch",
            Self::Combine => "combine",
            Self::Fetch => "fetch",
            Self::Evict => "evict",
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
    pub axes: Vec<NameId>,
    /// The cluster level their groups must lie in, by position (innermost first).
    pub level: usize,
    /// Directions of that level's torus they lie along, by position; none where any will do.
    pub along: Vec<usize>,
    /// The item.
    pub span: Span,
}

/// `OP over AXES via METHOD` of attention.
#[derive(Clone, Debug)]
pub struct AttentionVia {
    /// The axes.
    pub axes: Vec<AxisId>,
    /// The regions it holds in.
    pub scope: Scope,
    /// How keys and values meet queries.
    pub method: AttentionMethod,
    /// Whether each rank takes two blocks of the sequence, one from each end.
    pub zigzag: bool,
    /// The item.
    pub span: Span,
}

/// `OP over AXES via METHOD` of a collective.
#[derive(Clone, Debug)]
pub struct CollectiveVia {
    /// A kind of collective, or what it is for: `all_reduce`, `gather`, `dispatch`.
    pub of: String,
    /// Over these axes or some of them.
    pub axes: Vec<AxisId>,
    /// The regions it holds in.
    pub scope: Scope,
    /// The algorithm; none leaves it to the cost model.
    pub method: Option<String>,
    /// Where the algorithm is named.
    pub method_span: Span,
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
    /// Fine axes, outermost first: the last is fastest.
    pub axes: Vec<Axis>,
    /// The axes users name: those of the mesh, then folded ones.
    pub named: Vec<NamedAxis>,
    /// Fine axes along which a grouped dimension, such as key heads, is copied and not split: there are more ranks
    /// than indices.
    pub copies: Vec<(String, AxisId)>,
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
    /// `OP over … via …` of collectives.
    pub vias: Vec<CollectiveVia>,
    /// `update`, if there is one.
    pub update: Option<Update>,
    /// What is right and not priced yet: what it is, and where. Commands that price refuse it.
    pub later: Vec<(String, Span)>,
    /// The axis of the pipeline, if there is one.
    pub pipeline: Option<AxisId>,
    /// The `mesh` item.
    pub mesh_span: Option<Span>,
}

impl Layout {
    /// Where `recompute ?` is first written, if it is.
    pub fn open_recompute(&self) -> Option<Span> {
        self.recompute.iter().find(|r| matches!(r.what, RecomputeWhat::Chosen(_))).map(|r| r.span)
    }

    /// Makes again what was chosen where that is open: values by position in the op graph, ascending.
    pub fn choose(&mut self, values: &[u32]) {
        for r in &mut self.recompute {
            if let RecomputeWhat::Chosen(list) = &mut r.what {
                *list = values.to_vec();
            }
        }
    }
}
