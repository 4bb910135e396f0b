//! All models of the standard library: parameters, active parameters and cache, against counts made elsewhere.

use crate::files::{below, root, text};
use parc::diagnostics::{Code, Sink, render};
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
            exact: columns[5].parse().ok(),
            printed: columns[6].parse::<f64>().ok().map(|n| n as u64),
        }
    };
    lines.map(row).collect()
}

/// What `parc show MODEL` says, or the diagnostics and whether all of them are of constructs not compiled yet.
fn shown(model: &str) -> Result<serde_json::Value, (String, bool)> {
    let source = format!("edition 1\nlet shown = {model}\n");
    let world = MemoryWorld::new([("main.par", source)]);
    let (mut sources, mut sink) = (Sources::new(), Sink::new());
    let root = RootFile { shown: "main.par".into(), path: "main.par".into() };
    let program = driver::front(&mut sources, &world, &[root], &mut sink);
    let found = program.entries(program.roots[0]).find(|(_, e)| matches!(e, Entry::Let(_))).map(|(id, _)| id);
    let shown = found.and_then(|id| show::show(&program, &sources, id, program.entry(id).name().span, &mut sink));
    let said = sink.finish();
    match shown {
        Some(s) if said.is_empty() => Ok(serde_json::from_str(&s.json()).unwrap()),
        _ => {
            let later = said.iter().all(|d| d.code == Code::NotSupported) && !said.is_empty();
            Err((render::short(&said, &sources), later))
        }
    }
}

/// The number of a row of what is shown.
fn number(shown: &serde_json::Value, row: &str) -> Option<u64> {
    let rows = shown["rows"].as_array()?;
    let value = rows.iter().find(|r| r[0] == row)?[1].as_str()?;
    value.replace(',', "").parse().ok()
}

/// The names every model of the library has: its `let`s, and its families that need no argument.
fn library() -> BTreeSet<String> {
    let files = below("stdlib/models", &["par"]);
    let lines: Vec<String> =
        files.iter().flat_map(|f| text(f).lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    lines.iter().filter_map(|l| l.strip_prefix("let ")?.split_once(" =").map(|(n, _)| n.trim().to_owned())).collect()
}

/// The name a row's expression begins with.
fn head(model: &str) -> &str {
    model.split([' ', '(']).next().unwrap()
}

#[test]
fn every_model_of_the_library_has_the_published_number_of_parameters() {
    let waiting = text(&root().join("tests/data/models_waiting.txt"));
    let waiting: BTreeSet<&str> = waiting.lines().filter(|l| !l.starts_with('#')).collect();
    let mut wrong = Vec::new();
    let mut still = BTreeSet::new();
    let all = rows();
    for row in &all {
        let name = head(&row.model);
        match shown(&row.model) {
            Ok(s) if number(&s, "parameters") == Some(row.params) => {}
            Ok(s) => wrong.push(format!("{name}: {:?} parameters, expected {}", number(&s, "parameters"), row.params)),
            Err((said, later)) if waiting.contains(name) && (later || said.contains("E0201")) => {
                still.insert(name);
            }
            Err((said, _)) => wrong.push(format!("{name}: {said}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(still, waiting, "take what is compiled now off tests/data/models_waiting.txt");
    let known: BTreeSet<_> = all.iter().map(|r| head(&r.model).to_owned()).collect();
    let unknown: Vec<_> = library().into_iter().filter(|n| !known.contains(n)).collect();
    assert!(unknown.is_empty(), "the library has models whose count nothing states: {unknown:?}");
}

/// Printed figures that are more than a hundredth from the count. GPT-3's, Megatron's, OPT's and Mamba-2's
/// are names rather than counts; Kimi K2's report says 1.04 T where the checkpoint's tensors sum to 1.026 T.
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
];

#[test]
fn the_table_agrees_with_what_authors_print() {
    for row in rows() {
        if let Some(exact) = row.exact {
            assert_eq!(exact, row.params, "{}", row.model);
        }
        if let Some(printed) = row.printed {
            let off = (row.params as f64 - printed as f64).abs() / printed as f64;
            let named = ROUNDED.contains(&head(&row.model));
            assert!(if named { off > 0.01 } else { off < 0.0125 }, "{} is off by {off}", row.model);
        }
    }
}
