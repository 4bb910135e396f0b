//! Words of other tools and of the field, and how a `.par` file says the same: the dictionary of
//! `docs/reference/words.md`, read as data. That page is the only source; what `parc explain` prints of it and what the
//! checker says of a foreign word come from here.
//!
//! An entry of the page is a heading of the third rank, a paragraph of spellings in code spans, prose and blocks, and a
//! list that says what to write where. Tests hold the page to this form.

use std::collections::BTreeMap;
use std::sync::LazyLock;

const PAGE: &str = include_str!("../docs/reference/words.md");

static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| PAGE.split("\n### ").skip(1).map(entry).collect());

/// Entries by the keys of their spellings and headings.
static INDEX: LazyLock<BTreeMap<String, usize>> = LazyLock::new(|| {
    let mut index = BTreeMap::new();
    for (at, entry) in ENTRIES.iter().enumerate() {
        for word in entry.spellings.iter().chain([&entry.title]) {
            index.entry(key(word)).or_insert(at);
        }
    }
    index.remove("");
    index
});

/// One idea, and everybody's words for it.
#[derive(Debug)]
pub struct Entry {
    /// Its heading.
    pub title: &'static str,
    /// Its words, as their tools write them.
    pub spellings: Vec<&'static str>,
    /// The paragraph of spellings, with whose they are.
    words: &'static str,
    /// What it is, with blocks; Markdown.
    body: &'static str,
    advice: Vec<(Place, Advice)>,
}

/// Where a foreign word stands.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// As a field of a layout or part.
    Layout,
    /// As a field of a job.
    Job,
    /// As a field of a device.
    Device,
    /// As a field of a host.
    Host,
    /// As a field of a link.
    Link,
    /// As a field of a number format.
    Dtype,
    /// As the name of an argument.
    Argument,
    /// As a metric in a claim or an objective.
    Metric,
    /// As the schedule of a pipeline.
    Schedule,
}

const PLACES: &[(&str, Place)] = &[
    ("in a layout", Place::Layout),
    ("in a job", Place::Job),
    ("of a device", Place::Device),
    ("of a host", Place::Host),
    ("of a link", Place::Link),
    ("of a dtype", Place::Dtype),
    ("as an argument", Place::Argument),
    ("as a metric", Place::Metric),
    ("as a schedule", Place::Schedule),
];

/// What to write in place of a foreign word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Advice {
    /// A clause of advice; empty where a name says all.
    pub help: &'static str,
    /// The edit that follows from it.
    pub instead: Instead,
}

/// An edit.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Instead {
    /// None: it depends.
    Nothing,
    /// Another name for the same value.
    Name(&'static str),
    /// Another line; `AXIS` in it stands for the axis that shards the batch.
    Line(&'static str),
    /// Nothing at all: the line may go.
    Remove,
}

/// Every entry, in the order of the page.
pub fn entries() -> &'static [Entry] {
    &ENTRIES
}

/// The entry of `word`, however it is dashed, underscored, capitalised or put into sections.
pub fn find(word: &str) -> Option<&'static Entry> {
    // `parallelism.tensor_parallel_degree`, and then `--zero-stage=1`.
    let section = || named(word.rsplit('.').next().unwrap_or_default());
    named(word).or_else(section).or_else(|| named(word.split(['=', ' ']).next().unwrap_or_default()))
}

/// The entry that has `word` as a spelling or heading.
fn named(word: &str) -> Option<&'static Entry> {
    INDEX.get(&key(word)).map(|at| &ENTRIES[*at])
}

/// What to write for `word` with the value `value` (its text, or nothing) at `place`.
pub fn advice(word: &str, value: &str, place: Place) -> Option<&'static Advice> {
    let at = |e: &'static Entry| e.advice.iter().find(|(p, _)| *p == place).map(|(_, a)| a);
    named(&format!("{word}={value}")).and_then(at).or_else(|| find(word).and_then(at))
}

impl Entry {
    /// The heading within a sentence: `tensor parallelism`, but `ZeRO-1` and `GPU memory`.
    pub fn title_inside(&self) -> String {
        let mut chars = self.title.chars();
        let first = chars.next().map(|c| c.to_ascii_lowercase());
        let name = self.title.chars().skip(1).take_while(|c| *c != ' ').any(|c| c.is_ascii_uppercase() || c == '-');
        match first.filter(|_| !name) {
            Some(first) => std::iter::once(first).chain(chars).collect(),
            None => self.title.to_string(),
        }
    }

    /// The entry for a terminal: heading, words, prose; blocks indented.
    pub fn page(&self) -> String {
        let mut out = format!("# {}\n\n{}\n", self.title, self.words);
        if !self.body.is_empty() {
            out.push('\n');
        }
        let mut open = false;
        for line in self.body.lines() {
            if line.starts_with("```") {
                open = !open;
            } else {
                let indent = if open && !line.is_empty() { "    " } else { "" };
                out.push_str(indent);
                if open {
                    out.push_str(line.strip_prefix("  ").unwrap_or(line));
                } else {
                    out.push_str(&unlinked(line));
                }
                out.push('\n');
            }
        }
        let names = self.advice.iter().filter_map(|(place, a)| match a.instead {
            // A name that is a spelling already says nothing new.
            Instead::Name(name) if a.help.is_empty() && !self.spellings.contains(&name) => {
                Some(format!("{}: `{name}`\n", PLACES.iter().find(|(_, p)| p == place).map_or("", |(t, _)| *t)))
            }
            Instead::Name(_) | Instead::Nothing | Instead::Line(_) | Instead::Remove => None,
        });
        let names: String = names.collect();
        if names.is_empty() { out } else { format!("{out}\n{names}") }
    }
}

