//! A schedule declaration at one (p, m): its generator run, its orders checked.

use super::costs::find_function;
use super::errors;
use crate::diagnostics::Sink;
use crate::elaborate::{Claim, ClaimKind, Job, PipelineItem};
use crate::eval::{Closure, Env, Evaluator, Given, Instance, Truth, Value, Wanted, type_wanted};
use crate::hir::Program;
use crate::pipeline::{self, OpKind, Orders, ScheduleError, ScheduleOp};
use crate::source::Span;
use crate::syntax::ast::{Body, Decl, Expr, ExprKind, ItemKind, ParamKind};
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
    /// Versions of its weights that each rank keeps.
    pub versions: Vec<u32>,
    /// Updates between the weights of a forward and the update its gradient enters, at most.
    pub staleness: u32,
}

impl Schedule {
    /// The first chunk that no rank keeps.
    pub fn keeps_none(&self) -> Option<u32> {
        let ranks = 0..self.orders.ranks();
        (0..self.chunks).find(|c| !ranks.clone().any(|s| self.orders.hosts(s).contains(c)))
    }
}

/// The schedule of a job without a pipeline: one rank, one chunk, forward and backward of each microbatch in turn.
pub fn single(microbatches: u32) -> Option<Schedule> {
    if microbatches > crate::limits::MICROBATCHES {
        return None;
    }
    let order = (0..i64::from(microbatches)).flat_map(|i| [ScheduleOp::forward(i, 0), ScheduleOp::backward(i, 0)]);
    let ranks = vec![order.collect()];
    let orders = Orders { ranks, hosts: vec![vec![0]], chunks: 1, microbatches, ..Orders::default() };
    let orders = pipeline::check(&orders).ok()?;
    let (name, arguments) = ("none".into(), BTreeMap::new());
    Some(Schedule { name, arguments, chunks: 1, orders, bubble: 0.0, versions: vec![1], staleness: 0 })
}

/// Where a schedule is used: what its messages may point at, and what would change its numbers.
#[derive(Clone, Default, Debug)]
pub struct Use {
    /// Where the number of ranks is given.
    pub ranks: Option<Span>,
    /// Where the batch is given, and sequences of one microbatch on all ranks.
    pub batch: Option<(Span, i64)>,
}

/// Elements that an order may evaluate for each of its operations: the longest of the library takes 12.
const ELEMENTS_PER_OP: u64 = 16;

/// Runs the schedule of `item` for `p` ranks and `m` microbatches.
pub fn evaluate<'p>(
    eval: &mut Evaluator<'p, '_>,
    item: &PipelineItem<'p>,
    numbers: (u32, u32),
    place: &Use,
) -> Option<Schedule> {
    run(eval, &item.schedule, item.schedule_span, numbers, place)
}

