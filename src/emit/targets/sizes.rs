//! Degrees of parallelism, as frameworks count them.

use crate::emit::plan::{AxisInfo, AxisRole, Plan};

/// Products over the mesh axes of each role.
#[derive(Copy, Clone, Debug)]
pub(super) struct Sizes {
    pub(super) tp: u64,
    pub(super) cp: u64,
    pub(super) dp: u64,
    pub(super) pp: u64,
}

impl Sizes {
    pub(super) fn of(plan: &Plan) -> Self {
        let product = |role| {
            let axes = plan.layout.axes.iter().filter(|a| a.role == role);
            axes.fold(1_u64, |n, a| n.saturating_mul(a.size.max(1)))
        };
        Self {
            tp: product(AxisRole::Tensor),
            cp: product(AxisRole::Context),
            dp: product(AxisRole::Data),
            pp: product(AxisRole::Pipeline),
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
    let mut axes: Vec<_> = plan.layout.axes.iter().filter(|a| a.size > 1).collect();
    axes.sort_by_key(|a| a.stride);
    axes
}

/// `[pp, dp, tp]`.
pub(super) fn listed<'a>(axes: impl IntoIterator<Item = &'a AxisInfo>) -> String {
    format!("[{}]", axes.into_iter().map(|a| a.name.as_str()).collect::<Vec<_>>().join(", "))
}
