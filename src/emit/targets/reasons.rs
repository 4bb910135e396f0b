//! Why a target cannot run a plan, collected.

use super::sizes::{axes, expert_axes, listed};
use super::{Instead, Sizes, TargetError, Where};
use crate::emit::plan::{AxisInfo, AxisRole, Plan};
use std::cmp::Reverse;

/// Reasons found so far.
pub(super) struct Reasons {
    target: &'static str,
    list: Vec<TargetError>,
}

impl Reasons {
    /// What no target can be told of `plan`; of `target`, none yet.
    pub(super) fn of(target: &'static str, plan: &Plan) -> Self {
        let mut reasons = Self { target, list: Vec::new() };
        for (class, both) in &plan.layout.unlike {
            let what = format!("`{class}` rests otherwise in one region than in another: {both}");
            let why = "frameworks are told one way for all parameters, and one for those of experts";
            reasons.add(Where::StoreInside((*class).into()), what, why);
        }
        if plan.layout.overlap_experts {
            let why = "no target is told yet to hide what travels to experts";
            reasons.add(Where::Overlap("dispatch"), "tokens travel to experts behind compute", why);
        }
        reasons
    }

    /// Adds a reason; the result is refined by [`Reason`]'s methods.
    pub(super) fn add(&mut self, at: Where, what: impl Into<String>, why: impl Into<String>) -> Reason<'_> {
        let (what, why) = (what.into(), why.into());
        self.list.push(TargetError { target: self.target, what, why, at, instead: None, able: &[] });
        Reason(self.list.last_mut().expect("one was just added"))
    }

    /// Refuses a batch that is not whole microbatches on every data rank.
    pub(super) fn uneven_batch(&mut self, plan: &Plan, sizes: &Sizes) {
        let t = &plan.training;
        let step = t.micro_batch.checked_mul(sizes.dp).filter(|s| *s > 0);
        if step.is_none_or(|s| t.batch == 0 || !t.batch.is_multiple_of(s)) {
            let what = format!("a batch of {} seq", t.batch);
            let why = format!("it must be a multiple of {} seq × {} data ranks", t.micro_batch, sizes.dp);
            self.add(Where::Batch, what, why);
        }
    }

    /// Refuses an axis that shards nothing, and ranks numbered otherwise than by `place`, fastest first; `ranks` says which
    /// ranks there are, `order` how they are numbered. Axes without a place are not judged.
    pub(super) fn misplaced(&mut self, plan: &Plan, ranks: &str, order: &str, place: impl Fn(&AxisInfo) -> Option<u8>) {
        let found = axes(plan);
        if let Some(idle) = found.iter().find(|a| a.role == AxisRole::Idle) {
            let what = format!("mesh axis `{}` of {} ranks shards nothing", idle.name, idle.size);
            let why = format!("every rank of a job of {} is a {ranks} rank", self.target);
            self.add(Where::Axis(idle.name.clone()), what, why);
        } else if !found.iter().filter_map(|a| place(a)).is_sorted() {
            let what = format!("ranks are numbered `mesh {}`", listed(&plan.layout.axes));
            let mut wanted: Vec<_> = plan.layout.axes.iter().collect();
            wanted.sort_by_key(|a| Reverse(place(a).unwrap_or(u8::MAX)));
            self.add(Where::Mesh, what, order).instead(format!("mesh {}", listed(wanted)));
        }
    }

    /// Refuses experts that are not laid out as all other parameters are: on other ranks, split, or stored otherwise.
    pub(super) fn ordinary_experts(&mut self, plan: &Plan, why: &str) {
        let able: &[&str] = &["megatron", "torchtitan"];
        let Some(experts) = &plan.layout.experts else { return };
        if let Some(axis) = expert_axes(plan).into_iter().find(|a| a.role == AxisRole::Expert) {
            let what = format!("experts are split over `{}`, {} ranks", axis.name, axis.size);
            self.add(Where::ShardOver(axis.name.clone()), what, why).able(able);
        } else if let Some((class, _)) =
            experts.stored.iter().find(|(class, o)| plan.layout.stored.get(*class) != Some(*o))
        {
            let what = format!("`{class}` of experts is stored otherwise than of other parameters");
            self.add(Where::StoreInside((*class).into()), what, why).able(able);
        }
    }

    /// Whether there is none.
    pub(super) fn none(&self) -> bool {
        self.list.is_empty()
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.list.len()
    }

    /// All of them.
    pub(super) fn list(self) -> Vec<TargetError> {
        self.list
    }
}

/// The reason added last.
pub(super) struct Reason<'a>(&'a mut TargetError);

impl Reason<'_> {
    /// What to write instead.
    pub(super) fn instead(self, text: impl Into<String>) -> Self {
        self.0.instead = Some(Instead::Text(text.into()));
        self
    }

    /// The rule it is about, with `else` the sequence.
    pub(super) fn else_sequence(self) -> Self {
        self.0.instead = Some(Instead::ElseSequence);
        self
    }

    /// How large a mesh axis would have to be.
    pub(super) fn resized(self, axis: &str, size: u64) -> Self {
        self.0.instead = Some(Instead::Axis(axis.to_owned(), size));
        self
    }

    /// Which frameworks can do it.
    pub(super) fn able(self, able: &'static [&'static str]) {
        self.0.able = able;
    }
}
