//! Encoders, encoder-decoders and state-space models.

use super::{activation, fixed, only};
use crate::diagnostics::Diagnostic;
use crate::import::call::Call;
use crate::import::config::Config;

type Said = Vec<Diagnostic>;

pub(super) fn bert(c: &mut Config<'_>, _: &mut Said) -> Result<Call, Diagnostic> {
    let hidden = c.need(&["hidden_size"])?;
    let masked = c.words("architectures")?.is_some_and(|a| a.iter().any(|n| n.ends_with("ForMaskedLM")));
    let mut call = Call::new("BERT");
    call.put("layers", c.need(&["num_hidden_layers"])?);
    call.put("hidden", hidden);
    call.put("heads", c.need(&["num_attention_heads"])?);
    call.unless("ffn", c.need(&["intermediate_size"])?, &(4 * hidden));
    call.unless("vocab", c.need(&["vocab_size"])?, &30_522);
    call.unless("max_positions", c.count("max_position_embeddings", 512)?, &512);
    call.unless("segments", c.count("type_vocab_size", 2)?, &2);
    only(c, &["hidden_act"], "gelu")?;
    if !matches!(c.word("position_embedding_type")?, None | Some("absolute")) {
        return Err(c.unlike("position_embedding_type", "not `absolute`", "positions are a learned table"));
    }
    if masked {
        call.put("pooler", false);
        call.put("mlm", true);
    }
    Ok(call)
}

pub(super) fn t5(c: &mut Config<'_>, _: &mut Said) -> Result<Call, Diagnostic> {
    let layers = c.need(&["num_layers"])?;
    let mut call = Call::new("T5");
    call.put("encoder", layers);
    call.put("decoder", c.count("num_decoder_layers", layers)?);
    call.put("hidden", c.need(&["d_model"])?);
    call.put("heads", c.need(&["num_heads"])?);
    call.put("ffn", c.need(&["d_ff"])?);
    call.unless("vocab", c.need(&["vocab_size"])?, &32_128);
    call.unless("head_dim", c.count("d_kv", 64)?, &128);
    call.unless("buckets", c.count("relative_attention_num_buckets", 32)?, &32);
    if !c.flag("tie_word_embeddings", true)? {
        call.put("tied", false);
    }
    let gated = match c.word("feed_forward_proj")? {
        Some(w) if w.starts_with("gated-") => {
            call.put("activation", "gelu");
            true
        }
        None | Some("relu") => false,
        Some(_) => return Err(c.unlike("feed_forward_proj", "neither `relu` nor gated", "its MLP is one of the two")),
    };
    call.flag("gated", gated);
    c.skip(&["n_positions", "is_encoder_decoder", "relative_attention_max_distance", "dense_act_fn", "is_gated_act"]);
    Ok(call)
}

pub(super) fn whisper(c: &mut Config<'_>, _: &mut Said) -> Result<Call, Diagnostic> {
    let hidden = c.need(&["d_model"])?;
    let heads = c.need(&["encoder_attention_heads"])?;
    for (key, wanted) in
        [("decoder_attention_heads", heads), ("encoder_ffn_dim", 4 * hidden), ("decoder_ffn_dim", 4 * hidden)]
    {
        let found = c.count(key, wanted)?;
        if found != wanted {
            return Err(c.unlike(key, &found.to_string(), &format!("here it is {wanted}")));
        }
    }
    let mut call = Call::new("Whisper");
    call.put("encoder", c.need(&["encoder_layers"])?);
    call.put("decoder", c.need(&["decoder_layers"])?);
    call.put("hidden", hidden);
    call.put("heads", heads);
    call.put("vocab", c.need(&["vocab_size"])?);
    call.unless("mel", c.count("num_mel_bins", 80)?, &80);
    call.unless("max_source", c.count("max_source_positions", 1500)?, &1500);
    call.unless("max_target", c.count("max_target_positions", 448)?, &448);
    only(c, &["activation_function"], "gelu")?;
    fixed(c, "tie_word_embeddings", true)?;
    c.skip(&[
        "num_hidden_layers",
        "is_encoder_decoder",
        "median_filter_width",
        "use_weighted_layer_sum",
        "apply_spec_augment",
    ]);
    Ok(call)
}

