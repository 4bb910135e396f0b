//! Degrees of parallelism, as frameworks count them.

use crate::emit::plan::{AxisInfo, AxisRole, Plan};

/// Products over the mesh axes of each role.
#[derive(Copy, Clone, Debug)]
pub(super) struct Sizes {
    pub(super) tp: u64,
    pub(super) cp: u64,
    pub(super) dp: u64,
    pub(super) pp: u64,
    /// Ranks that hold other experts than each other; 1 in a model without.
    pub(super) ep: u64,
    /// Ranks that split one expert.
    pub(super) etp: u64,
    /// Ranks that hold the same piece of an expert.
    pub(super) edp: u64,
}

impl Sizes {
    pub(super) fn of(plan: &Plan) -> Self {
        let over = |axes: &[AxisInfo], role| {
            let axes = axes.iter().filter(|a| a.role == role);
            axes.fold(1_u64, |n, a| n.saturating_mul(a.size.max(1)))
        };
        let product = |role| over(&plan.layout.axes, role);
        let experts = |role| plan.layout.experts.as_ref().map_or(1, |e| over(&e.axes, role));
        Self {
            tp: product(AxisRole::Tensor),
            cp: product(AxisRole::Context),
            dp: product(AxisRole::Data),
            pp: product(AxisRole::Pipeline),
            ep: experts(AxisRole::Expert),
            etp: experts(AxisRole::Tensor),
            edp: experts(AxisRole::Data),
        }
    }

    /// Ranks over which gradients are summed.
    pub(super) fn gradient_group(self) -> u64 {
        self.dp.saturating_mul(self.cp)
    }
}

/// How data-parallel ranks share parameters.
#[derive(Copy, Clone, Debug)]
pub(super) struct Data {
    /// Groups of ranks that each hold all parameters.
    pub(super) replicate: u64,
    /// Data ranks of one such group; context ranks beside them.
    pub(super) shard: u64,
}

impl Data {
    pub(super) fn of(plan: &Plan) -> Self {
        let over = stored(plan, "param");
        let product = |inside: bool| {
            let data = plan.layout.axes.iter().filter(|a| a.role == AxisRole::Data && over.contains(&a.name) == inside);
            data.fold(1_u64, |n, a| n.saturating_mul(a.size.max(1)))
        };
        Self { replicate: product(false), shard: product(true) }
    }
}

/// Which frameworks store the optimizer state sharded and parameters whole, with gradients sharded too or not.
pub(super) fn keep_whole(plan: &Plan) -> &'static [&'static str] {
    match (stored(plan, "param"), stored(plan, "grad")) {
        ([], []) => &["megatron", "deepspeed"],
        ([], _) => &["deepspeed"],
        _ => &[],
    }
}

/// The axes a class is stored over.
pub(super) fn stored<'a>(plan: &'a Plan, class: &str) -> &'a [String] {
    plan.layout.stored.get(class).map_or(&[][..], Vec::as_slice)
}

/// Axes of more than one rank, fastest first.
pub(super) fn axes(plan: &Plan) -> Vec<&AxisInfo> {
    fastest_first(&plan.layout.axes)
}

/// The axes as experts see them, of more than one rank, fastest first; none in a model without experts.
pub(super) fn expert_axes(plan: &Plan) -> Vec<&AxisInfo> {
    plan.layout.experts.as_ref().map_or_else(Vec::new, |e| fastest_first(&e.axes))
}

/// The axes a class of the experts is stored over.
pub(super) fn stored_experts<'a>(plan: &'a Plan, class: &str) -> &'a [String] {
    let stored = plan.layout.experts.as_ref().and_then(|e| e.stored.get(class));
    stored.map_or(&[][..], Vec::as_slice)
}

fn fastest_first(axes: &[AxisInfo]) -> Vec<&AxisInfo> {
    let mut axes: Vec<_> = axes.iter().filter(|a| a.size > 1).collect();
    axes.sort_by_key(|a| a.stride);
    axes
}

/// `[pp, dp, tp]`.
pub(super) fn listed<'a>(axes: impl IntoIterator<Item = &'a AxisInfo>) -> String {
    format!("[{}]", axes.into_iter().map(|a| a.name.as_str()).collect::<Vec<_>>().join(", "))
}
