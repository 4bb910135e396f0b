//! One test for each rewrite, and for what must not be rewritten.

use super::super::{Graph, Id, Kind, Node};
use super::{flag, int, real};

struct Fixture {
    g: Graph,
    a: Id,
    b: Id,
    c: Id,
    x: Id,
    y: Id,
    p: Id,
    q: Id,
}

/// a, b, c: Ints of 1..=100; x in -1..1, y in 1..10; p, q Bools.
fn fixture() -> Fixture {
    let mut g = Graph::new();
    let [a, b, c] = ["a", "b", "c"].map(|name| int(&mut g, name, 1.0, 100.0));
    let (x, y) = (real(&mut g, "x", -1.0, 1.0), real(&mut g, "y", 1.0, 10.0));
    let [p, q] = ["p", "q"].map(|name| flag(&mut g, name));
    Fixture { g, a, b, c, x, y, p, q }
}

#[test]
fn neutral_elements() {
    let Fixture { mut g, a, x, .. } = fixture();
    for (id, kind) in [(a, Kind::Int), (x, Kind::Real)] {
        let zero = if kind == Kind::Int { g.int(0) } else { g.real(0.0) };
        let one = if kind == Kind::Int { g.int(1) } else { g.real(1.0) };
        assert_eq!([g.add(id, zero), g.add(zero, id), g.sub(id, zero), g.mul(id, one), g.mul(one, id)], [id; 5]);
        assert_eq!(g.mul(id, zero), zero);
        assert_eq!(g.sub(id, id), zero);
    }
    let one = g.int(1);
    assert_eq!(g.div(x, one), x);
    assert_eq!([g.floor_div(a, one), g.ceil_div(a, one), g.exact_div(a, one)], [a; 3]);
}

#[test]
fn constants_fold() {
    let mut g = Graph::new();
    let (seven, two) = (g.int(7), g.int(2));
    let found = [
        (g.add(seven, two), 9.0),
        (g.sub(two, seven), -5.0),
        (g.mul(seven, two), 14.0),
        (g.div(seven, two), 3.5),
        (g.floor_div(seven, two), 3.0),
        (g.ceil_div(seven, two), 4.0),
        (g.put(Node::Mod(seven, two)), 1.0),
        (g.min(seven, two), 2.0),
        (g.max(seven, two), 7.0),
    ];
    for (id, value) in found {
        assert_eq!(g.as_real(id), Some(value));
    }
    let (nine, third) = (g.real(9.0), g.real(1.0 / 3.0));
    let root = g.put(Node::Sqrt(nine));
    let floor = g.put(Node::Floor(third));
    let ceil = g.put(Node::Ceil(third));
    let (log, eight) = (g.put(Node::Log2(seven)), g.int(8));
    let three = g.put(Node::Log2(eight));
    let power = g.put(Node::Exp2(nine));
    let values = [root, floor, ceil, three, power].map(|id| g.as_real(id));
    assert_eq!(values, [3.0, 0.0, 1.0, 3.0, 512.0].map(Some));
    assert!((g.as_real(log).expect("folded") - 2.807_354_922_057_604).abs() < 1e-14);
    let less = g.lt(two, seven);
    assert_eq!(g.as_bool(less), Some(true));
}

#[test]
fn commutative_operands_are_ordered() {
    let Fixture { mut g, a, b, x, y, p, q, .. } = fixture();
    assert_eq!(g.add(a, b), g.add(b, a));
    assert_eq!(g.add(x, y), g.add(y, x));
    assert_eq!(g.mul(x, y), g.mul(y, x));
    assert_eq!(g.min(a, b), g.min(b, a));
    assert_eq!(g.max(x, y), g.max(y, x));
    assert_eq!(g.eq(a, b), g.eq(b, a));
    assert_eq!(g.and(p, q), g.and(q, p));
    assert_eq!(g.or(p, q), g.or(q, p));
    assert_ne!(g.sub(a, b), g.sub(b, a));
    assert_ne!(g.le(a, b), g.le(b, a));
}

