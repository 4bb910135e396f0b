//! The launch plan as data: everything a target, a report or another program needs, and nothing to recompute.
//!
//! Serialised as `plan.json`. [`SCHEMA`] changes when a field changes meaning or goes away.

use serde::Serialize;
use std::collections::BTreeMap;

/// Name and version of the schema of `plan.json`.
pub const SCHEMA: &str = "parc-plan/1";

/// A job at one point of its layout's parameters.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Version of the compiler that wrote it.
    pub compiler: String,
    /// Hash of every standard library declaration used.
    pub std_hash: String,
    /// The job.
    pub job: JobInfo,
    /// The model.
    pub model: ModelInfo,
    /// The cluster.
    pub cluster: ClusterInfo,
    /// The layout.
    pub layout: LayoutInfo,
    /// Batch and precision.
    pub training: TrainingInfo,
    /// The pipeline; one stage where there is none.
    pub pipeline: PipelineInfo,
    /// Memory, by stage.
    pub memory: MemoryInfo,
    /// Predicted time.
    pub time: TimeInfo,
    /// Every collective of a step, merged by cause.
    pub collectives: Vec<CollectiveInfo>,
    /// Passes that change something: those assumed, and those that would.
    pub passes: Vec<PassInfo>,
    /// Verdicts of `require` and `expect`.
    pub claims: Vec<Claim>,
    /// Process groups by axis: each group's ranks, in the order of the axis.
    pub groups: BTreeMap<String, Vec<Vec<u64>>>,
    /// Every rank.
    pub ranks: Vec<RankInfo>,
}

/// The job and where it came from.
#[derive(Clone, Debug, Serialize)]
pub struct JobInfo {
    /// Its name.
    pub name: String,
    /// The file, as the user gave it.
    pub file: String,
    /// Line of the job.
    pub line: usize,
    /// Edition of the file.
    pub edition: i64,
    /// Values set on the command line.
    pub set: Vec<(String, String)>,
    /// Whether it is the only job of its files, so that a command need not name it.
    #[serde(skip)]
    pub alone: bool,
}

/// The model.
#[derive(Clone, Debug, Serialize)]
pub struct ModelInfo {
    /// As the job names it.
    pub name: String,
    /// Parameters, unpadded, tied ones once.
    pub params: u64,
    /// Parameters of each unit, in program order: one iteration's, and how many there are.
    pub units: Vec<UnitInfo>,
    /// The model as a decoder of the common family, if it is one.
    pub decoder: Option<DecoderInfo>,
    /// Why it is not, if it is not.
    pub decoder_reason: Option<String>,
    /// Model FLOP of one step on all devices, forward and backward, causal pairs counted once.
    pub flops: f64,
}

/// One unit of the model.
#[derive(Clone, Debug, Serialize)]
pub struct UnitInfo {
    /// `embed`, `decoder`, `head`.
    pub name: String,
    /// How many run one after another.
    pub count: u64,
    /// Whether it is an iteration of a repeat.
    pub repeated: bool,
    /// Parameters of one.
    pub params: u64,
}

/// A decoder-only transformer in the words of launch frameworks, read off the graph.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DecoderInfo {
    /// Layers.
    pub layers: u64,
    /// Hidden width.
    pub hidden: u64,
    /// Query heads.
    pub heads: u64,
    /// Key and value heads.
    pub kv_heads: u64,
    /// Width of a head.
    pub head_dim: u64,
    /// Width of the MLP.
    pub ffn: u64,
    /// Vocabulary, unpadded.
    pub vocab: u64,
    /// Learned position rows; none with rotary embedding.
    pub learned_positions: Option<u64>,
    /// Base of the rotary embedding; none with learned positions.
    pub rope_base: Option<f64>,
    /// `rms` or `layer`.
    pub norm: &'static str,
    /// `swiglu` or `gelu`.
    pub activation: &'static str,
    /// Whether linear layers have biases.
    pub bias: bool,
    /// Whether the head reuses the embedding.
    pub tied: bool,
    /// Whether queries and keys are normalised, each head on its own.
    pub qk_norm: bool,
    /// The experts of every layer; `ffn` is the width of one of them.
    pub experts: Option<ExpertsInfo>,
}

