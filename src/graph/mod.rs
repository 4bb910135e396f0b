//! The dataflow graph of one job: ops over named dimensions, before any sharding.
//!
//! A repeat's body is here once, with its count. Sizes are nodes of the expression graph.

mod count;
mod law;
mod piece;
mod print;
mod verify;

pub use count::pairs;
pub use law::Law;
pub use print::{dot, escaped, language_name, text};
pub use verify::verify;

use crate::expr;
use crate::layout::{Class, PathPart};
use crate::source::Span;
use petgraph::graph::{DiGraph, NodeIndex};

/// An op: a node of [`OpGraph::flow`]. Program order is index order.
pub type OpId = NodeIndex<u32>;

/// A dimension, by position in [`OpGraph::dims`].
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DimId(pub u32);

/// A tensor value, by position in [`OpGraph::values`].
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ValueId(pub u32);

/// A region, by position in [`OpGraph::regions`]; 0 is the whole model.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RegionId(pub u32);

/// A named dimension.
#[derive(Clone, PartialEq, Debug)]
pub struct Dim {
    /// Its name: `H`.
    pub name: String,
    /// Extent, padding included; of the batch dimension, of one microbatch over all ranks that shard it.
    pub extent: expr::Id,
    /// Extent without padding.
    pub true_extent: expr::Id,
    /// Where the extent comes from.
    pub data: Option<DataDim>,
    /// `K for N`: this dimension groups that one, and may be replicated where its axis is larger than it.
    pub groups: Option<DimId>,
    /// `Rb[Tb]`: the extent at each index of another dimension, and their sum; `extent` is the mean, rounded up.
    pub ragged: Option<Ragged>,
    /// Token slots of an expert: what the dispatch that made them says of their load.
    pub slots: Option<Slots>,
    /// Where it is declared.
    pub span: Span,
}

impl Dim {
    /// A dimension with nothing special about it.
    pub fn plain(name: impl Into<String>, extent: expr::Id, span: Span) -> Self {
        let name = name.into();
        Self { name, extent, true_extent: extent, data: None, groups: None, ragged: None, slots: None, span }
    }
}

/// Extents that depend on the index in another dimension.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Ragged {
    /// The dimension whose index decides.
    pub over: DimId,
    /// The sum of the extents over all its indices.
    pub total: i64,
}

/// Token slots of an expert.
#[derive(Clone, PartialEq, Debug)]
pub struct Slots {
    /// Whose slots they are.
    pub experts: DimId,
    /// Load of an expert over the mean load.
    pub skew: Law,
    /// Each expert's rows are rounded up to a multiple of this.
    pub tile: i64,
}

/// What sort of data dimension.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum DataDim {
    /// Unit `seq`: the batch.
    Batch,
    /// Unit `tok`: positions.
    Sequence,
    /// Another unit.
    Other,
}

/// A named piece of the model.
#[derive(Clone, PartialEq, Debug)]
pub struct Region {
    /// Its path from the model: `decoder`, an iteration, `attention`.
    pub path: Vec<PathPart>,
    /// Where it is declared.
    pub span: Span,
}

/// A tensor value.
#[derive(Clone, PartialEq, Debug)]
pub struct Value {
    /// As the model names it; `""` for an unnamed intermediate.
    pub name: String,
    /// Its dimensions, in the order written.
    pub dims: Vec<DimId>,
    /// The region that produces it.
    pub region: RegionId,
    /// What it is.
    pub role: ValueRole,
    /// Where it is written.
    pub span: Span,
}

/// What a value is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ValueRole {
    /// Comes with the data; token ids carry no gradient.
    Input,
    /// A parameter, by position in [`OpGraph::params`].
    Param(u32),
    /// Computed.
    Activation,
    /// Computed, and stored as logits.
    Logits,
    /// The loss: no dimensions.
    Loss,
}

impl ValueRole {
    /// The class whose rules place it.
    pub fn class(self) -> Class {
        if let Self::Param(_) = self { Class::Param } else { Class::Act }
    }
}

/// A parameter: one path, used once or more.
#[derive(Clone, PartialEq, Debug)]
pub struct Parameter {
    /// Its value.
    pub value: ValueId,
    /// `decoder.attention.wq`: regions and name; of iterations, only the numbers of those that are not all alike.
    pub path: String,
    /// The unit that owns it; a later unit may use it too (tied).
    pub unit: u32,
}

