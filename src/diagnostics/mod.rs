//! Diagnostics as values: what is wrong, where, why, and how to mend it.
//!
//! A stage puts [`Diagnostic`]s into a [`Sink`] and goes on; renderers in [`render`] turn them into text or
//! JSON. Nothing here prints.

mod apply;
mod codes;
pub mod explain;
mod nearest;
pub mod render;
mod sink;

pub use apply::{Applied, apply, apply_all};
pub use codes::{CODES, Code, CodeInfo, Severity};
pub use nearest::nearest;
pub use sink::{Reported, Sink};

use crate::source::Span;
use std::fmt;

/// One message to the user.
#[derive(Clone, PartialEq, Debug)]
pub struct Diagnostic {
    /// What kind of mistake this is.
    pub code: Code,
    /// One lower-case clause without a full stop.
    pub message: String,
    /// The smallest place to edit.
    pub primary: Label,
    /// The other places involved.
    pub secondary: Vec<Label>,
    /// Facts and numbers.
    pub notes: Vec<String>,
    /// What to do.
    pub help: Vec<String>,
    /// Edits that remove the error.
    pub fixes: Vec<Fix>,
}

/// A place and what it is.
#[derive(Clone, PartialEq, Debug)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// What it is, in a few words; may be empty.
    pub text: String,
}

/// An edit that removes the error.
#[derive(Clone, PartialEq, Debug)]
pub struct Fix {
    /// What the edit does, as an imperative: "use `Gb/s`".
    pub title: String,
    /// Replacements that do not overlap.
    pub edits: Vec<Edit>,
    /// Whether it may be applied unasked.
    pub applicability: Applicability,
    /// Predicted effect, where one was computed: "fits at 51.0 GiB, step time +3.1%".
    pub effect: Option<String>,
}

/// Replacement of the text under a span.
#[derive(Clone, PartialEq, Debug)]
pub struct Edit {
    /// What to replace; empty to insert.
    pub span: Span,
    /// The new text.
    pub text: String,
}

/// How sure a fix is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Applicability {
    /// Apply unasked.
    Safe,
    /// Offer.
    Unsure,
    /// Holds `<…>` to fill in.
    Placeholder,
}

impl Diagnostic {
    /// A diagnostic with its message and primary place; builders add the rest.
    pub fn new(code: Code, message: impl Into<String>, span: Span, label: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            primary: Label { span, text: label.into() },
            secondary: Vec::new(),
            notes: Vec::new(),
            help: Vec::new(),
            fixes: Vec::new(),
        }
    }

    /// The diagnostic for a limit of [`limits`](crate::limits): what was met (`"nesting of brackets and blocks"`, as the
    /// list of limits has it), how much of it, and the limit.
    pub fn over_limit(what: &str, met: impl fmt::Display, limit: impl fmt::Display, span: Span) -> Self {
        Self::new(Code::LimitExceeded, format!("{what}: {met}, the limit is {limit}"), span, "the limit is passed here")
            .help("`parc explain limits` lists every limit")
    }

    /// Adds another place.
    #[must_use]
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Self {
        self.secondary.push(Label { span, text: text.into() });
        self
    }

    /// Adds a fact.
    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }

    /// Adds advice.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help.push(text.into());
        self
    }

    /// Adds a fix of one replacement.
    #[must_use]
    pub fn fix(
        mut self,
        title: impl Into<String>,
        span: Span,
        text: impl Into<String>,
        applicability: Applicability,
    ) -> Self {
        let edits = vec![Edit { span, text: text.into() }];
        self.fixes.push(Fix { title: title.into(), edits, applicability, effect: None });
        self
    }

    /// Adds a fix of several replacements that belong together, to be offered and not applied unasked.
    #[must_use]
    pub fn edits(mut self, title: impl Into<String>, edits: Vec<(Span, String)>) -> Self {
        let edits = edits.into_iter().map(|(span, text)| Edit { span, text }).collect();
        self.fixes.push(Fix { title: title.into(), edits, applicability: Applicability::Unsure, effect: None });
        self
    }
}
