//! How classes rest between uses, how gradients are summed and where the optimizer runs; data only.

use super::{AxisId, Class, Scope};
use crate::source::Span;

/// A `store` item: how a class rests between uses.
#[derive(Clone, Debug)]
pub struct Store {
    /// The regions it holds in.
    pub scope: Scope,
    /// The class.
    pub class: Class,
    /// Only the tensor of this name, where the item names one.
    pub tensor: Option<String>,
    /// The axes it is split over at rest.
    pub axes: Vec<AxisId>,
    /// Where it rests.
    pub tier: Tier,
    /// What says so, where that is not the device.
    pub tier_span: Option<Span>,
    /// The number format at rest, where it differs from the precision's.
    pub format: Option<Format>,
    /// What moves at once.
    pub bucket: Bucket,
    /// How long a gathered parameter lives.
    pub hold: Hold,
    /// `keep = gathered`: activations gathered in the forward stay for the backward.
    pub keep_gathered: bool,
    /// Buckets fetched ahead.
    pub prefetch: i64,
    /// Buckets kept on the device; one more than are fetched ahead where nothing is said.
    pub resident: Option<i64>,
    /// Dimensions split by name; flat, padded to the group, where there is none.
    pub along: Vec<String>,
    /// The item.
    pub span: Span,
}

impl Store {
    /// A `store` of `class` over `axes` as it is where nothing more is said.
    pub fn new(scope: Scope, class: Class, axes: Vec<AxisId>, span: Span) -> Self {
        Self {
            scope,
            class,
            tensor: None,
            axes,
            tier: Tier::Device,
            tier_span: None,
            format: None,
            bucket: Bucket::Layer,
            hold: Hold::Layer,
            keep_gathered: false,
            prefetch: 1,
            resident: None,
            along: Vec::new(),
            span,
        }
    }
}

/// A kind of memory.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Tier {
    /// The device's own.
    Device,
    /// The host's, through its path to the devices.
    Host,
    /// Drives of a node.
    Nvme {
        /// Bytes a second of one node's, in each direction.
        bandwidth: f64,
    },
}

/// A number format at rest.
#[derive(Clone, PartialEq, Debug)]
pub struct Format {
    /// Its name.
    pub name: String,
    /// Bytes of an element; a fraction where a block shares a scale.
    pub bytes: f64,
}

/// What moves at once.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Bucket {
    /// One tensor.
    Tensor,
    /// A region inside a layer.
    Region,
    /// One unit: a layer, or a region outside repeats.
    Layer,
    /// All units of a chunk.
    Chunk,
    /// Everything.
    Model,
    /// So many bytes.
    Bytes(f64),
}

/// How long a gathered parameter lives.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Hold {
    /// Freed after use, gathered again for the backward.
    Layer,
    /// Until the backward of its microbatch.
    Microbatch,
    /// Gathered once a step.
    Step,
}

/// A `reduce grad` item.
#[derive(Clone, Debug)]
pub struct Reduce {
    /// The regions it holds in.
    pub scope: Scope,
    /// The axes it speaks for.
    pub axes: Vec<AxisId>,
    /// At each microbatch, or at the last; `None` follows the stores.
    pub each_microbatch: Option<bool>,
    /// The number format on the wire, where it differs from the precision's.
    pub format: Option<Format>,
    /// What moves at once.
    pub bucket: Bucket,
    /// The item.
    pub span: Span,
}

/// `update { … }`: where the optimizer runs.
#[derive(Clone, Debug)]
pub struct Update {
    /// On the hosts, not the devices.
    pub on_host: bool,
    /// FLOP/s there, where the item says.
    pub flops: Option<f64>,
    /// Updates a gradient may come late.
    pub delay: i64,
    /// The item.
    pub span: Span,
}
