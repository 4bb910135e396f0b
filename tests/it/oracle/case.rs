//! A case as a graph and a layout: dims and ops one to one, rules inferred from the shardings the case states.

use parc::expr;
use parc::graph::{
    Dim, DimId, MapFn, NormKind, Op, OpGraph, OpKind, Parameter, Region, RegionId, Unit, Value as Tensor, ValueId,
    ValueRole,
};
use parc::layout::{Action, AxisId, Class, Hold, Layout, NameId, PathPart, Rule, Scope, Selector, SelectorPart, Store};
use parc::partition::{AxisUse, Fixed, Placement};
use parc::source::{FileId, Span};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A case ready to be partitioned.
pub(super) struct Translated {
    pub(super) graph: OpGraph,
    pub(super) layout: Layout,
    pub(super) exprs: expr::Graph,
    pub(super) fixed: Fixed,
}

const SPAN: Span = Span { file: FileId(0), start: 0, end: 0 };

/// Dim to axes, as a case states it; `None` where the case leaves a dim to XLA.
type Stated = BTreeMap<String, Vec<String>>;

fn stated(json: &Value) -> Option<Stated> {
    let object = json.as_object()?;
    let list =
        |v: &Value| -> Option<Vec<String>> { v.as_array()?.iter().map(|a| a.as_str().map(str::to_owned)).collect() };
    object.iter().map(|(d, axes)| Some((d.clone(), list(axes)?))).collect()
}

fn store(class: Class, axes: Vec<AxisId>, scope: Scope) -> Store {
    Store { hold: Hold::Microbatch, keep_gathered: true, ..Store::new(scope, class, axes, SPAN) }
}

struct Translator {
    graph: OpGraph,
    exprs: expr::Graph,
    dims: BTreeMap<String, (DimId, i64)>,
    values: BTreeMap<String, ValueId>,
    /// In the order of the program: what the case says of a value's placement in use.
    stated: Vec<(ValueId, Stated)>,
    stores: Vec<Store>,
    axes: Vec<String>,
    unit: u32,
}

/// Translates `case`, or says what of it has no counterpart.
pub(super) fn translate(case: &Value) -> Result<Translated, String> {
    let mut graph = OpGraph::new(SPAN);
    graph.units.push(Unit { name: "case".into(), count: 1, repeated: false, span: SPAN });
    let mesh = case["mesh"].as_object().ok_or("no mesh")?;
    let mut t = Translator {
        graph,
        exprs: expr::Graph::new(),
        dims: BTreeMap::new(),
        values: BTreeMap::new(),
        stated: Vec::new(),
        stores: Vec::new(),
        axes: mesh.keys().cloned().collect(),
        unit: 0,
    };
    let ops: Vec<&Value> = case["ops"].as_array().ok_or("no ops")?.iter().collect();
    t.tensors(case, &ops)?;
    for op in &ops {
        t.op(op)?;
    }
    let mut layout = Layout::default();
    for (name, size) in mesh {
        let ranks = t.exprs.int(size.as_i64().ok_or("an axis without a size")?);
        layout.add_mesh_axis(name, ranks, SPAN);
    }
    layout.set_strides(&mut t.exprs);
    layout.rules = t.rules();
    layout.stores = std::mem::take(&mut t.stores);
    // One program: a gathered copy stays for the backward.
    layout.stores.push(store(Class::Act, Vec::new(), Scope::default()));
    let mut fixed = Fixed::default();
    for (value, stated) in &t.stated {
        let wanted = t.placement(stated);
        if wanted != t.by_rules(&layout, *value) {
            fixed.placements.retain(|(v, _)| v != value);
            fixed.placements.push((*value, wanted));
        }
    }
    if let Some(of) = case["grad"]["of"].as_str() {
        fixed.seeds.push(*t.values.get(of).ok_or("grad of nothing")?);
    }
    Ok(Translated { graph: t.graph, layout, exprs: t.exprs, fixed })
}

