//! A cluster's declaration, evaluated: levels over levels over devices, each level once however many there are of it.

use super::errors;
use super::topology::{self, Topology};
use crate::eval::{
    self, Env, Evaluator, Given, Hole, Instance, Num, Quantity, Record, Truth, Value, Wanted, fields_of,
};
use crate::hir::schema;
use crate::limits;
use crate::source::Span;
use crate::syntax::ast::{Block, Body, Child as Written, Expr, ExprKind, Item, ItemKind, Let, LetValue, ParamKind};
use indexmap::IndexMap;
use smol_str::SmolStr;
use std::rc::Rc;

/// A declared level.
#[derive(Clone, Debug)]
pub(super) struct Tier<'p> {
    /// Its name.
    pub(super) name: SmolStr,
    /// Its children, in order: as many of each as there are in one instance.
    pub(super) groups: Vec<Group<'p>>,
    /// Devices below one instance.
    pub(super) devices: i64,
    /// What is said of it.
    pub(super) facts: Rc<Facts<'p>>,
    /// Where dead devices are named: the expression and the names it sees.
    pub(super) without: Option<(&'p Expr, Rc<Env<'p>>)>,
}

/// Equal children of a level.
#[derive(Clone, Debug)]
pub(super) struct Group<'p> {
    /// `label:`
    pub(super) label: Option<SmolStr>,
    /// How many.
    pub(super) count: i64,
    /// Of what.
    pub(super) child: Child<'p>,
}

/// What a level is made of.
#[derive(Clone, Debug)]
pub(super) enum Child<'p> {
    /// A device.
    Device(Rc<Record<'p>>),
    /// A level, by position among the tiers.
    Level(usize),
}

/// What is said of one level beside its children.
#[derive(Clone, Debug)]
pub(super) struct Facts<'p> {
    pub(super) link: Rc<Record<'p>>,
    pub(super) links: i64,
    pub(super) topology: Topology,
    pub(super) in_network: bool,
    pub(super) efficiency: f64,
    pub(super) connections: i64,
    pub(super) price: f64,
    pub(super) power: f64,
    pub(super) host: Option<Rc<Record<'p>>>,
    /// What prices do not read yet, with its place.
    pub(super) later: Vec<(&'static str, Span)>,
}

/// The tiers of a cluster, each after those it is made of; the last is the root.
#[derive(Clone, Debug)]
pub(super) struct Tree<'p> {
    pub(super) tiers: Vec<Tier<'p>>,
}

impl<'p> Tree<'p> {
    /// Devices below one `child`.
    pub(super) fn size(&self, child: &Child<'p>) -> i64 {
        match child {
            Child::Device(_) => 1,
            Child::Level(i) => self.tiers[*i].devices,
        }
    }

    /// Position of the root.
    pub(super) fn root(&self) -> usize {
        self.tiers.len() - 1
    }
}

/// A level as declared, or as the last `with` that names it says, and the names it sees.
type LevelItem<'p> = (&'p Item, Rc<Env<'p>>);

/// The levels of `instance` in order: a `with` replaces the level of the same name where it stands, or adds one.
fn levels<'p>(eval: &mut Evaluator<'p, '_>, instance: &Instance<'p>, block: &'p Block) -> Option<Vec<LevelItem<'p>>> {
    let mut env = Env::inside(&Env::top(instance.id.module));
    for param in instance.decl.params.as_deref().unwrap_or_default() {
        let value = match (instance.args.get(&param.name.text), &param.kind) {
            (Some((v, _)), _) => v.clone(),
            (None, ParamKind::Value { default: Some(e), ty, .. }) => {
                let wanted = ty.as_ref().map_or(Wanted::Int, eval::type_wanted);
                eval.eval(e, &Rc::new(env.clone()), &wanted)
            }
            (None, _) => {
                eval.sink.error(errors::missing_argument(&param.name.text, &instance.decl.name, instance.span));
                return None;
            }
        };
        let value = match value {
            Value::Hole(hole) => eval.choose(&param.name.text, &hole, None),
            v => v,
        };
        // The tree is a shape: what it is made of is known.
        match eval.known(value) {
            Value::Error(_) => return None,
            v => env.bind(param.name.text.clone(), v),
        }
    }
    let base = Rc::new(env);
    let mut levels: IndexMap<&'p str, LevelItem<'p>> = IndexMap::new();
    let own = Given { block, env: Rc::clone(&base) };
    for (i, given) in std::iter::once(&own).chain(&instance.with).enumerate() {
        // What a `with` adds sees the cluster's parameters too.
        let mut env = if i == 0 { Rc::clone(&base) } else { Env::with(&given.env, base.vars.clone()) };
        let lets: Vec<&'p Let> = eval::lets_in_order(given.block);
        for l in lets {
            let v = match &l.value {
                LetValue::Is(e) => eval.eval(e, &env, &l.ty.as_ref().map_or(Wanted::Any, eval::type_wanted)),
                LetValue::In(e) => {
                    let hole = Hole { span: e.span, domain: Some((e, Rc::clone(&env))) };
                    let v = eval.choose(&l.name.text, &hole, None);
                    eval.known(v)
                }
            };
            env = Env::with(&env, vec![(l.name.text.clone(), v)]);
        }
        for item in &given.block.items {
            match &item.kind {
                ItemKind::Level { name, .. } => {
                    levels.insert(name.text.as_str(), (item, Rc::clone(&env)));
                }
                ItemKind::Require { cond, message } => {
                    if let Value::Bool(Truth::Known(false)) = eval.eval(cond, &env, &Wanted::Any) {
                        eval.sink.error(errors::cluster_requires(
                            &instance.decl.name.text,
                            message.as_deref(),
                            cond.span,
                        ));
                        return None;
                    }
                }
                ItemKind::Error => return None,
                // Parameters are arguments by now; other items were refused by the checker.
                _ => {}
            }
        }
    }
    Some(levels.into_values().collect())
}

