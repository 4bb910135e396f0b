//! Words of other tools, and how parc says the same.

use crate::syntax::ast::Kind;

/// What a foreign word means here.
pub(super) struct Meaning {
    /// Advice, a clause.
    pub(super) help: &'static str,
    /// What to write instead of the name alone (`batch` for `global_batch_size`).
    pub(super) rename: Option<&'static str>,
    /// What to write instead of the whole line; `AXIS` stands for the data axis.
    pub(super) line: Option<&'static str>,
    /// Whether the line may simply go.
    pub(super) drop: bool,
}

const NONE: Meaning = Meaning { help: "", rename: None, line: None, drop: false };

/// What `word` with the value `value` (its text) means in a layout.
pub(super) fn in_layout(word: &str, value: &str) -> Option<Meaning> {
    let zero = |stage: &str| match stage {
        "1" => Some(("ZeRO-1 is `store state over dp`", "store state over AXIS")),
        "2" => Some(("ZeRO-2 is `store [state, grad] over dp`", "store [state, grad] over AXIS")),
        "3" => Some(("ZeRO-3 is `store [state, grad, param] over dp`", "store [state, grad, param] over AXIS")),
        _ => None,
    };
    let known = match word {
        "zero" | "zero_stage" | "zero_optimization" | "stage" | "zero1" | "zero2" | "zero3" => {
            let digit = word.strip_prefix("zero").filter(|d| d.len() == 1).unwrap_or(value);
            match zero(digit) {
                Some((help, line)) => Meaning { help, line: Some(line), ..NONE },
                None => Meaning { help: "ZeRO is written with `store`: stage 1 is `store state over dp`", ..NONE },
            }
        }
        "fsdp" | "sharding_strategy" | "full_shard" | "reshard_after_forward" => Meaning {
            help: "FSDP is `store [param, grad, state] over dp`",
            line: Some("store [param, grad, state] over AXIS"),
            ..NONE
        },
        "distributed_optimizer" | "use_distributed_optimizer" => Meaning {
            help: "the distributed optimizer is `store state over dp`",
            line: Some("store state over AXIS"),
            ..NONE
        },
        "tp"
        | "pp"
        | "dp"
        | "cp"
        | "ep"
        | "tensor_parallel"
        | "tensor_model_parallel_size"
        | "tensor_parallel_size"
        | "pipeline_parallel"
        | "pipeline_model_parallel_size"
        | "pipeline_parallel_size"
        | "data_parallel"
        | "data_parallel_size"
        | "context_parallel_size"
        | "expert_model_parallel_size"
        | "expert_parallel_size" => {
            Meaning { help: "the size of an axis stands in the mesh: `mesh [pp = 2, dp = 4, tp = 8]`", ..NONE }
        }
        "sequence_parallel" => Meaning { help: "sequence parallelism is `shard [N, K, F, V] over tp else S`", ..NONE },
        "activation_checkpointing" | "gradient_checkpointing" | "checkpoint_activations" | "recompute_granularity" => {
            Meaning { help: "recomputation is an item: `recompute all`", line: Some("recompute all"), ..NONE }
        }
        "cpu_offload" | "offload" | "offload_optimizer" => {
            Meaning { help: "offloading is `store [grad, state] over dp on host` with `update { on = host }`", ..NONE }
        }
        "num_layers_per_virtual_pipeline_stage" | "virtual_pipeline_model_parallel_size" | "virtual_pipeline" => {
            Meaning { help: "virtual stages are a schedule: `pipeline over pp { schedule = interleaved(2) }`", ..NONE }
        }
        "micro_batch" | "micro_batch_size" | "micro_batch_size_per_gpu" | "train_micro_batch_size_per_gpu" => {
            Meaning { help: "`micro_batch` stands in the job", ..NONE }
        }
        _ => return None,
    };
    Some(known)
}

