//! A cluster's tree of levels, evaluated.

use super::errors;
use crate::eval::{Env, Evaluator, Instance, Num, Quantity, Record, Truth, Value, Wanted, fields_of};
use crate::hir::schema;
use crate::source::Span;
use crate::syntax::ast::{Body, ExprKind, ItemKind, ParamKind};
use std::rc::Rc;

/// Devices a cluster may have; never enumerated.
pub(super) const MAX_DEVICES: i128 = 1 << 40;
/// Levels a cluster may have.
pub(super) const MAX_LEVELS: usize = 16;

/// A cluster of one kind of device, as a chain of levels.
#[derive(Clone, Debug)]
pub struct Cluster<'p> {
    /// The declaration's name.
    pub name: String,
    /// Innermost first; the last is the root.
    pub levels: Vec<Level<'p>>,
    /// What the leaves are.
    pub device: Rc<Record<'p>>,
    /// How many devices.
    pub devices: i64,
    /// Where the job names it.
    pub span: Span,
}

/// A level of a cluster.
#[derive(Clone, Debug)]
pub struct Level<'p> {
    /// Its name.
    pub name: String,
    /// Children of one instance.
    pub children: i64,
    /// Devices below one instance.
    pub devices: i64,
    /// The link each child reaches it through.
    pub link: Rc<Record<'p>>,
    /// How many of them.
    pub links: i64,
    /// The word for its topology: `switch`, `fat_tree`.
    pub topology: String,
    /// Whether its switches sum.
    pub in_network: bool,
    /// Share of the links' bandwidth that is left.
    pub efficiency: f64,
    /// Connections of one flow.
    pub connections: i64,
    /// Price of one instance, $/s.
    pub price: f64,
}

impl Level<'_> {
    /// What one child's links carry, bytes a second, one direction: efficiency and flow limit applied.
    pub fn child_bandwidth(&self) -> f64 {
        let field = |name| self.link.fields.get(name).and_then(Value::as_f64).unwrap_or(0.0);
        let flow = field("flow_limit") * self.connections as f64;
        field("bandwidth").min(flow) * field("efficiency") * self.efficiency * self.links as f64
    }

    /// One message, one way, seconds.
    pub fn latency(&self) -> f64 {
        self.link.fields.get("latency").and_then(Value::as_f64).unwrap_or(0.0)
    }
}

impl<'p> Cluster<'p> {
    /// Evaluates the tree of `instance`.
    pub fn new(eval: &mut Evaluator<'p, '_>, instance: &Instance<'p>, span: Span) -> Option<Self> {
        let decl = instance.decl;
        let mut env = Env::inside(&Env::top(instance.id.module));
        for param in decl.params.as_deref().unwrap_or_default() {
            let value = match (instance.args.get(&param.name.text), &param.kind) {
                (Some((v, _)), _) => v.clone(),
                (None, ParamKind::Value { default: Some(e), .. }) => eval.eval(e, &Rc::new(env.clone()), &Wanted::Int),
                (None, _) => {
                    eval.sink.error(errors::missing_argument(&param.name.text, &decl.name, instance.span));
                    return None;
                }
            };
            match value {
                Value::Hole => {
                    eval.sink.error(errors::open_choice(&param.name.text, instance.span));
                    return None;
                }
                Value::Error(_) => return None,
                v => env.bind(param.name.text.clone(), v),
            }
        }
        if let Some(given) = instance.with.first() {
            let at = given.block.span.unwrap_or(instance.span);
            eval.sink.error(errors::not_supported("`with` on a cluster", at));
            return None;
        }
        let Body::Block(block) = &decl.body else { return None };
        let mut env = Rc::new(env);
        let mut levels: Vec<Level<'p>> = Vec::new();
        let mut device: Option<Rc<Record<'p>>> = None;
        for item in &block.items {
            match &item.kind {
                ItemKind::Let(l) => {
                    if let crate::syntax::ast::LetValue::Is(e) = &l.value {
                        let v = eval.eval(e, &env, &Wanted::Any);
                        env = Env::with(&env, vec![(l.name.text.clone(), v)]);
                    }
                }
                ItemKind::Level { name, children, over, block } => {
                    let [child] = &children[..] else {
                        eval.sink.error(errors::not_supported("levels with children of several kinds", item.span));
                        return None;
                    };
                    // What a job gives a cluster of the library is the job's to mend.
                    let in_library = eval.program.module(instance.id.module).std;
                    let at = if in_library { span } else { child.count.span };
                    let count = positive(eval.eval(&child.count, &env, &Wanted::Int), eval, at, &name.text)?;
                    let below = match &child.of.kind {
                        ExprKind::Path(path)
                            if path.len() == 1 && levels.last().is_some_and(|l| l.name == path[0].text) =>
                        {
                            levels.last().map_or(1, |l| l.devices)
                        }
                        ExprKind::Path(path) if path.len() == 1 && levels.iter().any(|l| l.name == path[0].text) => {
                            eval.sink.error(errors::not_supported(
                                "a level that is not built on the one before it",
                                child.of.span,
                            ));
                            return None;
                        }
                        _ => match eval.eval(&child.of, &env, &Wanted::Any) {
                            Value::Record(r) if r.kind == "device" && device.is_none() => {
                                device = Some(r);
                                1
                            }
                            Value::Record(r) if r.kind == "device" => {
                                eval.sink.error(errors::not_supported("several kinds of leaf level", child.of.span));
                                return None;
                            }
                            Value::Error(_) => return None,
                            other => {
                                let noun = other.noun();
                                eval.sink.error(errors::level_child(&noun, child.of.span));
                                return None;
                            }
                        },
                    };
                    let (links, link, counted) = match eval.eval(over, &env, &Wanted::Any) {
                        Value::Record(r) if r.kind == "link" => (1, r, false),
                        Value::Links { count: Num::Int(n), link } if n >= 1 => (n as i64, link, true),
                        Value::Error(_) => return None,
                        other => {
                            let noun = other.noun();
                            eval.sink.error(errors::level_over(&noun, over.span));
                            return None;
                        }
                    };
                    if !counted && below > 1 {
                        let each = link.fields.get("bandwidth").and_then(Value::as_f64).unwrap_or(0.0);
                        eval.sink.warn(errors::link_shared(&link.name, below, each, over.span));
                    }
                    let total = i128::from(count) * i128::from(below);
                    if total > MAX_DEVICES || levels.len() >= MAX_LEVELS {
                        eval.sink.error(errors::cluster_limit(total, levels.len() + 1, item.span));
                        return None;
                    }
                    let mut level = Level {
                        name: name.text.to_string(),
                        children: count,
                        devices: total as i64,
                        link,
                        links,
                        topology: "switch".into(),
                        in_network: false,
                        efficiency: 1.0,
                        connections: 1,
                        price: 0.0,
                    };
                    if let Some(block) = block {
                        level_fields(eval, block, &env, &mut level)?;
                    }
                    levels.push(level);
                }
                ItemKind::Error => return None,
                _ => {
                    eval.sink.error(errors::misplaced("a cluster", item.span));
                    return None;
                }
            }
        }
        let (Some(device), Some(root)) = (device, levels.last()) else {
            eval.sink.error(errors::cluster_empty(&decl.name));
            return None;
        };
        let devices = root.devices;
        Some(Self { name: decl.name.text.to_string(), levels, device, devices, span })
    }

