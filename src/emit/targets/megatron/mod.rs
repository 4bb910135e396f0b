//! Megatron-LM: a plan as arguments of `pretrain_gpt.py`.
//!
//! Options, defaults and rejecting rules were read from the source at [`VERSION`]: `training/arguments.py`,
//! `core/transformer/transformer_config.py`, `core/parallel_state.py`, `core/transformer/transformer_block.py`,
//! `core/transformer/pipeline_parallel_layer_layout.py`. `checks` says what Megatron cannot do, `order` how it
//! numbers ranks, `split` how it cuts the model, `fields` which option says what.

mod checks;
mod fields;
mod memory;
mod order;
mod split;

pub(crate) use memory::MODULES;

use super::{Program, Reasons, Sizes, TargetError, Where};
use crate::emit::plan::{DecoderInfo, Plan};

/// Name on the command line.
pub const NAME: &str = "megatron";

/// The source that was read.
pub const VERSION: &str = "core 0.20-dev of 2026-08-22";

/// The command line that runs `plan`, or every reason why there is none.
pub(super) fn program(plan: &Plan) -> Result<Program, Vec<TargetError>> {
    let sizes = Sizes::of(plan);
    let mut errors = Reasons::of(NAME, plan);
    checks::model(plan, &sizes, &mut errors);
    checks::batch(plan, &sizes, &mut errors);
    checks::precision(plan, &mut errors);
    let order = order::of(plan, &mut errors);
    checks::experts(plan, &sizes, &mut errors);
    if let Some(order) = order {
        order::experts(plan, &sizes, order, &mut errors);
    }
    let attention = checks::attention(plan, &sizes, &mut errors);
    let memory = memory::of(plan, &sizes, &mut errors);
    let split = split::of(plan, &sizes, &mut errors);
    let decoder = plan.model.decoder.as_ref();
    match (decoder, order, attention, memory, split) {
        (Some(decoder), Some(order), Some(attention), Some(memory), Some(split)) if errors.none() => {
            Ok(fields::program(&Chosen { plan, decoder, sizes, order, attention, memory, split }))
        }
        _ => Err(errors.list()),
    }
}

/// A plan Megatron can run, with every choice of how to say it made.
struct Chosen<'a> {
    plan: &'a Plan,
    decoder: &'a DecoderInfo,
    sizes: Sizes,
    order: order::Order,
    attention: checks::CpMethod,
    memory: memory::Memory,
    split: split::Split,
}