/// Runs the schedule `instance`, used at `span`, for `p` ranks and `m` microbatches.
pub fn run<'p>(
    eval: &mut Evaluator<'p, '_>,
    instance: &Instance<'p>,
    span: Span,
    (p, m): (u32, u32),
    place: &Use,
) -> Option<Schedule> {
    let name = instance.decl.name.text.to_string();
    let ops = u64::from(p) * u64::from(m) * 2;
    if ops > pipeline::MAX_RUN_LENGTH {
        eval.sink.error(errors::run_too_long(ops, pipeline::MAX_RUN_LENGTH, span));
        return None;
    }
    eval.allow(ops * ELEMENTS_PER_OP);
    let env = environment(eval, instance, p, m, span)?;
    requires(eval, instance, &env, span, place)?;
    let endless = matches!(field(eval, instance, "flush", &env), Some(Value::Bool(Truth::Known(false))));
    let hints = matches!(field(eval, instance, "dispatch", &env), Some(Value::Word(w)) if w.name == "hint");
    if endless && hints {
        eval.sink.error(crate::eval::errors::not_supported("hints without a flush", span));
        return None;
    }
    let mut asked = Asked { eval, instance, env: Rc::clone(&env), span };
    let chunks = asked.whole("chunks", None, 1)?;
    let (mut ranks, mut hosts, mut versions) = (Vec::new(), Vec::new(), Vec::new());
    for s in 0..p {
        hosts.push(asked.hosts(s)?);
        ranks.push(asked.order(s)?);
        let kept = find_function(instance, "versions").map(|_| asked.whole("versions", Some(s), 1));
        versions.push(match kept {
            Some(n) => n?,
            None => 1,
        });
    }
    let orders = Orders { ranks, hosts, chunks, microbatches: m, endless, hints };
    let checked = match pipeline::check(&orders) {
        Ok(s) => s,
        Err(why) => {
            let std = eval.program.module(instance.id.module).std;
            let at =
                errors::ScheduleAt { name: &name, numbers: (p, m), used: span, decl: instance.decl.name.span, std };
            let d = match (&why, find_function(instance, "hosts").filter(|_| !std)) {
                (ScheduleError::NotHosted { rank, op, .. }, Some(f)) => {
                    let keeps = &orders.hosts[*rank as usize];
                    errors::not_hosted(&at, (*rank, *op), keeps, body_span(f.decl), hosts_that_fit(&orders))
                }
                _ => errors::schedule_wrong(&why, &at),
            };
            eval.sink.error(d);
            return None;
        }
    };
    let stale = pipeline::staleness(&checked);
    for (s, (found, kept)) in stale.iter().zip(&versions).enumerate() {
        // One version is used as it is; several are kept so that a backward finds the weights of its forward.
        if let (Some(op), true) = (found.op, *kept > 1 && found.updates >= *kept) {
            let std = eval.program.module(instance.id.module).std;
            let at =
                errors::ScheduleAt { name: &name, numbers: (p, m), used: span, decl: instance.decl.name.span, std };
            eval.sink.error(errors::versions_few(&at, s, op, *kept, found.updates));
            return None;
        }
    }
    let staleness = stale.iter().map(|s| s.updates).max().unwrap_or(0);
    let bubble = pipeline::bubble(&checked);
    let arguments = arguments(instance, &env);
    Some(Schedule { name, arguments, chunks, orders: checked, bubble, versions, staleness })
}

/// Which closed forms a schedule has.
#[derive(Copy, Clone, Default, Debug)]
pub struct ClosedForms {
    /// `in_flight(s)`.
    pub in_flight: bool,
    /// `bubble()`.
    pub bubble: bool,
}

/// Runs the schedule for `p` ranks and `m` microbatches and compares its closed forms with what the order does.
pub fn try_forms<'p>(
    eval: &mut Evaluator<'p, '_>,
    instance: &Instance<'p>,
    span: Span,
    (p, m): (u32, u32),
) -> Option<ClosedForms> {
    let schedule = run(eval, instance, span, (p, m), &Use::default())?;
    let env = environment(eval, instance, p, m, span)?;
    let mut asked = Asked { eval, instance, env: Rc::clone(&env), span };
    let values = arguments(instance, &env).iter().map(|(n, v)| format!("{n} = {v}")).collect::<Vec<_>>().join(", ");
    let mut forms = ClosedForms::default();
    if let Some(f) = find_function(instance, "in_flight") {
        forms.in_flight = true;
        let counted = pipeline::in_flight(&schedule.orders, pipeline::Weights::default());
        for (s, counted) in (0..p).zip(counted) {
            let said = asked.call("in_flight", Some(s))?.as_f64();
            if said != Some(f64::from(counted.most)) {
                let what = format!("`in_flight({s})`");
                let found = (said, f64::from(counted.most));
                asked.eval.sink.error(errors::closed_form(&what, found, (p, m), &values, body_span(f.decl)));
                return None;
            }
        }
    }
    if let Some(f) = find_function(instance, "bubble") {
        forms.bubble = true;
        let said = asked.call("bubble", None)?.as_f64();
        if said.is_none_or(|said| (said - schedule.bubble).abs() > 1e-9) {
            let found = (said, schedule.bubble);
            asked.eval.sink.error(errors::closed_form("`bubble()`", found, (p, m), &values, body_span(f.decl)));
            return None;
        }
    }
    Some(forms)
}

/// What a schedule does whatever its numbers.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Habits {
    /// Whether it makes gradients of parameters in operations of their own.
    pub splits: bool,
    /// Whether it issues operations together.
    pub joins: bool,
    /// Whether it goes on without a flush.
    pub endless: bool,
}

