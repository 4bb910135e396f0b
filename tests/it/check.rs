//! The static check: each rule has a wrong program that gets one diagnostic at the right words, and a right one that
//! is silent.

use parc::check;
use parc::diagnostics::{Diagnostic, Sink};
use parc::resolve;
use parc::source::{MemoryWorld, STDLIB, Sources};
use std::fmt::Write as _;
use std::path::PathBuf;

/// Diagnostics of `text` after resolution and check.
fn diagnose(text: &str) -> (Sources, Vec<Diagnostic>) {
    let world = MemoryWorld::new([("main.par", text)]);
    let (mut sources, mut sink) = (Sources::new(), Sink::new());
    let program = resolve::resolve(
        &mut sources,
        &world,
        &[resolve::RootFile { shown: "main.par".into(), path: PathBuf::from("main.par") }],
        &mut sink,
    );
    check::check(&program, &sources, &mut sink);
    (sources, sink.finish())
}

/// Everything a diagnostic says, without the quoted source.
fn words(d: &Diagnostic) -> String {
    let mut out = d.message.clone();
    for part in d.notes.iter().chain(&d.help).chain(d.secondary.iter().map(|l| &l.text)).chain([&d.primary.text]) {
        let _ = write!(out, "\n{part}");
    }
    out
}

/// `text` gets one diagnostic, `code`, at `label` (the text under it), that mentions every one of `mention`.
#[track_caller]
fn wrong(text: &str, code: &str, label: &str, mention: &[&str]) {
    let (sources, found) = diagnose(text);
    let shown: Vec<_> =
        found.iter().map(|d| format!("{} `{}`: {}", d.code, sources.snippet(d.primary.span), words(d))).collect();
    assert_eq!(found.len(), 1, "{shown:#?}");
    assert_eq!(
        (found[0].code.to_string().as_str(), sources.snippet(found[0].primary.span)),
        (code, label),
        "{shown:#?}"
    );
    for m in mention {
        assert!(words(&found[0]).contains(m), "no {m:?} in {shown:#?}");
    }
}

/// `text` is silent.
#[track_caller]
fn right(text: &str) {
    let (sources, found) = diagnose(text);
    let shown: Vec<_> =
        found.iter().map(|d| format!("{} `{}`: {}", d.code, sources.snippet(d.primary.span), words(d))).collect();
    assert!(found.is_empty(), "{shown:#?}");
}

/// `text` is wrong as it stands and right after its first fix.
#[track_caller]
fn mended(text: &str) {
    let (_, found) = diagnose(text);
    let fix = &found.first().expect("a diagnostic").fixes.first().expect("a fix");
    let mut out = text.to_string();
    let mut edits = fix.edits.clone();
    edits.sort_by_key(|e| std::cmp::Reverse(e.span.start));
    for e in edits {
        out.replace_range(e.span.start as usize..e.span.end as usize, &e.text);
    }
    right(&out);
}

const LAYOUT: &str = "layout Mine(tp: Int, pp: Int, dp: Int = devices / (tp * pp)) {
  mesh [pp, dp, tp]
  shard B over dp
  shard [N, K, F, V] over tp else S
  store state over dp
  pipeline over pp { schedule = one_f_one_b, split = balanced }
}
";

/// A file with the layout above and a job with `more` in it.
fn job(more: &str) -> String {
    format!(
        "edition 1\n{LAYOUT}train run {{\n  model = Llama3_8B\n  cluster = DGX_H100(nodes = 4)\n  layout = Mine(tp = 4, pp = 2)\n  \
         batch = 256 seq\n  sequence = 8192 tok\n{more}\n}}\n"
    )
}

fn layout(items: &str) -> String {
    format!("edition 1\nlayout L(tp: Int = 1) {{\n  mesh [dp = devices / tp, tp]\n{items}\n}}\n")
}

fn top(text: &str) -> String {
    format!("edition 1\n{text}\n")
}

#[test]
fn a_whole_job_is_right() {
    right(&job(
        "  precision = bf16_mixed\n  optimizer = AdamW\n  require layout.tp <= 4\n  expect mfu ~ 41% +- 4 pp\n  minimize step_time",
    ));
}

