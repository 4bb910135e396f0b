//! The targets that write configuration files, against the rules of the frameworks that read them.
//!
//! The rules here were read from each package, not from the target's code. The files of
//! `samples_for_the_frameworks_own_loaders` were also given to accelerate's `load_config_from_file`,
//! `_validate_launch_command` and `ParallelismConfig`, to `DeepSpeedConfig` with a world of 16, and to torchtitan's
//! `ConfigManager` and `ParallelDims`, at the pinned versions, which took them all.

use crate::sample_plans::*;
use parc::emit::plan::{Plan, RecomputeInfo};
use parc::emit::targets::{self, Instead, Program, TargetError, Where};
use serde_json::Value;
use std::collections::BTreeMap;

fn program(target: &str, plan: &Plan) -> Result<Program, Vec<TargetError>> {
    (targets::find(target).unwrap().program)(plan)
}

fn file(target: &str, plan: &Plan, name: &str) -> String {
    let program = program(target, plan).unwrap();
    String::from_utf8(program.files[std::path::Path::new(name)].bytes.clone()).unwrap()
}

/// The only error of `plan`.
fn error(target: &str, plan: &Plan) -> TargetError {
    let mut errors = program(target, plan).unwrap_err();
    assert_eq!(errors.len(), 1, "{errors:#?}");
    errors.remove(0)
}

fn mesh(mesh: Mesh, chunks_per_rank: u64, layers: &[u64]) -> Plan {
    let decoder = llama3_8b().model.decoder.unwrap();
    let mut plan = plan("job", &decoder, mesh, chunks_per_rank, layers, (128, 8192, 1));
    plan.model.name = "Llama3_8B".into();
    plan
}

