//! Which of torchtitan's own models a plan's is.

use super::{Reasons, Where};
use crate::emit::plan::{DecoderInfo, Plan};

/// A model of torchtitan's registry.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(super) struct Model {
    /// Package below `torchtitan.models`.
    pub(super) package: &'static str,
    /// Its name in the package's registry.
    pub(super) flavor: &'static str,
    /// The function of `config_registry` that trains it, or the nearest of its family.
    pub(super) config: &'static str,
    /// Layers, hidden width, heads, key and value heads, MLP or expert width.
    shape: [u64; 5],
    /// Experts and choices of a token.
    experts: Option<(u64, u64)>,
    /// Whether the head reuses the embedding.
    tied: bool,
}

/// What the models of a package have in common.
struct Family {
    package: &'static str,
    vocab: u64,
    head_dim: u64,
    rope_base: u64,
    qk_norm: bool,
}

/// `models/{llama3,qwen3}/__init__.py`.
const FAMILIES: &[Family] = &[
    Family { package: "llama3", vocab: 128_256, head_dim: 128, rope_base: 500_000, qk_norm: false },
    Family { package: "qwen3", vocab: 151_936, head_dim: 128, rope_base: 1_000_000, qk_norm: true },
];

/// The registries of the same files, with the configurations of `config_registry.py`.
const MODELS: &[Model] = &[
    dense("llama3", "8B", "llama3_8b", [32, 4096, 32, 8, 14336], false),
    dense("llama3", "70B", "llama3_70b", [80, 8192, 64, 8, 28672], false),
    dense("llama3", "405B", "llama3_405b", [126, 16384, 128, 8, 53248], false),
    dense("qwen3", "0.6B", "qwen3_0_6b", [28, 1024, 16, 8, 3072], true),
    dense("qwen3", "1.7B", "qwen3_1_7b", [28, 2048, 16, 8, 6144], true),
    dense("qwen3", "4B", "qwen3_1_7b", [36, 2560, 32, 8, 9728], true),
    dense("qwen3", "8B", "qwen3_14b", [36, 4096, 32, 8, 12288], false),
    dense("qwen3", "14B", "qwen3_14b", [40, 5120, 40, 8, 17408], false),
    dense("qwen3", "32B", "qwen3_32b", [64, 5120, 64, 8, 25600], false),
    sparse("qwen3", "30B-A3B", "qwen3_30b_a3b", [48, 2048, 32, 4, 768], (128, 8)),
];

const fn dense(
    package: &'static str,
    flavor: &'static str,
    config: &'static str,
    shape: [u64; 5],
    tied: bool,
) -> Model {
    Model { package, flavor, config, shape, experts: None, tied }
}

const fn sparse(
    package: &'static str,
    flavor: &'static str,
    config: &'static str,
    shape: [u64; 5],
    experts: (u64, u64),
) -> Model {
    Model { package, flavor, config, shape, experts: Some(experts), tied: false }
}

/// Sizes of a model of the registry.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Sizes {
    pub(crate) layers: u64,
    pub(crate) hidden: u64,
    pub(crate) heads: u64,
    pub(crate) kv_heads: u64,
    pub(crate) ffn: u64,
    pub(crate) vocab: u64,
    pub(crate) head_dim: u64,
    pub(crate) rope_base: u64,
    pub(crate) qk_norm: bool,
    pub(crate) experts: Option<(u64, u64)>,
    pub(crate) tied: bool,
}

/// The registry's model of this name.
pub(crate) fn registered(package: &str, flavor: &str) -> Option<Sizes> {
    let m = MODELS.iter().find(|m| m.package == package && m.flavor == flavor)?;
    let f = FAMILIES.iter().find(|f| f.package == package)?;
    let [layers, hidden, heads, kv_heads, ffn] = m.shape;
    Some(Sizes {
        layers,
        hidden,
        heads,
        kv_heads,
        ffn,
        vocab: f.vocab,
        head_dim: f.head_dim,
        rope_base: f.rope_base,
        qk_norm: f.qk_norm,
        experts: m.experts,
        tied: m.tied,
    })
}

/// The registry's model of the same shape.
pub(super) fn of(plan: &Plan, reasons: &mut Reasons) -> Option<Model> {
    let found = plan.model.decoder.as_ref().and_then(|d| MODELS.iter().find(|m| is(m, d)));
    if found.is_none() {
        let what = format!("`{}` is not among the models this target knows", plan.model.name);
        let why = "it knows torchtitan's Llama 3 (8B, 70B, 405B) and Qwen3 (0.6B to 32B, 30B-A3B)";
        reasons.add(Where::Model, what, why).able(&["megatron"]);
    }
    found.copied()
}

fn is(model: &Model, d: &DecoderInfo) -> bool {
    let plain = d.norm == "rms" && d.activation == "swiglu" && !d.bias;
    let family = FAMILIES.iter().any(|f| {
        let base = d.rope_base.is_some_and(|b| b as u64 == f.rope_base);
        f.package == model.package && (d.vocab, d.head_dim, d.qk_norm) == (f.vocab, f.head_dim, f.qk_norm) && base
    });
    let routed = |e: &crate::emit::plan::ExpertsInfo| {
        let bare = e.groups.is_none() && !e.correction_bias && e.shared.is_none();
        bare.then_some((e.count, e.top_k))
    };
    let experts = d.experts.as_ref().map_or(Some(None), |e| routed(e).map(Some));
    plain
        && family
        && model.shape == [d.layers, d.hidden, d.heads, d.kv_heads, d.ffn]
        && model.tied == d.tied
        && experts == Some(model.experts)
}
