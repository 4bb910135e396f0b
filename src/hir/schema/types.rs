//! The types of fields: what each says, and the words that may stand for a value.

/// A type of the schema.
#[derive(Debug)]
pub struct Type {
    /// As a [`Field`](super::Field) names it.
    pub name: &'static str,
    /// What a user writes there.
    pub doc: &'static str,
    /// Words that may stand there; empty where any value of the type may. `none` may stand wherever something may be left
    /// out.
    pub words: &'static [&'static str],
}

const fn t(name: &'static str, doc: &'static str, words: &'static [&'static str]) -> Type {
    Type { name, doc, words }
}

/// Every type that a field has.
pub const TYPES: &[Type] = &[
    t("Int", "a whole number", &[]),
    t("Real", "a number", &[]),
    t("Bool", "`true` or `false`", &[]),
    t("Ratio", "a share: `0.9`, `90%`", &[]),
    t("Bytes", "a size: `80 GB`, `16 GiB`", &[]),
    t("Bandwidth", "bytes or bits a second: `3.35 TB/s`, `400 Gb/s`", &[]),
    t("Time", "a time: `2 us`, `3 h`", &[]),
    t("Frequency", "a frequency: `1.98 GHz`", &[]),
    t("Flop", "work: `8 FLOP`", &[]),
    t("FlopRate", "work a second: `989 TFLOP/s`", &[]),
    t("Power", "a power: `700 W`", &[]),
    t("Price", "money by time: `2.5 $/h`", &[]),
    t("PricePerByte", "money by size: `0.02 $/GB`", &[]),
    t("EnergyPerByte", "energy by size: `60 pJ/B`", &[]),
    t("Seq", "sequences: `256 seq`", &[]),
    t("Tok", "tokens, or a distribution of them: `8192 tok`", &[]),
    t("Step", "updates: `500 step`", &[]),
    t("Interval", "a time or a number of updates: `30 min`, `500 step`", &[]),
    t("Peaks", "peaks by dtype, perhaps by accumulator: `{ bf16 = 989 TFLOP/s }`", &[]),
    t("Link", "a link", &[]),
    t("Links", "links: `NVLink4`, `8 * IB_NDR`", &[]),
    t("Host", "a host", &[]),
    t("Table", "a table", &[]),
    t("Fn", "a function", &[]),
    t("List", "a list", &[]),
    t("Names", "names in a list, or one name", &[]),
    t("Selectors", "paths of the model: `[embed, decoder.*.mlp]`", &[]),
    t("Devices", "a part of the cluster: `cluster.node[0..2]`", &[]),
    t("Rows", "rows of keys and value: `[[1 MiB, 21 GB/s], …]`", &[]),
    t("Source", "a file and its columns: `csv(\"f.csv\", size = column(\"size\", 1 B), …)`", &[]),
    t("Model", "a model", &[]),
    t("Cluster", "a cluster", &[]),
    t("Layout", "a layout", &[]),
    t("Precision", "a precision", &[]),
    t("Optimizer", "an optimizer", &[]),
    t("Cost", "a cost model", &[]),
    t("Schedule", "a schedule", &[]),
    t("Dtype", "a number format", &[]),
    t("Arrivals", "a law of arrivals: `poisson(rate = 60 req/s)`", &[]),
    t("Law", "a law of use: `zipf(s = 1.05)`", &[]),
    t("Phases", "`prefill`, `decode` or both in a list", &[]),
    t("Adapter", "`lora(rank, alpha)`", &[]),
    t("Speculation", "`mtp(accept)` or `draft(model, k, accept)`", &[]),
    t("Split", "`even`, `balanced` or a list of unit counts", &[]),
    t("Transfer", "how stages send", &["direct", "scatter_gather", "temporal_sharing"]),
    t(
        "Topology",
        "how children meet",
        &[
            "switch",
            "ring",
            "torus",
            "mesh2d",
            "fat_tree",
            "rail",
            "dragonfly",
            "all_to_all",
            "graph",
            "host_bridge",
            "wan",
        ],
    ),
    t("Interpolation", "how values lie between rows", &["nearest", "linear", "log_linear", "log_log"]),
    t("Outside", "what lies beyond the rows", &["error", "clamp", "extrapolate"]),
    t("Dispatch", "how a rank picks its next operation", &["strict", "hint"]),
    t("Scaling", "how low precision is scaled", &["tensorwise", "block"]),
    t("Shape", "elements of an optimizer's tensors", &["full", "row"]),
    t("Packing", "how sequences share rows", &["pad", "first_fit"]),
    t("Mask", "which pairs of positions count", &["causal", "documents"]),
    t("Balance", "how unequal work is dealt out", &["microbatches"]),
    t(
        "Passes",
        "what a runtime does beyond the rules: `all`, or names in a list",
        &["merge_moves", "scatter_sums", "share_copies", "drop_unused"],
    ),
    t("Place", "where something lives", &["device", "host", "nvme"]),
    t("Bucket", "what moves at once, or a size", &["tensor", "region", "layer", "chunk", "model"]),
    t("Hold", "how long a gathered parameter lives", &["layer", "microbatch", "step"]),
    t("Keep", "what stays for the backward", &["gathered"]),
    t("Moment", "when in an update", &["microbatch", "last_microbatch"]),
    t("Share", "how a dimension is shared out", &["equal", "balanced"]),
    t("Placement", "how whole indices are placed", &["balanced"]),
];

/// The type called `name`.
pub fn type_of(name: &str) -> Option<&'static Type> {
    TYPES.iter().find(|t| t.name == name)
}

/// Words that are values by themselves beside those of [`TYPES`]: methods, parts of a step, laws of chance, options of the
/// library's models and layouts.
const OTHER_WORDS: &[&str] = &[
    "none",
    "all",
    "even",
    "zigzag",
    "contiguous",
    "all_gather",
    "tree",
    "hierarchical",
    "in_network",
    "pairwise",
    "low_latency",
    "auto",
    "state",
    "grad",
    "act",
    "master",
    "kv",
    "dynamic",
    "static",
    "ops",
    "every",
    "matmul",
    "attention",
    "self",
    "flat",
    "point",
    "uniform",
    "normal",
    "lognormal",
    "exponential",
    "poisson",
    "zipf",
    "empirical",
    "mixture",
    "samples",
    "prefill",
    "decode",
    "forward",
    "backward",
    "lora",
    "bytes",
    "load",
    "cost",
    "time",
    "memory",
    "silu",
    "gelu",
    "relu",
    "squared_relu",
    "rms",
    "plain",
    "per_head",
    "whole",
    "rotary",
    "learned",
    "alibi",
    "before",
    "after",
    "both",
    "selective",
];

/// Whether `name` is a value where nothing else has that name.
pub fn is_word(name: &str) -> bool {
    OTHER_WORDS.contains(&name) || TYPES.iter().any(|t| t.words.contains(&name))
}
