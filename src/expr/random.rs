//! Seeded random graphs over every operation, with the values a direct calculation gives. Tests of the interpreters
//! and of the compiled kernels share this file; the parent module brings the names of `expr` into scope.

use super::{Graph, Id, Input, Kind, Node, Number, Table, TableId, scalar};

/// A deterministic generator: splitmix64.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    pub(super) fn between(&mut self, lo: f64, hi: f64) -> f64 {
        lo + (hi - lo) * ((self.next() >> 11) as f64 / (1u64 << 53) as f64)
    }
}

/// How large values may get.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Style {
    /// Ints stay narrow and Reals far from overflow, so a direct calculation is right.
    Tame,
    /// Anything double lanes can do, with constants at the edges of what they hold. No expected values.
    Wild,
}

/// A graph, points to evaluate it at, and the values expected there.
pub(super) struct Case {
    pub(super) graph: Graph,
    pub(super) roots: Vec<Id>,
    /// One for each input.
    pub(super) columns: Vec<Vec<f64>>,
    /// One for each root.
    pub(super) expected: Vec<Vec<f64>>,
}

impl Case {
    pub(super) fn slices(&self) -> Vec<&[f64]> {
        self.columns.iter().map(Vec::as_slice).collect()
    }
}

const INPUTS: [(&str, Kind, f64, f64); 8] = [
    ("tp", Kind::Int, 1.0, 16.0),
    ("seq", Kind::Int, 1.0, 20_000.0),
    ("batch", Kind::Int, 0.0, 5_000.0),
    ("shift", Kind::Int, -50.0, 50.0),
    ("time", Kind::Real, 1e-3, 1e3),
    ("delta", Kind::Real, -5.0, 5.0),
    ("share", Kind::Real, 0.0, 1.0),
    ("flag", Kind::Bool, 0.0, 1.0),
];

const TABLES: [(Kind, &[f64]); 2] =
    [(Kind::Int, &[3.0, -1.0, 0.0, 16.0, 12.0, 7.0, 8.0]), (Kind::Real, &[0.25, 1e-3, 49.0, -2.5, 0.1])];

type Pool = Vec<(Id, Vec<Number>)>;

/// A graph of about `size` distinct operations at `points` points.
pub(super) fn case(seed: u64, size: usize, points: usize, style: Style) -> Case {
    let mut random = Random(seed);
    let mut graph = Graph::new();
    let mut pool: Pool = Vec::new();
    let mut columns = Vec::new();
    for (name, kind, lo, hi) in INPUTS {
        let id = graph.input(Input { name: name.to_owned(), kind, lo, hi });
        let column: Vec<f64> = (0..points)
            .map(|_| match kind {
                Kind::Int => (random.between(lo, hi + 1.0)).floor().min(hi),
                Kind::Real => random.between(lo, hi),
                Kind::Bool => (random.next() % 2) as f64,
            })
            .collect();
        let values = column.iter().map(|v| match kind {
            Kind::Int => Number::Int(*v as i128),
            Kind::Real => Number::Real(*v),
            Kind::Bool => Number::Bool(*v > 0.0),
        });
        pool.push((id, values.collect()));
        columns.push(column);
    }
    for v in [0, 1, 2, 3, 7, 12, 128, -1, -6, 4097] {
        pool.push((graph.int(v), vec![Number::Int(v.into()); points]));
    }
    for v in [0.0, 1.0, 0.5, 3.0, -2.0, 1e-9, 0.1, 49.0, 1e6] {
        pool.push((graph.real(v), vec![Number::Real(v); points]));
    }
    pool.push((graph.bool(true), vec![Number::Bool(true); points]));
    if style == Style::Wild {
        for v in [(1 << 53) - 1, 1 << 53, (1 << 53) + 1, 1 << 61, -(1 << 52) + 1] {
            pool.push((graph.int(v), Vec::new()));
        }
        for v in [1e308, -1e308, 1e-300, f64::MIN_POSITIVE, f64::MAX, 4_503_599_627_370_497.0] {
            pool.push((graph.real(v), Vec::new()));
        }
    }
    for (kind, values) in TABLES {
        graph.table(Table { kind, values: values.to_vec() });
    }
    let leaves = pool.len();
    for _ in 0..8 * size {
        if pool.len() >= leaves + size {
            break;
        }
        let (node, operands) = operation(&mut random, &graph, &pool);
        let known = graph.len();
        let id = graph.put(node);
        if (id.0 as usize) < known && random.below(4) > 0 {
            continue;
        }
        let values: Vec<Number> = match style {
            Style::Tame => (0..points).map(|point| direct(node, &operands, &pool, point)).collect(),
            Style::Wild => Vec::new(),
        };
        let kept = style == Style::Wild || is_tame(&graph, id, values[0]);
        let reals = node.operands().iter().all(|operand| graph.kind(*operand) != Kind::Int);
        if kept && (reals || graph.exact_only(&[id]).is_none()) {
            pool.push((id, values));
        }
    }
    let roots = pool.iter().map(|(id, _)| *id).collect();
    let expected = pool.iter().map(|(_, values)| values.iter().map(|v| v.as_f64()).collect()).collect();
    Case { graph, roots, columns, expected }
}

