//! What each renderer gives for ordinary, odd and hostile diagnostics.

use super::*;
use crate::diagnostics::{Applicability, Code, Label};
use crate::source::{FileId, Span};
use proptest::prelude::*;

const JOB: &str = "edition 1\nlet cap = 80 GiB + 3 s\nlink X {\n\tbandwidth = 400 Gbps\n}\n";

fn job() -> (Sources, FileId) {
    let mut sources = Sources::new();
    let file = sources.add("job.par", JOB.into(), false);
    (sources, file)
}

/// The span of the first `text` in [`JOB`].
fn at(file: FileId, text: &str) -> Span {
    let start = JOB.find(text).expect("the test names text of the job");
    Span::new(file, start, start + text.len())
}

fn check(d: &Diagnostic, sources: &Sources, expected: &str) {
    assert_eq!(text_one(d, sources, Colour::Never), expected.trim_start_matches('\n'));
}

#[test]
fn labels_notes_help_and_fixes() {
    let (sources, f) = job();
    let d = Diagnostic::new(Code::UnitMismatch, "bytes and time cannot be added", at(f, "3 s"), "time")
        .label(at(f, "80 GiB"), "bytes")
        .note("`cap` is compared with `peak_memory`\nwhich is in bytes")
        .help("give both sides in bytes");
    check(
        &d,
        &sources,
        "
error[E0302]: bytes and time cannot be added
   ╭─[ job.par:2:20 ]
   │
 2 │ let cap = 80 GiB + 3 s
   │           ┬─────   ┬──
   │           │        ╰──── time
   │           ╰───────────── bytes
   │
   = note: `cap` is compared with `peak_memory`
           which is in bytes
   = help: give both sides in bytes
",
    );
    assert_eq!(short(&[d], &sources), "job.par:2:20: error[E0302]: bytes and time cannot be added\n");
}

#[test]
fn a_fix_shows_what_its_title_does_not() {
    let (sources, f) = job();
    let mut d = Diagnostic::new(Code::UnitUnknown, "unknown unit `Gbps`", at(f, "Gbps"), "")
        .fix("use `Gb/s`", at(f, "Gbps"), "Gb/s", Applicability::Safe)
        .fix("give bytes", at(f, "400 Gbps"), "50 GB/s", Applicability::Unsure);
    d.fixes[1].effect = Some("step time +3.1%".into());
    check(
        &d,
        &sources,
        "
error[E0301]: unknown unit `Gbps`
   ╭─[ job.par:4:18 ]
   │
 4 │     bandwidth = 400 Gbps
   │                     ────
   │
   = fix: use `Gb/s`
   = fix: give bytes: `400 Gbps` → `50 GB/s`; step time +3.1%
",
    );
    let lines = json(std::slice::from_ref(&d), &sources);
    let object: serde_json::Value = serde_json::from_str(&lines).expect("one object on one line");
    assert_eq!(object["schema"], 1);
    assert_eq!(object["name"], "unknown-unit");
    assert_eq!(object["spans"][0]["start"], 59);
    assert_eq!(JOB.get(59..63), Some("Gbps"));
    assert_eq!(object["spans"][0]["column"], 18);
    assert_eq!(object["spans"][0]["end_column"], 22);
    assert_eq!(object["fixes"][1]["edits"][0]["text"], "50 GB/s");
    assert_eq!(object["fixes"][1]["effect"], "step time +3.1%");
    assert_eq!(object["rendered"], text_one(&d, &sources, Colour::Never));
}

#[test]
fn other_files_come_after_the_primary_one() {
    let (mut sources, f) = job();
    let std = sources.add("std/h.par", "device H {\n  memory = 80 GiB\n}\n".into(), true);
    let d = Diagnostic::new(Code::FieldTwice, "`cap` is given twice", at(f, "cap"), "here")
        .label(Span::new(std, 13, 19), "and here");
    check(
        &d,
        &sources,
        "
error[E0206]: `cap` is given twice
   ╭─[ job.par:2:5 ]
   │
 2 │ let cap = 80 GiB + 3 s
   │     ┬──
   │     ╰──── here
   │
   ├─[ std/h.par:2:3 ]
   │
 2 │   memory = 80 GiB
   │   ┬─────
   │   ╰─────── and here
",
    );
}

#[test]
fn the_end_of_the_file_is_behind_its_last_text() {
    let (sources, f) = job();
    let d =
        Diagnostic::new(Code::SyntaxUnclosed, "`{` is not closed", Span::new(f, 9_999, 99_999), "the file ends here")
            .label(at(f, "{"), "opened here");
    check(
        &d,
        &sources,
        "
error[E0102]: `{` is not closed
   ╭─[ job.par:5:2 ]
   │
 3 │ link X {
   │        ┬
   │        ╰── opened here
   │
 5 │ }
   │  ┬
   │  ╰── the file ends here
",
    );
}

