//! What a job's cost functions do to its step time.

use parc::diagnostics::Sink;
use parc::driver;
use parc::elaborate::Settings;
use parc::resolve::RootFile;
use parc::source::{MemoryWorld, Sources};

/// Step time of one small layer on one device, three microbatches, with cost functions replaced.
fn step_time(cost: &str) -> f64 {
    let text = format!(
        "edition 1
cluster One {{ level node = 1 of A100_SXM_80 over std::hardware::NVLink3 {{ topology = switch }} }}
cost ours = std::cost::default with {{ {cost} }}
layout Alone {{ mesh [dp = 1], shard B over dp }}
train t {{
  model = Llama(layers = 1, hidden = 64, heads = 4, kv_heads = 4, ffn = 128, vocab = 512)
  cluster = One, layout = Alone, cost = ours
  batch = 3 seq, sequence = 64 tok, micro_batch = 1 seq
}}
"
    );
    let world = MemoryWorld::new([("t.par", text)]);
    let (mut sources, mut sink) = (Sources::new(), Sink::new());
    let file = RootFile { shown: "t.par".into(), path: "t.par".into() };
    let program = driver::front(&mut sources, &world, &[file], &mut sink);
    let job = program.jobs()[0];
    let compiled = driver::compile(&program, &sources, job, &Settings::default(), &mut sink).expect("a sound job");
    compiled.value(compiled.roots.step_time)
}

/// Kernels of this size take microseconds. If the host needs a second for each, only the host counts: a whole number of
/// seconds a microbatch, and the update, which is no part of a layer, beside it.
#[test]
fn many_small_steps_take_as_long_as_issuing_them() {
    let free = step_time("fn issue(d: Device) -> Time = 0 s");
    assert!(free < 0.01, "{free}");
    let one = step_time("fn issue(d: Device) -> Time = 1 s");
    let steps = (one / 3.0).round();
    // Forward: embedding, two norms, three projections, rope twice, attention, wo, add, gate, up, silu·, down, add,
    // last norm, head, loss: at least 18; the backward has more.
    assert!(steps > 45.0 && steps < 90.0, "{steps} operations");
    assert!((one - 3.0 * steps).abs() < 0.01, "{one}");
    let two = step_time("fn issue(d: Device) -> Time = 2 s");
    assert!((two - 2.0 * one).abs() < 0.01, "{two} against twice {one}");
    // Issuing goes on beside the device: what is shorter than the kernels costs nothing.
    let little = step_time("fn issue(d: Device) -> Time = 1 us");
    assert!((little - free).abs() < 1e-9, "{little} against {free}");
}
