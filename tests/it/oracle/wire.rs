//! Bytes one device sends, by kind and axes.

use super::case::Translated;
use crate::eval::eval;
use parc::diagnostics::Sink;
use parc::graph::{NormKind, OpKind, ValueRole};
use parc::partition::{Bytes, Collective, CollectiveKind, Phase, Purpose, StepKind, partition_with, verify};
use serde_json::Value;
use std::collections::BTreeMap;

/// `all-gather@tp` to bytes.
pub(super) type Wire = BTreeMap<String, f64>;

/// Everything is bf16.
const BF16: f64 = 2.0;

/// What one device sends with rings, given the larger side of a collective over `n` ranks.
pub(super) fn sent(kind: &str, bytes: f64, n: f64) -> f64 {
    match kind {
        "all-reduce" => 2.0 * (n - 1.0) / n * bytes,
        "collective-permute" => bytes,
        _ => (n - 1.0) / n * bytes,
    }
}

/// The sum over a report's collectives that `wanted` picks.
pub(super) fn total(report: &Value, wanted: impl Fn(&Value) -> bool) -> Wire {
    let mut wire = Wire::new();
    for c in report["collectives"].as_array().into_iter().flatten().filter(|c| wanted(c)) {
        let kind = c["kind"].as_str().expect("a collective has a kind");
        let axes: Vec<_> = c["axes"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let number = |key: &str| c[key].as_f64().expect("a collective has sizes");
        let bytes = number("operand_bytes").max(number("result_bytes"));
        let one = sent(kind, bytes, number("group_size"));
        *wire.entry(format!("{kind}@{}", axes.join("+"))).or_default() += one * number("count");
    }
    wire
}

/// What the report says, without collectives of scalars and of ids.
pub(super) fn expected(report: &Value) -> Wire {
    total(report, |c| {
        let bytes = c["operand_bytes"].as_f64().unwrap_or(0.0).max(c["result_bytes"].as_f64().unwrap_or(0.0));
        c["dtype"].as_str() != Some("s32") && bytes > 4.0
    })
}

/// The same with every all-reduce as a reduce-scatter and an all-gather.
pub(super) fn as_halves(wire: &Wire) -> Wire {
    let mut out = Wire::new();
    for (key, bytes) in wire {
        if let Some(axes) = key.strip_prefix("all-reduce@") {
            *out.entry(format!("reduce-scatter@{axes}")).or_default() += bytes / 2.0;
            *out.entry(format!("all-gather@{axes}")).or_default() += bytes / 2.0;
        } else {
            *out.entry(key.clone()).or_default() += bytes;
        }
    }
    out
}

/// Equal to the byte.
pub(super) fn same(a: &Wire, b: &Wire) -> bool {
    let keys = a.keys().chain(b.keys());
    keys.into_iter().all(|k| (a.get(k).unwrap_or(&0.0) - b.get(k).unwrap_or(&0.0)).abs() < 1.0)
}

impl Translated {
    /// Partitions the case and adds up what a device sends. What is evened out:
    /// - slices, scalars and ids count nothing, and neither does what follows the gradients (the case has no update);
    /// - `reduce_sum` and the gradients of norm gains are summed in fp32 there, twice the bytes.
    pub(super) fn wire(mut self) -> Result<Wire, String> {
        let (norm_extra, softmax_extra, loss_extra) = (0.0, 0.0, 0.0);
        let bytes = Bytes {
            param: BF16,
            act: BF16,
            wire: BF16,
            grad: BF16,
            reduce: BF16,
            gather: BF16,
            logits: BF16,
            norm_extra,
            softmax_extra,
            loss_extra,
        };
        let mut sink = Sink::new();
        let sharded = partition_with(&self.graph, &self.layout, &bytes, &mut self.exprs, &mut sink, &self.fixed);
        if let Some(first) = sink.finish().first() {
            return Err(first.message.clone());
        }
        let broken = verify(&self.graph, &self.layout, &sharded);
        assert!(broken.is_empty(), "{broken:?}");
        let mut wire = Wire::new();
        let number = |id| eval(&self.exprs, &[], id);
        for (at, unit) in sharded.units.iter().enumerate() {
            let count = self.graph.units[at].count as f64;
            for id in unit.forward.iter().chain(&unit.backward).chain(&unit.update) {
                let step = &sharded.flow[*id];
                let StepKind::Collective(c) = &step.kind else { continue };
                if !self.counts(c, step.phase) {
                    continue;
                }
                let ranks: f64 = c.axes.iter().map(|a| number(self.layout.axis(*a).size)).product();
                let wide = if self.summed_wide(c) { 2.0 } else { 1.0 };
                let kind = if c.kind == CollectiveKind::Permute { "collective-permute" } else { c.kind.name() };
                *wire.entry(self.key(kind, &c.axes)).or_default() += count * wide * sent(kind, number(c.bytes), ranks);
            }
            for param in &unit.params {
                let value = self.graph.params[param.param as usize].value;
                if self.is_gain(value) && !param.grad_axes.is_empty() {
                    let ranks: f64 = param.grad_axes.iter().map(|a| number(self.layout.axis(*a).size)).product();
                    *wire.entry(self.key("all-reduce", &param.grad_axes)).or_default() +=
                        count * sent("all-reduce", number(param.elements) * BF16, ranks);
                }
            }
        }
        Ok(wire)
    }

    fn key(&self, kind: &str, axes: &[parc::layout::AxisId]) -> String {
        let names: Vec<_> = axes.iter().map(|a| self.layout.axis(*a).name.as_str()).collect();
        format!("{kind}@{}", names.join("+"))
    }

    fn counts(&self, c: &Collective, phase: Phase) -> bool {
        let value = self.graph.value(c.value);
        let update = phase == Phase::Update && c.purpose == Purpose::GatherParam;
        let noise = matches!(value.role, ValueRole::Input | ValueRole::Loss);
        c.kind != CollectiveKind::Slice && !update && !noise
    }

    fn summed_wide(&self, c: &Collective) -> bool {
        let op = self.graph.producer(c.value);
        op.is_some_and(|op| matches!(self.graph.flow[op].kind, OpKind::Sum { .. }))
    }

    fn is_gain(&self, value: parc::graph::ValueId) -> bool {
        self.graph.ops().any(|(_, op)| {
            matches!(op.kind, OpKind::Norm { kind: NormKind::Rms | NormKind::Layer, .. })
                && op.inputs[1..].contains(&value)
        })
    }
}
