//! Launch scripts of Megatron-LM's `pretrain_gpt.py`, and of what takes the same options (Megatron-DeepSpeed, ms-swift).
//!
//! The script's commands are read as text; of them the one that names the training program is taken, or the one with most
//! of its options. `facts` are the numbers, `rules` what Megatron rejects, `model` and `layout` the program.

mod facts;
mod flags;
mod layout;
mod model;
mod rules;

use super::options::{Given, Options};
use super::program::{Machines, Model, Program, common};
use super::shell::{self, Command, Script, Word};
use super::{Extra, Imported, errors};
use crate::source::{FileId, Sources, Span};
use facts::{Facts, Front};

/// The program of a launch script, or every reason why there is none.
pub(super) fn program(sources: &Sources, file: FileId, extra: &Extra) -> Imported {
    let source = sources.file(file);
    let script = match shell::read(file, &source.text) {
        Ok(script) => script,
        Err(d) => return Imported { text: None, said: vec![d] },
    };
    let mut launch = launch(&script, Span::new(file, 0, source.text.len().min(source.text.find('\n').unwrap_or(0))));
    let Some(mut o) = launch.options.take() else {
        let span = Span::new(file, 0, 0);
        let wanted = "a command with options such as `--num-layers` is looked for";
        return Imported { text: None, said: vec![errors::nothing("Megatron-LM", wanted, span)] };
    };
    o.said.extend(script.said);
    for (old, now) in flags::RENAMED {
        if o.has(old) {
            let at = o.at(old);
            let shown = o.shown(old);
            o.said.push(errors::renamed(&shown, *now, o.of, at));
            o.skip(|k| k == *old);
        }
    }
    if let Some(devices) = extra.devices {
        launch.machines = Some(Machines::of(devices));
    }
    let facts = Facts::read(&mut o, launch.front, launch.machines.as_ref().and_then(Machines::devices));
    rules::check(&mut o, &facts, extra.model.is_some());
    let text = written(&mut o, &facts, launch, &source.name, extra);
    let failed = o.failed();
    Imported { text: text.filter(|_| !failed), said: o.said }
}

fn written(o: &mut Options, f: &Facts, launch: Launch, shown: &str, extra: &Extra) -> Option<String> {
    let model = match &extra.model {
        Some(text) => {
            // What shapes the model comes from there.
            o.skip(|k| SHAPE.contains(&k));
            Model::Named(text.clone())
        }
        None if f.front == Front::Swift => {
            let at = o.whole;
            o.said.push(errors::modelless("ms-swift", at));
            return None;
        }
        None => Model::Call(model::call(o, f)?),
    };
    let mesh = layout::mesh(o, f);
    let items = layout::items(o, f, &mesh);
    let precision = layout::precision(o, f);
    let optimizer = match o.text("optimizer").as_deref() {
        Some("sgd") => "SGD",
        Some("adam") | None => "AdamW",
        Some(other) => {
            let at = o.at("optimizer");
            o.said.push(errors::unsaid("--optimizer", &format!("`{}` is read as AdamW", errors::shown(other)), at));
            "AdamW"
        }
    };
    let machines = match (&extra.cluster, launch.machines) {
        (Some(text), _) => Machines::Named(text.clone()),
        (None, Some(counted)) => counted,
        (None, None) => smallest(o, f),
    };
    let micro = f.micro.unwrap_or_else(|| assume(o, "micro-batch-size", 1));
    let devices = machines.devices().zip(f.model_ranks()).map(|(d, r)| (d / r).max(1));
    let batch = f.batch.unwrap_or_else(|| assume(o, "global-batch-size", micro.saturating_mul(devices.unwrap_or(1))));
    let sequence = extra.sequence.or(f.sequence).unwrap_or_else(|| assume(o, "seq-length", 4096));
    let steps = o.count("train-iters");
    o.skip(flags::harmless);
    o.skip(|k| IGNORED.contains(&k));
    let mut notes = o.tell_unread();
    if o.of == "ms-swift" {
        notes.push("the options are those of ms-swift, which takes an expert tensor size of 1 where Megatron-LM takes the tensor size".into());
    }
    let mut fields = vec![
        ("batch", format!("{batch} seq")),
        ("sequence", format!("{sequence} tok")),
        ("micro_batch", format!("{micro} seq")),
    ];
    fields.extend(steps.map(|n| ("steps", format!("{n} step"))));
    fields.push(("precision", precision));
    fields.push(("optimizer", optimizer.into()));
    let program = Program {
        file: shown.to_owned(),
        kind: format!("a launch script of {}", o.of),
        notes,
        model,
        machines,
        parameters: [layout::expert_parameters(f), mesh.parameters()].concat(),
        items,
        fields,
    };
    Some(program.text())
}

