//! What partitioning hands on: data only.

use crate::diagnostics::Code;
use crate::expr;
use crate::graph::{DimId, OpId, RegionId, ValueId};
use crate::layout::{AxisId, Tier};
use crate::source::Span;
use indexmap::IndexMap;
use petgraph::graph::{DiGraph, NodeIndex};
use smallvec::SmallVec;

/// Dimensions to axes, plus the axes over which the value is a partial sum.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct Placement {
    /// Sharded dimensions by ascending id, each with its axes in mesh order, outermost first.
    pub dims: Vec<(DimId, SmallVec<[AxisId; 2]>)>,
    /// Axes over which it must still be summed.
    pub partial: SmallVec<[AxisId; 2]>,
}

/// A condition that must hold where the layout is legal.
#[derive(Clone, Debug)]
pub struct Obligation {
    /// A Bool node.
    pub cond: expr::Id,
    /// What breaks.
    pub what: Broken,
    /// Where to point.
    pub span: Span,
}

/// What an [`Obligation`] is about, for the message.
#[derive(Clone, Debug)]
pub enum Broken {
    /// `dim` does not divide over `axes`.
    Indivisible {
        /// The dimension.
        dim: DimId,
        /// Its axes.
        axes: Vec<AxisId>,
        /// The rule that gave the axes.
        rule: Span,
    },
    /// Something else: a code and a finished sentence.
    Other(Code, String),
}

/// A tensor of the partitioned program, by position in [`ShardedGraph::tensors`].
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TensorId(pub u32);

/// A tensor, of which every rank holds a piece. One step at most writes it, all at once; what no step writes is there
/// from the start: the data, parameters as they rest, the gradient of a loss, and what the optimizer made.
#[derive(Clone, PartialEq, Debug)]
pub struct Tensor {
    /// The value it is of.
    pub value: ValueId,
    /// What of it.
    pub content: Content,
    /// Where it is.
    pub place: Placement,
    /// Axes over which the piece that `place` leaves a rank is cut once more, as what is stored rests.
    pub cut: SmallVec<[AxisId; 2]>,
    /// The dimension it is cut along; flat where there is none: in the order it lies, padded to the group.
    pub along: Option<DimId>,
    /// A dimension of which a rank's indices are no one block, and the axes that cut it: the rank holds its own block of
    /// those that `place` names, and every block of the others. So are experts while their slots lie at the tokens.
    pub spread: Option<(DimId, SmallVec<[AxisId; 2]>)>,
    /// Whether a rank holds one block of it at a time and sees the others pass, as keys and values in a ring.
    pub passing: bool,
}

/// What a tensor holds of its value.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Content {
    /// The value itself; of a parameter, as the step found it.
    Value,
    /// The gradient of the losses in it, or a term of that sum.
    Gradient,
    /// A statistic of the op that makes it over a dimension that is split, by its position among that op's.
    Statistic(u8),
    /// The parameter as the optimizer leaves it.
    Updated,
}

/// A step of the partitioned program: a node of [`ShardedGraph::flow`].
pub type StepId = NodeIndex<u32>;

/// Which pass of training a step belongs to.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Phase {
    /// Once for each microbatch.
    Forward,
    /// Once for each microbatch.
    Backward,
    /// Once a step: gradients summed, parameters gathered after the update.
    Update,
}

/// One step on every rank.
#[derive(Clone, Debug)]
pub struct Step {
    /// Compute or communicate.
    pub kind: StepKind,
    /// The tensors it reads. A forward: the operands of its op, or what enters its chain, in program order, then its
    /// statistics. A backward: the gradient of the result, what it needs again, statistics, and the gradient it adds to,
    /// if there is one. A collective: what it moves.
    pub reads: SmallVec<[TensorId; 4]>,
    /// The tensors it writes. A backward: the gradients of those operands that have one, in the order of a forward's
    /// reads; a collective: each in the place of the one it reads there.
    pub writes: SmallVec<[TensorId; 2]>,
    /// When.
    pub phase: Phase,
    /// The unit it belongs to.
    pub unit: u32,
    /// The region it belongs to.
    pub region: RegionId,
    /// Whether it runs again in the backward because its result is not saved.
    pub recomputed: bool,
    /// Whether it makes the gradient of a parameter, or moves it: a schedule may run it later than the rest.
    pub weight: bool,
    /// Where its cause is written.
    pub span: Span,
}

