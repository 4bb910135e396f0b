//! Replaces the text of one file, all or nothing: written beside it and moved into place.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Writes `text` to the file at `path`, which exists. A link is followed, and what it leads to is replaced.
pub(super) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let path = path.canonicalize()?;
    let folder = path.parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf);
    let mut fresh = tempfile::Builder::new().prefix(".parc-").tempfile_in(folder)?;
    fresh.write_all(text.as_bytes())?;
    fresh.as_file().set_permissions(fs::metadata(&path)?.permissions())?;
    fresh.as_file().sync_all()?;
    fresh.persist(&path).map(drop).map_err(|e| e.error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn the_file_keeps_its_permissions_and_a_link_stays_a_link() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("a.par"), folder.path().join("b.par"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("a.par", &link).unwrap();
        replace(&link, "new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        assert!(replace(&folder.path().join("none.par"), "new").is_err());
    }
}
