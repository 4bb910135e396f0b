//! Launch targets: from a plan to what a framework is started with, or every reason why it cannot run it.
//!
//! To add a target:
//! 1. write `targets/NAME/mod.rs` with `pub(super) fn program(&Plan) -> Result<Program, Vec<TargetError>>`;
//! 2. collect every reason why the framework cannot do what the plan says, and never leave one out in silence;
//! 3. pin the version whose options were read, and say where they were read;
//! 4. add a line to [`TARGETS`];
//! 5. add to `tests/it` a checker built from the framework's own rules, not from the target's code.

pub mod accelerate;
pub mod deepspeed;
pub mod megatron;
mod python;
mod reasons;
mod sizes;
pub mod torch;
pub mod torchtitan;

use super::Artifacts;
use super::plan::Plan;
use reasons::Reasons;
use sizes::Sizes;

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
pub static TARGETS: &[Target] = &[
    Target {
        name: megatron::NAME,
        title: "Megatron-LM, pretrain_gpt.py",
        version: megatron::VERSION,
        program: megatron::program,
    },
    Target {
        name: torchtitan::NAME,
        title: "torchtitan, a configuration module",
        version: torchtitan::VERSION,
        program: torchtitan::program,
    },
    Target {
        name: deepspeed::NAME,
        title: "DeepSpeed, its JSON configuration",
        version: deepspeed::VERSION,
        program: deepspeed::program,
    },
    Target {
        name: accelerate::NAME,
        title: "Hugging Face accelerate, FSDP2 and ND-parallel",
        version: accelerate::VERSION,
        program: accelerate::program,
    },
    Target { name: torch::NAME, title: "PyTorch alone, one program", version: torch::VERSION, program: torch::program },
];

/// The target of this name.
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|t| t.name == name)
}

/// What every process of a job is started with, ready for a launcher.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    /// The target.
    pub target: &'static str,
    /// Its pinned version.
    pub version: &'static str,
    /// What starts the processes of a node.
    pub starter: Starter,
    /// What every process runs.
    pub entry: Entry,
    /// Environment the framework needs, in order.
    pub environment: Vec<(String, String)>,
    /// What follows from the plan; changing it makes the plan wrong.
    pub derived: Vec<Section>,
    /// What the plan leaves open: data, tokenizer, learning rate. A person edits it.
    pub editable: Vec<Section>,
    /// Files the framework reads, beside the scripts.
    pub files: Artifacts,
}

/// What starts the processes of a node, each with its rank.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Starter {
    /// `torchrun` with static rendezvous.
    Torchrun,
    /// `accelerate launch` with this configuration file.
    Accelerate(&'static str),
}

/// What a process runs.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Entry {
    /// A script of the framework, below the folder that the environment variable `home` names.
    Script {
        /// The environment variable.
        home: &'static str,
        /// The script.
        file: &'static str,
    },
    /// A module of an installed package, which can import the files beside the scripts.
    Module(&'static str),
    /// A program among the files beside the scripts.
    Beside(&'static str),
    /// A training script of the user's own, named by `TRAIN_SCRIPT`.
    Yours,
}

impl Entry {
    /// What it is, for a comment.
    pub fn name(self) -> &'static str {
        match self {
            Self::Script { file, .. } => file,
            Self::Module(name) | Self::Beside(name) => name,
            Self::Yours => "a training script of yours",
        }
    }
}

impl Program {
    /// Every argument in order; a file beside the scripts by its name.
    pub fn arguments(&self) -> Vec<String> {
        let options = self.derived.iter().chain(&self.editable).flat_map(|s| &s.options);
        let values = |o: &CliOption| o.values.iter().map(|v| v.text().to_owned()).collect::<Vec<_>>();
        options.flat_map(|o| std::iter::once(o.flag.to_owned()).chain(values(o))).collect()
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
    pub values: Vec<Word>,
}

/// A value of an option.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Word {
    /// As it stands.
    Text(String),
    /// The path of a file beside the scripts.
    Beside(&'static str),
}

impl Word {
    /// The text, or the file's name.
    pub fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Beside(file) => file,
        }
    }
}

impl From<String> for Word {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
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
    /// What to write instead, if there is one thing.
    pub instead: Option<Instead>,
    /// Frameworks that can do it, whether or not `parc` writes plans for them yet.
    pub able: &'static [&'static str],
}

/// What a target could run instead.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Instead {
    /// This text, in the language, in place of what the error is about: `mesh [pp, dp, cp, tp]`.
    Text(String),
    /// A mesh axis of this many ranks.
    Axis(String, u64),
    /// The rule as it is, with `else` the sequence.
    ElseSequence,
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
    /// The first rule that shards over the axis of this name.
    ShardOver(String),
    /// `attention over … via …`.
    Attention,
    /// `store` of this class.
    Store(String),
    /// `store` of this class in a region of its own.
    StoreInside(String),
    /// `overlap` of this kind: `gather`, `reduce`, `p2p`.
    Overlap(&'static str),
    /// `recompute`.
    Recompute,
    /// `pad` of this dimension.
    Pad(String),
    /// The `pipeline` item.
    Pipeline,
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
