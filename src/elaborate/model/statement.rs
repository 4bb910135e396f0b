//! Statements: what a tensor expression is assigned to, and the dimensions it has to have.

use super::super::{errors, operators};
use super::{Builder, dims_of_target};
use crate::eval::Value;
use crate::graph::{DimId, ValueId};
use crate::limits;
use crate::source::Span;
use crate::syntax::ast::{self, Expr, Name};

impl<'p> Builder<'p, '_, '_> {
    pub(super) fn assign(&mut self, target: &'p ast::Target, value: &'p Expr) -> Option<()> {
        let alone = !self.in_unit && self.next_unit.is_none();
        if alone {
            self.next_unit = Some((target.name.text.to_string(), target.span));
        }
        let announced = match dims_of_target(target) {
            Ok(names) => names,
            Err(error) => {
                self.eval.sink.error(*error);
                return None;
            }
        };
        let makes_one = operators::makes_dimension(value);
        let dims = match &announced {
            None => self.scope.tensors.get(&target.name.text).map(|v| self.ops.value(*v).dims.clone()),
            // A dispatch makes the dimension of its slots: it is known afterwards.
            Some(names) if makes_one => {
                self.announced.clone_from(names);
                Some(names.iter().filter_map(|n| self.scope.dims.get(&n.text).copied()).collect())
            }
            Some(names) => Some(self.known_dims(names)?),
        };
        let before = self.ops.values.len();
        let id = self.tensor(value, dims.as_deref())?;
        let dims = match announced.filter(|_| makes_one) {
            Some(names) => Some(self.known_dims(&names)?),
            None => dims,
        };
        if let Some(dims) = &dims {
            self.check_dims(id, dims, value.span, target.span)?;
        }
        if id.0 as usize >= before && self.ops.value(id).name.is_empty() {
            self.ops.values[id.0 as usize].name = target.name.text.to_string();
        }
        self.scope.tensors.insert(target.name.text.clone(), id);
        if self.ops.values.len() > limits::MODEL_VALUES || self.made > limits::MODEL_VALUES_TRIED {
            self.eval.sink.error(errors::model_limit(self.ops.values.len(), self.made, value.span));
            return None;
        }
        if alone {
            self.next_unit = None;
            self.in_unit = false;
        }
        Some(())
    }

    pub(in crate::elaborate) fn known_dims(&mut self, names: &[&Name]) -> Option<Vec<DimId>> {
        let mut dims = Vec::new();
        for name in names {
            let id = self.known_dim(name)?;
            if dims.contains(&id) {
                self.eval.sink.error(errors::dim_repeated(name));
                return None;
            }
            dims.push(id);
        }
        Some(dims)
    }

    /// The value of `return e`: its target is the block's result.
    pub(super) fn returned(&mut self, e: &'p Expr) -> Option<ValueId> {
        let dims = self.result_dims()?;
        let id = self.tensor(e, dims.as_ref().map(|(d, _)| d.as_slice()))?;
        if let Some((dims, span)) = &dims {
            self.check_dims(id, dims, e.span, *span)?;
        }
        Some(id)
    }

    /// The dimensions the block being run announces.
    #[expect(clippy::option_option, reason = "the outer level says whether something was reported")]
    fn result_dims(&mut self) -> Option<Option<(Vec<DimId>, Span)>> {
        let Some(Value::List(names)) = self.scope.env.find("return").cloned() else { return Some(None) };
        let mut dims = Vec::new();
        for v in names.iter() {
            let Value::Str(name) = v else { continue };
            dims.push(*self.scope.dims.get(name)?);
        }
        let span = self.call_site.unwrap_or(self.ops.regions[self.region.0 as usize].span);
        Some(Some((dims, span)))
    }

    pub(super) fn check_dims(&mut self, id: ValueId, wanted: &[DimId], span: Span, target: Span) -> Option<()> {
        let found = &self.ops.value(id).dims;
        let name = |d: &DimId| self.ops.dim(*d).name.clone();
        let missing: Vec<_> = wanted.iter().filter(|d| !found.contains(d) && !self.rides(**d)).map(name).collect();
        let extra: Vec<_> = found.iter().filter(|d| !wanted.contains(d) && !self.rides(**d)).map(name).collect();
        if missing.is_empty() && extra.is_empty() {
            return Some(());
        }
        let wanted: Vec<_> = wanted.iter().map(name).collect();
        let found = self.dims_text(id);
        self.eval.sink.error(errors::dims_mismatch(
            &found,
            &wanted.join(", "),
            &missing,
            &extra,
            self.at(span),
            target,
        ));
        None
    }

    /// Whether `dim` came with an argument of the block that does not name it.
    pub(in crate::elaborate) fn rides(&self, dim: DimId) -> bool {
        self.scope.riding.contains(&dim)
    }

    /// Where to point for something at `span`: inside the library, the user's call.
    pub(in crate::elaborate) fn at(&self, span: Span) -> Span {
        self.call_site.unwrap_or(span)
    }

    pub(in crate::elaborate) fn dims_text(&self, id: ValueId) -> String {
        let dims = &self.ops.value(id).dims;
        dims.iter().map(|d| self.ops.dim(*d).name.clone()).collect::<Vec<_>>().join(", ")
    }
}
