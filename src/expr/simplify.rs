//! [`Graph::put`]: coerce the operands, make the operation total, simplify, fold, share.
//!
//! Every rewrite keeps the value to the last bit (but the sign of a zero); the simplified graph is the meaning. Reals
//! are not reassociated. A rewrite may rely on ranges, which hold because evaluators clamp the inputs to theirs.

use super::{Graph, Id, Kind, Node, Table, TableId, scalar};

/// The integer divisions.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Quotient {
    Floor,
    Ceil,
    Exact,
    Mod,
}

impl Graph {
    /// Adds `node`, simplified; equal nodes are one. Operands of mixed kinds are brought to one kind first.
    pub fn put(&mut self, node: Node) -> Id {
        match node {
            Node::Int(v) if i128::from(v).abs() > super::INT_LIMIT => self.real(v as f64),
            Node::Int(_) | Node::Bool(_) | Node::Input(_) => self.leaf(node),
            Node::Real(bits) => {
                let v = f64::from_bits(bits);
                // `+ 0.0` makes a negative zero positive.
                let v = if v.is_nan() { 0.0 } else { v.clamp(-f64::MAX, f64::MAX) + 0.0 };
                self.leaf(Node::Real(v.to_bits()))
            }
            Node::Add(a, b) => self.put_add(a, b),
            Node::Sub(a, b) => self.put_sub(a, b),
            Node::Mul(a, b) => self.put_mul(a, b),
            Node::Div(a, b) => self.put_div(a, b),
            Node::ToReal(a) => self.put_to_real(a),
            Node::Floor(a) => self.put_rounded(a, Node::Floor),
            Node::Ceil(a) => self.put_rounded(a, Node::Ceil),
            Node::Sqrt(a) => {
                let a = self.at_least(a, 0.0);
                self.finish(Node::Sqrt(a))
            }
            Node::Log2(a) => {
                let a = self.at_least(a, f64::MIN_POSITIVE);
                match self.as_real(a) {
                    Some(v) => self.real(scalar::log2(v)),
                    None => self.finish(Node::Log2(a)),
                }
            }
            Node::Exp2(a) => {
                let a = self.put_to_real(a);
                match self.as_real(a) {
                    Some(v) => self.real(scalar::exp2(v)),
                    None => self.finish(Node::Exp2(a)),
                }
            }
            Node::FloorDiv(a, b) => self.put_quotient(Quotient::Floor, a, b),
            Node::CeilDiv(a, b) => self.put_quotient(Quotient::Ceil, a, b),
            Node::ExactDiv(a, b) => self.put_quotient(Quotient::Exact, a, b),
            Node::Mod(a, b) => self.put_quotient(Quotient::Mod, a, b),
            Node::Min(a, b) => self.put_min(a, b),
            Node::Max(a, b) => self.put_max(a, b),
            Node::Select(c, a, b) => self.put_select(c, a, b),
            Node::Lookup(t, a) => self.put_lookup(t, a),
            Node::Le(a, b) => self.put_le(a, b),
            Node::Lt(a, b) => self.put_lt(a, b),
            Node::Eq(a, b) => self.put_eq(a, b),
            Node::And(a, b) => self.put_and(a, b),
            Node::Or(a, b) => self.put_or(a, b),
            Node::Not(a) => self.put_not(a),
        }
    }

    /// Adds a node that no rule simplifies, folding it if its range is one value. Int arithmetic that could leave
    /// ±2^62 is done on Reals, and Reals that could overflow saturate.
    pub(super) fn finish(&mut self, node: Node) -> Id {
        let (kind, range) = match (self.infer(node), node) {
            (Ok(known), _) => known,
            (Err(_), Node::Add(..) | Node::Sub(..) | Node::Mul(..)) => {
                let node = node.map(|id| self.put_to_real(id));
                return self.finish(node);
            }
            (Err(bad), _) => unreachable!("{}: operands are coerced before", bad.0),
        };
        match range.int {
            Some((lo, hi)) if lo == hi => return self.int(lo as i64),
            None if kind == Kind::Real && range.lo >= range.hi => return self.real(range.lo),
            Some(_) | None => {}
        }
        let id = self.insert(node).expect("the node was just inferred");
        if kind == Kind::Real && range.hi == f64::INFINITY {
            let most = self.real(f64::MAX);
            return self.put_min(id, most);
        }
        if kind == Kind::Real && range.lo == f64::NEG_INFINITY {
            let least = self.real(-f64::MAX);
            return self.put_max(id, least);
        }
        id
    }