#[test]
fn items_belong_somewhere() {
    wrong(
        &top("model M {\n  dims { H = 8 }\n  input x[B: seq, H]\n  shard H over tp\n}"),
        "E0208",
        "shard",
        &["belongs in a layout, not in a model"],
    );
    wrong(&layout("  minimize step_time"), "E0208", "minimize", &["belongs in a job, not in a layout"]);
    wrong(&job("  mesh [dp = 4]"), "E0208", "mesh", &["belongs in a layout, not in a train job"]);
    wrong(
        &top("cluster C {\n  level n = 8 of H100_SXM over NVLink4 { let a = 1 }\n}"),
        "E0208",
        "let",
        &["`level {…}`"],
    );
    wrong(
        &top("schedule s {\n  fn chunks() -> Int = p\n  model M { dims { H = 1 } }\n}"),
        "E0208",
        "model",
        &["the top level"],
    );
    right(&layout("  if tp > 1 { shard N over tp }\n  in **.mlp { recompute all }"));
}

#[test]
fn fields_are_known() {
    wrong(
        &job("  optimiser = AdamW"),
        "E0204",
        "optimiser",
        &["no field or item `optimiser` in a train job", "`optimizer` exists"],
    );
    wrong(&job("  freeze = all"), "E0204", "freeze", &["`finetune`"]);
    wrong(&layout("  store state over dp { buckt = layer }"), "E0204", "buckt", &["`bucket` exists"]);
    wrong(&layout("  pipeline over dp { stages = 4 }"), "E0204", "stages", &["`schedule`"]);
    wrong(&layout("  overlap gather over dp with forward { limt = 50% }"), "E0204", "limt", &["`limit` exists"]);
    wrong(&layout("  mesh = [dp]"), "E0204", "mesh", &["an item, not a field"]);
    right(&layout("  store state over dp { bucket = layer, hold = step }"));
}

#[test]
fn words_of_other_tools_get_help() {
    wrong(&layout("  zero_stage = 3"), "E0204", "zero_stage", &["`store [state, grad, param] over dp`"]);
    mended(&layout("  zero = 1"));
    wrong(&layout("  tensor_parallel_size = 8"), "E0204", "tensor_parallel_size", &["mesh"]);
    wrong(&job("  accumulation = 64"), "E0204", "accumulation", &["derived", "`batch`", "`micro_batch`"]);
    mended(&job("  accumulation = 64"));
    mended(&job("  micro_batch_size = 1 seq"));
    wrong(&job("  learning_rate = 0.1"), "E0204", "learning_rate", &["neither time nor memory"]);
    wrong(
        &job("").replace("batch = 256 seq", "global_batch_size = 256 seq"),
        "E0204",
        "global_batch_size",
        &["`batch` is the sequences of an update"],
    );
    wrong(
        &top("device D { vram = 80 GiB, hbm = 2 TB/s, peak = { bf16 = 300 TFLOP/s }, power = 400 W }"),
        "E0204",
        "vram",
        &["`vram` is `memory` here"],
    );
    wrong(
        &job("").replace("Mine(tp = 4,", "Mine(tensor_parallel = 4,"),
        "E0207",
        "tensor_parallel",
        &["`tp`", "`pp`", "`dp`"],
    );
}

#[test]
fn required_fields_are_named_at_once() {
    wrong(&top("device NewChip {\n  memory = 192 GB\n  power = 1000 W\n}"), "E0205", "NewChip", &["`hbm` and `peak`"]);
    wrong(&job("").replace("  batch = 256 seq\n", ""), "E0205", "run", &["train `run` needs a field `batch`"]);
    right(&top("link L { bandwidth = 10 GB/s, latency = 1 us }"));
}

#[test]
fn fields_are_given_once() {
    wrong(&job("  batch = 512 seq"), "E0206", "batch", &["given twice", "first given here"]);
    wrong(&top("link L { latency = 1 us, bandwidth = 10 GB/s, latency = 2 us }"), "E0206", "latency", &[]);
}

#[test]
fn names_are_known() {
    wrong(&job("  require peak_memry <= device.usable"), "E0201", "peak_memry", &["`peak_memory` exists"]);
    wrong(&job("  require tp <= 4"), "E0201", "tp", &["write `layout.tp`"]);
    mended(&job("  require tp <= 4"));
    wrong(&job("  require layout.cp <= 4"), "E0204", "cp", &["the layout `Mine`"]);
    wrong(&top("fn f(a: Int) -> Int = a + aa"), "E0201", "aa", &["`a` exists"]);
    wrong(&top("fn f(a: Integer) -> Int = a"), "E0201", "Integer", &["no type `Integer` exists"]);
    wrong(&layout("  shard B over dq"), "E0608", "dq", &["`dp` and `tp`"]);
    wrong(&layout("  overlap gater over dp with forward"), "E0201", "gater", &["`gather` exists"]);
    wrong(&layout("  store weights over dp"), "E0201", "weights", &["the class is `param`"]);
    wrong(
        &top("model M {\n  dims { H = 8, K = 4 for N }\n  input x[B: seq, H]\n}"),
        "E0402",
        "N",
        &["no dimension `N` is declared"],
    );
    wrong(
        &top("model M {\n  dims { H = 8 }\n  input x[B: seq, H]\n  y[B, H] = silu(z)\n}"),
        "E0201",
        "z",
        &["no `z` is known here"],
    );
    right(&top(
        "schedule mine(v: Int) {\n  fn chunks() -> Int = p * v\n  fn hosts(s: Int) -> List<Int> = [s + j * p for j in 0..v]\n}",
    ));
}

