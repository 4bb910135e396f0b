//! Experts: which ones a token chooses, its rows in their slots, and back.
//!
//! A choice is one number: four times the expert and its weight. Slots are as many as a rank has choices, so that none
//! overflows: choice c of the token at position t fills slot t · choices + c of its expert.

use super::array::{Array, Space, walk};
use super::kernels::{Again, World};
use parc::graph::{DimId, Route};

fn decode(x: f64) -> (usize, f64) {
    let expert = (x / 4.0).floor();
    (expert as usize, x - 4.0 * expert)
}

/// The largest scores of each row, weighted by a softmax over them.
pub(super) fn select(world: &World<'_>, g: &Array, experts: DimId, choices: DimId) -> Array {
    world.demand_all(&g.space, &[experts]);
    let k = world.extent(choices);
    let rows = g.space.without(&[experts]);
    let g = g.within(&rows.clone().with(experts, world.all(experts)));
    let mut data = Vec::new();
    for row in g.data.chunks(world.extent(experts)) {
        let best = chosen(row, k);
        let max = row[best[0]];
        let sum: f64 = best.iter().map(|e| (row[*e] - max).exp()).sum();
        data.extend(best.iter().map(|e| 4.0 * *e as f64 + (row[*e] - max).exp() / sum));
    }
    Array { space: rows.with(choices, world.all(choices)), data }
}

fn chosen(row: &[f64], k: usize) -> Vec<usize> {
    let mut order: Vec<_> = (0..row.len()).collect();
    order.sort_by(|a, b| row[*b].total_cmp(&row[*a]));
    order.truncate(k);
    order
}

pub(super) fn select_back(experts: DimId, dy: &Array, g: &Array, world: &World<'_>) -> Array {
    let rows = g.space.without(&[experts]);
    let wide = rows.clone().with(experts, world.all(experts));
    let own = g.within(&wide);
    let n = world.extent(experts);
    let choices = *dy.space.dims.iter().find(|d| rows.at(**d).is_none()).expect("the dimension of choices");
    let k = world.extent(choices);
    let dy = dy.within(&rows.with(choices, world.all(choices)));
    let mut out = Array::filled(wide, 0.0);
    for (at, row) in own.data.chunks(n).enumerate() {
        let best = chosen(row, k);
        let max = row[best[0]];
        let weights: Vec<f64> = best.iter().map(|e| (row[*e] - max).exp()).collect();
        let sum: f64 = weights.iter().sum();
        let given = &dy.data[at * k..][..k];
        let mean: f64 = weights.iter().zip(given).map(|(w, d)| w / sum * d).sum();
        for ((e, w), d) in best.iter().zip(&weights).zip(given) {
            out.data[at * n + e] = w / sum * (d - mean);
        }
    }
    out.within(&g.space)
}

/// Calls `f` with each choice of a rank: the expert's place among those in `slots`, the slot, the weight, the choice and
/// the token, by position. Choices of experts elsewhere are left out.
fn each_choice(r: &Route, slots: &Space, route: &Array, mut f: impl FnMut(usize, usize, f64, usize, &[usize])) {
    let tokens = route.space.without(&[r.choices]);
    let ordered = route.within(&tokens.clone().with(r.choices, route.space.of(r.choices).to_vec()));
    let held = slots.of(r.experts);
    assert_eq!(slots.of(r.slots).len(), ordered.data.len(), "a rank has a slot for each choice of its tokens");
    let k = route.space.of(r.choices).len();
    walk(&ordered.space, &[&ordered.space], |o, point| {
        let (expert, weight) = decode(ordered.data[o[0]]);
        if let Ok(at) = held.binary_search(&expert) {
            f(at, o[0], weight, o[0] % k, &point[..point.len() - 1]);
        }
    });
}

