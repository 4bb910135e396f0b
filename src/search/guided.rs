//! A search that runs the schedules of those points alone that may be among the best.
//!
//! Every point gets a bound ([`super::bound`]) while the space is gone through axis by axis ([`super::nest`]). Then
//! points are judged whole, in the order of their bounds, until the next bound is worse than the worst of the best:
//! what is left cannot be among them. Points are judged in waves of one size, so what is judged does not depend on
//! threads.

use super::bound::{Bounded, SLACK};
use super::nest::{Rows, Taker};
use super::shaped::{Shaped, refusal};
use super::{Part, Region, Space, Task, answer};
use crate::analyse::rules::Rule;
use crate::expr::Node;
use crate::limits;
use crate::source::Span;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

/// Points judged between two looks at what is the best so far: at first, and at most.
const WAVES: (usize, usize) = (16, 512);
/// Points that a thread judges at a time.
const PIECE: usize = 8;
/// Rows that threads share out among them.
const STARTS: usize = 4_096;
/// Candidates kept at a time.
const CANDIDATES: usize = 1 << 20;
/// Times the space is gone through again because more points than that may be among the best.
const ROUNDS: usize = 16;
/// Points of a region from which machine code pays.
const NATIVE: u64 = 5_000_000;
/// Points that tell shapes apart.
const TELLING: usize = 1 << 17;

/// The points of a region that shape the graph alike.
struct Piece {
    region: usize,
    witness: u64,
    bounded: Bounded,
    rules: Vec<Rule>,
}

/// A point that may be among the best.
#[derive(Clone, PartialEq, Debug)]
struct Candidate {
    piece: usize,
    /// In its region.
    point: u64,
    /// What each goal cannot be below.
    bound: Vec<f64>,
}

/// What a guided search did.
pub(super) struct Guided {
    pub(super) part: Part,
    /// Points whose bound says that they are not among the best.
    pub(super) bounded: u64,
    /// Points judged whole.
    pub(super) judged: u64,
    /// Whether nothing is left that may be better.
    pub(super) proved: bool,
}

/// Searches; `None` where the space cannot be gone through axis by axis.
pub(super) fn guided(task: Task<'_>, space: &Space, progress: &(dyn Fn(u64) + Sync)) -> Option<Guided> {
    let mut part = Part::default();
    let pieces = pieces(task, space, &mut part)?;
    let goals = part.goals.len();
    if task.part.0 > 0 {
        // What has no shape is counted by the first part.
        part.broken.clear();
    }
    let mut search = Guided { part, bounded: 0, judged: 0, proved: false };
    let top = task.top.max(2);
    let mut done: Vec<(usize, u64)> = Vec::new();
    for round in 0..ROUNDS {
        let filter = Filter { goals, top, rows: search.part.rows.iter().map(|r| r.objectives.clone()).collect() };
        let mut found = Found::default();
        for (i, piece) in pieces.iter().enumerate() {
            found.join(walk(task, i, piece, &filter));
            let region = &space.regions[piece.region];
            progress(region.start + region.points / 2);
        }
        if round == 0 {
            for (piece, rules) in &found.broken {
                for (rule, n) in rules {
                    search.part.count(std::slice::from_ref(&pieces[*piece].rules[*rule]), *n);
                }
            }
        }
        let (cut, survivors) = (found.cut, found.survivors);
        done.sort_unstable();
        found.candidates.retain(|c| done.binary_search(&(c.piece, c.point)).is_err());
        found
            .candidates
            .sort_by(|a, b| a.bound[0].total_cmp(&b.bound[0]).then(a.piece.cmp(&b.piece)).then(a.point.cmp(&b.point)));
        let ended = judge(task, space, &pieces, &found.candidates, &mut search, &mut done, goals);
        search.bounded = survivors - done.len() as u64;
        // Candidates left out were worse than the last of those kept; the first judged too bad ends the search.
        search.proved = (!cut || ended) && !task.stopped();
        if search.proved || task.stopped() {
            break;
        }
    }
    search.judged = done.len() as u64;
    let counted = search.part.broken.values().map(|(_, n)| n).sum::<u64>() + search.part.legal + search.bounded;
    debug_assert!(
        task.part.1 > 1 || task.stopped() || counted == space.points,
        "every point is counted once: {counted} of {}",
        space.points
    );
    Some(search)
}

