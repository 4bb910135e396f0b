//! Decoders with experts.

use super::{PLAIN, Preset, Shape, fixed, full_every, only};
use crate::diagnostics::Diagnostic;
use crate::import::call::Call;
use crate::import::config::Config;

type Said = Vec<Diagnostic>;

/// Says in the program that the correction of a router is no parameter.
fn correction(call: &mut Call, layers: u64, experts: u64) {
    call.remarks.push(format!(
        "The correction of each router ({layers} x {experts} numbers) is a buffer there and no parameter; \
         `correction_bias = true` counts it."
    ));
}

/// `MoEDecoder` and its arguments, whatever the experts' fields are called.
fn moe(call: &mut Call, shape: &Shape, preset: &Preset, (experts, top_k, width): (u64, u64, u64), dense: bool) {
    let Shape { ffn, .. } = *shape;
    shape.put(call, preset);
    call.put("experts", experts);
    call.put("top_k", top_k);
    call.put("expert_ffn", width);
    if !dense || ffn == width {
        // The width of an MLP that no layer has.
        call.leave("ffn");
    }
}

pub(super) fn mixtral(c: &mut Config<'_>, _: &mut Said) -> Result<Call, Diagnostic> {
    let shape = Shape::read(c, false, 1e6)?;
    only(c, &["hidden_act"], "silu")?;
    let experts = c.need(&["num_local_experts"])?;
    let top_k = c.count("num_experts_per_tok", 2)?;
    let window = c.number("sliding_window", 0)?;
    let plain = window == 0 && !shape.tied && shape.head_dim * shape.heads == shape.hidden;
    let mut call = Call::new(if plain { "Mixtral" } else { "MoEDecoder" });
    if plain {
        shape.put(&mut call, &Preset { kv_heads: true, rope: Some(1e6), ..PLAIN });
        call.put("experts", experts);
        call.put("top_k", top_k);
    } else {
        moe(&mut call, &shape, &PLAIN, (experts, top_k, shape.ffn), false);
        if window > 0 {
            call.tokens("window", window);
        }
    }
    Ok(call)
}

/// Which layers have experts: all, or `decoder_sparse_step` apart and none of `mlp_only_layers`.
fn all_sparse(c: &mut Config<'_>) -> Result<(), Diagnostic> {
    let step = c.count("decoder_sparse_step", 1)?;
    if step != 1 {
        return Err(c.unlike("decoder_sparse_step", &step.to_string(), "here every layer has experts"));
    }
    if c.get("mlp_only_layers").is_some_and(|j| j.node != super::super::json::Node::List(Vec::new())) {
        return Err(c.unlike("mlp_only_layers", "not empty", "here every layer has experts"));
    }
    Ok(())
}

pub(super) fn qwen2(c: &mut Config<'_>, _: &mut Said) -> Result<Call, Diagnostic> {
    let shape = Shape::read(c, false, 10_000.0)?;
    all_sparse(c)?;
    c.skip(&["sliding_window", "max_window_layers"]);
    fixed(c, "use_sliding_window", false)?;
    only(c, &["hidden_act"], "silu")?;
    let sizes = (c.need(&["num_experts"])?, c.count("num_experts_per_tok", 4)?, c.need(&["moe_intermediate_size"])?);
    let shared = c.need(&["shared_expert_intermediate_size"])?;
    let bias = c.flag("qkv_bias", true)?;
    let mut call = Call::new("MoEDecoder");
    moe(&mut call, &shape, &PLAIN, sizes, false);
    call.put("shared_ffn", shared);
    call.put("shared_gate", true);
    call.flag("qkv_bias", bias);
    Ok(call)
}

