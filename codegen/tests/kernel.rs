//! The compiled kernel against the block interpreter, through the C interface: equal in every bit.
#![cfg(feature = "llvm")]
#![expect(unsafe_code, reason = "calls the C interface as a program in another language would")]

#[path = "../../src/expr/random.rs"]
mod random;

use parc::emit::evaluator::ABI;
use parc::expr::{Block, Graph, Id, Input, Kind, Node, Number, Table, TableId, scalar, wire};
use parc_codegen::Kernel;
use parc_codegen::abi::{
    parc_codegen_compile, parc_codegen_free, parc_codegen_free_text, parc_codegen_run, parc_codegen_version,
};
use random::{Random, Style, case};
use std::ffi::CStr;
use std::ptr::null_mut;

/// A kernel that is freed.
struct Native {
    kernel: *mut Kernel,
    roots: usize,
}

impl Native {
    fn new(graph: &Graph, roots: &[Id]) -> Self {
        let kernel = compile(&wire::encode(graph, roots)).expect("the graph is well formed");
        Native { kernel, roots: roots.len() }
    }

    fn run(&self, n: usize, columns: &[&[f64]]) -> Vec<Vec<f64>> {
        assert!(columns.iter().all(|column| column.len() >= n));
        let ins: Vec<*const f64> = columns.iter().map(|column| column.as_ptr()).collect();
        // One more place than asked for, to see that it is left alone.
        let mut out = vec![vec![-77.0; n + 1]; self.roots];
        let outs: Vec<*mut f64> = out.iter_mut().map(Vec::as_mut_ptr).collect();
        // SAFETY: the columns are as long as said and those of `out` are apart.
        let status = unsafe { parc_codegen_run(self.kernel, n as i64, ins.as_ptr(), outs.as_ptr()) };
        assert_eq!(status, 0);
        for column in &mut out {
            assert_eq!(column.pop().map(f64::to_bits), Some((-77f64).to_bits()), "written past the end");
        }
        out
    }
}

impl Drop for Native {
    fn drop(&mut self) {
        // SAFETY: it is from `compile` and freed here only.
        unsafe { parc_codegen_free(self.kernel) };
    }
}

fn compile(bytes: &[u8]) -> Result<*mut Kernel, String> {
    let mut text = null_mut();
    // SAFETY: the pointers are to `bytes` and `text`.
    let kernel = unsafe { parc_codegen_compile(bytes.as_ptr(), bytes.len(), &raw mut text) };
    if !kernel.is_null() {
        return Ok(kernel);
    }
    // SAFETY: without a kernel there is a text.
    let reason = unsafe { CStr::from_ptr(text) }.to_str().expect("UTF-8").to_owned();
    // SAFETY: it is from `compile` and freed here only.
    unsafe { parc_codegen_free_text(text) };
    Err(reason)
}

#[track_caller]
fn assert_bits(a: &[Vec<f64>], b: &[Vec<f64>], what: &str) {
    assert_eq!(a.len(), b.len());
    for (root, (a, b)) in a.iter().zip(b).enumerate() {
        let bits = |column: &[f64]| column.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        assert!(bits(a) == bits(b), "{what}, root {root}:\n{a:?}\n{b:?}");
    }
}

#[test]
fn block_and_kernel_agree_in_every_bit() {
    for seed in 0..40 {
        let style = if seed % 2 == 0 { Style::Tame } else { Style::Wild };
        let points = 1 + (seed as usize * 5) % 67;
        let case = case(1000 + seed, 2 + (seed as usize * 37) % 499, points, style);
        let block = Block::new(&case.graph, &case.roots).run(points, &case.slices());
        let native = Native::new(&case.graph, &case.roots).run(points, &case.slices());
        assert_bits(&native, &block, &format!("seed {seed}"));
        if style == Style::Tame {
            let positive = |column: &Vec<f64>| column.iter().map(|v| v + 0.0).collect::<Vec<_>>();
            let native: Vec<_> = native.iter().map(positive).collect();
            let expected: Vec<_> = case.expected.iter().map(positive).collect();
            assert_bits(&native, &expected, &format!("seed {seed}, but for the sign of a zero"));
        }
    }
}

#[test]
fn every_operation_was_met() {
    let mut met = std::collections::BTreeSet::new();
    for seed in 0..40 {
        let case = case(1000 + seed, 2 + (seed as usize * 37) % 499, 1, Style::Tame);
        met.extend(case.graph.ids().map(|id| case.graph.node(id).name()));
    }
    let all = [
        "add",
        "and",
        "bool",
        "ceil",
        "ceil_div",
        "div",
        "eq",
        "exact_div",
        "exp2",
        "floor",
        "floor_div",
        "input",
        "int",
        "le",
        "log2",
        "lookup",
        "lt",
        "max",
        "min",
        "mod",
        "mul",
        "not",
        "or",
        "real",
        "select",
        "sqrt",
        "sub",
        "to_real",
    ];
    assert_eq!(met.into_iter().collect::<Vec<_>>(), all);
}

