//! `parc import`: files of other programs as `.par`.

use super::project;
use super::{Common, DiskWorld, Outcome};
use crate::diagnostics::{Severity, Sink};
use crate::import;
use crate::source::{Sources, Span, World};
use clap::{Args, Subcommand};
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
pub(super) struct Arguments {
    #[command(subcommand)]
    format: Format,
}

#[derive(Subcommand, Debug)]
enum Format {
    /// A Hugging Face `config.json`, or a folder that holds one: a model of the library's families
    Hf {
        /// The file
        path: PathBuf,
    },
}

pub(super) fn run(args: &Arguments, common: &Common) -> Outcome {
    let Format::Hf { path } = &args.format;
    let (mut sources, mut sink) = (Sources::new(), Sink::new());
    let text = hf(path, &mut sources, &mut sink);
    let outcome = project::report(&sources, &sink.finish(), common);
    if let Some(text) = text {
        super::print(&text);
    }
    outcome
}

fn hf(path: &Path, sources: &mut Sources, sink: &mut Sink) -> Option<String> {
    let file = if path.is_dir() { path.join("config.json") } else { path.to_path_buf() };
    let shown = file.display().to_string();
    match DiskWorld::of_file(&file).and_then(|(world, name)| world.read(&name)) {
        Ok(text) => {
            let id = sources.add(shown, text, false);
            let imported = import::hf(sources, id, &stem(&file));
            for d in imported.said {
                match d.code.info().severity {
                    Severity::Error => drop(sink.error(d)),
                    Severity::Warning => sink.warn(d),
                }
            }
            imported.text
        }
        Err(why) => {
            let id = sources.add(shown.clone(), String::new(), false);
            sink.error(crate::resolve::errors::unreadable(Span::new(id, 0, 0), &shown, &why));
            None
        }
    }
}

/// What the model is called: the file, or for `config.json` the folder it lies in.
fn stem(file: &Path) -> String {
    let stem = |p: &Path| p.file_stem().map(|s| s.to_string_lossy().into_owned());
    let own = stem(file).unwrap_or_default();
    let folder = file.parent().and_then(|p| p.file_name()).map(|s| s.to_string_lossy().into_owned());
    if own == "config" { folder.unwrap_or(own) } else { own }
}
