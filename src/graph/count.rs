//! What a model counts to by itself: parameters, active parameters, what a server keeps of a token.

use super::{Attention, DimId, OpGraph, OpKind, Parameter, ValueId};
use crate::expr::{Graph, Id, Node};
use crate::layout::PathPart;

/// Share of the pairs of queries and keys that is computed, as a real: half where causal, less within a window.
pub fn pairs(ops: &OpGraph, a: &Attention, graph: &mut Graph) -> Id {
    let Some(window) = a.window else { return graph.real(if a.causal { 0.5 } else { 1.0 }) };
    let keys = ops.dim(a.keys).true_extent;
    let seen = graph.min(window, keys);
    let (seen, keys) = (graph.put(Node::ToReal(seen)), graph.put(Node::ToReal(keys)));
    let share = graph.div(seen, keys);
    if !a.causal {
        return share;
    }
    // The first of the window's width see less of it: share − share² / 2.
    let half = graph.real(0.5);
    let less = graph.product([share, share, half]);
    graph.sub(share, less)
}

impl OpGraph {
    /// Elements of a tensor whose extents the model fixes; the largest number where there are more.
    pub fn elements(&self, graph: &Graph, dims: &[DimId]) -> u64 {
        let extent = |d: &DimId| graph.as_int(self.dim(*d).true_extent).unwrap_or(0) as u64;
        // A ragged dimension and the one it depends on are the sum of its extents together.
        let ragged = dims.iter().filter_map(|d| self.dim(*d).ragged).find(|r| dims.contains(&r.over));
        let together = |d: &DimId| ragged.is_some_and(|r| r.over == *d || self.dim(*d).ragged == Some(r));
        let rest = dims.iter().filter(|d| !together(d)).map(extent).fold(1, u64::saturating_mul);
        rest.saturating_mul(ragged.map_or(1, |r| r.total as u64))
    }

    /// Parameters that `of` picks, in all copies of their units, unpadded, tied ones once.
    pub fn params(&self, graph: &Graph, of: &dyn Fn(&Parameter) -> bool) -> u64 {
        self.counted(graph, of, &|_| None)
    }

    /// Those of them that one token uses: of experts that are chosen, as many as it chooses.
    pub fn params_active(&self, graph: &Graph, of: &dyn Fn(&Parameter) -> bool) -> u64 {
        self.counted(graph, of, &|p| self.chosen(p.value))
    }

    fn counted(
        &self,
        graph: &Graph,
        of: &dyn Fn(&Parameter) -> bool,
        chosen: &dyn Fn(&Parameter) -> Option<(DimId, DimId)>,
    ) -> u64 {
        let one = |p: &Parameter| {
            let mut dims = self.value(p.value).dims.clone();
            if let Some((experts, choices)) = chosen(p) {
                dims.iter_mut().filter(|d| **d == experts).for_each(|d| *d = choices);
            }
            self.elements(graph, &dims).saturating_mul(self.units[p.unit as usize].count as u64)
        };
        self.params.iter().filter(|p| of(p)).map(one).fold(0, u64::saturating_add)
    }

    /// Experts and choices, where `param` belongs to experts that tokens choose: it meets their slots.
    fn chosen(&self, param: ValueId) -> Option<(DimId, DimId)> {
        let dims = &self.value(param).dims;
        self.ops().find_map(|(_, op)| {
            let OpKind::Dispatch(r) = op.kind else { return None };
            let slots = |v: &ValueId| self.value(*v).dims.contains(&r.slots);
            let meets = |(_, o): (_, &super::Op)| o.inputs.contains(&param) && o.inputs.iter().any(slots);
            (dims.contains(&r.experts) && self.ops().any(meets)).then_some((r.experts, r.choices))
        })
    }

    /// Elements a server keeps of one token: what every causal attention caches.
    pub fn cached(&self, graph: &Graph) -> u64 {
        let mut sum = 0u64;
        for (_, op) in self.ops() {
            let OpKind::Attention(a) = &op.kind else { continue };
            if !a.causal {
                continue;
            }
            for value in &a.cache {
                let dims = self.value(*value).dims.iter().copied().filter(|d| self.dim(*d).data.is_none());
                let of_token = self.elements(graph, &dims.collect::<Vec<_>>());
                sum = sum.saturating_add(of_token.saturating_mul(self.units[op.unit as usize].count as u64));
            }
        }
        sum
    }

    /// Whether `path`, names from the model down, is the parameter or a region around it.
    pub fn is_within(&self, parameter: &Parameter, path: &[String]) -> bool {
        let value = self.value(parameter.value);
        let parts = self.regions[value.region.0 as usize].path.iter().filter_map(|p| match p {
            PathPart::Name(name) => Some(name.as_str()),
            PathPart::Iterations { .. } => None,
        });
        let whole: Vec<_> = parts.chain([value.name.as_str()]).collect();
        whole.len() >= path.len() && whole.iter().zip(path).all(|(a, b)| a == b)
    }
}
