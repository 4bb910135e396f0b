//! What numbers written in devices and links give away.

use super::{Checker, errors};
use crate::syntax::ast::{BinaryOp, Block, Decl, Expr, ExprKind, ItemKind, Number};
use crate::units::{self, Unit};

impl<'p> Checker<'p, '_> {
    /// A bandwidth in bytes whose number is a common bit rate.
    pub(super) fn bits_as_bytes(&mut self, decl: &'p Decl, block: &'p Block) {
        let lower = decl.name.text.to_ascii_lowercase();
        let network = ["ib_", "eth", "roce", "nic", "hdr", "ndr", "edr", "xdr"].iter().any(|w| lower.contains(w));
        if !network {
            return;
        }
        for item in &block.items {
            let ItemKind::Assign { target, value } = &item.kind else { continue };
            let ExprKind::Number { value: number, unit: Some((unit, _)) } = &value.kind else { continue };
            let rate = match number {
                Number::Int(v) => *v as f64,
                Number::Real(v) => *v,
            };
            let common = [100.0, 200.0, 400.0, 800.0].iter().any(|c| rate.total_cmp(c).is_eq());
            if target.name.text == "bandwidth" && unit == "GB/s" && common {
                let text = errors::trimmed(rate);
                self.sink.warn(errors::bits_as_bytes(&decl.name.text, &text, value.span));
            }
        }
    }

    /// `usable` above `memory`, where both are written out.
    pub(super) fn usable(&mut self, block: &'p Block) {
        let field = |name: &str| {
            block.items.iter().find_map(|i| match &i.kind {
                ItemKind::Assign { target, value } if target.name.text == name && target.suffixes.is_empty() => {
                    Some(value)
                }
                _ => None,
            })
        };
        let (Some(usable), Some(memory)) = (field("usable"), field("memory")) else { return };
        if let (Some((u, a)), Some((m, b))) = (constant(usable, 0), constant(memory, 0))
            && a == Unit::bytes()
            && b == a
            && u > m
        {
            let written = self.sources.snippet(memory.span);
            self.error(errors::usable_above_memory(usable.span, u, m, written, memory.span));
        }
    }
}

/// The value of an expression of literals, in base units.
pub(super) fn constant(e: &Expr, depth: u32) -> Option<(f64, Unit)> {
    if depth > 32 {
        return None;
    }
    match &e.kind {
        ExprKind::Number { value, unit } => {
            let v = match value {
                Number::Int(v) => *v as f64,
                Number::Real(v) => *v,
            };
            let Some((text, _)) = unit else { return Some((v, Unit::none())) };
            let (scale, unit) = units::lookup(text, &|_| false).ok()?;
            Some((v * scale.num as f64 / scale.den as f64, unit))
        }
        ExprKind::Binary(op, _, a, b) => {
            let ((x, u), (y, v)) = (constant(a, depth + 1)?, constant(b, depth + 1)?);
            match op {
                BinaryOp::Add if u == v => Some((x + y, u)),
                BinaryOp::Sub if u == v => Some((x - y, u)),
                BinaryOp::Mul => Some((x * y, u.mul(&v))),
                _ => None,
            }
        }
        _ => None,
    }
}
