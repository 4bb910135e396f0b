//! The example files, as a user runs them: clean, their expectations hold, and nothing but what they say decides.

use crate::compile;
use crate::files::{below, name, text};
use crate::plan_json;
use parc::source::Span;
use parc::syntax::ast::{Body, Entry};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Those that are there to show what is said of a layout that does not fit.
const TOO_BIG: &[&str] = &["too_big.par"];

fn examples() -> Vec<PathBuf> {
    let files = below("examples", &["par"]);
    assert!(files.len() >= 4, "{files:?}");
    files
}

fn fits(file: &Path) -> bool {
    !TOO_BIG.contains(&file.file_name().unwrap().to_str().unwrap())
}

/// Runs `parc` in the folder of `file`.
fn parc(file: &Path, verb: &str, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_parc"))
        .current_dir(file.parent().unwrap())
        .arg(verb)
        .arg(file.file_name().unwrap())
        .args(args)
        .env("NO_COLOR", "1")
        .output()
        .unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Everything about the command at once: a run costs seconds.
#[test]
fn examples_check_plan_and_hold_what_they_expect() {
    for file in examples() {
        let at = name(&file);
        let output = parc(&file, "check", &[]);
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""), "{at}");
        let args = ["--json", "--message-format", "json"];
        let [output, again] = [0, 1].map(|_| parc(&file, "plan", &args));
        assert!(output.stdout == again.stdout && output.stderr == again.stderr, "{at}: two runs differ");

        let said: Vec<Value> = stderr(&output).lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        let codes: Vec<_> = said.iter().map(|d| d["code"].as_str().unwrap()).collect();
        let expected: (i32, &[&str]) = if fits(&file) { (0, &[]) } else { (2, &["E0801"]) };
        assert_eq!((output.status.code(), codes.as_slice()), (Some(expected.0), expected.1), "{at}");

        let plan: Value = serde_json::from_str(&stdout(&output)).unwrap();
        let broken = plan_json::check(&plan);
        assert!(broken.is_empty(), "{at}: {broken:?}");
        let written = text(&file).lines().filter(|l| l.trim_start().starts_with("expect ")).count();
        let claims = plan["claims"].as_array().unwrap();
        assert_eq!(claims.iter().filter(|c| c["kind"] == "expect").count(), written, "{at}");
        for claim in claims {
            assert_eq!(claim["holds"], true, "{at}: {claim}");
        }
        assert_eq!(plan["memory"]["fits"], fits(&file), "{at}");
    }
}

/// The plan of `text` without its ranks, as JSON.
fn plan(text: &str, values: &[(&str, i64)]) -> Value {
    let checked = compile::clean(text);
    serde_json::to_value(checked.report(values)).unwrap()
}

/// A plan without what depends on where a thing is written.
fn without_places(plan: &Value) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.retain(|k, _| !["line", "place", "claims", "set"].contains(&k.as_str()));
                fields.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let mut plan = plan.clone();
    strip(&mut plan);
    plan
}

/// Where two values differ: a few paths, not whole plans.
fn differences(a: &Value, b: &Value) -> Vec<String> {
    fn walk(a: &Value, b: &Value, at: &str, found: &mut Vec<String>) {
        match (a, b) {
            (Value::Object(x), Value::Object(y)) if x.keys().eq(y.keys()) => {
                x.iter().for_each(|(k, v)| walk(v, &y[k], &format!("{at}/{k}"), found));
            }
            (Value::Array(x), Value::Array(y)) if x.len() == y.len() => {
                x.iter().zip(y).enumerate().for_each(|(i, (v, w))| walk(v, w, &format!("{at}/{i}"), found));
            }
            _ if a != b => found.push(format!("{at}: {:.80} against {:.80}", a.to_string(), b.to_string())),
            _ => {}
        }
    }
    let mut found = Vec::new();
    walk(a, b, "", &mut found);
    found.truncate(8);
    found
}

/// `source` with the items of every layout and job in another order: reversed (0), or turned by `turn`.
fn permuted(source: &str, turn: usize) -> String {
    let checked = compile::clean(source);
    let module = checked.program.module(checked.program.roots[0]);
    let mut edits: Vec<(Span, Vec<String>)> = Vec::new();
    for entry in &module.ast.entries {
        let Entry::Decl(decl) = entry else { continue };
        let Body::Block(block) = &decl.body else { continue };
        let spans: Vec<Span> = block.items.iter().map(|i| i.span).collect();
        let mut items: Vec<String> = spans.iter().map(|s| checked.sources.snippet(*s).to_owned()).collect();
        if turn == 0 {
            items.reverse();
        } else {
            let n = turn % items.len();
            items.rotate_left(n);
        }
        edits.push((spans[0].to(spans[spans.len() - 1]), items));
    }
    let mut out = source.to_owned();
    for (span, items) in edits.iter().rev() {
        out.replace_range(span.start as usize..span.end as usize, &items.join("\n"));
    }
    out
}

#[test]
fn the_order_of_items_does_not_matter() {
    for file in examples() {
        let source = text(&file);
        let expected = without_places(&plan(&source, &[]));
        for turn in [0, 1, 3] {
            let other = permuted(&source, turn);
            assert_ne!(other, source);
            let found = differences(&without_places(&plan(&other, &[])), &expected);
            assert!(found.is_empty(), "{} turned by {turn}: {found:?}\n{other}", name(&file));
        }
    }
}

#[test]
fn set_is_an_edit_of_the_file() {
    // File, what is written there, what it becomes, the same by `--set`.
    let edits = [
        ("llama3_8b.par", "tp: Int = 2", "tp: Int = 4", ("tp", 4)),
        ("llama3_8b.par", "pp: Int = 2", "pp: Int = 4", ("pp", 4)),
        ("llama3_8b.par", "batch       = 128 seq", "batch       = 256 seq", ("batch", 256)),
        ("llama3_8b.par", "micro_batch = 1 seq", "micro_batch = 2 seq", ("micro_batch", 2)),
        ("llama3_8b.par", "sequence    = 8192 tok", "sequence    = 4096 tok", ("sequence", 4096)),
        ("gpt3_175b.par", "chunks: Int = 2", "chunks: Int = 4", ("chunks", 4)),
        ("too_big.par", "pp: Int = 2", "pp: Int = 4", ("pp", 4)),
    ];
    for (file, from, to, set) in edits {
        let file = crate::files::root().join("examples").join(file);
        let source = text(&file);
        assert_eq!(source.matches(from).count(), 1, "{} has `{from}` once", name(&file));
        let by_set = without_places(&plan(&source, &[set]));
        let by_edit = without_places(&plan(&source.replace(from, to), &[]));
        let found = differences(&by_set, &by_edit);
        assert!(found.is_empty(), "{} {set:?}: {found:?}", name(&file));
        assert_ne!(by_set, without_places(&plan(&source, &[])), "{} {set:?}", name(&file));
    }
}
