//! The fields of declarations: one table that evaluation, checks and documentation read.

mod types;

pub use types::{TYPES, Type, is_word, type_of};

use crate::syntax::ast::Kind;

/// A field of a declaration.
#[derive(Debug)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// Its type, as the language writes it.
    pub ty: &'static str,
    /// What stands for it where it is not given; none where it is required.
    pub default: Option<&'static str>,
    /// What it says.
    pub doc: &'static str,
}

const fn f(name: &'static str, ty: &'static str, default: Option<&'static str>, doc: &'static str) -> Field {
    Field { name, ty, default, doc }
}

const DEVICE: &[Field] = &[
    f("memory", "Bytes", None, "memory as sold"),
    f("reserve", "Bytes", Some("0 B"), "context, driver and collective library"),
    f("usable", "Bytes", Some("memory - reserve"), "what a process gets; budgets use it"),
    f("hbm", "Bandwidth", None, "memory bandwidth"),
    f("l2", "Bytes", Some("0 B"), "last-level cache"),
    f("peak", "Peaks", None, "dense peak by dtype, or by dtype and accumulator"),
    f("sms", "Int", Some("1"), "processors that take tiles"),
    f("clock", "Frequency", Some("0 Hz"), "clock; 0 is unknown"),
    f("power", "Power", None, "power under load"),
    f("idle_power", "Power", Some("0 W"), "power at rest"),
    f("price", "Price", Some("0 $/h"), "price of one for an hour"),
];

const HOST: &[Field] = &[
    f("memory", "Bytes", None, "host memory of one node"),
    f("bandwidth", "Bandwidth", None, "host memory bandwidth"),
    f("path", "Links", None, "device-to-host links of one node"),
    f("flops", "FlopRate", None, "what the processors of a node compute"),
];

const LINK: &[Field] = &[
    f("bandwidth", "Bandwidth", None, "of one link, one direction"),
    f("latency", "Time", None, "one message, one way"),
    f("flow_limit", "Bandwidth", Some("bandwidth"), "what one connection reaches"),
    f("efficiency", "Ratio", Some("1"), "share of the bandwidth that large messages reach"),
    f("price", "PricePerByte", Some("0 $/B"), "price of traffic"),
    f("energy", "EnergyPerByte", Some("0 J/B"), "energy of traffic"),
];

const LEVEL: &[Field] = &[
    f("topology", "Topology", Some("switch"), "how the children meet"),
    f("in_network_reduction", "Bool", Some("false"), "whether switches sum"),
    f("host", "Host", Some("none"), "the host of one instance"),
    f("shares", "Links", Some("none"), "traffic uses another link's capacity"),
    f("connections", "Int", Some("1"), "connections of one flow"),
    f("efficiency", "Ratio", Some("1"), "share of the bandwidth that is left"),
    f("failed_links", "Ratio", Some("0"), "share of links that are down"),
    f("measured", "Table", Some("none"), "bandwidth per pair"),
    f("price", "Price", Some("0 $/h"), "price of one instance for an hour"),
    f("power", "Power", Some("0 W"), "power of one instance"),
    f("without", "List", Some("[]"), "devices that are dead"),
];

const DTYPE: &[Field] = &[
    f("bits", "Real", None, "bits of an element"),
    f("block", "Int", Some("0"), "elements that share a scale"),
    f("scale_bits", "Real", Some("0"), "bits of a scale"),
    f("computes_as", "Dtype", Some("self"), "what arithmetic sees"),
];

const PRECISION: &[Field] = &[
    f("param", "Dtype", Some("bf16"), "parameters at rest and in use"),
    f("act", "Dtype", Some("bf16"), "saved activations"),
    f("compute", "Dtype", Some("bf16"), "operands of contractions"),
    f("grad_compute", "Dtype", Some("compute"), "operands in the backward"),
    f("accumulate", "Dtype", Some("fp32"), "accumulator; with `compute` it selects the peak"),
    f("grad", "Dtype", Some("fp32"), "gradient buffer"),
    f("reduce", "Dtype", Some("fp32"), "gradient reduction on the wire"),
    f("gather", "Dtype", Some("param"), "parameter gathers on the wire"),
    f("wire", "Dtype", Some("act"), "activation collectives and messages"),
    f("master", "Dtype", Some("fp32"), "master copy, or none"),
    f("state", "Dtype", Some("fp32"), "optimizer tensors"),
    f("logits", "Dtype", Some("fp32"), "logits"),
    f("kv", "Dtype", Some("act"), "key-value cache"),
    f("scale", "Scaling", Some("none"), "how low precision is scaled"),
];

