//! The value of a table at a key: known, or as nodes of the graph, by the same lines.

use super::super::{Condition, Demand, Evaluator, Num, Quantity, Value};
use super::{Axis, Between, Beyond, Table, errors};
use crate::expr::{self, Node, scalar};
use crate::source::Span;
use std::rc::Rc;

/// Points of a table that may become nodes.
const MAX_NODES: usize = 4_096;

impl<'p> Evaluator<'p, '_> {
    /// `table(keys)`; the keys have the units of their columns.
    pub(in crate::eval) fn look_up(&mut self, table: &Rc<Table>, keys: &[Quantity], span: Span) -> Value<'p> {
        let known: Option<Vec<f64>> = keys
            .iter()
            .map(|q| match q.num {
                Num::Int(n) => Some(n as f64),
                Num::Real(x) => Some(x),
                Num::Sym(_) => None,
            })
            .collect();
        let num = match known {
            Some(keys) => match self.between_rows(table, &keys, span) {
                Ok(v) => Num::Real(v),
                Err(e) => return e,
            },
            None if table.values.len() > MAX_NODES => {
                return self.error(errors::too_many_points(table, MAX_NODES, span));
            }
            None => Num::Sym(self.nodes(table, keys, span)),
        };
        Value::Num(Quantity { num, unit: table.unit.clone() })
    }

    fn between_rows(&mut self, table: &Rc<Table>, keys: &[f64], span: Span) -> Result<f64, Value<'p>> {
        // By key: the point below, and how far the key lies from it to the next.
        let mut places = Vec::with_capacity(keys.len());
        for (axis, key) in table.axes.iter().zip(keys) {
            let (lo, hi) = axis.ends();
            let mut key = *key;
            if key < lo || key > hi {
                match table.beyond {
                    Beyond::Error => {
                        return Err(self.error(errors::outside_table(table, axis, key, span)));
                    }
                    Beyond::Clamp { warn } => {
                        if warn {
                            self.sink.warn(errors::clamped(table, axis, key, span));
                        }
                        key = key.clamp(lo, hi);
                    }
                    Beyond::Extrapolate => {}
                }
            }
            places.push(axis.place(key, table.between));
        }
        // The corners around the key, each by its share.
        let mut sum = 0.0;
        for corner in 0..1_u32 << places.len() {
            let (mut share, mut at) = (1.0, 0);
            for (k, ((below, part), axis)) in places.iter().zip(&table.axes).enumerate() {
                let upper = corner >> k & 1 == 1;
                share *= if upper { *part } else { 1.0 - part };
                at = at * axis.points.len() + (below + usize::from(upper)).min(axis.points.len() - 1);
            }
            if share.abs() > 0.0 {
                sum += share * table.values[at];
            }
        }
        Ok(if table.between == Between::LogLog { scalar::exp2(sum) } else { sum })
    }

    /// Lines between the points as nodes: along the last key first.
    fn nodes(&mut self, table: &Rc<Table>, keys: &[Quantity], span: Span) -> expr::Id {
        let mut layer: Vec<expr::Id> = table.values.iter().map(|v| self.graph.real(*v)).collect();
        for (axis, key) in table.axes.iter().zip(keys).rev() {
            let key = self.key(table, axis, key, span);
            let n = axis.points.len();
            layer = layer.chunks(n).map(|values| self.line(axis, table.between, key, values)).collect();
        }
        let value = layer[0];
        if table.between == Between::LogLog { self.graph.put(Node::Exp2(value)) } else { value }
    }

    /// The key as lines are drawn over it, brought inside where the table says so.
    fn key(&mut self, table: &Rc<Table>, axis: &Axis, key: &Quantity, span: Span) -> expr::Id {
        let id = self.node(key.num);
        let mut id = self.graph.to_real(id);
        let (lo, hi) = axis.ends();
        let range = self.graph.range(id);
        if table.beyond != Beyond::Extrapolate && (range.lo < lo || range.hi > hi) {
            let (low, high) = (self.graph.real(lo), self.graph.real(hi));
            let (above, under) = (self.graph.le(low, id), self.graph.le(id, high));
            let cond = self.graph.and(above, under);
            if table.beyond != (Beyond::Clamp { warn: false }) && !self.conditions.iter().any(|c| c.cond == cond) {
                let what = Demand::Inside(Inside { table: Rc::clone(table), axis: axis.clone(), key: id });
                self.conditions.push(Condition { cond, what, span });
            }
            id = self.graph.max(id, low);
            id = self.graph.min(id, high);
        }
        if matches!(table.between, Between::LogLinear | Between::LogLog) {
            // Below every point; `log2` has no other meaning there.
            let least = self.graph.real(f64::MIN_POSITIVE);
            id = self.graph.max(id, least);
            id = self.graph.put(Node::Log2(id));
        }
        id
    }

    fn line(&mut self, axis: &Axis, between: Between, key: expr::Id, values: &[expr::Id]) -> expr::Id {
        let points = &axis.scaled;
        let mut out = values[values.len() - 1];
        for i in (0..values.len() - 1).rev() {
            // Left of this point, the piece before it holds.
            let (piece, border) = if between == Between::Nearest {
                (values[i], points[i] + (points[i + 1] - points[i]) / 2.0)
            } else {
                let rise = self.graph.sub(values[i + 1], values[i]);
                let from = self.graph.real(points[i]);
                let along = self.graph.sub(key, from);
                let step = self.graph.real(1.0 / (points[i + 1] - points[i]));
                let part = self.graph.mul(along, step);
                let rise = self.graph.mul(rise, part);
                (self.graph.add(values[i], rise), points[i + 1])
            };
            if i + 2 == values.len() && between != Between::Nearest {
                out = piece;
                continue;
            }
            let border = self.graph.real(border);
            let left =
                if between == Between::Nearest { self.graph.le(key, border) } else { self.graph.lt(key, border) };
            out = self.graph.select(left, piece, out);
        }
        out
    }
}

