//! Any text at all.
#![no_main]

mod exercise;

libfuzzer_sys::fuzz_target!(|text: &str| exercise::exercise(text));
