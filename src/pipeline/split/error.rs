//! Why units cannot be cut as asked. Data for the diagnostics made elsewhere; the text here serves tests and debugging.

use std::fmt;

use super::{MAX_UNITS, UnitRun};

/// What is wrong with a split.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SplitError {
    /// Every chunk needs a unit, and there must be a chunk.
    TooFewUnits {
        /// Units of the model.
        units: u64,
        /// Chunks asked for.
        chunks: u32,
    },
    /// More units than a model may have.
    TooManyUnits {
        /// Units of the model.
        units: u64,
        /// The most there may be.
        limit: u64,
    },
    /// `even`, but the units do not divide.
    Uneven(Uneven),
    /// The list of counts is not one for each chunk.
    ListLength {
        /// Counts in the list.
        listed: usize,
        /// Chunks there are.
        chunks: u32,
    },
    /// The list gives a chunk no unit.
    EmptyChunk {
        /// The first such chunk.
        chunk: u32,
    },
    /// The list does not sum to the units there are.
    ListSum {
        /// Sum of the list.
        sum: u64,
        /// Units of the model.
        units: u64,
    },
    /// There is not one cost for each run.
    CostLength {
        /// Costs given.
        costs: usize,
        /// Runs of the model.
        runs: usize,
    },
}

/// Arithmetic of an even split that is not one: `layers + counted` is no multiple of `chunks`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Uneven {
    /// Iterations of repeats.
    pub layers: u64,
    /// Regions counted as one unit each.
    pub counted: u64,
    /// Chunks: stages times chunks of each.
    pub chunks: u64,
    /// The nearest smaller number of layers that divides.
    pub fewer_layers: Option<u64>,
    /// The nearest larger number of layers that divides.
    pub more_layers: Option<u64>,
    /// The nearest smaller number of chunks that divides these units.
    pub fewer_chunks: u64,
    /// The nearest larger number of chunks that divides these units.
    pub more_chunks: u64,
}

impl Uneven {
    /// For units above `chunks`, at most [`MAX_UNITS`], that `chunks` does not divide.
    pub(super) fn new(runs: &[UnitRun], units: u64, chunks: u64) -> Self {
        let layers = runs.iter().filter(|run| run.repeated).map(UnitRun::units).sum();
        let counted = runs.iter().filter(|run| !run.repeated).map(UnitRun::units).sum();
        let below = units - units % chunks;
        Self {
            layers,
            counted,
            chunks,
            fewer_layers: below.checked_sub(counted).filter(|&layers| layers > 0),
            more_layers: (below + chunks).checked_sub(counted).filter(|_| below + chunks <= MAX_UNITS),
            fewer_chunks: (1..chunks).rev().find(|chunks| units.is_multiple_of(*chunks)).unwrap_or(1),
            more_chunks: (chunks + 1..units).find(|chunks| units.is_multiple_of(*chunks)).unwrap_or(units),
        }
    }
}

impl fmt::Display for SplitError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFewUnits { units, chunks } => write!(out, "{units} units for {chunks} chunks"),
            Self::TooManyUnits { units, limit } => write!(out, "{units} units, the limit is {limit}"),
            Self::Uneven(Uneven { layers, counted, chunks, .. }) => {
                write!(out, "{layers} layers + {counted} counted are no multiple of {chunks} chunks")
            }
            Self::ListLength { listed, chunks } => write!(out, "{listed} counts for {chunks} chunks"),
            Self::EmptyChunk { chunk } => write!(out, "chunk {chunk} has no unit"),
            Self::ListSum { sum, units } => write!(out, "the counts sum to {sum}, there are {units} units"),
            Self::CostLength { costs, runs } => write!(out, "{costs} costs for {runs} runs"),
        }
    }
}

impl std::error::Error for SplitError {}
