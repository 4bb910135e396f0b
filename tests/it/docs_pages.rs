//! `parc doc`: pages of the whole library and of a file; nothing in them is the user's markup, and no link is dead.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn doc(folder: &Path, args: &[&str]) -> Output {
    let mut parc = Command::new(env!("CARGO_BIN_EXE_parc"));
    parc.current_dir(folder).env("NO_COLOR", "1").arg("doc").args(args).output().unwrap()
}

/// Every file of `folder`, sorted, with its text.
fn pages(folder: &Path, extension: &str) -> Vec<(String, String)> {
    let all = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    let wanted = all.filter(|p| p.extension().is_some_and(|e| e == extension));
    let mut found: Vec<_> = wanted
        .map(|p| (p.file_name().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(&p).unwrap()))
        .collect();
    found.sort();
    found
}

/// What stands between `open` and `close`, each time.
fn between<'a>(text: &'a str, open: &'a str, close: char) -> impl Iterator<Item = &'a str> {
    text.split(open).skip(1).filter_map(move |t| t.split(close).next())
}

#[test]
fn the_library_has_pages_without_dead_links() {
    let folder = tempfile::tempdir().unwrap();
    let run = doc(folder.path(), &["--html", "out"]);
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let all = pages(&folder.path().join("out"), "html");
    let mut places: BTreeSet<String> = BTreeSet::new();
    for (page, text) in &all {
        places.insert(page.clone());
        places.extend(between(text, "<section id=\"", '"').map(|id| format!("{page}#{id}")));
    }
    let mut dead = String::new();
    let mut links = 0;
    for (page, text) in &all {
        for link in between(text, "href=\"", '"').filter(|l| !l.starts_with("https://arxiv.org/abs/")) {
            links += 1;
            let whole = if link.starts_with('#') { format!("{page}{link}") } else { link.to_owned() };
            if !places.contains(&whole) {
                let _ = writeln!(dead, "{page}: {link}");
            }
        }
        // Self-contained: no script, and nothing that a browser would fetch.
        for fetched in ["<script", "<link", "<img", "src=", "url(", "@import"] {
            assert!(!text.contains(fetched), "{page}: {fetched}");
        }
    }
    assert!(dead.is_empty(), "dead links:\n{dead}");
    assert!(links > 500, "{links} links");
    let device =
        all.iter().find(|(_, text)| text.contains("<section id=\"H100_SXM\">")).expect("a page has the device");
    assert!(device.1.contains("memory bandwidth"), "fields have a meaning");
}

#[test]
fn a_users_file_cannot_write_markup() {
    let folder = tempfile::tempdir().unwrap();
    let text = "edition 1\n//! <script>alert(1)</script> & \"quotes\"\n\n/// </pre><img src=x onerror='1'> `a<b` | # [x](javascript:1)\n\
                ///\n///   <b>indented</b>\n///   ```\nfn f(n: Int = 3) -> String = \"<i>`|</i>\" // <u>\n";
    fs::write(folder.path().join("mine.par"), text).unwrap();
    for (kind, flag) in [("html", "--html"), ("md", "--markdown")] {
        let run = doc(folder.path(), &["mine.par", flag, kind]);
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        for (page, text) in pages(&folder.path().join(kind), kind) {
            if kind == "html" {
                for tag in ["<script", "<img", "<b>", "<i>", "<u>", "</pre><"] {
                    let own = text.matches("</pre></details>").count();
                    let found = text.matches(tag).count() - if tag == "</pre><" { own } else { 0 };
                    assert_eq!(found, 0, "{page}: {tag}\n{text}");
                }
            } else if page == "mine.md" {
                assert!(text.contains("\\<script\\>") && text.contains("\\[x\\]"), "{text}");
                assert!(text.contains("\n````par\n"), "a fence longer than the one inside it\n{text}");
            }
        }
    }
}

#[test]
fn parts_of_the_library_are_named_by_their_paths() {
    let folder = tempfile::tempdir().unwrap();
    let text = |args: &[&str]| String::from_utf8(doc(folder.path(), args).stdout).unwrap();
    let one = text(&["std::hardware::H100_SXM"]);
    assert!(one.starts_with("# std/hardware/") && one.contains("\n## H100\\_SXM\n"), "{one}");
    assert_eq!(one.matches("\n## ").count(), 1);
    assert!(text(&["std::schedules"]).contains("fn order(s: Int) -> List<Op>"));
    assert_eq!(text(&[]), text(&["std"]), "the same each time");
    let none = doc(folder.path(), &["std::hardware::H1000"]);
    assert_eq!(none.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&none.stderr).contains("the library has no `std::hardware::H1000`"));
}

#[test]
fn a_wrong_file_is_not_documented() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("mine.par"), "edition 1\nlet a = 1 GB + 1 s\n").unwrap();
    let run = doc(folder.path(), &["mine.par", "--html", "out"]);
    assert_eq!(run.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&run.stderr).contains("E0302") && !folder.path().join("out").exists());
}
