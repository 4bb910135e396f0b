//! The dataflow graph of one job: ops over named dimensions, before any sharding.
//!
//! A repeat's body is here once, with its count. Sizes are nodes of the expression graph.

mod print;
mod verify;

pub use print::{dot, text};
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
#[derive(Clone, Debug)]
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
    /// Where it is declared.
    pub span: Span,
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
#[derive(Clone, Debug)]
pub struct Region {
    /// Its path from the model: `decoder`, an iteration, `attention`.
    pub path: Vec<PathPart>,
    /// Where it is declared.
    pub span: Span,
}

/// A tensor value.
#[derive(Clone, Debug)]
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
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Its value.
    pub value: ValueId,
    /// `decoder.attention.wq`: regions and name, iterations left out.
    pub path: String,
    /// The unit that owns it; a later unit may use it too (tied).
    pub unit: u32,
}

/// An operation.
#[derive(Clone, Debug)]
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
    /// Normalisation: operands x, gain, and bias for layer norm.
    Norm {
        /// Root mean square, or mean and variance.
        kind: NormKind,
        /// The normalised dimension.
        over: DimId,
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
        /// The class dimension.
        over: DimId,
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
}

/// Dimensions of an attention.
#[derive(Clone, PartialEq, Debug)]
pub struct Attention {
    /// Whether a query sees only what came before it.
    pub causal: bool,
    /// Positions of queries and of keys: the same dimension in self attention.
    pub sequence: DimId,
    /// Query heads.
    pub heads: DimId,
    /// Key and value heads; equal to `heads` in plain multi-head attention.
    pub kv_heads: DimId,
    /// Width of a head of q and k.
    pub head_dim: DimId,
    /// Width of a head of v.
    pub value_dim: DimId,
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
        let parts = self.regions[id.0 as usize].path.iter().map(|p| match p {
            PathPart::Name(name) => name.as_str(),
            PathPart::Iteration => "*",
        });
        parts.collect::<Vec<_>>().join(".")
    }

    /// `decoder.attention.core`: a region's path with iterations left out.
    pub fn region_path(&self, id: RegionId) -> String {
        let names = self.regions[id.0 as usize].path.iter().filter_map(|p| match p {
            PathPart::Name(name) => Some(name.as_str()),
            PathPart::Iteration => None,
        });
        names.collect::<Vec<_>>().join(".")
    }
}
