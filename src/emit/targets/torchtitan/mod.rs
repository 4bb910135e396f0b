//! torchtitan: a plan as a Python module whose function returns the trainer's configuration.
//!
//! Keys, defaults and rejecting rules were read from the package at [`VERSION`]: `config/configs.py`, `trainer.py`,
//! `distributed/{parallel_dims,fsdp,pipeline_parallel}.py`, `models/*/config_registry.py`. `checks` says what it cannot
//! do, `models` which of its own models the plan's is, `module` writes the file.

mod checks;
mod models;
mod module;

pub(crate) use checks::SCHEDULES;
pub(crate) use models::registered;

use super::{CliOption, Entry, Program, Reasons, Section, Sizes, Starter, TargetError, Where};
use crate::emit::plan::Plan;
use crate::emit::{Artifact, Artifacts};

/// Name on the command line.
pub const NAME: &str = "torchtitan";

/// The package that was read.
pub const VERSION: &str = "0.3.0";

/// The module's name and file.
const MODULE: &str = "parc_plan";
const FILE: &str = "parc_plan.py";

/// What starts `plan`, or every reason why nothing does.
pub(super) fn program(plan: &Plan) -> Result<Program, Vec<TargetError>> {
    let sizes = Sizes::of(plan);
    let mut reasons = Reasons::of(NAME, plan);
    let data = checks::data(plan, &mut reasons);
    checks::ranks(plan, &sizes, &data, &mut reasons);
    checks::experts(plan, &data, &mut reasons);
    checks::context(plan, &sizes, &mut reasons);
    checks::precision(plan, &data, &sizes, &mut reasons);
    let recompute = checks::recompute(plan, &mut reasons);
    let pipeline = checks::pipeline(plan, &sizes, &mut reasons);
    checks::batch(plan, &sizes, &mut reasons);
    // A model it does not have is only worth saying of a layout it could run.
    let model = if reasons.none() { models::of(plan, &mut reasons) } else { None };
    match (model, recompute, pipeline) {
        (Some(model), Some(recompute), Some(pipeline)) if reasons.none() => {
            Ok(started(module::text(&module::Chosen { plan, sizes, data, model, recompute, pipeline })))
        }
        _ => Err(reasons.list()),
    }
}

fn started(module: String) -> Program {
    let option = |flag, value: &str| CliOption { flag, values: vec![value.to_owned().into()] };
    Program {
        target: NAME,
        version: VERSION,
        starter: Starter::Torchrun,
        entry: Entry::Module("torchtitan.train"),
        environment: Vec::new(),
        derived: vec![Section {
            title: "configuration",
            options: vec![option("--module", MODULE), option("--config", "run")],
        }],
        editable: Vec::new(),
        files: Artifacts::from([(FILE.into(), Artifact::text(module))]),
    }
}
