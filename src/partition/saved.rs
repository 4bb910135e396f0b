//! What the backward needs again: what is saved of it, and what is computed again.

use super::build::Builder;
use super::sizes::STATISTIC_BYTES;
use super::{Open, Placement, Saved, chains, storage};
use crate::expr;
use crate::graph::{OpId, OpKind, RegionId, ValueId, ValueRole, language_name};
use crate::layout::{Class, PathPart, RecomputeWhat, Tier};
use indexmap::{IndexMap, IndexSet};

/// What one unit keeps and what it computes again.
#[derive(Default, Debug)]
pub(super) struct Kept {
    /// Values kept, in program order of their first use.
    pub(super) saved: Vec<Saved>,
    /// Ops that run again, in program order; of a chain, its last.
    pub(super) again: Vec<OpId>,
    /// Values the backward needs that are computed again.
    pub(super) remade: Vec<(ValueId, Placement)>,
    /// Bytes that kernels which run again keep beside these.
    pub(super) remade_extra: Vec<expr::Id>,
    /// What may be kept or made again, where that is open.
    pub(super) open: Vec<Open>,
}

/// Values, and the places they are needed in.
pub(super) type Needed = IndexMap<ValueId, Vec<Placement>>;

/// A region that recomputes everything: the item, and the path of the region.
type Scope = (usize, Vec<PathPart>);