/// A mixture of experts in place of each layer's MLP.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ExpertsInfo {
    /// How many.
    pub count: u64,
    /// How many a token chooses.
    pub top_k: u64,
    /// Groups they come in, and how many of a token's best groups it chooses from; none where it chooses from all.
    pub groups: Option<(u64, u64)>,
    /// Whether a bias steers the choice and not the weights.
    pub correction_bias: bool,
    /// Width of the expert that every token sees.
    pub shared: Option<u64>,
    /// Whether a learned gate weighs it.
    pub shared_gate: bool,
}

/// The cluster.
#[derive(Clone, Debug, Serialize)]
pub struct ClusterInfo {
    /// As the job names it.
    pub name: String,
    /// Devices in it.
    pub devices: u64,
    /// The device.
    pub device: String,
    /// Bytes a process may use.
    pub usable: u64,
    /// Dense peak of the job's compute type, FLOP/s.
    pub peak: f64,
    /// Levels, innermost first.
    pub levels: Vec<LevelInfo>,
    /// Price of one device for an hour, $; 0 if unknown.
    pub price_per_hour: f64,
}

/// A level of the cluster.
#[derive(Clone, Debug, Serialize)]
pub struct LevelInfo {
    /// Its name: `node`.
    pub name: String,
    /// Children of one instance.
    pub children: u64,
    /// Devices below one instance.
    pub devices: u64,
    /// The link each child reaches it through.
    pub link: String,
    /// How many of them.
    pub links: u64,
}

/// The layout.
#[derive(Clone, Debug, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a field of its own in `plan.json`")]
pub struct LayoutInfo {
    /// As the job names it.
    pub name: String,
    /// Line of the job's `layout` field.
    pub line: usize,
    /// Mesh axes, outermost first; the last is fastest.
    pub axes: Vec<AxisInfo>,
    /// Whether activations outside tensor-parallel regions are split over the tensor axis (`else S`).
    pub sequence_parallel: bool,
    /// How attention runs where the sequence is sharded: `ring`, `all_gather`, `all_to_all`.
    pub context_method: Option<&'static str>,
    /// Classes stored sharded and over which axes.
    pub stored: BTreeMap<&'static str, Vec<String>>,
    /// Classes that rest otherwise in one region than in another: the class, and the second of two unlike parameters.
    pub unlike: BTreeMap<&'static str, String>,
    /// How experts read the ranks, in a model that has some. `stored` then speaks of all other parameters.
    pub experts: Option<ExpertLayout>,
    /// How long gathered parameters live: `layer`, `microbatch`, `step`; none where parameters are not stored sharded.
    pub hold: Option<&'static str>,
    /// Whether gathers of parameters, reductions of gradients and stage messages hide behind compute.
    pub overlap_gather: bool,
    /// See `overlap_gather`.
    pub overlap_reduce: bool,
    /// See `overlap_gather`.
    pub overlap_p2p: bool,
    /// Whether tokens travel to experts and back behind compute.
    pub overlap_experts: bool,
    /// What is recomputed.
    pub recompute: RecomputeInfo,
    /// What `recompute ?` came to, where it is written.
    pub recompute_choice: Option<RecomputeChoice>,
    /// Dimensions padded: name, true extent, padded extent.
    pub pads: Vec<(String, u64, u64)>,
}

/// How experts are laid out: the same ranks, read with axes of their own.
#[derive(Clone, Debug, Serialize)]
pub struct ExpertLayout {
    /// Axes outermost first, by the names of a `fold` where there is one. [`AxisRole::Tensor`] splits an expert,
    /// [`AxisRole::Data`] holds copies of it.
    pub axes: Vec<AxisInfo>,
    /// Classes of the experts stored sharded and over which of these axes.
    pub stored: BTreeMap<&'static str, Vec<String>>,
}

/// What is recomputed in the backward.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RecomputeInfo {
    /// Nothing.
    None,
    /// Every layer keeps only its input.
    Full,
    /// These parts of every layer.
    Parts(Vec<RecomputePart>),
    /// Something else: not every target can say it.
    Other(String),
}

