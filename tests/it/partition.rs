//! Partitioning against hand calculations. Sizes are per rank and microbatch; activations are bf16, gradients fp32.

use crate::llama::{Setup, extent, span};
use parc::diagnostics::Code;
use parc::graph::{MapFn, NormKind, OpKind, ValueRole};
use parc::layout::{
    Action, AttentionMethod, AttentionVia, Bucket, Class, Hold, RecomputeWhat, Reduce, Rule, Scope, Selector,
    SelectorPart,
};
use parc::partition::{Broken, Phase, StepKind, Work, text};

const EMBED: usize = 0;
const DECODER: usize = 1;
const HEAD: usize = 2;

/// Bytes of the residual stream of one data-parallel rank.
fn residual(dp: f64) -> f64 {
    extent("B") / dp * extent("S") * extent("H") * 2.0
}

/// Parameters of a layer that tensor parallelism splits: attention and MLP.
fn split_params() -> f64 {
    let (h, n, k, d, f) = (extent("H"), extent("N"), extent("K"), extent("D"), extent("F"));
    h * n * d * 2.0 + h * k * d * 2.0 + 3.0 * h * f
}

fn times(n: usize, line: String) -> Vec<String> {
    vec![line; n]
}

/// Shoeybi et al. 2019, section 3: two all-reduces of the residual in the forward of a layer, two in the backward.
#[test]
fn tensor_parallel_layers_reduce_four_times() {
    let mut s = Setup::llama(&[("dp", 2), ("tp", 4)]).shard("B", "dp", "").shard("N K F V", "tp", "");
    let sharded = s.sharded();
    let all_reduce = format!("all-reduce tp {}", residual(2.0));
    let layer = &sharded.units[DECODER];
    assert_eq!(s.collectives(&sharded, &layer.forward), times(2, all_reduce.clone()));
    assert_eq!(s.collectives(&sharded, &layer.backward), times(2, all_reduce.clone()));
    // The embedding's lookup is one more, its backward none; the head's input gradient one, the loss three of fp32 rows.
    assert_eq!(s.collectives(&sharded, &sharded.units[EMBED].forward), times(1, all_reduce.clone()));
    assert!(s.collectives(&sharded, &sharded.units[EMBED].backward).is_empty());
    let rows = extent("B") / 2.0 * extent("S") * 4.0;
    assert_eq!(s.collectives(&sharded, &sharded.units[HEAD].forward), times(3, format!("all-reduce tp {rows}")));
    assert_eq!(s.collectives(&sharded, &sharded.units[HEAD].backward), times(1, all_reduce));
    // Gradients over dp, once an update, in one bucket a layer: split parameters and two whole gains.
    let gradients = (split_params() / 4.0 + 2.0 * extent("H")) * 4.0;
    assert_eq!(s.collectives(&sharded, &layer.update), [format!("all-reduce dp {gradients}")]);
}

/// Korthikanti et al. 2022, section 4.2.2: each all-reduce becomes an all-gather and a reduce-scatter of the same
/// size; what was gathered for a weight gradient is gathered again.
#[test]
fn sequence_parallel_gathers_and_scatters() {
    let layout = |s: Setup| s.shard("B", "dp", "").shard("N K F V", "tp", "S");
    let mesh = [("dp", 2), ("tp", 4)];
    let mut s = layout(Setup::llama(&mesh));
    let sharded = s.sharded();
    let gather = format!("all-gather tp {}", residual(2.0));
    let scatter = format!("reduce-scatter tp {}", residual(2.0));
    let layer = &sharded.units[DECODER];
    let pairs = [&gather, &scatter, &gather, &scatter].map(Clone::clone);
    assert_eq!(s.collectives(&sharded, &layer.forward), pairs);
    // From the end: the gradient of the MLP's result is gathered, then its input again, then scattered.
    let backward = [&gather, &gather, &scatter, &gather, &gather, &scatter].map(Clone::clone);
    assert_eq!(s.collectives(&sharded, &layer.backward), backward);
    // The gains see a part of the sequence each: their gradient is partial over tp as well.
    let gains = 2.0 * extent("H") * 4.0;
    let split = split_params() / 4.0 * 4.0;
    let update = s.collectives(&sharded, &layer.update);
    assert_eq!(update, [format!("all-reduce dp+tp {gains}"), format!("all-reduce dp {split}")]);

    let mut kept = layout(Setup::llama(&mesh)).keep_gathered();
    let sharded = kept.sharded();
    let backward = [&gather, &scatter, &gather, &scatter].map(Clone::clone);
    assert_eq!(kept.collectives(&sharded, &sharded.units[DECODER].backward), backward);
}

