//! Why a target cannot run a plan, collected.

use super::{Instead, TargetError, Where};

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
