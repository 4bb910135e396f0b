//! `parc new`: its templates check clean and plan, and it writes over nothing.

use crate::files::{below, text};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Templates of what is not planned yet: they may say so, and nothing else.
const CHECKED: &[&str] = &["serve", "moe-ep"];

fn parc(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_parc")).current_dir(folder).env("NO_COLOR", "1").args(args).output().unwrap()
}

fn said(run: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr))
}

fn names() -> Vec<String> {
    let stem = |f: &Path| f.file_stem().unwrap().to_str().unwrap().to_owned();
    below("templates", &["par"]).iter().map(|f| stem(f)).collect()
}

#[test]
fn every_template_is_right() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(names().len(), 7);
    for name in names() {
        let file = format!("{name}.par");
        let run = parc(folder.path(), &["new", "--template", &name]);
        assert!(run.status.success(), "{name}: {}", said(&run));
        let written = fs::read_to_string(folder.path().join(&file)).unwrap();
        assert!(written.contains(&format!("parc plan {file}")), "the commands in {file} name the file");
        let check = parc(folder.path(), &["check", &file, "--message-format", "short"]);
        let plan = parc(folder.path(), &["plan", &file, "--message-format", "short"]);
        if CHECKED.contains(&name.as_str()) {
            let messages = String::from_utf8(check.stderr).unwrap();
            assert!(messages.lines().all(|l| l.contains("[E0990]")), "{name}: {messages}");
        } else {
            assert_eq!(said(&check), "", "{name}");
            assert!(plan.status.success(), "{name}: {}", said(&plan));
        }
    }
}

#[test]
fn every_template_is_listed_with_its_purpose() {
    let run = parc(Path::new("."), &["new", "--list"]);
    let list = String::from_utf8(run.stdout).unwrap();
    let listed: Vec<&str> = list.lines().filter_map(|l| l.split(' ').next()).collect();
    assert_eq!(listed, names());
    assert!(list.lines().all(|l| l.split_once("  ").is_some_and(|(_, about)| about.trim().len() > 10)), "{list}");
}

#[test]
fn the_model_and_the_machines_are_the_users() {
    let folder = tempfile::tempdir().unwrap();
    let given = ["--template", "fsdp-finetune", "--model", "GPT3_6_7B", "--machines", "DGX_A100(nodes = 2)"];
    let run = parc(folder.path(), &[&["new", "mine.par"], &given[..]].concat());
    assert_eq!(said(&run), "wrote mine.par\nnext: parc plan mine.par\n");
    let written = text(&folder.path().join("mine.par"));
    assert!(written.contains("  model       = GPT3_6_7B\n"), "{written}");
    assert!(written.contains("  cluster     = DGX_A100(nodes = 2)\n"), "{written}");
    let plan = said(&parc(folder.path(), &["plan", "mine.par"]));
    assert!(plan.starts_with("tune: GPT3_6_7B, 6.66 B, on 16 x A100_SXM_80 (2 nodes)"), "{plan}");
}

#[test]
fn nothing_is_written_over_and_nothing_wrong_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.par");
    fs::write(&file, "mine").unwrap();
    let run = parc(folder.path(), &["new", "mine.par", "--template", "serve"]);
    assert_eq!((run.status.code(), text(&file)), (Some(1), "mine".to_owned()));
    assert_eq!(said(&run), "error: `mine.par` exists, and is not written over\n");

    for model in ["Llama3_80B", "8 GiB", "Llama3_8B, cluster = 3", "}", "\"", "Llama3_8B\ntrain x {}", "", "?"] {
        let run = parc(folder.path(), &["new", "other.par", "--template", "megatron-dense", "--model", model]);
        assert_eq!(run.status.code(), Some(1), "{model}: {}", said(&run));
        assert!(said(&run).ends_with("nothing was written\n"), "{model}: {}", said(&run));
        assert!(!folder.path().join("other.par").exists());
    }
}

#[cfg(unix)]
#[test]
fn a_link_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("elsewhere.par", folder.path().join("mine.par")).unwrap();
    let run = parc(folder.path(), &["new", "mine.par", "--template", "serve"]);
    assert_eq!(run.status.code(), Some(1));
    assert!(!folder.path().join("elsewhere.par").exists());
}

#[test]
fn without_a_terminal_nothing_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let run = parc(folder.path(), &["new"]);
    assert_eq!(run.status.code(), Some(1));
    assert!(said(&run).contains("asks on a terminal only"), "{}", said(&run));
    let run = parc(folder.path(), &["new", "--template", "megatron"]);
    assert!(said(&run).contains("`megatron-dense` is one"), "{}", said(&run));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
