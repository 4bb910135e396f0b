//! What the documents show is what the compiler does: every fenced block of `README.md` and `docs/*.md` whose fence says
//! one of these.
//!
//! - `par`: a file that checks without a message. `edition 1` is put before it where it is left out.
//! - `par layout`, `par job`, `par model`: items of such a declaration; [`whole`] puts the rest around them.
//! - `par error=E0302`: this code and no other, whatever it is wrapped in. `par warning=W0602` likewise.
//! - `par value`: the value behind `// = ` on a line `let NAME = …` is what `parc show NAME` says.
//! - `collectives`: what the `par` block before it moves, of the units and phases that the block names.
//! - `par later`: checks clean, or says no more than that this version does not go further (`E0990`).
//! - `par file=NAME`: also written to NAME, in a folder that the document's later blocks share.
//! - `console`: a line `$ COMMAND`, run in that folder (where `examples` is the repository's), and what it prints.
//!
//! `PARC_BLESS=1` rewrites `console` and `collectives` blocks.

use crate::files::{below, name, root, text};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A fenced block of a document.
struct Fence {
    /// What stands behind the three backticks.
    words: Vec<String>,
    text: String,
    /// The document's line with the opening fence, from 0.
    line: usize,
}

fn documents() -> Vec<PathBuf> {
    std::iter::once(root().join("README.md")).chain(below("docs", &["md"])).collect()
}

fn fences(text: &str) -> Vec<Fence> {
    let mut found: Vec<Fence> = Vec::new();
    let mut open = false;
    for (line, content) in text.lines().enumerate() {
        match (open, content.strip_prefix("```")) {
            (false, Some(words)) => {
                let words = words.split_whitespace().map(str::to_owned).collect();
                found.push(Fence { words, text: String::new(), line });
                open = true;
            }
            (true, Some(_)) => open = false,
            (true, None) => {
                let fence = found.last_mut().expect("a block is open");
                fence.text.push_str(content);
                fence.text.push('\n');
            }
            (false, None) => {}
        }
    }
    assert!(!open, "a fence is not closed");
    found
}

/// The file that a block of items stands in: Llama 3 8B on 32 devices, three axes.
fn whole(words: &[String], text: &str) -> String {
    let is = |word: &str| words.iter().any(|w| w == word);
    let job = |fields: &str| {
        format!(
            "train run {{\n  model = Llama3_8B, cluster = DGX_H100(nodes = 4), layout = Mine\n  sequence = 8192 tok\n{fields}}}\n"
        )
    };
    let mesh = "  mesh [pp = 2, dp = 4, tp = 4]\n";
    let rules = "  shard B over dp\n  shard [N, K, F, V] over tp else S\n";
    let body = if is("layout") {
        let mesh = if text.contains("mesh [") { "" } else { mesh };
        let rules = if text.contains("shard ") { "" } else { rules };
        let pipeline = if text.contains("pipeline ") || mesh.is_empty() { "" } else { "  pipeline over pp\n" };
        format!("layout Mine {{\n{mesh}{rules}{pipeline}{text}}}\n{}", job("  batch = 64 seq\n"))
    } else if is("job") {
        let batch =
            if text.lines().any(|l| l.trim_start().starts_with("batch = ")) { "" } else { "  batch = 64 seq\n" };
        let layout = format!("layout Mine {{\n{mesh}{rules}  pipeline over pp\n}}\n");
        format!("{layout}{}", job(&format!("{batch}{text}")))
    } else if is("model") {
        format!(
            "model Shown {{\n{text}}}\nlayout Mine {{\n  mesh [dp = devices]\n  shard B over dp\n}}\n{}",
            job("  batch = 64 seq\n").replace("Llama3_8B", "Shown")
        )
    } else {
        text.to_owned()
    };
    if body.starts_with("edition ") { body } else { format!("edition 1\n{body}") }
}

/// The codes that `parc check` gives for `text`, sorted, each once; and what it says.
fn codes(text: &str, folder: &Path) -> (Vec<String>, String) {
    let file = folder.join("block.par");
    fs::write(&file, text).unwrap();
    let run = parc(folder).args(["check", "block.par", "--message-format", "short"]).output().unwrap();
    let said = String::from_utf8(run.stderr).unwrap();
    fs::remove_file(&file).unwrap();
    let code = |line: &str| Some(line.split_once('[')?.1.split_once(']')?.0.to_owned());
    let mut codes: Vec<String> = said.lines().filter_map(code).collect();
    codes.sort();
    codes.dedup();
    (codes, said)
}

fn parc(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_parc"));
    quiet(&mut command, folder);
    command
}

