//! A search against every point of its space planned one by one.

use crate::compile::{Checked, clean, settings};
use parc::diagnostics::{Sink, render};
use parc::elaborate::Settings;
use parc::search::{self, Answer, Report, Row, Space, Task};
use std::cmp::Ordering;
use std::sync::atomic::AtomicBool;

static NEVER: AtomicBool = AtomicBool::new(false);

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
    answer_with(checked, settings, space, threads, u64::MAX)
}

/// The same where spaces of more than `whole` points are not judged point by point.
fn answer_with(checked: &Checked, settings: &Settings, space: &Space, threads: usize, whole: u64) -> Answer {
    let (program, sources, job) = (&checked.program, &checked.sources, checked.job());
    let task = Task {
        program,
        sources,
        job,
        settings,
        top: TOP,
        threads,
        light: false,
        limit: u64::MAX,
        whole,
        part: (0, 1),
        stop: &NEVER,
    };
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

/// Rows asked for.
const TOP: usize = 5;

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

/// Schedules, splits and what is open in the jobs of the test below: layouts that one rank runs whole, that fill and drain,
/// that interleave, that cut by cost, that hide communication behind other operations.
const SPACES: [(&str, &str, &str); 5] = [
    ("one_f_one_b", "even", "tp in {1, 2, 3, 4, 8}, pp in {1, 2, 4, 5}"),
    ("interleaved(v)", "even", "tp in {1, 2, 8}, pp in {1, 2, 4}, v in {1, 2, 3}"),
    ("zb_h1", "even", "tp in {1, 2, 4}, pp in {1, 2, 4, 8}"),
    ("dualpipe", "even", "tp in {1, 2, 4}, pp in {2, 4, 8}"),
    ("gpipe", "balanced(counting = [embed, head])", "tp in {2, 4, 8}, pp in {1, 2, 4}"),
];

/// A search led by bounds gives the rows of a search of every point, and counts every point once.
#[test]
fn bounds_leave_out_only_what_is_worse() {
    let goals = [
        ["minimize step_time", "minimize energy"],
        ["maximize tokens_per_s", "minimize price * step_time"],
        ["minimize step_time", "minimize [step_time, peak_memory]"],
        ["maximize mfu", "minimize peak_memory"],
        ["minimize step_time", "minimize [price, peak_memory]"],
    ];
    let mut left_out = 0;
    for ((schedule, split, open), goals) in SPACES.into_iter().zip(goals) {
        let layout = LAYOUT.replace("interleaved(v)", schedule).replace("balanced(counting = [embed, head])", split);
        let fields = format!("layout = Mine({open}), batch = 32 seq, micro_batch in {{1 seq, 2 seq}}");
        for goal in goals {
            let text = job(&fields, goal).replace(LAYOUT, &layout);
            let checked = clean(&text);
            let none = Settings::default();
            let space = space(&checked, &none);
            let all = answer(&checked, &none, &space, 1);
            let led = answer_with(&checked, &none, &space, 2, 0);
            assert!(all.legal > 2, "{schedule}: {} legal", all.legal);
            let rows = if goal.contains('[') { all.rows.len() } else { TOP };
            assert_eq!(led.rows[..rows.min(led.rows.len())], all.rows[..rows.min(all.rows.len())], "{schedule} {goal}");
            assert!(led.proved, "{schedule} {goal}");
            let rejected: u64 = led.rejected.iter().map(|r| r.points).sum();
            assert_eq!(led.legal + rejected + led.bounded, space.points, "{schedule} {goal}: every point counts once");
            let alone = answer_with(&checked, &none, &space, 1, 0);
            assert_eq!(
                (alone.rows, alone.judged, alone.bounded),
                (led.rows, led.judged, led.bounded),
                "threads change nothing"
            );
            left_out += led.bounded;
        }
    }
    assert!(left_out > 20, "bounds leave out {left_out}");
}

/// Parts of a search, written and read as files are, give the rows of the whole.
#[test]
fn parts_join_to_the_whole() {
    for goal in ["minimize step_time", "minimize [step_time, peak_memory]"] {
        let checked = clean(&job(FIELDS, goal));
        let none = Settings::default();
        let space = space(&checked, &none);
        let (program, sources) = (&checked.program, &checked.sources);
        let report = |part| {
            let job = checked.job();
            let settings = &none;
            let stop = &NEVER;
            let task = Task {
                program,
                sources,
                job,
                settings,
                top: 3,
                threads: 2,
                light: false,
                limit: u64::MAX,
                whole: 0,
                part,
                stop,
            };
            Report::new("run", task, &space, &search::search(task, &space, &|_| {}))
        };
        let whole = report((0, 1));
        let parts: Vec<Report> = (0..3).map(|k| Report::read(&report((k, 3)).json()).expect("its own JSON")).collect();
        let merged = Report::merge(&parts).expect("three of three");
        assert_eq!(merged.best, whole.best, "{goal}");
        let counted = |r: &Report| r.legal + r.bounded + r.rejected.iter().map(|x| x.points).sum::<u64>();
        assert_eq!((counted(&merged), counted(&whole)), (space.points, space.points));
        assert!(parts.iter().all(|p| counted(p) < space.points), "each part has its own points");
        let why = Report::merge(&parts[..2]).expect_err("one is missing").to_string();
        assert_eq!(why, "of 3 parts, missing: 3");
        let twice = [parts[0].clone(), parts[0].clone(), parts[2].clone()];
        assert_eq!(
            Report::merge(&twice).expect_err("two are missing or twice").to_string(),
            "of 3 parts, missing: 2; there more than once: 1"
        );
        assert_eq!(
            Report::merge(&[parts[0].clone(), whole]).expect_err("another").to_string(),
            "file 2 is of another search than the first"
        );
        assert!(merged.page().contains(&merged.json().trim_end().replace('<', "\\u003c")), "the page holds the data");
        assert_eq!(merged.csv().lines().count(), 1 + merged.rows().len());
    }
}
