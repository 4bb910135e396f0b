//! Configurations of torchtitan: TOML as up to 0.2, a Python module as from 0.3. Keys and rules are those of the version the
//! target writes for; keys of others are read where they mean the same.

mod python;
mod rules;
mod toml;

use super::call::Call;
use super::options::{Given, Options};
use super::program::{Machines, Mesh, Model, Program, common, listed};
use super::{Extra, Imported, errors};
use crate::emit::targets::torchtitan::{SCHEDULES, registered};
use crate::source::{FileId, Sources, Span};
use std::path::Path;

/// Numbers of a configuration, torchtitan's defaults put in.
struct Facts {
    replicate: u64,
    /// None where it takes what is left.
    shard: Option<u64>,
    tp: u64,
    cp: u64,
    pp: u64,
    ep: u64,
    sequence_parallel: bool,
    local: u64,
    batch: Option<u64>,
    sequence: u64,
    micro: u64,
    schedule: String,
    /// Modules of every chunk, where they are given.
    modules: Option<Vec<Vec<String>>>,
    /// Chunks on a rank.
    chunks: u64,
    world: Option<u64>,
}

/// The program of a configuration, or every reason why there is none.
pub(super) fn program(sources: &Sources, file: FileId, extra: &Extra) -> Imported {
    let source = sources.file(file);
    let read = if Path::new(&source.name).extension().is_some_and(|e| e == "py") {
        python::read(file, &source.text)
    } else {
        toml::read(file, &source.text)
    };
    let given = match read {
        Ok(given) => given,
        Err(d) => return Imported { text: None, said: vec![d] },
    };
    let whole = given.first().map_or(Span::new(file, 0, 0), |g| g.at);
    let telling = ["parallelism.", "training.", "model", "base"];
    if !given.iter().any(|g| telling.iter().any(|t| g.key.starts_with(t))) {
        let wanted = "sections such as `parallelism` and `training` are looked for";
        return Imported { text: None, said: vec![errors::nothing("torchtitan", wanted, whole)] };
    }
    let mut o = Options::new("torchtitan", whole, given.into_iter().map(plain).collect());
    let text = written(&mut o, &source.name, extra);
    let failed = o.failed();
    Imported { text: text.filter(|_| !failed), said: o.said }
}

/// A key without the name of the variable before it, dashes as underscores.
fn plain(mut g: Given) -> Given {
    g.key = g.key.replace('-', "_");
    g
}

fn facts(o: &mut Options, world: Option<u64>, layers: Option<u64>) -> Facts {
    let degree = |o: &mut Options, name: &str| o.count(&format!("parallelism.{name}"));
    let left = o.text("parallelism.data_parallel_shard_degree").is_none_or(|t| t == "-1");
    let tp = degree(o, "tensor_parallel_degree").unwrap_or(1);
    let pp = degree(o, "pipeline_parallel_degree").unwrap_or(1);
    let cp = degree(o, "context_parallel_degree").unwrap_or(1);
    let replicate = degree(o, "data_parallel_replicate_degree").unwrap_or(1);
    let shard = if left { None } else { degree(o, "data_parallel_shard_degree") };
    let local_key = if o.has("training.batch_size") { "training.batch_size" } else { "training.local_batch_size" };
    let all = o.text("training.global_batch_size").is_none_or(|t| t.starts_with('-'));
    let ranks = tp.saturating_mul(pp).saturating_mul(cp);
    // All degrees given is all devices given.
    let counted = shard.map(|s| ranks.saturating_mul(s).saturating_mul(replicate));
    let modules = o.get("parallelism.module_fqns_per_model_part").map(|g| g.values.clone()).unwrap_or_default();
    let modules: Vec<Vec<String>> =
        modules.iter().map(|w| w.text.split(',').map(|m| m.trim().to_owned()).collect()).collect();
    let schedule = o.text("parallelism.pipeline_parallel_schedule").unwrap_or_else(|| "1F1B".into());
    let several = SCHEDULES
        .iter()
        .any(|(ours, theirs, _)| theirs.eq_ignore_ascii_case(&schedule) && !matches!(*ours, "gpipe" | "one_f_one_b"));
    let per_stage = degree(o, "pipeline_parallel_layers_per_stage").zip(layers);
    let chunks = match (modules.len() as u64, per_stage) {
        (0, Some((n, layers))) => ((layers.saturating_add(2)).div_ceil(n) / pp).max(1),
        (0, None) => 1 + u64::from(several),
        (n, _) => (n / pp).max(1),
    };
    Facts {
        replicate,
        shard,
        tp,
        cp,
        pp,
        ep: degree(o, "expert_parallel_degree").unwrap_or(1),
        sequence_parallel: o.flag("parallelism.enable_sequence_parallel").unwrap_or(true) && tp > 1,
        local: o.count(local_key).unwrap_or(8),
        batch: if all { None } else { o.count("training.global_batch_size") },
        sequence: o.count("training.seq_len").unwrap_or(2048),
        micro: degree(o, "pipeline_parallel_microbatch_size").unwrap_or(1),
        schedule,
        modules: (!modules.is_empty()).then_some(modules),
        chunks,
        world: world.or(counted),
    }
}