impl Builder<'_> {
    /// What the backward of `op` reads again, and the placement it needs it in.
    pub(super) fn backward_reads(&self, id: OpId) -> Vec<(ValueId, Placement)> {
        let op = &self.graph.flow[id];
        let need = |at: usize| (op.inputs[at], self.plan.op(id).needs[at].clone());
        let any_grad = op.inputs.iter().any(|v| self.plan.needs_grad(*v));
        match &op.kind {
            OpKind::Contract { .. } => {
                // The gradient of one operand needs the other.
                let wanted = |at: usize| self.plan.needs_grad(op.inputs[1 - at]);
                (0..2).filter(|at| wanted(*at)).map(need).collect()
            }
            OpKind::Map(_) => {
                let inputs = chains::inputs(self.graph, self.plan, id);
                let grads = inputs.iter().any(|i| self.plan.needs_grad(i.value));
                let kept = inputs.into_iter().filter(|i| i.kept && grads);
                kept.map(|i| (i.value, self.plan.op(i.op).needs[i.operand].clone())).collect()
            }
            OpKind::CrossEntropy { .. } | OpKind::Select { .. } if any_grad => vec![need(0)],
            // The gradient goes through the gain.
            OpKind::Norm { .. } if any_grad => (0..op.inputs.len().min(2)).map(need).collect(),
            // Who went where; the weights' gradients need the results of the experts.
            OpKind::Dispatch(_) if any_grad => vec![need(1)],
            OpKind::Combine(_) if any_grad => vec![need(0), need(1)],
            OpKind::Custom(c) if any_grad => c.saves.iter().map(|at| need(*at)).collect(),
            OpKind::Softmax { .. } if any_grad => vec![(op.output, self.plan.op(id).natural.clone())],
            OpKind::Attention(_) if any_grad => {
                let mut reads: Vec<_> = (0..op.inputs.len()).map(need).collect();
                reads.push((op.output, self.plan.op(id).natural.clone()));
                reads
            }
            _ => Vec::new(),
        }
    }

    /// Decides what `unit`, whose ops are `ops` (last ops of their chains), keeps.
    pub(super) fn kept(&mut self, unit: u32, ops: &[OpId]) -> Kept {
        let mut needed = self.needed(ops);
        let mut save: IndexSet<ValueId> = IndexSet::new();
        let mut again: IndexSet<OpId> = IndexSet::new();
        let scopes: IndexMap<OpId, Option<Scope>> =
            ops.iter().map(|id| (*id, self.recompute_scope(unit, self.graph.flow[*id].region))).collect();
        let producer = |v: ValueId| {
            let op = self.graph.producer(v).filter(|p| self.graph.flow[*p].unit == unit)?;
            Some(self.plan.tail[op.index()])
        };
        let by_kind = self.kept_by_kind(unit, ops);
        let mut wanted: Vec<ValueId> = Vec::new();
        for id in ops {
            let Some(scope) = &scopes[id] else { continue };
            again.insert(*id);
            for (value, _) in self.reads(*id) {
                let inside = producer(value).and_then(|p| scopes.get(&p)?.as_ref()) == Some(scope);
                if !inside {
                    wanted.push(value);
                }
            }
        }
        let mut entering: IndexSet<ValueId> = wanted.iter().copied().collect();
        wanted.extend(needed.keys().copied());
        // What was chosen to be made again is made from what is kept, unless that was chosen too.
        let chosen = self.chosen(unit, ops);
        for id in ops.iter().filter(|id| chosen.contains(&self.graph.flow[**id].output)) {
            entering.extend(self.reads(*id).into_iter().map(|(v, _)| v).filter(|v| !chosen.contains(v)));
        }
        let mut seen: IndexSet<ValueId> = IndexSet::new();
        while let Some(value) = wanted.pop() {
            let role = self.graph.value(value).role;
            let held =
                matches!(role, ValueRole::Param(_)) || (role == ValueRole::Input && !needed.contains_key(&value));
            if held || !seen.insert(value) {
                continue;
            }
            let Some(op) = producer(value) else {
                save.insert(value);
                continue;
            };
            let in_scope = scopes.get(&op).is_some_and(Option::is_some);
            let named = chosen.contains(&value) || self.recomputed_by_name(unit, value, &by_kind);
            if in_scope && !entering.contains(&value) {
                continue;
            }
            if !named && (needed.contains_key(&value) || entering.contains(&value) || by_kind.contains(&value)) {
                save.insert(value);
                continue;
            }
            again.insert(op);
            wanted.extend(self.reads(op).into_iter().map(|(v, _)| v));
        }
        let remade = needed.iter().filter(|(v, _)| !save.contains(*v));
        let remade: Vec<_> = remade.flat_map(|(v, all)| all.iter().map(|p| (*v, p.clone()))).collect();
        // What runs again may read a value elsewhere than the backward does.
        for op in &again {
            let region = self.graph.flow[*op].region;
            for (value, need) in self.reads(*op).into_iter().filter(|(v, _)| save.contains(v)) {
                self.note(&mut needed, region, value, need);
            }
        }
        save.sort();
        let open = self.open(unit, ops, &save, &needed);
        let mut saved: Vec<_> = Vec::new();
        for value in save {
            let places = needed.get(&value).cloned().unwrap_or_else(|| vec![self.plan.rest(value).clone()]);
            for place in places {
                saved.push(self.save(unit, value, &place));
            }
        }
        // What a combine received and is not kept comes once more.
        let kept: IndexSet<ValueId> = saved.iter().map(|s| s.value).collect();
        self.returned.retain(|op, _| {
            let op = &self.graph.flow[*op];
            op.unit != unit || kept.contains(&op.inputs[0])
        });
        let mut remade_extra = Vec::new();
        for id in ops {
            let statistic = self.attention_statistic(*id);
            saved.extend(statistic.filter(|_| !again.contains(id)));
            match self.kernel_extra(*id) {
                Some(extra) if again.contains(id) => remade_extra.push(extra.bytes),
                extra => saved.extend(extra),
            }
        }
        again.sort();
        Kept { saved, again: again.into_iter().collect(), remade, remade_extra, open }
    }

    /// What the backward of `ops` needs, each value once; where gathered copies stay, as needed. A copy that is no larger
    /// than the value stays too: nothing is saved by moving it again.
    fn needed(&self, ops: &[OpId]) -> Needed {
        let mut needed = Needed::new();
        for id in ops {
            for (value, need) in self.backward_reads(*id) {
                if !matches!(self.graph.value(value).role, ValueRole::Param(_)) {
                    self.note(&mut needed, self.graph.flow[*id].region, value, need);
                }
            }
        }
        needed
    }

    /// Notes that `value` is read as `need` in `region`: there, or where it rests.
    fn note(&self, needed: &mut Needed, region: RegionId, value: ValueId, need: Placement) {
        let place = if self.stays(region, value, &need) { need } else { self.plan.rest(value).clone() };
        let places = needed.entry(value).or_default();
        if !places.contains(&place) {
            places.push(place);
        }
    }

    /// Whether a copy of `value` made for `need` in `region` stays for the backward.
    pub(super) fn stays(&self, region: RegionId, value: ValueId, need: &Placement) -> bool {
        need.is_as_large_as(self.plan.rest(value)) || storage::keeps_gathered(self.graph, self.layout, region)
    }

    fn save(&mut self, unit: u32, value: ValueId, place: &Placement) -> Saved {
        let bytes = self.lying(value, place);
        let returned = self.returned.iter().find(|(op, _)| {
            let op = &self.graph.flow[**op];
            op.unit == unit && op.inputs[0] == value
        });
        let at_rest = self.made[value.0 as usize].filter(|made| self.place(*made) == place);
        let copy = self.kept.iter().find(|((v, p, _), _)| *v == value && p == place);
        let tensor = returned.map(|(_, t)| *t).or(at_rest).or(copy.map(|(_, t)| *t));
        let v = self.graph.value(value);
        Saved { value, tensor, bytes, tier: self.waits(value), region: v.region, span: v.span }
    }

    /// Where a saved value waits for the backward.
    fn waits(&self, value: ValueId) -> Tier {
        let v = self.graph.value(value);
        storage::resting(self.graph, self.layout, v.region, Class::Act, &v.name).map_or(Tier::Device, |s| s.tier)
    }

    /// One fp32 for each row of an attention.
    pub(super) fn attention_statistic(&mut self, id: OpId) -> Option<Saved> {
        let graph = self.graph;
        let op = &graph.flow[id];
        let OpKind::Attention(a) = &op.kind else { return None };
        if !op.inputs.iter().any(|v| self.plan.needs_grad(*v)) {
            return None;
        }
        let natural = self.plan.op(id).natural.clone();
        let rows: Vec<_> =
            graph.value(op.output).dims.iter().copied().filter(|d| *d != a.value_dim && *d != a.head_dim).collect();
        let rows = self.sizes.elements_of(&rows, &natural);
        let bytes = self.sizes.times(rows, STATISTIC_BYTES);
        let tier = self.waits(op.output);
        Some(Saved { value: op.output, tensor: None, bytes, tier, region: op.region, span: op.span })
    }

    /// What the kernel of a norm or softmax keeps beside the values the graph knows, as the job's cost model says.
    pub(super) fn kernel_extra(&mut self, id: OpId) -> Option<Saved> {
        let op = &self.graph.flow[id];
        let (value, each) = match &op.kind {
            OpKind::Norm { .. } => (op.inputs[0], self.sizes.bytes.norm_extra),
            OpKind::Softmax { .. } => (op.output, self.sizes.bytes.softmax_extra),
            _ => return None,
        };
        if each <= 0.0 || !op.inputs.iter().any(|v| self.plan.needs_grad(*v)) {
            return None;
        }
        let natural = self.plan.op(id).natural.clone();
        let elements = self.sizes.elements(value, &natural);
        let bytes = self.sizes.times(elements, each);
        Some(Saved { value, tensor: None, bytes, tier: self.waits(value), region: op.region, span: op.span })
    }

    /// The item that speaks of `region`, lists of values apart: the innermost, later text first. Which it is, and how
    /// deep.
    pub(super) fn recompute_item(&self, unit: u32, region: RegionId) -> Option<(usize, usize, &RecomputeWhat)> {
        let path = &self.graph.regions[region.0 as usize].path;
        let repeated = self.graph.units[unit as usize].repeated;
        let items = self.layout.recompute.iter().enumerate().filter(|(_, r)| repeated || !r.scope.is_everywhere());
        let items = items.filter(|(_, r)| !matches!(r.what, RecomputeWhat::Values(_)));
        let reach = items.filter_map(|(i, r)| Some((r.scope.depth(path)?, i, &r.what)));
        reach.max_by_key(|(depth, i, _)| (*depth, *i)).map(|(depth, i, what)| (i, depth, what))
    }

    /// The region that recomputes everything around `region`.
    fn recompute_scope(&self, unit: u32, region: RegionId) -> Option<Scope> {
        let path = &self.graph.regions[region.0 as usize].path;
        let (item, depth, what) = self.recompute_item(unit, region)?;
        matches!(what, RecomputeWhat::All | RecomputeWhat::Every(_)).then(|| (item, path[..depth].to_vec()))
    }

    /// Whether an item says that `value` is not saved; lists of nested scopes add up.
    fn recomputed_by_name(&self, unit: u32, id: ValueId, kept: &IndexSet<ValueId>) -> bool {
        let value = self.graph.value(id);
        let path = &self.graph.regions[value.region.0 as usize].path;
        let repeated = self.graph.units[unit as usize].repeated;
        let reach = |r: &crate::layout::Recompute| {
            (repeated || !r.scope.is_everywhere()).then(|| r.scope.depth(path)).flatten()
        };
        let listed = self.layout.recompute.iter().any(|r| match &r.what {
            RecomputeWhat::Values(names) => reach(r).is_some() && names.contains(&value.name),
            RecomputeWhat::None
            | RecomputeWhat::All
            | RecomputeWhat::Except(_)
            | RecomputeWhat::Every(_)
            | RecomputeWhat::Chosen(_) => false,
        });
        listed || (self.except(unit, value.region).is_some() && !kept.contains(&id))
    }

    /// The `ops(keep = […])` that speaks of `region`.
    fn except(&self, unit: u32, region: RegionId) -> Option<&[crate::layout::KeptKind]> {
        match self.recompute_item(unit, region)?.2 {
            RecomputeWhat::Except(kinds) => Some(kinds),
            _ => None,
        }
    }

    /// Results that an `ops(keep = […])` saves: the first of its kind, and each n-th after it, in program order.
    fn kept_by_kind(&self, unit: u32, ops: &[OpId]) -> IndexSet<ValueId> {
        let mut met: IndexMap<String, i64> = IndexMap::new();
        let mut kept = IndexSet::new();
        for id in ops {
            let op = &self.graph.flow[*id];
            let Some(kinds) = self.except(unit, op.region) else { continue };
            let name = language_name(&op.kind);
            let Some(kind) = kinds.iter().find(|k| k.kind == name) else { continue };
            let count = met.entry(name).or_default();
            if *count % kind.every == 0 {
                kept.insert(op.output);
            }
            *count += 1;
        }
        kept
    }
}
