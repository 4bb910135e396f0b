//! The space of a search: every open choice of a job, met by elaborating it.
//!
//! Choices among whole numbers are axes: sizes stay symbolic, so one elaboration meets them all. Any other choice makes
//! a region of its own for each value, since what is open inside may differ from one layout to the next.

use super::errors;
use crate::diagnostics::Sink;
use crate::elaborate::{self, Job, Settings};
use crate::eval::Choice;
use crate::expr;
use crate::hir::{DeclId, Program};
use crate::limits;
use crate::source::Span;

/// A choice among whole numbers.
#[derive(Clone, Debug)]
pub struct Axis {
    /// What is chosen.
    pub name: String,
    /// The `?`, or the domain.
    pub span: Span,
    /// Its values as numbers.
    values: Values,
    /// As reports write them, where they have a unit.
    suffix: String,
}

#[derive(Clone, Debug)]
enum Values {
    From(i64, usize),
    Listed(Vec<i64>),
}

impl Axis {
    fn new(choice: &Choice<'_>) -> Option<Self> {
        let values = match &choice.domain {
            crate::eval::Domain::Range(a, _) => Values::From(i64::try_from(*a).ok()?, choice.domain.len()),
            crate::eval::Domain::Listed(_) => Values::Listed(choice.domain.integers()?),
        };
        let text = choice.text(0);
        let suffix = text.trim_start_matches(|c: char| c.is_ascii_digit() || "-,._".contains(c)).to_string();
        Some(Self { name: choice.name.clone(), span: choice.span, values, suffix })
    }

    /// How many values it has.
    pub fn len(&self) -> usize {
        match &self.values {
            Values::From(_, n) => *n,
            Values::Listed(list) => list.len(),
        }
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value at `index`.
    pub fn value(&self, index: usize) -> i64 {
        match &self.values {
            Values::From(a, _) => a + index as i64,
            Values::Listed(list) => list.get(index).copied().unwrap_or_default(),
        }
    }

    /// The value at `index` as a report writes it.
    pub fn text(&self, index: usize) -> String {
        let value = self.value(index);
        // The prefix of a unit may differ from value to value; a plain number and its unit do not.
        match self.suffix.trim() {
            "seq" | "tok" | "step" | "req" => format!("{value}{}", self.suffix),
            _ => value.to_string(),
        }
    }
}

/// A choice that shapes the graph, settled.
#[derive(Clone, Debug)]
pub struct Fixed {
    /// What is chosen.
    pub name: String,
    /// The `?`, or the domain.
    pub span: Span,
    /// Index of the value.
    pub index: usize,
    /// The value as a report writes it.
    pub text: String,
}

/// The points that share every choice but those among whole numbers.
#[derive(Clone, Debug)]
pub struct Region {
    /// Choices that shape the graph.
    pub fixed: Vec<Fixed>,
    /// The others, in the order of the text: the first varies slowest.
    pub axes: Vec<Axis>,
    /// Index of its first point among all.
    pub start: u64,
    /// How many points it has.
    pub points: u64,
}

impl Region {
    /// The index of each axis at the region's point `n`.
    pub fn digits(&self, n: u64) -> Vec<usize> {
        let mut rest = n;
        let mut out = vec![0; self.axes.len()];
        for (slot, axis) in out.iter_mut().zip(&self.axes).rev() {
            let len = axis.len().max(1) as u64;
            *slot = (rest % len) as usize;
            rest /= len;
        }
        out
    }

    /// `settings` with the choices of the region's point `n`.
    pub fn settle(&self, settings: &Settings, n: u64) -> Settings {
        let mut out = settings.clone();
        out.chosen.extend(self.fixed.iter().map(|f| (f.span, f.index)));
        out.chosen.extend(self.axes.iter().zip(self.digits(n)).map(|(a, d)| (a.span, d)));
        out
    }

