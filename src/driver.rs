//! The whole pipeline on one screen: files to a program, a job to everything known of it.

use crate::analyse::recompute::{Chosen, Question};
use crate::analyse::{self, Compiled, Metrics, Roots, Schedule, UnitCosts, costs, legality, roots, schedule, stage};
use crate::check;
use crate::diagnostics::{Diagnostic, Sink};
use crate::elaborate::{self, Job, Settings, Split};
use crate::eval::{Evaluator, errors::not_supported};
use crate::expr;
use crate::graph::ValueRole;
use crate::hir::{DeclId, Program};
use crate::limits;
use crate::optimize::{self, Outcome};
use crate::partition::{self, ShardedGraph};
use crate::resolve::{self, RootFile};
use crate::source::{Sources, World};

/// A job as far as its legality goes: no costs.
struct Legal<'p> {
    job: Job<'p>,
    sharded: ShardedGraph,
    passes: Vec<Outcome>,
    bytes: partition::Bytes,
    schedule: Schedule,
    graph: expr::Graph,
}

/// Reads, resolves and checks `files` and what they use.
pub fn front(sources: &mut Sources, world: &dyn World, files: &[RootFile], sink: &mut Sink) -> Program {
    let program = resolve::resolve(sources, world, files, sink);
    check::check(&program, sources, sink);
    program
}

/// Checks one job as far as it goes without costs: shapes, mesh, sharding, batch, schedule, even splits.
pub fn check_job(program: &Program, sources: &Sources, id: DeclId, settings: &Settings, sink: &mut Sink) -> bool {
    let before = sink.error_count();
    let good = checked(program, sources, id, settings, sink);
    explain(program, id, good, before, sink);
    good
}

fn checked(program: &Program, sources: &Sources, id: DeclId, settings: &Settings, sink: &mut Sink) -> bool {
    let Some((job, mut graph)) = elaborated(program, id, settings, &[], sink) else { return false };
    if !job.parts.is_empty() {
        return parts(program, sources, &job, &mut graph, sink);
    }
    let Some(legal) = judged(program, sources, job, graph, sink) else { return false };
    // A balanced cut is found with costs; the others are wrong or right without.
    match legal.job.pipeline.as_ref().map(|p| &p.split) {
        Some(Split::Balanced(_)) | None => true,
        Some(Split::Even(_) | Split::Listed(_)) => {
            let values = stage::UnitValues::none(legal.job.ops.units.len());
            stage::cut(&legal.job, &legal.schedule, &values, sink).is_some()
        }
    }
}

/// Checks what the command's own files declare and no job need use: models, blocks and clusters.
pub fn check_unused(program: &Program, sink: &mut Sink) {
    for module in &program.roots {
        for (id, _) in program.entries(*module) {
            elaborate::alone(program, id, sink);
        }
    }
}

/// Checks what can be checked of a job in a program with errors: what its layout selects in its model.
pub fn check_selectors(program: &Program, id: DeclId, sink: &mut Sink) {
    elaborate::selectors(program, id, sink);
}

/// Compiles one job at its point.
pub fn compile<'p>(
    program: &'p Program,
    sources: &Sources,
    id: DeclId,
    settings: &Settings,
    sink: &mut Sink,
) -> Option<Compiled<'p>> {
    let before = sink.error_count();
    let compiled = costed(program, sources, id, settings, sink);
    explain(program, id, compiled.is_some(), before, sink);
    compiled
}

/// No job is refused without a word: where a stage gave none, that is a bug in parc and is said so.
fn explain(program: &Program, id: DeclId, good: bool, before: usize, sink: &mut Sink) {
    if !good && sink.error_count() == before {
        let name = program.entry(id).name();
        sink.error(elaborate::errors::unexplained(UNEXPLAINED, name));
    }
}

/// How a bug in parc begins that refuses a job.
pub const UNEXPLAINED: &str = "a bug in parc: no stage says why it refuses";

