//! Calls of blocks: their own names, bound to the caller's dimensions and tensors.

use super::super::errors;
use super::{Builder, Scope};
use crate::eval::{Env, Instance, Value, Wanted, type_wanted};
use crate::graph::{DimId, ValueId};
use crate::limits;
use crate::source::Span;
use crate::syntax::ast::{self, Arg, Body, ExprKind, Kind, Name, ParamKind};
use crate::units::Unit;
use indexmap::IndexMap;
use smol_str::SmolStr;
use std::rc::Rc;

impl<'p> Builder<'p, '_, '_> {
    /// Runs a block with its own names and gives its result.
    pub(in crate::elaborate) fn block(
        &mut self,
        instance: &Instance<'p>,
        args: &'p [Arg],
        span: Span,
    ) -> Option<ValueId> {
        let decl = instance.decl;
        let key: *const ast::Decl = decl;
        if self.blocks.contains(&key) || self.blocks.len() >= limits::BLOCK_NESTING {
            self.eval.sink.error(crate::eval::errors::recursion(span, &decl.name.text));
            return None;
        }
        let Body::Block(body) = &decl.body else { return None };
        let params = decl.params.as_deref().unwrap_or_default();
        let mut env = Env::inside(&Env::top(instance.id.module));
        let mut dims: IndexMap<SmolStr, DimId> = IndexMap::new();
        let mut tensors = IndexMap::new();

        // Dimensions given by name, whether or not the block lists them as parameters.
        let mut named_dims: IndexMap<SmolStr, DimId> = IndexMap::new();
        let is_value =
            |name: &str| params.iter().any(|p| p.name.text == name && !matches!(p.kind, ParamKind::Dim { .. }));
        let dim_like = |name: &str| {
            let listed =
                params.iter().flat_map(|p| if let ParamKind::Tensor(refs) = &p.kind { &refs[..] } else { &[] });
            listed.into_iter().any(|r| r.name.text == name) || params.iter().any(|p| p.name.text == name)
        };
        for arg in args {
            let Arg::Named(name, e) = arg else { continue };
            if is_value(&name.text) {
                continue;
            }
            match &e.kind {
                ExprKind::Path(path) if path.len() == 1 => {
                    named_dims.insert(name.text.clone(), self.known_dim(&path[0])?);
                }
                _ if dim_like(&name.text) => {
                    let what = format!("the name of a dimension for `{}`", name.text);
                    self.eval.sink.error(errors::operator_use(&decl.name.text, &what, e.span));
                    return None;
                }
                _ => {}
            }
        }
        let inner_dim = |b: &mut Self, name: &Name| -> Option<DimId> {
            match named_dims.get(&name.text).or_else(|| b.scope.dims.get(&name.text)) {
                Some(id) => Some(*id),
                None => {
                    let of = &decl.name;
                    let d = crate::eval::errors::missing_argument(&name.text, &of.text, span, of.span);
                    // Dimensions that belong together stand together: the one before it is the likely one.
                    let dims: Vec<&str> = params
                        .iter()
                        .filter(|p| matches!(p.kind, ParamKind::Dim { .. }))
                        .map(|p| p.name.text.as_str())
                        .collect();
                    let at = dims.iter().position(|d| *d == name.text);
                    let near = at.and_then(|i| dims[..i].last()).filter(|d| b.scope.dims.contains_key(**d));
                    let mut known: Vec<&str> = b.scope.dims.keys().map(SmolStr::as_str).collect();
                    known.sort_unstable();
                    b.eval.sink.error(errors::block_dim(d, &name.text, near.copied(), &known, span));
                    None
                }
            }
        };
        let mut positional = args.iter().filter_map(|a| if let Arg::Positional(e) = a { Some(e) } else { None });
        for param in params {
            let name = &param.name.text;
            let given = args.iter().find_map(|a| match a {
                Arg::Named(n, e) if n.text == *name => Some(e),
                Arg::Positional(_) | Arg::Named(..) | Arg::Domain(..) => None,
            });
            match &param.kind {
                ParamKind::Tensor(refs) => {
                    let Some(e) = given.or_else(|| positional.next()) else {
                        self.eval.sink.error(errors::missing_argument(name, &decl.name, span));
                        return None;
                    };
                    let id = self.tensor(e, None)?;
                    for r in refs {
                        let dim = inner_dim(self, &r.name)?;
                        if !self.ops.value(id).dims.contains(&dim) {
                            let wanted = refs.iter().map(|r| r.name.text.to_string()).collect::<Vec<_>>().join(", ");
                            let missing = [self.ops.dim(dim).name.clone()];
                            let found = self.dims_text(id);
                            self.eval.sink.error(errors::dims_mismatch(
                                &found,
                                &wanted,
                                &missing,
                                &[],
                                e.span,
                                decl.name.span,
                            ));
                            return None;
                        }
                        dims.insert(r.name.text.clone(), dim);
                    }
                    tensors.insert(name.clone(), id);
                }
                ParamKind::Dim { .. } => {
                    let dim = inner_dim(self, &param.name)?;
                    dims.insert(name.clone(), dim);
                }
                ParamKind::Value { ty, default, .. } => {
                    let wanted = ty.as_ref().map_or(Wanted::Any, type_wanted);
                    let outer = Rc::clone(&self.scope.env);
                    let (e, at) = match (given.or_else(|| positional.next()), default) {
                        (Some(e), _) => (e, outer),
                        (None, Some(e)) => (e, Rc::new(env.clone())),
                        (None, None) => {
                            self.eval.sink.error(errors::missing_argument(name, &decl.name, span));
                            return None;
                        }
                    };
                    let v = self.eval.eval(e, &at, &wanted);
                    match self.eval.require(v, &wanted, &format!("`{name}`"), e.span) {
                        Value::Error(_) => return None,
                        v => env.bind(name.clone(), v),
                    }
                }
            }
        }
        for arg in args {
            if let Arg::Named(n, _) = arg
                && !params.iter().any(|p| p.name.text == n.text)
                && !dims.contains_key(&n.text)
            {
                let known: Vec<_> = params.iter().map(|p| p.name.text.to_string()).collect();
                let of = &decl.name;
                self.eval.sink.error(crate::eval::errors::unknown_argument(&n.text, n.span, &of.text, &known, of.span));
                return None;
            }
        }
        for (name, id) in &dims {
            let extent = self.ops.dim(*id).true_extent;
            let value = match self.eval.graph.as_int(extent) {
                Some(n) => Value::int(i128::from(n)),
                None => Value::sym(extent, Unit::none()),
            };
            env.bind(name.clone(), value);
        }
        if let Some(ast::Ret::Dims(list, _)) = &decl.ret {
            for t in list {
                if !dims.contains_key(&t.name.text) {
                    let dim = inner_dim(self, &t.name)?;
                    dims.insert(t.name.text.clone(), dim);
                }
            }
            let names = list.iter().map(|t| Value::Str(t.name.text.clone())).collect();
            env.bind("return", Value::List(Rc::new(names)));
        }

        // Dimensions that come with an argument and have no name in the block.
        let mut riding: Vec<DimId> = Vec::new();
        for id in tensors.values() {
            let all = &self.ops.value(*id).dims;
            riding.extend(all.iter().filter(|d| !dims.values().any(|known| known == *d)));
        }
        let inner = Scope { env: Rc::new(env), dims, tensors, riding };
        let outer = std::mem::replace(&mut self.scope, inner);
        // A user's call of a library block is where to point; inside a library model its own lines say more.
        let is_std = |module| self.eval.program.module(module).std;
        let leaves_user_text = is_std(instance.id.module) && !is_std(self.scope.env.module);
        let site = self.call_site;
        if leaves_user_text && site.is_none() {
            self.call_site = Some(span);
        }
        self.blocks.push(key);
        let result = self.items(body);
        self.blocks.pop();
        self.call_site = site;
        self.scope = outer;
        match result? {
            Some((id, _)) => Some(id),
            None => {
                self.eval.sink.error(errors::operator_use(&decl.name.text, "a `return`", span));
                None
            }
        }
    }

    /// Whether `name` is a block, and which.
    pub(in crate::elaborate) fn find_block(&mut self, name: &Name) -> Option<Rc<Instance<'p>>> {
        let module = self.scope.env.module;
        match self.eval.program.lookup(module, &name.text) {
            Some(crate::hir::Binding::Decl(id)) => match self.eval.entry(id, name.span) {
                Value::Instance(i) if i.decl.kind == Kind::Block => Some(i),
                _ => None,
            },
            _ => None,
        }
    }
}
