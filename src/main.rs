//! The `parc` command.

fn main() {}