#[test]
fn sums_of_ints() {
    let Fixture { mut g, a, b, .. } = fixture();
    let (two, three, five) = (g.int(2), g.int(3), g.int(5));
    let a3 = g.add(a, three);
    assert_eq!(g.add(a3, two), g.add(five, a));
    assert_eq!(g.sub(a3, three), a);
    assert_eq!(g.sub(a3, a), three);
    assert_eq!(g.add(a, a), g.mul(two, a));
    let doubled = g.mul(a, two);
    let trebled = g.mul(three, a);
    assert_eq!(g.add(doubled, trebled), g.mul(a, five));
    assert_eq!(g.sub(trebled, doubled), a);
    let b2 = g.add(b, two);
    let (sum, ab) = (g.add(a3, b2), g.add(a, b));
    assert_eq!(sum, g.add(ab, five));
    // Reals are not reassociated: (x + 1) + 1e16 is not x + (1 + 1e16).
    let Fixture { mut g, x, .. } = fixture();
    let (one, huge) = (g.real(1.0), g.real(1e16));
    let x1 = g.add(x, one);
    let (left, constants) = (g.add(x1, huge), g.add(one, huge));
    assert_ne!(left, g.add(x, constants));
    // Twice is exact.
    let two = g.real(2.0);
    assert_eq!(g.add(x, x), g.mul(two, x));
}

#[test]
fn products_of_ints_have_one_shape() {
    let Fixture { mut g, a, b, c, .. } = fixture();
    let (two, three, six) = (g.int(2), g.int(3), g.int(6));
    let abc = g.product([a, b, c]);
    assert_eq!(abc, g.product([c, a, b]));
    assert_eq!(g.product([b, two, a, three, c]), g.mul(six, abc));
    // Many factors are still right, only less shared.
    let many = g.product([a; 9].into_iter().chain([b; 9]));
    assert!((g.eval(&[2.0, 3.0, 1.0], &[many])[0] - 512.0 * 19_683.0).abs() < 1e-3);
}

#[test]
fn exact_division_cancels() {
    let Fixture { mut g, a, b, c, .. } = fixture();
    let (ab, abc, ac, bc) = (g.mul(a, b), g.product([a, b, c]), g.mul(a, c), g.mul(b, c));
    assert_eq!(g.exact_div(ab, b), a);
    assert_eq!(g.exact_div(abc, ac), b);
    assert_eq!(g.exact_div(abc, bc), a);
    assert_eq!(g.exact_div(ab, ac), g.exact_div(b, c));
    assert_eq!(g.floor_div(ab, ac), g.floor_div(b, c));
    assert_eq!(g.ceil_div(ab, ac), g.ceil_div(b, c));
    let one = g.int(1);
    assert_eq!(g.exact_div(a, a), one);
    let (six, four, three, two) = (g.int(6), g.int(4), g.int(3), g.int(2));
    let (a6, b4, a3, b2) = (g.mul(a, six), g.mul(b, four), g.mul(a, three), g.mul(b, two));
    assert_eq!(g.exact_div(a6, b4), g.exact_div(a3, b2));
    assert_eq!(g.exact_div(a6, two), a3);
    let (rest, expected) = (g.put(Node::Mod(ab, ac)), g.put(Node::Mod(b, c)));
    assert_eq!(rest, g.mul(a, expected));
    assert_eq!(g.divides(b, abc), g.bool(true));
    // Equal quotients round equally.
    assert_eq!(g.div(ab, ac), g.div(b, c));
    // But only of exact operands: these products are rounded first.
    let [u, v, w] = ["u", "v", "w"].map(|name| int(&mut g, name, 1.0, 1e9));
    let (uv, uw) = (g.mul(u, v), g.mul(u, w));
    assert_ne!(g.div(uv, uw), g.div(v, w));
    assert_ne!(g.div(uv, u), g.to_real(v));
    // A negative factor stays: the divisor n · p is positive, p alone is not.
    let [n, p] = ["n", "p"].map(|name| int(&mut g, name, -5.0, -1.0));
    let (an, np) = (g.mul(a, n), g.mul(n, p));
    let quotient = g.floor_div(an, np);
    assert_eq!(g.eval(&[6.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0, -2.0, -3.0], &[quotient]), [-2.0], "-12 / 6");
    // A factor that may be 0 stays.
    let z = int(&mut g, "z", 0.0, 9.0);
    let (az, bz) = (g.mul(a, z), g.mul(b, z));
    let quotient = g.exact_div(az, bz);
    assert_ne!(quotient, g.exact_div(a, b));
    assert_eq!(g.eval(&[6.0, 3.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0, -1.0, -1.0, 0.0], &[quotient]), [0.0]);
}

