//! The front end: every example parses, every mistake is said once and where it is.

use parc::diagnostics::{Code, Diagnostic, Fix, Sink};
use parc::source::{FileId, Sources};
use parc::syntax::{ast, dump, parse};
use std::fmt::Write as _;
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

/// Every diagnostic as text: code, place, what is labelled, message; then labels, notes, help and fixes.
fn said(text: &str) -> String {
    let (_, list, sources) = read(text);
    let mut out = String::new();
    let place = |span| {
        let (line, column) = sources.line_col(span);
        format!("{line}:{column} `{}`", sources.snippet(span).escape_debug())
    };
    for d in &list {
        let _ = writeln!(out, "{} {} {}", d.code, place(d.primary.span), d.message);
        let _ = writeln!(out, "  here: {}", d.primary.text);
        d.secondary.iter().for_each(|l| writeln!(out, "  also: {} {}", place(l.span), l.text).unwrap());
        d.notes.iter().for_each(|n| writeln!(out, "  note: {n}").unwrap());
        d.help.iter().for_each(|h| writeln!(out, "  help: {h}").unwrap());
        for f in &d.fixes {
            let _ = writeln!(out, "  fix: {}", f.title);
            f.edits.iter().for_each(|e| {
                writeln!(out, "    {} => `{}`", place(e.span), e.text.escape_debug()).unwrap();
            });
        }
    }
    out
}

/// `text` after one fix.
fn apply(text: &str, fix: &Fix) -> String {
    let mut edits = fix.edits.clone();
    edits.sort_by_key(|e| std::cmp::Reverse(e.span));
    let mut out = text.to_owned();
    for e in edits {
        out.replace_range(e.span.start as usize..e.span.end as usize, &e.text);
    }
    out
}

/// The `.par` files of a folder under `tests/`, in order.
fn fixtures(folder: &str) -> Vec<(PathBuf, String)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let entries = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path());
    let mut paths: Vec<_> = entries.filter(|p| p.extension().is_some_and(|e| e == "par")).collect();
    paths.sort();
    paths.into_iter().map(|p| (p.clone(), std::fs::read_to_string(p).unwrap())).collect()
}

/// Compares with the file beside `path`; writes it where `PARC_BLESS` is set.
fn golden(path: &Path, extension: &str, actual: &str) {
    let golden = path.with_extension(extension);
    if std::env::var_os("PARC_BLESS").is_some() {
        std::fs::write(golden, actual).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&golden).unwrap_or_default();
    assert_eq!(actual, expected, "{} (PARC_BLESS=1 rewrites it)", golden.display());
}

