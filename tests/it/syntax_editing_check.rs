//! Half-typed lines and the check: what a line that cannot be read would have said is not missed elsewhere.

use crate::syntax_editing::{cuts, files, partners, said, with_line};
use parc::diagnostics::{Diagnostic, Sink};
use parc::driver;
use parc::resolve::RootFile;
use parc::source::{MemoryWorld, Sources};

/// What reading, resolving and checking say of a text, each with its line from 1; places elsewhere are line 0.
fn checked(text: &str) -> Vec<(usize, Diagnostic)> {
    let (mut sources, mut sink) = (Sources::new(), Sink::new());
    let world = MemoryWorld::new([("main.par", text)]);
    driver::front(&mut sources, &world, &[RootFile { shown: "main.par".into(), path: "main.par".into() }], &mut sink);
    let line = |d: &Diagnostic| if d.primary.span.file.0 == 0 { sources.line_col(d.primary.span).0 } else { 0 };
    sink.finish().into_iter().map(|d| (line(&d), d)).collect()
}

#[test]
fn a_half_typed_line_invents_nothing_in_the_check() {
    let every = if std::env::var_os("PARC_EVERY_CUT").is_some() { 5 } else { 53 };
    let (mut tick, mut tried, mut wrong) = (0, 0, Vec::new());
    for (file, text) in files() {
        if !checked(&text).is_empty() {
            continue;
        }
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let places = partners(&lines, at + 1);
            for cut in cuts(line) {
                tick += 1;
                if tick % every != 0 {
                    continue;
                }
                let broken = with_line(&lines, at, &line[..cut]);
                // A line that is right when it ends early says something else, and what follows from that is right.
                if said(&broken).is_empty() {
                    continue;
                }
                tried += 1;
                let list = checked(&broken);
                if list.iter().any(|(l, _)| !places.contains(l)) {
                    let list: Vec<_> = list.iter().map(|(l, d)| format!("{l}: {}", d.message)).collect();
                    let place = format!("{file}:{}: `{}|{}`", at + 1, line[..cut].trim_start(), &line[cut..]);
                    wrong.push(format!("{place}\n    {}", list.join("\n    ")));
                }
            }
        }
    }
    assert!(tried > 50, "{tried}");
    assert!(wrong.len() * 20 <= tried, "{} of {tried}\n{}", wrong.len(), wrong.join("\n"));
}