    /// Int or Real; a Bool is 1 or 0.
    fn number(&mut self, id: Id) -> Id {
        if self.kind(id) != Kind::Bool {
            return id;
        }
        let (one, zero) = (self.int(1), self.int(0));
        self.put_select(id, one, zero)
    }

    /// Bool; a number is whether it is not 0.
    fn truth(&mut self, id: Id) -> Id {
        if self.kind(id) == Kind::Bool {
            return id;
        }
        let zero = self.int(0);
        let is_zero = self.put_eq(id, zero);
        self.put_not(is_zero)
    }

    /// Two numbers of one kind.
    pub(super) fn same(&mut self, a: Id, b: Id) -> (Id, Id) {
        let (a, b) = (self.number(a), self.number(b));
        if self.kind(a) == self.kind(b) { (a, b) } else { (self.put_to_real(a), self.put_to_real(b)) }
    }

    fn is_number(&self, id: Id, value: f64) -> bool {
        self.as_real(id).is_some_and(|v| v.to_bits() == value.to_bits())
    }

    /// The Real `id`, raised to `least` where it may be less.
    fn at_least(&mut self, id: Id, least: f64) -> Id {
        let id = self.put_to_real(id);
        if self.range(id).lo >= least {
            return id;
        }
        let least = self.real(least);
        self.put_max(id, least)
    }

    fn put_to_real(&mut self, a: Id) -> Id {
        let a = self.number(a);
        match (self.kind(a), self.as_int(a)) {
            (_, Some(v)) => self.real(v as f64),
            (Kind::Int, None) => self.finish(Node::ToReal(a)),
            (Kind::Real | Kind::Bool, None) => a,
        }
    }

    fn put_rounded(&mut self, a: Id, round: fn(Id) -> Node) -> Id {
        let a = self.number(a);
        match self.node(a) {
            _ if self.kind(a) == Kind::Int => a,
            Node::ToReal(x) => x,
            _ => self.finish(round(a)),
        }
    }

    fn put_add(&mut self, a: Id, b: Id) -> Id {
        let (a, b) = self.same(a, b);
        if self.kind(a) == Kind::Int {
            return self.int_sum(a, b, 1);
        }
        if self.is_number(a, 0.0) {
            return b;
        }
        if self.is_number(b, 0.0) {
            return a;
        }
        if a == b {
            let two = self.real(2.0);
            return self.put_mul(a, two);
        }
        self.finish(Node::Add(a.min(b), a.max(b)))
    }

    fn put_sub(&mut self, a: Id, b: Id) -> Id {
        let (a, b) = self.same(a, b);
        if a == b {
            return if self.kind(a) == Kind::Int { self.int(0) } else { self.real(0.0) };
        }
        if self.is_number(b, 0.0) {
            return a;
        }
        if self.kind(a) == Kind::Int {
            return self.int_sum(a, b, -1);
        }
        self.finish(Node::Sub(a, b))
    }

    fn put_mul(&mut self, a: Id, b: Id) -> Id {
        let (a, b) = self.same(a, b);
        if self.is_number(a, 1.0) {
            return b;
        }
        if self.is_number(b, 1.0) {
            return a;
        }
        if self.kind(a) == Kind::Int {
            return self.int_product(a, b);
        }
        self.finish(Node::Mul(a.min(b), a.max(b)))
    }

    fn put_div(&mut self, a: Id, b: Id) -> Id {
        let (a, mut b) = (self.put_to_real(a), self.put_to_real(b));
        if !self.never_zero(b) {
            b = self.nonzero(b);
        }
        if self.is_number(b, 1.0) {
            return a;
        }
        if a == b {
            return self.real(1.0);
        }
        if let Some(inverse) = self.as_real(b).and_then(exact_inverse) {
            let inverse = self.real(inverse);
            return self.put_mul(a, inverse);
        }
        // Equal quotients round equally, as long as both operands are exact.
        if let (Node::ToReal(x), Node::ToReal(y)) = (self.node(a), self.node(b))
            && self.range(x).narrow()
            && self.range(y).narrow()
            && let Some((x, y, _)) = self.cancel(x, y)
        {
            return self.put_div(x, y);
        }
        self.finish(Node::Div(a, b))
    }

    /// A divisor with 1 in the place of 0.
    fn nonzero(&mut self, b: Id) -> Id {
        if let Node::ToReal(x) = self.node(b)
            && self.range(x).lo >= 0.0
        {
            let one = self.int(1);
            // Lanes round a wide Int when it is computed, so it is raised after.
            let raised = if self.range(x).narrow() { x } else { b };
            let raised = self.put_max(raised, one);
            return self.put_to_real(raised);
        }
        let (zero, one) = (self.real(0.0), self.real(1.0));
        let is_zero = self.put_eq(b, zero);
        self.put_select(is_zero, one, b)
    }

