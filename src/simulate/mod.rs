//! One step of a compiled job as events in time: what each pipeline rank computes, sends and holds, and when.
//!
//! One rank stands for all of its stage: they do the same. Times are those of the schedule's run with the predicted
//! costs; what is exposed once a step, and the optimizer, follow each rank's last operation. Bytes are what the plan
//! counts, moved along the run: what rests is always there, a forward adds what it saves, and what needs it last frees it.

mod disturb;

pub use disturb::{Disturbed, disturbed};

use crate::analyse::Compiled;
use crate::analyse::roots::StageValues;
use crate::pipeline::{self, OpKind, ScheduleOp, Slot};

/// A step of a job.
#[derive(Clone, PartialEq, Debug)]
pub struct Timeline {
    /// Name of the job.
    pub job: String,
    /// Its schedule.
    pub schedule: String,
    /// Microbatches of a step.
    pub microbatches: u32,
    /// Whether the run has no end; then several steps are shown, until one is as the one before.
    pub endless: bool,
    /// Predicted time of a step, seconds.
    pub step_time: f64,
    /// End of the last event, seconds.
    pub end: f64,
    /// Bytes a process may use.
    pub usable: f64,
    /// One entry for each pipeline rank.
    pub stages: Vec<Stage>,
}

/// What one rank of a pipeline rank does.
#[derive(Clone, PartialEq, Debug)]
pub struct Stage {
    /// Events by their begin; of a large run those of some stages only.
    pub events: Vec<Event>,
    /// Moments at which what it holds changes, and the bytes from then on.
    pub memory: Vec<(f64, f64)>,
    /// When it holds most.
    pub peak: Peak,
    /// Share of the step in which it works.
    pub busy: f64,
}

/// The fullest moment of a stage.
#[derive(Clone, PartialEq, Debug)]
pub struct Peak {
    /// Seconds from the begin.
    pub at: f64,
    /// Bytes held.
    pub bytes: f64,
    /// Bytes of it that are saved activations.
    pub activations: f64,
    /// The operation that brings it there, if it is one.
    pub after: Option<ScheduleOp>,
}

/// Something that takes time.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Event {
    /// What.
    pub what: What,
    /// Begin, seconds.
    pub start: f64,
    /// End, seconds.
    pub end: f64,
}

/// Sorts of [`Event`].
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum What {
    /// Work of the schedule.
    Work(ScheduleOp),
    /// A message to or from another stage that keeps the rank busy.
    Message(ScheduleOp),
    /// Reductions and gathers once a step that nothing hides.
    Collectives,
    /// The optimizer.
    Optimizer,
}

/// Operations of which the events are kept.
const KEPT: usize = 2_000_000;
/// Stages of which the events are kept at least.
const FEWEST: usize = 32;

/// At most `room` of `count` places: the first, the last, and others evenly between.
pub fn evenly(count: usize, room: usize) -> Vec<usize> {
    if count <= room {
        return (0..count).collect();
    }
    let last = count - 1;
    let mut places: Vec<usize> = (0..room).map(|i| if room > 1 { i * last / (room - 1) } else { 0 }).collect();
    places.dedup();
    places
}

/// The step of `c` in time.
pub fn simulate(c: &Compiled<'_>) -> Timeline {
    // Of a large run the events of some stages are kept, and of all what they come to.
    let ranks = c.facts.orders.ranks();
    let most = (0..ranks).map(|s| c.facts.orders.order(s).len()).max().unwrap_or(0).max(1);
    let kept = evenly(ranks, (KEPT / most).max(FEWEST));
    let values = |s: usize| c.roots.stage_values(&c.graph, &c.inputs, &c.facts.stages[s]);
    let step_time = c.value(c.roots.step_time);
    let (mut stages, mut end) = (Vec::with_capacity(ranks), 0.0_f64);
    for (s, slots) in pipeline::slots(&c.facts.orders, &c.facts.durations).enumerate() {
        let mut stage = stage(c, s, &slots, &values(s));
        end = stage.events.last().map_or(end, |e| e.end.max(end));
        if kept.binary_search(&s).is_err() {
            (stage.events, stage.memory) = (Vec::new(), Vec::new());
        }
        stages.push(stage);
    }
    Timeline {
        job: c.job.name.clone(),
        schedule: c.schedule.name.clone(),
        microbatches: c.facts.orders.microbatches(),
        endless: c.facts.orders.is_endless(),
        step_time,
        end,
        usable: c.job.cluster.device_field("usable"),
        stages,
    }
}

