//! Repeats: iterations with equal bodies are elaborated once, one after another as one unit; inside an iteration every
//! iteration is written out.

use super::super::errors;
use super::{Builder, Scope};
use crate::eval::{Env, Num, Quantity, Value, Wanted};
use crate::graph::{Mark, Unit as ModelUnit};
use crate::layout::PathPart;
use crate::limits;
use crate::syntax::ast::{Block, Expr, ItemKind, Name};
use std::rc::Rc;

/// A repeat being run.
#[derive(Copy, Clone)]
struct Loop<'p> {
    name: &'p Name,
    index: Option<&'p Name>,
    block: &'p Block,
    /// How many iterations.
    of: u32,
}

impl<'p> Builder<'p, '_, '_> {
    pub(super) fn repeat(
        &mut self,
        name: &'p Name,
        count: &'p Expr,
        index: Option<&'p Name>,
        block: &'p Block,
    ) -> Option<()> {
        let of = self.iterations(name, count)?;
        let body = Loop { name, index, block, of };
        if of == 0 {
            return Some(());
        }
        let before = self.scope.clone();
        if self.repeated {
            for i in 0..of {
                let part = PathPart::Iterations { first: i, count: 1, of };
                self.iteration(&body, i, part, &before)?;
            }
        } else {
            self.repeated = true;
            self.units_of(&body, &before)?;
            self.repeated = false;
            self.in_unit = false;
        }
        Some(())
    }

    fn iterations(&mut self, name: &'p Name, count: &'p Expr) -> Option<u32> {
        let env = Rc::clone(&self.scope.env);
        let value = self.eval.eval(count, &env, &Wanted::Int);
        match self.eval.require(value, &Wanted::Int, &format!("the count of `{}`", name.text), count.span) {
            Value::Num(Quantity { num: Num::Int(n), .. }) if (0..=limits::UNITS).contains(&n) => Some(n as u32),
            Value::Num(Quantity { num: Num::Int(n), .. }) => {
                self.eval.sink.error(errors::repeat_range(&name.text, n, limits::UNITS, count.span));
                None
            }
            Value::Error(_) => None,
            other => {
                let noun = other.noun();
                self.eval.sink.error(errors::wrong_value("a repeat", "a known whole number", &noun, count.span));
                None
            }
        }
    }

    /// A unit for each run of iterations with equal bodies.
    fn units_of(&mut self, body: &Loop<'p>, before: &Scope<'p>) -> Option<()> {
        let path = self.ops.param_path(self.region);
        let name = if path.is_empty() { body.name.text.to_string() } else { format!("{path}.{}", body.name.text) };
        let mut first = 0;
        while first < body.of {
            let unit = ModelUnit { name: name.clone(), count: 1, repeated: true, span: body.name.span };
            self.ops.units.push(unit);
            self.in_unit = true;
            let mark = self.ops.mark();
            let (entry, known) = (self.scope.clone(), self.params.len());
            self.iteration(body, first, PathPart::every(body.of), before)?;
            let borders = self.extents.borders.iter().filter(|(name, _)| *name == *body.name.text).map(|(_, at)| *at);
            let end = borders.filter(|at| (first + 1..body.of).contains(at)).min().unwrap_or(body.of);
            let mut count = if body.index.is_some() { 1 } else { end - first };
            while first + count < end {
                // The next one in place of the first: equal to the last id, or the start of another run.
                let scope = std::mem::replace(&mut self.scope, entry.clone());
                let made = self.ops.split_off(&mark);
                let params = self.params.split_off(known);
                self.iteration(body, first + count, PathPart::every(body.of), before)?;
                let next = self.ops.split_off(&mark);
                let alike = made == next;
                self.params.truncate(known);
                self.params.extend(params);
                self.ops.append(made);
                self.scope = scope;
                if !alike {
                    break;
                }
                count += 1;
            }
            if let Some(unit) = self.ops.units.last_mut() {
                unit.count = i64::from(count);
            }
            self.name_run(&mark, first, count, body.of);
            first += count;
        }
        Some(())
    }

    /// Writes into paths which iterations a run covers.
    fn name_run(&mut self, mark: &Mark, first: u32, count: u32, of: u32) {
        if count == of {
            return;
        }
        let depth = self.ops.regions[self.region.0 as usize].path.len() + 1;
        for region in self.ops.regions.iter_mut().skip(mark.regions()) {
            region.path[depth] = PathPart::Iterations { first, count, of };
        }
        for at in mark.params()..self.ops.params.len() {
            let value = self.ops.params[at].value;
            let (old, v) = (self.ops.params[at].path.clone(), self.ops.value(value));
            let path = format!("{}.{}", self.ops.param_path(v.region), v.name);
            if let Some(found) = self.params.shift_remove(&old) {
                self.params.insert(path.clone(), found);
            }
            self.ops.params[at].path = path;
        }
    }

    /// Runs the body once; values and dimensions made in it are its own.
    fn iteration(&mut self, body: &Loop<'p>, i: u32, part: PathPart, before: &Scope<'p>) -> Option<()> {
        if let Some(index) = body.index {
            self.scope.env = Env::with(&self.scope.env, vec![(index.text.clone(), Value::int(i128::from(i)))]);
        }
        let outer = self.enter(&[PathPart::Name(body.name.text.to_string()), part], body.name.span);
        if let Some((_, span)) = self.items(body.block)? {
            self.eval.sink.error(errors::misplaced("a repeat", span));
            return None;
        }
        self.region = outer;
        self.carried(body, before)?;
        self.scope.tensors.retain(|name, _| before.tensors.contains_key(name));
        self.scope.dims.clone_from(&before.dims);
        self.scope.env = Rc::clone(&before.env);
        Some(())
    }

    /// What a body leaves is what the next iteration finds: carried values keep their dimensions.
    fn carried(&mut self, body: &Loop<'p>, before: &Scope<'p>) -> Option<()> {
        for (tensor, old) in &before.tensors {
            if let Some(new) = self.scope.tensors.get(tensor)
                && !same_dims(self, *new, *old)
            {
                let (found, wanted) = (self.dims_text(*new), self.dims_text(*old));
                let assigned = body.block.items.iter().rev().find_map(|i| match &i.kind {
                    ItemKind::Assign { target, .. } if target.name.text == *tensor => Some(target.span),
                    _ => None,
                });
                let span = assigned.unwrap_or(self.ops.value(*new).span);
                let entry = self.ops.value(*old).span;
                self.eval.sink.error(errors::carried(tensor, &body.name.text, &wanted, &found, span, entry));
                return None;
            }
        }
        Some(())
    }
}

/// Whether two values have the same dimensions, in whatever order.
fn same_dims(b: &Builder<'_, '_, '_>, x: crate::graph::ValueId, y: crate::graph::ValueId) -> bool {
    let (x, y) = (&b.ops.value(x).dims, &b.ops.value(y).dims);
    x.len() == y.len() && x.iter().all(|d| y.contains(d))
}
