//! A piece of a graph: the ops of some units, with what they use.

use super::{OpGraph, Parameter, Value, ValueId, ValueRole};

impl OpGraph {
    /// The ops of the units that `keep` names, and the values of theirs that other ops use. Units, dimensions, regions and
    /// values keep their numbers; what comes from elsewhere has no op that makes it.
    pub fn piece(&self, keep: &dyn Fn(u32) -> bool) -> (Self, Vec<ValueId>) {
        // By value: the first unit of the piece that uses it, and its number among the piece's parameters.
        let mut used: Vec<Option<u32>> = vec![None; self.values.len()];
        let mut number: Vec<Option<u32>> = vec![None; self.values.len()];
        for (_, op) in self.ops().filter(|(_, op)| keep(op.unit)) {
            for value in &op.inputs {
                used[value.0 as usize].get_or_insert(op.unit);
            }
        }
        let mut out = Self {
            dims: self.dims.clone(),
            regions: self.regions.clone(),
            units: self.units.clone(),
            ..Self::default()
        };
        for parameter in &self.params {
            // A tied parameter rests with each piece that uses it.
            if let Some(unit) = used[parameter.value.0 as usize] {
                number[parameter.value.0 as usize] = Some(out.params.len() as u32);
                let unit = if keep(parameter.unit) { parameter.unit } else { unit };
                out.params.push(Parameter { unit, ..parameter.clone() });
            }
        }
        for (value, number) in self.values.iter().zip(number) {
            let role = match (value.role, number) {
                (ValueRole::Param(_), Some(n)) => ValueRole::Param(n),
                (ValueRole::Param(_), None) => ValueRole::Input,
                (role, _) => role,
            };
            out.add_value(Value { role, ..value.clone() });
        }
        for (_, op) in self.ops().filter(|(_, op)| keep(op.unit)) {
            out.add_op(op.clone());
        }
        let mut leaves = vec![false; self.values.len()];
        for value in self.ops().filter(|(_, op)| !keep(op.unit)).flat_map(|(_, op)| &op.inputs) {
            leaves[value.0 as usize] |= self.producer(*value).is_some_and(|p| keep(self.flow[p].unit));
        }
        let leaving = (0..self.values.len() as u32).map(ValueId).filter(|v| leaves[v.0 as usize]).collect();
        (out, leaving)
    }
}