/// n in 1..=100, x in -4..4; sums, a division, a choice, a truth value.
fn small() -> (Graph, Vec<Id>) {
    let mut g = Graph::new();
    let n = g.input(Input { name: "n".to_owned(), kind: Kind::Int, lo: 1.0, hi: 100.0 });
    g.input(Input { name: "unused".to_owned(), kind: Kind::Real, lo: 0.0, hi: 1.0 });
    let x = g.input(Input { name: "x".to_owned(), kind: Kind::Real, lo: -4.0, hi: 4.0 });
    let seven = g.int(7);
    let rest = g.put(Node::Mod(n, seven));
    let quotient = g.div(x, n);
    let small = g.lt(quotient, x);
    let chosen = g.select(small, quotient, rest);
    let constant = g.real(2.5);
    (g, vec![rest, quotient, small, chosen, constant, n])
}

#[test]
fn any_number_of_points_in_columns_of_any_alignment() {
    let (g, roots) = small();
    let native = Native::new(&g, &roots);
    let block = Block::new(&g, &roots);
    let mut random = Random(5);
    let ns: Vec<f64> = (0..70).map(|_| 1.0 + random.below(100) as f64).collect();
    let xs: Vec<f64> = (0..70).map(|_| random.between(-4.0, 4.0)).collect();
    for n in [0, 1, 2, 7, 8, 9, 15, 16, 17, 63, 64, 65] {
        for shift in 0..4 {
            let columns = [&ns[shift..shift + n], &xs[..n], &xs[shift..shift + n]];
            let found = native.run(n, &columns);
            assert_bits(&found, &block.run(n, &columns), &format!("{n} points"));
            for i in 0..n {
                let (n, x) = (columns[0][i], columns[2][i]);
                let (rest, quotient) = (n % 7.0, x / n);
                let expected = [rest, quotient, f64::from(u8::from(quotient < x))];
                assert_eq!([found[0][i], found[1][i], found[2][i]].map(f64::to_bits), expected.map(f64::to_bits));
            }
        }
    }
}

#[test]
fn inputs_out_of_range_and_not_numbers() {
    let (g, roots) = small();
    let wild = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 3.7, -0.0, 1e300, 101.0, 0.5, f64::MIN_POSITIVE];
    let columns = [&wild[..], &wild, &wild];
    let found = Native::new(&g, &roots).run(9, &columns);
    assert_bits(&found, &Block::new(&g, &roots).run(9, &columns), "wild");
    assert!(found.iter().flatten().all(|v| v.is_finite()));
}

#[test]
fn without_inputs_and_without_roots() {
    let mut g = Graph::new();
    let two = g.int(2);
    assert_bits(&Native::new(&g, &[two, two]).run(3, &[]), &[vec![2.0; 3], vec![2.0; 3]], "constants");
    assert_bits(&Native::new(&g, &[]).run(11, &[]), &[], "nothing");
}

#[test]
fn a_kernel_runs_on_many_threads() {
    let (g, roots) = small();
    let native = Native::new(&g, &roots);
    let expected = Block::new(&g, &roots).run(3, &[&[1.0, 2.0, 3.0], &[0.0; 3], &[1.5, -2.5, 0.0]]);
    let address = native.kernel as usize;
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let shared = std::mem::ManuallyDrop::new(Native { kernel: address as *mut Kernel, roots: 6 });
                for _ in 0..1000 {
                    let found = shared.run(3, &[&[1.0, 2.0, 3.0], &[0.0; 3], &[1.5, -2.5, 0.0]]);
                    assert_bits(&found, &expected, "threads");
                }
            });
        }
    });
}

#[test]
fn errors_are_texts() {
    assert_eq!(parc_codegen_version(), ABI);
    assert_eq!(compile(b"nonsense"), Err("not an expression graph".to_owned()));
    let (g, roots) = small();
    let bytes = wire::encode(&g, &roots);
    assert_eq!(compile(&bytes[..bytes.len() - 1]), Err("the graph ends early".to_owned()));
    // SAFETY: null is allowed wherever a pointer is optional.
    unsafe {
        assert!(parc_codegen_compile(std::ptr::null(), 0, null_mut()).is_null());
        assert_ne!(parc_codegen_run(std::ptr::null(), 1, std::ptr::null(), std::ptr::null()), 0);
        parc_codegen_free(null_mut());
        parc_codegen_free_text(null_mut());
    }
}

#[test]
fn mutated_bytes_never_bring_the_compiler_down() {
    let case = case(4, 20, 1, Style::Tame);
    let good = wire::encode(&case.graph, &case.roots);
    let mut random = Random(41);
    let mut compiled = 0;
    for _ in 0..400 {
        let mut bytes = good.clone();
        let at = random.below(bytes.len());
        bytes[at] = random.next() as u8;
        if let Ok(kernel) = compile(&bytes) {
            compiled += 1;
            // SAFETY: it is from `compile` and freed here only.
            unsafe { parc_codegen_free(kernel) };
        }
        if compiled == 30 {
            break;
        }
    }
    assert!(compiled > 5, "{compiled}");
}
