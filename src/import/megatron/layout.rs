//! The layout of a Megatron-LM command line, as items of the language.

use super::facts::{Facts, Front};
use crate::emit::targets::megatron::MODULES;
use crate::import::errors;
use crate::import::options::Options;
use crate::import::program::{Mesh, listed};

/// The mesh in Megatron's order, experts' axes left out.
pub(super) fn mesh(o: &mut Options, f: &Facts) -> Mesh {
    let rep = ("rep", f.instances);
    let (pp, dp, cp, tp) = (("pp", f.pp), ("dp", 0), ("cp", f.cp), ("tp", f.tp));
    if o.on("use-tp-pp-dp-mapping") { Mesh::new(&[rep, dp, pp, cp, tp]) } else { Mesh::new(&[pp, rep, dp, cp, tp]) }
}

/// Every item.
pub(super) fn items(o: &mut Options, f: &Facts, mesh: &Mesh) -> Vec<String> {
    let mut out = vec![mesh.item(), format!("shard B over {}", mesh.list(&["rep", "dp"]))];
    let data = mesh.list(&["dp", "cp"]);
    let every = mesh.list(&["rep", "dp", "cp"]);
    let latent = o.on("multi-latent-attention");
    if f.cp > 1 {
        out.push("shard S over cp".into());
        out.push(format!("attention over cp via {}", context(o, f)));
    }
    if f.tp > 1 {
        let grid = has_grid(f);
        let mut dims = vec!["N"];
        dims.extend((!latent).then_some("K"));
        dims.extend((f.experts.is_none() || latent || o.has("moe-layer-freq")).then_some("F"));
        dims.extend((f.experts.is_some() && !grid).then_some("M"));
        dims.push("V");
        let rest = if f.sequence_parallel { " else S" } else { "" };
        out.push(format!("shard [{}] over tp{rest}", dims.join(", ")));
    }
    let multiple = o.count("make-vocab-size-divisible-by").unwrap_or(128);
    // A vocabulary given padded is whole already.
    if !o.has("padded-vocab-size") && !o.has("pad-vocab-size-to") && f.front != Front::Swift {
        out.push(if f.tp > 1 { format!("pad V = {multiple} * tp") } else { format!("pad V = {multiple}") });
    }
    let classes = stored(f);
    if !classes.is_empty() {
        out.push(store(classes, &data, f));
    }
    experts(f, mesh, classes, &mut out);
    if f.pp > 1 {
        out.push(pipeline(o, f));
    }
    let fsdp = f.fsdp.is_some_and(|z| z > 0);
    let gathers = o.on("overlap-param-gather") || fsdp;
    let reduces = o.on("overlap-grad-reduce") || fsdp;
    if gathers && !classes.is_empty() {
        out.push(format!("overlap gather over {data} with forward"));
    }
    if reduces {
        out.push(format!("overlap reduce over {every} with backward"));
    }
    if f.pp > 1 && f.virtual_stages() > 1 && !f.exposed_p2p {
        out.push("overlap p2p over pp with [forward, backward]".into());
    }
    recompute(o, f, &mut out);
    out
}

/// Whether experts read the ranks otherwise than the rest does.
fn has_grid(f: &Facts) -> bool {
    f.ep > 1 || (f.experts.is_some() && f.etp != f.tp)
}

/// Classes that rest sharded.
fn stored(f: &Facts) -> &'static [&'static str] {
    match (f.fsdp, f.distributed_optimizer) {
        (Some(0), _) | (None, false) => &[],
        (Some(1), _) | (None, true) => &["state"],
        (Some(2), _) => &["state", "grad"],
        (Some(_), _) => &["param", "grad", "state"],
    }
}

fn store(classes: &[&str], over: &str, f: &Facts) -> String {
    let list = if let [one] = classes { (*one).to_owned() } else { format!("[{}]", classes.join(", ")) };
    let held = if f.fsdp == Some(3) { " { bucket = layer, hold = layer, prefetch = 1 }" } else { "" };
    format!("store {list} over {over}{held}")
}

fn context(o: &mut Options, f: &Facts) -> &'static str {
    if f.front == Front::DeepSpeed {
        return "all_to_all";
    }
    let kinds = o.list("cp-comm-type");
    let first = kinds.first().map_or("p2p", String::as_str);
    match first {
        "p2p" if kinds.iter().all(|k| k == first) => "ring(zigzag)",
        "all_gather" | "allgather" => "all_gather",
        "a2a" => "all_to_all",
        _ => {
            let at = o.at("cp-comm-type");
            o.said.push(errors::unsaid("--cp-comm-type", "one exchange for all layers is read: a ring", at));
            "ring(zigzag)"
        }
    }
}