#[test]
fn an_unknown_name_is_told_once() {
    wrong(&top("fn f(n: Int) -> Int = tokns * n + tokns"), "E0201", "tokns", &[]);
    wrong(
        &top("use std::hardware::DGX_H10\nlet c = DGX_H10(nodes = 4)\nlet d = DGX_H10(nodes = 8)"),
        "E0201",
        "DGX_H10",
        &["`DGX_H100` exists"],
    );
}

#[test]
fn outer_names_are_not_hidden() {
    wrong(
        &top("let tp = 4\nlayout S(tp: Int) {\n  mesh [dp = devices / tp, tp]\n}"),
        "E0202",
        "tp",
        &["the outer name"],
    );
    wrong(&top("fn f(n: Int) -> Int {\n  let n = 3\n  return n\n}"), "E0202", "n", &["hide"]);
    wrong(
        &top("schedule s {\n  fn chunks() -> Int = p\n  fn mb(m: Int) -> Int = m\n}"),
        "E0202",
        "m",
        &["the language"],
    );
    wrong(&top("fn f(n: Int) -> List<Int> = [n for n in 0..4]"), "E0202", "n", &[]);
    // Assigned again, a field, a region: none of them hides anything.
    right(&top(
        "block Twice(x[B, S, H]) -> [B, S, H] {\n  x = silu(x)\n  region embed { x = x + x }\n  return x\n}\nlet batch = 3",
    ));
}

#[test]
fn nothing_needs_itself() {
    wrong(&top("fn f(n: Int) -> Int = f(n - 1)"), "E0209", "f", &["`f` needs itself"]);
    wrong(&top("fn f(n: Int) -> Int = g(n)\nfn g(n: Int) -> Int = f(n)"), "E0209", "f", &["`f` needs `g` needs `f`"]);
    wrong(&top("let a = b + 1\nlet b = a + 1"), "E0209", "a", &[]);
    // Jobs may be compared with each other.
    right(
        &(job("  expect step_time <= other.step_time")
            + "train other = run with {\n  expect step_time >= run.step_time\n}\n"),
    );
}

#[test]
fn units_are_known() {
    wrong(&top("link L { bandwidth = 200 Gbps, latency = 1 us }"), "E0301", "Gbps", &["bits per second", "`Gb/s`"]);
    mended(&top("link L { bandwidth = 200 Gbps, latency = 1 us }"));
    wrong(&job("  let a = 4 token"), "E0301", "token", &["`tok`"]);
    wrong(&job("  let a = 4 pp"), "E0301", "4 pp", &["only after `+-`", "`4%`"]);
}

#[test]
fn units_agree() {
    wrong(&top("let a = 80 GiB + 3 s"), "E0302", "+", &["bytes and time cannot be added", "bytes (B)", "time (s)"]);
    wrong(&top("let a = 79.1 GiB - 1.5"), "E0302", "1.5", &["`79.1 GiB` is bytes", "`1.5 GiB`"]);
    mended(&top("let a = 79.1 GiB - 1.5"));
    wrong(&job("  require step_time <= 80 GiB"), "E0302", "<=", &["cannot be compared"]);
    wrong(
        &top("device D { memory = 8 GB, hbm = 3.35 TB, peak = { bf16 = 1 TFLOP/s }, power = 7 W }"),
        "E0302",
        "3.35 TB",
        &["`hbm` is bandwidth, not bytes", "`3.35 TB/s`"],
    );
    wrong(
        &top("device D { memory = 8 GB, hbm = 3 TB/s, peak = { bf16 = 1 TFLOP }, power = 7 W }"),
        "E0302",
        "1 TFLOP",
        &["the peak of `bf16`", "`1 TFLOP/s`"],
    );
    wrong(&layout("  reduce grad over dp { every = 500 }"), "E0302", "500", &["`500 step`"]);
    wrong(
        &top("fn slow(n: Bytes, b: Bandwidth, l: Time) -> Time = l + n * b"),
        "E0302",
        "n * b",
        &["Bytes / Bandwidth is Time"],
    );
    mended(&top("fn slow(n: Bytes, b: Bandwidth, l: Time) -> Time = l + n * b"));
    wrong(&top("fn f(a: Bool) -> Time = if a then 0 else 3 s"), "E0302", "0", &["both must be Time: write `0 s`"]);
    wrong(&top("fn f(n: Bytes) -> Time = n"), "E0302", "n", &["the result of `f` is time, not bytes"]);
    wrong(&top("fn f(n: Bytes) -> Bytes = n\nlet a = f(3 s)"), "E0302", "3 s", &["`n` is bytes, not time"]);
    right(&top("fn f(n: Bytes, r: Bandwidth) -> Time = 1 us + n / r\nlet a = f(3 GB, 400 Gb/s) + 2 ms"));
}

