//! Launch configurations that people really wrote (`tests/data/user_configs.json`, each with its source; `PARC_USER_CONFIGS`
//! names another file of the kind): they import, those that break a rule of their framework are told that rule, and what is
//! written for the others is clean.

use crate::files::root;
use crate::import_launch::{checked, imported};
use parc::diagnostics::{Code, Severity};
use parc::import::{self, Extra};
use parc::source::Sources;
use serde_json::{Map, Value};
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

/// Models by the name the source gives them, as the library has them, for launches that name a checkpoint only.
const MODELS: &[(&str, &str)] = &[
    ("Qwen3-235B-A22B", "Qwen3_235B_A22B"),
    ("Qwen3-30B-A3B", "Qwen3_30B_A3B"),
    ("Qwen3-Omni-30B-A3B", "Qwen3_30B_A3B"),
    ("Qwen3-VL-30B-A3B", "Qwen3_30B_A3B"),
    ("Moonlight-16B-A3B", "DeepSeekV2_Lite"),
    ("Qwen2.5-72B", "Qwen2_5_72B"),
    ("Qwen2.5-7B", "Qwen2_5_7B"),
    ("Qwen3-14B", "Qwen3_14B"),
    ("GLM-4.5-Air", "GLM4_5_Air"),
    ("Kimi K2", "KimiK2"),
    ("Qwen3-Next-80B-A3B", "Qwen3_30B_A3B"),
    ("Llama 3 8B", "Llama3_8B"),
    ("Llama 3 70B", "Llama3_70B"),
    ("OPT-1.3B", "GPT3_1_3B"),
    ("Baichuan 13B", "Llama2_13B"),
    ("GPT 7B", "GPT3_6_7B"),
    ("GPT 30B", "GPT3_13B"),
    ("GPT 13B", "GPT3_13B"),
    ("BERT-like, about 5B", "GPT3_6_7B"),
    ("Mixtral 8x7B", "Mixtral_8x7B"),
    // A toy of its own shape that has no published file: the family with its two key and value heads.
    (
        "Qwen3.5-397B-A17B",
        "MoEDecoder(layers = 60, hidden = 4096, heads = 32, kv_heads = 2, vocab = 248320, experts = 512, top_k = 10, expert_ffn = 1024)",
    ),
];

/// Models of torchtitan's registry: name, package, flavor.
const REGISTRY: &[(&str, &str, &str)] = &[
    ("Llama 3 70B", "llama3", "70B"),
    ("Llama 3 8B", "llama3", "8B"),
    ("DeepSeek-V3 671B", "deepseek_v3", "671B"),
    ("DeepSeek-V3 16B", "deepseek_v3", "16B"),
    ("Llama 4 Scout-like", "llama4", "17bx16e"),
    ("Qwen3-14B", "qwen3", "14B"),
];

/// The rule that a configuration breaks, in words of the message or a note; the devices the framework saw where that is the
/// point.
const BROKEN: &[(&str, &str, Option<u64>)] = &[
    ("s-mlm-gpt3-175b-example", "8 devices for tensor 8 x pipeline 16", None),
    ("s-mlm-mixtral-8x7b-example", "expert 8 x pipeline 4 = 32", None),
    ("s-mlm-gptoss-example", "12 layers over 8 stages", None),
    ("s-mlm-468", "trained 64 of 80 layers", None),
    ("s-mlm-326", "trained 32 of 40 layers", None),
    ("s-mlm-2280", "94 layers over 8 stages", None),
    ("s-mds-474", "ZeRO stage 3 in the pipeline engine", None),
    ("s-swift-5737", "do not split evenly over 4 chunks", None),
    ("s-tt-4016-kv", "2 key and value heads over 8 tensor ranks", None),
    ("s-ds-3589", "ZeRO stage 2 in a pipeline of 2 stages", None),
    ("s-ds-6914", "a batch of 8, and 2 x 1 x 1", Some(1)),
    ("s-lf-2574", "a batch of 16, and 1 x 1 x 1", Some(1)),
    // Accepted in silence by DeepSpeed, and said here.
    ("s-pl-18134", "does nothing with ZeRO stage 2", None),
];

