//! Tests of the three ways to cut, the last against every cut there is.

use proptest::prelude::*;

use super::*;

fn layers(index: u32, count: u32) -> UnitRun {
    UnitRun { index, count, repeated: true, counted: false }
}

fn counted(index: u32) -> UnitRun {
    UnitRun { index, count: 1, repeated: false, counted: true }
}

fn code(index: u32) -> UnitRun {
    UnitRun { index, count: 1, repeated: false, counted: false }
}

/// Embedding, layers and head; the ends are units of their own.
fn model(count: u32) -> Vec<UnitRun> {
    vec![counted(0), layers(1, count), counted(2)]
}

fn parts(chunk: &Chunk) -> Vec<(u32, u32, u32)> {
    chunk.parts.iter().map(|part| (part.index, part.first, part.count)).collect()
}

fn counts(chunks: &[Chunk]) -> Vec<u32> {
    chunks.iter().map(|chunk| chunk.units).collect()
}

/// Llama 3 405B has 126 layers so that 16 stages hold eight units each, embedding and head counted (Llama 3, section
/// 3.3.2: one layer fewer on the first and the last stage).
#[test]
fn even_with_counted_ends() {
    let chunks = even(&model(126), 16).expect("128 units");
    assert_eq!(counts(&chunks), [8; 16]);
    assert_eq!(parts(&chunks[0]), [(0, 0, 1), (1, 0, 7)]);
    assert_eq!(parts(&chunks[1]), [(1, 7, 8)]);
    assert_eq!(parts(&chunks[15]), [(1, 119, 7), (2, 0, 1)]);
}

#[test]
fn code_goes_with_the_unit_before_it() {
    // Embedding, four layers, a projection, two layers, norm and head.
    let runs = [code(0), layers(1, 4), code(2), layers(3, 2), code(4), code(5)];
    let chunks = listed(&runs, &[4, 1, 1], 3).expect("six units");
    assert_eq!(parts(&chunks[0]), [(0, 0, 1), (1, 0, 4), (2, 0, 1)]);
    assert_eq!(parts(&chunks[1]), [(3, 0, 1)]);
    assert_eq!(parts(&chunks[2]), [(3, 1, 1), (4, 0, 1), (5, 0, 1)]);
    // Where the head is counted, the norm stays with the last layer.
    let runs = [layers(3, 2), code(4), counted(5)];
    let chunks = listed(&runs, &[2, 1], 2).expect("three units");
    assert_eq!((parts(&chunks[0]), parts(&chunks[1])), (vec![(3, 0, 2), (4, 0, 1)], vec![(5, 0, 1)]));
}

#[test]
fn a_model_without_repeats_is_one_unit() {
    let chunks = even(&[code(0), code(1)], 1).expect("one unit");
    assert_eq!(parts(&chunks[0]), [(0, 0, 1), (1, 0, 1)]);
    assert_eq!(balanced(&[code(0), code(1)], &[1.0, 2.0], 1), Ok(chunks));
    assert_eq!(even(&[code(0), code(1)], 2), Err(SplitError::TooFewUnits { units: 1, chunks: 2 }));
}

#[test]
fn uneven_shows_its_arithmetic() {
    // 80 + 2 = 82 = 5 · 16 + 2: 78 or 94 layers would do, and 82 = 2 · 41.
    let expected = Uneven {
        layers: 80,
        counted: 2,
        chunks: 16,
        fewer_layers: Some(78),
        more_layers: Some(94),
        fewer_chunks: 2,
        more_chunks: 41,
    };
    assert_eq!(even(&model(80), 16), Err(SplitError::Uneven(expected)));
    // 3 + 2 over 4: 2 layers or 6, one chunk or five.
    let Err(SplitError::Uneven(uneven)) = even(&model(3), 4) else { unreachable!("5 is no multiple of 4") };
    assert_eq!((uneven.fewer_layers, uneven.more_layers), (Some(2), Some(6)));
    assert_eq!((uneven.fewer_chunks, uneven.more_chunks), (1, 5));
}

#[test]
fn lists_say_every_unit() {
    let runs = [code(0), layers(1, 126), code(2)];
    let mut list = vec![8; 16];
    (list[0], list[15]) = (7, 7);
    let chunks = listed(&runs, &list, 16).expect("126 units");
    assert_eq!(parts(&chunks[15]), [(1, 119, 7), (2, 0, 1)]);
    assert_eq!(listed(&runs, &[8; 16], 16), Err(SplitError::ListSum { sum: 128, units: 126 }));
    assert_eq!(listed(&runs, &[63, 63], 3), Err(SplitError::ListLength { listed: 2, chunks: 3 }));
    assert_eq!(listed(&runs, &[63, 0, 63], 3), Err(SplitError::EmptyChunk { chunk: 1 }));
    assert_eq!(listed(&runs, &[u32::MAX; 3], 3), Err(SplitError::ListSum { sum: 3 * 4_294_967_295, units: 126 }));
}

