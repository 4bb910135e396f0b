//! `parc simulate`: the step in time, on the terminal, as a trace, as a page.

use crate::compile::clean;
use parc::emit::timeline;
use parc::simulate::{What, simulate};
use serde_json::Value;
use std::fs;
use std::process::Command;

fn text(p: u32, m: u32) -> String {
    format!(
        "edition 1
layout Mine {{
  mesh [pp = {p}, dp = devices / {p}]
  shard B over dp
  store state over dp
  pipeline over pp {{ schedule = one_f_one_b, split = balanced }}
}}
train run {{
  model = Llama3_70B, cluster = DGX_H100(nodes = {}), layout = Mine
  batch = {} seq, sequence = 1024 tok
}}
",
        p.div_ceil(8),
        m * (p.div_ceil(8) * 8 / p),
    )
}

/// The end of the last event is the predicted step where every stage updates as long as the slowest; the fullest moment
/// is what the plan says of each stage.
#[test]
fn the_timeline_agrees_with_the_plan() {
    let checked = clean(&text(4, 6));
    let c = checked.attempt(&[]).unwrap();
    let t = simulate(&c);
    assert_eq!(t.stages.len(), 4);
    assert!(t.end <= t.step_time * (1.0 + 1e-9) && t.end > 0.9 * t.step_time);
    for (stage, facts) in t.stages.iter().zip(&c.facts.stages) {
        let total = c.roots.stage_values(&c.graph, &c.inputs, facts).total;
        assert!((stage.peak.bytes - total).abs() < 1e-6 * total, "{} and {total}", stage.peak.bytes);
        let work = stage.events.iter().filter(|e| matches!(e.what, What::Work(_))).count();
        assert_eq!(work, 12);
        assert!(stage.events.windows(2).all(|w| w[0].end <= w[1].start * (1.0 + 1e-12)));
        // Everything that was saved is freed.
        let (first, last) = (stage.memory.first().unwrap().1, stage.memory.last().unwrap().1);
        assert!((first - last).abs() < 1.0);
    }
}

#[test]
fn rows_fit_a_terminal() {
    for (p, m) in [(1, 2), (4, 6), (16, 32), (64, 128)] {
        let checked = clean(&text(p, m));
        let shown = timeline::text(&simulate(&checked.attempt(&[]).unwrap()));
        assert!(shown.lines().all(|l| l.chars().count() <= 88), "{shown}");
        assert!(shown.contains("is fullest: "), "{shown}");
    }
}

#[test]
fn the_trace_is_json_of_events() {
    let checked = clean(&text(4, 6));
    let trace = timeline::trace(&simulate(&checked.attempt(&[]).unwrap()));
    let value: Value = serde_json::from_str(&trace).unwrap();
    let events = value["traceEvents"].as_array().unwrap();
    let work = events.iter().filter(|e| e["ph"] == "X" && e["cat"] == "forward").count();
    assert_eq!(work, 4 * 6);
    assert!(events.iter().filter(|e| e["ph"] == "X").all(|e| e["dur"].as_f64().unwrap() >= 0.0));
}

/// The page holds all it needs: no address, and no text that ends its script.
#[test]
fn the_page_needs_no_network() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("main.par"), text(4, 6)).unwrap();
    let run = Command::new(env!("CARGO_BIN_EXE_parc"))
        .args(["simulate", "main.par", "--html", "out.html", "--trace", "out.json"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let page = fs::read_to_string(folder.path().join("out.html")).unwrap();
    assert!(!page.contains("http") && !page.contains("/*DATA*/"), "an address, or no data");
    assert_eq!(page.matches("</script>").count(), 1);
    assert!(fs::read_to_string(folder.path().join("out.json")).unwrap().starts_with('{'));
}
