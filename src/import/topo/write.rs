//! The levels of a machine, written.

use super::device::{self, Product};
use super::matrix::Between;
use super::{Machine, errors};
use crate::diagnostics::Diagnostic;
use std::fmt::Write as _;

/// Lines of a cluster being written.
#[derive(Default)]
struct Levels {
    /// Names of the library that it uses.
    used: Vec<&'static str>,
    /// `level …` lines, innermost first.
    lines: Vec<String>,
    /// For the reader of the program.
    remarks: Vec<String>,
}

pub(super) fn program(machine: &Machine, said: &mut Vec<Diagnostic>) -> Result<String, Diagnostic> {
    let Some(gpus) = &machine.gpus else {
        let at = machine.matrix.as_ref().map(|m| m.span).or(machine.ports.as_ref().map(|p| p.span));
        return Err(errors::devices_missing(at));
    };
    let (name, at) = &gpus.products[0];
    if let Some((other, at)) = gpus.products.iter().find(|(n, _)| n != name) {
        return Err(errors::unlike_devices(name, other, *at));
    }
    let Some(product) = device::find(name) else {
        return Err(errors::product_unknown(name, *at, &device::known()));
    };
    let mut levels = Levels { used: vec![product.device], ..Levels::default() };
    let count = gpus.products.len();
    match &machine.matrix {
        Some(m) if m.rows.len() != count => return Err(errors::counts_differ(count, m.rows.len(), m.span)),
        Some(m) => inside(&mut levels, product, &m.rows, gpus.pcie),
        None if count == 1 => bus(&mut levels, &format!("1 of {}", product.device), 1, gpus.pcie, "node"),
        None => return Err(errors::matrix_missing(count, gpus.span)),
    }
    outside(&mut levels, machine, said);
    let mut text = String::from("edition 1\n");
    let network = if machine.ports.is_some() { ", `ibstat`" } else { "" };
    let _ = writeln!(
        text,
        "//! Imported from saved output of `nvidia-smi`{network}: one node of {count} {}.\n//!",
        product.device
    );
    for remark in &levels.remarks {
        let _ = writeln!(text, "//! {remark}");
    }
    levels.used.sort_unstable();
    levels.used.dedup();
    let _ = writeln!(text, "use std::hardware::{{{}}}\n", levels.used.join(", "));
    let _ = writeln!(text, "/// `nodes` of these machines.\ncluster Imported(nodes: Int = 1) {{");
    for line in &levels.lines {
        let _ = writeln!(text, "  {line}");
    }
    Ok(text + "}\n")
}

/// What joins the devices of a node.
fn inside(levels: &mut Levels, product: &Product, rows: &[Vec<Between>], pcie: Option<u32>) {
    let count = rows.len();
    let of = product.device;
    let links = |i: usize| rows[i].iter().map(|b| if let Between::NvLink(n) = b { *n } else { 0 });
    let others = |i: usize| links(i).enumerate().filter(move |(j, _)| *j != i);
    let first = others(0).map(|(_, n)| n).next().unwrap_or(0);
    let (Some(fabric), Some(single)) = (product.fabric, product.single) else {
        return bus(levels, &format!("{count} of {of}"), count, pcie, "node");
    };
    if first > 0 && (0..count).all(|i| others(i).all(|(_, n)| n == first)) && count > 2 {
        // As many links to each as to any other: all of them end in switches.
        levels.used.push(fabric);
        let adds = if product.adds { ", in_network_reduction = true" } else { "" };
        levels.lines.push(format!("level node = {count} of {of} over {fabric} {{ topology = switch{adds} }}"));
    } else if (0..count).all(|i| others(i).filter(|(_, n)| *n > 0).count() == 1) && (0..count).all(|i| pair(rows, i)) {
        let bridged = links(0).max().unwrap_or(1);
        levels.used.push(single);
        let over = if bridged == 1 { single.to_string() } else { format!("{bridged} * {single}") };
        if count == 2 {
            levels.lines.push(format!("level node = 2 of {of} over {over} {{ topology = switch }}"));
        } else {
            levels.lines.push(format!("level pair = 2 of {of} over {over} {{ topology = switch }}"));
            bus(levels, &format!("{} of pair", count / 2), 2, pcie, "node");
        }
    } else if (0..count).any(|i| links(i).any(|n| n > 0)) {
        levels.used.push(single);
        let row = |i: usize| format!("[{}]", links(i).map(|n| n.to_string()).collect::<Vec<_>>().join(", "));
        let matrix: Vec<_> = (0..count).map(row).collect();
        let graph = format!("{{\n    topology = graph(links = [{}])\n  }}", matrix.join(", "));
        levels.lines.push(format!("level node = {count} of {of} over {single} {graph}"));
        levels.remarks.push("Devices without an NVLink between them talk over others or the host.".into());
    } else {
        bus(levels, &format!("{count} of {of}"), count, pcie, "node");
        if rows.iter().flatten().any(|b| *b == Between::Sockets) {
            levels.remarks.push("Traffic between the two sockets shares their link, which is not in here.".into());
        }
    }
}

