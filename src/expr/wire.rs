//! A live graph as bytes: what the LLVM back end takes.
//!
//! Little-endian. `"parcexpr"`, then as `u32`: [`VERSION`], the number of inputs, of tables, of nodes, of roots. An input: length
//! of its name as `u32`, the name in UTF-8, its kind (a byte: 0 Int, 1 Real, 2 Bool), least and greatest value as
//! `f64`. A table: its kind, the number of its values as `u32`, each as `f64`. A node: a byte for its operation, then its operands as `u32`, or the value of a constant (`i64`, the bits of an
//! `f64`, a byte) or the number of an input; that of a table comes before its operand. A root: its node as `u32`. Kinds and ranges follow from the rest and are
//! computed again, so bytes that decode make a graph that is safe to evaluate.

use super::{Graph, Id, Input, InputId, Kind, Node, Table, TableId};
use std::fmt;

/// Changes when the format or the meaning of an operation does.
pub const VERSION: u32 = 2;

const MAGIC: &[u8; 8] = b"parcexpr";

/// Why bytes are no graph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DecodeError {
    /// They do not start with the format's name.
    NotAGraph,
    /// Another version of the format: theirs.
    Version(u32),
    /// They end early.
    Truncated,
    /// They go on after the graph.
    Trailing,
    /// An input, by number, is not well formed.
    Input(u32, &'static str),
    /// A table, by number, is not well formed.
    Table(u32),
    /// A node, by number, is not well formed.
    Node(u32, &'static str),
    /// A root, by number, is no node.
    Root(u32),
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::NotAGraph => write!(f, "not an expression graph"),
            DecodeError::Version(v) => write!(f, "format version {v}, expected {VERSION}"),
            DecodeError::Truncated => write!(f, "the graph ends early"),
            DecodeError::Trailing => write!(f, "bytes after the end of the graph"),
            DecodeError::Input(i, why) => write!(f, "input {i}: {why}"),
            DecodeError::Table(i) => write!(f, "table {i} is not well formed"),
            DecodeError::Node(i, why) => write!(f, "node {i}: {why}"),
            DecodeError::Root(i) => write!(f, "root {i} is no node"),
        }
    }
}

impl std::error::Error for DecodeError {}

/// The bytes of the part of `graph` that `roots` need. Names of nodes stay behind.
pub fn encode(graph: &Graph, roots: &[Id]) -> Vec<u8> {
    let (graph, roots) = graph.live(roots);
    let mut out = MAGIC.to_vec();
    for count in [VERSION as usize, graph.inputs().len(), graph.tables().len(), graph.len(), roots.len()] {
        put_u32(&mut out, count as u32);
    }
    for input in graph.inputs() {
        put_u32(&mut out, input.name.len() as u32);
        out.extend(input.name.as_bytes());
        out.push(kind_byte(input.kind));
        out.extend(input.lo.to_le_bytes());
        out.extend(input.hi.to_le_bytes());
    }
    for table in graph.tables() {
        out.push(kind_byte(table.kind));
        put_u32(&mut out, table.values.len() as u32);
        table.values.iter().for_each(|v| out.extend(v.to_le_bytes()));
    }
    for id in graph.ids() {
        let node = graph.node(id);
        out.push(tag(node));
        if let Node::Lookup(table, _) = node {
            put_u32(&mut out, table.0);
        }
        match node {
            Node::Int(v) => out.extend(v.to_le_bytes()),
            Node::Real(bits) => out.extend(bits.to_le_bytes()),
            Node::Bool(v) => out.push(v.into()),
            Node::Input(i) => put_u32(&mut out, i.0),
            _ => node.operands().iter().for_each(|operand| put_u32(&mut out, operand.0)),
        }
    }
    for root in roots {
        put_u32(&mut out, root.0);
    }
    out
}

/// The graph and its roots.
pub fn decode(bytes: &[u8]) -> Result<(Graph, Vec<Id>), DecodeError> {
    let mut reader = Reader { bytes };
    if reader.take::<8>() != Ok(*MAGIC) {
        return Err(DecodeError::NotAGraph);
    }
    let version = reader.u32()?;
    if version != VERSION {
        return Err(DecodeError::Version(version));
    }
    let [inputs, tables, nodes, roots] = [reader.u32()?, reader.u32()?, reader.u32()?, reader.u32()?];
    let inputs = (0..inputs).map(|i| reader.input(i)).collect::<Result<_, _>>()?;
    let tables = (0..tables).map(|i| reader.table(i)).collect::<Result<_, _>>()?;
    let mut graph = Graph::with_leaves(inputs, tables);
    for i in 0..nodes {
        let node = reader.node(i)?;
        if node.operands().iter().any(|operand| operand.0 >= i) {
            return Err(DecodeError::Node(i, "an operand that does not come before it"));
        }
        let id = graph.insert(node).map_err(|bad| DecodeError::Node(i, bad.0))?;
        if id.0 != i {
            return Err(DecodeError::Node(i, "a node that is there already"));
        }
    }
    let mut ids = Vec::new();
    for i in 0..roots {
        let id = Id(reader.u32()?);
        if id.0 >= nodes {
            return Err(DecodeError::Root(i));
        }
        ids.push(id);
    }
    if !reader.bytes.is_empty() {
        return Err(DecodeError::Trailing);
    }
    Ok((graph, ids))
}

