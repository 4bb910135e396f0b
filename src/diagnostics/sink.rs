//! Collects diagnostics, in order of place and without repeats.

use super::{Diagnostic, Severity};
use crate::limits::DIAGNOSTICS_KEPT;

/// Proof that an error was given to a [`Sink`]: a poisoned value that holds one need not be reported again.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Reported(());

/// Where stages put their diagnostics.
#[derive(Default, Debug)]
pub struct Sink {
    list: Vec<Diagnostic>,
    errors: usize,
}

impl Sink {
    /// An empty sink.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes an error.
    pub fn error(&mut self, diagnostic: Diagnostic) -> Reported {
        debug_assert_eq!(diagnostic.code.info().severity, Severity::Error, "{}", diagnostic.code.info().name);
        self.errors += 1;
        self.keep(diagnostic);
        Reported(())
    }

    /// Takes a warning.
    pub fn warn(&mut self, diagnostic: Diagnostic) {
        debug_assert_eq!(diagnostic.code.info().severity, Severity::Warning, "{}", diagnostic.code.info().name);
        self.keep(diagnostic);
    }

    /// Keeps so many that a hostile file cannot fill the memory; errors are counted all the same.
    fn keep(&mut self, diagnostic: Diagnostic) {
        if self.list.len() < DIAGNOSTICS_KEPT {
            self.list.push(diagnostic);
        }
    }

    /// Proof that an error came in before: for a value whose parts are poisoned.
    pub fn reported(&self) -> Reported {
        debug_assert!(self.errors > 0, "nothing was reported");
        Reported(())
    }

    /// Whether any error came in.
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// How many errors came in so far.
    pub fn error_count(&self) -> usize {
        self.errors
    }

    /// Everything taken, sorted by place, each once.
    pub fn finish(mut self) -> Vec<Diagnostic> {
        self.list.sort_by(|a, b| (a.primary.span, a.code, &a.message).cmp(&(b.primary.span, b.code, &b.message)));
        self.list.dedup_by(|a, b| a.primary.span == b.primary.span && a.code == b.code && a.message == b.message);
        self.list
    }
}