/// What `recompute ?` came to: the cheapest values to make again with which every stage fits.
#[derive(Clone, Debug, Serialize)]
pub struct RecomputeChoice {
    /// The values that are not kept.
    pub values: Vec<ChosenInfo>,
    /// Bytes that saves on the stage it saves most on.
    pub bytes: u64,
    /// Seconds of a step that making them again takes.
    pub seconds: f64,
    /// Whether no other choice that fits is cheaper.
    pub proved: bool,
}

/// A value that is made again.
#[derive(Clone, Debug, Serialize)]
pub struct ChosenInfo {
    /// `a in decoder.mlp`
    pub what: String,
    /// Bytes of one microbatch on one rank.
    pub bytes: u64,
    /// Seconds to make it again for one microbatch.
    pub seconds: f64,
}

/// A part of a layer that is recomputed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RecomputePart {
    /// Everything inside the region of this path.
    Region(String),
    /// The results of the layer's norms.
    Norms,
}

/// A mesh axis.
#[derive(Clone, Debug, Serialize)]
pub struct AxisInfo {
    /// Its name.
    pub name: String,
    /// Ranks along it.
    pub size: u64,
    /// Distance of neighbours.
    pub stride: u64,
    /// What it does.
    pub role: AxisRole,
    /// Innermost cluster level that holds one of its groups.
    pub level: String,
}

/// What a mesh axis does, read off the rules.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AxisRole {
    /// Shards the batch.
    Data,
    /// Shards the sequence, attention included.
    Context,
    /// Shards weights.
    Tensor,
    /// Runs the pipeline.
    Pipeline,
    /// Holds other experts than its neighbours.
    Expert,
    /// Nothing: its ranks repeat each other.
    Idle,
}

/// Batch and precision.
#[derive(Clone, Debug, Serialize)]
pub struct TrainingInfo {
    /// Sequences of a step.
    pub batch: u64,
    /// Tokens of a sequence.
    pub sequence: u64,
    /// Sequences of a microbatch on one replica.
    pub micro_batch: u64,
    /// Microbatches of a step on one rank.
    pub microbatches: u64,
    /// Replicas of the model that take different sequences.
    pub replicas: u64,
    /// Updates of the whole job, where it says how long it is.
    pub steps: Option<u64>,
    /// Class to dtype name: `param`, `act`, `compute`, `accumulate`, `grad`, `reduce`, `gather`, `master`, `state`, `logits`.
    pub precision: BTreeMap<String, String>,
    /// The optimizer.
    pub optimizer: String,
}

/// The pipeline.
#[derive(Clone, Debug, Serialize)]
pub struct PipelineInfo {
    /// Name of the axis, if there is one.
    pub axis: Option<String>,
    /// The schedule's declaration: `one_f_one_b`.
    pub schedule: String,
    /// Values of the schedule's parameters, defaults included: `v`, `group`.
    pub arguments: BTreeMap<String, i64>,
    /// Chunks on one rank.
    pub chunks_per_rank: u64,
    /// Every chunk in model order: the rank that runs it and how many of each unit of the model it holds.
    pub chunks: Vec<ChunkInfo>,
    /// Idle over busy time of the order alone.
    pub bubble: f64,
}

/// One chunk of the model.
#[derive(Clone, Debug, Serialize)]
pub struct ChunkInfo {
    /// Pipeline rank.
    pub stage: u64,
    /// How many of each unit of [`ModelInfo::units`].
    pub units: Vec<u64>,
}

/// Memory.
#[derive(Clone, Debug, Serialize)]
pub struct MemoryInfo {
    /// By pipeline rank.
    pub stages: Vec<StageMemory>,
    /// The heaviest stage.
    pub heaviest: u64,
    /// Whether it fits.
    pub fits: bool,
}

/// Memory of one pipeline rank, bytes on one device.
#[derive(Clone, Default, Debug, Serialize)]
pub struct StageMemory {
    /// Parameters at rest.
    pub params: u64,
    /// Parameters gathered for use, beside what rests.
    pub gathered: u64,
    /// Gradients.
    pub grads: u64,
    /// Optimizer state and master copy.
    pub state: u64,
    /// Saved activations of all microbatches in flight.
    pub activations: u64,
    /// Largest working set of one operation.
    pub transient: u64,
    /// What the device keeps in the host's memory, beside the sum.
    pub host: u64,
    /// The allocator's share: what `held` of the cost record adds.
    pub overhead: u64,
    /// The sum.
    pub total: u64,
    /// Microbatches in flight, counting chunks apart.
    pub in_flight: u64,
    /// Layers on the rank.
    pub layers: u64,
    /// Largest contributors, biggest first.
    pub largest: Vec<Contributor>,
}