/// A schedule's habits, looked up at the small numbers of ranks and microbatches that it takes. One that is not of the
/// library may do at large numbers what it does not at small ones, so it is said to issue operations together.
pub fn habits<'p>(program: &'p Program, instance: &Instance<'p>) -> Habits {
    const TRIED: &[(u32, u32)] = &[(1, 1), (1, 2), (2, 2), (2, 4), (4, 4), (4, 8), (8, 16), (3, 12)];
    let fitting = TRIED.iter().copied().filter(|numbers| allows(program, instance, *numbers));
    let mut habits = Habits { joins: !program.module(instance.id.module).std, ..Habits::default() };
    for numbers in fitting {
        let (mut graph, mut sink) = (crate::expr::Graph::new(), Sink::new());
        let mut quiet = Evaluator::new(program, &mut graph, &mut sink);
        if let Some(found) = run(&mut quiet, instance, instance.span, numbers, &Use::default()) {
            habits.splits |= found.orders.has_weight_gradients();
            habits.joins |= found.orders.joins();
            habits.endless |= found.orders.is_endless();
        }
    }
    habits
}

/// Whether the schedule's own requirements hold for so many ranks and microbatches.
pub fn allows<'p>(program: &'p Program, instance: &Instance<'p>, (p, m): (u32, u32)) -> bool {
    let (mut graph, mut sink) = (crate::expr::Graph::new(), Sink::new());
    let mut quiet = Evaluator::new(program, &mut graph, &mut sink);
    let Some(env) = environment(&mut quiet, instance, p, m, instance.span) else { return false };
    let Body::Block(block) = &instance.decl.body else { return true };
    block.items.iter().all(|item| match &item.kind {
        ItemKind::Require { cond, .. } => {
            matches!(quiet.eval(cond, &env, &Wanted::Any), Value::Bool(Truth::Known(true)))
        }
        _ => true,
    })
}

/// Calls of a schedule's functions.
struct Asked<'p, 'e, 's, 'i> {
    eval: &'e mut Evaluator<'p, 's>,
    instance: &'i Instance<'p>,
    env: Rc<Env<'p>>,
    span: Span,
}

impl<'p> Asked<'p, '_, '_, '_> {
    /// The function `name`, of rank `rank` where it is one of ranks.
    fn call(&mut self, name: &str, rank: Option<u32>) -> Option<Value<'p>> {
        let Some(found) = find_function(self.instance, name) else {
            self.eval.sink.error(errors::schedule_lacks(name, &self.instance.decl.name, self.span));
            return None;
        };
        let closure = Closure { decl: found.decl, env: Rc::clone(&self.env) };
        let rank = rank.map(|s| Value::int(i128::from(s)));
        match self.eval.invoke(&closure, rank.into_iter().collect(), self.span) {
            Value::Error(_) => None,
            v => Some(v),
        }
    }

    fn wrong<T>(&mut self, what: &str, wanted: &str) -> Option<T> {
        let name = &self.instance.decl.name;
        self.eval.sink.error(errors::schedule_value(what, wanted, name, self.span));
        None
    }

    /// A whole number of at least `least`.
    fn whole(&mut self, name: &str, rank: Option<u32>, least: u32) -> Option<u32> {
        let found = self.call(name, rank)?.as_int().and_then(|c| u32::try_from(c).ok()).filter(|c| *c >= least);
        let form = if rank.is_some() { format!("{name}(s)") } else { format!("{name}()") };
        found.or_else(|| self.wrong(&form, &format!("a whole number of at least {least}")))
    }

    fn hosts(&mut self, s: u32) -> Option<Vec<u32>> {
        let found = match self.call("hosts", Some(s))? {
            Value::List(list) => list.iter().map(|v| v.as_int().and_then(|n| u32::try_from(n).ok())).collect(),
            _ => None,
        };
        found.or_else(|| self.wrong("hosts(s)", "a list of chunks"))
    }

    fn order(&mut self, s: u32) -> Option<Vec<ScheduleOp>> {
        let Value::List(list) = self.call("order", Some(s))? else {
            return self.wrong("order(s)", "a list of operations");
        };
        let mut order = Vec::with_capacity(list.len());
        for v in list.iter() {
            match v {
                Value::Op(op, None) => order.push(operation(*op)),
                Value::Op(x, Some(y)) => order.extend(ScheduleOp::both(operation(*x), operation(*y))),
                _ => return self.wrong("order(s)", "a list of operations"),
            }
        }
        Some(order)
    }
}

