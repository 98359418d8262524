//! Free space: what it still allows, and the ballast that keeps releases possible on a full disk.
//!
//! sled does not recover from a failed write, so the ballast is not a cure for one: it is given up
//! *before* the disk is full, and laid again when there is room. While it is gone its size counts
//! as used, so that giving it up frees nothing for builds.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{FallocateFlags, StatVfs, fallocate, statvfs};

use super::StoreOptions;

/// Without so much a store does not start: sled's log grows by segments of half a MiB, and its first
/// write would end the daemon again.
const ROOM_TO_START_BYTES: u64 = 1 << 20;

/// What the free space of the disk still allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Space {
    /// Everything.
    Ample,
    /// Everything but building members.
    NoBuilds,
    /// Only what ends things: releases and deletes.
    ReleasesOnly,
}

/// The ballast file of a directory.
#[derive(Debug)]
pub(super) struct Ballast {
    dir: PathBuf,
    bytes: u64,
    no_builds_below_percent: u8,
    releases_only_below_percent: u8,
    laid: AtomicBool,
}

/// Room on a file system.
#[derive(Clone, Copy, Debug)]
struct Room {
    available_bytes: u64,
    total_bytes: u64,
}

impl Ballast {
    /// The ballast of `dir`, as it lies there.
    pub(super) fn of(dir: &Path, options: &StoreOptions) -> Self {
        let laid = fs::metadata(dir.join("ballast")).is_ok_and(|file| file.len() >= options.ballast_bytes);
        Self {
            dir: dir.to_owned(),
            bytes: options.ballast_bytes,
            no_builds_below_percent: options.no_builds_below_percent,
            releases_only_below_percent: options.releases_only_below_percent,
            laid: AtomicBool::new(laid),
        }
    }

    /// The directory it lies in, which is the store's.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn space(&self) -> Space {
        match room(&self.dir) {
            Ok(room) => self.judge(room),
            Err(error) => {
                tracing::error!(%error, "cannot tell the free space of the data directory");
                Space::ReleasesOnly
            }
        }
    }

    /// Gives the ballast up when the disk is nearly full, lays it when there is room. Called before
    /// every write.
    pub(super) fn tend(&self) -> io::Result<()> {
        let room = room(&self.dir)?;
        let laid = self.laid.load(Ordering::Relaxed);
        if laid && room.available_bytes < self.bytes / 4 {
            tracing::warn!("the disk is full: giving up the ballast so that releases can be written");
            fs::remove_file(self.path())?;
            self.laid.store(false, Ordering::Relaxed);
        } else if !laid && self.bytes > 0 && self.judge(room) == Space::Ample {
            self.lay()?;
            self.laid.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Whether there is room to begin with: asked by taking it, since what a file system calls
    /// free is not always free for us.
    pub(super) fn prove_room(&self) -> io::Result<()> {
        let path = self.dir.join("room");
        reserve(&path, ROOM_TO_START_BYTES).and_then(|()| fs::remove_file(path))
    }

    fn lay(&self) -> io::Result<()> {
        reserve(&self.path(), self.bytes)
    }

    fn judge(&self, room: Room) -> Space {
        let missing = if self.laid.load(Ordering::Relaxed) { 0 } else { self.bytes };
        let free = u128::from(room.available_bytes.saturating_sub(missing)) * 100;
        let below = |percent: u8| free < u128::from(room.total_bytes) * u128::from(percent);
        if below(self.releases_only_below_percent) {
            Space::ReleasesOnly
        } else if below(self.no_builds_below_percent) {
            Space::NoBuilds
        } else {
            Space::Ample
        }
    }

    fn path(&self) -> PathBuf {
        self.dir.join("ballast")
    }
}

/// What is free where `dir` is, or will be; 0 when that cannot be known.
pub(super) fn free_bytes(dir: &Path) -> u64 {
    let rooms = dir.ancestors().find_map(|place| room(place).ok());
    rooms.map_or(0, |room| room.available_bytes)
}

fn room(dir: &Path) -> io::Result<Room> {
    let StatVfs { f_bavail, f_blocks, f_frsize, .. } = statvfs(dir)?;
    Ok(Room { available_bytes: f_bavail * f_frsize, total_bytes: f_blocks * f_frsize })
}

/// A file of so many bytes, or none: half of it would only take the room.
fn reserve(path: &Path, bytes: u64) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    let reserved = fallocate(&file, FallocateFlags::empty(), 0, bytes);
    Ok(reserved.inspect_err(|_| {
        let _ = fs::remove_file(path);
    })?)
}