/// A line in which `[Layouts](layouts.md#rules)` is `Layouts (layouts.md#rules)`.
fn unlinked(line: &str) -> String {
    let mut parts = line.split("](");
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        if let Some(at) = out.rfind('[') {
            out.remove(at);
        }
        out.push_str(" (");
        out.push_str(part);
    }
    out
}

/// The letters and digits of a word, in lower case: `--zero-stage`, `zero_stage` and `ZeroStage` are one.
fn key(word: &str) -> String {
    word.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

fn entry(text: &'static str) -> Entry {
    // The next chapter's heading, where this entry is the last of its own.
    let text = text.split("\n## ").next().unwrap_or(text);
    let (title, rest) = text.split_once('\n').unwrap_or((text, ""));
    let (words, rest) = rest.trim_start().split_once("\n\n").unwrap_or((rest.trim(), ""));
    let list = if rest.starts_with("- ") { 0 } else { rest.find("\n- ").map_or(rest.len(), |at| at + 1) };
    let (body, list) = rest.split_at(list);
    let items = list.split("\n- ").map(|item| item.trim_start_matches("- ").trim());
    Entry {
        title: title.trim(),
        spellings: words.split('`').skip(1).step_by(2).collect(),
        words: words.trim(),
        body: body.trim(),
        advice: items.filter_map(advised).collect(),
    }
}

/// `in a layout: write `LINE`; HELP`.
fn advised(item: &'static str) -> Option<(Place, Advice)> {
    let (place, said) = item.split_once(": ")?;
    let place = PLACES.iter().find(|(text, _)| *text == place)?.1;
    let code = said.split('`').nth(1).unwrap_or_default();
    let (first, help) = said.split_once("; ").unwrap_or((said, ""));
    let (help, instead) = match first.split(' ').next() {
        Some("write") if !help.is_empty() => (help, Instead::Line(code)),
        Some("use") if !help.is_empty() => (help, Instead::Name(code)),
        Some("drop") if !help.is_empty() => (help, Instead::Remove),
        _ if said.starts_with('`') => ("", Instead::Name(code)),
        _ => (said, Instead::Nothing),
    };
    Some((place, Advice { help, instead }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_names_one_entry() {
        let mut seen: BTreeMap<String, &str> = BTreeMap::new();
        for e in entries() {
            assert!(!e.spellings.is_empty(), "{}: no spellings", e.title);
            for s in e.spellings.iter().copied() {
                let other = seen.insert(key(s), e.title);
                assert!(other.is_none_or(|o| o == e.title), "`{s}` stands under {other:?} and {}", e.title);
            }
        }
        assert!(entries().len() > 90);
    }

    #[test]
    fn every_item_of_a_list_is_understood() {
        let items: usize = PAGE.lines().filter(|l| l.starts_with("- ")).count();
        assert_eq!(items, entries().iter().map(|e| e.advice.len()).sum::<usize>());
    }

    #[test]
    fn spelling_does_not_matter() {
        let title = |word: &str| find(word).map(|e| e.title);
        for word in ["tp", "--tensor-model-parallel-size", "tensor_model_parallel_size", "TensorParallel"] {
            assert_eq!(title(word), Some("Tensor parallelism"), "{word}");
        }
        assert_eq!(title("parallelism.tensor_parallel_degree"), Some("Tensor parallelism"));
        assert_eq!(title("ZeRO-1"), Some("ZeRO-1"));
        assert_eq!(title("--zero-stage=3"), Some("ZeRO-3"));
        assert_eq!(title("zero_optimization.stage"), Some("ZeRO"));
        assert_eq!(title("gpu-memory-utilization"), Some("GPU memory utilization"));
        assert_eq!(title(""), None);
        assert_eq!(title("--"), None);
        assert_eq!(title("flux"), None);
    }

    #[test]
    fn links_are_text_on_a_terminal() {
        assert_eq!(unlinked("See [a](b.md#c), and [d](e)."), "See a (b.md#c), and d (e).");
        assert_eq!(unlinked("`x[B, S]` (y)"), "`x[B, S]` (y)");
    }

    #[test]
    fn advice_follows_the_value() {
        let line = |word, value| advice(word, value, Place::Layout).map(|a| a.instead);
        assert_eq!(line("zero_stage", "3"), Some(Instead::Line("store [state, grad, param] over AXIS")));
        assert_eq!(line("zero1", ""), Some(Instead::Line("store state over AXIS")));
        assert_eq!(line("zero", "true"), Some(Instead::Nothing));
        assert_eq!(advice("gbs", "512", Place::Job).map(|a| a.instead), Some(Instead::Name("batch")));
        assert_eq!(advice("vram", "80", Place::Device).map(|a| a.instead), Some(Instead::Name("memory")));
        assert_eq!(advice("lr", "1e-4", Place::Job).map(|a| a.instead), Some(Instead::Remove));
        assert_eq!(advice("lr", "1e-4", Place::Link), None);
    }
}
