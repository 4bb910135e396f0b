//! A model's graph read as a decoder of the common family: what launch frameworks take as flags.
//!
//! Read off the ops, not off the model's name: a model of one's own that computes the same is the same.

mod experts;

use super::plan::DecoderInfo;
use crate::expr::Graph;
use crate::graph::{DimId, MapFn, NormKind, Op, OpGraph, OpKind, ValueId, ValueRole};

/// The decoder `ops` is, or the first thing that keeps it from being one.
pub(super) fn decoder(ops: &OpGraph, graph: &Graph) -> Result<DecoderInfo, String> {
    let reader = Reader { ops, graph };
    reader.read()
}

struct Reader<'a> {
    ops: &'a OpGraph,
    graph: &'a Graph,
}

impl Reader<'_> {
    fn read(&self) -> Result<DecoderInfo, String> {
        let repeats: Vec<_> = self.ops.units.iter().enumerate().filter(|(_, u)| u.repeated).collect();
        let [(layer, unit)] = repeats[..] else {
            return Err(format!("it has {} stacks of layers, a decoder has one", repeats.len()));
        };
        if let Some((_, op)) = self.ops.ops().find(|(_, op)| !usual(&op.kind)) {
            return Err(format!("it computes {}, a decoder does not", self.ops.describe(op.output)));
        }
        let layer = layer as u32;
        let layer_ops: Vec<&Op> = self.ops.ops().map(|(_, op)| op).filter(|o| o.unit == layer).collect();
        let attention = one(
            layer_ops.iter().filter_map(|o| if let OpKind::Attention(a) = &o.kind { Some((*o, a)) } else { None }),
            "attention",
        )?;
        if !attention.1.causal {
            return Err("its attention is not causal".into());
        }
        let (op, a) = attention;
        let (hidden, qk_norm) = self.norms(layer, a.head_dim)?;
        let vocab = self.vocab()?;
        let (rope_base, learned) = self.positions(op, layer)?;
        let norm = self.norm()?;
        let moe = experts::read(self, &layer_ops, hidden)?;
        let (activation, ffn) = match &moe {
            Some(moe) => moe.mlp,
            None => self.mlp(&layer_ops, hidden)?,
        };
        if a.window.is_some() || op.inputs.len() > 3 {
            return Err("its attention has a window or sinks".into());
        }
        if a.head_dim != a.value_dim {
            return Err("its keys and values have different widths".into());
        }
        let bias = self.biases(&layer_ops)?;
        let info = DecoderInfo {
            layers: unit.count as u64,
            hidden: self.extent(hidden)?,
            heads: self.extent(a.heads)?,
            kv_heads: self.extent(a.kv_heads)?,
            head_dim: self.extent(a.head_dim)?,
            ffn: self.extent(ffn)?,
            vocab: self.extent(vocab)?,
            learned_positions: learned.map(|d| self.extent(d)).transpose()?,
            rope_base,
            norm,
            activation,
            bias,
            tied: self.tied(layer)?,
            qk_norm,
            experts: moe.map(|m| m.info),
        };
        self.count(&info)?;
        Ok(info)
    }

    fn extent(&self, dim: DimId) -> Result<u64, String> {
        let dim = self.ops.dim(dim);
        let n = self.graph.as_int(dim.true_extent).and_then(|n| u64::try_from(n).ok());
        n.ok_or_else(|| format!("the extent of {} is not fixed by the model", dim.name))
    }

    fn is_param(&self, v: ValueId) -> bool {
        matches!(self.ops.value(v).role, ValueRole::Param(_))
    }

    /// The width that every layer's two norms go over, and whether queries and keys have one of their own.
    fn norms(&self, layer: u32, head_dim: DimId) -> Result<(DimId, bool), String> {
        let norms = self.ops.ops().filter_map(|(_, o)| match &o.kind {
            OpKind::Norm { over, .. } if o.unit == layer => Some(over.as_slice()),
            _ => None,
        });
        let (heads, layers): (Vec<_>, Vec<_>) = norms.partition(|over| *over == [head_dim]);
        let qk_norm = match heads.len() {
            0 => false,
            2 => true,
            n => {
                return Err(format!(
                    "{n} of queries, keys and values are normalised, a decoder's queries and keys are"
                ));
            }
        };
        match layers[..] {
            [[a], [b]] if a == b => Ok((*a, qk_norm)),
            [_, _] => Err("its norms go over different widths".into()),
            _ => Err(format!("a layer has {} norms, a decoder's has two", layers.len())),
        }
    }

    fn vocab(&self) -> Result<DimId, String> {
        one(
            self.ops.ops().filter_map(|(_, o)| if let OpKind::Embed { over, .. } = o.kind { Some(over) } else { None }),
            "token embedding",
        )
    }

    /// Rotary on q and k, or rows of a table added to the embedding.
    fn positions(&self, attention: &Op, layer: u32) -> Result<(Option<f64>, Option<DimId>), String> {
        let rope = |v: ValueId| {
            let op = self.ops.producer(v).map(|id| &self.ops.flow[id]);
            op.and_then(|o| if let OpKind::Map(MapFn::Rope(base)) = o.kind { Some(base) } else { None })
        };
        let (q, k) = (rope(attention.inputs[0]), rope(attention.inputs[1]));
        let takes: Vec<_> = self
            .ops
            .ops()
            .filter_map(|(_, o)| if let OpKind::Take { from, .. } = o.kind { Some((from, o.unit)) } else { None })
            .collect();
        match (q, k, &takes[..]) {
            (Some(q), Some(k), []) if q.total_cmp(&k).is_eq() => Ok((Some(q), None)),
            (None, None, [(rows, unit)]) if *unit < layer => Ok((None, Some(*rows))),
            (None, None, []) => Err("it has no positions".into()),
            _ => Err("its positions are neither rotary on q and k nor a table added to the embedding".into()),
        }
    }

    fn norm(&self) -> Result<&'static str, String> {
        let kinds: Vec<_> = self
            .ops
            .ops()
            .filter_map(|(_, o)| if let OpKind::Norm { kind, .. } = o.kind { Some(kind) } else { None })
            .collect();
        match kinds.first() {
            Some(first) if kinds.iter().all(|k| k == first) => {
                Ok(if *first == NormKind::Rms { "rms" } else { "layer" })
            }
            _ => Err("its norms are of different kinds".into()),
        }
    }

    /// `silu(gate) * up`, or `gelu(up)`, and the width between.
    fn mlp(&self, ops: &[&Op], hidden: DimId) -> Result<(&'static str, DimId), String> {
        let has = |f: fn(&MapFn) -> bool| ops.iter().filter(|o| matches!(&o.kind, OpKind::Map(m) if f(m))).count();
        let (silu, gelu, mul, relu) = (
            has(|m| matches!(m, MapFn::Silu)),
            has(|m| matches!(m, MapFn::Gelu)),
            has(|m| matches!(m, MapFn::Mul)),
            has(|m| matches!(m, MapFn::Relu)),
        );
        let activation = match (silu, gelu, mul, relu) {
            (1, 0, 1, 0) => "swiglu",
            (0, 1, 0, 0) => "gelu",
            _ => return Err("its MLP is neither SwiGLU nor GELU".into()),
        };
        let down = ops.iter().rev().find_map(|o| match &o.kind {
            OpKind::Contract { contracted } if self.ops.value(o.output).dims.contains(&hidden) => {
                match contracted[..] {
                    [d] if d != hidden => Some(d),
                    _ => None,
                }
            }
            _ => None,
        });
        down.map(|d| (activation, d)).ok_or_else(|| "its MLP has no projection back to the hidden width".into())
    }

    /// Whether every linear layer adds a bias, or none.
    fn biases(&self, ops: &[&Op]) -> Result<bool, String> {
        let with_param = |o: &&&Op| o.inputs.iter().any(|v| self.is_param(*v)) && !experts::routes(self, o);
        let count = |f: fn(&OpKind) -> bool| ops.iter().filter(|o| f(&o.kind)).filter(with_param).count();
        let linear = count(|k| matches!(k, OpKind::Contract { .. }));
        let added = count(|k| matches!(k, OpKind::Map(MapFn::Add)));
        match added {
            0 => Ok(false),
            n if n == linear => Ok(true),
            n => Err(format!("{n} of its {linear} linear layers have a bias")),
        }
    }

    /// Whether the head is the embedding's table.
    fn tied(&self, layer: u32) -> Result<bool, String> {
        let heads = self.ops.ops().filter(|(_, o)| o.unit > layer && matches!(o.kind, OpKind::Contract { .. }));
        let head = one(heads.map(|(_, o)| o), "product in the head")?;
        let weight = head.inputs.iter().find(|v| self.is_param(**v)).ok_or("its head has no weight")?;
        match self.ops.value(*weight).role {
            ValueRole::Param(p) => Ok(self.ops.params[p as usize].unit < layer),
            _ => Ok(false),
        }
    }

    /// The family's parameter count: a model that has other parameters is something else.
    fn count(&self, d: &DecoderInfo) -> Result<(), String> {
        let (h, f, q, kv) = (d.hidden, d.ffn, d.heads * d.head_dim, d.kv_heads * d.head_dim);
        let width = if d.activation == "swiglu" { 3 * h * f } else { 2 * h * f };
        let mlp = d.experts.as_ref().map_or(width, |e| experts::params(e, h, width));
        let norm = if d.norm == "layer" { 2 * h } else { h };
        let bias = if d.bias { q + 2 * kv + h + f + h } else { 0 };
        let layer = h * q + 2 * h * kv + q * h + mlp + 2 * norm + bias + if d.qk_norm { 2 * d.head_dim } else { 0 };
        let embed = d.vocab * h + d.learned_positions.unwrap_or(0) * h;
        let head = norm + if d.tied { 0 } else { d.vocab * h };
        let expected = d.layers * layer + embed + head;
        let found = params(self.ops, self.graph);
        if found == expected {
            Ok(())
        } else {
            Err(format!("it has {found} parameters, a decoder of these sizes has {expected}"))
        }
    }
}

