//! `DeepSpeed`: a plan as the JSON configuration that a training script gives to `deepspeed.initialize`.
//!
//! Keys, defaults and rejecting rules were read from the package at [`VERSION`]: `runtime/config.py`,
//! `runtime/zero/config.py`, `runtime/engine.py`. Unknown keys at the top level are ignored by `DeepSpeed` in silence, so
//! only keys of the table in `file` are ever written. What is not a key of that file but code of the training script
//! (a pipeline, a sharded sequence, recomputation) is refused.

mod checks;
mod file;

use super::{CliOption, Entry, Program, Reasons, Section, Sizes, Starter, TargetError, Where, Word};
use crate::emit::plan::Plan;
use crate::emit::{Artifact, Artifacts};

/// Name on the command line.
pub const NAME: &str = "deepspeed";

/// The package that was read.
pub const VERSION: &str = "0.19.8";

/// The configuration.
const FILE: &str = "ds_config.json";

/// What starts `plan`, or every reason why nothing does.
pub(super) fn program(plan: &Plan) -> Result<Program, Vec<TargetError>> {
    let sizes = Sizes::of(plan);
    let mut reasons = Reasons::of(NAME, plan);
    checks::axes(plan, &sizes, &mut reasons);
    reasons.uneven_batch(plan, &sizes);
    let stage = checks::stage(plan, &sizes, &mut reasons);
    checks::tensor(plan, &sizes, stage, &mut reasons);
    let half = checks::precision(plan, &mut reasons);
    match (stage, half) {
        (Some(stage), Some(half)) if reasons.none() => {
            let json = file::text(&file::Chosen { plan, sizes, stage, half });
            let option = |flag, values: Vec<Word>| CliOption { flag, values };
            Ok(Program {
                target: NAME,
                version: VERSION,
                starter: Starter::Torchrun,
                entry: Entry::Yours,
                environment: Vec::new(),
                derived: vec![Section {
                    title: "configuration",
                    options: vec![
                        option("--deepspeed", vec![]),
                        option("--deepspeed_config", vec![Word::Beside(FILE)]),
                    ],
                }],
                editable: Vec::new(),
                files: Artifacts::from([(FILE.into(), Artifact::text(json))]),
            })
        }
        _ => Err(reasons.list()),
    }
}
