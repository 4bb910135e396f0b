//! Memory by stage, and its largest contributors down to the tensor.

use super::super::plan::{Contributor, MemoryInfo, StageMemory};
use crate::analyse::Compiled;
use crate::analyse::roots::StageValues;
use crate::analyse::stage::StageFacts;
use crate::layout::Tier;
use crate::source::{Sources, Span};

/// Contributors listed for a stage.
const LISTED: usize = 5;

pub(super) fn memory(c: &Compiled<'_>, stages: &[StageValues], sources: &Sources) -> MemoryInfo {
    let usable = c.job.cluster.device_field("usable");
    let list: Vec<StageMemory> = stages.iter().zip(&c.facts.stages).map(|(v, f)| stage(c, v, f, sources)).collect();
    let heaviest = (0..list.len()).max_by(|a, b| list[*a].total.cmp(&list[*b].total).then(b.cmp(a))).unwrap_or(0);
    let fits = stages.iter().all(|s| s.total <= usable) && c.value(c.roots.host_memory) <= c.job.cluster.host_memory();
    MemoryInfo { stages: list, heaviest: heaviest as u64, fits }
}

fn stage(c: &Compiled<'_>, v: &StageValues, facts: &StageFacts, sources: &Sources) -> StageMemory {
    let whole = |x: f64| x.max(0.0).round() as u64;
    let parts = [v.params, v.gathered, v.grads, v.state, v.activations, v.transient].map(whole);
    let total = whole(v.total);
    let layers = c.job.ops.units.iter().zip(&facts.units).filter(|(u, _)| u.repeated).map(|(_, n)| *n).sum::<i64>();
    StageMemory {
        params: parts[0],
        gathered: parts[1],
        grads: parts[2],
        state: parts[3],
        activations: parts[4],
        transient: parts[5],
        host: whole(v.host),
        overhead: total.saturating_sub(parts.iter().sum()),
        total,
        in_flight: facts.in_flight as u64,
        layers: layers as u64,
        largest: largest(c, facts, sources),
    }
}

/// Tensors by bytes on one device, every copy of a repeated unit and every microbatch in flight together.
pub(super) fn largest(c: &Compiled<'_>, facts: &StageFacts, sources: &Sources) -> Vec<Contributor> {
    let mut found: Vec<Contributor> = Vec::new();
    for (u, unit) in c.sharded.units.iter().enumerate() {
        for saved in unit.saved.iter().filter(|s| s.tier == Tier::Device) {
            let bytes = c.value(saved.bytes) * facts.live[u] as f64;
            let region = c.job.ops.region_path(saved.region);
            found.push(contributor(c.job.ops.describe(saved.value), region, "activation", bytes, saved.span, sources));
        }
        for p in &unit.params {
            let param = &c.job.ops.params[p.param as usize];
            let value = c.job.ops.value(param.value);
            let here = p.rests.map(|r| r.tier == Tier::Device);
            let widths = crate::analyse::widths(&c.job, p);
            let elements = [p.rest_param, p.rest_grad, p.rest_state, p.rest_state].map(|id| c.value(id));
            let on_device: [f64; 4] = std::array::from_fn(|k| if here[k] { elements[k] * widths[k] } else { 0.0 });
            let per_class = [
                ("parameter", on_device[0]),
                ("gradient", on_device[1]),
                ("optimizer state", on_device[2] + on_device[3]),
            ];
            for (class, bytes) in per_class {
                let bytes = bytes * facts.units[u] as f64;
                let region = c.job.ops.region_path(value.region);
                found.push(contributor(c.job.ops.describe(param.value), region, class, bytes, value.span, sources));
            }
        }
    }
    found.retain(|x| x.bytes > 0);
    found.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.what.cmp(&b.what)).then_with(|| a.region.cmp(&b.region)));
    found.truncate(LISTED);
    found
}

fn contributor(
    what: String,
    region: String,
    class: &'static str,
    bytes: f64,
    span: Span,
    sources: &Sources,
) -> Contributor {
    let (line, _) = sources.line_col(span);
    let place = format!("{}:{line}", sources.file(span.file).name);
    let what = if what.starts_with('[') { format!("value{what}") } else { what };
    Contributor { what, region, place, class, bytes: bytes.round() as u64 }
}
