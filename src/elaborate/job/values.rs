//! The values of a job's fields: declarations, records, counts.

use super::super::errors;
use super::{Builder, Length, Parameter};
use crate::eval::{Instance, Num, Quantity, Value, Wanted};
use crate::expr::{self, Input};
use crate::source::Span;
use crate::syntax::ast::{self, Kind};
use crate::units::{Base, Unit};
use std::rc::Rc;

impl<'p> Builder<'p, '_, '_> {
    /// The field as a bare name, for reports.
    pub(super) fn written(&self, field: &str) -> Option<String> {
        match &self.values.get(field)?.0.kind {
            ast::ExprKind::Path(p) => p.last().map(|n| n.text.to_string()),
            _ => None,
        }
    }

    pub(super) fn field(&mut self, name: &str) -> Option<(Value<'p>, Span)> {
        let (e, env, _) = self.values.get(name).cloned()?;
        Some((self.eval.eval(e, &env, &Wanted::Any), e.span))
    }

    pub(super) fn instance(&mut self, field: &str, kind: Kind) -> Option<(Rc<Instance<'p>>, Span)> {
        let Some((value, span)) = self.field(field) else {
            self.eval.sink.error(errors::field_missing(field, &format!("job `{}`", self.name.text), self.name.span));
            return None;
        };
        match value {
            Value::Instance(i) if i.decl.kind == kind => {
                let at = Instance { span, ..(*i).clone() };
                Some((Rc::new(at), span))
            }
            Value::Error(_) => None,
            Value::Hole => {
                self.eval.sink.error(errors::open_choice(field, span));
                None
            }
            other => {
                let noun = other.noun();
                let wanted = format!("a {}", kind.keyword());
                self.eval.sink.error(errors::wrong_value(&format!("`{field}`"), &wanted, &noun, span));
                None
            }
        }
    }

    pub(super) fn record(&mut self, field: &'static str, default: &str) -> Option<(Rc<crate::eval::Record<'p>>, Span)> {
        let (value, span) = match self.field(field) {
            Some(found) => found,
            None => {
                (self.eval.program.std_entry(default).map(|id| self.eval.entry(id, self.name.span))?, self.name.span)
            }
        };
        let value = match value {
            Value::Instance(i) if i.decl.kind.keyword() == field => self.eval.record_of(&i),
            v => v,
        };
        match value {
            Value::Record(r) if r.kind == field => Some((r, span)),
            Value::Error(_) => None,
            other => {
                let noun = other.noun();
                self.eval.sink.error(errors::wrong_value(&format!("`{field}`"), &format!("a {field}"), &noun, span));
                None
            }
        }
    }

    /// The job's cost record and the default one behind it.
    pub(super) fn cost(&mut self) -> Option<Vec<Rc<Instance<'p>>>> {
        let mut out = Vec::new();
        if let Some((value, span)) = self.field("cost") {
            match value {
                Value::Instance(i) if i.decl.kind == Kind::Cost => out.push(i),
                Value::Error(_) => return None,
                other => {
                    let noun = other.noun();
                    self.eval.sink.error(errors::wrong_value("`cost`", "a cost", &noun, span));
                    return None;
                }
            }
        }
        if let Some(id) = self.eval.program.std_entry("default")
            && let Value::Instance(i) = self.eval.entry(id, self.name.span)
        {
            out.push(i);
        }
        Some(out)
    }

    /// A field that counts something: an input of the graph, so that it can vary.
    pub(super) fn count(
        &mut self,
        field: &str,
        base: Base,
        default: Option<i64>,
        parameters: &mut Vec<Parameter>,
        point: &mut Vec<f64>,
    ) -> Option<expr::Id> {
        let unit = Unit::base(base);
        let (value, span) = match (self.settings.number(field), self.field_place(field)) {
            (Some(n), place) => (i128::from(n), place.unwrap_or(self.name.span)),
            (None, Some(span)) => {
                let (value, _) = self.field(field)?;
                if let Value::Word(_) = value {
                    self.eval.sink.error(errors::not_supported(&format!("lengths that vary as `{field}`"), span));
                    return None;
                }
                match self.eval.require(value, &Wanted::Quantity(unit), &format!("`{field}`"), span) {
                    Value::Num(Quantity { num: Num::Int(v), .. }) => (v, span),
                    Value::Hole => {
                        self.eval.sink.error(errors::open_choice(field, span));
                        return None;
                    }
                    Value::Error(_) => return None,
                    other => {
                        let noun = other.noun();
                        self.eval.sink.error(errors::wrong_value(
                            &format!("`{field}`"),
                            "a known whole number",
                            &noun,
                            span,
                        ));
                        return None;
                    }
                }
            }
            (None, None) => match default {
                Some(v) => (i128::from(v), self.name.span),
                None => {
                    let job = format!("job `{}`", self.name.text);
                    self.eval.sink.error(errors::field_missing(field, &job, self.name.span));
                    return None;
                }
            },
        };
        if value < 1 {
            self.eval.sink.error(errors::not_positive(field, value, span));
            return None;
        }
        let Some(value) = i64::try_from(value).ok().filter(|v| *v <= 1 << 40) else {
            self.eval.sink.error(errors::not_supported(&format!("`{field}` above 2^40"), span));
            return None;
        };
        // Wide enough to try neighbours of the point, narrow enough that products stay exact.
        let hi = (value as f64 * 64.0).max(4_096.0);
        let input = Input { name: field.to_string(), kind: expr::Kind::Int, lo: 1.0, hi };
        let id = self.eval.graph.input(input);
        point.push(value as f64);
        parameters.push(Parameter { name: field.to_string(), input: id, value, domain: None, span });
        Some(id)
    }

    /// `steps`, `tokens` or `samples`, the first that is given.
    pub(super) fn length(&mut self) -> Option<Length> {
        if let Some((e, _, _)) = self.values.get("steps_to_target") {
            self.eval.sink.error(errors::not_supported("a job as long as a curve says", e.span));
            return None;
        }
        for (field, base) in [("steps", Base::Step), ("tokens", Base::Tok), ("samples", Base::Seq)] {
            let Some((value, span)) = self.field(field) else { continue };
            let value = self.eval.require(value, &Wanted::Quantity(Unit::base(base)), &format!("`{field}`"), span);
            match value.as_f64() {
                Some(n) if n >= 1.0 => {
                    return Some(match field {
                        "steps" => Length::Steps(n),
                        "tokens" => Length::Tokens(n),
                        _ => Length::Samples(n),
                    });
                }
                Some(n) => {
                    self.eval.sink.error(errors::not_positive(field, n as i128, span));
                }
                None => {}
            }
        }
        None
    }

    pub(super) fn field_place(&self, field: &str) -> Option<Span> {
        self.values.get(field).map(|(e, _, _)| e.span)
    }
}
