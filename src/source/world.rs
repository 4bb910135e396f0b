//! The one door through which a compilation reads files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Why a file could not be read, in words a user understands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReadError {
    /// No such file.
    Missing,
    /// It is a directory.
    Directory,
    /// It is not text in UTF-8; the byte offset of the first wrong byte.
    NotUtf8(usize),
    /// It is larger than the limit; its size and the limit, in bytes.
    TooLarge(u64, u64),
    /// The path leaves the project's folder, directly or through a link.
    Outside,
    /// The system said something else.
    Other(String),
}

/// Reads the files a compilation asks for.
pub trait World {
    /// The text of the file at `path`.
    fn read(&self, path: &Path) -> Result<String, ReadError>;
}

/// Files held in memory: tests, and editors with unsaved text.
#[derive(Default, Debug)]
pub struct MemoryWorld {
    files: BTreeMap<PathBuf, String>,
}

impl MemoryWorld {
    /// A world with these files.
    pub fn new<P: Into<PathBuf>, T: Into<String>>(files: impl IntoIterator<Item = (P, T)>) -> Self {
        Self { files: files.into_iter().map(|(p, t)| (p.into(), t.into())).collect() }
    }
}

impl World for MemoryWorld {
    fn read(&self, path: &Path) -> Result<String, ReadError> {
        self.files.get(path).cloned().ok_or(ReadError::Missing)
    }
}
