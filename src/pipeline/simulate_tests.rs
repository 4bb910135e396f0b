//! Tests of the simulator, against drawings and closed forms.

use proptest::prelude::*;

use super::super::testing::{gpipe, interleaved, legal, one_f_one_b, random, two_buffered, zb_h1};
use super::super::{Orders, ScheduleOp};
use super::*;

/// Start of each operation's compute, by rank.
fn starts(orders: &Orders, durations: &Durations) -> Vec<Vec<f64>> {
    let schedule = legal(orders);
    let times = timeline(&schedule, durations);
    let start = |op: usize| times[op].made - durations.compute(schedule.ops()[op]);
    (0..schedule.ranks()).map(|rank| schedule.range(rank).map(start).collect()).collect()
}

fn makespan(orders: &Orders, durations: &Durations) -> f64 {
    simulate(&legal(orders), durations).makespan
}

#[track_caller]
fn assert_close(left: f64, right: f64) {
    assert!((left - right).abs() <= 1e-9 * right.abs().max(1.0), "{left} is not {right}");
}

/// ```text
/// rank 0  F0 F1 .. .. .. B0 B0 B1 B1
/// rank 1  .. F0 F1 B0 B0 B1 B1 .. ..
/// ```
#[test]
fn gpipe_as_drawn() {
    let times = starts(&gpipe(2, 2), &Durations::uniform(2, 1.0, 2.0, 0.0));
    assert_eq!(times, [[0.0, 1.0, 5.0, 7.0], [1.0, 2.0, 3.0, 5.0]]);
}

/// ```text
/// rank 0  F0 F1 F2 .. .. B0 B0 .. B1 B1 .. B2 B2
/// rank 1  .. F0 F1 .. B0 …
/// ```
/// with p = 3, m = 3, by hand; rank 2 alternates F and B from time 2.
#[test]
fn one_f_one_b_as_drawn() {
    let times = starts(&one_f_one_b(3, 3), &Durations::uniform(3, 1.0, 2.0, 0.0));
    // rank 2: F0 2-3, B0 3-5, F1 5-6, B1 6-8, F2 8-9, B2 9-11.
    assert_eq!(times[2], [2.0, 3.0, 5.0, 6.0, 8.0, 9.0]);
    // rank 1: F0 1-2, F1 2-3, B0 5-7, F2 7-8, B1 8-10, B2 11-13.
    assert_eq!(times[1], [1.0, 2.0, 5.0, 7.0, 8.0, 11.0]);
    // rank 0: F0 0-1, F1 1-2, F2 2-3, B0 7-9, B1 10-12, B2 13-15.
    assert_eq!(times[0], [0.0, 1.0, 2.0, 7.0, 10.0, 13.0]);
}

/// Rank 0 of two ranks with two chunks each, one group of two microbatches, F = 1 and B = 2, by hand.
#[test]
fn interleaved_as_drawn() {
    let times = starts(&interleaved(2, 2, 2, 2), &Durations::uniform(4, 1.0, 2.0, 0.0));
    // rank 0: F00 F10 F02 F12, B02 6-8, B12 9-11 (after B13 7-9), B00 11-13, B10 13-15.
    assert_eq!(times[0], [0.0, 1.0, 2.0, 3.0, 6.0, 9.0, 11.0, 13.0]);
    // rank 1: F01 1, F11 2, F03 3, B03 4-6, F13 6-7, B13 7-9, B01 9-11, B11 11-13.
    assert_eq!(times[1], [1.0, 2.0, 3.0, 4.0, 6.0, 7.0, 9.0, 11.0]);
}

/// Two ranks, one microbatch, F = 3, B = 5, messages of 1 (forward) and 2 (backward).
#[test]
fn messages_overlapped_and_exposed() {
    let mut durations = Durations::uniform(2, 3.0, 5.0, 0.0);
    durations.send_forward = vec![1.0];
    durations.send_backward = vec![2.0];
    let schedule = legal(&gpipe(2, 1));
    // F 0-3, message 3-4, F 4-7, B 7-12, message 12-14, B 14-19; no more when both ends are busy in it.
    let path =
        Path { f: vec![1, 1], b: vec![1, 1], w: vec![0, 0], send_forward: vec![1], send_backward: vec![1], saved: 0.0 };
    durations.messages = Messages::Overlapped;
    let run = simulate(&schedule, &durations);
    assert_eq!((run.makespan, run.busy, run.exposed), (19.0, vec![8.0, 8.0], vec![0.0, 0.0]));
    assert_eq!(run.path, path);
    durations.messages = Messages::Exposed;
    let run = simulate(&schedule, &durations);
    assert_eq!((run.makespan, run.busy, run.idle), (19.0, vec![11.0, 11.0], vec![8.0, 8.0]));
    assert_eq!((run.exposed, run.path), (vec![3.0, 3.0], path));
}

