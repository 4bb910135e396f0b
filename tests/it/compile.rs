//! A text compiled from start to end, in memory: the one door of the tests that look at numbers.

use parc::analyse::Compiled;
use parc::diagnostics::{Code, Diagnostic, Sink, render};
use parc::driver;
use parc::elaborate::Settings;
use parc::emit::assemble::{self, Ranks};
use parc::emit::plan::Plan;
use parc::hir::{DeclId, Program};
use parc::resolve::RootFile;
use parc::source::{MemoryWorld, Sources};

/// A checked program, the text named `main.par`.
pub(crate) struct Checked {
    pub(crate) sources: Sources,
    pub(crate) program: Program,
    pub(crate) said: Vec<Diagnostic>,
}

/// Checks `text`.
pub(crate) fn check(text: &str) -> Checked {
    let world = MemoryWorld::new([("main.par", text)]);
    let (mut sources, mut sink) = (Sources::new(), Sink::new());
    let root = RootFile { shown: "main.par".into(), path: "main.par".into() };
    let program = driver::front(&mut sources, &world, &[root], &mut sink);
    Checked { sources, program, said: sink.finish() }
}

/// Checks `text`, which must be without a diagnostic.
#[track_caller]
pub(crate) fn clean(text: &str) -> Checked {
    let checked = check(text);
    assert!(checked.said.is_empty(), "{}\n{text}", render::short(&checked.said, &checked.sources));
    checked
}

/// Values set as by `--set`.
pub(crate) fn settings(values: &[(&str, i64)]) -> Settings {
    let values = values.iter().map(|(n, v)| ((*n).to_string(), *v)).collect();
    Settings { values, ..Settings::default() }
}

impl Checked {
    /// The first job.
    pub(crate) fn job(&self) -> DeclId {
        self.program.jobs()[0]
    }

    /// Compiles the first job; what was said where it is wrong. A large bubble is a warning, and no mistake of a test.
    pub(crate) fn attempt(&self, values: &[(&str, i64)]) -> Result<Compiled<'_>, String> {
        let mut sink = Sink::new();
        let found = driver::compile(&self.program, &self.sources, self.job(), &settings(values), &mut sink);
        let said = sink.finish();
        let mild = said.iter().all(|d| d.code == Code::BubbleLarge);
        match found {
            Some(compiled) if mild => Ok(compiled),
            _ => Err(render::short(&said, &self.sources)),
        }
    }

    /// Compiles the first job, which must be right.
    #[track_caller]
    pub(crate) fn compiled(&self, values: &[(&str, i64)]) -> Compiled<'_> {
        self.attempt(values).unwrap_or_else(|said| panic!("{values:?}: {said}"))
    }

    /// The plan of the first job as launchers read it: every rank and group.
    #[track_caller]
    pub(crate) fn launched(&self, values: &[(&str, i64)]) -> Plan {
        let mut compiled = self.compiled(values);
        assemble::plan(&mut compiled, &self.program, &self.sources, &settings(values), &[], Ranks::Listed)
    }

    /// The plan of the first job as reports read it: no ranks, no claims.
    #[track_caller]
    pub(crate) fn report(&self, values: &[(&str, i64)]) -> Plan {
        let mut compiled = self.compiled(values);
        assemble::plan(&mut compiled, &self.program, &self.sources, &settings(values), &[], Ranks::Left)
    }
}
