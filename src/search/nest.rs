//! A space gone through one axis at a time: what depends on few axes is computed once for each of their values, and what
//! breaks a rule goes no deeper.
//!
//! A level binds one axis more. Its kernel computes the nodes that depend on this axis and those before it, for many
//! rows at once; the nodes it reads of earlier levels are columns that rows carry along. A row that breaks a rule stands
//! for all the points behind it and is counted as such. Rows wait at each level until they fill a block, so kernels run
//! full however few rows are left.

use crate::emit::evaluator::{Kernel, Unavailable};
use crate::expr::{Block, Graph, Id, Input, Kind, Node};
use std::collections::BTreeMap;

/// Rows that a kernel is given at a time.
const ROWS: usize = 2_048;

/// An axis of the space.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    /// Its values, in the order of the text.
    pub(super) values: Vec<f64>,
    /// Points between one value and the next.
    pub(super) stride: u64,
}

/// Something that computes columns from columns.
enum Machine {
    Block(Block),
    Native(Kernel),
}

impl Machine {
    fn run(&self, n: usize, columns: &[&[f64]]) -> Vec<Vec<f64>> {
        match self {
            Machine::Block(block) => block.run(n, columns),
            Machine::Native(kernel) => kernel.run(n, columns),
        }
    }
}

/// Where a carried column comes from.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum From {
    /// A column of the level before.
    Parent(usize),
    /// A result of this level's kernel.
    Made(usize),
    /// The axis.
    Axis,
}

struct Level {
    axis: Axis,
    /// Points a row stands for once this axis is bound.
    behind: u64,
    /// Columns of the level before that the kernel reads; the axis comes after them.
    reads: Vec<usize>,
    machine: Option<Machine>,
    /// Which rule each of the kernel's first results is.
    rules: Vec<usize>,
    carried: Vec<From>,
}

/// A space prepared for going through it.
pub(super) struct Nest {
    levels: Vec<Level>,
    /// Operations of all kernels: of each level.
    pub(super) operations: Vec<usize>,
}

/// Rows with the same columns.
#[derive(Clone, Default, Debug)]
pub(super) struct Rows {
    /// The point each row is, or the first of those it stands for.
    pub(super) points: Vec<u64>,
    /// A value of each row in each column; at the end those are the results.
    pub(super) columns: Vec<Vec<f64>>,
}

impl Rows {
    fn with(columns: usize) -> Self {
        Self { points: Vec::new(), columns: vec![Vec::new(); columns] }
    }

    fn len(&self) -> usize {
        self.points.len()
    }

    /// Adds rows with the same columns.
    pub(super) fn append(&mut self, other: &Rows) {
        self.points.extend_from_slice(&other.points);
        for (own, more) in self.columns.iter_mut().zip(&other.columns) {
            own.extend_from_slice(more);
        }
    }

    /// Takes the first `n` rows out.
    pub(super) fn first(&mut self, n: usize) -> Rows {
        let rest = |c: &mut Vec<f64>| {
            let rest = c.split_off(n.min(c.len()));
            std::mem::replace(c, rest)
        };
        let points = self.points.split_off(n.min(self.points.len()));
        Rows {
            points: std::mem::replace(&mut self.points, points),
            columns: self.columns.iter_mut().map(rest).collect(),
        }
    }
}

/// What takes the rows that are left.
pub(super) trait Taker {
    /// Takes rows that obey every rule; their columns are the results.
    fn take(&mut self, rows: &Rows);
    /// Is told that so many points break a rule; `None` where they belong to another nest.
    fn broken(&mut self, rule: Option<usize>, points: u64);
}

/// A condition that rows obey.
#[derive(Copy, Clone, Debug)]
pub(super) struct Condition {
    /// A Bool node.
    pub(super) cond: Id,
    /// What a row that breaks it counts for; nothing where such rows belong to another nest.
    pub(super) rule: Option<usize>,
}

/// No rule: the rows belong to another nest.
const ELSEWHERE: usize = usize::MAX;

