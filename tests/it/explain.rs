//! The page of each code tells the truth: its wrong file raises that code alone, its right file nothing; and each code is
//! raised somewhere.

use crate::files::{below, name, text};
use crate::ui::diagnose;
use parc::diagnostics::{CODES, Code, explain};
use std::fmt::Write as _;
use std::fs;

#[test]
fn pages_are_right() {
    let mut failures = String::new();
    for (code, info) in CODES {
        for example in explain::examples(explain::page(*code)) {
            let scratch = tempfile::tempdir().unwrap();
            fs::write(scratch.path().join("main.par"), &example.text).unwrap();
            let found = diagnose(scratch.path(), "main.par", &example.command);
            let codes: Vec<_> = found.iter().map(|d| d["code"].as_str().unwrap()).collect();
            let wanted = if example.wrong { vec![info.number] } else { Vec::new() };
            if codes != wanted {
                let kind = if example.wrong { "wrong" } else { "right" };
                let (number, command) = (info.number, &example.command);
                let _ = writeln!(failures, "{number}: the {kind} file gives {codes:?} with `{command}`");
                for d in &found {
                    failures += d["rendered"].as_str().unwrap();
                }
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

/// Codes kept for what nothing raises at times: what the compiler cannot do yet becomes less.
const MAY_BE_UNUSED: &[Code] = &[Code::NotSupported];

#[test]
fn every_code_is_raised_somewhere() {
    let sources: Vec<_> = below("src", &["rs"])
        .into_iter()
        .filter(|f| name(f) != "src/diagnostics/codes.rs" && name(f) != "src/diagnostics/explain.rs")
        .map(|f| text(&f))
        .collect();
    let raised = |code: Code| {
        let used = format!("Code::{code:?}");
        let ends = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_alphanumeric());
        sources.iter().any(|s| s.match_indices(&used).any(|(at, _)| ends(&s[at + used.len()..])))
    };
    let never: Vec<_> = CODES.iter().map(|(c, _)| *c).filter(|c| !MAY_BE_UNUSED.contains(c) && !raised(*c)).collect();
    assert!(never.is_empty(), "raised nowhere: {never:?}");
}

/// What `parc explain WORD` prints.
fn explained(word: &str) -> (Option<i32>, String) {
    let run = std::process::Command::new(env!("CARGO_BIN_EXE_parc")).args(["explain", word]).output().unwrap();
    (run.status.code(), String::from_utf8([run.stdout, run.stderr].concat()).unwrap())
}

#[test]
fn words_of_other_tools_are_explained() {
    for (word, says) in [
        ("zero1", "store state over dp"),
        ("vpp", "schedule = interleaved(2)"),
        ("mfu", "dense peak"),
        ("gpu-memory-utilization", "device.usable"),
        ("--tensor-model-parallel-size", "shard [N, K, F, V] over tp"),
        ("tensor_model_parallel_size", "mesh [pp = 2, dp = 4, tp = 4]"),
        ("fsdp", "store [param, grad, state] over dp"),
        ("bubble", "(p − 1) / m"),
        ("microbatch", "micro_batch"),
        ("reserve", "context, driver and collective library"),
        ("words", "Tensor parallelism"),
        ("E0302", "E0302"),
    ] {
        let (code, text) = explained(word);
        assert!(code == Some(0) && text.contains(says), "{word}: {text}");
    }
}

#[test]
fn an_unknown_word_gets_the_nearest() {
    let near = |word: &str, near: &str| {
        let (code, text) = explained(word);
        assert!(code == Some(1) && text.contains(near), "{word}: {text}");
    };
    near("--tensor-modl-parallel-size", "`--tensor-model-parallel-size` is one");
    near("recomputation-granularit", "`parc explain words`");
    near("unit-mismach", "`unit-mismatch` is one");
    near("flux-capacitor", "no page about `flux-capacitor`");
    near("\u{1b}[31m", "no page about `\\u{1b}[31m`");
}