fn written(o: &mut Options, shown: &str, extra: &Extra) -> Option<String> {
    let named = model(o);
    let f = facts(o, extra.devices, named.as_ref().and_then(|m| m.layers));
    rules::check(o, &f, named.as_ref());
    let layers = named.as_ref().and_then(|m| m.layers).filter(|_| extra.model.is_none());
    let model = match (&extra.model, named) {
        (Some(text), _) => Model::Named(text.clone()),
        (None, Some(model)) => model.model,
        (None, None) => {
            let at = o.whole;
            o.said.push(errors::modelless("torchtitan", at));
            return None;
        }
    };
    let fixed = f.tp.saturating_mul(f.cp).saturating_mul(f.pp).saturating_mul(f.replicate);
    let machines = match (&extra.cluster, f.world) {
        (Some(text), _) => Machines::Named(text.clone()),
        (None, Some(world)) => Machines::of(world),
        (None, None) => {
            let devices = common(common(fixed, f.ep), 8);
            let whole = o.whole;
            let assumed = format!("{devices} devices are assumed");
            let help =
                "`--devices 32` says it, `--devices 32` says it, `--cluster 'DGX_H100(nodes = 4)'` names the machines";
            o.said.push(errors::assumed("the number of devices is not told", &assumed, whole, help));
            Machines::of(devices)
        }
    };
    let shard = machines.devices().map(|d| (d / fixed.max(1)).max(1));
    let mesh = Mesh::new(&[("pp", f.pp), ("rep", f.replicate), ("dp", 0), ("cp", f.cp), ("tp", f.tp)]);
    let items = items(o, &f, layers, &mesh);
    let half = o.text("training.mixed_precision_param").is_none_or(|t| t == "bfloat16");
    // With a pipeline a rank takes its share at once and cuts it into microbatches.
    let micro = if f.pp > 1 { f.micro } else { f.local };
    let batch = f.batch.or_else(|| shard.and_then(|s| f.local.checked_mul(s)?.checked_mul(f.replicate)));
    let batch = batch.unwrap_or_else(|| {
        let whole = o.whole;
        let help = "write the sequences of an update behind `batch`";
        o.said.push(errors::assumed(
            "the batch follows from the number of devices",
            "one rank's is assumed",
            whole,
            help,
        ));
        f.local
    });
    let mut fields = vec![
        ("batch", format!("{batch} seq")),
        ("sequence", format!("{} tok", extra.sequence.unwrap_or(f.sequence))),
        ("micro_batch", format!("{micro} seq")),
    ];
    fields.extend(o.count("training.steps").map(|n| ("steps", format!("{n} step"))));
    fields.push(("precision", precision(half).into()));
    let optimizer = o.get("optimizer.name").and_then(|g| g.values.first().map(|w| (w.text.clone(), g.at)));
    if let Some((name, at)) = optimizer.filter(|(name, _)| !name.starts_with("AdamW")) {
        o.said.push(errors::unsaid("optimizer.name", &format!("`{}` is read as AdamW", errors::shown(&name)), at));
    }
    fields.push(("optimizer", "AdamW".into()));
    o.skip(harmless);
    let notes = o.tell_unread();
    Some(
        Program {
            file: shown.to_owned(),
            kind: "a configuration of torchtitan".into(),
            notes,
            model,
            machines,
            parameters: mesh.parameters(),
            items,
            fields,
        }
        .text(),
    )
}

/// The precision: fp32 at rest, bf16 in use.
fn precision(half: bool) -> &'static str {
    if half { "fsdp2_bf16" } else { "fsdp2_bf16 with { act = fp32, compute = fp32, gather = fp32, kv = fp32 }" }
}