/// The shapes of every region; what has no shape is counted in `part`.
fn pieces(task: Task<'_>, space: &Space, part: &mut Part) -> Option<Vec<Piece>> {
    let mut out: Vec<Piece> = Vec::new();
    for (r, region) in space.regions.iter().enumerate() {
        let mut shapes: Vec<Shaped<'_>> = Vec::new();
        // Axes that tell shapes apart, and the points among which one without a shape was met.
        let mut telling: Vec<usize> = Vec::new();
        let mut refused: Vec<u64> = Vec::new();
        loop {
            let mut left = over(region, &telling)?;
            for shaped in &shapes {
                left = shaped.divide(region, &left).1;
            }
            left.retain(|n| !refused.contains(n));
            let Some(witness) = left.first().copied() else { break };
            if shapes.len() + refused.len() >= limits::SEARCH_SHAPES {
                return None;
            }
            match Shaped::new(task, region, witness) {
                Ok(shaped) => {
                    telling.extend(axes_read(&shaped));
                    telling.sort_unstable();
                    telling.dedup();
                    if part.goals.is_empty() {
                        part.goals.clone_from(&shaped.goals);
                    }
                    for rule in &shaped.rules {
                        part.rules.entry(rule.name.clone()).or_insert_with(|| rule.clone());
                    }
                    let native = region.points >= NATIVE;
                    let bounded =
                        Bounded::new(&shaped, region, native).or_else(|_| Bounded::new(&shaped, region, false));
                    let bounded = bounded.ok()?;
                    out.push(Piece { region: r, witness, bounded, rules: shaped.rules.clone() });
                    shapes.push(shaped);
                }
                Err(why) => {
                    // Nothing tells what the error depends on: each point is tried alone.
                    telling = (0..region.axes.len()).collect();
                    let (rule, diagnostic) = refusal(why, Span::NOWHERE);
                    part.refused = part.refused.take().or(diagnostic);
                    part.count(std::slice::from_ref(&rule), 1);
                    refused.push(witness);
                }
            }
        }
    }
    Some(out)
}

/// The points over some axes, the others at their first value, in order.
fn over(region: &Region, axes: &[usize]) -> Option<Vec<u64>> {
    let mut out = vec![0];
    let mut stride = region.points;
    for (i, axis) in region.axes.iter().enumerate() {
        stride /= axis.len().max(1) as u64;
        if axes.contains(&i) {
            let digits = 0..axis.len() as u64;
            out = out.iter().flat_map(|n| digits.clone().map(move |d| n + d * stride)).collect();
            if out.len() > TELLING {
                return None;
            }
        }
    }
    Some(out)
}

/// The axes that what shaped the graph depends on.
fn axes_read(shaped: &Shaped<'_>) -> Vec<usize> {
    let (from, mut read) = (&shaped.shape.graph, Vec::new());
    let nodes: Vec<_> = shaped.shape.job.readings.iter().map(|(id, _)| *id).collect();
    for id in nodes {
        let (live, _) = from.live(&[id]);
        for node in live.ids() {
            if let Node::Input(i) = live.node(node) {
                read.extend(shaped.inputs.iter().position(|axis| *axis == Some(i.0 as usize)));
            }
        }
    }
    read
}

/// What a walk through the space found.
#[derive(Default)]
struct Found {
    candidates: Vec<Candidate>,
    /// Whether some that the filter passes were left out.
    cut: bool,
    survivors: u64,
    broken: BTreeMap<usize, BTreeMap<usize, u64>>,
}

