//! Why a store does not open, or no longer works.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::{ballast, suspect};

/// Every failure of the store itself. Refused submissions are `Conflict`s instead.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("another daemon{} uses {dir}: stop it, or choose another data directory", holder(*.pid), dir = .dir.display())]
    InUse { dir: PathBuf, pid: Option<u32> },
    #[error("cannot {doing} {path}: {source}; the daemon needs a directory of its own that it can write", path = .path.display())]
    Directory { doing: &'static str, path: PathBuf, source: io::Error },
    #[error(
        "the disk of {dir} is full: {free_kib} KiB are free. Free some space there and start the daemon again; \
         nothing that was acknowledged is lost", dir = .dir.display()
    )]
    Full { dir: PathBuf, free_kib: u64 },
    #[error("the disk failed while {doing}: {source}")]
    Disk { doing: &'static str, source: io::Error },
    #[error("the store failed while {doing}: {source}")]
    Sled { doing: &'static str, source: sled::Error },
    #[error("the store's file {file} is damaged ({why}): {cure}", file = .file.display())]
    Damaged { file: PathBuf, why: String, cure: &'static str },
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
        "the store in {dir} is damaged: {found} records were found where {expected} were written, or some are of \
         another version. Restore a backup", dir = .dir.display()
    )]
    Incomplete { dir: PathBuf, found: u64, expected: u64 },
    #[error(
        "the store in {dir} is damaged: its log ends at version {found} where {acknowledged} was acknowledged. \
         Restore a backup", dir = .dir.display()
    )]
    CutShort { dir: PathBuf, found: u64, acknowledged: u64 },
}

impl StoreError {
    /// The same, of the store in `dir`: a full disk and a damaged file are named as such.
    pub(super) fn of(self, dir: &Path) -> Self {
        match self {
            Self::Directory { source, .. } | Self::Disk { source, .. } if is_full(&source) => Self::full(dir),
            Self::Sled { source: sled::Error::Io(source), .. } if is_full(&source) => Self::full(dir),
            Self::Sled { source, .. } if is_damage(&source) => {
                let (file, cure) = suspect::find(dir);
                Self::Damaged { file, why: why(&source), cure }
            }
            other => other,
        }
    }

    fn full(dir: &Path) -> Self {
        Self::Full { dir: dir.to_owned(), free_kib: ballast::free_bytes(dir) / 1024 }
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

/// Whether sled complains of what is in its files. One that is missing or ends too early is damage
/// too; every other failure to read is the disk's.
fn is_damage(error: &sled::Error) -> bool {
    match error {
        sled::Error::Io(error) => {
            matches!(error.kind(), ErrorKind::NotFound | ErrorKind::UnexpectedEof | ErrorKind::InvalidData)
        }
        sled::Error::CollectionNotFound(_)
        | sled::Error::Unsupported(_)
        | sled::Error::ReportableBug(_)
        | sled::Error::Corruption { .. } => true,
    }
}

fn why(damage: &sled::Error) -> String {
    if matches!(damage, sled::Error::Corruption { .. }) {
        return "sled cannot read it".to_owned();
    }
    damage.to_string()
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or_else(String::new, |pid| format!(" (process {pid})"))
}
