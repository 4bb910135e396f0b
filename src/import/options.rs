//! Options of a launch as a table: whatever the framework, a name, the words given for it, and where. Each is read by name
//! with its kind and range checked; what nobody read is told.

use super::errors;
use super::shell::Word;
use crate::diagnostics::Diagnostic;
use crate::source::Span;
use std::collections::BTreeSet;

/// Largest count that is believed.
const LARGEST: u64 = 1 << 40;

/// One option.
#[derive(Clone, Debug)]
pub(super) struct Given {
    /// Its name, as this program compares it.
    pub(super) key: String,
    /// Its name, as it is written.
    pub(super) shown: String,
    /// Where it stands.
    pub(super) at: Span,
    /// What is given for it; nothing for a switch.
    pub(super) values: Vec<Word>,
}

/// The options of one launch.
#[derive(Debug)]
pub(super) struct Options {
    /// Who reads them, for messages: `Megatron-LM`.
    pub(super) of: &'static str,
    /// The whole of them.
    pub(super) whole: Span,
    /// What was said so far.
    pub(super) said: Vec<Diagnostic>,
    given: Vec<Given>,
    read: BTreeSet<usize>,
}

impl Options {
    /// A table of `given`, in order; of two with one name the later one counts.
    pub(super) fn new(of: &'static str, whole: Span, given: Vec<Given>) -> Self {
        Self { of, whole, said: Vec::new(), given, read: BTreeSet::new() }
    }

    /// Adds options of another file; those that are there stay.
    pub(super) fn extend(&mut self, given: Vec<Given>) {
        let new: Vec<_> = given.into_iter().filter(|g| !self.has(&g.key)).collect();
        // Later ones count, and what was read is known by its place: new ones go behind.
        self.given.extend(new);
    }

    /// The option `key`, marked as read.
    pub(super) fn get(&mut self, key: &str) -> Option<&Given> {
        let mut last = None;
        for (i, g) in self.given.iter().enumerate() {
            if g.key == key {
                self.read.insert(i);
                last = Some(i);
            }
        }
        last.and_then(|i| self.given.get(i))
    }

    /// Whether it is given.
    pub(super) fn has(&self, key: &str) -> bool {
        self.given.iter().any(|g| g.key == key)
    }

    /// Where it stands with its value, or all of the options.
    pub(super) fn at(&self, key: &str) -> Span {
        let found = self.given.iter().rev().find(|g| g.key == key);
        found.map_or(self.whole, |g| match g.values.last() {
            Some(v) if v.span.file == g.at.file && v.span.start >= g.at.start && v.span.end - g.at.start < 200 => {
                g.at.to(v.span)
            }
            _ => g.at,
        })
    }

    /// The name as it is written, or `key`.
    pub(super) fn shown(&self, key: &str) -> String {
        self.given.iter().rev().find(|g| g.key == key).map_or_else(|| key.to_owned(), |g| g.shown.clone())
    }

    /// The one word of an option; nothing where there is none or where it is not known.
    pub(super) fn word(&mut self, key: &str) -> Option<Word> {
        let given = self.get(key)?.clone();
        let Some(word) = given.values.first() else {
            self.said.push(errors::valueless(&given.shown, given.at));
            return None;
        };
        if word.unknown {
            self.said.push(errors::unresolved(&given.shown, &word.text, word.span));
            return None;
        }
        Some(word.clone())
    }

    /// The text of an option.
    pub(super) fn text(&mut self, key: &str) -> Option<String> {
        self.word(key).map(|w| w.text)
    }

    /// Every known word of an option, those in one word too.
    pub(super) fn list(&mut self, key: &str) -> Vec<String> {
        let values = self.get(key).map(|g| g.values.clone()).unwrap_or_default();
        let words = values.iter().filter(|w| !w.unknown).flat_map(|w| w.text.split([' ', ',']));
        words.filter(|w| !w.is_empty()).map(str::to_owned).collect()
    }