pub(super) fn qwen3(c: &mut Config<'_>, _: &mut Said) -> Result<Call, Diagnostic> {
    let head_dim = c.count("head_dim", 128)?;
    let shape = Shape { head_dim, ..Shape::read(c, false, 10_000.0)? };
    all_sparse(c)?;
    c.skip(&["sliding_window", "max_window_layers"]);
    fixed(c, "use_sliding_window", false)?;
    only(c, &["hidden_act"], "silu")?;
    let shared = c.number("shared_expert_intermediate_size", 0)?;
    if shared > 0 {
        return Err(c.unlike("shared_expert_intermediate_size", &shared.to_string(), "it has no shared expert"));
    }
    let bias = c.flag("attention_bias", false)? || c.flag("qkv_bias", false)?;
    let sizes = (c.need(&["num_experts"])?, c.count("num_experts_per_tok", 8)?, c.need(&["moe_intermediate_size"])?);
    let mut call = Call::new("Qwen3MoE");
    let preset = Preset { vocab: Some(151_936), head_dim: Some(128), rope: Some(1e6), ..PLAIN };
    moe(&mut call, &shape, &preset, sizes, false);
    call.flag("qkv_bias", bias);
    call.flag("out_bias", bias);
    Ok(call)
}

pub(super) fn deepseek(c: &mut Config<'_>, _: &mut Said) -> Result<Call, Diagnostic> {
    let layers = c.need(&["num_hidden_layers"])?;
    let experts = c.need(&["n_routed_experts"])?;
    let mut call = Call::new("MLADecoder");
    call.put("layers", layers);
    call.put("hidden", c.need(&["hidden_size"])?);
    call.put("heads", c.need(&["num_attention_heads"])?);
    call.put("ffn", c.need(&["intermediate_size"])?);
    call.put("vocab", c.need(&["vocab_size"])?);
    call.put("experts", experts);
    call.put("top_k", c.need(&["num_experts_per_tok"])?);
    call.put("expert_ffn", c.need(&["moe_intermediate_size"])?);
    call.unless("shared", c.number("n_shared_experts", 0)?, &1);
    let dense = c.number("first_k_dense_replace", 0)?;
    call.unless("dense_layers", dense, &1);
    call.unless("q_rank", c.number("q_lora_rank", 0)?, &1536);
    call.unless("kv_rank", c.count("kv_lora_rank", 512)?, &512);
    call.unless("nope_dim", c.count("qk_nope_head_dim", 128)?, &128);
    call.unless("rope_dim", c.count("qk_rope_head_dim", 64)?, &64);
    call.unless("v_dim", c.count("v_head_dim", 128)?, &128);
    call.real("rope_base", c.base("rope_theta", 10_000.0)?, 10_000.0);
    call.unless("n_groups", c.count("n_group", 1)?, &1);
    let kept = c.number("topk_group", 0)?;
    if kept > 1 {
        call.put("groups_kept", kept);
    }
    // The indexer of sparse attention: its heads look for the tokens that the others see.
    if let Some(heads) = c.get("index_n_heads").is_some().then(|| c.count("index_n_heads", 64)) {
        call.put("index_heads", heads?);
        call.unless("index_dim", c.count("index_head_dim", 128)?, &128);
        call.unless("index_keep", c.count("index_topk", 2048)?, &2048);
    }
    let freq = c.count("moe_layer_freq", 1)?;
    if freq != 1 {
        return Err(c.unlike("moe_layer_freq", &freq.to_string(), "here every layer after the first has experts"));
    }
    fixed(c, "attention_bias", false)?;
    fixed(c, "tie_word_embeddings", false)?;
    only(c, &["hidden_act"], "silu")?;
    if c.word("topk_method")? == Some("noaux_tc") {
        correction(&mut call, layers - dense.min(layers), experts);
    }
    mtp(c, &mut call)?;
    c.skip(&["num_key_value_heads", "max_position_embeddings", "head_dim", "qk_head_dim"]);
    Ok(call)
}

/// Modules that predict further tokens are not part of what a checkpoint is loaded into.
fn mtp(c: &mut Config<'_>, call: &mut Call) -> Result<(), Diagnostic> {
    let modules = c.number("num_nextn_predict_layers", 0)?;
    if modules > 0 {
        call.remarks.push(format!("`mtp_depth = {modules}` adds its modules of multi-token prediction."));
    }
    Ok(())
}