const OPTIMIZER: &[Field] = &[
    f("tensors", "Names", None, "its tensors, one element of dtype `state` for each parameter"),
    f("flops_per_param", "Flop", None, "operations of an update for each parameter"),
    f("shape", "Shape", Some("full"), "`row` for one element a row"),
    f("cost", "Fn", Some("memory traffic"), "time of an update"),
];

/// What a train job has, and what else a job has that trains.
macro_rules! training {
    ($($more:expr),* $(,)?) => {
        &[
            f("model", "Model", None, "what is trained"),
            f("cluster", "Cluster", None, "on what"),
            f("layout", "Layout", None, "how it spreads"),
            f("precision", "Precision", Some("bf16_mixed"), "number formats"),
            f("optimizer", "Optimizer", Some("AdamW"), "how parameters move"),
            f("cost", "Cost", Some("std::cost::default"), "what takes how long"),
            f("devices", "Devices", Some("all"), "part of the cluster"),
            f("batch", "Seq", None, "sequences of an update, over all ranks"),
            f("sequence", "Tok", None, "tokens of a sequence"),
            f("micro_batch", "Seq", Some("1 seq"), "sequences of a microbatch on one replica"),
            f("packing", "Packing", Some("none"), "how sequences share rows"),
            f("epochs", "Int", Some("1"), "passes over the batch"),
            f("minibatches", "Int", Some("1"), "updates a pass"),
            f("attention_mask", "Mask", Some("causal"), "which pairs count"),
            f("balance", "Balance", Some("none"), "how unequal microbatches are dealt out"),
            f("ema", "Place", Some("none"), "where a parameter average lives"),
            f("disturb", "List", Some("[]"), "delays to survive"),
            f("optimize", "Passes", Some("none"), "what the runtime does beyond the rules"),
            f("steps", "Step", Some("none"), "length of the job"),
            f("tokens", "Tok", Some("none"), "length of the job"),
            f("samples", "Seq", Some("none"), "length of the job"),
            f("steps_to_target", "Step", Some("none"), "length of the job by a curve"),
            $($more,)*
        ]
    };
}

const TRAIN: &[Field] = training![];

const FINETUNE: &[Field] = training![
    f("freeze", "Selectors", Some("none"), "what does not learn"),
    f("adapter", "Adapter", Some("none"), "small matrices that learn instead"),
];

const SERVE: &[Field] = &[
    f("model", "Model", None, "what is served"),
    f("cluster", "Cluster", Some("of the role"), "on what"),
    f("layout", "Layout", Some("of each pool"), "how it spreads"),
    f("precision", "Precision", Some("bf16_mixed"), "number formats"),
    f("cost", "Cost", Some("std::cost::default"), "what takes how long"),
    f("devices", "Devices", Some("all"), "part of the cluster"),
    f("phases", "Phases", Some("[prefill, decode]"), "what a request goes through"),
    f("arrivals", "Arrivals", Some("none"), "requests a second"),
    f("batch", "Seq", Some("none"), "requests of a closed batch"),
    f("prompt", "Tok", None, "tokens that come in"),
    f("output", "Tok", Some("none"), "tokens that go out"),
    f("chunk", "Tok", Some("none"), "prompt tokens of a step"),
    f("max_batch", "Seq", Some("none"), "running sequences on a rank"),
    f("kv_block", "Tok", Some("1 tok"), "tokens of a cache block"),
    f("prefix_hit", "Ratio", Some("0%"), "share of the prompt found in the cache"),
    f("speculate", "Speculation", Some("none"), "how tokens are guessed ahead"),
];

const WORKFLOW: &[Field] = &[
    f("cluster", "Cluster", None, "on what"),
    f("devices", "Devices", Some("all"), "part of the cluster"),
    f("overcommit", "Ratio", Some("0%"), "work started beyond the batch"),
];

const TABLE: &[Field] = &[
    f("rows", "Rows", Some("from a file"), "the rows: keys, then the value"),
    f("from", "Source", Some("rows"), "a file and its columns"),
    f("interpolate", "Interpolation", Some("linear"), "between rows"),
    f("outside", "Outside", Some("error"), "beyond the rows"),
];

