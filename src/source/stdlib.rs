//! The standard library, embedded.

use include_dir::{Dir, include_dir};

/// The folder `stdlib/` as it was when the compiler was built.
pub static STDLIB: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/stdlib");

/// Text of the standard library file at `path`, as in `hardware/hosts.par`.
pub fn stdlib_file(path: &str) -> Option<&'static str> {
    STDLIB.get_file(path).and_then(|f| f.contents_utf8())
}

/// Every file of the standard library, sorted by path, with its text.
pub fn library_files() -> Vec<(String, &'static str)> {
    let mut files = Vec::new();
    let mut open = vec![&STDLIB];
    while let Some(dir) = open.pop() {
        let programs = dir.files().filter(|f| f.path().extension().is_some_and(|e| e == "par"));
        files.extend(programs.filter_map(|f| Some((f.path().to_string_lossy().into_owned(), f.contents_utf8()?))));
        open.extend(dir.dirs());
    }
    files.sort_unstable();
    files
}