pub(super) fn glm4(c: &mut Config<'_>, _: &mut Said) -> Result<Call, Diagnostic> {
    let norm = c.flag("use_qk_norm", false)?;
    let shape = Shape::read(c, false, 1e6)?;
    let experts = c.need(&["n_routed_experts"])?;
    let width = c.need(&["moe_intermediate_size"])?;
    let sizes = (experts, c.need(&["num_experts_per_tok"])?, width);
    let shared = c.number("n_shared_experts", 0)?;
    let dense = c.number("first_k_dense_replace", 0)?;
    let bias = c.flag("attention_bias", false)?;
    only(c, &["hidden_act"], "silu")?;
    let mut call = Call::new("MoEDecoder");
    moe(&mut call, &shape, &PLAIN, sizes, dense > 0);
    call.unless("dense_layers", dense, &0);
    call.unless("shared_ffn", shared.saturating_mul(width), &0);
    call.flag("qkv_bias", bias);
    if norm {
        call.put("qk_norm", "per_head");
    }
    let groups = c.count("n_group", 1)?;
    call.unless("n_groups", groups, &1);
    let kept = c.number("topk_group", 0)?;
    if groups > 1 {
        call.put("groups_kept", kept);
    }
    correction(&mut call, shape.layers - dense.min(shape.layers), experts);
    mtp(c, &mut call)?;
    Ok(call)
}

pub(super) fn gpt_oss(c: &mut Config<'_>, _: &mut Said) -> Result<Call, Diagnostic> {
    let head_dim = c.count("head_dim", 64)?;
    let shape = Shape { head_dim, ..Shape::read(c, false, 150_000.0)? };
    only(c, &["hidden_act"], "silu")?;
    fixed(c, "attention_bias", true)?;
    let top_k = c.need(&["num_experts_per_tok", "experts_per_token"])?;
    c.skip(&["experts_per_token"]);
    let sizes = (c.need(&["num_local_experts", "num_experts"])?, top_k, shape.ffn);
    let window = c.count("sliding_window", 128)?;
    let every = full_every(c, shape.layers, 2)?;
    let mut call = Call::new("MoEDecoder");
    moe(&mut call, &shape, &PLAIN, sizes, false);
    for name in ["qkv_bias", "out_bias", "router_bias", "expert_bias", "sinks"] {
        call.put(name, true);
    }
    call.tokens("window", window);
    call.put("full_every", every);
    Ok(call)
}

pub(super) fn dbrx(c: &mut Config<'_>, _: &mut Said) -> Result<Call, Diagnostic> {
    let (hidden, heads) = (c.need(&["d_model"])?, c.need(&["n_heads"])?);
    let mut attention = c.need_child("attn_config")?;
    let mut experts = c.need_child("ffn_config")?;
    let head_dim = Shape::head_dim(c, hidden, heads, None)?;
    let width = experts.need(&["ffn_hidden_size"])?;
    let shape = Shape {
        layers: c.need(&["n_layers"])?,
        hidden,
        heads,
        kv_heads: attention.count("kv_n_heads", 1)?,
        head_dim,
        ffn: width,
        vocab: c.need(&["vocab_size"])?,
        tied: c.flag("tie_word_embeddings", false)?,
        rope: attention.base("rope_theta", 10_000.0)?,
    };
    let sizes = (experts.count("moe_num_experts", 4)?, experts.count("moe_top_k", 1)?, width);
    if let Some(mut act) = experts.child("ffn_act_fn")? {
        only(&mut act, &["name"], "silu")?;
    }
    c.skip(&["max_seq_len", "emb_pdrop", "attn_config", "ffn_config"]);
    let mut call = Call::new("MoEDecoder");
    moe(&mut call, &shape, &PLAIN, sizes, false);
    call.put("norm", "plain");
    Ok(call)
}

pub(super) fn phi(c: &mut Config<'_>, _: &mut Said) -> Result<Call, Diagnostic> {
    let shape = Shape::read(c, false, 10_000.0)?;
    only(c, &["hidden_act"], "silu")?;
    let bias = c.flag("attention_bias", false)?;
    let head_bias = c.flag("lm_head_bias", false)?;
    let sizes = (c.need(&["num_local_experts"])?, c.count("num_experts_per_tok", 2)?, shape.ffn);
    c.skip(&["sliding_window", "input_jitter_noise"]);
    let mut call = Call::new("MoEDecoder");
    moe(&mut call, &shape, &PLAIN, sizes, false);
    call.put("norm", "layer");
    call.flag("qkv_bias", bias);
    call.flag("out_bias", bias);
    call.flag("head_bias", head_bias);
    Ok(call)
}