const OP: &[Field] = &[
    f("flops", "Flop", None, "operations of the forward"),
    f("read", "Bytes", Some("operands"), "bytes read"),
    f("write", "Bytes", Some("results"), "bytes written"),
    f("backward_flops", "Flop", Some("2 * flops"), "operations of the backward"),
    f("saves", "Names", Some("operands"), "what the backward needs"),
    f("contracts", "Names", Some("[]"), "dimensions summed over"),
    f("whole", "Names", Some("[]"), "dimensions gathered first"),
];

const PART: &[Field] = &[f("micro_batch", "Seq", Some("of the job"), "sequences of a microbatch in this part")];

const STORE: &[Field] = &[
    f("bucket", "Bucket", Some("layer"), "what moves at once"),
    f("hold", "Hold", Some("layer"), "how long a gathered parameter lives"),
    f("prefetch", "Int", Some("1"), "buckets fetched ahead"),
    f("resident", "Int", Some("prefetch + 1"), "buckets kept on the device"),
    f("along", "Names", Some("flat"), "dimensions to split by name"),
    f("keep", "Keep", Some("none"), "whether gathered activations stay for the backward"),
    f("cache", "Bytes", Some("none"), "device memory for hot rows"),
    f("skew", "Law", Some("none"), "how often rows are used"),
    f("lookahead", "Step", Some("none"), "steps fetched ahead"),
];

const UPDATE: &[Field] = &[
    f("on", "Place", Some("device"), "where the optimizer runs"),
    f("flops", "FlopRate", Some("of the place"), "how fast"),
    f("delay", "Step", Some("0 step"), "steps a gradient may wait"),
];

const REDUCE: &[Field] = &[
    f("every", "Step", Some("1 step"), "how often"),
    f("at", "Moment", Some("last_microbatch"), "when in a step"),
    f("bucket", "Bucket", Some("layer"), "what moves at once"),
    f("dtype", "Dtype", Some("of the precision"), "format on the wire"),
    f("delay", "Step", Some("0 step"), "steps the sum may come late"),
    f("outer", "Optimizer", Some("none"), "optimizer of the sum"),
];

const SHARD: &[Field] = &[
    f("pad", "Int", Some("none"), "round the extent up to a multiple"),
    f("share", "Share", Some("equal"), "`balanced` for unequal shares of the batch"),
    f("replicas", "Int", Some("0"), "more copies of the most loaded indices"),
    f("placement", "Placement", Some("none"), "`balanced(by)` for whole indices"),
];

const PIPELINE: &[Field] = &[
    f("schedule", "Schedule", Some("one_f_one_b"), "who computes what when"),
    f("split", "Split", Some("balanced"), "layers of each chunk"),
    f("p2p", "Transfer", Some("direct"), "how stages send"),
    f("inner", "Bool", Some("false"), "cut the innermost repeats"),
];

const OVERLAP: &[Field] = &[
    f("limit", "Ratio", Some("100%"), "share of an operation's time that hides"),
    f("sms", "Int", Some("0"), "processors lost meanwhile"),
    f("batches", "Int", Some("1"), "2 runs the region in halves"),
];

const POOL: &[Field] = &[
    f("phases", "Phases", None, "what runs here"),
    f("on", "Devices", None, "devices of the pool"),
    f("layout", "Layout", None, "how it spreads"),
    f("precision", "Precision", Some("of the job"), "number formats"),
    f("chunk", "Tok", Some("none"), "prompt tokens of a step"),
    f("max_batch", "Seq", Some("none"), "running sequences on a rank"),
    f("kv_block", "Tok", Some("1 tok"), "tokens of a cache block"),
];

const EDGE: &[Field] = &[
    f("from", "Names", None, "where it comes from"),
    f("to", "Names", None, "where it goes"),
    f("carries", "Names", None, "what it carries"),
    f("by", "Names", Some("whole"), "sent layer by layer"),
    f("chunk", "Seq", Some("all"), "sent in pieces"),
    f("every", "Step", Some("1 step"), "how often"),
    f("during", "Names", Some("none"), "hidden behind what"),
    f("dtype", "Dtype", Some("as stored"), "format on the wire"),
];