fn costed<'p>(
    program: &'p Program,
    sources: &Sources,
    id: DeclId,
    settings: &Settings,
    sink: &mut Sink,
) -> Option<Compiled<'p>> {
    let asked = (program, sources, id, settings);
    let mut legal = legal(program, sources, id, settings, sink)?;
    if legal.job.layout.open_recompute().is_none() {
        return compiled(asked, legal, sink);
    }
    let split = legal.schedule.orders.has_weight_gradients();
    let Legal { job, sharded, graph, .. } = &mut legal;
    let costs = price(program, job, sharded, graph, Pricing { split, at_point: true, refuse: true }, sink)?.costs;
    let mut point = job.point.clone();
    point.resize(graph.inputs().len(), 0.0);
    let question = Question::new(sharded, &costs, graph, &point);
    let mut from = question.smallest();
    let mut smallest = chosen(asked, &from, sink)?;
    if smallest.over() > 0.0 {
        return Some(smallest);
    }
    // What a choice takes is predicted from another's counts: where it comes out too large, as much is kept free.
    let mut spare = 0.0;
    let mut at = None;
    for _ in 0..TRIES {
        let Some(answer) = question.answer(at.as_ref().unwrap_or(&smallest), &from, spare) else { break };
        let Some(made) = chosen(asked, &answer, &mut Sink::new()) else { break };
        let over = made.over();
        if over <= 0.0 {
            smallest = made;
            break;
        }
        spare += over;
        (from, at) = (answer, Some(made));
    }
    Some(smallest)
}

/// How often a choice of what to recompute is corrected before the smallest one is taken.
const TRIES: usize = 6;

/// What is asked for: a job of a program at its settings.
type Asked<'p, 'a> = (&'p Program, &'a Sources, DeclId, &'a Settings);

/// A job compiled with what was chosen to be made again.
fn chosen<'p>(asked: Asked<'p, '_>, choice: &Chosen, sink: &mut Sink) -> Option<Compiled<'p>> {
    let (program, sources, id, settings) = asked;
    let legal = legal_with(program, sources, id, settings, &choice.positions(), sink)?;
    let compiled = compiled(asked, legal, sink)?;
    Some(Compiled { chosen: Some(choice.clone()), ..compiled })
}

fn compiled<'p>((program, ..): Asked<'p, '_>, legal: Legal<'p>, sink: &mut Sink) -> Option<Compiled<'p>> {
    let Legal { job, sharded, mut passes, bytes, schedule, mut graph } = legal;
    let context = optimize::Context { graph: &job.ops, layout: &job.layout, bytes: &bytes };
    let tried = optimize::tried(&job.passes, &sharded, context, &mut graph);
    passes.extend(tried.into_iter().map(|(_, outcome)| outcome));
    if let Some(span) = schedule.keeps_none().and(job.pipeline.as_ref()).map(|p| p.schedule_span) {
        sink.error(not_supported("chunks that no rank keeps", span));
        return None;
    }
    let split = schedule.orders.has_weight_gradients();
    let priced = price(program, &job, &sharded, &mut graph, Pricing { split, at_point: true, refuse: true }, sink)?;
    let Priced { costs, roots, metrics, peak, .. } = priced;
    let mut at_point = job.point.clone();
    at_point.resize(graph.inputs().len(), 0.0);
    let values = stage::UnitValues::at(&graph, &at_point, &costs, &roots);
    let chunks = stage::cut(&job, &schedule, &values, sink)?;
    let facts = stage::count(&job, &sharded, &schedule, chunks, &values);
    let mut inputs = roots.inputs(&graph, &job.point, &facts);
    metrics.put(&graph, &schedule, &facts, &mut inputs);
    let chosen = None;
    let compiled =
        Compiled { job, sharded, passes, chosen, schedule, costs, facts, roots, metrics, graph, inputs, peak };
    within_limits(&compiled, sink).then_some(compiled)
}

/// What a job costs, as nodes.
struct Priced {
    costs: Vec<UnitCosts>,
    roots: Roots,
    metrics: Metrics,
    /// Values of cost functions.
    called: Vec<expr::Id>,
    peak: f64,
}

/// How a job is priced.
struct Pricing {
    /// Whether its schedule makes gradients of parameters in operations of their own.
    split: bool,
    /// Whether values of cost functions are held to what a cost may be.
    at_point: bool,
    /// Whether what nothing prices yet is refused: not where only legality is asked.
    refuse: bool,
}

