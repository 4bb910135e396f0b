//! What each op means: its result from its operands and its gradients from that of the result, on what a rank holds.
//!
//! The same code runs on whole arrays and on pieces: an op never reads an index that its operands do not hold.

use super::array::{Array, Space, walk};
use super::attention;
use super::experts;
use parc::graph::{DimId, MapFn, NormKind, Op, OpGraph, OpKind};

/// The numbers of a statistic that has two.
const PAIR: DimId = DimId(u32::MAX);
const EPSILON: f64 = 1e-5;

/// A graph and the extents of its dimensions.
pub(super) struct World<'a> {
    pub(super) graph: &'a OpGraph,
    pub(super) extents: Vec<usize>,
}

/// What a backward reads beside the gradient of the result.
pub(super) struct Again<'a> {
    /// Operands, where they are kept.
    pub(super) operands: Vec<Option<&'a Array>>,
    /// The result, where it is kept.
    pub(super) result: Option<&'a Array>,
    pub(super) statistics: Vec<&'a Array>,
}

impl Again<'_> {
    pub(super) fn operand(&self, at: usize) -> &Array {
        self.operands[at].unwrap_or_else(|| panic!("the backward needs operand {at}, which was not kept"))
    }
}

impl World<'_> {
    pub(super) fn extent(&self, dim: DimId) -> usize {
        self.extents[dim.0 as usize]
    }

    pub(super) fn all(&self, dim: DimId) -> Vec<usize> {
        (0..self.extent(dim)).collect()
    }

    fn volume(&self, dims: &[DimId]) -> f64 {
        dims.iter().map(|d| self.extent(*d)).product::<usize>() as f64
    }

    /// A reduction over `dims` within one rank needs all of them there.
    pub(super) fn demand_all(&self, space: &Space, dims: &[DimId]) {
        for dim in dims {
            assert_eq!(space.of(*dim), self.all(*dim), "a rank holds a part of {dim:?} and needs all of it");
        }
    }

    /// Whether the gradients of the operands of `op` need none of them.
    pub(super) fn needs_no_operands(op: &Op) -> bool {
        let OpKind::Map(f) = op.kind else { return false };
        matches!(f, MapFn::Add | MapFn::Sub | MapFn::Scale(_) | MapFn::Offset(_) | MapFn::Cast | MapFn::Rope(_))
    }

    /// The result of `op`; `place` says which indices of a dimension the rank is to make, where operands do not say.
    pub(super) fn forward(
        &self,
        op: &Op,
        ins: &[&Array],
        statistics: &[&Array],
        place: &dyn Fn(DimId) -> Vec<usize>,
    ) -> Array {
        let x = ins[0];
        match &op.kind {
            OpKind::Contract { contracted } => {
                let target = x.space.and(&ins[1].space).without(contracted);
                Array::sum_of(&[x, ins[1]], &target)
            }
            OpKind::Map(f) => self.map(*f, ins),
            OpKind::Norm { kind, over } => {
                let (hat, _) = self.normal(*kind, over, x, statistics);
                let scaled = ins.get(1).map_or(hat.clone(), |gain| hat.zip(gain, |a, g| a * g));
                ins.get(2).map_or(scaled.clone(), |bias| scaled.zip(bias, |a, b| a + b))
            }
            OpKind::Softmax { over } => {
                let (max, sum) = self.soft(x, &[*over], statistics);
                x.zip(&max, |x, m| (x - m).exp()).zip(&sum, |e, s| e / s)
            }
            OpKind::CrossEntropy { over, .. } => self.loss(op, x, *over, statistics),
            OpKind::Embed { over, bag } => {
                let (ids, table) = (x, ins[1]);
                let hot = Self::hot(ids, *over, table.space.of(*over));
                let gone: Vec<_> = bag.iter().copied().chain([*over]).collect();
                let target = ids.space.and(&table.space.without(&[*over])).without(&gone);
                Array::sum_of(&[&hot, table], &target)
            }
            OpKind::Take { from, to } => {
                let rows = place(*to);
                let part = x.part(*from, &rows);
                Array { space: part.space.renamed(*from, *to), ..part }
            }
            OpKind::Rename { from, to } => Array { space: x.space.clone().renamed(*from, *to), ..x.clone() },
            OpKind::Sum { over } => Array::sum_of(&[x], &x.space.without(over)),
            OpKind::Split { from, into } => self.split(x, *from, into),
            OpKind::Merge { from, into } => self.merge(x, from, *into),
            OpKind::Attention(a) => attention::forward(self, a, ins),
            OpKind::Select { experts, choices, .. } => experts::select(self, x, *experts, *choices),
            OpKind::Dispatch(r) => experts::dispatch(r, ins[0], ins[1], place),
            OpKind::Combine(r) => experts::combine(r, ins[0], ins[1]),
            OpKind::Concat { .. } | OpKind::Regroup { .. } | OpKind::Custom(_) => {
                panic!("{:?} has no meaning here", op.kind)
            }
        }
    }

    /// The gradients of the operands that have a target.
    pub(super) fn backward(
        &self,
        op: &Op,
        dy: &Array,
        again: &Again<'_>,
        targets: &[Option<Space>],
    ) -> Vec<Option<Array>> {
        let each = |f: &dyn Fn(usize, &Space) -> Array| -> Vec<Option<Array>> {
            targets.iter().enumerate().map(|(at, t)| t.as_ref().map(|t| f(at, t))).collect()
        };
        match &op.kind {
            OpKind::Contract { .. } => each(&|at, t| Array::sum_of(&[dy, again.operand(1 - at)], t)),
            OpKind::Map(f) => each(&|at, t| self.map_back(*f, dy, again, at, t)),
            OpKind::Norm { kind, over } => {
                let x = again.operand(0);
                let forward = usize::from(!again.statistics.is_empty());
                let (hat, scale) = self.normal(*kind, over, x, &again.statistics[..forward]);
                let own;
                let sums = match again.statistics.get(1) {
                    Some(s) => *s,
                    None => {
                        self.demand_all(&x.space, over);
                        own = Self::norm_sums(*kind, over, dy, &hat, again);
                        &own
                    }
                };
                let scaled = Self::scaled(dy, again);
                let n = self.volume(over);
                each(&|at, t| match at {
                    0 => {
                        let along = pair(sums, 1).map(|s| s / n);
                        let less = scaled.zip(&hat.zip(&along, |h, s| h * s), |d, p| d - p);
                        let less = match kind {
                            NormKind::Rms => less,
                            NormKind::Layer => less.zip(&pair(sums, 0), |d, s| d - s / n),
                        };
                        less.zip(&scale, |d, r| d * r)
                    }
                    1 => Array::sum_of(&[dy, &hat], t),
                    _ => Array::sum_of(&[dy], t),
                })
            }
            OpKind::Softmax { over } => {
                let y = again.result.expect("a softmax keeps its result");
                let own;
                let dot = match again.statistics.first() {
                    Some(s) => *s,
                    None => {
                        self.demand_all(&y.space, &[*over]);
                        own = Array::sum_of(&[dy, y], &y.space.without(&[*over]));
                        &own
                    }
                };
                each(&|_, _| y.zip(&dy.zip(dot, |d, s| d - s), |y, d| y * d))
            }
            OpKind::CrossEntropy { over, .. } => each(&|_, t| self.loss_back(op, dy, again, *over, t)),
            OpKind::Embed { over, .. } => each(&|_, t| {
                let hot = Self::hot(again.operand(0), *over, t.of(*over));
                Array::sum_of(&[dy, &hot], t)
            }),
            OpKind::Take { from, to } => each(&|_, t| {
                let back = Array { space: dy.space.clone().renamed(*to, *from), ..dy.clone() };
                let mut out = Array::filled(t.clone(), 0.0);
                scatter(&back, &mut out);
                out
            }),
            OpKind::Rename { from, to } => {
                each(&|_, t| Array { space: dy.space.clone().renamed(*to, *from), ..dy.clone() }.within(t))
            }
            OpKind::Sum { .. } => each(&|_, t| {
                let ones = Array::filled(t.clone(), 1.0);
                ones.zip(dy, |_, d| d).within(t)
            }),
            OpKind::Split { from, into } => each(&|_, t| self.merge(dy, into, *from).within(t)),
            OpKind::Merge { from, into } => each(&|_, t| self.split(dy, *into, from).within(t)),
            OpKind::Attention(a) => attention::backward(self, a, dy, again, targets),
            OpKind::Select { experts, .. } => each(&|_, _| experts::select_back(*experts, dy, again.operand(0), self)),
            OpKind::Dispatch(r) => each(&|_, t| experts::dispatch_back(r, dy, again.operand(1), t)),
            OpKind::Combine(r) => each(&|at, t| {
                if at == 0 { experts::slots_back(r, dy, again, t) } else { experts::route_back(r, dy, again) }
            }),
            OpKind::Concat { .. } | OpKind::Regroup { .. } | OpKind::Custom(_) => {
                panic!("{:?} has no meaning here", op.kind)
            }
        }
    }

    /// A rank's part of statistic `n` of `op`.
    pub(super) fn statistic(&self, op: &Op, n: u8, dy: Option<&Array>, again: &Again<'_>) -> Array {
        let row = |x: &Array, over: &[DimId]| x.space.without(over);
        match (&op.kind, n) {
            (OpKind::Norm { kind, over }, 0) => squares(*kind, over, again.operand(0)),
            (OpKind::Norm { kind, over }, _) => {
                let (hat, _) = self.normal(*kind, over, again.operand(0), &again.statistics[..1]);
                Self::norm_sums(*kind, over, dy.expect("a backward's statistic"), &hat, again)
            }
            (OpKind::Softmax { over }, 0) => again.operand(0).max_over(&[*over]),
            (OpKind::Softmax { over }, 1) => exponentials(again.operand(0), &[*over], again.statistics[0]),
            (OpKind::Softmax { over }, _) => {
                let y = again.result.expect("a softmax keeps its result");
                Array::sum_of(&[dy.expect("a backward's statistic"), y], &row(y, &[*over]))
            }
            (OpKind::CrossEntropy { over, .. }, 0) => again.operand(0).max_over(over.as_slice()),
            (OpKind::CrossEntropy { over, .. }, 1) => {
                self.target_logit(again.operand(0), over.expect("classes are split"))
            }
            (OpKind::CrossEntropy { over, .. }, _) => {
                exponentials(again.operand(0), over.as_slice(), again.statistics[0])
            }
            _ => panic!("{:?} keeps no statistics", op.kind),
        }
    }

    /// `x` normalised, and what it was multiplied with.
    fn normal(&self, kind: NormKind, over: &[DimId], x: &Array, statistics: &[&Array]) -> (Array, Array) {
        let own;
        let sums = match statistics.first() {
            Some(s) => *s,
            None => {
                self.demand_all(&x.space, over);
                own = squares(kind, over, x);
                &own
            }
        };
        let n = self.volume(over);
        match kind {
            NormKind::Rms => {
                let scale = sums.map(|s| 1.0 / (s / n + EPSILON).sqrt());
                (x.zip(&scale, |x, r| x * r), scale)
            }
            NormKind::Layer => {
                let (mean, square) = (pair(sums, 0).map(|s| s / n), pair(sums, 1).map(|s| s / n));
                let scale = square.zip(&mean, |q, m| 1.0 / (q - m * m + EPSILON).sqrt());
                (x.zip(&mean, |x, m| x - m).zip(&scale, |x, r| x * r), scale)
            }
        }
    }

    /// The gradient before the gain.
    fn scaled(dy: &Array, again: &Again<'_>) -> Array {
        match again.operands.len() {
            0 | 1 => dy.clone(),
            _ => dy.zip(again.operand(1), |d, g| d * g),
        }
    }

    fn norm_sums(kind: NormKind, over: &[DimId], dy: &Array, hat: &Array, again: &Again<'_>) -> Array {
        let scaled = Self::scaled(dy, again);
        let rows = hat.space.without(over);
        let along = Array::sum_of(&[&scaled, hat], &rows);
        match kind {
            NormKind::Rms => along,
            NormKind::Layer => both(&Array::sum_of(&[&scaled], &rows), &along),
        }
    }

    /// Maximum and sum of exponentials over `over`.
    fn soft(&self, x: &Array, over: &[DimId], statistics: &[&Array]) -> (Array, Array) {
        if let [max, .., sum] = statistics {
            return ((*max).clone(), (*sum).clone());
        }
        self.demand_all(&x.space, over);
        let max = x.max_over(over);
        let sum = exponentials(x, over, &max);
        (max, sum)
    }

    /// Every row has the class that its indices say.
    fn class(indices: &[usize], classes: usize) -> usize {
        indices.iter().fold(1, |h, i| (h * 7 + i * 3 + 1) % 101) % classes
    }

    fn target_logit(&self, x: &Array, over: DimId) -> Array {
        let rows = x.space.without(&[over]);
        let at = x.space.at(over).expect("classes");
        let picked = Array::made(x.space.clone(), |i| {
            let row: Vec<_> = i.iter().enumerate().filter(|(d, _)| *d != at).map(|(_, i)| *i).collect();
            f64::from(u8::from(Self::class(&row, self.extent(over)) == i[at]))
        });
        Array::sum_of(&[&picked, x], &rows)
    }

    /// Rows of the whole loss.
    fn rows(&self, op: &Op, over: Option<DimId>) -> f64 {
        let dims = &self.graph.value(op.inputs[0]).dims;
        let rows: Vec<_> = dims.iter().copied().filter(|d| Some(*d) != over).collect();
        if self.graph.value(op.output).dims.is_empty() { self.volume(&rows) } else { 1.0 }
    }

    fn loss(&self, op: &Op, x: &Array, over: Option<DimId>, statistics: &[&Array]) -> Array {
        let n = self.rows(op, over);
        let each = match over {
            Some(over) => {
                let own;
                let target = match statistics.get(1) {
                    Some(t) => *t,
                    None => {
                        own = self.target_logit(x, over);
                        &own
                    }
                };
                let (max, sum) = self.soft(x, &[over], statistics);
                max.zip(&sum, |m, s| m + s.ln()).zip(target, |l, t| (l - t) / n)
            }
            None => {
                let truth = Array::made(x.space.clone(), |i| Self::class(i, 2) as f64);
                x.zip(&truth, |x, y| (x.max(0.0) - x * y + (-x.abs()).exp().ln_1p()) / n)
            }
        };
        let scalar = self.graph.value(op.output).dims.is_empty();
        if scalar { Array::sum_of(&[&each], &Space::default()) } else { each }
    }

    fn loss_back(&self, op: &Op, dy: &Array, again: &Again<'_>, over: Option<DimId>, target: &Space) -> Array {
        let x = again.operand(0);
        let n = self.rows(op, over);
        let away = match over {
            Some(over) => {
                let (max, sum) = self.soft(x, &[over], &again.statistics);
                let at = x.space.at(over).expect("classes");
                let truth = Array::made(x.space.clone(), |i| {
                    let row: Vec<_> = i.iter().enumerate().filter(|(d, _)| *d != at).map(|(_, i)| *i).collect();
                    f64::from(u8::from(Self::class(&row, self.extent(over)) == i[at]))
                });
                x.zip(&max, |x, m| (x - m).exp()).zip(&sum, |e, s| e / s).zip(&truth, |p, y| p - y)
            }
            None => {
                let truth = Array::made(x.space.clone(), |i| Self::class(i, 2) as f64);
                x.zip(&truth, |x, y| 1.0 / (1.0 + (-x).exp()) - y)
            }
        };
        away.zip(dy, |a, d| a * d / n).within(target)
    }

    /// 1 where an id is the row.
    fn hot(ids: &Array, over: DimId, rows: &[usize]) -> Array {
        let space = ids.space.clone().with(over, rows.to_vec());
        let mut out = Array::filled(space.clone(), 0.0);
        let mut at = 0;
        walk(&space, &[&ids.space], |o, point| {
            let row = rows[point[point.len() - 1]] as f64;
            out.data[at] = f64::from(u8::from((ids.data[o[0]] - row).abs() < 0.5));
            at += 1;
        });
        out
    }

    fn map(&self, f: MapFn, ins: &[&Array]) -> Array {
        let two = |g: &dyn Fn(f64, f64) -> f64| ins[0].zip(ins[1], g);
        match f {
            MapFn::Add => two(&|a, b| a + b),
            MapFn::Sub => two(&|a, b| a - b),
            MapFn::Mul => two(&|a, b| a * b),
            MapFn::Div => two(&|a, b| a / b),
            MapFn::Rope(base) => self.rotated(ins[0], base, 1.0),
            MapFn::Shift(_) => panic!("a shift has no dimension"),
            MapFn::Cast => ins[0].clone(),
            MapFn::Silu
            | MapFn::Gelu
            | MapFn::Relu
            | MapFn::Scale(_)
            | MapFn::Offset(_)
            | MapFn::Inverse(_)
            | MapFn::Sigmoid
            | MapFn::Tanh => ins[0].map(|x| unary(f, x).0),
        }
    }

    fn map_back(&self, f: MapFn, dy: &Array, again: &Again<'_>, at: usize, target: &Space) -> Array {
        match (f, at) {
            (MapFn::Add | MapFn::Cast | MapFn::Offset(_), _) | (MapFn::Sub, 0) => Array::sum_of(&[dy], target),
            (MapFn::Sub, _) => Array::sum_of(&[&dy.map(|d| -d)], target),
            (MapFn::Mul, _) => Array::sum_of(&[dy, again.operand(1 - at)], target),
            (MapFn::Div, 0) => Array::sum_of(&[dy, &again.operand(1).map(|b| 1.0 / b)], target),
            (MapFn::Div, _) => {
                let slope = again.operand(0).zip(again.operand(1), |a, b| -a / (b * b));
                Array::sum_of(&[dy, &slope], target)
            }
            (MapFn::Rope(base), _) => self.rotated(dy, base, -1.0).within(target),
            (MapFn::Scale(c), _) => Array::sum_of(&[&dy.map(|d| c * d)], target),
            _ => Array::sum_of(&[dy, &again.operand(0).map(|x| unary(f, x).1)], target),
        }
    }

    /// Neighbours of the last dimension turned by an angle of their position, or back.
    fn rotated(&self, x: &Array, base: f64, sign: f64) -> Array {
        use parc::graph::DataDim::Sequence;
        let position = x
            .space
            .dims
            .iter()
            .position(|d| (d.0 as usize) < self.graph.dims.len() && self.graph.dim(*d).data == Some(Sequence));
        let last = x.space.dims.len() - 1;
        let width = x.space.index[last].len();
        let mut at = 0;
        let mut out = x.clone();
        walk(&x.space, &[], |_, point| {
            let i = x.space.index[last][point[last]];
            let place = point[last] + 1 - 2 * (i % 2);
            assert!(place < width && x.space.index[last][place] == i + 1 - 2 * (i % 2), "half of a rotated pair");
            let t = position.map_or(0, |p| x.space.index[p][point[p]]) as f64;
            let angle = sign * t / base.powf((i / 2) as f64 / self.extent(x.space.dims[last]) as f64);
            let other = x.data[at - point[last] + place];
            let turned = if i.is_multiple_of(2) { -angle.sin() * other } else { angle.sin() * other };
            out.data[at] = angle.cos() * x.data[at] + turned;
            at += 1;
        });
        out
    }

    /// One dimension as several, outermost first.
    fn split(&self, x: &Array, from: DimId, into: &[DimId]) -> Array {
        let at = x.space.at(from).expect("what is split");
        let digits = |i: usize| {
            let mut rest = i;
            let mut out: Vec<_> = into
                .iter()
                .rev()
                .map(|d| {
                    let digit = rest % self.extent(*d);
                    rest /= self.extent(*d);
                    digit
                })
                .collect();
            out.reverse();
            out
        };
        let mut sets = vec![Vec::new(); into.len()];
        for i in &x.space.index[at] {
            for (set, digit) in sets.iter_mut().zip(digits(*i)) {
                set.push(digit);
            }
        }
        for set in &mut sets {
            set.sort_unstable();
            set.dedup();
        }
        let size: usize = sets.iter().map(Vec::len).product();
        assert_eq!(size, x.space.index[at].len(), "a rank's part of a split dimension is no block of what it becomes");
        let mut space = x.space.clone();
        space.dims.splice(at..=at, into.iter().copied());
        space.index.splice(at..=at, sets);
        Array { space, data: x.data.clone() }
    }

    /// Several dimensions, outermost first, as one.
    fn merge(&self, x: &Array, from: &[DimId], into: DimId) -> Array {
        let others: Vec<_> = x.space.dims.iter().copied().filter(|d| !from.contains(d)).collect();
        let order = others.iter().chain(from).copied().collect();
        let x = x.within(&Space::new(order, |d| x.space.of(d).to_vec()));
        let mut merged = vec![0];
        for d in from {
            let own = x.space.of(*d);
            merged = merged.iter().flat_map(|m| own.iter().map(move |i| m * self.extent(*d) + i)).collect();
        }
        assert!(merged.is_sorted(), "merged indices are in order");
        let space = x.space.without(from).with(into, merged);
        Array { space, data: x.data }
    }
}