/// Parameters of the layout for the experts' own axes.
pub(super) fn expert_parameters(f: &Facts) -> Vec<String> {
    let axes = [("ep", f.ep), ("etp", f.etp)].into_iter().filter(|(_, n)| has_grid(f) && *n > 1);
    axes.map(|(name, n)| format!("{name}: Int = {n}")).collect()
}

/// The grid of the experts on the same ranks of a stage.
fn experts(f: &Facts, mesh: &Mesh, classes: &[&str], out: &mut Vec<String>) {
    if f.experts.is_none() && f.ep == 1 {
        return;
    }
    if !has_grid(f) {
        return;
    }
    let product: Vec<_> = ["rep", "dp", "cp", "tp"].into_iter().filter(|n| mesh.has(n)).collect();
    let own: Vec<_> = [("ep", f.ep), ("etp", f.etp)].into_iter().filter(|(_, n)| *n > 1).map(|(n, _)| n).collect();
    let grouped = |names: &[&str]| match names {
        [one] => (*one).to_owned(),
        several => format!("({})", several.join(" * ")),
    };
    let copies =
        if own.is_empty() { product.join(" * ") } else { format!("{} / {}", grouped(&product), grouped(&own)) };
    let mut axes = vec![format!("edp = {copies}")];
    axes.extend(own.iter().map(|n| (*n).to_owned()));
    out.push(format!("fold [{}] as [{}]", product.join(", "), axes.join(", ")));
    let mut inside = Vec::new();
    if f.ep > 1 {
        inside.push("shard E over ep".to_owned());
    }
    if f.etp > 1 {
        inside.push("shard M over etp".to_owned());
    }
    if !classes.is_empty() {
        inside.push(store(classes, "edp", f));
    }
    if !inside.is_empty() {
        out.push(format!("in **.moe.experts {{\n    {}\n  }}", inside.join("\n    ")));
    }
    if f.sequence_parallel {
        out.push("in **.moe.router { replicate param over tp }".into());
    }
}

fn pipeline(o: &mut Options, f: &Facts) -> String {
    let v = f.virtual_stages();
    let schedule = match (v, f.group.filter(|g| *g != f.pp)) {
        (1, _) => "one_f_one_b".to_owned(),
        (v, None) => format!("interleaved({v})"),
        (v, Some(group)) => format!("interleaved({v}, group = {group})"),
    };
    format!("pipeline over pp {{ schedule = {schedule}, split = {} }}", split(o, f, v))
}

/// How layers fall on chunks, the modules that predict on the last one.
fn split(o: &mut Options, f: &Facts, v: u64) -> String {
    if let Some(written) = &f.written {
        return listed(written.iter().map(|s| s.layers + s.predictors));
    }
    let counting = [(f.count_embedding, "embed"), (f.count_loss, "head")];
    let counting: Vec<_> = counting.into_iter().filter(|(on, _)| *on).map(|(_, n)| n).collect();
    let uneven = f.first.is_some() || f.last.is_some();
    let Some(layers) = f.layers else {
        if !uneven {
            return "even".into();
        }
        let key =
            if f.last.is_some() { "decoder-last-pipeline-num-layers" } else { "decoder-first-pipeline-num-layers" };
        let (shown, at) = (o.shown(key), o.at(key));
        o.said.push(errors::unsaid(
            &shown,
            "how many layers there are in all is not told; they are cut by their time",
            at,
        ));
        return "balanced".into();
    };
    if f.predictors == 0 && !uneven {
        return if counting.is_empty() { "even".into() } else { format!("even(counting = [{}])", counting.join(", ")) };
    }
    let ends = f.first.unwrap_or(0) + f.last.unwrap_or(0);
    let middle = f.pp - u64::from(f.first.is_some()) - u64::from(f.last.is_some());
    let usual = if uneven {
        layers.saturating_sub(ends).checked_div(middle).unwrap_or(0)
    } else {
        (layers + counting.len() as u64) / f.pp
    };
    let of_stage = |s: u64| match (f.first, f.last) {
        (Some(first), _) if s == 0 => first,
        (_, Some(last)) if s + 1 == f.pp => last,
        _ => usual,
    };
    // Chunks go round the stages, each with its stage's share.
    let chunks = f.pp * v;
    listed((0..chunks).map(|c| {
        let own = of_stage(c % f.pp) / v;
        let own =
            own.saturating_sub(u64::from(c == 0 && f.count_embedding) + u64::from(c + 1 == chunks && f.count_loss));
        own + if c + 1 == chunks { f.predictors } else { 0 }
    }))
}

