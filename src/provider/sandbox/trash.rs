//! Directories that are on their way out.
//!
//! Deleting a disk takes as long as it has files. So it is renamed into the trash, which is at
//! once and for all, and emptied by a thread of its own; what a killed daemon left there is taken
//! up at the next start.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::thread;

/// The trash of one data directory.
#[derive(Debug)]
pub struct Trash {
    directory: PathBuf,
    emptier: Sender<PathBuf>,
}

impl Trash {
    /// Opens the trash and goes on emptying it.
    ///
    /// # Errors
    /// When its directory cannot be made or read.
    pub fn open(directory: PathBuf) -> io::Result<Self> {
        super::own_directory(&directory)?;
        let (emptier, doomed) = channel::<PathBuf>();
        thread::Builder::new().name("trash".into()).spawn(move || {
            for path in doomed {
                if let Err(error) = fs::remove_dir_all(&path) {
                    tracing::error!(path = %path.display(), %error, "cannot empty the trash; the next start tries again");
                }
            }
        })?;
        let trash = Self { directory, emptier };
        for entry in fs::read_dir(&trash.directory)? {
            trash.empty(entry?.path());
        }
        Ok(trash)
    }

    /// Takes `path` away, whole.
    ///
    /// # Errors
    /// When it is not there, or on another file system.
    pub fn throw(&self, path: &Path) -> io::Result<()> {
        // A fresh name: the same machine may be deleted, made and deleted again meanwhile.
        let name = format!("{:032x}", crate::clock::entropy());
        let place = self.directory.join(name);
        fs::rename(path, &place)?;
        self.empty(place);
        Ok(())
    }

    fn empty(&self, path: PathBuf) {
        // Without the thread the next start empties it.
        drop(self.emptier.send(path));
    }
}