impl Translator {
    fn dim(&mut self, name: &str, extent: i64) -> DimId {
        if let Some((id, _)) = self.dims.get(name) {
            return *id;
        }
        let size = self.exprs.int(extent);
        let dim = Dim::plain(name, size, SPAN);
        let id = self.graph.add_dim(dim);
        self.dims.insert(name.into(), (id, extent));
        id
    }

    fn known(&self, name: &str) -> Result<DimId, String> {
        self.dims.get(name).map(|(id, _)| *id).ok_or_else(|| format!("unknown dim {name}"))
    }

    fn value(&mut self, name: &str, dims: Vec<DimId>, role: ValueRole, region: RegionId) -> ValueId {
        let id = self.graph.add_value(Tensor { name: name.into(), dims, region, role, span: SPAN });
        self.values.insert(name.into(), id);
        id
    }

    fn axis(&self, name: &str) -> AxisId {
        AxisId(self.axes.iter().position(|a| a == name).expect("a case names its own axes") as u16)
    }

    /// Tensors: ids and data without a gradient are inputs, weights parameters, all else activations.
    fn tensors(&mut self, case: &Value, ops: &[&Value]) -> Result<(), String> {
        let grad = &case["grad"];
        let wrt: Vec<_> = grad["wrt"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for (name, tensor) in case["tensors"].as_object().ok_or("no tensors")? {
            let sizes: &Map<String, Value> = tensor["dims"].as_object().ok_or("a tensor without dims")?;
            let mut dims = Vec::new();
            for (dim, extent) in sizes {
                dims.push(self.dim(dim, extent.as_i64().ok_or("an extent that is no number")?));
            }
            let is_param = name.starts_with('w') || name.starts_with('n') || name == "table";
            let ids = tensor["dtype"].as_str() == Some("i32");
            let at_rest = stated(&tensor["sharding"]).ok_or("a tensor sharded somehow")?;
            if !is_param {
                let data = ids || (!wrt.is_empty() && !wrt.contains(&name.as_str()));
                let role = if data { ValueRole::Input } else { ValueRole::Activation };
                let value = self.value(name, dims, role, RegionId(0));
                // Where ids are is noise: they are gathered where they are needed.
                if !ids {
                    self.stated.push((value, at_rest));
                }
                continue;
            }
            let region = RegionId(self.graph.regions.len() as u32);
            let path = vec![PathPart::Name(name.clone())];
            self.graph.regions.push(Region { path, span: SPAN });
            let role = ValueRole::Param(self.graph.params.len() as u32);
            let value = self.value(name, dims, role, region);
            self.graph.params.push(Parameter { value, path: name.clone(), unit: 0 });
            let in_use = used_as(name, &at_rest, ops);
            let own = |s: &Stated| -> Vec<AxisId> {
                let used: Vec<_> = in_use.values().flatten().collect();
                s.values().flatten().filter(|a| !used.contains(a)).map(|a| self.axis(a)).collect()
            };
            let gradient = stated(&grad["grad_sharding"][name]).unwrap_or_else(|| at_rest.clone());
            let scope = Scope { nested: vec![vec![Selector { parts: vec![SelectorPart::Name(name.clone())] }]] };
            let mut stores = Vec::new();
            for (class, axes) in
                [(Class::Param, own(&at_rest)), (Class::Grad, own(&gradient)), (Class::State, own(&gradient))]
            {
                if !axes.is_empty() {
                    stores.push(store(class, axes, scope.clone()));
                }
            }
            self.stores.extend(stores);
            self.stated.push((value, in_use));
        }
        Ok(())
    }

    fn op(&mut self, op: &Value) -> Result<(), String> {
        let kind = op["op"].as_str().ok_or("an op without a name")?;
        let out = op["out"].as_str().ok_or("an op without a result")?;
        let names: Vec<_> = op["in"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let mut inputs = Vec::new();
        for name in &names {
            inputs.push(*self.values.get(*name).ok_or_else(|| format!("unknown value {name}"))?);
        }
        if kind == "constrain" && matches!(self.graph.value(inputs[0]).role, ValueRole::Param(_)) {
            // A parameter gathered for use: it is stored, and used as it is.
            self.values.insert(out.into(), inputs[0]);
            return Ok(());
        }
        if kind == "scan" {
            return self.scan(op, out);
        }
        let of = |t: &Self, at: usize| t.graph.value(inputs[at]).dims.clone();
        let dim = |t: &Self| t.known(op["dim"].as_str().unwrap_or(""));
        let broadcast = |t: &Self| {
            let mut dims = Vec::new();
            for d in inputs.iter().flat_map(|v| &t.graph.value(*v).dims) {
                if !dims.contains(d) {
                    dims.push(*d);
                }
            }
            dims
        };
        let map = |f| Ok::<_, String>(OpKind::Map(f));
        let mut role = ValueRole::Activation;
        let (kind, dims) = match kind {
            "einsum" => self.einsum(op, &inputs)?,
            "add" => (map(MapFn::Add)?, broadcast(self)),
            "sub" => (map(MapFn::Sub)?, broadcast(self)),
            "mul" => (map(MapFn::Mul)?, broadcast(self)),
            "div" => (map(MapFn::Div)?, broadcast(self)),
            "gelu" => (map(MapFn::Gelu)?, of(self, 0)),
            "silu" => (map(MapFn::Silu)?, of(self, 0)),
            "relu" => (map(MapFn::Relu)?, of(self, 0)),
            "scale" => (map(MapFn::Scale(op["value"].as_f64().unwrap_or(1.0)))?, of(self, 0)),
            "cast" | "copy" | "constrain" => (map(MapFn::Cast)?, of(self, 0)),
            "softmax" => (OpKind::Softmax { over: dim(self)? }, of(self, 0)),
            "rmsnorm" => (OpKind::Norm { kind: NormKind::Rms, over: vec![dim(self)?] }, of(self, 0)),
            "layernorm" => (OpKind::Norm { kind: NormKind::Layer, over: vec![dim(self)?] }, of(self, 0)),
            "cross_entropy" => {
                let over = dim(self)?;
                (
                    OpKind::CrossEntropy { over: Some(over), chunks: 1 },
                    of(self, 0).into_iter().filter(|d| *d != over).collect(),
                )
            }
            "gather" => {
                let over = dim(self)?;
                let rows = of(self, 0).into_iter().filter(|d| *d != over);
                let dims = of(self, 1).into_iter().chain(rows).collect();
                inputs.reverse();
                (OpKind::Embed { over, bag: None }, dims)
            }
            "onehot" => {
                let size = op["size"].as_i64().ok_or("a onehot without a size")?;
                let hot = self.dim(op["dim"].as_str().ok_or("a onehot without a dim")?, size);
                let dims = of(self, 0).into_iter().chain([hot]).collect();
                let value = self.value(out, dims, ValueRole::Input, RegionId(0));
                self.stated.extend(stated(&op["constraint"]).map(|s| (value, s)));
                return Ok(());
            }
            "reduce_sum" => {
                let over = op["dims"].as_array().into_iter().flatten().filter_map(Value::as_str);
                let over: Vec<_> = over.map(|d| self.known(d)).collect::<Result<_, _>>()?;
                let dims: Vec<_> = of(self, 0).into_iter().filter(|d| !over.contains(d)).collect();
                if dims.is_empty() {
                    role = ValueRole::Loss;
                }
                (OpKind::Sum { over }, dims)
            }
            "split" => {
                let from = dim(self)?;
                let mut into = Vec::new();
                for (name, extent) in op["into"].as_object().ok_or("a split into nothing")? {
                    into.push(self.dim(name, extent.as_i64().ok_or("an extent that is no number")?));
                }
                let put = |d: DimId| if d == from { into.clone() } else { vec![d] };
                let dims = of(self, 0).into_iter().flat_map(put).collect();
                (OpKind::Split { from, into }, dims)
            }
            "merge" => {
                let from = op["dims"].as_array().into_iter().flatten().filter_map(Value::as_str);
                let from: Vec<_> = from.map(|d| self.known(d)).collect::<Result<_, _>>()?;
                let extent = from.iter().map(|d| self.extent(*d)).product();
                let into = self.dim(op["into"].as_str().ok_or("a merge into nothing")?, extent);
                let put = |d: DimId| if d == from[0] { Some(into) } else { (!from.contains(&d)).then_some(d) };
                let dims = of(self, 0).into_iter().filter_map(put).collect();
                (OpKind::Merge { from, into }, dims)
            }
            "rename" => {
                let pairs = op["dims"].as_object().ok_or("a rename of nothing")?;
                let [(from, to)] = pairs.iter().collect::<Vec<_>>()[..] else { return Err("a rename of two".into()) };
                let from = self.known(from)?;
                let extent = self.extent(from);
                let to = self.dim(to.as_str().unwrap_or(""), extent);
                let dims = of(self, 0).into_iter().map(|d| if d == from { to } else { d }).collect();
                (OpKind::Rename { from, to }, dims)
            }
            other => return Err(format!("no counterpart of `{other}`")),
        };
        let output = self.value(out, dims, role, RegionId(0));
        self.graph.add_op(Op { kind, inputs, output, region: RegionId(0), unit: self.unit, span: SPAN });
        if let Some(s) = op.get("constraint") {
            self.stated.push((output, stated(s).ok_or("a dim left to XLA")?));
        }
        Ok(())
    }

    fn extent(&self, dim: DimId) -> i64 {
        self.dims.values().find(|(id, _)| *id == dim).map_or(1, |(_, extent)| *extent)
    }

    fn einsum(&self, op: &Value, inputs: &[ValueId]) -> Result<(OpKind, Vec<DimId>), String> {
        let spec = op["spec"].as_str().ok_or("an einsum without a spec")?;
        let (_, out) = spec.split_once("->").ok_or("an einsum without a result")?;
        let dims: Vec<_> = out.split_whitespace().map(|d| self.known(d)).collect::<Result<_, _>>()?;
        let [a, b] = inputs[..] else { return Err("an einsum of other than two".into()) };
        let (a, b) = (&self.graph.value(a).dims, &self.graph.value(b).dims);
        let lost = |d: &&DimId| !dims.contains(*d);
        if a.iter().filter(lost).any(|d| !b.contains(d)) || b.iter().filter(lost).any(|d| !a.contains(d)) {
            return Err("an einsum that sums one operand".into());
        }
        let contracted = a.iter().filter(lost).copied().collect();
        Ok((OpKind::Contract { contracted }, dims))
    }

    /// A scan is a repeated unit: its stacked weights lose the dim it runs over.
    fn scan(&mut self, op: &Value, out: &str) -> Result<(), String> {
        let over = self.known(op["over"].as_str().unwrap_or(""))?;
        let count = self.extent(over);
        self.graph.units.push(Unit { name: "scan".into(), count, repeated: true, span: SPAN });
        self.unit = self.graph.units.len() as u32 - 1;
        for x in op["xs"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            let value = self.values[x];
            self.graph.values[value.0 as usize].dims.retain(|d| *d != over);
            for p in self.graph.params.iter_mut().filter(|p| p.value == value) {
                p.unit = self.unit;
            }
        }
        let init = self.values[op["init"].as_str().unwrap_or("")];
        self.values.insert(op["carry"].as_str().unwrap_or("").into(), init);
        let body: Vec<_> = op["body"].as_array().into_iter().flatten().cloned().collect();
        for inner in &body {
            self.op(inner)?;
        }
        let result = self.values[op["result"].as_str().unwrap_or("")];
        self.values.insert(out.into(), result);
        Ok(())
    }

    fn placement(&self, stated: &Stated) -> Placement {
        let all = stated.iter().flat_map(|(dim, axes)| axes.iter().map(move |a| (dim, a)));
        all.fold(Placement::default(), |p, (dim, a)| p.with(self.axis(a), AxisUse::Split(self.dims[dim].0)))
    }

    /// One rule for each axis: the dims it splits in parameters, and what those are split, renamed and merged into;
    /// else the dims it splits in activations, those met last first.
    fn rules(&self) -> Vec<Rule> {
        let mut rules = Vec::new();
        for (at, axis) in self.axes.iter().enumerate() {
            let (mut dims, mut otherwise): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
            for (value, stated) in &self.stated {
                let is_param = matches!(self.graph.value(*value).role, ValueRole::Param(_));
                let of = stated.iter().filter(|(_, axes)| axes.contains(axis)).map(|(d, _)| d.clone());
                if is_param { dims.extend(of) } else { otherwise.extend(of) }
            }
            for (_, op) in self.graph.ops() {
                let name = |d: DimId| self.graph.dim(d).name.clone();
                match &op.kind {
                    OpKind::Split { from, into } if dims.contains(&name(*from)) => {
                        // The second axis of a dim splits the second of its pieces.
                        let axes = self.stated.iter().filter_map(|(_, s)| s.get(&name(*from)));
                        let at = axes.filter_map(|a| a.iter().position(|x| x == axis)).max().unwrap_or(0);
                        dims.push(name(into[at.min(into.len() - 1)]));
                    }
                    OpKind::Rename { from, to } if dims.contains(&name(*from)) => dims.push(name(*to)),
                    OpKind::Merge { from, into } if dims.contains(&name(from[0])) => dims.push(name(*into)),
                    _ => {}
                }
            }
            let mut seen = Vec::new();
            otherwise.retain(|d| {
                !dims.contains(d) && !seen.contains(d) && {
                    seen.push(d.clone());
                    true
                }
            });
            otherwise.reverse();
            if dims.is_empty() {
                dims.clone_from(&otherwise);
            }
            let action = Action::Shard { dims, classes: vec![Class::Param, Class::Act], otherwise };
            rules.push(Rule {
                scope: Scope::default(),
                axes: vec![NameId(at as u16)],
                action,
                unequal: false,
                span: SPAN,
            });
        }
        rules
    }

    /// The rules here have one scope, one axis and all classes, so that this is all there is to them.
    fn by_rules(&self, layout: &Layout, value: ValueId) -> Placement {
        let v = self.graph.value(value);
        let is_param = matches!(v.role, ValueRole::Param(_));
        layout.rules.iter().fold(Placement::default(), |p, rule| {
            let Action::Shard { dims, otherwise, .. } = &rule.action else { return p };
            let next = if is_param { &[][..] } else { otherwise };
            let found = dims.iter().chain(next).find_map(|n| {
                let (id, _) = self.dims.get(n)?;
                v.dims.contains(id).then_some(*id)
            });
            found.map_or(p.clone(), |d| p.with(layout.fine(&rule.axes)[0], AxisUse::Split(d)))
        })
    }
}

/// How a parameter is used: as a `constrain` says; else as it rests, but for a split of a dim that is summed over while
/// the other operand has none of it (the partitioner gathers it: what we call stored).
fn used_as(name: &str, at_rest: &Stated, ops: &[&Value]) -> Stated {
    let reads = |op: &&&Value| op["in"].as_array().into_iter().flatten().any(|v| v.as_str() == Some(name));
    for op in ops.iter().filter(reads) {
        if op["op"].as_str() == Some("constrain") {
            return stated(&op["constraint"]).unwrap_or_default();
        }
        let wanted = stated(&op["constraint"]).unwrap_or_default();
        if op["op"].as_str() == Some("einsum") {
            let spec = op["spec"].as_str().unwrap_or("");
            let out = spec.split_once("->").map_or("", |(_, out)| out);
            let lost = |dim: &str| !out.split_whitespace().any(|d| d == dim);
            let taken = |a: &String| wanted.values().flatten().any(|b| a == b);
            let mut used = at_rest.clone();
            for (dim, axes) in &mut used {
                axes.retain(|a| !(lost(dim) && taken(a) && wanted.get("b").is_some_and(|b| b.contains(a))));
            }
            used.retain(|_, axes| !axes.is_empty());
            return used;
        }
    }
    at_rest.clone()
}
