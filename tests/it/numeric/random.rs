//! Small random models under random layouts.

use super::prove;
use crate::llama::{Setup, span};
use parc::graph::{Attention, Dim, Law, MapFn, NormKind, OpKind, Route, Slots, ValueId, ValueRole};
use parc::layout::{
    Action, AttentionMethod, AttentionVia, AxisId, Class, Hold, Layout, NamedAxis, Recompute, RecomputeWhat, Rule,
    Scope, Selector, SelectorPart, Side, Store,
};
use proptest::prelude::*;
use proptest::sample::select;

/// A piece of a model: what is between one residual x[B, S, H] and the next.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(super) enum Piece {
    /// Two products with a function between.
    Mlp(Act),
    /// Three products, one of them gated.
    Gated,
    Attention(Heads),
    /// Attention and MLP of one input, added.
    Parallel,
    Experts,
    /// Softmax over the hidden units.
    Soft,
    /// A bias, a product with a gain and a constant.
    Affine,
    /// Heads are a split of the width, and merged again.
    Reshaped,
    /// A loss of the residual as it is.
    Loss,
    /// Independent classes.
    Binary,
    /// A table of positions.
    Positions,
    /// The mean over positions.
    Pooled,
}

#[derive(Copy, Clone, PartialEq, Debug)]
pub(super) enum Act {
    Gelu,
    Relu,
    Tanh,
}

#[derive(Copy, Clone, PartialEq, Debug)]
pub(super) enum Heads {
    Plain,
    Rotated,
    Grouped,
    Sinks,
    /// Keys and values of another input.
    Cross,
}

impl Piece {
    pub(super) fn all() -> Vec<Self> {
        use Piece::*;
        let acts = [Act::Gelu, Act::Relu, Act::Tanh].map(Mlp);
        let heads = [Heads::Plain, Heads::Rotated, Heads::Grouped, Heads::Sinks, Heads::Cross].map(Attention);
        let rest = [Gated, Parallel, Experts, Soft, Affine, Reshaped, Loss, Binary, Positions, Pooled];
        acts.into_iter().chain(heads).chain(rest).collect()
    }
}

/// A model.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) pieces: Vec<Piece>,
    pub(super) norms: [NormKind; 2],
    /// Whether the head uses the table of the embedding.
    pub(super) tied: bool,
    /// Whether each piece is a unit, or all are one.
    pub(super) apart: bool,
    /// How much of each dimension there is.
    pub(super) extents: Vec<(&'static str, i64)>,
    pub(super) mesh: Mesh,
}

/// The model of `pieces` as the plainest layout needs it.
pub(super) fn model(pieces: Vec<Piece>) -> Model {
    let norms = [NormKind::Rms, NormKind::Layer];
    Model { pieces, norms, tied: true, apart: false, extents: extents(&|_| 1), mesh: MESHES[0] }
}

const NAMES: [&str; 14] = ["B", "S", "H", "N", "K", "D", "F", "V", "P", "E", "T", "M", "C", "A"];

/// Extents that the product `split` says of each dimension divides.
fn extents(split: &dyn Fn(&str) -> i64) -> Vec<(&'static str, i64)> {
    let of = |name: &'static str| -> i64 {
        let least = match name {
            "B" | "S" | "K" | "M" | "A" | "D" => 2,
            _ => 4,
        };
        let n = split(name);
        if least % n == 0 { least } else { n * if n < least { 2 } else { 1 } }
    };
    let get = |name| match name {
        "N" => {
            let (n, k) = (of("N"), of("K"));
            if n % k == 0 { n } else { n * k }
        }
        // Every token has two choices, and a slot for each.
        "T" => of("B") * of("S") * 2,
        "C" => 2,
        "P" => of("S").max(of("P")),
        // The width as heads.
        "A" => of("A"),
        "H" => {
            let (h, a) = (of("H"), of("A") * of("D"));
            if h % a == 0 { h } else { h * a }
        }
        name => of(name),
    };
    NAMES.iter().map(|n| (*n, get(n))).collect()
}

