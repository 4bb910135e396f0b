//! Where the time of a step goes, on the rank that is busiest.

use super::super::plan::TimeInfo;
use crate::analyse::Compiled;
use crate::analyse::costs::overlapped;
use crate::analyse::roots::StageValues;
use crate::analyse::{Category, StepCost};
use crate::partition::{Phase, StepKind, Work};
use indexmap::IndexMap;

/// The rank whose pipeline work takes longest; ties go to the first.
pub(super) fn busiest(c: &Compiled<'_>) -> usize {
    let work = |s: usize| -> f64 {
        let facts = &c.facts.stages[s];
        c.costs.iter().zip(&facts.runs).map(|(u, n)| (c.value(u.f) + c.value(u.b) + c.value(u.w)) * *n as f64).sum()
    };
    let work: Vec<f64> = (0..c.facts.stages.len()).map(work).collect();
    (0..work.len()).max_by(|a, b| work[*a].total_cmp(&work[*b]).then(b.cmp(a))).unwrap_or(0)
}

pub(super) fn time(c: &Compiled<'_>, stages: &[StageValues]) -> TimeInfo {
    let s = busiest(c);
    let facts = &c.facts.stages[s];
    let step = c.value(c.roots.step_time);
    let mut parts: IndexMap<String, f64> = IndexMap::new();
    let mut in_pipeline = 0.0;
    for (unit, n) in c.costs.iter().zip(&facts.runs) {
        let times = *n as f64;
        let phases = [
            (&unit.forward, Phase::Forward, c.value(unit.f), unit.hidden_f, unit.copied[0]),
            (&unit.backward, Phase::Backward, c.value(unit.b) + c.value(unit.w), unit.hidden_b, unit.copied[1]),
        ];
        for (steps, phase, whole, hidden, copied) in phases {
            let mut hidden = c.value(hidden) * times;
            let before = in_pipeline;
            let copied = c.value(copied) * times;
            in_pipeline += copied;
            *parts.entry("store transfers".into()).or_default() += copied;
            for cost in steps {
                let mut seconds = c.value(cost.seconds) * times;
                if overlapped(&c.job, cost, phase) {
                    let off = seconds.min(hidden);
                    hidden -= off;
                    seconds -= off;
                }
                in_pipeline += seconds;
                *parts.entry(part_name(c, cost)).or_default() += seconds;
            }
            // Longer than its steps: the device waits for the host.
            let waits = (whole * times - (in_pipeline - before)).max(0.0);
            if waits > 1e-9 * step {
                in_pipeline += waits;
                *parts.entry("host".into()).or_default() += waits;
            }
        }
    }
    let messages = c.facts.run.exposed.get(s).copied().unwrap_or(0.0);
    *parts.entry("stage messages".into()).or_default() += messages;
    let pipeline = c.value(c.roots.pipeline_time);
    let bubble = (pipeline - in_pipeline - messages).max(0.0);
    let slowest = stages.iter().max_by(|a, b| a.update.total_cmp(&b.update));
    let (optimizer, exposed) = slowest.map_or((0.0, 0.0), |s| (s.optimizer, s.exposed));
    *parts.entry("bubble".into()).or_default() += bubble;
    *parts.entry("dp not hidden".into()).or_default() += exposed;
    *parts.entry("optimizer".into()).or_default() += optimizer;
    parts.retain(|_, v| *v > 0.0);
    let mut parts: Vec<(String, f64)> = parts.into_iter().collect();
    parts.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let per_stage = |facts: &crate::analyse::StageFacts| {
        let sum = |of: fn(&crate::analyse::UnitCosts) -> crate::expr::Id| {
            c.costs.iter().zip(&facts.units).map(|(u, n)| c.value(of(u)) * *n as f64).sum::<f64>()
        };
        (sum(|u| u.f), sum(|u| u.b) + sum(|u| u.w))
    };
    TimeInfo {
        step,
        tokens_per_s: c.value(c.roots.tokens_per_s),
        mfu: c.value(c.roots.mfu),
        hfu: hfu(c),
        parts,
        stages: c.facts.stages.iter().map(per_stage).collect(),
        price: c.value(c.roots.price),
    }
}

/// Utilisation with recomputed FLOP counted.
pub(super) fn hfu(c: &Compiled<'_>) -> f64 {
    let flops = c.value(c.roots.flops);
    if flops > 0.0 { c.value(c.roots.mfu) * (flops + recomputed_flops(c)) / flops } else { 0.0 }
}

fn part_name(c: &Compiled<'_>, cost: &StepCost) -> String {
    match &cost.category {
        _ if cost.recomputed => "recompute".into(),
        Category::Matmul => "matmul".into(),
        Category::Attention => "attention".into(),
        Category::Elementwise => "elementwise".into(),
        Category::Comm(axes, _) => {
            let names = c.job.layout.names(axes);
            format!("{} transfers", names.join("·"))
        }
    }
}

/// FLOP of contractions and attention that run a second time, in a step on all devices.
fn recomputed_flops(c: &Compiled<'_>) -> f64 {
    let stages = c.facts.stages.len().max(1) as f64;
    let ranks = c.job.cluster.devices as f64 / stages;
    let m = c.value(c.job.microbatches);
    let v = |id| c.value(id);
    let mut total = 0.0;
    for (unit, costs) in c.job.ops.units.iter().zip(&c.costs) {
        for cost in costs.backward.iter().filter(|s| s.recomputed) {
            let StepKind::Compute { work, .. } = &c.sharded.flow[cost.step].kind else { continue };
            let flops = match work {
                Work::Matmul { m, n, k, batch } => 2.0 * v(*m) * v(*n) * v(*k) * v(*batch),
                Work::Attention { q, kv, heads, d_qk, d_v, batch, pairs, .. } => {
                    let pairs = c.value(*pairs);
                    2.0 * pairs * v(*q) * v(*kv) * v(*heads) * (v(*d_qk) + v(*d_v)) * v(*batch)
                }
                Work::Elementwise { .. } => 0.0,
            };
            total += flops * unit.count as f64 * m * ranks;
        }
    }
    total
}
