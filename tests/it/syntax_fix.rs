//! `parc fix` and `parc fmt` as a user runs them: what is written, what is said, and what is left alone.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn parc(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_parc")).args(arguments).current_dir(folder).output().unwrap()
}

fn said(out: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (out.status.code(), text(&out.stdout), text(&out.stderr))
}

/// Slips of several kinds, on lines of their own and on one, and a name that only a person can mend.
const SLIPS: &str = "edition 1
# two nodes
layout Plain {
  mesh [dp = devices];
  shard B over dp
}
link Fast { bandwidth: 400 Gb/s, latency = 2us; efficiency = .5 }
train run {
  model = Lama3_8B
  batch = 1,024 seq
}
";

#[test]
fn safe_fixes_are_applied_and_the_rest_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.par");
    fs::write(&file, SLIPS).unwrap();
    let (code, out, _) = said(&parc(folder.path(), &["fix", "a.par", "--dry-run"]));
    assert_eq!(code, Some(1));
    assert!(out.ends_with("5 fixes would be applied\n"), "{out}");
    assert_eq!(fs::read_to_string(&file).unwrap(), SLIPS);

    let (code, out, err) = said(&parc(folder.path(), &["fix", "a.par"]));
    assert!(out.starts_with("a.par:2:1: use `//` (E"), "{out}");
    assert!(out.ends_with("5 fixes applied\n"), "{out}");
    assert_eq!(code, Some(1), "a wrong name is left: {err}");
    assert!(err.contains("Lama3_8B"), "{err}");
    let after = fs::read_to_string(&file).unwrap();
    assert_eq!(
        after,
        SLIPS
            .replace("# two", "// two")
            .replace("devices];", "devices]")
            .replace("bandwidth:", "bandwidth =")
            .replace("2us;", "2us,")
            .replace(".5", "0.5")
            .replace("1,024", "1024")
    );
    let (_, out, _) = said(&parc(folder.path(), &["fix", "a.par"]));
    assert_eq!(out, "no fix is safe to apply unasked; those shown are yours to judge\n", "the name is");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is written");
    fs::write(&file, "edition 1\nlet x = 1\n").unwrap();
    let (code, out, _) = said(&parc(folder.path(), &["fix", "a.par"]));
    assert_eq!((code, out.as_str()), (Some(0), "nothing to fix\n"));
}

#[test]
fn only_the_files_named_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let site = "edition 1\nlink Fast { bandwidth: 400 Gb/s, latency = 2 us }\n";
    fs::write(folder.path().join("site.par"), site).unwrap();
    fs::write(folder.path().join("a.par"), "edition 1\nuse \"site.par\"::{Fast}\nlet a = 2;\n").unwrap();
    let (_, out, _) = said(&parc(folder.path(), &["fix", "a.par"]));
    assert!(out.ends_with("1 fix applied\n"), "{out}");
    assert_eq!(fs::read_to_string(folder.path().join("site.par")).unwrap(), site);
}

#[test]
fn files_are_laid_out_in_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("a.par"), "let a=1").unwrap();
    fs::write(path("b.par"), "let b = 1\n").unwrap();
    fs::write(path("c.par"), "let c = = 1").unwrap();
    let (code, out, err) = said(&parc(folder.path(), &["fmt", "--check", "a.par", "b.par"]));
    assert_eq!((code, out.as_str(), err.as_str()), (Some(1), "a.par\n", ""));
    assert_eq!(fs::read_to_string(path("a.par")).unwrap(), "let a=1");
    let (code, out, err) = said(&parc(folder.path(), &["fmt", "a.par", "b.par", "c.par", "none.par"]));
    assert_eq!((code, out.as_str()), (Some(1), "laid out a.par\n"));
    assert!(err.contains("c.par:1:9") && err.contains("none.par"), "{err}");
    assert_eq!(fs::read_to_string(path("a.par")).unwrap(), "let a = 1\n");
    assert_eq!(fs::read_to_string(path("c.par")).unwrap(), "let c = = 1");
    assert_eq!(said(&parc(folder.path(), &["fmt", "--check", "a.par", "b.par"])).0, Some(0));
}

#[test]
fn standard_input_is_laid_out_to_standard_output() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_parc"))
        .args(["fmt", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"let a=1 // one").unwrap();
    let out = child.wait_with_output().unwrap();
    assert_eq!((out.status.code(), String::from_utf8(out.stdout).unwrap()), (Some(0), "let a = 1  // one\n".into()));
}
