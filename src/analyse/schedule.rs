//! A schedule declaration at one (p, m): its generator run, its orders checked.

use super::costs::find_function;
use super::errors;
use crate::elaborate::PipelineItem;
use crate::eval::{Closure, Env, Evaluator, Given, Instance, Truth, Value, Wanted, type_wanted};
use crate::pipeline::{self, OpKind, Orders, ScheduleOp};
use crate::source::Span;
use crate::syntax::ast::{Body, Expr, ItemKind, ParamKind};
use std::collections::BTreeMap;
use std::rc::Rc;

/// A schedule, evaluated and checked.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// The declaration's name.
    pub name: String,
    /// Its parameters, defaults included, where they are whole numbers.
    pub arguments: BTreeMap<String, i64>,
    /// Chunks in model order.
    pub chunks: u32,
    /// The checked orders.
    pub orders: pipeline::Schedule,
    /// Idle over busy time of the order alone.
    pub bubble: f64,
}

/// The schedule of a job without a pipeline: one rank, one chunk, forward and backward of each microbatch in turn.
pub fn single(microbatches: u32) -> Option<Schedule> {
    let order = (0..i64::from(microbatches)).flat_map(|i| [ScheduleOp::forward(i, 0), ScheduleOp::backward(i, 0)]);
    let orders = Orders { ranks: vec![order.collect()], hosts: vec![vec![0]], chunks: 1, microbatches };
    let orders = pipeline::check(&orders).ok()?;
    Some(Schedule { name: "none".into(), arguments: BTreeMap::new(), chunks: 1, orders, bubble: 0.0 })
}

/// Runs the schedule of `item` for `p` ranks and `m` microbatches.
pub fn evaluate<'p>(eval: &mut Evaluator<'p, '_>, item: &PipelineItem<'p>, p: u32, m: u32) -> Option<Schedule> {
    let instance = &item.schedule;
    let span = item.schedule_span;
    let name = instance.decl.name.text.to_string();
    let ops = u64::from(p) * u64::from(m) * 2;
    if ops > pipeline::MAX_RUN_LENGTH {
        eval.sink.error(errors::run_too_long(ops, pipeline::MAX_RUN_LENGTH, span));
        return None;
    }
    let env = environment(eval, instance, p, m, span)?;
    requires(eval, instance, &env, span)?;
    let flush = field(eval, instance, "flush", &env);
    if let Some(Value::Bool(Truth::Known(false))) = flush {
        eval.sink.error(crate::eval::errors::not_supported("schedules without a flush", span));
        return None;
    }
    if let Some(Value::Word(w)) = field(eval, instance, "dispatch", &env)
        && w.name == "hint"
    {
        eval.sink.error(crate::eval::errors::not_supported("schedules whose order is a hint", span));
        return None;
    }
    let call = |eval: &mut Evaluator<'p, '_>, f: &str, args: Vec<Value<'p>>| -> Option<Value<'p>> {
        let Some(found) = find_function(instance, f) else {
            eval.sink.error(errors::schedule_lacks(f, &instance.decl.name, span));
            return None;
        };
        let closure = Closure { decl: found.decl, env: Rc::clone(&env) };
        match eval.invoke(&closure, args, span) {
            Value::Error(_) => None,
            v => Some(v),
        }
    };
    let chunks = call(eval, "chunks", Vec::new())?.as_int().and_then(|c| u32::try_from(c).ok()).filter(|c| *c >= 1);
    let Some(chunks) = chunks else {
        eval.sink.error(errors::schedule_value("chunks()", "a whole number of at least 1", &instance.decl.name, span));
        return None;
    };
    let mut ranks = Vec::new();
    let mut hosts = Vec::new();
    for s in 0..p {
        let rank = Value::int(i128::from(s));
        let Value::List(list) = call(eval, "hosts", vec![rank.clone()])? else {
            eval.sink.error(errors::schedule_value("hosts(s)", "a list of chunks", &instance.decl.name, span));
            return None;
        };
        let chunk_ids: Option<Vec<u32>> = list.iter().map(|v| v.as_int().and_then(|n| u32::try_from(n).ok())).collect();
        let Some(chunk_ids) = chunk_ids else {
            eval.sink.error(errors::schedule_value("hosts(s)", "a list of chunks", &instance.decl.name, span));
            return None;
        };
        hosts.push(chunk_ids);
        let Value::List(list) = call(eval, "order", vec![rank])? else {
            eval.sink.error(errors::schedule_value("order(s)", "a list of operations", &instance.decl.name, span));
            return None;
        };
        let mut order = Vec::with_capacity(list.len());
        for v in list.iter() {
            let Value::Op(op) = v else {
                eval.sink.error(errors::schedule_value("order(s)", "a list of operations", &instance.decl.name, span));
                return None;
            };
            let kind = match op.kind {
                'F' => OpKind::F,
                'B' => OpKind::B,
                'W' => OpKind::W,
                _ => OpKind::U,
            };
            let microbatch = i64::try_from(op.microbatch).unwrap_or(i64::MAX);
            let chunk = u32::try_from(op.chunk).unwrap_or(u32::MAX);
            order.push(ScheduleOp { kind, microbatch, chunk });
        }
        ranks.push(order);
    }
    // A chunk that nobody keeps would have parameters nowhere.
    if let Some(lost) = (0..chunks).find(|c| !hosts.iter().any(|h| h.contains(c))) {
        let wanted = format!("every chunk to a rank; chunk {lost} is kept by none");
        eval.sink.error(errors::schedule_value("hosts(s)", &wanted, &instance.decl.name, span));
        return None;
    }
    let orders = Orders { ranks, hosts, chunks, microbatches: m };
    let checked = match pipeline::check(&orders) {
        Ok(s) => s,
        Err(why) => {
            eval.sink.error({
                let std = eval.program.module(instance.id.module).std;
                errors::schedule_wrong(&why, &name, (p, m), span, instance.decl.name.span, std)
            });
            return None;
        }
    };
    let lacking = if checked.has_weight_gradients() {
        Some("schedules that split off the weight gradient")
    } else if find_function(instance, "versions").is_some() {
        Some("schedules with several weight versions")
    } else if (0..chunks).any(|c| !(0..checked.ranks()).any(|s| checked.hosts(s).contains(&c))) {
        Some("chunks that no rank keeps")
    } else {
        None
    };
    if let Some(what) = lacking {
        eval.sink.error(crate::eval::errors::not_supported(what, span));
        return None;
    }
    let bubble = pipeline::bubble(&checked);
    let arguments = arguments(instance, &env);
    Some(Schedule { name, arguments, chunks, orders: checked, bubble })
}

