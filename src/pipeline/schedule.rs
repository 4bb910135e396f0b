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
}

impl ScheduleOp {
    /// `F(microbatch, chunk)`.
    pub fn forward(microbatch: i64, chunk: u32) -> Self {
        Self { kind: OpKind::F, microbatch, chunk }
    }

    /// `B(microbatch, chunk)`.
    pub fn backward(microbatch: i64, chunk: u32) -> Self {
        Self { kind: OpKind::B, microbatch, chunk }
    }

    /// `W(microbatch, chunk)`.
    pub fn weight(microbatch: i64, chunk: u32) -> Self {
        Self { kind: OpKind::W, microbatch, chunk }
    }

    /// `U(chunk)`.
    pub fn update(chunk: u32) -> Self {
        Self { kind: OpKind::U, microbatch: 0, chunk }
    }
}

/// As the user writes it: `F(3,0)`, `U(1)`.
impl fmt::Display for ScheduleOp {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, microbatch, chunk } = self;
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
}