/// An operation.
#[derive(Clone, PartialEq, Debug)]
pub struct Op {
    /// What it does.
    pub kind: OpKind,
    /// Operands in order.
    pub inputs: Vec<ValueId>,
    /// Result.
    pub output: ValueId,
    /// The region it is in.
    pub region: RegionId,
    /// The unit it is in.
    pub unit: u32,
    /// The expression in the model, or the call of the block that holds it.
    pub span: Span,
}

/// The operators.
#[derive(Clone, PartialEq, Debug)]
pub enum OpKind {
    /// Sum over `contracted` of the product of two operands.
    Contract {
        /// Dimensions both have and the result lacks.
        contracted: Vec<DimId>,
    },
    /// Elementwise, broadcast by name.
    Map(MapFn),
    /// Normalisation: operands x, and where they are given gain and bias.
    Norm {
        /// Root mean square, or mean and variance.
        kind: NormKind,
        /// The normalised dimensions.
        over: Vec<DimId>,
    },
    /// Softmax.
    Softmax {
        /// The normalised dimension.
        over: DimId,
    },
    /// Lookup of ids (first operand) in a table (second).
    Embed {
        /// The table's row dimension.
        over: DimId,
        /// The ids whose rows are added up: a bag.
        bag: Option<DimId>,
    },
    /// The first rows of a table, one for each index of another dimension: learned positions.
    Take {
        /// The table's row dimension.
        from: DimId,
        /// The dimension that takes its place.
        to: DimId,
    },
    /// Fused attention of q, k, v.
    Attention(Attention),
    /// Loss of logits against the data.
    CrossEntropy {
        /// The class dimension; none where each logit is a class of its own.
        over: Option<DimId>,
        /// Pieces the rows are computed in, one after another.
        chunks: i64,
    },
    /// Free renaming of a dimension.
    Rename {
        /// Old.
        from: DimId,
        /// New.
        to: DimId,
    },
    /// One dimension becomes several, outermost first.
    Split {
        /// Old.
        from: DimId,
        /// New.
        into: Vec<DimId>,
    },
    /// Several dimensions become one.
    Merge {
        /// Old, outermost first.
        from: Vec<DimId>,
        /// New.
        into: DimId,
    },
    /// Sum over dimensions.
    Sum {
        /// The dimensions summed.
        over: Vec<DimId>,
    },
    /// Operands one after another along a dimension. Each one's piece is what it has and the result lacks.
    Concat {
        /// The dimension of the result.
        over: DimId,
    },
    /// Neighbouring indices go together: each first dimension becomes the second, of another extent.
    Regroup {
        /// Old and new.
        pairs: Vec<(DimId, DimId)>,
    },
    /// The experts each token goes to, with their weights, from the scores.
    Select {
        /// The dimension of experts.
        experts: DimId,
        /// The dimension of the choices of one token.
        choices: DimId,
        /// Groups the experts come in.
        groups: i64,
        /// How many of a token's best groups it may choose from; 0 for all.
        kept: i64,
    },
    /// Tokens (first operand) to the slots of the experts their choices (second) name.
    Dispatch(Route),
    /// Slots (first operand) back to their tokens, weighted by the choices (second) and added up.
    Combine(Route),
    /// Work described by its numbers alone: an operator the user declared, and a few of the language.
    Custom(Box<Custom>),
}

/// The dimensions of a dispatch or combine.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Route {
    /// Experts.
    pub experts: DimId,
    /// Slots of an expert.
    pub slots: DimId,
    /// Choices of a token.
    pub choices: DimId,
}

/// Work described by its numbers, over the whole of its dimensions.
#[derive(Clone, PartialEq, Debug)]
pub struct Custom {
    /// The operator.
    pub name: String,
    /// FLOP of the forward.
    pub flops: expr::Id,
    /// FLOP of the backward.
    pub backward_flops: expr::Id,
    /// Bytes read, where they are not the operands.
    pub read: Option<expr::Id>,
    /// Bytes written, where they are not the result.
    pub write: Option<expr::Id>,
    /// Operands the backward needs, by position.
    pub saves: Vec<usize>,
    /// Dimensions summed over: a result from operands split along one is a partial sum.
    pub contracts: Vec<DimId>,
    /// Dimensions an operand is gathered over first.
    pub whole: Vec<DimId>,
}

