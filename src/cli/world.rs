//! The disk: the only place where a compilation opens a file. Regular files inside one folder, of bounded size.

use crate::limits::FILE_BYTES;
use crate::source::{ReadError, World};
use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read as _};
use std::path::{Component, Path, PathBuf};

/// Files below the project's folder.
#[derive(Debug)]
pub struct DiskWorld {
    /// Canonical, so that links can be told apart from what they lead to.
    root: PathBuf,
}

impl DiskWorld {
    /// The world of the folder `root`; the current folder where `root` is empty.
    pub fn new(root: &Path) -> Result<Self, ReadError> {
        let root = if root.as_os_str().is_empty() { Path::new(".") } else { root };
        let canonical = root.canonicalize().map_err(|e| because(&e))?;
        if canonical.is_dir() { Ok(Self { root: canonical }) } else { Err(ReadError::Missing) }
    }

    /// The world of the folder that holds `file`, and the name to [`read`](World::read) `file` by in it.
    pub fn of_file(file: &Path) -> Result<(Self, PathBuf), ReadError> {
        let name = file.file_name().ok_or(ReadError::Directory)?;
        Ok((Self::new(file.parent().unwrap_or(Path::new("")))?, PathBuf::from(name)))
    }

    /// The project's folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where `path`, relative to the root or below it, leads.
    fn locate(&self, path: &Path) -> Result<PathBuf, ReadError> {
        // `..` is judged as written, before any link is followed: `a/../../b` leaves the folder whatever `a` is.
        let mut depth = 0_usize;
        for part in path.strip_prefix(&self.root).unwrap_or(path).components() {
            match part {
                Component::Normal(_) => depth += 1,
                Component::CurDir => {}
                Component::ParentDir => depth = depth.checked_sub(1).ok_or(ReadError::Outside)?,
                Component::RootDir | Component::Prefix(_) => return Err(ReadError::Outside),
            }
        }
        let found = self.root.join(path).canonicalize().map_err(|e| because(&e))?;
        if found.starts_with(&self.root) { Ok(found) } else { Err(ReadError::Outside) }
    }
}

impl World for DiskWorld {
    fn read(&self, path: &Path) -> Result<String, ReadError> {
        let found = self.locate(path)?;
        // Asked before opening: opening a pipe that nobody writes would wait for ever.
        regular(&found.metadata().map_err(|e| because(&e))?)?;
        let file = File::open(&found).map_err(|e| because(&e))?;
        // And of the file that was opened, should it have been replaced meanwhile.
        let about = file.metadata().map_err(|e| because(&e))?;
        regular(&about)?;
        if about.len() > FILE_BYTES {
            return Err(ReadError::TooLarge(about.len(), FILE_BYTES));
        }
        let mut bytes = Vec::new();
        file.take(FILE_BYTES + 1).read_to_end(&mut bytes).map_err(|e| because(&e))?;
        if bytes.len() as u64 > FILE_BYTES {
            return Err(ReadError::TooLarge(bytes.len() as u64, FILE_BYTES));
        }
        String::from_utf8(bytes).map_err(|e| ReadError::NotUtf8(e.utf8_error().valid_up_to()))
    }
}

fn regular(about: &Metadata) -> Result<(), ReadError> {
    if about.is_dir() {
        Err(ReadError::Directory)
    } else if about.is_file() {
        Ok(())
    } else {
        Err(ReadError::Other("it is not a regular file".into()))
    }
}

fn because(error: &std::io::Error) -> ReadError {
    if error.kind() == ErrorKind::NotFound || error.kind() == ErrorKind::NotADirectory {
        ReadError::Missing
    } else if error.kind() == ErrorKind::PermissionDenied {
        ReadError::Other("this user may not read it".into())
    } else {
        ReadError::Other(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A project `p` with files, beside a file `secret` that is not its own.
    fn project() -> (tempfile::TempDir, DiskWorld) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("p");
        fs::create_dir_all(root.join("lib")).unwrap();
        fs::write(root.join("a.par"), "edition 1\n").unwrap();
        fs::write(root.join("latin.par"), b"// caf\xe9").unwrap();
        fs::write(dir.path().join("secret"), "x").unwrap();
        let world = DiskWorld::new(&root).unwrap();
        (dir, world)
    }

    fn read(world: &DiskWorld, path: &str) -> Result<String, ReadError> {
        world.read(Path::new(path))
    }

    #[test]
    fn reads_files_below_the_root() {
        let (dir, world) = project();
        assert_eq!(read(&world, "a.par"), Ok("edition 1\n".into()));
        assert_eq!(read(&world, "lib/../a.par"), Ok("edition 1\n".into()));
        assert_eq!(world.read(&world.root().join("a.par")), Ok("edition 1\n".into()));
        let (other, name) = DiskWorld::of_file(&dir.path().join("p/a.par")).unwrap();
        assert_eq!(other.read(&name), Ok("edition 1\n".into()));
    }

    #[test]
    fn says_what_is_wrong() {
        let (dir, world) = project();
        assert_eq!(read(&world, "b.par"), Err(ReadError::Missing));
        assert_eq!(read(&world, "a.par/b.par"), Err(ReadError::Missing));
        assert_eq!(read(&world, "lib"), Err(ReadError::Directory));
        assert_eq!(read(&world, "latin.par"), Err(ReadError::NotUtf8(6)));
        assert!(matches!(DiskWorld::new(&dir.path().join("q")), Err(ReadError::Missing)));
        assert!(matches!(read(&world, "nul\0"), Err(ReadError::Other(_))));
    }

    #[test]
    fn a_file_over_the_limit_is_not_read() {
        let (_dir, world) = project();
        let file = File::create(world.root().join("huge.par")).unwrap();
        file.set_len(FILE_BYTES).unwrap();
        assert_eq!(read(&world, "huge.par").map(|t| t.len() as u64), Ok(FILE_BYTES));
        file.set_len(1 << 40).unwrap();
        assert_eq!(read(&world, "huge.par"), Err(ReadError::TooLarge(1 << 40, FILE_BYTES)));
    }

    #[test]
    fn nothing_outside_is_read() {
        let (dir, world) = project();
        assert_eq!(read(&world, "../secret"), Err(ReadError::Outside));
        assert_eq!(read(&world, "lib/../../p/a.par"), Err(ReadError::Outside));
        assert_eq!(read(&world, "/etc/passwd"), Err(ReadError::Outside));
        assert_eq!(world.read(&dir.path().join("secret")), Err(ReadError::Outside));
    }

    #[cfg(unix)]
    #[test]
    fn links_out_and_devices_are_refused() {
        use std::os::unix::fs::symlink;
        let (dir, world) = project();
        symlink(dir.path().join("secret"), world.root().join("out.par")).unwrap();
        symlink(dir.path(), world.root().join("up")).unwrap();
        symlink("a.par", world.root().join("in.par")).unwrap();
        symlink("loop.par", world.root().join("loop.par")).unwrap();
        assert_eq!(read(&world, "out.par"), Err(ReadError::Outside));
        assert_eq!(read(&world, "up/secret"), Err(ReadError::Outside));
        assert_eq!(read(&world, "in.par"), Ok("edition 1\n".into()));
        assert!(matches!(read(&world, "loop.par"), Err(ReadError::Other(_))));
        let pipe = world.root().join("pipe.par");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert_eq!(read(&world, "pipe.par"), Err(ReadError::Other("it is not a regular file".into())));
        let (devices, name) = DiskWorld::of_file(Path::new("/dev/zero")).unwrap();
        assert_eq!(devices.read(&name), Err(ReadError::Other("it is not a regular file".into())));
    }
}
