//! `nvidia-smi topo -m`: what lies between each two devices.

use super::{Line, errors};
use crate::diagnostics::Diagnostic;
use crate::limits;
use crate::source::Span;

/// What lies between two devices.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Between {
    /// The same device.
    Itself,
    /// So many bonded links of `NVLink`.
    NvLink(u32),
    /// PCI Express, through switches or the host.
    Bus,
    /// The link of two sockets.
    Sockets,
}

/// The matrix.
#[derive(Debug)]
pub(super) struct Matrix {
    /// Row by row, as many as devices.
    pub(super) rows: Vec<Vec<Between>>,
    /// Network adapters that it lists.
    pub(super) adapters: usize,
    /// The header.
    pub(super) span: Span,
}

/// Whether these lines are of `nvidia-smi topo -m`.
pub(super) fn is(lines: &[Line]) -> bool {
    lines.iter().any(header)
}

/// `GPU0 GPU1 … CPU Affinity`: names of columns, and no row of its own.
fn header(line: &Line) -> bool {
    let mut words = line.text.split_whitespace();
    words.next() == Some("GPU0") && words.next().is_none_or(|w| w != "X")
}

pub(super) fn read(lines: &[Line], span: Span) -> Result<Matrix, Diagnostic> {
    let Some(at) = lines.iter().position(header) else { return Err(errors::no_topology(span)) };
    let columns: Vec<&str> = lines[at].text.split_whitespace().collect();
    let gpus = columns.iter().take_while(|c| numbered(c, "GPU")).count();
    let adapter = |c: &&&str| numbered(c, "NIC") || c.starts_with("mlx");
    let adapters = columns.iter().skip(gpus).take_while(adapter).count();
    if gpus > limits::IMPORT_DEVICES {
        return Err(errors::too_many_devices(gpus, lines[at].span));
    }
    let mut rows = Vec::new();
    for line in &lines[at + 1..] {
        let mut words = line.text.split_whitespace();
        let name = words.next().unwrap_or_default();
        if !numbered(name, "GPU") {
            continue;
        }
        if name[3..] != rows.len().to_string() {
            return Err(errors::row_missing(rows.len(), line.span));
        }
        let mut row = Vec::new();
        for column in 0..gpus {
            let word = words.next().ok_or_else(|| errors::row_short(gpus, column, line.span))?;
            let cell = cell(word).ok_or_else(|| errors::cell(word, line.span))?;
            if (cell == Between::Itself) != (column == rows.len()) {
                return Err(errors::cell(word, line.span));
            }
            row.push(cell);
        }
        rows.push(row);
    }
    if rows.len() != gpus {
        return Err(errors::cut_off(gpus, rows.len(), lines[at].span));
    }
    for (i, row) in rows.iter().enumerate() {
        if let Some(j) = (0..gpus).find(|j| rows[*j][i] != row[*j]) {
            return Err(errors::one_sided(i, j, lines[at].span));
        }
    }
    Ok(Matrix { rows, adapters, span: lines[at].span })
}

/// `GPU12` for `GPU`.
fn numbered(word: &str, name: &str) -> bool {
    word.strip_prefix(name).is_some_and(|n| !n.is_empty() && n.chars().all(|c| c.is_ascii_digit()))
}

fn cell(word: &str) -> Option<Between> {
    Some(match word {
        "X" => Between::Itself,
        "PIX" | "PXB" | "PHB" | "NODE" => Between::Bus,
        "SYS" => Between::Sockets,
        _ => Between::NvLink(word.strip_prefix("NV")?.parse().ok().filter(|n| (1..=256).contains(n))?),
    })
}