    /// Each choice of the region's point `n`: its place, its name and its value, in the order of the text.
    pub fn named(&self, n: u64) -> Vec<(String, String)> {
        let fixed = self.fixed.iter().map(|f| (f.span, f.name.clone(), f.text.clone()));
        let axes = self.axes.iter().zip(self.digits(n)).map(|(a, d)| (a.span, a.name.clone(), a.text(d)));
        let mut all: Vec<_> = fixed.chain(axes).collect();
        all.sort_by_key(|(span, _, _)| (span.file, span.start));
        all.into_iter().map(|(_, name, text)| (name, text)).collect()
    }
}

/// Every point of a job's open choices.
#[derive(Clone, Debug)]
pub struct Space {
    /// The regions, in the order of the text.
    pub regions: Vec<Region>,
    /// All points.
    pub points: u64,
    /// Whether the job says what it is after.
    pub has_objective: bool,
    /// Place and name of every open choice, in the order of the text.
    pub open: Vec<(String, Span)>,
    /// The first part, where the layout is of parts: their points are judged one by one.
    pub parts: Option<Span>,
}

impl Space {
    /// The space of `id`; `None` where the job is wrong, which is reported.
    pub fn new(program: &Program, id: DeclId, settings: &Settings, sink: &mut Sink) -> Option<Self> {
        let mut space = Self { regions: Vec::new(), points: 0, has_objective: false, open: Vec::new(), parts: None };
        let mut total = 0;
        space.explore(program, id, settings, &mut Vec::new(), &mut total, sink)?;
        space.open.sort_by_key(|(_, span)| (span.file, span.start));
        space.open.dedup();
        if total > u128::from(limits::SEARCH_POINTS) {
            let axes: Vec<&Axis> = space.regions.iter().flat_map(|r| &r.axes).collect();
            sink.error(errors::too_large(total, &axes));
            return None;
        }
        let mut start = 0;
        for region in &mut space.regions {
            region.start = start;
            start += region.points;
        }
        space.points = start;
        Some(space)
    }

    fn explore(
        &mut self,
        program: &Program,
        id: DeclId,
        settings: &Settings,
        fixed: &mut Vec<Fixed>,
        total: &mut u128,
        sink: &mut Sink,
    ) -> Option<()> {
        let mut at = settings.clone();
        at.chosen.extend(fixed.iter().map(|f| (f.span, f.index)));
        let mut graph = expr::Graph::new();
        let job: Job<'_> = elaborate::elaborate(program, id, &at, &mut graph, sink)?;
        self.has_objective |= job.objective.is_some();
        self.parts = self.parts.or(job.parts.first().map(|p| p.span));
        let open = || job.choices.iter().filter(|c| !c.settled);
        self.open.extend(open().map(|c| (c.name.clone(), c.span)));
        if let Some(choice) = open().find(|c| c.input.is_none()) {
            if choice.domain.len() > limits::SEARCH_SHAPES {
                sink.error(errors::too_many_shapes(&choice.name, choice.span));
                return None;
            }
            for index in 0..choice.domain.len() {
                fixed.push(Fixed { name: choice.name.clone(), span: choice.span, index, text: choice.text(index) });
                let done = self.explore(program, id, settings, fixed, total, sink);
                fixed.pop();
                done?;
            }
            return Some(());
        }
        if self.regions.len() >= limits::SEARCH_SHAPES {
            let d = errors::too_many_shapes(&job.name, job.span);
            sink.error(d);
            return None;
        }
        let axes: Vec<Axis> = open().filter_map(Axis::new).collect();
        let points = axes.iter().fold(1_u128, |n, a| n.saturating_mul(a.len() as u128));
        *total = total.saturating_add(points);
        let points = u64::try_from(points).unwrap_or(u64::MAX);
        self.regions.push(Region { fixed: fixed.clone(), axes, start: 0, points });
        Some(())
    }

    /// The region of point `n`, and its index there.
    pub fn locate(&self, n: u64) -> Option<(&Region, u64)> {
        let i = self.regions.partition_point(|r| r.start <= n).checked_sub(1)?;
        let region = self.regions.get(i)?;
        Some((region, n - region.start))
    }
}
