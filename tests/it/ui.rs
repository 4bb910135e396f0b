//! What a user sees: every `tests/ui/**/*.par` whose first line is `// parc: COMMAND` is given to the `parc` command, and
//! its standard error compared with the `.stderr` beside it, whose first line is the exit code. `PARC_BLESS=1` rewrites
//! them. A `.par` without that line is there for others to `use`.
//!
//! COMMAND is what stands before and after the file: `check`, `plan`, `build --target megatron`. The command runs in the
//! file's folder; a build writes to a folder that the golden calls `<OUT>`.

use crate::files::{below, name, text};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// No case may take longer.
const PATIENCE: Duration = Duration::from_mins(1);

#[test]
fn goldens() {
    let bless = std::env::var_os("PARC_BLESS").is_some();
    let mut failures = String::new();
    for case in below("tests/ui", &["par"]) {
        let source = text(&case);
        let golden = case.with_extension("stderr");
        let Some(command) = source.lines().next().and_then(|l| l.strip_prefix("// parc: ")) else {
            assert!(!golden.exists(), "{} has a golden and no `// parc:` line", name(&case));
            continue;
        };
        let found = run(&case, command);
        if bless {
            fs::write(&golden, &found).unwrap();
            continue;
        }
        let expected = if golden.exists() { text(&golden) } else { String::new() };
        if found != expected {
            let _ = writeln!(failures, "\n{} (`{command}`)\n{}", name(&case), difference(&expected, &found));
        }
    }
    assert!(failures.is_empty(), "{failures}\nPARC_BLESS=1 accepts these");
}

/// Exit code and standard error of one case, as a golden holds them.
fn run(case: &Path, command: &str) -> String {
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("out");
    let errors = scratch.path().join("stderr");
    let mut words = command.split_whitespace();
    let verb = words.next().expect("a command");
    let mut parc = Command::new(env!("CARGO_BIN_EXE_parc"));
    parc.current_dir(case.parent().unwrap()).arg(verb).arg(case.file_name().unwrap()).args(words);
    if verb == "build" {
        parc.arg("--out").arg(&out);
    }
    parc.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("NO_COLOR", "1");
    parc.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&errors).unwrap());
    let mut child = parc.spawn().unwrap();
    let start = Instant::now();
    let code = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status.code().map_or("killed".into(), |c| c.to_string()),
            None if start.elapsed() > PATIENCE => {
                child.kill().unwrap();
                child.wait().unwrap();
                break "too slow".into();
            }
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    let mut golden = format!("exit {code}\n");
    let said = String::from_utf8(fs::read(&errors).unwrap()).expect("messages are UTF-8");
    for line in said.replace(&out.display().to_string(), "<OUT>").trim_end().lines() {
        golden.push_str(line.trim_end());
        golden.push('\n');
    }
    golden
}

/// The lines from the first that differs, `-` expected, `+` found.
fn difference(expected: &str, found: &str) -> String {
    let same = expected.lines().zip(found.lines()).take_while(|(a, b)| a == b).count();
    let mut out = String::new();
    for (sign, text) in [('-', expected), ('+', found)] {
        for line in text.lines().skip(same) {
            let _ = writeln!(out, "{sign} {line}");
        }
    }
    out
}
