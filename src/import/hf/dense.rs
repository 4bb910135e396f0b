//! Decoders without experts.

use super::{PLAIN, Preset, Shape, activation, fixed, full_every, only};
use crate::diagnostics::Diagnostic;
use crate::import::call::Call;
use crate::import::config::Config;

type Said = Vec<Diagnostic>;

/// Llama and Mistral: `Llama` where nothing but sizes differs, else `Decoder`.
pub(super) fn llama(c: &mut Config<'_>, _: &mut Said) -> Result<Call, Diagnostic> {
    let shape = Shape::read(c, false, 10_000.0)?;
    let (bias, mlp_bias) = (c.flag("attention_bias", false)?, c.flag("mlp_bias", false)?);
    only(c, &["hidden_act"], "silu")?;
    let window = c.number("sliding_window", 0)?;
    let mut call = Call::new("Llama");
    if bias || mlp_bias || window > 0 {
        call.of("Decoder");
        shape.put(&mut call, &PLAIN);
    } else {
        shape.put(&mut call, &Preset { kv_heads: true, ..PLAIN });
    }
    call.flag("qkv_bias", bias);
    call.flag("out_bias", bias);
    call.flag("mlp_bias", mlp_bias);
    if window > 0 {
        call.tokens("window", window);
    }
    Ok(call)
}

/// Layers from `max_window_layers` on have windows where `use_sliding_window` says so.
fn no_window(c: &mut Config<'_>) -> Result<(), Diagnostic> {
    c.skip(&["sliding_window", "max_window_layers"]);
    fixed(c, "use_sliding_window", false)
}

pub(super) fn qwen2(c: &mut Config<'_>, _: &mut Said) -> Result<Call, Diagnostic> {
    let shape = Shape::read(c, false, 10_000.0)?;
    no_window(c)?;
    only(c, &["hidden_act"], "silu")?;
    let mut call = Call::new("Qwen2");
    shape.put(&mut call, &Preset { rope: Some(1e6), ..PLAIN });
    Ok(call)
}

pub(super) fn qwen3(c: &mut Config<'_>, _: &mut Said) -> Result<Call, Diagnostic> {
    let head_dim = c.count("head_dim", 128)?;
    let shape = Shape { head_dim, ..Shape::read(c, false, 10_000.0)? };
    no_window(c)?;
    only(c, &["hidden_act"], "silu")?;
    let bias = c.flag("attention_bias", false)?;
    let mut call = Call::new("Qwen3");
    shape.put(&mut call, &Preset { vocab: Some(151_936), head_dim: Some(128), rope: Some(1e6), ..PLAIN });
    call.flag("qkv_bias", bias);
    call.flag("out_bias", bias);
    Ok(call)
}

pub(super) fn phi3(c: &mut Config<'_>, _: &mut Said) -> Result<Call, Diagnostic> {
    let shape = Shape::read(c, false, 10_000.0)?;
    fixed(c, "attention_bias", false)?;
    only(c, &["hidden_act"], "silu")?;
    let window = c.number("sliding_window", 0)?;
    let mut call = Call::new("Decoder");
    shape.put(&mut call, &PLAIN);
    if window > 0 {
        call.tokens("window", window);
    }
    Ok(call)
}

pub(super) fn olmo2(c: &mut Config<'_>, _: &mut Said) -> Result<Call, Diagnostic> {
    let shape = Shape::read(c, false, 500_000.0)?;
    fixed(c, "attention_bias", false)?;
    only(c, &["hidden_act"], "silu")?;
    let mut call = Call::new("OLMo2");
    shape.put(&mut call, &Preset { vocab: Some(100_352), rope: Some(500_000.0), ..PLAIN });
    Ok(call)
}

pub(super) fn gemma2(c: &mut Config<'_>, _: &mut Said) -> Result<Call, Diagnostic> {
    let head_dim = c.count("head_dim", 256)?;
    let shape = Shape { head_dim, ..Shape::read(c, true, 10_000.0)? };
    fixed(c, "attention_bias", false)?;
    only(c, &["hidden_activation", "hidden_act"], "gelu")?;
    c.skip(&["hidden_act", "attn_logit_softcapping", "final_logit_softcapping", "sliding_window_size"]);
    let window = c.count("sliding_window", 4096)?;
    let every = full_every(c, shape.layers, 2)?;
    let mut call = Call::new("Gemma2");
    shape.put(&mut call, &Preset { vocab: Some(256_000), tied: true, ..PLAIN });
    if window != 4096 {
        call.tokens("window", window);
    }
    call.unless("full_every", every, &2);
    Ok(call)
}

pub(super) fn gemma3(c: &mut Config<'_>, _: &mut Said) -> Result<Call, Diagnostic> {
    let head_dim = c.count("head_dim", 256)?;
    let shape = Shape { head_dim, ..Shape::read(c, true, 1e6)? };
    fixed(c, "attention_bias", false)?;
    only(c, &["hidden_activation", "hidden_act"], "gelu")?;
    c.skip(&["hidden_act", "attn_logit_softcapping", "final_logit_softcapping"]);
    let window = c.count("sliding_window", 4096)?;
    let every = full_every(c, shape.layers, 6)?;
    let local = c.base("rope_local_base_freq", 10_000.0)?;
    let mut call = Call::new("Gemma3");
    shape.put(&mut call, &Preset { vocab: Some(262_144), tied: true, rope: Some(1e6), ..PLAIN });
    if window != 1024 {
        call.tokens("window", window);
    }
    call.unless("full_every", every, &6);
    call.real("window_rope_base", local, 10_000.0);
    Ok(call)
}

