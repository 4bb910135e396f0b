//! The registry: every code, its number, name, severity and title. A number is never reused.

use std::fmt;

/// How bad a diagnostic is.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Severity {
    /// The program cannot be compiled.
    Error,
    /// It can, and probably does not mean what it says.
    Warning,
}

/// What the registry says of one code.
#[derive(Debug)]
pub struct CodeInfo {
    /// `E0204`.
    pub number: &'static str,
    /// `unit-mismatch`; works wherever the number does.
    pub name: &'static str,
    /// Error or warning.
    pub severity: Severity,
    /// One line for lists.
    pub title: &'static str,
}

macro_rules! codes {
    ($($variant:ident $number:literal $name:literal $severity:ident $title:literal;)*) => {
        /// A diagnostic code. The variant's doc line is its title.
        #[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Code {
            $(#[doc = $title] $variant,)*
        }

        /// Every code in numeric order of its block.
        pub static CODES: &[(Code, CodeInfo)] = &[
            $((Code::$variant, CodeInfo { number: $number, name: $name, severity: Severity::$severity, title: $title }),)*
        ];
    };
}

codes! {
    // E00 files and limits
    FileMissing       "E0001" "file-missing"        Error "a file cannot be read";
    FileNotText       "E0002" "file-not-text"       Error "a file is not UTF-8 text";
    LimitExceeded     "E0003" "limit-exceeded"      Error "a limit of the compiler is exceeded";
    OutputNotWritten  "E0004" "output-not-written"  Error "the output cannot be written";
    FileEmpty         "E0005" "file-empty"          Error "a file declares nothing";
    ImportMalformed   "E0006" "import-malformed"    Error "a file to import is not what it should be";
    ImportUnknown     "E0007" "import-unknown"      Error "a file to import describes what the library does not have";
    ImportRefused     "E0008" "import-refused"      Error "a file to import breaks a rule of its own framework";
    // E01 syntax
    SyntaxUnexpected  "E0101" "unexpected-token"    Error "something else was expected here";
    SyntaxUnclosed    "E0102" "unclosed-bracket"    Error "a bracket is not closed";
    SyntaxCharacter   "E0103" "unknown-character"   Error "a character that means nothing here";
    SyntaxString      "E0104" "bad-string"          Error "a string is not finished or holds a wrong escape";
    SyntaxNumber      "E0105" "bad-number"          Error "a number cannot be read";
    SyntaxReserved    "E0106" "reserved-word"       Error "a reserved word is used as a name";
    SyntaxForeign     "E0107" "foreign-syntax"      Error "a habit from another language";
    SyntaxMixedBraces "E0108" "mixed-braces"        Error "braces mix fields and values";
    // E02 names
    NameUnknown       "E0201" "unknown-name"        Error "a name is not known here";
    NameTaken         "E0202" "name-taken"          Error "a name is declared twice";
    ModuleMissing     "E0203" "module-missing"      Error "a module does not exist";
    FieldUnknown      "E0204" "unknown-field"       Error "a field or item is not known here";
    FieldMissing      "E0205" "missing-field"       Error "a required field is missing";
    FieldTwice        "E0206" "field-twice"         Error "a field is given twice";
    ArgumentWrong     "E0207" "wrong-argument"      Error "an argument does not fit the declaration";
    ItemMisplaced     "E0208" "misplaced-item"      Error "an item does not belong in this declaration";
    Recursion         "E0209" "recursion"           Error "a declaration needs itself";
    NothingSelected   "E0210" "nothing-selected"    Error "a selector matches nothing";
    // E03 kinds, units and dimension names
    UnitUnknown       "E0301" "unknown-unit"        Error "a unit is not known";
    UnitMismatch      "E0302" "unit-mismatch"       Error "two quantities of different units meet";
    KindMismatch      "E0303" "kind-mismatch"       Error "a value of another kind is needed";
    DimensionMismatch "E0304" "dimension-mismatch"  Error "the dimensions of a statement do not fit";
    ProductUnnamed    "E0305" "product-unnamed"     Error "the dimensions of a product are not implied";
    InexactDivision   "E0306" "inexact-division"    Error "a whole number does not divide";
    OutOfRange        "E0307" "out-of-range"        Error "a value is outside what is allowed";
    TableRows         "E0308" "table-rows"          Error "the rows of a table do not fit together";
    // E04 models
    ParamFromData     "E0401" "param-from-data"     Error "a parameter has a dimension of the data";
    DimensionUnknown  "E0402" "unknown-dimension"   Error "a dimension is not declared";
    OperatorUse       "E0403" "operator-use"        Error "an operator is given what it cannot take";
    // E05 clusters
    ClusterShape      "E0501" "cluster-shape"       Error "the levels of a cluster do not fit together";
    SeveralDevices    "E0502" "several-devices"     Error "a cluster has several kinds of devices";
    // E06 layouts
    MeshProduct       "E0601" "mesh-product"        Error "the mesh does not use the devices exactly";
    Indivisible       "E0602" "indivisible"         Error "a dimension does not divide over its axes";
    PlaceSpans        "E0603" "place-spans"         Error "an axis does not lie where it is placed";
    BatchIndivisible  "E0604" "batch-indivisible"   Error "the batch is not a whole number of microbatches";
    ShardConflict     "E0605" "shard-conflict"      Error "a tensor would have to move to be used";
    StoreConflict     "E0606" "store-conflict"      Error "a class is stored over an axis it already uses";
    AttentionMethod   "E0607" "attention-method"    Error "attention over a sharded sequence needs a method";
    AxisUnknown       "E0608" "unknown-axis"        Error "a mesh axis is not known";
    AxesNest          "E0609" "axes-nest"           Error "the two sides of a fold do not nest";
    PartsWrong        "E0610" "parts-wrong"         Error "parts do not cover the model once, or share some devices";
    // E07 pipelines
    SplitUneven       "E0701" "split-uneven"        Error "layers do not split evenly over the stages";
    ScheduleWrong     "E0702" "schedule-wrong"      Error "a schedule is incomplete or repeats work";
    ScheduleDeadlock  "E0703" "schedule-deadlock"   Error "a schedule waits for itself";
    StalenessOpen     "E0704" "staleness-open"      Error "a schedule uses old weights and nothing accepts it";
    ClosedForm        "E0705" "closed-form"         Error "a closed form of a schedule is not what its order does";
    // E08 does not fit or no answer
    DoesNotFit        "E0801" "does-not-fit"        Error "a stage needs more memory than its device offers";
    RequireFailed     "E0802" "require-failed"      Error "a requirement does not hold";
    ExpectFailed      "E0803" "expect-failed"       Error "an expectation does not hold";
    HolesOpen         "E0804" "holes-open"          Error "a choice is still open";
    SearchEmpty       "E0805" "search-empty"       Error "no point of a search is legal";
    // E09 targets and what is not built yet
    TargetCannot      "E0901" "target-cannot"       Error "the launch target cannot run this layout";
    TargetUnknown     "E0902" "target-unknown"      Error "a launch target or launcher is not known";
    NotSupported      "E0990" "not-supported"       Error "the compiler does not do this yet";
    // warnings
    ImportIgnored     "W0001" "import-ignored"      Warning "a field of an imported file is not read";
    ImportAssumed     "W0002" "import-assumed"      Warning "an imported file leaves open what a job needs";
    EditionMissing    "W0101" "edition-missing"     Warning "a file names no edition";
    RuleIdle          "W0601" "rule-idle"           Warning "a rule matches no dimension of the model";
    AxisIdle          "W0602" "axis-idle"           Warning "a mesh axis does nothing";
    SharesEqual       "W0603" "equal-shares"        Warning "unlike devices get equal shares of the batch";
    LinkShared        "W0501" "link-shared"         Warning "many devices share one link";
    FieldRenamed      "W0201" "field-renamed"       Warning "a field is given under the name it had";
    BitsAsBytes       "W0301" "bits-as-bytes"       Warning "a bandwidth in bytes looks like one in bits";
    TableClamped      "W0302" "table-clamped"       Warning "a table is asked outside its rows";
    BubbleLarge       "W0701" "bubble-large"        Warning "a schedule idles longer than it works";
}

impl Code {
    /// What the registry says of this code.
    pub fn info(self) -> &'static CodeInfo {
        &CODES[self as usize].1
    }

    /// The code with this number or name, in any case.
    pub fn find(text: &str) -> Option<Self> {
        CODES
            .iter()
            .find(|(_, i)| i.number.eq_ignore_ascii_case(text) || i.name.eq_ignore_ascii_case(text))
            .map(|(c, _)| *c)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.info().number)
    }
}
