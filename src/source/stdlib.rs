//! The standard library, embedded.

use include_dir::{Dir, include_dir};

/// The folder `stdlib/` as it was when the compiler was built.
pub static STDLIB: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/stdlib");

/// Text of the standard library file at `path`, as in `hardware/hosts.par`.
pub fn stdlib_file(path: &str) -> Option<&'static str> {
    STDLIB.get_file(path).and_then(|f| f.contents_utf8())
}
