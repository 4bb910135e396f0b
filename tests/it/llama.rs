//! A small Llama as an op graph, and layouts in a few words: what partitioning is tested on.
//!
//! The graph is the one the library's blocks give: `embed`, two layers of grouped-query attention and `SwiGLU`, `head`.

use crate::eval::eval;
use parc::diagnostics::{Diagnostic, Sink};
use parc::expr;
use parc::graph::{
    Attention, DataDim, Dim, DimId, MapFn, NormKind, Op, OpGraph, OpKind, Parameter, Region, RegionId, Unit, Value,
    ValueId, ValueRole,
};
use parc::layout::{
    Action, AxisId, Class, Hold, Layout, NameId, PathPart, Recompute, RecomputeWhat, Rule, Scope, Selector,
    SelectorPart, Store,
};
use parc::partition::{Bytes, ShardedGraph, StepId, StepKind, partition, verify};
use parc::source::{FileId, Span};

/// A span that stands for the `n`th item.
pub(crate) fn span(n: u32) -> Span {
    Span { file: FileId(0), start: n, end: n + 1 }
}

/// A model and a layout being put together.
pub(crate) struct Setup {
    pub(crate) graph: OpGraph,
    pub(crate) layout: Layout,
    pub(crate) exprs: expr::Graph,
    /// Values of the leaves: the axes' sizes.
    pub(crate) inputs: Vec<f64>,
    pub(crate) bytes: Bytes,
    unit: u32,
    region: RegionId,
}

/// Extents of the model: of one microbatch over all ranks.
pub(crate) const EXTENTS: [(&str, i64); 9] =
    [("B", 8), ("S", 64), ("H", 64), ("N", 16), ("K", 8), ("D", 4), ("F", 192), ("V", 512), ("P", 64)];

/// The extent of the dimension `name`.
pub(crate) fn extent(name: &str) -> f64 {
    EXTENTS.iter().find(|(n, _)| *n == name).expect("a dimension of the model").1 as f64
}

impl Setup {
    /// An empty model with `mesh`, outermost axis first.
    pub(crate) fn new(mesh: &[(&str, i64)]) -> Self {
        Self::sized(mesh, &EXTENTS)
    }

    /// An empty model of other extents.
    pub(crate) fn sized(mesh: &[(&str, i64)], extents: &[(&str, i64)]) -> Self {
        let mut exprs = expr::Graph::new();
        let mut layout = Layout::default();
        for (name, _) in mesh {
            let leaf = expr::Input { name: (*name).into(), kind: expr::Kind::Int, lo: 1.0, hi: 1024.0 };
            let size = exprs.input(leaf);
            layout.add_mesh_axis(name, size, span(0));
        }
        let mut graph = OpGraph::new(span(0));
        for (name, extent) in extents {
            let size = exprs.int(*extent);
            let data = match *name {
                "B" => Some(DataDim::Batch),
                "S" => Some(DataDim::Sequence),
                _ => None,
            };
            graph.add_dim(Dim {
                name: (*name).into(),
                extent: size,
                true_extent: size,
                data,
                groups: None,
                ragged: None,
                slots: None,
                span: span(1),
            });
        }
        let inputs = mesh.iter().map(|(_, n)| *n as f64).collect();
        // Gradients are reduced in fp32 so that they are told apart from activations.
        let (norm_extra, softmax_extra, loss_extra) = (0.0, 0.0, 0.0);
        let bytes = Bytes {
            param: 2.0,
            act: 2.0,
            wire: 2.0,
            grad: 4.0,
            reduce: 4.0,
            gather: 2.0,
            logits: 4.0,
            norm_extra,
            softmax_extra,
            loss_extra,
        };
        Self { graph, layout, exprs, inputs, bytes, unit: 0, region: RegionId(0) }
    }

    /// The Llama with `mesh`.
    pub(crate) fn llama(mesh: &[(&str, i64)]) -> Self {
        Self::new(mesh).with_llama()
    }

    /// The Llama in an empty model.
    pub(crate) fn with_llama(self) -> Self {
        let mut s = self;
        s.start("embed", 1, false);
        let tokens = s.value("tokens", "B S", ValueRole::Input);
        let wte = s.param("wte", "V H");
        let x = s.op("x", "B S H", OpKind::Embed { over: s.dim("V"), bag: None }, &[tokens, wte]);
        s.start("decoder", 2, true);
        let x = s.layer(x);
        s.start("head", 1, false);
        let norm = s.param("norm", "H");
        let h = s.op("", "B S H", OpKind::Norm { kind: NormKind::Rms, over: vec![s.dim("H")] }, &[x, norm]);
        let w = s.param("w_out", "H V");
        let logits = s.value("logits", "B S V", ValueRole::Logits);
        s.produce(OpKind::Contract { contracted: vec![s.dim("H")] }, &[h, w], logits);
        let loss = s.value("loss", "", ValueRole::Loss);
        s.produce(OpKind::CrossEntropy { over: Some(s.dim("V")), chunks: 1 }, &[logits], loss);
        s
    }

