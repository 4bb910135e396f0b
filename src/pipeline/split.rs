//! Cuts the model's units into chunks.
//!
//! Units are the iterations of the outermost repeats, in program order, and the regions that the split counts. Other
//! code belongs to the unit before it, or to the first unit if there is none before. A model without units is one.
//! Every iteration and region ends up in exactly one chunk.

mod balance;
mod error;

pub use balance::{Room, balanced, balanced_within};
pub use error::{SplitError, Uneven};

/// The most units a model may have.
pub const MAX_UNITS: u64 = 1_000_000;

/// A repeat, or code outside repeats; the model is a list of these in program order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnitRun {
    /// What it is, to whoever asks; comes back in [`Part::index`].
    pub index: u32,
    /// Iterations of a repeat; 1 for other code.
    pub count: u32,
    /// Whether each of `count` is a unit. If not, all of it together is code that goes with a unit.
    pub repeated: bool,
    /// Whether code outside repeats is one unit of its own (`counting`). Means nothing for a repeat.
    pub counted: bool,
}

impl UnitRun {
    /// How many units it is: 0 if it goes with another.
    pub fn units(&self) -> u64 {
        match (self.repeated, self.counted) {
            (true, _) => u64::from(self.count),
            (false, true) => u64::from(self.count.min(1)),
            (false, false) => 0,
        }
    }
}

/// Consecutive iterations of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// [`UnitRun::index`].
    pub index: u32,
    /// First iteration, from 0.
    pub first: u32,
    /// Iterations, at least 1.
    pub count: u32,
}

/// What one chunk runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chunk {
    /// Units, as the split counts them; at least 1.
    pub units: u32,
    /// What it runs, in program order.
    pub parts: Vec<Part>,
}

/// `even`: the same number of units in each chunk, or an error with the arithmetic.
pub fn even(runs: &[UnitRun], chunks: u32) -> Result<Vec<Chunk>, SplitError> {
    let units = units(runs, chunks)?;
    if units % u64::from(chunks) != 0 {
        return Err(SplitError::Uneven(Uneven::new(runs, units, u64::from(chunks))));
    }
    Ok(cut(runs, &vec![(units / u64::from(chunks)) as u32; chunks as usize]))
}

/// A list of unit counts, one for each chunk in model order.
pub fn listed(runs: &[UnitRun], counts: &[u32], chunks: u32) -> Result<Vec<Chunk>, SplitError> {
    let units = units(runs, chunks)?;
    if counts.len() != chunks as usize {
        return Err(SplitError::ListLength { listed: counts.len(), chunks });
    }
    if let Some(chunk) = counts.iter().position(|&count| count == 0) {
        return Err(SplitError::EmptyChunk { chunk: chunk as u32 });
    }
    let sum = counts.iter().map(|&count| u64::from(count)).sum();
    if sum != units {
        return Err(SplitError::ListSum { sum, units });
    }
    Ok(cut(runs, counts))
}

/// Units of the model, if they are enough for so many chunks.
fn units(runs: &[UnitRun], chunks: u32) -> Result<u64, SplitError> {
    let units: u64 = runs.iter().map(UnitRun::units).sum();
    let alone = u64::from(units == 0 && runs.iter().any(|run| run.count > 0));
    let units = units.max(alone);
    if units > MAX_UNITS {
        return Err(SplitError::TooManyUnits { units, limit: MAX_UNITS });
    }
    if chunks == 0 || units < u64::from(chunks) {
        return Err(SplitError::TooFewUnits { units, chunks });
    }
    Ok(units)
}

/// Deals the runs out; `counts` are at least 1 each and sum to the model's units.
fn cut(runs: &[UnitRun], counts: &[u32]) -> Vec<Chunk> {
    // The run to deal next, and its first iteration not yet dealt.
    let (mut at, mut first) = (0, 0);
    let mut chunk = |&units: &u32| {
        let mut parts = Vec::new();
        let mut room = units;
        while let Some(run) = runs.get(at) {
            let left = (run.units() as u32).saturating_sub(first);
            if left > 0 && room == 0 {
                break;
            }
            // Code that is no unit takes no room, so it is dealt with the unit before it.
            let taken = left.min(room);
            room -= taken;
            let count = if run.repeated { taken } else { run.count };
            if count > 0 {
                parts.push(Part { index: run.index, first, count });
            }
            if taken < left {
                first += taken;
                break;
            }
            (at, first) = (at + 1, 0);
        }
        Chunk { units, parts }
    };
    counts.iter().map(&mut chunk).collect()
}

#[cfg(test)]
#[path = "split_tests.rs"]
mod tests;