/// Sections and keys that change nothing that is planned.
fn harmless(key: &str) -> bool {
    const SECTIONS: &[&str] = &[
        "checkpoint.",
        "comm.",
        "dataloader.",
        "debug.",
        "experimental.",
        "fault_tolerance.",
        "job.",
        "lr_scheduler.",
        "memory_estimation.",
        "metrics.",
        "optimizer.",
        "profiler.",
        "profiling.",
        "validation.",
        "validator.",
        "loss.",
        "tokenizer.",
        "quantize.",
        "import",
    ];
    const KEYS: &[&str] = &[
        "activation_checkpoint",
        "checkpoint",
        "comm",
        "compile",
        "dataloader",
        "debug",
        "job",
        "loss",
        "lr_scheduler",
        "metrics",
        "model",
        "optimizer",
        "parallelism",
        "profiler",
        "tokenizer",
        "training",
        "validator",
        "base",
        "model_spec",
        "config",
        "model.name",
        "model.flavor",
        "model.tokenizer_path",
        "model.hf_assets_path",
        "model.converters",
        "hf_assets_path",
        "tokenizer_path",
        "training.dataset",
        "training.dataset_path",
        "training.max_norm",
        "training.seed",
        "training.gc_freq",
        "training.gc_debug",
        "training.disable_cuda_graphs",
        "training.dtype",
        "training.mixed_precision_reduce",
        "training.deterministic",
        "training.enable_cpu_offload",
        "training.compile",
        "training.warmup_steps",
        "parallelism.context_parallel_load_balancer",
        "parallelism.enable_async_tensor_parallel",
        "parallelism.expert_tensor_parallel_degree",
        "parallelism.spmd_backend",
        "parallelism.enable_compiled_autograd",
        "parallelism.enable_fsdp_symm_mem",
        "parallelism.disable_loss_parallel",
        "parallelism.context_parallel_rotate_method",
        "compile.enable",
        "compile.components",
        "compile.backend",
        "compile.enable_async_tensor_parallel",
        "activation_checkpoint.selective_ac_option",
        "activation_checkpoint.early_stop",
        "activation_checkpoint.per_op_sac_force_recompute_mm_shapes_by_fqns",
    ];
    SECTIONS.iter().any(|s| key.starts_with(s)) || KEYS.contains(&key)
}

/// A model of torchtitan's registry.
pub(super) struct Registered {
    model: Model,
    /// Layers and key and value heads, where they are known.
    layers: Option<u64>,
    kv_heads: Option<u64>,
}

/// Models of the registry that the library has under a name: package, flavor, name, layers.
const NAMED: &[(&str, &str, &str, u64)] = &[
    ("deepseek_v3", "16B", "DeepSeekV2_Lite", 27),
    ("deepseek_v3", "671B", "DeepSeekV3(mtp_depth = 0)", 61),
    ("llama4", "17bx16e", "Llama4_Scout", 48),
    ("llama4", "17bx128e", "Llama4_Maverick", 48),
];

/// The model by `model.name` and `model.flavor`, or by what the module imports and calls.
fn model(o: &mut Options) -> Option<Registered> {
    let (package, flavor) = match (o.text("model.name"), o.text("model.flavor")) {
        (Some(name), Some(flavor)) => (name, flavor),
        _ => {
            let spec = o.get("model_spec").map(|g| g.values.clone()).unwrap_or_default();
            let flavor = spec.get(1).filter(|w| !w.unknown)?.text.clone();
            let module = o.get("import").and_then(|g| g.values.first()).map(|w| w.text.clone()).unwrap_or_default();
            let mut parts = module.split('.').skip_while(|p| *p != "models").skip(1);
            (parts.next()?.to_owned(), flavor)
        }
    };
    if let Some((.., name, layers)) = NAMED.iter().find(|(p, f, ..)| *p == package && *f == flavor) {
        return Some(Registered { model: Model::Named((*name).into()), layers: Some(*layers), kv_heads: None });
    }
    let r = registered(&package, &flavor)?;
    let mut call = Call::new(if r.experts.is_some() { "MoEDecoder" } else { "Decoder" });
    call.put("layers", r.layers);
    call.put("hidden", r.hidden);
    call.put("heads", r.heads);
    call.put("kv_heads", r.kv_heads);
    if let Some((experts, top_k)) = r.experts {
        call.put("experts", experts);
        call.put("top_k", top_k);
        call.put("expert_ffn", r.ffn);
    } else {
        call.put("ffn", r.ffn);
    }
    call.put("vocab", r.vocab);
    call.unless("head_dim", r.head_dim, &(r.hidden / r.heads));
    call.flag("tied", r.tied);
    if r.qk_norm {
        call.put("qk_norm", "per_head");
    }
    call.real("rope_base", r.rope_base as f64, 10_000.0);
    if r.experts.is_none() {
        call.simplest();
    }
    Some(Registered { model: Model::Call(call), layers: Some(r.layers), kv_heads: Some(r.kv_heads) })
}

