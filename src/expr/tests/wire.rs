//! The wire format: round trips, and bytes that are wrong.

use super::super::random::{Random, Style, case};
use super::super::wire::{DecodeError, VERSION, decode, encode};
use super::super::{Block, Graph, Id};
use super::{assert_same, int, real};

#[test]
fn round_trip() {
    for seed in 0..50 {
        let case = case(seed, 200, 9, if seed % 2 == 0 { Style::Tame } else { Style::Wild });
        let bytes = encode(&case.graph, &case.roots);
        let (graph, roots) = decode(&bytes).expect("it was encoded");
        assert_eq!(encode(&graph, &roots), bytes);
        assert_eq!(graph.inputs(), case.graph.inputs());
        let (live, live_roots) = case.graph.live(&case.roots);
        assert_eq!(roots, live_roots);
        for id in live.ids() {
            assert_eq!(
                (graph.node(id), graph.kind(id), graph.range(id)),
                (live.node(id), live.kind(id), live.range(id))
            );
        }
        let (a, b) = (Block::new(&graph, &roots), Block::new(&case.graph, &case.roots));
        for (a, b) in a.run(9, &case.slices()).iter().zip(b.run(9, &case.slices())) {
            assert_same(a, &b, "decoded");
        }
    }
}

/// One Int input `n` in 1..=8, and `n + n` as the root.
fn small() -> (Graph, Id) {
    let mut g = Graph::new();
    let n = int(&mut g, "n", 1.0, 8.0);
    let root = g.add(n, n);
    (g, root)
}

#[test]
fn the_bytes_are_as_documented() {
    let (g, root) = small();
    let mut expected = b"parcexpr".to_vec();
    for count in [VERSION, 1, 0, 3, 1, 1] {
        expected.extend(count.to_le_bytes());
    }
    expected.extend(b"n\0");
    expected.extend(1f64.to_le_bytes());
    expected.extend(8f64.to_le_bytes());
    expected.extend([3, 0, 0, 0, 0]);
    expected.extend([0, 2, 0, 0, 0, 0, 0, 0, 0]);
    expected.extend([6, 0, 0, 0, 0, 1, 0, 0, 0]);
    expected.extend([2, 0, 0, 0]);
    assert_eq!(encode(&g, &[root]), expected);
}

#[test]
fn wrong_bytes_are_refused() {
    let (g, root) = small();
    let good = encode(&g, &[root]);
    let header = 8 + 4 * 5;
    let nodes = header + 4 + 1 + 1 + 16;
    let with = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        decode(&bytes).expect_err("they are wrong")
    };
    assert_eq!(with(0, b'x'), DecodeError::NotAGraph);
    assert_eq!(with(8, 99), DecodeError::Version(99));
    assert_eq!(with(header + 5, 3), DecodeError::Input(0, "an unknown kind"));
    assert_eq!(with(header + 4, 0xff), DecodeError::Input(0, "a name that is not UTF-8"));
    assert_eq!(
        with(header + 6, 1),
        DecodeError::Input(0, "a range its kind cannot have"),
        "1 and an ulp is no integer"
    );
    assert_eq!(with(nodes, 77), DecodeError::Node(0, "an unknown operation"));
    assert_eq!(with(nodes + 1, 1), DecodeError::Node(0, "an input that is not declared"));
    assert_eq!(with(nodes + 5 + 9 + 1, 2), DecodeError::Node(2, "an operand that does not come before it"));
    assert_eq!(with(nodes + 5 + 9, 7), DecodeError::Node(2, "an operand is of the wrong kind"), "a division of Ints");
    assert_eq!(with(nodes + 5 + 8, 0x70), DecodeError::Node(1, "an Int beyond 2^62"));
    assert_eq!(with(good.len() - 4, 3), DecodeError::Root(0));
    assert_eq!(decode(&[good.as_slice(), &[0]].concat()).expect_err("a byte too many"), DecodeError::Trailing);
    let mut g = Graph::new();
    let (x, y) = (real(&mut g, "x", 0.0, 1.0), real(&mut g, "y", 0.0, 1.0));
    let product = g.mul(x, y);
    let mut bytes = encode(&g, &[product]);
    let at = bytes.len() - 4 - 9;
    assert_eq!(std::mem::replace(&mut bytes[at], 7), 6);
    assert_eq!(decode(&bytes).expect_err("x / y"), DecodeError::Node(2, "a divisor that may be 0"));
    for length in 0..good.len() {
        assert!(decode(&good[..length]).is_err(), "{length} bytes");
    }
}

#[test]
fn a_count_beyond_the_bytes_allocates_nothing() {
    let mut bytes = b"parcexpr".to_vec();
    for count in [VERSION, u32::MAX, u32::MAX, u32::MAX, u32::MAX] {
        bytes.extend(count.to_le_bytes());
    }
    assert_eq!(decode(&bytes).expect_err("they are wrong"), DecodeError::Truncated);
}

#[test]
fn mutated_bytes_never_panic() {
    let case = case(3, 60, 3, Style::Wild);
    let good = encode(&case.graph, &case.roots);
    let mut random = Random(99);
    let mut accepted = 0;
    for _ in 0..20_000 {
        let mut bytes = good.clone();
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len());
            bytes[at] = random.next() as u8;
        }
        bytes.truncate(good.len() - random.below(2) * random.below(good.len()));
        if let Ok((graph, roots)) = decode(&bytes) {
            accepted += 1;
            let inputs = vec![1.0; graph.inputs().len()];
            graph.eval(&inputs, &roots);
            Block::new(&graph, &roots).run(1, &[]);
        }
    }
    assert!(accepted > 100, "{accepted} mutations kept the graph well formed");
}
