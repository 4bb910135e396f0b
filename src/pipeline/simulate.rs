//! How long a run of a schedule takes: the longest path through order and data dependencies, in time linear in
//! operations.
//!
//! Every rank starts an operation as soon as the one before it has ended and its input is there. Between chunks on
//! different ranks the input is a message, see [`Messages`]. Updates (`U`) take no time here.

use super::check::Schedule;
use super::schedule::{OpKind, ScheduleOp};

/// Longest time taken as given; more becomes this, and what is no time at all becomes 0. Sums of it stay finite.
const LONGEST: f64 = 1e200;

/// What a message between ranks keeps busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Messages {
    /// Neither end: it is on its way from the end of the operation that makes it, and ranks go on meanwhile.
    Overlapped,
    /// Both ends: it adds to the operation that makes it and to the one that waits for it. The receiver takes part once
    /// it is free and the sender has begun.
    #[default]
    Exposed,
}

/// Times of operations and messages, in seconds (or any one unit). Missing entries are 0, NaN and negative ones too.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Durations {
    /// Forward of one microbatch, by chunk.
    pub f: Vec<f64>,
    /// Backward, by chunk; of the input alone where the schedule has weight gradients.
    pub b: Vec<f64>,
    /// Weight gradient alone, by chunk.
    pub w: Vec<f64>,
    /// Message from chunk `c` to `c + 1`, by `c`. Where both are on one rank there is none, whatever is said here.
    pub send_forward: Vec<f64>,
    /// Message from chunk `c + 1` back to `c`, by `c`.
    pub send_backward: Vec<f64>,
    /// What messages keep busy.
    pub messages: Messages,
}

impl Durations {
    /// Equal chunks and free messages.
    pub fn uniform(chunks: u32, f: f64, b: f64, w: f64) -> Self {
        let each = |time| vec![time; chunks as usize];
        Self { f: each(f), b: each(b), w: each(w), ..Self::default() }
    }

    fn compute(&self, op: ScheduleOp) -> f64 {
        match op.kind {
            OpKind::F => at(&self.f, op.chunk),
            OpKind::B => at(&self.b, op.chunk),
            OpKind::W => at(&self.w, op.chunk),
            OpKind::U => 0.0,
        }
    }

    /// Time of the message that enters or leaves an operation.
    fn message(&self, op: ScheduleOp, end: End) -> f64 {
        border(op, end).map_or(0.0, |(kind, border)| match kind {
            OpKind::F => at(&self.send_forward, border),
            OpKind::B | OpKind::W | OpKind::U => at(&self.send_backward, border),
        })
    }
}

/// One entry, made a time.
fn at(times: &[f64], index: u32) -> f64 {
    // NaN is not above 0.
    times.get(index as usize).filter(|&&time| time > 0.0).map_or(0.0, |time| time.min(LONGEST))
}

/// Which end of an operation a message is at.
#[derive(Clone, Copy)]
enum End {
    Enters,
    Leaves,
}

/// Kind of an operation and the border between chunks `c` and `c + 1` that its message crosses.
fn border(op: ScheduleOp, end: End) -> Option<(OpKind, u32)> {
    let before = op.chunk.checked_sub(1);
    let border = match (op.kind, end) {
        (OpKind::F, End::Enters) | (OpKind::B, End::Leaves) => before?,
        (OpKind::F, End::Leaves) | (OpKind::B, End::Enters) => op.chunk,
        (OpKind::W | OpKind::U, _) => return None,
    };
    Some((op.kind, border))
}

/// What a run of a schedule takes.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// From the start of the first operation to the end of the last.
    pub makespan: f64,
    /// For each rank the time its operations last, exposed messages included.
    pub busy: Vec<f64>,
    /// For each rank the rest of the makespan.
    pub idle: Vec<f64>,
    /// For each rank the part of `busy` that is exposed messages.
    pub exposed: Vec<f64>,
    /// The longest path; its steps' times, added in their order, are the makespan to the bit.
    pub path: Path,
}

/// How often each duration is on the longest path. Times these counts, it is the makespan up to rounding, so the
/// makespan of one run is a linear form in its durations.
///
/// Where the operation before on the same rank and a message arrive at once, the path stays on the rank; of several
/// ranks that end last it ends on the lowest.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Path {
    /// Forwards, by chunk.
    pub f: Vec<u64>,
    /// Backwards, by chunk.
    pub b: Vec<u64>,
    /// Weight gradients, by chunk.
    pub w: Vec<u64>,
    /// Messages from chunk `c` to `c + 1`, by `c`.
    pub send_forward: Vec<u64>,
    /// Messages from chunk `c + 1` to `c`, by `c`.
    pub send_backward: Vec<u64>,
}

impl Path {
    fn new(chunks: u32) -> Self {
        let (chunks, borders) = (vec![0; chunks as usize], vec![0; chunks.saturating_sub(1) as usize]);
        Self { f: chunks.clone(), b: chunks.clone(), w: chunks, send_forward: borders.clone(), send_backward: borders }
    }

    fn count(&mut self, step: Step) {
        let (counts, index) = match step {
            Step::Compute(op) => match op.kind {
                OpKind::F => (&mut self.f, op.chunk),
                OpKind::B => (&mut self.b, op.chunk),
                OpKind::W => (&mut self.w, op.chunk),
                OpKind::U => return,
            },
            Step::Message(op, end) => match border(op, end) {
                Some((OpKind::F, border)) => (&mut self.send_forward, border),
                Some((_, border)) => (&mut self.send_backward, border),
                None => return,
            },
        };
        if let Some(count) = counts.get_mut(index as usize) {
            *count += 1;
        }
    }

