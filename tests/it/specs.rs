//! Sixteen programs of the whole language: `parc check` has nothing to say of them.

use crate::files::{below, root};
use crate::ui::diagnose;
use std::fmt::Write as _;

/// Programs that are not clean yet.
const PENDING: &[&str] = &[];

#[test]
fn the_programs_check_clean() {
    let folder = root().join("tests/specs");
    let programs: Vec<_> =
        below("tests/specs", &["par"]).into_iter().filter(|p| p.parent() == Some(folder.as_path())).collect();
    assert_eq!(programs.len(), 16);
    let mut failures = String::new();
    for path in programs {
        let name = path.file_name().unwrap().to_str().unwrap();
        let said = diagnose(&folder, name, "check");
        match (said.is_empty(), PENDING.contains(&name)) {
            (true, true) => writeln!(failures, "{name} is clean now: take it off the list").unwrap(),
            (false, false) => {
                for d in &said {
                    writeln!(failures, "{}", d["rendered"].as_str().unwrap()).unwrap();
                }
            }
            (true, false) | (false, true) => {}
        }
    }
    assert!(failures.is_empty(), "{failures}");
}
