//! Jobs with experts, from the text to what frameworks are started with.

use crate::compile;
use crate::megatron_rules as rules;
use crate::targets_megatron::options;
use parc::emit::plan::{AxisRole, ExpertsInfo, Plan};
use parc::emit::targets::{self, Program, TargetError, Where};
use std::collections::BTreeSet;

fn program(target: &str, plan: &Plan) -> Result<Program, Vec<TargetError>> {
    (targets::find(target).unwrap().program)(plan)
}

/// The plan of `model` under `layout`, a call, on nodes of 8.
fn plan(model: &str, layout: &str, nodes: u64, fields: &str) -> Plan {
    compile::clean(&format!(
        "edition 1
train j {{
  model = {model}, cluster = DGX_H100(nodes = {nodes}), layout = {layout}
  batch = 512 seq, sequence = 4096 tok, micro_batch = 1 seq, {fields}
}}
"
    ))
    .launched(&[])
}

/// The plan of `model` under a layout of these items.
fn plan_of(model: &str, items: &str, nodes: u64) -> Plan {
    compile::clean(&format!(
        "edition 1
layout L() {{
  {items}
}}
train j {{
  model = {model}, cluster = DGX_H100(nodes = {nodes}), layout = L()
  batch = 512 seq, sequence = 4096 tok, micro_batch = 1 seq
}}
"
    ))
    .launched(&[])
}

/// Checks that Megatron takes what is emitted, and that every rank is in its two grids where the plan has it.
fn megatron(plan: &Plan) -> BTreeSet<Vec<String>> {
    let program = program("megatron", plan).unwrap();
    let args = program.arguments();
    let world = plan.cluster.devices;
    assert_eq!(rules::violations(&args, world, &program.environment), []);
    let parsed = rules::parse(&args).ok().unwrap();
    let experts = plan.layout.experts.as_ref().unwrap();
    for rank in 0..world {
        let index = |axes: &[parc::emit::plan::AxisInfo], role: AxisRole| {
            let axes = axes.iter().filter(|a| a.role == role);
            axes.fold(0, |n, a| n * a.size + (rank / a.stride) % a.size)
        };
        let dense = [AxisRole::Tensor, AxisRole::Context, AxisRole::Data, AxisRole::Pipeline];
        let ours = dense.map(|role| index(&plan.layout.axes, role));
        assert_eq!(rules::coordinates(&parsed, world, rank), ours, "rank {rank}");
        let sparse = [AxisRole::Tensor, AxisRole::Expert, AxisRole::Data, AxisRole::Pipeline];
        let ours = sparse.map(|role| index(&experts.axes, role));
        assert_eq!(rules::expert_coordinates(&parsed, world, rank), ours, "experts of rank {rank}");
    }
    options(&args)
}

#[track_caller]
fn has(args: &BTreeSet<Vec<String>>, wanted: &[&str]) {
    for option in wanted {
        assert!(args.contains(&rules::split(option)), "{option} in {args:?}");
    }
}

#[test]
fn mixtral_is_read_off_its_graph() {
    let d = plan("Mixtral_8x7B", "Megatron(tp = 2, ep = 8, etp = 1)", 8, "").model.decoder.unwrap();
    assert_eq!((d.layers, d.hidden, d.heads, d.kv_heads, d.head_dim, d.ffn), (32, 4096, 32, 8, 128, 14336));
    let plain =
        ExpertsInfo { count: 8, top_k: 2, groups: None, correction_bias: false, shared: None, shared_gate: false };
    assert_eq!((d.experts, d.qk_norm), (Some(plain.clone()), false));
    let d = plan("Qwen3_30B_A3B", "Megatron(tp = 2, ep = 8, etp = 1)", 8, "").model.decoder.unwrap();
    assert_eq!((d.layers, d.heads, d.kv_heads, d.ffn, d.vocab), (48, 32, 4, 768, 151_936));
    assert_eq!((d.experts, d.qk_norm), (Some(ExpertsInfo { count: 128, top_k: 8, ..plain }), true));
}

