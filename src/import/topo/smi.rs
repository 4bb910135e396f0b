//! `nvidia-smi -q`: which devices, and the bus they sit on.

use super::{Line, errors};
use crate::diagnostics::Diagnostic;
use crate::source::Span;

/// The devices of one machine.
#[derive(Debug)]
pub(super) struct Gpus {
    /// Product names in order, each with its place.
    pub(super) products: Vec<(String, Span)>,
    /// The newest generation of PCI Express that the first can use, if it is said.
    pub(super) pcie: Option<u32>,
    /// The beginning of the file.
    pub(super) span: Span,
}

/// Whether these lines are of `nvidia-smi -q`.
pub(super) fn is(lines: &[Line]) -> bool {
    lines.iter().take(20).any(|l| l.text.contains("NVSMI LOG"))
        || lines.iter().any(|l| field(l, "Product Name").is_some())
}

/// `Name : value`.
fn field<'l>(line: &'l Line, name: &str) -> Option<&'l str> {
    let (key, value) = line.text.split_once(':')?;
    (key.trim() == name).then(|| value.trim())
}

pub(super) fn read(lines: &[Line], span: Span) -> Result<Gpus, Diagnostic> {
    let mut products = Vec::new();
    let (mut attached, mut pcie) = (None, None);
    // The generation stands below `PCIe Generation`, in a line of its own.
    let mut of_bus = false;
    for line in lines {
        if let Some(name) = field(line, "Product Name") {
            products.push((name.to_string(), line.span));
        }
        if let Some(n) = field(line, "Attached GPUs") {
            attached = n.parse::<usize>().ok().map(|n| (n, line.span));
        }
        if line.text.trim() == "PCIe Generation" {
            of_bus = true;
        } else if line.text.trim() == "Link Width" {
            of_bus = false;
        }
        if of_bus && let Some(n) = field(line, "Max").or_else(|| field(line, "Device Max")) {
            pcie = pcie.or_else(|| n.parse().ok());
        }
    }
    if products.is_empty() {
        return Err(errors::no_devices(span));
    }
    match attached {
        Some((n, at)) if n != products.len() => Err(errors::cut_off(n, products.len(), at)),
        _ => Ok(Gpus { products, pcie, span }),
    }
}
