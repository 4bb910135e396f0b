//! Hugging Face configurations: the architecture chooses a family of the library, the fields its arguments.

mod dense;
mod experts;
mod others;
mod vision;

use super::call::Call;
use super::config::Config;
use super::errors;
use super::json::Json;
use crate::diagnostics::Diagnostic;

/// What reads the fields of one architecture.
type Reader = for<'a> fn(&mut Config<'a>, &mut Vec<Diagnostic>) -> Result<Call, Diagnostic>;

/// Architectures by `model_type`, each with its reader.
const READERS: &[(&[&str], Reader)] = &[
    (&["llama", "mistral"], dense::llama),
    (&["qwen2"], dense::qwen2),
    (&["qwen3"], dense::qwen3),
    (&["phi3"], dense::phi3),
    (&["olmo2"], dense::olmo2),
    (&["gemma2"], dense::gemma2),
    (&["gemma3_text"], dense::gemma3),
    (&["nemotron"], dense::nemotron),
    (&["gpt2"], dense::gpt2),
    (&["opt"], dense::opt),
    (&["bloom"], dense::bloom),
    (&["falcon"], dense::falcon),
    (&["mixtral"], experts::mixtral),
    (&["qwen2_moe"], experts::qwen2),
    (&["qwen3_moe"], experts::qwen3),
    (&["deepseek_v2", "deepseek_v3", "deepseek_v32", "kimi_k2"], experts::deepseek),
    (&["glm4_moe"], experts::glm4),
    (&["gpt_oss"], experts::gpt_oss),
    (&["dbrx"], experts::dbrx),
    (&["phimoe"], experts::phi),
    (&["llava"], vision::llava),
    (&["qwen2_vl"], vision::qwen2),
    (&["qwen3_vl"], vision::qwen3),
    (&["gemma3"], vision::gemma3),
    (&["gemma4"], vision::gemma4),
    (&["llama4"], vision::llama4),
    (&["vit"], vision::vit),
    (&["bert"], others::bert),
    (&["t5"], others::t5),
    (&["whisper"], others::whisper),
    (&["mamba2"], others::mamba2),
    (&["nemotron_h"], others::nemotron_h),
];

/// The program for a configuration.
pub(super) fn model(tree: &Json, stem: &str, said: &mut Vec<Diagnostic>) -> Result<String, Diagnostic> {
    let mut c = Config::new(tree, "").ok_or_else(|| errors::nameless(tree.span))?;
    let Some(model_type) = c.word("model_type")? else { return Err(errors::nameless(tree.span)) };
    c.of = model_type;
    let Some((_, reader)) = READERS.iter().find(|(types, _)| types.contains(&model_type)) else {
        let known: Vec<_> = READERS.iter().flat_map(|(types, _)| types.iter().copied()).collect();
        return Err(errors::unknown(model_type, c.at("model_type"), &known));
    };
    let call = reader(&mut c, said)?;
    c.tell_unread(said);
    let remarks = call.remarks.iter().fold(String::new(), |all, r| all + "// " + r + "\n");
    let of = model_type.replace(|ch: char| ch.is_control(), " ");
    Ok(format!(
        "edition 1\n//! Imported from a Hugging Face configuration of type `{of}`.\n\n{remarks}{}",
        call.text(&name(stem, call.family()))
    ))
}

/// A name of the language made of a file's. A capital at its start keeps it off the words of the language, and it may not be
/// that of the family it calls.
fn name(stem: &str, family: &str) -> String {
    let text: String = stem.chars().take(80).map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let text = text.trim_matches('_');
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_ascii_uppercase());
    let text: String = first.into_iter().chain(chars).collect();
    let plain = first.is_some_and(|c| c.is_ascii_alphabetic()) && text.len() > 1 && text != family;
    if plain { text } else { format!("Model_{text}") }
}

/// What most decoders have.
#[derive(Debug)]
struct Shape {
    layers: u64,
    hidden: u64,
    heads: u64,
    kv_heads: u64,
    head_dim: u64,
    ffn: u64,
    vocab: u64,
    tied: bool,
    rope: f64,
}

/// What a family gives by itself.
#[derive(Copy, Clone, Debug)]
struct Preset {
    /// Vocabulary, where it has one.
    vocab: Option<u64>,
    /// Width of a head, where it is not the model's over the heads.
    head_dim: Option<u64>,
    /// Whether key-value heads have to be given, equal or not.
    kv_heads: bool,
    /// Whether the head is tied.
    tied: bool,
    /// Base of the rotary frequencies; none where it takes none.
    rope: Option<f64>,
}

/// `Decoder` and `MoEDecoder` as they are.
const PLAIN: Preset = Preset { vocab: None, head_dim: None, kv_heads: false, tied: false, rope: Some(10_000.0) };