fn put_u32(out: &mut Vec<u8>, v: u32) {
    out.extend(v.to_le_bytes());
}

fn kind_byte(kind: Kind) -> u8 {
    match kind {
        Kind::Int => 0,
        Kind::Real => 1,
        Kind::Bool => 2,
    }
}

fn tag(node: Node) -> u8 {
    match node {
        Node::Int(_) => 0,
        Node::Real(_) => 1,
        Node::Bool(_) => 2,
        Node::Input(_) => 3,
        Node::Add(..) => 4,
        Node::Sub(..) => 5,
        Node::Mul(..) => 6,
        Node::Div(..) => 7,
        Node::ToReal(_) => 8,
        Node::Floor(_) => 9,
        Node::Ceil(_) => 10,
        Node::Sqrt(_) => 11,
        Node::Log2(_) => 12,
        Node::Exp2(_) => 13,
        Node::FloorDiv(..) => 14,
        Node::CeilDiv(..) => 15,
        Node::Mod(..) => 16,
        Node::ExactDiv(..) => 17,
        Node::Min(..) => 18,
        Node::Max(..) => 19,
        Node::Select(..) => 20,
        Node::Le(..) => 21,
        Node::Lt(..) => 22,
        Node::Eq(..) => 23,
        Node::And(..) => 24,
        Node::Or(..) => 25,
        Node::Not(_) => 26,
        Node::Lookup(..) => 27,
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (head, rest) = self.bytes.split_first_chunk().ok_or(DecodeError::Truncated)?;
        self.bytes = rest;
        Ok(*head)
    }

    fn u32(&mut self) -> Result<u32, DecodeError> {
        Ok(u32::from_le_bytes(self.take()?))
    }

    fn f64(&mut self) -> Result<f64, DecodeError> {
        Ok(f64::from_le_bytes(self.take()?))
    }

    fn input(&mut self, i: u32) -> Result<Input, DecodeError> {
        let length = self.u32()? as usize;
        let (name, rest) = self.bytes.split_at_checked(length).ok_or(DecodeError::Truncated)?;
        self.bytes = rest;
        let name = std::str::from_utf8(name).map_err(|_| DecodeError::Input(i, "a name that is not UTF-8"))?;
        let kind = match self.take::<1>()? {
            [0] => Kind::Int,
            [1] => Kind::Real,
            [2] => Kind::Bool,
            _ => return Err(DecodeError::Input(i, "an unknown kind")),
        };
        let input = Input { name: name.to_owned(), kind, lo: self.f64()?, hi: self.f64()? };
        // Declaring it again must change nothing.
        let mut scratch = Graph::new();
        scratch.input(input.clone());
        if scratch.inputs() != [input.clone()] {
            return Err(DecodeError::Input(i, "a range its kind cannot have"));
        }
        Ok(input)
    }

    fn table(&mut self, i: u32) -> Result<Table, DecodeError> {
        let kind = match self.take::<1>()? {
            [0] => Kind::Int,
            [1] => Kind::Real,
            _ => return Err(DecodeError::Table(i)),
        };
        let count = self.u32()?;
        let mut values = Vec::new();
        for _ in 0..count {
            values.push(self.f64()?);
        }
        // Declaring it again must change nothing.
        let table = Table { kind, values };
        let mut scratch = Graph::new();
        scratch.table(table.clone());
        if scratch.tables() == [table.clone()] { Ok(table) } else { Err(DecodeError::Table(i)) }
    }

    fn node(&mut self, i: u32) -> Result<Node, DecodeError> {
        let [tag] = self.take()?;
        let mut id = || self.u32().map(Id);
        Ok(match tag {
            0 => Node::Int(i64::from_le_bytes(self.take()?)),
            1 => Node::Real(u64::from_le_bytes(self.take()?)),
            2 => match self.take()? {
                [0] => Node::Bool(false),
                [1] => Node::Bool(true),
                _ => return Err(DecodeError::Node(i, "a Bool that is neither 0 nor 1")),
            },
            3 => Node::Input(InputId(self.u32()?)),
            4 => Node::Add(id()?, id()?),
            5 => Node::Sub(id()?, id()?),
            6 => Node::Mul(id()?, id()?),
            7 => Node::Div(id()?, id()?),
            8 => Node::ToReal(id()?),
            9 => Node::Floor(id()?),
            10 => Node::Ceil(id()?),
            11 => Node::Sqrt(id()?),
            12 => Node::Log2(id()?),
            13 => Node::Exp2(id()?),
            14 => Node::FloorDiv(id()?, id()?),
            15 => Node::CeilDiv(id()?, id()?),
            16 => Node::Mod(id()?, id()?),
            17 => Node::ExactDiv(id()?, id()?),
            18 => Node::Min(id()?, id()?),
            19 => Node::Max(id()?, id()?),
            20 => Node::Select(id()?, id()?, id()?),
            21 => Node::Le(id()?, id()?),
            22 => Node::Lt(id()?, id()?),
            23 => Node::Eq(id()?, id()?),
            24 => Node::And(id()?, id()?),
            25 => Node::Or(id()?, id()?),
            26 => Node::Not(id()?),
            27 => Node::Lookup(TableId(self.u32()?), Id(self.u32()?)),
            _ => return Err(DecodeError::Node(i, "an unknown operation")),
        })
    }
}
