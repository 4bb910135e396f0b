//! The library's layouts do what their names promise: each plans, and each switch changes what it says it does.

use crate::compile;

/// Seconds of a step of Llama 3 8B on 32 H100 under `layout`.
fn step(layout: &str) -> f64 {
    let text = format!(
        "edition 1
train j {{ model = Llama3_8B, cluster = DGX_H100(nodes = 4), layout = {layout}, batch = 512 seq, sequence = 8192 tok }}
"
    );
    compile::clean(&text).report(&[]).time.step
}

#[test]
fn switches_change_what_they_say() {
    for (on, off) in [
        ("FSDP()", "FSDP(overlap_gather = false)"),
        ("FSDP()", "FSDP(overlap_reduce = false)"),
        ("FSDP()", "FSDP(remat = full)"),
        ("FSDP_TP(tp = 4)", "FSDP_TP(tp = 4, overlap_reduce = false)"),
        ("Ulysses(cp = 4)", "Ulysses(cp = 4, overlap_gather = false)"),
        ("Megatron(tp = 4, pp = 2, vpp = 2)", "Megatron(tp = 4, pp = 2, vpp = 2, overlap_p2p = false)"),
        ("Megatron(tp = 4, pp = 2, overlap_grad_reduce = true)", "Megatron(tp = 4, pp = 2)"),
        ("Megatron(tp = 4, pp = 2)", "Megatron(tp = 4, pp = 2, remat = full)"),
    ] {
        assert!(step(on) < step(off), "{on} is not faster than {off}");
    }
}

#[test]
fn every_preset_of_dense_models_plans() {
    for layout in [
        "Megatron(tp = 8, cp = 2, zero = 3, sp = false, remat = selective)",
        "Megatron(tp = 8, distributed_optimizer = false)",
        "FSDP(reshard_after_forward = false)",
        "HSDP(shard_size = 8)",
        "RingUlysses(cp_out = 2, cp_in = 2)",
        "Ulysses(cp = 2, zero = 1)",
        "Serve(tp = 8)",
    ] {
        assert!(step(layout) > 0.0, "{layout}");
    }
}

/// Those of models with experts: Mixtral on 4 nodes.
#[test]
fn presets_of_experts_plan() {
    for layout in
        ["ExpertFSDP(ep = 8)", "ExpertFSDP(ep = 4, remat = full)", "Megatron(tp = 2, pp = 4, ep = 8, etp = 1)"]
    {
        let text = format!(
            "edition 1
train j {{ model = Mixtral_8x7B, cluster = DGX_H100(nodes = 4), layout = {layout}, batch = 256 seq, sequence = 4096 tok }}
"
        );
        let plan = compile::clean(&text).report(&[]);
        assert!(plan.time.step > 0.0 && plan.collectives.iter().any(|c| c.kind == "all-to-all"), "{layout}");
    }
}

/// Each preset checks on the models it is for, whatever prices cannot read yet.
#[test]
fn every_preset_checks() {
    for (layout, model) in [
        ("DeepSeek()", "DeepSeekV3"),
        ("RoundPipe(chunks = 17)", "Llama3_8B"),
        ("Streamed(window = 4)", "Llama3_8B"),
        ("ZeROOffload()", "Llama3_8B"),
        ("Serve(tp = 2)", "Llama3_8B"),
    ] {
        compile::clean(&format!(
            "edition 1
train j {{ model = {model}, cluster = DGX_H100(nodes = 128), layout = {layout}, batch = 8192 seq, sequence = 4096 tok }}
"
        ));
    }
}
