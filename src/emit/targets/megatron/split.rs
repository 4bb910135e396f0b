//! How Megatron cuts the model into stages and orders their work.

use super::{Reasons, Sizes, Where};
use crate::emit::plan::Plan;
use std::fmt::Write;

/// The pipeline in Megatron's words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Split {
    /// Chunks on a rank.
    pub(super) virtual_stages: u64,
    /// Microbatches that advance together, where it is not the number of stages.
    pub(super) group: Option<u64>,
    /// Interleaving without hidden stage messages.
    pub(super) exposed_p2p: bool,
    /// How layers fall on chunks.
    pub(super) layers: Layers,
}

/// The ways to say how layers fall on chunks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Layers {
    /// The same number everywhere.
    Even,
    /// The same number of units, the embedding or the loss counted as one.
    Counting {
        /// Whether the embedding counts.
        embedding: bool,
        /// Whether the loss counts.
        loss: bool,
    },
    /// Other numbers on the first and the last rank.
    Ends {
        /// Layers of the first rank, where they differ.
        first: Option<u64>,
        /// Layers of the last rank, where they differ.
        last: Option<u64>,
    },
    /// A layout string.
    Written(String),
}

/// The plan's pipeline, or the reasons why Megatron has none like it.
pub(super) fn of(plan: &Plan, sizes: &Sizes, errors: &mut Reasons) -> Option<Split> {
    let before = errors.count();
    let virtual_stages = plan.pipeline.chunks_per_rank.max(1);
    if sizes.pp <= 1 {
        if virtual_stages > 1 {
            let why = "several chunks on a rank need a pipeline of more than one stage";
            errors.add(Where::Schedule, format!("{virtual_stages} chunks on the only stage"), why);
        }
        return Some(Split { virtual_stages: 1, group: None, exposed_p2p: false, layers: Layers::Even });
    }
    let group = schedule(plan, sizes, virtual_stages, errors);
    let overlap = plan.layout.overlap_p2p;
    if overlap && virtual_stages == 1 {
        let what = "messages between stages are hidden";
        let why = "Megatron hides them only with several chunks on a rank";
        errors.add(Where::Overlap("p2p"), what, why).instead("schedule = interleaved(2)");
    }
    if !overlap && virtual_stages > 1 && sizes.pp == 2 {
        let what = "messages between stages are not hidden";
        let why = "interleaving over 2 stages needs hidden stage messages";
        errors.add(Where::Schedule, what, why).instead("overlap p2p over pp with [forward, backward]");
    }
    let layers = chunk_layers(plan, sizes, virtual_stages, errors)?;
    let layers = spell(&layers, sizes.pp as usize, virtual_stages);
    let exposed_p2p = !overlap && virtual_stages > 1;
    (errors.count() == before).then_some(Split { virtual_stages, group, exposed_p2p, layers })
}

/// Checks the schedule; the microbatch group of interleaving, where it is not the number of stages.
fn schedule(plan: &Plan, sizes: &Sizes, virtual_stages: u64, errors: &mut Reasons) -> Option<u64> {
    let pipeline = &plan.pipeline;
    let name = pipeline.schedule.as_str();
    if name != "one_f_one_b" && name != "interleaved" {
        let able: &[_] =
            if name.starts_with("zb_") || name == "dualpipe" || name == "gpipe" { &["torchtitan"] } else { &[] };
        let why = "Megatron has 1F1B (`one_f_one_b`) and interleaved 1F1B (`interleaved`)";
        let reason = errors.add(Where::Schedule, format!("schedule `{name}`"), why);
        reason
            .instead(if virtual_stages > 1 { format!("interleaved({virtual_stages})") } else { "one_f_one_b".into() })
            .able(able);
        return None;
    }
    // Interleaving with one chunk is not 1F1B: it keeps about twice the microbatches in flight.
    if (name == "interleaved") != (virtual_stages > 1) {
        let instead = if name == "interleaved" { "one_f_one_b" } else { "interleaved(2)" };
        let what = format!("schedule `{name}` with chunks a rank: {virtual_stages}");
        let why = "Megatron interleaves with two chunks a rank or more, and runs 1F1B with one";
        errors.add(Where::Schedule, what, why).instead(instead);
        return None;
    }
    if virtual_stages == 1 {
        return None;
    }
    let stages = sizes.pp;
    let microbatches = plan.training.microbatches;
    let group = pipeline.arguments.get("group").map_or(Some(stages), |g| u64::try_from(*g).ok()).unwrap_or(0);
    let rest = microbatches.checked_rem(group).unwrap_or(1);
    if group < stages || group > microbatches || (rest != 0 && rest < stages) {
        let what = format!("{microbatches} microbatches in groups of {group} over {stages} stages");
        let why = "interleaving needs stages ≤ group ≤ microbatches and a last group of none or at least that many";
        errors.add(Where::Batch, what, why);
    }
    (group != stages).then_some(group)
}

