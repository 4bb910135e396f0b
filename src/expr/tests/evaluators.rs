//! The interpreters against a direct calculation and against each other.

use super::super::random::{Random, Style, case};
use super::super::{Block, Evaluation, Graph, Kind, NARROW, Node, Number, scalar};
use super::{assert_same, flag, int, real};

#[test]
fn random_graphs_mean_what_a_direct_calculation_says() {
    for seed in 0..80 {
        let case = case(seed, 2 + (seed as usize * 7) % 499, 9, Style::Tame);
        for point in 0..9 {
            let inputs: Vec<f64> = case.columns.iter().map(|column| column[point]).collect();
            let found = case.graph.eval(&inputs, &case.roots);
            let expected: Vec<f64> = case.expected.iter().map(|column| column[point]).collect();
            assert_same(&found, &expected, &format!("seed {seed}, point {point}"));
        }
    }
}

#[test]
fn block_equals_exact() {
    for seed in 300..360 {
        let case = case(seed, 2 + (seed as usize * 11) % 499, 70, Style::Tame);
        let columns = Block::new(&case.graph, &case.roots).run(70, &case.slices());
        for (column, expected) in columns.iter().zip(&case.expected) {
            assert_same(column, expected, &format!("seed {seed}"));
        }
    }
}

#[test]
fn wild_graphs_stay_finite_and_agree() {
    for seed in 0..40 {
        let case = case(seed, 2 + (seed as usize * 13) % 499, 33, Style::Wild);
        let columns = Block::new(&case.graph, &case.roots).run(33, &case.slices());
        for point in 0..33 {
            let inputs: Vec<f64> = case.columns.iter().map(|column| column[point]).collect();
            let exact = case.graph.eval(&inputs, &case.roots);
            for ((column, exact), root) in columns.iter().zip(exact).zip(&case.roots) {
                let range = case.graph.range(*root);
                assert!(column[point].is_finite() && exact.is_finite());
                assert!(range.lo <= exact && exact <= range.hi, "seed {seed}: {exact} outside {range:?}");
                if case.graph.kind(*root) == Kind::Int && range.narrow() {
                    assert_same(&[column[point]], &[exact], &format!("seed {seed}, {root:?}"));
                }
            }
        }
    }
}

#[test]
fn every_number_of_points_and_short_columns() {
    let mut g = Graph::new();
    let (x, y) = (int(&mut g, "x", 0.0, 100.0), real(&mut g, "y", 0.5, 2.0));
    let root = g.mul(x, y);
    let block = Block::new(&g, &[root, x]);
    let (xs, ys): (Vec<f64>, Vec<f64>) = (0..65).map(|i| (f64::from(i), 0.5 + f64::from(i) / 50.0)).unzip();
    for n in [0, 1, 7, 8, 9, 31, 32, 33, 64, 65] {
        let out = block.run(n, &[&xs, &ys]);
        assert_eq!(out[0].len(), n);
        for i in 0..n {
            assert_eq!(out[0][i].to_bits(), (xs[i] * ys[i]).to_bits());
            assert_eq!(out[1][i].to_bits(), xs[i].to_bits());
        }
    }
    // What is missing is 0, brought into range: y is 0.5.
    assert_same(&block.run(2, &[&[4.0]])[0], &[2.0, 0.0], "short columns");
    assert_same(&g.eval(&[], &[root]), &[0.0], "no inputs");
}

#[test]
fn inputs_are_brought_into_their_ranges() {
    let mut g = Graph::new();
    let (tp, share, on) = (int(&mut g, "tp", 1.0, 8.0), real(&mut g, "share", 0.0, 1.0), flag(&mut g, "on"));
    let given = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 3.7, -0.0];
    let block = Block::new(&g, &[tp, share, on]).run(5, &[&given, &given, &given]);
    assert_same(&block[0], &[1.0, 8.0, 1.0, 3.0, 1.0], "tp");
    assert_same(&block[1], &[0.0, 1.0, 0.0, 1.0, 0.0], "share");
    assert_same(&block[2], &[0.0, 1.0, 0.0, 1.0, 0.0], "on");
    for (i, v) in given.iter().enumerate() {
        assert_same(&g.eval(&[*v; 3], &[tp, share, on]), &[block[0][i], block[1][i], block[2][i]], "exact");
    }
}