/// Whether the only device that `i` has direct links to is its neighbour, so that pairs lie in order.
fn pair(rows: &[Vec<Between>], i: usize) -> bool {
    let neighbour = i ^ 1;
    rows[i].get(neighbour).is_some_and(|b| matches!(b, Between::NvLink(_)))
}

/// A level that meets at the host.
fn bus(levels: &mut Levels, children: &str, links: usize, pcie: Option<u32>, name: &str) {
    let link = match pcie {
        Some(3) => "PCIe3_x16",
        Some(5) => "PCIe5_x16",
        Some(6) => "PCIe6_x16",
        Some(4) => "PCIe4_x16",
        _ => {
            levels.remarks.push("The generation of PCI Express is not said: 4 is assumed.".into());
            "PCIe4_x16"
        }
    };
    levels.used.push(link);
    let over = if children.ends_with("pair") { format!("{links} * {link}") } else { link.to_string() };
    levels.lines.push(format!("level {name} = {children} over {over} {{ topology = host_bridge }}"));
}

/// The network of a node.
fn outside(levels: &mut Levels, machine: &Machine, said: &mut Vec<Diagnostic>) {
    let listed = machine.matrix.as_ref().map_or(0, |m| m.adapters);
    let Some(ports) = &machine.ports else {
        if listed > 0
            && let Some(m) = &machine.matrix
        {
            said.push(errors::rates_missing(listed, m.span));
        }
        levels.lines.push(String::from("level pod = nodes of node over Eth_10 { topology = switch }"));
        levels.used.push("Eth_10");
        levels.remarks.push("Nothing says what network the node has: 10 Gb/s Ethernet stands for it.".into());
        return;
    };
    let known = ports.up.iter().filter(|(rate, ib)| device::port(*rate, *ib).is_some());
    let Some(best) = known.copied().max() else {
        said.push(errors::no_port(ports.span));
        levels.lines.push(String::from("level pod = nodes of node over Eth_10 { topology = switch }"));
        levels.used.push("Eth_10");
        return;
    };
    let count = ports.up.iter().filter(|p| **p == best).count();
    let link = device::port(best.0, best.1).unwrap_or("Eth_10");
    levels.used.push(link);
    let over = if count == 1 { link.to_string() } else { format!("{count} * {link}") };
    let topology = if count == 1 { "switch".to_string() } else { format!("fat_tree(rails = {count})") };
    levels.lines.push(format!("level pod = nodes of node over {over} {{ topology = {topology} }}"));
    let others = ports.up.len() - count;
    if others > 0 {
        levels.remarks.push(format!("{others} slower ports are left out."));
    }
    if ports.down > 0 {
        levels.remarks.push(format!("{} ports are down and left out.", ports.down));
    }
    levels
        .remarks
        .push("How nodes are wired to one another is not in these files: no oversubscription is assumed.".into());
}