#[test]
fn small_quotients_are_decided_by_range() {
    let Fixture { mut g, a, .. } = fixture();
    let (zero, one, large) = (g.int(0), g.int(1), g.int(101));
    assert_eq!(g.floor_div(a, large), zero);
    assert_eq!(g.ceil_div(a, large), one);
    assert_eq!(g.put(Node::Mod(a, large)), a);
    let hundred = g.int(100);
    assert_ne!(g.floor_div(a, hundred), zero);
    assert_eq!(g.ceil_div(a, hundred), one);
}

#[test]
fn minima_and_maxima() {
    let Fixture { mut g, a, b, x, y, .. } = fixture();
    let most = g.int(100);
    assert_eq!([g.min(a, a), g.min(a, most), g.max(a, a)], [a; 3]);
    assert_eq!(g.max(a, most), most);
    assert_eq!((g.min(x, y), g.max(x, y)), (x, y), "x <= 1 <= y");
    let less = g.int(99);
    assert_ne!(g.min(a, less), a);
    let least = g.min(a, b);
    assert_eq!([g.min(least, a), g.min(b, least)], [least; 2]);
    assert_eq!([g.max(least, a), g.max(a, least)], [a; 2]);
}

#[test]
fn comparisons_are_decided_by_range() {
    let Fixture { mut g, a, b, x, y, .. } = fixture();
    let (yes, no) = (g.bool(true), g.bool(false));
    let (zero, most, more) = (g.int(0), g.int(100), g.int(101));
    assert_eq!([g.le(a, most), g.lt(a, more), g.lt(zero, a), g.le(x, y), g.le(a, a), g.eq(x, x)], [yes; 6]);
    assert_eq!([g.lt(most, a), g.le(more, a), g.eq(a, zero), g.lt(y, x), g.lt(a, a)], [no; 5]);
    for undecided in [g.lt(a, most), g.lt(x, y), g.eq(x, y), g.le(a, b), g.eq(a, most)] {
        assert_eq!(g.as_bool(undecided), None);
    }
}

#[test]
fn selects() {
    let Fixture { mut g, a, b, p, q, .. } = fixture();
    let (yes, no) = (g.bool(true), g.bool(false));
    assert_eq!([g.select(p, a, a), g.select(yes, a, b), g.select(no, b, a)], [a; 3]);
    let not_p = g.not(p);
    assert_eq!(g.select(not_p, a, b), g.select(p, b, a));
    let inner = g.select(p, a, b);
    assert_eq!(g.select(p, inner, b), inner);
    assert_eq!(g.select(p, a, inner), inner);
    assert_eq!([g.select(p, yes, no), g.select(p, no, yes)], [p, not_p]);
    assert_eq!(g.select(p, yes, q), g.or(p, q));
    assert_eq!(g.select(p, q, no), g.and(p, q));
    assert_eq!(g.select(p, no, q), g.and(not_p, q));
    assert_eq!(g.select(p, q, yes), g.or(not_p, q));
}

#[test]
fn truth_values() {
    let Fixture { mut g, a, b, p, q, .. } = fixture();
    let (yes, no) = (g.bool(true), g.bool(false));
    assert_eq!([g.and(p, yes), g.or(no, p), g.and(p, p), g.or(p, p)], [p; 4]);
    assert_eq!([g.and(p, no), g.or(p, yes)], [no, yes]);
    let not_p = g.not(p);
    assert_eq!((g.not(not_p), g.and(p, not_p), g.or(not_p, p)), (p, no, yes));
    let le = g.le(a, b);
    assert_eq!(g.not(le), g.lt(b, a));
    let eq = g.eq(a, b);
    let not_eq = g.not(eq);
    assert_eq!(g.node(not_eq), Node::Not(eq));
    assert_eq!((g.eq(p, yes), g.eq(no, p)), (p, not_p));
    assert_ne!(g.eq(p, q), yes);
}

