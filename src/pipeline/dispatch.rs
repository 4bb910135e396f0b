//! Orders that are hints, made orders: each rank takes the first of its operations that can run.
//!
//! One event after the other in time: a result arrives where it is waited for, or a rank is free again. At one moment
//! everything that arrives does so before any rank chooses. Messages are on their way beside the ranks' work.

use super::flat::{Flat, index};
use super::schedule::ScheduleOp;
use super::simulate::Durations;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// What happens; of one moment, in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// What this operation waited for is there.
    Arrives(usize),
    /// This rank may choose.
    Free(usize),
}

/// For each rank what it runs, in order. Every operation comes up, since none waits for a later one of its own order.
pub(super) fn dispatch(flat: &Flat, durations: &Durations) -> Vec<Vec<ScheduleOp>> {
    let ranks = flat.starts.len() - 1;
    let (waiting, mut needs) = flat.waiting();
    let mut ready: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); ranks];
    for (op, needs) in needs.iter().enumerate() {
        if *needs == 0 && !flat.ops[op].joined {
            ready[flat.rank[op] as usize].insert(op);
        }
    }
    let mut orders = vec![Vec::new(); ranks];
    let mut busy_until = vec![0_u64; ranks];
    // Times are not negative, so their bits are in their order.
    let mut events: BinaryHeap<Reverse<(u64, Event)>> = (0..ranks).map(|s| Reverse((0, Event::Free(s)))).collect();
    while let Some(Reverse((now, event))) = events.pop() {
        let rank = match event {
            Event::Arrives(op) => {
                needs[op] -= 1;
                let rank = flat.rank[op] as usize;
                if needs[op] == 0 {
                    ready[rank].insert(op);
                    events.push(Reverse((now.max(busy_until[rank]), Event::Free(rank))));
                }
                continue;
            }
            Event::Free(rank) => rank,
        };
        if busy_until[rank] > now {
            continue;
        }
        let Some(op) = ready[rank].pop_first() else { continue };
        let pair = Some(op + 1).filter(|y| flat.ops.get(*y).is_some_and(|y| y.joined));
        let issued = || std::iter::once(op).chain(pair);
        let seconds: f64 = issued().map(|op| durations.compute(flat.ops[op])).sum();
        let made = f64::from_bits(now) + seconds;
        orders[rank].extend(issued().map(|op| flat.ops[op]));
        busy_until[rank] = made.to_bits();
        events.push(Reverse((busy_until[rank], Event::Free(rank))));
        for op in issued() {
            for waiter in waiting[op].map(index).into_iter().flatten() {
                let apart = flat.rank[waiter] as usize != rank;
                let message = if apart { durations.leaving(flat.ops[op]) } else { 0.0 };
                events.push(Reverse(((made + message).to_bits(), Event::Arrives(waiter))));
            }
        }
    }
    orders
}
