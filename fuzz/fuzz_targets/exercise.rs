//! Everything the front does with a text: reads and checks it, renders what is said, applies each fix, lays it out.

use parc::diagnostics::{Sink, apply, render};
use parc::driver;
use parc::format::{Unformatted, format};
use parc::resolve::RootFile;
use parc::source::{FileId, MemoryWorld, Sources};
use std::path::PathBuf;

/// Fixes tried of one text.
const FIXES: usize = 20;

/// Checks `text`; panics where the compiler does.
pub fn exercise(text: &str) {
    let list = check(text);
    for fix in list.iter().flat_map(|d| &d.fixes).take(FIXES) {
        check(&apply(text, FileId(0), std::slice::from_ref(fix)));
    }
    match format(text) {
        Ok(laid_out) => assert_eq!(format(&laid_out), Ok(laid_out)),
        Err(why) => assert_eq!(why, Unformatted::Mistakes),
    }
}

fn check(text: &str) -> Vec<parc::diagnostics::Diagnostic> {
    let (mut sources, mut sink) = (Sources::new(), Sink::new());
    let world = MemoryWorld::new([("main.par", text)]);
    let root = RootFile { shown: "main.par".into(), path: PathBuf::from("main.par") };
    driver::front(&mut sources, &world, &[root], &mut sink);
    let list = sink.finish();
    let _ = render::text(&list, &sources, render::Colour::Always);
    let _ = render::short(&list, &sources);
    let _ = render::json(&list, &sources);
    list
}