fn stage(c: &Compiled<'_>, s: usize, slots: &[Slot], values: &StageValues) -> Stage {
    let mut events = Vec::with_capacity(slots.len());
    for (i, slot) in slots.iter().enumerate() {
        let work = Event { what: What::Work(slot.op), start: slot.work, end: slot.made };
        if slot.op.kind == OpKind::U {
            continue;
        }
        // Two operations issued together receive before the first and send after the second.
        let followed = slots.get(i + 1).is_some_and(|next| next.op.joined);
        if slot.work > slot.start && !slot.op.joined {
            events.push(Event { what: What::Message(slot.op), start: slot.start, end: slot.work });
        }
        events.push(work);
        if slot.end > slot.made && !followed {
            events.push(Event { what: What::Message(slot.op), start: slot.made, end: slot.end });
        }
    }
    let last = slots.last().map_or(0.0, |slot| slot.end);
    let mut at = last;
    for (what, seconds) in [(What::Collectives, values.exposed), (What::Optimizer, values.optimizer)] {
        if seconds > 0.0 && !c.facts.orders.is_endless() {
            events.push(Event { what, start: at, end: at + seconds });
            at += seconds;
        }
    }
    let (memory, peak) = memory(c, slots, values);
    let makespan = c.facts.run.makespan;
    let busy = if makespan > 0.0 { c.facts.run.busy[s] / makespan } else { 0.0 };
    Stage { events, memory, peak, busy }
}

/// What a stage holds over time, and its fullest moment.
fn memory(c: &Compiled<'_>, slots: &[Slot], values: &StageValues) -> (Vec<(f64, f64)>, Peak) {
    let [saved, late] = &c.facts.bytes;
    let split = c.facts.orders.has_weight_gradients();
    let rest = values.total - values.activations;
    // Which microbatches of which chunk are held: a backward elsewhere frees nothing here.
    let mut held = vec![[0_u32; 2]; saved.len()];
    let total = |held: &[[u32; 2]]| -> f64 {
        held.iter().enumerate().map(|(c, [f, b])| f64::from(*f) * saved[c] + f64::from(*b) * late[c]).sum()
    };
    let mut memory = vec![(0.0, rest)];
    let mut peak = Peak { at: 0.0, bytes: rest, activations: 0.0, after: None };
    let mut bytes = 0.0;
    for slot in slots {
        let [f, b] = &mut held[slot.op.chunk as usize];
        let at = match slot.op.kind {
            OpKind::F => {
                *f += 1;
                slot.work
            }
            OpKind::B => {
                *f = f.saturating_sub(1);
                *b += u32::from(split);
                slot.made
            }
            OpKind::W => {
                *b = b.saturating_sub(1);
                slot.made
            }
            OpKind::U => continue,
        };
        // Counted anew where little is held, so that what was added is what is taken away.
        bytes = if held.len() <= 64 { total(&held) } else { bytes + change(slot.op, saved, late, split) };
        memory.push((at, rest + bytes));
        if rest + bytes > peak.bytes * (1.0 + 1e-12) {
            peak = Peak { at, bytes: rest + bytes, activations: bytes, after: Some(slot.op) };
        }
    }
    (memory, peak)
}

fn change(op: ScheduleOp, saved: &[f64], late: &[f64], split: bool) -> f64 {
    let (saved, late) = (saved[op.chunk as usize], if split { late[op.chunk as usize] } else { 0.0 });
    match op.kind {
        OpKind::F => saved,
        OpKind::B => late - saved,
        OpKind::W => -late,
        OpKind::U => 0.0,
    }
}