/// Rajbhandari et al. 2019, section 5.1: with the optimizer state split, gradients are reduce-scattered and the
/// updated parameters all-gathered, as many bytes as the all-reduce had where both are of one dtype.
#[test]
fn zero_1_scatters_gradients_and_gathers_parameters_once_an_update() {
    let mut s = Setup::llama(&[("dp", 4)]).shard("B", "dp", "").store(&[Class::State], "dp", Hold::Layer);
    let sharded = s.sharded();
    let layer = &sharded.units[DECODER];
    let params = split_params() + 2.0 * extent("H");
    let update = s.collectives(&sharded, &layer.update);
    assert_eq!(update, [format!("reduce-scatter dp {}", params * 4.0), format!("all-gather dp {}", params * 2.0)]);
    assert!(s.collectives(&sharded, &layer.backward).is_empty());
    let at_rest = |f: &dyn Fn(&parc::partition::ShardedParam) -> parc::expr::Id| -> f64 {
        layer.params.iter().map(|p| s.number(f(p))).sum()
    };
    assert!((at_rest(&|p| p.rest_param) - params).abs() < 0.5);
    assert!((at_rest(&|p| p.rest_grad) - params).abs() < 0.5);
    assert!((at_rest(&|p| p.rest_state) - params / 4.0).abs() < 0.5);
}

/// Rajbhandari et al. 2019, section 5.2: gradients are split as well, so that each microbatch reduces them: Ψ elements
/// scattered a microbatch, Ψ gathered an update, 2Ψ in all with one microbatch, as ZeRO-1 and plain data parallelism.
#[test]
fn zero_2_scatters_gradients_at_each_microbatch() {
    let classes = [Class::State, Class::Grad];
    let mut s = Setup::llama(&[("dp", 4)]).shard("B", "dp", "").store(&classes, "dp", Hold::Layer);
    let sharded = s.sharded();
    let layer = &sharded.units[DECODER];
    let params = split_params() + 2.0 * extent("H");
    assert_eq!(s.collectives(&sharded, &layer.backward), [format!("reduce-scatter dp {}", params * 4.0)]);
    assert_eq!(s.collectives(&sharded, &layer.update), [format!("all-gather dp {}", params * 2.0)]);
    assert!(s.collectives(&sharded, &layer.forward).is_empty());
    let rest: f64 = layer.params.iter().map(|p| s.number(p.rest_grad)).sum();
    assert!((rest - params / 4.0).abs() < 0.5);
}

/// FSDP: gathered before the forward, again before the backward, gradients scattered at each microbatch.
#[test]
fn fsdp_gathers_twice_and_scatters_each_microbatch() {
    let all = [Class::Param, Class::Grad, Class::State];
    let run = |hold| {
        let mut s = Setup::llama(&[("rep", 2), ("fsdp", 4)]).shard("B", "rep fsdp", "").store(&all, "fsdp", hold);
        let sharded = s.sharded();
        let layer = &sharded.units[DECODER];
        (
            s.collectives(&sharded, &layer.forward),
            s.collectives(&sharded, &layer.backward),
            s.collectives(&sharded, &layer.update),
        )
    };
    let params = split_params() + 2.0 * extent("H");
    let gather = format!("all-gather fsdp {}", params * 2.0);
    let scatter = format!("reduce-scatter fsdp {}", params * 4.0);
    // HSDP: the shard is summed over the replicas.
    let sum = format!("all-reduce rep {params}");
    let (forward, backward, update) = run(Hold::Layer);
    assert_eq!(forward, std::slice::from_ref(&gather));
    assert_eq!(backward, [gather.clone(), scatter.clone(), sum.clone()]);
    assert!(update.is_empty());
    let (forward, backward, _) = run(Hold::Microbatch);
    assert_eq!((forward, backward), (vec![gather.clone()], vec![scatter.clone(), sum.clone()]));
    let (forward, backward, update) = run(Hold::Step);
    assert_eq!((forward, backward, update), (vec![], vec![scatter, sum], vec![gather]));
}

fn context_parallel(method: Option<AttentionMethod>) -> Setup {
    let mut s = Setup::llama(&[("cp", 4)]).shard("S", "cp", "");
    let axes = vec![s.axis("cp")];
    s.layout.attention.extend(method.map(|method| AttentionVia {
        scope: Scope::default(),
        axes,
        method,
        zigzag: false,
        span: span(400),
    }));
    s
}