#[test]
fn division_of_doubles_is_integer_division_up_to_the_edge() {
    // Every pair has |a| + b <= 2^53, and sits where the quotient is nearest to the next integer.
    let limit = NARROW as i64;
    let mut pairs = vec![(limit - 1, 1), (limit - 2, 1), (0, limit), (limit / 2, limit / 2)];
    let mut random = Random(53);
    for _ in 0..20_000 {
        let b = 1 + (random.next() >> (random.below(52) + 11)) as i64;
        let most = limit - b;
        let k = most / b - (random.next() % 9).saturating_sub(4) as i64;
        for a in [most, most - 1, k * b, k * b - 1, k * b + 1] {
            if (0..=most).contains(&a) {
                pairs.push((a, b));
            }
        }
    }
    for (a, b) in pairs {
        for a in [a, -a] {
            let (x, y) = (a as f64, b as f64);
            let (wide, divisor) = (i128::from(a), i128::from(b));
            assert_eq!((x / y).floor() as i128, wide.div_euclid(divisor), "{a} / {b}");
            assert_eq!((x / y).ceil() as i128, scalar::ceil_div(wide, divisor), "{a} / {b}");
            assert_eq!((x - y * (x / y).floor()) as i128, wide.rem_euclid(divisor), "{a} / {b}");
        }
    }
    // Beyond the edge it is not: a = k b - 1, and k - 1/b is nearer to k than to the double below.
    let (k, b) = ((1i64 << 20) + 1, (1i64 << 33) + 1);
    let a = k * b - 1;
    assert!(a + b > limit && a as f64 as i64 == a);
    assert_eq!(((a as f64 / b as f64).floor() as i64, a / b), (k, k - 1));
}

#[test]
fn what_lanes_cannot_do_runs_on_the_exact_interpreter() {
    let mut g = Graph::new();
    let (a, b) = (int(&mut g, "a", 0.0, NARROW as f64), int(&mut g, "b", 1.0, 64.0));
    let narrow = g.floor_div(a, b);
    assert_eq!(g.exact_only(&[narrow]), Some(narrow), "a + b may pass 2^53");
    let block = Block::new(&g, &[narrow]).run(2, &[&[NARROW as f64, 10.0], &[3.0, 3.0]]);
    assert_same(&block[0], &[3_002_399_751_580_330.0, 3.0], "(2^53 - 2) / 3 and 10 / 3");

    let wide = g.mul(a, b);
    assert_eq!(g.kind(wide), Kind::Int);
    assert_eq!(g.exact_only(&[wide]), None, "a wide Int may be rounded");
    let odd = g.int(3);
    let rest = g.put(Node::Mod(wide, odd));
    assert_eq!(g.exact_only(&[rest]), Some(rest));
    let near = g.int(1 << 53);
    let far = g.mul(near, odd);
    let gap = g.sub(wide, far);
    assert_eq!(g.exact_only(&[gap]), None, "a wide difference");
}

