//! One file per command; the only code that prints or touches files.

mod world;

pub use world::DiskWorld;
pub mod output;
