//! `PyTorch` alone: a plan as one program that `torchrun` starts, for reading, teaching and checking the plan itself.
//!
//! The program is the same for every plan but for the facts at its head: `facts` is the table of them, `body.py` the
//! rest, `checks` says what the program cannot do. Its calls were read from the package at [`VERSION`]:
//! `distributed/tensor`, `distributed/fsdp`, `distributed/pipelining`.

mod checks;
mod facts;

use super::{Entry, Program, Reasons, Sizes, Starter, TargetError, Where};
use crate::emit::plan::Plan;
use crate::emit::{Artifact, Artifacts};

/// Name on the command line.
pub const NAME: &str = "torch";

/// The package that was read.
pub const VERSION: &str = "2.15.0";

/// The program.
const FILE: &str = "train.py";

/// What starts `plan`, or every reason why nothing does.
pub(super) fn program(plan: &Plan) -> Result<Program, Vec<TargetError>> {
    let sizes = Sizes::of(plan);
    let mut reasons = Reasons::of(NAME, plan);
    let decoder = checks::model(plan, &sizes, &mut reasons);
    checks::layout(plan, &sizes, &mut reasons);
    checks::precision(plan, &sizes, &mut reasons);
    let schedule = checks::pipeline(plan, &sizes, &mut reasons);
    reasons.uneven_batch(plan, &sizes);
    match (decoder, schedule) {
        (Some(decoder), Some(schedule)) if reasons.none() => {
            let text = facts::text(&facts::Chosen { plan, sizes, decoder, schedule });
            Ok(Program {
                target: NAME,
                version: VERSION,
                starter: Starter::Torchrun,
                entry: Entry::Beside(FILE),
                environment: Vec::new(),
                derived: Vec::new(),
                editable: Vec::new(),
                files: Artifacts::from([(FILE.into(), Artifact::text(text))]),
            })
        }
        _ => Err(reasons.list()),
    }
}
