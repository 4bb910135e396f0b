//! Checks an op graph against rules it must keep. For debug builds and tests.
//!
//! 1. Ids point at something; a parameter's value and the parameter name each other.
//! 2. A value is made once, and before it is used; a unit never reads from a later one.
//! 3. A value has each dimension once.
//! 4. The dimensions of an op's result follow from those of its operands.

use super::{DimId, Op, OpGraph, OpKind, ValueId, ValueRole};

/// What is wrong with `graph`, in words; nothing where it is right.
pub fn verify(graph: &OpGraph) -> Vec<String> {
    let mut broken = Vec::new();
    for (at, value) in graph.values.iter().enumerate() {
        let id = ValueId(at as u32);
        if value.dims.iter().any(|d| d.0 as usize >= graph.dims.len()) || value.region.0 as usize >= graph.regions.len()
        {
            broken.push(format!("value {at} has a dimension or region that is not there"));
            continue;
        }
        let mut dims = value.dims.clone();
        dims.sort();
        if dims.windows(2).any(|w| w[0] == w[1]) {
            broken.push(format!("{} has a dimension twice", graph.describe(id)));
        }
        if let ValueRole::Param(p) = value.role
            && graph.params.get(p as usize).is_none_or(|p| p.value != id)
        {
            broken.push(format!("{} is no parameter's value", graph.describe(id)));
        }
    }
    for parameter in &graph.params {
        if parameter.unit as usize >= graph.units.len() {
            broken.push(format!("{} is in a unit that is not there", parameter.path));
        }
    }
    if !broken.is_empty() {
        return broken;
    }
    let mut made = vec![false; graph.values.len()];
    for (_, op) in graph.ops() {
        let all = op.inputs.iter().chain([&op.output]);
        if all.clone().any(|v| v.0 as usize >= graph.values.len()) || op.unit as usize >= graph.units.len() {
            broken.push("an op has a value or unit that is not there".into());
            continue;
        }
        for value in &op.inputs {
            match graph.producer(*value) {
                Some(_) if !made[value.0 as usize] => {
                    broken.push(format!("{} is used before it is made", graph.describe(*value)));
                }
                Some(p) if graph.flow[p].unit > op.unit => {
                    broken.push(format!("{} comes from a later unit", graph.describe(*value)));
                }
                Some(_) | None => {}
            }
        }
        if std::mem::replace(&mut made[op.output.0 as usize], true) {
            broken.push(format!("{} is made twice", graph.describe(op.output)));
        }
        match result(graph, op) {
            Some(mut wanted) => {
                let mut has = graph.value(op.output).dims.clone();
                has.sort();
                wanted.sort();
                if has != wanted {
                    broken.push(format!(
                        "{} does not have the dimensions of what it is made of",
                        graph.describe(op.output)
                    ));
                }
            }
            None => broken.push(format!("the operands of {} do not fit its op", graph.describe(op.output))),
        }
    }
    broken
}

/// The dimensions of the result of `op`; `None` where its operands do not fit.
fn result(graph: &OpGraph, op: &Op) -> Option<Vec<DimId>> {
    let dims: Vec<&[DimId]> = op.inputs.iter().map(|v| graph.value(*v).dims.as_slice()).collect();
    let first = *dims.first()?;
    let without =
        |all: &[DimId], gone: &[DimId]| -> Vec<DimId> { all.iter().copied().filter(|d| !gone.contains(d)).collect() };
    let union = || {
        let mut all: Vec<_> = dims.iter().flat_map(|d| d.iter().copied()).collect();
        all.sort();
        all.dedup();
        all
    };
    let has = |d: &DimId| first.contains(d);
    match &op.kind {
        OpKind::Contract { contracted } => {
            let both = contracted.iter().all(|d| dims.iter().all(|x| x.contains(d)));
            (dims.len() == 2 && both).then(|| without(&union(), contracted))
        }
        OpKind::Map(_) => Some(union()),
        OpKind::Norm { over, .. } => over.iter().all(has).then(|| first.to_vec()),
        OpKind::Softmax { over } => has(over).then(|| first.to_vec()),
        OpKind::Embed { over, bag } => {
            let table = *dims.get(1)?;
            let ids = without(first, bag.as_slice());
            let width = without(&without(table, &[*over]), &ids);
            (table.contains(over) && bag.iter().all(has)).then(|| [ids, width].concat())
        }
        OpKind::Take { from, to } | OpKind::Rename { from, to } => {
            has(from).then(|| [&without(first, &[*from])[..], &[*to]].concat())
        }
        OpKind::Attention(a) => {
            let [q, k, v, ..] = dims[..] else { return None };
            let fits = q.contains(&a.heads) && k.contains(&a.kv_heads) && v.contains(&a.kv_heads);
            let out = [&without(q, &[a.head_dim])[..], &[a.value_dim]].concat();
            (fits && q.contains(&a.sequence) && k.contains(&a.keys)).then_some(out)
        }
        // A loss is the mean over everything, or one for each row.
        OpKind::CrossEntropy { over, .. } => {
            let rows = without(first, over.as_slice());
            let scalar = graph.value(op.output).dims.is_empty();
            over.iter().all(has).then_some(if scalar { Vec::new() } else { rows })
        }
        OpKind::Split { from, into } => {
            (has(from) && !into.is_empty()).then(|| [&without(first, &[*from])[..], into].concat())
        }
        OpKind::Merge { from, into } => {
            (!from.is_empty() && from.iter().all(has)).then(|| [&without(first, from)[..], &[*into]].concat())
        }
        OpKind::Sum { over } => over.iter().all(has).then(|| without(first, over)),
        OpKind::Regroup { pairs } => pairs.iter().all(|(from, _)| has(from)).then(|| {
            first.iter().map(|d| pairs.iter().find(|(from, _)| from == d).map_or(*d, |(_, to)| *to)).collect()
        }),
        // Operands lack what broadcasts, and have pieces of the dimension instead of it.
        OpKind::Concat { over } => {
            let out = &graph.value(op.output).dims;
            out.contains(over).then(|| out.clone())
        }
        OpKind::Select { experts, choices, .. } => {
            has(experts).then(|| [&without(first, &[*experts])[..], &[*choices]].concat())
        }
        OpKind::Dispatch(r) => {
            let route = *dims.get(1)?;
            let kept = without(first, route);
            route.contains(&r.choices).then(|| [&[r.experts, r.slots], &kept[..]].concat())
        }
        OpKind::Combine(r) => {
            let tokens = without(dims.get(1)?, &[r.choices]);
            let kept = without(first, &[r.experts, r.slots]);
            (has(&r.experts) && has(&r.slots)).then(|| [tokens, kept].concat())
        }
        // Its declaration says what comes out.
        OpKind::Custom(_) => Some(graph.value(op.output).dims.clone()),
    }
}
