//! Orders in, a [`Schedule`] out: every operation is there once, where it may be, and no rank waits for ever.
//!
//! Dependencies: a rank runs its operations one after the other, in order; `F(i,c)` needs `F(i,c-1)`; `B(i,c)` needs
//! `B(i,c+1)` and its own `F(i,c)`; `W(i,c)` needs `B(i,c)`. `U` needs nothing but its turn.

use super::error::{ScheduleError, Wait};
use super::schedule::{OpKind, Orders, ScheduleOp};

/// The most operations a run may have, over all ranks.
pub const MAX_RUN_LENGTH: u64 = 4_194_304;

/// No operation: an index that [`MAX_RUN_LENGTH`] keeps free.
const NONE: u32 = u32::MAX;

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

    /// Indices of a rank's operations among all.
    pub(super) fn range(&self, rank: usize) -> std::ops::Range<usize> {
        self.starts[rank] as usize..self.starts[rank + 1] as usize
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

fn index(op: u32) -> Option<usize> {
    (op != NONE).then_some(op as usize)
}

/// Checks orders against all rules of a schedule; the error is the first one broken.
pub fn check(orders: &Orders) -> Result<Schedule, ScheduleError> {
    let hosts = hosted(orders)?;
    let flat = Flat::new(orders)?;
    flat.complete()?;
    flat.together()?;
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
        hosts,
        chunks: orders.chunks,
        microbatches: orders.microbatches,
        has_weight_gradients: flat.has_weight_gradients(),
        ops: flat.ops,
        starts: flat.starts,
    })
}

/// Sizes and hosts: the rules to hold before anything as large as the run is allocated.
fn hosted(orders: &Orders) -> Result<Vec<Vec<u32>>, ScheduleError> {
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
            let known = op.kind == OpKind::U || (0..i64::from(microbatches)).contains(&op.microbatch);
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
    Ok(hosts)
}

/// The operations of all ranks in one list, found by what they do.
struct Flat {
    ops: Vec<ScheduleOp>,
    rank: Vec<u32>,
    starts: Vec<u32>,
    /// Index of `F`, `B` and `W` of each microbatch and chunk, microbatch after microbatch.
    found: [Vec<u32>; 3],
    chunks: u32,
}

impl Flat {
    /// Lists the operations; the error is one that is there twice.
    fn new(orders: &Orders) -> Result<Self, ScheduleError> {
        let cells = orders.chunks as usize * orders.microbatches as usize;
        let mut flat = Flat {
            ops: Vec::new(),
            rank: Vec::new(),
            starts: vec![0],
            found: std::array::from_fn(|_| vec![NONE; cells]),
            chunks: orders.chunks,
        };
        // Which rank updated a chunk last, and where: each may do it once.
        let mut updated = vec![(NONE, 0); orders.chunks as usize];
        for (rank, order) in orders.ranks.iter().enumerate() {
            let rank = rank as u32;
            for (position, &op) in order.iter().enumerate() {
                let earlier = if let Some(kind) = table(op.kind) {
                    let cell = flat.cell(op.microbatch as usize, op.chunk);
                    let earlier = std::mem::replace(&mut flat.found[kind][cell], flat.ops.len() as u32);
                    index(earlier).map(|earlier| flat.place(earlier))
                } else {
                    let earlier = std::mem::replace(&mut updated[op.chunk as usize], (rank, position));
                    (earlier.0 == rank).then_some(earlier)
                };
                if let Some(first) = earlier {
                    return Err(ScheduleError::Twice { op, first, second: (rank, position) });
                }
                flat.ops.push(op);
                flat.rank.push(rank);
            }
            flat.starts.push(flat.ops.len() as u32);
        }
        Ok(flat)
    }

    fn cell(&self, microbatch: usize, chunk: u32) -> usize {
        microbatch * self.chunks as usize + chunk as usize
    }

    /// Rank of an operation and its position there.
    fn place(&self, op: usize) -> (u32, usize) {
        let rank = self.rank[op];
        (rank, op - self.starts[rank as usize] as usize)
    }

    fn find(&self, kind: OpKind, microbatch: i64, chunk: u32) -> Option<usize> {
        let table = &self.found[table(kind)?];
        table.get(self.cell(microbatch as usize, chunk)).copied().and_then(index)
    }

    fn has_weight_gradients(&self) -> bool {
        self.found[2].iter().any(|&op| op != NONE)
    }

    /// Every `F` and `B` is there, every `W` or none.
    fn complete(&self) -> Result<(), ScheduleError> {
        let kinds = [OpKind::F, OpKind::B, OpKind::W];
        let weights = self.found[2].iter().find_map(|&op| index(op)).map(|op| self.ops[op]);
        for (kind, table) in kinds.into_iter().zip(&self.found) {
            let Some(cell) = table.iter().position(|&op| op == NONE) else { continue };
            let (microbatch, chunk) = (cell / self.chunks as usize, cell % self.chunks as usize);
            let missing = ScheduleOp { kind, microbatch: microbatch as i64, chunk: chunk as u32 };
            match (kind, weights) {
                (OpKind::F | OpKind::B, _) => return Err(ScheduleError::Missing { op: missing }),
                (OpKind::W, Some(present)) => {
                    return Err(ScheduleError::SomeWeightGradients { present, missing });
                }
                (OpKind::W, None) | (OpKind::U, _) => {}
            }
        }
        Ok(())
    }