/// Two microbatches, F = 2, B = 3, messages of 1: exposed, the sends hold up the forwards and the receives the
/// backwards.
#[test]
fn exposed_messages_hold_both_ends() {
    let mut durations = Durations::uniform(2, 2.0, 3.0, 0.0);
    durations.send_forward = vec![1.0];
    durations.send_backward = vec![1.0];
    // rank 0: F0 0-2, send 2-3, F1 3-5, send 5-6; B0 receives from rank 1's B0 (made at 11), 11-12, runs 12-15;
    // B1 was made at 15, send from 15: receive 15-16, 16-19.
    // rank 1: receive 2-3, F0 3-5, receive 5-6, F1 6-8, B0 8-11, send 11-12, B1 12-15, send 15-16.
    assert_eq!(starts(&gpipe(2, 2), &durations), [[0.0, 3.0, 12.0, 16.0], [3.0, 6.0, 8.0, 12.0]]);
    // Overlapped, rank 0's F1 runs 2-4 and rank 1's F1 at 5-7.
    durations.messages = Messages::Overlapped;
    assert_eq!(starts(&gpipe(2, 2), &durations), [[0.0, 2.0, 11.0, 14.0], [3.0, 5.0, 7.0, 10.0]]);
}

#[test]
fn no_message_between_chunks_on_one_rank() {
    let mut orders = gpipe(2, 2);
    orders.hosts = vec![vec![0, 1]];
    orders.ranks = vec![vec![
        ScheduleOp::forward(0, 0),
        ScheduleOp::forward(0, 1),
        ScheduleOp::backward(0, 1),
        ScheduleOp::backward(0, 0),
        ScheduleOp::forward(1, 0),
        ScheduleOp::forward(1, 1),
        ScheduleOp::backward(1, 1),
        ScheduleOp::backward(1, 0),
        ScheduleOp::update(1),
    ]];
    let mut durations = Durations::uniform(2, 1.0, 2.0, 0.0);
    durations.send_forward = vec![100.0];
    let run = simulate(&legal(&orders), &durations);
    assert_eq!((run.makespan, run.idle), (12.0, vec![0.0]));
    assert_eq!(run.path.send_forward, [0]);
}

/// (p - 1)/m for `GPipe` and 1F1B, (p - 1)/(vm) interleaved: Narayanan et al. 2021, section 2.2.
#[test]
fn bubbles_in_closed_form() {
    for p in 1..7 {
        for m in 1..13 {
            let expected = f64::from(p - 1) / f64::from(m);
            assert_close(bubble(&legal(&gpipe(p, m))), expected);
            assert_close(bubble(&legal(&one_f_one_b(p, m))), expected);
        }
        for (v, groups) in [(1, 1), (2, 1), (2, 3), (3, 2), (5, 2)] {
            let m = p * groups;
            let expected = f64::from(p - 1) / f64::from(v * m);
            assert_close(bubble(&legal(&interleaved(p, m, v, p))), expected);
        }
    }
}

/// Qi et al. 2023, table 2: a rank of ZB-H1 idles (p - 1)(F + B - W), of 3m operations' time.
#[test]
fn bubble_of_zero_bubble_h1() {
    for p in 1..7 {
        for m in p..13 {
            assert_close(bubble(&legal(&zb_h1(p, m))), f64::from(p - 1) / f64::from(3 * m));
        }
    }
}

/// Narayanan et al. 2021: the makespan of 1F1B with equal stages is (m + p - 1)(F + B).
#[test]
fn makespan_of_equal_stages() {
    let durations = Durations::uniform(4, 1.5, 2.25, 0.0);
    assert_close(makespan(&one_f_one_b(4, 8), &durations), 11.0 * 3.75);
    assert_close(makespan(&gpipe(4, 8), &durations), 11.0 * 3.75);
}

/// `PipeDream`-2BW never drains: a period of m microbatches takes m (F + B), the last rank's work.
#[test]
fn a_run_without_end_has_no_bubble() {
    for (p, m) in [(1, 1), (2, 2), (3, 3), (4, 4), (4, 7)] {
        let schedule = legal(&two_buffered(p, m));
        assert_close(bubble(&schedule), 0.0);
        let run = simulate(&schedule, &Durations::uniform(p, 1.0, 2.0, 0.0));
        assert_close(run.makespan, 3.0 * f64::from(m));
        assert_close(run.path.time(&Durations::uniform(p, 1.0, 2.0, 0.0)), run.makespan);
    }
}

