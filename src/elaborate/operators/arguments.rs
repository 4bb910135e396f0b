//! Arguments of operators: tensors by position, the rest by name.

use super::super::errors;
use super::super::model::Builder;
use super::number;
use crate::eval::{Num, Quantity, Truth, Value, Wanted};
use crate::graph::DimId;
use crate::source::Span;
use crate::syntax::ast::{Arg, Expr, ExprKind, Name};
use std::rc::Rc;

/// What an operator is called with.
pub(super) struct Arguments<'p> {
    /// The operator.
    pub(super) op: &'p str,
    /// Tensors, in order.
    pub(super) positional: Vec<&'p Expr>,
    /// Everything else.
    pub(super) named: Vec<(&'p Name, &'p Expr)>,
    /// The call.
    pub(super) span: Span,
}

impl<'p> Arguments<'p> {
    pub(super) fn new(op: &'p str, args: &'p [Arg], span: Span) -> Self {
        let mut out = Self { op, positional: Vec::new(), named: Vec::new(), span };
        for a in args {
            match a {
                Arg::Positional(e) => out.positional.push(e),
                Arg::Named(n, e) | Arg::Domain(n, e) => out.named.push((n, e)),
            }
        }
        out
    }

    /// Reports that the operator needs something else.
    pub(super) fn wants(&self, b: &mut Builder<'p, '_, '_>, what: &str) {
        let at = b.at(self.span);
        b.eval.sink.error(errors::operator_use(self.op, what, at));
    }

    /// As many tensors as `counts` allows, and no other names than `names`; `None` for names takes any.
    pub(super) fn shape(
        &self,
        b: &mut Builder<'p, '_, '_>,
        counts: std::ops::RangeInclusive<usize>,
        names: Option<&[&str]>,
    ) -> Option<()> {
        if !counts.contains(&self.positional.len()) {
            let (least, most) = (*counts.start(), *counts.end());
            let what = match (least, most) {
                (1, 1) => "1 tensor".to_string(),
                (a, z) if a == z => format!("{a} tensors"),
                (a, usize::MAX) => format!("{a} tensors or more"),
                (a, z) => format!("{a} to {z} tensors"),
            };
            self.wants(b, &what);
            return None;
        }
        let unknown = names.and_then(|names| self.named.iter().find(|(n, _)| !names.contains(&n.text.as_str())));
        if let Some((n, _)) = unknown {
            let known: Vec<_> = names.unwrap_or_default().iter().map(ToString::to_string).collect();
            b.eval.sink.error(crate::eval::errors::unknown_argument(&n.text, n.span, self.op, &known, n.span));
            return None;
        }
        Some(())
    }

    /// The argument called `name`.
    pub(super) fn get(&self, name: &str) -> Option<&'p Expr> {
        self.named.iter().find(|(n, _)| n.text == name).map(|(_, e)| *e)
    }

    /// `name = DIMENSION`
    pub(super) fn dim(&self, b: &mut Builder<'p, '_, '_>, name: &str) -> Option<DimId> {
        match self.get(name).and_then(plain_name) {
            Some(dim) => b.known_dim(dim),
            None => {
                self.wants(b, &format!("`{name} = DIMENSION`"));
                None
            }
        }
    }

    /// `name = DIMENSION` or `name = [D1, D2]`
    pub(super) fn dim_list(&self, b: &mut Builder<'p, '_, '_>, name: &str) -> Option<Vec<DimId>> {
        match self.get(name).and_then(names) {
            Some(names) => b.known_dims(&names),
            None => {
                self.wants(b, &format!("`{name} = DIMENSION`, or a list of them"));
                None
            }
        }
    }

    /// Every named argument as `OLD = NEW` of dimensions.
    pub(super) fn renamings(&self, b: &mut Builder<'p, '_, '_>) -> Option<Vec<(DimId, DimId)>> {
        let mut out = Vec::new();
        for (old, new) in &self.named {
            let Some(new) = plain_name(new) else {
                self.wants(b, "`OLD = NEW` of dimensions");
                return None;
            };
            out.push((b.known_dim(old)?, b.known_dim(new)?));
        }
        if out.is_empty() {
            self.wants(b, "one `OLD = NEW` of dimensions");
            return None;
        }
        Some(out)
    }

    /// `name = n`, a known whole number of at least 1; `default` where it is absent.
    pub(super) fn whole(&self, b: &mut Builder<'p, '_, '_>, name: &str, default: i64) -> Option<i64> {
        let Some(e) = self.get(name) else { return Some(default) };
        let env = Rc::clone(&b.scope.env);
        let value = b.eval.eval(e, &env, &Wanted::Int);
        match b.eval.require(value, &Wanted::Int, &format!("`{name}`"), e.span) {
            Value::Num(Quantity { num: Num::Int(n), .. }) if (0..=1 << 40).contains(&n) => Some(n as i64),
            Value::Error(_) => None,
            _ => {
                b.eval.sink.error(errors::operator_use(name, "a known whole number of at least 0", e.span));
                None
            }
        }
    }

    /// `name = x`, a known number; `default` where it is absent.
    pub(super) fn real(&self, b: &mut Builder<'p, '_, '_>, name: &str, default: f64) -> Option<f64> {
        let Some(e) = self.get(name) else { return Some(default) };
        let found = number(b, e);
        if found.is_none() {
            b.eval.sink.error(errors::operator_use(name, "a known number", e.span));
        }
        found
    }

    /// `name = true`; `default` where it is absent.
    pub(super) fn truth(&self, b: &mut Builder<'p, '_, '_>, name: &str, default: bool) -> Option<bool> {
        let Some(e) = self.get(name) else { return Some(default) };
        let env = Rc::clone(&b.scope.env);
        match b.eval.eval(e, &env, &Wanted::Any) {
            Value::Bool(Truth::Known(v)) => Some(v),
            Value::Error(_) => None,
            _ => {
                b.eval.sink.error(errors::operator_use(name, "true or false", e.span));
                None
            }
        }
    }
}

/// The name an expression is.
pub(super) fn plain_name(e: &Expr) -> Option<&Name> {
    match &e.kind {
        ExprKind::Path(path) if path.len() == 1 => path.first(),
        _ => None,
    }
}

/// The names a list of names, or one name, is.
pub(super) fn names(e: &Expr) -> Option<Vec<&Name>> {
    match &e.kind {
        ExprKind::List(list) => list.iter().map(plain_name).collect(),
        _ => plain_name(e).map(|n| vec![n]),
    }
}
