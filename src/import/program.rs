//! The program an imported launch becomes: a model, a layout, a job, as text of the language. What the launch does not say
//! is a comment where it stands.

use super::call::Call;
use crate::emit::shell::comment;
use std::fmt::Write as _;

/// The model of the job.
#[derive(Debug)]
pub(super) enum Model {
    /// An expression of the language, given on the command line.
    Named(String),
    /// A call of a family of the library.
    Call(Call),
}

/// Devices, as the launch counts them.
#[derive(Clone, Debug)]
pub(super) enum Machines {
    /// An expression of the language, given on the command line.
    Named(String),
    /// So many nodes of so many devices, of a kind nobody says.
    Counted { nodes: u64, per_node: u64 },
}

impl Machines {
    /// So many devices, in nodes of 8 or of the largest number below that divides.
    pub(super) fn of(devices: u64) -> Self {
        let per_node = (1..=8).rev().find(|n| devices.is_multiple_of(*n)).unwrap_or(1);
        Self::Counted { nodes: devices / per_node, per_node }
    }

    /// Devices in all, where they are counted.
    pub(super) fn devices(&self) -> Option<u64> {
        match self {
            Self::Named(_) => None,
            Self::Counted { nodes, per_node } => nodes.checked_mul(*per_node),
        }
    }
}

/// A program being written.
#[derive(Debug)]
pub(super) struct Program {
    /// The file it was imported from.
    pub(super) file: String,
    /// What that file is: `a launch script of Megatron-LM`.
    pub(super) kind: String,
    /// Lines of comment for the reader: what was not read, what was assumed.
    pub(super) notes: Vec<String>,
    /// The model.
    pub(super) model: Model,
    /// The cluster.
    pub(super) machines: Machines,
    /// Parameters of the layout: `tp: Int = 8`.
    pub(super) parameters: Vec<String>,
    /// Items of the layout, one or more lines each.
    pub(super) items: Vec<String>,
    /// Fields of the job: `batch`, `128 seq`.
    pub(super) fields: Vec<(&'static str, String)>,
}

impl Program {
    /// The text, laid out; an expression given on the command line may keep it from being one.
    pub(super) fn text(&self) -> String {
        let file = self.file.rsplit(['/', '\\']).next().unwrap_or_default();
        let mut s = format!("edition 1\n//! Imported from {}, {}.\n\n", comment(file), self.kind);
        for note in &self.notes {
            let _ = writeln!(s, "// {}", comment(note));
        }
        if !self.notes.is_empty() {
            s.push('\n');
        }
        let model = match &self.model {
            Model::Named(text) => text.clone(),
            Model::Call(call) => {
                for remark in &call.remarks {
                    let _ = writeln!(s, "// {}", comment(remark));
                }
                s += &call.text("Model");
                s.push('\n');
                "Model".into()
            }
        };
        let cluster = match &self.machines {
            Machines::Named(text) => text.clone(),
            Machines::Counted { nodes, per_node: 8 } => format!("HGX(H100_SXM, nodes = {nodes})"),
            Machines::Counted { nodes, per_node } => {
                // A port for each device, as such machines have.
                let _ = writeln!(
                    s,
                    "cluster Machines {{\n  level node = {per_node} of H100_SXM over NVLink4 {{ topology = switch }}\n  \
                     level pod = {nodes} of node over {per_node} * IB_NDR {{ topology = switch }}\n}}\n"
                );
                "Machines".into()
            }
        };
        let parameters =
            if self.parameters.is_empty() { String::new() } else { format!("({})", self.parameters.join(", ")) };
        let _ = writeln!(s, "layout Imported{parameters} {{");
        for item in &self.items {
            let _ = writeln!(s, "  {item}");
        }
        let _ = writeln!(s, "}}\n\ntrain imported {{\n  model = {model}");
        if matches!(self.machines, Machines::Counted { .. }) {
            s += "  // What was imported names no device: an H100 stands here.\n";
        }
        let call = if self.parameters.is_empty() { "" } else { "()" };
        let _ = writeln!(s, "  cluster = {cluster}\n  layout = Imported{call}");
        for (name, value) in &self.fields {
            let _ = writeln!(s, "  {name} = {value}");
        }
        s += "}\n";
        crate::format::format(&s).unwrap_or(s)
    }
}

/// Axes of a mesh, outermost first, those of one rank left out; the data axis takes what is left of the devices.
#[derive(Debug)]
pub(super) struct Mesh {
    axes: Vec<(&'static str, u64)>,
}

impl Mesh {
    /// `(name, ranks)` of every axis in order; `dp` has no number of its own.
    pub(super) fn new(axes: &[(&'static str, u64)]) -> Self {
        Self { axes: axes.iter().copied().filter(|(name, n)| *name == "dp" || *n > 1).collect() }
    }

    /// Whether this axis is there.
    pub(super) fn has(&self, name: &str) -> bool {
        self.axes.iter().any(|(n, _)| *n == name)
    }

    /// Those of `names` that are there, as the language lists them.
    pub(super) fn list(&self, names: &[&str]) -> String {
        let there: Vec<_> = names.iter().copied().filter(|n| self.has(n)).collect();
        match there[..] {
            [one] => one.to_owned(),
            _ => format!("[{}]", there.join(", ")),
        }
    }

    /// Parameters of the layout, the data axis computed from the others.
    pub(super) fn parameters(&self) -> Vec<String> {
        let fixed = self.axes.iter().filter(|(n, _)| *n != "dp");
        let mut out: Vec<_> = fixed.clone().map(|(n, size)| format!("{n}: Int = {size}")).collect();
        let names: Vec<_> = fixed.map(|(n, _)| *n).collect();
        out.push(match names[..] {
            [] => "dp: Int = devices".into(),
            [one] => format!("dp: Int = devices / {one}"),
            _ => format!("dp: Int = devices / ({})", names.join(" * ")),
        });
        out
    }

    /// `mesh [pp, dp, tp]`
    pub(super) fn item(&self) -> String {
        format!("mesh [{}]", self.axes.iter().map(|(n, _)| *n).collect::<Vec<_>>().join(", "))
    }
}

/// Layers of chunks as a list, equal neighbours counted.
pub(super) fn listed(layers: impl Iterator<Item = u64>) -> String {
    let all: Vec<u64> = layers.collect();
    if all.windows(2).all(|w| w[0] == w[1]) {
        return "even".into();
    }
    if all.len() <= 16 {
        return format!("[{}]", all.iter().map(u64::to_string).collect::<Vec<_>>().join(", "));
    }
    let runs = all.chunk_by(|a, b| a == b).map(|run| match run.len() {
        1 => format!("[{}]", run[0]),
        n => format!("[{}] * {n}", run[0]),
    });
    runs.collect::<Vec<_>>().join(" + ")
}

/// The least common multiple.
pub(super) fn common(a: u64, b: u64) -> u64 {
    let (mut x, mut y) = (a.max(1), b.max(1));
    while y > 0 {
        (x, y) = (y, x % y);
    }
    (a.max(1) / x).saturating_mul(b.max(1))
}