impl Found {
    fn join(&mut self, other: Found) {
        self.candidates.extend(other.candidates);
        self.cut |= other.cut;
        self.survivors += other.survivors;
        for (piece, rules) in other.broken {
            let own = self.broken.entry(piece).or_default();
            for (rule, n) in rules {
                *own.entry(rule).or_default() += n;
            }
        }
        self.trim();
    }

    /// Keeps the candidates with the best bounds.
    fn trim(&mut self) {
        if self.candidates.len() > CANDIDATES {
            let order = |a: &Candidate, b: &Candidate| {
                a.bound[0].total_cmp(&b.bound[0]).then(a.piece.cmp(&b.piece)).then(a.point.cmp(&b.point))
            };
            self.candidates.select_nth_unstable_by(CANDIDATES - 1, order);
            self.candidates.truncate(CANDIDATES);
            self.cut = true;
        }
    }
}

/// Which bounds are worth a look.
struct Filter {
    goals: usize,
    top: usize,
    /// The best so far.
    rows: Vec<Vec<f64>>,
}

impl Filter {
    fn passes(&self, bound: &[f64]) -> bool {
        if self.goals < 2 {
            let worst = self.rows.get(self.top - 1).map_or(f64::INFINITY, |r| r[0]);
            return !worse(bound[0], worst);
        }
        // A row that is better in everything leaves no place on the front.
        !self.rows.iter().any(|row| bound.iter().zip(row).all(|(b, r)| worse(*b, *r)))
    }
}

/// Whether a bound is above a value by more than rounding can do.
fn worse(bound: f64, value: f64) -> bool {
    bound - SLACK * bound.abs() > value + SLACK * value.abs()
}

/// Goes through the points of a piece.
fn walk(task: Task<'_>, index: usize, piece: &Piece, filter: &Filter) -> Found {
    let goals = filter.goals;
    let collector = || Collector { piece: index, goals, bounded: piece.bounded.goals, filter, found: Found::default() };
    let nest = &piece.bounded.nest;
    let mut first = collector();
    // Where the space is cut does not depend on threads, so that the parts of a search on several machines fit together.
    let (done, mut rows) = nest.begin(STARTS.max(16 * task.part.1 as usize), &mut first);
    let mut parts: Vec<Rows> = Vec::new();
    while !rows.points.is_empty() {
        parts.push(rows.first(STARTS / 64));
    }
    if task.part.0 > 0 {
        // What is broken before is counted by the first part.
        first.found = Found::default();
    }
    let parts: Vec<Rows> = cut(parts, task.part);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut own = collector();
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            let Some(part) = parts.get(i).filter(|_| !task.stopped()) else { return own.found };
            nest.finish(done, part.clone(), &mut own);
        }
    };
    let mut found = first.found;
    let threads = task.threads.clamp(1, parts.len().max(1));
    let others: Vec<Found> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let own = work();
        std::iter::once(own).chain(others.into_iter().map(|t| t.join().unwrap_or_default())).collect()
    });
    for other in others {
        found.join(other);
    }
    found
}

/// The rows of one part of a search, the rows in turn to each part.
fn cut(rows: Vec<Rows>, (k, n): (u64, u64)) -> Vec<Rows> {
    if n == 1 {
        return rows;
    }
    let mut place = 0;
    let of_part = |mut rows: Rows| {
        let mut own: Option<Rows> = None;
        while !rows.points.is_empty() {
            let one = rows.first(1);
            if place % n == k {
                match &mut own {
                    Some(own) => own.append(&one),
                    None => own = Some(one),
                }
            }
            place += 1;
        }
        own
    };
    rows.into_iter().filter_map(of_part).collect()
}

struct Collector<'a> {
    piece: usize,
    goals: usize,
    bounded: bool,
    filter: &'a Filter,
    found: Found,
}