fn specs() -> Vec<(PathBuf, String)> {
    let mut files = fixtures("specs");
    files.extend(fixtures("specs/std"));
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

#[test]
fn trees() {
    for (path, text) in fixtures("syntax/trees") {
        assert_eq!(said(&text), "", "{}", path.display());
        golden(&path, "tree", &dump::dump(&read(&text).0));
    }
}

#[test]
fn mistakes() {
    for (path, text) in fixtures("syntax/mistakes") {
        let (tree, list, _) = read(&text);
        assert_ne!(list, [], "{}", path.display());
        golden(&path, "said", &format!("{}\n{}", said(&text), dump::dump(&tree)));
    }
}

/// A fix removes its error and adds none.
#[test]
fn every_fix_removes_its_error_and_adds_none() {
    let mut tried = 0;
    for (path, text) in fixtures("syntax/mistakes") {
        let (_, before, _) = read(&text);
        for d in &before {
            for fix in &d.fixes {
                let after = read(&apply(&text, fix)).1;
                let left: Vec<_> = after.iter().map(|d| &d.message).collect();
                assert_eq!(after.len() + 1, before.len(), "{}: {}: {left:#?}", path.display(), fix.title);
                tried += 1;
            }
        }
    }
    assert!(tried > 30, "{tried}");
}

/// Where a mistake is, in the files written down with it: the exact text of the label, and nothing else is said.
#[test]
fn labels_of_known_mistakes() {
    let cases = [
        ("unclosed-layout", Code::SyntaxUnclosed, (6, 47), "{"),
        ("colon", Code::SyntaxForeign, (21, 14), ":"),
        ("hash-comment", Code::SyntaxForeign, (6, 1), "#"),
        ("semicolon", Code::SyntaxForeign, (8, 18), ";"),
        ("call-on-next-line", Code::SyntaxUnexpected, (18, 5), "("),
        ("thousands", Code::SyntaxNumber, (19, 11), "2,048 seq"),
        ("block-comment", Code::SyntaxForeign, (6, 1), "/*"),
        ("open-string", Code::SyntaxString, (24, 31), "\"tensor parallelism stays in the node"),
        ("for-loop", Code::SyntaxForeign, (8, 3), "for"),
        ("dotted-path", Code::SyntaxForeign, (2, 8), "."),
        ("reserved-axis", Code::SyntaxReserved, (7, 19), "model"),
        ("one-slip-among-others", Code::SyntaxForeign, (9, 53), ":"),
    ];
    let files = fixtures("syntax/mistakes");
    for (name, code, at, label) in cases {
        let (_, text) = files.iter().find(|(p, _)| p.file_stem().unwrap() == name).unwrap();
        let (_, list, sources) = read(text);
        assert_eq!(list.len(), 1, "{name}: {}", said(text));
        assert_eq!(list[0].code, code, "{name}");
        assert_eq!(sources.snippet(list[0].primary.span), label, "{name}");
        assert_eq!(sources.line_col(list[0].primary.span), at, "{name}");
    }
}

/// Everything a diagnostic points at is in the text, on whole characters, and edits do not meet.
fn well_formed(text: &str) {
    let (_, list, _) = read(text);
    assert!(list.len() <= 100);
    for d in &list {
        let spans = d.secondary.iter().map(|l| l.span).chain([d.primary.span]);
        for s in spans.chain(d.fixes.iter().flat_map(|f| f.edits.iter().map(|e| e.span))) {
            assert!(text.get(s.start as usize..s.end as usize).is_some(), "{s:?} in {text:?}: {}", d.message);
        }
        for f in &d.fixes {
            let mut edits: Vec<_> = f.edits.iter().map(|e| e.span).collect();
            edits.sort();
            assert!(edits.windows(2).all(|w| w[0].end <= w[1].start && w[0] != w[1]), "{} in {text:?}", d.message);
        }
        assert!(!d.message.is_empty() && !d.message.ends_with('.') && !d.message.contains('\n'));
    }
}

/// Small numbers from a fixed seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n.max(1) as u64) as usize
    }
}

#[test]
fn mutated_examples_are_read() {
    const PIECES: [&str; 34] = [
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        ",",
        ";",
        ":",
        "=",
        "==",
        ".",
        "..",
        "::",
        "**",
        "for i in 0..n {",
        "\"",
        "'",
        "#",
        "/*",
        "*/",
        "é",
        "≤",
        "\u{feff}",
        "\r\n",
        "\n",
        "layout X {",
        "in",
        "model",
        "9e999",
        "$2/h",
        "2,048",
        "\\",
        "if a {",
    ];
    let specs = specs();
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    for _ in 0..1500 {
        let text = &specs[dice.below(specs.len())].1;
        // A piece of a file, so that a case is quick.
        let chars: Vec<char> = text.chars().collect();
        let from = dice.below(chars.len());
        let mut piece: Vec<char> = chars[from..].iter().copied().take(50 + dice.below(600)).collect();
        for _ in 0..=dice.below(4) {
            let at = dice.below(piece.len());
            match dice.below(3) {
                0 => drop(piece.drain(at.min(piece.len())..(at + 1 + dice.below(6)).min(piece.len()))),
                1 => drop(piece.splice(at..at, PIECES[dice.below(PIECES.len())].chars())),
                _ => piece.truncate(at.max(1)),
            }
        }
        well_formed(&piece.into_iter().collect::<String>());
    }
}

#[test]
fn arbitrary_text_is_read() {
    let mut dice = Dice(42);
    for _ in 0..1500 {
        let len = dice.below(200);
        let bytes: Vec<u8> =
            (0..len).map(|_| if dice.below(4) == 0 { dice.below(256) } else { 32 + dice.below(95) } as u8).collect();
        well_formed(&String::from_utf8_lossy(&bytes));
    }
}

