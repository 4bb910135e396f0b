//! What rests on the host: bytes there and on the device, and the time of moving it, by hand.

use crate::compile;
use parc::emit::plan::Plan;

/// A node of 4 H100 with a host of 1 TiB: paths of 4 × 64 GB/s, 3 TFLOP/s, 300 GB/s.
fn job(items: &str, claims: &str) -> String {
    format!(
        "edition 1
use std::hardware::{{H100_SXM, NVLink4}}
use std::models::Llama3_8B
link Path {{ bandwidth = 64 GB/s, latency = 2 us }}
host Small {{ memory = 1 TiB, bandwidth = 300 GB/s, path = 4 * Path, flops = 3 TFLOP/s }}
cluster Box {{ level node = 4 of H100_SXM over NVLink4 {{ topology = switch, host = Small }} }}
layout L {{
  mesh [dp = 4]
  shard B over dp
{items}
}}
train run {{
  model = Llama3_8B
  cluster = Box
  layout = L
  batch = 8 seq
  sequence = 4096 tok
  {claims}
}}
"
    )
}

fn plan(items: &str) -> Plan {
    compile::clean(&job(items, "")).report(&[])
}

/// Parameters of Llama 3 8B: its published 8.03 billion, to the unit.
const PARAMS: f64 = 8_030_261_248.0;

#[track_caller]
fn about(found: f64, expected: f64, within: f64, what: &str) {
    assert!((found - expected).abs() <= within * expected, "{what}: {found}, by hand {expected}");
}

fn part(plan: &Plan, name: &str) -> f64 {
    plan.time.parts.iter().filter(|(n, _)| n == name).map(|(_, s)| *s).sum()
}

#[test]
fn zero_offload_keeps_gradients_and_state_on_the_host() {
    let on_device = plan("  store [grad, state] over dp");
    let offloaded = plan("  store [grad, state] over dp on host\n  update { on = host }");
    let (a, b) = (&on_device.memory.stages[0], &offloaded.memory.stages[0]);
    // A quarter of 4 bytes of gradient and 12 of moments and master copy.
    about(b.host as f64, PARAMS / 4.0 * 16.0, 1e-6, "on the host");
    assert_eq!((a.host, b.state, a.params), (0, 0, b.params));
    about((a.state + a.grads - b.grads) as f64, PARAMS / 4.0 * 16.0, 1e-6, "what the device no longer holds");
    // Two backwards each send a quarter of the fp32 gradients through 64 GB/s.
    about(part(&offloaded, "store transfers"), 2.0 * PARAMS / 4.0 * 4.0 / 64e9, 0.01, "gradients leave");
    // All four quarters: 28 bytes a parameter in and out of memory at 300 GB/s (gradient 4, state 12 twice, less the
    // gradient and 2 of the new parameter): 16 read, 14 written.
    about(part(&offloaded, "optimizer"), PARAMS * 30.0 / 300e9, 1e-6, "the update on the processors");
}

#[test]
fn overlaps_hide_copies_behind_compute() {
    let bare = plan("  store param on host\n  store [grad, state] over dp on host\n  update { on = host }");
    let hidden = plan(
        "  store param on host\n  store [grad, state] over dp on host\n  update { on = host }
  overlap [fetch, evict] with [forward, backward]",
    );
    // Parameters come for two forwards and two backwards.
    let (fetched, evicted) = (4.0 * PARAMS * 2.0 / 64e9, 2.0 * PARAMS / 4.0 * 4.0 / 64e9);
    about(part(&bare, "store transfers"), fetched + evicted, 0.01, "nothing hides");
    assert!(part(&hidden, "store transfers") < 0.5 * part(&bare, "store transfers"));
    // Of the parameters two layers at a time are on the device: (2·4096² + 2·4096·1024 + 3·4096·14336 + 2·4096) · 2 bytes.
    let layer = 2.0 * 218_112_000.0;
    assert_eq!(bare.memory.stages[0].params, 0);
    // The head is the largest bucket, 128257 · 4096 with the last norm.
    let head = 2.0 * 128_257.0 * 4096.0;
    assert!(head > layer);
    about(bare.memory.stages[0].gathered as f64, 2.0 * head, 1e-9, "buckets on the device");
}

#[test]
fn a_delayed_update_is_done_beside_the_next_step() {
    let late = "  store [grad, state] over dp on host\n  update { on = host, delay = 1 step }";
    let said = compile::clean(&job(late, "")).attempt(&[]).err().unwrap_or_default();
    assert!(said.contains("a delayed update computes gradients with weights up to 1 step old"), "{said}");
    let plan = compile::clean(&job(late, "require staleness <= 1 step")).report(&[]);
    // The update takes 0.8 s, the passes take longer.
    assert!(part(&plan, "optimizer").abs() < 1e-9 && plan.time.step > PARAMS * 30.0 / 300e9);
}

#[test]
fn drives_hold_what_the_host_does_not() {
    let items =
        "  store [grad] over dp on host\n  store state over dp on nvme(bandwidth = 8 GB/s)\n  update { on = host }";
    let plan = plan(items);
    about(plan.memory.stages[0].host as f64, PARAMS / 4.0 * 4.0, 1e-6, "gradients alone");
    // State comes from the drives and goes back, 2 GB/s for each device.
    let drives = 2.0 * PARAMS / 4.0 * 12.0 / 2e9;
    about(part(&plan, "optimizer"), PARAMS * 30.0 / 300e9 + drives, 1e-6, "the update with drives");
}

#[test]
fn a_quantised_rest_is_smaller_and_is_unpacked_for_use() {
    let plain = plan("  store [grad, state] over dp");
    let packed = plan("  store [grad, state] over dp\n  store param as fp8_e4m3");
    let (a, b) = (&plain.memory.stages[0], &packed.memory.stages[0]);
    about(a.params as f64, 2.0 * PARAMS, 1e-9, "bf16");
    about(b.params as f64, PARAMS, 1e-9, "one byte each");
    assert!(a.gathered == 0 && b.gathered > 0 && part(&packed, "store transfers") > 0.0);
}
