//! Every stated limit of the compiler, by name. Constants only: whoever meets one says so with `limit-exceeded`,
//! naming the limit and the value met. `parc explain limits` prints [`ALL`].

/// A limit as `parc explain limits` lists it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Limit {
    /// `FILE_BYTES`.
    pub name: &'static str,
    /// What is limited, in the user's words.
    pub what: &'static str,
    /// The largest value allowed, in the unit `what` names.
    pub value: u128,
}

macro_rules! limits {
    ($($name:ident: $ty:ty = $value:expr, $what:literal;)*) => {
        $(#[doc = concat!("Largest allowed: ", $what, ".")] pub const $name: $ty = $value;)*

        /// Every limit, in the order of the language reference.
        pub static ALL: &[Limit] = &[
            $(Limit { name: stringify!($name), what: $what, value: $name as u128 },)*
        ];
    };
}

limits! {
    FILE_BYTES: u64 = 16 << 20, "bytes in a file";
    TOKENS: usize = 4_000_000, "tokens in a file";
    NESTING: usize = 256, "nesting of brackets and blocks";
    WITH_NESTING: usize = 64, "nesting of `with`";
    USE_NESTING: usize = 64, "nesting of `use`";
    LIST_LENGTH: usize = 1_048_576, "elements of a list";
    ELEMENTS_EVALUATED: u64 = 16_000_000, "elements evaluated in one declaration";
    CLUSTER_LEVELS: usize = 16, "levels of a cluster";
    DEVICES: u64 = 1 << 40, "devices of a cluster";
    MESH_AXES: usize = 32, "mesh axes after refinement";
    PARTS: usize = 256, "parts of a layout";
    DISTINCT_UNITS: usize = 65_536, "distinct pipeline units";
    UNITS: i128 = 1_000_000, "pipeline units";
    MODEL_VALUES: usize = 65_536, "values of a model, equal iterations once";
    MODEL_VALUES_TRIED: usize = 4_194_304, "values of a model, every iteration of `repeat … as` counted";
    BLOCK_NESTING: usize = 64, "nesting of blocks in blocks";
    SCHEDULE_OPS: usize = 8_388_608, "schedule operations for one number of ranks and microbatches";
    MICROBATCHES: u32 = 2_097_152, "microbatches of a step without a pipeline";
    DISTURBED_OPS: u64 = 4_294_967_296, "operations of all drawn steps of a disturbed job";
    SEARCH_POINTS: u64 = 100_000_000, "points of a search before pruning";
    SEARCH_SHAPES: usize = 1_024, "shapes of a search: combinations of choices that are not whole numbers";
    PARETO_POINTS: usize = 10_000, "points kept of a Pareto front";
    RECOMPUTE_SETS: usize = 20_000, "sets of values weighed at once where `recompute = ?` is chosen; beyond, some are left out";
    RECOMPUTE_CHOICES: usize = 2_000_000, "choices of one set for each unit tried for `recompute = ?`; beyond, the best so far";
    TABLE_ROWS: usize = 1_000_000, "rows of a table";
    DEVICE_BYTES: u64 = 1 << 60, "bytes a plan puts on one device";
    MAGNITUDE: u128 = 1 << 100, "size in bytes or FLOP";
    FIX_ROUNDS: usize = 32, "rounds in which `parc fix` applies fixes";
    IMPORT_NESTING: usize = 64, "nesting of an imported file";
    IMPORT_VALUES: usize = 100_000, "values of an imported file, words of an imported script";
    IMPORT_EXPANDED: usize = 4 << 20, "bytes put in for the variables of an imported script";
    IMPORT_DEVICES: usize = 256, "devices of an imported machine";
    DIAGNOSTICS_KEPT: usize = 10_000, "diagnostics kept of one compilation";
}
