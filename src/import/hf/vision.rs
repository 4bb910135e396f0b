//! Vision transformers, and language models with a vision tower.

use super::{PLAIN, Preset, Shape, fixed, full_every, only};
use crate::diagnostics::Diagnostic;
use crate::import::call::Call;
use crate::import::config::Config;

type Said = Vec<Diagnostic>;

/// Sizes of a tower, each with what the family gives.
fn tower(v: &mut Config<'_>, call: &mut Call, given: [u64; 5]) -> Result<(), Diagnostic> {
    let [layers, hidden, heads, ffn, patch] = given;
    call.unless("vision_layers", v.count("num_hidden_layers", layers)?, &layers);
    call.unless("vision_hidden", v.count("hidden_size", hidden)?, &hidden);
    call.unless("vision_heads", v.count("num_attention_heads", heads)?, &heads);
    call.unless("vision_ffn", v.count("intermediate_size", ffn)?, &ffn);
    call.unless("patch", v.count("patch_size", patch)?, &patch);
    v.skip(&["model_type", "num_channels", "projection_dim", "vocab_size", "num_key_value_heads", "head_dim"]);
    v.skip(&["max_position_embeddings", "torch_dtype", "is_encoder_decoder"]);
    Ok(())
}

pub(super) fn llava(c: &mut Config<'_>, said: &mut Said) -> Result<Call, Diagnostic> {
    let (mut t, mut v) = (c.need_child("text_config")?, c.need_child("vision_config")?);
    let shape = Shape::read(&mut t, false, 10_000.0)?;
    fixed(&mut t, "attention_bias", false)?;
    only(&mut t, &["hidden_act"], "silu")?;
    only(c, &["projector_hidden_act"], "gelu")?;
    let mut call = Call::new("LLaVA");
    shape.put(&mut call, &Preset { vocab: Some(32_064), ..PLAIN });
    tower(&mut v, &mut call, [24, 1024, 16, 4096, 14])?;
    call.unless("image", v.count("image_size", 336)?, &336);
    only(&mut v, &["hidden_act"], "gelu")?;
    t.skip(&["model_type"]);
    c.skip(&["tie_word_embeddings", "image_seq_length", "multimodal_projector_bias"]);
    t.tell_unread(said);
    v.tell_unread(said);
    Ok(call)
}

pub(super) fn qwen2(c: &mut Config<'_>, said: &mut Said) -> Result<Call, Diagnostic> {
    let mut v = c.need_child("vision_config")?;
    let shape = Shape::read(c, false, 1e6)?;
    c.skip(&["sliding_window", "max_window_layers"]);
    fixed(c, "use_sliding_window", false)?;
    only(c, &["hidden_act"], "silu")?;
    let mut call = Call::new("Qwen2VL");
    shape.put(&mut call, &Preset { kv_heads: true, rope: Some(1e6), ..PLAIN });
    let hidden = v.count("embed_dim", 1280)?;
    call.unless("vision_layers", v.count("depth", 32)?, &32);
    call.unless("vision_hidden", hidden, &1280);
    call.unless("vision_heads", v.count("num_heads", 16)?, &16);
    call.unless("vision_ffn", v.count("mlp_ratio", 4)?.saturating_mul(hidden), &5120);
    call.unless("patch", v.count("patch_size", 14)?, &14);
    call.unless("frames", v.count("temporal_patch_size", 2)?, &2);
    merged(&mut v)?;
    v.skip(&["hidden_size", "in_chans", "in_channels", "model_type", "spatial_patch_size", "hidden_act"]);
    v.tell_unread(said);
    Ok(call)
}

/// Patches are merged 2 x 2.
fn merged(v: &mut Config<'_>) -> Result<(), Diagnostic> {
    let merge = v.count("spatial_merge_size", 2)?;
    if merge == 2 {
        Ok(())
    } else {
        Err(v.unlike("spatial_merge_size", &merge.to_string(), "patches are merged 2 x 2"))
    }
}

