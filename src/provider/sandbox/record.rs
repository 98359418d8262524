//! What is written about a machine, so that it is found again without asking anybody.
//!
//! ```text
//! machines/<id>/
//!   machine.json   constant for the machine's life; synced before anything it names is made
//!   boot.json      the running boot; written before PID 1 executes its first instruction of ours
//!   lock           taken by whoever changes the machine, across daemons
//!   upper/ work/   the disk, as overlayfs wants it
//!   link/          the two sockets that lead to the agent
//! ```
//!
//! `boot.json` is not synced: it speaks of processes, which do not survive a power cut either.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use ulid::Ulid;

use super::launcher::{Network, Privileges};
use super::limits::Limits;
use super::process::ProcessIdentity;
use crate::object::Time;

/// `machine.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineRecord {
    /// The format; an unknown one makes the machine broken, never misread.
    pub version: u32,
    /// The store the machine belongs to.
    pub instance: Ulid,
    pub id: Ulid,
    pub hostname: String,
    /// The host's name for uid and gid 0 of the machine; 65 536 ids follow.
    pub first_id: u32,
    /// The image generation, for life.
    pub image: String,
    pub network: Network,
    pub privileges: Privileges,
    pub limits: Limits,
}

/// `boot.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootRecord {
    pub boot_id: Ulid,
    pub started_at: Time,
    /// The cgroups that were made for this boot, to be removed with it.
    pub groups: Vec<PathBuf>,
    /// PID 1 as the host sees it; none while it is being made.
    pub init: Option<ProcessIdentity>,
}

/// The names in a machine's directory.
pub const MACHINE_FILE: &str = "machine.json";
pub const BOOT_FILE: &str = "boot.json";

/// The format of `machine.json` that this build writes.
pub const VERSION: u32 = 1;

/// How surely a file is on the disk when its writer returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Survives the death of every process.
    Process,
    /// Survives a power cut.
    Power,
}

/// Writes `value` at `path` so that a reader sees either the old file or the whole new one.
///
/// # Errors
/// When the directory cannot be written.
pub fn write(path: &Path, value: &impl Serialize, durability: Durability) -> io::Result<()> {
    let unfinished = path.with_extension("new");
    let mut file = File::create(&unfinished)?;
    file.write_all(&serde_json::to_vec_pretty(value)?)?;
    if durability == Durability::Power {
        file.sync_all()?;
    }
    fs::rename(&unfinished, path)?;
    match (durability, path.parent()) {
        (Durability::Power, Some(directory)) => File::open(directory)?.sync_all(),
        (Durability::Power, None) | (Durability::Process, _) => Ok(()),
    }
}

/// Reads what `write` wrote; none if there is no such file.
///
/// # Errors
/// When the file cannot be read or understood.
pub fn read<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
