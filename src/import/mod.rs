//! Other formats to `.par`: the text of a file of theirs in, the text of a program out. It reads no file and evaluates
//! nothing; what a format says that the library has no model for is a diagnostic at its place.

#![expect(clippy::result_large_err, reason = "an import stops at its first error, so its size does not matter")]

mod call;
mod config;
mod deepspeed;
mod errors;
mod hf;
mod json;
mod megatron;
mod options;
mod program;
mod shell;
mod topo;
mod torchtitan;

use crate::diagnostics::Diagnostic;
use crate::source::{FileId, Sources};

/// What came of an import.
#[derive(Debug)]
pub struct Imported {
    /// The program; none where an error was found.
    pub text: Option<String>,
    /// What was said on the way.
    pub said: Vec<Diagnostic>,
}

/// What the command line says that a launch does not.
#[derive(Clone, Default, Debug)]
pub struct Extra {
    /// The model, an expression of the language.
    pub model: Option<String>,
    /// The cluster, an expression of the language.
    pub cluster: Option<String>,
    /// How many devices there are.
    pub devices: Option<u64>,
    /// Tokens of a sequence.
    pub sequence: Option<u64>,
    /// The launch script beside a configuration.
    pub script: Option<FileId>,
}

/// A launch script of Megatron-LM as a program.
pub fn megatron(sources: &Sources, file: FileId, extra: &Extra) -> Imported {
    megatron::program(sources, file, extra)
}

/// A configuration of torchtitan as a program: TOML, or Python where the file's name ends with `.py`.
pub fn torchtitan(sources: &Sources, file: FileId, extra: &Extra) -> Imported {
    torchtitan::program(sources, file, extra)
}

/// A configuration of `DeepSpeed` as a program.
pub fn deepspeed(sources: &Sources, file: FileId, extra: &Extra) -> Imported {
    deepspeed::program(sources, file, extra)
}

/// A Hugging Face `config.json` as a model: one call of a family of the library, bound to a name made of `stem`, the
/// name of the file without its ending.
pub fn hf(sources: &Sources, file: FileId, stem: &str) -> Imported {
    let mut said = Vec::new();
    let text = json::read(file, &sources.file(file).text).and_then(|tree| hf::model(&tree, stem, &mut said));
    match text {
        Ok(text) => Imported { text: Some(text), said },
        Err(d) => {
            said.push(d);
            Imported { text: None, said }
        }
    }
}

/// Saved output of `nvidia-smi -q`, `nvidia-smi topo -m` and `ibstat` of one machine as a cluster.
pub fn topo(sources: &Sources, files: &[FileId]) -> Imported {
    let mut said = Vec::new();
    let texts: Vec<_> = files.iter().map(|f| (*f, sources.file(*f).text.as_str())).collect();
    match topo::cluster(&texts, &mut said) {
        Ok(text) => Imported { text: Some(text), said },
        Err(d) => {
            said.push(d);
            Imported { text: None, said }
        }
    }
}
