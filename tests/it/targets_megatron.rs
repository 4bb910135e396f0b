//! The Megatron-LM target against Megatron-LM's rules.
//!
//! Seventeen of these command lines, every sample and every kind of split among them, were also given to Megatron-LM's own `parse_args`, `validate_args` and
//! `core_transformer_config_from_args` at the pinned version, which took them all.

use crate::megatron_rules::{self as rules, LLAMA3_8B};
use crate::sample_plans::*;
use parc::emit::plan::{Plan, RecomputeInfo, RecomputePart};
use parc::emit::targets::{self, Instead, Program, TargetError, Where};
use std::collections::BTreeSet;

fn program(plan: &Plan) -> Result<Program, Vec<TargetError>> {
    (targets::find("megatron").unwrap().program)(plan)
}

/// Checks that Megatron accepts what is emitted and reads it as the plan means it; gives the arguments.
fn check(plan: &Plan) -> Vec<String> {
    let program = program(plan).unwrap();
    let args = program.arguments();
    assert_eq!(rules::violations(&args, plan.cluster.devices, &program.environment), []);
    let flags: Vec<_> = args.iter().filter(|a| a.starts_with("--")).collect();
    assert_eq!(flags.len(), flags.iter().collect::<BTreeSet<_>>().len(), "an option is given twice");
    let parsed = rules::parse(&args).ok().unwrap();
    let layers: Vec<_> = plan.pipeline.chunks.iter().map(|c| c.units[1]).collect();
    assert_eq!(rules::chunk_layers(&parsed), layers);
    let pad = plan.layout.pads.first().map_or(128_256, |p| p.2);
    assert_eq!(rules::padded_vocab(&parsed), pad);
    for rank in &plan.ranks {
        let index = |role| {
            let axes = plan.layout.axes.iter().zip(&rank.coordinates).filter(|(a, _)| a.role == role);
            axes.fold(0, |n, (a, c)| n * a.size + c)
        };
        let ours = [index(Tensor), index(Context), index(Data), index(Pipeline)];
        assert_eq!(rules::coordinates(&parsed, plan.cluster.devices, rank.rank), ours, "rank {}", rank.rank);
    }
    args
}

pub(crate) fn options(args: &[String]) -> BTreeSet<Vec<String>> {
    let mut out: Vec<Vec<String>> = Vec::new();
    for arg in args {
        match out.last_mut() {
            Some(option) if !arg.starts_with("--") => option.push(arg.clone()),
            _ => out.push(vec![arg.clone()]),
        }
    }
    out.into_iter().collect()
}

fn has(args: &[String], option: &str) -> bool {
    options(args).contains(&rules::split(option))
}

/// The only error of `plan`.
fn error(plan: &Plan) -> TargetError {
    let mut errors = program(plan).unwrap_err();
    assert_eq!(errors.len(), 1, "{errors:#?}");
    errors.remove(0)
}

#[test]
fn llama3_8b_is_the_published_minimal_plan() {
    assert_eq!(options(&check(&llama3_8b())), options(&rules::split(LLAMA3_8B)));
}

#[test]
fn llama3_405b_counts_embedding_and_loss_and_has_data_slowest() {
    let args = check(&llama3_405b());
    for option in [
        "--use-tp-pp-dp-mapping",
        "--num-virtual-stages-per-pipeline-rank 2",
        "--account-for-embedding-in-pipeline-split",
        "--account-for-loss-in-pipeline-split",
    ] {
        assert!(has(&args, option), "{option} in {args:?}");
    }
    assert!(!args.iter().any(|a| a.contains("make-vocab")), "129024 is what Megatron pads to by itself");
}

