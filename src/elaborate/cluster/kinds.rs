//! Where the devices of a mesh change kind.

use super::Cluster;
use super::tree::{Child, Tree};

/// Changes looked at; what lies behind them is taken to be of the last kind.
const MAX_CHANGES: usize = 4_096;

/// Runs of devices of one kind in tree order: the kind's name, and one past the last device.
struct Runs<'t> {
    ends: Vec<(&'t str, i64)>,
}

impl<'t> Runs<'t> {
    fn add(&mut self, kind: &'t str, count: i64) {
        let full = self.full();
        match self.ends.last_mut() {
            Some((last, end)) if *last == kind || full => *end += count,
            Some((_, end)) => {
                let at = *end + count;
                self.ends.push((kind, at));
            }
            None => self.ends.push((kind, count)),
        }
    }

    fn full(&self) -> bool {
        self.ends.len() > MAX_CHANGES
    }

    /// The runs of one `child` after those there are. `alone`: for each tier, the one kind below it, if there is one.
    fn below(&mut self, tree: &'t Tree<'_>, child: &'t Child<'_>, alone: &[Option<&'t str>]) {
        match child {
            Child::Device(d) => self.add(&d.name, 1),
            Child::Level(i) => match alone[*i] {
                Some(kind) => self.add(kind, tree.tiers[*i].devices),
                None => {
                    for g in &tree.tiers[*i].groups {
                        self.times(tree, &g.child, g.count, alone);
                    }
                }
            },
        }
    }

    /// The runs of `count` equal children.
    fn times(&mut self, tree: &'t Tree<'_>, child: &'t Child<'_>, count: i64, alone: &[Option<&'t str>]) {
        match kind(child, alone) {
            Some(kind) => self.add(kind, count * tree.size(child)),
            // Each has a change of its own, so the limit ends this.
            None => {
                for _ in 0..count {
                    if self.full() {
                        return;
                    }
                    self.below(tree, child, alone);
                }
            }
        }
    }
}

fn kind<'t>(child: &'t Child<'_>, alone: &[Option<&'t str>]) -> Option<&'t str> {
    match child {
        Child::Device(d) => Some(&d.name),
        Child::Level(i) => alone[*i],
    }
}

impl Cluster<'_> {
    /// Positions in the mesh whose device is of another kind than the one before, in order.
    pub fn kind_changes(&self) -> Vec<i64> {
        if self.kinds.len() < 2 {
            return Vec::new();
        }
        let tree = &*self.tree;
        let mut alone: Vec<Option<&str>> = Vec::with_capacity(tree.tiers.len());
        for tier in &tree.tiers {
            let mut kinds = tier.groups.iter().map(|g| kind(&g.child, &alone));
            let first = kinds.next().flatten();
            let same = first.filter(|f| kinds.all(|k| k == Some(f)));
            alone.push(same);
        }
        let mut runs = Runs { ends: Vec::new() };
        for g in &tree.tiers[tree.root()].groups {
            runs.times(tree, &g.child, g.count, &alone);
        }
        let (mut changes, mut before, mut last, mut from) = (Vec::new(), 0, None, 0);
        let mut ranges = self.used.ranges.iter().peekable();
        for (kind, end) in runs.ends {
            // Devices in use among those of this run.
            let mut here = 0;
            while let Some((a, b)) = ranges.peek() {
                here += ((*b).min(end) - (*a).max(from)).max(0);
                if *b > end {
                    break;
                }
                ranges.next();
            }
            if here > 0 {
                if last.is_some_and(|l| l != kind) {
                    changes.push(before);
                }
                last = Some(kind);
                before += here;
            }
            from = end;
        }
        changes
    }
}