pub(super) fn nemotron(c: &mut Config<'_>, _: &mut Said) -> Result<Call, Diagnostic> {
    let shape = Shape::read(c, false, 10_000.0)?;
    fixed(c, "attention_bias", false)?;
    fixed(c, "mlp_bias", false)?;
    only(c, &["hidden_act"], "squared_relu")?;
    let mut call = Call::new("Nemotron4");
    shape.put(&mut call, &Preset { vocab: Some(256_000), ..PLAIN });
    Ok(call)
}

pub(super) fn gpt2(c: &mut Config<'_>, _: &mut Said) -> Result<Call, Diagnostic> {
    let mut call = Call::new("GPT");
    let (layers, hidden) = (c.need(&["n_layer", "num_hidden_layers"])?, c.need(&["n_embd", "hidden_size"])?);
    let heads = c.need(&["n_head", "num_attention_heads"])?;
    let vocab = c.need(&["vocab_size"])?;
    let positions = c.count("n_positions", 1024)?;
    let inner = c.count("n_inner", 4 * hidden)?;
    c.skip(&["n_ctx", "summary_type", "summary_use_proj", "summary_first_dropout", "summary_proj_to_labels"]);
    c.skip(&["summary_activation", "reorder_and_upcast_attn", "scale_attn_weights", "scale_attn_by_inverse_layer_idx"]);
    only(c, &["activation_function"], "gelu")?;
    fixed(c, "tie_word_embeddings", true)?;
    if inner != 4 * hidden {
        return Err(c.unlike("n_inner", &inner.to_string(), "its MLP is four times as wide as the model"));
    }
    call.put("layers", layers);
    call.put("hidden", hidden);
    call.put("heads", heads);
    call.unless("vocab", vocab, &50_257);
    call.unless("max_positions", positions, &2048);
    Ok(call)
}

pub(super) fn opt(c: &mut Config<'_>, _: &mut Said) -> Result<Call, Diagnostic> {
    let hidden = c.need(&["hidden_size"])?;
    let inner = c.count("word_embed_proj_dim", hidden)?;
    if inner != hidden {
        return Err(c.unlike("word_embed_proj_dim", &inner.to_string(), "embedding and model are equally wide"));
    }
    fixed(c, "do_layer_norm_before", true)?;
    fixed(c, "enable_bias", true)?;
    fixed(c, "layer_norm_elementwise_affine", true)?;
    fixed(c, "_remove_final_layer_norm", false)?;
    let mut call = Call::new("OPT");
    call.put("layers", c.need(&["num_hidden_layers"])?);
    call.put("hidden", hidden);
    call.put("heads", c.need(&["num_attention_heads"])?);
    call.put("ffn", c.need(&["ffn_dim"])?);
    call.unless("vocab", c.need(&["vocab_size"])?, &50_272);
    if !c.flag("tie_word_embeddings", true)? {
        call.put("tied", false);
    }
    let act = activation(c, &["activation_function"], "relu")?;
    call.unless("activation", act, &"relu");
    // Two rows more than positions.
    call.unless("max_positions", c.count("max_position_embeddings", 2048)? + 2, &2050);
    c.skip(&["prefix", "output_projection"]);
    Ok(call)
}

pub(super) fn bloom(c: &mut Config<'_>, _: &mut Said) -> Result<Call, Diagnostic> {
    let mut call = Call::new("BLOOM");
    let hidden = c.need(&["hidden_size", "n_embed"])?;
    call.put("layers", c.need(&["n_layer", "num_hidden_layers"])?);
    call.put("hidden", hidden);
    call.put("heads", c.need(&["n_head", "num_attention_heads"])?);
    call.put("ffn", 4 * hidden);
    call.unless("vocab", c.need(&["vocab_size"])?, &250_880);
    if !c.flag("tie_word_embeddings", true)? {
        call.put("tied", false);
    }
    fixed(c, "apply_residual_connection_post_layernorm", false)?;
    c.skip(&[
        "seq_length",
        "n_inner",
        "offset_alibi",
        "skip_bias_add",
        "skip_bias_add_qkv",
        "unk_token_id",
        "n_positions",
    ]);
    Ok(call)
}

pub(super) fn falcon(c: &mut Config<'_>, _: &mut Said) -> Result<Call, Diagnostic> {
    let hidden = c.need(&["hidden_size"])?;
    let heads = c.need(&["num_attention_heads", "n_head"])?;
    let newer = c.flag("new_decoder_architecture", false)?;
    let multi_query = c.flag("multi_query", true)?;
    let kv_heads = match (newer, multi_query) {
        (true, _) => c.count("num_kv_heads", heads)?,
        (false, true) => 1,
        (false, false) => heads,
    };
    c.skip(&["num_kv_heads"]);
    fixed(c, "bias", false)?;
    fixed(c, "alibi", false)?;
    c.skip(&["apply_residual_connection_post_layernorm"]);
    let parallel = c.flag("parallel_attn", true)?;
    let norms = c.count("num_ln_in_parallel_attn", if newer { 2 } else { 1 })?;
    let mut call = Call::new("Falcon");
    call.put("layers", c.need(&["num_hidden_layers", "n_layer"])?);
    call.put("hidden", hidden);
    call.put("heads", heads);
    call.unless("kv_heads", kv_heads, &heads);
    call.put("ffn", c.count("ffn_hidden_size", 4 * hidden)?);
    call.unless("vocab", c.need(&["vocab_size"])?, &65_024);
    call.flag("tied", c.flag("tie_word_embeddings", true)?);
    call.real("rope_base", c.base("rope_theta", 10_000.0)?, 10_000.0);
    if parallel {
        call.unless("norms", norms, &2);
    } else {
        call.put("parallel", false);
    }
    only(c, &["activation", "hidden_act"], "gelu")?;
    c.skip(&["max_position_embeddings"]);
    Ok(call)
}
