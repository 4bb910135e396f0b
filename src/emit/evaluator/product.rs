//! An evaluator for other programs: an object file, a C header, a Python module and a list of columns with units.
//!
//! What is made here is text and an object file; linking them to a shared library is the command's.

use super::{Unavailable, object};
use crate::emit::artifacts::{Artifact, Artifacts};
use crate::expr::{Graph, Id, wire};
use std::fmt::Write;

/// A column of an evaluator.
#[derive(Clone, PartialEq, Debug)]
pub struct Column {
    /// `tp`, `step_time`.
    pub name: String,
    /// Its unit in words of the language, empty for a plain number: `s`, `B`, `tok/s`.
    pub unit: String,
    /// Least value of an input: what is less counts as this.
    pub lo: f64,
    /// Greatest value of an input.
    pub hi: f64,
    /// Value of an input in the file, or at the first legal point where it is open.
    pub default: f64,
}

/// An evaluator.
#[derive(Debug)]
pub struct Evaluator {
    /// The job's name.
    pub job: String,
    /// Columns in, in order.
    pub inputs: Vec<Column>,
    /// Columns out, in order; the first is the status.
    pub outputs: Vec<Column>,
    /// What the status counts: the first broken rule, from 1.
    pub rules: Vec<String>,
    /// A node for each output.
    pub roots: Vec<Id>,
    /// The graph they are in.
    pub graph: Graph,
    /// Schedule runs behind it.
    pub runs: usize,
    /// Distinct keys of what they counted.
    pub keys: usize,
    /// Whether a key is the whole point, so that every time is that of the point's own run.
    pub own_runs: bool,
    /// Choices of the job that are open.
    pub open: Vec<String>,
}

impl Evaluator {
    /// The name as C and Python can use it.
    pub fn symbol(&self) -> String {
        let plain: String = self.job.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        plain.to_ascii_lowercase()
    }

    /// The files, but for the shared library.
    pub fn files(&self) -> Result<Artifacts, Unavailable> {
        let name = self.symbol();
        let schema = self.schema();
        let (object, ir) = object(&self.graph, &self.roots, &format!("parc_{name}"), &schema)?;
        let mut files = Artifacts::new();
        files.insert(format!("{name}.o").into(), Artifact { bytes: object, executable: false });
        files.insert(format!("{name}.ll").into(), Artifact::text(ir));
        files.insert(format!("{name}.h").into(), Artifact::text(self.header()));
        files.insert(format!("{name}.py").into(), Artifact::text(self.python()));
        files.insert("README.md".into(), Artifact::text(self.readme()));
        Ok(files)
    }

    /// Names, units and ranges of the columns as JSON, and a checksum of the graph.
    fn schema(&self) -> String {
        let input = |c: &Column| serde_json::json!({ "name": c.name, "unit": c.unit, "least": c.lo, "most": c.hi, "default": c.default });
        let output = |c: &Column| serde_json::json!({ "name": c.name, "unit": c.unit });
        let inputs: Vec<_> = self.inputs.iter().map(input).collect();
        let outputs: Vec<_> = self.outputs.iter().map(output).collect();
        let value = serde_json::json!({
            "schema": "parc-evaluator/1", "job": self.job, "graph": format!("{:016x}", self.checksum()),
            "inputs": inputs, "outputs": outputs, "status": self.rules,
        });
        value.to_string()
    }

