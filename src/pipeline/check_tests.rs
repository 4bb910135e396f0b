//! Tests of the rules that orders must hold.

use super::super::Wait;
use super::super::testing::{gpipe, interleaved, one_f_one_b, random, zb_h1};
use super::*;
use proptest::prelude::*;

fn f(microbatch: i64, chunk: u32) -> ScheduleOp {
    ScheduleOp::forward(microbatch, chunk)
}

fn b(microbatch: i64, chunk: u32) -> ScheduleOp {
    ScheduleOp::backward(microbatch, chunk)
}

#[track_caller]
fn error(orders: &Orders) -> ScheduleError {
    check(orders).expect_err("the orders are wrong")
}

/// `GPipe` of two ranks and two microbatches, changed.
fn changed(change: impl FnOnce(&mut Orders)) -> Orders {
    let mut orders = gpipe(2, 2);
    change(&mut orders);
    orders
}

#[test]
fn standard_schedules_are_legal() {
    for p in 0..6 {
        for m in 0..9 {
            for orders in [gpipe(p, m), one_f_one_b(p, m), zb_h1(p, m)] {
                assert!(check(&orders).is_ok(), "p = {p}, m = {m}");
            }
        }
        for (v, groups, group) in [(1, 3, p), (2, 2, p), (3, 2, p + 1), (2, 1, 2 * p)] {
            let group = group.max(1);
            assert!(check(&interleaved(p, group * groups, v, group)).is_ok(), "p = {p}, v = {v}");
        }
    }
}

#[test]
fn a_schedule_repeats_the_orders() {
    let orders = zb_h1(3, 4);
    let schedule = check(&orders).expect("legal");
    assert_eq!((schedule.ranks(), schedule.chunks(), schedule.microbatches()), (3, 3, 4));
    assert!(schedule.has_weight_gradients());
    for (rank, order) in orders.ranks.iter().enumerate() {
        assert_eq!((schedule.order(rank), schedule.hosts(rank)), (order.as_slice(), [rank as u32].as_slice()));
    }
    assert!(!check(&gpipe(3, 4)).expect("legal").has_weight_gradients());
}

/// Backward before forward is no wait for another rank.
#[test]
fn deadlock_of_one_rank() {
    let orders = changed(|orders| orders.ranks[1] = vec![f(0, 1), b(1, 1), b(0, 1), f(1, 1)]);
    assert_eq!(error(&orders).to_string(), "rank 1 waits for F(1,1)");
}

/// Rank 0 wants the gradient of microbatch 1 before it starts microbatch 2, rank 1 the other way round.
#[test]
fn deadlock_of_two_ranks() {
    let mut orders = gpipe(2, 3);
    orders.ranks[0] = vec![f(0, 0), f(1, 0), b(0, 0), b(1, 0), f(2, 0), b(2, 0)];
    orders.ranks[1] = vec![f(0, 1), b(0, 1), f(2, 1), f(1, 1), b(1, 1), b(2, 1)];
    let expected = ScheduleError::Deadlock {
        cycle: vec![Wait { rank: 0, next: b(1, 0), on: b(1, 1) }, Wait { rank: 1, next: f(2, 1), on: f(2, 0) }],
    };
    assert_eq!(error(&orders), expected);
    assert_eq!(expected.to_string(), "rank 0 waits for B(1,1), rank 1 for F(2,0)");
}

/// Ranks 0 to 3 stand in a row behind the cycle of ranks 4 and 5; the row is not part of it.
#[test]
fn deadlock_names_only_the_cycle() {
    let mut orders = gpipe(6, 2);
    orders.ranks[4] = vec![f(0, 4), b(0, 4), f(1, 4), b(1, 4)];
    orders.ranks[5] = vec![f(0, 5), f(1, 5), b(0, 5), b(1, 5)];
    assert_eq!(error(&orders).to_string(), "rank 4 waits for B(0,5), rank 5 for F(1,4)");
}