/// Dimensions of an attention.
#[derive(Clone, PartialEq, Debug)]
pub struct Attention {
    /// Whether a query sees only what came before it.
    pub causal: bool,
    /// How many of the nearest positions a query sees, where not all.
    pub window: Option<expr::Id>,
    /// Positions of queries.
    pub sequence: DimId,
    /// Positions of keys: those of the queries in self attention.
    pub keys: DimId,
    /// Query heads.
    pub heads: DimId,
    /// Key and value heads; equal to `heads` in plain multi-head attention.
    pub kv_heads: DimId,
    /// Width of a head of q and k.
    pub head_dim: DimId,
    /// Width of a head of v.
    pub value_dim: DimId,
    /// What a server keeps of a token to serve the next: k and v unless said.
    pub cache: Vec<ValueId>,
}

/// Elementwise functions.
#[derive(Copy, Clone, PartialEq, Debug)]
#[expect(missing_docs, reason = "each is the function of the same name")]
pub enum MapFn {
    Add,
    Sub,
    Mul,
    Div,
    Silu,
    Gelu,
    Relu,
    /// Rotary position embedding with its base.
    Rope(f64),
    /// Product with a constant.
    Scale(f64),
    /// Sum with a constant.
    Offset(f64),
    /// A constant divided by it.
    Inverse(f64),
    Sigmoid,
    Tanh,
    /// The same some positions earlier or later.
    Shift(i64),
    Cast,
}

/// Normalisations.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum NormKind {
    /// Root mean square.
    Rms,
    /// Mean and variance.
    Layer,
}

/// A piece of the model a pipeline may cut around.
#[derive(Clone, Debug)]
pub struct Unit {
    /// `embed`, `decoder`, `head`: the top-level region or repeat.
    pub name: String,
    /// How many copies run one after another; 1 outside a repeat.
    pub count: i64,
    /// Whether it is an iteration of a repeat.
    pub repeated: bool,
    /// Where it is written.
    pub span: Span,
}

/// A use of a value by an op.
#[derive(Copy, Clone, Debug)]
pub struct Use {
    /// The value.
    pub value: ValueId,
    /// Which operand.
    pub operand: u32,
}

/// The dataflow graph.
#[derive(Clone, Default, Debug)]
pub struct OpGraph {
    /// Ops and which results they use. Operands that are inputs or parameters have no edge.
    pub flow: DiGraph<Op, Use, u32>,
    /// Dimensions.
    pub dims: Vec<Dim>,
    /// Regions; 0 is the whole model.
    pub regions: Vec<Region>,
    /// Values.
    pub values: Vec<Value>,
    /// Parameters.
    pub params: Vec<Parameter>,
    /// Units in program order.
    pub units: Vec<Unit>,
    producer: Vec<Option<OpId>>,
}

/// A point in the making of a graph.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Mark {
    ops: usize,
    dims: usize,
    regions: usize,
    values: usize,
    params: usize,
}

impl Mark {
    /// How many regions there were.
    pub fn regions(&self) -> usize {
        self.regions
    }

    /// How many parameters there were.
    pub fn params(&self) -> usize {
        self.params
    }
}

/// What a graph gained since a [`Mark`], units apart.
#[derive(Clone, PartialEq, Debug)]
pub struct Suffix {
    ops: Vec<Op>,
    dims: Vec<Dim>,
    regions: Vec<Region>,
    values: Vec<Value>,
    params: Vec<Parameter>,
}

impl OpGraph {
    /// A graph with the region of the whole model.
    pub fn new(span: Span) -> Self {
        Self { regions: vec![Region { path: Vec::new(), span }], ..Self::default() }
    }

    /// Adds a value.
    pub fn add_value(&mut self, value: Value) -> ValueId {
        self.values.push(value);
        self.producer.push(None);
        ValueId(self.values.len() as u32 - 1)
    }