#[test]
fn gpt3_recomputes_layers_and_exposes_stage_messages() {
    let args = check(&gpt3());
    for option in [
        "--fp16",
        "--accumulate-allreduce-grads-in-fp32",
        "--recompute-granularity full",
        "--recompute-method uniform",
        "--recompute-num-layers 1",
        "--no-overlap-p2p-communication",
        "--position-embedding-type learned_absolute",
        "--max-position-embeddings 2048",
        "--normalization LayerNorm",
    ] {
        assert!(has(&args, option), "{option} in {args:?}");
    }
    for flag in ["--swiglu", "--group-query-attention", "--sequence-parallel", "--rotary-base", "--disable-bias-linear"]
    {
        assert!(!args.iter().any(|a| a == flag), "{flag}");
    }
}

#[test]
fn process_groups_are_those_of_megatron_for_sixteen_ranks() {
    // Megatron's RankGenerator, world 16, tp 2, pp 2, in both orders.
    let plan = llama3_8b();
    assert_eq!(plan.groups["dp"], [[0, 2, 4, 6], [1, 3, 5, 7], [8, 10, 12, 14], [9, 11, 13, 15]]);
    assert_eq!(plan.groups["pp"][..2], [[0, 8], [1, 9]]);
    let d = plan.model.decoder.unwrap();
    let mesh: Mesh = &[("dp", 4, Data), ("pp", 2, Pipeline), ("tp", 2, Tensor)];
    let other = self::plan(&d, mesh, &[16, 16]);
    assert_eq!(other.groups["pp"][..2], [[0, 2], [1, 3]]);
    assert_eq!(other.groups["dp"][0], [0, 4, 8, 12]);
    assert!(has(&check(&other), "--use-tp-pp-dp-mapping"));
    assert_eq!(rules::coordinates(&rules::parse(&check(&other)).ok().unwrap(), 16, 6), [0, 0, 1, 1]);
}

fn plan(d: &parc::emit::plan::DecoderInfo, mesh: Mesh, layers: &[u64]) -> Plan {
    crate::sample_plans::plan("job", d, mesh, 1, layers, (128, 8192, 1))
}

fn with_mesh(mesh: Mesh, layers: &[u64]) -> Plan {
    plan(&llama3_8b().model.decoder.unwrap(), mesh, layers)
}

#[test]
fn uneven_splits_are_said_in_the_plainest_way() {
    let mesh: Mesh = &[("pp", 4, Pipeline), ("dp", 2, Data), ("tp", 2, Tensor)];
    assert!(has(&check(&with_mesh(mesh, &[7, 9, 9, 7])), "--decoder-first-pipeline-num-layers 7"));
    assert!(has(&check(&with_mesh(mesh, &[8, 8, 10, 6])), "--pipeline-model-parallel-layout Et*8|t*8|t*10|t*6L"));
    let p5: Mesh = &[("pp", 5, Pipeline), ("dp", 8, Data), ("tp", 1, Tensor)];
    let counting_loss = check(&with_mesh(p5, &[7, 7, 6, 6, 6]));
    assert!(has(&counting_loss, "--pipeline-model-parallel-layout Et*7|t*7|(t*6|)*2t*6L"));
    let three: Mesh = &[("pp", 3, Pipeline), ("dp", 8, Data), ("tp", 1, Tensor)];
    let counting_loss = check(&with_mesh(three, &[11, 11, 10]));
    assert!(has(&counting_loss, "--account-for-loss-in-pipeline-split"));
    assert!(!has(&counting_loss, "--account-for-embedding-in-pipeline-split"));
    let two: Mesh = &[("pp", 2, Pipeline), ("dp", 8, Data)];
    check(&with_mesh(two, &[20, 12]));
    check(&with_mesh(mesh, &[0, 22, 0, 10]));
}

