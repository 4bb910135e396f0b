//! Which of torchtitan's own models a plan's is.

use super::{Reasons, Where};
use crate::emit::plan::Plan;

/// A model of torchtitan's registry.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(super) struct Model {
    /// Package below `torchtitan.models`.
    pub(super) package: &'static str,
    /// Its name in the package's registry.
    pub(super) flavor: &'static str,
    /// The function of `config_registry` that trains it.
    pub(super) config: &'static str,
}

/// Layers, hidden width, heads, key and value heads, MLP width, vocabulary, rotary base; and the model.
type Row = ([u64; 7], Model);

/// The registry of `models/llama3/__init__.py`, models with a configuration of their own.
const MODELS: &[Row] = &[
    ([32, 4096, 32, 8, 14336, 128_256, 500_000], llama("8B", "llama3_8b")),
    ([80, 8192, 64, 8, 28672, 128_256, 500_000], llama("70B", "llama3_70b")),
    ([126, 16384, 128, 8, 53248, 128_256, 500_000], llama("405B", "llama3_405b")),
];

const fn llama(flavor: &'static str, config: &'static str) -> Model {
    Model { package: "llama3", flavor, config }
}

/// The registry's model of the same shape.
pub(super) fn of(plan: &Plan, reasons: &mut Reasons) -> Option<Model> {
    let found = plan.model.decoder.as_ref().and_then(|d| {
        let plain =
            d.norm == "rms" && d.activation == "swiglu" && !d.bias && !d.tied && d.head_dim * d.heads == d.hidden;
        let shape = [d.layers, d.hidden, d.heads, d.kv_heads, d.ffn, d.vocab, d.rope_base? as u64];
        MODELS.iter().find(|(row, _)| plain && *row == shape)
    });
    if found.is_none() {
        let what = format!("`{}` is not among the models this target knows", plan.model.name);
        let why = "it knows the 8B, 70B and 405B of torchtitan's Llama 3";
        reasons.add(Where::Model, what, why).able(&["megatron"]);
    }
    found.map(|(_, model)| *model)
}
