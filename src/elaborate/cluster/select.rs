//! Paths into a cluster: `cluster.node[0..2]` as devices, `cluster.node` and `cluster.slice.x` as places.

use super::Cluster;
use super::devices::Devices;
use super::errors;
use super::tree::{Child, Tree};
use crate::eval::{self, Env, Evaluator, Value, Wanted};
use crate::source::Span;
use crate::syntax::ast::{Expr, ExprKind, Index, Kind, Name};
use smol_str::SmolStr;
use std::rc::Rc;

/// Runs of devices a selection may consist of.
const MAX_RUNS: usize = 65_536;

/// What `place … on` may name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Site {
    /// A level, by position among the cluster's levels.
    Level(usize),
    /// Directions of a torus, by position among its sizes.
    Directions {
        /// The level.
        level: usize,
        /// The directions.
        along: Vec<usize>,
    },
}

/// Equal children one after another.
#[derive(Clone, Debug)]
struct Run<'p> {
    start: i64,
    count: i64,
    child: Child<'p>,
}

/// One step of a path: `.name`, `.name[i..j]`.
struct Step<'p> {
    name: &'p Name,
    index: Option<&'p Index>,
}

/// The steps of `cluster.a[0].b`, and whether it begins with `cluster`; `node[5].gpu[3]` is a path of a level.
fn steps(e: &Expr) -> Option<(bool, Vec<Step<'_>>)> {
    let (mut at, mut out, mut index) = (e, Vec::new(), None);
    let rooted = loop {
        match &at.kind {
            ExprKind::Kind(Kind::Cluster) if index.is_none() => break true,
            ExprKind::Path(path) if path.len() == 1 => {
                out.push(Step { name: &path[0], index });
                break false;
            }
            ExprKind::Field(base, name) => {
                out.push(Step { name, index: index.take() });
                at = base;
            }
            ExprKind::Index(base, list) if index.is_none() && list.len() == 1 => {
                index = list.first();
                at = base;
            }
            _ => return None,
        }
    };
    out.reverse();
    Some((rooted, out))
}

/// `[a, b]` or `a` alone.
fn listed(e: &Expr) -> Vec<&Expr> {
    match &e.kind {
        ExprKind::List(list) => list.iter().collect(),
        _ => vec![e],
    }
}

impl<'p> Tree<'p> {
    fn instances(tier: usize, start: i64) -> Run<'p> {
        Run { start, count: 1, child: Child::Level(tier) }
    }

    /// Whether `name` means `child` under the label it has.
    fn called(&self, child: &Child<'p>, label: Option<&SmolStr>, name: &str) -> bool {
        let own = match child {
            Child::Device(d) => d.name == name || matches!(name, "gpu" | "device"),
            Child::Level(i) => self.tiers[*i].name == name,
        };
        own || label.is_some_and(|l| l == name)
    }

    /// For each tier, whether `name` means something below it.
    fn reach(&self, name: &str) -> Vec<bool> {
        let mut out = Vec::with_capacity(self.tiers.len());
        for tier in &self.tiers {
            let inside = |c: &Child<'p>| matches!(c, Child::Level(i) if out[*i]);
            let found = tier.groups.iter().any(|g| self.called(&g.child, g.label.as_ref(), name) || inside(&g.child));
            out.push(found);
        }
        out
    }

    /// What `name` means below `run`, nearest first; `None` past the limit.
    fn below(&self, run: &Run<'p>, name: &str, reach: &[bool], out: &mut Vec<Run<'p>>) -> Option<()> {
        let Child::Level(i) = run.child else { return Some(()) };
        if !reach[i] {
            return Some(());
        }
        let tier = &self.tiers[i];
        // Equal children of equal instances lie side by side; unlike ones are looked at instance by instance.
        let (instances, times) = if tier.groups.len() == 1 { (1, run.count) } else { (run.count, 1) };
        if instances.saturating_mul(tier.groups.len() as i64) > MAX_RUNS as i64 {
            return None;
        }
        for k in 0..instances {
            let mut start = run.start + k * tier.devices;
            for g in &tier.groups {
                let all = Run { start, count: times * g.count, child: g.child.clone() };
                start += g.count * self.size(&g.child);
                if self.called(&g.child, g.label.as_ref(), name) {
                    out.push(all);
                } else {
                    self.below(&all, name, reach, out)?;
                }
                if out.len() > MAX_RUNS {
                    return None;
                }
            }
        }
        Some(())
    }

    /// Labels and levels below the root, outermost first.
    fn names(&self) -> Vec<String> {
        let mut out: Vec<String> = Vec::new();
        for tier in self.tiers.iter().rev() {
            for g in &tier.groups {
                let level = if let Child::Level(i) = g.child { Some(&self.tiers[i].name) } else { None };
                for name in g.label.iter().chain(level) {
                    if !out.iter().any(|n| n == name) {
                        out.push(name.to_string());
                    }
                }
            }
        }
        out
    }
}