/// Configurations that ran and whose quoted options break a rule: the option that makes them right was not quoted.
const QUOTED_IN_PART: &[(&str, &str)] = &[("s-mlm-756", "without sequence parallelism")];

fn data() -> (Vec<Value>, bool) {
    let elsewhere = std::env::var_os("PARC_USER_CONFIGS");
    let path = elsewhere.clone().map_or_else(|| root().join("tests/data/user_configs.json"), PathBuf::from);
    let all: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    (all["configs"].as_array().unwrap().clone(), elsewhere.is_some())
}

/// A value as a word of a shell.
fn word(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    parc::emit::shell::quote(&text)
}

/// Options as a command line; lists of words as several words.
fn options(flags: &Map<String, Value>) -> String {
    let mut out = String::new();
    for (name, value) in flags.iter().filter(|(name, _)| name.starts_with("--")) {
        let lists = ["--recompute-modules", "--rampup-batch-size", "--offload-modules"];
        match value {
            Value::Bool(true) => drop(write!(out, " \\\n  {name}")),
            Value::String(text) if lists.contains(&name.as_str()) => drop(write!(out, " \\\n  {name} {text}")),
            value => drop(write!(out, " \\\n  {name} {}", word(value))),
        }
    }
    out
}

/// The launch script of a configuration.
fn script(config: &Value, program: &str) -> String {
    let h = &config["hardware"];
    let of = |key: &str| h[key].as_u64();
    let machines = match (of("nodes"), of("gpus_per_node"), of("gpus")) {
        (Some(n), Some(g), _) => Some((n, g)),
        (_, _, Some(all)) if all % 8 == 0 => Some((all / 8, 8)),
        (_, _, Some(all)) => Some((1, all)),
        _ => None,
    };
    let starter = machines.map_or(String::new(), |(n, g)| format!(" --nnodes {n} --nproc-per-node {g}"));
    let flags = config["flags"].as_object().unwrap();
    if program == "megatron sft" {
        let said = machines.map_or(String::new(), |(n, g)| format!("export NNODES={n}\nexport NPROC_PER_NODE={g}\n"));
        return format!("{said}megatron sft{}\n", options(flags));
    }
    format!("torchrun{starter} {program}{}\n", options(flags))
}

/// Values under dotted names, as a tree.
fn tree(flags: &Map<String, Value>) -> Value {
    let mut root = Value::Object(Map::new());
    for (name, value) in flags.iter().filter(|(name, _)| !name.starts_with("--")) {
        let mut at = &mut root;
        for part in name.split('.') {
            at = at.as_object_mut().unwrap().entry(part).or_insert_with(|| Value::Object(Map::new()));
        }
        *at = value.clone();
    }
    root
}