impl Model {
    /// The graph, and a layout with the mesh alone.
    pub(super) fn setup(&self) -> Setup {
        let fine: Vec<(&str, i64)> = self.mesh.fine.iter().map(|(n, s)| (*n, *s)).collect();
        let mut s = Setup::sized(&fine, &self.extents);
        self.mesh.name(&mut s.layout);
        let hp = s.exprs.int(self.extents.iter().find(|e| e.0 == "H").expect("a width").1 / self.of("A"));
        s.graph.add_dim(Dim::plain("Hp", hp, span(1)));
        let (t, e) = (s.dim("T"), s.dim("E"));
        s.graph.dims[t.0 as usize].slots = Some(Slots { experts: e, skew: Law::Point(1.0), tile: 1 });
        let (k, n) = (s.dim("K"), s.dim("N"));
        s.graph.dims[k.0 as usize].groups = Some(n);
        s.start("embed", 1, false);
        let tokens = s.value("tokens", "B S", ValueRole::Input);
        let wte = s.param("wte", "V H");
        let mut x = s.op("x", "B S H", OpKind::Embed { over: s.dim("V"), bag: None }, &[tokens, wte]);
        let mut losses = Vec::new();
        for (at, piece) in self.pieces.iter().enumerate() {
            if self.apart || at == 0 {
                s.start("body", 1, true);
            }
            x = self.piece(&mut s, *piece, x, &mut losses);
        }
        s.start("head", 1, false);
        let h = self.norm(&mut s, 0, x);
        let logits = s.value("logits", "B S V", ValueRole::Logits);
        let w = if self.tied { wte } else { s.param("w_out", "H V") };
        let over = s.dims("H");
        s.produce(OpKind::Contract { contracted: over }, &[h, w], logits);
        let loss = s.value("loss", "", ValueRole::Loss);
        let over = Some(s.dim("V"));
        s.produce(OpKind::CrossEntropy { over, chunks: 1 }, &[logits], loss);
        let mut total = loss;
        for loss in losses {
            let part = s.value("part", "", ValueRole::Loss);
            s.produce(OpKind::Map(MapFn::Scale(0.3)), &[loss], part);
            let sum = s.value("total", "", ValueRole::Loss);
            s.produce(OpKind::Map(MapFn::Add), &[total, part], sum);
            total = sum;
        }
        s
    }

    fn of(&self, name: &str) -> i64 {
        self.extents.iter().find(|e| e.0 == name).expect("a dimension").1
    }

    fn norm(&self, s: &mut Setup, at: usize, x: ValueId) -> ValueId {
        let kind = OpKind::Norm { kind: self.norms[at], over: s.dims("H") };
        let gain = s.param("gain", "H");
        let mut ins = vec![x, gain];
        if self.norms[at] == NormKind::Layer {
            ins.push(s.param("bias", "H"));
        }
        s.op("h", "B S H", kind, &ins)
    }

