//! Opens the files of a command: one project, one program.

use super::{Common, DiskWorld, Format, Inputs, Outcome, errors};
use crate::diagnostics::{Code, Diagnostic, Severity, Sink, render};
use crate::driver;
use crate::elaborate::Settings;
use crate::hir::{DeclId, Program};
use crate::resolve::RootFile;
use crate::source::{MemoryWorld, ReadError, Sources, Span, World};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A program read from disk.
pub(super) struct Project {
    pub(super) sources: Sources,
    pub(super) program: Program,
    pub(super) sink: Sink,
    pub(super) settings: Settings,
    /// The jobs asked for, in order.
    pub(super) jobs: Vec<DeclId>,
}

/// Reads the files of `inputs` and picks the jobs asked for.
pub(super) fn open(inputs: &Inputs) -> Project {
    open_edited(inputs, &BTreeMap::new())
}

/// The same, with other text in some of the files named: path from the root, text.
pub(super) fn open_edited(inputs: &Inputs, edited: &BTreeMap<PathBuf, String>) -> Project {
    let mut files = inputs.files.clone();
    let mut job = inputs.job.clone();
    if job.is_none()
        && files.len() > 1
        && let Some(last) = files.last()
        && last.extension().is_none()
        && !last.is_file()
    {
        job = Some(last.display().to_string());
        files.pop();
    }
    let mut sources = Sources::new();
    let mut sink = Sink::new();
    let world: Box<dyn World> = match DiskWorld::new(&folder(&files)) {
        Ok(w) => Box::new(Edited { disk: w, edited }),
        Err(_) => Box::new(MemoryWorld::default()),
    };
    let roots: Vec<_> = files.iter().map(|f| RootFile { shown: f.display().to_string(), path: absolute(f) }).collect();
    let program = driver::front(&mut sources, world.as_ref(), &roots, &mut sink);
    let jobs = pick(&program, job.as_deref(), &mut sink);
    let mut settings = Settings::default();
    for given in &inputs.set {
        match given {
            super::Setting::Number(name, value) => settings.values.push((name.clone(), *value)),
            super::Setting::Word(name, text) => settings.words.push((name.clone(), text.clone())),
        }
    }
    Project { sources, program, sink, settings, jobs }
}

/// The disk with other text in some files.
struct Edited<'a> {
    disk: DiskWorld,
    edited: &'a BTreeMap<PathBuf, String>,
}

impl World for Edited<'_> {
    fn read(&self, path: &Path) -> Result<String, ReadError> {
        self.edited.get(path).map_or_else(|| self.disk.read(path), |text| Ok(text.clone()))
    }
}

/// The deepest folder above every file: what files may use lies in it.
fn folder(files: &[PathBuf]) -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    let parents = files.iter().map(|f| absolute(f).parent().map(Path::to_path_buf).unwrap_or_default());
    parents.fold(here.clone(), |root, parent| {
        let mut root = root;
        while !parent.starts_with(&root) {
            if !root.pop() {
                break;
            }
        }
        // Outside of where the user stands, the file's own folder is the project.
        if root.components().count() < here.components().count() && files.len() == 1 { parent } else { root }
    })
}

/// `path` from the root, links in its folder followed, so that it can be compared.
pub(super) fn absolute(path: &Path) -> PathBuf {
    let name = path.file_name();
    let parent = match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    };
    match (parent.canonicalize(), name) {
        (Ok(parent), Some(name)) => parent.join(name),
        _ => std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf()),
    }
}

fn pick(program: &Program, name: Option<&str>, sink: &mut Sink) -> Vec<DeclId> {
    let jobs = program.jobs();
    let Some(name) = name else { return jobs };
    let found: Vec<_> = jobs.iter().copied().filter(|j| program.entry(*j).name().text == name).collect();
    if found.is_empty() && !sink.has_errors() {
        let span = program.roots.first().map_or(Span::NOWHERE, |m| Span::new(program.module(*m).file, 0, 0));
        let known: Vec<_> = jobs.iter().map(|j| program.entry(*j).name().text.as_str()).collect();
        sink.error(errors::job_unknown(name, &known, span));
    }
    found
}

impl Project {
    /// Reports that there is nothing to plan, where there is not.
    pub(super) fn require_jobs(&mut self) {
        if self.jobs.is_empty() && !self.sink.has_errors() {
            let span =
                self.program.roots.first().map_or(Span::NOWHERE, |m| Span::new(self.program.module(*m).file, 0, 0));
            self.sink.error(errors::job_missing(span));
        }
    }

    /// Reports that there are several jobs, where there are; `how` says how one is named.
    pub(super) fn require_one_job(&mut self, how: &str) {
        if self.jobs.len() > 1 && !self.sink.has_errors() {
            let names: Vec<_> = self.jobs.iter().map(|j| self.program.entry(*j).name().text.as_str()).collect();
            let span = self.program.entry(self.jobs[1]).name().span;
            self.sink.error(errors::jobs_several(how, &names, span));
        }
    }
}

/// Writes diagnostics to standard error and says what they amount to.
///
/// A fix never edits the library.
pub(super) fn report(sources: &Sources, list: &[Diagnostic], common: &Common) -> Outcome {
    let mut list = list.to_vec();
    for d in &mut list {
        d.fixes.retain(|f| f.edits.iter().all(|e| !sources.file(e.span.file).std));
    }
    let list = &list[..];
    let text = match common.message_format {
        Format::Text => {
            let colour = common.colour(super::stderr_is_terminal());
            let text = render::text(list, sources, colour);
            if list.is_empty() { text } else { format!("{text}{}\n", render::summary(list)) }
        }
        Format::Short => render::short(list, sources),
        Format::Json => render::json(list, sources),
    };
    super::complain(&text);
    outcome(list)
}

/// Claims that fail and what does not fit are one thing, everything else another.
pub(super) fn outcome(list: &[Diagnostic]) -> Outcome {
    let of = |d: &Diagnostic| match (d.code.info().severity, d.code) {
        (Severity::Warning, _) => Outcome::Fine,
        (Severity::Error, Code::DoesNotFit | Code::RequireFailed | Code::ExpectFailed) => Outcome::Short,
        (Severity::Error, _) => Outcome::Wrong,
    };
    list.iter().map(of).max().unwrap_or(Outcome::Fine)
}