/// Adds each element of `from` where it belongs in `to`.
fn scatter(from: &Array, to: &mut Array) {
    let spots: Vec<Vec<usize>> = from
        .space
        .dims
        .iter()
        .zip(&from.space.index)
        .map(|(d, index)| {
            let own = to.space.of(*d);
            index.iter().map(|i| own.binary_search(i).expect("the row is on the rank")).collect()
        })
        .collect();
    let lens = to.space.lens();
    let axes: Vec<_> = from.space.dims.iter().map(|d| to.space.at(*d).expect("a dimension of both")).collect();
    let mut at = 0;
    walk(&from.space, &[], |_, point| {
        let mut where_to = vec![0; lens.len()];
        for (d, p) in point.iter().enumerate() {
            where_to[axes[d]] = spots[d][*p];
        }
        let offset = where_to.iter().zip(&lens).fold(0, |o, (i, len)| o * len + i);
        to.data[offset] += from.data[at];
        at += 1;
    });
}

fn squares(kind: NormKind, over: &[DimId], x: &Array) -> Array {
    let rows = x.space.without(over);
    let square = Array::sum_of(&[x, x], &rows);
    match kind {
        NormKind::Rms => square,
        NormKind::Layer => both(&Array::sum_of(&[x], &rows), &square),
    }
}

