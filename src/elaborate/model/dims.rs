//! Dimensions: declared, of the data, computed from those, ragged.

use super::super::errors;
use super::Builder;
use crate::eval::{Env, Instance, Num, Quantity, Value, Wanted};
use crate::expr::{self, Node};
use crate::graph::{DataDim, Dim, DimId, Ragged, Value as Tensor, ValueRole};
use crate::hir::walk_expr;
use crate::syntax::ast::{self, Block, Body, DimRef, Expr, ExprKind, ItemKind, Name};
use crate::units::Unit;
use indexmap::IndexMap;
use smol_str::SmolStr;
use std::rc::Rc;

/// Largest extent of a dimension.
const MAX_EXTENT: i128 = 1 << 40;

/// Extents of the data dimensions, from the job and the layout.
#[derive(Clone, Debug)]
pub(in crate::elaborate) struct Extents {
    /// Sequences of a microbatch over all ranks that shard it.
    pub(in crate::elaborate) batch: expr::Id,
    /// Tokens of a sequence: of the one dimension of tokens, where there is one.
    pub(in crate::elaborate) sequence: Option<expr::Id>,
    /// Extents given by name.
    pub(in crate::elaborate) named: IndexMap<String, expr::Id>,
    /// Extent of every other dimension of the data, where a model is looked at without a job.
    pub(in crate::elaborate) rest: Option<expr::Id>,
    /// Iterations at which what is said of a repeat changes, by its name: no unit goes past one.
    pub(in crate::elaborate) borders: Vec<(String, u32)>,
}

impl Extents {
    /// The same for every dimension.
    pub(in crate::elaborate) fn all(extent: expr::Id) -> Self {
        Self { batch: extent, sequence: Some(extent), named: IndexMap::new(), rest: Some(extent), borders: Vec::new() }
    }
}

/// The data dimensions a model's inputs declare, each with what it counts.
pub(in crate::elaborate) fn data_dims(model: &Instance<'_>) -> Vec<(String, DataDim)> {
    let Body::Block(block) = &model.decl.body else { return Vec::new() };
    let unit = |d: &DimRef| d.unit.as_ref().map_or(DataDim::Other, |u| data_kind(&u.text));
    data_refs(block).into_iter().map(|(name, d)| (name.to_string(), unit(d))).collect()
}

/// Where each data dimension of a model is declared: the first input that gives it a unit.
pub(in crate::elaborate) fn data_refs(block: &Block) -> IndexMap<SmolStr, &DimRef> {
    let mut out = IndexMap::new();
    for item in &block.items {
        if let ItemKind::Input { dims, .. } = &item.kind {
            for d in dims.iter().filter(|d| d.unit.is_some()) {
                out.entry(d.name.text.clone()).or_insert(d);
            }
        }
    }
    out
}

fn data_kind(unit: &str) -> DataDim {
    match unit {
        "seq" => DataDim::Batch,
        "tok" => DataDim::Sequence,
        _ => DataDim::Other,
    }
}

impl<'p> Builder<'p, '_, '_> {
    pub(super) fn dim(&mut self, def: &'p ast::DimDef) -> Option<()> {
        if let Some(old) = self.scope.dims.get(&def.name.text) {
            let first = self.ops.dim(*old).span;
            self.eval.sink.error(errors::dim_twice(&def.name, first));
            return None;
        }
        // A dimension computed from one of the data may stand before the input that has it.
        for name in names_in(&def.extent) {
            if let Some(d) = self.data.get(name).copied() {
                self.data_dim(d)?;
            }
        }
        let mut dim = match &def.ragged {
            Some(over) => self.ragged(def, over)?,
            None => self.extent(def)?,
        };
        if let Some(of) = &def.grouped {
            dim.groups = Some(self.grouped(def, of, dim.true_extent)?);
        }
        self.declare(&def.name.text, dim);
        Some(())
    }

    /// Makes `dim` known under `name`, in extents as well.
    pub(in crate::elaborate) fn declare(&mut self, name: &SmolStr, mut dim: Dim) -> DimId {
        let value = match self.eval.graph.as_int(dim.true_extent) {
            Some(n) => Value::int(i128::from(n)),
            None => Value::sym(dim.true_extent, Unit::none()),
        };
        if let Some(pad) = self.pads.iter().find(|p| p.dim == *name.as_str()) {
            let tiles = self.eval.graph.ceil_div(dim.true_extent, pad.to);
            dim.extent = self.eval.graph.mul(tiles, pad.to);
        }
        let id = self.ops.add_dim(dim);
        self.scope.dims.insert(name.clone(), id);
        self.scope.env = Env::with(&self.scope.env, vec![(name.clone(), value)]);
        id
    }

    fn extent(&mut self, def: &'p ast::DimDef) -> Option<Dim> {
        let env = Rc::clone(&self.scope.env);
        let value = self.eval.eval(&def.extent, &env, &Wanted::Int);
        let what = format!("the extent of `{}`", def.name.text);
        let q = match self.eval.require(value, &Wanted::Int, &what, def.extent.span) {
            Value::Num(q) => q,
            Value::Hole(hole) => {
                self.eval.sink.error(errors::model_open(&def.name.text, false, hole.span));
                return None;
            }
            _ => return None,
        };
        if let Num::Int(n) = q.num
            && !(1..=MAX_EXTENT).contains(&n)
        {
            self.eval.sink.error(errors::not_positive(&def.name.text, n, def.extent.span));
            return None;
        }
        let extent = self.eval.node(q.num);
        let of_data = |name: &SmolStr| self.scope.dims.get(name).and_then(|d| self.ops.dim(*d).data);
        let data = names_in(&def.extent).into_iter().find_map(of_data);
        Some(Dim { data, ..Dim::plain(def.name.text.as_str(), extent, def.name.span) })
    }

