//! `parc import`: files of other programs as `.par`.

use super::project;
use super::{Common, DiskWorld, Outcome};
use crate::diagnostics::{Severity, Sink};
use crate::import::{self, Extra, Imported};
use crate::source::{FileId, Sources, Span, World};
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
    /// Saved output of `nvidia-smi -q`, `nvidia-smi topo -m` and `ibstat` of one machine: a cluster of such nodes
    Topo {
        /// The files, in any order
        #[arg(required = true)]
        paths: Vec<PathBuf>,
    },
    /// A launch script of Megatron-LM's `pretrain_gpt.py`, or a file of its options
    Megatron(Launch),
    /// A configuration of torchtitan: TOML, or a Python module
    Torchtitan(Launch),
    /// A JSON configuration of `DeepSpeed`
    Deepspeed(Launch),
}

/// A launch, and what it does not say itself.
#[derive(Args, Debug)]
struct Launch {
    /// The file
    path: PathBuf,
    /// The model, as a file would name it: `Llama3_8B`
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// The cluster, as a file would name it: `DGX_H100(nodes = 4)`
    #[arg(long, value_name = "CLUSTER")]
    cluster: Option<String>,
    /// How many devices there are, where the file does not say
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    devices: Option<u64>,
    /// Tokens of a sequence
    #[arg(long, value_name = "TOKENS")]
    sequence: Option<u64>,
    /// The launch script beside the file; it is read, not run
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
}

pub(super) fn run(args: &Arguments, common: &Common) -> Outcome {
    let (mut sources, mut sink) = (Sources::new(), Sink::new());
    let text = match &args.format {
        Format::Hf { path } => hf(path, &mut sources, &mut sink),
        Format::Topo { paths } => topo(paths, &mut sources, &mut sink),
        Format::Megatron(l) => launch(l, import::megatron, &mut sources, &mut sink),
        Format::Torchtitan(l) => launch(l, import::torchtitan, &mut sources, &mut sink),
        Format::Deepspeed(l) => launch(l, import::deepspeed, &mut sources, &mut sink),
    };
    let outcome = project::report(&sources, &sink.finish(), common);
    if let Some(text) = text {
        super::print(&text);
    }
    outcome
}

fn hf(path: &Path, sources: &mut Sources, sink: &mut Sink) -> Option<String> {
    let file = if path.is_dir() { path.join("config.json") } else { path.to_path_buf() };
    let id = read(&file, sources, sink)?;
    told(import::hf(sources, id, &stem(&file)), sink)
}

fn topo(paths: &[PathBuf], sources: &mut Sources, sink: &mut Sink) -> Option<String> {
    let files = paths.iter().map(|p| read(p, sources, sink)).collect::<Option<Vec<_>>>()?;
    told(import::topo(sources, &files), sink)
}

/// What imports a launch.
type Import = fn(&Sources, FileId, &Extra) -> Imported;

fn launch(l: &Launch, import: Import, sources: &mut Sources, sink: &mut Sink) -> Option<String> {
    let file = read(&l.path, sources, sink)?;
    let script = match &l.script {
        Some(path) => Some(read(path, sources, sink)?),
        None => None,
    };
    let Launch { model, cluster, devices, sequence, .. } = l;
    let extra =
        Extra { model: model.clone(), cluster: cluster.clone(), devices: *devices, sequence: *sequence, script };
    told(import(sources, file, &extra), sink)
}

/// A file of another program; `None` if it cannot be read, which is reported.
fn read(file: &Path, sources: &mut Sources, sink: &mut Sink) -> Option<FileId> {
    let shown = file.display().to_string();
    match DiskWorld::of_file(file).and_then(|(world, name)| world.read(&name)) {
        Ok(text) => Some(sources.add(shown, text, false)),
        Err(why) => {
            let id = sources.add(shown.clone(), String::new(), false);
            sink.error(crate::resolve::errors::unreadable(Span::new(id, 0, 0), &shown, &why));
            None
        }
    }
}

/// The text of an import; what was said on the way goes to the sink.
fn told(imported: import::Imported, sink: &mut Sink) -> Option<String> {
    for d in imported.said {
        match d.code.info().severity {
            Severity::Error => drop(sink.error(d)),
            Severity::Warning => sink.warn(d),
        }
    }
    imported.text
}

/// What the model is called: the file, or for `config.json` the folder it lies in.
fn stem(file: &Path) -> String {
    let stem = |p: &Path| p.file_stem().map(|s| s.to_string_lossy().into_owned());
    let own = stem(file).unwrap_or_default();
    let folder = file.parent().and_then(|p| p.file_name()).map(|s| s.to_string_lossy().into_owned());
    if own == "config" { folder.unwrap_or(own) } else { own }
}
