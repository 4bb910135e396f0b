//! A step in time, shown: on a terminal, as a trace for Perfetto, as a page that needs no network.

mod page;
mod text;
mod trace;

pub use page::page;
pub use text::{disturbed, text};
pub use trace::trace;

use crate::pipeline::OpKind;
use crate::simulate::{Timeline, What, evenly};

/// Most events a page or a trace holds: what does not fit is left out by stage, evenly, and said.
pub const EVENTS: usize = 400_000;

/// The letter of what happens.
fn letter(what: What) -> char {
    match what {
        What::Work(op) => match op.kind {
            OpKind::F => 'F',
            OpKind::B => 'B',
            OpKind::W => 'W',
            OpKind::U => 'u',
        },
        What::Message(_) => '-',
        What::Collectives => 'r',
        What::Optimizer => 'u',
    }
}

/// The stages that are shown where all events would be more than `most`: first, last, and others evenly between.
fn shown(timeline: &Timeline, most: usize) -> Vec<usize> {
    let largest = timeline.stages.iter().map(|s| s.events.len()).max().unwrap_or(0).max(1);
    rows(timeline, (most / largest).max(1))
}

/// At most `room` of the stages whose events are kept.
fn rows(timeline: &Timeline, room: usize) -> Vec<usize> {
    let kept: Vec<usize> = (0..timeline.stages.len()).filter(|s| !timeline.stages[*s].events.is_empty()).collect();
    evenly(kept.len(), room).into_iter().map(|i| kept[i]).collect()
}
