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
    /// The part of `f` that is exposed communication, by chunk: it may hide behind an operation issued together.
    pub f_comm: Vec<f64>,
    /// The same of `b`.
    pub b_comm: Vec<f64>,
    /// The same of `w`.
    pub w_comm: Vec<f64>,
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

    /// Time of an operation alone, messages apart.
    pub(super) fn compute(&self, op: ScheduleOp) -> f64 {
        match op.kind {
            OpKind::F => at(&self.f, op.chunk),
            OpKind::B => at(&self.b, op.chunk),
            OpKind::W => at(&self.w, op.chunk),
            OpKind::U => 0.0,
        }
    }

    /// Time of the message that takes an operation's result on.
    pub(super) fn leaving(&self, op: ScheduleOp) -> f64 {
        self.message(op, End::Leaves)
    }

    /// What two operations issued together save: each one's communication behind the other's work.
    fn saved(&self, x: ScheduleOp, y: ScheduleOp) -> f64 {
        let comm = |op: ScheduleOp| {
            let table = match op.kind {
                OpKind::F => &self.f_comm,
                OpKind::B => &self.b_comm,
                OpKind::W => &self.w_comm,
                OpKind::U => return 0.0,
            };
            at(table, op.chunk).min(self.compute(op))
        };
        let work = |op| self.compute(op) - comm(op);
        comm(x).min(work(y)) + comm(y).min(work(x))
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
#[derive(Debug, Clone, PartialEq, Default)]
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
    /// Seconds that operations issued together save on it.
    pub saved: f64,
}

impl Path {
    fn new(chunks: u32) -> Self {
        let (chunks, borders) = (vec![0; chunks as usize], vec![0; chunks.saturating_sub(1) as usize]);
        let [f, b, w] = [(); 3].map(|()| chunks.clone());
        Self { f, b, w, send_forward: borders.clone(), send_backward: borders, saved: 0.0 }
    }

    /// What this path has more than `shorter`, a run of the same orders.
    fn beyond(&self, shorter: &Self) -> Self {
        let more = |a: &Vec<u64>, b: &Vec<u64>| a.iter().zip(b).map(|(a, b)| a.saturating_sub(*b)).collect();
        Self {
            f: more(&self.f, &shorter.f),
            b: more(&self.b, &shorter.b),
            w: more(&self.w, &shorter.w),
            send_forward: more(&self.send_forward, &shorter.send_forward),
            send_backward: more(&self.send_backward, &shorter.send_backward),
            saved: (self.saved - shorter.saved).max(0.0),
        }
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
            Step::Saved(seconds) => {
                self.saved += seconds;
                return;
            }
        };
        if let Some(count) = counts.get_mut(index as usize) {
            *count += 1;
        }
    }

    /// Σ counts × times, less what is saved.
    pub fn time(&self, durations: &Durations) -> f64 {
        let Durations { f, b, w, send_forward, send_backward, .. } = durations;
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
        tables.into_iter().map(term).sum::<f64>() - self.saved
    }
}

/// One step of the longest path.
#[derive(Clone, Copy)]
enum Step {
    Compute(ScheduleOp),
    Message(ScheduleOp, End),
    /// What two operations issued together take less than one after the other.
    Saved(f64),
}

impl Step {
    /// Its time.
    #[cfg(test)]
    fn time(self, durations: &Durations) -> f64 {
        match self {
            Step::Compute(op) => durations.compute(op),
            Step::Message(op, end) => durations.message(op, end),
            Step::Saved(seconds) => -seconds,
        }
    }
}

/// When one operation runs; of two issued together, both.
#[derive(Debug, Clone, Copy, Default)]
struct Times {
    /// It begins, with what it receives.
    start: f64,
    /// Its result is made.
    made: f64,
    /// Its rank is free again.
    end: f64,
    /// The operation whose message it waited for longest, if it began at that message's arrival and not at the end of
    /// the operation before: its index and one.
    by_message: u32,
}

/// When one operation of a run takes place, in seconds from its start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slot {
    /// What is done.
    pub op: ScheduleOp,
    /// It begins to receive what it waited for, or to work.
    pub start: f64,
    /// It has received and works.
    pub work: f64,
    /// Its result is made.
    pub made: f64,
    /// Its rank is free again: what had to be sent is sent.
    pub end: f64,
}

/// For each rank, one after the other, when its operations run, in order; two issued together run at the same time. Of a
/// run without end, as many periods as it takes until it repeats itself.
pub fn slots<'a>(schedule: &'a Schedule, durations: &'a Durations) -> impl Iterator<Item = Vec<Slot>> + 'a {
    let times = timeline(schedule, durations);
    let slot = move |op: usize| {
        let Times { start, made, end, .. } = times[op];
        let head = if schedule.is_joined(op) { op - 1 } else { op };
        let received: f64 = issued(schedule, head).map(|op| exposed_messages(schedule, durations, op).0).sum();
        Slot { op: schedule.ops()[op], start, work: start + received, made, end }
    };
    (0..schedule.ranks()).map(move |rank| schedule.range(rank).map(&slot).collect())
}

/// Runs a schedule with the given durations. Of a run without end, one period: what it takes once the pipeline is full.
pub fn simulate(schedule: &Schedule, durations: &Durations) -> Run {
    let whole = finite(schedule, durations);
    let Some(shorter) = schedule.shorter() else { return whole };
    let before = finite(shorter, durations);
    let makespan = (whole.makespan - before.makespan).max(0.0);
    let more = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).max(0.0)).collect::<Vec<_>>();
    let busy = more(&whole.busy, &before.busy);
    let idle = busy.iter().map(|busy| if makespan - busy > 1e-9 * makespan { makespan - busy } else { 0.0 }).collect();
    let exposed = more(&whole.exposed, &before.exposed);
    Run { makespan, busy, idle, exposed, path: whole.path.beyond(&before.path) }
}