/// A fixed environment: nothing of the user's reaches the output.
fn quiet(command: &mut Command, folder: &Path) {
    let bin = Path::new(env!("CARGO_BIN_EXE_parc")).parent().unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    command.current_dir(folder).env_clear().env("PATH", format!("{}:{path}", bin.display())).env("NO_COLOR", "1");
}

/// What `line` prints, errors after results.
fn shell(line: &str, folder: &Path) -> String {
    let mut sh = Command::new("sh");
    quiet(&mut sh, folder);
    let run = sh.args(["-c", line]).output().unwrap();
    let both = [run.stdout, run.stderr].concat();
    let text = String::from_utf8(both).expect("output is UTF-8");
    text.trim_end().lines().fold(String::new(), |all, line| all + line.trim_end() + "\n")
}

/// `text` without the library's fingerprint, which every change of the library changes.
fn unversioned(text: &str) -> String {
    let mut parts = text.split(", std ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| all + ", std …" + part.trim_start_matches(|c: char| c.is_ascii_hexdigit()))
}

/// A folder with the repository's examples.
fn scratch() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let examples = folder.path().join("examples");
    fs::create_dir(&examples).unwrap();
    for file in below("examples", &["par"]) {
        fs::copy(&file, examples.join(file.file_name().unwrap())).unwrap();
    }
    folder
}

