//! One daemon for a directory: an exclusive lock that the kernel lets go when the process ends.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use super::StoreError;

/// Held as long as it lives.
#[derive(Debug)]
pub(super) struct DirectoryLock {
    _file: File,
}

impl DirectoryLock {
    /// Takes the lock of `dir` and leaves this process's id in it for whoever comes second.
    pub(super) fn take(dir: &Path) -> Result<Self, StoreError> {
        let path = dir.join("lock");
        let failed = |source| StoreError::Directory { doing: "write", path: path.clone(), source };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let mut holder = String::new();
                // Who holds it is a courtesy: an unreadable answer is none.
                let pid = file.read_to_string(&mut holder).ok().and_then(|_| holder.trim().parse().ok());
                return Err(StoreError::InUse { dir: dir.to_owned(), pid });
            }
            Err(errno) => return Err(failed(errno.into())),
        }
        file.set_len(0).and_then(|()| file.rewind()).map_err(failed)?;
        writeln!(file, "{}", std::process::id()).map_err(failed)?;
        Ok(Self { _file: file })
    }
}
