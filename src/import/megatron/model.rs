//! The model of a Megatron-LM command line, as a call of a family of the library.

use super::facts::Facts;
use crate::import::call::Call;
use crate::import::errors;
use crate::import::options::Options;

/// Rows of tokenizers whose number is fixed by their kind.
const VOCABULARIES: &[(&str, u64)] =
    &[("GPT2BPETokenizer", 50_257), ("Llama2Tokenizer", 32_000), ("Llama3Tokenizer", 128_256)];

/// Rows of a vocabulary nobody gives the size of.
const SOME_VOCABULARY: u64 = 128_256;

/// The call; none where a size is missing, which is said.
pub(super) fn call(o: &mut Options, f: &Facts) -> Option<Call> {
    let (Some(layers), Some(hidden), Some(heads)) = (f.layers, f.hidden, f.heads) else {
        for (key, found) in [("num-layers", f.layers), ("hidden-size", f.hidden), ("num-attention-heads", f.heads)] {
            // A value that is wrong was said so.
            if found.is_none() && !o.has(key) {
                o.said.push(errors::missing(&format!("--{key}"), o.of, o.whole).help(errors::MODEL_OPTION));
            }
        }
        return None;
    };
    let gated = o.on("swiglu");
    let squared = o.on("squared-relu");
    // Megatron's own default: four times the hidden width, or two thirds of that in whole 64s with a gate.
    let default = if gated { (hidden * 4 * 2 / 3) / 64 * 64 } else { hidden * 4 };
    let ffn = o.count("ffn-hidden-size").unwrap_or(default);
    let head_dim = o.count("kv-channels").unwrap_or(hidden / heads);
    let vocab = vocabulary(o);
    let base = o.count("rotary-base").map_or(10_000.0, |b| b as f64);
    let latent = o.on("multi-latent-attention");
    let mut call = Call::new(match (latent, f.experts) {
        (true, Some(_)) => "MLADecoder",
        (false, Some(_)) => "MoEDecoder",
        (_, None) => "Decoder",
    });
    if latent && f.experts.is_none() {
        o.said.push(errors::unlike(
            "multi-latent-attention",
            "given",
            "latent attention comes with experts",
            o.at("multi-latent-attention"),
        ));
        return None;
    }
    call.put("layers", layers);
    call.put("hidden", hidden);
    call.put("heads", heads);
    let tied = !o.on("untie-embeddings-and-output-weights");
    let bias = !(o.on("disable-bias-linear") || o.flag("add-bias-linear") == Some(false));
    let qkv_bias = bias || o.on("add-qkv-bias");
    let norm = o.text("normalization").unwrap_or_else(|| "LayerNorm".into());
    let norm = match norm.as_str() {
        "RMSNorm" => "rms",
        "LayerNorm" => "layer",
        other => {
            let at = o.at("normalization");
            o.said.push(errors::unlike(
                "normalization",
                &format!("`{}`", errors::shown(other)),
                "it has rms and layer norms",
                at,
            ));
            return None;
        }
    };
    if let Some(experts) = f.experts {
        experts_of(o, f, &mut call, (layers, experts, ffn, latent))?;
    } else {
        call.put("ffn", ffn);
    }
    call.put("vocab", vocab);
    if latent {
        latent_of(o, &mut call);
    } else {
        let groups = f.groups.unwrap_or(heads);
        call.unless("kv_heads", groups, &heads);
        call.unless("head_dim", head_dim, &(hidden / heads));
        call.unless("norm", norm, &"rms");
        call.flag("tied", tied);
        call.flag("qkv_bias", qkv_bias);
        call.flag("out_bias", bias);
        if o.on("qk-layernorm") {
            call.put("qk_norm", "per_head");
        }
        window(o, &mut call);
    }
    if f.experts.is_none() {
        call.flag("mlp_bias", bias);
        if squared {
            call.put("activation", "squared_relu");
        } else if !gated {
            call.put("activation", "gelu");
        }
        if !gated {
            call.put("gated", false);
        }
        positions(o, f, &mut call);
    }
    call.real("rope_base", base, 10_000.0);
    if f.experts.is_some() && !rotary(o) {
        call.remarks.push(
            "Learned positions are Megatron's default; the library's decoders with experts have rotary ones.".into(),
        );
    }
    if f.experts.is_none() {
        call.flag("embed_norm", o.on("embed-layernorm"));
        call.simplest();
    }
    o.skip(|k| k == "rotary-percent" || k == "softmax-type");
    Some(call)
}

/// The kind of positions that is told, or Megatron's default.
fn kind(o: &mut Options) -> String {
    let old = o.on("use-rotary-position-embeddings");
    o.text("position-embedding-type").unwrap_or_else(|| if old { "rope" } else { "learned_absolute" }.into())
}

fn rotary(o: &mut Options) -> bool {
    matches!(kind(o).as_str(), "rope" | "yarn" | "mrope")
}

fn positions(o: &mut Options, f: &Facts, call: &mut Call) {
    match kind(o).as_str() {
        "rope" | "yarn" | "mrope" => {}
        "alibi" => call.put("positions", "alibi"),
        _ => {
            call.put("positions", "learned");
            if let Some(rows) = o.count("max-position-embeddings").or(f.sequence) {
                call.unless("max_positions", rows, &2048);
            }
        }
    }
}

