//! Where the agent works: the member's root, and its own files below it.
//!
//! Everything here is root's: directories that no user can write. A file in a home is never
//! touched through a `Place` (see `pass::keys`).

use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Longest file of root's that is read whole, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A root file system: the member's own (`/`), or a scratch one in tests.
#[derive(Clone, Debug)]
pub(super) struct Place {
    root: PathBuf,
}

impl Place {
    pub(super) fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// A path of the member, absolute or not, below the root.
    pub(super) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// The text of one of root's files; None if there is none.
    pub(super) fn read(&self, path: impl AsRef<Path>) -> io::Result<Option<String>> {
        let file = match File::open(self.path(path)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        String::from_utf8(bytes).map(Some).map_err(|_| io::ErrorKind::InvalidData.into())
    }

    /// Puts a file in the place of an old one, which keeps its mode and owner; a new one gets
    /// `mode`. Readers see the old or the new text, never a part.
    pub(super) fn replace(&self, path: impl AsRef<Path>, text: &[u8], mode: u32) -> io::Result<()> {
        let path = self.path(path);
        let mut beside = path.clone().into_os_string();
        beside.push(".ringleader");
        drop(fs::remove_file(&beside));
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&beside)?;
        file.write_all(text)?;
        match fs::symlink_metadata(&path) {
            Ok(old) if old.is_file() => {
                std::os::unix::fs::fchown(&file, Some(old.uid()), Some(old.gid()))?;
                file.set_permissions(Permissions::from_mode(old.mode() & 0o7777))?;
            }
            Ok(_) | Err(_) => file.set_permissions(Permissions::from_mode(mode))?,
        }
        fs::rename(&beside, &path)
    }

    /// Like `replace`, but leaves a file alone that has this text already, and makes its
    /// directory (of `directory_mode`) where there is none.
    pub(super) fn settle(&self, path: &str, text: &str, mode: u32, directory_mode: u32) -> io::Result<()> {
        if self.read(path).is_ok_and(|present| present.as_deref() == Some(text)) {
            return Ok(());
        }
        if let Some(directory) = Path::new(path).parent() {
            self.make_directory(directory, directory_mode)?;
        }
        self.replace(path, text.as_bytes(), mode)
    }

    /// Makes a directory and those it lies in, where they are not there.
    pub(super) fn make_directory(&self, path: impl AsRef<Path>, mode: u32) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(mode).create(self.path(path))
    }

    /// Removes a file of root's, if it is there.
    pub(super) fn remove(&self, path: &str) -> io::Result<()> {
        match fs::remove_file(self.path(path)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Whether there is a program of that name that may be executed.
    pub(super) fn has_program(&self, path: impl AsRef<Path>) -> bool {
        fs::metadata(self.path(path)).is_ok_and(|m| m.is_file() && m.mode() & 0o111 != 0)
    }
}