#[test]
fn conversions() {
    let Fixture { mut g, a, b, x, p, .. } = fixture();
    let real = g.to_real(a);
    assert_eq!((g.put(Node::Floor(real)), g.put(Node::Ceil(real)), g.to_real(real)), (a, a, real));
    assert_eq!(g.put(Node::Floor(a)), a);
    // Mixed operands meet as Reals, whoever puts them.
    let (mixed, direct) = (g.add(a, x), g.put(Node::Add(real, x)));
    assert_eq!((mixed, g.kind(mixed)), (direct, Kind::Real));
    assert_eq!(g.put(Node::Div(a, b)), g.div(a, b));
    // A Bool counts as 1 or 0, a number as whether it is not 0.
    let counted = g.add(p, a);
    assert_eq!(g.eval(&[5.0, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0], &[counted]), [6.0]);
    assert_eq!(g.and(a, p), p);
    // An exact division of Reals that are Ints is one of Ints.
    let real_b = g.to_real(b);
    assert_eq!(g.exact_div(real, real_b), g.exact_div(a, b));
}

#[test]
fn division_by_a_power_of_two_is_a_product_and_no_other() {
    let Fixture { mut g, x, .. } = fixture();
    let (eight, eighth, third) = (g.real(8.0), g.real(0.125), g.real(3.0));
    assert_eq!(g.div(x, eight), g.mul(x, eighth));
    let quotient = g.div(x, third);
    assert!(matches!(g.node(quotient), Node::Div(..)), "49 · (1/49) is not 1, and a floor may read it");
}

#[test]
fn divisions_are_total() {
    let Fixture { mut g, a, b, x, y, .. } = fixture();
    assert_eq!((g.divisor_guard(a), g.divisor_guard(y)), (None, None));
    assert_eq!(g.div(y, y), g.real(1.0));
    let guard = g.divisor_guard(x).expect("x may be 0");
    let quotient = g.div(y, x);
    let zero = g.int(0);
    let whole = g.sub(a, b);
    let by_whole = g.exact_div(a, whole);
    let (by_zero, positive) = (g.div(y, zero), g.divisor_guard(whole).expect("a - b may be 0"));
    let roots = [guard, quotient, by_whole, by_zero, positive];
    assert_eq!(g.eval(&[5.0, 5.0, 1.0, 0.0, 2.0], &roots), [0.0, 2.0, 5.0, 2.0, 0.0]);
    assert_eq!(g.eval(&[5.0, 3.0, 1.0, 0.5, 2.0], &roots), [1.0, 4.0, 2.0, 2.0, 1.0]);
    assert_eq!(g.eval(&[3.0, 5.0, 1.0, -0.5, 2.0], &roots), [1.0, -4.0, 3.0, 2.0, 0.0]);
}

#[test]
fn names_ranges_and_live_nodes() {
    let mut g = Graph::new();
    let (tp, seq) = (int(&mut g, "tp", 1.0, 8.0), int(&mut g, "seq", 1.0, 4096.0));
    let unused = g.add(tp, seq);
    let local = g.exact_div(seq, tp);
    g.name(local, "tokens of a rank");
    g.name(local, "another name");
    let two = g.int(2);
    g.name(two, "a constant has none");
    let bytes = g.mul(local, two);
    assert_eq!((g.label_of(local), g.label_of(two), g.label_of(tp)), (Some("tokens of a rank"), None, Some("tp")));
    assert_eq!(g.range(bytes).int, Some((0, 8192)));
    let (live, roots) = g.live(&[bytes]);
    assert!(live.len() < g.len() && g.label_of(unused).is_none());
    assert_eq!(
        live.to_string(),
        "%0 = input : Int 1..8 \"tp\"\n\
         %1 = input : Int 1..4096 \"seq\"\n\
         %2 = exact_div %1 %0 : Int 0..4096 \"tokens of a rank\"\n\
         %3 = int 2\n\
         %4 = mul %2 %3 : Int 0..8192\n"
    );
    assert_eq!(live.eval(&[4.0, 4096.0], &roots), [2048.0]);
}
