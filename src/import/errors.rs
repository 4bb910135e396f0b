//! Wording of what is wrong with an imported file.

mod launch;

pub(super) use launch::*;

use crate::diagnostics::{Code, Diagnostic};
use crate::source::Span;

/// Text of the file as a message may show it: short, on one line.
pub(super) fn shown(text: &str) -> String {
    let cut: String = text.chars().take(60).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(60).is_some() { format!("{cut}…") } else { cut }
}

/// What to do about a model that is not told.
pub(super) const MODEL_OPTION: &str = "`--model Llama3_8B` names a model of the library instead";

/// Not TOML: what the reader says.
pub(super) fn toml(said: &str, span: Span) -> Diagnostic {
    Diagnostic::new(Code::ImportMalformed, format!("the file is not TOML: {}", shown(said)), span, "")
}

/// Not JSON: what stands where something else was expected.
pub(super) fn json(expected: &str, span: Span) -> Diagnostic {
    Diagnostic::new(Code::ImportMalformed, format!("the file is not JSON: {expected} is expected here"), span, "")
}

/// A key of one object given twice.
pub(super) fn key_twice(key: &str, span: Span, first: Span) -> Diagnostic {
    Diagnostic::new(Code::ImportMalformed, format!("`{}` is given twice", shown(key)), span, "given again here")
        .label(first, "given first here")
        .note("programs differ in which of the two they take")
}

/// A value of the wrong kind: `hidden_size` is text.
pub(super) fn kind(key: &str, wanted: &str, found: &str, span: Span) -> Diagnostic {
    Diagnostic::new(Code::ImportMalformed, format!("`{key}` is {found}, {wanted} is needed"), span, "")
}

/// A number outside of what it may be.
pub(super) fn range(key: &str, found: &str, allowed: &str, span: Span) -> Diagnostic {
    Diagnostic::new(Code::ImportMalformed, format!("`{key}` is {found}, {allowed} is needed"), span, "")
}

/// A field the architecture cannot do without.
pub(super) fn missing(key: &str, of: &str, span: Span) -> Diagnostic {
    Diagnostic::new(Code::ImportMalformed, format!("`{key}` is missing"), span, format!("a `{of}` has one"))
}

/// A file that names no architecture.
pub(super) fn nameless(span: Span) -> Diagnostic {
    Diagnostic::new(Code::ImportMalformed, "the file names no `model_type`", span, "read as a model's configuration")
        .help("give the `config.json` beside the weights")
}

/// An architecture the library has no model for.
pub(super) fn unknown(model_type: &str, span: Span, known: &[&str]) -> Diagnostic {
    let message = format!("no model of the library is built like `{}`", shown(model_type));
    let d = Diagnostic::new(Code::ImportUnknown, message, span, "this architecture is missing");
    let d = d.note(format!("known are {}", known.join(", ")));
    d.help("write it as a `model` of your own: `parc show Decoder` and the blocks of `std::blocks` are a start")
}

/// A value that changes the model in a way the library's does not have.
pub(super) fn unlike(key: &str, found: &str, why: &str, span: Span) -> Diagnostic {
    let message = format!("`{key}` is {found}: the library's model is not built so");
    Diagnostic::new(Code::ImportUnknown, message, span, why)
}

/// A field that says something the import does not read.
pub(super) fn ignored(key: &str, of: &str, span: Span) -> Diagnostic {
    Diagnostic::new(Code::ImportIgnored, format!("`{}` is not read", shown(key)), span, format!("unknown for `{of}`"))
        .note("if it changes shapes, the imported model lacks that")
}

/// A file that no tool known here wrote.
pub(super) fn no_topology(span: Span) -> Diagnostic {
    let said = "this is no output of `nvidia-smi -q`, `nvidia-smi topo -m` or `ibstat`";
    Diagnostic::new(Code::ImportMalformed, said, span, "the file begins so")
        .help("save them on the machine: `nvidia-smi -q > smi.txt; nvidia-smi topo -m > topo.txt; ibstat > ib.txt`")
}

/// Two files of one tool.
pub(super) fn topology_twice(span: Span) -> Diagnostic {
    Diagnostic::new(Code::ImportMalformed, "two of the files are output of the same tool", span, "this is the second")
        .note("an import is of one machine")
}

/// `nvidia-smi -q` without a device.
pub(super) fn no_devices(span: Span) -> Diagnostic {
    Diagnostic::new(Code::ImportMalformed, "the output names no device", span, "no `Product Name` in it")
}

