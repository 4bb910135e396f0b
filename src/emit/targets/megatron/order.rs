//! How Megatron numbers ranks: tp, cp, dp, pp from fastest to slowest, or tp, cp, pp, dp with one switch.

use super::{Reasons, Sizes, Where};
use crate::emit::plan::{AxisInfo, AxisRole, Plan};
use crate::emit::targets::sizes::expert_axes;

/// Which of the two orders a mesh is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Order {
    /// The pipeline is slowest: the default.
    PipelineSlowest,
    /// Data parallelism is slowest: `--use-tp-pp-dp-mapping`.
    DataSlowest,
}

/// The order of the plan's mesh. Axes of one rank are in no order; several axes of one role must be neighbours.
pub(super) fn of(plan: &Plan, errors: &mut Reasons) -> Option<Order> {
    let mut axes: Vec<&AxisInfo> = plan.layout.axes.iter().filter(|a| a.size > 1).collect();
    axes.sort_by_key(|a| a.stride);
    if let Some(idle) = axes.iter().find(|a| a.role == AxisRole::Idle) {
        let what = format!("mesh axis `{}` of {} ranks shards nothing", idle.name, idle.size);
        let why = "every rank of a Megatron job belongs to tensor, context, data or pipeline parallelism";
        errors.add(Where::Axis(idle.name.clone()), what, why);
        return None;
    }
    let mut roles: Vec<_> = axes.iter().map(|a| a.role).collect();
    roles.dedup();
    let follows = |order: &[AxisRole]| {
        let mut rest = order.iter();
        roles.iter().all(|role| rest.any(|r| r == role))
    };
    if follows(&[AxisRole::Tensor, AxisRole::Context, AxisRole::Data, AxisRole::Pipeline]) {
        return Some(Order::PipelineSlowest);
    }
    if follows(&[AxisRole::Tensor, AxisRole::Context, AxisRole::Pipeline, AxisRole::Data]) {
        return Some(Order::DataSlowest);
    }
    let what = format!("ranks are numbered `mesh {}`", mesh(plan.layout.axes.iter()));
    let mut fixed: Vec<&AxisInfo> = plan.layout.axes.iter().collect();
    fixed.sort_by_key(|a| rank_of(a.role));
    let instead = format!("mesh {}", mesh(fixed.into_iter()));
    let why = "Megatron orders tp, cp, dp, pp from fastest to slowest, or tp, cp, pp, dp";
    errors.add(Where::Mesh, what, why).instead(instead);
    None
}

/// Refuses experts' axes in another order than etp, ep, edp from fastest to slowest inside a stage, and copies of experts
/// that two stages would count differently.
pub(super) fn experts(plan: &Plan, sizes: &Sizes, order: Order, errors: &mut Reasons) {
    use AxisRole::{Data, Expert, Pipeline, Tensor};
    let (wanted, text) = match order {
        Order::PipelineSlowest => ([Tensor, Expert, Data, Pipeline], "etp, ep, edp, pp"),
        Order::DataSlowest => ([Tensor, Expert, Pipeline, Data], "etp, ep, pp, edp"),
    };
    let axes = expert_axes(plan);
    let mut rest = wanted.iter();
    let mut last = None;
    let stray = axes.iter().find(|a| {
        let follows = last == Some(a.role) || rest.any(|r| *r == a.role);
        last = Some(a.role);
        !follows
    });
    if let Some(axis) = stray {
        let what = format!("experts number their ranks `{}`", mesh(axes.iter().rev().copied()));
        let why = format!("Megatron orders {text} from fastest to slowest");
        errors.add(Where::Axis(axis.name.clone()), what, why);
    }
    if order == Order::DataSlowest && sizes.pp > 1 && !axes.is_empty() && sizes.dp.saturating_mul(sizes.cp) != sizes.edp
    {
        let what =
            format!("data ranks are slowest, {} of them, and {} ranks hold copies of an expert", sizes.dp, sizes.edp);
        let why = "with `--use-tp-pp-dp-mapping` both must be one number, or there is no pipeline";
        errors.add(Where::Mesh, what, why);
    }
}

/// Place of a role in a mesh written outermost first.
fn rank_of(role: AxisRole) -> u8 {
    match role {
        AxisRole::Pipeline => 0,
        AxisRole::Idle | AxisRole::Expert => 1,
        AxisRole::Data => 2,
        AxisRole::Context => 3,
        AxisRole::Tensor => 4,
    }
}

fn mesh<'a>(axes: impl Iterator<Item = &'a AxisInfo>) -> String {
    format!("[{}]", axes.map(|a| a.name.as_str()).collect::<Vec<_>>().join(", "))
}
