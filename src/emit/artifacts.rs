//! Files to be written, as values.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// Name of the file that holds the plan; every output folder has it.
pub const PLAN_FILE: &str = "plan.json";

/// Files to write, by path below the output folder.
pub type Artifacts = BTreeMap<PathBuf, Artifact>;

/// One file to write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Artifact {
    /// Its content.
    pub bytes: Vec<u8>,
    /// Whether it is a program.
    pub executable: bool,
}

impl Artifact {
    /// A file to read.
    pub fn text(content: impl Into<String>) -> Self {
        Self { bytes: content.into().into_bytes(), executable: false }
    }

    /// A file to run.
    pub fn script(content: impl Into<String>) -> Self {
        Self { bytes: content.into().into_bytes(), executable: true }
    }
}
