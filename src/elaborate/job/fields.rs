//! The items of a job: its fields, `let`s and claims, those of each `with` included.

use super::super::errors;
use super::{Claim, ClaimKind, Settings};
use crate::eval::{Env, Evaluator, Given, Instance, Value, Wanted};
use crate::hir::schema;
use crate::source::Span;
use crate::syntax::ast::{self, Body, Expr, ItemKind, Kind};
use indexmap::IndexMap;
use smol_str::SmolStr;
use std::rc::Rc;

/// What the items of a job say.
pub(super) struct Fields<'p> {
    /// Each field's expression, the names it sees, and its item.
    pub(super) values: IndexMap<SmolStr, (&'p Expr, Rc<Env<'p>>, Span)>,
    /// Requirements and expectations.
    pub(super) claims: Vec<Claim<'p>>,
}

/// The job's fields, its own block first and each `with` after it; `expect` is not inherited.
pub(super) fn fields<'p>(
    eval: &mut Evaluator<'p, '_>,
    instance: &Instance<'p>,
    settings: &Settings,
) -> Option<Fields<'p>> {
    let Body::Block(block) = &instance.decl.body else { return None };
    let base = Given { block, env: Env::top(instance.id.module) };
    let blocks: Vec<_> = std::iter::once(&base).chain(&instance.with).collect();
    let own = blocks.len() - 1;
    let mut vars: Vec<(SmolStr, Value<'p>)> = Vec::new();
    let mut values = IndexMap::new();
    let mut claims: Vec<Claim<'p>> = Vec::new();
    let mut ok = true;
    let known: Vec<_> = schema::fields(Kind::Train).iter().map(|f| f.name.to_string()).collect();
    for (i, given) in blocks.into_iter().enumerate() {
        for item in &given.block.items {
            let env = Env::with(&given.env, vars.clone());
            match &item.kind {
                ItemKind::Let(l) => {
                    let value = match (&l.value, settings.number(&l.name.text)) {
                        (_, Some(n)) => Value::int(i128::from(n)),
                        (ast::LetValue::Is(e), None) => eval.eval(e, &env, &Wanted::Any),
                        (ast::LetValue::In(e), None) => {
                            eval.sink.error(errors::open_choice(&l.name.text, e.span));
                            ok = false;
                            continue;
                        }
                    };
                    vars.push((l.name.text.clone(), value));
                }
                ItemKind::Assign { target, value } if target.suffixes.is_empty() => {
                    let name = &target.name;
                    if known.iter().any(|k| *k == *name.text) {
                        values.insert(name.text.clone(), (value, env, item.span));
                    } else {
                        eval.sink.error(crate::eval::errors::unknown_field(
                            &name.text,
                            name.span,
                            "a train job",
                            &known,
                        ));
                        ok = false;
                    }
                }
                ItemKind::Domain { name, domain } => {
                    if settings.number(&name.text).is_some() {
                        values.insert(name.text.clone(), (domain, env, item.span));
                    } else {
                        eval.sink.error(errors::open_choice(&name.text, domain.span));
                        ok = false;
                    }
                }
                ItemKind::Require { cond, message } => {
                    claims.push(Claim::required(cond, message.clone(), env, item.span));
                }
                ItemKind::Expect { value, about } if i == own => claims.push(Claim {
                    kind: ClaimKind::Expect,
                    value,
                    about: about.as_ref(),
                    message: None,
                    env,
                    span: item.span,
                }),
                ItemKind::Expect { .. } | ItemKind::Objective { .. } => {}
                ItemKind::Section { head, .. } if head.text == "layout" => {
                    eval.sink.error(errors::not_supported("a layout written inside a job", head.span));
                    ok = false;
                }
                ItemKind::Dims(_) => {
                    eval.sink.error(errors::not_supported("`dims` of a job", item.span));
                    ok = false;
                }
                ItemKind::In { .. } => {
                    eval.sink.error(errors::not_supported("fields for part of the model", item.span));
                    ok = false;
                }
                ItemKind::Error => ok = false,
                _ => {
                    eval.sink.error(errors::misplaced("a train job", item.span));
                    ok = false;
                }
            }
        }
    }
    ok.then_some(Fields { values, claims })
}

/// Whether a field says what holds anyway.
pub(super) fn is_default(field: &str, e: &Expr) -> bool {
    match (&e.kind, field) {
        (ast::ExprKind::Path(p), "packing" | "balance" | "ema") => p.len() == 1 && p[0].text == "none",
        (ast::ExprKind::Path(p), "attention_mask") => p.len() == 1 && p[0].text == "causal",
        (ast::ExprKind::Number { value: ast::Number::Int(1), unit: None }, "epochs" | "minibatches") => true,
        (ast::ExprKind::List(l), "disturb") => l.is_empty(),
        _ => false,
    }
}