    /// Adds an op that produces its output, which was added before.
    pub fn add_op(&mut self, op: Op) -> OpId {
        let uses: Vec<_> = op.inputs.iter().map(|v| (*v, self.producer[v.0 as usize])).collect();
        let output = op.output;
        let id = self.flow.add_node(op);
        for (operand, (value, producer)) in uses.into_iter().enumerate() {
            if let Some(producer) = producer {
                self.flow.add_edge(producer, id, Use { value, operand: operand as u32 });
            }
        }
        self.producer[output.0 as usize] = Some(id);
        id
    }

    /// Takes everything away that came after `mark`, and gives it.
    pub fn split_off(&mut self, mark: &Mark) -> Suffix {
        let ops = (mark.ops..self.flow.node_count()).rev().filter_map(|n| self.flow.remove_node(OpId::new(n)));
        let mut ops: Vec<_> = ops.collect();
        ops.reverse();
        self.producer.truncate(mark.values);
        Suffix {
            ops,
            dims: self.dims.split_off(mark.dims),
            regions: self.regions.split_off(mark.regions),
            values: self.values.split_off(mark.values),
            params: self.params.split_off(mark.params),
        }
    }

    /// Puts back what [`Self::split_off`] gave.
    pub fn append(&mut self, suffix: Suffix) {
        self.dims.extend(suffix.dims);
        self.regions.extend(suffix.regions);
        self.params.extend(suffix.params);
        for value in suffix.values {
            self.add_value(value);
        }
        for op in suffix.ops {
            self.add_op(op);
        }
    }

    /// How far the graph has come.
    pub fn mark(&self) -> Mark {
        Mark {
            ops: self.flow.node_count(),
            dims: self.dims.len(),
            regions: self.regions.len(),
            values: self.values.len(),
            params: self.params.len(),
        }
    }

    /// Adds a dimension.
    pub fn add_dim(&mut self, dim: Dim) -> DimId {
        self.dims.push(dim);
        DimId(self.dims.len() as u32 - 1)
    }

    /// The value `id` names.
    pub fn value(&self, id: ValueId) -> &Value {
        &self.values[id.0 as usize]
    }

    /// The dimension `id` names.
    pub fn dim(&self, id: DimId) -> &Dim {
        &self.dims[id.0 as usize]
    }

    /// The op that produces `value`; none for inputs and parameters.
    pub fn producer(&self, value: ValueId) -> Option<OpId> {
        self.producer[value.0 as usize]
    }

    /// Ops in program order.
    pub fn ops(&self) -> impl DoubleEndedIterator<Item = (OpId, &Op)> {
        self.flow.node_indices().map(|id| (id, &self.flow[id]))
    }

    /// Text of a value for messages: `a[B, S, F]`.
    pub fn describe(&self, id: ValueId) -> String {
        let value = self.value(id);
        let dims: Vec<_> = value.dims.iter().map(|d| self.dim(*d).name.as_str()).collect();
        format!("{}[{}]", value.name, dims.join(", "))
    }

    /// `decoder.*.attention.core`: a region's path as a selector would name it.
    pub fn selector_path(&self, id: RegionId) -> String {
        self.path_text(id, &|part| match part {
            PathPart::Name(name) => Some(name.clone()),
            PathPart::Iterations { count: 1, first, of } if *of > 1 => Some(first.to_string()),
            PathPart::Iterations { .. } => Some("*".into()),
        })
    }

    /// `decoder.attention.core`: a region's path with iterations left out.
    pub fn region_path(&self, id: RegionId) -> String {
        self.path_text(id, &|part| if let PathPart::Name(name) = part { Some(name.clone()) } else { None })
    }

    /// `decoder.attention.core`, or `decoder.3.attention.core` where iterations differ: the path of a parameter.
    pub fn param_path(&self, id: RegionId) -> String {
        self.path_text(id, &|part| match part {
            PathPart::Name(name) => Some(name.clone()),
            PathPart::Iterations { first, .. } => (!part.is_every()).then(|| first.to_string()),
        })
    }

    fn path_text(&self, id: RegionId, part: &dyn Fn(&PathPart) -> Option<String>) -> String {
        self.regions[id.0 as usize].path.iter().filter_map(part).collect::<Vec<_>>().join(".")
    }
}