/// One mistake in an example is one diagnostic, wherever a value is missing.
#[test]
fn a_missing_value_is_one_diagnostic() {
    let mut tried = 0;
    for (path, text) in specs() {
        for (line, content) in text.lines().enumerate() {
            // `field = value` on a line of its own.
            let Some((field, value)) = content.split_once(" = ") else { continue };
            if field.split_whitespace().count() != 1 || value.contains(['{', '[', ',']) || value.ends_with('(') {
                continue;
            }
            let broken: Vec<_> = text
                .lines()
                .enumerate()
                .map(|(i, l)| if i == line { format!("{field} =") } else { l.to_owned() })
                .collect();
            let (tree, list, sources) = read(&broken.join("\n"));
            let places: Vec<_> = list.iter().map(|d| (sources.line_col(d.primary.span).0, &d.message)).collect();
            assert_eq!(places.len(), 1, "{}:{}: {places:?}", path.display(), line + 1);
            assert_eq!(places[0].0, line + 1, "{}: {places:?}", path.display());
            assert!(
                dump::dump(&tree).contains(&format!("{} = ERROR", field.trim())),
                "{}:{}",
                path.display(),
                line + 1
            );
            tried += 1;
        }
    }
    assert!(tried > 150, "{tried}");
}

#[test]
fn nesting_has_a_limit_and_depth_never_overflows() {
    let n = 20_000;
    let deep = [
        format!("let a = {}1", "-".repeat(n)),
        format!("let a = {}b", "not ".repeat(n)),
        format!("let a = {}b", "b ^ ".repeat(n)),
        format!("let a = {}b", "b + ".repeat(n)),
        format!("let a = {}d", "if b then c else ".repeat(n)),
        format!("let a = b{}", ".c".repeat(n)),
        format!("let a = b{}", "()".repeat(n)),
        format!("let a = b{}", " with {}".repeat(n)),
        format!("let a = {}1{}", "(".repeat(n), ")".repeat(n)),
        format!("let a = {}1{}", "[".repeat(n), "]".repeat(n)),
        format!("let a = {}", "{".repeat(n)),
        format!("let a = {}", "(".repeat(n)),
        format!("model M {{ {}", "region a { ".repeat(n)),
        format!("fn f(a: {}Int{}) -> Int = 1", "List<".repeat(n), ">".repeat(n)),
    ];
    for text in deep {
        let said: Vec<_> = read(&text).1.iter().map(|d| d.code).collect();
        assert!(said.contains(&Code::LimitExceeded), "{text:.60} {said:?}");
        assert!(said.len() <= 2, "{text:.60} {said:?}");
    }
    // Here each `}` is a mistake of its own, up to the limit on reports.
    assert_eq!(read(&format!("let a = {}", "( } ".repeat(n))).1.len(), 100);
    // What is just within the limit is read.
    let (_, list, _) = read(&format!("let a = {}1{}", "(".repeat(250), ")".repeat(250)));
    assert_eq!(list, []);
}

#[test]
fn size_has_a_limit() {
    let braces = "{".repeat(10 << 20);
    let list = read(&braces).1;
    assert_eq!(list.iter().map(|d| d.code).collect::<Vec<_>>(), [Code::LimitExceeded]);
    let tokens = "a ".repeat(4_100_000);
    let list = read(&tokens).1;
    assert_eq!(list.iter().map(|d| d.code).collect::<Vec<_>>(), [Code::LimitExceeded]);
    let list = read(&" ".repeat((16 << 20) + 1)).1;
    assert_eq!(list.iter().map(|d| d.code).collect::<Vec<_>>(), [Code::LimitExceeded]);
}

#[test]
fn what_is_not_text_is_one_diagnostic() {
    let list = read("\u{7f}ELF\u{2}\u{1}\u{0}\u{0}let a = 1").1;
    assert_eq!(list.iter().map(|d| d.code).collect::<Vec<_>>(), [Code::FileNotText]);
}