/// Tensor ranks of attention and ranks of experts fold into each other: 2 of the 8 expert ranks are tensor ranks.
#[test]
fn a_folded_mesh_has_two_grids_in_megatron() {
    let plan = plan("Mixtral_8x7B", "Megatron(tp = 2, ep = 8, etp = 1, pp = 2)", 8, "");
    let args = megatron(&plan);
    has(
        &args,
        &[
            "--num-experts 8",
            "--moe-ffn-hidden-size 14336",
            "--moe-router-topk 2",
            "--moe-grouped-gemm",
            "--moe-token-dispatcher-type alltoall",
            "--expert-model-parallel-size 8",
            "--expert-tensor-parallel-size 1",
            "--tensor-model-parallel-size 2",
            "--pipeline-model-parallel-size 2",
            "--sequence-parallel",
            "--use-distributed-optimizer",
        ],
    );
    // Megatron's expert grid by hand: 64 ranks, etp 1, ep 8, pp 2, so 4 copies of each expert, 8 ranks apart.
    assert_eq!(plan.groups["ep"][0], [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(plan.groups["edp"][0], [0, 8, 16, 24]);
    assert_eq!(plan.groups["pp"][0], [0, 32]);
    assert_eq!(plan.groups["dp"][0], (0..32).step_by(2).collect::<Vec<u64>>());
}

#[test]
fn experts_are_split_over_tensor_ranks_and_qwen_is_told_its_norms() {
    let split = plan("Mixtral_8x7B", "Megatron(tp = 4, ep = 4, etp = 2)", 8, "");
    has(&megatron(&split), &["--expert-model-parallel-size 4", "--expert-tensor-parallel-size 2"]);
    assert_eq!((&split.groups["etp"][0], &split.groups["ep"][0]), (&vec![0, 1], &vec![0, 2, 4, 6]));
    let qwen = plan("Qwen3_30B_A3B", "Megatron(tp = 2, cp = 2, ep = 16, etp = 1)", 8, "");
    has(&megatron(&qwen), &["--qk-layernorm", "--num-experts 128", "--moe-router-topk 8", "--context-parallel-size 2"]);
    // Without a fold every expert is on every rank, and Megatron must not take the tensor ranks for them.
    let whole = plan("Mixtral_8x7B", "Megatron(tp = 8, pp = 4, distributed_optimizer = false)", 8, "");
    has(&megatron(&whole), &["--expert-model-parallel-size 1", "--expert-tensor-parallel-size 1"]);
}

#[test]
fn an_axis_of_the_mesh_may_hold_experts() {
    let items = "mesh [pp = 2, edp = 4, ep = 8]
  shard B over [edp, ep]
  store state over [edp, ep]
  in **.moe.experts { shard E over ep
 store state over edp }
  pipeline over pp { schedule = one_f_one_b, split = even }";
    let plan = plan_of("Mixtral_8x7B", items, 8);
    has(&megatron(&plan), &["--expert-model-parallel-size 8", "--tensor-model-parallel-size 1"]);
}

/// Each refusal: the items of the layout, where it points, a word of it.
#[test]
fn what_megatron_cannot_do_with_experts_is_said() {
    let cases: &[(&str, Where, &str)] = &[
        (
            "mesh [dp = 32, tp = 2]
  fold [dp, tp] as [ep = 8, edp = 8]
  shard B over dp
  shard [N, K, V] over tp else S
  in **.moe.experts { shard E over ep }",
            Where::Axis("ep".into()),
            "etp, ep, edp, pp",
        ),
        (
            "mesh [dp = 64]
  fold [dp] as [edp = 8, ep = 8]
  shard B over dp
  store state over dp
  in **.moe.experts { shard E over ep
 store state over [] }",
            Where::StoreInside("state".into()),
            "`[edp]`",
        ),
        (
            "mesh [dp = 64]
  fold [dp] as [edp = 8, ep = 8]
  shard B over dp
  in **.moe.experts { shard E over ep
 store state over edp }",
            Where::StoreInside("state".into()),
            "whole",
        ),
        (
            "mesh [dp = 64]
  fold [dp] as [edp = 8, ep = 8]
  shard B over dp
  in **.moe.experts { shard E over ep
 store grad over edp }",
            Where::StoreInside("grad".into()),
            "last microbatch",
        ),
        (
            "mesh [dp = 64]
  shard B over dp
  in **.attention { store state over dp }",
            Where::StoreInside("state".into()),
            "otherwise in one region",
        ),
        (
            "mesh [dp = 8, ep = 8]
  shard B over dp
  in **.moe.experts { shard E over ep }",
            Where::Axis("ep".into()),
            "shards nothing",
        ),
    ];
    for (items, at, word) in cases {
        let errors = program("megatron", &plan_of("Mixtral_8x7B", items, 8)).unwrap_err();
        let hit = errors.iter().find(|e| e.at == *at).unwrap_or_else(|| panic!("nothing at {at:?}: {errors:#?}"));
        assert!(format!("{hit:?}").contains(word), "{word} in {hit:#?}");
    }
}

/// Experts borrow the tensor ranks, FSDP shards what is left.
#[test]
fn torchtitan_has_experts_on_consecutive_ranks() {
    let items = "mesh [fsdp = 32, tp = 2]
  fold [fsdp, tp] as [efsdp = 4, ep = 16]
  shard B over fsdp
  shard [N, K, V] over tp else S
  store [param, grad, state] over fsdp
  in **.moe.experts { shard E over ep
 store [param, grad, state] over efsdp }";
    let program = program("torchtitan", &plan_of("Qwen3_30B_A3B", items, 8)).unwrap();
    let module = String::from_utf8(program.files.values().next().unwrap().bytes.clone()).unwrap();
    for line in [
        "from torchtitan.models.qwen3 import model_registry",
        "config = qwen3_30b_a3b()",
        "config.model_spec = model_registry(\"30B-A3B\")",
        "config.parallelism.expert_parallel_degree = 16",
        "config.parallelism.data_parallel_shard_degree = 32",
        "config.parallelism.tensor_parallel_degree = 2",
        "config.training.disable_cuda_graphs = True",
    ] {
        assert!(module.contains(line), "{line} in\n{module}");
    }
}

/// Qwen3 30B-A3B on 16 devices as torchtitan lays it out.
pub(crate) fn qwen_on_16() -> Plan {
    let items = "mesh [fsdp = 8, tp = 2]
  fold [fsdp, tp] as [efsdp = 2, ep = 8]
  shard B over fsdp
  shard [N, K, V] over tp else S
  store [param, grad, state] over fsdp
  in **.moe.experts { shard E over ep
 store [param, grad, state] over efsdp }";
    plan_of("Qwen3_30B_A3B", items, 2)
}

#[test]
fn deepspeed_and_accelerate_have_no_key_for_experts() {
    let items = "mesh [dp = 64]
  fold [dp] as [edp = 8, ep = 8]
  shard B over dp
  store [param, grad, state] over dp
  in **.moe.experts { shard E over ep
 store [param, grad, state] over edp }";
    let plan = plan_of("Mixtral_8x7B", items, 8);
    for target in ["deepspeed", "accelerate"] {
        let errors = program(target, &plan).unwrap_err();
        let hit = errors.iter().find(|e| e.at == Where::ShardOver("ep".into())).unwrap();
        assert!(hit.able.contains(&"torchtitan") && hit.what.contains("8 ranks"), "{hit:?}");
    }
}