/// What a decoder of the common family is made of.
fn usual(kind: &OpKind) -> bool {
    match kind {
        OpKind::Map(f) => !matches!(f, MapFn::Offset(_) | MapFn::Inverse(_) | MapFn::Tanh | MapFn::Shift(_)),
        OpKind::Contract { .. }
        | OpKind::Norm { .. }
        | OpKind::Softmax { .. }
        | OpKind::Embed { bag: None, .. }
        | OpKind::Take { .. }
        | OpKind::Attention(_)
        | OpKind::CrossEntropy { over: Some(_), .. }
        | OpKind::Rename { .. }
        | OpKind::Split { .. }
        | OpKind::Merge { .. }
        | OpKind::Sum { .. }
        | OpKind::Select { .. }
        | OpKind::Dispatch(_)
        | OpKind::Combine(_) => true,
        OpKind::Embed { .. }
        | OpKind::CrossEntropy { .. }
        | OpKind::Concat { .. }
        | OpKind::Regroup { .. }
        | OpKind::Custom(_) => false,
    }
}

fn one<T>(mut found: impl Iterator<Item = T>, what: &str) -> Result<T, String> {
    match (found.next(), found.next()) {
        (Some(x), None) => Ok(x),
        (None, _) => Err(format!("it has no {what}")),
        (Some(_), Some(_)) => Err(format!("it has more than one {what}")),
    }
}

/// Parameters of the whole model, unpadded, tied ones once.
pub(super) fn params(ops: &OpGraph, graph: &Graph) -> u64 {
    ops.params(graph, &|_| true)
}

/// Parameters of one copy of a unit, unpadded.
pub(super) fn unit_params(ops: &OpGraph, graph: &Graph, unit: u32) -> u64 {
    let own = ops.params.iter().filter(|p| p.unit == unit);
    own.map(|p| ops.elements(graph, &ops.value(p.value).dims)).fold(0, u64::saturating_add)
}
