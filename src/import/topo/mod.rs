//! A machine as its own tools saw it: saved output of `nvidia-smi -q`, `nvidia-smi topo -m` and `ibstat`, as a cluster.
//!
//! In: any of these files, told apart by what they say. Out: levels over the library's devices and links. What the output
//! does not say is a remark in the program, a warning where a figure is missing, an error where nothing can be made.

mod device;
mod ibstat;
mod matrix;
mod smi;
mod write;

use super::errors;
use crate::diagnostics::Diagnostic;
use crate::source::{FileId, Span};

/// A line without colours and its place.
#[derive(Clone, Debug)]
struct Line {
    text: String,
    span: Span,
}

/// The lines of a file; escape sequences of terminals are left out.
fn lines(file: FileId, text: &str) -> Vec<Line> {
    let mut out = Vec::new();
    let mut at = 0;
    for raw in text.split_inclusive('\n') {
        let kept = raw.trim_end_matches(['\n', '\r']);
        out.push(Line { text: plain(kept), span: Span::new(file, at, at + kept.len()) });
        at += raw.len();
    }
    out
}

/// `text` without `ESC [ … letter`.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            let _ = chars.by_ref().find(char::is_ascii_alphabetic);
        } else {
            out.push(c);
        }
    }
    out
}

/// What the files say together.
#[derive(Default, Debug)]
struct Machine {
    /// `nvidia-smi -q`.
    gpus: Option<smi::Gpus>,
    /// `nvidia-smi topo -m`.
    matrix: Option<matrix::Matrix>,
    /// `ibstat`.
    ports: Option<ibstat::Ports>,
}

/// The program for the files, each with its text.
pub(super) fn cluster(files: &[(FileId, &str)], said: &mut Vec<Diagnostic>) -> Result<String, Diagnostic> {
    let mut machine = Machine::default();
    for (file, text) in files {
        let lines = lines(*file, text);
        let whole = Span::new(*file, 0, 0);
        let first = lines.iter().find(|l| !l.text.trim().is_empty()).map_or(whole, |l| l.span);
        let twice = if smi::is(&lines) {
            machine.gpus.replace(smi::read(&lines, first)?).is_some()
        } else if matrix::is(&lines) {
            machine.matrix.replace(matrix::read(&lines, first)?).is_some()
        } else if ibstat::is(&lines) {
            machine.ports.replace(ibstat::read(&lines, first)?).is_some()
        } else {
            return Err(errors::no_topology(first));
        };
        if twice {
            return Err(errors::topology_twice(first));
        }
    }
    write::program(&machine, said)
}