/// A key of a table that has to lie inside it.
#[derive(Clone, Debug)]
pub struct Inside {
    table: Rc<Table>,
    axis: Axis,
    key: expr::Id,
}

impl Inside {
    /// The node of the key.
    pub fn key(&self) -> expr::Id {
        self.key
    }

    /// What to say where the key is `value`: an error, or a warning where the table clamps.
    pub fn said(&self, value: f64, span: Span) -> crate::diagnostics::Diagnostic {
        match self.table.beyond {
            Beyond::Clamp { .. } => errors::clamped(&self.table, &self.axis, value, span),
            Beyond::Error | Beyond::Extrapolate => errors::outside_table(&self.table, &self.axis, value, span),
        }
    }

    /// Whether the table has no value there.
    pub fn is_error(&self) -> bool {
        self.table.beyond == Beyond::Error
    }
}

impl Axis {
    /// The first and the last point.
    pub(super) fn ends(&self) -> (f64, f64) {
        (self.points[0], self.points[self.points.len() - 1])
    }

    /// The point at or below `key`, and how far the key lies from it to the next.
    fn place(&self, key: f64, between: Between) -> (usize, f64) {
        let n = self.points.len();
        if n == 1 {
            return (0, 0.0);
        }
        let below = self.points.partition_point(|p| *p <= key).saturating_sub(1).min(n - 2);
        let logs = matches!(between, Between::LogLinear | Between::LogLog);
        let x = if logs { scalar::log2(key.max(f64::MIN_POSITIVE)) } else { key };
        let part = (x - self.scaled[below]) / (self.scaled[below + 1] - self.scaled[below]);
        match between {
            Between::Nearest => (below, if part > 0.5 { 1.0 } else { 0.0 }),
            Between::Linear | Between::LogLinear | Between::LogLog => (below, part),
        }
    }
}