/// What a step computes of its op.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Task {
    /// The result from the operands; of an op that ends a chain, through the whole chain.
    Forward,
    /// Gradients of operands from that of the result.
    Backward,
    /// A rank's part of the statistic of this position, over a dimension that is split.
    Statistic(u8),
    /// The sum of the tensors it reads.
    Sum,
}

/// The kinds of step.
#[derive(Clone, Debug)]
pub enum StepKind {
    /// What costs nothing: a renaming, a gradient handed on as it is, a sum made in place by the products before it.
    Free {
        /// The op.
        op: OpId,
        /// What of it.
        task: Task,
    },
    /// Work on one rank.
    Compute {
        /// The op.
        op: OpId,
        /// What of it.
        task: Task,
        /// Sizes on one rank.
        work: Work,
    },
    /// A collective.
    Collective(Collective),
}

/// Work on one rank, with local sizes.
#[derive(Clone, Debug)]
pub enum Work {
    /// `batch` products of m × k by k × n.
    Matmul {
        /// Rows.
        m: expr::Id,
        /// Columns.
        n: expr::Id,
        /// Contracted.
        k: expr::Id,
        /// How many.
        batch: expr::Id,
    },
    /// Fused attention.
    Attention {
        /// Queries on the rank.
        q: expr::Id,
        /// Keys on the rank.
        kv: expr::Id,
        /// Query heads on the rank.
        heads: expr::Id,
        /// Key heads on the rank.
        kv_heads: expr::Id,
        /// Width of q and k.
        d_qk: expr::Id,
        /// Width of v.
        d_v: expr::Id,
        /// Sequences on the rank.
        batch: expr::Id,
        /// Share of the pairs of queries and keys that is computed: half where causal, less within a window.
        pairs: expr::Id,
        /// The backward of it.
        backward: bool,
    },
    /// Bytes through memory and operations on them.
    Elementwise {
        /// Bytes read.
        read: expr::Id,
        /// Bytes written.
        write: expr::Id,
        /// FLOP.
        flops: expr::Id,
    },
}

/// Kinds of collective.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[expect(missing_docs, reason = "the field's own names")]
pub enum CollectiveKind {
    AllReduce,
    AllGather,
    ReduceScatter,
    AllToAll,
    /// Free: every rank keeps its own piece.
    Slice,
    /// Neighbours in a ring, as ring attention does.
    Permute,
}

impl CollectiveKind {
    /// `all-reduce`
    pub fn name(self) -> &'static str {
        match self {
            Self::AllReduce => "all-reduce",
            Self::AllGather => "all-gather",
            Self::ReduceScatter => "reduce-scatter",
            Self::AllToAll => "all-to-all",
            Self::Slice => "slice",
            Self::Permute => "permute",
        }
    }
}

/// A collective over one group of ranks.
#[derive(Clone, Debug)]
pub struct Collective {
    /// Its kind.
    pub kind: CollectiveKind,
    /// Its axes, outermost first.
    pub axes: SmallVec<[AxisId; 2]>,
    /// The larger of a rank's input and output, in bytes; of a permute, what a rank passes on in all its rounds,
    /// one fewer than the ring has ranks.
    pub bytes: expr::Id,
    /// What is moved; of a bucket of parameters or gradients, its first parameter.
    pub value: ValueId,
    /// What it is for.
    pub purpose: Purpose,
    /// Whether it sums or takes a maximum.
    pub maximum: bool,
}

/// What a collective is for: overlaps and reports speak of these.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Purpose {
    /// An activation or its gradient changes placement.
    Reshard,
    /// A stored parameter is gathered for use.
    GatherParam,
    /// A gradient is summed over the ranks that share the parameter.
    ReduceGrad,
    /// Statistics of a norm, softmax or loss.
    Statistics,
    /// Tokens on their way to experts, or their gradients on the way back.
    Dispatch,
    /// Results of experts on the way back to their tokens, or the gradients of those.
    Combine,
}

/// A value kept from the forward for the backward, on one rank and for one microbatch.
#[derive(Clone, Debug)]
pub struct Saved {
    /// The value.
    pub value: ValueId,
    /// What of it is kept, and where; none for an attention's statistics.
    pub tensor: Option<TensorId>,
    /// Bytes on one rank.
    pub bytes: expr::Id,
    /// Where it waits for the backward.
    pub tier: Tier,
    /// The region that produces it.
    pub region: RegionId,
    /// Where it is written.
    pub span: Span,
}

