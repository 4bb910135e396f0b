//! `ibstat`: ports of network adapters and what they run at.

use super::{Line, errors};
use crate::diagnostics::Diagnostic;
use crate::source::Span;

/// Ports that are up.
#[derive(Debug)]
pub(super) struct Ports {
    /// Gb/s and whether InfiniBand, of each port in the order of the output.
    pub(super) up: Vec<(u32, bool)>,
    /// Ports that are down.
    pub(super) down: usize,
    /// The beginning of the file.
    pub(super) span: Span,
}

/// Whether these lines are of `ibstat`.
pub(super) fn is(lines: &[Line]) -> bool {
    lines.iter().any(|l| l.text.trim_start().starts_with("CA '"))
}

pub(super) fn read(lines: &[Line], span: Span) -> Result<Ports, Diagnostic> {
    let mut ports = Ports { up: Vec::new(), down: 0, span };
    // A port's lines: its state, its rate, its layer last.
    let (mut active, mut rate) = (false, None);
    for line in lines {
        let Some((key, value)) = line.text.split_once(':') else { continue };
        let (key, value) = (key.trim(), value.trim());
        if key.starts_with("Port ") && value.is_empty() {
            (active, rate) = (false, None);
        }
        match key {
            "State" => active = value == "Active",
            "Rate" => {
                let n = value.split_whitespace().next().and_then(|n| n.parse::<f64>().ok());
                rate = Some(n.filter(|n| (1.0..=10_000.0).contains(n)).ok_or_else(|| errors::rate(value, line.span))?);
            }
            "Link layer" => match rate {
                Some(rate) if active => ports.up.push((rate.round() as u32, value == "InfiniBand")),
                _ => ports.down += 1,
            },
            _ => {}
        }
    }
    Ok(ports)
}
