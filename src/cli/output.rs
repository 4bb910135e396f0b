//! Writes an output folder, all or nothing.
//!
//! Files are written beside the destination and moved into place by one call of the system, so that whoever looks, or kills
//! the process, at any moment finds the earlier output or the new one. A folder that is already there is
//! replaced whole, and only if `parc` wrote it and nothing in it has changed since: a list of its files with
//! their checksums, [`LIST_FILE`], says so. Links are never followed.

use crate::emit::Artifacts;
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// The file that marks a folder as written by `parc`: one line a file, checksum and path.
pub const LIST_FILE: &str = ".parc-files";

/// First line of [`LIST_FILE`].
const LIST_HEADER: &str = "parc-files/1";

/// Largest list that is read back.
const LIST_LIMIT: u64 = 1 << 20;

/// Largest file that is compared; `parc` writes none like it.
const FILE_LIMIT: u64 = 1 << 30;

/// What to do with an earlier output that a person has changed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Edited {
    /// Refuse.
    Keep,
    /// Replace changed files; files that `parc` did not write still stop it.
    Replace,
}

/// Why nothing was written. The destination is as it was, except after [`OutputError::Lost`].
#[derive(Debug)]
pub enum OutputError {
    /// The path names no folder that could be made: `/`, `..`, or an empty path.
    NoName(PathBuf),
    /// A file to write would lie outside the folder, or has the name of the list.
    BadName(PathBuf),
    /// The destination is a link.
    Link(PathBuf),
    /// The destination is a file or something else that is not a folder.
    NotFolder(PathBuf),
    /// The destination is a folder `parc` did not write.
    Foreign(PathBuf),
    /// The folder holds a file that `parc` did not write.
    Stranger(PathBuf),
    /// A file in the folder has changed since `parc` wrote it.
    Changed(PathBuf),
    /// The system refused: what was tried, where, and what it said.
    System(&'static str, PathBuf, io::Error),
    /// The earlier output could neither be replaced nor put back; it is kept in the second folder.
    Lost(PathBuf, PathBuf, io::Error),
}

impl fmt::Display for OutputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoName(p) => write!(f, "`{}` does not name a folder", p.display()),
            Self::BadName(p) => write!(f, "`{}` is not a path inside the output folder", p.display()),
            Self::Link(p) => write!(f, "`{}` is a link, which is not followed", p.display()),
            Self::NotFolder(p) => write!(f, "`{}` is not a folder", p.display()),
            Self::Foreign(p) => write!(f, "`{}` exists and was not written by parc", p.display()),
            Self::Stranger(p) => write!(f, "`{}` is in the output folder and was not written by parc", p.display()),
            Self::Changed(p) => write!(f, "`{}` has changed since parc wrote it", p.display()),
            Self::System(what, p, e) => write!(f, "cannot {what} `{}`: {e}", p.display()),
            Self::Lost(p, kept, e) => {
                write!(f, "cannot replace `{}`: {e}; the earlier output is in `{}`", p.display(), kept.display())
            }
        }
    }
}

/// Writes `artifacts` as the folder `dir`.
pub fn write(artifacts: &Artifacts, dir: &Path, edited: Edited) -> Result<(), OutputError> {
    for path in artifacts.keys() {
        let inside = path.components().all(|c| matches!(c, Component::Normal(_))) && path.file_name().is_some();
        let inside = inside && path.to_str().is_some_and(|p| !p.contains(['\n', '\r']));
        if !inside || path == Path::new(LIST_FILE) {
            return Err(OutputError::BadName(path.clone()));
        }
    }
    let name = dir.file_name().ok_or_else(|| OutputError::NoName(dir.into()))?;
    let parent = match dir.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    };
    // Built anew, because a slash at the end would follow a link.
    let dir = parent.join(name);
    let replaces = check_destination(&dir, edited)?;
    fs::create_dir_all(parent).map_err(system("make", parent))?;
    let work = tempfile::Builder::new().prefix(".parc-").tempdir_in(parent).map_err(system("write in", parent))?;
    let fresh = work.path().join("new");
    write_files(artifacts, &fresh)?;
    if !replaces {
        return fs::rename(&fresh, &dir).map_err(system("write", &dir));
    }
    // The earlier output is then in the working folder, and goes with it.
    if exchange(&fresh, &dir) {
        return Ok(());
    }
    let old = work.path().join("old");
    fs::rename(&dir, &old).map_err(system("replace", &dir))?;
    if let Err(error) = fs::rename(&fresh, &dir) {
        if fs::rename(&old, &dir).is_ok() {
            return Err(OutputError::System("replace", dir, error));
        }
        let kept = work.keep().join("old");
        return Err(OutputError::Lost(dir, kept, error));
    }
    Ok(())
}