#[test]
fn context_parallel_methods() {
    let keys = extent("B") * extent("S") * extent("K") * extent("D") * 2.0;
    let queries = extent("B") * extent("S") * extent("N") * extent("D") * 2.0;
    let layer = |s: &mut Setup| {
        let sharded = s.sharded();
        let unit = &sharded.units[DECODER];
        (s.collectives(&sharded, &unit.forward), s.collectives(&sharded, &unit.backward))
    };
    // Three rounds of a quarter of k and of v; in the backward their gradients go round as well.
    let mut ring = context_parallel(Some(AttentionMethod::Ring));
    let (forward, backward) = layer(&mut ring);
    let rounds = 3.0 * 2.0 * keys / 4.0;
    assert_eq!(forward, [format!("permute cp {rounds}")]);
    assert_eq!(backward, times(2, format!("permute cp {rounds}")));

    let mut gather = context_parallel(Some(AttentionMethod::AllGather));
    let (forward, backward) = layer(&mut gather);
    assert_eq!(forward, times(2, format!("all-gather cp {keys}")));
    let scatter = format!("reduce-scatter cp {keys}");
    let again = times(2, format!("all-gather cp {keys}"));
    let mut wanted = backward.clone();
    wanted.sort();
    assert_eq!(wanted, [again, times(2, scatter)].concat());

    // Ulysses: q, k, v and o change from sequence to heads and back, each way.
    let mut trade = context_parallel(Some(AttentionMethod::AllToAll));
    // Jacobs et al. 2023 (arXiv 2309.14509), section 3.2: four all-to-alls each way; what was traded is kept as it is.
    let (forward, backward) = layer(&mut trade);
    let (q, k) = (queries / 4.0, keys / 4.0);
    let moved = [q, k, k, q].map(|bytes| format!("all-to-all cp {bytes}"));
    assert_eq!(forward, moved);
    let home = [q, k, k, q].map(|bytes| format!("all-to-all cp {bytes}"));
    let sorted = |mut all: Vec<String>| {
        all.sort();
        all
    };
    assert_eq!(sorted(backward), sorted(home.to_vec()));
}

#[test]
fn a_ring_meets_every_key_and_a_rank_its_own_queries() {
    let mut s = context_parallel(Some(AttentionMethod::Ring));
    let sharded = s.sharded();
    let work = sharded.units[DECODER].forward.iter().find_map(|id| match &sharded.flow[*id].kind {
        StepKind::Compute { work: Work::Attention { q, kv, heads, .. }, .. } => Some((*q, *kv, *heads)),
        _ => None,
    });
    let (q, kv, heads) = work.expect("a layer has an attention");
    let numbers = [s.number(q), s.number(kv), s.number(heads)];
    assert_eq!(numbers.map(|x| x as i64), [16, 64, 16]);
}

/// The products of a layer's forward and backward, in FLOP: 2 a multiply-add, and twice the forward in the backward.
#[test]
fn matmul_work_is_split_over_every_axis_that_splits_it() {
    let mut s = Setup::llama(&[("dp", 2), ("tp", 4)]).shard("B", "dp", "").shard("N K F V", "tp", "S");
    let sharded = s.sharded();
    let flops = |steps: &[parc::partition::StepId]| -> f64 {
        let work = steps.iter().filter_map(|id| match &sharded.flow[*id].kind {
            StepKind::Compute { work: Work::Matmul { m, n, k, batch }, .. } => Some([*m, *n, *k, *batch]),
            _ => None,
        });
        work.map(|four| 2.0 * four.iter().map(|x| s.number(*x)).product::<f64>()).sum()
    };
    let layer = &sharded.units[DECODER];
    let forward = 2.0 * extent("B") * extent("S") * split_params() / 8.0;
    assert!((flops(&layer.forward) - forward).abs() < 0.5);
    assert!((flops(&layer.backward) - 2.0 * forward).abs() < 0.5);
}

/// Saved by a layer, bf16, in units of a rank's B·S: the input of each norm, what the projections read, q, k, v, o and
/// one fp32 a row and head, g, u and a.
#[test]
fn a_layer_saves_its_operands() {
    let saved = |s: &mut Setup| -> f64 {
        let sharded = s.sharded();
        sharded.units[DECODER].saved.iter().map(|v| s.number(v.bytes)).sum()
    };
    let (h, n, k, d, f) = (extent("H"), extent("N"), extent("K"), extent("D"), extent("F"));
    let rows = extent("B") * extent("S") / 2.0;
    let heads = (2.0 * n * d + 2.0 * k * d) * 2.0 + n * 4.0;
    let mesh = [("dp", 2), ("tp", 4)];
    let mut tp = Setup::llama(&mesh).shard("B", "dp", "").shard("N K F V", "tp", "");
    let whole = 4.0 * h * 2.0;
    let split = heads + 3.0 * f * 2.0;
    assert!((saved(&mut tp) - rows * (whole + split / 4.0)).abs() < 0.5);
    let mut sp = Setup::llama(&mesh).shard("B", "dp", "").shard("N K F V", "tp", "S");
    assert!((saved(&mut sp) - rows * (whole + split) / 4.0).abs() < 0.5);
    // Kept as gathered: what the projections read is whole.
    let mut kept = Setup::llama(&mesh).shard("B", "dp", "").shard("N K F V", "tp", "S").keep_gathered();
    assert!((saved(&mut kept) - rows * (whole / 2.0 + (whole / 2.0 + split) / 4.0)).abs() < 0.5);
    // Logits are fp32; the head keeps its norm's input and result too.
    let sharded = tp.sharded();
    let head: f64 = sharded.units[HEAD].saved.iter().map(|v| tp.number(v.bytes)).sum();
    assert!((head - rows * (2.0 * h * 2.0 + extent("V") / 4.0 * 4.0)).abs() < 0.5);
    // What leaves a layer is the residual.
    assert!((tp.number(sharded.units[DECODER].boundary) - rows * h * 2.0).abs() < 0.5);
}