    fn piece(&self, s: &mut Setup, piece: Piece, x: ValueId, losses: &mut Vec<ValueId>) -> ValueId {
        let add = OpKind::Map(MapFn::Add);
        match piece {
            Piece::Mlp(act) => {
                let h = self.norm(s, 1, x);
                let f = match act {
                    Act::Gelu => MapFn::Gelu,
                    Act::Relu => MapFn::Relu,
                    Act::Tanh => MapFn::Tanh,
                };
                let y = mlp(s, h, f);
                s.op("x", "B S H", add, &[x, y])
            }
            Piece::Gated => {
                s.enter(&["body", "#", "mlp"]);
                let h = self.norm(s, 1, x);
                let (g, u) = (product(s, "g", h, "H F", "H", "B S F"), product(s, "u", h, "H F", "H", "B S F"));
                let g = s.op("", "B S F", OpKind::Map(MapFn::Silu), &[g]);
                let a = s.op("a", "B S F", OpKind::Map(MapFn::Mul), &[g, u]);
                let y = product(s, "y", a, "F H", "F", "B S H");
                s.op("x", "B S H", add, &[x, y])
            }
            Piece::Attention(heads) => {
                let h = self.norm(s, 1, x);
                let y = attention(s, h, heads);
                s.op("x", "B S H", add, &[x, y])
            }
            Piece::Parallel => {
                let h = self.norm(s, 1, x);
                let y = attention(s, h, Heads::Grouped);
                let z = mlp(s, h, MapFn::Gelu);
                let both = s.op("", "B S H", add.clone(), &[y, z]);
                s.op("x", "B S H", add, &[x, both])
            }
            Piece::Experts => {
                let y = experts(s, x);
                s.op("x", "B S H", add, &[x, y])
            }
            Piece::Soft => {
                let a = product(s, "a", x, "H F", "H", "B S F");
                let p = s.op("p", "B S F", OpKind::Softmax { over: s.dim("F") }, &[a]);
                let y = product(s, "y", p, "F H", "F", "B S H");
                s.op("x", "B S H", add, &[x, y])
            }
            Piece::Affine => {
                let (bias, gain) = (s.param("bias", "H"), s.param("gain", "H"));
                let y = s.op("", "B S H", add.clone(), &[x, bias]);
                let y = s.op("", "B S H", OpKind::Map(MapFn::Mul), &[y, gain]);
                let y = s.op("", "B S H", OpKind::Map(MapFn::Scale(0.7)), &[y]);
                let y = s.op("", "B S H", OpKind::Map(MapFn::Offset(0.1)), &[y]);
                s.op("x", "B S H", OpKind::Map(MapFn::Sub), &[x, y])
            }
            Piece::Reshaped => {
                let into = s.dims("A Hp");
                let h = s.op("", "B S A Hp", OpKind::Split { from: s.dim("H"), into: into.clone() }, &[x]);
                let gain = s.param("gain", "A Hp");
                let h = s.op("h", "B S A Hp", OpKind::Map(MapFn::Mul), &[h, gain]);
                let y = s.op("y", "B S H", OpKind::Merge { from: into, into: s.dim("H") }, &[h]);
                s.op("x", "B S H", add, &[x, y])
            }
            Piece::Loss => {
                let logits = product(s, "own", x, "H V", "H", "B S V");
                let loss = s.value("own_loss", "", ValueRole::Loss);
                let over = Some(s.dim("V"));
                s.produce(OpKind::CrossEntropy { over, chunks: 1 }, &[logits], loss);
                losses.push(loss);
                x
            }
            Piece::Binary => {
                let loss = s.value("own_loss", "", ValueRole::Loss);
                s.produce(OpKind::CrossEntropy { over: None, chunks: 1 }, &[x], loss);
                losses.push(loss);
                x
            }
            Piece::Positions => {
                let table = s.param("wpe", "P H");
                let (from, to) = (s.dim("P"), s.dim("S"));
                let rows = s.op("", "S H", OpKind::Take { from, to }, &[table]);
                s.op("x", "B S H", add, &[x, rows])
            }
            Piece::Pooled => {
                let over = s.dims("S");
                let mean = s.op("", "B H", OpKind::Sum { over }, &[x]);
                let mean = s.op("mean", "B H", OpKind::Map(MapFn::Scale(0.25)), &[mean]);
                s.op("x", "B S H", add, &[x, mean])
            }
        }
    }
}

/// `y[out] = x @ param w[dims]`, summed over `over`.
fn product(s: &mut Setup, name: &str, x: ValueId, dims: &str, over: &str, out: &str) -> ValueId {
    let w = s.param(&format!("w_{name}"), dims);
    let contracted = s.dims(over);
    s.op(name, out, OpKind::Contract { contracted }, &[x, w])
}

fn mlp(s: &mut Setup, h: ValueId, f: MapFn) -> ValueId {
    s.enter(&["body", "#", "mlp"]);
    let u = product(s, "u", h, "H F", "H", "B S F");
    let bias = s.param("b_u", "F");
    let u = s.op("", "B S F", OpKind::Map(MapFn::Add), &[u, bias]);
    let a = s.op("a", "B S F", OpKind::Map(f), &[u]);
    product(s, "y", a, "F H", "F", "B S H")
}

