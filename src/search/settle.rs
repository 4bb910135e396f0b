//! Open choices of a job that is checked or planned: one legal point, or the best one.

use super::{Answer, Space, Task, conflict, errors, search};
use crate::diagnostics::{Code, Diagnostic, Severity, Sink};
use crate::driver;
use crate::elaborate::Settings;
use crate::eval::errors::not_supported;
use crate::hir::{Binding, DeclId, Entry, Program};
use crate::source::{Sources, Span};
use crate::syntax::ast::{Body, ExprKind, ItemKind, Kind};

/// Points among which a check looks for one that is legal.
const CHECKED: u64 = 65_536;
/// Legal points that a check goes on with, one after another.
const TRIED: usize = 16;

/// What became of a job's open choices.
#[derive(Debug)]
pub struct Open {
    /// The settings with every choice settled.
    pub settings: Settings,
    /// What the search found, where there was one.
    pub found: Option<(Space, Answer)>,
}

/// Settles the choices of a job that is planned: the best point. What is wrong is reported.
pub fn settle(task: Task<'_>, sink: &mut Sink, progress: &(dyn Fn(u64) + Sync)) -> Option<Open> {
    let space = Space::new(task.program, task.job, task.settings, sink)?;
    if space.open.is_empty() {
        return Some(Open { settings: task.settings.clone(), found: None });
    }
    if let Some(span) = space.parts {
        sink.error(not_supported(driver::PLAN_OF_PARTS, span));
        return None;
    }
    if !space.has_objective {
        let (end, indent) = end_of_job(task.program, task.sources, task);
        sink.error(errors::no_objective(&space.open, end, &indent));
        return None;
    }
    let answer = search(task, &space, progress);
    let best = answer.rows.first().and_then(|row| space.locate(row.point));
    match best {
        Some((region, n)) => {
            let settings = region.settle(task.settings, n);
            Some(Open { settings, found: Some((space, answer)) })
        }
        None => {
            sink.error(conflict::explain(task, &space, &answer));
            None
        }
    }
}

/// Checks a job whose choices may be open: at one legal point, if one is found among the first. What the job asks for
/// and no plan can do yet is for `plan` to say.
pub fn legal_point(task: Task<'_>, sink: &mut Sink) -> bool {
    let mut own = Sink::new();
    let good = checked(task, &mut own);
    let said = own.finish();
    if !good && later(task, &said) {
        return true;
    }
    sink.take(said);
    good
}

/// Whether all that is wrong is that fields of the job itself are not supported yet.
fn later(task: Task<'_>, said: &[Diagnostic]) -> bool {
    let inside =
        |outer: Span, span: Span| outer.file == span.file && outer.start <= span.start && span.end <= outer.end;
    // A job may be copied from another of the command's files.
    let jobs = task.program.jobs().into_iter().chain([task.job]);
    let jobs: Vec<&Body> = jobs
        .filter_map(|id| match task.program.entry(id) {
            Entry::Decl(decl) => Some(&decl.body),
            Entry::Let(_) => None,
        })
        .collect();
    let own = |span: Span| {
        jobs.iter().any(|body| match body {
            Body::Block(b) => b.items.iter().any(|i| inside(i.span, span)),
            Body::Expr(e) => inside(e.span, span),
            Body::None => false,
        })
    };
    let mut errors = said.iter().filter(|d| d.code.info().severity == Severity::Error).peekable();
    errors.peek().is_some() && errors.all(|d| d.code == Code::NotSupported && own(d.primary.span))
}

fn checked(task: Task<'_>, sink: &mut Sink) -> bool {
    // Other jobs are checked as far as names, units and fields go; what has no cluster runs as a role of a workflow.
    let kind = task.program.entry(task.job).kind();
    if kind.is_some_and(|k| k != Kind::Train) || !gives(task.program, task.job, "cluster") {
        return true;
    }
    let Some(space) = Space::new(task.program, task.job, task.settings, sink) else { return false };
    if space.open.is_empty() {
        return driver::check_job(task.program, task.sources, task.job, task.settings, sink);
    }
    if space.parts.is_some() {
        return first_legal(task, &space, sink);
    }
    let whole = space.points <= CHECKED;
    let first = Task { light: true, top: TRIED, threads: 1, limit: CHECKED, ..task };
    let answer = search(first, &space, &|_| {});
    let mut failed: Option<Sink> = None;
    for row in answer.rows.iter().take(TRIED) {
        let Some((region, n)) = space.locate(row.point) else { continue };
        let mut own = Sink::new();
        let settings = region.settle(task.settings, n);
        if driver::check_job(task.program, task.sources, task.job, &settings, &mut own) {
            sink.take(own.finish());
            return true;
        }
        failed.get_or_insert(own);
    }
    match failed {
        Some(own) if whole && answer.legal <= TRIED as u64 => {
            sink.take(own.finish());
            false
        }
        None if whole => {
            sink.error(conflict::explain(first, &space, &answer));
            false
        }
        _ => true,
    }
}

/// Looks for a legal point among the first, one after another.
fn first_legal(task: Task<'_>, space: &Space, sink: &mut Sink) -> bool {
    let mut failed: Option<Sink> = None;
    for n in 0..space.points.min(TRIED as u64) {
        let Some((region, n)) = space.locate(n) else { continue };
        let mut own = Sink::new();
        if driver::check_job(task.program, task.sources, task.job, &region.settle(task.settings, n), &mut own) {
            sink.take(own.finish());
            return true;
        }
        failed.get_or_insert(own);
    }
    match failed {
        Some(own) if space.points <= TRIED as u64 => {
            sink.take(own.finish());
            false
        }
        Some(_) | None => true,
    }
}

/// Whether a job, or one that it copies, gives `field`; where that cannot be seen, it is said to.
fn gives(program: &Program, job: DeclId, field: &str) -> bool {
    let in_block = |b: &crate::syntax::ast::Block| {
        b.items.iter().any(|i| match &i.kind {
            ItemKind::Assign { target, .. } => target.name.text == field,
            ItemKind::Domain { name, .. } => name.text == field,
            _ => false,
        })
    };
    let mut at = job;
    for _ in 0..crate::limits::WITH_NESTING {
        let Entry::Decl(decl) = program.entry(at) else { return true };
        let mut e = match &decl.body {
            Body::Block(b) => return in_block(b),
            Body::Expr(e) => e,
            Body::None => return true,
        };
        while let ExprKind::With(base, block) = &e.kind {
            if in_block(block) {
                return true;
            }
            e = base;
        }
        let ExprKind::Path(path) = &e.kind else { return true };
        let [name] = &path[..] else { return true };
        match program.lookup(at.module, &name.text) {
            Some(Binding::Decl(id)) if id != at => at = id,
            _ => return true,
        }
    }
    true
}

/// The end of the last item of the job, and how its items are indented.
fn end_of_job(program: &Program, sources: &Sources, task: Task<'_>) -> (Span, String) {
    let entry = program.entry(task.job);
    let items = match entry {
        Entry::Decl(d) => match &d.body {
            Body::Block(b) => b.items.as_slice(),
            Body::Expr(_) | Body::None => &[],
        },
        Entry::Let(_) => &[],
    };
    let last = items.last().map_or(entry.name().span, |i| i.span);
    let end = Span { start: last.end, ..last };
    let before = sources.file(last.file).text.get(..last.start as usize).unwrap_or_default();
    let line = before.rsplit('\n').next().unwrap_or_default();
    let indent: String = line.chars().take_while(|c| c.is_whitespace()).collect();
    (end, if indent.is_empty() { "  ".into() } else { indent })
}
