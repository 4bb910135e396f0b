//! Configurations of `DeepSpeed`: its JSON file, with the launch script beside it where there is one. Keys and rules are those
//! of the version the target writes for. The file knows no model; the command line names it.

mod keys;
mod rules;

use super::json::{self, Json, Node};
use super::options::{Given, Options};
use super::program::{Machines, Mesh, Model, Program, common};
use super::shell::Word;
use super::{Extra, Imported, errors, megatron};
use crate::source::{FileId, Sources, Span};

/// Numbers of a configuration, `DeepSpeed`'s defaults put in.
struct Facts {
    stage: u64,
    tp: u64,
    cp: u64,
    pp: u64,
    batch: Option<u64>,
    micro: Option<u64>,
    steps: Option<u64>,
    world: Option<u64>,
    offload_state: bool,
    offload_params: bool,
}

impl Facts {
    /// Data-parallel ranks, from the devices or from the batch.
    fn dp(&self) -> Option<u64> {
        let ranks = self.tp.saturating_mul(self.cp).saturating_mul(self.pp);
        match (self.world, self.batch, self.micro, self.steps) {
            (Some(w), ..) => w.is_multiple_of(ranks).then(|| w / ranks),
            (None, Some(t), Some(b), Some(a)) => {
                let one = b.saturating_mul(a);
                t.is_multiple_of(one).then(|| t / one)
            }
            _ => None,
        }
    }
}

/// The program of a configuration, or every reason why there is none.
pub(super) fn program(sources: &Sources, file: FileId, extra: &Extra) -> Imported {
    let source = sources.file(file);
    let tree = match json::read(file, &source.text) {
        Ok(tree) => tree,
        Err(d) => return Imported { text: None, said: vec![d] },
    };
    let whole = Span::new(file, tree.span.start as usize, (tree.span.start as usize + 1).min(tree.span.end as usize));
    let mut given = Vec::new();
    flatten("", &tree, &mut given);
    if !matches!(tree.node, Node::Object(_)) || !given.iter().any(|g| keys::known(&g.key)) {
        let wanted = "keys such as `zero_optimization` and `train_batch_size` are looked for";
        return Imported { text: None, said: vec![errors::nothing("DeepSpeed", wanted, whole)] };
    }
    let mut o = Options::new("DeepSpeed", whole, given);
    let mut world = extra.devices;
    if let Some(script) = extra.script {
        match megatron::script(sources, script) {
            Ok((options, machines, said)) => {
                o.extend(options);
                o.said.extend(said);
                world = world.or(machines.and_then(|m| m.devices()));
            }
            Err(d) => o.said.push(d),
        }
    }
    let facts = facts(&mut o, world);
    rules::check(&mut o, &facts);
    let text = written(&mut o, &facts, &source.name, extra);
    let failed = o.failed();
    Imported { text: text.filter(|_| !failed), said: o.said }
}

/// Every value that is not an object, under the names of the objects around it.
fn flatten(prefix: &str, json: &Json, out: &mut Vec<Given>) {
    let Node::Object(entries) = &json.node else { return };
    for e in entries {
        let key = if prefix.is_empty() { e.key.clone() } else { format!("{prefix}.{}", e.key) };
        let text = |j: &Json| match &j.node {
            Node::Bool(b) => b.to_string(),
            Node::Number(n) => n.clone(),
            Node::Text(t) => t.clone(),
            Node::Null | Node::List(_) | Node::Object(_) => String::new(),
        };
        let word = |j: &Json| Word { text: text(j), span: j.span, unknown: false };
        match &e.value.node {
            // What an optimizer or a scheduler is given is its own.
            Node::Object(inner) if !key.ends_with(".params") && !inner.is_empty() => flatten(&key, &e.value, out),
            Node::Object(_) => out.push(Given { shown: key.clone(), key, at: e.at, values: Vec::new() }),
            Node::Null => {}
            Node::List(items) => {
                let values = items.iter().map(word).collect();
                out.push(Given { shown: key.clone(), key, at: e.at, values });
            }
            // The Hugging Face integration fills `auto` in.
            Node::Text(t) if t == "auto" => {
                out.push(Given {
                    shown: key.clone(),
                    key: format!("auto:{key}"),
                    at: e.at,
                    values: vec![word(&e.value)],
                });
            }
            Node::Bool(_) | Node::Number(_) | Node::Text(_) => {
                out.push(Given { shown: key.clone(), key, at: e.at, values: vec![word(&e.value)] });
            }
        }
    }
}

