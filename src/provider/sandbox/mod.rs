//! Provider `sandbox`: Linux machines made of namespaces, embedded, nothing to download.
//!
//! ```text
//!  Sandbox (async)  ──►  Workshop (blocking): create, boot, stop, delete; one file an act
//!                          │ directory, records, sockets, ranges, cgroup plan
//!                          ▼
//!                        launcher (a process of its own): clone, mounts, exec
//!                          ▼
//!                        rl init, PID 1 of the machine ──► rl agent
//! ```
//!
//! A machine is a directory (`record.rs` has its picture) and, while it runs, one process that
//! all its others die with. Both are found again by whoever comes next: the directory by its
//! name, the process by its pid, start time and host boot together. Nothing else of a machine
//! exists: its mounts are in its own mount table only and go with its last process.
//!
//! Root of a machine is nobody on the host: each machine has a recorded range of 65 536 host ids
//! to itself (`ranges.rs`), and the image it shares with others is shown to it through an
//! idmapped mount (`launcher/root.rs`).

pub mod doctor;
pub mod image;
pub mod launcher;

mod boot;
mod cgroups;
mod create;
mod limits;
mod machine;
mod options;
mod personal;
mod process;
mod ranges;
mod record;
mod sockets;
mod stop;
mod trash;
mod workshop;

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::net::UnixStream;
use tokio::task::spawn_blocking;
use ulid::Ulid;

pub use options::SandboxOptions;

use super::{Availability, Call, CarriedImage, Door, Inspection, Provider, ProviderError};
use crate::machine::MachineSpec;
use crate::object::{FieldError, FieldReason, WorkstationSpec};
use crate::sys::namespaces::watch;
use image::{ImageError, ImageInfo, Images};
use launcher::LauncherHandle;
use machine::State;
use workshop::{Workshop, failed};

/// The provider.
pub struct Sandbox {
    workshop: Arc<Workshop>,
    availability: Availability,
}

/// Why the provider cannot be set up at all (as opposed to being unavailable here).
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// A directory of its own cannot be made or read.
    #[error("cannot prepare {path}: {source}", path = .path.display())]
    Directory { path: PathBuf, source: io::Error },
    /// The images' own setting up.
    #[error(transparent)]
    Images(#[from] ImageError),
}

impl Sandbox {
    /// Prepares the provider's directories, finishes what a killed daemon left half done, finds
    /// the machines there are, and tries once, with a real machine, whether this host can make any.
    ///
    /// # Errors
    /// When the directories cannot be made or read.
    pub fn new(options: SandboxOptions, launcher: LauncherHandle) -> Result<Self, SandboxError> {
        let workshop = Workshop::open(options, launcher)?;
        let tried = doctor::try_machine(&workshop.launcher, &workshop.options);
        let availability = match tried {
            Ok(()) => Availability::Available,
            Err(obstacle) => Availability::Unavailable(format!("{}: {}", obstacle.message, obstacle.cure)),
        };
        Ok(Self { workshop: Arc::new(workshop), availability })
    }

    /// The images this daemon carries.
    pub fn images(&self) -> &Images {
        &self.workshop.images
    }

    /// Removes the image generations that no machine uses and that are not the newest; to be
    /// called after a refresh. Blocks.
    ///
    /// # Errors
    /// When it cannot be told which ones are used.
    pub fn prune_images(&self) -> Result<(), ProviderError> {
        self.workshop.prune_images()
    }

    /// Runs a blocking act where it holds up nobody.
    fn act<'a, T: Send + 'static>(
        &self,
        act: impl FnOnce(&Workshop) -> Result<T, ProviderError> + Send + 'static,
    ) -> Call<'a, T> {
        let workshop = Arc::clone(&self.workshop);
        Box::pin(async move {
            let done = spawn_blocking(move || act(&workshop)).await;
            done.map_err(|error| ProviderError::Failed(format!("the provider itself failed: {error}")))?
        })
    }

    fn act_if_available<'a, T: Send + 'static>(
        &self,
        act: impl FnOnce(&Workshop) -> Result<T, ProviderError> + Send + 'static,
    ) -> Call<'a, T> {
        match &self.availability {
            Availability::Unavailable(why) => {
                let error = ProviderError::Unavailable(why.clone());
                Box::pin(async { Err(error) })
            }
            Availability::Available | Availability::Unknown => self.act(act),
        }
    }
}

