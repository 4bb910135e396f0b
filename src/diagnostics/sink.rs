//! Collects diagnostics, in order of place and without repeats.

use super::{Diagnostic, Severity};
use crate::limits::DIAGNOSTICS_KEPT;

/// Longest text of a message, label, note or help, in bytes: names in files may be as long as files.
const TEXT_KEPT: usize = 4_000;

/// Most secondary places of one diagnostic.
const PLACES_KEPT: usize = 1_000;

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

    /// Takes what another sink held at its end.
    pub fn take(&mut self, said: Vec<Diagnostic>) {
        for d in said {
            match d.code.info().severity {
                Severity::Error => drop(self.error(d)),
                Severity::Warning => self.warn(d),
            }
        }
    }

    /// Keeps so many, and of each so much, that a hostile file cannot fill the memory. Errors are counted all the same.
    fn keep(&mut self, mut diagnostic: Diagnostic) {
        if self.list.len() < DIAGNOSTICS_KEPT {
            let Diagnostic { message, primary, secondary, notes, help, .. } = &mut diagnostic;
            secondary.truncate(PLACES_KEPT);
            let labels = std::iter::once(primary).chain(secondary).map(|l| &mut l.text);
            std::iter::once(message).chain(labels).chain(notes).chain(help).for_each(clip);
            self.list.push(diagnostic);
        }
    }

    /// Proof that an error came in before: for a value whose parts are poisoned.
    pub fn reported(&self) -> Reported {
        debug_assert!(self.errors > 0, "nothing was reported");
        Reported(())
    }

    /// Leaves out what `needless` says follows from something else that was told. Errors stay counted.
    pub fn withhold(&mut self, needless: impl Fn(&Diagnostic) -> bool) {
        self.list.retain(|d| !needless(d));
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

fn clip(text: &mut String) {
    if text.len() > TEXT_KEPT {
        text.truncate(text.floor_char_boundary(TEXT_KEPT));
        text.push('…');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics::Code;
    use crate::source::{FileId, Span};

    fn at(start: usize, message: &str) -> Diagnostic {
        Diagnostic::new(Code::NameUnknown, message, Span::new(FileId(0), start, start + 1), "")
    }

    #[test]
    fn sorted_by_place_and_each_once() {
        let mut sink = Sink::new();
        for (start, message) in [(7, "b"), (3, "c"), (7, "a"), (7, "b")] {
            sink.error(at(start, message));
        }
        sink.warn(Diagnostic::new(Code::RuleIdle, "w", Span::new(FileId(0), 0, 1), ""));
        assert_eq!((sink.error_count(), sink.has_errors()), (4, true));
        let order: Vec<_> = sink.finish().into_iter().map(|d| d.message).collect();
        assert_eq!(order, ["w", "c", "a", "b"]);
    }

    #[test]
    fn a_flood_is_counted_and_not_kept() {
        let mut sink = Sink::new();
        for i in 0..DIAGNOSTICS_KEPT + 5 {
            sink.error(at(i, &"é".repeat(3_000)));
        }
        assert_eq!(sink.error_count(), DIAGNOSTICS_KEPT + 5);
        let kept = sink.finish();
        assert_eq!(kept.len(), DIAGNOSTICS_KEPT);
        assert_eq!(kept[0].message, "é".repeat(2_000) + "…");
    }
}