    /// FNV-1a of the graph's bytes.
    fn checksum(&self) -> u64 {
        let bytes = wire::encode(&self.graph, &self.roots);
        bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3))
    }

    fn header(&self) -> String {
        let name = self.symbol();
        let upper = name.to_ascii_uppercase();
        let mut out = String::new();
        let _ = writeln!(
            out,
            "/* The job {}: layout parameters in; legality, memory and times out. Made by parc. */",
            plain(&self.job)
        );
        let _ = writeln!(out, "#ifndef PARC_{upper}_H\n#define PARC_{upper}_H\n#include <stdint.h>\n");
        let _ = writeln!(out, "#ifdef __cplusplus\nextern \"C\" {{\n#endif\n");
        for (what, columns) in [("IN", &self.inputs), ("OUT", &self.outputs)] {
            let _ = writeln!(out, "enum {{");
            for (i, c) in columns.iter().enumerate() {
                let unit = if c.unit.is_empty() { String::new() } else { format!("  /* {} */", plain(&c.unit)) };
                let _ = writeln!(out, "  PARC_{upper}_{what}_{} = {i},{unit}", identifier(&c.name));
            }
            let _ = writeln!(out, "  PARC_{upper}_{what}S = {}\n}};\n", columns.len());
        }
        let _ = writeln!(
            out,
            "/* Status: 0 is legal; else the first of these rules that the point breaks, and no other column means anything."
        );
        for (i, rule) in self.rules.iter().enumerate() {
            let _ = writeln!(out, "   {:>3}  {}", i + 1, plain(rule));
        }
        let _ = writeln!(out, "*/\n");
        let _ = writeln!(
            out,
            "/* Evaluates n points: in[i] points to n doubles for each input, out[i] for each output, apart from all others. It\n   \
             keeps nothing between calls and may run on many threads at once. Gives 0. */\n\
             int32_t parc_{name}_evaluate(int64_t n, const double *const *in, double *const *out);\n"
        );
        let _ = writeln!(
            out,
            "/* The columns as JSON: names, units, ranges, rules, checksum of the graph. */\nextern const char parc_{name}_schema[];\n"
        );
        let _ = writeln!(out, "#ifdef __cplusplus\n}}\n#endif\n#endif");
        out
    }

    fn python(&self) -> String {
        let name = self.symbol();
        PYTHON.replace("@NAME@", &name).replace("@JOB@", &plain(&self.job))
    }

    fn readme(&self) -> String {
        let name = self.symbol();
        let mut out = format!("# Evaluator of `{}`\n\n", self.job);
        let _ = writeln!(
            out,
            "Layout parameters in; legality, memory and times out. The functions keep no state and may run on many threads at once.\n\n\
             - C: include `{name}.h`, link `lib{name}.so` or `{name}.o`\n\
             - Python: `import {name}; {name}.evaluate(...)`, with lists, arrays or numpy arrays; numpy is used if it is there\n\
             - `{name}.ll` is the code before it was compiled\n"
        );
        let _ = writeln!(out, "Columns in:\n\n| | name | unit | least | most | default |\n|---|---|---|---|---|---|");
        for (i, c) in self.inputs.iter().enumerate() {
            let _ = writeln!(out, "| {i} | `{}` | {} | {} | {} | {} |", c.name, c.unit, c.lo, c.hi, c.default);
        }
        let _ = writeln!(out, "\nColumns out; times are seconds, sizes bytes:\n\n| | name | unit |\n|---|---|---|");
        for (i, c) in self.outputs.iter().enumerate() {
            let _ = writeln!(out, "| {i} | `{}` | {} |", c.name, c.unit);
        }
        let _ = writeln!(
            out,
            "\nStatus 0 is legal. Else it is the first rule that the point breaks, and no other column means anything:\n"
        );
        for (i, rule) in self.rules.iter().enumerate() {
            let _ = writeln!(out, "{}. {rule}", i + 1);
        }
        let runs = format!("{} run{} of the schedule", self.runs, if self.runs == 1 { "" } else { "s" });
        let _ = writeln!(out);
        if self.own_runs {
            let _ = writeln!(
                out,
                "The schedule's order or the split of the layers follows the costs, so {runs} are known for {} whole points; any \
                 other has the status that says so.",
                self.keys
            );
        } else {
            let _ = writeln!(
                out,
                "{runs} gave {} pair{} of stages and microbatches; any other has the status that says so. Times are of the \
                 longest path through the schedule that is known, memory of the fullest moment: exact at the points that \
                 were run, the defaults among them, and elsewhere never more than the exact value.",
                self.keys,
                if self.keys == 1 { "" } else { "s" }
            );
        }
        if !self.open.is_empty() {
            let names: Vec<_> = self.open.iter().map(|n| format!("`{n}`")).collect();
            let _ = writeln!(out, "\nOpen in the job: {}.", names.join(", "));
        }
        out
    }
}

/// Text that ends no comment and no line.
fn plain(text: &str) -> String {
    text.replace("*/", "* /").replace(['\n', '\r', '\\', '"'], " ")
}

/// A name in capitals as C takes it.
fn identifier(name: &str) -> String {
    let plain: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    plain.to_ascii_uppercase()
}

const PYTHON: &str = include_str!("product.py");