fn facts(o: &mut Options, world: Option<u64>) -> Facts {
    let stage = o.number("zero_optimization.stage").or_else(|| o.number("zero-stage")).unwrap_or(0);
    let device = |o: &mut Options, what: &str| {
        let device = o.text(&format!("zero_optimization.offload_{what}.device"));
        device.is_some_and(|d| d != "none")
    };
    let offload_state = device(o, "optimizer") || o.on("zero_optimization.cpu_offload");
    let offload_params = device(o, "param") || o.on("zero_optimization.cpu_offload_param");
    let micro = [
        "train_micro_batch_size_per_gpu",
        "micro-batch-size",
        "per-device-train-batch-size",
        "per_device_train_batch_size",
    ];
    let micro = micro.into_iter().find_map(|k| o.count(k));
    let steps = o.count("gradient_accumulation_steps").or_else(|| o.count("gradient-accumulation-steps"));
    Facts {
        stage,
        tp: o.count("tensor_parallel.autotp_size").or_else(|| o.count("tensor-model-parallel-size")).unwrap_or(1),
        cp: o.count("sequence_parallel_size").or_else(|| o.count("ds-sequence-parallel-size")).unwrap_or(1),
        pp: o.count("pipeline-model-parallel-size").unwrap_or(1),
        batch: o.count("train_batch_size").or_else(|| o.count("global-batch-size")),
        micro,
        steps,
        world,
        offload_state,
        offload_params,
    }
}

