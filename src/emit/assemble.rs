//! A compiled job to its plan: names, numbers and ranks in the words of the user.

mod experts;
mod layout;
mod memory;
mod passes;
mod ranks;
mod time;
mod traffic;

use super::decoder;
use super::plan::{
    ChunkInfo, Claim, ClusterInfo, JobInfo, LevelInfo, ModelInfo, PipelineInfo, Plan, SCHEMA, TrainingInfo, UnitInfo,
};
use crate::analyse::Compiled;
use crate::analyse::claims::Verdict;
use crate::analyse::group::outermost_level;
use crate::analyse::roots::StageValues;
use crate::analyse::stage::by_unit;
use crate::elaborate::{ClaimKind, Length, Settings};
use crate::hir::Program;
use crate::source::Sources;
use std::collections::BTreeMap;

/// Ranks a plan may list.
pub const MAX_RANKS: i64 = 1 << 20;

/// Parameters of the whole model, unpadded, tied ones once.
pub fn params(c: &Compiled<'_>) -> u64 {
    decoder::params(&c.job.ops, &c.graph)
}

/// Hardware utilisation: model FLOP and recomputed FLOP over peak FLOP.
pub fn hfu(c: &Compiled<'_>) -> f64 {
    time::hfu(c)
}

/// The largest contributors to a stage's memory, biggest first.
pub fn largest(
    c: &Compiled<'_>,
    facts: &crate::analyse::StageFacts,
    sources: &Sources,
) -> Vec<super::plan::Contributor> {
    memory::largest(c, facts, sources)
}

/// Whether a plan lists every rank and group.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Ranks {
    /// For launching.
    Listed,
    /// For reports: work does not grow with the devices.
    Left,
}

/// The plan of `compiled`.
pub fn plan(
    compiled: &mut Compiled<'_>,
    program: &Program,
    sources: &Sources,
    settings: &Settings,
    verdicts: &[Verdict],
    ranks: Ranks,
) -> Plan {
    let stages: Vec<StageValues> = compiled
        .facts
        .stages
        .iter()
        .map(|s| compiled.roots.stage_values(&compiled.graph, &compiled.inputs, s))
        .collect();
    let levels = levels(compiled);
    let c = &*compiled;
    let layout = layout::layout(c, sources, &levels);
    let memory = memory::memory(c, &stages, sources);
    let time = time::time(c, &stages);
    let collectives = traffic::collectives(c, &stages, sources, &levels);
    let (groups, ranks) = match ranks {
        Ranks::Listed => ranks::ranks(c, &layout, &memory),
        Ranks::Left => (BTreeMap::new(), Vec::new()),
    };
    let file = sources.file(program.module(c.job.id.module).file);
    let (line, _) = sources.line_col(c.job.span);
    Plan {
        schema: SCHEMA,
        compiler: env!("CARGO_PKG_VERSION").to_string(),
        std_hash: std_hash(program, sources),
        job: JobInfo {
            name: c.job.name.clone(),
            file: file.name.clone(),
            line,
            edition: program.module(c.job.id.module).ast.edition.map_or(1, |(n, _)| n as i64),
            alone: program.jobs().len() == 1,
            set: settings.values.iter().map(|(n, v)| (n.clone(), v.to_string())).collect(),
        },
        model: model(c),
        cluster: cluster(c),
        layout,
        training: training(c),
        pipeline: pipeline(c),
        memory,
        time,
        collectives,
        passes: passes::passes(c),
        claims: verdicts.iter().map(|v| claim(v, sources)).collect(),
        groups,
        ranks,
    }
}

