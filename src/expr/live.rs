//! Which nodes the roots need, and whether double lanes can compute them exactly.

use super::{Graph, Id, InputId, Kind, NARROW, Node};

impl Graph {
    /// For every node whether `roots` need it.
    pub(super) fn reachable(&self, roots: &[Id]) -> Vec<bool> {
        let mut needed = vec![false; self.len()];
        let mut open = roots.to_vec();
        while let Some(id) = open.pop() {
            if !std::mem::replace(&mut needed[id.0 as usize], true) {
                open.extend(self.node(id).operands());
            }
        }
        needed
    }

    /// The part of the graph that `roots` need, renumbered in order, and the roots in it. All inputs stay declared, so
    /// columns keep their places.
    pub fn live(&self, roots: &[Id]) -> (Graph, Vec<Id>) {
        let needed = self.reachable(roots);
        let mut live = Graph::with_leaves(self.inputs().to_vec(), self.tables().to_vec());
        let mut renumbered = vec![Id(0); self.len()];
        for id in self.ids().filter(|id| needed[id.0 as usize]) {
            let node = self.node(id).map(|operand| renumbered[operand.0 as usize]);
            let new = live.copy(node);
            renumbered[id.0 as usize] = new;
            if let Some(name) = self.given_name(id) {
                live.name(new, name);
            }
        }
        (live, roots.iter().map(|root| renumbered[root.0 as usize]).collect())
    }

    /// Puts what `roots` of `from` need into this graph and gives the roots here. `given` stand in the place of nodes of
    /// `from`, and `leaf` gives what stands in the place of its inputs.
    pub fn graft(
        &mut self,
        from: &Graph,
        roots: &[Id],
        given: &[(Id, Id)],
        mut leaf: impl FnMut(&mut Graph, InputId) -> Id,
    ) -> Vec<Id> {
        let mut here: Vec<Option<Id>> = vec![None; from.len()];
        for (there, id) in given {
            here[there.0 as usize] = Some(*id);
        }
        let mut needed = vec![false; from.len()];
        let mut open = roots.to_vec();
        while let Some(id) = open.pop() {
            if !std::mem::replace(&mut needed[id.0 as usize], true) && here[id.0 as usize].is_none() {
                open.extend(from.node(id).operands());
            }
        }
        for id in from.ids().filter(|id| needed[id.0 as usize]) {
            if here[id.0 as usize].is_some() {
                continue;
            }
            let at = |operand: Id| here[operand.0 as usize].expect("operands come before their users");
            let new = match from.node(id) {
                Node::Input(i) => leaf(self, i),
                Node::Lookup(t, index) => {
                    let table = self.table(from.tables()[t.0 as usize].clone());
                    self.lookup(table, at(index))
                }
                node => self.put(node.map(at)),
            };
            here[id.0 as usize] = Some(new);
            if let Some(name) = from.given_name(id) {
                self.name(new, name);
            }
        }
        roots.iter().map(|root| here[root.0 as usize].expect("roots are needed")).collect()
    }

    fn copy(&mut self, node: Node) -> Id {
        self.insert(node).expect("the node is in a graph already")
    }

    /// The first node `roots` need that double lanes cannot compute: a discrete operation on Ints too wide for them, or
    /// a narrow Int made of such Ints, in which their rounding would show. [`super::Block`] then runs the exact interpreter point by point.
    pub fn exact_only(&self, roots: &[Id]) -> Option<Id> {
        let needed = self.reachable(roots);
        // Int nodes whose lanes may be rounded.
        let mut rounded = vec![false; self.len()];
        for id in self.ids().filter(|id| needed[id.0 as usize]) {
            let node = self.node(id);
            let reads_rounded = node.operands().iter().any(|operand| rounded[operand.0 as usize]);
            let inexact = match node {
                Node::FloorDiv(a, b) | Node::CeilDiv(a, b) | Node::ExactDiv(a, b) | Node::Mod(a, b) => {
                    reads_rounded || !self.divides_in_lanes(a, b)
                }
                Node::Eq(a, _) => reads_rounded && self.kind(a) == Kind::Int,
                _ => reads_rounded && self.range(id).narrow(),
            };
            if inexact {
                return Some(id);
            }
            let computes = matches!(
                node,
                Node::Int(_)
                    | Node::Input(_)
                    | Node::Add(..)
                    | Node::Sub(..)
                    | Node::Mul(..)
                    | Node::Min(..)
                    | Node::Max(..)
                    | Node::Select(..)
            );
            rounded[id.0 as usize] = self.kind(id) == Kind::Int && computes && !self.range(id).narrow();
        }
        None
    }

    /// ⌊fl(a / b)⌋ is ⌊a / b⌋ if |a| + b <= 2^53: a quotient that is not whole is at least 1/b away from the next
    /// integer, and half the gap of doubles there is less.
    fn divides_in_lanes(&self, a: Id, b: Id) -> bool {
        let (Some((lo, hi)), Some((_, divisor))) = (self.range(a).int, self.range(b).int) else { return false };
        lo.abs().max(hi.abs()) + divisor <= NARROW
    }
}
