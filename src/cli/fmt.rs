//! `parc fmt`: lays files out. A file with mistakes in its syntax is left as it is.

use super::project::{self, absolute};
use super::replace::replace;
use super::{Common, DiskWorld, Outcome};
use crate::diagnostics::Sink;
use crate::format::{Unformatted, format};
use crate::limits::FILE_BYTES;
use crate::resolve::errors::unreadable;
use crate::source::{ReadError, Sources, Span, World as _};
use crate::syntax;
use clap::Args;
use std::io::Read as _;
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// Files to lay out; `-` reads standard input and writes standard output
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Change nothing; list the files that would change, and fail if there are any
    #[arg(long)]
    check: bool,
}

pub(super) fn run(args: &Arguments, common: &Common) -> Outcome {
    args.files.iter().map(|file| one(file, args.check, common)).max().unwrap_or(Outcome::Fine)
}

fn one(file: &Path, check: bool, common: &Common) -> Outcome {
    let piped = file == Path::new("-");
    let shown = if piped { "<stdin>".to_owned() } else { file.display().to_string() };
    let text = if piped { standard_input() } else { disk(file) };
    let (mut sources, mut sink) = (Sources::new(), Sink::new());
    let id = sources.add(shown.clone(), text.as_ref().cloned().unwrap_or_default(), false);
    let text = match text {
        Ok(text) => text,
        Err(why) => {
            sink.error(unreadable(Span::new(id, 0, 0), &shown, &why));
            return project::report(&sources, &sink.finish(), common);
        }
    };
    match format(&text) {
        Ok(laid_out) if check => {
            if laid_out == text {
                return Outcome::Fine;
            }
            super::print(&format!("{shown}\n"));
            Outcome::Wrong
        }
        Ok(laid_out) if piped => {
            super::print(&laid_out);
            Outcome::Fine
        }
        Ok(laid_out) if laid_out == text => Outcome::Fine,
        Ok(laid_out) => match replace(file, &laid_out) {
            Ok(()) => {
                super::print(&format!("laid out {shown}\n"));
                Outcome::Fine
            }
            Err(e) => {
                super::complain(&format!("error: cannot write `{shown}`: {e}\n"));
                Outcome::Wrong
            }
        },
        Err(Unformatted::Mistakes) => {
            syntax::parse(&sources, id, &mut sink);
            project::report(&sources, &sink.finish(), common)
        }
        Err(Unformatted::Changed) => {
            super::complain(&format!(
                "error: a bug in parc: laying out `{shown}` would change what it says; it was left as it is\n"
            ));
            Outcome::Wrong
        }
    }
}

fn disk(file: &Path) -> Result<String, ReadError> {
    let (world, name) = DiskWorld::of_file(&absolute(file))?;
    world.read(&name)
}

fn standard_input() -> Result<String, ReadError> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(FILE_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|e| ReadError::Other(e.to_string()))?;
    if bytes.len() as u64 > FILE_BYTES {
        return Err(ReadError::TooLarge(bytes.len() as u64, FILE_BYTES));
    }
    String::from_utf8(bytes).map_err(|e| ReadError::NotUtf8(e.utf8_error().valid_up_to()))
}
