//! Orders for tests: the standard library's formulas, and random legal ones.

use super::{Orders, Schedule, ScheduleOp, check};

/// The schedule of orders that are one.
pub(super) fn legal(orders: &Orders) -> Schedule {
    check(orders).expect("orders of this test are legal")
}

fn f(i: u32, c: u32) -> ScheduleOp {
    ScheduleOp::forward(i64::from(i), c)
}

fn b(i: u32, c: u32) -> ScheduleOp {
    ScheduleOp::backward(i64::from(i), c)
}

fn w(i: u32, c: u32) -> ScheduleOp {
    ScheduleOp::weight(i64::from(i), c)
}

/// One chunk a rank.
fn one_each(p: u32, m: u32, order: impl Fn(u32) -> Vec<ScheduleOp>) -> Orders {
    Orders {
        ranks: (0..p).map(order).collect(),
        hosts: (0..p).map(|s| vec![s]).collect(),
        chunks: p,
        microbatches: m,
        ..Orders::default()
    }
}

/// All forwards, then all backwards.
pub(super) fn gpipe(p: u32, m: u32) -> Orders {
    one_each(p, m, |s| (0..m).map(|i| f(i, s)).chain((0..m).map(|i| b(i, s))).collect())
}

pub(super) fn one_f_one_b(p: u32, m: u32) -> Orders {
    one_each(p, m, |s| {
        let warm = m.min(p - 1 - s);
        let steady = (0..m - warm).flat_map(|i| [f(warm + i, s), b(i, s)]);
        (0..warm).map(|i| f(i, s)).chain(steady).chain((m - warm..m).map(|i| b(i, s))).collect()
    })
}

/// Zero bubble H1.
pub(super) fn zb_h1(p: u32, m: u32) -> Orders {
    one_each(p, m, |s| {
        let (warm, lag) = (m.min(p - 1 - s), m.min(s));
        let late = |i: u32| i.checked_sub(lag).map(|i| w(i, s));
        let steady = (0..m - warm).flat_map(|i| [Some(f(warm + i, s)), Some(b(i, s)), late(i)]);
        let cool = (m - warm..m).flat_map(|i| [Some(b(i, s)), late(i)]);
        let body = (0..warm).map(|i| f(i, s)).chain(steady.flatten()).chain(cool.flatten());
        body.chain((m - lag..m).map(|i| w(i, s))).collect()
    })
}

/// `PipeDream`-2BW: one period of `m` microbatches, then an update.
pub(super) fn two_buffered(p: u32, m: u32) -> Orders {
    let orders = one_each(p, m, |s| {
        let back = i64::from(p - 1 - s);
        let pairs = (0..m).flat_map(|i| [f(i, s), ScheduleOp::backward(i64::from(i) - back, s)]);
        pairs.chain([ScheduleOp::update(s)]).collect()
    });
    Orders { endless: true, ..orders }
}

/// Interleaving of `v` chunks a rank; `group` divides `m`.
pub(super) fn interleaved(p: u32, m: u32, v: u32, group: u32) -> Orders {
    let mb = |k: u32| k / (group * v) * group + k % group;
    let ch = |k: u32| k / group % v;
    let order = |s: u32| {
        let n = m * v;
        let forward = |k: u32| f(mb(k), s + p * ch(k));
        let backward = |k: u32| b(mb(k), s + p * (v - 1 - ch(k)));
        let warm = n.min(2 * (p - 1 - s) + (v - 1) * group);
        let steady = (0..n - warm).flat_map(|k| [forward(warm + k), backward(k)]);
        (0..warm).map(forward).chain(steady).chain((n - warm..n).map(backward)).collect()
    };
    Orders {
        ranks: (0..p).map(order).collect(),
        hosts: (0..p).map(|s| (0..v).map(|j| s + j * p).collect()).collect(),
        chunks: p * v,
        microbatches: m,
        ..Orders::default()
    }
}

/// Operations in an order drawn by `choices`, each on the rank drawn for its chunk, so any mapping and any legal order
/// can come up.
pub(super) fn random(p: u32, chunks: u32, m: u32, split_weights: bool, choices: &[u32]) -> Orders {
    let mut draws = choices.iter().copied().cycle().enumerate();
    let mut draw = |below: usize| draws.next().map_or(0, |(turn, choice)| (choice as usize + turn) % below);
    let ranks: Vec<usize> = (0..chunks).map(|_| draw(p as usize)).collect();
    let mut orders = Orders {
        ranks: vec![Vec::new(); p as usize],
        hosts: vec![Vec::new(); p as usize],
        chunks,
        microbatches: m,
        ..Orders::default()
    };
    for (chunk, &rank) in (0..).zip(&ranks) {
        orders.hosts[rank].push(chunk);
    }
    let mut ready: Vec<ScheduleOp> = if chunks == 0 { Vec::new() } else { (0..m).map(|i| f(i, 0)).collect() };
    while !ready.is_empty() {
        let op = ready.swap_remove(draw(ready.len()));
        let (i, c) = (op.microbatch as u32, op.chunk);
        orders.ranks[ranks[c as usize]].push(op);
        if op.kind == super::OpKind::F {
            ready.push(if c + 1 < chunks { f(i, c + 1) } else { b(i, c) });
        } else if op.kind == super::OpKind::B {
            ready.extend(c.checked_sub(1).map(|c| b(i, c)));
            ready.extend(split_weights.then(|| w(i, c)));
        }
    }
    orders
}
