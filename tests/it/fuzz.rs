//! Hostile input: seeded edits of every `.par` file of the repository go through check, plan, every renderer and every
//! fix. Nothing may panic, hang or pass a stated limit, whatever the text.
//!
//! `PARC_FUZZ=N` runs N inputs in place of the default and `PARC_FUZZ_SEED=S` starts elsewhere; the input at work is
//! kept in the test's scratch folder, so that one that ends the process is not lost.

use crate::files::{below, name, text};
use crate::fuzz_edits::{Rng, edit};
use parc::analyse::claims;
use parc::diagnostics::{Diagnostic, Sink, apply, render};
use parc::driver;
use parc::elaborate::Settings;
use parc::emit::assemble::{self, Ranks};
use parc::emit::report::{self, Style};
use parc::emit::{launchers, plan_json, targets};
use parc::format::{Unformatted, format};
use parc::limits::DIAGNOSTICS_KEPT;
use parc::resolve::RootFile;
use parc::source::{FileId, MemoryWorld, Sources};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Inputs of an ordinary run.
const INPUTS: u64 = 300;

/// No input may take longer, in a build without optimisation on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// No input may hold more memory at once, in bytes, beyond what was held before it.
const MEMORY: u64 = 200 << 20;

/// Devices up to which ranks are listed and targets tried.
const FEW: i64 = 64;

/// A small job of our own, so that an edit of it reaches the last stage quickly.
const SMALL: &str = "edition 1
model M(layers: Int = 4) {
  dims { H = 64, N = 4, K = 2 for N, D = 16, F = 128, V = 1000 }
  input tokens[B: seq, S: tok]
  region embed { x[B, S, H] = embed(tokens, param wte[V, H]) }
  repeat decoder = layers { x = LlamaDecoder(x) }
  region head {
    h = rms_norm(x, param norm[H])
    logits[B, S, V] = h @ param w_out[H, V]
    loss = cross_entropy(logits, over = V)
  }
}
layout L(tp: Int in {1, 2, 4} = 2, pp: Int = 2, dp: Int = devices / (tp * pp)) {
  mesh [pp, dp, tp]
  place tp on cluster.node
  shard B over dp
  shard [N, K, F, V] over tp else S
  store [state, grad] over dp { bucket = layer }
  pad V = 8 * tp
  pipeline over pp { schedule = Mine(depth = 1), split = balanced(counting = [embed, head]) }
  overlap reduce over dp with backward { limit = 50% }
  in **.attention.core { recompute all }
  in [decoder.*, **.mlp] { recompute [a] }
}
schedule Mine(depth: Int) {
  fn chunks() -> Int = p
  fn hosts(s: Int) -> List<Int> = [s]
  fn order(s: Int) -> List<Op> = [F(i, s) for i in 0..m] + [B(i, s) for i in 0..m if i >= 0 and depth > 0]
}
cost mine { fn elementwise(read: Bytes, write: Bytes, work: Flop, d: Device) -> Time = (read + write) / d.hbm + 1 us }
train small {
  let rows = 8
  model = M(layers = 4), cluster = DGX_H100(nodes = 1), layout = L(), cost = mine
  batch = rows * 2 seq, sequence = 128 tok, micro_batch = 2 seq, steps = 10 step
  precision = bf16_mixed with { grad = bf16 }
  require peak_memory <= 70 GiB else \"no\"
  expect bubble ~ 50% +- 80 pp
  expect layout.dp == 2
}
";

/// What edits start from: name and text. The standard library comes once file by file and once as a single file with a
/// job below it, so that an edit of a schedule or a cost reaches the plan.
fn corpus() -> Vec<(String, String)> {
    let mut out = vec![("small".to_string(), SMALL.to_string())];
    let mut library = String::from("edition 1\n");
    for file in
        ["examples", "tests/specs", "tests/ui", "tests/syntax", "stdlib"].iter().flat_map(|f| below(f, &["par"]))
    {
        let body = text(&file);
        if name(&file).starts_with("stdlib/") {
            let kept = |l: &&str| !["edition", "use ", "//!"].iter().any(|p| l.starts_with(p));
            library.extend(body.lines().filter(kept).flat_map(|l| [l, "\n"]));
        }
        out.push((name(&file), body));
    }
    // The cases people got wrong: blocks of documents.
    for file in below("tests/mistakes", &["md"]) {
        let document = text(&file);
        let blocks = document.split("\n```par").skip(1).filter_map(|b| b.split_once('\n')?.1.split_once("\n```"));
        out.extend(blocks.enumerate().map(|(i, (body, _))| (format!("{}/{i}", name(&file)), format!("{body}\n"))));
    }
    let job = SMALL.split_once('\n').map_or("", |(_, rest)| rest);
    out.push(("library".into(), library + &job.replace("schedule = Mine(depth = 1)", "schedule = one_f_one_b")));
    out
}

/// A world of the text as `main.par` with the repository's files beside it.
struct World<'a> {
    corpus: &'a [(String, String)],
}

