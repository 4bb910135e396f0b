//! The three evaluators on the graphs of the example files: the exact interpreter, the block interpreter and the
//! compiled kernel, at the point of the file and at many around it.
#![cfg(feature = "llvm")]
#![allow(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests read files and fail by panicking"
)]

#[path = "../../tests/it/compile.rs"]
#[allow(dead_code, reason = "shared with the tests of the compiler, which use all of it")]
mod compile;

use parc::analyse::Compiled;
use parc::emit::evaluator::Kernel;
use parc::expr::{Block, Graph, Id, Kind};

/// Points beside that of the file.
const POINTS: usize = 150;

/// splitmix64
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }
}

/// Everything an evaluator may be asked: the metrics, what each stage holds, and whether the point is legal.
fn roots(c: &Compiled<'_>) -> Vec<Id> {
    let mut ids = c.roots.all();
    for s in &c.roots.stage {
        ids.extend([s.params, s.gathered, s.grads, s.state, s.activations, s.transient, s.total]);
        ids.extend([s.update, s.optimizer, s.exposed]);
    }
    ids.extend(&c.roots.saved);
    ids.extend(c.sharded.obligations.iter().map(|o| o.cond));
    ids.extend(c.job.duties.iter().map(|d| d.cond));
    ids
}

/// Another value for an input that is `v` in the file: the same, doubled or halved, one off, or anything about as large.
fn perturbed(v: f64, random: &mut Random) -> f64 {
    match random.below(8) {
        0 | 1 => v,
        2 => 2.0 * v,
        3 => (v / 2.0).floor(),
        4 => v + 1.0,
        5 => v - 1.0,
        6 => 3.0 * v,
        _ => random.below(2 * v.abs() as u64 + 3) as f64,
    }
}

/// The file's point and `n` others within the promised ranges: a column for each input.
fn columns(graph: &Graph, at: &[f64], n: usize, seed: u64) -> Vec<Vec<f64>> {
    let mut random = Random(seed);
    let inputs = graph.inputs().iter().zip(at);
    inputs
        .map(|(input, v)| {
            let mut column = vec![*v];
            column.extend((0..n).map(|_| perturbed(*v, &mut random).clamp(input.lo, input.hi)));
            column
        })
        .collect()
}

fn agree(file: &str, text: &str) {
    let checked = compile::clean(text);
    let c = checked.compiled(&[]);
    let (graph, roots) = (&c.graph, roots(&c));
    assert!(roots.len() > 90, "{file}: {} roots", roots.len());
    assert_eq!(graph.exact_only(&roots), None, "{file}: lanes can compute every root");
    let columns = columns(graph, &c.inputs, POINTS, 17);
    let slices: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
    let block = Block::new(graph, &roots).run(POINTS + 1, &slices);
    let native = Kernel::compile(graph, &roots).unwrap().run(POINTS + 1, &slices);
    let mut varied = 0;
    for point in 0..=POINTS {
        let inputs: Vec<f64> = columns.iter().map(|column| column[point]).collect();
        let exact = graph.eval(&inputs, &roots);
        for (r, id) in roots.iter().enumerate() {
            let (e, b, n) = (exact[r], block[r][point], native[r][point]);
            let what = || format!("{file}, root {r}, node {}, point {point} {inputs:?}", id.0);
            assert_eq!(b.to_bits(), n.to_bits(), "{}: block {b:e}, kernel {n:e}", what());
            let close = if graph.kind(*id) == Kind::Bool {
                e.to_bits() == b.to_bits()
            } else {
                (e - b).abs() <= 1e-12 * e.abs()
            };
            assert!(close && e.is_finite(), "{}: exact {e:e}, block {b:e}", what());
        }
        varied += usize::from(exact[0].to_bits() != block[0][0].to_bits());
    }
    assert!(varied > POINTS / 2, "{file}: the points differ in step time");
    // At the file's own point every condition holds.
    for o in &c.sharded.obligations {
        assert!(c.value(o.cond) > 0.5, "{file}: {:?}", o.what);
    }
}

#[test]
fn evaluators_agree_on_every_example() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "par"));
    files.sort();
    assert!(files.len() >= 4);
    for file in files {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        agree(&name, &std::fs::read_to_string(&file).unwrap());
    }
}