const ROLE: &[Field] = &[
    f("job", "Names", Some("of the same name"), "which job"),
    f("on", "Devices", Some("none"), "its devices"),
    f("in_bubbles_of", "Names", Some("none"), "runs where another waits"),
    f("park", "Place", Some("none"), "where it rests between turns"),
    f("interference", "Ratio", Some("0%"), "what it costs its host"),
    f("reserve", "Bytes", Some("0 B"), "memory that stays taken"),
];

const CHECKPOINT: &[Field] = &[
    f("every", "Interval", None, "how often, in steps or time"),
    f("to", "Place", Some("nvme"), "where"),
    f("blocking", "Bool", Some("true"), "whether training waits"),
];

const FAILURES: &[Field] = &[
    f("mtbf", "Time", None, "mean time between failures of one device"),
    f("spare", "Int", Some("0"), "devices that wait"),
    f("restart", "Time", Some("0 s"), "time to start again"),
];

const SCHEDULE: &[Field] = &[
    f("flush", "Bool", Some("true"), "whether a step ends with an empty pipeline"),
    f("dispatch", "Dispatch", Some("strict"), "`hint`: a rank takes the first ready operation"),
];

/// A field that had another name: the old one works through edition `until`, with a warning and a fix.
#[derive(Debug)]
pub struct Renamed {
    /// The declaration's keyword, or the first word of the item or section.
    pub of: &'static str,
    /// The name it had.
    pub old: &'static str,
    /// The name it has.
    pub new: &'static str,
    /// The last edition that knows the old name.
    pub until: u32,
}

/// Every renamed field.
pub const RENAMED: &[Renamed] = &[
    Renamed { of: "device", old: "tdp", new: "power", until: 1 },
    Renamed { of: "level", old: "in_network", new: "in_network_reduction", until: 1 },
];

/// The present name of the field `name` of a declaration, item or section.
pub fn present<'a>(of: &str, name: &'a str) -> &'a str {
    renamed(of, name).map_or(name, |r| r.new)
}

/// The entry of a field's former name.
pub fn renamed(of: &str, name: &str) -> Option<&'static Renamed> {
    RENAMED.iter().find(|r| r.of == of && r.old == name)
}

/// A declaration, item or section that has fields.
#[derive(Debug)]
pub struct Section {
    /// Its keyword or first word.
    pub word: &'static str,
    /// What it is.
    pub doc: &'static str,
    /// Its fields, in the order in which they are documented.
    pub fields: &'static [Field],
}

/// Everything that has fields, declarations first: what documentation lists and an editor completes.
pub const SECTIONS: &[Section] = &[
    Section { word: "device", doc: "an accelerator", fields: DEVICE },
    Section { word: "host", doc: "the processors and memory of a node", fields: HOST },
    Section { word: "link", doc: "a network link", fields: LINK },
    Section { word: "level", doc: "a level of a cluster", fields: LEVEL },
    Section { word: "dtype", doc: "a number format", fields: DTYPE },
    Section { word: "precision", doc: "which format each class of tensors has", fields: PRECISION },
    Section { word: "optimizer", doc: "what an update computes and keeps", fields: OPTIMIZER },
    Section { word: "schedule", doc: "who computes what when in a pipeline", fields: SCHEDULE },
    Section { word: "table", doc: "measured points", fields: TABLE },
    Section { word: "op", doc: "an operator of one's own", fields: OP },
    Section { word: "part", doc: "a piece of the model with devices of its own", fields: PART },
    Section { word: "shard", doc: "how a rule splits", fields: SHARD },
    Section { word: "store", doc: "how a class rests between uses", fields: STORE },
    Section { word: "update", doc: "where the optimizer runs", fields: UPDATE },
    Section { word: "reduce", doc: "when and how gradients are summed", fields: REDUCE },
    Section { word: "overlap", doc: "what hides behind computation", fields: OVERLAP },
    Section { word: "pipeline", doc: "how the model is cut into stages", fields: PIPELINE },
    Section { word: "train", doc: "a training job", fields: TRAIN },
    Section { word: "finetune", doc: "a training job of part of the parameters", fields: FINETUNE },
    Section { word: "serve", doc: "a serving job", fields: SERVE },
    Section { word: "workflow", doc: "jobs that share a cluster", fields: WORKFLOW },
    Section { word: "checkpoint", doc: "what is written, how often", fields: CHECKPOINT },
    Section { word: "failures", doc: "what breaks, how often", fields: FAILURES },
    Section { word: "pool", doc: "devices that serve phases", fields: POOL },
    Section { word: "role", doc: "a job of a workflow", fields: ROLE },
    Section { word: "edge", doc: "what flows between pools or roles", fields: EDGE },
];

