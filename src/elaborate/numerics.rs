//! Number formats and the optimizer of a job.

use super::errors;
use crate::eval::{Evaluator, Record, Value, Wanted};
use crate::source::Span;
use crate::syntax::ast::{Expr, ItemKind};
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
    pub(super) fn new(record: &Rc<Record<'p>>) -> Self {
        let field = |name| record.fields.get(name).and_then(Value::as_f64).unwrap_or(0.0);
        let block = field("block");
        let scale = if block > 0.0 { field("scale_bits") / block } else { 0.0 };
        Self { name: record.name.to_string(), bytes: (field("bits") + scale) / 8.0, record: Rc::clone(record) }
    }
}

/// Every format that contractions run in has a peak on `device`; the first that has none is reported, where the user
/// wrote it, or at `used_at`.
pub(super) fn computable<'p>(
    eval: &mut Evaluator<'p, '_>,
    precision: &Record<'p>,
    device: &Record<'p>,
    used_at: Span,
) -> Option<()> {
    let Some(Value::Record(peaks)) = device.fields.get("peak") else { return Some(()) };
    let mut seen: Vec<&str> = Vec::new();
    for given in precision.given.iter().rev() {
        let mut fields: Vec<(&'p str, &'p Expr)> = Vec::new();
        for item in &given.block.items {
            match &item.kind {
                ItemKind::In { block, .. } => {
                    for inner in &block.items {
                        if let ItemKind::Assign { target, value } = &inner.kind {
                            fields.push((&target.name.text, value));
                        }
                    }
                }
                ItemKind::Assign { target, value } if !seen.contains(&target.name.text.as_str()) => {
                    seen.push(&target.name.text);
                    fields.push((&target.name.text, value));
                }
                _ => {}
            }
        }
        for (_, value) in fields.into_iter().filter(|(n, _)| matches!(*n, "compute" | "grad_compute")) {
            let Value::Record(dtype) = eval.eval(value, &given.env, &Wanted::Any) else { continue };
            let runs_as = match dtype.fields.get("computes_as") {
                Some(Value::Record(other)) => other.name.clone(),
                _ => dtype.name.clone(),
            };
            if dtype.kind == "dtype" && !peaks.fields.contains_key(&runs_as) {
                let known: Vec<_> = peaks.fields.keys().map(ToString::to_string).collect();
                let library = eval.program.module(given.env.module).std;
                let at = if library { used_at } else { value.span };
                eval.sink.error(errors::no_peak(&dtype.name, &device.name, &known, at));
                return None;
            }
        }
    }
    Some(())
}
