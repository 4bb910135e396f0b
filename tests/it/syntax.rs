//! The front end: every example parses, every mistake is said once and where it is.

use parc::diagnostics::{Diagnostic, Sink};
use parc::source::{FileId, Sources};
use parc::syntax::{ast, dump, parse};
use std::path::{Path, PathBuf};

/// The tree of `text` and what was said of it.
fn read(text: &str) -> (ast::File, Vec<Diagnostic>, Sources) {
    let mut sources = Sources::new();
    let file = sources.add("test.par", text.to_owned(), false);
    assert_eq!(file, FileId(0));
    let mut sink = Sink::new();
    let tree = parse(&sources, file, &mut sink);
    (tree, sink.finish(), sources)
}

/// Code, place, label text and message of each diagnostic, one a line, with its fixes applied to the label's line.
fn said(text: &str) -> String {
    let (_, list, sources) = read(text);
    list.iter()
        .map(|d| {
            let (line, column) = sources.line_col(d.primary.span);
            format!("{} {line}:{column} `{}` {}\n", d.code, sources.snippet(d.primary.span), d.message)
        })
        .collect()
}

/// `text` with the first fix of every diagnostic.
fn fixed(text: &str) -> String {
    let (_, list, _) = read(text);
    let mut edits: Vec<_> = list.iter().filter_map(|d| d.fixes.first()).flat_map(|f| f.edits.clone()).collect();
    edits.sort_by_key(|e| std::cmp::Reverse(e.span));
    let mut out = text.to_owned();
    for e in edits {
        out.replace_range(e.span.start as usize..e.span.end as usize, &e.text);
    }
    out
}

/// Every example file of the repository.
fn specs() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/specs");
    let mut files = Vec::new();
    for dir in [root.clone(), root.join("std")] {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|e| e == "par") {
                files.push((path.clone(), std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    files.sort();
    files
}

#[test]
fn every_example_parses() {
    let specs = specs();
    assert_eq!(specs.len(), 22);
    for (path, text) in specs {
        let said = said(&text);
        assert_eq!(said, "", "{}", path.display());
        let (tree, _, _) = read(&text);
        assert!(tree.entries.len() > 2, "{}", path.display());
        assert!(!dump::dump(&tree).contains("ERROR"));
    }
}
