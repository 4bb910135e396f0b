//! What is left of the back end without LLVM: a refusal.

use std::convert::Infallible;

/// A kernel there cannot be.
pub struct Kernel {
    never: Infallible,
}

impl Kernel {
    /// Always an error.
    pub fn compile(_bytes: &[u8]) -> Result<Self, String> {
        Err("built without LLVM".to_owned())
    }

    /// Always an error.
    pub fn ir(_bytes: &[u8]) -> Result<String, String> {
        Err("built without LLVM".to_owned())
    }

    /// Always an error.
    pub fn object(_bytes: &[u8], _symbol: &str, _schema: &str) -> Result<(Vec<u8>, String), String> {
        Err("built without LLVM".to_owned())
    }

    pub(crate) fn evaluate(&self, _n: i64, _columns: *const *const f64, _out: *const *mut f64) -> i32 {
        match self.never {}
    }
}
