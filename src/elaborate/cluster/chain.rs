//! The tree of a cluster, cut down to the devices in use, as the one chain of levels that a mesh is laid on.

use super::Level;
use super::devices::Devices;
use super::tree::{Child, Tree};
use crate::eval::Record;
use std::rc::Rc;

/// A tree cut down to some of its devices.
struct Piece<'p> {
    tier: usize,
    groups: Vec<(i64, Part<'p>)>,
    devices: i64,
}

#[derive(Clone)]
enum Part<'p> {
    Device(Rc<Record<'p>>),
    Piece(Rc<Piece<'p>>),
}

impl Part<'_> {
    fn devices(&self) -> i64 {
        match self {
            Self::Device(_) => 1,
            Self::Piece(p) => p.devices,
        }
    }

    fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Device(a), Self::Device(b)) => Rc::ptr_eq(a, b),
            (Self::Piece(a), Self::Piece(b)) => Rc::ptr_eq(a, b),
            (Self::Device(_), Self::Piece(_)) | (Self::Piece(_), Self::Device(_)) => false,
        }
    }
}

/// Cuts trees; whole instances are cut once.
struct Cutter<'t, 'p> {
    tree: &'t Tree<'p>,
    whole: Vec<Option<Rc<Piece<'p>>>>,
}

impl<'p> Cutter<'_, 'p> {
    /// A whole instance of `tier`.
    fn whole(&mut self, tier: usize) -> Rc<Piece<'p>> {
        if let Some(piece) = &self.whole[tier] {
            return Rc::clone(piece);
        }
        let piece = self.cut(tier, 0, &[(0, self.tree.tiers[tier].devices)]);
        self.whole[tier] = Some(Rc::clone(&piece));
        piece
    }

    /// What is left of the instance of `tier` that begins at `start`, with `used` devices only.
    fn cut(&mut self, tier: usize, start: i64, used: &[(i64, i64)]) -> Rc<Piece<'p>> {
        let tree = self.tree;
        let (mut groups, mut partial): (Vec<(i64, Part<'p>)>, Vec<_>) = (Vec::new(), Vec::new());
        let mut at = start;
        for g in &tree.tiers[tier].groups {
            let size = tree.size(&g.child);
            let end = at + g.count * size;
            // Children used whole, and those used in part.
            let (mut whole, mut some) = (0, Vec::new());
            let first = used.partition_point(|(_, b)| *b <= at);
            for (a, b) in used[first..].iter().take_while(|(a, _)| *a < end) {
                let (a, b) = ((*a).max(at) - at, (*b).min(end) - at);
                let (from, to) = (a / size + i64::from(a % size > 0), b / size);
                whole += (to - from).max(0);
                if a % size > 0 {
                    some.push(a / size);
                }
                if b % size > 0 && to >= from {
                    some.push(to);
                }
            }
            some.dedup();
            if whole > 0 {
                let part = match &g.child {
                    Child::Device(d) => Part::Device(Rc::clone(d)),
                    Child::Level(i) => Part::Piece(self.whole(*i)),
                };
                match groups.iter_mut().find(|(_, p)| p.same(&part)) {
                    Some((n, _)) => *n += whole,
                    None => groups.push((whole, part)),
                }
            }
            if let Child::Level(i) = g.child {
                for k in some {
                    let piece = self.cut(i, at + k * size, used);
                    partial.push((1, Part::Piece(piece)));
                }
            }
            at = end;
        }
        groups.append(&mut partial);
        let devices = groups.iter().map(|(n, p)| n * p.devices()).sum();
        Rc::new(Piece { tier, groups, devices })
    }
}

/// The tree of `used` devices as a chain of levels, innermost first; kinds of devices with their number; what is not
/// priced yet.
pub(super) struct Chain<'p> {
    pub(super) levels: Vec<Level<'p>>,
    pub(super) kinds: Vec<(Rc<Record<'p>>, i64)>,
    pub(super) uneven: bool,
}

/// Flattens what is used of `tree`. Where children differ, each level takes the narrower link, and the largest number
/// of devices that divides those of all its instances.
pub(super) fn chain<'p>(tree: &Tree<'p>, used: &Devices) -> Chain<'p> {
    let piece = Cutter { tree, whole: vec![None; tree.tiers.len()] }.cut(tree.root(), 0, &used.ranges);
    let mut out = Chain { levels: Vec::new(), kinds: Vec::new(), uneven: false };
    count(&piece, 1, &mut out.kinds);
    out.levels = flatten(tree, &piece, &mut out.uneven);
    out
}

fn count<'p>(piece: &Piece<'p>, times: i64, kinds: &mut Vec<(Rc<Record<'p>>, i64)>) {
    for (n, part) in &piece.groups {
        match part {
            Part::Piece(p) => count(p, times * n, kinds),
            Part::Device(d) => match kinds.iter_mut().find(|(k, _)| Rc::ptr_eq(k, d) || k.name == d.name) {
                Some((_, total)) => *total += n * times,
                None => kinds.push((Rc::clone(d), n * times)),
            },
        }
    }
}

fn flatten<'p>(tree: &Tree<'p>, piece: &Piece<'p>, uneven: &mut bool) -> Vec<Level<'p>> {
    let mut below: Option<Vec<Level<'p>>> = None;
    let mut alone = false;
    for (_, part) in &piece.groups {
        match part {
            Part::Device(_) => alone = true,
            Part::Piece(p) => {
                let next = flatten(tree, p, uneven);
                below = Some(match below {
                    None => next,
                    Some(levels) => merge(levels, next, uneven),
                });
            }
        }
    }
    // Devices beside levels: nothing below this level is common to all.
    let mut levels = below.unwrap_or_default();
    if alone && !levels.is_empty() {
        *uneven = true;
        levels.clear();
    }
    let each = levels.last().map_or(1, |l| l.devices);
    let tier = &tree.tiers[piece.tier];
    levels.push(Level::new(&tier.name, &tier.facts, piece.devices / each, piece.devices));
    levels
}

/// Two chains as one, aligned at their outer ends.
fn merge<'p>(a: Vec<Level<'p>>, b: Vec<Level<'p>>, uneven: &mut bool) -> Vec<Level<'p>> {
    let n = a.len().min(b.len());
    *uneven |= a.len() != b.len();
    let (skip_a, skip_b) = (a.len() - n, b.len() - n);
    let mut out: Vec<Level<'p>> = Vec::new();
    for (x, y) in a.into_iter().skip(skip_a).zip(b.into_iter().skip(skip_b)) {
        let devices = gcd(x.devices, y.devices);
        *uneven |= x.devices != y.devices;
        let names = (x.names.clone(), y.names.clone());
        let narrow = if y.child_bandwidth() < x.child_bandwidth() { &y } else { &x };
        let mut level = Level { devices, in_network: x.in_network && y.in_network, ..narrow.clone() };
        level.children = devices / out.last().map_or(1, |l| l.devices);
        level.name = x.name;
        level.names = names.0;
        for n in names.1 {
            if !level.names.contains(&n) {
                level.names.push(n);
            }
        }
        out.push(level);
    }
    out
}

fn gcd(mut a: i64, mut b: i64) -> i64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