fn attention(s: &mut Setup, h: ValueId, heads: Heads) -> ValueId {
    s.enter(&["body", "#", "attention"]);
    let grouped = matches!(heads, Heads::Grouped | Heads::Sinks | Heads::Rotated);
    let kv = if grouped { "K" } else { "N" };
    let mut q = product(s, "q", h, "H N D", "H", "B S N D");
    let (keys, from) = match heads {
        Heads::Cross => ("P", s.value("memory", "B P H", ValueRole::Input)),
        _ => ("S", h),
    };
    let out = format!("B {keys} {kv} D");
    let mut k = product(s, "k", from, &format!("H {kv} D"), "H", &out);
    let v = product(s, "v", from, &format!("H {kv} D"), "H", &out);
    if heads == Heads::Rotated {
        let rope = OpKind::Map(MapFn::Rope(100.0));
        q = s.op("", "B S N D", rope.clone(), &[q]);
        k = s.op("", &out, rope, &[k]);
    }
    let mut ins = vec![q, k, v];
    if heads == Heads::Sinks {
        ins.push(s.param("sinks", "N"));
    }
    let attention = OpKind::Attention(Attention {
        causal: heads != Heads::Cross,
        window: None,
        cache: vec![k, v],
        sequence: s.dim("S"),
        keys: s.dim(keys),
        heads: s.dim("N"),
        kv_heads: s.dim(kv),
        head_dim: s.dim("D"),
        value_dim: s.dim("D"),
    });
    let o = s.op("o", "B S N D", attention, &ins);
    product(s, "y", o, "N D H", "N D", "B S H")
}

fn experts(s: &mut Setup, x: ValueId) -> ValueId {
    let (experts, slots, choices) = (s.dim("E"), s.dim("T"), s.dim("C"));
    let route = Route { experts, slots, choices };
    s.enter(&["body", "#", "moe"]);
    let g = product(s, "g", x, "H E", "H", "B S E");
    let chosen = s.op("route", "B S C", OpKind::Select { experts, choices, groups: 1, kept: 0 }, &[g]);
    let t = s.op("t", "E T H", OpKind::Dispatch(route), &[x, chosen]);
    s.enter(&["body", "#", "moe", "experts"]);
    let u = product(s, "u", t, "E H M", "H", "E T M");
    let a = s.op("a", "E T M", OpKind::Map(MapFn::Silu), &[u]);
    let y = product(s, "d", a, "E M H", "M", "E T H");
    s.enter(&["body", "#", "moe"]);
    s.op("y", "B S H", OpKind::Combine(route), &[y, chosen])
}

/// A name for a product of fine axes, and the side of a fold it stands on.
pub(super) type Named = (&'static str, &'static [u16], Option<(u16, Side)>);

/// A mesh: fine axes, and the named ones each is part of.
#[derive(Copy, Clone, Debug)]
pub(super) struct Mesh {
    pub(super) fine: &'static [(&'static str, i64)],
    /// Names beside those of the fine axes, with the sides of folds they stand on.
    pub(super) named: &'static [Named],
    /// The fine axis along which key heads are copied.
    pub(super) copies: Option<u16>,
}

pub(super) const fn plain(fine: &'static [(&'static str, i64)]) -> Mesh {
    Mesh { fine, named: &[], copies: None }
}

const MESHES: [Mesh; 12] = [
    plain(&[("a", 2)]),
    plain(&[("a", 4)]),
    plain(&[("a", 2), ("b", 2)]),
    plain(&[("a", 3), ("b", 2)]),
    plain(&[("a", 2), ("b", 1), ("c", 2)]),
    plain(&[("a", 2), ("b", 2), ("c", 2)]),
    plain(&[("a", 2), ("b", 4)]),
    // fold [a, b] as [c = 2, d = 4], where a = 4 and b = 2.
    Mesh {
        fine: &[("x0", 2), ("x1", 2), ("x2", 2)],
        named: &[
            ("a", &[0, 1], Some((0, Side::From))),
            ("b", &[2], Some((0, Side::From))),
            ("c", &[0], Some((0, Side::To))),
            ("d", &[1, 2], Some((0, Side::To))),
        ],
        copies: None,
    },
    // fold [a, c] as [d]: the axes are not neighbours.
    Mesh {
        fine: &[("x0", 2), ("b", 2), ("x2", 2)],
        named: &[
            ("a", &[0], Some((0, Side::From))),
            ("c", &[2], Some((0, Side::From))),
            ("d", &[0, 2], Some((0, Side::To))),
        ],
        copies: None,
    },
    // axis d = [a, b]
    Mesh { fine: &[("a", 2), ("b", 2)], named: &[("d", &[0, 1], None)], copies: None },
    // Four ranks for two key heads.
    Mesh { fine: &[("x0", 2), ("x1", 2)], named: &[("a", &[0, 1], None)], copies: Some(1) },
    Mesh { fine: &[("b", 2), ("x0", 2), ("x1", 2)], named: &[("a", &[1, 2], None)], copies: Some(2) },
];

