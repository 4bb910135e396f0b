//! Half-typed lines and the check: what a line that cannot be read would have said is not missed elsewhere.

use crate::syntax_editing::{Cut, judge_cuts, listed, said};
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
    let mut tried = 0;
    let judge = |cut: &Cut| {
        // A line that is right when it ends early says something else, and what follows from that is right.
        if said(&cut.broken).is_empty() {
            return None;
        }
        tried += 1;
        let list = checked(&cut.broken);
        list.iter().any(|(l, _)| !cut.places.contains(l)).then(|| listed(&list))
    };
    let wrong = judge_cuts(every, |text| checked(text).is_empty(), judge);
    assert!(tried > 50, "{tried}");
    assert!(wrong.len() * 20 <= tried, "{} of {tried}\n{}", wrong.len(), wrong.join("\n"));
}
