//! The unpartitioned program: every value and every gradient on whole arrays.

use super::array::{Array, Space};
use super::kernels::{Again, World};
use parc::graph::{OpKind, ValueId, ValueRole};

/// Values and gradients, by value.
pub(super) struct Reference {
    pub(super) values: Vec<Option<Array>>,
    pub(super) gradients: Vec<Option<Array>>,
    needs: Vec<bool>,
}

impl Reference {
    /// Runs the graph from `leaves`: data and parameters.
    pub(super) fn run(world: &World<'_>, leaves: &dyn Fn(ValueId, Space) -> Array) -> Self {
        let graph = world.graph;
        let whole = |v: ValueId| Space::new(graph.value(v).dims.clone(), |d| world.all(d));
        let mut values: Vec<Option<Array>> = vec![None; graph.values.len()];
        let mut needs = vec![false; graph.values.len()];
        for at in 0..graph.values.len() {
            let id = ValueId(at as u32);
            if graph.producer(id).is_none() {
                values[at] = Some(leaves(id, whole(id)));
                needs[at] = matches!(graph.value(id).role, ValueRole::Param(_));
            }
        }
        for (_, op) in graph.ops() {
            let ins: Vec<_> = op.inputs.iter().map(|v| values[v.0 as usize].as_ref().expect("made before")).collect();
            let made = world.forward(op, &ins, &[], &|d| world.all(d)).within(&whole(op.output));
            values[op.output.0 as usize] = Some(made);
            needs[op.output.0 as usize] = op.inputs.iter().any(|v| needs[v.0 as usize]);
        }
        let mut gradients: Vec<Option<Array>> = vec![None; graph.values.len()];
        let used = |v: ValueId| graph.ops().any(|(_, op)| op.inputs.contains(&v));
        for (_, op) in graph.ops() {
            if graph.value(op.output).role == ValueRole::Loss && !used(op.output) {
                gradients[op.output.0 as usize] = Some(Array::filled(whole(op.output), 1.0));
            }
        }
        for (_, op) in graph.ops().rev() {
            let Some(dy) = gradients[op.output.0 as usize].clone() else { continue };
            let again = Again {
                operands: op.inputs.iter().map(|v| values[v.0 as usize].as_ref()).collect(),
                result: values[op.output.0 as usize].as_ref(),
                statistics: Vec::new(),
            };
            let chooses = |at: usize| matches!(op.kind, OpKind::Dispatch(_)) && at == 1;
            let targets: Vec<_> = op
                .inputs
                .iter()
                .enumerate()
                .map(|(at, v)| (needs[v.0 as usize] && !chooses(at)).then(|| whole(*v)))
                .collect();
            let made = world.backward(op, &dy, &again, &targets);
            for (v, made) in op.inputs.iter().zip(made) {
                let Some(made) = made else { continue };
                let made = made.within(&whole(*v));
                let slot = &mut gradients[v.0 as usize];
                *slot = Some(match slot.take() {
                    Some(there) => there.zip(&made, |a, b| a + b),
                    None => made,
                });
            }
        }
        Self { values, gradients, needs }
    }

    /// Whether a gradient flows to a value.
    pub(super) fn needs_grad(&self, value: ValueId) -> bool {
        self.needs[value.0 as usize]
    }

    /// The sum of the losses that no op reads.
    pub(super) fn loss(&self, world: &World<'_>) -> f64 {
        let graph = world.graph;
        let last = |v: ValueId| graph.ops().all(|(_, op)| !op.inputs.contains(&v));
        let losses = graph.ops().map(|(_, op)| op.output);
        let losses = losses.filter(|v| graph.value(*v).role == ValueRole::Loss && last(*v));
        losses.map(|v| self.values[v.0 as usize].as_ref().expect("made").data.iter().sum::<f64>()).sum()
    }
}
