//! How long the data of a job is: `sequence`, or `dims` where its model has other dimensions than one of tokens.

use super::super::{errors, model};
use super::{Builder, Field, Parameter};
use crate::eval::Instance;
use crate::expr;
use crate::source::Span;
use crate::syntax::ast::{Body, DimRef, Name};
use crate::units::{self, Base, Unit};
use indexmap::IndexMap;

/// Extents of the data beside the batch.
pub(super) struct Lengths {
    /// Tokens of a sequence; of several dimensions of tokens, the first.
    pub(super) sequence: expr::Id,
    /// Extents given by name.
    pub(super) named: IndexMap<String, expr::Id>,
    /// Where the lengths are given, if tokens are counted by other than one dimension: nothing prices that yet.
    pub(super) several: Option<Span>,
}

impl<'p> Builder<'p, '_, '_> {
    /// The lengths of `model`'s data that `dims` and `sequence` give.
    pub(super) fn lengths(
        &mut self,
        model: &Instance<'p>,
        dims: Vec<(&'p Name, Field<'p>)>,
        parameters: &mut Vec<Parameter>,
    ) -> Option<Lengths> {
        let Body::Block(block) = &model.decl.body else { return None };
        let data = model::data_refs(block);
        let unit = |d: &DimRef| d.unit.as_ref().map_or("", |u| u.text.as_str()).to_string();
        let tokens: Vec<&Name> = data.values().filter(|d| unit(d) == "tok").map(|d| &d.name).collect();
        let given = dims.first().zip(dims.last()).map(|((first, _), (_, last))| first.span.to(last.span));
        let mut named = IndexMap::new();
        for (name, field) in dims {
            // Sequences are the batch's.
            let Some(dim) = data.get(&name.text).filter(|d| unit(d) != "seq") else {
                let known: Vec<_> =
                    data.values().filter(|d| unit(d) != "seq").map(|d| d.name.text.to_string()).collect();
                self.eval.sink.error(errors::dimension_unknown(name, &known));
                return None;
            };
            let user = |n: &str| self.eval.program.units.iter().any(|u| u == n);
            let (_, unit) = units::lookup(&unit(dim), &user).ok()?;
            self.values.insert(name.text.clone(), field);
            named.insert(name.text.to_string(), self.count(&name.text, &unit, None, None, parameters)?);
        }
        let tok = Unit::base(Base::Tok);
        let field = self.values.get("sequence").map(|f| f.span);
        let sequence = match (&tokens[..], field) {
            ([only], None) if named.contains_key(only.text.as_str()) => named[only.text.as_str()],
            ([only], Some(at)) if named.contains_key(only.text.as_str()) => {
                let again = self.values[&only.text].expr.span;
                self.eval.sink.error(errors::length_twice(&only.text, at, again));
                return None;
            }
            ([_], _) => self.count("sequence", &tok, None, None, parameters)?,
            (_, Some(at)) => {
                let length = self.count("sequence", &tok, None, None, parameters)?;
                let length = self.eval.graph.eval(&self.eval.choices.point, &[length])[0] as i64;
                self.eval.sink.error(errors::one_length(&model.decl.name, &tokens, length, at));
                return None;
            }
            // What has no length is told where the model is elaborated.
            (several, None) => {
                let first = several.first().and_then(|n| named.get(n.text.as_str()).copied());
                first.unwrap_or_else(|| self.eval.graph.int(1))
            }
        };
        let several = if tokens.len() == 1 { None } else { given.or(Some(self.name.span)) };
        Some(Lengths { sequence, named, several })
    }
}
