//! The page behind each code: what it means, a wrong and a right example. Pages are Markdown in `explain/`, one a
//! code, and their examples are compiled by the tests: the wrong one raises this code alone, the right one nothing.
//!
//! An example's fence says `par wrong` or `par right`, then the command that reports it where `check` does not.

use super::{CODES, Code, Severity};
use crate::limits;
use include_dir::{Dir, include_dir};
use std::fmt::Write as _;

static PAGES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/src/diagnostics/explain");

/// The page of `code`, Markdown.
pub fn page(code: Code) -> &'static str {
    let file = PAGES.get_file(format!("{}.md", code.info().number));
    file.and_then(|f| f.contents_utf8()).expect("every code has a page, which a test checks")
}

/// What `parc explain TOPIC` prints: the page of a code, by number or name; `limits`; `codes`.
pub fn topic(topic: &str) -> Option<String> {
    match topic.trim() {
        "limits" => Some(limits_page()),
        "codes" => Some(codes_page()),
        code => Code::find(code).map(|c| page(c).to_owned()),
    }
}

/// Every limit of the compiler, one a line.
pub fn limits_page() -> String {
    let mut out =
        String::from("# Limits\n\nA file that passes one gets `E0003`, with the limit and the value met.\n\n");
    for limit in limits::ALL {
        let _ = writeln!(out, "{:>35}  {}", grouped(limit.value), limit.what);
    }
    out
}

/// Every code with its name and title, one a line.
fn codes_page() -> String {
    let mut out = String::from("# Codes\n\n`parc explain CODE` tells more, by number or name.\n\n");
    for (_, info) in CODES {
        let kind = match info.severity {
            Severity::Error => "error  ",
            Severity::Warning => "warning",
        };
        let _ = writeln!(out, "{}  {kind}  {:<20}  {}", info.number, info.name, info.title);
    }
    out
}

/// `4,194,304`.
fn grouped(n: u128) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, d) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(d);
    }
    out
}

/// An example of a page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Example {
    /// Whether it raises the page's code alone; else it raises nothing.
    pub wrong: bool,
    /// The command that reports it: `check`, `plan`, `build --target megatron`.
    pub command: String,
    /// The whole file.
    pub text: String,
}

/// The examples of a page, in order.
pub fn examples(page: &str) -> Vec<Example> {
    let mut found = Vec::new();
    let mut open: Option<Example> = None;
    for line in page.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(info)) => {
                let (kind, command) =
                    info.strip_prefix("par ").map_or(("", ""), |i| i.split_once(' ').unwrap_or((i, "")));
                if kind == "wrong" || kind == "right" {
                    let command = if command.is_empty() { "check" } else { command };
                    open = Some(Example { wrong: kind == "wrong", command: command.into(), text: String::new() });
                }
            }
            (Some(_), Some(_)) => found.extend(open.take()),
            (Some(example), None) => {
                example.text.push_str(line);
                example.text.push('\n');
            }
            (None, None) => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Codes whose cause no file shows: files themselves, the command line, what the compiler lacks.
    const WITHOUT_EXAMPLES: &[Code] = &[
        Code::FileMissing,
        Code::FileNotText,
        Code::OutputNotWritten,
        Code::TargetUnknown,
        Code::NotSupported,
        Code::ImportMalformed,
        Code::ImportUnknown,
        Code::ImportIgnored,
        Code::ImportRefused,
        Code::ImportAssumed,
    ];

    #[test]
    fn every_code_has_a_page_and_every_page_a_code() {
        let mut pages: Vec<_> = PAGES.files().filter_map(|f| f.path().file_stem()?.to_str()).collect();
        let mut codes: Vec<_> = CODES.iter().map(|(_, info)| info.number).collect();
        pages.sort_unstable();
        codes.sort_unstable();
        assert_eq!(pages, codes);
        for (code, info) in CODES {
            let head = format!("# {} {}\n\n", info.number, info.name);
            assert!(page(*code).starts_with(&head), "the page of {code} starts with {head:?}");
        }
    }

    #[test]
    fn pages_show_one_wrong_and_one_right_file() {
        for (code, info) in CODES {
            let examples = examples(page(*code));
            let kinds: Vec<bool> = examples.iter().map(|e| e.wrong).collect();
            if WITHOUT_EXAMPLES.contains(code) {
                assert!(kinds.is_empty(), "{}", info.number);
                continue;
            }
            assert_eq!(kinds, [true, false], "{}", info.number);
            assert_ne!(examples[0].text, examples[1].text, "{}", info.number);
            assert!(examples[1].text.starts_with("edition 1\n"), "{}", info.number);
        }
    }

    #[test]
    fn topics() {
        assert_eq!(topic("e0302").as_deref(), Some(page(Code::UnitMismatch)));
        assert_eq!(topic("unit-mismatch").as_deref(), Some(page(Code::UnitMismatch)));
        assert_eq!(topic("E9999"), None);
        let limits = topic("limits").unwrap();
        assert!(limits.contains("16,777,216  bytes in a file"), "{limits}");
        assert!(limits.contains("1,267,650,600,228,229,401,496,703,205,376  size in bytes"), "{limits}");
        assert!(topic("codes").unwrap().contains("E0801  error    does-not-fit"));
    }

    #[test]
    fn commands_follow_the_kind() {
        let page = "```sh\nx\n```\n```par right\na\n```\n```par wrong build --target megatron\nb\nc\n```\n";
        let found = examples(page);
        assert_eq!(found[0], Example { wrong: false, command: "check".into(), text: "a\n".into() });
        assert_eq!((found[1].command.as_str(), found[1].text.as_str()), ("build --target megatron", "b\nc\n"));
    }
}