/// More announced than there is: the output was cut.
pub(super) fn cut_off(announced: usize, found: usize, span: Span) -> Diagnostic {
    let said = format!("{announced} devices are announced, {found} follow: the output is not whole");
    Diagnostic::new(Code::ImportMalformed, said, span, format!("{announced} here"))
}

/// A matrix larger than any machine.
pub(super) fn too_many_devices(n: usize, span: Span) -> Diagnostic {
    Diagnostic::over_limit("devices of an imported machine", n, crate::limits::IMPORT_DEVICES, span)
}

/// A row of the matrix is not there.
pub(super) fn row_missing(row: usize, span: Span) -> Diagnostic {
    Diagnostic::new(Code::ImportMalformed, format!("the row of GPU{row} is missing"), span, "another row stands here")
}

/// A row of the matrix ends early.
pub(super) fn row_short(wanted: usize, found: usize, span: Span) -> Diagnostic {
    let said = format!("this row has {found} columns, {wanted} devices have names");
    Diagnostic::new(Code::ImportMalformed, said, span, "")
}

/// A cell of the matrix that means nothing where it stands.
pub(super) fn cell(word: &str, span: Span) -> Diagnostic {
    let said = format!("`{}` is no connection of two devices", shown(word));
    Diagnostic::new(Code::ImportMalformed, said, span, "in this row")
        .note("connections are `NV4`, `PIX`, `PXB`, `PHB`, `NODE` and `SYS`; a device's own column is `X`")
}

/// A matrix that says different things of the two directions.
pub(super) fn one_sided(a: usize, b: usize, span: Span) -> Diagnostic {
    let said = format!("GPU{a} and GPU{b} are connected otherwise in one row than in the other");
    Diagnostic::new(Code::ImportMalformed, said, span, "in this matrix")
}

/// A port's rate that is no rate.
pub(super) fn rate(value: &str, span: Span) -> Diagnostic {
    Diagnostic::new(Code::ImportMalformed, format!("`{}` is no rate in Gb/s", shown(value)), span, "")
}

/// No file says which devices there are.
pub(super) fn devices_missing(span: Option<Span>) -> Diagnostic {
    let at = span.unwrap_or(Span::new(crate::source::FileId(0), 0, 0));
    Diagnostic::new(Code::ImportMalformed, "no file says which devices the machine has", at, "not said here")
        .help("give the output of `nvidia-smi -q` too")
}

/// No file says how devices are joined.
pub(super) fn matrix_missing(devices: usize, span: Span) -> Diagnostic {
    let said = format!("no file says how the {devices} devices are joined");
    Diagnostic::new(Code::ImportMalformed, said, span, "not said here")
        .help("give the output of `nvidia-smi topo -m` too")
}

/// The files speak of different machines.
pub(super) fn counts_differ(devices: usize, rows: usize, span: Span) -> Diagnostic {
    let said = format!("`nvidia-smi -q` has {devices} devices, `nvidia-smi topo -m` {rows}");
    Diagnostic::new(Code::ImportMalformed, said, span, format!("{rows} here"))
}

/// Several kinds of devices in one machine.
pub(super) fn unlike_devices(first: &str, other: &str, span: Span) -> Diagnostic {
    let said = format!("one machine with `{}` and `{}`", shown(first), shown(other));
    Diagnostic::new(Code::ImportUnknown, said, span, "another device than the first")
        .help("write the level by hand: `level node = [a: 4 of A, b: 4 of B] over …`")
}

/// A product the library has no device for.
pub(super) fn product_unknown(name: &str, span: Span, known: &[&str]) -> Diagnostic {
    Diagnostic::new(
        Code::ImportUnknown,
        format!("the library has no `{}`", shown(name)),
        span,
        "this device is missing",
    )
    .note(format!("known are {}", known.join(", ")))
    .help("write it as a `device` of your own")
}

/// Adapters without a rate.
pub(super) fn rates_missing(adapters: usize, span: Span) -> Diagnostic {
    let said = format!("no file says how fast the {adapters} network adapters are");
    Diagnostic::new(Code::ImportIgnored, said, span, "they are listed here")
        .note("the cluster has 10 Gb/s Ethernet between nodes in their place")
        .help("give the output of `ibstat` too")
}

/// No port that is up has a rate the library has a link for.
pub(super) fn no_port(span: Span) -> Diagnostic {
    let said = "no port is up at a rate the library has a link for";
    Diagnostic::new(Code::ImportIgnored, said, span, "the network is left out")
        .note("the cluster has 10 Gb/s Ethernet between nodes in its place")
}
