//! `disturb`: delays drawn in `parc simulate`, against sums done by hand.

use crate::compile;
use parc::diagnostics::{Code, Sink};
use parc::driver;
use parc::elaborate::Settings;
use parc::simulate::{Disturbed, disturbed};

fn job(pp: i64, batch: i64, disturb: &str) -> String {
    format!(
        "edition 1
use std::schedules::one_f_one_b
layout L {{
  mesh [pp = {pp}, dp = devices / {pp}]
  shard B over dp
  pipeline over pp {{ schedule = one_f_one_b, split = even }}
}}
train run {{
  model = Llama3_8B, cluster = DGX_H100(nodes = 1), layout = L
  batch = {batch} seq, sequence = 1024 tok
  disturb = [{disturb}]
}}
"
    )
}

/// Steps of two stages and one microbatch on each rank, drawn.
fn drawn(disturb: &str, batch: i64, samples: u32, seed: u64) -> Option<Disturbed> {
    let checked = compile::clean(&job(2, batch, disturb));
    let (mut sink, settings) = (Sink::new(), Settings { disturbed: true, ..Settings::default() });
    let compiled = driver::compile(&checked.program, &checked.sources, checked.job(), &settings, &mut sink);
    disturbed(&compiled.expect("a sound job"), samples, seed)
}

/// Delay of every drawn step, seconds.
fn delays(disturb: &str) -> Vec<f64> {
    let d = drawn(disturb, 4, 400, 1).expect("disturbed");
    d.times.iter().map(|t| t - d.calm).collect()
}

#[test]
fn a_certain_delay_on_the_path_adds_itself() {
    let near = |found: &[f64], wanted: f64| found.iter().all(|x| (x - wanted).abs() < 1e-9);
    // One microbatch: F0, message, F1, B1, message, B0. Everything is on the path.
    assert!(near(&delays("delay(on = p2p(0, 1), by = 7 ms)"), 0.007));
    assert!(near(&delays("delay(on = p2p(1, 0), by = 7 ms, chance = 100%)"), 0.007));
    assert!(near(&delays("delay(on = p2p, by = 7 ms)"), 0.014), "both messages");
    assert!(near(&delays("delay(on = stage(1), by = 5 ms)"), 0.010), "forward and backward");
    assert!(near(&delays("delay(on = stage(0), by = 5 ms), delay(on = p2p, by = 1 ms)"), 0.012), "they add up");
    assert!(near(&delays("delay(on = stage(7), by = 5 ms)"), 0.0), "no such stage works");
    assert!(near(&delays("delay(on = p2p, by = 5 ms, chance = 0%)"), 0.0));
    assert_eq!(drawn("", 4, 10, 1), None, "nothing disturbs");
}

#[test]
fn chances_and_laws_are_kept() {
    // Two operations, each late by 1 ms half of the time: 0, 1 and 2 ms in a quarter, a half and a quarter of the steps.
    let d = drawn("delay(on = stage(0), by = 1 ms, chance = 50%)", 4, 10_000, 3).expect("disturbed");
    let late = |q: f64| ((d.quantile(q) - d.calm) * 1e3).round() as i64;
    assert_eq!([0.2, 0.3, 0.7, 0.8].map(late), [0, 1, 1, 2]);
    assert!((d.mean - d.calm - 1e-3).abs() < 3e-5, "{}", d.mean - d.calm);
    // An exponential law of mean 2 ms on one message: its median is 2 ms × ln 2, its 95th percentile 2 ms × ln 20.
    let d = drawn("delay(on = p2p(0, 1), by = exponential(rate = 500 Hz))", 4, 20_000, 5);
    if let Some(d) = d {
        let median = d.quantile(0.5) - d.calm;
        assert!((median / (0.002 * 2.0_f64.ln()) - 1.0).abs() < 0.05, "{median}");
        assert!(((d.quantile(0.95) - d.calm) / (0.002 * 20.0_f64.ln()) - 1.0).abs() < 0.05);
    }
}

#[test]
fn a_seed_gives_the_same_steps_and_another_gives_others() {
    let law = "delay(on = p2p, by = lognormal(median = 20 ms, sigma = 0.8), chance = 10%)";
    let a = drawn(law, 64, 200, 1);
    assert_eq!(a, drawn(law, 64, 200, 1));
    assert_ne!(a, drawn(law, 64, 200, 2));
    let a = a.expect("disturbed");
    assert!(a.calm <= a.times[0] && a.mean > a.calm && a.quantile(0.5) <= a.quantile(0.95));
}

#[test]
fn what_is_no_disturbance_is_said_and_others_refuse_to_price_it() {
    let said = |disturb: &str| {
        let checked = compile::check(&job(2, 4, disturb));
        checked.attempt(&[]).err().unwrap_or_default()
    };
    for wrong in ["3", "delay(on = p2p(0), by = 1 ms)", "delay(on = stage(0), by = 1 GB)", "delay(by = 1 ms)"] {
        assert!(said(wrong).contains(Code::KindMismatch.info().number), "{wrong}: {}", said(wrong));
    }
    assert!(said("delay(on = p2p, by = 1 ms, chance = 150%)").contains("E0303"), "a share");
    assert!(said("delay(on = p2p, by = 1 ms)").contains("`disturb` outside `parc simulate`"));
}