/// Options that shape the model: not looked at where it is named on the command line.
const SHAPE: &[&str] = &[
    "add-qkv-bias",
    "disable-bias-linear",
    "embed-layernorm",
    "ffn-hidden-size",
    "group-query-attention",
    "hidden-size",
    "kv-channels",
    "kv-lora-rank",
    "linear-attention-freq",
    "linear-attention-type",
    "moe-ffn-hidden-size",
    "moe-layer-freq",
    "moe-router-enable-expert-bias",
    "moe-router-group-topk",
    "moe-router-num-groups",
    "moe-router-topk",
    "moe-shared-expert-gate",
    "moe-shared-expert-intermediate-size",
    "mtp-num-layers",
    "normalization",
    "num-attention-heads",
    "num-experts",
    "num-layers",
    "num-query-groups",
    "padded-vocab-size",
    "position-embedding-type",
    "q-lora-rank",
    "qk-head-dim",
    "qk-layernorm",
    "qk-pos-emb-head-dim",
    "rotary-base",
    "rotary-percent",
    "softmax-type",
    "squared-relu",
    "swiglu",
    "v-head-dim",
    "vocab-size",
    "window-attn-skip-freq",
    "window-size",
];

/// Options whose meaning is taken into account elsewhere, or that follow from others.
const IGNORED: &[&str] = &[
    "cp-comm-type",
    "data-parallel-sharding-strategy",
    "expert-model-parallel-size",
    "expert-tensor-parallel-size",
    "no-pipeline-parallel",
    "pp-partition-method",
    "recompute-method",
    "recompute-modules",
    "recompute-num-layers",
    "sequence-parallel",
    "use-mcore-models",
    "zero-stage",
];

/// A value the program needs and nobody gives.
fn assume(o: &mut Options, key: &str, value: u64) -> u64 {
    // A value that is wrong or unknown was said so.
    if !o.has(key) {
        let (what, whole) = (format!("`--{key}` is not given"), o.whole);
        o.said.push(errors::assumed(&what, &format!("{value} is assumed"), whole, "change it in the program"));
    }
    value
}

/// The fewest devices that hold the layout, where nobody says how many there are.
fn smallest(o: &mut Options, f: &Facts) -> Machines {
    let dense = f.tp.saturating_mul(f.pp).saturating_mul(f.cp).saturating_mul(f.instances);
    let experts = f.etp.saturating_mul(f.ep).saturating_mul(f.pp);
    let wanted = if f.experts.is_some() || f.ep > 1 { common(dense, experts) } else { dense };
    let full = common(wanted, 8);
    // Whole nodes of 8, unless that is more than one for a small layout or the batch forbids it.
    let step = f.micro.unwrap_or(1).saturating_mul(full / f.model_ranks().unwrap_or(1).max(1));
    let fits = f.batch.is_none_or(|b| b.is_multiple_of(step.max(1)));
    let devices = if wanted > 8 && fits { full } else { wanted };
    let per_node = (1..=8).rev().find(|n| devices.is_multiple_of(*n)).unwrap_or(1);
    let nodes = devices / per_node;
    let assumed = format!("{devices} devices are assumed, as few as hold the layout");
    let (whole, help) = (o.whole, "`--devices 32` says it, `--cluster 'DGX_H100(nodes = 4)'` names the machines");
    o.said.push(errors::assumed("the number of devices is not told", &assumed, whole, help));
    Machines::Counted { nodes, per_node }
}

