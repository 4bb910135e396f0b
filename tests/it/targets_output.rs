//! Output folders: whole or not at all, and never over what `parc` did not write.

use parc::cli::output::{Edited, LIST_FILE, OutputError, write};
use parc::emit::{Artifact, Artifacts};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

fn artifacts(files: &[(&str, &str)]) -> Artifacts {
    files.iter().map(|(p, t)| ((*p).into(), Artifact::text(*t))).collect()
}

/// Every path below `dir`, sorted; none may be a leftover of a write.
fn listing(dir: &Path) -> Vec<String> {
    let mut out = Vec::new();
    let mut todo = vec![dir.to_path_buf()];
    while let Some(folder) = todo.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            out.push(entry.path().strip_prefix(dir).unwrap().display().to_string());
            if entry.file_type().unwrap().is_dir() {
                todo.push(entry.path());
            }
        }
    }
    out.sort();
    out
}

#[test]
fn an_output_is_replaced_whole() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("a/b/out");
    write(&artifacts(&[("one", "1"), ("sub/two", "2")]), &out, Edited::Keep).unwrap();
    assert_eq!(listing(&out), [LIST_FILE, "one", "sub", "sub/two"]);
    write(&artifacts(&[("three", "3")]), &out, Edited::Keep).unwrap();
    assert_eq!(listing(&out), [LIST_FILE, "three"]);
    assert_eq!(listing(&dir.path().join("a/b")), ["out", &format!("out/{LIST_FILE}"), "out/three"]);
    let mode = fs::metadata(&out).unwrap().permissions().mode();
    assert_eq!(mode & 0o500, 0o500);
    assert_ne!(fs::metadata(dir.path().join("a")).unwrap().permissions().mode() & 0o777, 0);
}

#[test]
fn what_parc_did_not_write_stays() {
    let dir = tempfile::tempdir().unwrap();
    let files = artifacts(&[("plan.json", "{}"), ("launch.sh", "x")]);
    let at = |name: &str| dir.path().join(name);
    let refused = |name: &str| write(&files, &at(name), Edited::Keep).unwrap_err();

    fs::create_dir(at("mine")).unwrap();
    fs::write(at("mine/notes"), "n").unwrap();
    assert!(matches!(refused("mine"), OutputError::Foreign(_)));
    // A plan alone is no proof that the folder is parc's.
    fs::write(at("mine/plan.json"), r#"{"schema": "parc-plan/1"}"#).unwrap();
    assert!(matches!(refused("mine"), OutputError::Foreign(_)));
    assert_eq!(listing(&at("mine")), ["notes", "plan.json"]);

    fs::write(at("file"), "f").unwrap();
    assert!(matches!(refused("file"), OutputError::NotFolder(_)));

    write(&files, &at("real"), Edited::Keep).unwrap();
    symlink(at("real"), at("link")).unwrap();
    assert!(matches!(refused("link"), OutputError::Link(_)));
    assert!(matches!(refused("link/"), OutputError::Link(_)));
    symlink(at("nowhere"), at("dangling")).unwrap();
    assert!(matches!(refused("dangling"), OutputError::Link(_)));

    fs::write(at("real/checkpoint"), "precious").unwrap();
    assert!(matches!(refused("real"), OutputError::Stranger(p) if p.ends_with("checkpoint")));
    assert!(matches!(write(&files, &at("real"), Edited::Replace), Err(OutputError::Stranger(_))));
    fs::remove_file(at("real/checkpoint")).unwrap();
    fs::create_dir(at("real/logs")).unwrap();
    assert!(matches!(refused("real"), OutputError::Stranger(p) if p.ends_with("logs")));
    fs::remove_dir(at("real/logs")).unwrap();

    fs::write(at("real/launch.sh"), "edited").unwrap();
    assert!(matches!(refused("real"), OutputError::Changed(p) if p.ends_with("launch.sh")));
    assert_eq!(fs::read_to_string(at("real/launch.sh")).unwrap(), "edited");
    write(&files, &at("real"), Edited::Replace).unwrap();
    assert_eq!(fs::read_to_string(at("real/launch.sh")).unwrap(), "x");

    fs::create_dir(at("empty")).unwrap();
    write(&files, &at("empty"), Edited::Keep).unwrap();
    let entries: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(!entries.iter().any(|e| e.to_string_lossy().starts_with(".parc-")), "{entries:?}");
}

#[test]
fn paths_stay_inside_and_folders_have_names() {
    let dir = tempfile::tempdir().unwrap();
    for bad in ["../up", "/etc/x", "a/../../b", "", ".", LIST_FILE, "two\nlines"] {
        let result = write(&artifacts(&[(bad, "x")]), &dir.path().join("out"), Edited::Keep);
        assert!(matches!(result, Err(OutputError::BadName(_))), "{bad:?}");
    }
    for bad in ["/", "..", ""] {
        let result = write(&artifacts(&[("a", "x")]), Path::new(bad), Edited::Keep);
        assert!(matches!(result, Err(OutputError::NoName(_))), "{bad:?}");
    }
    assert_eq!(listing(dir.path()), Vec::<String>::new());
}

#[test]
fn a_failed_write_leaves_what_was_there() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    write(&artifacts(&[("a", "old")]), &out, Edited::Keep).unwrap();
    // `x` cannot be both a file and a folder, so the second write fails half way.
    let clash = artifacts(&[("x", "file"), ("x/y", "below")]);
    assert!(matches!(write(&clash, &out, Edited::Keep), Err(OutputError::System(..))));
    assert_eq!(fs::read_to_string(out.join("a")).unwrap(), "old");
    assert_eq!(listing(dir.path()), ["out", &format!("out/{LIST_FILE}"), "out/a"]);
}