#[test]
fn degenerate_splits_are_errors() {
    assert_eq!(even(&[], 1), Err(SplitError::TooFewUnits { units: 0, chunks: 1 }));
    assert_eq!(even(&model(2), 0), Err(SplitError::TooFewUnits { units: 4, chunks: 0 }));
    assert_eq!(balanced(&model(2), &[1.0; 3], 5), Err(SplitError::TooFewUnits { units: 4, chunks: 5 }));
    assert_eq!(balanced(&model(2), &[1.0; 2], 2), Err(SplitError::CostLength { costs: 2, runs: 3 }));
    let units = 2 * u64::from(u32::MAX);
    let huge = [layers(0, u32::MAX), layers(1, u32::MAX)];
    assert_eq!(even(&huge, u32::MAX), Err(SplitError::TooManyUnits { units, limit: 1_000_000 }));
}

#[test]
fn balanced_by_hand() {
    let split = |costs: &[f64], chunks| counts(&balanced(&model(6), costs, chunks).expect("eight units"));
    // Ends as heavy as two layers each: ten in two halves of five.
    assert_eq!(split(&[2.0, 1.0, 2.0], 2), [4, 4]);
    // A head of four layers: 10 over three is four at least, so the head is alone and the first takes what is left
    // over.
    assert_eq!(split(&[0.0, 1.0, 4.0], 3), [3, 4, 1]);
    // One chunk a unit, whatever they cost.
    assert_eq!(split(&[9.0, 1.0, f64::NAN], 8), [1; 8]);
    // Nothing costs anything: the least list.
    assert_eq!(split(&[0.0, -1.0, f64::NAN], 4), [1, 1, 1, 5]);
    assert_eq!(split(&[f64::INFINITY, 1.0, 1.0], 3), [1, 1, 6]);
}

/// Code weighs on the unit it goes with.
#[test]
fn balanced_weighs_code() {
    let runs = [code(0), layers(1, 4), code(2)];
    let split = |costs: &[f64]| counts(&balanced(&runs, costs, 2).expect("four units"));
    assert_eq!(split(&[0.0, 1.0, 0.0]), [2, 2]);
    assert_eq!(split(&[2.0, 1.0, 0.0]), [1, 3]);
    assert_eq!(split(&[0.0, 1.0, 2.0]), [3, 1]);
}

#[test]
fn balanced_is_fast_on_deep_models() {
    let chunks = balanced(&model(1000), &[3.5, 1.0, 7.25], 128).expect("1002 units");
    // 1010.75 over 128 is 7.9, so eight layers at most, and the head takes one chunk alone with 7.25.
    assert_eq!(counts(&chunks).iter().sum::<u32>(), 1002);
    assert_eq!((chunks[126].units, parts(&chunks[127])), (8, vec![(2, 0, 1)]));
    let chunks = balanced(&[layers(0, 999_998), layers(1, 2)], &[0.1, 0.3], 65_536).expect("a million units");
    assert_eq!(chunks.len(), 65_536);
}

/// Costs of all units, code included, in order.
fn unit_costs(runs: &[UnitRun], costs: &[f64]) -> Vec<f64> {
    let mut units: Vec<f64> = Vec::new();
    let mut leading = 0.0;
    for (run, cost) in runs.iter().zip(costs) {
        if run.units() > 0 {
            units.extend(std::iter::repeat_n(*cost, run.units() as usize));
        } else if run.repeated {
        } else if let Some(last) = units.last_mut() {
            *last += cost;
        } else {
            leading += cost;
        }
    }
    if units.is_empty() {
        return vec![leading];
    }
    units[0] += leading;
    units
}

/// Every list of counts, in lexicographic order; the first of the best.
fn best(units: &[f64], chunks: usize) -> (f64, Vec<u32>) {
    if chunks == 1 {
        return (units.iter().sum(), vec![units.len() as u32]);
    }
    let mut found = (f64::INFINITY, Vec::new());
    for count in 1..=units.len() - (chunks - 1) {
        let (rest, list) = best(&units[count..], chunks - 1);
        let largest = units[..count].iter().sum::<f64>().max(rest);
        // The best of the rest is not the least list of the rest where this chunk is the largest, so try them all.
        let list = least(&units[count..], chunks - 1, largest).unwrap_or(list);
        if largest < found.0 {
            found = (largest, [&[count as u32], list.as_slice()].concat());
        }
    }
    found
}

