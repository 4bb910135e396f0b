//! What a layout selects, where mistakes elsewhere keep its jobs from being elaborated.
//!
//! In: a program with errors. Out: selectors that match nothing in a model that is right by itself, and nothing else:
//! whatever has to do with what is wrong is left alone.

use super::job::paths;
use super::layout::selector;
use super::model::library_model;
use crate::diagnostics::{Diagnostic, Sink};
use crate::eval::{Env, Evaluator, Given, Instance, Value, Wanted};
use crate::expr;
use crate::graph::OpGraph;
use crate::hir::{DeclId, Program};
use crate::layout::Scope;
use crate::syntax::ast::{Block, Body, ItemKind, Selector, SelectorPart};
use std::rc::Rc;

/// Reports the selectors in the layout of job `id` that match nothing in its model.
pub fn selectors(program: &Program, id: DeclId, sink: &mut Sink) {
    let (mut graph, mut quiet) = (expr::Graph::new(), Sink::new());
    let mut eval = Evaluator::new(program, &mut graph, &mut quiet);
    let span = program.entry(id).name().span;
    let Value::Instance(job) = eval.entry(id, span) else { return };
    let (Some(model), Some(layout)) = (field(&mut eval, &job, "model"), field(&mut eval, &job, "layout")) else {
        return;
    };
    let Some(ops) = library_model(&mut eval, &model) else { return };
    let mut found = Vec::new();
    for given in blocks(&layout) {
        if !program.module(given.env.module).std {
            missed(&mut eval, given.block, &Scope::default(), &ops, &mut found);
        }
    }
    for d in found {
        sink.error(d);
    }
}

/// The block a declaration has and those of each `with`, with the names they see.
fn blocks<'p>(instance: &Instance<'p>) -> Vec<Given<'p>> {
    let own = match &instance.decl.body {
        Body::Block(block) => Some(Given { block, env: Env::top(instance.id.module) }),
        Body::Expr(_) | Body::None => None,
    };
    own.into_iter().chain(instance.with.iter().cloned()).collect()
}

/// The declaration that the last value of a field is.
fn field<'p>(eval: &mut Evaluator<'p, '_>, job: &Instance<'p>, name: &str) -> Option<Rc<Instance<'p>>> {
    let given = blocks(job);
    let values = given.iter().flat_map(|g| g.block.items.iter().map(move |i| (i, &g.env)));
    let (e, env) = values
        .filter_map(|(item, env)| match &item.kind {
            ItemKind::Assign { target, value } if target.suffixes.is_empty() && target.name.text == name => {
                Some((value, Rc::clone(env)))
            }
            _ => None,
        })
        .next_back()?;
    match eval.eval(e, &env, &Wanted::Any) {
        Value::Instance(i) => Some(i),
        _ => None,
    }
}

/// What to say of the `in` items of `block`; those of an `if` may hold for other models.
fn missed<'p>(
    eval: &mut Evaluator<'p, '_>,
    block: &'p Block,
    outer: &Scope,
    ops: &OpGraph,
    found: &mut Vec<Diagnostic>,
) {
    for item in &block.items {
        let ItemKind::In { selectors, block } = &item.kind else { continue };
        let env = Env::top(crate::hir::ModuleId(0));
        // Which iterations there are is known once the layout is evaluated.
        let indexed = |s: &Selector| s.parts.iter().any(|p| matches!(p, SelectorPart::Name(_, Some(_))));
        let all: Option<Vec<_>> =
            selectors.iter().map(|s| if indexed(s) { None } else { selector(eval, s, &env) }).collect();
        let Some(all) = all else { continue };
        let within = |list| Scope { nested: outer.nested.iter().cloned().chain([list]).collect() };
        let mut here = Vec::new();
        for (one, written) in all.iter().zip(selectors) {
            here.extend(paths::missed(&within(vec![one.clone()]), written.span, ops));
        }
        // Inside a selector that matches nothing, nothing matches.
        if here.is_empty() {
            missed(eval, block, &within(all), ops, found);
        }
        found.append(&mut here);
    }
}
