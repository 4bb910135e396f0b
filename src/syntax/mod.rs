//! Text to syntax tree: tokens, the newline rule, the grammar, recovery.
//!
//! [`parse`] never fails: what could not be read became `Error` nodes, each with a diagnostic. In order:
//! `lexer` (text to tokens), `brackets` and `openers` (every bracket gets its partner), `separate` (the newline rule), `parse`
//! (each entry through the grammar), `recover`, `meant` and `foreign` (what to do where the grammar stops). [`dump`] prints a tree.

pub mod ast;
mod brackets;
mod build;
pub mod dump;
mod errors;
mod expected;
mod foreign;
mod infix;
mod lexer;
mod literal;
mod meant;
mod openers;
mod parse;
mod recover;
mod report;
mod separate;
mod token;

pub(crate) use literal::split_unit;
pub use parse::parse;
pub(crate) use parse::words;
pub(crate) use separate::ends;
pub(crate) use token::Tok;

/// Whether `word` is reserved: it names nothing of the user's.
pub fn is_reserved(word: &str) -> bool {
    token::Tok::reserved(word)
}

/// The parser that lalrpop makes of `grammar/parc.lalrpop`.
#[allow(
    clippy::all,
    clippy::pedantic,
    clippy::panic,
    clippy::unwrap_used,
    clippy::allow_attributes_without_reason,
    unused,
    unreachable_pub,
    reason = "generated code"
)]
mod grammar {
    include!(concat!(env!("OUT_DIR"), "/parc.rs"));
}