fn is_tame(graph: &Graph, id: Id, value: Number) -> bool {
    let range = graph.range(id);
    match (graph.kind(id), value) {
        (Kind::Int, Number::Int(_)) => range.narrow(),
        (Kind::Real, Number::Real(_)) => range.lo.abs().max(range.hi.abs()) < 1e100,
        (kind, value) => kind == Kind::Bool && matches!(value, Number::Bool(_)),
    }
}

/// A random operation on members of the pool: the node and its operands' places in the pool.
fn operation(random: &mut Random, graph: &Graph, pool: &Pool) -> (Node, Vec<usize>) {
    let mut pick = |kind: Kind| loop {
        // Half of the time something recent, so that graphs get deep.
        let recent = random.next().is_multiple_of(2) && pool.len() > 12;
        let at = if recent { pool.len() - 1 - random.below(12) } else { random.below(pool.len()) };
        if graph.kind(pool[at].0) == kind {
            return at;
        }
    };
    let (int, real, bool) = (Kind::Int, Kind::Real, Kind::Bool);
    let (i, j) = (pick(int), pick(int));
    let (x, y) = (pick(real), pick(real));
    let (p, q) = (pick(bool), pick(bool));
    let id = |at: usize| pool[at].0;
    let two = |node: fn(Id, Id) -> Node, a: usize, b: usize| (node(id(a), id(b)), vec![a, b]);
    let one = |node: fn(Id) -> Node, a: usize| (node(id(a)), vec![a]);
    match random.below(36) {
        0 => two(Node::Add, i, j),
        1 => two(Node::Sub, i, j),
        2 | 3 => two(Node::Mul, i, j),
        4 => two(Node::Add, x, y),
        5 => two(Node::Sub, x, y),
        6 => two(Node::Mul, x, y),
        7 => two(Node::Div, x, y),
        8 => two(Node::Div, i, j),
        9 => two(Node::Mul, i, x),
        10 => one(Node::ToReal, i),
        11 => one(Node::Floor, x),
        12 => one(Node::Ceil, x),
        13 => one(Node::Sqrt, x),
        14 => one(Node::Log2, x),
        15 => one(Node::Exp2, x),
        16 => two(Node::FloorDiv, i, j),
        17 => two(Node::CeilDiv, i, j),
        18 => two(Node::Mod, i, j),
        19 => two(Node::ExactDiv, i, j),
        20 => two(Node::Min, i, j),
        21 => two(Node::Max, i, j),
        22 => two(Node::Min, x, y),
        23 => two(Node::Max, x, y),
        24 => (Node::Select(id(p), id(i), id(j)), vec![p, i, j]),
        25 => (Node::Select(id(p), id(x), id(y)), vec![p, x, y]),
        26 => (Node::Select(id(p), id(q), id(q)), vec![p, q, q]),
        27 => two(Node::Le, i, j),
        28 => two(Node::Lt, x, y),
        29 => two(Node::Eq, i, j),
        30 => two(Node::Eq, p, q),
        31 => two(Node::And, p, q),
        32 => two(Node::Or, p, q),
        33 => one(|i| Node::Lookup(TableId(0), i), i),
        34 => one(|i| Node::Lookup(TableId(1), i), j),
        _ => one(Node::Not, p),
    }
}

