//! Schedules of the library and of users: closed forms, published claims, what they cost in memory.

use crate::compile::clean;
use std::process::Command;

/// 32 layers on four pipeline ranks, 16 microbatches.
fn job(schedule: &str, more: &str) -> String {
    format!(
        "edition 1
layout Mine {{
  mesh [pp = 4, dp = 2]
  shard B over dp
  store state over dp
  pipeline over pp {{ schedule = {schedule}, split = even }}
}}
train run {{
  model = Llama3_8B, cluster = DGX_H100(nodes = 1), layout = Mine
  batch = 32 seq, sequence = 1024 tok
  {more}
}}
"
    )
}

/// What is known of such a job: step time, and the largest memory of a stage.
fn figures(schedule: &str, more: &str) -> (f64, f64) {
    let checked = clean(&job(schedule, more));
    let c = checked.attempt(&[]).unwrap();
    (c.value(c.roots.step_time), c.value(c.roots.peak_memory))
}

const STALE: &str = "require staleness <= 1 step";

#[test]
fn every_schedule_of_the_library_compiles() {
    let flushed = ["gpipe", "one_f_one_b", "interleaved(2)", "breadth_first(2)", "zb_h1", "zb_h2", "zb_v"];
    let both = ["dualpipe", "dualpipe_v", "chimera"];
    for schedule in flushed.into_iter().chain(both) {
        let (step, memory) = figures(schedule, "");
        assert!(step > 0.0 && memory > 0.0, "{schedule}");
    }
    for schedule in ["pipedream_2bw", "pipemare"] {
        assert!(figures(schedule, STALE).0 > 0.0);
    }
}

/// `parc test` runs each order of `stdlib/schedules.par` for dozens of (p, m) and holds it to its closed forms.
#[test]
fn closed_forms_of_the_library() {
    let run = Command::new(env!("CARGO_BIN_EXE_parc"))
        .args(["test", "stdlib/schedules.par"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let (out, said) = (String::from_utf8(run.stdout).unwrap(), String::from_utf8(run.stderr).unwrap());
    assert!(run.status.success(), "{out}{said}");
    let line =
        |name: &str| out.lines().find(|l| l.split_whitespace().next() == Some(name)).unwrap_or_default().to_owned();
    for name in
        ["gpipe", "one_f_one_b", "interleaved", "breadth_first", "zb_h1", "zb_h2", "zb_v", "dualpipe", "dualpipe_v"]
    {
        assert!(line(name).ends_with("in_flight and bubble as simulated"), "{out}");
    }
    for name in ["pipedream_2bw", "pipemare"] {
        assert!(line(name).ends_with("in_flight and bubble as simulated"), "{out}");
    }
    for name in ["chimera", "round_robin"] {
        assert!(line(name).ends_with("in_flight as simulated"), "{out}");
    }
}

/// Parameters of a layer of Llama 3 8B: 2 × 4096² + 2 × 4096 × 1024 + 3 × 4096 × 14336 + 2 × 4096.
const LAYER: f64 = 218_112_000.0;

/// Bytes of parameters on each stage.
fn params(schedule: &str, more: &str) -> Vec<f64> {
    let checked = clean(&job(schedule, more));
    let c = checked.attempt(&[]).unwrap();
    c.facts.stages.iter().map(|s| c.roots.stage_values(&c.graph, &c.inputs, s).params).collect()
}

/// `DualPipe` keeps two chunks of eight layers on a rank, twice what one pipeline does; the outer ranks have embedding
/// and head beside them. `DualPipeV` keeps the model once.
#[test]
fn dualpipe_keeps_parameters_twice() {
    let (one, two, v) = (params("one_f_one_b", ""), params("dualpipe", ""), params("dualpipe_v", ""));
    assert_eq!(one[1].to_bits(), (8.0 * LAYER * 2.0).to_bits());
    assert_eq!(two[1].to_bits(), (2.0 * one[1]).to_bits());
    assert_eq!(two[0].to_bits(), (one[0] + one[3]).to_bits());
    let all = |of: &[f64]| of.iter().sum::<f64>();
    assert_eq!(all(&two).to_bits(), (2.0 * all(&one)).to_bits());
    assert_eq!(all(&v).to_bits(), all(&one).to_bits());
}

/// PipeDream-2BW keeps two versions of its weights (arXiv 2006.09503, section 3.1), `PipeMare` one.
#[test]
fn two_versions_of_the_weights() {
    let (one, two) = (params("pipemare", STALE), params("pipedream_2bw", STALE));
    for (one, two) in one.iter().zip(two) {
        assert_eq!(two.to_bits(), (2.0 * one).to_bits());
    }
}

/// Splitting off the weight gradient shortens a step, at the first rank's memory or more (Qi et al. 2023, table 2).
#[test]
fn zero_bubble_schedules_are_faster() {
    let [one, h1, h2, v] = ["one_f_one_b", "zb_h1", "zb_h2", "zb_v"].map(|s| figures(s, ""));
    assert!(h1.0 < one.0 && h2.0 < h1.0 && v.0 < h1.0, "{one:?} {h1:?} {h2:?} {v:?}");
    assert!(h2.1 > h1.1, "twice the warm-up holds more");
}

/// A job that says nothing of stale weights is refused, one that bounds them too low fails.
#[test]
fn staleness_is_a_metric() {
    let checked = clean(&job("pipedream_2bw", ""));
    assert!(checked.attempt(&[]).unwrap_err().contains("E0704"));
    let checked = clean(&job("pipedream_2bw", STALE));
    assert_eq!(checked.attempt(&[]).unwrap().schedule.staleness, 1);
}
