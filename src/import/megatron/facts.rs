//! Numbers of a Megatron-LM command line, its own defaults put in, as its argument parser understands them.

use crate::import::options::Options;

/// Which program reads the options; defaults differ.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Front {
    /// `pretrain_gpt.py` of Megatron-LM.
    Megatron,
    /// `Megatron-DeepSpeed`, whose `ZeRO` stages are `DeepSpeed`'s.
    DeepSpeed,
    /// ms-swift, which reads the model from a checkpoint.
    Swift,
}

/// What is told, in numbers.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option that is given or not")]
pub(super) struct Facts {
    pub(super) front: Front,
    pub(super) tp: u64,
    pub(super) pp: u64,
    pub(super) cp: u64,
    pub(super) ep: u64,
    pub(super) etp: u64,
    pub(super) sequence_parallel: bool,
    pub(super) layers: Option<u64>,
    pub(super) hidden: Option<u64>,
    pub(super) heads: Option<u64>,
    /// Key and value heads, where they are fewer than the others.
    pub(super) groups: Option<u64>,
    pub(super) experts: Option<u64>,
    pub(super) top_k: u64,
    pub(super) sequence: Option<u64>,
    pub(super) micro: Option<u64>,
    pub(super) batch: Option<u64>,
    /// Modules behind the layers that predict one more token each.
    pub(super) predictors: u64,
    /// Layers of a chunk, as given.
    pub(super) chunk_layers: Option<u64>,
    /// Chunks on a rank, as given.
    pub(super) chunks: Option<u64>,
    /// Stages of a written layout, and layers of each.
    pub(super) written: Option<Vec<Stage>>,
    pub(super) first: Option<u64>,
    pub(super) last: Option<u64>,
    pub(super) count_embedding: bool,
    pub(super) count_loss: bool,
    pub(super) group: Option<u64>,
    pub(super) exposed_p2p: bool,
    pub(super) distributed_optimizer: bool,
    /// Copies of the sharded optimizer state.
    pub(super) instances: u64,
    /// What Megatron's FSDP, `PyTorch`'s or `DeepSpeed`'s `ZeRO` shards: state, gradients, parameters.
    pub(super) fsdp: Option<u8>,
    /// Devices the launch starts processes on, where it says so.
    pub(super) world: Option<u64>,
}

/// What one chunk of a written layout holds.
#[derive(Copy, Clone, Default, PartialEq, Eq, Debug)]
pub(super) struct Stage {
    pub(super) embedding: u64,
    pub(super) layers: u64,
    pub(super) predictors: u64,
    pub(super) loss: u64,
}

impl Facts {
    pub(super) fn read(o: &mut Options, front: Front, world: Option<u64>) -> Self {
        let tp = o.count("tensor-model-parallel-size").unwrap_or(1);
        let layers = o.count("num-layers");
        let strategy = o.text("data-parallel-sharding-strategy");
        let zero = o.number("zero-stage").map(|z| z.min(3) as u8);
        let megatron_fsdp = o.on("use-megatron-fsdp") || o.on("use-custom-fsdp");
        let fsdp = if o.on("use-torch-fsdp2") {
            Some(3)
        } else if megatron_fsdp {
            Some(match strategy.as_deref() {
                Some("no_shard") => 0,
                Some("optim") => 1,
                Some("optim_grads") => 2,
                _ => 3,
            })
        } else {
            zero.filter(|_| front == Front::DeepSpeed)
        };
        let swift = front == Front::Swift;
        // Megatron-DeepSpeed's way of counting the embedding and the head as a layer each.
        let counting = o.text("pp-partition-method").is_some_and(|m| m.contains("embedding"));
        let sequence = ["seq-length", "encoder-seq-length", "max-length"].into_iter().find(|k| o.has(k));
        // The library's modules that predict further tokens have no use for a head that is tied to the embedding.
        let own_head = o.on("multi-latent-attention") || o.on("untie-embeddings-and-output-weights");
        let instances = o.count("num-distributed-optimizer-instances").unwrap_or(1);
        Self {
            front,
            tp,
            pp: o.count("pipeline-model-parallel-size").unwrap_or(1),
            cp: o.count("context-parallel-size").or_else(|| o.count("ds-sequence-parallel-size")).unwrap_or(1),
            ep: o.count("expert-model-parallel-size").unwrap_or(1),
            etp: o.count("expert-tensor-parallel-size").unwrap_or(if swift { 1 } else { tp }),
            sequence_parallel: o.on("sequence-parallel") && tp > 1,
            layers,
            hidden: o.count("hidden-size"),
            heads: o.count("num-attention-heads"),
            groups: if o.on("group-query-attention") { Some(o.count("num-query-groups").unwrap_or(1)) } else { None },
            experts: o.count("num-experts"),
            top_k: o.count("moe-router-topk").unwrap_or(2),
            sequence: sequence.and_then(|k| o.count(k)),
            micro: o.count("micro-batch-size"),
            batch: o.count("global-batch-size"),
            predictors: o.number("mtp-num-layers").filter(|_| own_head).unwrap_or(0),
            chunk_layers: o.count("num-layers-per-virtual-pipeline-stage"),
            chunks: o.count("num-virtual-stages-per-pipeline-rank"),
            written: o.text("pipeline-model-parallel-layout").map(|t| stages(&t)),
            first: o.count("decoder-first-pipeline-num-layers"),
            last: o.count("decoder-last-pipeline-num-layers"),
            count_embedding: o.on("account-for-embedding-in-pipeline-split") || counting,
            count_loss: o.on("account-for-loss-in-pipeline-split") || counting,
            group: o.count("microbatch-group-size-per-virtual-pipeline-stage"),
            exposed_p2p: o.on("no-overlap-p2p-communication"),
            distributed_optimizer: o.flag("use-distributed-optimizer").unwrap_or(swift),
            instances,
            fsdp,
            world,
        }
    }

