//! The report of a plan as text: one screen, at most 88 columns.
//!
//! The verdict is on the first line and the money on the fourth; causes stand beside sizes. Every figure comes from
//! the plan; nothing is computed here but units, sums and shares.

mod changes;
mod collectives;
mod head;
mod layout;
mod memory;
pub(super) mod numbers;
mod page;
mod tail;
mod time;
mod traffic;

pub use collectives::collectives;

use super::plan::Plan;
pub use changes::changes;
use page::Page;

/// Columns of a report.
pub const WIDTH: usize = 88;

/// How a report is shown.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum Style {
    /// Text alone.
    #[default]
    Plain,
    /// Bold and dim, for terminals.
    Terminal,
}

/// A plan near this one and what it would change.
#[derive(Clone, PartialEq, Debug)]
pub struct Neighbour {
    /// The edit, in the language: `micro_batch = 2 seq`.
    pub edit: String,
    /// Step time over this plan's, minus 1.
    pub step_change: f64,
    /// Bytes more on the fullest rank.
    pub memory_change_bytes: i64,
    /// Whether it fits.
    pub fits: bool,
}

/// The report of `plan` alone.
pub fn text(plan: &Plan, style: Style) -> String {
    text_with(plan, &[], style)
}

/// The report of `plan` with what its neighbours would change.
pub fn text_with(plan: &Plan, neighbours: &[Neighbour], style: Style) -> String {
    let mut page = Page::default();
    head::write(plan, &mut page);
    page.blank();
    layout::write(plan, &mut page);
    page.blank();
    page.beside(&time::rows(plan), &memory::rows(plan));
    memory::largest(plan, &mut page);
    traffic::write(plan, &mut page);
    page.blank();
    tail::write(plan, neighbours, &mut page);
    page.finish(style)
}