#[test]
fn nothing_of_the_source_reaches_the_terminal_as_an_escape() {
    let mut sources = Sources::new();
    let text = "let s = \"\u{1b}[31m\u{202e}日本\u{85}\"\r\n";
    let f = sources.add("a\u{1b}[2J.par", text.into(), false);
    let d =
        Diagnostic::new(Code::SyntaxString, "bad \u{1b}[31m string", Span::new(f, 8, 9), "\u{7}here").note("\u{9b}x");
    for rendered in [text_one(&d, &sources, Colour::Never), short(&[d], &sources)] {
        assert!(rendered.chars().all(|c| c == '\n' || !c.is_control()), "{rendered:?}");
        assert!(!rendered.contains('\u{202e}'), "{rendered:?}");
    }
}

#[test]
fn colour_changes_colours_only() {
    let (sources, f) = job();
    let d = Diagnostic::new(Code::RuleIdle, "nothing is sharded", at(f, "cap"), "here").note("a fact");
    let plain = text_one(&d, &sources, Colour::Never);
    let coloured = text_one(&d, &sources, Colour::Always);
    assert!(plain.starts_with("warning[W0601]: ") && !plain.contains('\u{1b}'));
    assert!(coloured.contains("\u{1b}[33m") && coloured.contains("\u{1b}[0m"));
    assert_eq!(text::without_escapes(&coloured), plain);
}

#[test]
fn a_diagnostic_without_a_place_has_no_frame() {
    let d = Diagnostic::new(Code::TargetUnknown, "no launch target `x`", Span::NOWHERE, "").help("`megatron` exists");
    check(&d, &Sources::new(), "error[E0902]: no launch target `x`\n   = help: `megatron` exists\n");
    assert_eq!(short(&[d], &Sources::new()), "error[E0902]: no launch target `x`\n");
}

#[test]
fn the_count_is_capped_and_said() {
    let (sources, f) = job();
    let many: Vec<_> = (0..60)
        .map(|i| Diagnostic::new(Code::NameUnknown, format!("`n{i}` is not known"), at(f, "cap"), ""))
        .chain([Diagnostic::new(Code::RuleIdle, "idle", at(f, "cap"), "")])
        .collect();
    let shown = super::text(&many, &sources, Colour::Never);
    assert_eq!(shown.matches("error[").count(), TEXT_SHOWN);
    assert!(shown.ends_with("\nand 10 errors, 1 warning more\n"), "{shown}");
    assert_eq!(summary(&many), "60 errors, 1 warning\n");
    assert_eq!(summary(&[]), "");
    assert_eq!(super::text(&[], &sources, Colour::Never), "");
}

#[test]
fn a_huge_line_or_file_is_named_and_not_drawn() {
    let mut sources = Sources::new();
    let wide = sources.add("wide.par", "x".repeat(3_000_000), false);
    let tall = sources.add("tall.par", "x\n".repeat(2_000_000), false);
    let d = Diagnostic::new(Code::SyntaxUnexpected, "wrong", Span::new(wide, 2_000_000, 2_000_001), "here");
    check(&d, &sources, "error[E0101]: wrong\n   at wide.par:1:2000001\n");
    let d = Diagnostic::new(Code::SyntaxUnexpected, "wrong", Span::new(tall, 3_000_000, 3_000_001), "here");
    check(&d, &sources, "error[E0101]: wrong\n   at tall.par:1500001:1\n");
    let d = Diagnostic::new(Code::SyntaxUnexpected, "wrong", Span::new(wide, 0, 3_000_000), "here");
    assert!(text_one(&d, &sources, Colour::Never).len() < 10_000);
}

proptest! {
    #[test]
    fn any_span_of_any_text_is_drawn(
        source in "[ -~\\n\\r\\té日\u{1b}\u{2028}\u{c}│╰─┬]{0,60}",
        message in "\\PC{0,12}",
        spans in prop::collection::vec((0u32..3, 0u32..90, 0u32..90, "[a-z\\n\u{1b}]{0,4}"), 1..5),
    ) {
        let mut sources = Sources::new();
        sources.add("a.par", source.clone(), false);
        sources.add("b.par", String::new(), false);
        let mut labels = spans.into_iter().map(|(file, start, end, text)| {
            Label { span: Span { file: FileId(file), start, end }, text }
        });
        let primary = labels.next().expect("at least one");
        let mut d = Diagnostic::new(Code::NameUnknown, message, primary.span, primary.text).note(source.clone());
        d.secondary = labels.collect();
        let d = d.fix("mend", primary.span, source, Applicability::Safe);
        let plain = text_one(&d, &sources, Colour::Never);
        prop_assert!(plain.starts_with("error[E0201]:"));
        prop_assert!(!plain.contains('\u{1b}'), "an escape");
        prop_assert_eq!(text::without_escapes(&text_one(&d, &sources, Colour::Always)), plain);
        prop_assert_eq!(short(std::slice::from_ref(&d), &sources).lines().count(), 1);
        prop_assert_eq!(json(&[d], &sources).lines().count(), 1);
    }
}
