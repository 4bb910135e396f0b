//! Hostile input to the front alone, which is quick: many more seeded edits of every `.par` file and every case of
//! `tests/mistakes` through the parser, every renderer, every fix and the formatter.
//!
//! `PARC_FUZZ=N` and `PARC_FUZZ_SEED=S` as for `fuzz`.

use crate::files::{below, text};
use crate::fuzz_edits::{Rng, edit};
use parc::diagnostics::{Diagnostic, Sink, apply, render};
use parc::format::{Unformatted, format};
use parc::source::{FileId, Sources};
use parc::syntax;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

/// Inputs of an ordinary run.
const INPUTS: u64 = 1_500;

/// No input may take longer, in a build without optimisation on a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);

fn corpus() -> Vec<String> {
    let folders = ["examples", "stdlib", "tests/specs", "tests/syntax", "tests/ui"];
    let mut out: Vec<String> = folders.iter().flat_map(|f| below(f, &["par"])).map(|f| text(&f)).collect();
    for document in below("tests/mistakes", &["md"]).iter().map(|f| text(f)) {
        let blocks = document.split("\n```par").skip(1).filter_map(|b| b.split_once('\n')?.1.split_once("\n```"));
        out.extend(blocks.map(|(body, _)| format!("{body}\n")));
    }
    out
}

fn said(text: &str) -> (Sources, Vec<Diagnostic>) {
    let (mut sources, mut sink) = (Sources::new(), Sink::new());
    let file = sources.add("main.par", text.to_owned(), false);
    syntax::parse(&sources, file, &mut sink);
    (sources, sink.finish())
}

/// Everything that can be done with a text; whether it was laid out.
fn exercise(input: &str) -> bool {
    let (sources, list) = said(input);
    let mut lengths = 0;
    for colour in [render::Colour::Never, render::Colour::Always] {
        lengths += render::text(&list, &sources, colour).len();
    }
    lengths += render::short(&list, &sources).len() + render::json(&list, &sources).len();
    assert_eq!(lengths > 0, !list.is_empty());
    for d in &list {
        for span in d.secondary.iter().map(|l| l.span).chain([d.primary.span]) {
            assert!(input.get(span.start as usize..span.end as usize).is_some(), "{span:?}: {}", d.message);
        }
        for fix in &d.fixes {
            let after = apply(input, FileId(0), std::slice::from_ref(fix));
            assert_ne!(after, input, "{} of {} does nothing", fix.title, d.message);
            said(&after);
        }
    }
    match format(input) {
        Ok(laid_out) => {
            assert!(list.is_empty());
            assert_eq!(format(&laid_out).as_ref(), Ok(&laid_out), "laid out twice");
            true
        }
        Err(why) => {
            assert_eq!(why, Unformatted::Mistakes);
            false
        }
    }
}

#[test]
fn edits_of_every_file() {
    let corpus = corpus();
    let setting = |name: &str| std::env::var(name).ok().and_then(|v| v.parse().ok());
    let (inputs, seed): (u64, u64) = (setting("PARC_FUZZ").unwrap_or(INPUTS), setting("PARC_FUZZ_SEED").unwrap_or(1));
    let (mut laid_out, mut failures) = (0u64, Vec::new());
    for i in 0..inputs {
        let mut rng = Rng(seed.wrapping_mul(1 << 32).wrapping_add(i));
        let mut input = corpus[rng.below(corpus.len())].clone();
        for _ in 0..[1, 1, 1, 2, 4][rng.below(5)] {
            let other = rng.below(corpus.len());
            input = edit(&input, &corpus[other], &mut rng);
        }
        let start = Instant::now();
        let done = catch_unwind(AssertUnwindSafe(|| exercise(&input)));
        let why = match done {
            Ok(_) if start.elapsed() > PATIENCE => format!("took {:?}", start.elapsed()),
            Ok(good) => {
                laid_out += u64::from(good);
                continue;
            }
            Err(why) => {
                let text = why.downcast_ref::<String>().cloned();
                text.or_else(|| why.downcast_ref::<&str>().map(|s| (*s).to_owned())).unwrap_or_default()
            }
        };
        let scratch = option_env!("CARGO_TARGET_TMPDIR").unwrap_or("/tmp");
        let file = Path::new(scratch).join(format!("fuzz-syntax-{seed}-{i}.par"));
        std::fs::write(&file, &input).unwrap();
        failures.push(format!("{i}: {why:.600}\n  kept in {}", file.display()));
        if failures.len() == 20 {
            break;
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(laid_out > inputs / 20, "only {laid_out} of {inputs} inputs have no mistakes");
}
