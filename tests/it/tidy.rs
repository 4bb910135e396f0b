//! Rules of the repository that no compiler checks. Each test lists every offender.

use crate::files::{below, name, root, text};
use parc::diagnostics::{CODES, explain};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn rust_files() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = ["src", "codegen/src", "tests"].iter().flat_map(|f| below(f, &["rs"])).collect();
    files.push(root().join("build.rs"));
    files
}

/// Every text file somebody here writes.
fn text_files() -> Vec<PathBuf> {
    let folders = ["src", "codegen", "tests", "docs", "examples", "stdlib", "grammar", "tools"];
    let kinds = ["rs", "md", "toml", "par", "stderr", "lalrpop", "sh", "snap"];
    let mut files: Vec<PathBuf> = folders.iter().flat_map(|f| below(f, &kinds)).collect();
    let top =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile", "Cargo.toml", "clippy.toml"];
    files.extend(top.iter().map(|f| root().join(f)));
    files
}

fn no_offenders(rule: &str, offenders: &[String]) {
    assert!(offenders.is_empty(), "{rule}:\n  {}", offenders.join("\n  "));
}

#[test]
fn every_file_says_what_it_is() {
    let offenders: Vec<_> = rust_files().iter().filter(|f| !text(f).starts_with("//! ")).map(|f| name(f)).collect();
    no_offenders("a Rust file opens with a `//!` line", &offenders);
}

#[test]
fn no_file_is_too_long() {
    let offenders: Vec<_> = rust_files().iter().filter(|f| text(f).lines().count() > 1_000).map(|f| name(f)).collect();
    no_offenders("a file has at most 1,000 lines; divide it by family", &offenders);
    assert!(text(&root().join("ARCHITECTURE.md")).lines().count() < 200, "ARCHITECTURE.md stays under 200 lines");
}

#[test]
fn no_trailing_blanks() {
    let mut offenders = Vec::new();
    for file in text_files() {
        let text = text(&file);
        let blank = |l: &&(usize, &str)| l.1.ends_with([' ', '\t', '\r']);
        let lines: Vec<_> = text.lines().enumerate().collect();
        offenders.extend(lines.iter().filter(blank).map(|(i, _)| format!("{}:{}", name(&file), i + 1)));
        if !text.is_empty() && (!text.ends_with('\n') || text.ends_with("\n\n")) {
            offenders.push(format!("{}: ends in one line break", name(&file)));
        }
    }
    no_offenders("no blanks at line ends", &offenders);
}

#[test]
fn codes_and_pages_match() {
    let pages: BTreeSet<String> = below("src/diagnostics/explain", &["md"])
        .iter()
        .map(|p| p.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    let codes: BTreeSet<String> = CODES.iter().map(|(_, info)| info.number.to_owned()).collect();
    let names: BTreeSet<&str> = CODES.iter().map(|(_, info)| info.name).collect();
    assert_eq!((codes.len(), names.len()), (CODES.len(), CODES.len()), "a number or a name is there twice");
    let without: Vec<_> = codes.difference(&pages).cloned().collect();
    no_offenders("each code has a page in src/diagnostics/explain", &without);
    let orphans: Vec<_> = pages.difference(&codes).cloned().collect();
    no_offenders("each page has a code", &orphans);
    for (code, info) in CODES {
        assert_eq!(*code as usize, CODES.iter().position(|(c, _)| c == code).unwrap());
        assert!(explain::page(*code).starts_with(&format!("# {} {}\n", info.number, info.name)), "{code}");
    }
}

/// Where messages are worded: the `errors` of a stage, and what targets say for themselves.
fn words_messages(file: &str) -> bool {
    file.ends_with("/errors.rs") || file.contains("/errors/") || file.ends_with("/reasons.rs")
}

/// The code of `text` without its unit tests.
fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]").next().unwrap_or(text)
}

#[test]
fn messages_are_worded_in_errors_alone() {
    let of_renderers = |f: &str| f.starts_with("src/diagnostics/") || f.ends_with("_tests.rs") || f.contains("/tests/");
    let mut offenders = Vec::new();
    for file in below("src", &["rs"]) {
        let (name, text) = (name(&file), text(&file));
        if words_messages(&name) || of_renderers(&name) {
            continue;
        }
        for (at, call) in without_tests(&text).match_indices("Diagnostic::new(") {
            let first = text[at + call.len()..].trim_start();
            if first.starts_with("Code::") || first.starts_with("crate::diagnostics::Code::") {
                offenders.push(format!("{name}:{}", text[..at].lines().count()));
            }
        }
    }
    no_offenders("a message has its constructor in the `errors` of its stage", &offenders);
}

/// Constructors that tell a failure another module describes, each variant under its code.
const TRANSLATE: &[&str] = &["schedule_wrong", "split", "unreadable"];