#[test]
fn a_batch_counts_sequences() {
    let text = job("").replace("256 seq", "4194304 tok");
    wrong(&text, "E0302", "4194304 tok", &["`batch` is sequences, not tokens", "8192 tok a sequence = 512 seq"]);
    mended(&text);
}

#[test]
fn a_tolerance_of_a_ratio_is_in_points() {
    let text = job("  expect mfu ~ 41% +- 4%");
    // 41 − 4, 41 + 4; 41 × 0.96, 41 × 1.04.
    wrong(&text, "E0302", "4%", &["`4 pp`", "`within 4%`", "37% to 45%", "39.36% to 42.64%"]);
    mended(&text);
    right(&job("  expect mfu ~ 41% within 4%\n  expect params ~ 8e9 +- 1e8\n  expect step_time ~ 3 s +- 200 ms"));
    wrong(&job("  expect step_time ~ 3 s +- 1 GB"), "E0302", "1 GB", &["the tolerance is time, not bytes"]);
}

#[test]
fn kinds_agree() {
    wrong(&job("  precision = bf16"), "E0303", "bf16", &["needs a precision", "`bf16_mixed`", "`bf16_pure`"]);
    mended(&job("  precision = bf16"));
    wrong(&job("").replace("DGX_H100(nodes = 4)", "H100_SXM"), "E0303", "H100_SXM", &["`cluster` needs a cluster"]);
    wrong(&job("  require step_time"), "E0303", "step_time", &["`require` needs true or false, not time"]);
    wrong(&top("fn f(a: Int) -> Int = if a then 1 else 2"), "E0303", "a", &["a condition needs true or false"]);
    wrong(&top("let a = 3 and true"), "E0303", "and", &["`and` does not work on"]);
    wrong(&top("let a = [1] + 2"), "E0303", "+", &["a list"]);
    wrong(
        &top("fn f(a: Int) -> Int = a\nlet b = f(2.5)"),
        "E0303",
        "2.5",
        &["`a` needs a whole number, not a fraction"],
    );
    wrong(&top("let a = 5 mod 2.5"), "E0303", "2.5", &["`mod` needs whole numbers"]);
    wrong(&top("let a = [i for i in 5]"), "E0303", "5", &["a list or a range"]);
    wrong(&top("cost c {\n  fn p2p(n: Bytes) -> Time = 3 us\n}"), "E0207", "p2p", &["`n: Bytes, g: Group`"]);
    wrong(&top("fn f(n: Int) = 3 us * n"), "E0303", "f", &["write `-> Time`"]);
    mended(&top("fn f(n: Int) = 3 us * n"));
}

#[test]
fn arguments_fit() {
    wrong(&job("").replace("Mine(tp = 4, pp = 2)", "Mine(tp = 4)"), "E0207", "Mine(tp = 4)", &["`Mine` needs `pp`"]);
    wrong(&job("").replace("Mine(tp = 4, pp = 2)", "Mine"), "E0207", "Mine", &["`Mine` needs `tp`"]);
    wrong(&job("").replace("tp = 4, pp", "tp == 4, pp"), "E0207", "==", &["given with `=`"]);
    wrong(&top("fn f(a: Int) -> Int = a\nlet b = f(1, 2)"), "E0207", "2", &["takes 1 argument"]);
    wrong(&top("fn f(a: Int) -> Int = a\nlet b = f(1, a = 2)"), "E0207", "2", &["given twice"]);
    wrong(&top("let a = ceil_div(4)"), "E0207", "ceil_div(4)", &["takes 2 arguments"]);
    right(&job("").replace("Mine(tp = 4, pp = 2)", "Mine(tp in {2, 4}, pp = 2)"));
}

