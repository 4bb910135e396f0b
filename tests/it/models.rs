//! Parameters of every model of the standard library, to the unit, against counts made elsewhere.

use crate::compile;
use crate::files::{below, root, text};
use parc::emit::assemble;
use std::collections::BTreeMap;

/// A row of `tests/data/model_params.csv`.
struct Row {
    name: String,
    params: u64,
}

fn rows() -> Vec<Row> {
    let table = text(&root().join("tests/data/model_params.csv"));
    let mut lines = table.lines().filter(|l| !l.starts_with('#'));
    assert_eq!(lines.next(), Some("id,name,params,exact,shapes,cite"));
    lines
        .map(|line| {
            let columns: Vec<_> = line.splitn(6, ',').collect();
            Row { name: columns[1].into(), params: columns[2].parse().unwrap() }
        })
        .collect()
}

/// Every `let` of the library's models.
fn library() -> Vec<String> {
    let files = below("stdlib/models", &["par"]);
    assert!(files.len() >= 2);
    let lines: Vec<String> =
        files.iter().flat_map(|f| text(f).lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    lines.iter().filter_map(|l| l.strip_prefix("let ")?.split_once(" =").map(|(n, _)| n.trim().to_owned())).collect()
}

fn job(model: &str, layout: &str) -> String {
    format!(
        "edition 1
layout L(tp: Int = 1, dp: Int = devices / tp) {{ {layout} }}
train j {{ model = {model}, cluster = DGX_H100(nodes = 1), layout = L(), batch = 8 seq, sequence = 1024 tok }}
"
    )
}

/// One tensor rank: nothing is split but the batch.
const PLAIN: &str = "mesh [dp, tp]\n shard B over dp\n shard [N, F, V] over tp";

#[test]
fn every_model_of_the_library_has_the_published_number_of_parameters() {
    let rows = rows();
    let table: BTreeMap<&str, u64> = rows.iter().map(|r| (r.name.as_str(), r.params)).collect();
    let mut names = library();
    names.sort();
    let known: Vec<_> = table.keys().map(|k| (*k).to_owned()).collect();
    assert_eq!(names, known, "the table and the library name the same models");
    for (name, params) in table {
        let checked = compile::clean(&job(name, PLAIN));
        let compiled = checked.compiled(&[]);
        assert_eq!(assemble::params(&compiled), params, "{name}");
    }
}

#[test]
fn the_totals_the_compiler_is_known_for() {
    // Written out a second time, so that a slip in the table shows.
    for (name, params) in [
        ("Llama3_8B", 8_030_261_248),
        ("Llama3_70B", 70_553_706_496),
        ("Llama3_405B", 405_853_388_800),
        ("GPT3_175B", 174_604_259_328),
    ] {
        assert_eq!(rows().iter().find(|r| r.name == name).map(|r| r.params), Some(params), "{name}");
    }
}

#[test]
fn neither_the_layout_nor_the_padding_changes_the_count() {
    let layouts = [
        "mesh [dp, tp]\n shard B over dp\n shard [N, K, F, V] over tp else S\n pad V = 128 * tp",
        "mesh [dp, tp]\n shard B over dp\n shard [N, K, F, V] over tp\n store [param, grad, state] over dp\n pad V = 128 * tp",
    ];
    for (model, params) in [("Llama3_8B", 8_030_261_248), ("GPT3_2_7B", 2_651_553_280)] {
        for layout in layouts {
            let checked = compile::clean(&job(model, layout));
            for tp in [1, 2, 4, 8] {
                assert_eq!(assemble::params(&checked.compiled(&[("tp", tp)])), params, "{model} tp {tp} {layout}");
            }
        }
    }
}