/// A value, or a copy of one in another place, that may be kept or made again: where `recompute = ?` leaves it open.
#[derive(Clone, Debug)]
pub struct Open {
    /// The value.
    pub value: ValueId,
    /// The steps of the forward that make it; none where it can only be kept.
    pub steps: Option<Vec<StepId>>,
    /// Bytes on one rank while it is kept; none where it cannot be kept.
    pub kept: Option<expr::Id>,
    /// Bytes that lie ready for the backward where it is made again.
    pub ready: expr::Id,
    /// Whether it is kept as long as nothing is chosen.
    pub needed: bool,
    /// What it is made from: positions before its own.
    pub from: Vec<usize>,
}

/// A parameter on one rank.
#[derive(Clone, Debug)]
pub struct ShardedParam {
    /// Position in [`crate::graph::OpGraph::params`].
    pub param: u32,
    /// Elements in use on one rank.
    pub elements: expr::Id,
    /// Placement in use.
    pub placement: Placement,
    /// Units that use it, in order; more than one where it is tied.
    pub users: Vec<u32>,
    /// Axes over which its gradient is a partial sum.
    pub grad_axes: SmallVec<[AxisId; 2]>,
    /// Elements at rest: parameter.
    pub rest_param: expr::Id,
    /// Elements at rest: gradient.
    pub rest_grad: expr::Id,
    /// Elements at rest: optimizer state and master copy.
    pub rest_state: expr::Id,
    /// The gradient the optimizer reads; none where no gradient reaches the parameter.
    pub gradient: Option<TensorId>,
    /// What the optimizer makes of it, as the state rests.
    pub updated: TensorId,
    /// The same as the parameter rests: what the next step begins with.
    pub settled: TensorId,
    /// Where parameter, gradient, state and master copy rest, and in what format.
    pub rests: [Resting; 4],
}

/// Where a class of a parameter rests.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Resting {
    /// The kind of memory.
    pub tier: Tier,
    /// Bytes of an element, where they are not the precision's.
    pub width: Option<f64>,
}

/// One unit, partitioned.
#[derive(Clone, Debug)]
pub struct ShardedUnit {
    /// Steps of a microbatch's forward, in order.
    pub forward: Vec<StepId>,
    /// Steps of a microbatch's backward, in order; recomputation first.
    pub backward: Vec<StepId>,
    /// Steps run once an update.
    pub update: Vec<StepId>,
    /// Values kept for the backward.
    pub saved: Vec<Saved>,
    /// What may be kept or made again, in the order it is made, as long as nothing is chosen.
    pub open: Vec<Open>,
    /// Largest bytes alive at one moment of the backward beside what was saved: operands, results, gathered copies.
    pub transient: expr::Id,
    /// Bytes that gradients of its parameters need where they are made later than the rest: of each product with a
    /// parameter the other operand and the gradient of the result.
    pub late: expr::Id,
    /// Parameters it owns.
    pub params: Vec<ShardedParam>,
    /// Bytes that leave it for the next unit, on one rank.
    pub boundary: expr::Id,
}

/// The partitioned program.
#[derive(Clone, Debug)]
pub struct ShardedGraph {
    /// Steps and their order of dependence.
    pub flow: DiGraph<Step, (), u32>,
    /// One entry for each unit of the op graph.
    pub units: Vec<ShardedUnit>,
    /// Placement of each value, by [`ValueId`].
    pub placements: Vec<Placement>,
    /// What steps read and write.
    pub tensors: Vec<Tensor>,
    /// The ops of each elementwise chain in program order, by its last; an op in no chain is one of its own.
    pub chains: IndexMap<OpId, Vec<OpId>>,
    /// What must hold.
    pub obligations: Vec<Obligation>,
}

/// Bytes of an element in each class; a fraction where a block shares a scale.
#[derive(Clone, Debug)]
pub struct Bytes {
    /// Parameters at rest and in use.
    pub param: f64,
    /// Saved activations.
    pub act: f64,
    /// Activation collectives.
    pub wire: f64,
    /// Gradient buffer.
    pub grad: f64,
    /// Gradient reduction on the wire.
    pub reduce: f64,
    /// Parameter gathers on the wire.
    pub gather: f64,
    /// Logits.
    pub logits: f64,
    /// Kept by a norm for its backward, for an element of its operand, beside that operand.
    pub norm_extra: f64,
    /// Kept by a softmax, for an element of its result, beside that result.
    pub softmax_extra: f64,
    /// Held by the loss at its fullest moment, for a logit, beside the logits and their gradient.
    pub loss_extra: f64,
}