pub(super) fn qwen3(c: &mut Config<'_>, said: &mut Said) -> Result<Call, Diagnostic> {
    let (mut t, mut v) = (c.need_child("text_config")?, c.need_child("vision_config")?);
    let head_dim = t.count("head_dim", 128)?;
    let tied = c.flag("tie_word_embeddings", false)?;
    let shape = Shape { head_dim, ..Shape::read(&mut t, tied, 5e6)? };
    fixed(&mut t, "attention_bias", false)?;
    only(&mut t, &["hidden_act"], "silu")?;
    t.skip(&["model_type"]);
    let mut call = Call::new("Qwen3VL");
    shape.put(&mut call, &Preset { kv_heads: true, head_dim: Some(128), rope: Some(5e6), ..PLAIN });
    call.unless("vision_layers", v.count("depth", 27)?, &27);
    call.unless("vision_hidden", v.count("hidden_size", 1152)?, &1152);
    call.unless("vision_heads", v.count("num_heads", 16)?, &16);
    call.unless("vision_ffn", v.count("intermediate_size", 4304)?, &4304);
    call.unless("patch", v.count("patch_size", 16)?, &16);
    call.unless("frames", v.count("temporal_patch_size", 2)?, &2);
    call.unless("rows", v.count("num_position_embeddings", 2304)?, &2304);
    let deep = match v.get("deepstack_visual_indexes").map(|j| &j.node) {
        Some(crate::import::json::Node::List(items)) => items.len() as u64,
        _ => 3,
    };
    call.unless("deep", deep, &3);
    merged(&mut v)?;
    only(&mut v, &["hidden_act"], "gelu")?;
    v.skip(&["in_channels", "model_type", "out_hidden_size"]);
    t.tell_unread(said);
    v.tell_unread(said);
    Ok(call)
}

pub(super) fn gemma3(c: &mut Config<'_>, said: &mut Said) -> Result<Call, Diagnostic> {
    let (mut t, mut v) = (c.need_child("text_config")?, c.need_child("vision_config")?);
    // What a published file leaves out is what its program has by default.
    let hidden = t.count("hidden_size", 2304)?;
    let shape = Shape {
        layers: t.count("num_hidden_layers", 26)?,
        hidden,
        heads: t.count("num_attention_heads", 8)?,
        kv_heads: t.count("num_key_value_heads", 4)?,
        head_dim: t.count("head_dim", 256)?,
        ffn: t.count("intermediate_size", 9216)?,
        vocab: t.count("vocab_size", 262_208)?,
        tied: true,
        rope: t.base("rope_theta", 1e6)?,
    };
    only(&mut t, &["hidden_activation", "hidden_act"], "gelu")?;
    fixed(&mut t, "attention_bias", false)?;
    let window = t.count("sliding_window", 4096)?;
    let every = full_every(&mut t, shape.layers, 6)?;
    t.skip(&["model_type", "max_position_embeddings", "attn_logit_softcapping", "final_logit_softcapping"]);
    t.skip(&["rope_local_base_freq", "tie_word_embeddings"]);
    let mut call = Call::new("Gemma3VL");
    let preset = Preset { vocab: Some(262_208), head_dim: Some(256), kv_heads: true, tied: true, rope: Some(1e6) };
    shape.put(&mut call, &preset);
    if window != 1024 {
        call.tokens("window", window);
    }
    call.unless("full_every", every, &6);
    tower(&mut v, &mut call, [27, 1152, 16, 4304, 14])?;
    call.unless("image", v.count("image_size", 896)?, &896);
    only(&mut v, &["hidden_act"], "gelu")?;
    fixed(&mut v, "vision_use_head", false)?;
    c.skip(&["tie_word_embeddings"]);
    t.tell_unread(said);
    v.tell_unread(said);
    Ok(call)
}

pub(super) fn gemma4(c: &mut Config<'_>, said: &mut Said) -> Result<Call, Diagnostic> {
    let (mut t, mut v) = (c.need_child("text_config")?, c.need_child("vision_config")?);
    let head_dim = t.count("head_dim", 256)?;
    let shape = Shape { head_dim, ..Shape::read(&mut t, true, 1e6)? };
    fixed(&mut t, "attention_k_eq_v", true)?;
    fixed(&mut t, "use_double_wide_mlp", false)?;
    only(&mut t, &["hidden_activation"], "gelu")?;
    for key in ["hidden_size_per_layer_input", "num_kv_shared_layers"] {
        let found = t.number(key, 0)?;
        if found > 0 {
            return Err(t.unlike(key, &found.to_string(), "here it is 0"));
        }
    }
    let (window, every) = (t.count("sliding_window", 1024)?, full_every(&mut t, shape.layers, 6)?);
    let experts = if t.flag("enable_moe_block", false)? { t.need(&["num_experts"])? } else { 0 };
    let mut call = Call::new("Gemma4");
    let preset = Preset { vocab: Some(262_144), head_dim: Some(256), kv_heads: true, tied: true, rope: Some(1e6) };
    shape.put(&mut call, &preset);
    call.put("full_kv_heads", t.count("num_global_key_value_heads", shape.kv_heads)?);
    call.unless("full_head_dim", t.count("global_head_dim", 512)?, &512);
    if window != 1024 {
        call.tokens("window", window);
    }
    call.unless("full_every", every, &6);
    if experts > 0 {
        call.put("experts", experts);
        call.unless("top_k", t.need(&["top_k_experts", "num_experts_per_tok"])?, &8);
        call.unless("expert_ffn", t.need(&["moe_intermediate_size"])?, &704);
    }
    fixed(&mut t, "attention_bias", false)?;
    t.skip(&["model_type", "final_logit_softcapping", "vocab_size_per_layer_input", "num_experts", "top_k_experts"]);
    t.skip(&["moe_intermediate_size"]);
    tower(&mut v, &mut call, [27, 1152, 16, 4304, 16])?;
    call.unless("rows", v.count("position_embedding_size", 10_240)?, &10_240);
    only(&mut v, &["hidden_activation"], "gelu")?;
    fixed(&mut v, "attention_bias", false)?;
    fixed(&mut v, "use_clipped_linears", false)?;
    v.skip(&["global_head_dim", "pooling_kernel_size"]);
    c.skip(&["tie_word_embeddings"]);
    t.tell_unread(said);
    v.tell_unread(said);
    Ok(call)
}