#[test]
fn a_constructor_has_one_code() {
    let mut offenders = Vec::new();
    for file in below("src", &["rs"]).iter().filter(|f| words_messages(&name(f))) {
        let text = text(file);
        let code = without_tests(&text);
        let starts: Vec<usize> = code.match_indices("fn ").map(|(i, _)| i).collect();
        for (i, start) in starts.iter().enumerate() {
            let body = &code[*start..starts.get(i + 1).copied().unwrap_or(code.len())];
            let word = |t: &str| t.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect::<String>();
            let codes: BTreeSet<String> =
                body.match_indices("Code::").map(|(at, m)| word(&body[at + m.len()..])).collect();
            let constructor = word(&body["fn ".len()..]);
            if codes.len() > 1 && !TRANSLATE.contains(&constructor.as_str()) {
                offenders.push(format!("{}: `{constructor}` has {codes:?}", name(file)));
            }
        }
    }
    no_offenders("a constructor gives one code", &offenders);
}

#[test]
fn each_code_has_a_golden() {
    let goldens: Vec<String> = below("tests/ui", &["stderr"]).iter().map(|f| text(f)).collect();
    let shown = |number: &str| goldens.iter().any(|g| g.contains(&format!("[{number}]")));
    let without: Vec<String> = CODES.iter().map(|(_, i)| i.number).filter(|n| !shown(n)).map(str::to_owned).collect();
    no_offenders("each code is shown in a golden of tests/ui", &without);
}

#[test]
fn no_orphan_goldens() {
    let offenders: Vec<_> = below("tests/ui", &["stderr", "fixed", "json"])
        .iter()
        .filter(|golden| !golden.with_extension("par").exists())
        .map(|f| name(f))
        .collect();
    no_offenders("a golden belongs to a `.par` file beside it", &offenders);
}

/// The modules of `ARCHITECTURE.md`'s table, lowest first.
fn layers() -> Vec<String> {
    let text = text(&root().join("ARCHITECTURE.md"));
    let (_, rest) = text.split_once("<!-- layers -->").expect("ARCHITECTURE.md marks its module table");
    let (table, _) = rest.split_once("<!-- /layers -->").expect("ARCHITECTURE.md marks the end of its module table");
    let cell = |line: &str| Some(line.strip_prefix("| `")?.split_once('`')?.0.to_owned());
    table.lines().filter_map(cell).collect()
}

/// The module of the library a file belongs to: `src/emit/plan.rs` is `emit`, `src/limits.rs` is `limits`.
fn module(file: &Path) -> Option<String> {
    let path = file.strip_prefix(root().join("src")).ok()?.with_extension("");
    let first = path.components().next()?.as_os_str().to_str()?.to_owned();
    (first != "lib" && first != "main").then_some(first)
}

/// The modules that code names as `crate::module` or `crate::{module, …}`; comments aside.
fn imports(text: &str) -> BTreeSet<String> {
    let code = text.lines().filter(|l| !l.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let ident = |t: &str| t.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect::<String>();
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        if code[..at].ends_with(|c: char| c == '$' || c.is_ascii_alphanumeric() || c == '_') {
            continue;
        }
        let rest = &code[at + "crate::".len()..];
        let Some(group) = rest.strip_prefix('{') else {
            found.insert(ident(rest));
            continue;
        };
        let mut depth = 0_usize;
        let mut fresh = true;
        for (i, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => fresh = true,
                c if fresh && !c.is_whitespace() => {
                    found.insert(ident(&group[i..]));
                    fresh = false;
                }
                _ => {}
            }
        }
    }
    found
}

#[test]
fn imports_are_found() {
    let text = "use crate::a::B;\nuse crate::{\n    b::{X, Y},\n    c,\n};\n// crate::d\nlet x = crate::e::f();\n$crate::g!();\n";
    assert_eq!(imports(text).into_iter().collect::<Vec<_>>(), ["a", "b", "c", "e"]);
}

#[test]
fn lower_layers_do_not_import_higher_ones() {
    let layers = layers();
    let level = |module: &str| layers.iter().position(|l| l == module);
    let mut offenders = Vec::new();
    let mut seen = BTreeSet::new();
    for file in below("src", &["rs"]) {
        let Some(module) = module(&file) else { continue };
        let Some(own) = level(&module) else {
            offenders.push(format!("{}: `{module}` has no row in the table", name(&file)));
            continue;
        };
        for import in imports(&text(&file)) {
            // Names that are no modules are items of the crate's root.
            if level(&import).is_some_and(|other| other > own) {
                offenders.push(format!("{}: `{module}` is below `{import}`", name(&file)));
            }
        }
        seen.insert(module);
    }
    offenders.extend(layers.iter().filter(|l| !seen.contains(*l)).map(|l| format!("`{l}` is in the table only")));
    no_offenders("a module imports only modules above it in ARCHITECTURE.md's table", &offenders);
}
