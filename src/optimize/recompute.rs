//! Which values to make again in the backward instead of keeping them: the cheapest set that fits.
//!
//! A value that is made again needs what it is made from, kept or made again itself. So a set costs the seconds of what
//! runs again, and takes the bytes of what is then kept, and of what lies ready in the backward. [`front`] finds, for one
//! unit, every set that no other beats in all three: exactly, going from the last value to the first and dropping what
//! is beaten among partial sets that still want the same. [`cheapest`] takes one set of each unit so that every stage
//! fits, by branch and bound. Both have a limit, and say where they met it.
//!
//! Law: no set that fits is cheaper.

use crate::limits;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A value of a unit, in the order values are made.
#[derive(Clone, PartialEq, Debug)]
pub struct Item {
    /// Seconds to make it again; none where it can only be kept.
    pub seconds: Option<f64>,
    /// Bytes of it while it is kept; none where it cannot be kept, as a copy in another place.
    pub kept: Option<f64>,
    /// Bytes of it in the backward where it was made again.
    pub ready: f64,
    /// Whether the backward reads it.
    pub needed: bool,
    /// What it is made from: positions of items before it.
    pub from: Vec<usize>,
}

/// A set of values that are made again.
#[derive(Clone, PartialEq, Debug)]
pub struct Set {
    /// Seconds of what runs again, for one microbatch.
    pub seconds: f64,
    /// Bytes kept of one microbatch.
    pub kept: f64,
    /// Bytes that lie ready in the backward because they were made again.
    pub ready: f64,
    /// The items made again, ascending.
    pub again: Vec<usize>,
}

/// The items made again so far, last first.
type Chain = Option<Rc<Link>>;

#[derive(Debug)]
struct Link {
    item: usize,
    rest: Chain,
}

/// Part of a set: the items from some position on are decided.
#[derive(Clone, Debug)]
struct Partial {
    seconds: f64,
    kept: f64,
    ready: f64,
    again: Chain,
}

/// Every set of `items` that no other beats in seconds, bytes kept and bytes ready, the quickest first; and whether that
/// is proved: beyond [`limits::RECOMPUTE_SETS`] partial sets some are dropped.
pub fn front(items: &[Item]) -> (Vec<Set>, bool) {
    let mut proved = true;
    // By the items before the position that are wanted though the backward does not read them.
    let start = Partial { seconds: 0.0, kept: 0.0, ready: 0.0, again: None };
    let mut open: BTreeMap<Vec<usize>, Vec<Partial>> = BTreeMap::from([(Vec::new(), vec![start])]);
    for (at, item) in items.iter().enumerate().rev() {
        let mut next: BTreeMap<Vec<usize>, Vec<Partial>> = BTreeMap::new();
        for (mut wanted, partials) in open {
            let asked = wanted.last() == Some(&at);
            if asked {
                wanted.pop();
            }
            if !asked && !item.needed {
                next.entry(wanted).or_default().extend(partials);
                continue;
            }
            if let Some(bytes) = item.kept {
                let kept = partials.iter().map(|p| Partial { kept: p.kept + bytes, ..p.clone() });
                next.entry(wanted.clone()).or_default().extend(kept);
            }
            if let Some(seconds) = item.seconds {
                let more = item.from.iter().copied().filter(|i| !items[*i].needed);
                wanted.extend(more);
                wanted.sort_unstable();
                wanted.dedup();
                let ready = if item.needed { item.ready } else { 0.0 };
                let made = partials.into_iter().map(|p| Partial {
                    seconds: p.seconds + seconds,
                    kept: p.kept,
                    ready: p.ready + ready,
                    again: Some(Rc::new(Link { item: at, rest: p.again })),
                });
                next.entry(wanted).or_default().extend(made);
            }
        }
        let mut count = 0;
        for partials in next.values_mut() {
            unbeaten(partials);
            count += partials.len();
        }
        if count > limits::RECOMPUTE_SETS {
            proved = false;
            let every = count.div_ceil(limits::RECOMPUTE_SETS) + 1;
            for partials in next.values_mut() {
                let last = partials.len().saturating_sub(1);
                let mut i = 0;
                // The quickest and the smallest stay.
                partials.retain(|_| {
                    i += 1;
                    (i - 1) % every == 0 || i - 1 == last
                });
            }
        }
        open = next;
    }
    let mut left: Vec<Partial> = open.into_values().flatten().collect();
    unbeaten(&mut left);
    let sets = left.into_iter().map(|p| {
        let mut again = Vec::new();
        let mut at = &p.again;
        while let Some(link) = at {
            again.push(link.item);
            at = &link.rest;
        }
        Set { seconds: p.seconds, kept: p.kept, ready: p.ready, again }
    });
    (sets.collect(), proved)
}