impl Nest {
    /// Prepares `graph`, whose inputs are the axes, one each. `native` asks for machine code.
    pub(super) fn new(
        graph: &Graph,
        axes: &[Axis],
        conditions: &[Condition],
        results: &[Id],
        native: bool,
    ) -> Result<Self, Unavailable> {
        let deps = dependencies(graph);
        // What tells which nest a row belongs to comes first, so that no two count the same points.
        let telling = conditions.iter().filter(|c| c.rule.is_none());
        let telling = telling.fold(0, |all, c| all | deps[c.cond.0 as usize]);
        let order = order(axes, telling, conditions.iter().map(|c| deps[c.cond.0 as usize]));
        let place_of: Vec<usize> =
            (0..axes.len()).map(|a| order.iter().position(|o| *o == a).unwrap_or_default()).collect();
        // A node belongs to the level of the last of its axes. What depends on none is a constant and stays one.
        let level_of = |id: Id| -> Option<usize> {
            let deps = deps[id.0 as usize];
            (0..axes.len()).filter(|a| deps >> a & 1 == 1).map(|a| place_of[a]).max()
        };
        let mut needed = vec![false; graph.len()];
        let mut open: Vec<Id> = conditions.iter().map(|c| c.cond).chain(results.iter().copied()).collect();
        while let Some(id) = open.pop() {
            if !std::mem::replace(&mut needed[id.0 as usize], true) {
                open.extend(graph.node(id).operands());
            }
        }
        // The last level that reads each node of an earlier one.
        let last = axes.len().saturating_sub(1);
        let mut read_until: Vec<Option<usize>> = vec![None; graph.len()];
        for id in graph.ids().filter(|id| needed[id.0 as usize]) {
            let Some(level) = level_of(id) else { continue };
            for operand in graph.node(id).operands() {
                if level_of(operand).is_some_and(|own| own < level) {
                    let until = &mut read_until[operand.0 as usize];
                    *until = Some(until.map_or(level, |u| u.max(level)));
                }
            }
        }
        let floor = (0..axes.len()).filter(|a| telling >> a & 1 == 1).map(|a| place_of[a]).max().unwrap_or(0);
        let held_at = |c: &Condition| match (c.rule, level_of(c.cond).unwrap_or(0)) {
            (None, own) => own,
            (Some(_), own) => own.max(floor),
        };
        for c in conditions.iter().filter(|c| level_of(c.cond).is_some_and(|own| own < held_at(c))) {
            let until = &mut read_until[c.cond.0 as usize];
            *until = Some(until.map_or(held_at(c), |u| u.max(held_at(c))));
        }
        let mut nest = Nest { levels: Vec::new(), operations: Vec::new() };
        let mut columns: Vec<Id> = Vec::new();
        for (k, axis) in order.iter().enumerate() {
            let input = graph.ids().find(|id| graph.node(*id) == Node::Input(crate::expr::InputId(*axis as u32)));
            let of_level: Vec<Condition> = conditions.iter().copied().filter(|c| held_at(c) == k).collect();
            let kept = |id: &Id| {
                let later = read_until[id.0 as usize].is_some_and(|until| until > k);
                later || results.contains(id)
            };
            let own = |id: &Id| needed[id.0 as usize] && level_of(*id) == Some(k) && Some(*id) != input;
            let made: Vec<Id> = graph.ids().filter(|id| own(id) && (kept(id))).collect();
            let mut carried: Vec<(Id, From)> = Vec::new();
            if k == last {
                let constant = |id: Id| level_of(id).is_none();
                // The results in their order; a constant is made anew.
                let mut roots: Vec<Id> = of_level.iter().map(|c| c.cond).collect();
                for id in results {
                    let from = match columns.iter().position(|c| c == id) {
                        Some(at) => From::Parent(at),
                        None if Some(*id) == input => From::Axis,
                        None => {
                            debug_assert!(constant(*id) || level_of(*id) == Some(k), "the last level makes the rest");
                            roots.push(*id);
                            From::Made(roots.len() - 1)
                        }
                    };
                    carried.push((*id, from));
                }
                nest.level(graph, axes, *axis, input, (&columns, &roots), &of_level, &carried, native)?;
            } else {
                let mut roots: Vec<Id> = of_level.iter().map(|c| c.cond).collect();
                carried.extend(
                    columns.iter().enumerate().filter(|(_, id)| kept(id)).map(|(at, id)| (*id, From::Parent(at))),
                );
                carried.extend(input.filter(|id| needed[id.0 as usize] && kept(id)).map(|id| (id, From::Axis)));
                for id in made {
                    roots.push(id);
                    carried.push((id, From::Made(roots.len() - 1)));
                }
                nest.level(graph, axes, *axis, input, (&columns, &roots), &of_level, &carried, native)?;
            }
            columns = carried.into_iter().map(|(id, _)| id).collect();
        }
        let mut behind = 1;
        for level in nest.levels.iter_mut().rev() {
            level.behind = behind;
            behind *= level.axis.values.len() as u64;
        }
        Ok(nest)
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of a level")]
    fn level(
        &mut self,
        graph: &Graph,
        axes: &[Axis],
        axis: usize,
        input: Option<Id>,
        (columns, roots): (&[Id], &[Id]),
        conditions: &[Condition],
        carried: &[(Id, From)],
        native: bool,
    ) -> Result<(), Unavailable> {
        let mut own = Graph::new();
        let mut given = Vec::new();
        for (at, id) in columns.iter().enumerate() {
            let range = graph.range(*id);
            let input = Input { name: format!("c{at}"), kind: graph.kind(*id), lo: range.lo, hi: range.hi };
            given.push((*id, own.input(input)));
        }
        let bound = input.map(|id| {
            let range = graph.range(id);
            (id, own.input(Input { name: "axis".into(), kind: Kind::Int, lo: range.lo, hi: range.hi }))
        });
        given.extend(bound);
        let here = own.graft(graph, roots, &given, |g, _| g.int(0));
        let (live, here) = own.live(&here);
        let mut reads: Vec<usize> = Vec::new();
        for id in live.ids() {
            if let Node::Input(i) = live.node(id)
                && (i.0 as usize) < columns.len()
            {
                reads.push(i.0 as usize);
            }
        }
        reads.sort_unstable();
        // The kernel has no place for columns that it does not read.
        let mut narrow = Graph::new();
        let inputs: Vec<Id> = reads
            .iter()
            .copied()
            .chain(bound.map(|_| columns.len()))
            .map(|i| narrow.input(live.inputs()[i].clone()))
            .collect();
        let at = |i: usize| reads.binary_search(&i).unwrap_or(reads.len());
        let roots = narrow.graft(&live, &here, &[], |_, i| inputs[at(i.0 as usize)]);
        let machine = match (roots.is_empty(), native) {
            (true, _) => None,
            (false, true) => Some(Machine::Native(Kernel::compile(&narrow, &roots)?)),
            (false, false) => Some(Machine::Block(Block::new(&narrow, &roots))),
        };
        self.operations.push(narrow.len());
        self.levels.push(Level {
            axis: axes[axis].clone(),
            behind: 1,
            reads,
            machine,
            rules: conditions.iter().map(|c| c.rule.unwrap_or(ELSEWHERE)).collect(),
            carried: carried.iter().map(|(_, from)| *from).collect(),
        });
        Ok(())
    }

    /// The rows left after as many levels as it takes to have `enough`, and the levels done; what is broken on the way is
    /// told to `taker`. Each part of these rows can be gone through apart.
    pub(super) fn begin(&self, enough: usize, taker: &mut dyn Taker) -> (usize, Rows) {
        let mut rows = Rows { points: vec![0], columns: Vec::new() };
        let mut done = 0;
        while done + 1 < self.levels.len() && rows.len() < enough && rows.len() > 0 {
            let mut next = Rows::with(self.levels[done].carried.len());
            self.levels[done].expand(&rows, taker, &mut |made| next.append(made));
            rows = next;
            done += 1;
        }
        (done, rows)
    }

    /// Goes through what stands behind `rows`, which [`Self::begin`] left after the first levels.
    pub(super) fn finish(&self, done: usize, rows: Rows, taker: &mut dyn Taker) {
        if self.levels.is_empty() {
            taker.take(&rows);
            return;
        }
        let mut waiting: Vec<Rows> = self.levels.iter().map(|l| Rows::with(l.carried.len())).collect();
        // `waiting[k]` are rows that level `k` made; those of the last are the results.
        let mut start = rows;
        while start.len() > 0 {
            let part = start.first(ROWS);
            self.descend(done, &part, &mut waiting, taker);
        }
        for level in done..self.levels.len() {
            let rest = std::mem::take(&mut waiting[level]);
            if level + 1 < self.levels.len() {
                waiting[level] = Rows::with(self.levels[level].carried.len());
                if rest.len() > 0 {
                    self.descend(level + 1, &rest, &mut waiting, taker);
                }
            } else if rest.len() > 0 {
                taker.take(&rest);
            }
        }
    }

    fn descend(&self, level: usize, rows: &Rows, waiting: &mut [Rows], taker: &mut dyn Taker) {
        let mut full: Vec<Rows> = Vec::new();
        let own = &mut waiting[level];
        self.levels[level].expand(rows, taker, &mut |made| {
            own.append(made);
            if own.len() >= ROWS {
                full.push(own.first(ROWS));
            }
        });
        for part in full {
            if level + 1 < self.levels.len() {
                self.descend(level + 1, &part, waiting, taker);
            } else {
                taker.take(&part);
            }
        }
    }
}

impl Level {
    /// Binds the axis in each row; hands on what is left, some rows at a time.
    fn expand(&self, rows: &Rows, taker: &mut dyn Taker, next: &mut dyn FnMut(&Rows)) {
        let count = self.axis.values.len();
        let total = rows.len() * count;
        let mut at = 0;
        while at < total {
            let n = (total - at).min(ROWS);
            let parents: Vec<usize> = (at..at + n).map(|i| i / count).collect();
            let digits: Vec<usize> = (at..at + n).map(|i| i % count).collect();
            at += n;
            let axis: Vec<f64> = digits.iter().map(|d| self.axis.values[*d]).collect();
            let made = match &self.machine {
                None => Vec::new(),
                Some(machine) => {
                    let gathered: Vec<Vec<f64>> = self
                        .reads
                        .iter()
                        .map(|c| {
                            let column = &rows.columns[*c];
                            parents.iter().map(|p| column[*p]).collect()
                        })
                        .collect();
                    let mut views: Vec<&[f64]> = gathered.iter().map(Vec::as_slice).collect();
                    views.push(&axis);
                    machine.run(n, &views)
                }
            };
            let mut broken: BTreeMap<usize, u64> = BTreeMap::new();
            let kept: Vec<usize> = (0..n)
                .filter(|row| match self.rules.iter().zip(&made).find(|(_, held)| held[*row] <= 0.0) {
                    None => true,
                    Some((rule, _)) => {
                        *broken.entry(*rule).or_default() += self.behind;
                        false
                    }
                })
                .collect();
            for (rule, points) in broken {
                taker.broken(Some(rule).filter(|r| *r != ELSEWHERE), points);
            }
            if kept.is_empty() {
                continue;
            }
            let point = |row: &usize| rows.points[parents[*row]] + digits[*row] as u64 * self.axis.stride;
            let column = |from: &From| -> Vec<f64> {
                match from {
                    From::Parent(c) => kept.iter().map(|row| rows.columns[*c][parents[*row]]).collect(),
                    From::Made(c) => kept.iter().map(|row| made[*c][*row]).collect(),
                    From::Axis => kept.iter().map(|row| axis[*row]).collect(),
                }
            };
            next(&Rows {
                points: kept.iter().map(point).collect(),
                columns: self.carried.iter().map(column).collect(),
            });
        }
    }
}

/// The axes each node depends on, a bit for each.
fn dependencies(graph: &Graph) -> Vec<u64> {
    let mut out: Vec<u64> = Vec::with_capacity(graph.len());
    for id in graph.ids() {
        let node = graph.node(id);
        let below = node.operands().iter().fold(0, |all, o| all | out[o.0 as usize]);
        let own = if let Node::Input(i) = node { 1 << i.0.min(63) } else { 0 };
        out.push(below | own);
    }
    out
}

/// The order of the axes: those that are `telling`, then always the one that settles most rules, of those the shortest,
/// of those the first in the text.
fn order(axes: &[Axis], telling: u64, rules: impl Iterator<Item = u64>) -> Vec<usize> {
    let rules: Vec<u64> = rules.collect();
    let (mut out, mut bound): (Vec<usize>, u64) = (Vec::new(), 0);
    while out.len() < axes.len() {
        let left = (0..axes.len()).filter(|a| !out.contains(a));
        // Of the rules still open, the fewest axes that one of them lacks.
        let lacks = |a: usize| {
            let of = rules.iter().filter(|r| **r & !bound != 0 && **r >> a & 1 == 1);
            of.map(|r| (r & !bound).count_ones()).min().unwrap_or(u32::MAX)
        };
        let settles = |a: usize| {
            let with = bound | 1 << a;
            rules.iter().filter(|r| **r & !bound != 0 && **r & !with == 0).count()
        };
        let key =
            |a: &usize| (telling >> a & 1 == 0, lacks(*a), std::cmp::Reverse(settles(*a)), axes[*a].values.len(), *a);
        let Some(best) = left.min_by_key(key) else { break };
        bound |= 1 << best;
        out.push(best);
    }
    out
}
