//! What each pass saved, or would save, of a step on the busiest rank.

use super::super::plan::PassInfo;
use super::time::busiest;
use super::traffic::sent;
use crate::analyse::Compiled;
use crate::optimize::{self, Moved, Outcome};
use crate::partition::Phase;

/// Every pass that changes something.
pub(super) fn passes(c: &Compiled<'_>) -> Vec<PassInfo> {
    let found = c.passes.iter().filter(|o| o.assumed || !o.is_nothing());
    found.map(|outcome| info(c, outcome)).collect()
}

fn info(c: &Compiled<'_>, outcome: &Outcome) -> PassInfo {
    let facts = &c.facts.stages[busiest(c)];
    // How many collectives and how many bytes a rank sends in a step.
    let sum = |moved: &[Moved]| {
        let mut total = (0.0, 0.0);
        for m in moved {
            let of = if m.phase == Phase::Update { &facts.units } else { &facts.runs };
            let times = of[m.unit as usize] as f64;
            let group: f64 = m.collective.axes.iter().map(|a| c.value(c.job.layout.axis(*a).size)).product();
            if group > 1.0 {
                total.0 += times;
                total.1 += times * sent(c, &m.collective);
            }
        }
        total
    };
    let (gone, come) = (sum(&outcome.removed), sum(&outcome.added));
    let steps: i64 = outcome.dropped.iter().map(|(u, n)| facts.runs[*u as usize] * *n as i64).sum();
    let longer = outcome.longer.iter().filter(|(u, _)| facts.runs[*u as usize] > 0);
    let mut by_unit: std::collections::BTreeMap<u32, f64> = std::collections::BTreeMap::new();
    for (unit, bytes) in longer {
        *by_unit.entry(*unit).or_default() += c.value(*bytes);
    }
    PassInfo {
        name: outcome.pass.name(),
        assumed: outcome.assumed,
        assumes: optimize::assumes(outcome.pass),
        collectives: (gone.0 - come.0) as i64,
        sent: (gone.1 - come.1) as i64,
        work: steps as u64,
        memory: by_unit.into_values().fold(0.0, f64::max) as u64,
    }
}