/// Leaves the partial sets that no other beats, the quickest first.
fn unbeaten(partials: &mut Vec<Partial>) {
    partials.sort_by(|a, b| {
        a.seconds.total_cmp(&b.seconds).then(a.kept.total_cmp(&b.kept)).then(a.ready.total_cmp(&b.ready))
    });
    // Of those met, the ones with least ready for their kept: ascending in kept, descending in ready.
    let mut stairs: Vec<(f64, f64)> = Vec::new();
    partials.retain(|p| {
        let after = stairs.partition_point(|(kept, _)| *kept <= p.kept);
        if after > 0 && stairs[after - 1].1 <= p.ready {
            return false;
        }
        let beaten = stairs[after..].iter().take_while(|(_, ready)| *ready >= p.ready).count();
        stairs.splice(after..after + beaten, [(p.kept, p.ready)]);
        true
    });
}

/// What a stage leaves for saved values and working sets.
#[derive(Clone, PartialEq, Debug)]
pub struct Stage {
    /// Bytes.
    pub room: f64,
    /// How many microbatches of each unit it keeps at its fullest moment.
    pub live: Vec<f64>,
    /// Bytes of each unit's working set beside what is made again; none where it runs none of that unit.
    pub working: Vec<Option<f64>>,
}

/// One set for each unit.
#[derive(Clone, PartialEq, Debug)]
pub struct Choice {
    /// Position in the front of each unit.
    pub sets: Vec<usize>,
    /// Whether no other choice that fits is cheaper.
    pub proved: bool,
}

/// The cheapest choice, a microbatch of each unit counted `weights` times; none where nothing fits.
pub fn cheapest(fronts: &[Vec<Set>], weights: &[f64], stages: &[Stage]) -> Option<Choice> {
    let least = fronts.iter().map(|front| {
        let of = |read: fn(&Set) -> f64| front.iter().map(read).fold(f64::INFINITY, f64::min);
        (of(|s| s.kept), of(|s| s.ready))
    });
    let least = least.collect();
    let mut search = Search { fronts, weights, stages, least, best: None, at: Vec::new(), tried: 0 };
    search.go(0.0);
    let proved = search.tried <= limits::RECOMPUTE_CHOICES;
    search.best.map(|(_, sets)| Choice { sets, proved })
}

struct Search<'a> {
    fronts: &'a [Vec<Set>],
    weights: &'a [f64],
    stages: &'a [Stage],
    /// The least that each unit can keep and have ready.
    least: Vec<(f64, f64)>,
    best: Option<(f64, Vec<usize>)>,
    at: Vec<usize>,
    tried: usize,
}

