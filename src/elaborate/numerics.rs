//! Number formats and the optimizer of a job.

use super::errors;
use crate::eval::{Evaluator, Record, Value};
use crate::source::Span;
use crate::syntax::ast::ItemKind;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A number format.
#[derive(Clone, Debug)]
pub struct Dtype<'p> {
    /// Its name.
    pub name: String,
    /// Bytes of an element, its share of a scale included.
    pub bytes: f64,
    /// The declaration's value.
    pub record: Rc<Record<'p>>,
}

/// Formats by class, and the optimizer.
#[derive(Clone, Debug)]
pub struct Numerics<'p> {
    /// Class (`param`, `act`, …) to format; absent where the class has none (`master = none`).
    pub formats: BTreeMap<&'static str, Dtype<'p>>,
    /// The precision's name.
    pub precision: String,
    /// The optimizer.
    pub optimizer: Rc<Record<'p>>,
    /// Its tensors for each parameter.
    pub tensors: usize,
    /// FLOP of an update for each parameter.
    pub flops_per_param: f64,
}

const CLASSES: &[&str] = &[
    "param",
    "act",
    "compute",
    "grad_compute",
    "accumulate",
    "grad",
    "reduce",
    "gather",
    "wire",
    "master",
    "state",
    "logits",
    "kv",
];

impl<'p> Numerics<'p> {
    /// Reads the formats of `precision` and the tensors of `optimizer`.
    pub fn new(
        eval: &mut Evaluator<'p, '_>,
        precision: &Rc<Record<'p>>,
        optimizer: &Rc<Record<'p>>,
        span: Span,
    ) -> Option<Self> {
        for given in &precision.given {
            if let Some(item) = given.block.items.iter().find(|i| matches!(i.kind, ItemKind::In { .. })) {
                eval.sink.error(
                    errors::not_supported("a precision that differs by region", span).label(item.span, "differs here"),
                );
                return None;
            }
        }
        let mut formats = BTreeMap::new();
        for class in CLASSES {
            match precision.fields.get(*class) {
                Some(Value::Record(r)) if r.kind == "dtype" => {
                    formats.insert(*class, Dtype::new(r));
                }
                Some(Value::Word(w)) if w.name == "none" && *class == "master" => {}
                _ => {
                    eval.sink.error(errors::format_missing(class, &precision.name, span));
                    return None;
                }
            }
        }
        let tensors = match optimizer.fields.get("tensors") {
            Some(Value::List(l)) => l.len(),
            _ => 0,
        };
        if optimizer.fields.get("shape").and_then(Value::as_word) == Some("row") {
            eval.sink.error(errors::not_supported("an optimizer with one element a row", span));
            return None;
        }
        if let Some(Value::Func(f)) = optimizer.fields.get("cost") {
            eval.sink.error(
                errors::not_supported("an optimizer with a cost of its own", span).label(f.decl.span, "this cost"),
            );
            return None;
        }
        if precision.fields.get("scale").is_some_and(|v| v.as_word() != Some("none")) {
            eval.sink.error(errors::not_supported("scaled number formats", span));
            return None;
        }
        if formats.get("compute").map(|d: &Dtype<'p>| &d.name) != formats.get("grad_compute").map(|d| &d.name) {
            eval.sink.error(errors::not_supported("a backward that computes in another format than the forward", span));
            return None;
        }
        let flops_per_param = optimizer.fields.get("flops_per_param").and_then(Value::as_f64).unwrap_or(0.0);
        let precision = precision.name.to_string();
        Some(Self { formats, precision, optimizer: Rc::clone(optimizer), tensors, flops_per_param })
    }

    /// Bytes of an element of `class`; 0 where it has no format.
    pub fn bytes(&self, class: &str) -> f64 {
        self.formats.get(class).map_or(0.0, |d| d.bytes)
    }

    /// Bytes of optimizer state for each parameter, the master copy included.
    pub fn state_bytes(&self) -> f64 {
        self.tensors as f64 * self.bytes("state") + self.bytes("master")
    }
}

impl<'p> Dtype<'p> {
    fn new(record: &Rc<Record<'p>>) -> Self {
        let field = |name| record.fields.get(name).and_then(Value::as_f64).unwrap_or(0.0);
        let block = field("block");
        let scale = if block > 0.0 { field("scale_bits") / block } else { 0.0 };
        Self { name: record.name.to_string(), bytes: (field("bits") + scale) / 8.0, record: Rc::clone(record) }
    }
}