#[test]
fn an_int_that_outgrows_2_to_the_62_is_real() {
    let mut g = Graph::new();
    let a = int(&mut g, "a", 0.0, 4e9);
    let (b, c) = (int(&mut g, "b", 1.0, 4e9), int(&mut g, "c", 1.0, 1e6));
    let ab = g.mul(a, b);
    assert_eq!(g.kind(ab), Kind::Real, "1.6e19 > 2^62");
    let bc = g.mul(b, c);
    assert_eq!((g.kind(bc), g.range(bc).int), (Kind::Int, Some((1, 4_000_000_000_000_000))));
    let abc = g.mul(ab, c);
    let sum = g.add(abc, c);
    assert_eq!(g.kind(sum), Kind::Real);
    assert_eq!(g.eval(&[3e9, 2e9, 5e5], &[sum]), [3e24 + 5e5]);
    // A constant alike.
    let flops = g.int(i64::MAX);
    assert_eq!((g.kind(flops), g.as_real(flops)), (Kind::Real, Some(2f64.powi(63))));
    // And the discrete operations still see its factors.
    assert_eq!(g.exact_div(ab, b), a);
    assert_eq!(g.exact_div(abc, bc), a);
    let rest = g.put(Node::Mod(abc, c));
    assert_eq!(g.as_int(rest), Some(0));
    let (two, three) = (g.int(2), g.int(3));
    let (twice, thrice) = (g.mul(abc, two), g.mul(b, three));
    let quotient = g.floor_div(twice, thrice);
    let found = g.eval(&[7.0, 11.0, 13.0], &[quotient]);
    assert_eq!(found, [60.0], "2 · 7 · 13 / 3");
}

#[test]
fn wide_ints_agree_to_1e12() {
    let mut g = Graph::new();
    let [a, b, c] = ["a", "b", "c"].map(|name| int(&mut g, name, 1.0, 1e6));
    let (abc, seven) = (g.product([a, b, c]), g.int(7));
    let scaled = g.mul(abc, seven);
    let (ab, large) = (g.mul(a, b), g.int(1 << 55));
    let sum = g.add(ab, large);
    let total = g.add(sum, abc);
    let roots = [abc, scaled, total];
    assert_eq!(roots.map(|id| g.kind(id)), [Kind::Int, Kind::Real, Kind::Int], "7e18 > 2^62");
    let mut random = Random(12);
    let columns: Vec<Vec<f64>> = (0..3).map(|_| (0..100).map(|_| random.between(1.0, 1e6).floor()).collect()).collect();
    let slices: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
    let block = Block::new(&g, &roots).run(100, &slices);
    for point in 0..100 {
        let [a, b, c] = [0, 1, 2].map(|i| columns[i][point] as i128);
        let exact = g.eval(&[a as f64, b as f64, c as f64], &roots);
        let expected = [a * b * c, 7 * a * b * c, a * b + (1 << 55) + a * b * c].map(|v| v as f64);
        for ((found, exact), expected) in block.iter().zip(exact).zip(expected) {
            assert!((found[point] - expected).abs() <= 1e-12 * expected);
            assert!((exact - expected).abs() <= 2.3e-16 * expected, "one rounding");
        }
    }
}

#[test]
fn long_chains_cost_linear_work_and_no_stack() {
    let mut g = Graph::new();
    let (n, x) = (int(&mut g, "n", 1.0, 9.0), real(&mut g, "x", 0.5, 1.0));
    let product = g.product(std::iter::repeat_n(n, 20_000));
    let sum = (0..20_000).fold(x, |sum, k| {
        let k = g.real(f64::from(k));
        let term = g.mul(sum, x);
        g.add(term, k)
    });
    let quotient = g.floor_div(product, n);
    let roots = [product, sum, quotient];
    let exact = g.eval(&[3.0, 0.75], &roots);
    let block = Block::new(&g, &roots).run(1, &[&[3.0], &[0.75]]);
    assert_same(&exact, &block.concat(), "chains");
    assert_same(&exact[..1], &[f64::MAX], "3^20000 saturates");
}

