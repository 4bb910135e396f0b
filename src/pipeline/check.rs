//! Orders in, a [`Schedule`] out: every operation is there once, where it may be, and no rank waits for ever.
//!
//! Dependencies: a rank runs its operations one after the other, in order; `F(i,c)` needs `F(i,c-1)`; `B(i,c)` needs
//! `B(i,c+1)` and its own `F(i,c)`; `W(i,c)` needs `B(i,c)`. `U` needs nothing but its turn. Of two that are issued
//! together both wait until both can run.
//!
//! Orders without end are written out for as many periods as the pipeline needs to fill, twice: with the last of them
//! and without. What a period takes is the difference.

use super::dispatch::dispatch;
use super::error::ScheduleError;
use super::flat::{Flat, NONE, index};
use super::schedule::{OpKind, Orders, ScheduleOp};
use super::simulate::Durations;

/// The most operations a run may have, over all ranks.
pub const MAX_RUN_LENGTH: u64 = crate::limits::SCHEDULE_OPS as u64;

/// Orders that passed [`check`]; operations of all ranks lie in one list, rank after rank.
#[derive(Debug, Clone)]
pub struct Schedule {
    /// Operations, those of rank 0 first.
    ops: Vec<ScheduleOp>,
    /// Where each rank's operations begin, and the end of all.
    starts: Vec<u32>,
    /// For each operation the one on another rank that sends it its input.
    sender: Vec<u32>,
    /// For each operation, whether its result goes to another rank.
    sends: Vec<bool>,
    /// All operations, each after everything it needs.
    sequence: Vec<u32>,
    hosts: Vec<Vec<u32>>,
    chunks: u32,
    microbatches: u32,
    has_weight_gradients: bool,
    /// Of orders without end: the same run, one period shorter.
    shorter: Option<Box<Schedule>>,
    /// The orders, where they are hints.
    hints: Option<Box<Orders>>,
}

impl Schedule {
    /// Chunks the model is cut into.
    pub fn chunks(&self) -> u32 {
        self.chunks
    }

    /// Microbatches of a step.
    pub fn microbatches(&self) -> u32 {
        self.microbatches
    }

    /// Pipeline ranks.
    pub fn ranks(&self) -> usize {
        self.hosts.len()
    }

    /// What a rank runs, in order.
    pub fn order(&self, rank: usize) -> &[ScheduleOp] {
        &self.ops[self.range(rank)]
    }

    /// Chunks whose parameters a rank keeps, ascending, each once.
    pub fn hosts(&self, rank: usize) -> &[u32] {
        &self.hosts[rank]
    }

    /// Whether weight gradients are operations of their own, so that `B` is the input gradient alone.
    pub fn has_weight_gradients(&self) -> bool {
        self.has_weight_gradients
    }

    /// The same run without its last period, if it has no end.
    pub(super) fn shorter(&self) -> Option<&Self> {
        self.shorter.as_deref()
    }

    /// Whether it is a run without end.
    pub fn is_endless(&self) -> bool {
        self.shorter.is_some()
    }

    /// What ranks run where each takes the first operation that can run and the operations last so long. Where orders
    /// are strict it is the schedule itself.
    #[must_use]
    pub fn dispatched(self, durations: &Durations) -> Self {
        match &self.hints {
            Some(orders) => ordered(orders, durations, &self.hosts).unwrap_or(self),
            None => self,
        }
    }

    /// Whether the longest path at some times is a path at any: the order is fixed, ends, and nothing is issued together.
    pub fn is_strict(&self) -> bool {
        self.hints.is_none() && !self.is_endless() && !self.joins()
    }

    /// Whether any operations are issued together.
    pub fn joins(&self) -> bool {
        self.ops.iter().any(|op| op.joined)
    }

    /// Whether two operations are issued together, of which this is the second.
    pub(super) fn is_joined(&self, op: usize) -> bool {
        self.ops.get(op).is_some_and(|op| op.joined)
    }

    /// Indices of a rank's operations among all.
    pub(super) fn range(&self, rank: usize) -> std::ops::Range<usize> {
        self.starts[rank] as usize..self.starts[rank + 1] as usize
    }

    /// Rank of an operation.
    pub(super) fn rank(&self, op: usize) -> u32 {
        (self.starts.partition_point(|start| *start as usize <= op) - 1) as u32
    }

    /// All operations, by index.
    pub(super) fn ops(&self) -> &[ScheduleOp] {
        &self.ops
    }

    /// Indices of all operations, each after everything it needs.
    pub(super) fn sequence(&self) -> impl Iterator<Item = usize> + '_ {
        self.sequence.iter().map(|&op| op as usize)
    }

    /// The operation on another rank whose message this one waits for.
    pub(super) fn sender(&self, op: usize) -> Option<usize> {
        index(self.sender[op])
    }

    /// Whether an operation is the first of its rank.
    pub(super) fn is_first(&self, op: usize) -> bool {
        self.starts.binary_search(&(op as u32)).is_ok()
    }

    /// Whether this operation's result goes to another rank.
    pub(super) fn sends(&self, op: usize) -> bool {
        self.sends[op]
    }
}

/// Checks orders against all rules of a schedule; the error is the first one broken.
pub fn check(orders: &Orders) -> Result<Schedule, ScheduleError> {
    let (hosts, hosted) = hosted(orders)?;
    let flat = Flat::new(orders)?;
    flat.complete()?;
    flat.together(&hosted)?;
    flat.paired()?;
    if orders.endless {
        let updating = with_updates(orders);
        let periods = periods(orders)?;
        let run = |periods: u32| schedule(flat.unrolled(&updating, periods), &hosts, orders);
        let shorter = run(periods - 1)?;
        return Ok(Schedule { shorter: Some(Box::new(shorter)), ..run(periods)? });
    }
    if orders.hints {
        let each = if flat.has_weight_gradients() { (1.0, 1.0) } else { (2.0, 0.0) };
        let durations = Durations::uniform(orders.chunks, 1.0, each.0, each.1);
        return ordered(orders, &durations, &hosts);
    }
    schedule(flat, &hosts, orders)
}

