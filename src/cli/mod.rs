//! One file per command; the only code that prints or touches files.
//!
//! Exit codes: 0 all is well, 1 there are errors, 2 a job does not fit or a claim of it fails.

mod build;
mod cannot;
mod check;
mod diff;
mod doc;
mod errors;
mod evaluator;
mod explain;
mod fix;
mod fmt;
mod import;
mod interrupt;
mod neighbours;
mod new;
pub mod output;
mod plan;
mod project;
mod replace;
mod search;
mod show;
mod simulate;
mod test;
mod world;

pub use world::DiskWorld;

use crate::diagnostics::render;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

/// Checks, predicts and launches parallel layouts of machine-learning jobs.
#[derive(Parser, Debug)]
#[command(name = "parc", version, arg_required_else_help = false, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    common: Common,
}

#[derive(Args, Debug)]
struct Common {
    /// How diagnostics are written
    #[arg(long, global = true, value_enum, default_value_t = Format::Text)]
    message_format: Format,
    /// When to use colours
    #[arg(long, global = true, value_enum, default_value_t = When::Auto)]
    color: When,
}

#[derive(Copy, Clone, PartialEq, Eq, ValueEnum, Debug)]
enum Format {
    /// With the source around them
    Text,
    /// One line each
    Short,
    /// One JSON object a line
    Json,
}

#[derive(Copy, Clone, PartialEq, Eq, ValueEnum, Debug)]
enum When {
    /// On a terminal, unless `NO_COLOR` is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Write a first file: what, which model, which machines
    New(new::Arguments),
    /// Check files: names, units, shapes, meshes, shardings, schedules
    Check(check::Arguments),
    /// Report memory, time and traffic of each job
    Plan(plan::Arguments),
    /// Write a launch plan, or the plan, graph or compiled code behind it
    Build(build::Arguments),
    /// Show what changes between two jobs, or by other values of one: layout, memory, time, traffic, flags
    Diff(diff::Arguments),
    /// Try every open choice and show the best
    Search(search::Arguments),
    /// Show a declaration, evaluated: a device, a cluster, a model with its parameters
    Show(show::Arguments),
    /// Lay out files: blanks, indentation, columns
    Fmt(fmt::Arguments),
    /// Apply the fixes that are safe
    Fix(fix::Arguments),
    /// Show one step in time: what each stage computes, sends and holds
    Simulate(simulate::Arguments),
    /// Compare the closed forms of schedules with what their orders do
    Test(test::Arguments),
    /// Turn a file of another program into one of parc's
    Import(import::Arguments),
    /// Write the documents of a file or of the library
    Doc(doc::Arguments),
    /// Explain a diagnostic code, or a word of this or another tool
    Explain(explain::Arguments),
}

/// Files and what to change in them.
#[derive(Args, Clone, Debug)]
struct Inputs {
    /// Files to read; a last argument that is no file names a job
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Only this job
    #[arg(long, value_name = "NAME")]
    job: Option<String>,
    /// Give a layout parameter, `batch`, `sequence`, `micro_batch` or an open choice a value
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    set: Vec<Setting>,
}

/// What a command ends with.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Outcome {
    /// All is well.
    Fine,
    /// A job does not fit, or a claim of it fails.
    Short,
    /// There are errors.
    Wrong,
}

impl From<Outcome> for ExitCode {
    fn from(o: Outcome) -> Self {
        Self::from(match o {
            Outcome::Fine => 0,
            Outcome::Wrong => 1,
            Outcome::Short => 2,
        })
    }
}

/// What `--set` gives: a number, or the text of a choice.
#[derive(Clone, Debug)]
enum Setting {
    /// A number.
    Number(String, i64),
    /// One of the values of an open choice that is no number.
    Word(String, String),
}

fn setting(text: &str) -> Result<Setting, String> {
    let parts = text.split_once('=').map(|(name, value)| (name.trim(), value.trim()));
    let (name, value) = parts.filter(|(name, _)| !name.is_empty()).ok_or("write NAME=VALUE, such as tp=4")?;
    // `batch=64 seq` may be given as it is written in a file.
    let digits = value.strip_suffix("seq").or_else(|| value.strip_suffix("tok")).unwrap_or(value).trim_end();
    if let Ok(number) = digits.replace('_', "").parse() {
        return Ok(Setting::Number(name.to_string(), number));
    }
    if !value.starts_with(|c: char| c.is_alphabetic() || c == '_') {
        return Err(format!("`{value}` is not a whole number"));
    }
    Ok(Setting::Word(name.to_string(), value.to_string()))
}

/// Runs the command line `args`.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(e) => {
            let code = u8::from(e.use_stderr());
            // A closed pipe is not worth a message.
            let _ = e.print();
            return ExitCode::from(code);
        }
    };
    let common = &cli.common;
    let outcome = match cli.command {
        None => {
            print(FIRST_WORDS);
            Outcome::Fine
        }
        Some(Command::New(a)) => new::run(&a, common),
        Some(Command::Check(a)) => check::run(&a, common),
        Some(Command::Plan(a)) => plan::run(&a, common),
        Some(Command::Build(a)) => build::run(&a, common),
        Some(Command::Diff(a)) => diff::run(&a, common),
        Some(Command::Search(a)) => search::run(&a, common),
        Some(Command::Show(a)) => show::run(&a, common),
        Some(Command::Fmt(a)) => fmt::run(&a, common),
        Some(Command::Fix(a)) => fix::run(&a, common),
        Some(Command::Simulate(a)) => simulate::run(&a, common),
        Some(Command::Test(a)) => test::run(&a, common),
        Some(Command::Import(a)) => import::run(&a, common),
        Some(Command::Doc(a)) => doc::run(&a, common),
        Some(Command::Explain(a)) => explain::run(&a, common),
    };
    if LOST.load(Ordering::Relaxed) { Outcome::Wrong.into() } else { outcome.into() }
}

const FIRST_WORDS: &str = "\
parc checks, predicts and launches parallel layouts of machine-learning jobs.

  parc new                       a first file: what, which model, which machines
  parc check FILE...             is it right: names, units, shapes, mesh, schedule
  parc plan FILE                 memory, time and traffic on one screen
  parc diff FILE --with tp=4     what that changes in memory, time, traffic and flags
  parc search FILE               every open choice tried, the best first
  parc simulate FILE             one step in time: stages, messages, memory
  parc build FILE --target megatron --launcher slurm --out DIR
                                 a launch plan that the framework accepts
  parc explain WORD              a message's code, or a word: E0302, zero1, vpp, mfu

A file to try: parc new try.par --template megatron-dense
`parc --help` lists every command.
";

impl Common {
    fn colour(&self, terminal: bool) -> render::Colour {
        let on = match self.color {
            When::Always => true,
            When::Never => false,
            When::Auto => terminal && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()),
        };
        if on { render::Colour::Always } else { render::Colour::Never }
    }
}

/// Whether standard output was lost, on a full disk for one.
static LOST: AtomicBool = AtomicBool::new(false);

/// Text to standard output. A reader that has gone away is no error.
fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    if let Err(e) = out.write_all(text.as_bytes()).and_then(|()| out.flush())
        && e.kind() != ErrorKind::BrokenPipe
        && !LOST.swap(true, Ordering::Relaxed)
    {
        complain(&format!("error: cannot write to standard output: {e}\n"));
    }
}

/// Text to standard error.
fn complain(text: &str) {
    let mut out = std::io::stderr().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

fn stdout_is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

fn stderr_is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// The command line's own description, for shell completions and documents.
pub fn command() -> clap::Command {
    Cli::command()
}