#[test]
fn reals_saturate() {
    let mut g = Graph::new();
    let x = real(&mut g, "x", 0.0, f64::INFINITY);
    let y = real(&mut g, "y", f64::NAN, f64::NAN);
    let square = g.mul(x, y);
    let difference = g.sub(square, y);
    let zero = g.real(0.0);
    let quotient = g.div(difference, zero);
    let over = g.div(square, x);
    let root = g.put(Node::Sqrt(y));
    let log = g.put(Node::Log2(y));
    let power = g.put(Node::Exp2(square));
    let roots = [square, difference, quotient, over, root, log, power];
    let edge = [0.0, f64::MAX, -f64::MAX, 1e-300, f64::from_bits(1)];
    for a in edge {
        for b in edge {
            let exact = g.eval(&[a, b], &roots);
            let block = Block::new(&g, &roots).run(1, &[&[a], &[b]]).concat();
            assert_same(&exact, &block, &format!("{a} {b}"));
        }
    }
    assert_eq!(g.eval(&[f64::MAX, f64::MAX], &[square, difference]), [f64::MAX, 0.0]);
    assert_eq!(g.real(f64::INFINITY), g.real(f64::MAX));
    assert_eq!(g.real(f64::NAN), g.real(0.0));
    assert_eq!(g.real(-0.0), g.real(0.0));
}

#[test]
fn logarithm_and_power_are_close_to_the_true_ones() {
    let mut random = Random(7);
    for _ in 0..200_000 {
        let x = 2f64.powf(random.between(-1000.0, 1000.0));
        let (found, libm) = (scalar::log2(x), x.log2());
        assert!((found - libm).abs() <= 1e-14 * libm.abs().max(0.01), "log2({x}) = {found}, not {libm}");
        let y = random.between(-1022.0, 1023.0);
        let (found, libm) = (scalar::exp2(y), y.exp2());
        assert!((found - libm).abs() <= 4e-15 * libm, "exp2({y}) = {found}, not {libm}");
    }
    for n in -1022..=1023 {
        let power = 2f64.powi(n);
        assert_same(&[scalar::log2(power), scalar::exp2(f64::from(n))], &[f64::from(n), power], "powers of two");
    }
    assert!((scalar::log2(10.0) - std::f64::consts::LOG2_10).abs() < 1e-15 * 4.0);
    assert!((scalar::exp2(0.5) - std::f64::consts::SQRT_2).abs() < 1e-15);
    assert_same(&[scalar::exp2(1e9), scalar::exp2(-1e9)], &[2f64.powi(1023), f64::MIN_POSITIVE], "saturation");
}

#[test]
fn floor_without_the_instruction_is_floor() {
    let mut random = Random(11);
    let check = |x: f64| {
        for x in [x, -x] {
            assert_eq!(scalar::floor(x).to_bits(), x.floor().to_bits(), "floor({x:?})");
            assert_eq!(scalar::ceil(x).to_bits(), x.ceil().to_bits(), "ceil({x:?})");
        }
    };
    for _ in 0..100_000 {
        check(f64::from_bits(random.next() & 0x7fef_ffff_ffff_ffff));
        check(random.between(0.0, 10.0));
        check((random.below(1000) as f64) + if random.next().is_multiple_of(2) { 0.5 } else { 0.0 });
        check(random.between(scalar::TWO_52 / 4.0, scalar::TWO_52 * 4.0));
    }
    [0.0, scalar::TWO_52, scalar::TWO_52 - 0.5, scalar::TWO_52 / 2.0 + 0.5, f64::MAX].into_iter().for_each(check);
}

#[test]
fn an_evaluation_gives_every_node_in_its_kind() {
    let mut g = Graph::new();
    let (x, y) = (int(&mut g, "x", 0.0, 1.5e18), real(&mut g, "y", 0.0, 1.0));
    let three = g.int(3);
    let triple = g.mul(x, three);
    let half = g.real(0.5);
    let above = g.lt(half, y);
    let all = Evaluation::new(&g, &[Number::Int(1_000_000_000_000_000_001), Number::Real(0.75)]);
    assert_eq!(all.value(triple), Number::Int(3_000_000_000_000_000_003), "beyond 2^53, still exact");
    assert_eq!(all.value(above), Number::Bool(true));
    assert_eq!((all.int(triple), all.bool(above)), (3_000_000_000_000_000_003, true));
    assert!((all.real(y) - 0.75).abs() < f64::EPSILON);
}
