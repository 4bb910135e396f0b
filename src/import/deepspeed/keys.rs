//! Keys of `DeepSpeed`'s JSON file: those of `runtime/config.py` and `runtime/zero/config.py`, by section.

/// Keys of the file itself, and sections.
const TOP: &[&str] = &[
    "activation_checkpointing",
    "aio",
    "amp",
    "bf16",
    "bfloat16",
    "checkpoint",
    "comms_logger",
    "communication_data_type",
    "compile",
    "compression_training",
    "csv_monitor",
    "curriculum_learning",
    "data_efficiency",
    "data_types",
    "disable_allgather",
    "dump_state",
    "eigenvalue",
    "elasticity",
    "expert_parallel",
    "flops_profiler",
    "fp16",
    "fp32_allreduce",
    "gradient_accumulation_steps",
    "gradient_clipping",
    "gradient_predivide_factor",
    "hybrid_engine",
    "memory_breakdown",
    "monitor_config",
    "optimizer",
    "pipeline",
    "prescale_gradients",
    "progressive_layer_drop",
    "scheduler",
    "seq_parallel_communication_data_type",
    "sequence_parallel_size",
    "sparse_attention",
    "sparse_gradients",
    "steps_per_print",
    "tensor_parallel",
    "tensorboard",
    "timers",
    "train_batch_size",
    "train_micro_batch_size_per_gpu",
    "wall_clock_breakdown",
    "wandb",
    "zero_allow_untested_optimizer",
    "zero_force_ds_cpu_optimizer",
    "zero_optimization",
];

/// Keys of `zero_optimization`; it takes no others.
const ZERO: &[&str] = &[
    "allgather_bucket_size",
    "allgather_partitions",
    "compute_grad_norm",
    "contiguous_gradients",
    "cpu_offload",
    "cpu_offload_param",
    "cpu_offload_use_pin_memory",
    "elastic_checkpoint",
    "gather_16bit_weights_on_model_save",
    "ignore_unused_parameters",
    "leaf_module",
    "legacy_stage1",
    "load_from_fp32_weights",
    "log_trace_cache_warnings",
    "max_live_parameters",
    "max_reuse_distance",
    "memory_efficient_linear",
    "model_persistence_threshold",
    "module_granularity_threshold",
    "offload_optimizer",
    "offload_param",
    "overlap_comm",
    "override_module_apply",
    "param_persistence_threshold",
    "pipeline_loading_checkpoint",
    "prefetch_bucket_size",
    "reduce_bucket_size",
    "reduce_scatter",
    "round_robin_gradients",
    "save_muon_momentum_buffer_in_memory",
    "stage",
    "stage3_gather_16bit_weights_on_model_save",
    "stage3_max_live_parameters",
    "stage3_max_reuse_distance",
    "stage3_model_persistence_threshold",
    "stage3_param_persistence_threshold",
    "stage3_prefetch_bucket_size",
    "stage3_use_all_reduce_for_fetch_params",
    "sub_group_size",
    "use_multi_rank_bucket_allreduce",
    "zenflow",
    "zero_hpz_partition_size",
    "zero_quantized_gradients",
    "zero_quantized_nontrainable_weights",
    "zero_quantized_weights",
    "zeropp_loco_param",
];

/// Keys whose meaning is taken by the import, and that have no default to lose.
const READ: &[&str] = &[
    "zero_optimization.zero_hpz_partition_size",
    "zero_optimization.zero_quantized_weights",
    "zero_optimization.zero_quantized_gradients",
    "tensor_parallel.autotp_size",
    "expert_parallel.autoep_size",
];

/// Whether the file knows a key: its first part.
pub(super) fn known(key: &str) -> bool {
    let key = key.strip_prefix("auto:").unwrap_or(key);
    TOP.contains(&key.split('.').next().unwrap_or(key))
}

/// Whether `zero_optimization` knows a key of its own.
pub(super) fn zero(key: &str) -> bool {
    ZERO.contains(&key.split('.').next().unwrap_or(key))
}

/// Known keys that change nothing that is planned.
pub(super) fn harmless(key: &str) -> bool {
    known(key) && !READ.contains(&key)
}