#[test]
fn context_parallelism_and_its_methods() {
    let mesh: Mesh = &[("pp", 2, Pipeline), ("dp", 2, Data), ("cp", 2, Context), ("tp", 2, Tensor)];
    for (method, option) in [("ring", "p2p"), ("all_gather", "all_gather"), ("all_to_all", "a2a")] {
        let mut plan = with_mesh(mesh, &[16, 16]);
        plan.layout.context_method = Some(method);
        plan.layout.stored.insert("state", vec!["cp".into(), "dp".into()]);
        let args = check(&plan);
        assert!(has(&args, &format!("--cp-comm-type {option}")) && has(&args, "--context-parallel-size 2"));
        assert!(!args.contains(&"--num-distributed-optimizer-instances".to_owned()));
        plan.layout.stored.insert("state", vec!["cp".into()]);
        assert!(has(&check(&plan), "--num-distributed-optimizer-instances 2"));
        plan.layout.stored.insert("state", vec!["dp".into()]);
        let error = error(&plan);
        assert_eq!(error.at, Where::Store("state".into()));
        assert_eq!(error.instead, Some(Instead::Text("store state over [dp, cp]".into())));
    }
}

#[test]
fn interleaving_takes_its_group() {
    let mut plan = llama3_405b();
    plan.pipeline.arguments.insert("group".into(), 16);
    assert!(!check(&plan).iter().any(|a| a.starts_with("--microbatch-group")));
    plan.pipeline.arguments.insert("group".into(), 32);
    assert!(has(&check(&plan), "--microbatch-group-size-per-virtual-pipeline-stage 32"));
    plan.pipeline.arguments.insert("group".into(), 8);
    assert_eq!(error(&plan).at, Where::Batch);
}

#[test]
fn vocabularies_and_recomputation() {
    let mut plan = llama3_8b();
    for (padded, option) in [(128_256, None), (128_258, Some(64_129)), (131_072, Some(65_536))] {
        plan.layout.pads = vec![("V".into(), 128_256, padded)];
        let args = check(&plan);
        let given = args.iter().position(|a| a == "--make-vocab-size-divisible-by").map(|i| args[i + 1].clone());
        assert_eq!(given, option.map(|n: u64| n.to_string()), "{padded}");
    }
    plan.layout.recompute = RecomputeInfo::Parts(vec![
        RecomputePart::Region("decoder.attention.core".into()),
        RecomputePart::Region("decoder.mlp".into()),
        RecomputePart::Norms,
    ]);
    let args = check(&plan);
    assert!(
        has(&args, "--recompute-modules core_attn layernorm mlp") && has(&args, "--recompute-granularity selective")
    );
}

/// Every refusal: the change to the 8B plan, where it points, and a word of its text.
#[test]
fn what_megatron_cannot_do_is_said_at_its_place() {
    type Change = fn(&mut Plan);
    let cases: &[(Change, Where, &str)] = &[
        (|p| p.pipeline.schedule = "gpipe".into(), Where::Schedule, "gpipe"),
        (|p| p.pipeline.schedule = "zb_h1".into(), Where::Schedule, "one_f_one_b"),
        (|p| p.pipeline.schedule = "interleaved".into(), Where::Schedule, "one_f_one_b"),
        (|p| p.training.replicas = 8, Where::Batch, "8 replicas"),
        (|p| drop(p.training.precision.insert("wire".into(), "fp8_e4m3".into())), Where::Precision, "wire = fp8_e4m3"),
        (|p| p.pipeline.chunks.swap(0, 1), Where::Schedule, "k mod p"),
        (|p| p.pipeline.chunks[0].units[2] = 1, Where::Split, "last chunk"),
        (|p| p.pipeline.chunks[1].units = vec![1, 16, 1], Where::Split, "first chunk"),
        (|p| p.pipeline.chunks[1].units[1] = 15, Where::Split, "31 layers"),
        (|p| p.layout.overlap_p2p = true, Where::Overlap("p2p"), "interleaved"),
        (|p| p.layout.overlap_reduce = false, Where::Overlap("gather"), "--overlap-grad-reduce"),
        (|p| drop(p.layout.stored.insert("grad", vec!["dp".into()])), Where::Store("grad".into()), "torchtitan"),
        (|p| drop(p.layout.stored.insert("param", vec!["dp".into()])), Where::Store("param".into()), "FSDP"),
        (|p| drop(p.layout.stored.insert("act", vec!["tp".into()])), Where::Store("act".into()), "optimizer state"),
        (|p| drop(p.layout.stored.insert("master", vec!["tp".into()])), Where::Store("master".into()), "alike"),
        (|p| p.layout.recompute = RecomputeInfo::Other("every(2)".into()), Where::Recompute, "every(2)"),
        (|p| p.layout.pads.push(("N".into(), 31, 32)), Where::Pad("N".into()), "vocabulary"),
        (|p| p.layout.axes[1].role = Idle, Where::Axis("dp".into()), "shards nothing"),
        (|p| p.training.batch = 126, Where::Batch, "126"),
        (|p| p.training.optimizer = "Lion".into(), Where::Optimizer, "Lion"),
        (|p| p.training.optimizer = "SGD(momentum = 0)".into(), Where::Optimizer, "SGD(momentum"),
        (|p| drop(p.training.precision.insert("param".into(), "fp8_e4m3".into())), Where::Precision, "fp8_e4m3"),
        (|p| drop(p.training.precision.insert("state".into(), "bf16".into())), Where::Precision, "state = bf16"),
        (|p| p.model.decoder = None, Where::Model, "decoder"),
        (|p| p.model.decoder.as_mut().unwrap().heads = 31, Where::Model, "31 query heads"),
        (|p| p.model.decoder.as_mut().unwrap().rope_base = Some(0.5), Where::Model, "rotary"),
        (|p| p.model.decoder.as_mut().unwrap().activation = "relu", Where::Model, "relu"),
    ];
    for (change, at, word) in cases {
        let mut plan = llama3_8b();
        change(&mut plan);
        let errors = program(&plan).unwrap_err();
        let hit = errors.iter().find(|e| e.at == *at);
        let hit = hit.unwrap_or_else(|| panic!("nothing at {at:?}: {errors:#?}"));
        assert!(format!("{hit:?}").contains(word), "{word} in {hit:#?}");
    }
}

