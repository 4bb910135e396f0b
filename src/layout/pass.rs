//! What a runtime may do to the program the rules give, by name. The passes themselves are in `optimize`.

/// A pass over the partitioned program, as `optimize` of a job names it.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Pass {
    /// Two moves of one tensor in a row are one, or none.
    MergeMoves,
    /// A sum of which every rank uses its own piece alone is scattered, not copied to all.
    ScatterSums,
    /// Two copies of one tensor in one place are one.
    ShareCopies,
    /// What nothing reads is not made.
    DropUnused,
}

impl Pass {
    /// Every pass, in the order they run.
    pub const ALL: [Self; 4] = [Self::MergeMoves, Self::ScatterSums, Self::ShareCopies, Self::DropUnused];

    /// As the language writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::MergeMoves => "merge_moves",
            Self::ScatterSums => "scatter_sums",
            Self::ShareCopies => "share_copies",
            Self::DropUnused => "drop_unused",
        }
    }
}