impl World<'_> {
    fn read(&self, text: &str) -> MemoryWorld {
        let others = self.corpus.iter().map(|(n, t)| (PathBuf::from(n), t.clone()));
        MemoryWorld::new(others.chain([(PathBuf::from("main.par"), text.to_string())]))
    }

    /// Everything that can be done with `text`; its diagnostics, and how many of its jobs have a plan.
    fn exercise(&self, text: &str) -> (Vec<Diagnostic>, usize) {
        let (mut sources, mut sink) = (Sources::new(), Sink::new());
        let root = RootFile { shown: "main.par".into(), path: "main.par".into() };
        let program = driver::front(&mut sources, &self.read(text), &[root], &mut sink);
        let mut planned = 0;
        let settings = Settings::default();
        for id in if sink.has_errors() { Vec::new() } else { program.jobs() } {
            if !driver::check_job(&program, &sources, id, &settings, &mut sink) {
                continue;
            }
            let Some(mut c) = driver::compile(&program, &sources, id, &settings, &mut sink) else { continue };
            for (name, node, _) in &c.metrics.nodes {
                let value = c.value(*node);
                assert!(value.is_finite() && value >= 0.0, "{name} = {value}");
            }
            let verdicts = claims::verdicts(&mut c, &program, &sources, &mut sink);
            let few = c.job.cluster.devices <= FEW;
            let ranks = if few { Ranks::Listed } else { Ranks::Left };
            let plan = assemble::plan(&mut c, &program, &sources, &settings, &verdicts, ranks);
            for style in [Style::Plain, Style::Terminal] {
                assert!(!report::text(&plan, style).is_empty());
            }
            let json = plan_json(&plan);
            serde_json::from_str::<serde_json::Value>(&json).expect("a plan is JSON");
            for target in if few { targets::TARGETS } else { &[] } {
                let Ok(command) = (target.program)(&plan) else { continue };
                for launcher in launchers::LAUNCHERS {
                    let _ = launcher.artifacts(&plan, &command);
                }
            }
            planned += 1;
        }
        let list = sink.finish();
        assert!(list.len() <= DIAGNOSTICS_KEPT);
        let silent = list.iter().find(|d| d.message.starts_with(driver::UNEXPLAINED));
        assert!(silent.is_none(), "a job is refused without a word");
        render_all(&list, &sources);
        settles(text);
        (list, planned)
    }
}

/// The formatter keeps what a text says, or refuses it; what it makes stays as it is.
pub(crate) fn settles(text: &str) {
    match format(text) {
        Ok(laid_out) => assert_eq!(format(&laid_out).as_ref(), Ok(&laid_out), "laid out twice"),
        Err(why) => assert_eq!(why, Unformatted::Mistakes),
    }
}

pub(crate) fn render_all(list: &[Diagnostic], sources: &Sources) {
    for colour in [render::Colour::Never, render::Colour::Always] {
        let text = render::text(list, sources, colour);
        let escapes = colour == render::Colour::Always;
        let tame = |c: char| !c.is_control() || c == '\n' || c == '\t' || (escapes && c == '\u{1b}');
        assert!(text.chars().all(tame), "control characters in {text:?}");
    }
    let short = render::short(list, sources);
    assert!(short.lines().count() <= render::LINES_SHOWN + 1);
    for line in render::json(list, sources).lines() {
        serde_json::from_str::<serde_json::Value>(line).expect("a diagnostic is JSON");
    }
    let _ = render::summary(list);
}

/// A figure of this process in bytes, as Linux gives it; 0 elsewhere.
fn status(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix(name)).unwrap_or("");
    line.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0) * 1024
}

/// Memory held now; begins to measure the peak anew.
pub(crate) fn memory_reset() -> u64 {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    status("VmRSS:")
}

/// The most memory held since.
pub(crate) fn memory_peak() -> u64 {
    status("VmHWM:")
}

/// Runs one input and every fix of it; the message of what went wrong.
fn attempt(world: &World<'_>, text: &str, rng: &mut Rng) -> Result<usize, String> {
    let start = Instant::now();
    let before = memory_reset();
    let done = catch_unwind(AssertUnwindSafe(|| {
        let (list, planned) = world.exercise(text);
        let fixes: Vec<_> = list.iter().flat_map(|d| &d.fixes).collect();
        let mended: Vec<_> = fixes.iter().take(50).map(|f| apply(text, FileId(0), std::slice::from_ref(f))).collect();
        if let Some(text) = mended.get(rng.below(mended.len())) {
            world.exercise(text);
        }
        planned
    }));
    let took = start.elapsed();
    let held = memory_peak().saturating_sub(before);
    match done {
        Err(why) => Err(why
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| why.downcast_ref::<&str>().map(|s| (*s).to_string()))
            .unwrap_or_else(|| "a panic".into())),
        Ok(_) if took > PATIENCE => Err(format!("took {took:?}")),
        Ok(_) if held > MEMORY => Err(format!("held {} MiB", held >> 20)),
        Ok(planned) => Ok(planned),
    }
}

pub(crate) fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|v| v.parse().ok())
}

#[test]
fn edits_of_every_file() {
    let corpus = corpus();
    let world = World { corpus: &corpus };
    let (inputs, seed) = (setting("PARC_FUZZ").unwrap_or(INPUTS), setting("PARC_FUZZ_SEED").unwrap_or(1));
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (mut planned, mut failures) = (0, Vec::new());
    for i in 0..inputs {
        let mut rng = Rng(seed.wrapping_mul(1 << 32).wrapping_add(i));
        // Half of the inputs start from the small job: most of what they break lies far down the pipeline.
        let at = if rng.below(2) == 0 { 0 } else { rng.below(corpus.len()) };
        let (_, mut text) = corpus[at].clone();
        for _ in 0..[1, 1, 1, 2, 4][rng.below(5)] {
            let other = rng.below(corpus.len());
            text = edit(&text, &corpus[other].1, &mut rng);
        }
        std::fs::write(scratch.join("fuzz-now.par"), &text).unwrap();
        match attempt(&world, &text, &mut rng) {
            Ok(n) => planned += n,
            Err(why) => {
                let file = scratch.join(format!("fuzz-{seed}-{i}.par"));
                std::fs::write(&file, &text).unwrap();
                failures.push(format!("{i} (from {}): {why}\n  kept in {}", corpus[at].0, file.display()));
            }
        }
        if failures.len() == 40 {
            break;
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(planned as u64 >= inputs / 40, "only {planned} of {inputs} inputs reached a plan");
}
