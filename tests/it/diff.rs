//! `parc diff`: only what differs, the same figures as the two plans have, and honest errors.

use crate::files::root;
use serde_json::Value;
use std::fs;
use std::process::{Command, Output};

fn diff(args: &[&str]) -> Output {
    let parc = env!("CARGO_BIN_EXE_parc");
    Command::new(parc).arg("diff").args(args).current_dir(root()).output().unwrap()
}

fn said(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

fn json(args: &[&str]) -> Value {
    let out = diff(&[args, &["--json"]].concat());
    assert_eq!(out.status.code(), Some(0), "{}", said(&out));
    serde_json::from_slice(&out.stdout).unwrap()
}

fn plan(args: &[&str]) -> Value {
    let out = Command::new(env!("CARGO_BIN_EXE_parc")).args(args).arg("--json").current_dir(root()).output().unwrap();
    serde_json::from_slice(&out.stdout).unwrap()
}

const FILE: &str = "examples/llama3_8b.par";

/// The entry of a section with this group and name.
fn entry<'a>(diff: &'a Value, section: &str, group: &str, what: &str) -> &'a Value {
    let rows = diff[section].as_array().unwrap();
    rows.iter().find(|r| r["what"] == what && (group.is_empty() || r["group"] == group)).unwrap()
}

#[test]
fn figures_are_those_of_the_plans() {
    let d = json(&[FILE, "--with", "tp=4", "--target", "megatron"]);
    let (a, b) = (plan(&["plan", FILE]), plan(&["plan", FILE, "--set", "tp=4"]));
    assert_eq!(d["schema"], "parc-diff/1");
    let step = entry(&d, "time", "step", "whole");
    assert_eq!((&step["before"], &step["after"]), (&a["time"]["step"], &b["time"]["step"]));
    for (stage, class, field) in [(0, "activations", "activations"), (1, "total", "total"), (1, "params", "params")] {
        let row = entry(&d, "memory", &format!("stage {stage}"), class);
        let bytes = |plan: &Value| plan["memory"]["stages"][stage][field].as_f64();
        assert_eq!((row["before"].as_f64(), row["after"].as_f64()), (bytes(&a), bytes(&b)), "{stage} {class}");
    }
    let sent = |plan: &Value, level: &str| -> f64 {
        let all = plan["collectives"].as_array().unwrap();
        all.iter().filter(|c| c["level"] == level).map(|c| c["sent"].as_f64().unwrap()).sum()
    };
    let node = entry(&d, "traffic", "node, NVLink4", "everything");
    assert_eq!((node["before"].as_f64(), node["after"].as_f64()), (Some(sent(&a, "node")), Some(sent(&b, "node"))));
    // tp 2 → 4 leaves the pipeline and the nodes as they are: nothing is said of them.
    assert!(d["layout"].as_array().unwrap().iter().all(|w| w["what"] != "pp" && w["what"] != "model"));
    let flag = |name: &str| {
        let all = d["target"]["options"].as_array().unwrap();
        all.iter().find(|o| o["what"] == name).map(|o| (o["before"].clone(), o["after"].clone()))
    };
    assert_eq!(flag("--tensor-model-parallel-size"), Some(("2".into(), "4".into())));
    assert_eq!(flag("--pipeline-model-parallel-size"), None);
    // The claims of the file are of tp = 2.
    let failing = d["claims"].as_array().unwrap().iter().map(|c| c["what"].as_str().unwrap());
    assert!(failing.into_iter().any(|c| c == "expect layout.dp == 4"));
}

#[test]
fn what_is_the_same_is_not_said() {
    let d = json(&[FILE, FILE, "--target", "megatron"]);
    for section in ["layout", "memory", "time", "traffic", "claims"] {
        assert_eq!(d[section], Value::Array(vec![]), "{section}");
    }
    let out = diff(&[FILE, FILE]);
    assert!(String::from_utf8_lossy(&out.stdout).ends_with("nothing changes\n"));
}

#[test]
fn the_other_way_round_is_the_opposite() {
    let (there, back) = (json(&[FILE, "examples/too_big.par"]), json(&["examples/too_big.par", FILE]));
    for section in ["layout", "memory", "time", "traffic", "claims"] {
        let pairs = |d: &Value, first: &str, second: &str| -> Vec<(String, Value, Value)> {
            let rows = d[section].as_array().unwrap().iter();
            let key = |r: &Value| format!("{} {} {}", r["group"], r["what"], r["unit"]);
            let mut rows: Vec<_> = rows.map(|r| (key(r), r[first].clone(), r[second].clone())).collect();
            rows.sort_by(|a, b| a.0.cmp(&b.0));
            rows
        };
        assert_eq!(pairs(&there, "before", "after"), pairs(&back, "after", "before"), "{section}");
    }
    // What does not fit is compared like any other, and said.
    assert_eq!((&there["before"]["fits"], &there["after"]["fits"]), (&Value::Bool(true), &Value::Bool(false)));
}

#[test]
fn jobs_of_one_file_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("two.par");
    let text = fs::read_to_string(root().join(FILE)).unwrap();
    let job = text.split_once("train llama3_8b").unwrap().1;
    let other = job.replace("TwoNodes()", "TwoNodes(tp = 4)").replace("== 4", "== 2").replace("== 32", "== 64");
    let other = other.lines().filter(|l| !l.contains("bubble")).collect::<Vec<_>>().join("\n");
    fs::write(&file, format!("{text}\ntrain other{other}\n")).unwrap();
    let file = file.to_str().unwrap();
    let out = diff(&[file, "--with", "tp=4"]);
    assert_eq!(out.status.code(), Some(1));
    assert!(said(&out).contains("write FILE:JOB: `llama3_8b`, `other`"), "{}", said(&out));
    assert_eq!(said(&out).matches("several jobs").count(), 1, "said once for one file");
    let d = json(&[&format!("{file}:llama3_8b"), &format!("{file}:other")]);
    assert_eq!(entry(&d, "layout", "", "tp")["after"], "4");
    let out = diff(&[&format!("{file}:llama3_8b"), &format!("{file}:othr")]);
    assert!(said(&out).contains("`other` exists"), "{}", said(&out));
}

#[test]
fn wrong_input_is_an_error_and_no_panic() {
    for (args, part) in [
        (&[FILE][..], "required"),
        (&["nowhere.par", FILE], "nowhere.par"),
        (&[FILE, "--with", "tp=3"], "3"),
        (&[FILE, "--with", "tp"], "NAME=VALUE"),
        (&[FILE, "--with", "zz=3"], "zz"),
        (&[FILE, "--with", "tp=4", "--target", "megatrn"], "`--target megatron` exists"),
        (&[FILE, "--with", "tp=4", "--target", "deepspeed"], "the pipeline is not a key"),
        (&[":", "::"], "cannot"),
        (&["examples", FILE], "directory"),
    ] {
        let out = diff(args);
        assert_ne!(out.status.code(), Some(0), "{args:?}");
        assert!(said(&out).contains(part), "{args:?}: {}", said(&out));
        assert!(!said(&out).contains("panicked"));
    }
}
