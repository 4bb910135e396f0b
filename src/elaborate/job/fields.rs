//! The items of a job: its fields, `let`s and claims, those of each `with` included.

use super::super::errors;
use super::{Claim, ClaimKind, Objective, Settings};
use crate::eval::{Env, Evaluator, Given, Hole, Instance, Value, Wanted, lets_in_order, type_wanted};
use crate::hir::schema;
use crate::source::Span;
use crate::syntax::ast::{self, Body, Expr, ItemKind, Kind, Name};
use indexmap::IndexMap;
use smol_str::SmolStr;
use std::rc::Rc;

/// Names of what follows from the batch, which a user may want to give in its place.
pub(super) const DERIVED: [&str; 2] = ["accumulation", "microbatches"];

/// What the items of a job say.
pub(super) struct Fields<'p> {
    /// Each field, as given last.
    pub(super) values: IndexMap<SmolStr, Field<'p>>,
    /// Requirements and expectations.
    pub(super) claims: Vec<Claim<'p>>,
    /// Lengths of dimensions of the data: `dims { S = 512 tok }`.
    pub(super) dims: Vec<(&'p Name, Field<'p>)>,
    /// What the search is after, the last that was given.
    pub(super) objective: Option<Objective<'p>>,
    /// Names of the job's `let`s.
    pub(super) lets: Vec<SmolStr>,
}

/// A field as it is written.
#[derive(Clone, Debug)]
pub(super) struct Field<'p> {
    /// Its value, or the domain it is chosen from.
    pub(super) expr: &'p Expr,
    /// The names it sees.
    pub(super) env: Rc<Env<'p>>,
    /// The item.
    pub(super) span: Span,
    /// Whether it is a choice: `NAME in DOMAIN`.
    pub(super) open: bool,
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
    let mut objective = None;
    let mut dims: Vec<(&'p Name, Field<'p>)> = Vec::new();
    let mut claims: Vec<Claim<'p>> = Vec::new();
    let mut ok = true;
    let known: Vec<_> = schema::fields(Kind::Train).iter().map(|f| f.name.to_string()).collect();
    for (i, given) in blocks.into_iter().enumerate() {
        for l in lets_in_order(given.block) {
            let env = Env::with(&given.env, vars.clone());
            let value = match (&l.value, settings.number(&l.name.text)) {
                (_, Some(n)) => Value::int(i128::from(n)),
                (ast::LetValue::Is(e), None) => eval.eval(e, &env, &l.ty.as_ref().map_or(Wanted::Any, type_wanted)),
                (ast::LetValue::In(e), None) => {
                    let hole = Hole { span: e.span, domain: Some((e, Rc::clone(&env))) };
                    eval.choose(&l.name.text, &hole, None)
                }
            };
            vars.push((l.name.text.clone(), value));
        }
        for item in &given.block.items {
            let env = Env::with(&given.env, vars.clone());
            match &item.kind {
                ItemKind::Assign { target, value } if target.suffixes.is_empty() => {
                    let name = &target.name;
                    if known.iter().any(|k| *k == *name.text) || DERIVED.contains(&name.text.as_str()) {
                        let field = Field { expr: value, env, span: item.span, open: false };
                        values.insert(name.text.clone(), field);
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
                    values.insert(name.text.clone(), Field { expr: domain, env, span: item.span, open: true });
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
                // `let`s were read above; an expectation of a job that is copied is not inherited.
                ItemKind::Let(_) | ItemKind::Expect { .. } => {}
                ItemKind::Objective { maximize, value } => {
                    objective = Some(Objective { maximize: *maximize, value, env, span: item.span });
                }
                ItemKind::Section { head, .. } if head.text == "layout" => {
                    eval.sink.error(errors::not_supported("a layout written inside a job", head.span));
                    ok = false;
                }
                ItemKind::Dims(defs) => {
                    for def in defs {
                        // A length given again by a `with` takes the place of the old one.
                        dims.retain(|(n, _)| n.text != def.name.text);
                        let field =
                            Field { expr: &def.extent, env: Rc::clone(&env), span: def.extent.span, open: false };
                        dims.push((&def.name, field));
                    }
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
    let lets = vars.into_iter().map(|(name, _)| name).collect();
    ok.then_some(Fields { values, claims, dims, objective, lets })
}

/// Whether a field says what holds anyway.
pub(super) fn is_default(field: &str, e: &Expr) -> bool {
    match (&e.kind, field) {
        (ast::ExprKind::Path(p), "packing" | "balance" | "ema") => p.len() == 1 && p[0].text == "none",
        (ast::ExprKind::Path(p), "attention_mask") => p.len() == 1 && p[0].text == "causal",
        (ast::ExprKind::Number { value: ast::Number::Int(1), unit: None }, "epochs" | "minibatches") => true,
        _ => false,
    }
}
