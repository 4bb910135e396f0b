//! `parc fix`: applies the fixes that are safe to apply unasked, and again while that shows new ones.
//!
//! Only the files named on the command line are written, each at once and after the last round. Of fixes that overlap
//! the first is taken; the next round sees whether the others are still needed.

use super::check::{Checked, judge};
use super::project::{self, absolute, open_edited};
use super::replace::replace;
use super::{Common, Inputs, Outcome};
use crate::diagnostics::{Applicability, Diagnostic, Fix, apply_all};
use crate::limits::FIX_ROUNDS;
use crate::source::{FileId, Sources};
use clap::Args;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(super) struct Arguments {
    #[command(flatten)]
    inputs: Inputs,
    /// Change nothing; say what would be done
    #[arg(long)]
    dry_run: bool,
}

pub(super) fn run(args: &Arguments, common: &Common) -> Outcome {
    let mut edited: BTreeMap<PathBuf, String> = BTreeMap::new();
    let mut seen = BTreeSet::from([edited.clone()]);
    let mut done = Vec::new();
    let mut rounds = 0;
    let checked = loop {
        let checked = judge(open_edited(&args.inputs, &edited));
        let round = mend(&args.inputs, &checked);
        let mut next = edited.clone();
        next.extend(round.texts);
        // A text that was there before would come again for ever.
        if round.said.is_empty() || rounds == FIX_ROUNDS || !seen.insert(next.clone()) {
            break checked;
        }
        edited = next;
        done.extend(round.said);
        rounds += 1;
    };
    let mut outcome = project::report(&checked.sources, &checked.list, common);
    let said = match (done.len(), args.dry_run) {
        (0, _) if checked.list.iter().any(|d| !d.fixes.is_empty()) => {
            "no fix is safe to apply unasked; those shown are yours to judge\n".to_owned()
        }
        (0, _) => "nothing to fix\n".to_owned(),
        (1, false) => format!("{}1 fix applied\n", done.concat()),
        (1, true) => format!("{}1 fix would be applied\n", done.concat()),
        (n, false) => format!("{}{n} fixes applied\n", done.concat()),
        (n, true) => format!("{}{n} fixes would be applied\n", done.concat()),
    };
    if !args.dry_run {
        for (path, text) in &edited {
            if let Err(e) = replace(path, text) {
                super::complain(&format!("error: cannot write `{}`: {e}\n", path.display()));
                outcome = Outcome::Wrong;
            }
        }
    }
    super::print(&said);
    outcome
}

/// What one round changes: texts by path, and a line on each fix.
struct Round {
    texts: BTreeMap<PathBuf, String>,
    said: Vec<String>,
}

fn mend(inputs: &Inputs, checked: &Checked) -> Round {
    let Checked { sources, list, .. } = checked;
    let named = named(inputs, sources);
    let safe = |d: &Diagnostic| d.fixes.iter().position(|f| f.applicability == Applicability::Safe);
    let chosen: Vec<(&Diagnostic, &Fix)> = list.iter().filter_map(|d| Some((d, d.fixes.get(safe(d)?)?))).collect();
    let fixes: Vec<&Fix> = chosen.iter().map(|c| c.1).collect();
    let text = |file: FileId| named.contains_key(&file).then(|| sources.file(file).text.as_str());
    let applied = apply_all(&fixes, text);
    let line = |i: &usize| {
        let (d, fix) = chosen.get(*i)?;
        Some(format!("{}: {} ({})\n", sources.place(d.primary.span), fix.title, d.code))
    };
    let texts = applied.texts.into_iter().filter_map(|(id, text)| Some((named.get(&id)?.clone(), text)));
    Round { texts: texts.collect(), said: applied.taken.iter().filter_map(line).collect() }
}

/// The files named on the command line: what they are in `sources`, and their paths from the root.
fn named(inputs: &Inputs, sources: &Sources) -> BTreeMap<FileId, PathBuf> {
    let paths: BTreeMap<String, PathBuf> =
        inputs.files.iter().map(|f| (f.display().to_string(), absolute(f))).collect();
    sources
        .iter()
        .filter(|(_, file)| !file.std)
        .filter_map(|(id, file)| Some((id, paths.get(&file.name)?.clone())))
        .collect()
}