#[test]
fn par_blocks_say_what_they_should() {
    let mut wrong = String::new();
    let mut blocks = 0;
    for document in documents() {
        let folder = scratch();
        for fence in fences(&text(&document)) {
            if fence.words.first().is_none_or(|w| w != "par") {
                continue;
            }
            blocks += 1;
            if let Some(file) = fence.words.iter().find_map(|w| w.strip_prefix("file=")) {
                fs::write(folder.path().join(file), &fence.text).unwrap();
            }
            let named = |key: &str| fence.words.iter().find_map(|w| w.strip_prefix(key)).map(str::to_owned);
            let expected: Vec<String> = named("error=").or_else(|| named("warning=")).into_iter().collect();
            let (mut found, said) = codes(&whole(&fence.words, &fence.text), folder.path());
            if fence.words.iter().any(|w| w == "later") {
                found.retain(|code| code != "E0990");
            }
            if found != expected {
                let _ = writeln!(wrong, "{}:{}: {expected:?} expected\n{said}", name(&document), fence.line + 1);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(blocks > 0, "no document has a block");
}

/// The places of a document that a link may name, as GitHub forms them from headings.
fn anchors(text: &str) -> Vec<String> {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    let anchor =
        |heading: &str| heading.trim().to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-");
    text.lines().filter(|l| l.starts_with('#')).map(|l| anchor(l.trim_start_matches('#'))).collect()
}

#[test]
fn links_lead_somewhere() {
    let mut wrong = String::new();
    let more = ["ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|f| root().join(f));
    for document in documents().into_iter().chain(more) {
        let all = text(&document);
        let prose: Vec<&str> = all.split("```").step_by(2).collect();
        for link in prose.join("").split("](").skip(1).filter_map(|l| l.split_once(')')).map(|(link, _)| link) {
            if link.contains("://") {
                continue;
            }
            let (path, place) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() { document.clone() } else { document.parent().unwrap().join(path) };
            let found = target.exists() && (place.is_empty() || anchors(&text(&target)).iter().any(|a| a == place));
            if !found {
                let _ = writeln!(wrong, "{}: {link}", name(&document));
            }
        }
    }
    assert!(wrong.is_empty(), "links that lead nowhere:\n{wrong}");
}

/// `let NAME = …  // = VALUE`: the name and the value.
fn stated(line: &str) -> Option<(&str, &str)> {
    let name = line.strip_prefix("let ")?.split([' ', ':']).next()?;
    Some((name, line.split_once("// = ")?.1.trim()))
}

#[test]
fn values_are_what_is_stated() {
    let mut wrong = String::new();
    let mut values = 0;
    for document in documents() {
        let folder = scratch();
        for fence in fences(&text(&document)) {
            if !(fence.words.iter().any(|w| w == "par") && fence.words.iter().any(|w| w == "value")) {
                continue;
            }
            fs::write(folder.path().join("block.par"), whole(&fence.words, &fence.text)).unwrap();
            let before = values;
            for (name_, value) in fence.text.lines().filter_map(stated) {
                values += 1;
                let run = parc(folder.path()).args(["show", name_, "block.par"]).output().unwrap();
                let said = String::from_utf8(run.stdout).unwrap();
                let found = said.lines().find_map(|l| l.strip_prefix("  is  "));
                if found != Some(value) {
                    let place = format!("{}:{}", name(&document), fence.line + 1);
                    let _ = writeln!(wrong, "{place}: `{name_}` is {found:?}, not {value}");
                }
            }
            assert!(values > before, "{}:{}: a value block states no value", name(&document), fence.line + 1);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(values > 20, "the documents state {values} values");
}

/// What the job of `text` moves: for each unit and phase, each collective once, with how many of it there are.
fn moves(text: &str, folder: &Path) -> Vec<(String, Vec<(String, usize)>)> {
    fs::write(folder.join("block.par"), text).unwrap();
    let run = parc(folder).args(["build", "block.par", "--emit", "graph"]).output().unwrap();
    let graph = String::from_utf8(run.stdout).unwrap();
    let steps = graph.split_once("// steps\n").unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&run.stderr))).1;
    let mut found: Vec<(String, Vec<(String, usize)>)> = Vec::new();
    let mut unit = "";
    for line in steps.lines() {
        let (indent, said) = (line.len() - line.trim_start().len(), line.trim());
        if indent == 0 {
            unit = said.split(' ').nth(1).unwrap_or_default();
        } else if indent == 2 && !said.contains(' ') {
            found.push((format!("{unit} {said}"), Vec::new()));
        } else if indent == 4
            && !said.contains(" -> ")
            && let Some((_, list)) = found.last_mut()
        {
            // Why a step is there is the compiler's own business: `(Reshard)`.
            let what = said.split(" (").next().unwrap_or(said).to_owned();
            match list.iter_mut().find(|(other, _)| *other == what) {
                Some((_, n)) => *n += 1,
                None => list.push((what, 1)),
            }
        }
    }
    found
}

/// Collectives as a block shows them, of the phases that `shown` names.
fn collectives(shown: &str, moves: &[(String, Vec<(String, usize)>)]) -> String {
    let mut out = String::new();
    for phase in shown.lines().filter(|l| !l.starts_with(' ')) {
        let _ = writeln!(out, "{phase}");
        for (what, n) in moves.iter().filter(|(p, _)| p == phase).flat_map(|(_, list)| list) {
            let times = if *n > 1 { format!("  x {n}") } else { String::new() };
            let _ = writeln!(out, "  {what}{times}");
        }
    }
    out
}

/// The line of a block, from 0, what it is of, what it shows, what it should show.
type Edit = (usize, String, String, String);

/// Compares each block with what it should show, or rewrites it.
fn hold(document: &Path, edits: Vec<Edit>, wrong: &mut String) {
    let before = text(document);
    let mut lines: Vec<String> = before.lines().map(str::to_owned).collect();
    let bless = std::env::var_os("PARC_BLESS").is_some();
    for (at, what, shown, found) in edits.into_iter().rev() {
        if unversioned(&found) == unversioned(&shown) {
            continue;
        }
        let _ = writeln!(wrong, "{}:{at}: {what} gives\n{found}", name(document));
        lines.splice(at..at + shown.lines().count(), found.lines().map(str::to_owned));
    }
    let after = lines.join("\n") + "\n";
    if bless && after != before {
        fs::write(document, after).unwrap();
        wrong.clear();
    }
}

#[test]
fn collectives_are_what_is_stated() {
    let mut wrong = String::new();
    let mut blocks = 0;
    for document in documents() {
        let folder = scratch();
        let mut program = String::new();
        let mut edits = Vec::new();
        for fence in fences(&text(&document)) {
            match fence.words.first().map(String::as_str) {
                Some("par") => program = whole(&fence.words, &fence.text),
                Some("collectives") => {
                    blocks += 1;
                    let found = collectives(&fence.text, &moves(&program, folder.path()));
                    edits.push((fence.line + 1, "the block before".to_owned(), fence.text, found));
                }
                _ => {}
            }
        }
        hold(&document, edits, &mut wrong);
    }
    assert!(wrong.is_empty(), "{wrong}\nPARC_BLESS=1 rewrites these blocks");
    assert!(blocks > 2, "the documents show {blocks} lists of collectives");
}

#[test]
fn console_blocks_show_real_output() {
    let mut wrong = String::new();
    for document in documents() {
        let folder = scratch();
        let before = text(&document);
        let mut edits = Vec::new();
        for fence in fences(&before) {
            if let Some(file) = fence.words.iter().find_map(|w| w.strip_prefix("file=")) {
                fs::write(folder.path().join(file), &fence.text).unwrap();
            }
            if fence.words.first().is_none_or(|w| w != "console") {
                continue;
            }
            let (first, shown) = fence.text.split_once('\n').expect("a console block has a command");
            let command = first.strip_prefix("$ ").expect("a console block begins with `$ `");
            edits.push((fence.line + 2, format!("`{command}`"), shown.to_owned(), shell(command, folder.path())));
        }
        hold(&document, edits, &mut wrong);
    }
    assert!(wrong.is_empty(), "{wrong}\nPARC_BLESS=1 rewrites these blocks");
}