fn written(o: &mut Options, f: &Facts, shown: &str, extra: &Extra) -> Option<String> {
    let Some(model) = &extra.model else {
        let at = o.whole;
        o.said.push(errors::modelless("DeepSpeed", at));
        return None;
    };
    let ranks = f.tp.saturating_mul(f.cp).saturating_mul(f.pp);
    let machines = match (&extra.cluster, f.dp()) {
        (Some(text), _) => Machines::Named(text.clone()),
        (None, Some(dp)) => Machines::of(dp.saturating_mul(ranks)),
        (None, None) => {
            let devices = common(ranks, 8);
            let whole = o.whole;
            let assumed = format!("{devices} devices are assumed");
            let help = "`--devices 32` says it, `--cluster 'DGX_H100(nodes = 4)'` names the machines, `--script launch.sh` the launch";
            o.said.push(errors::assumed("the number of devices is not told", &assumed, whole, help));
            Machines::of(devices)
        }
    };
    let dp = f.dp().or_else(|| machines.devices().map(|d| (d / ranks.max(1)).max(1)));
    let micro =
        f.micro.or_else(|| Some(f.batch? / dp?.max(1) / f.steps.unwrap_or(1).max(1)).filter(|b| *b > 0)).unwrap_or(1);
    let step = micro.saturating_mul(f.steps.unwrap_or(1));
    let batch = f.batch.or_else(|| dp.and_then(|d| step.checked_mul(d))).unwrap_or(step);
    let sequence =
        extra.sequence.or_else(|| o.count("seq-length")).or_else(|| o.count("cutoff_len")).unwrap_or_else(|| {
            let whole = o.whole;
            let help = "`--sequence 8192` says it";
            o.said.push(errors::assumed(
                "the length of a sequence is not told",
                "4096 tokens are assumed",
                whole,
                help,
            ));
            4096
        });
    let mesh = Mesh::new(&[("pp", f.pp), ("dp", 0), ("cp", f.cp), ("tp", f.tp)]);
    let items = items(o, f, &mesh);
    let precision = precision(o);
    let optimizer = o.text("optimizer.type").unwrap_or_else(|| "AdamW".into());
    let optimizer = match optimizer.to_ascii_lowercase().as_str() {
        "sgd" => "SGD",
        "adam" | "adamw" | "fusedadam" => "AdamW",
        other => {
            let at = o.at("optimizer.type");
            o.said.push(errors::unsaid("optimizer.type", &format!("`{}` is read as AdamW", errors::shown(other)), at));
            "AdamW"
        }
    };
    let fields = vec![
        ("batch", format!("{batch} seq")),
        ("sequence", format!("{sequence} tok")),
        ("micro_batch", format!("{micro} seq")),
        ("precision", precision),
        ("optimizer", optimizer.into()),
    ];
    o.skip(keys::harmless);
    o.skip(megatron::harmless);
    let notes = o.tell_unread();
    let model = Model::Named(model.clone());
    Some(
        Program {
            file: shown.to_owned(),
            kind: "a configuration of DeepSpeed".into(),
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

fn items(o: &mut Options, f: &Facts, mesh: &Mesh) -> Vec<String> {
    let mut out = vec![mesh.item(), "shard B over dp".into()];
    let over = mesh.list(&["dp", "cp"]);
    if f.cp > 1 {
        out.push("shard S over cp".into());
        out.push("attention over cp via all_to_all".into());
    }
    if f.tp > 1 {
        out.push("shard [N, K, F, V] over tp".into());
    }
    let host = |on: bool| if on { " on host" } else { "" };
    let whole = " { bucket = layer, hold = layer, prefetch = 1 }";
    match f.stage {
        0 => {}
        1 => out.push(format!("store state over {over}{}", host(f.offload_state))),
        2 => out.push(format!("store [state, grad] over {over}{}", host(f.offload_state))),
        _ if f.offload_state || f.offload_params => {
            out.push(format!("store param over {over}{}{whole}", host(f.offload_params)));
            out.push(format!("store [grad, state] over {over}{}", host(f.offload_state)));
        }
        _ => out.push(format!("store [param, grad, state] over {over}{whole}")),
    }
    if f.offload_state && f.stage > 0 {
        out.push("update { on = host }".into());
    }
    if f.pp > 1 {
        out.push("pipeline over pp { schedule = one_f_one_b, split = even }".into());
    }
    let overlaps = o.flag("zero_optimization.overlap_comm").unwrap_or(f.stage == 3);
    if overlaps && f.stage > 0 {
        if f.stage == 3 {
            out.push(format!("overlap gather over {over} with forward"));
        }
        out.push(format!("overlap reduce over {over} with backward"));
    }
    if o.on("checkpoint-activations") {
        out.push("recompute all".into());
    }
    out
}

/// The precision of the job.
fn precision(o: &mut Options) -> String {
    let half = if o.on("bf16.enabled") || o.on("bf16") {
        Some("bf16")
    } else if o.on("fp16.enabled") || o.on("fp16") {
        Some("fp16")
    } else {
        None
    };
    let name = |text: Option<String>| match text.as_deref() {
        Some("bf16" | "bfloat16") => Some("bf16"),
        Some("fp16" | "float16") => Some("fp16"),
        Some("fp32" | "float32") => Some("fp32"),
        _ => None,
    };
    let Some(half) = half else {
        o.skip(|k| matches!(k, "data_types.grad_accum_dtype" | "communication_data_type"));
        return "bf16_mixed with { param = fp32, act = fp32, compute = fp32, gather = fp32, kv = fp32, master = none }"
            .into();
    };
    // Gradients are kept and sent in the half format unless the file says otherwise.
    let grad = name(o.text("data_types.grad_accum_dtype")).unwrap_or(half);
    let reduce = name(o.text("communication_data_type")).unwrap_or(half);
    let base = if half == "bf16" { "bf16_mixed" } else { "fp16_mixed" };
    let mut changes = Vec::new();
    if grad != "fp32" {
        changes.push(format!("grad = {grad}"));
    }
    if reduce != "fp32" {
        changes.push(format!("reduce = {reduce}"));
    }
    if changes.is_empty() { base.into() } else { format!("{base} with {{ {} }}", changes.join(", ")) }
}
