//! The experts of a decoder's layer, read off its ops.

use super::{Reader, one};
use crate::emit::plan::ExpertsInfo;
use crate::graph::{DimId, MapFn, Op, OpKind, ValueId, ValueRole};

/// A layer's experts.
pub(super) struct Moe {
    pub(super) info: ExpertsInfo,
    /// Activation and width of one.
    pub(super) mlp: (&'static str, DimId),
}

/// The experts among the ops of a layer, if it has some.
pub(super) fn read(r: &Reader<'_>, ops: &[&Op], hidden: DimId) -> Result<Option<Moe>, String> {
    let routes = ops.iter().filter_map(|o| if let OpKind::Dispatch(route) = o.kind { Some(route) } else { None });
    if routes.clone().next().is_none() {
        return Ok(None);
    }
    let route = one(routes, "dispatch in a layer")?;
    let selects = ops.iter().filter_map(|o| match o.kind {
        OpKind::Select { experts, choices, groups, kept } if experts == route.experts => {
            Some((o.inputs.first().copied(), choices, groups, kept))
        }
        _ => None,
    });
    let (scores, choices, groups, kept) = one(selects, "choice of experts in a layer")?;
    let (of_experts, rest): (Vec<&Op>, Vec<&Op>) =
        ops.iter().copied().partition(|o| r.ops.value(o.output).dims.contains(&route.slots));
    let mlp = r.mlp(&of_experts, hidden)?;
    let gate = rest.iter().any(|o| matches!(o.kind, OpKind::Map(MapFn::Sigmoid)));
    let by_gate = |v: &ValueId| {
        let made = r.ops.producer(*v).map(|id| &r.ops.flow[id].kind);
        matches!(made, Some(OpKind::Map(MapFn::Sigmoid)))
    };
    let ungated: Vec<&Op> = rest.iter().copied().filter(|o| !o.inputs.iter().any(by_gate)).collect();
    let shared = if ungated.iter().any(|o| matches!(o.kind, OpKind::Map(MapFn::Silu | MapFn::Gelu | MapFn::Relu))) {
        let (activation, width) = r.mlp(&ungated, hidden)?;
        if activation != mlp.0 {
            return Err("its shared expert has another activation than the others".into());
        }
        Some(r.extent(width)?)
    } else {
        None
    };
    let info = ExpertsInfo {
        count: r.extent(route.experts)?,
        top_k: r.extent(choices)?,
        groups: (groups > 1 && kept > 0).then_some((groups as u64, kept as u64)),
        correction_bias: scores.map_or(Ok(false), |v| correction(r, v))?,
        shared,
        shared_gate: gate,
    };
    Ok(Some(Moe { info, mlp }))
}

/// Whether the scores are corrected by a bias. What a bias of the router does is not in the graph; its name says it.
fn correction(r: &Reader<'_>, scores: ValueId) -> Result<bool, String> {
    let Some(op) = r.ops.producer(scores).map(|id| &r.ops.flow[id]) else { return Ok(false) };
    if !matches!(op.kind, OpKind::Map(MapFn::Add)) {
        return Ok(false);
    }
    let names = op.inputs.iter().filter(|v| r.is_param(**v)).map(|v| r.ops.value(*v).name.as_str());
    match one(names, "bias of the router")? {
        "b_correction" => Ok(true),
        other => Err(format!("its router adds `{other}`, which takes part in the weights")),
    }
}

/// Whether an op makes the scores of experts: one of the router's.
pub(super) fn routes(r: &Reader<'_>, op: &Op) -> bool {
    let dims = &r.ops.value(op.output).dims;
    let slots = dims.iter().any(|d| r.ops.dim(*d).slots.is_some());
    let of = |d: &DimId| r.ops.dims.iter().any(|x| x.slots.as_ref().is_some_and(|s| s.experts == *d));
    let gates = op.inputs.iter().any(|v| match r.ops.value(*v).role {
        ValueRole::Param(_) => r.ops.value(*v).dims.len() == 1 && matches!(op.kind, OpKind::Contract { .. }),
        ValueRole::Input | ValueRole::Activation | ValueRole::Logits | ValueRole::Loss => false,
    });
    !slots && (dims.iter().any(of) || gates)
}

/// Parameters in the place of an MLP: router, experts of `width` parameters each, and what every token sees.
pub(super) fn params(e: &ExpertsInfo, hidden: u64, width: u64) -> u64 {
    // The shared expert is gated as the others are.
    let shared = e.shared.map_or(0, |n| 3 * hidden * n);
    let gate = if e.shared_gate { hidden } else { 0 };
    e.count * (width + hidden) + if e.correction_bias { e.count } else { 0 } + shared + gate
}