/// Evaluates the tree of `instance`, which the job names at `span`.
pub(super) fn read<'p>(eval: &mut Evaluator<'p, '_>, instance: &Instance<'p>, span: Span) -> Option<Tree<'p>> {
    let Body::Block(block) = &instance.decl.body else { return None };
    // What a job gives a cluster of the library is the job's to mend.
    let library = eval.program.module(instance.id.module).std;
    let mut tree = Tree { tiers: Vec::new() };
    for (item, env) in levels(eval, instance, block)? {
        let ItemKind::Level { name, children, over, block, .. } = &item.kind else { continue };
        let mut groups = Vec::new();
        let mut devices = 0_i128;
        for written in children {
            let at = if library && eval.program.module(env.module).std { span } else { written.count.span };
            let group = child(eval, &tree, written, &env, &name.text, at)?;
            devices += i128::from(group.count) * i128::from(tree.size(&group.child));
            groups.push(group);
        }
        if devices > i128::from(limits::DEVICES) || tree.tiers.len() >= limits::CLUSTER_LEVELS {
            eval.sink.error(errors::cluster_limit(devices, tree.tiers.len() + 1, item.span));
            return None;
        }
        let (links, link) = match eval.eval(over, &env, &Wanted::Any) {
            Value::Record(r) if r.kind == "link" => (None, r),
            Value::Links { count: Num::Int(n), link } if (1..=1 << 40).contains(&n) => (Some(n as i64), link),
            Value::Error(_) => return None,
            other => {
                let noun = other.noun();
                eval.sink.error(errors::level_over(&noun, over.span));
                return None;
            }
        };
        let below = groups.iter().map(|g| tree.size(&g.child)).max().unwrap_or(1);
        let facts = Facts {
            link,
            links: links.unwrap_or(1),
            topology: Topology::Switch,
            in_network: false,
            efficiency: 1.0,
            connections: 1,
            price: 0.0,
            power: 0.0,
            host: None,
            later: Vec::new(),
        };
        let count = groups.iter().map(|g| g.count).sum();
        let mut reader = Reader { eval, facts, without: None };
        if let Some(block) = block {
            reader.fields(block, &env, count)?;
        }
        let Reader { mut facts, without, .. } = reader;
        if let (None, Some(n)) = (links, facts.topology.links()) {
            facts.links = n;
        } else if links.is_none() && below > 1 && !facts.topology.shares_links() {
            let each = facts.link.fields.get("bandwidth").and_then(Value::as_f64).unwrap_or(0.0);
            eval.sink.warn(errors::link_shared(&facts.link.name, below, each, over.span));
        }
        let without = without.map(|e| (e, Rc::clone(&env)));
        let tier = Tier { name: name.text.clone(), groups, devices: devices as i64, facts: Rc::new(facts), without };
        tree.tiers.push(tier);
    }
    if tree.tiers.is_empty() {
        eval.sink.error(errors::cluster_empty(&instance.decl.name));
        return None;
    }
    Some(tree)
}