    /// One decoder layer.
    pub(crate) fn layer(&mut self, x: ValueId) -> ValueId {
        let contract = |s: &Self, dims: &str| OpKind::Contract { contracted: s.dims(dims) };
        let rms = OpKind::Norm { kind: NormKind::Rms, over: vec![self.dim("H")] };
        self.enter(&["decoder", "#", "attention"]);
        let gain = self.param("norm", "H");
        let h = self.op("h", "B S H", rms.clone(), &[x, gain]);
        self.enter(&["decoder", "#", "attention", "proj"]);
        let wq = self.param("wq", "H N D");
        let q = self.op("q", "B S N D", contract(self, "H"), &[h, wq]);
        let wk = self.param("wk", "H K D");
        let k = self.op("k", "B S K D", contract(self, "H"), &[h, wk]);
        let wv = self.param("wv", "H K D");
        let v = self.op("v", "B S K D", contract(self, "H"), &[h, wv]);
        self.enter(&["decoder", "#", "attention", "core"]);
        let rope = OpKind::Map(MapFn::Rope(10000.0));
        let q = self.op("", "B S N D", rope.clone(), &[q]);
        let k = self.op("", "B S K D", rope, &[k]);
        let attention = OpKind::Attention(Attention {
            causal: true,
            window: None,
            cache: vec![k, v],
            sequence: self.dim("S"),
            keys: self.dim("S"),
            heads: self.dim("N"),
            kv_heads: self.dim("K"),
            head_dim: self.dim("D"),
            value_dim: self.dim("D"),
        });
        let o = self.op("o", "B S N D", attention, &[q, k, v]);
        self.enter(&["decoder", "#", "attention", "out"]);
        let wo = self.param("wo", "N D H");
        let y = self.op("", "B S H", contract(self, "N D"), &[o, wo]);
        let x = self.op("x", "B S H", OpKind::Map(MapFn::Add), &[x, y]);
        self.enter(&["decoder", "#", "mlp"]);
        let gain = self.param("norm2", "H");
        let h = self.op("h", "B S H", rms, &[x, gain]);
        let w = self.param("w_gate", "H F");
        let g = self.op("g", "B S F", contract(self, "H"), &[h, w]);
        let w = self.param("w_up", "H F");
        let u = self.op("u", "B S F", contract(self, "H"), &[h, w]);
        let g = self.op("", "B S F", OpKind::Map(MapFn::Silu), &[g]);
        let a = self.op("a", "B S F", OpKind::Map(MapFn::Mul), &[g, u]);
        let w = self.param("w_down", "F H");
        let y = self.op("", "B S H", contract(self, "F"), &[a, w]);
        self.op("x", "B S H", OpKind::Map(MapFn::Add), &[x, y])
    }

    /// Begins a unit and its region.
    pub(crate) fn start(&mut self, name: &str, count: i64, repeated: bool) {
        self.graph.units.push(Unit { name: name.into(), count, repeated, span: span(0) });
        self.unit = self.graph.units.len() as u32 - 1;
        if repeated { self.enter(&[name, "#"]) } else { self.enter(&[name]) }
    }

    /// Begins a region; `#` is an iteration.
    pub(crate) fn enter(&mut self, path: &[&str]) {
        let part = |p: &&str| if *p == "#" { PathPart::every(1) } else { PathPart::Name((*p).into()) };
        self.graph.regions.push(Region { path: path.iter().map(part).collect(), span: span(0) });
        self.region = RegionId(self.graph.regions.len() as u32 - 1);
    }

    pub(crate) fn dim(&self, name: &str) -> DimId {
        DimId(self.graph.dims.iter().position(|d| d.name == name).expect("a dimension of the model") as u32)
    }

    pub(crate) fn dims(&self, names: &str) -> Vec<DimId> {
        names.split_whitespace().map(|n| self.dim(n)).collect()
    }

    pub(crate) fn value(&mut self, name: &str, dims: &str, role: ValueRole) -> ValueId {
        let dims = self.dims(dims);
        self.graph.add_value(Value { name: name.into(), dims, region: self.region, role, span: span(0) })
    }

    pub(crate) fn param(&mut self, name: &str, dims: &str) -> ValueId {
        let value = self.value(name, dims, ValueRole::Param(self.graph.params.len() as u32));
        let path = format!("{}.{name}", self.graph.region_path(self.region));
        self.graph.params.push(Parameter { value, path, unit: self.unit });
        value
    }

