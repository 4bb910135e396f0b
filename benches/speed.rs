//! How long the compiler's parts take, each as a ratio to another of the same run: `cargo bench -p parc`.
//!
//! Prints, asserts nothing. On Linux times are the thread's own CPU time, so that other work on the machine counts little;
//! elsewhere they are what a clock shows.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "its output is the point, and what it prints is time"
)]

use parc::diagnostics::Sink;
use parc::driver;
use parc::elaborate::Settings;
use parc::resolve::RootFile;
use parc::source::{MemoryWorld, Sources};
use parc::syntax;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const LONG_ENOUGH: Duration = Duration::from_millis(500);

/// A job of 8 or more devices: data parallelism over whatever there is.
fn job(nodes: u64) -> String {
    format!(
        "edition 1\nlayout Mine(tp: Int = 8, dp: Int = devices / tp) {{\n  mesh [dp, tp]\n  place tp on cluster.node\n  \
         shard B over dp\n  shard [N, K, F, V] over tp else S\n  store state over dp\n}}\ntrain run {{\n  \
         model = Llama3_8B, cluster = DGX_H100(nodes = {nodes}), layout = Mine()\n  batch = {} seq, sequence = 8192 tok\n}}\n",
        8 * nodes
    )
}

/// A file of about so many bytes: devices, links, clusters, models, layouts and jobs, each under a name of its own.
fn generated(bytes: usize) -> String {
    const SET: &str = "
/// Device # of a long list. Its figures are those of the sheet; the price is what clouds ask in the middle of
/// 2026, and volatile.
device D# = H100_SXM with { memory = 80 GiB, price = 2.5 $/h }
link K# { bandwidth = 400 Gb/s, latency = 2 us, efficiency = 90% }
cluster C#(nodes: Int) {
  level node = 8 of D# over NVLink4 { topology = switch, host = Xeon_2TB }
  level pod  = nodes of node over 8 * K# { topology = fat_tree(rails = 8, oversubscription = 1) }
}
model M#(layers: Int = 32) {
  dims { H = 4096, N = 32, K = 8 for N, D = 128, F = 14336, V = 128256 }
  input tokens[B: seq, S: tok]
  region embed { x[B, S, H] = embed(tokens, param wte[V, H]) }
  repeat decoder = layers { x = LlamaDecoder(x) }  // a block of the library
  region head {
    logits[B, S, V] = rms_norm(x, param norm[H]) @ param w_out[H, V]
    loss = cross_entropy(logits, over = V)
  }
}
layout L#(tp: Int = 8, pp: Int = 2, dp: Int = devices / (tp * pp)) {
  mesh [pp, dp, tp]
  place tp on cluster.node
  shard B over dp
  shard [N, K, F, V] over tp else S
  store state over dp
  pipeline over pp { schedule = one_f_one_b, split = even }
  overlap reduce over dp with backward
}
train T# {
  model       = M#(layers = 32)
  cluster     = C#(nodes = 4)
  layout      = L#(tp = 8, pp = 2)
  batch       = 256 seq
  sequence    = 8192 tok
  micro_batch = 1 seq
  require peak_memory <= 70 GiB else \"too much\"
  expect devices == 32
}
";
    let mut out = String::from("edition 1\n");
    for i in 0.. {
        if out.len() >= bytes {
            break;
        }
        out.push_str(&SET.replace('#', &i.to_string()));
    }
    out
}

/// Time so far: this thread's on a CPU, or since `start` where the system does not say.
fn now(start: Instant) -> Duration {
    let own = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = own.and_then(|text| text.split(' ').next()?.parse().ok());
    nanoseconds.map_or_else(|| start.elapsed(), Duration::from_nanos)
}

/// The mean of runs that together take long enough for the clock's grain not to matter.
fn mean(mut run: impl FnMut()) -> Duration {
    let start = Instant::now();
    let begin = now(start);
    for runs in 1.. {
        run();
        let taken = now(start).saturating_sub(begin);
        if taken >= LONG_ENOUGH {
            return taken / runs;
        }
    }
    Duration::ZERO
}

/// Reads and checks `text`, then hands its job to `then`.
fn compile(text: &str, then: impl Fn(&parc::hir::Program, &Sources, parc::hir::DeclId, &mut Sink)) {
    let path = PathBuf::from("job.par");
    let world = MemoryWorld::new([(path.clone(), text)]);
    let (mut sources, mut sink) = (Sources::new(), Sink::new());
    let roots = [RootFile { shown: "job.par".into(), path }];
    let program = driver::front(&mut sources, &world, &roots, &mut sink);
    for id in program.jobs() {
        then(&program, &sources, id, &mut sink);
    }
    assert!(!sink.has_errors(), "the job has mistakes");
}

fn front(text: &str) {
    compile(text, |_, _, _, _| {});
}

fn check(text: &str) {
    compile(text, |program, sources, id, sink| {
        driver::check_job(program, sources, id, &Settings::default(), sink);
    });
}

fn plan(text: &str) {
    compile(text, |program, sources, id, sink| {
        std::hint::black_box(driver::compile(program, sources, id, &Settings::default(), sink));
    });
}

fn show(name: &str, time: Duration, base: Duration, to: &str) {
    let ratio = time.as_secs_f64() / base.as_secs_f64();
    println!("{name:<44} {:>9.3} ms   {ratio:>7.2} × {to}", time.as_secs_f64() * 1e3);
}

fn main() {
    let example = include_str!("../examples/llama3_405b.par");
    for megabytes in [1, 4, 16] {
        let text = generated(megabytes * 1_000_000);
        let parse = mean(|| {
            let (mut sources, mut sink) = (Sources::new(), Sink::new());
            let file = sources.add("generated.par", text.clone(), false);
            std::hint::black_box(syntax::parse(&sources, file, &mut sink));
        });
        let checked = mean(|| front(&text));
        let laid_out = mean(|| drop(std::hint::black_box(parc::format::format(&text))));
        let rate = |time: Duration| text.len() as f64 / 1e6 / time.as_secs_f64();
        println!(
            "{megabytes:>2} MB: parsed at {:.1} MB/s, checked at {:.1} MB/s, laid out at {:.1} MB/s",
            rate(parse),
            rate(checked),
            rate(laid_out)
        );
    }
    let base = mean(|| front(example));
    show("llama3_405b: read, resolve, check", base, base, "itself");
    show("llama3_405b: what `parc check` does", mean(|| check(example)), base, "reading");
    show("llama3_405b: one compilation, with costs", mean(|| plan(example)), base, "reading");
    let few = mean(|| plan(&job(1)));
    show("8 devices: one compilation", few, base, "reading");
    show("1,000,000 devices: one compilation", mean(|| plan(&job(125_000))), few, "8 devices");
}