    fn whole_number(&mut self, key: &str, least: u64) -> Option<u64> {
        let word = self.word(key)?;
        let text = word.text.replace('_', "");
        let exact = text.parse::<u64>().ok();
        // `5e8` and `1.0` are whole numbers too.
        let real = text.parse::<f64>().ok().filter(|x| x.fract().abs() < f64::EPSILON && *x >= 0.0 && *x < 1e15);
        let value = exact.or_else(|| real.map(|x| x as u64)).filter(|n| (least..=LARGEST).contains(n));
        if value.is_none() {
            let allowed = format!("a whole number from {least}");
            self.said.push(errors::range(&self.shown(key), &errors::shown(&word.text), &allowed, word.span));
        }
        value
    }

    /// A count of one or more.
    pub(super) fn count(&mut self, key: &str) -> Option<u64> {
        self.whole_number(key, 1)
    }

    /// A number that may be zero.
    pub(super) fn number(&mut self, key: &str) -> Option<u64> {
        self.whole_number(key, 0)
    }

    /// A number with a fraction.
    pub(super) fn real(&mut self, key: &str) -> Option<f64> {
        let word = self.word(key)?;
        let value = word.text.replace('_', "").parse::<f64>().ok().filter(|x| x.is_finite());
        if value.is_none() {
            self.said.push(errors::range(&self.shown(key), &errors::shown(&word.text), "a number", word.span));
        }
        value
    }

    /// A switch that is on, or a value that says true; `none` where it is not given.
    pub(super) fn flag(&mut self, key: &str) -> Option<bool> {
        let given = self.get(key)?.clone();
        let Some(word) = given.values.first() else { return Some(true) };
        match word.text.to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" => Some(true),
            "false" | "0" | "no" => Some(false),
            _ => {
                self.said.push(errors::range(&given.shown, &errors::shown(&word.text), "true or false", word.span));
                None
            }
        }
    }

    /// Whether a switch is on.
    pub(super) fn on(&mut self, key: &str) -> bool {
        self.flag(key).unwrap_or(false)
    }

    /// Says that the framework refuses this, at `keys`, the first of which is to blame.
    pub(super) fn refuse(&mut self, keys: &[&str], what: &str, why: &str) {
        let mut given: Vec<&str> = keys.iter().copied().filter(|k| self.has(k)).collect();
        if given.is_empty() {
            given.extend(keys.first());
        }
        let places: Vec<_> = given.iter().map(|k| (self.shown(k), self.at(k))).collect();
        self.said.push(errors::refused(self.of, what, why, &places));
    }

    /// Every option: its name, as it is written, and where.
    pub(super) fn listed(&self) -> Vec<(String, String, Span)> {
        self.given.iter().map(|g| (g.key.clone(), g.shown.clone(), g.at)).collect()
    }

    /// Options known to change nothing that is planned.
    pub(super) fn skip(&mut self, known: impl Fn(&str) -> bool) {
        for (i, g) in self.given.iter().enumerate() {
            if known(&g.key) {
                self.read.insert(i);
            }
        }
    }

    /// Tells of every option that nobody read, and gives them for the notes of the program.
    pub(super) fn tell_unread(&mut self) -> Vec<String> {
        let mut notes = Vec::new();
        for (i, g) in self.given.iter().enumerate() {
            if self.read.contains(&i) {
                continue;
            }
            self.said.push(errors::ignored(&g.shown, self.of, g.at));
            let words = [g.shown.as_str()].into_iter().chain(g.values.iter().map(|w| w.text.as_str()));
            notes.push(format!("not read: {}", words.collect::<Vec<_>>().join(" ")));
        }
        notes
    }

    /// Whether something was found that keeps a program from being written.
    pub(super) fn failed(&self) -> bool {
        self.said.iter().any(|d| d.code.info().severity == crate::diagnostics::Severity::Error)
    }
}