    /// Σ counts × times.
    pub fn time(&self, durations: &Durations) -> f64 {
        let Durations { f, b, w, send_forward, send_backward, messages: _ } = durations;
        let tables = [
            (&self.f, f),
            (&self.b, b),
            (&self.w, w),
            (&self.send_forward, send_forward),
            (&self.send_backward, send_backward),
        ];
        let term = |(counts, times): (&Vec<u64>, &Vec<f64>)| -> f64 {
            (0_u32..).zip(counts).map(|(index, &count)| count as f64 * at(times, index)).sum()
        };
        tables.into_iter().map(term).sum()
    }
}

/// One step of the longest path.
#[derive(Clone, Copy)]
enum Step {
    Compute(ScheduleOp),
    Message(ScheduleOp, End),
}

impl Step {
    /// Its time.
    #[cfg(test)]
    fn time(self, durations: &Durations) -> f64 {
        match self {
            Step::Compute(op) => durations.compute(op),
            Step::Message(op, end) => durations.message(op, end),
        }
    }
}

/// When one operation runs.
#[derive(Debug, Clone, Copy, Default)]
struct Times {
    /// Its result is made.
    made: f64,
    /// Its rank is free again.
    end: f64,
    /// Its begin is the arrival of a message and not the end of the operation before.
    by_message: bool,
}

/// Runs a schedule with the given durations.
pub fn simulate(schedule: &Schedule, durations: &Durations) -> Run {
    let times = timeline(schedule, durations);
    let mut path = Path::new(schedule.chunks());
    walk_longest_path(schedule, durations.messages, &times, |step| path.count(step));
    let makespan = last(schedule, &times).map_or(0.0, |op| times[op].end);
    let mut run = Run { makespan, busy: Vec::new(), idle: Vec::new(), exposed: Vec::new(), path };
    for rank in 0..schedule.ranks() {
        let (mut busy, mut exposed) = (0.0, 0.0);
        for op in schedule.range(rank) {
            let messages = exposed_messages(schedule, durations, op);
            exposed += messages.0 + messages.1;
            busy += messages.0 + durations.compute(schedule.ops()[op]) + messages.1;
        }
        run.busy.push(busy);
        run.idle.push((makespan - busy).max(0.0));
        run.exposed.push(exposed);
    }
    run
}

/// Idle over busy time of all ranks by the order alone: equal chunks, free messages, `B = 2 F`, or `B = W = F` where
/// weight gradients are operations of their own. 0 if nothing runs.
pub fn bubble(schedule: &Schedule) -> f64 {
    let (b, w) = if schedule.has_weight_gradients() { (1.0, 1.0) } else { (2.0, 0.0) };
    let run = simulate(schedule, &Durations::uniform(schedule.chunks(), 1.0, b, w));
    let (idle, busy): (f64, f64) = (run.idle.iter().sum(), run.busy.iter().sum());
    if busy > 0.0 { idle / busy } else { 0.0 }
}

/// Times that exposed messages add to an operation, before and after.
fn exposed_messages(schedule: &Schedule, durations: &Durations, op: usize) -> (f64, f64) {
    let what = schedule.ops()[op];
    match durations.messages {
        Messages::Overlapped => (0.0, 0.0),
        Messages::Exposed => (
            schedule.sender(op).map_or(0.0, |_| durations.message(what, End::Enters)),
            if schedule.sends(op) { durations.message(what, End::Leaves) } else { 0.0 },
        ),
    }
}

/// The operation of the same rank that comes just before.
fn before(schedule: &Schedule, op: usize) -> Option<usize> {
    op.checked_sub(1).filter(|_| !schedule.is_first(op))
}

fn timeline(schedule: &Schedule, durations: &Durations) -> Vec<Times> {
    let mut times = vec![Times::default(); schedule.ops().len()];
    for op in schedule.sequence() {
        let what = schedule.ops()[op];
        let free = before(schedule, op).map_or(0.0, |before| times[before].end);
        let arrival = schedule.sender(op).map_or(0.0, |sender| match durations.messages {
            Messages::Overlapped => times[sender].made + durations.message(what, End::Enters),
            Messages::Exposed => times[sender].made,
        });
        let (receive, send) = exposed_messages(schedule, durations, op);
        let made = free.max(arrival) + receive + durations.compute(what);
        times[op] = Times { made, end: made + send, by_message: arrival > free };
    }
    times
}

/// The operation that ends last; of several, that of the lowest rank.
fn last(schedule: &Schedule, times: &[Times]) -> Option<usize> {
    let ends = (0..schedule.ranks()).filter_map(|rank| schedule.range(rank).next_back());
    ends.reduce(|last, op| if times[op].end > times[last].end { op } else { last })
}

/// Shows each step of the longest path, last to first.
fn walk_longest_path(schedule: &Schedule, messages: Messages, times: &[Times], mut show: impl FnMut(Step)) {
    let exposed = messages == Messages::Exposed;
    let mut next = last(schedule, times);
    // The path leaves an operation at its end, or where its message begins: when its result is made.
    let mut at_end = true;
    while let Some(op) = next {
        let what = schedule.ops()[op];
        let Times { by_message, .. } = times[op];
        if exposed && at_end && schedule.sends(op) {
            show(Step::Message(what, End::Leaves));
        }
        show(Step::Compute(what));
        if schedule.sender(op).is_some() && (exposed || by_message) {
            show(Step::Message(what, End::Enters));
        }
        at_end = !by_message;
        next = if by_message { schedule.sender(op) } else { before(schedule, op) };
    }
}

#[cfg(test)]
#[path = "simulate_tests.rs"]
mod tests;
