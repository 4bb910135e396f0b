//! The `parc` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    parc::cli::run(std::env::args_os())
}