/// The fields of a level in a cluster.
pub fn level_fields() -> &'static [Field] {
    LEVEL
}

/// The fields of a declaration of `kind`; empty where it has items only.
pub fn fields(kind: Kind) -> &'static [Field] {
    if matches!(kind, Kind::Fn | Kind::Cluster | Kind::Cost | Kind::Model | Kind::Block | Kind::Layout | Kind::Unit) {
        return &[];
    }
    block_fields(kind.keyword()).unwrap_or_default()
}

/// The fields of the block of an item or section, by its first word (`store`, `pipeline`, `role`); none where there
/// is no such block.
pub fn block_fields(word: &str) -> Option<&'static [Field]> {
    SECTIONS.iter().find(|s| s.word == word).map(|s| s.fields)
}

/// Collectives that a layout may ask for by algorithm: the cost function is then `COLLECTIVE_METHOD`.
const COLLECTIVES: [&str; 5] = ["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast"];

/// What the functions of a cost model are called with.
pub fn cost_signature(name: &str) -> Option<&'static str> {
    Some(match name {
        "matmul" => "m: Int, n: Int, k: Int, batch: Int, d: Device, c: Compute",
        "attention" => {
            "q: Int, kv: Int, heads: Int, kv_heads: Int, d_qk: Int, d_v: Int, batch: Int, pairs: Ratio, backward: Bool, \
             d: Device, c: Compute"
        }
        "elementwise" => "read: Bytes, write: Bytes, work: Flop, d: Device",
        "all_reduce" | "all_gather" | "reduce_scatter" | "all_to_all" | "broadcast" | "p2p" => "n: Bytes, g: Group",
        "copy" => "n: Bytes, from: Tier, to: Tier",
        "clock" => "d: Device, load: Ratio",
        "held" => "live: Bytes, d: Device",
        "issue" => "d: Device",
        "host_update" => "read: Bytes, write: Bytes, work: Flop, h: Host",
        "norm_extra" | "softmax_extra" | "loss_extra" | "grad_extra" => "",
        // `all_reduce_ring`: one collective by one algorithm.
        _ if COLLECTIVES.iter().any(|c| name.strip_prefix(c).is_some_and(|m| m.starts_with('_'))) => {
            "n: Bytes, g: Group"
        }
        _ => return None,
    })
}

/// Operators with a fixed meaning.
pub const OPERATORS: &[&str] = &[
    "embed",
    "embed_bag",
    "rms_norm",
    "layer_norm",
    "softmax",
    "silu",
    "gelu",
    "relu",
    "sigmoid",
    "tanh",
    "rope",
    "take",
    "attention",
    "select_experts",
    "dispatch",
    "combine",
    "cross_entropy",
    "binary_cross_entropy",
    "interact",
    "concat",
    "split",
    "merge",
    "merge_patches",
    "rename",
    "shift",
    "scatter",
    "conv",
    "pool",
    "ssm_scan",
];

/// Whether `name` is an operator of models.
pub fn is_operator(name: &str) -> bool {
    OPERATORS.contains(&name)
}

/// Whatever has fields, by the name a reader knows it, with its fields.
pub fn everything() -> Vec<(String, &'static [Field])> {
    let kinds = [
        Kind::Device,
        Kind::Host,
        Kind::Link,
        Kind::Dtype,
        Kind::Precision,
        Kind::Optimizer,
        Kind::Schedule,
        Kind::Table,
        Kind::Op,
        Kind::Train,
        Kind::Finetune,
        Kind::Serve,
        Kind::Workflow,
    ];
    let blocks = [
        "level",
        "part",
        "store",
        "update",
        "reduce",
        "shard",
        "pipeline",
        "overlap",
        "pool",
        "edge",
        "role",
        "checkpoint",
        "failures",
    ];
    let kinds = kinds.into_iter().map(|k| (format!("`{}`", k.keyword()), fields(k)));
    let blocks = blocks.into_iter().filter_map(|b| Some((format!("the block of `{b}`"), block_fields(b)?)));
    kinds.chain(blocks).collect()
}
