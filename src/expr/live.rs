//! Which nodes the roots need, and whether double lanes can compute them exactly.

use super::{Graph, Id, Kind, NARROW, Node};

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
        let mut live = Graph::with_inputs(self.inputs().to_vec());
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