/// One rank, F of 3 with 1 of communication, B of 5 with 2: together 8 less 1 behind B's work and 2 behind F's.
#[test]
fn operations_issued_together_hide_communication() {
    let (f, b) = (ScheduleOp::forward, ScheduleOp::backward);
    let [x, y] = ScheduleOp::both(f(1, 0), b(0, 0));
    let order = vec![f(0, 0), x, y, b(1, 0)];
    let orders = Orders { ranks: vec![order], hosts: vec![vec![0]], chunks: 1, microbatches: 2, ..Orders::default() };
    let durations = Durations { f_comm: vec![1.0], b_comm: vec![2.0], ..Durations::uniform(1, 3.0, 5.0, 0.0) };
    let run = simulate(&legal(&orders), &durations);
    assert_eq!((run.makespan, run.busy[0], run.path.saved), (13.0, 13.0, 3.0));
    assert_close(run.path.time(&durations), 13.0);
    let legal = legal(&orders);
    let slots: Vec<_> = slots(&legal, &durations).collect();
    for (slot, start) in slots[0][1..].iter().zip([3.0, 3.0, 8.0]) {
        assert_close(slot.start, start);
    }
}

/// A rank that would wait for its hint takes what can run: 1F1B with the orders of `GPipe` as hints, all backwards as
/// soon as they can, is `GPipe` with p = 1; and rank 1 of two runs its backwards first if they are listed first.
#[test]
fn hints_are_taken_as_they_can_run() {
    let (f, b) = (ScheduleOp::forward, ScheduleOp::backward);
    let mut orders = gpipe(2, 2);
    orders.ranks[1] = vec![b(0, 1), b(1, 1), f(0, 1), f(1, 1)];
    orders.hints = true;
    let schedule = legal(&orders);
    assert_eq!(schedule.order(1), [f(0, 1), b(0, 1), f(1, 1), b(1, 1)]);
    // A slow first stage: nothing changes on rank 1, and its second forward waits for rank 0.
    let slow = Durations { f: vec![9.0, 1.0], ..Durations::uniform(2, 1.0, 1.0, 0.0) };
    assert_eq!(schedule.dispatched(&slow).order(1), [f(0, 1), b(0, 1), f(1, 1), b(1, 1)]);
}

#[test]
fn degenerate_runs_take_no_time() {
    for orders in [gpipe(0, 0), gpipe(3, 0), Orders::default()] {
        let schedule = legal(&orders);
        let run = simulate(&schedule, &Durations::uniform(3, 1.0, 2.0, 0.0));
        assert_close(run.makespan, 0.0);
        assert_eq!(run.busy.len(), orders.ranks.len());
        assert_close(bubble(&schedule), 0.0);
    }
}

#[test]
fn strange_durations_stay_finite() {
    let durations = Durations {
        f: vec![f64::NAN, f64::INFINITY],
        b: vec![f64::NEG_INFINITY],
        send_forward: vec![f64::MAX; 9],
        ..Durations::default()
    };
    let run = simulate(&legal(&one_f_one_b(2, 4)), &durations);
    assert!(run.makespan.is_finite() && run.idle.iter().all(|idle| idle.is_finite()));
    assert_eq!(makespan(&gpipe(1, 3), &Durations::uniform(1, f64::NAN, 1.0, 0.0)).to_bits(), 3_f64.to_bits());
}

/// Long enough to notice work that grows faster than the run.
#[test]
fn long_run() {
    let run = simulate(&legal(&one_f_one_b(16, 16_384)), &Durations::uniform(16, 1.0, 2.0, 0.0));
    assert_close(run.makespan, 3.0 * (16_384.0 + 15.0));
}

fn any_orders() -> impl Strategy<Value = Orders> {
    let random = (1..5_u32, 0..7_u32, 0..6_u32, any::<bool>(), prop::collection::vec(any::<u32>(), 1..40))
        .prop_map(|(p, chunks, m, split, choices)| random(p, chunks, m, split, &choices));
    let interleaved = (1..5_u32, 1..4_u32, 1..4_u32).prop_map(|(p, v, groups)| interleaved(p, p * groups, v, p));
    let simple = (1..6_u32, 0..9_u32);
    prop_oneof![
        4 => random,
        1 => interleaved,
        1 => simple.clone().prop_map(|(p, m)| gpipe(p, m)),
        1 => simple.clone().prop_map(|(p, m)| one_f_one_b(p, m)),
        1 => simple.prop_map(|(p, m)| zb_h1(p, m)),
    ]
}

