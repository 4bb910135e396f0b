//! What a user sees: every `tests/ui/**/*.par` whose first line is `// parc: COMMAND` is given to the `parc` command, and
//! its standard error compared with the `.stderr` beside it, whose first line is the exit code. Where a fix is offered,
//! `.fixed` is the file after the first one, and the command must have nothing new to say of it. `PARC_BLESS=1` rewrites
//! both. A `.par` without that line is there for others to `use`.
//!
//! COMMAND is what stands before and after the file: `check`, `plan`, `build --target megatron`. The command runs in the
//! file's folder; a build writes to a folder that the golden calls `<OUT>`.

use crate::files::{below, name, text};
use parc::source::FileId;
use serde_json::Value;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// No case may take longer.
const PATIENCE: Duration = Duration::from_mins(1);

/// The cases with their commands.
fn cases() -> Vec<(std::path::PathBuf, String)> {
    let command = |case: &Path| text(case).lines().next()?.strip_prefix("// parc: ").map(str::to_owned);
    let all = below("tests/ui", &["par"]);
    for case in all.iter().filter(|c| command(c).is_none()) {
        let golden = case.with_extension("stderr");
        assert!(!golden.exists(), "{} has a golden and no `// parc:` line", name(case));
    }
    all.into_iter().filter_map(|c| Some((c.clone(), command(&c)?))).collect()
}

fn bless() -> bool {
    std::env::var_os("PARC_BLESS").is_some()
}

fn expected(golden: &Path) -> String {
    if golden.exists() { text(golden) } else { String::new() }
}

#[test]
fn goldens() {
    let mut failures = String::new();
    for (case, command) in cases() {
        let golden = case.with_extension("stderr");
        let (code, said) = run(case.parent().unwrap(), case.file_name().unwrap().to_str().unwrap(), &command);
        let found = format!("exit {code}\n{said}");
        if bless() {
            fs::write(&golden, &found).unwrap();
            continue;
        }
        let expected = expected(&golden);
        if found != expected {
            let _ = writeln!(failures, "\n{} (`{command}`)\n{}", name(&case), difference(&expected, &found));
        }
    }
    assert!(failures.is_empty(), "{failures}\nPARC_BLESS=1 accepts these");
}

#[test]
fn fixes_remove_the_error_and_add_none() {
    let mut failures = String::new();
    let mut tried = 0;
    for (case, command) in cases() {
        let file = case.file_name().unwrap().to_str().unwrap();
        let golden = case.with_extension("fixed");
        let before = diagnose(case.parent().unwrap(), file, &command);
        let Some((wrong, fix)) = before.iter().find_map(|d| {
            // What has to be filled in first is no fix by itself.
            let sure = |f: &&Value| f["applicability"] != "placeholder";
            Some((d, d["fixes"].as_array()?.iter().find(sure)?))
        }) else {
            if golden.exists() && bless() {
                fs::remove_file(&golden).unwrap();
            } else if golden.exists() {
                let _ = writeln!(failures, "{}: no fix is offered any more", name(&golden));
            }
            continue;
        };
        tried += 1;
        let fixed = apply(&text(&case), file, fix);
        let scratch = tempfile::tempdir().unwrap();
        for other in fs::read_dir(case.parent().unwrap()).unwrap().map(|e| e.unwrap().path()) {
            if other.extension().is_some_and(|e| e == "par") {
                fs::copy(&other, scratch.path().join(other.file_name().unwrap())).unwrap();
            }
        }
        fs::write(scratch.path().join(file), &fixed).unwrap();
        let after = diagnose(scratch.path(), file, &command);
        for d in &after {
            let known = before.iter().any(|b| (&b["code"], &b["message"]) == (&d["code"], &d["message"]));
            let same = (&d["code"], &d["message"]) == (&wrong["code"], &wrong["message"]);
            if same || !known {
                let _ =
                    writeln!(failures, "{} after {}:\n{}", name(&case), fix["title"], d["rendered"].as_str().unwrap());
            }
        }
        if bless() {
            fs::write(&golden, &fixed).unwrap();
        } else if fixed != expected(&golden) {
            let _ = writeln!(failures, "{}\n{}", name(&golden), difference(&expected(&golden), &fixed));
        }
    }
    assert!(tried > 0, "no case offers a fix");
    assert!(failures.is_empty(), "{failures}");
}