pub(super) fn mamba2(c: &mut Config<'_>, _: &mut Said) -> Result<Call, Diagnostic> {
    let hidden = c.need(&["hidden_size"])?;
    let (expand, head_dim) = (c.count("expand", 2)?, c.count("head_dim", 64)?);
    let heads = c.need(&["num_heads"])?;
    if heads.saturating_mul(head_dim) != expand.saturating_mul(hidden) {
        return Err(c.unlike(
            "num_heads",
            &heads.to_string(),
            "heads times their width are `expand` times the model's",
        ));
    }
    let mut call = Call::new("MambaLM");
    call.put("layers", c.need(&["num_hidden_layers"])?);
    call.put("hidden", hidden);
    call.unless("vocab", c.need(&["vocab_size"])?, &50_288);
    call.unless("expand", expand, &2);
    call.unless("head_dim", head_dim, &64);
    call.unless("state", c.count("state_size", 128)?, &128);
    call.unless("groups", c.count("n_groups", 1)?, &1);
    call.unless("taps", c.count("conv_kernel", 4)?, &4);
    fixed(c, "tie_word_embeddings", true)?;
    fixed(c, "use_bias", false)?;
    fixed(c, "use_conv_bias", true)?;
    fixed(c, "rms_norm", true)?;
    only(c, &["hidden_act"], "silu")?;
    Ok(call)
}

pub(super) fn nemotron_h(c: &mut Config<'_>, _: &mut Said) -> Result<Call, Diagnostic> {
    let layers = c.need(&["num_hidden_layers"])?;
    let pattern = c.word("hybrid_override_pattern")?.unwrap_or_default();
    let known = pattern.chars().all(|k| matches!(k, 'M' | '-' | '*'));
    if pattern.chars().count() as u64 != layers || !known {
        let why = format!("it has one of `M`, `-` and `*` for each of {layers} layers");
        return Err(c.unlike("hybrid_override_pattern", "something else", &why));
    }
    let at = |kind: char| {
        let places = pattern.chars().enumerate().filter(|(_, k)| *k == kind).map(|(i, _)| i.to_string());
        format!("[{}]", places.collect::<Vec<_>>().join(", "))
    };
    let (hidden, heads) = (c.need(&["hidden_size"])?, c.need(&["num_attention_heads"])?);
    let mut call = Call::new("HybridLM");
    call.put("layers", layers);
    call.put("hidden", hidden);
    call.put("heads", heads);
    call.unless("kv_heads", c.count("num_key_value_heads", heads)?, &heads);
    call.put("head_dim", c.need(&["attention_head_dim", "head_dim"])?);
    call.put("ffn", c.need(&["intermediate_size"])?);
    call.put("vocab", c.need(&["vocab_size"])?);
    call.put("mamba_heads", c.need(&["mamba_num_heads"])?);
    call.unless("mamba_head_dim", c.count("mamba_head_dim", 64)?, &64);
    call.unless("state", c.count("ssm_state_size", 128)?, &128);
    call.unless("groups", c.count("n_groups", 8)?, &1);
    call.unless("taps", c.count("conv_kernel", 4)?, &4);
    call.flag("tied", c.flag("tie_word_embeddings", false)?);
    let act = activation(c, &["mlp_hidden_act"], "squared_relu")?;
    call.unless("activation", act, &"squared_relu");
    for key in ["attention_bias", "mamba_proj_bias", "mlp_bias", "use_bias"] {
        fixed(c, key, false)?;
    }
    fixed(c, "use_conv_bias", true)?;
    c.skip(&["expand", "max_position_embeddings", "sliding_window"]);
    call.put("attention_at", at('*'));
    call.put("mlp_at", at('-'));
    Ok(call)
}