fn finite(schedule: &Schedule, durations: &Durations) -> Run {
    let times = timeline(schedule, durations);
    let mut path = Path::new(schedule.chunks());
    walk_longest_path(schedule, durations, &times, |step| path.count(step));
    let makespan = last(schedule, &times).map_or(0.0, |op| times[op].end);
    let mut run = Run { makespan, busy: Vec::new(), idle: Vec::new(), exposed: Vec::new(), path };
    for rank in 0..schedule.ranks() {
        let (mut busy, mut exposed) = (0.0, 0.0);
        for op in schedule.range(rank) {
            let messages = exposed_messages(schedule, durations, op);
            exposed += messages.0 + messages.1;
            busy += messages.0 + durations.compute(schedule.ops()[op]) + messages.1;
            busy -= saved(schedule, durations, op);
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

/// What an operation takes less because it is issued together with the one before it.
fn saved(schedule: &Schedule, durations: &Durations, op: usize) -> f64 {
    if schedule.is_joined(op) { durations.saved(schedule.ops()[op - 1], schedule.ops()[op]) } else { 0.0 }
}

/// The operation of the same rank that comes just before.
fn before(schedule: &Schedule, op: usize) -> Option<usize> {
    op.checked_sub(1).filter(|_| !schedule.is_first(op))
}

/// An operation and the one issued together with it, from the first of the two.
fn issued(schedule: &Schedule, head: usize) -> std::ops::Range<usize> {
    head..head + 1 + usize::from(schedule.is_joined(head + 1))
}

/// How long a run takes where things come late: `late` says for each operation of a rank, with the rank that sends its
/// input, how many seconds later its message arrives and how many seconds longer it works.
pub fn makespan(
    schedule: &Schedule,
    durations: &Durations,
    late: &mut dyn FnMut(u32, Option<u32>, ScheduleOp) -> (f64, f64),
) -> f64 {
    let times = timed(schedule, durations, |op| {
        late(schedule.rank(op), schedule.sender(op).map(|s| schedule.rank(s)), schedule.ops()[op])
    });
    last(schedule, &times).map_or(0.0, |op| times[op].end)
}

/// When each operation runs, by index.
fn timeline(schedule: &Schedule, durations: &Durations) -> Vec<Times> {
    timed(schedule, durations, |_| (0.0, 0.0))
}

/// When each operation runs, where messages arrive and work ends so much later.
fn timed(schedule: &Schedule, durations: &Durations, mut late: impl FnMut(usize) -> (f64, f64)) -> Vec<Times> {
    let mut times = vec![Times::default(); schedule.ops().len()];
    for head in schedule.sequence().filter(|op| !schedule.is_joined(*op)) {
        let free = before(schedule, head).map_or(0.0, |before| times[before].end);
        let (mut start, mut by_message) = (free, 0);
        let mut longer = 0.0;
        for op in issued(schedule, head) {
            let (arrives, works) = late(op);
            longer += works;
            let Some(sender) = schedule.sender(op) else { continue };
            let arrival = match durations.messages {
                Messages::Overlapped => times[sender].made + durations.message(schedule.ops()[op], End::Enters),
                Messages::Exposed => times[sender].made,
            };
            let arrival = arrival + arrives;
            if arrival > start {
                (start, by_message) = (arrival, op as u32 + 1);
            }
        }
        let (mut made, mut sent) = (start, 0.0);
        for op in issued(schedule, head) {
            made += exposed_messages(schedule, durations, op).0;
        }
        for op in issued(schedule, head) {
            made += durations.compute(schedule.ops()[op]);
        }
        made += longer - saved(schedule, durations, head + 1);
        for op in issued(schedule, head) {
            sent += exposed_messages(schedule, durations, op).1;
        }
        times[issued(schedule, head)].fill(Times { start, made, end: made + sent, by_message });
    }
    times
}

/// The operation that ends last; of several, that of the lowest rank.
fn last(schedule: &Schedule, times: &[Times]) -> Option<usize> {
    let ends = (0..schedule.ranks()).filter_map(|rank| schedule.range(rank).next_back());
    ends.reduce(|last, op| if times[op].end > times[last].end { op } else { last })
}

/// Shows each step of the longest path, last to first.
fn walk_longest_path(schedule: &Schedule, durations: &Durations, times: &[Times], mut show: impl FnMut(Step)) {
    let exposed = durations.messages == Messages::Exposed;
    let mut next = last(schedule, times);
    // The path leaves an operation at its end, or where its message begins: when its result is made.
    let mut at_end = true;
    while let Some(op) = next {
        let head = if schedule.is_joined(op) { op - 1 } else { op };
        let pair = issued(schedule, head);
        let by_message = (times[head].by_message as usize).checked_sub(1);
        for op in pair.clone().rev().filter(|op| exposed && at_end && schedule.sends(*op)) {
            show(Step::Message(schedule.ops()[op], End::Leaves));
        }
        if pair.len() > 1 {
            show(Step::Saved(saved(schedule, durations, head + 1)));
        }
        for op in pair.clone().rev() {
            show(Step::Compute(schedule.ops()[op]));
        }
        for op in pair.rev().filter(|op| schedule.sender(*op).is_some() && (exposed || by_message == Some(*op))) {
            show(Step::Message(schedule.ops()[op], End::Enters));
        }
        at_end = by_message.is_none();
        next = match by_message {
            Some(op) => schedule.sender(op),
            None => before(schedule, head),
        };
    }
}

#[cfg(test)]
#[path = "simulate_tests.rs"]
mod tests;
