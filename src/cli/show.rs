//! `parc show`: a declaration, evaluated.

use super::project;
use super::{Common, DiskWorld, Outcome};
use crate::diagnostics::Sink;
use crate::driver;
use crate::emit::show::{Shown, show};
use crate::hir::Entry;
use crate::resolve::RootFile;
use crate::source::{MemoryWorld, Sources, World};
use clap::Args;
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// A name, or a name with its arguments: `H100_SXM`, `DGX_H100(nodes = 4)`, `Llama3_8B`
    name: String,
    /// A file whose declarations are meant, beside the library's
    file: Option<PathBuf>,
    /// Write it as JSON
    #[arg(long)]
    json: bool,
}

/// What `NAME` is bound to in the program made of it.
const SHOWN: &str = "shown";

pub(super) fn run(args: &Arguments, common: &Common) -> Outcome {
    let mut sources = Sources::new();
    let mut sink = Sink::new();
    let shown = find(args, &mut sources, &mut sink);
    let list = sink.finish();
    let outcome = project::report(&sources, &list, common);
    match shown {
        Some(s) if args.json => super::print(&format!("{}\n", s.json())),
        Some(s) => super::print(&s.text()),
        None => {}
    }
    outcome
}

fn find(args: &Arguments, sources: &mut Sources, sink: &mut Sink) -> Option<Shown> {
    let text = match &args.file {
        None => "edition 1\n".to_string(),
        Some(path) => {
            let read = DiskWorld::of_file(path).and_then(|(world, name)| world.read(&name));
            match read {
                Ok(text) => text,
                Err(why) => {
                    let file = sources.add(path.display().to_string(), String::new(), false);
                    let why = crate::resolve::errors::unreadable(
                        crate::source::Span::new(file, 0, 0),
                        &path.display().to_string(),
                        &why,
                    );
                    sink.error(why);
                    return None;
                }
            }
        }
    };
    // The name becomes the last declaration of the file, so that it sees what a declaration there would see.
    let name = args.name.replace(['\n', '\r'], " ");
    let full = format!("{text}\nlet {SHOWN} = {name}\n");
    let file = args
        .file
        .as_ref()
        .map_or_else(|| PathBuf::from("NAME"), |f| f.file_name().map_or_else(PathBuf::new, PathBuf::from));
    let world: Box<dyn World> = match &args.file {
        Some(f) => {
            Box::new(Overlay { file: file.clone(), text: full, rest: DiskWorld::of_file(f).ok().map(|(w, _)| w) })
        }
        None => Box::new(MemoryWorld::new([(file.clone(), full)])),
    };
    let roots = [RootFile { shown: file.display().to_string(), path: file }];
    let program = driver::front(sources, world.as_ref(), &roots, sink);
    if sink.has_errors() {
        return None;
    }
    let module = *program.roots.first()?;
    let entry = program.entries(module).find(|(_, e)| e.name().text == SHOWN && matches!(e, Entry::Let(_)));
    let Some((id, entry)) = entry else {
        let span = program.entries(module).last().map_or(crate::source::Span::NOWHERE, |(_, e)| e.span());
        sink.error(super::errors::nothing_shown(span));
        return None;
    };
    show(&program, sources, id, entry.name().span, sink)
}

/// One file with other text than on disk.
struct Overlay {
    file: PathBuf,
    text: String,
    rest: Option<DiskWorld>,
}

impl World for Overlay {
    fn read(&self, path: &Path) -> Result<String, crate::source::ReadError> {
        if path == self.file {
            return Ok(self.text.clone());
        }
        self.rest.as_ref().map_or(Err(crate::source::ReadError::Missing), |w| w.read(path))
    }
}