fn recompute(o: &mut Options, f: &Facts, out: &mut Vec<String>) {
    let old = o.on("checkpoint-activations");
    let mut granularity = o.text("recompute-granularity");
    if o.on("recompute-activations") && granularity.is_none() {
        granularity = Some("selective".into());
    }
    if granularity.as_deref() == Some("full") || old {
        let block = o.text("recompute-method").as_deref() == Some("block");
        let number = o.count("recompute-num-layers").unwrap_or(1);
        let stage = f.layers.map_or(u64::MAX, |l| l / f.pp / f.virtual_stages());
        if block && number < stage {
            let at = o.at("recompute-num-layers");
            let why = "every layer is read as recomputed; the language has no number of layers of a stage";
            o.said.push(errors::unsaid("--recompute-num-layers", why, at));
        } else if !block && number > 1 {
            let at = o.at("recompute-num-layers");
            let why = "layers are read as recomputed one by one, not in groups";
            o.said.push(errors::unsaid("--recompute-num-layers", why, at));
        }
        out.push("recompute all".into());
        return;
    }
    let modules = o.list("recompute-modules");
    if granularity.as_deref() != Some("selective") {
        return;
    }
    let modules = if modules.is_empty() { vec!["core_attn".to_owned()] } else { modules };
    for module in modules {
        let region = MODULES.iter().find(|(_, m)| *m == module).map(|(path, _)| *path);
        let item = match (module.as_str(), region) {
            ("mlp", _) if f.experts.is_some() && !o.has("moe-layer-freq") => continue,
            (_, Some(path)) => format!("in **.{path} {{ recompute all }}"),
            ("layernorm", _) => format!("in [{}] {{ recompute [h] }}", norms(o, f).join(", ")),
            ("moe", _) => "in **.moe { recompute all }".into(),
            ("moe_act", _) => "in **.moe.experts { recompute [a] }".into(),
            ("shared_experts", _) => "in **.shared_expert { recompute all }".into(),
            _ => {
                let at = o.at("recompute-modules");
                let why = format!("`{}` is not a part of the library's layers", errors::shown(&module));
                o.said.push(errors::unsaid("--recompute-modules", &why, at));
                continue;
            }
        };
        out.push(item);
    }
}

/// Regions of a layer that begin with a norm, by what is known of the model.
fn norms(o: &Options, f: &Facts) -> &'static [&'static str] {
    match (f.experts, o.has("moe-layer-freq")) {
        (None, _) if f.ep == 1 => &["**.attention", "**.mlp"],
        (Some(_), true) => &["**.attention", "**.mlp", "**.moe"],
        (Some(_), false) => &["**.attention", "**.moe"],
        // Experts of a model that is named elsewhere.
        (None, _) => &["**.attention"],
    }
}

/// The precision of the job.
pub(super) fn precision(o: &mut Options, f: &Facts) -> String {
    let mut changes: Vec<String> = Vec::new();
    let fp16 = o.on("fp16");
    let bf16 = o.on("bf16") || (f.front == Front::Swift && !fp16);
    let main_grads = o.text("main-grads-dtype");
    let reduced = o.on("grad-reduce-in-bf16");
    let accumulate = o.on("accumulate-allreduce-grads-in-fp32");
    let half_grads = match main_grads.as_deref() {
        Some("bf16") => Some("bf16"),
        _ if bf16 && reduced => Some("bf16"),
        // Only bf16 switches fp32 gradients on by itself.
        _ if fp16 && !accumulate && f.front == Front::Megatron => Some("fp16"),
        _ => None,
    };
    let base = match (bf16, fp16, half_grads) {
        (true, _, Some("bf16")) => "bf16_pure",
        (false, true, _) => "fp16_mixed",
        _ => "bf16_mixed",
    };
    if fp16 && let Some(dtype) = half_grads {
        changes.push(format!("grad = {dtype}"));
        changes.push(format!("reduce = {dtype}"));
    }
    if !bf16 && !fp16 {
        changes.extend(["param", "act", "compute", "gather", "kv"].map(|class| format!("{class} = fp32")));
        changes.push("master = none".into());
    }
    if let Some(dtype) = o.text("main-params-dtype").filter(|d| d != "fp32") {
        changes.push(format!("master = {}", errors::shown(&dtype)));
    }
    let moments = (o.text("exp-avg-dtype"), o.text("exp-avg-sq-dtype"));
    match moments {
        (Some(a), Some(b)) if a == b && a == "bf16" => changes.push("state = bf16".into()),
        (None, None) => {}
        (a, b) if a.as_deref().unwrap_or("fp32") == "fp32" && b.as_deref().unwrap_or("fp32") == "fp32" => {}
        _ => {
            let key = if o.has("exp-avg-dtype") { "exp-avg-dtype" } else { "exp-avg-sq-dtype" };
            let at = o.at(key);
            o.said.push(errors::unsaid(&format!("--{key}"), "both moments are read as fp32", at));
        }
    }
    o.skip(|k| k == "use-precision-aware-optimizer");
    if o.has("fp8-format") {
        o.skip(|k| k == "fp8-format" || k == "fp8-recipe");
        changes.push("compute = fp8_e4m3".into());
    }
    if changes.is_empty() { base.into() } else { format!("{base} with {{ {} }}", changes.join(", ")) }
}