impl Shape {
    /// The fields under the names that most configurations use; `tied` and `rope` stand in where they are not given.
    fn read(c: &mut Config<'_>, tied: bool, rope: f64) -> Result<Self, Diagnostic> {
        let layers = c.need(&["num_hidden_layers"])?;
        let hidden = c.need(&["hidden_size"])?;
        let heads = c.need(&["num_attention_heads"])?;
        let kv_heads = c.count("num_key_value_heads", heads)?;
        let head_dim = Self::head_dim(c, hidden, heads, None)?;
        let ffn = c.need(&["intermediate_size"])?;
        let vocab = c.need(&["vocab_size"])?;
        c.skip(&["max_position_embeddings", "use_qk_norm"]);
        Ok(Self {
            layers,
            hidden,
            heads,
            kv_heads,
            head_dim,
            ffn,
            vocab,
            tied: c.flag("tie_word_embeddings", tied)?,
            rope: c.base("rope_theta", rope)?,
        })
    }

    /// `head_dim`, or `default`, or the model's width over the heads, which then divide it.
    fn head_dim(c: &mut Config<'_>, hidden: u64, heads: u64, default: Option<u64>) -> Result<u64, Diagnostic> {
        if let Some(given) = default {
            return c.count("head_dim", given);
        }
        if c.get("head_dim").is_none() && !hidden.is_multiple_of(heads) {
            return Err(errors::range(
                "num_attention_heads",
                &heads.to_string(),
                &format!("a divisor of {hidden}"),
                c.span,
            ));
        }
        c.count("head_dim", hidden / heads)
    }

    /// As arguments, without what the family gives.
    fn put(&self, call: &mut Call, preset: &Preset) {
        call.put("layers", self.layers);
        call.put("hidden", self.hidden);
        call.put("heads", self.heads);
        if preset.kv_heads || self.kv_heads != self.heads {
            call.put("kv_heads", self.kv_heads);
        }
        call.put("ffn", self.ffn);
        call.unless("vocab", self.vocab, &preset.vocab.unwrap_or(0));
        call.unless("head_dim", self.head_dim, &preset.head_dim.unwrap_or(self.hidden / self.heads));
        if self.tied != preset.tied {
            call.put("tied", self.tied);
        }
        if let Some(rope) = preset.rope {
            call.real("rope_base", self.rope, rope);
        }
    }
}

/// The word of the language for an activation.
fn activation(c: &mut Config<'_>, keys: &[&str], default: &'static str) -> Result<&'static str, Diagnostic> {
    let mut found = None;
    for key in keys {
        found = found.or(c.word(key)?.map(|w| (*key, w)));
    }
    match found {
        None => Ok(default),
        Some((_, "silu" | "swish")) => Ok("silu"),
        Some((_, w)) if w.starts_with("gelu") || w == "quick_gelu" => Ok("gelu"),
        Some((_, "relu")) => Ok("relu"),
        Some((_, "relu2")) => Ok("squared_relu"),
        Some((key, w)) => {
            let shown: String = w.chars().take(40).collect();
            Err(c.unlike(key, &format!("`{shown}`"), "known are silu, gelu, relu and relu2"))
        }
    }
}

/// An activation that the family has no other of.
fn only(c: &mut Config<'_>, keys: &[&str], wanted: &'static str) -> Result<(), Diagnostic> {
    let found = activation(c, keys, wanted)?;
    let key = keys.first().copied().unwrap_or_default();
    if found == wanted { Ok(()) } else { Err(c.unlike(key, &format!("`{found}`"), &format!("it has {wanted}"))) }
}

/// A flag that the family can only have one way.
fn fixed(c: &mut Config<'_>, key: &str, wanted: bool) -> Result<(), Diagnostic> {
    let found = c.flag(key, wanted)?;
    if found == wanted { Ok(()) } else { Err(c.unlike(key, &found.to_string(), &format!("here it is {wanted}"))) }
}

/// Which layers see all: every n-th by `layer_types`, where it is given.
fn full_every(c: &mut Config<'_>, layers: u64, default: u64) -> Result<u64, Diagnostic> {
    let by_count = c.count("sliding_window_pattern", default)?;
    let Some(types) = c.words("layer_types")? else { return Ok(by_count) };
    let full = |t: &&str| *t == "full_attention";
    let every = types.iter().position(&full).map_or(layers + 1, |i| i as u64 + 1);
    let regular = types.iter().enumerate().all(|(i, t)| full(t) == (i as u64 + 1).is_multiple_of(every));
    if regular && types.len() as u64 == layers {
        Ok(every)
    } else {
        Err(c.unlike("layer_types", "an irregular list", "layers that see all come at every n-th place"))
    }
}