    /// The innermost level that holds `devices` neighbours starting at a multiple of them.
    pub fn level_of(&self, devices: i64) -> usize {
        self.levels.iter().position(|l| l.devices >= devices).unwrap_or(self.levels.len() - 1)
    }

    /// Price of all devices and levels, $/s.
    pub fn price(&self) -> f64 {
        let levels = self.levels.iter().map(|l| l.price * (self.devices / l.devices) as f64);
        self.device_field("price") * self.devices as f64 + levels.sum::<f64>()
    }

    /// A field of the device in base units; 0 if it is not a known number.
    pub fn device_field(&self, name: &str) -> f64 {
        self.device.fields.get(name).and_then(Value::as_f64).unwrap_or(0.0)
    }
}

fn positive<'p>(value: Value<'p>, eval: &mut Evaluator<'p, '_>, span: Span, what: &str) -> Option<i64> {
    match value {
        Value::Num(Quantity { num: Num::Int(n), unit }) if unit.is_none() && (1..=MAX_DEVICES).contains(&n) => {
            Some(n as i64)
        }
        Value::Num(Quantity { num: Num::Int(n), .. }) => {
            eval.sink.error(errors::count_range(what, n, span));
            None
        }
        Value::Error(_) => None,
        other => {
            let noun = other.noun();
            eval.sink.error(errors::count_kind(what, &noun, span));
            None
        }
    }
}

fn level_fields<'p>(
    eval: &mut Evaluator<'p, '_>,
    block: &'p crate::syntax::ast::Block,
    env: &Rc<Env<'p>>,
    level: &mut Level<'p>,
) -> Option<()> {
    let known: Vec<_> = schema::level_fields().iter().map(|f| f.name.to_string()).collect();
    for (name, (e, at)) in fields_of(block) {
        if !known.iter().any(|k| *k == *name) {
            eval.sink.error(crate::eval::errors::unknown_field(&name, at, "a level", &known));
            return None;
        }
        let value = eval.eval(e, env, &Wanted::Any);
        match (name.as_str(), value) {
            (_, Value::Error(_)) => return None,
            ("topology", Value::Word(w)) => level.topology = w.name.to_string(),
            ("in_network_reduction", Value::Bool(Truth::Known(b))) => level.in_network = b,
            ("efficiency", v) if v.as_f64().is_some_and(|x| x > 0.0 && x <= 1.0) => {
                level.efficiency = v.as_f64().unwrap_or(1.0);
            }
            ("connections", v) if v.as_int().is_some_and(|n| (1..=1 << 20).contains(&n)) => {
                level.connections = v.as_int().unwrap_or(1) as i64;
            }
            ("failed_links", v) if v.as_f64().is_some_and(|x| (0.0..1.0).contains(&x)) => {
                level.efficiency *= 1.0 - v.as_f64().unwrap_or(0.0);
            }
            ("price", v) if v.as_f64().is_some_and(|x| x >= 0.0) => level.price = v.as_f64().unwrap_or(0.0),
            // Host memory and power belong to what is not predicted yet: offload and energy.
            ("host" | "power", _) => {}
            ("shares" | "measured" | "without", _) => {
                eval.sink.error(errors::not_supported(&format!("`{name}` of a level"), at));
                return None;
            }
            (_, other) => {
                let noun = other.noun();
                eval.sink.error(errors::level_field(&name, &noun, e.span));
                return None;
            }
        }
    }
    Some(())
}
