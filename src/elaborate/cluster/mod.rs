//! A cluster, evaluated: a tree of levels over devices, and the chain of levels that a layout on it sees.
//!
//! Both are symbolic: however many instances a level has, it is stored once. A job may use part of its cluster, and a
//! part of a layout may use part of that: [`Cluster::select`] reads such a selection and [`Cluster::within`] is the
//! cluster it is.

mod chain;
mod devices;
mod errors;
mod kinds;
mod select;
mod topology;
mod tree;

pub use devices::Devices;
pub use select::Site;
pub use topology::Topology;

use crate::eval::{Evaluator, Instance, Record, Value};
use crate::source::Span;
use std::rc::Rc;
use tree::{Facts, Tree};

/// A cluster or the part of it that is used.
#[derive(Clone, Debug)]
pub struct Cluster<'p> {
    /// The declaration's name.
    pub name: String,
    /// Innermost first; the last is the root.
    pub levels: Vec<Level<'p>>,
    /// What the leaves are; of several kinds, the first.
    pub device: Rc<Record<'p>>,
    /// The kinds of devices in tree order, and how many there are of each.
    pub kinds: Vec<(Rc<Record<'p>>, i64)>,
    /// How many devices.
    pub devices: i64,
    /// What is said of it and not priced yet, with its place.
    pub later: Vec<(&'static str, Span)>,
    /// Where the job names it.
    pub span: Span,
    tree: Rc<Tree<'p>>,
    used: Devices,
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
    /// How many of them; on a torus in each direction.
    pub links: i64,
    /// How the children meet.
    pub topology: Topology,
    /// Whether its switches sum.
    pub in_network: bool,
    /// Share of the links' bandwidth that is left.
    pub efficiency: f64,
    /// Connections of one flow.
    pub connections: i64,
    /// Price of one instance, $/s.
    pub price: f64,
    /// Power of one instance beside its devices, W.
    pub power: f64,
    /// The host of one instance.
    pub host: Option<Rc<Record<'p>>>,
    names: Vec<String>,
}

impl<'p> Level<'p> {
    fn new(name: &str, facts: &Facts<'p>, children: i64, devices: i64) -> Self {
        Self {
            name: name.to_string(),
            children,
            devices,
            link: Rc::clone(&facts.link),
            links: facts.links,
            topology: facts.topology.clone(),
            in_network: facts.in_network,
            efficiency: facts.efficiency,
            connections: facts.connections,
            price: facts.price,
            power: facts.power,
            host: facts.host.clone(),
            names: vec![name.to_string()],
        }
    }

    /// Whether it is called `name`: unlike children of one level lie at the same height under names of their own.
    pub fn is(&self, name: &str) -> bool {
        self.names.iter().any(|n| n == name)
    }

    /// What one child's links carry, bytes a second, one direction: efficiency, flow limit and oversubscription applied.
    pub fn child_bandwidth(&self) -> f64 {
        let field = |name| self.link.fields.get(name).and_then(Value::as_f64).unwrap_or(0.0);
        let flow = field("flow_limit") * self.connections as f64;
        let one = field("bandwidth").min(flow) * field("efficiency") * self.efficiency;
        one * self.links as f64 / self.topology.narrowing()
    }

    /// One message, one way, seconds.
    pub fn latency(&self) -> f64 {
        self.link.fields.get("latency").and_then(Value::as_f64).unwrap_or(0.0)
    }
}

impl<'p> Cluster<'p> {
    /// Evaluates the tree of `instance`, which `span` names.
    pub fn new(eval: &mut Evaluator<'p, '_>, instance: &Instance<'p>, span: Span) -> Option<Self> {
        let tree = tree::read(eval, instance, span)?;
        let dead = select::dead(eval, &tree)?;
        let devices = tree.tiers[tree.root()].devices;
        let used = Devices::all(devices).without(&dead);
        if used.count() == 0 {
            let spans: Vec<_> = tree.tiers.iter().filter_map(|t| Some(t.without.as_ref()?.0.span)).collect();
            eval.sink.error(errors::all_dead(&instance.decl.name, devices, &spans));
            return None;
        }
        Some(Self::on(instance.decl.name.text.to_string(), Rc::new(tree), used, span))
    }

    fn on(name: String, tree: Rc<Tree<'p>>, used: Devices, span: Span) -> Self {
        let chain = chain::chain(&tree, &used);
        let mut later: Vec<_> = tree.tiers.iter().flat_map(|t| t.facts.later.iter().copied()).collect();
        if chain.kinds.len() > 1 {
            later.push(("one mesh over several kinds of devices", span));
        } else if chain.uneven {
            later.push(("a mesh over levels with unequal numbers of devices", span));
        }
        let device = Rc::clone(&chain.kinds.first().expect("a selection of a cluster has devices").0);
        Self { name, levels: chain.levels, device, kinds: chain.kinds, devices: used.count(), later, span, tree, used }
    }

    /// The innermost level that holds `devices` neighbours starting at a multiple of them.
    pub fn level_of(&self, devices: i64) -> usize {
        self.levels.iter().position(|l| l.devices >= devices).unwrap_or(self.levels.len() - 1)
    }

    /// Which devices of the whole cluster these are.
    pub fn used(&self) -> &Devices {
        &self.used
    }

    /// The host of the innermost level that has one, and how many devices share it.
    pub fn host(&self) -> Option<(&Rc<Record<'p>>, i64)> {
        self.levels.iter().find_map(|l| Some((l.host.as_ref()?, l.devices)))
    }

    /// Bytes of the memory of one host; without end where no level has a host.
    pub fn host_memory(&self) -> f64 {
        let memory = |(host, _): (&Rc<Record<'p>>, i64)| host.fields.get("memory").and_then(Value::as_f64);
        self.host().and_then(memory).unwrap_or(f64::MAX)
    }

    /// Names of its kinds of devices, for messages.
    pub fn kind_names(&self) -> Vec<&str> {
        self.kinds.iter().map(|(d, _)| d.name.as_str()).collect()
    }

    /// Price of all devices and levels, $/s.
    pub fn price(&self) -> f64 {
        let levels = self.levels.iter().map(|l| l.price * (self.devices / l.devices) as f64);
        let price = |d: &Record<'_>| d.fields.get("price").and_then(Value::as_f64).unwrap_or(0.0);
        let devices = self.kinds.iter().map(|(d, n)| price(d) * *n as f64);
        devices.sum::<f64>() + levels.sum::<f64>()
    }

    /// A field of the device in base units; 0 if it is not a known number.
    pub fn device_field(&self, name: &str) -> f64 {
        self.device.fields.get(name).and_then(Value::as_f64).unwrap_or(0.0)
    }
}
