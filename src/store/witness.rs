//! The newest version that was acknowledged, kept outside of sled.
//!
//! sled takes the first damaged message of its log for the end of it: one flipped bit, and it opens
//! in some older state without a word. The witness is written after each commit, so it never runs
//! ahead of what is durable; a start that finds less than it says is refused. It is not synced (that
//! would double the time of a commit): after a power cut it may lag, and then it only sees less.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use super::envelope;

/// What the file's checksum is bound to.
const NAME: &[u8] = b"witness";
const TYPE_VERSION: u8 = 1;
/// An envelope without payload.
const FILE_BYTES: usize = 13;

/// The open file.
#[derive(Debug)]
pub(super) struct Witness {
    file: File,
}

impl Witness {
    /// Opens the witness of `dir`, making one if need be.
    pub(super) fn open(dir: &Path) -> io::Result<Self> {
        let path = dir.join("witness");
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        Ok(Self { file })
    }

    /// The version it bears witness to: 0 when it is new, or damaged itself (which proves nothing
    /// against the store).
    pub(super) fn version(&self) -> io::Result<u64> {
        let mut bytes = [0; FILE_BYTES];
        match self.file.read_exact_at(&mut bytes, 0) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
            Err(error) => return Err(error),
        }
        if let Ok(opened) = envelope::open(NAME, &bytes) {
            return Ok(opened.resource_version);
        }
        tracing::warn!("the witness of the newest version is damaged; it is written anew");
        Ok(0)
    }

    /// Everything up to `version` is durable.
    pub(super) fn testify(&self, version: u64) -> io::Result<()> {
        self.file.write_all_at(&envelope::seal(NAME, TYPE_VERSION, version, &[]), 0)
    }
}
