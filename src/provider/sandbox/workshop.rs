//! What the provider does, blocking, one file an act: `create`, `boot`, `stop`, `delete`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use ulid::Ulid;

use super::cgroups::Cgroups;
use super::image::Images;
use super::launcher::{LaunchError, LauncherHandle};
use super::machine::{Machine, State};
use super::options::SandboxOptions;
use super::ranges::Ranges;
use super::trash::Trash;
use super::{SandboxError, own_directory};
use crate::provider::{Inspection, ProviderError};

/// Everything the acts need. Shared by all of them.
pub struct Workshop {
    pub options: SandboxOptions,
    pub images: Images,
    pub launcher: LauncherHandle,
    pub cgroups: Cgroups,
    pub ranges: Ranges,
    pub trash: Trash,
    pub machines_dir: PathBuf,
    /// Held for reading between choosing a generation and recording it, so that pruning does not
    /// take away what was just chosen.
    choosing: RwLock<()>,
}

/// Machines in the making have this before their id. Nothing outside their directory exists yet,
/// so what a killed daemon left of them is simply removed.
pub const MAKING: &str = ".making-";

impl Workshop {
    /// Opens the directories, removes what was left half made, and finds the machines there are.
    pub fn open(options: SandboxOptions, launcher: LauncherHandle) -> Result<Self, SandboxError> {
        let machines_dir = options.data_dir.join("machines");
        let at = |path: &Path| {
            let path = path.to_owned();
            move |source: io::Error| SandboxError::Directory { path, source }
        };
        own_directory(&machines_dir).map_err(at(&machines_dir))?;
        let trash_dir = options.data_dir.join("trash");
        let trash = Trash::open(trash_dir.clone()).map_err(at(&trash_dir))?;
        let workshop = Self {
            images: Images::open(options.image_options())?,
            cgroups: Cgroups::discover(options.instance, options.cgroup_parent.as_deref())
                .map_err(at(Path::new("/proc/self")))?,
            ranges: Ranges::new(options.id_base, options.instance),
            launcher,
            trash,
            choosing: RwLock::new(()),
            options,
            machines_dir,
        };
        workshop.take_stock().map_err(at(&workshop.machines_dir))?;
        Ok(workshop)
    }

    fn take_stock(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.machines_dir)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with(MAKING) {
                self.trash.throw(&entry.path())?;
            }
        }
        for id in self.ids()? {
            if let Ok(record) = self.machine(id).record() {
                self.ranges.occupy(record.first_id);
            }
        }
        Ok(())
    }

    pub fn machine(&self, id: Ulid) -> Machine {
        Machine::new(&self.machines_dir, id)
    }

    /// Every machine of this store. One whose record cannot be read counts: the directory is
    /// this store's.
    pub fn ids(&self) -> io::Result<Vec<Ulid>> {
        let mut ids = Vec::new();
        for entry in fs::read_dir(&self.machines_dir)? {
            let Some(id) = entry?.file_name().to_str().and_then(|name| Ulid::from_string(name).ok()) else {
                continue;
            };
            let foreign =
                self.machine(id).record().is_ok_and(|record| record.instance != self.options.instance);
            if !foreign {
                ids.push(id);
            }
        }
        ids.sort_unstable();
        Ok(ids)
    }

    /// Waits for whoever is changing the machine, then looks.
    pub fn inspect(&self, id: Ulid) -> Result<Inspection, ProviderError> {
        let machine = self.machine(id);
        let Some(_lock) = machine.lock().map_err(failed("wait for the machine"))? else {
            return Ok(Inspection::Absent);
        };
        Ok(match machine.state().map_err(failed("look at the machine"))? {
            State::Absent => Inspection::Absent,
            State::Broken(why) => Inspection::Broken { why },
            State::Stopped(record) => {
                // It may have ended by itself, and nobody has cleared up yet.
                if let Err(error) = self.clear_boot(&machine) {
                    tracing::warn!(machine = %id, %error, "something of the last boot stays until the next");
                }
                Inspection::Stopped { image: record.image }
            }
            State::Running { record, boot, .. } => Inspection::Running {
                boot_id: boot.boot_id,
                started_at: boot.started_at,
                image: record.image,
            },
        })
    }

    /// The generation that no pruning takes away while the guard is held.
    pub fn choose(&self) -> RwLockReadGuard<'_, ()> {
        self.choosing.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the generations that are neither the newest of their image nor any machine's.
    pub fn prune_images(&self) -> Result<(), ProviderError> {
        let _nobody_chooses = self.choosing.write().unwrap_or_else(PoisonError::into_inner);
        let ids = self.ids().map_err(failed("list the machines"))?;
        let mut used = std::collections::BTreeSet::new();
        for id in ids {
            // Not knowing what a broken machine uses is no reason to take it away.
            let record = self.machine(id).record().map_err(|why| {
                ProviderError::Failed(format!("cannot tell which images are used: of machine {id} {why}"))
            })?;
            used.insert(record.image);
        }
        self.images.remove_unused(&used);
        Ok(())
    }
}

/// Words an error of the system: no room is told apart, because waiting helps against it.
pub fn failed(step: &'static str) -> impl Fn(io::Error) -> ProviderError {
    move |error| of_errno(error.raw_os_error(), format!("cannot {step}: {error}"))
}

/// Words what the launcher said.
pub fn launch_failed(error: LaunchError) -> ProviderError {
    match error {
        LaunchError::Machine(failure) => of_errno(failure.errno, failure.to_string()),
        LaunchError::Gone | LaunchError::Late(_) | LaunchError::Unreachable(_) => {
            ProviderError::Unavailable(error.to_string())
        }
    }
}

fn of_errno(errno: Option<i32>, message: String) -> ProviderError {
    match errno {
        Some(libc::ENOSPC | libc::EDQUOT | libc::ENOMEM | libc::EAGAIN | libc::EMFILE | libc::ENFILE) => {
            ProviderError::NoRoom(message)
        }
        Some(_) | None => ProviderError::Failed(message),
    }
}
