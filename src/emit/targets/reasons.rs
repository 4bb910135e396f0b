//! Why a target cannot run a plan, collected.

use super::{Instead, Sizes, TargetError, Where};
use crate::emit::plan::Plan;

/// Reasons found so far.
pub(super) struct Reasons {
    target: &'static str,
    list: Vec<TargetError>,
}

impl Reasons {
    /// None yet, of this target.
    pub(super) fn of(target: &'static str) -> Self {
        Self { target, list: Vec::new() }
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
