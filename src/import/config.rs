//! A configuration as a table of fields: each is read by name, with its kind and range checked; what nobody read is told.

use super::errors;
use super::json::{Entry, Json, Node};
use crate::diagnostics::Diagnostic;
use crate::source::Span;
use std::collections::BTreeSet;

/// Largest count of layers, heads, rows and widths that is believed.
const LARGEST: u64 = 1 << 32;

/// Fields that change no shape: training, generation, tokens, file formats.
const HARMLESS: &[&str] = &[
    "_name_or_path",
    "_attn_implementation",
    "activation_dropout",
    "add_cross_attention",
    "architectures",
    "attention_dropout",
    "attention_probs_dropout_prob",
    "attention_softmax_in_fp32",
    "attn_implementation",
    "attn_pdrop",
    "audio_config",
    "audio_token_id",
    "auto_map",
    "aux_loss_alpha",
    "bad_words_ids",
    "begin_suppress_tokens",
    "boa_token_id",
    "boi_token_id",
    "boi_token_index",
    "bos_token_id",
    "cache_implementation",
    "chunk_size",
    "chunk_size_feed_forward",
    "classifier_dropout",
    "clip_qkv",
    "decoder_start_token_id",
    "decoder_layerdrop",
    "default_output_length",
    "dropout",
    "dropout_rate",
    "dtype",
    "embd_pdrop",
    "encoder_layerdrop",
    "eoa_token_id",
    "eoa_token_index",
    "eoi_token_id",
    "eoi_token_index",
    "eos_token_id",
    "ep_size",
    "for_llm_compressor",
    "forced_decoder_ids",
    "gradient_checkpointing",
    "hidden_dropout",
    "hidden_dropout_prob",
    "id2label",
    "ignore_index",
    "image_token_id",
    "image_token_index",
    "init_std",
    "initial_context_length",
    "initializer_factor",
    "initializer_range",
    "label2id",
    "layer_norm_eps",
    "layer_norm_epsilon",
    "layerdrop",
    "mamba_hidden_act",
    "masked_softmax_fusion",
    "max_length",
    "mm_tokens_per_image",
    "norm_before_gate",
    "norm_eps",
    "norm_topk_prob",
    "num_logits_to_keep",
    "original_max_position_embeddings",
    "output_attentions",
    "output_hidden_states",
    "output_router_logits",
    "pad_token_id",
    "partial_rotary_factor",
    "pretraining_tp",
    "problem_type",
    "quantization_config",
    "query_pre_attn_scalar",
    "rescale_prenorm_residual",
    "resid_pdrop",
    "residual_in_fp32",
    "return_dict",
    "rms_norm_eps",
    "rope_parameters",
    "rope_scaling",
    "routed_scaling_factor",
    "router_aux_loss_coef",
    "router_jitter_noise",
    "scale_embedding",
    "scoring_func",
    "seq_aux",
    "slow_but_exact",
    "standardize",
    "suppress_tokens",
    "swiglu_limit",
    "task_specific_params",
    "time_step_floor",
    "time_step_limit",
    "time_step_max",
    "time_step_min",
    "time_step_rank",
    "topk_method",
    "torch_dtype",
    "transformers_version",
    "use_bidirectional_attention",
    "use_cache",
    "use_mamba_kernels",
    "use_mrope",
    "video_token_id",
    "vision_end_token_id",
    "vision_feature_layer",
    "vision_feature_select_strategy",
    "vision_soft_tokens_per_image",
    "vision_start_token_id",
    "vision_token_id",
];

/// A table of fields, with what was read of it.
#[derive(Debug)]
pub(super) struct Config<'a> {
    /// The architecture, for messages.
    pub(super) of: &'a str,
    /// The whole table.
    pub(super) span: Span,
    entries: &'a [Entry],
    read: BTreeSet<&'a str>,
}

impl<'a> Config<'a> {
    /// The table `json` is; none where it is something else.
    pub(super) fn new(json: &'a Json, of: &'a str) -> Option<Self> {
        match &json.node {
            Node::Object(entries) => Some(Self { of, span: json.span, entries, read: BTreeSet::new() }),
            _ => None,
        }
    }