    fn put_quotient(&mut self, op: Quotient, a: Id, b: Id) -> Id {
        let (a, b) = (self.integral(a), self.integral(b));
        let b = if self.range(b).lo < 1.0 {
            let one = self.int(1);
            self.put_max(b, one)
        } else {
            b
        };
        if let Some((x, y, common)) = self.cancel(a, b) {
            let quotient = self.put_quotient(op, x, y);
            return if op == Quotient::Mod { self.put_mul(quotient, common) } else { quotient };
        }
        let (zero, one) = (self.int(0), self.int(1));
        if b == one && self.is_whole(a) {
            return if op == Quotient::Mod { zero } else { a };
        }
        if self.kind(a) == Kind::Real || self.kind(b) == Kind::Real {
            return self.real_quotient(op, a, b);
        }
        let (p, q) = (self.range(a).int, self.range(b).int);
        if let (Some((lo, hi)), Some((least, _))) = (p, q) {
            match op {
                Quotient::Floor | Quotient::Exact if lo >= 0 && hi < least => return zero,
                Quotient::Mod if lo >= 0 && hi < least => return a,
                Quotient::Ceil if lo >= 1 && hi <= least => return one,
                Quotient::Floor | Quotient::Exact | Quotient::Mod | Quotient::Ceil => {}
            }
        }
        self.finish(match op {
            Quotient::Floor => Node::FloorDiv(a, b),
            Quotient::Ceil => Node::CeilDiv(a, b),
            Quotient::Exact => Node::ExactDiv(a, b),
            Quotient::Mod => Node::Mod(a, b),
        })
    }

    /// The Int behind a Real, where there is one.
    fn integral(&mut self, id: Id) -> Id {
        let id = self.number(id);
        if let Node::ToReal(x) = self.node(id) { x } else { id }
    }

    /// An integer division of what has outgrown Int: of the rounded values.
    fn real_quotient(&mut self, op: Quotient, a: Id, b: Id) -> Id {
        let quotient = self.put_div(a, b);
        let whole = self.put_rounded(quotient, if op == Quotient::Ceil { Node::Ceil } else { Node::Floor });
        if op != Quotient::Mod {
            return whole;
        }
        let taken = self.put_mul(b, whole);
        self.put_sub(a, taken)
    }

    /// Whether `a <= b` whatever the inputs.
    fn always_le(&self, a: Id, b: Id) -> bool {
        let (a, b) = (self.range(a), self.range(b));
        match (a.int, b.int) {
            (Some(a), Some(b)) => a.1 <= b.0,
            _ => a.hi <= b.lo,
        }
    }

    /// Whether `a < b` whatever the inputs.
    fn always_lt(&self, a: Id, b: Id) -> bool {
        let (a, b) = (self.range(a), self.range(b));
        match (a.int, b.int) {
            (Some(a), Some(b)) => a.1 < b.0,
            _ => a.hi < b.lo,
        }
    }

    fn put_min(&mut self, a: Id, b: Id) -> Id {
        let (a, b) = self.same(a, b);
        if a == b || self.always_le(a, b) {
            return a;
        }
        if self.always_le(b, a) {
            return b;
        }
        for (x, y) in [(a, b), (b, a)] {
            match self.node(x) {
                Node::Min(p, q) if p == y || q == y => return x,
                Node::Max(p, q) if p == y || q == y => return y,
                _ => {}
            }
        }
        self.finish(Node::Min(a.min(b), a.max(b)))
    }

    fn put_max(&mut self, a: Id, b: Id) -> Id {
        let (a, b) = self.same(a, b);
        if a == b || self.always_le(b, a) {
            return a;
        }
        if self.always_le(a, b) {
            return b;
        }
        for (x, y) in [(a, b), (b, a)] {
            match self.node(x) {
                Node::Max(p, q) if p == y || q == y => return x,
                Node::Min(p, q) if p == y || q == y => return y,
                _ => {}
            }
        }
        self.finish(Node::Max(a.min(b), a.max(b)))
    }