/// What came of a configuration: the program, and everything said.
fn import_one(config: &Value, devices: Option<u64>) -> (Option<String>, Vec<parc::diagnostics::Diagnostic>, String) {
    let framework = config["framework"].as_str().unwrap();
    let flags = config["flags"].as_object().unwrap();
    let named =
        config["model"].as_str().and_then(|m| MODELS.iter().find(|(n, _)| *n == m)).map(|(_, e)| (*e).to_owned());
    let gpus = devices.or(config["hardware"]["gpus"].as_u64());
    match framework {
        "torchtitan" => {
            let mut root = tree(flags);
            let registry = config["model"].as_str().and_then(|m| REGISTRY.iter().find(|(n, ..)| *n == m));
            if let Some((_, package, flavor)) = registry {
                root["model"] = serde_json::json!({"name": package, "flavor": flavor});
            }
            let text = toml::to_string(&root).unwrap();
            let model = named.filter(|_| registry.is_none());
            imported(import::torchtitan, "run.toml", &text, &Extra { model, devices: gpus, ..Extra::default() })
        }
        "deepspeed" => {
            let mut sources = Sources::new();
            let text = serde_json::to_string_pretty(&tree(flags)).unwrap();
            let file = sources.add("ds_config.json", text, false);
            let launch = sources.add("launch.sh", script(config, "train.py"), false);
            let model = Some(named.unwrap_or_else(|| "Llama3_8B".into()));
            let extra = Extra { model, devices: gpus, sequence: Some(4096), script: Some(launch), ..Extra::default() };
            let found = import::deepspeed(&sources, file, &extra);
            let short = parc::diagnostics::render::short(&found.said, &sources);
            (found.text, found.said, short)
        }
        _ => {
            let swift = framework.starts_with("ms-swift");
            let text = script(config, if swift { "megatron sft" } else { "pretrain_gpt.py" });
            let whole = flags.contains_key("--hidden-size") && flags.contains_key("--num-attention-heads");
            let model = named.filter(|_| swift || !whole);
            imported(import::megatron, "launch.sh", &text, &Extra { model, devices, ..Extra::default() })
        }
    }
}

/// What the target says of a program that the import cannot judge, since only the library knows its model.
fn target(program: &str) -> String {
    let c = crate::compile::check(program);
    let Ok(_) = c.attempt(&[]) else { return String::new() };
    format!("{:?}", (parc::emit::targets::find("torchtitan").unwrap().program)(&c.launched(&[])))
}

#[test]
fn configurations_that_people_wrote_import() {
    let (configs, elsewhere) = data();
    let (mut wrong, mut seen, mut refused) = (Vec::new(), 0, 0);
    for config in &configs {
        let (id, framework) = (config["id"].as_str().unwrap(), config["framework"].as_str().unwrap());
        let ours = ["megatron-lm", "megatron-deepspeed", "ms-swift", "torchtitan", "deepspeed"];
        if !ours.iter().any(|f| framework.split(' ').next() == Some(f)) {
            continue;
        }
        seen += 1;
        let broken = BROKEN.iter().find(|(i, ..)| *i == id);
        let (program, said, short) = import_one(config, broken.and_then(|(.., devices)| *devices));
        let violates = config["violates"].as_array().is_some_and(|v| !v.is_empty());
        let check = program.as_deref().map_or(String::new(), checked);
        if violates {
            refused += 1;
            let told = program.as_deref().filter(|_| framework == "torchtitan").map_or(String::new(), target);
            let notes: Vec<_> = said.iter().map(|d| (&d.message, &d.notes, &d.primary.text)).collect();
            let all = format!("{notes:?} {check} {told}");
            match broken {
                Some((_, words, _)) if !all.contains(words) => {
                    wrong.push(format!("{id}: {words:?} is not said: {short}{check}"));
                }
                None if said.is_empty() && check.is_empty() => {
                    wrong.push(format!("{id}: nothing is said of {}", config["violates"]));
                }
                Some(_) | None => {}
            }
            continue;
        }
        let errors = said.iter().filter(|d| d.code.info().severity == Severity::Error);
        // A launch of which too little was quoted cannot be a program; it may not be called wrong for it.
        let in_part = QUOTED_IN_PART.iter().find(|(i, _)| *i == id).map(|(_, words)| *words);
        let lacking = errors
            .clone()
            .all(|d| d.code == Code::ImportMalformed || in_part.is_some_and(|words| d.message.contains(words)));
        let accepted = config["outcome"] == "ok";
        if errors.clone().count() > 0 && (accepted || !lacking) {
            wrong.push(format!("{id}: {short}"));
        }
        if !check.is_empty() && config["outcome"] != "error" {
            wrong.push(format!("{id}: {check}{}", program.unwrap_or_default()));
        }
    }
    assert!(elsewhere || (seen, refused) == (59, 13), "{seen} configurations, {refused} of them break a rule");
    assert!(wrong.is_empty(), "{} of {seen}:\n{}", wrong.len(), wrong.join("\n"));
}
