//! `parc explain`: the page behind a code.

use super::{Common, Outcome};
use crate::diagnostics::{CODES, explain, nearest};
use clap::Args;

#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// A code (`E0302`), its name (`unit-mismatch`), `limits` or `codes`
    topic: String,
    /// Write the page as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Arguments, _common: &Common) -> Outcome {
    match explain::topic(&args.topic) {
        Some(page) if args.json => {
            let value = serde_json::json!({ "schema": "parc-explain/1", "topic": args.topic, "page": page });
            super::print(&format!("{value}\n"));
            Outcome::Fine
        }
        Some(page) => {
            super::print(&page);
            Outcome::Fine
        }
        None => {
            let known = CODES.iter().flat_map(|(_, i)| [i.number, i.name]);
            let near = nearest(&args.topic, known).map(|n| format!("; `{n}` is one")).unwrap_or_default();
            super::complain(&format!("error: no code `{}`{near}\n`parc explain codes` lists them\n", args.topic));
            Outcome::Wrong
        }
    }
}
