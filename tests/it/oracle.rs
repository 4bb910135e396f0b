//! Collectives compared with those XLA's SPMD partitioner inserts for the same sharded programs.
//!
//! `tests/oracle/*.json` are programs with stated shardings, `*.expected.json` what the partitioner made of them
//! (jax 0.10.2, Shardy). Each is translated to a graph and a layout, partitioned by our rules, and the bytes one device
//! sends are compared by kind and axes. Only what the two are known to do differently is evened out: see
//! [`Translated::wire`]. `PARC_ORACLE_CASES` names another folder.

mod case;
mod par;
mod wire;

use case::{Translated, translate};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use wire::{Wire, as_halves, expected, same};

/// Cases the comparison must hold on, without a word from the harness about any placement: rules alone.
const BY_RULES_ALONE: &[&str] = &[
    "block_tp",
    "block_tp_sp",
    "block_dp",
    "block_dp_tp",
    "block_cp",
    "block_fsdp",
    "block_fsdp_tp",
    "block_fsdp_tp_sp",
    "mlp_tp",
    "mlp_tp_sp",
    "mlp_dp_tp",
    "mlp_dp_tp_sp",
    "swiglu_mlp_tp",
    "attn_mha_tp",
    "attn_gqa_kv_eq_tp",
    "attn_gqa_kv_gt_tp",
    "attn_tp_sp",
    "attn_cp_allgather",
    "embed_vocab_parallel",
    "embed_vocab_parallel_sp",
    "ce_vocab_parallel",
    "ce_vocab_parallel_dp",
    "hsdp_mlp",
    "attn_gqa_kv_lt_tp_replicated",
];

/// Fair cases that are not compared, and why.
const NOT_YET: &[(&str, &str)] = &[
    ("ring_shift", "`shift` is not built"),
    (
        "column_parallel_gather",
        "the partitioner gathers the weight, the smaller of the two; here a parameter never moves and the result does",
    ),
];

fn cases() -> BTreeMap<String, (Value, Value)> {
    let folder = std::env::var_os("PARC_ORACLE_CASES")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/oracle"), PathBuf::from);
    let read = |path: PathBuf| -> Value {
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    };
    let mut cases = BTreeMap::new();
    for entry in std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
        let path = entry.expect("the folder can be listed").path();
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("").to_owned();
        if let Some(stem) = name.strip_suffix(".json").filter(|s| !s.ends_with(".expected")) {
            let report = read(path.with_file_name(format!("{stem}.expected.json")));
            cases.insert(stem.to_owned(), (read(path), report));
        }
    }
    cases
}

/// What comes of one case.
enum Outcome {
    /// Kind by kind.
    Same,
    /// With an all-reduce taken as a reduce-scatter and an all-gather.
    Equivalent,
    /// Ours, theirs.
    Different(Wire, Wire),
    /// Not expressible.
    Untranslated(String),
}

fn compare(case: &Value, report: &Value) -> (Outcome, usize) {
    let theirs = expected(report);
    let translated: Translated = match translate(case) {
        Ok(t) => t,
        Err(why) => return (Outcome::Untranslated(why), 0),
    };
    let fixed = translated.fixed.placements.len();
    let ours = match translated.wire() {
        Ok(ours) => ours,
        Err(why) => return (Outcome::Untranslated(why), fixed),
    };
    if same(&ours, &theirs) {
        (Outcome::Same, fixed)
    } else if same(&as_halves(&ours), &as_halves(&theirs)) {
        (Outcome::Equivalent, fixed)
    } else {
        (Outcome::Different(ours, theirs), fixed)
    }
}

#[test]
fn fair_cases_agree() {
    let mut wrong = Vec::new();
    let (mut agreed, mut fair, mut not_yet) = (0, 0, 0);
    let mut log = String::new();
    for (name, (case, report)) in cases() {
        let (outcome, fixed) = compare(&case, &report);
        let said = match &outcome {
            Outcome::Same => "agrees".to_owned(),
            Outcome::Equivalent => "agrees, all-reduce as its two halves".to_owned(),
            Outcome::Different(ours, theirs) => format!("differs: ours {ours:?}, theirs {theirs:?}"),
            Outcome::Untranslated(why) => format!("is not translated: {why}"),
        };
        let agrees = matches!(outcome, Outcome::Same | Outcome::Equivalent);
        let is_fair = case["fair"].as_bool() == Some(true);
        let _ = writeln!(log, "{} {name} ({fixed} fixed) {said}", if is_fair { "fair  " } else { "unfair" });
        if BY_RULES_ALONE.contains(&name.as_str()) {
            if fixed > 0 {
                wrong.push(format!("{name}: {fixed} placements had to be fixed"));
            }
            if !agrees {
                wrong.push(format!("{name} {said}"));
            }
        }
        if !is_fair {
            continue;
        }
        fair += 1;
        agreed += usize::from(agrees);
        match NOT_YET.iter().find(|(n, _)| *n == name) {
            Some(_) if agrees => wrong.push(format!("{name} agrees: take it off the list")),
            Some(_) => not_yet += 1,
            None if !agrees => wrong.push(format!("{name} {said}")),
            None => {}
        }
    }
    let summary = format!("oracle: {agreed} of {fair} fair cases agree, {not_yet} not compared");
    let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("{log}{summary}\n").as_bytes());
    assert!(wrong.is_empty(), "{}\n{summary}", wrong.join("\n"));
    assert!(agreed > 0, "no case was found");
}

/// The arithmetic that turns one collective into bytes sent is the reports' own.
#[test]
fn the_reports_add_up() {
    for (name, (_, report)) in cases() {
        let ours = wire::total(&report, |_| true);
        let totals = report["totals"].as_object().expect("a report has totals");
        for (key, total) in totals {
            let sent = total["wire_bytes"].as_f64().expect("a total has wire bytes");
            assert!((ours.get(key).copied().unwrap_or(0.0) - sent).abs() < 1.0, "{name}: {key}");
        }
    }
}