/// Offsets of the rows of a token or slot: the position in `space` of each of `fixed`, everything else free.
fn rows(space: &Space, fixed: &[(DimId, usize)]) -> Vec<usize> {
    let mut all = space.clone();
    for (dim, at) in fixed {
        let d = all.at(*dim).expect("a dimension of the rows");
        all.index[d] = vec![space.index[d][*at]];
    }
    let lens = space.lens();
    let mut out = Vec::new();
    walk(&all, &[], |_, point| {
        let mut offset = 0;
        for (d, dim) in space.dims.iter().enumerate() {
            let at = fixed.iter().find(|(f, _)| f == dim).map_or(point[d], |(_, at)| *at);
            offset = offset * lens[d] + at;
        }
        out.push(offset);
    });
    out
}

fn token(space: &Space, point: &[usize]) -> Vec<(DimId, usize)> {
    space.dims.iter().copied().zip(point.iter().copied()).collect()
}

/// Tokens to the slots of the experts they chose.
pub(super) fn dispatch(r: &Route, h: &Array, route: &Array, place: &dyn Fn(DimId) -> Vec<usize>) -> Array {
    let tokens = route.space.without(&[r.choices]);
    let width = h.space.without(&tokens.dims);
    let outer = Space::new(vec![r.experts, r.slots], place);
    let space = width.dims.iter().zip(&width.index).fold(outer, |s, (d, i)| s.with(*d, i.clone()));
    let mut out = Array::filled(space.clone(), 0.0);
    each_choice(r, &space, route, |expert, slot, _, _, point| {
        let to = rows(&space, &[(r.experts, expert), (r.slots, slot)]);
        for (to, from) in to.into_iter().zip(rows(&h.space, &token(&tokens, point))) {
            out.data[to] = h.data[from];
        }
    });
    out
}

pub(super) fn dispatch_back(r: &Route, dy: &Array, route: &Array, target: &Space) -> Array {
    let tokens = route.space.without(&[r.choices]);
    let mut out = Array::filled(target.clone(), 0.0);
    each_choice(r, &dy.space, route, |expert, slot, _, _, point| {
        let from = rows(&dy.space, &[(r.experts, expert), (r.slots, slot)]);
        for (from, to) in from.into_iter().zip(rows(target, &token(&tokens, point))) {
            out.data[to] += dy.data[from];
        }
    });
    out
}

/// Slots back to their tokens, weighted and added up.
pub(super) fn combine(r: &Route, slots: &Array, route: &Array) -> Array {
    let tokens = route.space.without(&[r.choices]);
    let width = slots.space.without(&[r.experts, r.slots]);
    let space = tokens.and(&width);
    let mut out = Array::filled(space.clone(), 0.0);
    each_choice(r, &slots.space, route, |expert, slot, weight, _, point| {
        let from = rows(&slots.space, &[(r.experts, expert), (r.slots, slot)]);
        for (from, to) in from.into_iter().zip(rows(&space, &token(&tokens, point))) {
            out.data[to] += weight * slots.data[from];
        }
    });
    out
}

pub(super) fn slots_back(r: &Route, dy: &Array, again: &Again<'_>, target: &Space) -> Array {
    let route = again.operand(1);
    let tokens = route.space.without(&[r.choices]);
    let mut out = Array::filled(target.clone(), 0.0);
    each_choice(r, target, route, |expert, slot, weight, _, point| {
        let to = rows(target, &[(r.experts, expert), (r.slots, slot)]);
        for (to, from) in to.into_iter().zip(rows(&dy.space, &token(&tokens, point))) {
            out.data[to] = weight * dy.data[from];
        }
    });
    out
}

/// The gradient of the weight of each choice.
pub(super) fn route_back(r: &Route, dy: &Array, again: &Again<'_>) -> Array {
    let (slots, route) = (again.operand(0), again.operand(1));
    let tokens = route.space.without(&[r.choices]);
    let mut out = Array::filled(route.space.clone(), 0.0);
    each_choice(r, &slots.space, route, |expert, slot, _, choice, point| {
        let from = rows(&slots.space, &[(r.experts, expert), (r.slots, slot)]);
        let given = rows(&dy.space, &token(&tokens, point));
        let mut fixed = token(&tokens, point);
        fixed.push((r.choices, choice));
        let to = rows(&out.space, &fixed)[0];
        out.data[to] += from.into_iter().zip(given).map(|(s, d)| slots.data[s] * dy.data[d]).sum::<f64>();
    });
    out
}