pub(super) fn llama4(c: &mut Config<'_>, said: &mut Said) -> Result<Call, Diagnostic> {
    let (mut t, mut v) = (c.need_child("text_config")?, c.need_child("vision_config")?);
    let head_dim = t.count("head_dim", 128)?;
    let shape = Shape { head_dim, ..Shape::read(&mut t, false, 500_000.0)? };
    let (dense, every) = (t.count("intermediate_size_mlp", 16_384)?, t.count("interleave_moe_layer_step", 1)?);
    fixed(&mut t, "attention_bias", false)?;
    only(&mut t, &["hidden_act"], "silu")?;
    let mut call = Call::new("Llama4");
    call.unless("layers", shape.layers, &48);
    call.unless("hidden", shape.hidden, &5120);
    call.unless("heads", shape.heads, &40);
    call.unless("kv_heads", shape.kv_heads, &8);
    call.unless("ffn", dense, &16_384);
    call.unless("expert_ffn", shape.ffn, &8192);
    call.put("experts", t.need(&["num_local_experts"])?);
    call.unless("top_k", t.count("num_experts_per_tok", 1)?, &1);
    call.unless("moe_every", every, &1);
    call.unless("vocab", shape.vocab, &202_048);
    call.unless("head_dim", shape.head_dim, &128);
    call.real("rope_base", shape.rope, 500_000.0);
    let window = t.count("attention_chunk_size", 8192)?;
    if window != 8192 {
        call.tokens("window", window);
    }
    t.skip(&["model_type", "attn_scale", "attn_temperature_tuning", "floor_scale", "no_rope_layers", "moe_layers"]);
    t.skip(&["no_rope_layer_interval", "layer_types"]);
    tower(&mut v, &mut call, [34, 1408, 16, 5632, 14])?;
    call.unless("image", v.count("image_size", 336)?, &336);
    call.unless("vision_out", v.count("projector_output_dim", 4096)?, &4096);
    fixed(&mut v, "multi_modal_projector_bias", false)?;
    only(&mut v, &["hidden_act"], "gelu")?;
    v.skip(&["rope_theta", "vision_output_dim", "projector_input_dim", "pixel_shuffle_ratio", "projector_dropout"]);
    v.skip(&["vision_feature_layer", "vision_feature_select_strategy"]);
    c.skip(&["tie_word_embeddings", "boi_token_index", "eoi_token_index", "image_token_index"]);
    t.tell_unread(said);
    v.tell_unread(said);
    Ok(call)
}

pub(super) fn vit(c: &mut Config<'_>, _: &mut Said) -> Result<Call, Diagnostic> {
    let hidden = c.need(&["hidden_size"])?;
    let mut call = Call::new("ViT");
    call.put("layers", c.need(&["num_hidden_layers"])?);
    call.put("hidden", hidden);
    call.put("heads", c.need(&["num_attention_heads"])?);
    call.unless("ffn", c.need(&["intermediate_size"])?, &(4 * hidden));
    call.unless("patch", c.count("patch_size", 16)?, &16);
    call.unless("image", c.count("image_size", 224)?, &224);
    call.unless("channels", c.count("num_channels", 3)?, &3);
    // Without names of classes it is the two of every configuration.
    let classes = match c.get("id2label").map(|j| &j.node) {
        Some(crate::import::json::Node::Object(names)) => names.len() as u64,
        _ => c.count("num_labels", 2)?,
    };
    call.unless("classes", classes, &1000);
    fixed(c, "qkv_bias", true)?;
    only(c, &["hidden_act"], "gelu")?;
    c.skip(&["encoder_stride", "pooler_act", "pooler_output_size"]);
    Ok(call)
}
