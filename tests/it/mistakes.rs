//! What users write and what must be said of it: the cases of `tests/mistakes`, whose README gives the format.
//!
//! Each case runs alone in a folder of its own. The label must lie where the case says, everything it names must be
//! said, nothing else may be said, and each fix that is offered must leave a file of which nothing is said.

use crate::files::{below, text};
use crate::ui::{apply, diagnose};
use serde::Deserialize;
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// What a case says of itself.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Stated {
    id: String,
    title: String,
    command: String,
    severity: String,
    #[serde(default)]
    label: Texts,
    #[serde(default)]
    at: Places,
    must_mention: Vec<String>,
    fix: String,
    #[expect(dead_code, reason = "said to a reader; what a test can hold of it is held for every case")]
    must_not: Vec<String>,
    #[expect(dead_code, reason = "said to a reader")]
    facts: Vec<String>,
    #[expect(dead_code, reason = "said to a reader")]
    source: String,
    #[serde(default)]
    mistake: Vec<Mistake>,
}

/// One of several mistakes of a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Mistake {
    label: Texts,
    at: Places,
    must_mention: Vec<String>,
    fix: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Texts {
    One(String),
    Many(Vec<String>),
}

impl Default for Texts {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl Texts {
    fn all(&self) -> Vec<&str> {
        match self {
            Self::One(text) => vec![text],
            Self::Many(texts) => texts.iter().map(String::as_str).collect(),
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Places {
    One([usize; 2]),
    Many(Vec<[usize; 2]>),
}

impl Default for Places {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl Places {
    fn all(&self) -> Vec<[usize; 2]> {
        match self {
            Self::One(place) => vec![*place],
            Self::Many(places) => places.clone(),
        }
    }
}

/// A file to check, the files it uses, and what must be said.
struct Case {
    main: String,
    companions: Vec<(String, String)>,
    facts: Stated,
}

/// The cases of one document.
fn cases(document: &str) -> Vec<Case> {
    let (mut all, mut main, mut companions) = (Vec::new(), None, Vec::new());
    let mut lines = document.lines();
    while let Some(line) = lines.next() {
        let Some(info) = line.strip_prefix("```").filter(|i| !i.is_empty()) else { continue };
        let body: String = lines.by_ref().take_while(|l| *l != "```").flat_map(|l| [l, "\n"]).collect();
        match info.split_once(' ') {
            None if info == "par" => main = Some(body),
            None if info == "toml" => all.push(Case {
                main: main.take().expect("a file before its facts"),
                companions: std::mem::take(&mut companions),
                facts: toml::from_str(&body).unwrap_or_else(|e| panic!("{e}\n{body}")),
            }),
            Some(("par", file)) => companions.push((file.strip_prefix("file=").expect("file=NAME").to_owned(), body)),
            _ => panic!("a block of kind {info:?}"),
        }
    }
    all
}

/// Where something lies in the main file: bytes from, bytes to.
type Range = (usize, usize);

/// The place of `label`, which stands at line and column `at`, in characters from 1.
fn range(text: &str, label: &str, [line, column]: [usize; 2]) -> Range {
    let before: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
    let within = text[before..].char_indices().nth(column - 1).map_or(0, |(i, _)| i);
    let start = before + within;
    assert!(text[start..].starts_with(label), "{label:?} is not at {line}:{column}");
    (start, start + label.len())
}

/// Whether `found` points at `wanted`: they overlap, on the same lines, and `found` is not much wider.
fn points_at(text: &str, found: Range, wanted: Range) -> bool {
    let line = |at: usize| text[..at.min(text.len())].matches('\n').count();
    let overlap = if found.0 == found.1 {
        wanted.0 <= found.0 && found.0 <= wanted.1
    } else {
        found.0 < wanted.1.max(wanted.0 + 1) && wanted.0 < found.1
    };
    overlap && line(wanted.0) <= line(found.0) && line(found.1.max(found.0 + 1) - 1) <= line(wanted.1)
}

/// The labels in the main file, and whether each is the primary one.
fn labels(diagnostic: &Value) -> Vec<(Range, bool)> {
    let at = |span: &Value, end: &str| usize::try_from(span[end].as_u64().unwrap()).unwrap();
    let all = diagnostic["spans"].as_array().unwrap().iter();
    all.filter(|s| s["file"] == "main.par").map(|s| ((at(s, "start"), at(s, "end")), s["primary"] == true)).collect()
}

/// Everything said in words: message, labels, notes, help and the names of fixes; no source.
fn words(diagnostic: &Value) -> String {
    fn collect(value: &Value, out: &mut String) {
        match value {
            Value::String(text) => out.extend([text, "\n"]),
            Value::Array(all) => all.iter().for_each(|v| collect(v, out)),
            Value::Object(all) => all.iter().filter(|(k, _)| *k != "rendered").for_each(|(_, v)| collect(v, out)),
            _ => {}
        }
    }
    let mut out = String::new();
    collect(diagnostic, &mut out);
    out
}

/// Whether one of the alternatives is said; numbers with or without separators, units spaced either way.
fn mentions(said: &str, wanted: &str) -> bool {
    let plain = |text: &str| text.replace('`', "").split_whitespace().collect::<String>();
    wanted.split(" | ").any(|wanted| {
        let number = wanted.chars().next().is_some_and(|c| c.is_ascii_digit());
        if !number {
            return said.contains(wanted) || plain(said).contains(&plain(wanted));
        }
        let bare = |text: &str| plain(text).replace([',', '_'], "");
        let (said, wanted) = (said.replace(['_'], ""), bare(wanted));
        // A number is whole: no digit or point of another number on either side.
        let said: Vec<char> = {
            let chars: Vec<char> = said.chars().collect();
            let separator = |i: usize| {
                let digit = |j: Option<&char>| j.is_some_and(char::is_ascii_digit);
                chars[i] == ',' && digit(i.checked_sub(1).map(|j| &chars[j])) && digit(chars.get(i + 1))
            };
            (0..chars.len()).filter(|i| !separator(*i) && chars[*i] != '`').map(|i| chars[i]).collect()
        };
        let wanted: Vec<char> = wanted.chars().collect();
        (0..said.len()).any(|start| {
            if start > 0
                && (said[start - 1].is_ascii_digit()
                    || (said[start - 1] == '.' && start > 1 && said[start - 2].is_ascii_digit()))
            {
                return false;
            }
            let mut rest = said[start..].iter().filter(|c| !c.is_whitespace());
            let mut at = start;
            let matched = wanted.iter().all(|w| {
                let found = rest.next();
                while at < said.len() && said[at].is_whitespace() {
                    at += 1;
                }
                at += 1;
                found == Some(w)
            });
            let digit_end = wanted.last().is_some_and(char::is_ascii_digit);
            matched
                && !(digit_end
                    && (said.get(at).is_some_and(char::is_ascii_digit)
                        || (said.get(at) == Some(&'.') && said.get(at + 1).is_some_and(char::is_ascii_digit))))
        })
    })
}

/// The main file after each of the listed fixes, `old` => `new` with ` & ` between edits and ` | ` between fixes.
fn after_fixes(text: &str, fixes: &str) -> Vec<String> {
    let unescape = |t: &str| t.replace("\\n", "\n");
    let Some(fixes) = fixes.strip_prefix('`').and_then(|f| f.strip_suffix('`')) else { return Vec::new() };
    let after = |fix: &str| {
        fix.split("` & `").fold(text.to_owned(), |text, edit| {
            let (old, new) = edit.split_once("` => `").expect("`old` => `new`");
            text.replacen(&unescape(old), &unescape(new), 1)
        })
    };
    fixes.split("` | `").map(after).collect()
}

/// What is wrong with what was said of `case`, empty if nothing.
fn judge(case: &Case) -> String {
    let facts = &case.facts;
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in &case.companions {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let said = |main: &str| -> Vec<Value> {
        fs::write(folder.path().join("main.par"), main).unwrap();
        diagnose(folder.path(), "main.par", &facts.command)
    };
    let found = said(&case.main);
    let mut wrong = String::new();
    let listed = if facts.severity == "none" {
        Vec::new()
    } else if facts.mistake.is_empty() {
        vec![(&facts.label, &facts.at, &facts.must_mention, facts.fix.as_str())]
    } else {
        facts.mistake.iter().map(|m| (&m.label, &m.at, &m.must_mention, m.fix.as_str())).collect()
    };
    if found.len() != listed.len() {
        let _ = writeln!(wrong, "  {} mistakes, {} diagnostics", listed.len(), found.len());
    }
    let mut left: Vec<&Value> = found.iter().collect();
    for (label, at, must_mention, fix) in listed {
        let wanted: Vec<Range> =
            label.all().iter().zip(at.all()).map(|(label, at)| range(&case.main, label, at)).collect();
        let primary = |d: &Value| {
            let at = |place: Range| wanted.iter().any(|w| points_at(&case.main, place, *w));
            labels(d).into_iter().any(|(place, primary)| primary && at(place))
        };
        let Some(index) = left.iter().position(|d| primary(d)) else {
            let _ = writeln!(wrong, "  nothing is said at {:?}", label.all());
            continue;
        };
        let diagnostic = left.remove(index);
        for place in &wanted {
            if !labels(diagnostic).iter().any(|(l, _)| points_at(&case.main, *l, *place)) {
                let _ = writeln!(wrong, "  no label at {:?}", &case.main[place.0..place.1]);
            }
        }
        if diagnostic["severity"] != facts.severity {
            let _ = writeln!(wrong, "  {} instead of {}", diagnostic["severity"], facts.severity);
        }
        let said_words = words(diagnostic);
        for mention in must_mention.iter().filter(|m| !mentions(&said_words, m)) {
            let _ = writeln!(wrong, "  not mentioned: {mention:?}");
        }
        let none = Vec::new();
        let fixes = diagnostic["fixes"].as_array().unwrap_or(&none);
        if !fix.is_empty() && fixes.is_empty() {
            let _ = writeln!(wrong, "  no fix is offered; wanted {fix}");
        }
        // Of one mistake among several, only itself can be removed by its fix.
        let still = |d: &Value| facts.mistake.is_empty() || d["message"] == diagnostic["message"];
        for fixed in after_fixes(&case.main, fix) {
            for d in said(&fixed).iter().filter(|d| still(d)) {
                let _ = writeln!(wrong, "  after a listed fix: {}", d["rendered"].as_str().unwrap());
            }
        }
        for offered in fixes.iter().filter(|f| f["applicability"] != "placeholder") {
            let fixed = apply(&case.main, "main.par", offered);
            for d in said(&fixed).iter().filter(|d| still(d)) {
                let _ = writeln!(wrong, "  after {}: {}", offered["title"], d["rendered"].as_str().unwrap());
            }
        }
    }
    for extra in left {
        let _ = writeln!(wrong, "  besides: {}", extra["message"]);
    }
    if !wrong.is_empty() {
        let rendered = found.iter().fold(String::new(), |all, d| all + d["rendered"].as_str().unwrap() + "\n");
        wrong = format!("{} ({}, `{}`)\n{wrong}{rendered}", facts.id, facts.title, facts.command);
    }
    wrong
}

/// The cases not yet held, one id a line: they must not pass unnoticed.
fn pending() -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mistakes/pending.txt");
    fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

fn group(number: &str) {
    let document = below("tests/mistakes", &["md"])
        .into_iter()
        .find(|p| p.file_name().unwrap().to_str().unwrap().starts_with(number))
        .expect("a document of the group");
    let (mut failures, mut passed, pending) = (String::new(), Vec::new(), pending());
    let all = cases(&text(&document));
    assert!(!all.is_empty());
    for case in &all {
        let (wrong, waits) = (judge(case), pending.contains(&case.facts.id));
        if wrong.is_empty() {
            passed.push(case.facts.id.as_str());
        }
        if wrong.is_empty() && waits {
            let _ = writeln!(failures, "{}: holds now; take it off tests/mistakes/pending.txt", case.facts.id);
        } else if !waits || std::env::var_os("PARC_PENDING").is_some() {
            failures += &wrong;
        }
    }
    assert!(failures.is_empty(), "{} of {} hold\n{failures}", passed.len(), all.len());
}

macro_rules! groups {
    ($($name:ident: $number:literal),* $(,)?) => {
        $(#[test] fn $name() { group($number); })*

        #[test]
        fn every_document_has_a_test() {
            let documents = below("tests/mistakes", &["md"]).len() - 1;
            assert_eq!(documents, [$($number),*].len(), "and one README");
        }
    };
}

groups! {
    syntax: "01", units: "02", names: "03", dimensions: "04", selectors: "05", clusters: "06", meshes: "07",
    sharding: "08", batch: "09", pipelines: "10", schedules: "11", recompute: "12", memory: "13", holes: "14",
    numerics: "15", cost: "16", tables: "17", jobs: "18", targets: "19", modules: "20", several: "21", right: "22",
}
