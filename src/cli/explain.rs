//! `parc explain`: the page behind a code, a foreign word, a field.

use super::{Common, Outcome};
use crate::diagnostics::{CODES, explain, nearest};
use crate::hir::schema;
use crate::words;
use clap::Args;
use std::fmt::Write as _;

#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// A code (`E0302`), its name (`unit-mismatch`), a word (`zero1`, `vpp`, `mfu`, `--tensor-parallel-size`), a field;
    /// `codes`, `words` or `limits` list them
    #[arg(allow_hyphen_values = true)]
    topic: String,
    /// Write the page as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Arguments, _common: &Common) -> Outcome {
    let Some(page) = page(&args.topic) else {
        super::complain(&unknown(&args.topic));
        return Outcome::Wrong;
    };
    if args.json {
        let value = serde_json::json!({ "schema": "parc-explain/1", "topic": args.topic, "page": page });
        super::print(&format!("{value}\n"));
    } else {
        super::print(&page);
    }
    Outcome::Fine
}

fn page(topic: &str) -> Option<String> {
    if topic.trim() == "words" {
        return Some(list());
    }
    explain::topic(topic).or_else(|| {
        let entry = words::find(topic).map(words::Entry::page);
        let fields = fields_page(topic.trim());
        match (entry, fields) {
            (None, None) => None,
            (one, None) | (None, one) => one,
            (Some(entry), Some(fields)) => Some(format!("{entry}\n{fields}")),
        }
    })
}

/// Every entry of the dictionary, one a line.
fn list() -> String {
    let mut out = String::from("# Words\n\n`parc explain WORD` tells more.\n\n");
    let width = words::entries().iter().map(|e| e.title.chars().count()).max().unwrap_or(0);
    for e in words::entries() {
        let some: Vec<_> = e.spellings.iter().take(3).copied().collect();
        let _ = writeln!(out, "{:<width$}  {}", e.title, some.join(", "));
    }
    out
}

/// The fields called `name`, of whatever has one.
fn fields_page(name: &str) -> Option<String> {
    let mut out = String::new();
    for (owner, fields) in schema::everything() {
        for f in fields.iter().filter(|f| f.name == name) {
            let default = f.default.map_or("has to be given".to_string(), |d| format!("`{d}` unless given"));
            let _ = writeln!(out, "- of {owner}: {}; {}; {default}", f.doc, f.ty);
        }
    }
    (!out.is_empty()).then(|| format!("# Field `{name}`\n\n{out}"))
}

/// What is said of a topic that nobody knows, with the nearest that is known.
fn unknown(topic: &str) -> String {
    let plain = topic.trim().trim_start_matches('-').replace('-', "_").to_lowercase();
    let codes = CODES.iter().flat_map(|(_, i)| [i.number, i.name]);
    let entries = words::entries().iter().flat_map(|e| e.spellings.iter().copied().chain([e.title]));
    let fields = schema::everything().into_iter().flat_map(|(_, fields)| fields.iter().map(|f| f.name));
    let near = nearest(&plain, entries.chain(fields)).or_else(|| nearest(topic.trim(), codes));
    let near = near.map(|n| format!("; `{n}` is one")).unwrap_or_default();
    format!(
        "error: no page about `{}`{near}\n`parc explain words` and `parc explain codes` list what there is; \
         `parc show NAME` describes a declaration of the library\n",
        topic.escape_debug()
    )
}
