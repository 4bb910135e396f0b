//! Plans built by hand, so that targets, launchers and reports are tested without the stages before them.
//!
//! Ranks, groups and sizes follow from the mesh by formulas written here. Times are invented, plausible and add up.

use parc::emit::plan::*;
use std::collections::BTreeMap;

/// Axes outermost first: name, ranks, role.
pub(crate) type Mesh<'a> = &'a [(&'a str, u64, AxisRole)];

pub(crate) use AxisRole::{Context, Data, Idle, Pipeline, Tensor};

/// Llama 3 8B on 2 nodes of 8: tp 2, pp 2, dp 4, sequence parallel, distributed optimizer, both overlaps.
pub(crate) fn llama3_8b() -> Plan {
    let mesh: Mesh = &[("pp", 2, Pipeline), ("dp", 4, Data), ("tp", 2, Tensor)];
    let mut plan = plan("train_8b", &llama(32, 4096, 32, 14336), mesh, 1, &[16, 16], (128, 8192, 1));
    plan.layout.sequence_parallel = true;
    plan.layout.overlap_gather = true;
    plan.layout.overlap_reduce = true;
    plan.layout.stored.insert("state", vec!["dp".into()]);
    plan.model.name = "Llama3_8B".into();
    weigh(&mut plan);
    plan
}

/// Llama 3 405B on 2048 nodes of 8: tp 8, pp 16 interleaved 2 ways, dp 128; the embedding and the head count as a layer.
pub(crate) fn llama3_405b() -> Plan {
    let mesh: Mesh = &[("dp", 128, Data), ("pp", 16, Pipeline), ("tp", 8, Tensor)];
    let mut layers = vec![4; 32];
    (layers[0], layers[31]) = (3, 3);
    let mut plan = plan("pretrain_8k", &llama(126, 16384, 128, 53248), mesh, 2, &layers, (4096, 8192, 1));
    plan.layout.sequence_parallel = true;
    plan.layout.overlap_gather = true;
    plan.layout.overlap_reduce = true;
    plan.layout.overlap_p2p = true;
    plan.layout.stored.insert("state", vec!["dp".into()]);
    plan.layout.pads.push(("V".into(), 128_256, 129_024));
    plan.model.name = "Llama3_405B".into();
    weigh(&mut plan);
    plan
}

/// GPT-3 175B on 192 nodes of 8, as Megatron-LM ran it in 2021: fp16, full recomputation, no sequence parallelism.
pub(crate) fn gpt3() -> Plan {
    let decoder = DecoderInfo {
        layers: 96,
        hidden: 12288,
        heads: 96,
        kv_heads: 96,
        head_dim: 128,
        ffn: 49152,
        vocab: 50257,
        learned_positions: Some(2048),
        rope_base: None,
        norm: "layer",
        activation: "gelu",
        bias: true,
        tied: true,
        qk_norm: false,
        experts: None,
    };
    let mesh: Mesh = &[("pp", 8, Pipeline), ("dp", 24, Data), ("tp", 8, Tensor)];
    let mut plan = plan("gpt3", &decoder, mesh, 2, &[6; 16], (2304, 2048, 2));
    plan.model.name = "GPT3_175B".into();
    plan.cluster.device = "A100_SXM_80".into();
    plan.layout.recompute = RecomputeInfo::Full;
    plan.layout.pads.push(("V".into(), 50257, 51200));
    for class in ["param", "act", "compute", "gather"] {
        plan.training.precision.insert(class.into(), "fp16".into());
    }
    weigh(&mut plan);
    plan
}

fn llama(layers: u64, hidden: u64, heads: u64, ffn: u64) -> DecoderInfo {
    DecoderInfo {
        layers,
        hidden,
        heads,
        kv_heads: 8,
        head_dim: 128,
        ffn,
        vocab: 128_256,
        learned_positions: None,
        rope_base: Some(500_000.0),
        norm: "rms",
        activation: "swiglu",
        bias: false,
        tied: false,
        qk_norm: false,
        experts: None,
    }
}

/// A plan of this model and mesh with nothing switched on, on nodes of 8. `layers` are those of every chunk.
pub(crate) fn plan(
    name: &str,
    decoder: &DecoderInfo,
    mesh: Mesh,
    chunks_per_rank: u64,
    layers: &[u64],
    (batch, sequence, micro_batch): (u64, u64, u64),
) -> Plan {
    let devices: u64 = mesh.iter().map(|(_, n, _)| n).product();
    let axes = axes(mesh);
    let of = |role| -> u64 { mesh.iter().filter(|m| m.2 == role).map(|m| m.1).product() };
    let (pp, replicas) = (of(Pipeline), of(Data));
    let units = units(decoder);
    let microbatches = batch / (micro_batch * replicas);
    let last = layers.len() - 1;
    let chunks: Vec<_> = layers
        .iter()
        .enumerate()
        .map(|(i, n)| ChunkInfo { stage: i as u64 % pp, units: vec![u64::from(i == 0), *n, u64::from(i == last)] })
        .collect();
    let usable = 78_400 << 20;
    let mut plan = Plan {
        schema: SCHEMA,
        compiler: "0.1.0".into(),
        std_hash: "9f2c41d7a0b3".into(),
        job: JobInfo { name: name.into(), file: "train.par".into(), line: 21, edition: 1, set: vec![], alone: false },
        model: ModelInfo {
            name: format!("Llama3_{}L", decoder.layers),
            params: units.iter().map(|u| u.count * u.params).sum(),
            units,
            decoder: Some(decoder.clone()),
            decoder_reason: None,
            flops: 6.0 * 8.03e9 * (batch * sequence) as f64,
        },
        cluster: cluster(devices, usable),
        layout: LayoutInfo {
            name: "Mine".into(),
            line: 24,
            sequence_parallel: false,
            context_method: None,
            stored: BTreeMap::new(),
            unlike: BTreeMap::new(),
            experts: None,
            hold: None,
            overlap_gather: false,
            overlap_reduce: false,
            overlap_p2p: false,
            overlap_experts: false,
            recompute: RecomputeInfo::None,
            recompute_choice: None,
            pads: vec![],
            axes,
        },
        training: TrainingInfo {
            batch,
            sequence,
            micro_batch,
            microbatches,
            replicas,
            steps: None,
            precision: bf16_mixed(),
            optimizer: "AdamW".into(),
        },
        pipeline: PipelineInfo {
            axis: (pp > 1).then(|| "pp".into()),
            schedule: if chunks_per_rank > 1 { "interleaved" } else { "one_f_one_b" }.into(),
            arguments: BTreeMap::new(),
            chunks_per_rank,
            bubble: (pp - 1) as f64 / (chunks_per_rank * microbatches) as f64,
            chunks: chunks.clone(),
        },
        memory: MemoryInfo { fits: true, stages: vec![], heaviest: 0 },
        time: time(batch * sequence, devices),
        collectives: collectives(mesh),
        passes: Vec::new(),
        claims: vec![
            Claim {
                text: "peak_memory <= 76 GiB".into(),
                kind: "require",
                holds: true,
                found: "41.2 GiB".into(),
                line: 30,
            },
            Claim { text: "mfu ~ 41% +- 4 pp".into(), kind: "expect", holds: true, found: "42.0%".into(), line: 31 },
        ],
        groups: groups(mesh),
        ranks: ranks(mesh, &chunks),
    };
    weigh(&mut plan);
    plan
}

/// Fills in the memory of every stage and rank from the rest of the plan.
pub(crate) fn weigh(plan: &mut Plan) {
    let stages: Vec<_> = (0..plan.pipeline.chunks.iter().map(|c| c.stage + 1).max().unwrap_or(1))
        .map(|s| stage_memory(plan, s))
        .collect();
    let heaviest = stages.iter().enumerate().max_by_key(|(i, s)| (s.total, usize::MAX - i)).map_or(0, |(i, _)| i);
    let total = stages[heaviest].total;
    for rank in &mut plan.ranks {
        rank.memory = stages[rank.stage as usize].total;
    }
    let holds = total <= 76 << 30;
    plan.claims[0].found = format!("{:.1} GiB", total as f64 / f64::from(1 << 30));
    plan.claims[0].holds = holds;
    plan.memory = MemoryInfo { fits: total <= plan.cluster.usable, stages, heaviest: heaviest as u64 };
}

fn axes(mesh: Mesh) -> Vec<AxisInfo> {
    let axis = |i: usize| {
        let (name, size, role) = mesh[i];
        let stride: u64 = mesh[i + 1..].iter().map(|m| m.1).product();
        let level = if size * stride <= 8 { "node" } else { "fabric" }.into();
        AxisInfo { name: name.into(), size, stride, role, level }
    };
    (0..mesh.len()).map(axis).collect()
}

/// A mesh's coordinates of `rank`, outermost first.
fn coordinates(mesh: Mesh, rank: u64) -> Vec<u64> {
    let mut rest = rank;
    let mut out: Vec<u64> = mesh
        .iter()
        .rev()
        .map(|(_, n, _)| {
            let c = rest % n;
            rest /= n;
            c
        })
        .collect();
    out.reverse();
    out
}

fn groups(mesh: Mesh) -> BTreeMap<String, Vec<Vec<u64>>> {
    let devices: u64 = mesh.iter().map(|m| m.1).product();
    let mut out = BTreeMap::new();
    for (i, (name, ..)) in mesh.iter().enumerate() {
        let mut by_rest: BTreeMap<Vec<u64>, Vec<u64>> = BTreeMap::new();
        for rank in 0..devices {
            let mut rest = coordinates(mesh, rank);
            rest.remove(i);
            by_rest.entry(rest).or_default().push(rank);
        }
        out.insert((*name).to_owned(), by_rest.into_values().collect());
    }
    out
}

fn ranks(mesh: Mesh, chunks: &[ChunkInfo]) -> Vec<RankInfo> {
    let devices: u64 = mesh.iter().map(|m| m.1).product();
    let pipeline = mesh.iter().position(|m| m.2 == Pipeline);
    let rank = |rank: u64| {
        let coordinates = coordinates(mesh, rank);
        let stage = pipeline.map_or(0, |i| coordinates[i]);
        let mut first = 0;
        let mut layers = Vec::new();
        for chunk in chunks {
            let next = first + chunk.units[1];
            if chunk.stage == stage && next > first {
                layers.push((first, next));
            }
            first = next;
        }
        let index = |i: usize| {
            let others = (0..mesh.len()).filter(|j| *j != i);
            others.fold(0, |n, j| n * mesh[j].1 + coordinates[j])
        };
        RankInfo {
            rank,
            node: rank / 8,
            local_rank: rank % 8,
            stage,
            memory: 0,
            layers,
            groups: (0..mesh.len()).map(index).collect(),
            coordinates,
        }
    };
    (0..devices).map(rank).collect()
}

fn units(d: &DecoderInfo) -> Vec<UnitInfo> {
    let attention = d.hidden * d.head_dim * (2 * d.heads + 2 * d.kv_heads);
    let mlp = d.hidden * d.ffn * if d.activation == "swiglu" { 3 } else { 2 };
    let unit = |name: &str, count, repeated, params| UnitInfo { name: name.into(), count, repeated, params };
    vec![
        unit("embed", 1, false, d.vocab * d.hidden),
        unit("decoder", d.layers, true, attention + mlp + 2 * d.hidden),
        unit("head", 1, false, d.hidden + if d.tied { 0 } else { d.vocab * d.hidden }),
    ]
}

/// Mixed precision with Adam: 2 bytes a parameter, 4 a gradient, 12 of state. Activations of a layer and token: 34
/// bytes of each hidden column over the tensor ranks, or the 2 of the layer's input where layers are recomputed.
fn stage_memory(plan: &Plan, stage: u64) -> StageMemory {
    let d = plan.model.decoder.as_ref().unwrap();
    let over = |role| -> u64 { plan.layout.axes.iter().filter(|a| a.role == role).map(|a| a.size).product() };
    let (tp, pp) = (over(Tensor), over(Pipeline));
    let mine = || plan.pipeline.chunks.iter().filter(|c| c.stage == stage);
    let count = |i: usize| mine().map(|c| c.units[i]).sum::<u64>();
    let params = (0..3).map(|i| count(i) * plan.model.units[i].params).sum::<u64>() / tp;
    let chunks = mine().count() as u64;
    let in_flight = (pp * chunks - stage + (chunks - 1) * (pp - stage - 1)).min(plan.training.microbatches * chunks);
    let layers = count(1);
    let tokens = plan.training.sequence * plan.training.micro_batch;
    let kept = if plan.layout.recompute == RecomputeInfo::Full { 2 * d.hidden } else { 34 * d.hidden / tp };
    let activations = in_flight * layers / chunks * tokens * kept;
    let state = if plan.layout.stored.contains_key("state") { over(Data) } else { 1 };
    let mut memory = StageMemory {
        params: 2 * params,
        gathered: 0,
        grads: 4 * params,
        state: 12 * params / state,
        activations,
        host: 0,
        transient: if stage + 1 == pp { tokens * d.vocab * 8 / tp } else { 6 * tokens * d.ffn / tp },
        overhead: 400 << 20,
        total: 0,
        in_flight,
        layers,
        largest: vec![Contributor {
            what: "a[B, S, F]".into(),
            region: "decoder.mlp".into(),
            place: "llama.par:31".into(),
            class: "activation",
            bytes: activations / 3,
        }],
    };
    memory.total =
        memory.params + memory.grads + memory.state + memory.activations + memory.transient + memory.overhead;
    memory
}

fn cluster(devices: u64, usable: u64) -> ClusterInfo {
    let level = |name: &str, children, devices, link: &str, links| LevelInfo {
        name: name.into(),
        children,
        devices,
        link: link.into(),
        links,
    };
    ClusterInfo {
        name: "DGX_H100".into(),
        devices,
        device: "H100_SXM".into(),
        usable,
        peak: 989.4e12,
        levels: vec![level("node", 8, 8, "NVLink4", 18), level("fabric", devices / 8, devices, "IB_NDR", 8)],
        price_per_hour: 2.5,
    }
}

fn bf16_mixed() -> BTreeMap<String, String> {
    let bf16 = ["param", "act", "compute", "gather"].map(|c| (c.into(), "bf16".into()));
    let fp32 = ["accumulate", "grad", "reduce", "master", "state", "logits"].map(|c| (c.into(), "fp32".into()));
    bf16.into_iter().chain(fp32).collect()
}

fn time(tokens: u64, devices: u64) -> TimeInfo {
    let parts = [
        ("matmul", 5.21),
        ("tp all-gather", 0.64),
        ("attention", 0.55),
        ("bubble", 0.22),
        ("elementwise", 0.19),
        ("optimizer", 0.02),
    ];
    let step: f64 = parts.iter().map(|p| p.1).sum();
    TimeInfo {
        step,
        tokens_per_s: tokens as f64 / step,
        mfu: 0.42,
        hfu: 0.445,
        parts: parts.map(|(n, s)| (n.to_owned(), s)).to_vec(),
        stages: vec![],
        price: 2.5 * devices as f64 * step / 3600.0,
    }
}

fn collectives(mesh: Mesh) -> Vec<CollectiveInfo> {
    let axes = axes(mesh);
    let one = |axis: &str, kind, purpose, sent, busy, exposed| CollectiveInfo {
        kind,
        purpose,
        axes: vec![axis.into()],
        group: mesh.iter().find(|m| m.0 == axis).map_or(1, |m| m.1),
        level: axes.iter().find(|a| a.name == axis).map_or("node", |a| &a.level).into(),
        bytes: sent / 100,
        count: 100,
        sent,
        busy,
        exposed,
        what: "x[B, S, H] in decoder.mlp".into(),
        place: "llama.par:31".into(),
    };
    vec![
        one("tp", "all-gather", "activations", 214_000_000_000, 0.32, 0.32),
        one("tp", "all-gather", "activations", 107_000_000_000, 0.16, 0.16),
        one("tp", "reduce-scatter", "activations", 107_000_000_000, 0.16, 0.16),
        one("dp", "reduce-scatter", "gradients", 6_020_000_000, 0.034, 0.0),
        one("dp", "all-gather", "parameters", 3_010_000_000, 0.017, 0.004),
        one("pp", "send", "stages", 1_070_000_000, 0.021, 0.021),
    ]
}