impl Mesh {
    fn names(&self) -> Vec<&'static str> {
        let fine = self.fine.iter().map(|(n, _)| *n).filter(|n| !n.starts_with('x'));
        fine.chain(self.named.iter().map(|(n, ..)| *n)).collect()
    }

    fn name(&self, layout: &mut Layout) {
        for (name, fine, fold) in self.named {
            let fine: Vec<_> = fine.iter().map(|a| AxisId(*a)).collect();
            let size = layout.axes[fine[0].0 as usize].size;
            let folds = fold.iter().copied().collect();
            layout.named.push(NamedAxis { name: (*name).into(), size, fine, folds, span: span(0) });
        }
        layout.copies.extend(self.copies.map(|a| ("K".to_owned(), AxisId(a))));
    }

    fn fine_of(&self, name: &str) -> Vec<u16> {
        let own = self.named.iter().find(|(n, ..)| *n == name).map(|(_, fine, _)| fine.to_vec());
        own.unwrap_or_else(|| vec![self.fine.iter().position(|(n, _)| *n == name).expect("an axis") as u16])
    }
}

/// An item of a layout.
#[derive(Clone, Debug)]
pub(super) enum Item {
    Shard {
        dims: Vec<&'static str>,
        over: Vec<usize>,
        otherwise: Vec<&'static str>,
        classes: Vec<Class>,
        scope: &'static str,
    },
    Replicate {
        over: usize,
        classes: Vec<Class>,
        scope: &'static str,
    },
    Store {
        classes: usize,
        over: Vec<usize>,
        hold: Hold,
        scope: &'static str,
    },
    Keep,
    Recompute(RecomputeWhat, &'static str),
}

/// A model under a layout.
#[derive(Clone)]
pub(super) struct Case {
    model: Model,
    items: Vec<Item>,
    methods: Vec<AttentionMethod>,
}

/// On a few lines, however it is asked for.
impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Model { pieces, norms, tied, apart, mesh, .. } = &self.model;
        writeln!(f, "{pieces:?}, norms {norms:?}, tied {tied}, apart {apart}, {:?}", self.methods)?;
        writeln!(f, "  {mesh:?}")?;
        self.items.iter().try_for_each(|item| writeln!(f, "  {item:?}"))
    }
}

pub(super) fn scope(text: &str) -> Scope {
    let part = |p: &str| match p {
        "**" => SelectorPart::Any,
        name => SelectorPart::Name(name.into()),
    };
    let parts: Vec<_> = text.split('.').filter(|p| !p.is_empty()).map(part).collect();
    let nested = if parts.is_empty() { Vec::new() } else { vec![vec![Selector { parts }]] };
    Scope { nested }
}