/// Inlines the cost functions.
fn price<'p>(
    program: &'p Program,
    job: &Job<'p>,
    sharded: &ShardedGraph,
    graph: &mut expr::Graph,
    Pricing { split, at_point, refuse }: Pricing,
    sink: &mut Sink,
) -> Option<Priced> {
    // What may be said and nothing prices yet: right for `parc check`, refused here.
    let cluster = job.cluster.later.iter().map(|(what, span)| (*what, *span));
    let layout = job.layout.later.iter().map(|(what, span)| (what.as_str(), *span));
    let later: Vec<_> = cluster.chain(layout).filter(|_| refuse).collect();
    for (what, span) in &later {
        sink.error(not_supported(what, *span));
    }
    if !later.is_empty() {
        return None;
    }
    let mut eval = Evaluator::new(program, graph, sink);
    let mut caller = costs::Costs::new(&mut eval, job, split)?;
    let costs = caller.units(sharded)?;
    let peak = analyse::device_peak(job).unwrap_or(0.0);
    let roots = roots::build(job, sharded, &costs, &mut caller, peak);
    if caller.failed() {
        return None;
    }
    let mut point = job.point.clone();
    point.resize(caller.graph().inputs().len(), 0.0);
    if at_point && !caller.check(&point) {
        return None;
    }
    let called = caller.values();
    let metrics = Metrics::new(job, sharded, &costs, &roots, peak, graph);
    Some(Priced { costs, roots, metrics, called, peak })
}

/// A job as one graph for every point that shapes it alike: what a search evaluates.
#[derive(Debug)]
pub struct Shape<'p> {
    /// The job at one of the points.
    pub job: Job<'p>,
    /// Its ops, placed.
    pub sharded: ShardedGraph,
    /// What each unit costs.
    pub costs: Vec<UnitCosts>,
    /// Memory, time and price.
    pub roots: Roots,
    /// What claims and objectives speak of.
    pub metrics: Metrics,
    /// Values of cost functions.
    pub called: Vec<expr::Id>,
    /// The graph all of it is in.
    pub graph: expr::Graph,
}

/// Elaborates, partitions and prices a job without asking whether its point is legal. `light` is for legality alone.
pub fn shape<'p>(
    program: &'p Program,
    id: DeclId,
    settings: &Settings,
    light: bool,
    sink: &mut Sink,
) -> Option<Shape<'p>> {
    let mut graph = expr::Graph::new();
    let job = elaborate::elaborate(program, id, settings, &mut graph, sink)?;
    if let Some(part) = job.parts.first() {
        sink.error(not_supported(PLAN_OF_PARTS, part.span));
        return None;
    }
    let Placed { sharded, .. } = placed(program, &job, &mut graph, sink)?;
    if let (false, Some(span)) = (light, job.layout.open_recompute()) {
        sink.error(not_supported("choosing what to recompute among other open choices", span));
        return None;
    }
    let split = job.pipeline.as_ref().is_some_and(|p| schedule::habits(program, &p.schedule).splits);
    let Priced { costs, roots, metrics, called, .. } =
        price(program, &job, &sharded, &mut graph, Pricing { split, at_point: false, refuse: !light }, sink)?;
    Some(Shape { job, sharded, costs, roots, metrics, called, graph })
}

/// Whether what the job moves and keeps can be counted.
fn within_limits(c: &Compiled<'_>, sink: &mut Sink) -> bool {
    let (memory, flops) = (c.value(c.roots.peak_memory), c.value(c.roots.flops));
    let over =
        |what: &str, met: f64, limit: &str| Diagnostic::over_limit(what, format!("{met:.1e}"), limit, c.job.span);
    if memory > limits::DEVICE_BYTES as f64 {
        sink.error(over("bytes a plan puts on one device", memory, "2^60"));
    } else if flops > limits::MAGNITUDE as f64 {
        sink.error(over("size in bytes or FLOP", flops, "2^100"));
    } else {
        return true;
    }
    false
}

/// Devices of a job's cluster; `None` where the job is wrong.
pub fn devices(program: &Program, id: DeclId, settings: &Settings) -> Option<i64> {
    let (mut graph, mut sink) = (expr::Graph::new(), Sink::new());
    elaborate::elaborate(program, id, settings, &mut graph, &mut sink).map(|job| job.cluster.devices)
}

fn legal<'p>(
    program: &'p Program,
    sources: &Sources,
    id: DeclId,
    settings: &Settings,
    sink: &mut Sink,
) -> Option<Legal<'p>> {
    legal_with(program, sources, id, settings, &[], sink)
}

/// A job's legality with values chosen to be made again where that is open.
fn legal_with<'p>(
    program: &'p Program,
    sources: &Sources,
    id: DeclId,
    settings: &Settings,
    chosen: &[u32],
    sink: &mut Sink,
) -> Option<Legal<'p>> {
    let (job, mut graph) = elaborated(program, id, settings, chosen, sink)?;
    if let Some(part) = job.parts.first() {
        if parts(program, sources, &job, &mut graph, sink) {
            sink.error(not_supported(PLAN_OF_PARTS, part.span));
        }
        return None;
    }
    judged(program, sources, job, graph, sink)
}