/// The `from..to` instances of `runs`, counted through all of them.
fn slice<'p>(tree: &Tree<'p>, runs: &[Run<'p>], from: i64, to: i64) -> Vec<Run<'p>> {
    let (mut seen, mut out) = (0, Vec::new());
    for run in runs {
        let (a, b) = (from.max(seen) - seen, (to.min(seen + run.count)) - seen);
        if a < b {
            let start = run.start + a * tree.size(&run.child);
            out.push(Run { start, count: b - a, child: run.child.clone() });
        }
        seen += run.count;
    }
    out
}

/// Follows paths through a tree.
struct Walker<'e, 'p, 's, 't> {
    eval: &'e mut Evaluator<'p, 's>,
    tree: &'t Tree<'p>,
    env: Rc<Env<'p>>,
}

impl<'p> Walker<'_, 'p, '_, '_> {
    fn follow(&mut self, start: Run<'p>, steps: &[Step<'p>], span: Span) -> Option<Devices> {
        let mut at = vec![start];
        for step in steps {
            let reach = self.tree.reach(&step.name.text);
            let instances: i64 = at.iter().map(|r| r.count).sum();
            // An index counts within each instance, so several have to be taken one by one.
            if step.index.is_some() && instances > 1 {
                if instances > MAX_RUNS as i64 {
                    self.eval.sink.error(errors::selection_limit(MAX_RUNS, span));
                    return None;
                }
                let one =
                    |r: &Run<'p>, k: i64| Run { start: r.start + k * self.tree.size(&r.child), count: 1, ..r.clone() };
                at = at.iter().flat_map(|r| (0..r.count).map(move |k| (r, k))).map(|(r, k)| one(r, k)).collect();
            }
            let mut next = Vec::new();
            for run in &at {
                let mut found = Vec::new();
                if self.tree.below(run, &step.name.text, &reach, &mut found).is_none() {
                    self.eval.sink.error(errors::selection_limit(MAX_RUNS, span));
                    return None;
                }
                if let (Some(index), false) = (step.index, found.is_empty()) {
                    let count = found.iter().map(|r| r.count).sum();
                    let (from, to) = self.index(index, count, &step.name.text)?;
                    found = slice(self.tree, &found, from, to);
                }
                next.extend(found);
            }
            // The root may be named too.
            if next.is_empty() && at.len() == 1 && self.tree.tiers[self.tree.root()].name == step.name.text {
                next.clone_from(&at);
            }
            if next.is_empty() {
                let known = self.tree.names();
                let name = step.name;
                self.eval.sink.error(eval::errors::unknown_field(&name.text, name.span, "the cluster", &known));
                return None;
            }
            at = next;
        }
        Some(Devices::of(at.iter().map(|r| (r.start, r.start + r.count * self.tree.size(&r.child))).collect()))
    }

    /// `[i]`, `[i..j]` or `[i..]` of `count` instances.
    fn index(&mut self, index: &'p Index, count: i64, name: &str) -> Option<(i64, i64)> {
        let (e, open) = match index {
            Index::Expr(e) => (e, false),
            Index::From(e) => (e, true),
        };
        let value = self.eval.eval(e, &self.env, &Wanted::Int);
        let value = self.eval.known(value);
        let (from, to) = match value {
            Value::Range(a, b) => (a, b),
            Value::Error(_) => return None,
            other => match other.as_int() {
                Some(a) => (a, if open { i128::from(count) } else { a + 1 }),
                None => {
                    let noun = other.noun();
                    self.eval.sink.error(eval::errors::wrong_kind("an index", "a known whole number", &noun, e.span));
                    return None;
                }
            },
        };
        if from < 0 || to > i128::from(count) || from >= to {
            self.eval.sink.error(errors::selection_range(name, count, e.span));
            return None;
        }
        Some((from as i64, to as i64))
    }
}

