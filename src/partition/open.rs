//! What may be kept or made again where `recompute = ?` leaves it open: the question, as data. Nothing is chosen here.

use super::build::Builder;
use super::saved::Needed;
use super::{Open, Placement};
use crate::graph::{OpId, RegionId, ValueId, ValueRole};
use crate::layout::RecomputeWhat;
use indexmap::{IndexMap, IndexSet};

impl Builder<'_> {
    /// The values that were chosen to be made again, where that is open for the ops that make them.
    pub(super) fn chosen(&self, unit: u32, ops: &[OpId]) -> IndexSet<ValueId> {
        let mut out = IndexSet::new();
        for id in ops {
            let op = &self.graph.flow[*id];
            if self.chosen_in(unit, op.region).is_some_and(|list| list.binary_search(&op.output.0).is_ok()) {
                out.insert(op.output);
            }
        }
        out
    }

    /// What was chosen in `region`; none where it is not open.
    fn chosen_in(&self, unit: u32, region: RegionId) -> Option<&[u32]> {
        match self.recompute_item(unit, region)?.2 {
            RecomputeWhat::Chosen(list) => Some(list),
            _ => None,
        }
    }

    /// What is open in `unit`, in the order it is made. `save` is what is kept as long as nothing is chosen.
    pub(super) fn open(&mut self, unit: u32, ops: &[OpId], save: &IndexSet<ValueId>, needed: &Needed) -> Vec<Open> {
        let mut out: Vec<Open> = Vec::new();
        // Where a value is in the list, and a copy of one in another place.
        let mut values: IndexMap<ValueId, usize> = IndexMap::new();
        let mut copies: IndexMap<(ValueId, Placement, RegionId), usize> = IndexMap::new();
        for id in ops {
            let region = self.graph.flow[*id].region;
            if self.chosen_in(unit, region).is_none_or(|list| !list.is_empty()) {
                continue;
            }
            let mut from = Vec::new();
            for (value, need) in self.reads(*id) {
                let role = self.graph.value(value).role;
                if matches!(role, ValueRole::Param(_)) {
                    continue;
                }
                let at = match values.get(&value) {
                    Some(at) => *at,
                    None => {
                        let mut given = self.item(value, save, needed);
                        if role == ValueRole::Input && !given.needed {
                            // The data is there anyway.
                            given.kept = Some(self.sizes.exprs.int(0));
                        }
                        out.push(given);
                        values.insert(value, out.len() - 1);
                        out.len() - 1
                    }
                };
                let key = (value, need, region);
                let Some(steps) = self.copied.get(&key) else {
                    from.push(at);
                    continue;
                };
                let copy =
                    Open { steps: Some(steps.clone()), kept: None, needed: false, from: vec![at], ..out[at].clone() };
                let at = *copies.entry(key).or_insert_with(|| {
                    out.push(copy);
                    out.len() - 1
                });
                from.push(at);
            }
            let output = self.graph.flow[*id].output;
            let mut item = self.item(output, save, needed);
            let statistic = self.attention_statistic(*id).map(|s| s.bytes);
            let extra = self.kernel_extra(*id).map(|s| s.bytes);
            let beside: Vec<_> = item.kept.into_iter().chain(statistic).chain(extra).collect();
            item.kept = Some(self.sizes.exprs.sum(beside));
            item.ready = self.sizes.exprs.sum([item.ready].into_iter().chain(extra));
            from.sort_unstable();
            from.dedup();
            out.push(Open { steps: Some(self.made_by.get(id).cloned().unwrap_or_default()), from, ..item });
            values.insert(output, out.len() - 1);
        }
        out
    }

    /// `value` as something that can be kept.
    fn item(&mut self, value: ValueId, save: &IndexSet<ValueId>, needed: &Needed) -> Open {
        let there = needed.get(&value).cloned().unwrap_or_default();
        let rest = vec![self.plan.rest(value).clone()];
        let places = if there.is_empty() { &rest } else { &there };
        let kept: Vec<_> = places.iter().map(|p| self.lying(value, p)).collect();
        let kept = self.sizes.exprs.sum(kept);
        let ready: Vec<_> = there.iter().map(|p| self.mem(value, p)).collect();
        let ready = self.sizes.exprs.sum(ready);
        Open { value, steps: None, kept: Some(kept), ready, needed: save.contains(&value), from: Vec::new() }
    }
}