impl Taker for Collector<'_> {
    fn take(&mut self, rows: &Rows) {
        self.found.survivors += rows.points.len() as u64;
        for (row, point) in rows.points.iter().enumerate() {
            let bound: Vec<f64> = if self.bounded {
                (0..self.goals).map(|g| rows.columns[g][row]).collect()
            } else {
                vec![f64::NEG_INFINITY; self.goals]
            };
            if self.filter.passes(&bound) {
                self.found.candidates.push(Candidate { piece: self.piece, point: *point, bound });
            }
        }
        if self.found.candidates.len() > 2 * CANDIDATES {
            self.found.trim();
        }
    }

    fn broken(&mut self, rule: Option<usize>, points: u64) {
        if let Some(rule) = rule {
            *self.found.broken.entry(self.piece).or_default().entry(rule).or_default() += points;
        }
    }
}

/// Judges candidates in order until none that is left can be among the best; whether that was reached.
fn judge(
    task: Task<'_>,
    space: &Space,
    pieces: &[Piece],
    candidates: &[Candidate],
    search: &mut Guided,
    done: &mut Vec<(usize, u64)>,
    goals: usize,
) -> bool {
    let top = task.top.max(2);
    let threads = task.threads.clamp(1, candidates.len().div_ceil(PIECE).max(1));
    let (give, jobs) = mpsc::channel::<(usize, Vec<Candidate>)>();
    let (jobs, (back, results)) = (Mutex::new(jobs), mpsc::channel());
    let jobs = &jobs;
    std::thread::scope(|scope| {
        // Held here so that the threads end when this does.
        let give = give;
        for _ in 0..threads {
            let back = back.clone();
            scope.spawn(move || {
                let mut shapes: BTreeMap<usize, Shaped<'_>> = BTreeMap::new();
                loop {
                    let job = jobs.lock().ok().and_then(|jobs| jobs.recv().ok());
                    let Some((order, list)) = job else { return };
                    let _ = back.send((order, whole(task, space, pieces, &list, &mut shapes)));
                }
            });
        }
        drop(back);
        let mut ended = false;
        let mut size = WAVES.0;
        let mut rest = candidates;
        while !rest.is_empty() && !task.stopped() {
            let rows = search.part.rows.iter().map(|r| r.objectives.clone()).collect();
            let filter = Filter { goals, top, rows };
            if goals < 2 && !filter.passes(&rest[0].bound) {
                ended = true;
                break;
            }
            let (wave, later) = rest.split_at(size.min(rest.len()));
            rest = later;
            size = (2 * size).min(WAVES.1);
            let wave: Vec<&Candidate> = wave.iter().filter(|c| filter.passes(&c.bound)).collect();
            done.extend(wave.iter().map(|c| (c.piece, c.point)));
            let lists: Vec<Vec<Candidate>> =
                wave.chunks(PIECE).map(|c| c.iter().map(|x| (*x).clone()).collect()).collect();
            let count = lists.len();
            for (order, list) in lists.into_iter().enumerate() {
                let _ = give.send((order, list));
            }
            let mut parts: Vec<(usize, Part)> = results.iter().take(count).collect();
            parts.sort_by_key(|(order, _)| *order);
            for (_, part) in parts {
                search.part.join(part, task.top);
            }
        }
        ended
    })
}

/// Judges points as `parc plan` does.
fn whole<'p>(
    task: Task<'p>,
    space: &Space,
    pieces: &[Piece],
    list: &[Candidate],
    shapes: &mut BTreeMap<usize, Shaped<'p>>,
) -> Part {
    let mut part = Part::default();
    for candidate in list {
        let piece = &pieces[candidate.piece];
        let region = &space.regions[piece.region];
        if !shapes.contains_key(&candidate.piece)
            && let Ok(shaped) = Shaped::new(task, region, piece.witness)
        {
            shapes.insert(candidate.piece, shaped);
        }
        if let Some(shaped) = shapes.get_mut(&candidate.piece) {
            let outcomes = shaped.judge(region, &[candidate.point]);
            part.take(shaped, region, &[candidate.point], outcomes, task.top);
        }
    }
    answer::keep_best(&mut part.rows, part.goals.len(), task.top);
    part
}
