//! The operations of all ranks in one list, found by what they do; and in which order they can run.

use super::error::{ScheduleError, Wait};
use super::schedule::{OpKind, Orders, ScheduleOp};

/// No operation: an index that [`super::MAX_RUN_LENGTH`] keeps free.
pub(super) const NONE: u32 = u32::MAX;

/// An index that may be [`NONE`].
pub(super) fn index(op: u32) -> Option<usize> {
    (op != NONE).then_some(op as usize)
}

/// The operations of all ranks in one list, found by what they do.
pub(super) struct Flat {
    /// Operations, those of rank 0 first.
    pub(super) ops: Vec<ScheduleOp>,
    /// Rank of each.
    pub(super) rank: Vec<u32>,
    /// Where each rank's operations begin, and the end of all.
    pub(super) starts: Vec<u32>,
    /// Index of `F`, `B` and `W` of each microbatch and chunk, microbatch after microbatch.
    found: [Vec<u32>; 3],
    chunks: u32,
    microbatches: u32,
    /// Whether a microbatch stands for the same of every period.
    wraps: bool,
}

impl Flat {
    /// Lists the operations; the error is one that is there twice.
    pub(super) fn new(orders: &Orders) -> Result<Self, ScheduleError> {
        let cells = orders.chunks as usize * orders.microbatches as usize;
        let mut flat = Flat {
            ops: Vec::new(),
            rank: Vec::new(),
            starts: vec![0],
            found: std::array::from_fn(|_| vec![NONE; cells]),
            chunks: orders.chunks,
            microbatches: orders.microbatches,
            wraps: orders.endless,
        };
        // Which rank updated a chunk last, and where: each may do it once.
        let mut updated = vec![(NONE, 0); orders.chunks as usize];
        for (rank, order) in orders.ranks.iter().enumerate() {
            let rank = rank as u32;
            for (position, &op) in order.iter().enumerate() {
                let earlier = if let Some(kind) = table(op.kind) {
                    let cell = flat.cell(op.microbatch, op.chunk);
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

    /// So many periods of an endless run, one after the other; what belongs to periods before the first is left out.
    pub(super) fn unrolled(&self, orders: &Orders, periods: u32) -> Self {
        let m = i64::from(self.microbatches);
        let microbatches = self.microbatches * periods;
        let cells = self.chunks as usize * microbatches as usize;
        let found = std::array::from_fn(|_| vec![NONE; cells]);
        let (ops, rank, starts) = (Vec::new(), Vec::new(), vec![0]);
        let mut flat = Self { ops, rank, starts, found, chunks: self.chunks, microbatches, wraps: false };
        for (rank, order) in (0..).zip(&orders.ranks) {
            for period in 0..i64::from(periods) {
                let mut before = false;
                for op in order {
                    let moved = if op.kind == OpKind::U { 0 } else { period * m + op.microbatch };
                    let kept = moved >= 0;
                    if kept {
                        if let Some(kind) = table(op.kind) {
                            let cell = flat.cell(moved, op.chunk);
                            flat.found[kind][cell] = flat.ops.len() as u32;
                        }
                        flat.ops.push(ScheduleOp { microbatch: moved, joined: op.joined && before, ..*op });
                        flat.rank.push(rank);
                    }
                    before = kept;
                }
            }
            flat.starts.push(flat.ops.len() as u32);
        }
        flat
    }

    fn cell(&self, microbatch: i64, chunk: u32) -> usize {
        let turn = if self.wraps { microbatch.rem_euclid(i64::from(self.microbatches.max(1))) } else { microbatch };
        turn as usize * self.chunks as usize + chunk as usize
    }

    /// Rank of an operation and its position there.
    fn place(&self, op: usize) -> (u32, usize) {
        let rank = self.rank[op];
        (rank, op - self.starts[rank as usize] as usize)
    }

    fn find(&self, kind: OpKind, microbatch: i64, chunk: u32) -> Option<usize> {
        let table = &self.found[table(kind)?];
        table.get(self.cell(microbatch, chunk)).copied().and_then(index)
    }

    /// Whether weight gradients are operations of their own.
    pub(super) fn has_weight_gradients(&self) -> bool {
        self.found[2].iter().any(|&op| op != NONE)
    }

    /// Every `F` and `B` is there, every `W` or none.
    pub(super) fn complete(&self) -> Result<(), ScheduleError> {
        let kinds = [OpKind::F, OpKind::B, OpKind::W];
        let weights = self.found[2].iter().find_map(|&op| index(op)).map(|op| self.ops[op]);
        for (kind, table) in kinds.into_iter().zip(&self.found) {
            let Some(cell) = table.iter().position(|&op| op == NONE) else { continue };
            let (microbatch, chunk) = (cell / self.chunks as usize, cell % self.chunks as usize);
            let missing = ScheduleOp { kind, microbatch: microbatch as i64, chunk: chunk as u32, joined: false };
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

    /// What saved activations serve is on the rank that saved them: moving them is no message this model prices. A
    /// chunk that no rank keeps has its activations in a store, where any rank reads them.
    pub(super) fn together(&self, hosted: &[bool]) -> Result<(), ScheduleError> {
        for (index, &op) in self.ops.iter().enumerate() {
            if op.kind == OpKind::U || !hosted[op.chunk as usize] {
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

    /// Two operations issued together are two: neither is an update, neither stands in another pair.
    pub(super) fn paired(&self) -> Result<(), ScheduleError> {
        for (index, &op) in self.ops.iter().enumerate().filter(|(_, op)| op.joined) {
            let first = self.turn(index).map(|before| self.ops[before]);
            let fine = first.is_some_and(|x| !x.joined && x.kind != OpKind::U) && op.kind != OpKind::U;
            if !fine {
                return Err(ScheduleError::Pair { rank: self.rank[index], op });
            }
        }
        Ok(())
    }

    /// The operation of the same rank that comes just before.
    pub(super) fn turn(&self, op: usize) -> Option<usize> {
        op.checked_sub(1).filter(|&before| self.rank[before] == self.rank[op])
    }

    /// The operation with which this one is issued: itself, or the first of its pair.
    pub(super) fn head(&self, op: usize) -> usize {
        if self.ops[op].joined { op - 1 } else { op }
    }

    /// What an operation needs beside its turn.
    pub(super) fn needs(&self, op: usize) -> [Option<usize>; 2] {
        [self.input(op), self.origin(op)]
    }

    /// The operation whose result enters this one across a chunk border.
    pub(super) fn input(&self, op: usize) -> Option<usize> {
        let ScheduleOp { kind, microbatch, chunk, .. } = self.ops[op];
        match kind {
            OpKind::F => self.find(kind, microbatch, chunk.checked_sub(1)?),
            OpKind::B if chunk + 1 < self.chunks => self.find(kind, microbatch, chunk + 1),
            OpKind::B | OpKind::W | OpKind::U => None,
        }
    }

    /// The operation of the same microbatch and chunk that this one needs.
    fn origin(&self, op: usize) -> Option<usize> {
        let ScheduleOp { kind, microbatch, chunk, .. } = self.ops[op];
        match kind {
            OpKind::B => self.find(OpKind::F, microbatch, chunk),
            OpKind::W => self.find(OpKind::B, microbatch, chunk),
            OpKind::F | OpKind::U => None,
        }
    }

    /// For each operation those that wait for it, at most one across a border and one of the same microbatch and chunk;
    /// and how many each waits for. The second of a pair waits through the first.
    pub(super) fn waiting(&self) -> (Vec<[u32; 2]>, Vec<u8>) {
        let mut waiting = vec![[NONE; 2]; self.ops.len()];
        let mut needs = vec![0_u8; self.ops.len()];
        for op in 0..self.ops.len() {
            let head = self.head(op);
            for (slot, needed) in self.needs(op).into_iter().enumerate() {
                if let Some(needed) = needed {
                    waiting[needed][slot] = head as u32;
                    needs[head] += 1;
                }
            }
        }
        (waiting, needs)
    }

    /// All operations, each after what it needs; the error is a deadlock.
    pub(super) fn sequence(&self) -> Result<Vec<u32>, ScheduleError> {
        let count = self.ops.len();
        let (waiting, mut needs) = self.waiting();
        for (op, needs) in needs.iter_mut().enumerate() {
            *needs += u8::from(self.turn(op).is_some());
        }
        let mut sequence: Vec<u32> = (0..count as u32).filter(|&op| needs[op as usize] == 0).collect();
        let mut done = vec![false; count];
        let mut next = 0;
        while let Some(&op) = sequence.get(next) {
            next += 1;
            let op = op as usize;
            done[op] = true;
            let follower = Some(op + 1).filter(|&after| after < count && self.turn(after).is_some());
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
                let pair = Some(next + 1).filter(|&y| self.ops.get(y).is_some_and(|y| y.joined));
                let waits = std::iter::once(next).chain(pair).flat_map(|op| [self.origin(op), self.input(op)]);
                let on = waits.flatten().find(|&op| !done[op])?;
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
