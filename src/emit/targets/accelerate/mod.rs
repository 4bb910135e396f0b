//! Hugging Face accelerate: a plan as the YAML file of `accelerate launch`, with FSDP2 and ND-parallelism.
//!
//! Keys and rejecting rules were read from the package at [`VERSION`]: `commands/config/config_args.py`,
//! `commands/launch.py`, `parallelism_config.py`, `utils/dataclasses.py`. Keys inside a section that accelerate does not
//! know are dropped by it in silence, so only keys of the table in `file` are ever written.

mod checks;
mod file;

use super::{Entry, Program, Reasons, Sizes, Starter, TargetError, Where};
use crate::emit::plan::Plan;
use crate::emit::{Artifact, Artifacts};

/// Name on the command line.
pub const NAME: &str = "accelerate";

/// The package that was read.
pub const VERSION: &str = "1.15.0";

/// The configuration.
const FILE: &str = "accelerate.yaml";

/// What starts `plan`, or every reason why nothing does.
pub(super) fn program(plan: &Plan) -> Result<Program, Vec<TargetError>> {
    let sizes = Sizes::of(plan);
    let mut reasons = Reasons::of(NAME, plan);
    checks::axes(plan, &sizes, &mut reasons);
    let data = checks::data(plan, &sizes, &mut reasons);
    checks::precision(plan, &mut reasons);
    reasons.uneven_batch(plan, &sizes);
    if !reasons.none() {
        return Err(reasons.list());
    }
    let yaml = file::text(&file::Chosen { plan, sizes, data });
    Ok(Program {
        target: NAME,
        version: VERSION,
        starter: Starter::Accelerate(FILE),
        entry: Entry::Yours,
        environment: Vec::new(),
        derived: Vec::new(),
        editable: Vec::new(),
        files: Artifacts::from([(FILE.into(), Artifact::text(yaml))]),
    })
}