fn window(o: &mut Options, call: &mut Call) {
    let Some(text) = o.list("window-size").first().cloned() else { return };
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let Ok(before) = digits.parse::<u64>() else { return };
    // Megatron counts the positions before a token, the language the token too.
    call.tokens("window", before.saturating_add(1));
    if let Some(every) = o.count("window-attn-skip-freq") {
        call.put("full_every", every);
    }
}

/// Arguments of a decoder with experts.
fn experts_of(
    o: &mut Options,
    f: &Facts,
    call: &mut Call,
    (layers, experts, ffn, latent): (u64, u64, u64, bool),
) -> Option<()> {
    let width = o.count("moe-ffn-hidden-size").unwrap_or(ffn);
    let shared = o.number("moe-shared-expert-intermediate-size").unwrap_or(0);
    let dense = dense_layers(o, layers)?;
    call.put("experts", experts);
    call.put("top_k", f.top_k);
    call.put("expert_ffn", width);
    if latent {
        call.put("ffn", ffn);
        if width == 0 || !shared.is_multiple_of(width.max(1)) {
            let at = o.at("moe-shared-expert-intermediate-size");
            let why = "it has whole shared experts of the others' width";
            o.said.push(errors::unlike("moe-shared-expert-intermediate-size", &shared.to_string(), why, at));
            return None;
        }
        call.unless("shared", shared / width.max(1), &1);
        call.unless("dense_layers", dense, &1);
    } else {
        if dense > 0 {
            call.put("dense_layers", dense);
            call.unless("ffn", ffn, &width);
        }
        call.unless("shared_ffn", shared, &0);
        call.flag("shared_gate", o.on("moe-shared-expert-gate"));
    }
    if let Some(groups) = o.count("moe-router-num-groups").filter(|g| *g > 1) {
        call.put("n_groups", groups);
        call.put("groups_kept", o.count("moe-router-group-topk").unwrap_or(groups));
    }
    o.skip(|k| k == "moe-router-group-topk");
    call.flag("correction_bias", o.on("moe-router-enable-expert-bias"));
    if f.predictors > 0 {
        call.put("mtp_depth", f.predictors);
    } else if o.number("mtp-num-layers").is_some_and(|n| n > 0) {
        let at = o.at("mtp-num-layers");
        let why = "the library's modules that predict further tokens need a head of their own, which is tied here";
        o.said.push(errors::unsaid("--mtp-num-layers", why, at));
    }
    Some(())
}

/// Layers in front that have no experts, of `1`, `[0]*3+[1]*58` or `([0]*3+[1]*58)`.
fn dense_layers(o: &mut Options, layers: u64) -> Option<u64> {
    let Some(text) = o.text("moe-layer-freq") else { return Some(0) };
    let at = o.at("moe-layer-freq");
    let plain: String = text.chars().filter(|c| !c.is_whitespace() && !"()".contains(*c)).collect();
    if plain == "1" {
        return Some(0);
    }
    let mut runs = Vec::new();
    for part in plain.split('+').take(1000) {
        let (what, times) = part.split_once('*').unwrap_or((part, "1"));
        let list: Option<Vec<bool>> =
            what.strip_prefix('[').and_then(|w| w.strip_suffix(']')).map(|w| w.split(',').map(|x| x == "1").collect());
        match (list, times.parse::<u64>()) {
            (Some(list), Ok(times)) if list.iter().all(|x| *x == list[0]) => {
                runs.push((list[0], times.saturating_mul(list.len() as u64)));
            }
            _ => runs.push((true, u64::MAX)),
        }
    }
    let total = runs.iter().fold(0_u64, |n, (_, times)| n.saturating_add(*times));
    match runs[..] {
        [(true, n)] if n == layers => Some(0),
        [(false, dense), (true, _)] if total == layers => Some(dense),
        _ => {
            let why = format!("it has experts in all of {layers} layers but the first ones");
            o.said.push(errors::unlike("moe-layer-freq", &format!("`{}`", errors::shown(&text)), &why, at));
            None
        }
    }
}

/// Arguments of latent attention, Megatron's defaults put in.
fn latent_of(o: &mut Options, call: &mut Call) {
    call.unless("q_rank", o.number("q-lora-rank").unwrap_or(0), &1536);
    call.unless("kv_rank", o.count("kv-lora-rank").unwrap_or(32), &512);
    call.unless("nope_dim", o.count("qk-head-dim").unwrap_or(128), &128);
    call.unless("rope_dim", o.count("qk-pos-emb-head-dim").unwrap_or(64), &64);
    call.unless("v_dim", o.count("v-head-dim").unwrap_or(128), &128);
    o.skip(|k| k == "qk-layernorm");
}

/// Rows of the vocabulary, unpadded.
fn vocabulary(o: &mut Options) -> u64 {
    if let Some(rows) =
        o.count("vocab-size").or_else(|| o.count("padded-vocab-size")).or_else(|| o.count("pad-vocab-size-to"))
    {
        return rows;
    }
    let tokenizer = o.text("tokenizer-type").unwrap_or_default();
    if let Some((_, rows)) = VOCABULARIES.iter().find(|(name, _)| *name == tokenizer) {
        return *rows;
    }
    let help = "write the rows of your tokenizer behind `vocab`, or give `--model`";
    let at = if o.has("tokenizer-type") { o.at("tokenizer-type") } else { o.whole };
    let assumed = format!("{SOME_VOCABULARY} rows are assumed");
    o.said.push(errors::assumed("the size of the vocabulary is not told", &assumed, at, help));
    SOME_VOCABULARY
}
