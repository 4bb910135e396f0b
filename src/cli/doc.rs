//! `parc doc`: pages of what is declared, in a file or in the library.

use super::output::{self, Edited};
use super::{Common, DiskWorld, Outcome, project};
use crate::diagnostics::Sink;
use crate::doc::{self, Book};
use crate::driver;
use crate::emit::Artifacts;
use crate::resolve::RootFile;
use crate::source::{FileId, MemoryWorld, Sources, World, library_files};
use crate::syntax::{self, ast};
use clap::Args;
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// A file, or a part of the library: `std::hardware`, `std::models::Llama3_8B`; all of the library where left out
    what: Option<String>,
    /// Write HTML pages into this folder
    #[arg(long, value_name = "DIR", conflicts_with = "markdown")]
    html: Option<PathBuf>,
    /// Write Markdown pages into this folder
    #[arg(long, value_name = "DIR")]
    markdown: Option<PathBuf>,
    /// Replace pages that were edited
    #[arg(long)]
    force: bool,
}

pub(super) fn run(args: &Arguments, common: &Common) -> Outcome {
    let (mut sources, mut sink) = (Sources::new(), Sink::new());
    let book = match args.what.as_deref() {
        None => library(&mut sources, &mut sink, ""),
        Some(path) if path == "std" || path.starts_with("std::") => {
            library(&mut sources, &mut sink, path.trim_start_matches("std").trim_start_matches("::"))
        }
        Some(file) => of_file(Path::new(file), &mut sources, &mut sink),
    };
    let list = sink.finish();
    let outcome = project::report(&sources, &list, common);
    let Some(book) = book else {
        if list.is_empty() {
            let what = args.what.as_deref().unwrap_or_default();
            super::complain(&format!("error: the library has no `{}`\n`parc doc` lists it\n", what.escape_debug()));
        }
        return Outcome::Wrong;
    };
    let written = match (&args.html, &args.markdown) {
        (Some(dir), _) => write(&doc::html(&book), dir, "index.html", args.force),
        (None, Some(dir)) => write(&doc::markdown(&book), dir, "index.md", args.force),
        (None, None) => {
            let pages: Vec<_> = book.pages.iter().map(|p| doc::markdown_page(&book, p)).collect();
            super::print(&pages.join("\n"));
            Outcome::Fine
        }
    };
    outcome.max(written)
}

fn write(pages: &Artifacts, dir: &Path, first: &str, force: bool) -> Outcome {
    let edited = if force { Edited::Replace } else { Edited::Keep };
    match output::write(pages, dir, edited) {
        Ok(()) => {
            super::print(&format!("wrote {} pages, {}\n", pages.len(), dir.join(first).display()));
            Outcome::Fine
        }
        Err(why) => {
            super::complain(&format!("error: {why}\n"));
            Outcome::Wrong
        }
    }
}

/// The library's files of `path`: all, those of a group, or the one that declares a name.
fn library(sources: &mut Sources, sink: &mut Sink, path: &str) -> Option<Book> {
    let (group, name) = path.split_once("::").map_or((path, None), |(g, n)| (g, Some(n)));
    let mut files: Vec<(FileId, ast::File)> = Vec::new();
    for (at, text) in library_files() {
        if group.is_empty() || at.split(['/', '.']).next() == Some(group) {
            let file = sources.add(format!("std/{at}"), text.to_string(), true);
            files.push((file, syntax::parse(sources, file, sink)));
        }
    }
    let title = if path.is_empty() { "The standard library".to_string() } else { format!("std::{path}") };
    let book = doc::build(&title, sources, &files, name);
    Some(book).filter(|b| !b.pages.is_empty())
}

/// A file of the user's, checked first: what has mistakes is not documented.
fn of_file(path: &Path, sources: &mut Sources, sink: &mut Sink) -> Option<Book> {
    let shown = path.display().to_string();
    let (world, name): (Box<dyn World>, PathBuf) = match DiskWorld::of_file(path) {
        Ok((world, name)) => (Box::new(world), name),
        Err(_) => (Box::new(MemoryWorld::default()), path.to_path_buf()),
    };
    let roots = [RootFile { shown: shown.clone(), path: name }];
    let program = driver::front(sources, world.as_ref(), &roots, sink);
    let module = program.roots.first().filter(|_| !sink.has_errors())?;
    let module = program.module(*module);
    Some(doc::build(&shown, sources, &[(module.file, module.ast.clone())], None))
}