/// Devices that levels declare dead.
pub(super) fn dead<'p>(eval: &mut Evaluator<'p, '_>, tree: &Tree<'p>) -> Option<Devices> {
    let mut out = Vec::new();
    for (i, tier) in tree.tiers.iter().enumerate() {
        let Some((e, env)) = &tier.without else { continue };
        let mut here = Vec::new();
        let root = Tree::instances(tree.root(), 0);
        if i == tree.root() {
            here.push(root);
        } else if tree.below(&root, &tier.name, &tree.reach(&tier.name), &mut here).is_none() {
            eval.sink.error(errors::selection_limit(MAX_RUNS, e.span));
            return None;
        }
        let instances: i64 = here.iter().map(|r| r.count).sum();
        let named = listed(e);
        if instances.saturating_mul(named.len() as i64) > MAX_RUNS as i64 {
            eval.sink.error(errors::selection_limit(MAX_RUNS, e.span));
            return None;
        }
        for each in named {
            let Some((false, steps)) = steps(each) else {
                eval.sink.error(errors::selection_form("`node[5].gpu[3]`", each.span));
                return None;
            };
            for run in &here {
                for k in 0..run.count {
                    let start = Tree::instances(i, run.start + k * tier.devices);
                    let mut walker = Walker { eval, tree, env: Rc::clone(env) };
                    out.extend(walker.follow(start, &steps, each.span)?.ranges);
                }
            }
        }
    }
    Some(Devices::of(out))
}

impl<'p> Cluster<'p> {
    /// The devices `e` names: `cluster`, `cluster.node[0..2]`, `cluster.h100`, a list of such. Devices that are out of
    /// use are not among them. What is wrong is reported.
    pub fn select(&self, eval: &mut Evaluator<'p, '_>, e: &'p Expr, env: &Rc<Env<'p>>) -> Option<Devices> {
        let mut out = Vec::new();
        for each in listed(e) {
            let Some((true, steps)) = steps(each) else {
                eval.sink.error(errors::selection_form("`cluster.node[0..2]`", each.span));
                return None;
            };
            let mut walker = Walker { eval: &mut *eval, tree: &self.tree, env: Rc::clone(env) };
            let start = Tree::instances(self.tree.root(), 0);
            out.extend(walker.follow(start, &steps, each.span)?.ranges);
        }
        Some(Devices::of(out).both(&self.used))
    }

    /// What a layout on `devices` sees: their levels, kinds and number.
    #[must_use]
    pub fn within(&self, devices: &Devices, span: Span) -> Self {
        Self::on(self.name.clone(), Rc::clone(&self.tree), self.used.both(devices), span)
    }

    /// The level or torus directions `e` names; what is wrong is reported.
    pub fn site(&self, eval: &mut Evaluator<'p, '_>, e: &'p Expr) -> Option<Site> {
        let mut found: Option<Site> = None;
        for each in listed(e) {
            let next = self.one_site(eval, each)?;
            found = match (found.take(), next) {
                (None, next) => Some(next),
                (Some(Site::Directions { level, mut along }), Site::Directions { level: l, along: more })
                    if level == l && more.iter().all(|d| !along.contains(d)) =>
                {
                    along.extend(more);
                    Some(Site::Directions { level, along })
                }
                _ => {
                    eval.sink.error(errors::site_form(each.span));
                    return None;
                }
            };
        }
        found
    }

    fn one_site(&self, eval: &mut Evaluator<'p, '_>, e: &'p Expr) -> Option<Site> {
        let path =
            steps(e).filter(|(rooted, s)| *rooted && matches!(s.len(), 1 | 2) && s.iter().all(|s| s.index.is_none()));
        let Some((_, steps)) = path else {
            eval.sink.error(errors::site_form(e.span));
            return None;
        };
        let Some(level) = self.level_named(&steps[0].name.text) else {
            let known: Vec<_> = self.levels.iter().map(|l| l.name.clone()).collect();
            let name = steps[0].name;
            eval.sink.error(errors::level_unknown(name, &self.name, &known));
            return None;
        };
        let Some(step) = steps.get(1) else { return Some(Site::Level(level)) };
        match self.levels[level].topology.direction(&step.name.text) {
            Some(d) => Some(Site::Directions { level, along: vec![d] }),
            None => {
                let l = &self.levels[level];
                eval.sink.error(errors::direction_unknown(step.name, &l.name, l.topology.word()));
                None
            }
        }
    }

    /// The position of the level called `name`.
    pub fn level_named(&self, name: &str) -> Option<usize> {
        self.levels.iter().position(|l| l.is(name))
    }
}
