//! Why orders are no schedule. Data for the diagnostics made elsewhere; the text here serves tests and debugging.

use std::fmt;

use super::schedule::ScheduleOp;

/// One rank of a deadlock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// The rank that is stuck.
    pub rank: u32,
    /// The operation it would run next.
    pub next: ScheduleOp,
    /// What that operation waits for; it comes later on the next rank of the cycle.
    pub on: ScheduleOp,
}

/// The first rule that orders break.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScheduleError {
    /// `hosts` was given for another number of ranks than `order`.
    HostLists {
        /// Ranks with an order.
        ranks: usize,
        /// Ranks with a list of hosted chunks.
        lists: usize,
    },
    /// More operations than a run may have, given or needed for every microbatch and chunk.
    TooLong {
        /// Operations of all ranks together.
        operations: u64,
        /// The most there may be.
        limit: u64,
    },
    /// A rank hosts a chunk that does not exist.
    NoSuchChunk {
        /// The rank.
        rank: u32,
        /// What it hosts.
        chunk: u32,
        /// Chunks there are.
        chunks: u32,
    },
    /// An operation on a microbatch or chunk that does not exist.
    OutOfRange {
        /// Rank that has it.
        rank: u32,
        /// Place in the rank's order, from 0.
        position: usize,
        /// The operation.
        op: ScheduleOp,
        /// Microbatches there are.
        microbatches: u32,
        /// Chunks there are.
        chunks: u32,
    },
    /// An operation on a rank that does not keep the chunk, while others do.
    NotHosted {
        /// Rank that has it.
        rank: u32,
        /// Place in the rank's order, from 0.
        position: usize,
        /// The operation.
        op: ScheduleOp,
        /// Ranks that keep the chunk, ascending.
        hosts: Vec<u32>,
    },
    /// The same operation twice.
    Twice {
        /// The operation.
        op: ScheduleOp,
        /// Rank and place in its order of the first.
        first: (u32, usize),
        /// Rank and place in its order of the second.
        second: (u32, usize),
    },
    /// A forward or backward that no rank runs.
    Missing {
        /// The operation.
        op: ScheduleOp,
    },
    /// Weight gradients are split off for some microbatches and chunks only.
    SomeWeightGradients {
        /// One that is there.
        present: ScheduleOp,
        /// The first that is not.
        missing: ScheduleOp,
    },
    /// A backward or weight gradient on another rank than the forward whose activations it needs.
    Apart {
        /// The backward or weight gradient.
        op: ScheduleOp,
        /// Its rank.
        rank: u32,
        /// Rank of the forward.
        forward: u32,
    },
    /// Two operations that cannot be issued together: an update, or one of another pair.
    Pair {
        /// The rank.
        rank: u32,
        /// The second of the two.
        op: ScheduleOp,
    },
    /// Each rank waits for what a later one of the list has yet to do, the last for the first.
    Deadlock {
        /// The shortest cycle among the ranks once nothing can run any more, from its lowest rank.
        cycle: Vec<Wait>,
    },
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HostLists { ranks, lists } => write!(out, "{ranks} ranks have an order, {lists} a list of chunks"),
            Self::TooLong { operations, limit } => write!(out, "{operations} operations, the limit is {limit}"),
            Self::NoSuchChunk { rank, chunk, chunks } => {
                write!(out, "rank {rank} hosts chunk {chunk}, there are {chunks}")
            }
            Self::OutOfRange { rank, op, microbatches, chunks, .. } => {
                write!(out, "rank {rank} runs {op}, there are {microbatches} microbatches and {chunks} chunks")
            }
            Self::NotHosted { rank, op, hosts, .. } => {
                let list: Vec<_> = hosts.iter().map(ToString::to_string).collect();
                match &list[..] {
                    [] => write!(out, "rank {rank} runs {op}, and no rank hosts chunk {}", op.chunk),
                    [one] => write!(out, "rank {rank} runs {op}, and rank {one} hosts chunk {}", op.chunk),
                    all => write!(out, "rank {rank} runs {op}, and ranks {} host chunk {}", all.join(", "), op.chunk),
                }
            }
            Self::Twice { op, first, second } => {
                write!(out, "{op} on rank {} and again on rank {}", first.0, second.0)
            }
            Self::Missing { op } => write!(out, "no rank runs {op}"),
            Self::SomeWeightGradients { present, missing } => write!(out, "there is {present} but no {missing}"),
            Self::Apart { op, rank, forward } => {
                write!(out, "{op} is on rank {rank}, its forward on rank {forward}")
            }
            Self::Pair { rank, op } => {
                write!(out, "rank {rank} issues {op} together with what is no forward, backward or weight gradient")
            }
            Self::Deadlock { cycle } => {
                for (place, wait) in cycle.iter().enumerate() {
                    let (comma, waits) = if place == 0 { ("", " waits") } else { (", ", "") };
                    write!(out, "{comma}rank {}{waits} for {}", wait.rank, wait.on)?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for ScheduleError {}