/// One contributor to a stage's memory.
#[derive(Clone, Debug, Serialize)]
pub struct Contributor {
    /// `a[B, S, F]` or `wte[V, H]`.
    pub what: String,
    /// `decoder.mlp`
    pub region: String,
    /// `llama.par:31`
    pub place: String,
    /// `activation`, `parameter`, …
    pub class: &'static str,
    /// Bytes on one device, all copies.
    pub bytes: u64,
}

/// Predicted time of a step, seconds.
#[derive(Clone, Default, Debug, Serialize)]
pub struct TimeInfo {
    /// The whole step.
    pub step: f64,
    /// Tokens of a second on all devices.
    pub tokens_per_s: f64,
    /// Model FLOP over peak FLOP.
    pub mfu: f64,
    /// The same with recomputation counted.
    pub hfu: f64,
    /// Parts of the step on the slowest rank, largest first: name and seconds. They add up to `step`.
    pub parts: Vec<(String, f64)>,
    /// Forward and backward of one microbatch, by pipeline rank.
    pub stages: Vec<(f64, f64)>,
    /// Price of a step, $; 0 if no price is known.
    pub price: f64,
}

/// A collective with its cause.
#[derive(Clone, Debug, Serialize)]
pub struct CollectiveInfo {
    /// `all-reduce`, …, `send`.
    pub kind: &'static str,
    /// `activations`, `parameters`, `gradients`, `statistics`, `stages`.
    pub purpose: &'static str,
    /// Axes.
    pub axes: Vec<String>,
    /// Ranks in a group.
    pub group: u64,
    /// Outermost cluster level a group crosses.
    pub level: String,
    /// The larger of a rank's input and output, of one, in bytes.
    pub bytes: u64,
    /// How many in a step on the busiest rank.
    pub count: u64,
    /// Bytes a rank sends in a step, with rings.
    pub sent: u64,
    /// Seconds busy in a step.
    pub busy: f64,
    /// Seconds of them that nothing hides.
    pub exposed: f64,
    /// `x[B, S, H] in decoder.mlp`
    pub what: String,
    /// `llama.par:31`
    pub place: String,
}

/// What a pass saved of a step on the busiest rank, or would save.
#[derive(Clone, Debug, Serialize)]
pub struct PassInfo {
    /// As `optimize` of a job names it.
    pub name: &'static str,
    /// Whether the job says that its runtime does it; the rest of the plan counts on it only then.
    pub assumed: bool,
    /// What it takes for granted.
    pub assumes: &'static str,
    /// Collectives fewer.
    pub collectives: i64,
    /// Bytes a rank sends less, with rings.
    pub sent: i64,
    /// Steps of work that are not done.
    pub work: u64,
    /// Bytes that the backward needs more at its fullest moment.
    pub memory: u64,
}

/// A `require` or `expect` and whether it holds.
#[derive(Clone, Debug, Serialize)]
pub struct Claim {
    /// As written.
    pub text: String,
    /// `require` or `expect`.
    pub kind: &'static str,
    /// Whether it holds.
    pub holds: bool,
    /// The value found, with its unit: `40.2%`.
    pub found: String,
    /// Its line.
    pub line: usize,
}

/// One rank.
#[derive(Clone, Debug, Serialize)]
pub struct RankInfo {
    /// Global rank.
    pub rank: u64,
    /// Node it runs on, from 0.
    pub node: u64,
    /// Place on the node, from 0.
    pub local_rank: u64,
    /// Index along each axis, in mesh order.
    pub coordinates: Vec<u64>,
    /// Pipeline rank.
    pub stage: u64,
    /// Peak bytes on it.
    pub memory: u64,
    /// Layers, as half-open ranges of the model's numbering.
    pub layers: Vec<(u64, u64)>,
    /// Index of its group in [`Plan::groups`], by axis in mesh order.
    pub groups: Vec<u64>,
}