fn store(plan: &mut Plan, classes: &[&'static str], axes: &[&str]) {
    for class in classes {
        plan.layout.stored.insert(class, axes.iter().map(|a| (*a).to_owned()).collect());
    }
    if classes.contains(&"param") {
        plan.layout.hold = Some("layer");
    }
}

/// FSDP over 8 ranks, 2 copies: HSDP.
fn hsdp() -> Plan {
    let mut plan = mesh(&[("rep", 2, Data), ("fsdp", 8, Data)], 1, &[32]);
    store(&mut plan, &["param", "grad", "state"], &["fsdp"]);
    plan
}

/// tp 2, cp 2, pp 2 interleaved, dp 2 with sharded parameters.
fn titan() -> Plan {
    let axes: Mesh = &[("pp", 2, Pipeline), ("dp", 2, Data), ("cp", 2, Context), ("tp", 2, Tensor)];
    let mut plan = mesh(axes, 2, &[8, 8, 9, 7]);
    store(&mut plan, &["param", "grad", "state"], &["dp", "cp"]);
    plan.layout.sequence_parallel = true;
    plan.layout.context_method = Some("all_gather");
    plan.layout.recompute = RecomputeInfo::Full;
    plan
}

/// `config.SECTION.KEY = VALUE` lines, values as JSON.
fn settings(module: &str) -> BTreeMap<String, Value> {
    let body = module.split_once("# What follows comes from the plan").unwrap().1;
    let mut out = BTreeMap::new();
    let mut lines = body.lines().peekable();
    while let Some(line) = lines.next() {
        let Some((key, value)) = line.trim().strip_prefix("config.").and_then(|l| l.split_once(" = ")) else {
            continue;
        };
        let mut value = value.to_owned();
        while value.starts_with('[') && !value.ends_with(']') {
            value += lines.next().unwrap().trim();
        }
        let json = match value.as_str() {
            "True" => Value::Bool(true),
            "False" => Value::Bool(false),
            "None" => Value::Null,
            "FullAC.Config()" => "full".into(),
            list => serde_json::from_str(&list.replace(",]", "]")).unwrap_or_else(|e| panic!("{list}: {e}")),
        };
        assert!(out.insert(key.to_owned(), json).is_none(), "{key} is set twice");
    }
    out
}

/// Fields of `TrainingConfig`, `ParallelismConfig` and `CompileConfig` of torchtitan 0.3.0 that are ever set.
const TITAN_KEYS: &[&str] = &[
    "activation_checkpoint",
    "compile.enable_async_tensor_parallel",
    "parallelism.context_parallel_degree",
    "parallelism.context_parallel_load_balancer",
    "parallelism.data_parallel_replicate_degree",
    "parallelism.data_parallel_shard_degree",
    "parallelism.enable_sequence_parallel",
    "parallelism.expert_parallel_degree",
    "parallelism.fsdp_reshard_after_forward",
    "parallelism.module_fqns_per_model_part",
    "parallelism.pipeline_parallel_degree",
    "parallelism.pipeline_parallel_microbatch_size",
    "parallelism.pipeline_parallel_schedule",
    "parallelism.tensor_parallel_degree",
    "training.disable_cuda_graphs",
    "training.dtype",
    "training.global_batch_size",
    "training.local_batch_size",
    "training.mixed_precision_param",
    "training.mixed_precision_reduce",
    "training.seq_len",
];

/// Checks a module against torchtitan's rules and the plan; gives its settings.
fn check_titan(plan: &Plan) -> BTreeMap<String, Value> {
    let module = file("torchtitan", plan, "parc_plan.py");
    let set = settings(&module);
    assert_eq!(set.keys().map(String::as_str).collect::<Vec<_>>(), TITAN_KEYS);
    let n = |key: &str| set[key].as_u64().unwrap_or_else(|| panic!("{key} is {}", set[key]));
    let p = |key: &str| n(&format!("parallelism.{key}"));
    let [rep, shard, cp, tp, pp] = [
        p("data_parallel_replicate_degree"),
        p("data_parallel_shard_degree"),
        p("context_parallel_degree"),
        p("tensor_parallel_degree"),
        p("pipeline_parallel_degree"),
    ];
    // ParallelDims: the degrees multiply to the world.
    assert_eq!(rep * shard * cp * tp * pp, plan.cluster.devices);
    let (local, global) = (n("training.local_batch_size"), n("training.global_batch_size"));
    // Trainer: whole steps of accumulation.
    assert_eq!(global % (local * rep * shard), 0);
    let steps = global / (local * rep * shard);
    let (graphs, micro) = (&set["training.disable_cuda_graphs"], p("pipeline_parallel_microbatch_size"));
    assert_eq!((global, micro), (plan.training.batch, plan.training.micro_batch));
    if pp > 1 {
        assert_eq!(graphs, &Value::Bool(true), "graphs cannot capture a pipeline");
        assert_eq!(local % micro, 0);
        assert_eq!(steps * local / micro, plan.training.microbatches);
        let parts = set["parallelism.module_fqns_per_model_part"].as_array().unwrap();
        assert_eq!(parts.len() as u64 % pp, 0);
        let modules: Vec<_> = parts.iter().flat_map(|p| p.as_array().unwrap()).map(|m| m.as_str().unwrap()).collect();
        let layers = (0..plan.model.decoder.as_ref().unwrap().layers).map(|i| format!("layers.{i}"));
        let all: Vec<_> =
            ["tok_embeddings".to_owned()].into_iter().chain(layers).chain(["norm".into(), "lm_head".into()]).collect();
        assert_eq!(modules, all, "every module once, in order");
    } else {
        assert_eq!((local, steps), (micro, plan.training.microbatches));
    }
    let sequence = if set["parallelism.enable_sequence_parallel"] == true { tp } else { 1 };
    assert_eq!(n("training.seq_len") % (sequence * if cp > 1 { 2 * cp } else { 1 }), 0);
    // The mesh is unflattened row-major: pp, dp_replicate, dp_shard, cp, tp.
    let stored = plan.layout.stored.get("param").cloned().unwrap_or_default();
    for rank in &plan.ranks {
        let index = |keep: &dyn Fn(&parc::emit::plan::AxisInfo) -> bool| {
            let axes = plan.layout.axes.iter().zip(&rank.coordinates).filter(|(a, _)| keep(a));
            axes.fold(0, |i, (a, c)| i * a.size + c)
        };
        let [t, c, s, r, p] = [
            index(&|a| a.role == Tensor),
            index(&|a| a.role == Context),
            index(&|a| a.role == Data && stored.contains(&a.name)),
            index(&|a| a.role == Data && !stored.contains(&a.name)),
            index(&|a| a.role == Pipeline),
        ];
        assert_eq!(t + tp * (c + cp * (s + shard * (r + rep * p))), rank.rank);
    }
    set
}

#[test]
fn torchtitan_is_told_every_degree_and_every_module() {
    let set = check_titan(&titan());
    assert_eq!(set["parallelism.pipeline_parallel_schedule"], "Interleaved1F1B");
    assert_eq!(set["parallelism.fsdp_reshard_after_forward"], "always");
    assert_eq!(set["activation_checkpoint"], "full");
    assert_eq!(set["training.local_batch_size"], 64, "a rank's share of the batch, cut into 64 microbatches");
    let parts = set["parallelism.module_fqns_per_model_part"].as_array().unwrap();
    assert_eq!(parts.iter().map(|p| p.as_array().unwrap().len()).collect::<Vec<_>>(), [9, 8, 9, 9]);
    let set = check_titan(&hsdp());
    assert_eq!(set["parallelism.data_parallel_replicate_degree"], 2);
    assert_eq!(set["training.local_batch_size"], 1);
    let program = program("torchtitan", &hsdp()).unwrap();
    assert_eq!(program.arguments(), ["--module", "parc_plan", "--config", "run"]);
}

#[test]
fn torchtitan_refuses_what_it_cannot_do() {
    let mut ring = titan();
    ring.layout.context_method = Some("ring");
    assert_eq!(error("torchtitan", &ring).at, Where::Attention);
    let mut zero1 = mesh(&[("dp", 16, Data)], 1, &[32]);
    store(&mut zero1, &["state"], &["dp"]);
    let e = error("torchtitan", &zero1);
    assert_eq!(e.at, Where::Store("state".into()));
    assert_eq!(e.instead, Some(Instead::Text("store [param, grad, state] over [dp]".into())));
    assert_eq!(e.able, ["megatron", "deepspeed"]);
    store(&mut zero1, &["grad"], &["dp"]);
    assert_eq!(error("torchtitan", &zero1).able, ["deepspeed"], "Megatron keeps whole gradients");
    let mut schedule = titan();
    schedule.pipeline.schedule = "zb_h1".into();
    assert_eq!(error("torchtitan", &schedule).at, Where::Schedule);
    let mut order = mesh(&[("tp", 2, Tensor), ("dp", 8, Data)], 1, &[32]);
    store(&mut order, &["param", "grad", "state"], &["dp"]);
    assert_eq!(error("torchtitan", &order).instead, Some(Instead::Text("mesh [dp, tp]".into())));
    // Key and value heads: 8 do not split over 16 tensor ranks.
    let mut wide = mesh(&[("dp", 2, Data), ("tp", 16, Tensor)], 1, &[32]);
    store(&mut wide, &["param", "grad", "state"], &["dp"]);
    assert_eq!(error("torchtitan", &wide).at, Where::Shard);
    let mut other = hsdp();
    other.model.decoder.as_mut().unwrap().ffn = 16384;
    assert_eq!(error("torchtitan", &other).at, Where::Model);
}

/// Keys of `zero/config.py` and `runtime/config.py` of `DeepSpeed` 0.19.8 that are ever written.
const DEEPSPEED_KEYS: &[&str] = &[
    "train_batch_size",
    "train_micro_batch_size_per_gpu",
    "gradient_accumulation_steps",
    "bf16.enabled",
    "fp16.enabled",
    "data_types.grad_accum_dtype",
    "communication_data_type",
    "zero_optimization.stage",
    "zero_optimization.overlap_comm",
    "zero_optimization.stage3_param_persistence_threshold",
    "tensor_parallel.autotp_size",
    "optimizer.type",
    "optimizer.params",
];

fn check_deepspeed(plan: &Plan) -> Value {
    let json: Value = serde_json::from_str(&file("deepspeed", plan, "ds_config.json")).unwrap();
    for (key, value) in json.as_object().unwrap() {
        let names = match value.as_object() {
            Some(section) => section.keys().map(|k| format!("{key}.{k}")).collect(),
            None => vec![key.clone()],
        };
        for name in names {
            assert!(DEEPSPEED_KEYS.contains(&name.as_str()), "{name} is ignored or refused");
        }
    }
    let n = |key: &str| json[key].as_u64().unwrap();
    let tp = json["tensor_parallel"]["autotp_size"].as_u64().unwrap_or(1);
    let data = plan.cluster.devices / tp;
    // The batch equation, exactly.
    assert_eq!(n("train_batch_size"), n("train_micro_batch_size_per_gpu") * n("gradient_accumulation_steps") * data);
    json
}

#[test]
fn deepspeed_gets_the_zero_stage_of_what_is_stored() {
    let stages: [&[&'static str]; 4] = [&[], &["state"], &["state", "grad"], &["state", "grad", "param"]];
    for (stage, classes) in stages.into_iter().enumerate() {
        let mut plan = mesh(&[("dp", 16, Data)], 1, &[32]);
        store(&mut plan, classes, &["dp"]);
        let json = check_deepspeed(&plan);
        assert_eq!(json["zero_optimization"]["stage"], stage);
        assert_eq!(json["bf16"]["enabled"], true);
        assert_eq!(json["data_types"]["grad_accum_dtype"], "fp32");
    }
    let mut tensor = mesh(&[("dp", 8, Data), ("tp", 2, Tensor)], 1, &[32]);
    store(&mut tensor, &["state"], &["dp"]);
    assert_eq!(check_deepspeed(&tensor)["tensor_parallel"]["autotp_size"], 2);
    assert_eq!(check_deepspeed(&tensor)["gradient_accumulation_steps"], 16);
}

#[test]
fn deepspeed_refuses_what_its_file_cannot_say() {
    let pipeline = mesh(&[("pp", 2, Pipeline), ("dp", 8, Data)], 1, &[16, 16]);
    let e = error("deepspeed", &pipeline);
    assert_eq!(e.at, Where::Pipeline);
    assert!(e.able.contains(&"megatron"));
    // MiCS is gone: shards lie over all data ranks.
    let e = error("deepspeed", &hsdp());
    assert_eq!(e.instead, Some(Instead::Axis("fsdp".into(), 16)));
    assert_eq!(e.able, ["torchtitan", "accelerate"]);
    // ZeRO-3 and AutoTP exclude one another.
    let mut both = mesh(&[("dp", 8, Data), ("tp", 2, Tensor)], 1, &[32]);
    store(&mut both, &["param", "grad", "state"], &["dp"]);
    assert_eq!(error("deepspeed", &both).at, Where::Shard);
    let mut gap = mesh(&[("dp", 16, Data)], 1, &[32]);
    store(&mut gap, &["param"], &["dp"]);
    assert_eq!(error("deepspeed", &gap).at, Where::Store("param".into()));
    let mut recompute = mesh(&[("dp", 16, Data)], 1, &[32]);
    recompute.layout.recompute = RecomputeInfo::Full;
    assert_eq!(error("deepspeed", &recompute).at, Where::Recompute);
}

/// The keys of `config_args.py` at the top, and of the sections accelerate 1.15.0 knows.
const ACCELERATE_ROOT: &[&str] = &[
    "compute_environment",
    "distributed_type",
    "mixed_precision",
    "num_machines",
    "num_processes",
    "rdzv_backend",
    "same_network",
    "main_training_function",
    "fsdp_config",
    "parallelism_config",
];

fn check_accelerate(plan: &Plan) -> Value {
    let yaml: Value = yaml_serde::from_str(&file("accelerate", plan, "accelerate.yaml")).unwrap();
    for key in yaml.as_object().unwrap().keys() {
        assert!(ACCELERATE_ROOT.contains(&key.as_str()), "{key}");
    }
    let size = |name: &str| yaml["parallelism_config"][format!("parallelism_config_{name}_size")].as_u64().unwrap();
    let [rep, shard, tp, cp] = ["dp_replicate", "dp_shard", "tp", "cp"].map(size);
    assert_eq!(rep * shard * tp * cp, yaml["num_processes"].as_u64().unwrap());
    assert!(shard > 1 || rep == 1 || tp * cp == 1, "copies beside tensor ranks need shards");
    assert_eq!(yaml["distributed_type"] == "FSDP", shard * cp > 1);
    yaml
}

#[test]
fn accelerate_gets_fsdp2_and_every_degree() {
    let yaml = check_accelerate(&hsdp());
    assert_eq!(yaml["num_machines"], 2);
    assert_eq!(yaml["mixed_precision"], "bf16");
    assert_eq!(yaml["fsdp_config"]["fsdp_version"], 2);
    assert_eq!(yaml["fsdp_config"]["fsdp_reshard_after_forward"], true);
    let mut three = mesh(&[("dp", 4, Data), ("cp", 2, Context), ("tp", 2, Tensor)], 1, &[32]);
    store(&mut three, &["param", "grad", "state"], &["dp", "cp"]);
    three.layout.context_method = Some("all_to_all");
    three.layout.hold = Some("microbatch");
    let yaml = check_accelerate(&three);
    assert_eq!(yaml["parallelism_config"]["parallelism_config_cp_comm_strategy"], "alltoall");
    assert_eq!(yaml["fsdp_config"]["fsdp_reshard_after_forward"], false);
}

#[test]
fn accelerate_refuses_what_it_has_not() {
    let pipeline = {
        let mut plan = mesh(&[("pp", 2, Pipeline), ("dp", 8, Data)], 1, &[16, 16]);
        store(&mut plan, &["param", "grad", "state"], &["dp"]);
        plan
    };
    assert_eq!(error("accelerate", &pipeline).at, Where::Pipeline);
    let mut copies = mesh(&[("dp", 8, Data), ("tp", 2, Tensor)], 1, &[32]);
    copies.layout.stored.clear();
    assert_eq!(error("accelerate", &copies).at, Where::Layout);
    let mut sequence = mesh(&[("dp", 8, Data), ("tp", 2, Tensor)], 1, &[32]);
    store(&mut sequence, &["param", "grad", "state"], &["dp"]);
    sequence.layout.sequence_parallel = true;
    assert_eq!(error("accelerate", &sequence).at, Where::Shard);
}

/// Writes every sample's files to the folder `PARC_TARGET_SAMPLES` names, for the frameworks' own loaders.
#[test]
fn samples_for_the_frameworks_own_loaders() {
    let Some(folder) = std::env::var_os("PARC_TARGET_SAMPLES") else { return };
    let mut tensor = mesh(&[("dp", 8, Data), ("tp", 2, Tensor)], 1, &[32]);
    store(&mut tensor, &["state"], &["dp"]);
    let mut zero3 = mesh(&[("dp", 16, Data)], 1, &[32]);
    store(&mut zero3, &["param", "grad", "state"], &["dp"]);
    let samples = [
        ("experts", crate::targets_experts::qwen_on_16()),
        ("titan", titan()),
        ("hsdp", hsdp()),
        ("tensor", tensor),
        ("zero3", zero3),
    ];
    for target in ["torchtitan", "deepspeed", "accelerate"] {
        for (name, plan) in &samples {
            let Ok(program) = program(target, plan) else { continue };
            let folder = std::path::Path::new(&folder).join(target).join(name);
            std::fs::create_dir_all(&folder).unwrap();
            for (file, artifact) in &program.files {
                std::fs::write(folder.join(file), &artifact.bytes).unwrap();
            }
        }
    }
}
