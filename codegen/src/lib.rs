//! The LLVM back end: a serialised expression graph in, a native kernel out.
//!
//! It is a library of its own, opened when first needed, because linking LLVM into the compiler would cost every
//! command its loading time. `abi` is the border: a few C functions over the bytes of [`parc::expr::wire`]. `ir` says
//! what each operation is in LLVM's terms, `jit` compiles it for this machine. Built without the feature `llvm`, the
//! library is there but compiles nothing.

pub mod abi;
#[cfg(feature = "llvm")]
mod ir;
#[cfg(feature = "llvm")]
mod jit;
#[cfg(not(feature = "llvm"))]
mod none;

#[cfg(feature = "llvm")]
pub use jit::Kernel;
#[cfg(not(feature = "llvm"))]
pub use none::Kernel;