#[test]
fn full_recomputation_keeps_the_input_and_runs_the_forward_again() {
    let mut s = Setup::llama(&[("tp", 4)]).shard("N K F V", "tp", "S").recompute("", RecomputeWhat::All);
    let sharded = s.sharded();
    let layer = &sharded.units[DECODER];
    let saved: f64 = layer.saved.iter().map(|v| s.number(v.bytes)).sum();
    assert!((saved - residual(1.0) / 4.0).abs() < 0.5, "{saved}");
    let again = layer.backward.iter().take_while(|id| sharded.flow[**id].recomputed).count();
    assert_eq!(again, layer.forward.len());
    assert!(layer.backward[again..].iter().all(|id| !sharded.flow[*id].recomputed));
    let first: Vec<_> = layer.backward[..again].to_vec();
    assert_eq!(s.collectives(&sharded, &first), s.collectives(&sharded, &layer.forward));
    // Outside the repeat nothing runs again.
    let head = &sharded.units[HEAD];
    assert!(head.backward.iter().all(|id| !sharded.flow[*id].recomputed));
}

/// Korthikanti et al. 2022, section 5: only the attention core runs again, from q, k and v.
#[test]
fn selective_recomputation_runs_the_core_again() {
    let layout = |s: Setup| s.shard("N K F V", "tp", "");
    let mut all = layout(Setup::llama(&[("tp", 4)]));
    let mut s = layout(Setup::llama(&[("tp", 4)])).recompute("**.attention.core", RecomputeWhat::All);
    let (before, sharded) = (all.sharded(), s.sharded());
    let bytes = |s: &Setup, g: &parc::partition::ShardedGraph| -> f64 {
        g.units[DECODER].saved.iter().map(|v| s.number(v.bytes)).sum()
    };
    let rows = extent("B") * extent("S");
    let core = rows * (extent("N") * extent("D") * 2.0 + extent("N") * 4.0) / 4.0;
    assert!((bytes(&all, &before) - bytes(&s, &sharded) - core).abs() < 0.5);
    let again: Vec<_> =
        sharded.units[DECODER].backward.iter().filter(|id| sharded.flow[**id].recomputed).copied().collect();
    // Two rotations and the attention.
    assert_eq!(again.len(), 3);
    assert!(s.collectives(&sharded, &again).is_empty());
}

#[test]
fn named_values_are_computed_again() {
    let layout = |s: Setup| s.shard("N K F V", "tp", "S");
    let mut s =
        layout(Setup::llama(&[("tp", 4)])).recompute("**.mlp", RecomputeWhat::Values(vec!["a".into(), "h".into()]));
    let sharded = s.sharded();
    let layer = &sharded.units[DECODER];
    let named = |name: &str| layer.saved.iter().filter(|v| s.graph.value(v.value).name == name).count();
    // One `h` is the attention's.
    assert_eq!((named("a"), named("h"), named("g"), named("u")), (0, 1, 1, 1));
    assert_eq!(layer.backward.iter().filter(|id| sharded.flow[**id].recomputed).count(), 2);
}

#[test]
fn two_partial_sums_are_added_before_they_are_reduced() {
    let mut s = Setup::new(&[("tp", 4)]);
    s.start("block", 1, false);
    let x = s.value("x", "B S H", ValueRole::Activation);
    let a = s.value("a", "B S F", ValueRole::Activation);
    let o = s.value("o", "B S N D", ValueRole::Activation);
    let (wo, wd) = (s.param("wo", "N D H"), s.param("wd", "F H"));
    let (nd, f) = (s.dims("N D"), s.dims("F"));
    let p = s.op("", "B S H", OpKind::Contract { contracted: nd }, &[o, wo]);
    let m = s.op("", "B S H", OpKind::Contract { contracted: f }, &[a, wd]);
    let m = s.op("", "B S H", OpKind::Map(MapFn::Scale(0.5)), &[m]);
    let sum = s.op("", "B S H", OpKind::Map(MapFn::Add), &[p, m]);
    s.op("y", "B S H", OpKind::Map(MapFn::Add), &[x, sum]);
    let mut s = s.shard("N K F V", "tp", "");
    let sharded = s.sharded();
    assert_eq!(s.collectives(&sharded, &sharded.units[0].forward), [format!("all-reduce tp {}", residual(1.0))]);
}

