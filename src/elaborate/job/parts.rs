//! The parts of a layout, each as a job of its own on its devices: which ops are whose, and what crosses.

use super::super::errors;
use super::super::layout::{self, Joined};
use super::{Builder, Counts, Job, Placed};
use crate::eval::Instance;
use crate::graph::{OpGraph, ValueId};
use crate::layout::Selector;
use crate::source::Span;

/// A part of a layout as a job on its devices.
#[derive(Debug)]
pub struct Part<'p> {
    /// Its name.
    pub name: String,
    /// The job: the part's devices, mesh, ops and microbatches.
    pub job: Job<'p>,
    /// The item.
    pub span: Span,
}

/// A part, its ops placed.
pub(super) struct PlacedPart<'p> {
    part: layout::Part<'p>,
    placed: Placed,
    /// Values that other parts use.
    leaving: Vec<ValueId>,
}

impl<'p> Builder<'p, '_, '_> {
    /// Places the model on each part. Hands back the whole of it as the first part sees it, and the parts in text order.
    pub(super) fn place_parts(
        &mut self,
        parts: Vec<layout::Part<'p>>,
        joined: Option<&Joined<'p>>,
        model: (&Instance<'p>, Span),
        counts: &Counts,
    ) -> Option<(OpGraph, Vec<PlacedPart<'p>>)> {
        let selectors = |p: &layout::Part<'p>| -> Vec<Selector> {
            let own = p.selectors.iter().map(|(s, _)| s.clone());
            let scopes = p.evaluated.scopes.iter().flat_map(|(s, _)| s.nested.iter().flatten().cloned());
            own.chain(scopes).collect()
        };
        let borders: Vec<_> = parts.iter().flat_map(selectors).flat_map(|s| s.borders()).collect();
        let follows = |i: usize| joined.is_some_and(|j| j.parts.contains(&i));
        // The first of those that one pipeline joins says what a microbatch is in all of them.
        let mut order: Vec<usize> = joined.map(|j| j.parts.clone()).unwrap_or_default();
        order.extend((0..parts.len()).filter(|i| !follows(*i)));
        let mut shared = None;
        let mut placed: Vec<(usize, layout::Part<'p>, Placed)> = Vec::new();
        let mut parts: Vec<_> = parts.into_iter().map(Some).collect();
        for i in order {
            let Some(mut part) = parts[i].take() else { continue };
            let own = Counts {
                micro_batch: part.micro_batch.unwrap_or(counts.micro_batch),
                all: shared.filter(|_| follows(i)),
                ..counts.clone()
            };
            let mut duties = std::mem::take(&mut part.duties);
            let found = self.placed(&mut part.evaluated, model, &own, &borders, &mut duties)?;
            part.duties = duties;
            if follows(i) {
                shared = shared.or(Some(found.all));
            }
            placed.push((i, part, found));
        }
        placed.sort_by_key(|(i, ..)| *i);
        let whole = placed.first()?.2.ops.clone();
        let owner = self.owners(&whole, &placed.iter().map(|(_, p, _)| p).collect::<Vec<_>>())?;
        let mut out = Vec::new();
        for (i, part, mut found) in placed {
            self.check_selectors(&part.evaluated.scopes, &found.ops);
            self.check_named(&part.evaluated.named, &found.ops);
            let (ops, leaving) = found.ops.piece(&|unit| owner[unit as usize] == i);
            found.ops = ops;
            out.push(PlacedPart { part, placed: found, leaving });
        }
        Some((whole, out))
    }

    /// The part each unit belongs to: exactly one, or it is said.
    fn owners(&mut self, ops: &OpGraph, parts: &[&layout::Part<'p>]) -> Option<Vec<usize>> {
        let mut owner: Vec<Option<usize>> = vec![None; ops.units.len()];
        let mut missing: Vec<String> = Vec::new();
        let mut ok = true;
        for (_, op) in ops.ops() {
            let path = &ops.regions[op.region.0 as usize].path;
            let mut covering = parts.iter().enumerate().filter_map(|(i, p)| {
                p.selectors.iter().find(|(s, _)| s.depth(path).is_some()).map(|(_, span)| (i, *span))
            });
            let Some((first, span)) = covering.next() else {
                let name = match ops.selector_path(op.region) {
                    path if path.is_empty() => ops.units[op.unit as usize].name.clone(),
                    path => path.split('.').next().unwrap_or_default().to_string(),
                };
                if !missing.contains(&name) {
                    missing.push(name);
                }
                continue;
            };
            let known = owner[op.unit as usize].replace(first);
            let again = covering.next().or(known.filter(|k| *k != first).map(|_| (first, span)));
            if let Some((second, at)) = again.filter(|_| ok) {
                let first = known.filter(|k| *k != second).unwrap_or(first);
                let what = ops.units[op.unit as usize].name.clone();
                self.eval.sink.error(errors::covered_twice(
                    &what,
                    &parts[first].name.text,
                    &parts[second].name.text,
                    at,
                ));
                ok = false;
            }
        }
        if let (Some(last), false) = (parts.last(), missing.is_empty()) {
            self.eval.sink.error(errors::uncovered(&missing, last));
            return None;
        }
        ok.then(|| owner.into_iter().map(Option::unwrap_or_default).collect())
    }
}

impl<'p> PlacedPart<'p> {
    /// The part as a job, beside what it shares with the whole.
    pub(super) fn job(self, base: &Job<'p>) -> Part<'p> {
        let Self { part, placed, leaving } = self;
        let job = Job {
            name: base.name.clone(),
            id: base.id,
            cluster: part.cluster,
            layout: part.evaluated.layout,
            layout_name: base.layout_name.clone(),
            pipeline: part.evaluated.pipeline,
            ops: placed.ops,
            model_name: base.model_name.clone(),
            numerics: base.numerics.clone(),
            cost: base.cost.clone(),
            batch: base.batch,
            sequence: base.sequence,
            micro_batch: placed.micro_batch,
            replicas: placed.replicas,
            microbatches: placed.microbatches,
            length: None,
            batch_axes: placed.batch_axes,
            parameters: base.parameters.clone(),
            point: base.point.clone(),
            duties: part.duties,
            claims: Vec::new(),
            passes: base.passes.clone(),
            disturb: Vec::new(),
            objective: None,
            choices: Vec::new(),
            readings: Vec::new(),
            places: base.places.clone(),
            span: part.span,
            parts: Vec::new(),
            joined: None,
            leaving,
        };
        Part { name: part.name.text.to_string(), job, span: part.span }
    }

    /// What the whole takes from it.
    pub(super) fn placed(&self) -> &Placed {
        &self.placed
    }
}
