//! Every collective of a step on the busiest rank, merged by cause.

use super::super::plan::CollectiveInfo;
use super::time::busiest;
use crate::analyse::Compiled;
use crate::analyse::costs::overlapped;
use crate::analyse::roots::StageValues;
use crate::analyse::{StepCost, UnitCosts};
use crate::expr;
use crate::partition::{Collective, CollectiveKind, Phase, Purpose, StepKind};
use crate::source::Sources;

pub(super) fn collectives(
    c: &Compiled<'_>,
    stages: &[StageValues],
    sources: &Sources,
    levels: &[String],
) -> Vec<CollectiveInfo> {
    let s = busiest(c);
    let facts = &c.facts.stages[s];
    let mut out: Vec<CollectiveInfo> = Vec::new();
    for (u, costs) in c.costs.iter().enumerate() {
        let (units, runs) = (facts.units[u] as f64, facts.runs[u] as f64);
        if units == 0.0 && runs == 0.0 {
            continue;
        }
        for (steps, phase, hidden) in
            [(&costs.forward, Phase::Forward, costs.hidden_f), (&costs.backward, Phase::Backward, costs.hidden_b)]
        {
            let share = exposed_share(c, steps, phase, c.value(hidden));
            for cost in steps {
                if let StepKind::Collective(x) = &c.sharded.flow[cost.step].kind {
                    let exposed = if overlapped(&c.job, cost, phase) { share } else { 1.0 };
                    add(c, x, cost, runs, exposed, sources, levels, &mut out);
                }
            }
        }
        let share = update_share(c, stages, s);
        for cost in &costs.update {
            if let StepKind::Collective(x) = &c.sharded.flow[cost.step].kind {
                let exposed = if overlapped(&c.job, cost, Phase::Update) { share } else { 1.0 };
                add(c, x, cost, units, exposed, sources, levels, &mut out);
            }
        }
    }
    out.extend(messages(c, s, levels));
    out.retain(|x| x.group > 1);
    out.sort_by(|a, b| b.busy.total_cmp(&a.busy).then_with(|| a.what.cmp(&b.what)).then_with(|| a.kind.cmp(b.kind)));
    out
}

/// Of what a phase sends and the layout overlaps, the share that nothing hides.
fn exposed_share(c: &Compiled<'_>, steps: &[StepCost], phase: Phase, hidden: f64) -> f64 {
    let of = steps.iter().filter(|s| overlapped(&c.job, s, phase));
    let all: f64 = of.map(|s| c.value(s.seconds)).sum();
    if all > 0.0 { (1.0 - hidden / all).clamp(0.0, 1.0) } else { 1.0 }
}

/// The same of what an update sends and the layout overlaps; what it does not is exposed whole.
fn update_share(c: &Compiled<'_>, stages: &[StageValues], s: usize) -> f64 {
    let facts = &c.facts.stages[s];
    let sum = |of: fn(&UnitCosts) -> expr::Id, counts: &[i64]| -> f64 {
        c.costs.iter().zip(counts).map(|(u, n)| c.value(of(u)) * *n as f64).sum()
    };
    let overlapped = sum(|u| u.reduce, &facts.units) + sum(|u| u.gather, &facts.units);
    let bare = sum(|u| u.bare, &facts.units) + sum(|u| u.tied, &facts.copies) + sum(|u| u.twice, &facts.twice);
    if overlapped > 0.0 { ((stages[s].exposed - bare) / overlapped).clamp(0.0, 1.0) } else { 1.0 }
}

/// Bytes a rank sends in one collective, with rings.
pub(super) fn sent(c: &Compiled<'_>, x: &Collective) -> f64 {
    let group: f64 = x.axes.iter().map(|a| c.value(c.job.layout.axis(*a).size)).product();
    let bytes = c.value(x.bytes);
    let ring = if group > 1.0 { (group - 1.0) / group } else { 0.0 };
    match x.kind {
        CollectiveKind::AllReduce => 2.0 * ring * bytes,
        CollectiveKind::AllGather | CollectiveKind::ReduceScatter | CollectiveKind::AllToAll => ring * bytes,
        CollectiveKind::Permute => bytes,
        CollectiveKind::Slice => 0.0,
    }
}