/// Warns of an order that idles longer than it works, whatever the chunks cost.
pub fn warn_of_bubble(eval: &mut Evaluator<'_, '_>, item: &PipelineItem<'_>, schedule: &Schedule, p: u32, m: u32) {
    if schedule.bubble > 1.0 {
        let std = eval.program.module(item.schedule.id.module).std;
        let place = if std { item.schedule_span } else { item.schedule.decl.name.span };
        eval.sink.warn(errors::bubble_large(&schedule.name, schedule.bubble, (p, m), place, std));
    }
}

/// `p`, `m`, the schedule's parameters and its own functions.
fn environment<'p>(
    eval: &mut Evaluator<'p, '_>,
    instance: &Instance<'p>,
    p: u32,
    m: u32,
    span: Span,
) -> Option<Rc<Env<'p>>> {
    let mut env = Env::inside(&Env::top(instance.id.module));
    env.bind("p", Value::int(i128::from(p)));
    env.bind("m", Value::int(i128::from(m)));
    for param in instance.decl.params.as_deref().unwrap_or_default() {
        let ParamKind::Value { ty, default, .. } = &param.kind else { continue };
        let wanted = ty.as_ref().map_or(Wanted::Any, type_wanted);
        let value = match (instance.args.get(&param.name.text), default) {
            (Some((v, _)), _) => v.clone(),
            (None, Some(e)) => {
                let v = eval.eval(e, &Rc::new(env.clone()), &wanted);
                eval.require(v, &wanted, &format!("`{}`", param.name.text), e.span)
            }
            (None, None) => {
                let d = instance.decl;
                eval.sink.error(crate::eval::errors::missing_argument(
                    &param.name.text,
                    &d.name.text,
                    span,
                    d.name.span,
                ));
                return None;
            }
        };
        match value {
            Value::Error(_) => return None,
            Value::Hole(_) => {
                eval.sink.error(errors::open_choice(&param.name.text, span));
                return None;
            }
            v => env.bind(param.name.text.clone(), v),
        }
    }
    // Functions see each other: each closes over the parameters, and over the functions before it.
    let mut env = Rc::new(env);
    let Body::Block(block) = &instance.decl.body else { return Some(env) };
    let own = Given { block, env: Rc::clone(&env) };
    for given in std::iter::once(&own).chain(&instance.with) {
        for item in &given.block.items {
            if let ItemKind::Decl(d) = &item.kind {
                let f = Value::Func(Rc::new(Closure { decl: d, env: Rc::clone(&env) }));
                env = Env::with(&env, vec![(d.name.text.clone(), f)]);
            }
        }
    }
    Some(env)
}