fn any_durations() -> impl Strategy<Value = Durations> {
    let times = || prop::collection::vec(prop_oneof![4 => 0.0..10.0, 1 => Just(0.0), 1 => Just(1.0)], 16);
    (times(), times(), times(), times(), times(), any::<bool>()).prop_map(
        |(f, b, w, send_forward, send_backward, overlapped)| {
            let messages = if overlapped { Messages::Overlapped } else { Messages::Exposed };
            Durations { f, b, w, send_forward, send_backward, messages, ..Durations::default() }
        },
    )
}

proptest! {
    #[test]
    fn makespan_is_the_sum_over_the_path(orders in any_orders(), durations in any_durations()) {
        let schedule = legal(&orders);
        let run = simulate(&schedule, &durations);
        let mut steps = Vec::new();
        walk_longest_path(&schedule, &durations, &timeline(&schedule, &durations), |step| steps.push(step));
        let sum = steps.iter().rev().fold(0.0, |sum, step| sum + step.time(&durations));
        prop_assert_eq!(sum.to_bits(), run.makespan.to_bits());
        prop_assert!((run.path.time(&durations) - run.makespan).abs() <= 1e-12 * run.makespan.max(1.0));
    }

    /// Equal stages, any times: GPipe and 1F1B take (m + p - 1)(F + B), interleaving m (F + B) and the fill of one
    /// chunk, (p - 1)(F + B)/v (Narayanan et al. 2021, section 2.2).
    #[test]
    fn uniform_stages_take_the_closed_form(
        p in 1..9_u32, m in 1..25_u32, v in 1..4_u32, groups in 1..4_u32, f in 0.1..4.0, b in 0.1..8.0,
    ) {
        let whole = f64::from(m + p - 1) * (f + b);
        let times = Durations::uniform(p, f, b, 0.0);
        prop_assert!((makespan(&gpipe(p, m), &times) - whole).abs() <= 1e-9 * whole);
        prop_assert!((makespan(&one_f_one_b(p, m), &times) - whole).abs() <= 1e-9 * whole);
        let chunk = Durations::uniform(p * v, f / f64::from(v), b / f64::from(v), 0.0);
        let whole = (f64::from(p * groups) + f64::from(p - 1) / f64::from(v)) * (f + b);
        let found = makespan(&interleaved(p, p * groups, v, p), &chunk);
        prop_assert!((found - whole).abs() <= 1e-9 * whole, "{found} is not {whole}");
    }

    #[test]
    fn makespan_is_bounded(orders in any_orders(), durations in any_durations()) {
        let run = simulate(&legal(&orders), &durations);
        let total: f64 = run.busy.iter().sum();
        let slack = 1.0 + 1e-12;
        for (busy, exposed) in run.busy.iter().zip(&run.exposed) {
            prop_assert!(run.makespan * slack >= *busy && busy * slack >= *exposed);
        }
        // One microbatch goes through every chunk and back.
        if orders.microbatches > 0 {
            let chunks = orders.chunks as usize;
            let through: f64 = (0..chunks).map(|chunk| durations.f[chunk] + durations.b[chunk]).sum();
            prop_assert!(run.makespan * slack >= through);
        }
        // Something runs, or is under way, at any time.
        let messages: f64 = match durations.messages {
            Messages::Exposed => 0.0,
            Messages::Overlapped => {
                let each: f64 = durations.send_forward.iter().chain(&durations.send_backward).sum();
                each * f64::from(orders.microbatches)
            }
        };
        prop_assert!(run.makespan <= (total + messages) * slack);
    }

    #[test]
    fn longer_durations_never_shorten_a_run(
        orders in any_orders(), durations in any_durations(), more in 0.0..5.0, which in 0..80_usize,
    ) {
        let mut longer = durations.clone();
        let Durations { f, b, w, send_forward, send_backward, .. } = &mut longer;
        [f, b, w, send_forward, send_backward][which / 16][which % 16] += more;
        let schedule = legal(&orders);
        prop_assert!(simulate(&schedule, &longer).makespan >= simulate(&schedule, &durations).makespan);
        // Nor does exposing what was overlapped.
        let with = |messages| simulate(&schedule, &Durations { messages, ..durations.clone() }).makespan;
        prop_assert!(with(Messages::Exposed) * (1.0 + 1e-12) >= with(Messages::Overlapped));
    }
}