impl Search<'_> {
    fn go(&mut self, cost: f64) {
        self.tried += 1;
        if self.tried > limits::RECOMPUTE_CHOICES || !self.may_fit() {
            return;
        }
        let unit = self.at.len();
        if unit == self.fronts.len() {
            self.best = Some((cost, self.at.clone()));
            return;
        }
        // The first of a front is the quickest.
        let rest: f64 = (unit + 1..self.fronts.len()).map(|u| self.weights[u] * self.fronts[u][0].seconds).sum();
        for (i, set) in self.fronts[unit].iter().enumerate() {
            let own = cost + self.weights[unit] * set.seconds;
            if self.best.as_ref().is_some_and(|(best, _)| own + rest >= *best) {
                return;
            }
            self.at.push(i);
            self.go(own);
            self.at.pop();
        }
    }

    /// Whether every stage fits with what is chosen and the least that the other units can take.
    fn may_fit(&self) -> bool {
        self.stages.iter().all(|stage| {
            let mut total = 0.0;
            let mut working: f64 = 0.0;
            for u in 0..self.fronts.len() {
                let (kept, ready) = match self.at.get(u) {
                    Some(i) => (self.fronts[u][*i].kept, self.fronts[u][*i].ready),
                    None => self.least[u],
                };
                total += stage.live[u] * kept;
                working = working.max(stage.working[u].map_or(0.0, |w| w + ready));
            }
            total + working <= stage.room
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Every set, tried one by one: seconds, bytes kept, bytes ready. None where it cannot be.
    fn weigh(items: &[Item], again: u32) -> Option<(f64, f64, f64)> {
        let made = |i: usize| again >> i & 1 == 1;
        let mut wanted: Vec<bool> = items.iter().map(|i| i.needed).collect();
        let (mut seconds, mut kept, mut ready) = (0.0, 0.0, 0.0);
        for (i, item) in items.iter().enumerate().rev() {
            if !wanted[i] {
                continue;
            }
            if !made(i) {
                kept += item.kept?;
                continue;
            }
            seconds += item.seconds?;
            ready += if item.needed { item.ready } else { 0.0 };
            item.from.iter().for_each(|f| wanted[*f] = true);
        }
        Some((seconds, kept, ready))
    }

    fn item() -> impl Strategy<Value = (u8, u8, u8, bool, Vec<prop::sample::Index>)> {
        (0..9_u8, 0..9_u8, 0..9_u8, any::<bool>(), prop::collection::vec(any::<prop::sample::Index>(), 0..3))
    }

    /// The first of several is given; one in nine is a copy.
    fn made(drawn: Vec<(u8, u8, u8, bool, Vec<prop::sample::Index>)>) -> Vec<Item> {
        let items = drawn.into_iter().enumerate().map(|(at, (seconds, bytes, ready, needed, from))| {
            let mut from: Vec<_> = if at == 0 { Vec::new() } else { from.iter().map(|i| i.index(at)).collect() };
            from.sort_unstable();
            from.dedup();
            Item {
                seconds: (at > 0).then_some(f64::from(seconds)),
                kept: (at == 0 || bytes > 0).then_some(f64::from(bytes)),
                ready: f64::from(ready),
                needed: needed && (at == 0 || bytes > 0),
                from,
            }
        });
        items.collect()
    }

    proptest! {
        #[test]
        fn no_set_that_fits_is_cheaper(
            drawn in prop::collection::vec(item(), 1..10),
            others in prop::collection::vec(item(), 1..5),
            room in 0..120_u16,
            live in (1..5_u8, 0..4_u8),
        ) {
            let (a, b) = (made(drawn), made(others));
            let (live_a, live_b) = (f64::from(live.0), f64::from(live.1));
            let fronts = [front(&a).0, front(&b).0];
            let stages = [
                Stage { room: f64::from(room), live: vec![live_a, live_b], working: vec![Some(3.0), Some(1.0)] },
                Stage { room: f64::from(room) / 2.0, live: vec![1.0, 0.0], working: vec![Some(3.0), None] },
            ];
            let found = cheapest(&fronts, &[2.0, 3.0], &stages);
            let mut best = f64::INFINITY;
            for x in (0..1_u32 << a.len()).filter_map(|x| weigh(&a, x)) {
                for y in (0..1_u32 << b.len()).filter_map(|y| weigh(&b, y)) {
                    let first = live_a * x.1 + live_b * y.1 + (3.0 + x.2).max(1.0 + y.2) <= stages[0].room;
                    let second = x.1 + 3.0 + x.2 <= stages[1].room;
                    if first && second {
                        best = best.min(2.0 * x.0 + 3.0 * y.0);
                    }
                }
            }
            match found {
                None => prop_assert!(best.is_infinite(), "a set of {best} fits"),
                Some(choice) => {
                    prop_assert!(choice.proved);
                    let [x, y] = [0, 1].map(|u: usize| &fronts[u][choice.sets[u]]);
                    prop_assert!((2.0 * x.seconds + 3.0 * y.seconds - best).abs() < 1e-9, "{best} is cheaper");
                    let again = x.again.iter().fold(0, |bits, i| bits | 1 << i);
                    prop_assert_eq!(weigh(&a, again), Some((x.seconds, x.kept, x.ready)));
                }
            }
        }
    }

    /// Two values of a layer, 10 bytes and 3 seconds against 4 bytes and 1 second: with room for one the dearer stays.
    #[test]
    fn the_dearer_value_stays() {
        let value = |seconds, bytes| Item {
            seconds: Some(seconds),
            kept: Some(bytes),
            ready: 0.0,
            needed: true,
            from: vec![0],
        };
        let given = Item { seconds: None, kept: Some(2.0), ready: 0.0, needed: true, from: Vec::new() };
        let (sets, proved) = front(&[given, value(3.0, 10.0), value(1.0, 4.0)]);
        assert!(proved);
        let seconds: Vec<_> = sets.iter().map(|s| (s.seconds, s.kept)).collect();
        assert_eq!(seconds, [(0.0, 16.0), (1.0, 12.0), (3.0, 6.0), (4.0, 2.0)]);
        let stage = |room| Stage { room, live: vec![1.0], working: vec![Some(0.0)] };
        let again =
            |room| cheapest(std::slice::from_ref(&sets), &[1.0], &[stage(room)]).map(|c| sets[c.sets[0]].again.clone());
        assert_eq!(again(16.0), Some(vec![]));
        assert_eq!(again(13.0), Some(vec![2]));
        assert_eq!(again(11.0), Some(vec![1]));
        assert_eq!(again(2.0), Some(vec![1, 2]));
        assert_eq!(again(1.0), None);
    }
}