impl Provider for Sandbox {
    fn name(&self) -> &'static str {
        "sandbox"
    }

    fn availability(&self) -> Availability {
        self.availability.clone()
    }

    fn images(&self) -> Vec<CarriedImage> {
        self.workshop.images.list().into_iter().map(carried).collect()
    }

    fn refresh_image(&self, name: String) -> Call<'_, CarriedImage> {
        self.act(move |workshop| {
            let images = &workshop.images;
            images.refresh(&name).map_err(|error| match error {
                ImageError::NotCarried { .. } => ProviderError::Refused(error.to_string()),
                ImageError::Unusable { .. } | ImageError::Files { .. } => {
                    ProviderError::Failed(error.to_string())
                }
            })?;
            workshop.prune_images()?;
            let taken = images.list().into_iter().find(|image| image.name == name).map(carried);
            taken.ok_or_else(|| ProviderError::Failed(format!("the image {name} went away meanwhile")))
        })
    }

    fn check(&self, spec: &WorkstationSpec, base: &str) -> Vec<FieldError> {
        let mut errors =
            limits::read(&spec.provider_config, &format!("{base}.providerConfig")).err().unwrap_or_default();
        if let Err(error) = self.workshop.images.resolve(spec.image.as_ref()) {
            errors.push(FieldError::new(
                format!("{base}.image"),
                FieldReason::NotSupported,
                error.to_string(),
            ));
        }
        errors
    }

    fn create<'a>(&'a self, id: Ulid, spec: &'a MachineSpec) -> Call<'a, ()> {
        let spec = spec.clone();
        self.act_if_available(move |workshop| workshop.create(id, &spec))
    }

    fn start(&self, id: Ulid) -> Call<'_, ()> {
        self.act_if_available(move |workshop| workshop.start(id))
    }

    fn stop(&self, id: Ulid) -> Call<'_, ()> {
        self.act(move |workshop| workshop.stop(id))
    }

    fn delete(&self, id: Ulid) -> Call<'_, ()> {
        self.act(move |workshop| workshop.delete(id))
    }

    fn inspect(&self, id: Ulid) -> Call<'_, Inspection> {
        self.act(move |workshop| workshop.inspect(id))
    }

    fn ended(&self, id: Ulid) -> Call<'_, ()> {
        let state =
            self.act(move |workshop| workshop.machine(id).state().map_err(failed("look at the machine")));
        Box::pin(async move {
            match state.await? {
                State::Running { init, .. } => {
                    let init = watch(init).map_err(failed("watch the machine"))?;
                    init.readable().await.map_err(failed("watch the machine"))?.retain_ready();
                    Ok(())
                }
                State::Absent | State::Broken(_) | State::Stopped(_) => Ok(()),
            }
        })
    }

    fn list(&self) -> Call<'_, Vec<Ulid>> {
        self.act(|workshop| workshop.ids().map_err(failed("list the machines")))
    }

    fn link(&self, id: Ulid, door: Door) -> Call<'_, UnixStream> {
        let link_dir = self.workshop.machine(id).link_dir();
        Box::pin(async move {
            sockets::connect(&link_dir, door).await.map_err(|error| {
                ProviderError::Unavailable(format!("the machine's agent does not answer: {error}"))
            })
        })
    }
}

fn carried(image: ImageInfo) -> CarriedImage {
    let current = image.generations.last();
    CarriedImage {
        default: image.is_default,
        generation: current.map(|generation| generation.id.clone()),
        taken_at: current.map(|generation| generation.taken_at),
        name: image.name,
        distribution: image.distribution,
        version: image.version,
        os: image.os,
    }
}

/// Makes a directory that the host's root alone can enter.
fn own_directory(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)?;
    fs::set_permissions(path, Permissions::from_mode(0o700))
}
