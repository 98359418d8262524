//! One daemon for a directory: an exclusive lock that the kernel lets go when the process ends.
//!
//! A daemon that was killed may still be dying when the next one starts: until its last thread has
//! come back from the disk, its files are open and locked. So a held lock is waited for a little.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use super::StoreError;

/// How long a holder may take to end.
const PATIENCE: Duration = Duration::from_secs(3);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(5);

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
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut file = options.open(&path).map_err(failed)?;
        let until = Instant::now() + PATIENCE;
        if !lock_until(&file, until).map_err(failed)? {
            return Err(StoreError::InUse { dir: dir.to_owned(), pid: holder(&mut file) });
        }
        wait_for_sled(dir, until)?;
        // Who holds it is a courtesy: on a full disk it is left out.
        if let Err(error) = sign(&mut file) {
            tracing::debug!(%error, "the lock bears no process id");
        }
        Ok(Self { _file: file })
    }
}

/// A dying process closes its files one after the other: sled's own lock on its log may outlast
/// ours by a moment, and sled does not wait.
fn wait_for_sled(dir: &Path, until: Instant) -> Result<(), StoreError> {
    let path = dir.join("sled/db");
    let failed = |source| StoreError::Directory { doing: "open", path: path.clone(), source };
    let log = match File::open(&path) {
        Ok(log) => log,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    if lock_until(&log, until).map_err(failed)? {
        return Ok(());
    }
    Err(StoreError::InUse { dir: dir.to_owned(), pid: None })
}

/// Whether the lock could be had in time.
fn lock_until(file: &File, until: Instant) -> io::Result<bool> {
    let mut told = false;
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(true),
            Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() >= until => return Ok(false),
            Err(rustix::io::Errno::WOULDBLOCK) => {
                if !std::mem::replace(&mut told, true) {
                    tracing::info!("another process has the data directory: waiting for it to end");
                }
                thread::sleep(PAUSE);
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// The process that signed the lock, if it still has the file open: an old signature names nobody.
fn holder(file: &mut File) -> Option<u32> {
    let mut signature = String::new();
    file.read_to_string(&mut signature).ok()?;
    let pid: u32 = signature.trim().parse().ok()?;
    let ours = file.metadata().ok()?;
    let is_ours = |open: fs::Metadata| (open.dev(), open.ino()) == (ours.dev(), ours.ino());
    let mut open = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten();
    open.any(|descriptor| fs::metadata(descriptor.path()).is_ok_and(is_ours)).then_some(pid)
}

fn sign(file: &mut File) -> io::Result<()> {
    file.seek(SeekFrom::Start(0))?;
    // One write of a fixed length over the last one: no reader meets half a number.
    file.write_all(format!("{:<10}\n", std::process::id()).as_bytes())
}
