//! What a schedule says: for each pipeline rank the operations it runs, in order, and the chunks it keeps.

use std::fmt;

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OpKind {
    /// Forward of one microbatch through one chunk.
    F,
    /// Backward of one microbatch through one chunk: input and weight gradient, or the input gradient alone where the
    /// schedule has [`OpKind::W`].
    B,
    /// Weight gradient alone.
    W,
    /// Applies the update of a chunk; its microbatch means nothing.
    U,
}

/// One operation of a rank's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScheduleOp {
    /// What is done.
    pub kind: OpKind,
    /// Microbatch of the step, from 0. Signed, as users compute it; below 0 it is out of range.
    pub microbatch: i64,
    /// Chunk in model order, from 0.
    pub chunk: u32,
    /// Issued together with the operation before it on its rank: the second of `Both(x, y)`.
    pub joined: bool,
}

impl ScheduleOp {
    /// `F(microbatch, chunk)`.
    pub fn forward(microbatch: i64, chunk: u32) -> Self {
        Self { kind: OpKind::F, microbatch, chunk, joined: false }
    }

    /// `B(microbatch, chunk)`.
    pub fn backward(microbatch: i64, chunk: u32) -> Self {
        Self { kind: OpKind::B, microbatch, chunk, joined: false }
    }

    /// `W(microbatch, chunk)`.
    pub fn weight(microbatch: i64, chunk: u32) -> Self {
        Self { kind: OpKind::W, microbatch, chunk, joined: false }
    }

    /// `U(chunk)`.
    pub fn update(chunk: u32) -> Self {
        Self { kind: OpKind::U, microbatch: 0, chunk, joined: false }
    }

    /// `Both(x, y)`, as the two entries it is in an order.
    pub fn both(x: Self, y: Self) -> [Self; 2] {
        [Self { joined: false, ..x }, Self { joined: true, ..y }]
    }
}

/// As the user writes it: `F(3,0)`, `U(1)`.
impl fmt::Display for ScheduleOp {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, microbatch, chunk, joined: _ } = self;
        match kind {
            OpKind::F => write!(out, "F({microbatch},{chunk})"),
            OpKind::B => write!(out, "B({microbatch},{chunk})"),
            OpKind::W => write!(out, "W({microbatch},{chunk})"),
            OpKind::U => write!(out, "U({chunk})"),
        }
    }
}

/// A schedule evaluated for one number of ranks and microbatches; nothing about it is checked yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Orders {
    /// For each rank its operations, in the order it runs them.
    pub ranks: Vec<Vec<ScheduleOp>>,
    /// For each rank the chunks whose parameters it keeps; as long as `ranks`.
    pub hosts: Vec<Vec<u32>>,
    /// Chunks the model is cut into.
    pub chunks: u32,
    /// Microbatches of a step.
    pub microbatches: u32,
    /// The orders are one period of a run without end, so that a microbatch below 0 is one of a period before.
    pub endless: bool,
    /// The orders are hints: a rank takes the first of them that can run.
    pub hints: bool,
}