    /// `Rb[Tb] = [ … ]`: one extent for each index of `over`.
    fn ragged(&mut self, def: &'p ast::DimDef, over: &Name) -> Option<Dim> {
        let over_id = self.known_dim(over)?;
        let env = Rc::clone(&self.scope.env);
        let value = self.eval.eval(&def.extent, &env, &Wanted::Any);
        let Value::List(list) = &value else {
            if !matches!(value, Value::Error(_)) {
                let (what, noun) = (format!("the extents of `{}`", def.name.text), value.noun());
                self.eval.sink.error(errors::wrong_value(&what, "a list of whole numbers", &noun, def.extent.span));
            }
            return None;
        };
        let mut total = 0i128;
        for item in list.iter() {
            let what = format!("an extent of `{}`", def.name.text);
            match self.eval.require(item.clone(), &Wanted::Int, &what, def.extent.span) {
                Value::Num(Quantity { num: Num::Int(n), .. }) if (1..=MAX_EXTENT).contains(&n) => total += n,
                Value::Num(Quantity { num: Num::Int(n), .. }) => {
                    self.eval.sink.error(errors::not_positive(&def.name.text, n, def.extent.span));
                    return None;
                }
                _ => return None,
            }
        }
        let indices = self.eval.graph.as_int(self.ops.dim(over_id).true_extent);
        let found = list.len() as i64;
        if indices != Some(found) {
            let declared = self.ops.dim(over_id).span;
            self.eval.sink.error(errors::ragged_length(def, found, &over.text, indices, declared));
            return None;
        }
        // Each at most 2^40 and at most 2^20 of them.
        let total = i64::try_from(total).expect("a bounded list of bounded extents");
        let mean = self.eval.graph.int((total + found - 1) / found.max(1));
        let ragged = Some(Ragged { over: over_id, total });
        Some(Dim { ragged, ..Dim::plain(def.name.text.as_str(), mean, def.name.span) })
    }

    /// `for N`: the dimension grouped, which the groups must divide.
    fn grouped(&mut self, def: &'p ast::DimDef, of: &Name, extent: expr::Id) -> Option<DimId> {
        let id = self.known_dim(of)?;
        let n = self.eval.graph.as_int(self.ops.dim(id).true_extent);
        if let (Some(k), Some(n)) = (self.eval.graph.as_int(extent), n)
            && n % k != 0
        {
            let given = match &def.extent.kind {
                ExprKind::Path(p) if p.len() == 1 => self.given.get(&p[0].text).copied(),
                _ => None,
            };
            let at = given.unwrap_or(def.extent.span);
            self.eval.sink.error(errors::kv_heads(i128::from(k), i128::from(n), def, &of.text, at));
            return None;
        }
        Some(id)
    }

    /// A dimension of the data, declared by the first input that has it.
    fn data_dim(&mut self, d: &DimRef) -> Option<DimId> {
        if let Some(id) = self.scope.dims.get(&d.name.text) {
            return Some(*id);
        }
        let kind = d.unit.as_ref().map_or(DataDim::Other, |u| data_kind(&u.text));
        let token_dims =
            self.data.values().filter(|d| d.unit.as_ref().is_some_and(|u| data_kind(&u.text) == DataDim::Sequence));
        let only = token_dims.count() == 1;
        let given = match kind {
            DataDim::Batch => Some(self.extents.batch),
            DataDim::Sequence if only => self.extents.sequence,
            DataDim::Sequence | DataDim::Other => None,
        };
        let given = self.extents.named.get(d.name.text.as_str()).copied().or(given).or(self.extents.rest);
        let Some(extent) = given else {
            let unit = d.unit.as_ref().map_or("", |u| u.text.as_str());
            self.eval.sink.error(errors::extent_missing(&d.name, unit, self.span));
            return None;
        };
        let dim = Dim { data: Some(kind), ..Dim::plain(d.name.text.as_str(), extent, d.name.span) };
        Some(self.declare(&d.name.text, dim))
    }

    pub(super) fn input(&mut self, name: &'p Name, dims: &'p [DimRef]) -> Option<()> {
        let mut ids = Vec::new();
        for d in dims {
            let id = match &d.unit {
                Some(_) => self.data_dim(d)?,
                None => self.known_dim(&d.name)?,
            };
            if ids.contains(&id) {
                self.eval.sink.error(errors::dim_repeated(&d.name));
                return None;
            }
            ids.push(id);
        }
        let value = Tensor {
            name: name.text.to_string(),
            dims: ids,
            region: self.region,
            role: ValueRole::Input,
            span: name.span,
        };
        let id = self.ops.add_value(value);
        self.scope.tensors.insert(name.text.clone(), id);
        Some(())
    }
}

/// The plain names in an expression.
fn names_in(e: &Expr) -> Vec<&SmolStr> {
    let mut out = Vec::new();
    walk_expr(e, &mut |e| {
        if let ExprKind::Path(path) = &e.kind
            && let [name] = &path[..]
        {
            out.push(&name.text);
        }
    });
    out
}

/// A product of extents as a node, in reals: it may be beyond whole numbers.
pub(in crate::elaborate) fn volume(b: &mut Builder<'_, '_, '_>, dims: &[DimId]) -> expr::Id {
    let graph = &mut *b.eval.graph;
    let reals: Vec<_> = dims.iter().map(|d| graph.put(Node::ToReal(b.ops.dim(*d).true_extent))).collect();
    graph.product(reals)
}