/// What a launch script tells: options, machines and warnings.
type FromScript = (Vec<Given>, Option<Machines>, Vec<crate::diagnostics::Diagnostic>);

/// Options, machines and warnings of a launch script that some other program's configuration comes with.
pub(super) fn script(sources: &Sources, file: FileId) -> Result<FromScript, crate::diagnostics::Diagnostic> {
    let script = shell::read(file, &sources.file(file).text)?;
    let runs = |c: &&Command| {
        c.words.iter().any(|w| is_python(&w.text) || matches!(w.text.as_str(), "torchrun" | "deepspeed"))
    };
    let Some(command) = script.commands.iter().rev().find(runs).or(script.commands.last()) else {
        return Ok((Vec::new(), None, script.said));
    };
    let program = command.words.iter().position(|w| is_python(&w.text)).map_or(0, |p| p + 1);
    let (before, after) = command.words.split_at(program);
    let machines = machines(&script, before);
    Ok((given(after), machines, script.said))
}

/// Whether an option of a script changes nothing that is planned.
pub(super) fn harmless(key: &str) -> bool {
    flags::harmless(key) || matches!(key, "deepspeed" | "deepspeed-config")
}

/// The command that trains, taken apart.
struct Launch {
    front: Front,
    options: Option<Options>,
    machines: Option<Machines>,
}

/// The command of `script` that trains.
fn launch(script: &Script, whole: Span) -> Launch {
    let known = |c: &Command| c.words.iter().filter(|w| key(w).is_some_and(|k| TELLING.contains(&k.as_str()))).count();
    let named = |c: &Command| c.words.iter().any(|w| trains(&w.text));
    // A file of options has one a line, and no program.
    let bare = |c: &Command| c.words.first().is_some_and(|w| w.text.starts_with("--"));
    let only_options = !script.commands.is_empty() && script.commands.iter().all(bare);
    let joined: Command;
    let best = if only_options {
        joined = Command { words: script.commands.iter().flat_map(|c| c.words.clone()).collect() };
        Some((0, &joined))
    } else {
        let all = script.commands.iter().enumerate();
        all.filter(|(_, c)| known(c) > 0 || named(c)).max_by_key(|(i, c)| (named(c), known(c), usize::MAX - i))
    };
    let Some((at, command)) = best.filter(|(_, c)| known(c) > 0) else {
        return Launch { front: Front::Megatron, options: None, machines: None };
    };
    let program = command.words.iter().position(|w| trains(&w.text)).map_or(0, |p| p + 1);
    let swift = command.words.iter().take(program + 1).any(|w| matches!(w.text.as_str(), "megatron" | "swift"));
    let (before, after) = command.words.split_at(if only_options { 0 } else { program });
    let given = given(if program == 0 { &command.words } else { after });
    let deepspeed =
        given.iter().any(|g| matches!(g.key.as_str(), "deepspeed" | "zero-stage" | "ds-sequence-parallel-size"));
    let (front, of) = match (swift, deepspeed) {
        (true, _) => (Front::Swift, "ms-swift"),
        (_, true) => (Front::DeepSpeed, "Megatron-DeepSpeed"),
        _ => (Front::Megatron, "Megatron-LM"),
    };
    let first = command.words.first().map_or(whole, |w| w.span);
    let mut o = Options::new(of, first, given);
    // Lines behind the command that begin with an option: the backslash before them is missing.
    if !only_options
        && let Some(next) = script.commands.get(at + 1).filter(|c| bare(c))
        && let (Some(from), Some(end)) = (next.words.first(), command.words.last())
    {
        let lost = next.words.iter().filter(|w| w.text.starts_with("--")).count();
        o.said.push(errors::dropped(lost, from.span, end.span));
    }
    o.skip(|k| matches!(k, "deepspeed" | "deepspeed-config"));
    Launch { front, machines: machines(script, before), options: Some(o) }
}