    /// The field `key`, unless it is missing or null.
    pub(super) fn get(&mut self, key: &str) -> Option<&'a Json> {
        let entry = self.entries.iter().find(|e| e.key == key)?;
        self.read.insert(&entry.key);
        (entry.value.node != Node::Null).then_some(&entry.value)
    }

    fn whole(key: &str, json: &Json, least: u64) -> Result<u64, Diagnostic> {
        let Node::Number(text) = &json.node else {
            return Err(errors::kind(key, "a whole number", json.node.noun(), json.span));
        };
        let real =
            text.parse::<f64>().ok().filter(|x| x.fract().abs() < f64::EPSILON && x.abs() < LARGEST as f64 * 2.0);
        let value = text.parse::<u64>().ok().or_else(|| real.filter(|x| *x >= 0.0).map(|x| x as u64));
        match value.filter(|n| (least..=LARGEST).contains(n)) {
            Some(n) => Ok(n),
            None => {
                let shown: String = text.chars().take(40).collect();
                Err(errors::range(key, &shown, &format!("a whole number from {least} to {LARGEST}"), json.span))
            }
        }
    }

    /// A count of one or more that must be there, by the first of its names that is.
    pub(super) fn need(&mut self, keys: &[&str]) -> Result<u64, Diagnostic> {
        for key in keys {
            if let Some(json) = self.get(key) {
                return Self::whole(key, json, 1);
            }
        }
        Err(errors::missing(keys.first().copied().unwrap_or_default(), self.of, self.span))
    }

    /// A count of one or more.
    pub(super) fn count(&mut self, key: &str, default: u64) -> Result<u64, Diagnostic> {
        self.get(key).map_or(Ok(default), |json| Self::whole(key, json, 1))
    }

    /// A number that may be zero.
    pub(super) fn number(&mut self, key: &str, default: u64) -> Result<u64, Diagnostic> {
        self.get(key).map_or(Ok(default), |json| Self::whole(key, json, 0))
    }

    /// True or false.
    pub(super) fn flag(&mut self, key: &str, default: bool) -> Result<bool, Diagnostic> {
        match self.get(key) {
            None => Ok(default),
            Some(Json { node: Node::Bool(b), .. }) => Ok(*b),
            Some(json) => Err(errors::kind(key, "true or false", json.node.noun(), json.span)),
        }
    }

    /// A number above 1: the base of rotary frequencies.
    pub(super) fn base(&mut self, key: &str, default: f64) -> Result<f64, Diagnostic> {
        let Some(json) = self.get(key) else { return Ok(default) };
        let Node::Number(text) = &json.node else {
            return Err(errors::kind(key, "a number", json.node.noun(), json.span));
        };
        match text.parse::<f64>().ok().filter(|x| *x > 1.0 && *x < 1e15) {
            Some(x) => Ok(x),
            None => {
                let shown: String = text.chars().take(40).collect();
                Err(errors::range(key, &shown, "a number above 1 and below 1e15", json.span))
            }
        }
    }

    /// Text.
    pub(super) fn word(&mut self, key: &str) -> Result<Option<&'a str>, Diagnostic> {
        match self.get(key) {
            None => Ok(None),
            Some(Json { node: Node::Text(t), .. }) => Ok(Some(t)),
            Some(json) => Err(errors::kind(key, "text", json.node.noun(), json.span)),
        }
    }

    /// A list of texts.
    pub(super) fn words(&mut self, key: &str) -> Result<Option<Vec<&'a str>>, Diagnostic> {
        let Some(json) = self.get(key) else { return Ok(None) };
        let Node::List(items) = &json.node else {
            return Err(errors::kind(key, "a list", json.node.noun(), json.span));
        };
        let word = |j: &'a Json| match &j.node {
            Node::Text(t) => Ok(t.as_str()),
            other => Err(errors::kind(key, "a list of texts", other.noun(), j.span)),
        };
        items.iter().map(word).collect::<Result<_, _>>().map(Some)
    }

    /// A table inside.
    pub(super) fn child(&mut self, key: &str) -> Result<Option<Config<'a>>, Diagnostic> {
        let of = self.of;
        match self.get(key) {
            None => Ok(None),
            Some(json) => match Config::new(json, of) {
                Some(c) => Ok(Some(c)),
                None => Err(errors::kind(key, "an object", json.node.noun(), json.span)),
            },
        }
    }

    /// A table inside that must be there.
    pub(super) fn need_child(&mut self, key: &str) -> Result<Config<'a>, Diagnostic> {
        let span = self.span;
        self.child(key)?.ok_or_else(|| errors::missing(key, self.of, span))
    }

    /// Where the field `key` stands, or the whole table.
    pub(super) fn at(&self, key: &str) -> Span {
        self.entries.iter().find(|e| e.key == key).map_or(self.span, |e| e.value.span)
    }

    /// The model is not built so: an error at `key`.
    pub(super) fn unlike(&self, key: &str, found: &str, why: &str) -> Diagnostic {
        errors::unlike(key, found, why, self.at(key))
    }

    /// Fields that are known to change nothing here.
    pub(super) fn skip(&mut self, keys: &[&str]) {
        for key in keys {
            self.get(key);
        }
    }

    /// Tells of every field that nobody read and that may matter.
    pub(super) fn tell_unread(&self, said: &mut Vec<Diagnostic>) {
        let open = self.entries.iter().filter(|e| !self.read.contains(e.key.as_str()));
        for e in open.filter(|e| !HARMLESS.contains(&e.key.as_str()) && e.value.node != Node::Null) {
            said.push(errors::ignored(&e.key, self.of, e.at));
        }
    }
}
