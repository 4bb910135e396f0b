//! All models of the standard library: parameters, active parameters and cache, against counts made elsewhere.

use crate::files::{below, root, text};
use parc::diagnostics::{Sink, render};
use parc::driver;
use parc::emit::show;
use parc::hir::Entry;
use parc::resolve::RootFile;
use parc::source::{MemoryWorld, Sources};
use std::collections::BTreeSet;

/// A row of `tests/data/models.csv`.
pub(crate) struct Row {
    /// How the library is asked for it.
    pub(crate) model: String,
    pub(crate) params: u64,
    active: Option<u64>,
    cache: Option<u64>,
    pub(crate) exact: Option<u64>,
    pub(crate) printed: Option<u64>,
}

pub(crate) fn rows() -> Vec<Row> {
    let table = text(&root().join("tests/data/models.csv"));
    let mut lines = table.lines().filter(|l| !l.starts_with('#'));
    assert_eq!(lines.next(), Some("id,model,params,active,kv_bytes,exact,printed,shapes,cite"));
    let row = |line: &str| {
        let columns: Vec<_> = line.splitn(9, ',').collect();
        Row {
            model: columns[1].into(),
            params: columns[2].parse().unwrap(),
            active: columns[3].parse().ok(),
            cache: columns[4].parse().ok(),
            exact: columns[5].parse().ok(),
            printed: columns[6].parse::<f64>().ok().map(|n| n as u64),
        }
    };
    lines.map(row).collect()
}

/// What `parc show MODEL` says, or the diagnostics.
fn shown(model: &str) -> Result<serde_json::Value, String> {
    shown_in("edition 1\n", model)
}

/// As `shown`, below a program.
pub(crate) fn shown_in(program: &str, model: &str) -> Result<serde_json::Value, String> {
    let source = format!("{program}let shown = {model}\n");
    let world = MemoryWorld::new([("main.par", source)]);
    let (mut sources, mut sink) = (Sources::new(), Sink::new());
    let root = RootFile { shown: "main.par".into(), path: "main.par".into() };
    let program = driver::front(&mut sources, &world, &[root], &mut sink);
    let is_shown = |e: &Entry| matches!(e, Entry::Let(_)) && e.name().text == "shown";
    let found = program.entries(program.roots[0]).find(|(_, e)| is_shown(e)).map(|(id, _)| id);
    let shown = found.and_then(|id| show::show(&program, &sources, id, program.entry(id).name().span, &mut sink));
    let said = sink.finish();
    match shown {
        Some(s) if said.is_empty() => Ok(serde_json::from_str(&s.json()).unwrap()),
        _ => Err(render::short(&said, &sources)),
    }
}

/// The number of a row of what is shown.
pub(crate) fn number(shown: &serde_json::Value, row: &str) -> Option<u64> {
    let rows = shown["rows"].as_array()?;
    let value = rows.iter().find(|r| r[0] == row)?[1].as_str()?;
    value.split(' ').next()?.replace(',', "").parse().ok()
}

/// The models of the library: every `let` of its files that calls a family.
fn library() -> BTreeSet<String> {
    let files = below("stdlib/models", &["par"]);
    let lines: Vec<String> =
        files.iter().flat_map(|f| text(f).lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    let calls = lines.iter().filter_map(|l| l.strip_prefix("let ")?.split_once(" = ")).filter(|(_, e)| e.contains('('));
    calls.map(|(name, _)| name.to_owned()).collect()
}

/// The name a row's expression begins with.
fn head(model: &str) -> &str {
    model.split([' ', '(']).next().unwrap()
}

#[test]
fn every_model_of_the_library_has_the_published_counts() {
    let mut wrong = Vec::new();
    let all = rows();
    for row in &all {
        let name = head(&row.model);
        match shown(&row.model) {
            Ok(s) => {
                let params = number(&s, "parameters");
                let found = (params, number(&s, "active parameters").or(params), number(&s, "cache of a token"));
                let wanted = (Some(row.params), row.active.or(found.1), row.cache.or(found.2));
                if found != wanted {
                    wrong.push(format!("{name}: {found:?}, expected {wanted:?}"));
                }
            }
            Err(said) => wrong.push(format!("{name}: {said}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let known: BTreeSet<_> = all.iter().map(|r| head(&r.model).to_owned()).collect();
    let unknown: Vec<_> = library().into_iter().filter(|n| !known.contains(n)).collect();
    assert!(unknown.is_empty(), "the library has models whose count nothing states: {unknown:?}");
}

/// Printed figures that are more than a hundredth from the count. GPT-3's, Megatron's, OPT's and Mamba-2's
/// are names rather than counts, Whisper tiny's is rounded up; Kimi K2's report says 1.04 T where the checkpoint's tensors sum to 1.026 T.
const ROUNDED: &[&str] = &[
    "GPT3_350M",
    "GPT3_1_3B",
    "GPT3_2_7B",
    "GPT3_13B",
    "MegatronGPT_1_7B",
    "MegatronGPT_3_6B",
    "KimiK2",
    "OPT_13B",
    "Mamba2_1_3B",
    "Whisper_Tiny",
];

/// Printed figures that leave out the vision tower.
const TEXT_ONLY: &[&str] = &["Gemma4_31B", "Gemma4_26B_A4B"];

#[test]
fn the_table_agrees_with_what_authors_print() {
    for row in rows() {
        if let Some(exact) = row.exact {
            assert_eq!(exact, row.params, "{}", row.model);
        }
        if let Some(printed) = row.printed {
            let off = (row.params as f64 - printed as f64).abs() / printed as f64;
            let (name, within) = (head(&row.model), |least, most| off >= least && off < most);
            let right = match name {
                _ if ROUNDED.contains(&name) => within(0.01, 0.035),
                _ if TEXT_ONLY.contains(&name) => within(0.01, 0.025),
                _ => within(0.0, 0.02),
            };
            assert!(right, "{name} is off by {off}");
        }
    }
}