#[test]
fn the_shortest_of_two_deadlocks() {
    // Rank 0 keeps chunks 0 and 2 and starts with the later; rank 2 starts with its backward.
    let mut orders = gpipe(4, 1);
    orders.ranks = vec![vec![f(0, 2), f(0, 0), b(0, 0), b(0, 2)], vec![f(0, 1), b(0, 1)], vec![b(0, 3), f(0, 3)]];
    orders.hosts = vec![vec![0, 2], vec![1], vec![3]];
    assert_eq!(error(&orders).to_string(), "rank 2 waits for F(0,3)");
    orders.ranks[2].reverse();
    assert_eq!(error(&orders).to_string(), "rank 0 waits for F(0,1), rank 1 for F(0,0)");
}

#[test]
fn everything_occurs_once() {
    let missing = changed(|orders| orders.ranks[1].truncate(1));
    assert_eq!(error(&missing), ScheduleError::Missing { op: f(1, 1) });
    let missing = changed(|orders| orders.ranks[0].truncate(3));
    assert_eq!(error(&missing), ScheduleError::Missing { op: b(1, 0) });
    let twice = changed(|orders| orders.ranks[0].push(f(0, 0)));
    assert_eq!(error(&twice), ScheduleError::Twice { op: f(0, 0), first: (0, 0), second: (0, 4) });
    let updates = changed(|orders| orders.ranks[1].extend([ScheduleOp::update(1); 2]));
    let op = ScheduleOp::update(1);
    assert_eq!(error(&updates), ScheduleError::Twice { op, first: (1, 4), second: (1, 5) });
    let empty = Orders { chunks: 1, microbatches: 1, ..Orders::default() };
    assert_eq!(error(&empty), ScheduleError::Missing { op: f(0, 0) });
}

#[test]
fn weight_gradients_are_all_there_or_none() {
    let some = changed(|orders| orders.ranks[1].push(ScheduleOp::weight(1, 1)));
    let (present, missing) = (ScheduleOp::weight(1, 1), ScheduleOp::weight(0, 0));
    assert_eq!(error(&some), ScheduleError::SomeWeightGradients { present, missing });
    let early = changed(|orders| {
        for (rank, order) in (0..).zip(&mut orders.ranks) {
            order.splice(2..2, [ScheduleOp::weight(0, rank), ScheduleOp::weight(1, rank)]);
        }
    });
    assert_eq!(error(&early).to_string(), "rank 0 waits for B(0,0)");
}

#[test]
fn operations_run_where_the_chunk_is() {
    let moved = changed(|orders| {
        let op = orders.ranks[1].remove(0);
        orders.ranks[0].push(op);
    });
    let expected = ScheduleError::NotHosted { rank: 0, position: 4, op: f(0, 1), hosts: vec![1] };
    assert_eq!(error(&moved), expected);
    // Nobody keeps chunk 1, so any rank may run it, but a backward needs the activations its forward saved.
    let nowhere = changed(|orders| orders.hosts[1].clear());
    assert!(check(&nowhere).is_ok());
    let apart = changed(|orders| {
        orders.hosts = vec![vec![0, 1, 1], vec![1, 0]];
        let op = orders.ranks[1].remove(2);
        orders.ranks[0].insert(2, op);
    });
    assert_eq!(error(&apart), ScheduleError::Apart { op: b(0, 1), rank: 0, forward: 1 });
}

#[test]
fn indexes_are_in_range() {
    for op in [f(2, 0), f(-1, 0), f(i64::MAX, 0), f(i64::MIN, 0), f(0, 2), f(0, u32::MAX), ScheduleOp::update(2)] {
        let orders = changed(|orders| orders.ranks[0].push(op));
        let expected = ScheduleError::OutOfRange { rank: 0, position: 4, op, microbatches: 2, chunks: 2 };
        assert_eq!(error(&orders), expected);
    }
    let hosts = changed(|orders| orders.hosts[1].push(7));
    assert_eq!(error(&hosts), ScheduleError::NoSuchChunk { rank: 1, chunk: 7, chunks: 2 });
    let lists = changed(|orders| drop(orders.hosts.pop()));
    assert_eq!(error(&lists), ScheduleError::HostLists { ranks: 2, lists: 1 });
}