#[test]
fn a_tied_table_is_summed_over_both_its_uses() {
    let mut s = Setup::new(&[("dp", 2)]);
    s.start("embed", 1, false);
    let tokens = s.value("tokens", "B S", ValueRole::Input);
    let wte = s.param("wte", "V H");
    let over = s.dim("V");
    let x = s.op("x", "B S H", OpKind::Embed { over, bag: None }, &[tokens, wte]);
    s.start("head", 1, false);
    let logits = s.value("logits", "B S V", ValueRole::Logits);
    let h = s.dims("H");
    s.produce(OpKind::Contract { contracted: h }, &[x, wte], logits);
    let loss = s.value("loss", "", ValueRole::Loss);
    s.produce(OpKind::CrossEntropy { over: Some(over), chunks: 1 }, &[logits], loss);
    let mut s = s.shard("B", "dp", "");
    let sharded = s.sharded();
    let table = &sharded.units[0].params[0];
    assert_eq!(table.users, [0, 1]);
    assert_eq!(table.grad_axes.to_vec(), [s.axis("dp")]);
    let gradient = extent("V") * extent("H") * 4.0;
    assert_eq!(s.collectives(&sharded, &sharded.units[0].update), [format!("all-reduce dp {gradient}")]);
    // The loss is a scalar, summed once an update where it is computed.
    assert_eq!(s.collectives(&sharded, &sharded.units[1].update), ["all-reduce dp 4"]);
    let moves = |x: &&parc::partition::Step| matches!(x.kind, StepKind::Collective(_)) && x.phase == Phase::Update;
    assert!(sharded.flow.node_weights().filter(moves).count() == 2);
}

#[test]
fn what_must_divide_is_an_obligation_at_its_rule() {
    let mut s = Setup::llama(&[("tp", 3)]).shard("N K F V", "tp", "");
    let (sharded, said) = s.run();
    assert!(said.is_empty());
    let mut broken: Vec<_> = sharded
        .obligations
        .iter()
        .filter(|o| s.number(o.cond) < 0.5)
        .map(|o| match &o.what {
            Broken::Indivisible { dim, rule, .. } => (s.graph.dim(*dim).name.clone(), rule.start),
            Broken::Other(..) => ("other".into(), 0),
        })
        .collect();
    broken.sort();
    // 192 hidden units divide by three; each dimension once, at the rule.
    assert_eq!(broken, [("K".into(), 100), ("N".into(), 100), ("V".into(), 100)]);
}

fn codes(s: &mut Setup) -> Vec<(Code, u32)> {
    s.run().1.into_iter().map(|d| (d.code, d.primary.span.start)).collect()
}

#[test]
fn a_parameter_that_would_have_to_move_is_an_error_at_its_rule() {
    // FSDP written as a shard rule: once, not for every parameter.
    let mut s = Setup::llama(&[("fsdp", 4)]).shard("B", "fsdp", "");
    s = s.shard("H", "fsdp", "");
    s.layout.rules.swap(0, 1);
    if let parc::layout::Action::Shard { classes, .. } = &mut s.layout.rules[0].action {
        *classes = vec![Class::Param];
    }
    let (_, said) = s.run();
    assert_eq!(said.len(), 1, "{said:?}");
    assert_eq!((said[0].code, said[0].primary.span.start), (Code::ShardConflict, 101));
    assert!(said[0].help[0].contains("`store param over fsdp`"), "{:?}", said[0].help);
}

#[test]
fn other_conflicts() {
    assert_eq!(codes(&mut context_parallel(None)), [(Code::AttentionMethod, 100)]);
    let mut s = Setup::llama(&[("tp", 4)]).shard("N K F V", "tp", "").store(&[Class::Param], "tp", Hold::Layer);
    assert_eq!(codes(&mut s), [(Code::StoreConflict, 200)]);
}

#[test]
fn a_norm_over_a_split_dimension_reduces_its_statistics() {
    let mut s = Setup::new(&[("tp", 4)]);
    s.start("block", 1, false);
    let x = s.value("x", "B S H", ValueRole::Activation);
    let (g, b) = (s.param("g", "H"), s.param("b", "H"));
    let over = s.dim("H");
    s.op("y", "B S H", OpKind::Norm { kind: NormKind::Layer, over: vec![over] }, &[x, g, b]);
    let mut s = s.shard("H", "tp", "");
    let sharded = s.sharded();
    let rows = extent("B") * extent("S") * 8.0;
    assert_eq!(s.collectives(&sharded, &sharded.units[0].forward), [format!("all-reduce tp {rows}")]);
}

