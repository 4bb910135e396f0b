//! The fields of declarations: one table that evaluation, checks and documentation read.

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

const TRAIN: &[Field] = &[
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
    f("steps", "Step", Some("none"), "length of the job"),
    f("tokens", "Tok", Some("none"), "length of the job"),
    f("samples", "Seq", Some("none"), "length of the job"),
    f("steps_to_target", "Step", Some("none"), "length of the job by a curve"),
];

const SCHEDULE: &[Field] = &[
    f("flush", "Bool", Some("true"), "whether a step ends with an empty pipeline"),
    f("dispatch", "Dispatch", Some("strict"), "`hint`: a rank takes the first ready operation"),
];

/// The fields of a level in a cluster.
pub fn level_fields() -> &'static [Field] {
    LEVEL
}

/// The fields of a declaration of `kind`; empty where it has items only.
pub fn fields(kind: Kind) -> &'static [Field] {
    match kind {
        Kind::Device => DEVICE,
        Kind::Host => HOST,
        Kind::Link => LINK,
        Kind::Dtype => DTYPE,
        Kind::Precision => PRECISION,
        Kind::Optimizer => OPTIMIZER,
        Kind::Train => TRAIN,
        Kind::Schedule => SCHEDULE,
        Kind::Fn
        | Kind::Op
        | Kind::Table
        | Kind::Cluster
        | Kind::Cost
        | Kind::Model
        | Kind::Block
        | Kind::Layout
        | Kind::Finetune
        | Kind::Serve
        | Kind::Workflow
        | Kind::Unit => &[],
    }
}
