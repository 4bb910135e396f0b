//! Laws of the check: in which order declarations and fields stand, and how they are named, changes nothing but places
//! and names.

use crate::files::{below, text};
use parc::diagnostics::{Code, Sink};
use parc::driver;
use parc::resolve::RootFile;
use parc::source::{MemoryWorld, Sources};
use parc::syntax::{
    self,
    ast::{Body, Entry, File, Kind},
};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The codes of what is said of `text`, without places.
fn codes(text: &str) -> Vec<Code> {
    let world = MemoryWorld::new([("main.par", text)]);
    let (mut sources, mut sink) = (Sources::new(), Sink::new());
    driver::front(
        &mut sources,
        &world,
        &[RootFile { shown: "main.par".into(), path: PathBuf::from("main.par") }],
        &mut sink,
    );
    let mut all: Vec<Code> = sink.finish().into_iter().map(|d| d.code).collect();
    all.sort();
    all
}

/// Files that need no other, with their trees, if their syntax is right.
fn files() -> Vec<(String, File)> {
    let all = ["examples", "tests/specs", "tests/ui"].iter().flat_map(|f| below(f, &["par"]));
    let parsed = all.map(|path| text(&path)).filter(|t| !t.contains("use \"")).map(|text| {
        let (mut sources, mut sink) = (Sources::new(), Sink::new());
        let id = sources.add("main.par", text.clone(), false);
        let tree = syntax::parse(&sources, id, &mut sink);
        (!sink.has_errors()).then_some((text, tree))
    });
    parsed.flatten().collect()
}

fn span(entry: &Entry) -> std::ops::Range<usize> {
    let s = match entry {
        Entry::Use(u) => u.span,
        Entry::Decl(d) => d.span,
        Entry::Let(l) => l.span,
    };
    s.start as usize..s.end as usize
}

/// The file with its declarations in another order, and the fields of those whose fields have none.
fn shuffled(text: &str, tree: &File, order: &[usize]) -> String {
    let mut next = order.iter().copied().cycle();
    let mut pick = |n: usize| next.next().unwrap_or(0) % n.max(1);
    let mut out = tree.edition.map_or(String::new(), |(n, _)| format!("edition {n}\n"));
    let (uses, mut rest): (Vec<&Entry>, Vec<&Entry>) = tree.entries.iter().partition(|e| matches!(e, Entry::Use(_)));
    for u in &uses {
        out.extend([&text[span(u)], "\n"]);
    }
    while !rest.is_empty() {
        let entry = rest.swap_remove(pick(rest.len()));
        match entry {
            Entry::Decl(d) if matches!(d.kind, Kind::Device | Kind::Host | Kind::Link | Kind::Train) => {
                if let Body::Block(block) = &d.body
                    && let Some(at) = block.span
                {
                    out.push_str(&text[d.span.start as usize..=at.start as usize]);
                    let mut items: Vec<_> = block.items.iter().collect();
                    while !items.is_empty() {
                        let item = items.swap_remove(pick(items.len()));
                        out.extend(["\n  ", &text[item.span.start as usize..item.span.end as usize]]);
                    }
                    out.push_str("\n}\n");
                    continue;
                }
                out.extend([&text[span(entry)], "\n"]);
            }
            other => out.extend([&text[span(other)], "\n"]),
        }
    }
    out
}

/// Where a comment or a string begins in a line.
fn unread(line: &str) -> Option<usize> {
    [line.find('"'), line.find("//")].into_iter().flatten().min()
}

/// Words of `text` outside comments and strings: bytes from and to.
fn words(text: &str) -> Vec<std::ops::Range<usize>> {
    let mut out = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let code = unread(line).unwrap_or(line.len());
        let mut start = None;
        for (i, c) in line[..code].char_indices().chain([(code, ' ')]) {
            let inside = c.is_ascii_alphanumeric() || c == '_';
            match (start, inside) {
                (None, true) => start = Some(i),
                (Some(s), false) => {
                    out.push(at + s..at + i);
                    start = None;
                }
                _ => {}
            }
        }
        at += line.len();
    }
    out
}

/// The file with the declared name `name` called otherwise; `None` where the word is also something else.
fn renamed(text: &str, name: &str) -> Option<String> {
    if text.lines().any(|l| unread(l).is_some_and(|at| l[at..].contains(name))) {
        return None;
    }
    let mut out = text.to_owned();
    let mut declared = 0;
    for w in words(text).into_iter().rev().filter(|w| &text[w.clone()] == name) {
        let before = text[..w.start].trim_end();
        let after = text[w.end..].trim_start();
        if before.ends_with(['.', ':']) {
            return None;
        }
        let field = after.starts_with('=') && !after.starts_with("==") || after.starts_with("in ");
        let declares = ["let", "layout", "model", "train", "device", "link", "host", "cluster", "fn", "block"]
            .iter()
            .any(|k| before.ends_with(k));
        if field && !declares {
            return None;
        }
        declared += usize::from(declares);
        out.insert_str(w.end, "_q7");
    }
    (declared == 1).then_some(out)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn order_does_not_matter(file in any::<prop::sample::Index>(), order in prop::collection::vec(0usize..97, 1..30)) {
        let files = files();
        let (text, tree) = &files[file.index(files.len())];
        let after = shuffled(text, tree, &order);
        prop_assert_eq!(codes(text), codes(&after), "{}", after);
    }

    #[test]
    fn names_do_not_matter(file in any::<prop::sample::Index>(), which in any::<prop::sample::Index>()) {
        let files = files();
        let (text, tree) = &files[file.index(files.len())];
        let names: BTreeSet<_> = tree.entries.iter().filter_map(|e| match e {
            Entry::Decl(d) => Some(d.name.text.clone()),
            Entry::Let(l) => Some(l.name.text.clone()),
            Entry::Use(_) => None,
        }).collect();
        prop_assume!(!names.is_empty());
        let name = names.iter().nth(which.index(names.len())).unwrap();
        if let Some(after) = renamed(text, name) {
            prop_assert_eq!(codes(text), codes(&after), "`{}` renamed in\n{}", name, text);
        }
    }
}