/// What `node` means, said once more without the graph.
fn direct(node: Node, operands: &[usize], pool: &Pool, point: usize) -> Number {
    let of = |k: usize| match pool[operands[k]].1[point] {
        Number::Bool(v) => Number::Int(v.into()),
        number => number,
    };
    let ints = || match (of(0), of(1)) {
        (Number::Int(a), Number::Int(b)) => Some((a, b)),
        _ => None,
    };
    let arithmetic = |int: fn(i128, i128) -> i128, real: fn(f64, f64) -> f64| match ints() {
        Some((a, b)) => Number::Int(int(a, b)),
        None => Number::Real(real(of(0).as_f64(), of(1).as_f64())),
    };
    let quotient = |int: fn(i128, i128) -> i128| Number::Int(int(of(0).as_int(), of(1).as_int().max(1)));
    let compare = |int: fn(&i128, &i128) -> bool, real: fn(&f64, &f64) -> bool| match ints() {
        Some((a, b)) => Number::Bool(int(&a, &b)),
        None => Number::Bool(real(&of(0).as_f64(), &of(1).as_f64())),
    };
    let truth = |k: usize| of(k).as_bool();
    match node {
        Node::Add(..) => arithmetic(|a, b| a + b, |a, b| a + b),
        Node::Sub(..) => arithmetic(|a, b| a - b, |a, b| a - b),
        Node::Mul(..) => arithmetic(|a, b| a * b, |a, b| a * b),
        Node::Min(..) => arithmetic(i128::min, f64::min),
        Node::Max(..) => arithmetic(i128::max, f64::max),
        Node::Div(..) => {
            let b = of(1).as_f64();
            Number::Real(of(0).as_f64() / if b == 0.0 { 1.0 } else { b })
        }
        Node::ToReal(_) => Number::Real(of(0).as_f64()),
        Node::Floor(_) => Number::Int(of(0).as_f64().floor() as i128),
        Node::Ceil(_) => Number::Int(of(0).as_f64().ceil() as i128),
        Node::Sqrt(_) => Number::Real(of(0).as_f64().max(0.0).sqrt()),
        Node::Log2(_) => Number::Real(scalar::log2(of(0).as_f64().max(f64::MIN_POSITIVE))),
        Node::Exp2(_) => Number::Real(scalar::exp2(of(0).as_f64())),
        Node::FloorDiv(..) | Node::ExactDiv(..) => quotient(i128::div_euclid),
        Node::CeilDiv(..) => quotient(|a, b| (a + b - 1).div_euclid(b)),
        Node::Mod(..) => quotient(i128::rem_euclid),
        Node::Select(..) => {
            let taken = if truth(0) { 1 } else { 2 };
            match (of(1), of(2)) {
                (Number::Int(_), Number::Int(_)) => pool[operands[taken]].1[point],
                _ => Number::Real(of(taken).as_f64()),
            }
        }
        Node::Lookup(table, _) => {
            let (kind, values) = TABLES[table.0 as usize];
            let v = values[of(0).as_int().clamp(0, values.len() as i128 - 1) as usize];
            if kind == Kind::Int { Number::Int(v as i128) } else { Number::Real(v) }
        }
        Node::Le(..) => compare(i128::le, f64::le),
        Node::Lt(..) => compare(i128::lt, f64::lt),
        Node::Eq(..) => compare(i128::eq, f64::eq),
        Node::And(..) => Number::Bool(truth(0) && truth(1)),
        Node::Or(..) => Number::Bool(truth(0) || truth(1)),
        Node::Not(_) => Number::Bool(!truth(0)),
        Node::Int(_) | Node::Real(_) | Node::Bool(_) | Node::Input(_) => Number::Int(0),
    }
}