/// Bytes a rank has alive beside what is saved, in units of its B·S: gradients of an op's result and operands, and what
/// was gathered for it.
#[test]
fn the_backward_works_in_the_widest_op() {
    let mesh = [("dp", 2), ("tp", 4)];
    let mut s = Setup::llama(&mesh).shard("B", "dp", "").shard("N K F V", "tp", "");
    let sharded = s.sharded();
    let rows = extent("B") * extent("S") / 2.0;
    // Where the gradient of h is first made: it and the gradients of g and u, split, beside the residual's.
    let layer = 2.0 * extent("H") * 2.0 + 2.0 * extent("F") / 4.0 * 2.0;
    assert!((s.number(sharded.units[DECODER].transient) - rows * layer).abs() < 0.5);
    // fp32 gradient of the logits and the gradient of what they were made of.
    let head = extent("V") / 4.0 * 4.0 + extent("H") * 2.0;
    assert!((s.number(sharded.units[HEAD].transient) - rows * head).abs() < 0.5);
    // With sequence parallelism what the projection read is gathered again beside its whole gradient.
    let mut s = Setup::llama(&mesh).shard("B", "dp", "").shard("N K F V", "tp", "S");
    let sharded = s.sharded();
    let head = extent("V") / 4.0 * 4.0 + 2.0 * extent("H") * 2.0;
    assert!((s.number(sharded.units[HEAD].transient) - rows * head).abs() < 0.5);
    // What runs again is alive from the start of the layer's backward.
    let mut s = s.recompute("", RecomputeWhat::All);
    let again = s.sharded();
    let saved: f64 = sharded.units[DECODER].saved.iter().map(|v| s.number(v.bytes)).sum();
    let statistic = rows * extent("N") / 4.0 * 4.0;
    let remade = saved - residual(2.0) / 4.0 - statistic;
    let (before, after) = (sharded.units[DECODER].transient, again.units[DECODER].transient);
    assert!((s.number(after) - s.number(before) - remade).abs() < 0.5);
}

/// GPT's embedding: positions are added, and their gradient is summed once an update, not at each microbatch.
#[test]
fn learned_positions() {
    let mut s = Setup::new(&[("dp", 2), ("tp", 4)]);
    s.start("embed", 1, false);
    let tokens = s.value("tokens", "B S", ValueRole::Input);
    let (wte, wpe) = (s.param("wte", "V H"), s.param("wpe", "P H"));
    let over = s.dim("V");
    let e = s.op("", "B S H", OpKind::Embed { over, bag: None }, &[tokens, wte]);
    let take = OpKind::Take { from: s.dim("P"), to: s.dim("S") };
    let p = s.op("", "S H", take, &[wpe]);
    let x = s.op("x", "B S H", OpKind::Map(MapFn::Add), &[e, p]);
    let loss = s.value("loss", "", ValueRole::Loss);
    let all = s.dims("B S H");
    s.produce(OpKind::Sum { over: all }, &[x], loss);
    let mut s = s.shard("B", "dp", "").shard("N K F V", "tp", "S");
    let sharded = s.sharded();
    let unit = &sharded.units[0];
    let gather = format!("all-gather tp {}", residual(2.0));
    assert_eq!(s.collectives(&sharded, &unit.backward), [gather]);
    let axes = |at: usize| unit.params[at].grad_axes.to_vec();
    assert_eq!((axes(0), axes(1)), (vec![s.axis("dp")], vec![s.axis("dp"), s.axis("tp")]));
}

#[test]
fn what_is_kept_gathered_is_gathered_again_where_the_forward_runs_again() {
    let mut s = Setup::llama(&[("tp", 4)]).shard("N K F V", "tp", "S").keep_gathered();
    s = s.recompute("", RecomputeWhat::All);
    let sharded = s.sharded();
    let layer = &sharded.units[DECODER];
    let gathers = |steps: &[parc::partition::StepId]| {
        s.collectives(&sharded, steps).iter().filter(|c| c.starts_with("all-gather")).count()
    };
    // Forward two; again two, and the adjoints of two scatters.
    assert_eq!((gathers(&layer.forward), gathers(&layer.backward)), (2, 4));
}

/// The program as text: rules of the language's worked example, tensor and sequence parallel.
#[test]
fn a_layer_in_text() {
    let mut s = Setup::llama(&[("dp", 2), ("tp", 4)]).shard("B", "dp", "").shard("N K F V", "tp", "S");
    let sharded = s.sharded();
    insta::assert_snapshot!(text(&sharded, &s.graph, &s.layout));
    let again = s.sharded();
    assert_eq!(text(&sharded, &s.graph, &s.layout), text(&again, &s.graph, &s.layout));
}

/// `in **.attention { replicate over tp }` inside tensor and sequence parallelism: innermost scope first.
#[test]
fn an_inner_scope_decides_first() {
    let mut s = Setup::llama(&[("tp", 4)]).shard("N K F V", "tp", "S");
    let classes = vec![Class::Param, Class::Act, Class::Kv];
    let parts = vec![SelectorPart::Any, SelectorPart::Name("attention".into())];
    let scope = Scope { nested: vec![vec![Selector { parts }]] };
    let axes = s.names("tp");
    s.layout.rules.push(Rule { scope, axes, action: Action::Replicate { classes }, unequal: false, span: span(150) });
    let sharded = s.sharded();
    let layer = &sharded.units[DECODER];
    // x enters split, the attention wants it whole, twice in regions of its own; the MLP keeps it split and is as ever.
    let gather = format!("all-gather tp {}", residual(1.0));
    let scatter = format!("reduce-scatter tp {}", residual(1.0));
    assert_eq!(s.collectives(&sharded, &layer.forward), [gather.clone(), gather.clone(), gather, scatter]);
    let placed = |name: &str| {
        let p = layer.params.iter().find(|p| s.graph.params[p.param as usize].path.ends_with(name));
        p.map(|p| p.placement.dims.len())
    };
    assert_eq!((placed("wq"), placed("w_up")), (Some(0), Some(1)));

    // Where the MLP keeps x whole, a layer hands on another x than it got.
    let parts = vec![SelectorPart::Any, SelectorPart::Name("mlp".into())];
    s.layout.rules[1].scope = Scope { nested: vec![vec![Selector { parts }]] };
    let said = s.run().1;
    assert_eq!(said.iter().map(|d| d.code).collect::<Vec<_>>(), [Code::NotSupported], "{said:?}");
}

