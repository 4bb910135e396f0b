//! What is wrong with a model, block or cluster that no job need use.

use super::cluster::Cluster;
use super::model::{Builder, Extents, Scope, library_model};
use crate::diagnostics::{Code, Sink};
use crate::eval::{Env, Evaluator, Instance, Value, Wanted, type_wanted};
use crate::expr;
use crate::graph::{DataDim, Dim, Value as Tensor, ValueRole};
use crate::hir::{DeclId, Entry, Program};
use crate::syntax::ast::{Body, Decl, Kind, Name, ParamKind, Ret};
use std::rc::Rc;

/// Reports what is wrong with the declaration `id` by itself. A model or cluster with a parameter that has no default
/// has no shape yet and is left to the jobs that give one.
pub fn alone(program: &Program, id: DeclId, sink: &mut Sink) {
    let mut graph = expr::Graph::new();
    let decl = match program.entry(id) {
        Entry::Decl(decl) => decl,
        Entry::Let(l) => {
            Evaluator::new(program, &mut graph, sink).entry(id, l.name.span);
            return;
        }
    };
    match decl.kind {
        Kind::Device | Kind::Host | Kind::Link => {
            Evaluator::new(program, &mut graph, sink).entry(id, decl.name.span);
        }
        Kind::Table => {
            let mut eval = Evaluator::new(program, &mut graph, sink);
            if let Value::Instance(table) = eval.entry(id, decl.name.span) {
                eval.table(&table);
            }
        }
        Kind::Block => block(program, id, decl, &mut graph, sink),
        Kind::Model | Kind::Cluster => {
            let mut eval = Evaluator::new(program, &mut graph, sink);
            let Value::Instance(instance) = eval.entry(id, decl.name.span) else { return };
            if is_open(&instance) {
                return;
            }
            match instance.decl.kind {
                Kind::Model => drop(library_model(&mut eval, &instance)),
                Kind::Cluster => drop(Cluster::new(&mut eval, &instance, decl.name.span)),
                _ => {}
            }
        }
        _ => {}
    }
}

fn is_open(instance: &Instance<'_>) -> bool {
    instance.decl.params.iter().flatten().any(|p| match &p.kind {
        ParamKind::Value { default, .. } => default.is_none() && !instance.args.contains_key(&p.name.text),
        ParamKind::Dim { .. } | ParamKind::Tensor(_) => true,
    })
}

/// A block by itself says which dimensions its tensors have and not how large they are, so only what names decide is
/// reported.
fn block<'p>(program: &'p Program, id: DeclId, decl: &'p Decl, graph: &mut expr::Graph, sink: &mut Sink) {
    let Body::Block(body) = &decl.body else { return };
    let mut quiet = Sink::new();
    let mut eval = Evaluator::new(program, graph, &mut quiet);
    let mut env = Env::inside(&Env::top(id.module));
    for param in decl.params.iter().flatten() {
        if let ParamKind::Value { ty, default, .. } = &param.kind {
            let Some(e) = default else { return };
            let wanted = ty.as_ref().map_or(Wanted::Any, type_wanted);
            let value = eval.eval(e, &Rc::new(env.clone()), &wanted);
            env.bind(param.name.text.clone(), value);
        }
    }
    let extent = eval.graph.int(1);
    let extents = Extents::all(extent);
    let mut b = Builder::new(&mut eval, Scope::of(Rc::new(env)), decl.name.span, &extents, &[]);
    b.open_unit(&decl.name.text, decl.name.span);
    let mut results = Vec::new();
    for param in decl.params.iter().flatten() {
        match &param.kind {
            ParamKind::Tensor(refs) => {
                let dims = refs.iter().map(|r| declare(&mut b, &r.name, extent)).collect();
                let (name, span) = (param.name.text.to_string(), param.name.span);
                let value = Tensor { name, dims, region: b.region, role: ValueRole::Activation, span };
                let value = b.ops.add_value(value);
                b.scope.tensors.insert(param.name.text.clone(), value);
            }
            ParamKind::Dim { .. } => drop(declare(&mut b, &param.name, extent)),
            ParamKind::Value { .. } => {}
        }
    }
    if let Some(Ret::Dims(list, _)) = &decl.ret {
        for r in list {
            declare(&mut b, &r.name, extent);
            results.push(Value::Str(r.name.text.clone()));
        }
        b.scope.env = Env::with(&b.scope.env, vec![("return".into(), Value::List(Rc::new(results)))]);
    }
    b.items(body);
    let by_name = |code| matches!(code, Code::DimensionMismatch | Code::ProductUnnamed | Code::DimensionUnknown);
    for d in quiet.finish().into_iter().filter(|d| by_name(d.code)) {
        sink.error(d);
    }
}

/// The dimension of this name, made where it is new. `S` is taken for the tokens, as attention needs some to be.
fn declare(b: &mut Builder<'_, '_, '_>, name: &Name, extent: expr::Id) -> crate::graph::DimId {
    if let Some(id) = b.scope.dims.get(&name.text) {
        return *id;
    }
    let data = match name.text.as_str() {
        "B" => Some(DataDim::Batch),
        "S" => Some(DataDim::Sequence),
        _ => None,
    };
    let dim = Dim { data, ..Dim::plain(name.text.as_str(), extent, name.span) };
    let id = b.ops.add_dim(dim);
    b.scope.dims.insert(name.text.clone(), id);
    id
}
