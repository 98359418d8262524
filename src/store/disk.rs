//! The one user of sled.
//!
//! sled's own `flush` ends in `sync_file_range` on Linux, which reaches neither the file's metadata
//! nor the drive's cache: `commit` follows it with `sync_all`. Values over about 100 KiB (or leaves
//! that add up to that) become files beside the log that sled does not sync at all: where there are
//! such, the whole file system is synced.

use std::fs::{self, File};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use sled::IVec;

use super::StoreError;
use super::calm::patiently;

/// Pairs of key and value.
type Pair = (IVec, IVec);

/// An open sled tree and the file behind it.
pub(super) struct Disk {
    tree: sled::Db,
    log: File,
    blobs: PathBuf,
}

/// What one commit writes. The last word on a key counts.
#[derive(Default)]
pub(super) struct Batch(sled::Batch);

impl Batch {
    pub(super) fn put(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.0.insert(key, value);
    }

    pub(super) fn remove(&mut self, key: Vec<u8>) {
        self.0.remove(key);
    }
}

impl Disk {
    /// Opens the tree in `dir`, making it if need be.
    pub(super) fn open(dir: &Path, cache_bytes: u64) -> Result<Self, StoreError> {
        set_aside_half_snapshots(dir)?;
        let config = sled::Config::new()
            .path(dir)
            .cache_capacity(cache_bytes)
            .flush_every_ms(None)
            .mode(sled::Mode::LowSpace);
        // sled answers some damage with a panic.
        let opened = patiently(|| catch_unwind(AssertUnwindSafe(|| config.open())));
        let tree = opened
            .unwrap_or_else(|_| Err(sled::Error::Corruption { at: None, bt: () }))
            .map_err(|source| StoreError::Sled { doing: "opening", source })?;
        let disk = |source| StoreError::Disk { doing: "opening the store", source };
        let log = File::open(dir.join("db")).map_err(disk)?;
        // sled does not sync its settings, and the names of files must last as well as what is in them.
        File::open(dir.join("conf")).and_then(|conf| conf.sync_all()).map_err(disk)?;
        File::open(dir).and_then(|dir| dir.sync_all()).map_err(disk)?;
        Ok(Self { tree, log, blobs: dir.join("blobs") })
    }

    /// Writes a batch and makes it durable: when this returns, a power cut does not undo it.
    pub(super) fn commit(&self, batch: Batch) -> Result<(), StoreError> {
        let sled = |source| StoreError::Sled { doing: "writing", source };
        patiently(|| self.tree.apply_batch(batch.0).and_then(|()| self.tree.flush())).map_err(sled)?;
        self.sync().map_err(|source| StoreError::Disk { doing: "making a write durable", source })
    }

    pub(super) fn get(&self, key: &[u8]) -> Result<Option<IVec>, StoreError> {
        self.tree.get(key).map_err(reading)
    }

    /// Everything under a prefix, in key order.
    pub(super) fn scan(&self, prefix: &[u8]) -> impl Iterator<Item = Result<Pair, StoreError>> {
        self.tree.scan_prefix(prefix).map(|pair| pair.map_err(reading))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tree.is_empty()
    }

    fn sync(&self) -> io::Result<()> {
        self.log.sync_all()?;
        if fs::read_dir(&self.blobs)?.next().is_some() {
            rustix::fs::syncfs(&self.log)?;
        }
        Ok(())
    }
}

fn reading(source: sled::Error) -> StoreError {
    StoreError::Sled { doing: "reading", source }
}

/// A kill while sled opens can leave `snap.N.generating`, which would make every later open fail.
/// It holds nothing that the log does not.
fn set_aside_half_snapshots(dir: &Path) -> Result<(), StoreError> {
    let disk = |source| StoreError::Disk { doing: "looking for what a crash left behind", source };
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(disk(error)),
    };
    for entry in entries {
        let path = entry.map_err(disk)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with("snap.") && name.ends_with(".generating") {
            tracing::warn!(file = %path.display(), "setting aside a snapshot that a crash left half made");
            fs::rename(&path, dir.join("half-made-snapshot")).map_err(disk)?;
        }
    }
    Ok(())
}