/// Layers of every chunk in model order, when the chunks go round the ranks.
fn chunk_layers(plan: &Plan, sizes: &Sizes, virtual_stages: u64, errors: &mut Reasons) -> Option<Vec<u64>> {
    let chunks = &plan.pipeline.chunks;
    let round = chunks.iter().enumerate().all(|(i, c)| c.stage == i as u64 % sizes.pp);
    if !round || sizes.pp.checked_mul(virtual_stages) != Some(chunks.len() as u64) {
        let what = "chunks do not go round the stages in model order";
        errors.add(Where::Schedule, what, "Megatron gives chunk k to stage k mod p").able(&["torchtitan"]);
        return None;
    }
    let mut repeats = (0..plan.model.units.len()).filter(|i| plan.model.units[*i].repeated);
    let (Some(decoder), None) = (repeats.next(), repeats.next()) else {
        if plan.model.decoder.is_some() {
            errors.add(
                Where::Model,
                "the model does not repeat one layer",
                "Megatron's stages hold layers of one kind",
            );
        }
        return None;
    };
    let held = |chunk: usize, unit: usize| chunks[chunk].units.get(unit).copied().unwrap_or(0);
    let last = chunks.len() - 1;
    for (i, unit) in plan.model.units.iter().enumerate().filter(|(i, _)| *i != decoder) {
        let (home, end) = if i < decoder { (0, "first") } else { (last, "last") };
        if (0..chunks.len()).any(|c| held(c, i) != if c == home { unit.count } else { 0 }) {
            let what = format!("`{}` is not on the {end} chunk alone", unit.name);
            let why = "Megatron keeps the embedding on the first chunk and the head on the last";
            errors.add(Where::Split, what, why);
            return None;
        }
    }
    let layers: Vec<u64> = (0..chunks.len()).map(|c| held(c, decoder)).collect();
    let total = layers.iter().fold(0_u64, |n, l| n.saturating_add(*l));
    if plan.model.decoder.as_ref().is_some_and(|d| d.layers != total) {
        errors.add(Where::Split, format!("chunks hold {total} layers"), "every layer is on one chunk");
        return None;
    }
    Some(layers)
}

/// The plainest way to say `layers`.
fn spell(layers: &[u64], stages: usize, virtual_stages: u64) -> Layers {
    if layers.iter().all(|l| *l == layers[0]) {
        return Layers::Even;
    }
    for (embedding, loss) in [(true, true), (true, false), (false, true)] {
        let mut counted = layers.to_vec();
        counted[0] += u64::from(embedding);
        counted[layers.len() - 1] += u64::from(loss);
        if counted.iter().all(|l| *l == counted[0]) {
            return Layers::Counting { embedding, loss };
        }
    }
    ends(layers, stages, virtual_stages).unwrap_or_else(|| Layers::Written(written(layers)))
}

/// Layers as numbers of the first and the last rank, the others being alike.
fn ends(layers: &[u64], stages: usize, virtual_stages: u64) -> Option<Layers> {
    let (first, rest) = layers[..stages].split_first()?;
    let same_everywhere = layers.chunks(stages).all(|round| round == &layers[..stages]);
    let (last, middle) = rest.split_last()?;
    let usual = middle.first().unwrap_or(last);
    if !same_everywhere || *first == 0 || *last == 0 || *usual == 0 || middle.iter().any(|l| l != usual) {
        return None;
    }
    let on_rank = |per_chunk: &u64| (per_chunk != usual).then_some(per_chunk * virtual_stages);
    Some(Layers::Ends { first: on_rank(first), last: on_rank(last) })
}

/// `Et*7|(t*8|)*14t*7L`: E the embedding, t a layer, L the loss, `|` between chunks, `*` repeats.
fn written(layers: &[u64]) -> String {
    let run = |n: u64| match n {
        0 => String::new(),
        1 => "t".into(),
        n => format!("t*{n}"),
    };
    let (first, rest) = layers.split_first().expect("a pipeline has chunks");
    let (last, middle) = rest.split_last().expect("a pipeline has two chunks");
    let mut out = format!("E{}|", run(*first));
    for same in middle.chunk_by(|a, b| a == b) {
        let chunk = format!("{}|", run(same[0]));
        let _ = match same.len() {
            1 => write!(out, "{chunk}"),
            n => write!(out, "({chunk})*{n}"),
        };
    }
    let _ = write!(out, "{}L", run(*last));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plainest_spelling_is_chosen() {
        let both = Layers::Counting { embedding: true, loss: true };
        assert_eq!(spell(&[8, 8, 8, 8], 4, 1), Layers::Even);
        assert_eq!(spell(&[7, 8, 8, 7], 4, 1), both);
        assert_eq!(spell(&[0, 1, 1, 0], 2, 2), both);
        assert_eq!(spell(&[7, 8, 8, 8], 4, 1), Layers::Counting { embedding: true, loss: false });
        assert_eq!(spell(&[9, 10, 10, 6], 4, 1), Layers::Ends { first: Some(9), last: Some(6) });
        assert_eq!(spell(&[5, 8, 8, 5, 8, 8], 3, 2), Layers::Ends { first: Some(10), last: None });
        assert_eq!(spell(&[20, 12], 2, 1), Layers::Ends { first: Some(20), last: None });
        assert_eq!(spell(&[7, 9, 9, 8, 1, 6], 6, 1), Layers::Written("Et*7|(t*9|)*2t*8|t|t*6L".into()));
        assert_eq!(spell(&[0, 3, 0, 5], 4, 1), Layers::Written("E|t*3||t*5L".into()));
    }
}
