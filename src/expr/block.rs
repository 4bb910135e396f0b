//! The block interpreter: many points, columns in and columns out, each operation a loop over [`WIDTH`] double lanes.
//!
//! An instruction reads and writes slots of a small file; a slot is used again once its value is dead, so the file
//! stays in the first cache. Results equal the compiled kernel's in every bit.

use super::{Evaluation, Graph, Id, InputId, Kind, Node, Number, scalar};

/// Points evaluated at a time.
pub const WIDTH: usize = 32;

type Lanes = [f64; WIDTH];

/// A graph prepared for evaluation over columns.
#[derive(Clone, Debug)]
pub struct Block {
    plan: Plan,
}

#[derive(Clone, Debug)]
enum Plan {
    Lanes(Program),
    /// Where lanes are too narrow: [`Graph::exact_only`].
    Exact {
        graph: Graph,
        roots: Vec<Id>,
    },
}

#[derive(Clone, Debug)]
struct Program {
    inputs: Vec<Column>,
    tables: Vec<Vec<f64>>,
    /// The file at the start: constants in their slots.
    file: Vec<f64>,
    steps: Vec<Step>,
    roots: Vec<u32>,
}

/// An input: which values its column may hold.
#[derive(Copy, Clone, Debug)]
struct Column {
    lo: f64,
    hi: f64,
    kind: Kind,
}

/// An operation on slots: its operands' ids are slots.
#[derive(Copy, Clone, Debug)]
struct Step {
    op: Node,
    to: u32,
}

impl Block {
    /// Prepares the evaluation of `roots`.
    pub fn new(graph: &Graph, roots: &[Id]) -> Self {
        let (graph, roots) = graph.live(roots);
        let plan = match graph.exact_only(&roots) {
            None => Plan::Lanes(Program::new(&graph, &roots)),
            Some(_) => Plan::Exact { graph, roots },
        };
        Block { plan }
    }

    /// Evaluates `n` points: a column for each input, in the order of [`Graph::inputs`], gives one for each root. A Bool
    /// is 1 or 0. Values are brought into their input's range; what a column lacks counts as 0.
    pub fn run(&self, n: usize, columns: &[&[f64]]) -> Vec<Vec<f64>> {
        match &self.plan {
            Plan::Lanes(program) => program.run(n, columns),
            Plan::Exact { graph, roots } => {
                let mut out = vec![Vec::with_capacity(n); roots.len()];
                for point in 0..n {
                    let inputs: Vec<Number> =
                        (0..graph.inputs().len()).map(|i| Number::Real(cell(columns, i, point))).collect();
                    let evaluation = Evaluation::new(graph, &inputs);
                    for (column, root) in out.iter_mut().zip(roots) {
                        column.push(evaluation.real(*root));
                    }
                }
                out
            }
        }
    }
}

fn cell(columns: &[&[f64]], column: usize, point: usize) -> f64 {
    columns.get(column).and_then(|c| c.get(point)).copied().unwrap_or(0.0)
}

impl Program {
    /// Gives every live node a slot, in order; a slot is free again after its last reader.
    fn new(graph: &Graph, roots: &[Id]) -> Self {
        let mut last = vec![0; graph.len()];
        for id in graph.ids() {
            last[id.0 as usize] = id.0;
            for operand in graph.node(id).operands() {
                last[operand.0 as usize] = id.0;
            }
        }
        for root in roots {
            last[root.0 as usize] = u32::MAX;
        }
        let mut slot = vec![0; graph.len()];
        let mut file = Vec::new();
        let mut free = Vec::new();
        let mut steps = Vec::new();
        for id in graph.ids() {
            let node = graph.node(id);
            if let Some(value) = graph.as_real(id).or(graph.as_bool(id).map(|v| f64::from(u8::from(v)))) {
                slot[id.0 as usize] = file.len() as u32;
                file.push(value);
                continue;
            }
            let op = node.map(|operand| Id(slot[operand.0 as usize]));
            let mut operands = node.operands();
            operands.sort_unstable();
            operands.dedup();
            for operand in operands {
                if last[operand.0 as usize] == id.0 && !graph.is_constant(operand) {
                    free.push(slot[operand.0 as usize]);
                }
            }
            let to = free.pop().unwrap_or(file.len() as u32);
            if to as usize == file.len() {
                file.push(0.0);
            }
            slot[id.0 as usize] = to;
            steps.push(Step { op, to });
        }
        Program {
            inputs: graph.inputs().iter().map(|i| Column { lo: i.lo, hi: i.hi, kind: i.kind }).collect(),
            tables: graph.tables().iter().map(|t| t.values.clone()).collect(),
            file,
            steps,
            roots: roots.iter().map(|root| slot[root.0 as usize]).collect(),
        }
    }

