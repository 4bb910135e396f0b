//! How many evaluations a second the block interpreter and the compiled kernel make of a graph of about a thousand
//! nodes, with the mix of operations that a training step has. Run it after `cargo build --release`, in release too; read
//! the ratio, not the figures.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_types,
    reason = "its output is the point, and what it prints is time"
)]

use parc::emit::evaluator::Kernel;
use parc::expr::{Block, Graph, Id, Input, Kind};
use std::time::{Duration, Instant};

/// Multiplications, additions, divisions, minima, choices, ceilings out of a hundred operations.
const MIX: [usize; 6] = [38, 30, 10, 10, 7, 5];

/// A fixed sequence of numbers below `n`.
fn below(state: &mut u64, n: usize) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize % n
}

fn graph(size: usize) -> (Graph, Vec<Id>) {
    let mut g = Graph::new();
    let mut state = 1;
    let mut ints: Vec<Id> =
        (0..8).map(|i| g.input(Input { name: format!("n{i}"), kind: Kind::Int, lo: 1.0, hi: 64.0 })).collect();
    let mut reals: Vec<Id> = ints.iter().map(|id| g.to_real(*id)).collect();
    while g.live(&reals).0.len() < size {
        let pick = |state: &mut u64, from: &[Id]| from[from.len() - 1 - below(state, from.len().min(24))];
        let (a, b) = (pick(&mut state, &reals), pick(&mut state, &reals));
        let (m, n) = (pick(&mut state, &ints), pick(&mut state, &ints));
        let mut draw = below(&mut state, 100);
        let kind = MIX
            .iter()
            .position(|share| {
                draw < *share || {
                    draw -= share;
                    false
                }
            })
            .unwrap_or(0);
        let new = match kind {
            0 => {
                let product = g.mul(a, b);
                let one = g.real(1.0);
                let below = g.add(a, one);
                g.div(product, below)
            }
            1 => g.add(a, b),
            2 => g.div(a, b),
            3 => g.min(a, b),
            4 => {
                let less = g.le(m, n);
                g.select(less, a, b)
            }
            _ => {
                let tiles = g.ceil_div(m, n);
                ints.push(tiles);
                let rest = g.mul(tiles, n);
                g.to_real(rest)
            }
        };
        if g.range(new).hi < 1e30 && g.range(new).lo > 1e-30 {
            reals.push(new);
        }
    }
    // Eight results that need everything.
    let columns: Vec<Vec<Id>> = (0..8).map(|k| reals.iter().skip(k).step_by(8).copied().collect()).collect();
    let roots = columns.into_iter().map(|column| g.sum(column)).collect();
    (g, roots)
}

/// The best of several runs, in evaluations a second.
fn rate(points: usize, mut run: impl FnMut() -> Vec<Vec<f64>>) -> f64 {
    let mut best = Duration::MAX;
    for _ in 0..7 {
        let start = Instant::now();
        std::hint::black_box(run());
        best = best.min(start.elapsed());
    }
    points as f64 / best.as_secs_f64()
}

fn main() {
    let (g, roots) = graph(580);
    let (live, _) = g.live(&roots);
    let points = 1 << 15;
    let mut state = 2;
    let columns: Vec<Vec<f64>> =
        (0..8).map(|_| (0..points).map(|_| 1.0 + below(&mut state, 64) as f64).collect()).collect();
    let slices: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
    println!("{} nodes, {} results, {points} points", live.len(), roots.len());
    let block = Block::new(&g, &roots);
    println!("block: {:.2} million evaluations a second", rate(points, || block.run(points, &slices)) / 1e6);
    let start = Instant::now();
    match Kernel::compile(&g, &roots) {
        Ok(kernel) => {
            println!("compiled in {:.0} ms", start.elapsed().as_secs_f64() * 1e3);
            println!("LLVM: {:.2} million evaluations a second", rate(points, || kernel.run(points, &slices)) / 1e6);
            println!("equal in every bit: {}", kernel.run(points, &slices) == block.run(points, &slices));
        }
        Err(why) => println!("no LLVM: {why}"),
    }
}
