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

    pub(super) fn space(&self) -> Space {
        match self.room() {
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
        let room = self.room()?;
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

    fn lay(&self) -> io::Result<()> {
        let file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(self.path())?;
        Ok(fallocate(&file, FallocateFlags::empty(), 0, self.bytes)?)
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

    fn room(&self) -> io::Result<Room> {
        let StatVfs { f_bavail, f_blocks, f_frsize, .. } = statvfs(&self.dir)?;
        Ok(Room { available_bytes: f_bavail * f_frsize, total_bytes: f_blocks * f_frsize })
    }

    fn path(&self) -> PathBuf {
        self.dir.join("ballast")
    }
}