    fn put_select(&mut self, cond: Id, a: Id, b: Id) -> Id {
        let cond = self.truth(cond);
        let (a, b) = if self.kind(a) == self.kind(b) { (a, b) } else { self.same(a, b) };
        if let Node::Not(inner) = self.node(cond) {
            return self.put_select(inner, b, a);
        }
        // An arm that asks the same again has its answer.
        let a = if let Node::Select(c, x, _) = self.node(a)
            && c == cond
        {
            x
        } else {
            a
        };
        let b = if let Node::Select(c, _, x) = self.node(b)
            && c == cond
        {
            x
        } else {
            b
        };
        match (self.as_bool(cond), self.as_bool(a), self.as_bool(b)) {
            _ if a == b => a,
            (Some(taken), ..) => {
                if taken {
                    a
                } else {
                    b
                }
            }
            (None, Some(true), _) => self.put_or(cond, b),
            (None, _, Some(false)) => self.put_and(cond, a),
            (None, Some(false), _) => {
                let other = self.put_not(cond);
                self.put_and(other, b)
            }
            (None, _, Some(true)) => {
                let other = self.put_not(cond);
                self.put_or(other, a)
            }
            (None, None, None) => self.finish(Node::Select(cond, a, b)),
        }
    }

    fn put_lookup(&mut self, table: TableId, index: Id) -> Id {
        let last = self.tables()[table.0 as usize].values.len() as i64 - 1;
        let (index, zero, last) = (self.integral(index), self.int(0), self.int(last));
        let index = self.put_max(index, zero);
        let index = self.put_min(index, last);
        match (self.as_int(index), &self.tables()[table.0 as usize]) {
            (Some(i), Table { kind: Kind::Int, values }) => {
                let value = values[i as usize] as i64;
                self.int(value)
            }
            (Some(i), Table { values, .. }) => {
                let value = values[i as usize];
                self.real(value)
            }
            (None, _) => self.finish(Node::Lookup(table, index)),
        }
    }

    fn put_le(&mut self, a: Id, b: Id) -> Id {
        let (a, b) = self.same(a, b);
        if a == b || self.always_le(a, b) {
            return self.bool(true);
        }
        if self.always_lt(b, a) {
            return self.bool(false);
        }
        self.finish(Node::Le(a, b))
    }

    fn put_lt(&mut self, a: Id, b: Id) -> Id {
        let (a, b) = self.same(a, b);
        if self.always_lt(a, b) {
            return self.bool(true);
        }
        if a == b || self.always_le(b, a) {
            return self.bool(false);
        }
        self.finish(Node::Lt(a, b))
    }

    fn put_eq(&mut self, a: Id, b: Id) -> Id {
        let both_bool = self.kind(a) == Kind::Bool && self.kind(b) == Kind::Bool;
        let (a, b) = if both_bool { (a, b) } else { self.same(a, b) };
        for (constant, other) in [(a, b), (b, a)] {
            if let Some(wanted) = self.as_bool(constant) {
                return if wanted { other } else { self.put_not(other) };
            }
        }
        if a == b || (self.always_le(a, b) && self.always_le(b, a)) {
            return self.bool(true);
        }
        if self.always_lt(a, b) || self.always_lt(b, a) {
            return self.bool(false);
        }
        self.finish(Node::Eq(a.min(b), a.max(b)))
    }

    fn put_and(&mut self, a: Id, b: Id) -> Id {
        let (a, b) = (self.truth(a), self.truth(b));
        match (self.as_bool(a), self.as_bool(b)) {
            (Some(false), _) | (_, Some(true)) => a,
            (Some(true), _) | (_, Some(false)) => b,
            (None, None) if a == b => a,
            (None, None) if self.opposite(a, b) => self.bool(false),
            (None, None) => self.finish(Node::And(a.min(b), a.max(b))),
        }
    }

    fn put_or(&mut self, a: Id, b: Id) -> Id {
        let (a, b) = (self.truth(a), self.truth(b));
        match (self.as_bool(a), self.as_bool(b)) {
            (Some(true), _) | (_, Some(false)) => a,
            (Some(false), _) | (_, Some(true)) => b,
            (None, None) if a == b => a,
            (None, None) if self.opposite(a, b) => self.bool(true),
            (None, None) => self.finish(Node::Or(a.min(b), a.max(b))),
        }
    }

    fn opposite(&self, a: Id, b: Id) -> bool {
        self.node(a) == Node::Not(b) || self.node(b) == Node::Not(a)
    }

    /// There are no NaNs, so an order can be turned round.
    fn put_not(&mut self, a: Id) -> Id {
        let a = self.truth(a);
        match self.node(a) {
            Node::Bool(v) => self.bool(!v),
            Node::Not(x) => x,
            Node::Le(x, y) => self.put_lt(y, x),
            Node::Lt(x, y) => self.put_le(y, x),
            _ => self.finish(Node::Not(a)),
        }
    }
}

/// 1/v where dividing by `v` and multiplying by 1/v round equally: for powers of two.
fn exact_inverse(v: f64) -> Option<f64> {
    let inverse = 1.0 / v;
    let power_of_two = v.is_normal() && inverse.is_normal() && v.to_bits().trailing_zeros() >= 52;
    power_of_two.then_some(inverse)
}
