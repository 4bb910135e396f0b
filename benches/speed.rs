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
    let parts = [
        include_str!("../stdlib/blocks/layers.par"),
        include_str!("../stdlib/schedules.par"),
        include_str!("../stdlib/cost/default.par"),
        include_str!("../stdlib/hardware/nvidia.par"),
    ];
    let library = parts.concat().replace("edition 1\n", "");
    let text = library.repeat(64);
    let parse = mean(|| {
        let (mut sources, mut sink) = (Sources::new(), Sink::new());
        let file = sources.add("library.par", text.clone(), false);
        std::hint::black_box(syntax::parse(&sources, file, &mut sink));
    });
    println!("parsed {} kB at {:.1} MB/s", text.len() / 1000, text.len() as f64 / 1e6 / parse.as_secs_f64());
    let base = mean(|| front(example));
    show("llama3_405b: read, resolve, check", base, base, "itself");
    show("llama3_405b: what `parc check` does", mean(|| check(example)), base, "reading");
    show("llama3_405b: one compilation, with costs", mean(|| plan(example)), base, "reading");
    let few = mean(|| plan(&job(1)));
    show("8 devices: one compilation", few, base, "reading");
    show("1,000,000 devices: one compilation", mean(|| plan(&job(125_000))), few, "8 devices");
}
