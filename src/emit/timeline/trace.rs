//! The step as Chrome trace events, which Perfetto and `chrome://tracing` read: a process for each stage.

use super::{EVENTS, shown};
use crate::simulate::{Stage, Timeline, What};
use serde_json::{Value, json};

/// Of a stage: what it works on, its messages, what it holds.
const WORK: u32 = 0;
const NETWORK: u32 = 1;

/// The trace, one event a line.
pub fn trace(timeline: &Timeline) -> String {
    let mut events = Vec::new();
    for s in shown(timeline, EVENTS) {
        let stage = &timeline.stages[s];
        let named = |kind: &str, tid: u32, name: String| json!({ "ph": "M", "pid": s, "tid": tid, "name": kind, "args": { "name": name } });
        events.push(named("process_name", WORK, format!("stage {s}")));
        events.push(named("thread_name", WORK, "compute".into()));
        events.push(named("thread_name", NETWORK, "network".into()));
        of_stage(s, stage, &mut events);
    }
    let lines: Vec<String> = events.iter().map(Value::to_string).collect();
    format!("{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n{}\n]}}\n", lines.join(",\n"))
}

fn of_stage(s: usize, stage: &Stage, events: &mut Vec<Value>) {
    let micro = |seconds: f64| (seconds * 1e9).round() / 1e3;
    for event in &stage.events {
        let (name, kind, thread) = match event.what {
            What::Work(op) => (op.to_string(), kind(op.kind), WORK),
            What::Message(op) => (format!("message of {op}"), "message", NETWORK),
            What::Collectives => ("reductions and gathers".into(), "collective", NETWORK),
            What::Optimizer => ("optimizer".into(), "optimizer", WORK),
        };
        let (ts, end) = (micro(event.start), micro(event.end));
        events.push(json!({
            "ph": "X", "pid": s, "tid": thread, "name": name, "cat": kind, "ts": ts, "dur": end - ts,
        }));
    }
    for (at, bytes) in &stage.memory {
        let held = json!({ "GiB": (bytes / 1_073_741.824).round() / 1e3 });
        events.push(json!({ "ph": "C", "pid": s, "name": "memory", "ts": micro(*at), "args": held }));
    }
}

fn kind(kind: crate::pipeline::OpKind) -> &'static str {
    match kind {
        crate::pipeline::OpKind::F => "forward",
        crate::pipeline::OpKind::B => "backward",
        crate::pipeline::OpKind::W => "weight gradient",
        crate::pipeline::OpKind::U => "update",
    }
}
