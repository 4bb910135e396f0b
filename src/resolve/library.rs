//! Which file of the embedded standard library declares which name.
//!
//! Found by reading the first words of unindented lines, not by parsing: a test holds the two together.

use crate::source::{STDLIB, stdlib_file};
use indexmap::IndexMap;
use smol_str::SmolStr;

/// Groups whose names are in scope without `use`.
const PRELUDE: &[&str] = &["hardware", "models", "blocks", "layouts", "schedules", "numerics"];

/// The index.
pub(super) struct Library {
    /// Group (`hardware`) to name to file (`hardware/hosts.par`).
    groups: IndexMap<SmolStr, IndexMap<SmolStr, String>>,
}

impl Library {
    pub(super) fn new() -> Self {
        let mut files = Vec::new();
        collect(&STDLIB, &mut files);
        files.sort();
        let mut groups: IndexMap<SmolStr, IndexMap<SmolStr, String>> = IndexMap::new();
        for file in files {
            let group = file.split(['/', '.']).next().unwrap_or_default();
            let names = groups.entry(group.into()).or_default();
            for name in declared(stdlib_file(&file).unwrap_or_default()) {
                names.entry(name.into()).or_insert_with(|| file.clone());
            }
        }
        Self { groups }
    }

    pub(super) fn has_group(&self, group: &str) -> bool {
        self.groups.contains_key(group)
    }

    pub(super) fn groups(&self) -> Vec<SmolStr> {
        self.groups.keys().cloned().collect()
    }

    pub(super) fn find(&self, group: &str, name: &str) -> Option<String> {
        self.groups.get(group)?.get(name).cloned()
    }

    pub(super) fn names_of(&self, group: &str) -> Vec<SmolStr> {
        self.groups.get(group).map(|g| g.keys().cloned().collect()).unwrap_or_default()
    }

    /// The file that declares `name` for everyone.
    pub(super) fn prelude(&self, name: &str) -> Option<String> {
        PRELUDE.iter().find_map(|g| self.find(g, name))
    }

    pub(super) fn prelude_names(&self) -> Vec<SmolStr> {
        PRELUDE.iter().flat_map(|g| self.names_of(g)).collect()
    }

    pub(super) fn text(file: &str) -> &'static str {
        stdlib_file(file).unwrap_or_default()
    }
}

fn collect(dir: &include_dir::Dir<'static>, out: &mut Vec<String>) {
    let programs = dir.files().filter(|f| f.path().extension().is_some_and(|e| e == "par"));
    out.extend(programs.map(|f| f.path().to_string_lossy().into_owned()));
    for d in dir.dirs() {
        collect(d, out);
    }
}

/// Names declared at the top level of a library file.
fn declared(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let mut words = line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|w| !w.is_empty());
        let keyword = words.next().filter(|w| line.starts_with(w))?;
        let kinds = [
            "fn",
            "op",
            "table",
            "dtype",
            "device",
            "host",
            "link",
            "cluster",
            "precision",
            "optimizer",
            "schedule",
            "cost",
            "model",
            "block",
            "layout",
            "train",
            "finetune",
            "serve",
            "workflow",
            "unit",
            "let",
        ];
        kinds.contains(&keyword).then(|| words.next()).flatten()
    })
}