fn exponentials(x: &Array, over: &[DimId], max: &Array) -> Array {
    Array::sum_of(&[&x.zip(max, |x, m| (x - m).exp())], &x.space.without(over))
}

/// Two statistics of a row as one tensor.
fn both(a: &Array, b: &Array) -> Array {
    let data = a.data.iter().zip(&b.data).flat_map(|(a, b)| [*a, *b]).collect();
    Array { space: a.space.clone().with(PAIR, vec![0, 1]), data }
}

/// The first or second of two statistics; of one, that.
fn pair(sums: &Array, at: usize) -> Array {
    if sums.space.at(PAIR).is_none() {
        return sums.clone();
    }
    let space = sums.space.without(&[PAIR]);
    Array { space, data: sums.data.iter().skip(at).step_by(2).copied().collect() }
}

/// A function and its slope.
fn unary(f: MapFn, x: f64) -> (f64, f64) {
    let sigmoid = 1.0 / (1.0 + (-x).exp());
    match f {
        MapFn::Silu => (x * sigmoid, sigmoid * (1.0 + x * (1.0 - sigmoid))),
        MapFn::Gelu => {
            // The form with a hyperbolic tangent.
            let c = (2.0 / std::f64::consts::PI).sqrt();
            let t = (c * (x + 0.044_715 * x * x * x)).tanh();
            let slope = 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * c * (1.0 + 3.0 * 0.044_715 * x * x);
            (0.5 * x * (1.0 + t), slope)
        }
        MapFn::Relu => (x.max(0.0), if x > 0.0 { 1.0 } else { 0.0 }),
        MapFn::Scale(c) => (c * x, c),
        MapFn::Offset(c) => (x + c, 1.0),
        MapFn::Inverse(c) => (c / x, -c / (x * x)),
        MapFn::Sigmoid => (sigmoid, sigmoid * (1.0 - sigmoid)),
        MapFn::Tanh => (x.tanh(), 1.0 - x.tanh() * x.tanh()),
        MapFn::Add | MapFn::Sub | MapFn::Mul | MapFn::Div | MapFn::Rope(_) | MapFn::Shift(_) | MapFn::Cast => {
            panic!("{f:?} is no function of one element")
        }
    }
}