/// Whether a word is a Python program.
fn is_python(word: &str) -> bool {
    std::path::Path::new(word).extension().is_some_and(|e| e == "py")
}

/// Whether a word is a program that takes Megatron's options.
fn trains(text: &str) -> bool {
    let file = text.rsplit('/').next().unwrap_or(text);
    let script = (file.starts_with("pretrain_") || file.starts_with("train")) && is_python(file);
    script || matches!(text, "sft" | "pt" | "rlhf")
}

/// Options that tell which command trains.
const TELLING: &[&str] = &[
    "num-layers",
    "hidden-size",
    "num-attention-heads",
    "tensor-model-parallel-size",
    "pipeline-model-parallel-size",
    "expert-model-parallel-size",
    "context-parallel-size",
    "micro-batch-size",
    "global-batch-size",
    "zero-stage",
    "ds-sequence-parallel-size",
];

/// The name of an option, `_` as `-`.
fn key(word: &Word) -> Option<String> {
    let name = word.text.strip_prefix("--")?;
    let name = name.split('=').next().unwrap_or(name);
    Some(name.replace('_', "-"))
}

/// Options with their values: everything up to the next option.
fn given(words: &[Word]) -> Vec<Given> {
    let mut out: Vec<Given> = Vec::new();
    for w in words {
        // `-5` and `--` are values; a name is letters.
        let name = key(w).filter(|k| {
            k.starts_with(|c: char| c.is_ascii_alphabetic()) && !w.unknown || w.text.contains("--") && w.unknown
        });
        match (name, out.last_mut()) {
            (Some(key), _) => {
                let mut g = Given { key, shown: w.text.clone(), at: w.span, values: Vec::new() };
                if let Some((name, value)) = w.text.split_once('=') {
                    name.clone_into(&mut g.shown);
                    g.values.push(Word { text: value.to_owned(), ..w.clone() });
                }
                out.push(g);
            }
            (None, Some(last)) => last.values.push(w.clone()),
            // A value in front of every option belongs to nothing.
            (None, None) => {}
        }
    }
    out
}

/// Nodes and devices of each: from the starter's options, from `#SBATCH`, from variables of the usual names.
fn machines(script: &Script, before: &[Word]) -> Option<Machines> {
    let starter = given(before);
    let batch = given(&script.batch);
    let of = |list: &[Given], names: &[&str]| {
        let found = list.iter().rev().find(|g| names.contains(&g.key.as_str()));
        let word = found.and_then(|g| g.values.first()).filter(|w| !w.unknown);
        // `gpu:8` and `8:8` end with the number.
        word.and_then(|w| w.text.rsplit(':').next().and_then(|n| n.parse::<u64>().ok()))
    };
    let variable =
        |names: &[&str]| names.iter().find_map(|n| script.variable(n).and_then(|w| w.text.parse::<u64>().ok()));
    let nodes = of(&starter, &["nnodes", "num-nodes", "nodes"])
        .or_else(|| of(&batch, &["nodes"]))
        .or_else(|| variable(&["NNODES", "NUM_NODES", "NODES"]));
    let per_node = of(&starter, &["nproc-per-node", "num-gpus", "ntasks-per-node"])
        .or_else(|| of(&batch, &["gpus-per-node", "gres", "ntasks-per-node"]))
        .or_else(|| variable(&["GPUS_PER_NODE", "NPROC_PER_NODE"]));
    let world = variable(&["WORLD_SIZE"]);
    let (nodes, per_node) = match (nodes, per_node, world) {
        (Some(n), Some(p), _) => (n, p),
        (None, Some(p), Some(w)) if w.is_multiple_of(p.max(1)) => (w / p.max(1), p),
        (Some(n), None, Some(w)) if w.is_multiple_of(n.max(1)) => (n, w / n.max(1)),
        _ => return None,
    };
    let sane = (1..=1 << 20).contains(&nodes) && (1..=1 << 12).contains(&per_node);
    sane.then_some(Machines::Counted { nodes, per_node })
}