fn child<'p>(
    eval: &mut Evaluator<'p, '_>,
    tree: &Tree<'p>,
    written: &'p Written,
    env: &Rc<Env<'p>>,
    level: &str,
    at: Span,
) -> Option<Group<'p>> {
    let count = positive(eval.eval(&written.count, env, &Wanted::Int), eval, at, level)?;
    let label = written.label.as_ref().map(|n| n.text.clone());
    if let ExprKind::Path(path) = &written.of.kind
        && let [name] = &path[..]
        && let Some(i) = tree.tiers.iter().position(|t| t.name == name.text)
    {
        return Some(Group { label, count, child: Child::Level(i) });
    }
    match eval.eval(&written.of, env, &Wanted::Any) {
        Value::Record(r) if r.kind == "device" => Some(Group { label, count, child: Child::Device(r) }),
        Value::Error(_) => None,
        other => {
            let noun = other.noun();
            eval.sink.error(errors::level_child(&noun, written.of.span));
            None
        }
    }
}

fn positive<'p>(value: Value<'p>, eval: &mut Evaluator<'p, '_>, span: Span, what: &str) -> Option<i64> {
    match value {
        Value::Num(Quantity { num: Num::Int(n), unit })
            if unit.is_none() && (1..=i128::from(limits::DEVICES)).contains(&n) =>
        {
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

/// Reads the block of one level.
struct Reader<'e, 'p, 's> {
    eval: &'e mut Evaluator<'p, 's>,
    facts: Facts<'p>,
    without: Option<&'p Expr>,
}

impl<'p> Reader<'_, 'p, '_> {
    fn fields(&mut self, block: &'p Block, env: &Rc<Env<'p>>, children: i64) -> Option<()> {
        let known: Vec<_> = schema::level_fields().iter().map(|f| f.name.to_string()).collect();
        let mut env = Rc::clone(env);
        let mut given: Vec<_> = fields_of(block).into_iter().collect();
        // `shares = host.path`: the host is a name of the block.
        given.sort_by_key(|(name, _)| name != "host");
        for (name, (e, at)) in given {
            let name = SmolStr::new(schema::present("level", &name));
            if !known.iter().any(|k| *k == *name) {
                self.eval.sink.error(eval::errors::unknown_field(&name, at, "a level", &known));
                return None;
            }
            if name == "without" {
                self.without = Some(e);
                continue;
            }
            let value = self.eval.eval(e, &env, &Wanted::Any);
            if name == "host" {
                env = Env::with(&env, vec![(name.clone(), value.clone())]);
            }
            self.field(&name, value, children, e.span)?;
        }
        Some(())
    }

    #[expect(clippy::needless_pass_by_value, reason = "a field's value is used up by what it sets")]
    fn field(&mut self, name: &str, value: Value<'p>, children: i64, at: Span) -> Option<()> {
        let number = value.as_f64();
        let facts = &mut self.facts;
        match (name, &value) {
            (_, Value::Error(_)) => return None,
            // What is taken away is as if it had not been said.
            (_, Value::Word(w)) if w.name == "none" && w.args.is_empty() => {}
            ("topology", Value::Word(w)) => facts.topology = topology::read(self.eval, w, children, at)?,
            ("in_network_reduction", Value::Bool(Truth::Known(b))) => facts.in_network = *b,
            ("efficiency", _) if number.is_some_and(|x| x > 0.0 && x <= 1.0) => {
                facts.efficiency *= number.unwrap_or(1.0);
            }
            ("connections", _) if value.as_int().is_some_and(|n| (1..=1 << 20).contains(&n)) => {
                facts.connections = value.as_int().unwrap_or(1) as i64;
            }
            ("failed_links", _) if number.is_some_and(|x| (0.0..1.0).contains(&x)) => {
                facts.efficiency *= 1.0 - number.unwrap_or(0.0);
            }
            ("price", _) if number.is_some_and(|x| x >= 0.0) => facts.price = number.unwrap_or(0.0),
            ("power", _) if number.is_some_and(|x| x >= 0.0) => facts.power = number.unwrap_or(0.0),
            ("host", Value::Record(r)) if r.kind == "host" => facts.host = Some(Rc::clone(r)),
            ("shares", Value::Links { .. }) => facts.later.push(("links that another level shares", at)),
            ("shares", Value::Record(r)) if r.kind == "link" => {
                facts.later.push(("links that another level shares", at));
            }
            ("measured", Value::Func(f)) if f.decl.kind == crate::syntax::ast::Kind::Table => {
                facts.later.push(("measured bandwidths of a level", at));
            }
            _ => {
                let noun = value.noun();
                self.eval.sink.error(errors::level_field(name, &noun, at));
                return None;
            }
        }
        Some(())
    }
}