    /// Ranks that hold one copy of the model.
    pub(super) fn model_ranks(&self) -> Option<u64> {
        self.tp.checked_mul(self.pp)?.checked_mul(self.cp)
    }

    /// Data-parallel ranks, where the number of devices is told.
    pub(super) fn dp(&self) -> Option<u64> {
        let ranks = self.model_ranks()?;
        self.world.filter(|w| w.is_multiple_of(ranks)).map(|w| w / ranks)
    }

    /// Chunks on a rank: 1 without interleaving. As Megatron computes it, remainders dropped.
    pub(super) fn virtual_stages(&self) -> u64 {
        if let Some(written) = &self.written {
            return (written.len() as u64 / self.pp).max(1);
        }
        if let Some(n) = self.chunks {
            return n;
        }
        let counted = self.layers.map(|l| l + u64::from(self.count_embedding) + u64::from(self.count_loss));
        match (self.chunk_layers, counted) {
            (Some(n), Some(l)) => (l / self.pp / n).max(1),
            _ => 1,
        }
    }
}

/// Chunks of a layout string: `E` the embedding, `t` a layer, `m` a module that predicts, `L` the loss, `|` between chunks,
/// `*n` repeats what stands before, parentheses hold together. Other characters are cosmetic.
fn stages(text: &str) -> Vec<Stage> {
    let mut parser = Layout { chars: text.chars().filter(|c| !c.is_whitespace() && *c != ',').collect(), at: 0 };
    let mut out = vec![Stage::default()];
    for c in parser.group(0) {
        let stage = out.last_mut().expect("never empty");
        match c {
            'E' => stage.embedding += 1,
            't' => stage.layers += 1,
            'm' => stage.predictors += 1,
            'L' => stage.loss += 1,
            '|' => out.push(Stage::default()),
            _ => {}
        }
    }
    out
}

/// Most characters of a layout string written out: more stages than any pipeline has.
const WRITTEN: usize = 100_000;

struct Layout {
    chars: Vec<char>,
    at: usize,
}

impl Layout {
    fn group(&mut self, depth: usize) -> Vec<char> {
        let mut out: Vec<char> = Vec::new();
        while let Some(c) = self.chars.get(self.at).copied() {
            self.at += 1;
            let mut piece = match c {
                ')' => break,
                '(' if depth < crate::limits::IMPORT_NESTING => self.group(depth + 1),
                c => vec![c],
            };
            if self.chars.get(self.at) == Some(&'*') {
                self.at += 1;
                let digits: String = self.chars.iter().skip(self.at).take_while(|c| c.is_ascii_digit()).collect();
                self.at += digits.len();
                let times = digits.parse::<usize>().unwrap_or(1).min(WRITTEN / piece.len().max(1));
                piece = piece.repeat(times);
            }
            out.extend(piece);
            out.truncate(WRITTEN);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_read_as_megatron_reads_them() {
        let layers = |text: &str| stages(text).iter().map(|s| s.layers).collect::<Vec<_>>();
        assert_eq!(layers("Et*7|(t*8|)*2t*8|t|t*6L"), [7, 8, 8, 8, 1, 6]);
        assert_eq!(layers("Et|(tt|)*30mL").iter().sum::<u64>(), 61);
        assert_eq!(stages("Et|(tt|)*30mL").len(), 32);
        assert_eq!(stages("Et|(tt|)*30mL").last().unwrap().predictors, 1);
        assert_eq!(layers("Et*2|(tt|)*22t|(tt|)*7mL").iter().sum::<u64>(), 61);
        assert!(stages(&"(".repeat(1 << 20)).len() == 1 && stages(&"t|*9".repeat(100_000)).len() <= WRITTEN + 1);
    }
}