#[test]
fn a_rank_order_megatron_lacks_names_the_mesh_it_has() {
    let mesh: Mesh = &[("pp", 2, Pipeline), ("cp", 2, Context), ("dp", 4, Data), ("tp", 2, Tensor)];
    let mut plan = with_mesh(mesh, &[16, 16]);
    plan.layout.context_method = Some("ring");
    let error = error(&plan);
    assert_eq!((error.at, error.instead), (Where::Mesh, Some(Instead::Text("mesh [pp, dp, cp, tp]".into()))));
    // Axes of one rank are in no order.
    let mesh: Mesh = &[("tp", 1, Tensor), ("pp", 2, Pipeline), ("dp", 8, Data)];
    check(&with_mesh(mesh, &[16, 16]));
}

#[test]
fn all_reasons_are_given_at_once() {
    let mut plan = llama3_8b();
    plan.pipeline.schedule = "dualpipe".into();
    plan.layout.stored.insert("param", vec!["dp".into()]);
    plan.training.batch = 127;
    plan.model.decoder = None;
    let mut at: Vec<_> = program(&plan).unwrap_err().into_iter().map(|e| e.at).collect();
    at.sort();
    assert_eq!(at, [Where::Model, Where::Store("param".into()), Where::Schedule, Where::Batch]);
}

#[test]
fn no_plan_makes_the_target_panic() {
    let extremes = [0, 1, 3, u64::MAX];
    for x in extremes {
        for y in extremes {
            let mut plan = llama3_8b();
            plan.training.batch = x;
            plan.training.micro_batch = y;
            plan.training.sequence = x;
            plan.layout.axes[0].size = y;
            plan.layout.axes[1].size = x;
            plan.pipeline.chunks_per_rank = y;
            plan.pipeline.arguments.insert("group".into(), x as i64);
            let d = plan.model.decoder.as_mut().unwrap();
            (d.heads, d.kv_heads, d.vocab) = (x, y, x);
            plan.layout.pads.push(("V".into(), x, y));
            let _ = program(&plan);
            plan.layout.axes.clear();
            plan.pipeline.chunks.clear();
            plan.model.units.clear();
            let _ = program(&plan);
        }
    }
}
