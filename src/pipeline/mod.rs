//! Stages and schedules: how units are cut into chunks, in which order ranks run them, and what that costs.
//!
//! Pure algorithms over plain data. [`split`] cuts the model's units into chunks. A schedule's `order(s)` is evaluated
//! elsewhere into [`Orders`]; [`check()`] turns legal orders into a [`Schedule`], the only thing [`simulate()`],
//! [`bubble`] and [`in_flight()`] accept, so none of them can meet a deadlock. Nothing here knows the language, and no
//! wording for users is made here: errors are data.

mod check;
mod dispatch;
mod error;
mod flat;
mod in_flight;
mod schedule;
mod simulate;
pub mod split;
mod staleness;
#[cfg(test)]
mod testing;

pub use check::{MAX_RUN_LENGTH, Schedule, check};
pub use error::{ScheduleError, Wait};
pub use in_flight::{InFlight, Live, Weights, in_flight};
pub use schedule::{OpKind, Orders, ScheduleOp};
pub use simulate::{Durations, Messages, Path, Run, Slot, bubble, makespan, simulate, slots};
pub use staleness::{Staleness, staleness};
