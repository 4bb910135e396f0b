//! Tests of the expression graph.

mod evaluators;
mod rewrites;
mod wire;

use super::{Graph, Id, Input, Kind};

fn int(graph: &mut Graph, name: &str, lo: f64, hi: f64) -> Id {
    graph.input(Input { name: name.to_owned(), kind: Kind::Int, lo, hi })
}

fn real(graph: &mut Graph, name: &str, lo: f64, hi: f64) -> Id {
    graph.input(Input { name: name.to_owned(), kind: Kind::Real, lo, hi })
}

fn flag(graph: &mut Graph, name: &str) -> Id {
    graph.input(Input { name: name.to_owned(), kind: Kind::Bool, lo: 0.0, hi: 1.0 })
}

/// Equal in every bit, but for the sign of a zero.
#[track_caller]
fn assert_same(a: &[f64], b: &[f64], what: &str) {
    assert_eq!(a.len(), b.len(), "{what}");
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        assert!(a.is_finite() && (a + 0.0).to_bits() == (b + 0.0).to_bits(), "{what}, place {i}: {a:?} is not {b:?}");
    }
}