impl Case {
    /// The axis an item means: the numbers go round the names there are.
    fn names(&self, over: &[usize]) -> Vec<&'static str> {
        let names = self.model.mesh.names();
        let mut all: Vec<_> = over.iter().map(|a| names[a % names.len()]).collect();
        all.dedup();
        all
    }

    /// The setup, with extents that every rule divides.
    pub(super) fn setup(&self) -> Setup {
        let mesh = self.model.mesh;
        let ranks = |dim: &str| -> i64 {
            let mut fine: Vec<u16> = Vec::new();
            for item in &self.items {
                if let Item::Shard { dims, over, otherwise, .. } = item
                    && (dims.contains(&dim) || otherwise.contains(&dim))
                {
                    fine.extend(self.names(over).iter().flat_map(|n| mesh.fine_of(n)));
                }
            }
            // Slots take the axes of tokens, and a trade of sequence for heads gives heads the axes of the sequence.
            fine.sort_unstable();
            fine.dedup();
            let fine = fine.iter().filter(|a| dim != "K" || mesh.copies != Some(**a));
            fine.map(|a| mesh.fine[*a as usize].1).product()
        };
        let traded = self.methods.contains(&AttentionMethod::AllToAll);
        let split = |dim: &str| match dim {
            "N" if traded => ranks("N").max(ranks("K")).max(ranks("S")),
            "K" if traded && mesh.copies.is_none() => ranks("K").max(ranks("S")),
            "N" => ranks("N").max(ranks("K")),
            dim => ranks(dim),
        };
        let model = Model { extents: extents(&split), ..self.model.clone() };
        let mut s = model.setup();
        for (at, item) in self.items.iter().enumerate() {
            self.put(&mut s, item, span(100 + at as u32));
        }
        for (at, axis) in s.layout.axis_ids().enumerate() {
            let (scope, method) = (Scope::default(), self.methods[at % self.methods.len()]);
            s.layout.attention.push(AttentionVia { scope, axes: vec![axis], method, zigzag: false, span: span(400) });
        }
        s
    }

    fn put(&self, s: &mut Setup, item: &Item, span: parc::source::Span) {
        let list = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
        match item {
            Item::Shard { dims, over, otherwise, classes, scope: text } => {
                let axes = s.names(&self.names(over).join(" "));
                let (classes, otherwise) = (classes.clone(), list(otherwise));
                let action = Action::Shard { dims: list(dims), classes, otherwise };
                s.layout.rules.push(Rule { scope: scope(text), axes, action, unequal: false, span });
            }
            Item::Replicate { over, classes, scope: text } => {
                let axes = s.names(&self.names(&[*over]).join(" "));
                let action = Action::Replicate { classes: classes.clone() };
                s.layout.rules.push(Rule { scope: scope(text), axes, action, unequal: false, span });
            }
            Item::Store { classes, over, hold, scope: text } => {
                let axes = s.layout.fine(&s.names(&self.names(over).join(" ")));
                // ZeRO 1, 2, 3; parameters alone; gradients alone; parameters and state.
                let sets: [&[Class]; 6] = [
                    &[Class::State],
                    &[Class::State, Class::Grad],
                    &[Class::State, Class::Grad, Class::Param],
                    &[Class::Param],
                    &[Class::Grad],
                    &[Class::Param, Class::State],
                ];
                for class in sets[classes % 6] {
                    let item = Store::new(scope(text), *class, axes.clone(), span);
                    s.layout.stores.push(Store { hold: *hold, ..item });
                }
            }
            Item::Keep => {
                let item = Store::new(Scope::default(), Class::Act, Vec::new(), span);
                s.layout.stores.push(Store { keep_gathered: true, ..item });
            }
            Item::Recompute(what, text) => {
                s.layout.recompute.push(Recompute { scope: scope(text), what: what.clone(), span });
            }
        }
    }
}

const SCOPES: [&str; 6] = ["", "", "", "body", "**.mlp", "**.experts"];

