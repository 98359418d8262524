//! Why a store does not open, or no longer works.

use std::io;
use std::path::PathBuf;

/// Every failure of the store itself. Refused submissions are `Conflict`s instead.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("another daemon{} uses {dir}: stop it, or choose another data directory", holder(*.pid), dir = .dir.display())]
    InUse { dir: PathBuf, pid: Option<u32> },
    #[error("cannot {doing} {path}; the daemon needs a directory of its own that it can write", path = .path.display())]
    Directory { doing: &'static str, path: PathBuf, source: io::Error },
    #[error("the disk failed while {doing}")]
    Disk { doing: &'static str, source: io::Error },
    #[error("the store failed while {doing}")]
    Sled { doing: &'static str, source: sled::Error },
    #[error(
        "{dir} was written by a newer version (format {found}, this one reads up to {known}): \
         run that version, or restore a backup made before it", dir = .dir.display()
    )]
    Newer { dir: PathBuf, found: u32, known: u32 },
    #[error("{dir} is no data directory of this daemon ({why}): choose another one, or restore a backup", dir = .dir.display())]
    Foreign { dir: PathBuf, why: String },
    #[error(
        "cannot read {what}: {why}; nothing was changed. Restore a backup, or ask for help with this message"
    )]
    Unreadable { what: String, why: String },
    #[error(
        "records are missing: {found} were found where {expected} were written, or some are of another version; \
         nothing was changed. Restore a backup"
    )]
    Incomplete { found: u64, expected: u64 },
    #[error(
        "the store is damaged: it ends at version {found} where {acknowledged} was acknowledged; nothing was \
         changed. Restore a backup"
    )]
    CutShort { found: u64, acknowledged: u64 },
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or_else(String::new, |pid| format!(" (process {pid})"))
}