/// Whoever looks while an output is replaced finds one: there is no moment without.
#[test]
fn an_output_is_never_missing() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    write(&artifacts(&[("one", "1")]), &out, Edited::Keep).unwrap();
    let done = AtomicBool::new(false);
    let missing = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut missing = 0;
            while !done.load(Ordering::Relaxed) {
                missing += usize::from(fs::symlink_metadata(&out).is_err());
            }
            missing
        });
        for i in 0..300 {
            write(&artifacts(&[("one", &i.to_string())]), &out, Edited::Keep).unwrap();
        }
        done.store(true, Ordering::Relaxed);
        watcher.join().unwrap()
    });
    assert_eq!(missing, 0);
}

/// `parc build` killed at moments all over its run: the folder is the earlier output or the new one, whole.
#[test]
fn a_killed_build_leaves_one_output() {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let start = |job: &str| {
        Command::new(env!("CARGO_BIN_EXE_parc"))
            .args(["build", "--target", "torch", "--out"])
            .arg(&out)
            .arg(crate::files::root().join("tests/targets/small.par"))
            .arg(job)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };
    let mut whole = Vec::new();
    let mut longest = Duration::ZERO;
    for job in ["fsdp", "tp_pp"] {
        let began = Instant::now();
        assert!(start(job).wait().unwrap().success());
        longest = longest.max(began.elapsed());
        whole.push(contents(&out));
    }
    assert_ne!(whole[0], whole[1]);
    let moments = 10;
    for i in 0..moments {
        let mut child = start(["fsdp", "tp_pp"][i % 2]);
        // Most of the writing is near the end.
        std::thread::sleep(longest.mul_f64(0.5 + 0.5 * i as f64 / moments as f64));
        let _ = child.kill();
        child.wait().unwrap();
        assert!(whole.contains(&contents(&out)), "killed at moment {i}: {:?}", listing(&out));
    }
}

/// Every file of a folder with its text.
fn contents(dir: &Path) -> Vec<(String, String)> {
    let files = listing(dir).into_iter().filter(|p| dir.join(p).is_file());
    files.map(|p| (p.clone(), fs::read_to_string(dir.join(&p)).unwrap())).collect()
}