#[test]
fn a_reduce_item_moves_the_sum_of_gradients() {
    let mut s = Setup::llama(&[("dp", 2)]).shard("B", "dp", "");
    let axes = vec![s.axis("dp")];
    let scope = Scope::default();
    let (format, bucket) = (None, Bucket::Layer);
    s.layout.reduces.push(Reduce { scope, axes, each_microbatch: Some(true), format, bucket, span: span(500) });
    let sharded = s.sharded();
    let layer = &sharded.units[DECODER];
    let gradients = (split_params() + 2.0 * extent("H")) * 4.0;
    assert_eq!(s.collectives(&sharded, &layer.backward), [format!("all-reduce dp {gradients}")]);
    assert!(layer.update.is_empty());
}

/// Axes are decided each on their own: the order of their rules does not matter.
#[test]
fn the_order_of_rules_for_different_axes_does_not_matter() {
    let mesh = [("dp", 2), ("cp", 2), ("tp", 4)];
    let run = |s: Setup| {
        let mut s = s;
        let axes = vec![s.axis("cp")];
        let (scope, method) = (Scope::default(), AttentionMethod::Ring);
        s.layout.attention.push(AttentionVia { scope, axes, method, zigzag: false, span: span(400) });
        let sharded = s.sharded();
        text(&sharded, &s.graph, &s.layout)
    };
    let one = Setup::llama(&mesh).shard("B", "dp", "").shard("S", "cp", "").shard("N K F V", "tp", "S");
    let other = Setup::llama(&mesh).shard("N K F V", "tp", "S").shard("S", "cp", "").shard("B", "dp", "");
    let text = run(one);
    assert_eq!(text, run(other));
    // A dimension split twice is split in mesh order.
    assert!(text.contains("saved h[B, S, H] B:dp S:cp,tp"), "{text}");
}

/// Work grows with what is distinct: twenty times the layers, twenty times the steps.
#[test]
fn many_distinct_layers() {
    let steps = |layers: usize| {
        let mut s = Setup::new(&[("dp", 2), ("tp", 4)]);
        s.start("first", 1, false);
        let mut x = s.value("x", "B S H", ValueRole::Activation);
        for _ in 0..layers {
            s.start("decoder", 1, true);
            x = s.layer(x);
        }
        s.start("last", 1, false);
        let loss = s.value("loss", "", ValueRole::Loss);
        let all = s.dims("B S H");
        s.produce(OpKind::Sum { over: all }, &[x], loss);
        let mut s = s.shard("B", "dp", "").shard("N K F V", "tp", "S").recompute("", RecomputeWhat::All);
        let sharded = s.sharded();
        (sharded.flow.node_count(), s.exprs.len())
    };
    let ((few, nodes), (many, more)) = (steps(20), steps(400));
    assert!(many < 20 * few, "{few} {many}");
    // Equal layers have equal sizes: shared, whatever their number.
    assert!(more < nodes + 200, "{nodes} {more}");
}

#[test]
fn the_graph_in_text() {
    let s = Setup::llama(&[("tp", 4)]);
    assert!(parc::graph::verify(&s.graph).is_empty());
    insta::assert_snapshot!(parc::graph::text(&s.graph));
    let dot = parc::graph::dot(&s.graph);
    assert!(dot.contains("n0 [label = \"embed\\nx[B, S, H]\"]"), "{dot}");
    assert!(dot.contains("n0 -> n1"), "{dot}");
}

#[test]
fn a_wrong_graph_is_told() {
    let mut s = Setup::new(&[("tp", 4)]);
    s.start("block", 1, false);
    let x = s.value("x", "B S H", ValueRole::Activation);
    let w = s.param("w", "H F");
    let lost = s.dims("H");
    s.op("y", "B S", OpKind::Contract { contracted: lost }, &[x, w]);
    let h = s.dim("V");
    s.op("z", "B S H", OpKind::Softmax { over: h }, &[x]);
    let said = parc::graph::verify(&s.graph);
    assert_eq!(
        said,
        ["y[B, S] does not have the dimensions of what it is made of", "the operands of z[B, S, H] do not fit its op",]
    );
}

