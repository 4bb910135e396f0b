//! Launch targets: from a plan to the command line of a framework, or every reason why it cannot run it.
//!
//! To add a target:
//! 1. write `targets/NAME/mod.rs` with `pub(super) fn program(&Plan) -> Result<Program, Vec<TargetError>>`;
//! 2. collect every reason why the framework cannot do what the plan says, and never leave one out in silence;
//! 3. pin the version whose options were read, and say where they were read;
//! 4. add a line to [`TARGETS`];
//! 5. add to `tests/it` a checker built from the framework's own rules, not from the target's code.

pub mod megatron;

use super::plan::Plan;

/// A framework that can be launched.
#[derive(Debug)]
pub struct Target {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is.
    pub title: &'static str,
    /// The version whose options were read.
    pub version: &'static str,
    /// Makes its command line.
    pub program: fn(&Plan) -> Result<Program, Vec<TargetError>>,
}

/// Every target, in the order of help texts.
pub static TARGETS: &[Target] = &[Target {
    name: megatron::NAME,
    title: "Megatron-LM, pretrain_gpt.py",
    version: megatron::VERSION,
    program: megatron::program,
}];

/// The target of this name.
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|t| t.name == name)
}

/// A command line for every process of a job, ready for a launcher.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    /// The target.
    pub target: &'static str,
    /// Its pinned version.
    pub version: &'static str,
    /// The script every process runs, relative to `home`.
    pub script: &'static str,
    /// Environment variable that names the framework's folder.
    pub home: &'static str,
    /// Environment the framework needs, in order.
    pub environment: Vec<(String, String)>,
    /// What follows from the plan; changing it makes the plan wrong.
    pub derived: Vec<Section>,
    /// What the plan leaves open: data, tokenizer, learning rate. A person edits it.
    pub editable: Vec<Section>,
}

impl Program {
    /// Every argument in order.
    pub fn arguments(&self) -> Vec<String> {
        let options = self.derived.iter().chain(&self.editable).flat_map(|s| &s.options);
        options.flat_map(|o| std::iter::once(o.flag.to_owned()).chain(o.values.clone())).collect()
    }
}

/// Options that belong together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Section {
    /// `model`, `parallel layout`, …
    pub title: &'static str,
    /// Its options.
    pub options: Vec<CliOption>,
}

/// One option of a command line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CliOption {
    /// `--num-layers`.
    pub flag: &'static str,
    /// Its values; none for a switch.
    pub values: Vec<String>,
}

/// Why a target cannot run a plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TargetError {
    /// The target.
    pub target: &'static str,
    /// One clause: what of the plan it is.
    pub what: String,
    /// A fact about the target, with numbers.
    pub why: String,
    /// The place in the job or its layout.
    pub at: Where,
    /// What to write instead, in the language, if there is one thing: `mesh [pp, dp, cp, tp]`.
    pub instead: Option<String>,
    /// Frameworks that can do it, whether or not `parc` writes plans for them yet.
    pub able: &'static [&'static str],
}

/// What of a job an error is about; the caller knows the lines.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Where {
    /// The `model` field.
    Model,
    /// The `cluster` field.
    Cluster,
    /// The `layout` field, when no smaller place is known.
    Layout,
    /// The `mesh` item.
    Mesh,
    /// A mesh axis.
    Axis(String),
    /// The rule that shards over the tensor axis.
    Shard,
    /// `attention over … via …`.
    Attention,
    /// `store` of this class.
    Store(String),
    /// `overlap` of this kind: `gather`, `reduce`, `p2p`.
    Overlap(&'static str),
    /// `recompute`.
    Recompute,
    /// `pad` of this dimension.
    Pad(String),
    /// `schedule` of the pipeline.
    Schedule,
    /// `split` of the pipeline.
    Split,
    /// The `batch` field.
    Batch,
    /// The `sequence` field.
    Sequence,
    /// The `precision` field.
    Precision,
    /// The `optimizer` field.
    Optimizer,
}