/// The lexicographically least counts with no chunk above `bound`.
fn least(units: &[f64], chunks: usize, bound: f64) -> Option<Vec<u32>> {
    if chunks == 1 {
        return (units.iter().sum::<f64>() <= bound).then(|| vec![units.len() as u32]);
    }
    (1..=units.len() - (chunks - 1)).find_map(|count| {
        let first: f64 = units[..count].iter().sum();
        let rest = (first <= bound).then(|| least(&units[count..], chunks - 1, bound)).flatten()?;
        Some([&[count as u32], rest.as_slice()].concat())
    })
}

fn any_runs(most: u32) -> impl Strategy<Value = Vec<UnitRun>> {
    let run = (0..=most, any::<bool>(), any::<bool>()).prop_map(|(count, repeated, counted)| {
        let count = if repeated { count } else { 1 };
        UnitRun { index: 0, count, repeated, counted }
    });
    prop::collection::vec(run, 1..6).prop_map(|mut runs| {
        for (index, run) in (0..).zip(&mut runs) {
            run.index = index;
        }
        runs
    })
}

proptest! {
    /// Every iteration and region in exactly one chunk, in order, however it is cut.
    #[test]
    fn nothing_is_lost(runs in any_runs(9), chunks in 1..8_u32, costs in prop::collection::vec(0.0..3.0, 6)) {
        let all: Vec<(u32, u32)> =
            runs.iter().flat_map(|run| (0..run.count).map(|iteration| (run.index, iteration))).collect();
        let splits = [even(&runs, chunks), balanced(&runs, &costs[..runs.len()], chunks)];
        for split in splits.into_iter().flatten() {
            let dealt = split.iter().flat_map(|chunk| &chunk.parts);
            let iterations = |part: &Part| part.first..part.first + part.count;
            let dealt: Vec<(u32, u32)> =
                dealt.flat_map(|part| iterations(part).map(|iteration| (part.index, iteration))).collect();
            prop_assert_eq!(&dealt, &all);
            prop_assert_eq!(split.len(), chunks as usize);
            // Each chunk has the units it says; where nothing is a unit, everything is one.
            let is_unit = |part: &Part| runs[part.index as usize].units() > 0;
            if runs.iter().any(|run| run.units() > 0) {
                for chunk in &split {
                    let units: u32 = chunk.parts.iter().filter(|part| is_unit(part)).map(|part| part.count).sum();
                    prop_assert!(units == chunk.units && units > 0);
                }
            }
            // Said as a list it is the same cut.
            prop_assert_eq!(listed(&runs, &counts(&split), chunks), Ok(split));
        }
    }

    /// Whole costs, so that sums are exact in any order and ties are many.
    #[test]
    fn balanced_is_best(runs in any_runs(4), chunks in 1..6_u32, costs in prop::collection::vec(0..5_u32, 6)) {
        let costs: Vec<f64> = costs.into_iter().take(runs.len()).map(f64::from).collect();
        if let Ok(split) = balanced(&runs, &costs, chunks) {
            let (_, expected) = best(&unit_costs(&runs, &costs), chunks as usize);
            prop_assert_eq!(counts(&split), expected);
        }
    }

    /// The nearest numbers of an uneven split divide, and none between them does.
    #[test]
    fn nearest_numbers_are_nearest(count in 1..60_u32, chunks in 1..20_u32) {
        let fits = |layers: u64, chunks: u64| even(&model(layers as u32), chunks as u32).is_ok();
        if let Err(SplitError::Uneven(uneven)) = even(&model(count), chunks) {
            let near = uneven.fewer_layers.unwrap_or(0)..=uneven.more_layers.expect("far below the limit");
            let legal: Vec<u64> = near.clone().filter(|&layers| layers > 0 && fits(layers, uneven.chunks)).collect();
            prop_assert_eq!(legal, uneven.fewer_layers.into_iter().chain(uneven.more_layers).collect::<Vec<_>>());
            let near = uneven.fewer_chunks..=uneven.more_chunks;
            let legal: Vec<u64> = near.filter(|&chunks| fits(uneven.layers, chunks)).collect();
            prop_assert_eq!(legal, vec![uneven.fewer_chunks, uneven.more_chunks]);
        }
    }
}

/// Eight equal layers over two ranks that hold ten bytes: the first keeps two microbatches of a layer's byte and one
/// byte at rest, so three layers; the second one microbatch, so five.
#[test]
fn chunks_fit_their_ranks() {
    let runs = [layers(0, 8)];
    let room = |limit| Room { rest: &[1.0], saved: &[1.0], in_flight: &[2, 1], limit };
    let split = |limit| counts(&balanced_within(&runs, &[1.0], 2, room(limit)).expect("eight units"));
    assert_eq!(split(12.0), [4, 4]);
    assert_eq!(split(10.0), [3, 5]);
    // Nothing fits: as if there were no limit.
    assert_eq!(split(8.0), [4, 4]);
}