mod any_layout {
    //! Any layout at all: never a panic, and where nothing is said the program keeps its rules.

    use super::*;
    use proptest::prelude::*;
    use proptest::sample::{select, subsequence};

    const DIMS: [&str; 10] = ["B", "S", "H", "N", "K", "D", "F", "V", "P", "nothing"];
    const AXES: [&str; 3] = ["a", "b", "c"];

    fn words(from: &'static [&'static str], most: usize) -> impl Strategy<Value = String> {
        subsequence(from, 0..=most).prop_shuffle().prop_map(|w| w.join(" "))
    }

    fn scope() -> impl Strategy<Value = Scope> {
        let parts = select(vec!["", "**.mlp", "**.attention", "decoder.**", "head", "**.core", "embed"]);
        parts.prop_map(|text| {
            let part = |p: &str| if p == "**" { SelectorPart::Any } else { SelectorPart::Name(p.into()) };
            let parts: Vec<_> = text.split('.').filter(|p| !p.is_empty()).map(part).collect();
            Scope { nested: if parts.is_empty() { Vec::new() } else { vec![vec![Selector { parts }]] } }
        })
    }

    #[derive(Clone, Debug)]
    enum Item {
        Shard(String, String, String, Scope, Vec<Class>),
        Replicate(String, Scope),
        Store(Vec<Class>, String, Hold),
        Keep,
        Recompute(Scope, RecomputeWhat),
        Attention(String, AttentionMethod),
    }

    fn item() -> impl Strategy<Value = Item> {
        let classes = || subsequence(vec![Class::Param, Class::Act], 1..=2);
        let stored = subsequence(vec![Class::Param, Class::Grad, Class::State], 1..=3);
        let hold = select(vec![Hold::Layer, Hold::Microbatch, Hold::Step]);
        let what = prop_oneof![
            Just(RecomputeWhat::None),
            Just(RecomputeWhat::All),
            subsequence(vec!["a", "h", "q", "o", "x", "logits"], 1..=3)
                .prop_map(|n| RecomputeWhat::Values(n.into_iter().map(str::to_owned).collect())),
        ];
        let methods = [AttentionMethod::Ring, AttentionMethod::AllGather, AttentionMethod::AllToAll];
        prop_oneof![
            4 => (words(&DIMS, 4), words(&AXES, 2), words(&DIMS, 2), scope(), classes())
                .prop_map(|(d, a, e, s, c)| Item::Shard(d, a, e, s, c)),
            1 => (words(&AXES, 2), scope()).prop_map(|(a, s)| Item::Replicate(a, s)),
            2 => (stored, words(&AXES, 2), hold).prop_map(|(c, a, h)| Item::Store(c, a, h)),
            1 => Just(Item::Keep),
            2 => (scope(), what).prop_map(|(s, w)| Item::Recompute(s, w)),
            2 => (words(&AXES, 2), select(methods.to_vec())).prop_map(|(a, m)| Item::Attention(a, m)),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn is_partitioned_or_refused(items in proptest::collection::vec(item(), 0..8)) {
            let mut s = Setup::llama(&[("a", 2), ("b", 2), ("c", 2)]);
            for item in items {
                match item {
                    Item::Shard(dims, axes, otherwise, scope, classes) => {
                        s = s.shard(&dims, &axes, &otherwise);
                        let rule = s.layout.rules.last_mut().expect("one was added");
                        rule.scope = scope;
                        if let Action::Shard { classes: c, .. } = &mut rule.action {
                            *c = classes;
                        }
                    }
                    Item::Replicate(axes, scope) => {
                        s = s.shard("", &axes, "");
                        let rule = s.layout.rules.last_mut().expect("one was added");
                        rule.scope = scope;
                        rule.action = Action::Replicate { classes: vec![Class::Param, Class::Act] };
                    }
                    Item::Store(classes, axes, hold) => s = s.store(&classes, &axes, hold),
                    Item::Keep => s = s.keep_gathered(),
                    Item::Recompute(scope, what) => {
                        s = s.recompute("", what);
                        s.layout.recompute.last_mut().expect("one was added").scope = scope;
                    }
                    Item::Attention(axes, method) => {
                        let axes = axes.split_whitespace().map(|a| s.axis(a)).collect();
                        s.layout.attention.push(AttentionVia { scope: Scope::default(), axes, method, zigzag: false, span: span(400) });
                    }
                }
            }
            let (sharded, said) = s.run();
            let errors = said.iter().filter(|d| d.code.info().severity == parc::diagnostics::Severity::Error).count();
            if errors == 0 {
                let broken = parc::partition::verify(&s.graph, &s.layout, &sharded);
                prop_assert!(broken.is_empty(), "{broken:?}");
            }
            for unit in &sharded.units {
                prop_assert!(s.number(unit.transient) >= 0.0);
            }
        }
    }
}