/// `text`, the file called `file`, after the edits of `fix`.
pub(crate) fn apply(text: &str, file: &str, fix: &Value) -> String {
    let edits = fix["edits"].as_array().unwrap().iter().map(|e| {
        assert_eq!(e["file"], file, "a fix edits the user's file");
        let at = |end: &str| usize::try_from(e[end].as_u64().unwrap()).unwrap();
        let span = parc::source::Span::new(FileId(0), at("start"), at("end"));
        parc::diagnostics::Edit { span, text: e["text"].as_str().unwrap().into() }
    });
    let fix = parc::diagnostics::Fix {
        title: String::new(),
        edits: edits.collect(),
        applicability: parc::diagnostics::Applicability::Safe,
        effect: None,
    };
    parc::diagnostics::apply(text, FileId(0), &[fix])
}

/// What `parc COMMAND` says of one file, as JSON objects.
pub(crate) fn diagnose(folder: &Path, file: &str, command: &str) -> Vec<Value> {
    let (code, said) = run(folder, file, &format!("{command} --message-format json"));
    assert!(code.len() == 1, "{file}: {code}\n{said}");
    said.lines().filter_map(|l| serde_json::from_str::<Value>(l).ok()).filter(|d| d["code"].is_string()).collect()
}

/// Exit code, and standard error without blanks at line ends, of `parc COMMAND` on a file of `folder`.
pub(crate) fn run(folder: &Path, file: &str, command: &str) -> (String, String) {
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("out");
    let errors = scratch.path().join("stderr");
    let mut words = command.split_whitespace();
    let verb = words.next().expect("a command");
    let mut parc = Command::new(env!("CARGO_BIN_EXE_parc"));
    parc.current_dir(folder).arg(verb);
    // An import is of another file, which stands beside the case.
    if verb != "import" {
        parc.arg(file);
    }
    parc.args(words);
    if verb == "build" && !command.contains("--out") {
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
    let said = String::from_utf8(fs::read(&errors).unwrap()).expect("messages are UTF-8");
    let said = said.replace(&out.display().to_string(), "<OUT>");
    (code, said.trim_end().lines().fold(String::new(), |all, line| all + line.trim_end() + "\n"))
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

/// A file with these bytes, checked: exit code and what is said.
fn check_bytes(bytes: &[u8]) -> (String, String) {
    let scratch = tempfile::tempdir().unwrap();
    fs::write(scratch.path().join("main.par"), bytes).unwrap();
    run(scratch.path(), "main.par", "check")
}

/// What cannot lie in `tests/ui`: files that are none, and files too large to keep.
#[test]
fn what_is_no_file_of_text_is_said_so() {
    let scratch = tempfile::tempdir().unwrap();
    fs::create_dir(scratch.path().join("models")).unwrap();
    let said = |(code, said): (String, String)| {
        assert_eq!(code, "1", "{said}");
        said
    };
    assert_eq!(
        said(run(scratch.path(), "lama.par", "check")),
        "error[E0001]: `lama.par` cannot be read: no such file\n\n1 error\n"
    );
    assert_eq!(
        said(run(scratch.path(), "models", "check")),
        "error[E0001]: `models` cannot be read: it is a directory\n   \
         = help: name a file in it, such as `models/main.par`\n\n1 error\n"
    );
    assert_eq!(
        said(check_bytes(b"edition 1\n// caf\xe9\n")),
        "error[E0002]: `main.par` cannot be read: it is not UTF-8 text (byte 16)\n   \
         = help: save the file as UTF-8; a `.par` file is plain text\n\n1 error\n"
    );
    assert_eq!(
        said(check_bytes(b"")),
        "error[E0005]: `main.par` declares nothing\n   \
         = help: a file begins with `edition 1`; `examples/llama3_8b.par` is one to start from\n\n1 error\n"
    );
}

#[test]
fn floods_are_refused_in_time_and_in_few_words() {
    let deep = |open: &str, n: usize| format!("edition 1\nlet x = {}", open.repeat(n)).into_bytes();
    let cases = [
        ("10 MB of braces", deep("{", 10_000_000)),
        ("10 MB of brackets", deep("(", 10_000_000)),
        ("10 MB of closing braces", deep("}", 10_000_000)),
        ("17 MB of blanks", deep(" ", 17 << 20)),
        ("4.5 M tokens", deep("1 + ", 2_250_000)),
        ("a number of 1 MB", deep("9", 1 << 20)),
        ("a name of 10 MB", deep("a", 10_000_000)),
        ("a unit of 10 MB", deep("1 ", 1).into_iter().chain(vec![b'k'; 10_000_000]).collect()),
        ("100,000 unknown names", deep("\nlet y = unknown", 100_000)),
    ];
    for (what, bytes) in cases {
        let start = Instant::now();
        let (code, said) = check_bytes(&bytes);
        assert_eq!(code, "1", "{what}: {}", said.chars().take(400).collect::<String>());
        assert!(start.elapsed() < Duration::from_secs(30), "{what}: {:?}", start.elapsed());
        assert!(said.len() < 200_000, "{what}: {} bytes of messages", said.len());
    }
}