/// What `word` means in a job.
pub(super) fn in_job(word: &str) -> Option<Meaning> {
    let rename = |to: &'static str, help: &'static str| Some(Meaning { help, rename: Some(to), ..NONE });
    let gone = |help: &'static str| Some(Meaning { help, drop: true, ..NONE });
    let say = |help: &'static str| Some(Meaning { help, ..NONE });
    match word {
        "accumulation"
        | "microbatches"
        | "gradient_accumulation"
        | "gradient_accumulation_steps"
        | "num_microbatches" => gone("it is derived, never set: `batch` / (`micro_batch` × ranks that shard B)"),
        "micro_batch_size"
        | "microbatch"
        | "mbs"
        | "train_micro_batch_size_per_gpu"
        | "per_device_train_batch_size" => {
            rename("micro_batch", "`micro_batch` is the sequences of a microbatch on one replica")
        }
        "batch_size" | "global_batch" | "global_batch_size" | "gbs" | "train_batch_size" => {
            rename("batch", "`batch` is the sequences of an update over all ranks")
        }
        "seq" | "seq_len" | "seq_length" | "sequence_length" | "max_seq_len" | "context_length" | "max_length" => {
            rename("sequence", "`sequence` is the tokens of a sequence")
        }
        "dtype" | "mixed_precision" | "bf16" | "fp16" | "fp8" => {
            say("number formats are a precision: `precision = bf16_mixed`")
        }
        "gpus" | "num_gpus" | "world_size" | "nodes" | "num_nodes" | "nnodes" | "gpus_per_node" => {
            say("devices come from the cluster: `cluster = DGX_H100(nodes = 4)`")
        }
        "hardware" | "machine" | "machines" => rename("cluster", "`cluster` says on what the job runs"),
        "optim" => rename("optimizer", "`optimizer` says how parameters move"),
        "parallelism" | "strategy" | "parallel" => rename("layout", "`layout` says how the job spreads"),
        "lr" | "learning_rate" | "weight_decay" | "warmup_steps" | "seed" => {
            gone("it changes neither time nor memory, so parc does not take it")
        }
        "tp"
        | "pp"
        | "dp"
        | "cp"
        | "ep"
        | "tensor_parallel"
        | "tensor_model_parallel_size"
        | "pipeline_parallel"
        | "pipeline_model_parallel_size" => {
            say("the sizes of mesh axes are given to the layout: `layout = Mine(tp = 8)`")
        }
        "zero" | "zero_stage" | "fsdp" => say("how state is stored stands in the layout: `store state over dp`"),
        "schedule" => say("the schedule stands in the layout: `pipeline over pp { schedule = one_f_one_b }`"),
        "activation_checkpointing" | "gradient_checkpointing" | "recompute" => {
            say("recomputation stands in the layout: `recompute all`")
        }
        "train_steps" | "max_steps" | "train_iters" => rename("steps", "`steps` is the length of the job"),
        _ => None,
    }
}

/// The field of `kind` that a foreign word means.
pub(super) fn in_hardware(kind: Kind, word: &str) -> Option<&'static str> {
    let found = match (kind, word) {
        (Kind::Device, "bandwidth" | "memory_bandwidth" | "hbm_bandwidth" | "mem_bw") => "hbm",
        (Kind::Device, "flops" | "tflops" | "peak_flops" | "compute") => "peak",
        (Kind::Device, "vram" | "ram" | "mem" | "memory_size" | "hbm_size" | "capacity")
        | (Kind::Host, "ram" | "dram") => "memory",
        (Kind::Device, "tdp" | "watts") => "power",
        (Kind::Device, "sm_count" | "num_sms" | "cus") => "sms",
        (Kind::Device, "cost" | "rent") => "price",
        (Kind::Link, "bw" | "speed" | "rate" | "throughput") => "bandwidth",
        (Kind::Link, "lat" | "delay") => "latency",
        (Kind::Dtype, "size" | "width") => "bits",
        _ => return None,
    };
    Some(found)
}

/// The parameter a flag of another tool means.
pub(super) fn as_parameter(word: &str) -> Option<&'static str> {
    Some(match word {
        "tensor_parallel" | "tensor_model_parallel_size" | "tensor_parallel_size" | "tensor_parallelism" | "TP" => "tp",
        "pipeline_parallel" | "pipeline_model_parallel_size" | "pipeline_parallel_size" | "PP" => "pp",
        "context_parallel" | "context_parallel_size" | "CP" => "cp",
        "data_parallel" | "data_parallel_size" | "DP" => "dp",
        "expert_parallel" | "expert_model_parallel_size" | "EP" => "ep",
        "num_layers" | "n_layers" | "num_hidden_layers" => "layers",
        "hidden_size" | "d_model" | "n_embd" => "hidden",
        "num_attention_heads" | "n_heads" | "n_head" => "heads",
        "num_key_value_heads" | "num_query_groups" | "n_kv_heads" => "kv_heads",
        "intermediate_size" | "ffn_hidden_size" | "d_ff" => "ffn",
        "vocab_size" => "vocab",
        "num_nodes" | "nnodes" | "node_count" => "nodes",
        _ => return None,
    })
}
