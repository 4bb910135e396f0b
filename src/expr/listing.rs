//! A graph as text, one node a line, the same bytes on every run.

use super::{Graph, Kind, Node};
use std::fmt;

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for id in self.ids() {
            let node = self.node(id);
            write!(f, "%{} = {}", id.0, node.name())?;
            match node {
                Node::Int(v) => write!(f, " {v}")?,
                Node::Real(bits) => write!(f, " {:?}", f64::from_bits(bits))?,
                Node::Bool(v) => write!(f, " {v}")?,
                Node::Lookup(table, index) => write!(f, " {} %{}", table.0, index.0)?,
                _ => {
                    for operand in node.operands() {
                        write!(f, " %{}", operand.0)?;
                    }
                }
            }
            if !self.is_constant(id) {
                let range = self.range(id);
                match (self.kind(id), range.int) {
                    (Kind::Int, Some((lo, hi))) => write!(f, " : Int {lo}..{hi}")?,
                    (Kind::Bool, _) => write!(f, " : Bool")?,
                    (Kind::Int | Kind::Real, _) => write!(f, " : Real {:?}..{:?}", range.lo, range.hi)?,
                }
            }
            if let Some(name) = self.label_of(id) {
                write!(f, " {name:?}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
