//! What is said about one file: one report a mistake, repeated habits gathered into one.

use super::errors::{self, Slip};
use crate::diagnostics::{Diagnostic, Edit, Sink};
use crate::source::Span;
use std::collections::BTreeMap;

/// Reports kept for one file; more would not be read.
const MAX_REPORTS: usize = 100;

/// Places of one slip that are kept; a fix is offered where that is all.
const MAX_PLACES: usize = 1000;

/// Where one slip was made.
#[derive(Default)]
pub(super) struct Places {
    /// The first ones, with their edits.
    pub(super) list: Vec<(Span, Vec<Edit>)>,
    /// How many there are.
    pub(super) count: usize,
}

/// The reports of one file.
#[derive(Default)]
pub(super) struct Reports {
    list: Vec<Diagnostic>,
    more: usize,
    /// Where something is missing or too much, so that what is around it may not be what it seems.
    torn: Vec<u32>,
    slips: BTreeMap<Slip, Places>,
    /// Uses of a reserved word as a name, and the name to use instead.
    words: BTreeMap<&'static str, (String, Vec<Span>)>,
}

impl Reports {
    /// Takes a report.
    pub(super) fn push(&mut self, diagnostic: Diagnostic) {
        if self.list.len() < MAX_REPORTS {
            self.list.push(diagnostic);
        } else {
            self.more += 1;
        }
    }

    /// Takes a report of something missing or too much, which may well cause failures around it.
    pub(super) fn tear(&mut self, diagnostic: Diagnostic) {
        if self.torn.len() < MAX_REPORTS {
            self.torn.push(diagnostic.primary.span.start);
        }
        self.push(diagnostic);
    }

    /// The places of what was missing or too much, from byte `from` up to byte `to`.
    pub(super) fn torn(&self, from: u32, to: u32) -> impl Iterator<Item = u32> {
        self.torn.iter().copied().filter(move |p| from <= *p && *p < to)
    }

    /// Takes back what was said of closing brackets without a partner from byte `from` up to byte `to`.
    pub(super) fn forget_strays(&mut self, from: u32, to: u32) {
        self.list.retain(|d| !((from..to).contains(&d.primary.span.start) && errors::is_stray(d)));
    }

    /// Whether no more reports are kept; if so, counts one more.
    pub(super) fn full(&mut self) -> bool {
        let full = self.list.len() >= MAX_REPORTS;
        self.more += usize::from(full);
        full
    }

    /// Takes a habit of another language; all places with the same one are one report.
    pub(super) fn slip(&mut self, slip: Slip, at: Span, edits: Vec<Edit>) {
        if self.slips.len() >= MAX_REPORTS && !self.slips.contains_key(&slip) {
            self.more += 1;
            return;
        }
        let places = self.slips.entry(slip).or_default();
        places.count += 1;
        if places.list.len() < MAX_PLACES {
            places.list.push((at, edits));
        }
    }

    /// Takes a reserved word used as a name; all uses of it are one report.
    pub(super) fn reserved(&mut self, word: &'static str, at: Span, instead: impl FnOnce() -> String) {
        self.words.entry(word).or_insert_with(|| (instead(), Vec::new())).1.push(at);
    }

    /// Moves the insertion of `mark` that a fix proposed at byte `from` to byte `to`.
    pub(super) fn move_insertion(&mut self, from: u32, to: u32, mark: &str) {
        let fixes = self.list.iter_mut().rev().flat_map(|d| d.fixes.iter_mut());
        let edit = fixes.flat_map(|f| f.edits.iter_mut());
        if let Some(e) = edit.into_iter().find(|e| e.span.start == from && e.span.end == from && e.text == mark) {
            e.span = Span { start: to, end: to, ..e.span };
        }
    }

    /// Hands everything to the sink.
    pub(super) fn finish(mut self, sink: &mut Sink) {
        self.list.extend(self.slips.iter().filter_map(|(slip, places)| errors::slip(*slip, places)));
        self.list.extend(self.words.iter().filter_map(|(w, (instead, at))| errors::reserved_word(w, instead, at)));
        self.list.sort_by_key(|d| d.primary.span);
        self.more += self.list.len().saturating_sub(MAX_REPORTS);
        self.list.truncate(MAX_REPORTS);
        if let Some(last) = self.list.last_mut().filter(|_| self.more > 0) {
            last.notes.push(format!("{} more mistakes of this kind follow in this file", self.more));
        }
        for diagnostic in self.list {
            sink.error(diagnostic);
        }
    }
}