/// Numbers beyond all bounds stay beyond them.
fn operation(op: crate::eval::ScheduleOp) -> ScheduleOp {
    let kind = match op.kind {
        'F' => OpKind::F,
        'B' => OpKind::B,
        'W' => OpKind::W,
        _ => OpKind::U,
    };
    let far = if op.microbatch < 0 { i64::MIN } else { i64::MAX };
    let microbatch = i64::try_from(op.microbatch).unwrap_or(far);
    let chunk = u32::try_from(op.chunk).unwrap_or(u32::MAX);
    ScheduleOp { kind, microbatch, chunk, joined: false }
}

fn body_span(f: &Decl) -> Span {
    match &f.body {
        Body::Expr(e) => e.span,
        Body::Block(_) | Body::None => f.name.span,
    }
}

/// A `hosts(s)` of the usual forms that keeps on each rank what its order runs.
fn hosts_that_fit(orders: &Orders) -> Option<String> {
    type Form = Box<dyn Fn(u32) -> Vec<u32>>;
    let p = orders.ranks.len() as u32;
    let last = p.checked_sub(1)?;
    let each = orders.chunks / p;
    let forms: [(String, Form); 4] = [
        ("[s]".into(), Box::new(|s| vec![s])),
        ("[s, 2 * p - 1 - s]".into(), Box::new(move |s| vec![s, p + last - s])),
        ("[s, p - 1 - s]".into(), Box::new(move |s| vec![s.min(last - s), s.max(last - s)])),
        (format!("[s + j * p for j in 0..{each}]"), Box::new(move |s| (0..each).map(|j| s + j * p).collect())),
    ];
    let runs = |s: u32| -> Vec<u32> {
        let mut chunks: Vec<u32> = orders.ranks[s as usize].iter().map(|op| op.chunk).collect();
        chunks.sort_unstable();
        chunks.dedup();
        chunks
    };
    forms.into_iter().find(|(_, form)| (0..p).all(|s| form(s) == runs(s))).map(|(text, _)| text)
}

/// Whether the job accepts how old the weights are that gradients are computed with, by the schedule's order and by an
/// update that may come late; if it says nothing of it, that is an error.
pub fn staleness_accepted(job: &Job<'_>, schedule: &Schedule, sink: &mut Sink) -> bool {
    let late = job.layout.update.as_ref().filter(|u| u.delay > 0);
    let updates = i64::from(schedule.staleness) + late.map_or(0, |u| u.delay);
    let says = |e: &Expr| matches!(&e.kind, ExprKind::Path(path) if path.len() == 1 && path[0].text == "staleness");
    let bounds = |c: &Claim<'_>| match &c.value.kind {
        ExprKind::Binary(_, _, left, right) => c.kind == ClaimKind::Require && (says(left) || says(right)),
        _ => false,
    };
    if updates == 0 || job.claims.iter().any(bounds) {
        return true;
    }
    let own = job.places.values().filter(|at| at.file == job.span.file && at.start > job.span.end);
    let after = own.max_by_key(|at| at.end).copied();
    let who = match (&job.pipeline, late) {
        (Some(item), None) => (format!("schedule `{}`", schedule.name), item.schedule_span),
        (_, late) => ("a delayed update".into(), late.map_or(job.span, |u| u.span)),
    };
    sink.error(errors::staleness_open(&who.0, updates, who.1, after));
    false
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

fn requires<'p>(
    eval: &mut Evaluator<'p, '_>,
    instance: &Instance<'p>,
    env: &Rc<Env<'p>>,
    span: Span,
    place: &Use,
) -> Option<()> {
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
                    eval.sink.error(errors::schedule_requires(
                        text,
                        &values.join(", "),
                        &would,
                        (span, item.span),
                        place,
                    ));
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
