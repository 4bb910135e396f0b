//! `parc test` of jobs: what a job claims is held to what is predicted.

use std::process::Command;

/// What is printed, and the exit code.
fn test(file: &str, more: &[&str]) -> (String, Option<i32>) {
    let run = Command::new(env!("CARGO_BIN_EXE_parc"))
        .args(["test", file])
        .args(more)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    (String::from_utf8(run.stdout).unwrap(), run.status.code())
}

#[test]
fn claims_that_hold() {
    let (said, code) = test("examples/llama3_8b.par", &[]);
    let text = include_str!("../../examples/llama3_8b.par");
    let claims =
        text.lines().filter(|l| l.trim_start().starts_with("expect ") || l.trim_start().starts_with("require "));
    assert_eq!(
        said.split_whitespace().collect::<Vec<_>>(),
        ["llama3_8b", &claims.count().to_string(), "claims", "hold"]
    );
    assert_eq!(code, Some(0));
}

/// With one tensor rank the mesh has other sizes than the file claims.
#[test]
fn claims_that_do_not() {
    let (said, code) = test("examples/llama3_8b.par", &["--set", "tp=1"]);
    let words: Vec<_> = said.split_whitespace().collect();
    assert_eq!((words[0], words[2], words[4], words[5]), ("llama3_8b", "of", "claims", "hold"), "{said}");
    assert!(words[1].parse::<u32>().unwrap() < words[3].parse().unwrap(), "{said}");
    assert_eq!(code, Some(2));
}