/// Puts each of two folders in the other's place at once; not every file system can.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn exchange(a: &Path, b: &Path) -> bool {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE).is_ok()
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn exchange(_: &Path, _: &Path) -> bool {
    false
}

/// Whether something is at `dir` that may be replaced.
fn check_destination(dir: &Path, edited: Edited) -> Result<bool, OutputError> {
    let meta = match fs::symlink_metadata(dir) {
        Ok(meta) => meta,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(e) => return Err(OutputError::System("look at", dir.into(), e)),
    };
    if meta.is_symlink() {
        return Err(OutputError::Link(dir.into()));
    }
    if !meta.is_dir() {
        return Err(OutputError::NotFolder(dir.into()));
    }
    let mut found = Vec::new();
    let Some(listed) = read_list(dir)? else {
        let empty = fs::read_dir(dir).map_err(system("read", dir))?.next().is_none();
        return if empty { Ok(true) } else { Err(OutputError::Foreign(dir.into())) };
    };
    walk(dir, Path::new(""), &listed, &mut found)?;
    if edited == Edited::Replace {
        return Ok(true);
    }
    for path in found {
        let file = dir.join(&path);
        let size = fs::metadata(&file).map_err(system("read", &file))?.len();
        let same = size <= FILE_LIMIT && {
            let bytes = fs::read(&file).map_err(system("read", &file))?;
            listed.get(&path) == Some(&checksum(&bytes))
        };
        if !same {
            return Err(OutputError::Changed(file));
        }
    }
    Ok(true)
}

/// Checksums by path from the folder's list; `None` if there is no list of ours.
fn read_list(dir: &Path) -> Result<Option<BTreeMap<PathBuf, u64>>, OutputError> {
    let path = dir.join(LIST_FILE);
    match fs::symlink_metadata(&path) {
        Ok(meta) if meta.is_file() && meta.len() <= LIST_LIMIT => {}
        Ok(_) => return Ok(None),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(OutputError::System("look at", path, e)),
    }
    let Ok(text) = fs::read_to_string(&path) else { return Ok(None) };
    let mut lines = text.lines();
    if lines.next() != Some(LIST_HEADER) {
        return Ok(None);
    }
    let entry = |line: &str| {
        let (sum, path) = line.split_once(' ')?;
        Some((PathBuf::from(path), u64::from_str_radix(sum, 16).ok()?))
    };
    Ok(lines.map(entry).collect())
}

/// Collects the files below `dir`; anything not in `listed`, or not a plain file or folder, is an error.
fn walk(
    dir: &Path,
    below: &Path,
    listed: &BTreeMap<PathBuf, u64>,
    found: &mut Vec<PathBuf>,
) -> Result<(), OutputError> {
    let here = dir.join(below);
    for entry in fs::read_dir(&here).map_err(system("read", &here))? {
        let entry = entry.map_err(system("read", &here))?;
        let path = below.join(entry.file_name());
        let kind = entry.file_type().map_err(system("look at", &entry.path()))?;
        if kind.is_dir() && listed.keys().any(|l| l.starts_with(&path)) {
            // No deeper than the deepest listed path.
            walk(dir, &path, listed, found)?;
        } else if kind.is_file() && listed.contains_key(&path) {
            found.push(path);
        } else if !(kind.is_file() && path == Path::new(LIST_FILE)) {
            return Err(OutputError::Stranger(entry.path()));
        }
    }
    Ok(())
}

/// Writes every file and the list into the new folder `dir`.
fn write_files(artifacts: &Artifacts, dir: &Path) -> Result<(), OutputError> {
    fs::create_dir(dir).map_err(system("make", dir))?;
    let mut list = format!("{LIST_HEADER}\n");
    for (path, artifact) in artifacts {
        let file = dir.join(path);
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder).map_err(system("make", folder))?;
        }
        fs::write(&file, &artifact.bytes).map_err(system("write", &file))?;
        if artifact.executable {
            make_executable(&file).map_err(system("write", &file))?;
        }
        let _ = writeln!(list, "{:016x} {}", checksum(&artifact.bytes), path.display());
    }
    let file = dir.join(LIST_FILE);
    fs::write(&file, list).map_err(system("write", &file))
}

/// Lets those run a file who may read it.
#[cfg(unix)]
fn make_executable(file: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mut permissions = fs::metadata(file)?.permissions();
    let mode = permissions.mode();
    permissions.set_mode(mode | (mode & 0o444) >> 2);
    fs::set_permissions(file, permissions)
}

#[cfg(not(unix))]
fn make_executable(_: &Path) -> io::Result<()> {
    Ok(())
}

/// FNV-1a of 64 bits: tells a changed file from the one written, not a forged one.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3))
}

fn system<'a>(what: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> OutputError + 'a {
    move |e| OutputError::System(what, path.into(), e)
}