#[expect(clippy::too_many_arguments, reason = "one call site each, and no two belong together")]
fn add(
    c: &Compiled<'_>,
    x: &Collective,
    cost: &StepCost,
    count: f64,
    exposed: f64,
    sources: &Sources,
    levels: &[String],
    out: &mut Vec<CollectiveInfo>,
) {
    if x.kind == CollectiveKind::Slice {
        return;
    }
    let step = &c.sharded.flow[cost.step];
    let axes = c.job.layout.names(&x.axes);
    let group: f64 = x.axes.iter().map(|a| c.value(c.job.layout.axis(*a).size)).product();
    let bytes = c.value(x.bytes);
    let sent = sent(c, x);
    let purpose = match x.purpose {
        Purpose::Reshard => "activations",
        Purpose::GatherParam => "parameters",
        Purpose::ReduceGrad => "gradients",
        Purpose::Statistics => "statistics",
        Purpose::Dispatch => "dispatch",
        Purpose::Combine => "combine",
    };
    let (line, _) = sources.line_col(step.span);
    let region = c.job.ops.region_path(step.region);
    let what = match x.purpose {
        Purpose::GatherParam | Purpose::ReduceGrad => {
            format!("parameters of {}", c.job.ops.units[step.unit as usize].name)
        }
        Purpose::Reshard | Purpose::Statistics | Purpose::Dispatch | Purpose::Combine => {
            format!("{} in {region}", c.job.ops.describe(x.value))
        }
    };
    let busy = c.value(cost.seconds) * count;
    let info = CollectiveInfo {
        kind: x.kind.name(),
        purpose,
        level: outermost(c, &x.axes, levels),
        axes,
        group: group as u64,
        bytes: bytes as u64,
        count: count as u64,
        sent: (sent * count) as u64,
        busy,
        exposed: busy * exposed,
        what,
        place: format!("{}:{line}", sources.file(step.span.file).name),
    };
    let same = |o: &&mut CollectiveInfo| {
        (o.kind, o.purpose, &o.axes, o.bytes, &o.what, &o.place)
            == (info.kind, info.purpose, &info.axes, info.bytes, &info.what, &info.place)
    };
    match out.iter_mut().find(same) {
        Some(old) => {
            old.count += info.count;
            old.sent += info.sent;
            old.busy += info.busy;
            old.exposed += info.exposed;
        }
        None => out.push(info),
    }
}

fn outermost(c: &Compiled<'_>, axes: &[crate::layout::AxisId], levels: &[String]) -> String {
    let rank = |name: &String| c.job.cluster.levels.iter().position(|l| l.name == *name).unwrap_or(0);
    let widest = axes.iter().map(|a| &levels[a.0 as usize]).max_by_key(|l| rank(l));
    widest.cloned().unwrap_or_default()
}

/// Messages between stages: both ways, at every border of the busiest rank's chunks.
fn messages(c: &Compiled<'_>, s: usize, levels: &[String]) -> Option<CollectiveInfo> {
    let pipeline = c.job.pipeline.as_ref()?;
    let axis = c.job.layout.axis(pipeline.axis);
    let m = c.value(c.job.microbatches);
    let chunks = &c.facts.chunks;
    let mut count = 0.0;
    let mut bytes: f64 = 0.0;
    let mut busy = 0.0;
    let mut sent = 0.0;
    for pair in chunks.windows(2) {
        let ((here, from), (_, to)) = (&pair[0], &pair[1]);
        // Forward leaves the first of the two, backward the second.
        let leaving = usize::from(*from as usize == s) + usize::from(*to as usize == s);
        if from == to || leaving == 0 {
            continue;
        }
        let unit = here.parts.last().map_or(0, |p| p.index as usize);
        let each = c.value(c.costs[unit].send_bytes);
        count += m * leaving as f64;
        bytes = bytes.max(each);
        sent += m * leaving as f64 * each;
        busy += m * leaving as f64 * c.value(c.costs[unit].send);
    }
    let overlapped = c.job.layout.overlaps.iter().any(|o| o.comm == crate::layout::Comm::P2p);
    let span: expr::Id = axis.size;
    Some(CollectiveInfo {
        kind: "send",
        purpose: "stages",
        axes: vec![axis.name.clone()],
        group: c.value(span) as u64,
        level: levels[pipeline.axis.0 as usize].clone(),
        bytes: bytes as u64,
        count: count as u64,
        sent: sent as u64,
        busy,
        exposed: if overlapped { 0.0 } else { busy },
        what: "what crosses between stages".into(),
        place: String::new(),
    })
}