/// What cannot be done yet with a layout of parts.
pub const PLAN_OF_PARTS: &str = "a plan of parts of a model";

/// A job whose choices are settled, and the graph of its sizes.
fn elaborated<'p>(
    program: &'p Program,
    id: DeclId,
    settings: &Settings,
    chosen: &[u32],
    sink: &mut Sink,
) -> Option<(Job<'p>, expr::Graph)> {
    let mut graph = expr::Graph::new();
    let mut job = elaborate::elaborate(program, id, settings, &mut graph, sink)?;
    job.layout.choose(chosen);
    let mut open = job.choices.iter().filter(|c| !c.settled).peekable();
    if open.peek().is_some() {
        for choice in open {
            sink.error(elaborate::errors::open_choice(&choice.name, choice.span));
        }
        return None;
    }
    Some((job, graph))
}

/// A job as far as its legality goes.
fn judged<'p>(
    program: &'p Program,
    sources: &Sources,
    job: Job<'p>,
    mut graph: expr::Graph,
    sink: &mut Sink,
) -> Option<Legal<'p>> {
    if !legality::check_mesh(&job, &graph, sources, sink) {
        return None;
    }
    let Placed { sharded, passes, bytes } = placed(program, &job, &mut graph, sink)?;
    let sound = legality::check_sharding(&job, &sharded, &graph, sources, sink);
    let schedule = scheduled(program, &job, &mut graph, sink)?;
    if !schedule::staleness_accepted(&job, &schedule, sink) {
        return None;
    }
    sound.then_some(Legal { job, sharded, passes, bytes, schedule, graph })
}

/// The schedule of a job's stages.
fn scheduled<'p>(program: &'p Program, job: &Job<'p>, graph: &mut expr::Graph, sink: &mut Sink) -> Option<Schedule> {
    let m = microbatches(job, graph, sink)?;
    let Some(item) = &job.pipeline else {
        let single = schedule::single(m);
        if single.is_none() {
            sink.error(too_many_microbatches(job, f64::from(m)));
        }
        return single;
    };
    let read = |id| graph.eval(&job.point, &[id])[0];
    let p = read(job.layout.axis(item.axis).size) as u32;
    let axis = &job.layout.axis(item.axis).name;
    let place = schedule::Use {
        ranks: job.parameters.iter().find(|p| p.name == *axis).map(|p| p.span),
        batch: job.places.get("batch").map(|at| (*at, (read(job.micro_batch) * read(job.replicas)) as i64)),
    };
    let mut eval = Evaluator::new(program, graph, sink);
    let schedule = schedule::evaluate(&mut eval, item, (p, m), &place)?;
    schedule::warn_of_bubble(&mut eval, item, &schedule, p, m);
    Some(schedule)
}

/// Microbatches of an update.
fn microbatches(job: &Job<'_>, graph: &expr::Graph, sink: &mut Sink) -> Option<u32> {
    let m = graph.eval(&job.point, &[job.microbatches])[0];
    let found = u32::try_from(m as i64).ok();
    if found.is_none() {
        sink.error(too_many_microbatches(job, m));
    }
    found
}

/// Checks a job whose layout is of parts: each on its devices, and the schedule that joins their stages.
fn parts<'p>(program: &'p Program, sources: &Sources, job: &Job<'p>, graph: &mut expr::Graph, sink: &mut Sink) -> bool {
    if !legality::check_mesh(job, graph, sources, sink) {
        return false;
    }
    let mut sound = true;
    for part in &job.parts {
        let mesh = legality::check_mesh(&part.job, graph, sources, sink);
        let sharded = if mesh { ruled(program, &part.job, graph, sink) } else { None };
        sound &= sharded.is_some_and(|(s, _)| legality::check_sharding(&part.job, &s, graph, sources, sink));
    }
    if !sound {
        return false;
    }
    let joined: &[usize] = job.joined.as_ref().map_or(&[], |j| &j.parts);
    for (_, part) in job.parts.iter().enumerate().filter(|(i, _)| !joined.contains(i)) {
        sound &= scheduled(program, &part.job, graph, sink).is_some();
    }
    let (Some(item), Some(first)) = (&job.joined, joined.first()) else { return sound };
    let Some(m) = microbatches(&job.parts[*first].job, graph, sink) else { return false };
    let stages = |at: &usize| {
        let part = &job.parts[*at].job;
        part.layout.pipeline.map_or(1.0, |axis| graph.eval(&part.point, &[part.layout.axis(axis).size])[0])
    };
    let p = joined.iter().map(stages).sum::<f64>() as u32;
    let mut eval = Evaluator::new(program, graph, sink);
    let place = schedule::Use::default();
    sound && schedule::run(&mut eval, &item.schedule, item.schedule_span, (p, m), &place).is_some()
}

