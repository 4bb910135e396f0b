//! The values of a job's fields: declarations, records, counts.

use super::super::errors;
use super::{Builder, Length, Parameter};
use crate::eval::{Domain, Env, Hole, Instance, Num, Quantity, Record, Value, Wanted};
use crate::expr::{self, Input};
use crate::layout::Layout;
use crate::layout::Pass;
use crate::source::Span;
use crate::syntax::ast::{self, Expr, ExprKind, Kind};
use crate::units::{Base, Unit};
use smol_str::SmolStr;
use std::rc::Rc;

impl<'p> Builder<'p, '_, '_> {
    /// The field as a bare name, for reports.
    pub(super) fn written(&self, field: &str) -> Option<String> {
        match &self.values.get(field)?.expr.kind {
            ast::ExprKind::Path(p) => p.last().map(|n| n.text.to_string()),
            _ => None,
        }
    }

    pub(super) fn field(&mut self, name: &str) -> Option<(Value<'p>, Span)> {
        let field = self.values.get(name).cloned()?;
        if field.open {
            let hole = Hole { span: field.expr.span, domain: Some((field.expr, field.env)) };
            return Some((Value::Hole(Rc::new(hole)), field.expr.span));
        }
        Some((self.eval.eval(field.expr, &field.env, &Wanted::Any), field.expr.span))
    }

    pub(super) fn instance(&mut self, field: &str, kind: Kind) -> Option<(Rc<Instance<'p>>, Span)> {
        let Some((value, span)) = self.field(field) else {
            self.eval.sink.error(errors::field_missing(field, &format!("job `{}`", self.name.text), self.name.span));
            return None;
        };
        match self.settled(field, value) {
            Value::Instance(i) if i.decl.kind == kind => {
                let at = Instance { span, ..(*i).clone() };
                Some((Rc::new(at), span))
            }
            Value::Error(_) => None,
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
        let value = match self.settled(field, value) {
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
            match self.settled("cost", value) {
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

    /// A field's value, a choice settled.
    fn settled(&mut self, field: &str, value: Value<'p>) -> Value<'p> {
        match value {
            Value::Hole(hole) => self.eval.choose(field, &hole, None),
            other => other,
        }
    }

    /// A field that counts something: an input of the graph, so that it can vary. `open` is what `?` stands for.
    pub(super) fn count(
        &mut self,
        field: &str,
        unit: &Unit,
        default: Option<i64>,
        open: Option<Domain<'p>>,
        parameters: &mut Vec<Parameter>,
    ) -> Option<expr::Id> {
        let (value, span) = match (self.settings.number(field), self.field_place(field)) {
            (Some(n), place) => (i128::from(n), place.unwrap_or(self.name.span)),
            (None, Some(span)) => {
                let (mut value, _) = self.field(field)?;
                if let Value::Hole(hole) = value {
                    value = self.eval.choose(field, &hole, open);
                }
                if let Value::Word(_) = value {
                    self.eval.sink.error(errors::not_supported(&format!("lengths that vary as `{field}`"), span));
                    return None;
                }
                match self.eval.require(value, &Wanted::Quantity(unit.clone()), &format!("`{field}`"), span) {
                    Value::Num(Quantity { num: Num::Int(v), .. }) => (v, span),
                    Value::Num(Quantity { num: Num::Sym(id), .. }) if self.eval.graph.kind(id) == expr::Kind::Int => {
                        return self.chosen(field, id, span, parameters);
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
        self.eval.choices.point.push(value as f64);
        parameters.push(Parameter { name: field.to_string(), input: id, value, domain: None, span });
        Some(id)
    }

    /// A count that follows from choices.
    fn chosen(&mut self, field: &str, id: expr::Id, span: Span, parameters: &mut Vec<Parameter>) -> Option<expr::Id> {
        if self.eval.graph.range(id).lo < 1.0 {
            let low = self.eval.graph.range(id).lo as i128;
            self.eval.sink.error(errors::not_positive(field, low, span));
            return None;
        }
        let value = self.eval.graph.eval(&self.eval.choices.point, &[id])[0] as i64;
        parameters.push(Parameter { name: field.to_string(), input: id, value, domain: None, span });
        Some(id)
    }

    /// `steps_to_target`, `steps`, `tokens` or `samples`, the first that is given; a curve may speak of `names`.
    pub(super) fn length(&mut self, names: Vec<(SmolStr, Value<'p>)>) -> Option<Length> {
        let steps = Wanted::Quantity(Unit::base(Base::Step));
        if let Some(field) = self.values.get("steps_to_target").cloned() {
            if matches!(&field.expr.kind, ast::ExprKind::Path(p) if p.len() == 1 && p[0].text == "none") {
                return None;
            }
            let env = Env::with(&field.env, names);
            let value = self.eval.eval(field.expr, &env, &steps);
            let Value::Num(q) = self.eval.require(value, &steps, "`steps_to_target`", field.expr.span) else {
                return None;
            };
            let node = self.eval.node(q.num);
            return Some(Length::Curve(self.eval.graph.to_real(node)));
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

    /// `optimize = all`, or names of passes; none where it is not given.
    pub(super) fn passes(&mut self) -> Vec<Pass> {
        let Some(field) = self.values.get("optimize") else { return Vec::new() };
        let (e, mut named) = (field.expr, Vec::new());
        let list: &[Expr] = match &e.kind {
            ExprKind::List(list) => list,
            _ => std::slice::from_ref(e),
        };
        for e in list {
            let word = match &e.kind {
                ExprKind::Path(path) if path.len() == 1 => path[0].text.as_str(),
                _ => "",
            };
            match (word, Pass::ALL.into_iter().find(|p| p.name() == word)) {
                ("none", _) => {}
                ("all", _) => named.extend(Pass::ALL),
                (_, Some(pass)) => named.push(pass),
                (_, None) => {
                    self.eval.sink.error(errors::unknown_pass(word, e.span));
                }
            }
        }
        Pass::ALL.into_iter().filter(|p| named.contains(p)).collect()
    }

    pub(super) fn field_place(&self, field: &str) -> Option<Span> {
        self.values.get(field).map(|f| f.expr.span)
    }
}

/// What a job's expressions see beside what they declare: the layout's parameters and axes, the counts of the batch.
pub(super) fn names<'p>(
    (layout_name, layout): (&str, &Layout),
    parameters: &[Parameter],
    [batch, sequence, micro_batch]: [expr::Id; 3],
    span: Span,
) -> Vec<(SmolStr, Value<'p>)> {
    let mut record = Record::made("layout", layout_name, span);
    let sizes = parameters.iter().map(|p| (p.name.as_str(), p.input));
    for (name, size) in sizes.chain(layout.named.iter().map(|a| (a.name.as_str(), a.size))) {
        record.fields.insert(name.into(), Value::sym(size, Unit::none()));
    }
    vec![
        ("layout".into(), Value::Record(Rc::new(record))),
        ("batch".into(), Value::sym(batch, Unit::base(Base::Seq))),
        ("sequence".into(), Value::sym(sequence, Unit::base(Base::Tok))),
        ("micro_batch".into(), Value::sym(micro_batch, Unit::base(Base::Seq))),
    ]
}