#[test]
fn bits_as_bytes_is_a_warning() {
    let text = top("link IB_Site { bandwidth = 400 GB/s, latency = 2 us }");
    wrong(&text, "W0301", "400 GB/s", &["3200 Gb/s", "`400 Gb/s`"]);
    mended(&text);
    right(&top(
        "link IB_Site { bandwidth = 400 Gb/s, latency = 2 us }\nlink Fast { bandwidth = 400 GB/s, latency = 2 us }",
    ));
}

#[test]
fn numbers_of_hardware_fit_together() {
    let device = |m: &str| {
        top(&format!(
            "device D {{ memory = {m}, usable = 79.1 GiB - 1.5 GiB, hbm = 2 TB/s, peak = {{ bf16 = 1 TFLOP/s }}, power = 7 W }}"
        ))
    };
    // 80e9 / 2^30 = 74.5.
    wrong(&device("80 GB"), "E0307", "79.1 GiB - 1.5 GiB", &["77.6 GiB", "74.5 GiB", "`80 GB`"]);
    right(&device("80 GiB"));
    let torus = |z: i32| {
        top(&format!(
            "cluster C {{\n  level s = 1024 of H100_SXM over 2 * NVLink4 {{ topology = torus(x = 8, y = 8, z = {z}, wrap = true) }}\n}}"
        ))
    };
    wrong(&torus(8), "E0501", "x = 8, y = 8, z = 8", &["8 × 8 × 8 = 512", "1024", "16"]);
    right(&torus(16));
    let pod = |child: &str| {
        top(&format!(
            "cluster P {{\n  level node = 8 of H100_SXM over NVLink4\n  level pod = 4 of {child} over 8 * IB_NDR\n}}"
        ))
    };
    wrong(&pod("H100_SXM"), "E0501", "node", &["`pod`", "4 devices", "make `pod` of `node`"]);
    mended(&pod("H100_SXM"));
    right(&pod("node"));
}

#[test]
fn several_mistakes_are_told_apart() {
    let (_, found) = diagnose(&job("  precision = bf16\n  optimiser = AdamW\n  require peak_memry <= 3 GiB"));
    let codes: Vec<_> = found.iter().map(|d| d.code.to_string()).collect();
    assert_eq!(codes, ["E0303", "E0204", "E0201"]);
}

#[test]
fn the_standard_library_is_clean() {
    let mut stack = vec![&STDLIB];
    let mut seen = 0;
    while let Some(dir) = stack.pop() {
        stack.extend(dir.dirs());
        for file in dir.files() {
            right(file.contents_utf8().expect("a text"));
            seen += 1;
        }
    }
    assert!(seen >= 10, "{seen} files");
}

/// Programs that describe published runs. Names the library does not have yet are told where they are imported, and
/// nowhere else.
#[test]
fn published_runs_are_clean() {
    let specs = [
        include_str!("../specs/01-llama3-405b.par"),
        include_str!("../specs/02-gpt3-175b.par"),
        include_str!("../specs/03-deepseek-v3.par"),
        include_str!("../specs/04-mixtral-folding.par"),
        include_str!("../specs/05-llama8b-hsdp.par"),
        include_str!("../specs/06-vlm.par"),
        include_str!("../specs/07-hetero.par"),
        include_str!("../specs/08-geo.par"),
        include_str!("../specs/09-consumer-offload.par"),
        include_str!("../specs/10-serving.par"),
        include_str!("../specs/11-rlhf-ppo.par"),
        include_str!("../specs/12-lora-mixtral.par"),
        include_str!("../specs/13-dlrm.par"),
        include_str!("../specs/14-tpu-frontier.par"),
        include_str!("../specs/15-async-local.par"),
        include_str!("../specs/16-user-schedule-cost.par"),
    ];
    for text in specs {
        let (_, found) = diagnose(text);
        let own: Vec<_> = found.iter().filter(|d| !d.message.starts_with("`std::")).map(words).collect();
        assert!(own.is_empty(), "{own:#?}");
    }
    for text in &specs[..2] {
        right(text);
    }
}

#[test]
fn hostile_programs_end() {
    let long = |n: usize| (0..n).map(|i| i.to_string()).collect::<Vec<_>>().join(" + ");
    right(&top(&format!("let a = {}", long(250))));
    let mut chain = String::new();
    for i in 0..2_000 {
        let _ = writeln!(chain, "let a{i} = a{}", i + 1);
    }
    right(&top(&format!("{chain}let a2000 = 1")));
    let nested = format!("{}1{}", "(1 s + 1 B * (if 1 s < ".repeat(40), " then 1 else 2))".repeat(40));
    assert!(!diagnose(&top(&format!("let a = {nested}"))).1.is_empty());
}
