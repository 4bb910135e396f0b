//! Edits of the tree of real files: eight bytes choose the edits, the rest is one more file to take pieces from.
#![no_main]

mod exercise;
#[path = "../../tests/it/fuzz_edits.rs"]
mod fuzz_edits;

use fuzz_edits::{Rng, edit};

const FILES: &[&str] = &[
    include_str!("../../examples/llama3_8b.par"),
    include_str!("../../examples/gpt3_175b.par"),
    include_str!("../../tests/specs/03-deepseek-v3.par"),
    include_str!("../../tests/specs/10-serving.par"),
    include_str!("../../tests/specs/16-user-schedule-cost.par"),
];

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((seed, rest)) = bytes.split_first_chunk::<8>() else { return };
    let mut rng = Rng(u64::from_le_bytes(*seed));
    let own = String::from_utf8_lossy(rest);
    let mut text = FILES[rng.below(FILES.len())].to_owned();
    for _ in 0..1 + rng.below(4) {
        let other = if rng.below(2) == 0 && !own.is_empty() { own.as_ref() } else { FILES[rng.below(FILES.len())] };
        text = edit(&text, other, &mut rng);
    }
    exercise::exercise(&text);
});