fn item() -> impl Strategy<Value = Item> {
    let axes = || proptest::collection::vec(0usize..4, 1..3);
    let dims = || {
        select(vec![
            vec!["B"],
            vec!["B"],
            vec!["S"],
            vec!["H"],
            vec!["N", "K", "F", "V"],
            vec!["N", "K", "F", "V"],
            vec!["N", "K"],
            vec!["F", "M"],
            vec!["V"],
            vec!["E"],
            vec!["E"],
            vec!["M"],
            vec!["T"],
            vec!["A"],
            vec!["Hp"],
            vec!["P"],
            vec!["B", "S"],
            vec!["K"],
            vec!["F", "H"],
        ])
    };
    let otherwise = || select(vec![vec![], vec![], vec!["S"], vec!["S"], vec!["H"], vec!["B"]]);
    let classes = || {
        select(vec![
            vec![Class::Param, Class::Act],
            vec![Class::Param, Class::Act],
            vec![Class::Param, Class::Act],
            vec![Class::Act],
            vec![Class::Param],
        ])
    };
    let hold = || select(vec![Hold::Layer, Hold::Microbatch, Hold::Step]);
    let what = || {
        select(vec![
            RecomputeWhat::All,
            RecomputeWhat::All,
            RecomputeWhat::Values(vec!["a".into(), "u".into()]),
            RecomputeWhat::Values(vec!["h".into(), "q".into(), "k".into(), "y".into()]),
            RecomputeWhat::Values(vec!["t".into(), "d".into(), "o".into(), "g".into()]),
            RecomputeWhat::Values(vec!["x".into(), "p".into(), "route".into(), "logits".into(), "v".into()]),
        ])
    };
    prop_oneof![
        8 => (dims(), axes(), otherwise(), classes(), select(SCOPES.to_vec()))
            .prop_map(|(dims, over, otherwise, classes, scope)| Item::Shard { dims, over, otherwise, classes, scope }),
        1 => (0usize..4, classes(), select(SCOPES.to_vec()))
            .prop_map(|(over, classes, scope)| Item::Replicate { over, classes, scope }),
        4 => (0usize..6, axes(), hold(), select(SCOPES.to_vec()))
            .prop_map(|(classes, over, hold, scope)| Item::Store { classes, over, hold, scope }),
        1 => Just(Item::Keep),
        2 => (what(), select(SCOPES.to_vec())).prop_map(|(what, scope)| Item::Recompute(what, scope)),
    ]
}

fn case() -> impl Strategy<Value = Case> {
    let methods = select(vec![AttentionMethod::Ring, AttentionMethod::AllGather, AttentionMethod::AllToAll]);
    let norms = || select(vec![NormKind::Rms, NormKind::Layer]);
    let pieces = proptest::collection::vec(select(Piece::all()), 0..3);
    (
        (pieces, norms(), norms(), any::<bool>(), any::<bool>(), select(MESHES.to_vec())),
        proptest::collection::vec(item(), 1..7),
        proptest::collection::vec(methods, 1..3),
    )
        .prop_map(|((pieces, n0, n1, tied, apart, mesh), items, methods)| Case {
            model: Model { norms: [n0, n1], tied, apart, mesh, ..model(pieces) },
            items,
            methods,
        })
}

/// Partitions and proves a case; nothing where the layout is refused.
fn holds(case: &Case) -> bool {
    let mut setup = case.setup();
    let (sharded, said) = setup.run();
    let errors = said.iter().any(|d| d.code.info().severity == parc::diagnostics::Severity::Error);
    let numbers = crate::eval::all(&setup.exprs, &setup.inputs);
    if errors || sharded.obligations.iter().any(|o| numbers[o.cond.0 as usize] < 0.5) {
        return false;
    }
    if uneven(&setup, &sharded, &numbers) {
        return false;
    }
    prove(&setup, &sharded);
    true
}

/// Whether slots do not divide over the ranks that share them: the plan rounds up, arrays cannot.
fn uneven(setup: &Setup, sharded: &parc::partition::ShardedGraph, numbers: &[f64]) -> bool {
    let number = |id: parc::expr::Id| numbers[id.0 as usize] as i64;
    let slots = setup.dim("T");
    let extent = number(setup.graph.dim(slots).extent);
    sharded.tensors.iter().any(|t| {
        let ranks: i64 = t.place.axes_of(slots).iter().map(|a| number(setup.layout.axis(*a).size)).product();
        extent % ranks != 0
    })
}

/// As many cases as `PARC_NUMERIC` says.
fn cases() -> u32 {
    std::env::var("PARC_NUMERIC").ok().and_then(|n| n.parse().ok()).unwrap_or(2000)
}

#[test]
fn a_partitioned_program_means_what_it_meant() {
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases()) };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let proved = std::cell::Cell::new(0u32);
    let outcome = runner.run(&case(), |case| {
        proved.set(proved.get() + u32::from(holds(&case)));
        Ok(())
    });
    if let Err(e) = outcome {
        panic!("{e}");
    }
    assert!(proved.get() * 2 > cases(), "{} of {} layouts were accepted", proved.get(), cases());
}