    pub(crate) fn produce(&mut self, kind: OpKind, inputs: &[ValueId], output: ValueId) {
        let op = Op { kind, inputs: inputs.to_vec(), output, region: self.region, unit: self.unit, span: span(2) };
        self.graph.add_op(op);
    }

    pub(crate) fn op(&mut self, name: &str, dims: &str, kind: OpKind, inputs: &[ValueId]) -> ValueId {
        let output = self.value(name, dims, ValueRole::Activation);
        self.produce(kind, inputs, output);
        output
    }

    pub(crate) fn axis(&self, name: &str) -> AxisId {
        AxisId(self.layout.axes.iter().position(|a| a.name == name).expect("an axis of the mesh") as u16)
    }

    fn axes(&self, names: &str) -> Vec<AxisId> {
        self.layout.fine(&self.names(names))
    }

    pub(crate) fn names(&self, names: &str) -> Vec<NameId> {
        names.split_whitespace().map(|n| self.layout.find_axis(n).expect("an axis of the mesh")).collect()
    }

    /// `shard [DIMS] over AXES else OTHERWISE`.
    pub(crate) fn shard(mut self, dims: &str, over: &str, otherwise: &str) -> Self {
        let list = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let classes = vec![Class::Param, Class::Act, Class::Kv];
        let action = Action::Shard { dims: list(dims), classes, otherwise: list(otherwise) };
        let at = span(100 + self.layout.rules.len() as u32);
        self.layout.rules.push(Rule {
            scope: Scope::default(),
            axes: self.names(over),
            action,
            unequal: false,
            span: at,
        });
        self
    }

    /// `store CLASSES over AXES { hold }`.
    pub(crate) fn store(mut self, classes: &[Class], over: &str, hold: Hold) -> Self {
        for class in classes {
            let axes = self.axes(over);
            let item = Store { hold, ..Store::new(Scope::default(), *class, axes, span(200)) };
            self.layout.stores.push(item);
        }
        self
    }

    /// `store act { keep = gathered }`.
    pub(crate) fn keep_gathered(mut self) -> Self {
        self = self.store(&[Class::Act], "", Hold::Layer);
        for store in self.layout.stores.iter_mut().filter(|s| s.class == Class::Act) {
            store.keep_gathered = true;
        }
        self
    }

    /// `in SELECTOR { recompute WHAT }`; everywhere with an empty selector.
    pub(crate) fn recompute(mut self, selector: &str, what: RecomputeWhat) -> Self {
        let part = |p: &str| match p {
            "*" => SelectorPart::One,
            "**" => SelectorPart::Any,
            name => SelectorPart::Name(name.into()),
        };
        let parts: Vec<_> = selector.split('.').filter(|p| !p.is_empty()).map(part).collect();
        let nested = if parts.is_empty() { Vec::new() } else { vec![vec![Selector { parts }]] };
        self.layout.recompute.push(Recompute { scope: Scope { nested }, what, span: span(300) });
        self
    }

    /// Partitions; hands back the program and what was said.
    pub(crate) fn run(&mut self) -> (ShardedGraph, Vec<Diagnostic>) {
        let mut sink = Sink::new();
        let sharded = partition(&self.graph, &self.layout, &self.bytes, &mut self.exprs, &mut sink);
        let said = sink.finish();
        if said.is_empty() {
            let broken = verify(&self.graph, &self.layout, &sharded);
            assert!(broken.is_empty(), "{broken:?}");
        }
        (sharded, said)
    }

    /// Partitions what must be right.
    pub(crate) fn sharded(&mut self) -> ShardedGraph {
        let (sharded, said) = self.run();
        assert!(said.is_empty(), "{said:?}");
        for o in &sharded.obligations {
            assert!(self.number(o.cond) > 0.5, "{:?}", o.what);
        }
        sharded
    }

    /// The number behind a node.
    pub(crate) fn number(&self, id: expr::Id) -> f64 {
        eval(&self.exprs, &self.inputs, id)
    }

    /// The collectives among `steps`: `all-reduce tp 4096`, in order; slices are free and left out.
    pub(crate) fn collectives(&self, sharded: &ShardedGraph, steps: &[StepId]) -> Vec<String> {
        let mut out = Vec::new();
        for id in steps {
            if let StepKind::Collective(c) = &sharded.flow[*id].kind {
                let axes: Vec<_> = c.axes.iter().map(|a| self.layout.axis(*a).name.as_str()).collect();
                if c.kind.name() != "slice" {
                    out.push(format!("{} {} {}", c.kind.name(), axes.join("+"), self.number(c.bytes)));
                }
            }
        }
        out
    }
}