    /// What saved activations serve is on the rank that saved them: moving them is no message this model prices.
    fn together(&self) -> Result<(), ScheduleError> {
        for (index, &op) in self.ops.iter().enumerate() {
            if op.kind == OpKind::U {
                continue;
            }
            let Some(forward) = self.find(OpKind::F, op.microbatch, op.chunk) else { continue };
            let (rank, forward) = (self.rank[index], self.rank[forward]);
            if rank != forward {
                return Err(ScheduleError::Apart { op, rank, forward });
            }
        }
        Ok(())
    }

    /// The operation whose result enters this one across a chunk border.
    fn input(&self, op: usize) -> Option<usize> {
        let ScheduleOp { kind, microbatch, chunk } = self.ops[op];
        match kind {
            OpKind::F => self.find(kind, microbatch, chunk.checked_sub(1)?),
            OpKind::B if chunk + 1 < self.chunks => self.find(kind, microbatch, chunk + 1),
            OpKind::B | OpKind::W | OpKind::U => None,
        }
    }

    /// The operation of the same microbatch and chunk that this one needs; it is on the same rank.
    fn origin(&self, op: usize) -> Option<usize> {
        let ScheduleOp { kind, microbatch, chunk } = self.ops[op];
        match kind {
            OpKind::B => self.find(OpKind::F, microbatch, chunk),
            OpKind::W => self.find(OpKind::B, microbatch, chunk),
            OpKind::F | OpKind::U => None,
        }
    }

    /// All operations, each after what it needs; the error is a deadlock.
    fn sequence(&self) -> Result<Vec<u32>, ScheduleError> {
        let count = self.ops.len();
        let turn = |op: usize| op.checked_sub(1).filter(|&before| self.rank[before] == self.rank[op]);
        let mut needs = vec![0_u8; count];
        // Who else waits for an operation: at most one across a border and one of the same microbatch and chunk.
        let mut waiting = vec![[NONE; 2]; count];
        for (op, needs) in needs.iter_mut().enumerate() {
            for (slot, needed) in [self.input(op), self.origin(op)].into_iter().enumerate() {
                if let Some(needed) = needed {
                    waiting[needed][slot] = op as u32;
                    *needs += 1;
                }
            }
            *needs += u8::from(turn(op).is_some());
        }
        let mut sequence: Vec<u32> = (0..count as u32).filter(|&op| needs[op as usize] == 0).collect();
        let mut done = vec![false; count];
        let mut next = 0;
        while let Some(&op) = sequence.get(next) {
            next += 1;
            let op = op as usize;
            done[op] = true;
            let follower = Some(op + 1).filter(|&after| after < count && turn(after).is_some());
            let [across, same] = waiting[op].map(index);
            for after in [follower, across, same].into_iter().flatten() {
                needs[after] -= 1;
                if needs[after] == 0 {
                    sequence.push(after as u32);
                }
            }
        }
        if sequence.len() < count { Err(self.deadlock(&done)) } else { Ok(sequence) }
    }

    /// The shortest cycle among ranks that cannot go on. Each waits for one operation: for one of its own that comes
    /// later, or else for a message. So following the waits from any stuck rank ends in a cycle, and cycles are
    /// disjoint.
    fn deadlock(&self, done: &[bool]) -> ScheduleError {
        let waits: Vec<Option<(Wait, u32)>> = (0..self.starts.len() - 1)
            .map(|rank| {
                let next = (self.starts[rank] as usize..self.starts[rank + 1] as usize).find(|&op| !done[op])?;
                let on = [self.origin(next), self.input(next)].into_iter().flatten().find(|&op| !done[op])?;
                Some((Wait { rank: rank as u32, next: self.ops[next], on: self.ops[on] }, self.rank[on]))
            })
            .collect();
        let mut visited_from = vec![NONE; waits.len()];
        let mut shortest: Vec<Wait> = Vec::new();
        for from in 0..waits.len() as u32 {
            let mut rank = from;
            while let Some((_, after)) = waits[rank as usize].filter(|_| visited_from[rank as usize] == NONE) {
                visited_from[rank as usize] = from;
                rank = after;
            }
            if visited_from[rank as usize] != from {
                continue;
            }
            let mut cycle = Vec::new();
            let entry = rank;
            while let Some((wait, after)) = waits[rank as usize] {
                cycle.push(wait);
                rank = after;
                if rank == entry {
                    break;
                }
            }
            if shortest.is_empty() || cycle.len() < shortest.len() {
                shortest = cycle;
            }
        }
        let lowest = (0..shortest.len()).min_by_key(|&place| shortest[place].rank).unwrap_or(0);
        shortest.rotate_left(lowest);
        ScheduleError::Deadlock { cycle: shortest }
    }
}

/// Where [`Flat::found`] keeps operations of a kind.
fn table(kind: OpKind) -> Option<usize> {
    match kind {
        OpKind::F => Some(0),
        OpKind::B => Some(1),
        OpKind::W => Some(2),
        OpKind::U => None,
    }
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