#[test]
fn an_update_may_carry_any_microbatch() {
    let update = ScheduleOp { kind: OpKind::U, microbatch: i64::MIN, chunk: 1, joined: false };
    assert!(check(&changed(|orders| orders.ranks[1].push(update))).is_ok());
}

#[test]
fn absurd_sizes_are_errors_before_they_are_memory() {
    for (chunks, microbatches) in [(u32::MAX, u32::MAX), (u32::MAX, 0), (1, u32::MAX), (4_194_305, 1)] {
        let operations = 2 * u64::from(chunks);
        let operations = operations.saturating_mul(u64::from(microbatches.max(1)));
        let orders = Orders { chunks, microbatches, ..Orders::default() };
        assert_eq!(error(&orders), ScheduleError::TooLong { operations, limit: MAX_RUN_LENGTH });
    }
    let longest = Orders { chunks: 4_194_304, microbatches: 1, ..Orders::default() };
    assert_eq!(error(&longest), ScheduleError::Missing { op: f(0, 0) });
    assert!(check(&Orders { microbatches: u32::MAX, ..Orders::default() }).is_ok());
}

fn any_op() -> impl Strategy<Value = ScheduleOp> {
    let kind = prop_oneof![Just(OpKind::F), Just(OpKind::B), Just(OpKind::W), Just(OpKind::U)];
    (kind, -1..4_i64, 0..4_u32).prop_map(|(kind, microbatch, chunk)| ScheduleOp {
        kind,
        microbatch,
        chunk,
        joined: false,
    })
}

proptest! {
    /// Any legal order passes; with two operations of a rank swapped it passes or is a deadlock whose every wait is
    /// real.
    #[test]
    fn swaps_deadlock_for_a_reason(
        (p, chunks, m) in (1..4_u32, 1..5_u32, 1..4_u32),
        choices in prop::collection::vec(any::<u32>(), 1..30),
        (rank, x, y) in (any::<usize>(), any::<usize>(), any::<usize>()),
    ) {
        let mut orders = random(p, chunks, m, choices.len() % 2 == 0, &choices);
        prop_assert!(check(&orders).is_ok());
        let rank = rank % orders.ranks.len();
        let order = &mut orders.ranks[rank];
        if !order.is_empty() {
            let (x, y) = (x % order.len(), y % order.len());
            order.swap(x, y);
        }
        if let Err(error) = check(&orders) {
            let ScheduleError::Deadlock { cycle } = error else { return Err(TestCaseError::fail(error.to_string())) };
            prop_assert!(!cycle.is_empty());
            for (place, wait) in cycle.iter().enumerate() {
                let after = &cycle[(place + 1) % cycle.len()];
                let position = |rank: u32, op| orders.ranks[rank as usize].iter().position(|&other| other == op);
                // What is waited for is what the next rank is stuck at, or comes later there.
                prop_assert!(position(after.rank, after.next).is_some() && wait.on != wait.next);
                prop_assert!(position(after.rank, wait.on) >= position(after.rank, after.next));
                // And it is what the operation needs.
                let ScheduleOp { kind, microbatch, chunk, .. } = wait.next;
                let needed = match kind {
                    OpKind::F => vec![f(microbatch, chunk - 1)],
                    OpKind::B => vec![f(microbatch, chunk), b(microbatch, chunk + 1)],
                    OpKind::W => vec![b(microbatch, chunk)],
                    OpKind::U => Vec::new(),
                };
                prop_assert!(needed.contains(&wait.on));
            }
        }
    }

    /// Whatever the lists say, an answer comes.
    #[test]
    fn any_lists_get_an_answer(
        ranks in prop::collection::vec(prop::collection::vec(any_op(), 0..12), 0..4),
        hosts in prop::collection::vec(prop::collection::vec(0..4_u32, 0..4), 0..4),
        chunks in 0..4_u32, microbatches in 0..4_u32,
    ) {
        let _ = check(&Orders { ranks, hosts, chunks, microbatches, ..Orders::default() });
    }
}