/// FNV-1a of the standard library files the program uses: a plan says which figures it was made with.
fn std_hash(program: &Program, sources: &Sources) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut files: Vec<_> = program.modules.iter().filter(|m| m.std).map(|m| sources.file(m.file)).collect();
    files.sort_by(|a, b| a.name.cmp(&b.name));
    for file in files {
        for byte in file.name.bytes().chain(file.text.bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    format!("{:06x}", hash & 0x00ff_ffff)
}

fn claim(v: &Verdict, sources: &Sources) -> Claim {
    let kind = match v.kind {
        ClaimKind::Require => "require",
        ClaimKind::Expect => "expect",
    };
    let (line, _) = sources.line_col(v.span);
    Claim { text: v.text.clone(), kind, holds: v.holds, found: v.found.clone(), line }
}

fn model(c: &Compiled<'_>) -> ModelInfo {
    let (decoder, decoder_reason) = match decoder::decoder(&c.job.ops, &c.graph) {
        Ok(d) => (Some(d), None),
        Err(why) => (None, Some(why)),
    };
    let unit = |(i, u): (usize, &crate::graph::Unit)| UnitInfo {
        name: u.name.clone(),
        count: u.count as u64,
        repeated: u.repeated,
        params: decoder::unit_params(&c.job.ops, &c.graph, i as u32),
    };
    ModelInfo {
        name: c.job.model_name.clone(),
        params: decoder::params(&c.job.ops, &c.graph),
        units: c.job.ops.units.iter().enumerate().map(unit).collect(),
        decoder,
        decoder_reason,
        flops: c.value(c.roots.flops),
    }
}

fn cluster(c: &Compiled<'_>) -> ClusterInfo {
    let cluster = &c.job.cluster;
    let level = |l: &crate::elaborate::Level<'_>| LevelInfo {
        name: l.name.clone(),
        children: l.children as u64,
        devices: l.devices as u64,
        link: l.link.name.to_string(),
        links: l.links as u64,
    };
    ClusterInfo {
        name: cluster.name.clone(),
        devices: cluster.devices as u64,
        device: cluster.device.name.to_string(),
        usable: cluster.device_field("usable").round() as u64,
        peak: c.peak,
        levels: cluster.levels.iter().map(level).collect(),
        price_per_hour: cluster.device_field("price") * 3_600.0,
    }
}

fn training(c: &Compiled<'_>) -> TrainingInfo {
    let whole = |id| c.value(id) as u64;
    let formats = c.job.numerics.formats.iter().map(|(class, d)| ((*class).to_string(), d.name.clone()));
    let no_copy = ("master".to_string(), "none".to_string());
    TrainingInfo {
        batch: whole(c.job.batch),
        sequence: whole(c.job.sequence),
        micro_batch: whole(c.job.micro_batch),
        microbatches: whole(c.job.microbatches),
        replicas: whole(c.job.replicas),
        steps: steps(c),
        precision: std::iter::once(no_copy).chain(formats).collect(),
        optimizer: c.job.numerics.optimizer.name.to_string(),
    }
}

/// Updates of the whole job, the last one perhaps not full.
fn steps(c: &Compiled<'_>) -> Option<u64> {
    let (batch, sequence) = (c.value(c.job.batch), c.value(c.job.sequence));
    let steps = match c.job.length? {
        Length::Steps(n) => n,
        Length::Curve(n) => c.value(n),
        Length::Samples(n) => n / batch,
        Length::Tokens(n) => n / (batch * sequence),
    };
    Some(steps.ceil() as u64)
}

fn pipeline(c: &Compiled<'_>) -> PipelineInfo {
    let kinds = c.job.ops.units.len();
    let chunk = |(chunk, stage): &(crate::pipeline::split::Chunk, u32)| ChunkInfo {
        stage: u64::from(*stage),
        units: by_unit(chunk, kinds).into_iter().map(|n| n as u64).collect(),
    };
    let ranks = c.facts.stages.len().max(1) as u64;
    PipelineInfo {
        axis: c.job.pipeline.as_ref().map(|p| c.job.layout.axis(p.axis).name.clone()),
        schedule: c.schedule.name.clone(),
        arguments: c.schedule.arguments.clone(),
        chunks_per_rank: u64::from(c.schedule.chunks) / ranks,
        chunks: c.facts.chunks.iter().map(chunk).collect(),
        bubble: c.schedule.bubble,
    }
}

/// The outermost level each axis crosses, by axis; the innermost level for an axis of one rank.
fn levels(c: &mut Compiled<'_>) -> Vec<String> {
    let ids: Vec<_> = c.job.layout.axis_ids().collect();
    ids.into_iter()
        .map(|a| {
            let at = outermost_level(&c.job, &[a], &mut c.graph, &c.job.point).unwrap_or(0);
            c.job.cluster.levels[at].name.clone()
        })
        .collect()
}
