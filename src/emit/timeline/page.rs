//! The step as one HTML file with everything in it: the timeline, what a stage holds over time, the collectives.

use super::{EVENTS, letter, shown};
use crate::emit::plan::Plan;
use crate::simulate::{Stage, Timeline, What};
use serde_json::{Value, json};

/// The page around the data.
const PAGE: &str = include_str!("page.html");

/// Where the data goes.
const MARK: &str = "/*DATA*/null";

/// The page.
pub fn page(timeline: &Timeline, plan: &Plan) -> String {
    let places = shown(timeline, EVENTS);
    let stages: Vec<Value> = places.iter().map(|s| of_stage(*s, &timeline.stages[*s], timeline.end)).collect();
    let collectives: Vec<Value> = plan
        .collectives
        .iter()
        .map(|x| {
            json!({
                "kind": x.kind, "purpose": x.purpose, "axes": x.axes, "group": x.group, "level": x.level,
                "bytes": x.bytes, "count": x.count, "busy": x.busy, "exposed": x.exposed, "what": x.what,
                "place": x.place,
            })
        })
        .collect();
    let data = json!({
        "job": timeline.job, "schedule": timeline.schedule, "microbatches": timeline.microbatches,
        "all": timeline.stages.len(), "endless": timeline.endless, "step": timeline.step_time, "end": timeline.end,
        "usable": timeline.usable, "stages": stages, "collectives": collectives,
    });
    // Nothing in a string can end the script.
    PAGE.replace(MARK, &data.to_string().replace('<', "\\u003c"))
}

fn of_stage(number: usize, stage: &Stage, end: f64) -> Value {
    // Times in millionths of the whole: what a screen can show.
    let place = |t: f64| if end > 0.0 { (1e6 * t / end).round() } else { 0.0 };
    let mut events = Vec::with_capacity(stage.events.len());
    for event in &stage.events {
        let (i, c) = match event.what {
            What::Work(op) | What::Message(op) => (op.microbatch, i64::from(op.chunk)),
            What::Collectives | What::Optimizer => (-1, -1),
        };
        events.push(json!([letter(event.what).to_string(), i, c, place(event.start), place(event.end)]));
    }
    let memory: Vec<Value> = stage.memory.iter().map(|(t, bytes)| json!([place(*t), bytes.round()])).collect();
    json!({
        "stage": number, "busy": stage.busy, "events": events, "memory": memory,
        "peak": { "at": place(stage.peak.at), "bytes": stage.peak.bytes.round() },
    })
}