    fn run(&self, n: usize, columns: &[&[f64]]) -> Vec<Vec<f64>> {
        let mut file: Vec<Lanes> = self.file.iter().map(|v| [*v; WIDTH]).collect();
        let mut out = vec![Vec::with_capacity(n); self.roots.len()];
        for start in (0..n).step_by(WIDTH) {
            for step in &self.steps {
                file[step.to as usize] = self.step(step.op, &file, columns, start);
            }
            let filled = WIDTH.min(n - start);
            for (column, root) in out.iter_mut().zip(&self.roots) {
                column.extend_from_slice(&file[*root as usize][..filled]);
            }
        }
        out
    }

    fn load(&self, input: InputId, columns: &[&[f64]], start: usize) -> Lanes {
        let mut lanes = [0.0; WIDTH];
        let column = columns.get(input.0 as usize).copied().unwrap_or_default();
        let given = column.get(start..).unwrap_or_default();
        for (lane, value) in lanes.iter_mut().zip(given) {
            *lane = *value;
        }
        let Column { lo, hi, kind } = self.inputs[input.0 as usize];
        match kind {
            Kind::Int => each(&lanes, |x| scalar::floor(scalar::clamp(x, lo, hi))),
            Kind::Real => each(&lanes, |x| scalar::clamp(x, lo, hi)),
            Kind::Bool => each(&lanes, |x| truth(scalar::clamp(x, lo, hi) > 0.0)),
        }
    }

    fn step(&self, op: Node, file: &[Lanes], columns: &[&[f64]], start: usize) -> Lanes {
        let at = |slot: Id| &file[slot.0 as usize];
        match op {
            Node::Input(i) => self.load(i, columns, start),
            Node::Add(a, b) => pair(at(a), at(b), |a, b| a + b),
            Node::Sub(a, b) => pair(at(a), at(b), |a, b| a - b),
            Node::Mul(a, b) => pair(at(a), at(b), |a, b| a * b),
            Node::Div(a, b) => pair(at(a), at(b), |a, b| a / b),
            // Bools are 1 and 0.
            Node::Min(a, b) | Node::And(a, b) => pair(at(a), at(b), scalar::min),
            Node::Max(a, b) | Node::Or(a, b) => pair(at(a), at(b), scalar::max),
            Node::ToReal(a) => *at(a),
            Node::Floor(a) => each(at(a), scalar::floor),
            Node::Ceil(a) => each(at(a), scalar::ceil),
            Node::Sqrt(a) => each(at(a), f64::sqrt),
            Node::Log2(a) => each(at(a), scalar::log2),
            Node::Exp2(a) => each(at(a), scalar::exp2),
            Node::FloorDiv(a, b) | Node::ExactDiv(a, b) => pair(at(a), at(b), |a, b| scalar::floor(a / b)),
            Node::CeilDiv(a, b) => pair(at(a), at(b), |a, b| scalar::ceil(a / b)),
            Node::Mod(a, b) => pair(at(a), at(b), |a, b| a - b * scalar::floor(a / b)),
            Node::Le(a, b) => pair(at(a), at(b), |a, b| truth(a <= b)),
            Node::Lt(a, b) => pair(at(a), at(b), |a, b| truth(a < b)),
            Node::Eq(a, b) => pair(at(a), at(b), |a, b| truth(scalar::equal(a, b))),
            Node::Not(a) => each(at(a), |a| 1.0 - a),
            Node::Select(c, a, b) => {
                let mut lanes = *at(b);
                for ((lane, c), a) in lanes.iter_mut().zip(at(c)).zip(at(a)) {
                    *lane = if *c > 0.0 { *a } else { *lane };
                }
                lanes
            }
            Node::Lookup(table, index) => {
                let values = &self.tables[table.0 as usize];
                each(at(index), |i| values[(i as usize).min(values.len() - 1)])
            }
            Node::Int(_) | Node::Real(_) | Node::Bool(_) => unreachable!("constants are in the file from the start"),
        }
    }
}

fn truth(v: bool) -> f64 {
    if v { 1.0 } else { 0.0 }
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "the loop must be specialised to its operation")]
fn each(a: &Lanes, f: impl Fn(f64) -> f64) -> Lanes {
    let mut lanes = *a;
    for lane in &mut lanes {
        *lane = f(*lane);
    }
    lanes
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "the loop must be specialised to its operation")]
fn pair(a: &Lanes, b: &Lanes, f: impl Fn(f64, f64) -> f64) -> Lanes {
    let mut lanes = *a;
    for (lane, b) in lanes.iter_mut().zip(b) {
        *lane = f(*lane, *b);
    }
    lanes
}
