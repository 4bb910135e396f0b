//! Every rank's coordinates, layers, memory and groups.

use super::super::plan::{LayoutInfo, MemoryInfo, RankInfo};
use crate::analyse::Compiled;
use std::collections::BTreeMap;

pub(super) fn ranks(
    c: &Compiled<'_>,
    layout: &LayoutInfo,
    memory: &MemoryInfo,
) -> (BTreeMap<String, Vec<Vec<u64>>>, Vec<RankInfo>) {
    let devices = c.job.cluster.devices as u64;
    // The innermost level with several devices is what a launcher calls a node.
    let per_node = c.job.cluster.levels.first().map_or(1, |l| l.devices as u64).max(1);
    let mut groups: BTreeMap<String, Vec<Vec<u64>>> = BTreeMap::new();
    let mut group_of: Vec<Vec<u64>> = Vec::new();
    let experts = layout.experts.iter().flat_map(|e| &e.axes);
    for (i, axis) in layout.axes.iter().chain(experts).enumerate() {
        // Axes that experts share with all others are listed once.
        if groups.contains_key(&axis.name) {
            continue;
        }
        let mut list: Vec<Vec<u64>> = Vec::new();
        let mut of = vec![0; devices as usize];
        for rank in 0..devices {
            if (rank / axis.stride) % axis.size == 0 {
                let members: Vec<u64> = (0..axis.size).map(|i| rank + i * axis.stride).collect();
                for r in &members {
                    of[*r as usize] = list.len() as u64;
                }
                list.push(members);
            }
        }
        groups.insert(axis.name.clone(), list);
        if i < layout.axes.len() {
            group_of.push(of);
        }
    }
    let pipeline =
        layout.axes.iter().position(|a| c.job.layout.pipeline.is_some_and(|p| c.job.layout.axis(p).name == a.name));
    let layers: Vec<Vec<(u64, u64)>> = (0..c.facts.stages.len()).map(|s| layers(c, s as u32)).collect();
    let rank = |r: u64| {
        let coordinates: Vec<u64> = layout.axes.iter().map(|a| (r / a.stride) % a.size).collect();
        let stage = pipeline.map_or(0, |p| coordinates[p]);
        RankInfo {
            rank: r,
            node: r / per_node,
            local_rank: r % per_node,
            stage,
            memory: memory.stages[stage as usize].total,
            layers: layers[stage as usize].clone(),
            groups: group_of.iter().map(|g| g[r as usize]).collect(),
            coordinates,
        }
    };
    (groups, (0..devices).map(rank).collect())
}

/// Layers of a stage as half-open ranges of the model's numbering, neighbours joined.
fn layers(c: &Compiled<'_>, stage: u32) -> Vec<(u64, u64)> {
    let mut out: Vec<(u64, u64)> = Vec::new();
    for (chunk, host) in &c.facts.chunks {
        if *host != stage {
            continue;
        }
        for part in &chunk.parts {
            let unit = part.index as usize;
            if !c.job.ops.units[unit].repeated {
                continue;
            }
            let before: i64 = c.job.ops.units[..unit].iter().filter(|u| u.repeated).map(|u| u.count).sum();
            let from = before as u64 + u64::from(part.first);
            let to = from + u64::from(part.count);
            match out.last_mut() {
                Some(last) if last.1 == from => last.1 = to,
                _ => out.push((from, to)),
            }
        }
    }
    out
}
