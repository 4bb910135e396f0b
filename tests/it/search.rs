//! A search against every point of its space planned one by one.

use crate::compile::{Checked, clean, settings};
use parc::diagnostics::{Sink, render};
use parc::elaborate::Settings;
use parc::search::{self, Answer, Row, Space, Task};
use std::cmp::Ordering;

const LAYOUT: &str = "edition 1
layout Mine(tp: Int, pp: Int, v: Int = 1, dp: Int = devices / (tp * pp)) {
  mesh [pp, dp, tp]
  shard B over dp
  shard [N, K, F, V] over tp else S
  if tp > 2 { store state over dp } else { store [state, grad] over dp }
  pipeline over pp { schedule = interleaved(v), split = balanced(counting = [embed, head]) }
  recompute all
}
";

fn job(fields: &str, objective: &str) -> String {
    format!(
        "{LAYOUT}train run {{
  model = Llama3_8B, cluster = DGX_H100(nodes = 2), sequence = 2048 tok
  {fields}
  {objective}
}}
"
    )
}

fn space(checked: &Checked, settings: &Settings) -> Space {
    let mut sink = Sink::new();
    let space = Space::new(&checked.program, checked.job(), settings, &mut sink);
    space.unwrap_or_else(|| panic!("{}", render::short(&sink.finish(), &checked.sources)))
}

fn answer(checked: &Checked, settings: &Settings, space: &Space, threads: usize) -> Answer {
    let (program, sources, job) = (&checked.program, &checked.sources, checked.job());
    let task = Task { program, sources, job, settings, top: 100, threads, light: false, limit: u64::MAX };
    search::search(task, space, &|_| {})
}

/// Step time, tokens a second and memory of every legal point, each compiled on its own.
fn one_by_one(checked: &Checked, space: &Space) -> Vec<(u64, [f64; 3])> {
    let mut out = Vec::new();
    for n in 0..space.points {
        let (region, own) = space.locate(n).expect("a point of the space");
        let settings = region.settle(&Settings::default(), own);
        let mut sink = Sink::new();
        let compiled = parc::driver::compile(&checked.program, &checked.sources, checked.job(), &settings, &mut sink);
        let Some(c) = compiled else { continue };
        if c.value(c.metrics.fits) > 0.0 {
            let r = &c.roots;
            out.push((n, [r.step_time, r.tokens_per_s, r.peak_memory].map(|id| c.value(id))));
        }
    }
    out
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-12 * b.abs()
}

fn agrees(row: &Row, point: &(u64, [f64; 3])) {
    assert_eq!(row.point, point.0);
    let own = [row.step_time, row.tokens_per_s, row.peak_memory];
    assert!(own.iter().zip(&point.1).all(|(a, b)| near(*a, *b)), "{row:?} {point:?}");
}

const FIELDS: &str = "layout = Mine(tp in {1, 2, 3, 4, 8}, pp in {1, 2, 4}, v in {1, 2}), batch in {32 seq, 48 seq}
  micro_batch in {1 seq, 2 seq, 3 seq}";

#[test]
fn equals_every_point_planned_alone() {
    type Order = fn(&(u64, [f64; 3]), &(u64, [f64; 3])) -> Ordering;
    let orders: [(&str, Order); 3] = [
        ("minimize step_time", |a, b| a.1[0].total_cmp(&b.1[0])),
        ("maximize tokens_per_s", |a, b| b.1[1].total_cmp(&a.1[1])),
        ("minimize peak_memory", |a, b| a.1[2].total_cmp(&b.1[2])),
    ];
    let mut legal = None;
    for (objective, order) in orders {
        let checked = clean(&job(FIELDS, objective));
        let none = Settings::default();
        let space = space(&checked, &none);
        assert_eq!(space.points, 5 * 3 * 2 * 2 * 3);
        let found = answer(&checked, &none, &space, 2);
        let legal = legal.get_or_insert_with(|| one_by_one(&checked, &space));
        assert!(legal.len() > 20, "{}", legal.len());
        assert_eq!(found.legal as usize, legal.len());
        let rejected: u64 = found.rejected.iter().map(|r| r.points).sum();
        assert_eq!(found.legal + rejected, space.points, "every point is legal or rejected by one rule");
        // The tie goes to less memory, then to the order of the text.
        legal.sort_by(|a, b| order(a, b).then(a.1[2].total_cmp(&b.1[2])).then(a.0.cmp(&b.0)));
        agrees(&found.rows[0], &legal[0]);
        agrees(&found.rows[1], &legal[1]);
        // Threads change nothing.
        assert_eq!(answer(&checked, &none, &space, 1).rows, found.rows);
    }
}