/// The schedule of orders that are hints, with operations that last so long.
fn ordered(orders: &Orders, durations: &Durations, hosts: &[Vec<u32>]) -> Result<Schedule, ScheduleError> {
    let strict = Orders { hints: false, ranks: dispatch(&Flat::new(orders)?, durations), ..orders.clone() };
    let found = schedule(Flat::new(&strict)?, hosts, &strict)?;
    Ok(Schedule { hints: Some(Box::new(orders.clone())), ..found })
}

fn schedule(flat: Flat, hosts: &[Vec<u32>], orders: &Orders) -> Result<Schedule, ScheduleError> {
    let sequence = flat.sequence()?;
    let mut sender = vec![NONE; flat.ops.len()];
    let mut sends = vec![false; flat.ops.len()];
    for (op, sender) in sender.iter_mut().enumerate() {
        if let Some(from) = flat.input(op).filter(|&from| flat.rank[from] != flat.rank[op]) {
            *sender = from as u32;
            sends[from] = true;
        }
    }
    Ok(Schedule {
        sender,
        sends,
        sequence,
        hosts: hosts.to_vec(),
        chunks: orders.chunks,
        microbatches: orders.microbatches,
        has_weight_gradients: flat.has_weight_gradients(),
        ops: flat.ops,
        starts: flat.starts,
        shorter: None,
        hints: None,
    })
}

/// Orders without end in which every chunk is updated: where none is said, at the end of the period.
fn with_updates(orders: &Orders) -> Orders {
    let mut out = orders.clone();
    for order in &mut out.ranks {
        let mut lacking: Vec<u32> = order.iter().map(|op| op.chunk).collect();
        lacking.sort_unstable();
        lacking.dedup();
        lacking.retain(|c| !order.iter().any(|op| op.kind == OpKind::U && op.chunk == *c));
        order.extend(lacking.into_iter().map(ScheduleOp::update));
    }
    out
}

/// Periods after which a run without end repeats itself: those its microbatches reach back, and as many as fill the
/// pipeline forward and backward.
fn periods(orders: &Orders) -> Result<u32, ScheduleError> {
    let m = i64::from(orders.microbatches.max(1));
    let back = orders.ranks.iter().flatten().map(|op| -op.microbatch).max().unwrap_or(0).max(0);
    let fill = 2 * i64::from(orders.chunks) / m;
    let periods = back / m + fill + 4;
    let each: u64 = orders.ranks.iter().map(|order| order.len() as u64 + 1).sum();
    let operations = each.saturating_mul(periods.unsigned_abs());
    match u32::try_from(periods) {
        Ok(periods) if operations <= MAX_RUN_LENGTH && u64::from(periods) * (m as u64) <= MAX_RUN_LENGTH => Ok(periods),
        _ => Err(ScheduleError::TooLong { operations, limit: MAX_RUN_LENGTH }),
    }
}

/// Sizes and hosts: the rules to hold before anything as large as the run is allocated.
fn hosted(orders: &Orders) -> Result<(Vec<Vec<u32>>, Vec<bool>), ScheduleError> {
    let (ranks, lists) = (orders.ranks.len(), orders.hosts.len());
    if ranks != lists {
        return Err(ScheduleError::HostLists { ranks, lists });
    }
    let given: u64 = orders.ranks.iter().map(|order| order.len() as u64).sum();
    let chunks = u64::from(orders.chunks);
    let needed = (2 * chunks).saturating_mul(u64::from(orders.microbatches.max(1)));
    let operations = given.max(needed).max(ranks as u64);
    if operations > MAX_RUN_LENGTH {
        return Err(ScheduleError::TooLong { operations, limit: MAX_RUN_LENGTH });
    }
    let mut hosts = orders.hosts.clone();
    for (rank, chunks) in hosts.iter_mut().enumerate() {
        chunks.sort_unstable();
        chunks.dedup();
        if let Some(&chunk) = chunks.last().filter(|&&chunk| chunk >= orders.chunks) {
            return Err(ScheduleError::NoSuchChunk { rank: rank as u32, chunk, chunks: orders.chunks });
        }
    }
    let mut is_hosted = vec![false; orders.chunks as usize];
    for &chunk in hosts.iter().flatten() {
        is_hosted[chunk as usize] = true;
    }
    for (rank, order) in orders.ranks.iter().enumerate() {
        for (position, &op) in order.iter().enumerate() {
            let rank = rank as u32;
            let Orders { microbatches, chunks, .. } = *orders;
            let first = if orders.endless { -(MAX_RUN_LENGTH as i64) } else { 0 };
            let known = op.kind == OpKind::U || (first..i64::from(microbatches)).contains(&op.microbatch);
            if op.chunk >= chunks || !known {
                return Err(ScheduleError::OutOfRange { rank, position, op, microbatches, chunks });
            }
            let here = |rank: u32| hosts[rank as usize].binary_search(&op.chunk).is_ok();
            if is_hosted[op.chunk as usize] && !here(rank) {
                let hosts = (0..ranks as u32).filter(|&rank| here(rank)).collect();
                return Err(ScheduleError::NotHosted { rank, position, op, hosts });
            }
        }
    }
    Ok((hosts, is_hosted))
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
