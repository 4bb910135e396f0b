//! Attention on what a rank holds: query heads find their key head by its index, positions by theirs.

use super::array::{Array, Space};
use super::kernels::{Again, World};
use parc::graph::{Attention, DimId};

/// Positions of keys: in self attention they have the queries' dimension too.
const KEYS: DimId = DimId(u32::MAX - 1);

/// Keys or values for each of the `heads` of the queries.
fn for_heads(world: &World<'_>, a: &Attention, x: &Array, heads: &[usize]) -> Array {
    let each = world.extent(a.heads) / world.extent(a.kv_heads);
    let own = x.space.of(a.kv_heads);
    let find =
        |n: &usize| own.binary_search(&(n / each)).unwrap_or_else(|_| panic!("the keys of head {n} are elsewhere"));
    let pick: Vec<_> = heads.iter().map(find).collect();
    let wide = x.picked(a.kv_heads, &pick, a.heads, heads.to_vec());
    Array { space: wide.space.renamed(a.keys, KEYS), ..wide }
}

/// The other way round: what the heads of a group got is added up.
fn of_groups(world: &World<'_>, a: &Attention, wide: &Array, target: &Space) -> Array {
    let each = world.extent(a.heads) / world.extent(a.kv_heads);
    let wide = Array { space: wide.space.clone().renamed(KEYS, a.keys), ..wide.clone() };
    let mut out = Array::filled(target.clone(), 0.0);
    for kv in target.of(a.kv_heads) {
        let heads: Vec<_> = wide.space.of(a.heads).iter().copied().filter(|n| n / each == *kv).collect();
        let part = wide.part(a.heads, &heads);
        let mut one = target.clone();
        let at = one.at(a.kv_heads).expect("key heads");
        one.index[at] = vec![*kv];
        let summed = Array::sum_of(&[&part], &part.space.without(&[a.heads]).with(a.kv_heads, vec![*kv]));
        let summed = summed.within(&one);
        let spot = target.of(a.kv_heads).iter().position(|k| k == kv).expect("it is one of them");
        let inner: usize = target.lens()[at + 1..].iter().product();
        let (len, outer) = (target.index[at].len(), target.lens()[..at].iter().product::<usize>());
        for o in 0..outer {
            out.data[(o * len + spot) * inner..][..inner].copy_from_slice(&summed.data[o * inner..][..inner]);
        }
    }
    out
}

struct Scores {
    k: Array,
    v: Array,
    /// Shares of each key.
    p: Array,
    /// Share of the sink, if there is one.
    sink: Option<Array>,
    scale: f64,
}

fn scores(world: &World<'_>, a: &Attention, q: &Array, k: &Array, v: &Array, sinks: Option<&Array>) -> Scores {
    world.demand_all(&q.space, &[a.head_dim]);
    world.demand_all(&k.space, &[a.keys, a.head_dim]);
    let heads = q.space.of(a.heads).to_vec();
    let (k, v) = (for_heads(world, a, k, &heads), for_heads(world, a, v, &heads));
    let space = q.space.without(&[a.head_dim]).and(&k.space.without(&[a.head_dim]));
    let scale = 1.0 / (world.extent(a.head_dim) as f64).sqrt();
    let (at, of) = (space.at(a.sequence).expect("queries"), space.at(KEYS).expect("keys"));
    let seen = Array::made(space.clone(), |i| {
        let causal = !a.causal || i[of] <= i[at];
        if causal { 0.0 } else { f64::NEG_INFINITY }
    });
    let s = Array::sum_of(&[q, &k], &space).zip(&seen, |s, m| s * scale + m);
    let mut max = s.max_over(&[KEYS]);
    if let Some(sinks) = sinks {
        max = max.zip(sinks, f64::max);
    }
    let e = s.zip(&max, |s, m| (s - m).exp());
    let mut sum = Array::sum_of(&[&e], &max.space);
    let extra = sinks.map(|x| max.zip(x, |m, x| (x - m).exp()));
    if let Some(extra) = &extra {
        sum = sum.zip(extra, |a, b| a + b);
    }
    let sink = extra.map(|x| x.zip(&sum, |a, b| a / b));
    Scores { p: e.zip(&sum, |e, s| e / s), k, v, sink, scale }
}

pub(super) fn forward(world: &World<'_>, a: &Attention, ins: &[&Array]) -> Array {
    let s = scores(world, a, ins[0], ins[1], ins[2], ins.get(3).copied());
    let target = ins[0].space.without(&[a.head_dim]).with(a.value_dim, s.v.space.of(a.value_dim).to_vec());
    Array::sum_of(&[&s.p, &s.v], &target)
}

pub(super) fn backward(
    world: &World<'_>,
    a: &Attention,
    dy: &Array,
    again: &Again<'_>,
    targets: &[Option<Space>],
) -> Vec<Option<Array>> {
    let q = again.operand(0);
    let sinks = (again.operands.len() > 3).then(|| again.operand(3));
    let s = scores(world, a, q, again.operand(1), again.operand(2), sinks);
    let o = again.result.expect("an attention keeps its result");
    let rows = q.space.without(&[a.head_dim]);
    let dot = Array::sum_of(&[dy, o], &rows);
    let dp = Array::sum_of(&[dy, &s.v], &s.p.space);
    let ds = s.p.zip(&dp.zip(&dot, |d, t| d - t), |p, d| p * d * s.scale);
    let each = |at: usize, t: &Space| match at {
        0 => Array::sum_of(&[&ds, &s.k], t),
        1 => of_groups(world, a, &Array::sum_of(&[&ds, q], &s.k.space), t),
        2 => of_groups(world, a, &Array::sum_of(&[&s.p, dy], &s.v.space), t),
        _ => {
            let share = s.sink.as_ref().expect("there are sinks");
            Array::sum_of(&[&share.map(|x| -x), &dot], t)
        }
    };
    targets.iter().enumerate().map(|(at, t)| t.as_ref().map(|t| each(at, t))).collect()
}