fn items(o: &mut Options, f: &Facts, layers: Option<u64>, mesh: &Mesh) -> Vec<String> {
    let mut out = vec![mesh.item(), format!("shard B over {}", mesh.list(&["rep", "dp"]))];
    let over = mesh.list(&["dp", "cp"]);
    if f.cp > 1 {
        out.push("shard S over cp".into());
        out.push("attention over cp via all_gather".into());
    }
    if f.tp > 1 {
        let rest = if f.sequence_parallel { " else S" } else { "" };
        out.push(format!("shard [N, K, F, V] over tp{rest}"));
    }
    // FSDP wraps where there are data or context ranks to shard over; one rank shards nothing.
    let policy = o.text("parallelism.fsdp_reshard_after_forward").unwrap_or_else(|| "default".into());
    let kept = policy == "never" || (policy == "default" && f.pp > 1);
    let hold = if kept { "microbatch" } else { "layer" };
    let sharded = f.shard != Some(1) || f.cp > 1;
    if sharded {
        out.push(format!("store [param, grad, state] over {over} {{ bucket = layer, hold = {hold}, prefetch = 1 }}"));
    }
    if f.ep > 1 {
        let all: Vec<_> = ["dp", "cp", "tp"].into_iter().filter(|n| mesh.has(n)).collect();
        let product = all.join(" * ");
        let product = if all.len() > 1 { format!("({product})") } else { product };
        out.push(format!("fold [{}] as [efsdp = {product} / {}, ep = {}]", all.join(", "), f.ep, f.ep));
        out.push("in **.moe.experts {\n    shard E over ep\n    store [param, grad, state] over efsdp\n  }".into());
    }
    if f.pp > 1 {
        out.push(pipeline(o, f, layers));
    }
    if sharded {
        out.push(format!("overlap gather over {over} with forward"));
        out.push(format!("overlap reduce over {} with backward", mesh.list(&["rep", "dp", "cp"])));
    }
    recompute(o, &mut out);
    out
}

fn pipeline(o: &mut Options, f: &Facts, layers: Option<u64>) -> String {
    let found = SCHEDULES.iter().find(|(_, theirs, _)| theirs.eq_ignore_ascii_case(&f.schedule));
    let ours = match found {
        Some((ours, ..)) => *ours,
        None if f.schedule.eq_ignore_ascii_case("InterleavedZeroBubble") => "interleaved",
        None => {
            let at = o.at("parallelism.pipeline_parallel_schedule");
            let why = "it is read as 1F1B";
            o.said.push(errors::unsaid("pipeline_parallel_schedule", why, at));
            "one_f_one_b"
        }
    };
    let schedule = match ours {
        "interleaved" | "breadth_first" => format!("{ours}({})", f.chunks.max(2)),
        _ => ours.to_owned(),
    };
    let split = match &f.modules {
        Some(chunks) => listed(chunks.iter().map(|c| c.iter().filter(|m| m.starts_with("layers.")).count() as u64)),
        None => match layers {
            Some(layers) => listed(shares(o, layers, f)),
            None => "even(counting = [embed, head])".to_owned(),
        },
    };
    format!("pipeline over pp {{ schedule = {schedule}, split = {split} }}")
}

/// Layers of every chunk as torchtitan deals them out: embedding and head count as layers, the first chunks take what is
/// left over.
fn shares(o: &mut Options, layers: u64, f: &Facts) -> std::vec::IntoIter<u64> {
    let first = o.number("parallelism.pipeline_parallel_first_stage_less_layers").unwrap_or(1);
    let last = o.number("parallelism.pipeline_parallel_last_stage_less_layers").unwrap_or(1);
    let total = layers.saturating_add(first).saturating_add(last);
    let chunks = f.pp.saturating_mul(f.chunks).clamp(1, 1 << 16);
    let share = |c: u64| {
        let own = total / chunks + u64::from(c < total % chunks);
        own.saturating_sub(if c == 0 { first } else { 0 }).saturating_sub(if c + 1 == chunks { last } else { 0 })
    };
    (0..chunks).map(share).collect::<Vec<_>>().into_iter()
}

fn recompute(o: &mut Options, out: &mut Vec<String>) {
    let mode = o.text("activation_checkpoint.mode").or_else(|| {
        let called = o.get("activation_checkpoint")?.values.first()?.text.clone();
        Some(
            if called.contains("Full") {
                "full"
            } else if called.contains("None") {
                "none"
            } else {
                "selective"
            }
            .into(),
        )
    });
    match mode.as_deref() {
        Some("full") => out.push("recompute all".into()),
        Some("none") | None => {}
        Some(_) => {
            let key = if o.has("activation_checkpoint.mode") {
                "activation_checkpoint.mode"
            } else {
                "activation_checkpoint"
            };
            let at = o.at(key);
            let why = "its selective policy follows a list of operations; the core of attention and the norms are read";
            o.said.push(errors::unsaid(key, why, at));
            out.push("in **.attention.core { recompute all }".into());
            out.push("in [**.attention, **.mlp] { recompute [h] }".into());
        }
    }
}