fn arguments(instance: &Instance<'_>, env: &Env<'_>) -> BTreeMap<String, i64> {
    let params = instance.decl.params.as_deref().unwrap_or_default().iter();
    let value = |p: &crate::syntax::ast::Param| {
        let n = env.find(&p.name.text)?.as_int()?;
        Some((p.name.text.to_string(), i64::try_from(n).ok()?))
    };
    params.filter_map(value).collect()
}

fn requires<'p>(eval: &mut Evaluator<'p, '_>, instance: &Instance<'p>, env: &Rc<Env<'p>>, span: Span) -> Option<()> {
    let Body::Block(block) = &instance.decl.body else { return Some(()) };
    let mut ok = true;
    for item in &block.items {
        if let ItemKind::Require { cond, message } = &item.kind {
            match eval.eval(cond, env, &Wanted::Any) {
                Value::Bool(Truth::Known(true)) => {}
                Value::Bool(Truth::Known(false)) => {
                    let values: Vec<_> = ["p", "m"]
                        .iter()
                        .map(|n| (*n).to_string())
                        .chain(instance.decl.params.iter().flatten().map(|p| p.name.text.to_string()))
                        .filter_map(|n| env.find(&n).and_then(Value::as_int).map(|v| format!("{n} = {v}")))
                        .collect();
                    let text = message.as_ref().map_or("a requirement of the schedule does not hold", |m| m.as_str());
                    let would = would_do(eval, instance, cond, env);
                    eval.sink.error(errors::schedule_requires(text, &values.join(", "), &would, span, item.span));
                    ok = false;
                }
                _ => ok = false,
            }
        }
    }
    ok.then_some(())
}

/// The nearest numbers of microbatches, below and above, with which a requirement holds.
fn would_do<'p>(eval: &mut Evaluator<'p, '_>, instance: &Instance<'p>, cond: &'p Expr, env: &Rc<Env<'p>>) -> Vec<i128> {
    const REACH: i128 = 256;
    let Some(m) = env.find("m").and_then(Value::as_int) else { return Vec::new() };
    let p = env.find("p").and_then(Value::as_int).and_then(|p| u32::try_from(p).ok()).unwrap_or(1);
    let holds = |n: i128| {
        let Ok(n) = u32::try_from(n) else { return false };
        let (mut graph, mut sink) = (crate::expr::Graph::new(), crate::diagnostics::Sink::new());
        let mut quiet = Evaluator::new(eval.program, &mut graph, &mut sink);
        let Some(env) = environment(&mut quiet, instance, p, n, instance.span) else { return false };
        matches!(quiet.eval(cond, &env, &Wanted::Any), Value::Bool(Truth::Known(true)))
    };
    let below = (1..m).rev().take(REACH as usize).find(|n| holds(*n));
    let above = (m + 1..m + REACH).find(|n| holds(*n));
    below.into_iter().chain(above).collect()
}

fn field<'p>(
    eval: &mut Evaluator<'p, '_>,
    instance: &Instance<'p>,
    name: &str,
    env: &Rc<Env<'p>>,
) -> Option<Value<'p>> {
    let Body::Block(block) = &instance.decl.body else { return None };
    let own = Given { block, env: Rc::clone(env) };
    let given = instance.with.iter().rev().chain(std::iter::once(&own));
    for g in given {
        if let Some((e, _)) = crate::eval::fields_of(g.block).get(name) {
            return Some(eval.eval(e, env, &Wanted::Any));
        }
    }
    None
}