/// A job partitioned, and what its runtime does done.
struct Placed {
    sharded: ShardedGraph,
    passes: Vec<Outcome>,
    bytes: partition::Bytes,
}

fn placed<'p>(program: &'p Program, job: &Job<'p>, graph: &mut expr::Graph, sink: &mut Sink) -> Option<Placed> {
    let (ruled, bytes) = ruled(program, job, graph, sink)?;
    let context = optimize::Context { graph: &job.ops, layout: &job.layout, bytes: &bytes };
    let (sharded, passes) = optimize::apply(&job.passes, ruled, context, graph);
    Some(Placed { sharded, passes, bytes })
}

/// The program the rules give, and bytes of an element.
fn ruled<'p>(
    program: &'p Program,
    job: &Job<'p>,
    graph: &mut expr::Graph,
    sink: &mut Sink,
) -> Option<(ShardedGraph, partition::Bytes)> {
    let before = sink.error_count();
    let bytes = element_bytes(program, job, graph, sink)?;
    // Gradients of what leaves a part come from where it is used.
    let losses = job.ops.ops().map(|(_, op)| op.output).filter(|v| job.ops.value(*v).role == ValueRole::Loss);
    let seeds = if job.leaving.is_empty() { Vec::new() } else { job.leaving.iter().copied().chain(losses).collect() };
    let fixed = partition::Fixed { seeds, ..partition::Fixed::default() };
    let sharded = partition::partition_with(&job.ops, &job.layout, &bytes, graph, sink, &fixed);
    (sink.error_count() == before).then_some((sharded, bytes))
}

/// A job's program as the rules give it and after each pass.
#[derive(Debug)]
pub struct Programs<'p> {
    /// The job.
    pub job: Job<'p>,
    /// By the rules.
    pub ruled: ShardedGraph,
    /// After each pass: those that are assumed one after the other, each other one on its own after those.
    pub passed: Vec<(ShardedGraph, Outcome)>,
    /// The graph of its sizes.
    pub graph: expr::Graph,
}

/// The programs of one job at its point.
pub fn programs<'p>(program: &'p Program, id: DeclId, settings: &Settings, sink: &mut Sink) -> Option<Programs<'p>> {
    let mut graph = expr::Graph::new();
    let job = elaborate::elaborate(program, id, settings, &mut graph, sink)?;
    let (ruled, bytes) = ruled(program, &job, &mut graph, sink)?;
    let context = optimize::Context { graph: &job.ops, layout: &job.layout, bytes: &bytes };
    let mut passed: Vec<(ShardedGraph, Outcome)> = Vec::new();
    for pass in &job.passes {
        let from = passed.last().map_or(&ruled, |(sharded, _)| sharded).clone();
        let (after, mut outcomes) = optimize::apply(&[*pass], from, context, &mut graph);
        passed.extend(outcomes.pop().map(|outcome| (after, outcome)));
    }
    let last = passed.last().map_or(&ruled, |(sharded, _)| sharded).clone();
    passed.extend(optimize::tried(&job.passes, &last, context, &mut graph));
    Some(Programs { job, ruled, passed, graph })
}

/// Bytes of an element in each class partitioning prices, and what kernels keep beside.
fn element_bytes<'p>(
    program: &'p Program,
    job: &Job<'p>,
    graph: &mut expr::Graph,
    sink: &mut Sink,
) -> Option<partition::Bytes> {
    let of = |class| job.numerics.bytes(class);
    let mut eval = Evaluator::new(program, graph, sink);
    let mut extra = |name| costs::constant(&mut eval, job, name);
    Some(partition::Bytes {
        param: of("param"),
        act: of("act"),
        wire: of("wire"),
        grad: of("grad"),
        reduce: of("reduce"),
        gather: of("gather"),
        logits: of("logits"),
        norm_extra: extra("norm_extra")?,
        softmax_extra: extra("softmax_extra")?,
        loss_extra: extra("loss_extra")?,
    })
}

fn too_many_microbatches(job: &Job<'_>, m: f64) -> Diagnostic {
    let span = job.places.get("batch").copied().unwrap_or(job.span);
    elaborate::errors::too_many_microbatches(m, span)
}