#[test]
fn a_front_holds_what_no_point_beats() {
    let checked = clean(&job(FIELDS, "minimize [step_time, peak_memory]"));
    let none = Settings::default();
    let space = space(&checked, &none);
    let found = answer(&checked, &none, &space, 2);
    let all = one_by_one(&checked, &space);
    let beats = |a: &[f64; 3], b: &[f64; 3]| a[0] <= b[0] && a[2] <= b[2] && (a[0] < b[0] || a[2] < b[2]);
    let mut front: Vec<u64> = all.iter().filter(|p| !all.iter().any(|q| beats(&q.1, &p.1))).map(|p| p.0).collect();
    let mut own: Vec<u64> = found.rows.iter().map(|r| r.point).collect();
    front.sort_unstable();
    own.sort_unstable();
    assert_eq!(own, front);
    assert!(own.len() > 1);
}

/// Choices in the blocks of items and of `with` are choices like others.
#[test]
fn choices_inside_blocks() {
    let text = "edition 1
layout Mine(tp: Int) {
  mesh [dp = devices / tp, tp]
  shard B over dp
  shard [N, K, F, V] over tp else S
  store state over dp
  overlap reduce over dp with backward { limit in {1%, 100%} }
}
train run {
  model = Llama3_8B, cluster = DGX_H100(nodes = 1), batch = 32 seq, sequence = 2048 tok
  layout = Mine(tp = 4)
  precision = bf16_mixed with { grad in {bf16, fp32} }
  minimize step_time
}
";
    let checked = clean(text);
    let none = Settings::default();
    let space = space(&checked, &none);
    assert_eq!((space.regions.len(), space.points), (4, 4));
    let found = answer(&checked, &none, &space, 1);
    let mut all = one_by_one(&checked, &space);
    all.sort_by(|a, b| a.1[0].total_cmp(&b.1[0]).then(a.1[2].total_cmp(&b.1[2])).then(a.0.cmp(&b.0)));
    assert_eq!(all.len(), 4);
    agrees(&found.rows[0], &all[0]);
    let (region, n) = space.locate(found.rows[0].point).expect("a point of the space");
    let named = region.named(n);
    assert_eq!(named[0], ("limit".to_string(), "1".to_string()), "what hides more is faster");
}

/// A layout from a set makes a region of its own, with the choices that are open in it.
#[test]
fn a_set_of_layouts_and_shared_choices() {
    let text = "edition 1
layout A(tp: Int, dp: Int = devices / tp) { mesh [dp, tp], shard B over dp, shard [N, K, F, V] over tp, store state over dp }
layout B(dp: Int = devices) { mesh [dp], shard B over dp, store [state, grad, param] over dp }
train run {
  model = Llama3_8B, cluster = DGX_H100(nodes = 1), batch = 16 seq, sequence = 2048 tok
  let t in {4, 8}
  layout in {A(tp = t), B}
  micro_batch = t div 4 * 1 seq
  require layout.dp >= 1
  minimize step_time
}
";
    let checked = clean(text);
    let none = Settings::default();
    let space = space(&checked, &none);
    assert_eq!((space.regions.len(), space.points), (2, 4));
    let found = answer(&checked, &none, &space, 1);
    let mut all = one_by_one(&checked, &space);
    all.sort_by(|a, b| a.1[0].total_cmp(&b.1[0]).then(a.0.cmp(&b.0)));
    assert_eq!(found.legal as usize, all.len());
    agrees(&found.rows[0], &all[0]);
    // A choice is settled by its text, too.
    let only = Settings { words: vec![("layout".into(), "B".into())], ..settings(&[("t", 4)]) };
    let mut sink = Sink::new();
    let one = parc::driver::compile(&checked.program, &checked.sources, checked.job(), &only, &mut sink);
    assert_eq!(one.expect("settled").job.layout_name, "B");
}
