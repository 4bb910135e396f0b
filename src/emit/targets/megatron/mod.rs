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

use super::{Program, TargetError, Where};
use crate::emit::plan::{AxisRole, DecoderInfo, Plan};

/// Name on the command line.
pub const NAME: &str = "megatron";

/// The source that was read.
pub const VERSION: &str = "core 0.20-dev of 2026-08-22";

/// The command line that runs `plan`, or every reason why there is none.
pub(super) fn program(plan: &Plan) -> Result<Program, Vec<TargetError>> {
    let sizes = Sizes::of(plan);
    let mut errors = Errors::default();
    checks::model(plan, &sizes, &mut errors);
    checks::batch(plan, &sizes, &mut errors);
    checks::precision(plan, &mut errors);
    let order = order::of(plan, &mut errors);
    let attention = checks::attention(plan, &sizes, &mut errors);
    let memory = memory::of(plan, &sizes, &mut errors);
    let split = split::of(plan, &sizes, &mut errors);
    let decoder = plan.model.decoder.as_ref();
    match (decoder, order, attention, memory, split) {
        (Some(decoder), Some(order), Some(attention), Some(memory), Some(split)) if errors.0.is_empty() => {
            Ok(fields::program(&Chosen { plan, decoder, sizes, order, attention, memory, split }))
        }
        _ => Err(errors.0),
    }
}

/// Degrees of parallelism: products over the mesh axes of each role.
#[derive(Copy, Clone, Debug)]
struct Sizes {
    tp: u64,
    cp: u64,
    dp: u64,
    pp: u64,
}

impl Sizes {
    fn of(plan: &Plan) -> Self {
        let product = |role| {
            let axes = plan.layout.axes.iter().filter(|a| a.role == role);
            axes.fold(1_u64, |n, a| n.saturating_mul(a.size.max(1)))
        };
        Self {
            tp: product(AxisRole::Tensor),
            cp: product(AxisRole::Context),
            dp: product(AxisRole::Data),
            pp: product(AxisRole::Pipeline),
        }
    }

    /// Ranks over which gradients are summed.
    fn gradient_group(self) -> u64 {
        self.dp.saturating_mul(self.cp)
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

/// Reasons found so far.
#[derive(Default)]
struct Errors(Vec<TargetError>);

impl Errors {
    /// Adds a reason; the result is refined by [`Reason`]'s methods.
    fn add(&mut self, at: Where, what: impl Into<String>, why: impl Into<String>) -> Reason<'_> {
        let (what, why) = (what.into(), why.into());
        self.0.push(TargetError { target: NAME, what, why, at, instead: None, able: &[] });
        Reason(self.0.last_mut().expect("one was just added"))
    }
}

/// The reason added last.
struct Reason<'a>(&'a mut TargetError);

impl Reason<'_> {
    /// What to write instead.
    fn instead(self, text: impl Into<String>) -> Self {
        self.0.instead = Some(text.into());
        self
    }

    /// Which frameworks can do it.
    fn able(self, able: &'static [&'static str]) {
        self.0.able = able;
    }
}
