//! Axes placed along directions of a torus: which sizes fit, and what their links carry.

use crate::compile;

fn job(places: &str, tp: i64) -> String {
    format!(
        "edition 1
use std::hardware::{{TPU_v5p, ICI_v5p}}
use std::models::Llama3_8B
cluster Slice {{
  level slice = 64 of TPU_v5p over 2 * ICI_v5p {{ topology = torus(x = 4, y = 4, z = 4) }}
}}
layout L(tp: Int) {{
  mesh [fsdp = devices / tp, tp]
{places}
  shard B over fsdp
  shard [N, K, F, V] over tp else S
  store [param, grad, state] over fsdp
  recompute all
}}
train run {{
  model = Llama3_8B
  cluster = Slice
  layout = L(tp = {tp})
  batch = 64 seq
  sequence = 4096 tok
  precision = bf16_pure
}}
"
    )
}

/// Bytes a second at which parameters are gathered over `fsdp`, latency and a rank's own share left out.
fn rate(places: &str) -> f64 {
    let plan = compile::clean(&job(places, 4)).report(&[]);
    let gathers = plan.collectives.iter().filter(|c| c.kind == "all-gather" && c.axes == ["fsdp"]);
    let (bytes, busy) = gathers.fold((0.0, 0.0), |(b, t), c| (b + (c.bytes * c.count) as f64, t + c.busy));
    bytes * (15.0 / 16.0) / busy
}

#[test]
fn a_plane_of_a_torus_has_the_links_of_two_directions() {
    // A device has 2 links of 90 GB/s each way in each direction, and both ways around in each of the plane's two.
    let plane = "  place tp on cluster.slice.x\n  place fsdp on [cluster.slice.y, cluster.slice.z]";
    let wires = 2.0 * 2.0 * 2.0 * 90e9;
    let reached = rate(plane) / wires;
    assert!((0.6..1.0).contains(&reached), "{reached}");
    // That is where the order of devices puts it anyway.
    let unplaced = rate("");
    assert!((unplaced - rate(plane)).abs() < 1e-3 * unplaced, "{unplaced}");
}

#[test]
fn ranks_fill_lines() {
    let said = |places: &str, tp| compile::check(&job(places, tp)).attempt(&[]).err().unwrap_or_default();
    let on_x = "  place tp on cluster.slice.x";
    assert_eq!(said(on_x, 4), "");
    assert_eq!(said(on_x, 2), "", "half a line");
    assert!(said(on_x, 8).contains("a group of tp does not fit along slice.x"), "{}", said(on_x, 8));
    let both = format!("{on_x}\n  place fsdp on [cluster.slice.y, cluster.slice.z]");
    assert!(said(&both, 2).contains("a group of fsdp does not fit along slice.y × slice.z"), "{}", said(&both, 2));
    // What shares a direction counts together.
    let shared = format!("{on_x}\n  place fsdp on [cluster.slice.x, cluster.slice.y]");
    assert!(said(&shared, 4).contains("fsdp × tp does not fit along slice.x × slice.y"), "{}", said(&shared, 4));
}
