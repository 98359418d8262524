//! Provider `sandbox`: Linux machines made of namespaces, embedded, nothing to download.
//!
//! ```text
//!  Sandbox (async) ─► Machines (blocking) ─► machines/<id>/ on disk: record.rs, process.rs, ranges.rs
//!                        │   │  └─► cgroups.rs, limits.rs
//!                        │   └────► image/      immutable generations
//!                        └────────► launcher/   namespaces, idmapped overlay, exec `rl init`
//! ```
//!
//! A machine is a directory and, while it runs, a first process with everything below it in
//! namespaces of their own. All its mounts live in its own mount table, so nothing of it is left
//! when its first process has ended, however that came.

pub mod doctor;
pub mod image;
pub mod launcher;

mod cgroups;
mod limits;
mod machines;
mod options;
mod probe;
mod process;
mod ranges;
mod record;

pub use options::SandboxOptions;

use std::sync::Arc;

use rustix::fd::OwnedFd;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::UnixStream;
use ulid::Ulid;

use super::{Availability, Call, CarriedImage, Door, Inspection, Provider, ProviderError};
use crate::machine::MachineSpec;
use crate::object::{FieldError, FieldReason, WorkstationSpec};
use image::{ImageError, ImageInfo, ImageOptions, Images};
use launcher::LauncherHandle;
use machines::Machines;

/// The provider.
pub struct Sandbox {
    machines: Arc<Machines>,
    availability: Availability,
}

/// Why the provider cannot be set up at all (as opposed to being unavailable here).
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// A directory of its own cannot be made or read.
    #[error("cannot prepare {path}: {source}")]
    Directory { path: std::path::PathBuf, source: std::io::Error },
    #[error(transparent)]
    Images(#[from] ImageError),
}

impl Sandbox {
    /// Prepares the provider's directories, finishes what a killed daemon left half removed, and
    /// probes once what this kernel can do.
    ///
    /// # Errors
    /// When the directories cannot be made or read.
    pub fn new(options: SandboxOptions, launcher: LauncherHandle) -> Result<Self, SandboxError> {
        let images = Images::open(ImageOptions {
            dir: options.images_dir.clone(),
            named: options.images.clone(),
            default: options.default_image.clone(),
            host_includes: options.host_includes.clone(),
        })?;
        let path = options.data_dir.clone();
        let availability = match probe::try_a_machine(&launcher, &path) {
            Ok(()) => Availability::Available,
            Err(obstacle) => Availability::Unavailable(obstacle.to_string()),
        };
        let machines = Machines::open(options, launcher, images)
            .map_err(|source| SandboxError::Directory { path, source })?;
        Ok(Self { machines: Arc::new(machines), availability })
    }

    /// The images this daemon carries.
    #[must_use]
    pub fn images(&self) -> &Images {
        self.machines.images()
    }

    /// Runs blocking work where it holds up nobody.
    fn off<'a, T: Send + 'static>(
        &self,
        work: impl FnOnce(&Machines) -> Result<T, ProviderError> + Send + 'static,
    ) -> Call<'a, T> {
        let machines = Arc::clone(&self.machines);
        Box::pin(async move {
            let done = tokio::task::spawn_blocking(move || work(&machines)).await;
            done.unwrap_or_else(|error| Err(ProviderError::Failed(format!("the call broke off: {error}"))))
        })
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
        self.machines.images().list().into_iter().map(carried).collect()
    }

    fn refresh_image(&self, name: String) -> Call<'_, CarriedImage> {
        self.off(move |machines| {
            let images = machines.images();
            images.refresh(&name).map_err(|error| match error {
                ImageError::NotCarried { .. } => ProviderError::Refused(error.to_string()),
                ImageError::Unusable { .. } | ImageError::Files { .. } => {
                    ProviderError::Failed(error.to_string())
                }
            })?;
            let taken = images.list().into_iter().find(|image| image.name == name).map(carried);
            taken.ok_or_else(|| ProviderError::Failed(format!("the image {name} went away meanwhile")))
        })
    }

    fn check(&self, spec: &WorkstationSpec, base: &str) -> Vec<FieldError> {
        let mut errors = match limits::read(&spec.provider_config, &format!("{base}.providerConfig")) {
            Ok(_) => Vec::new(),
            Err(errors) => errors,
        };
        if let Err(error) = self.machines.images().resolve(spec.image.as_ref()) {
            errors.push(FieldError::new(format!("{base}.image"), FieldReason::NotFound, error.to_string()));
        }
        errors
    }

    fn create<'a>(&'a self, id: Ulid, spec: &'a MachineSpec) -> Call<'a, ()> {
        let spec = spec.clone();
        self.off(move |machines| machines.create(id, &spec))
    }

    fn start(&self, id: Ulid) -> Call<'_, ()> {
        self.off(move |machines| machines.start(id))
    }

    fn stop(&self, id: Ulid) -> Call<'_, ()> {
        self.off(move |machines| machines.stop(id))
    }

    fn delete(&self, id: Ulid) -> Call<'_, ()> {
        self.off(move |machines| machines.delete(id))
    }

    fn inspect(&self, id: Ulid) -> Call<'_, Inspection> {
        self.off(move |machines| machines.inspect(id))
    }

    fn ended(&self, id: Ulid) -> Call<'_, ()> {
        let first = self.machines.first_process(id);
        Box::pin(async move {
            match first {
                Ok(Some(first)) => {
                    end_of(first).await.map_err(|error| ProviderError::Failed(error.to_string()))
                }
                Ok(None) => Ok(()),
                Err(error) => Err(ProviderError::Failed(error.to_string())),
            }
        })
    }

    fn list(&self) -> Call<'_, Vec<Ulid>> {
        self.off(|machines| machines.list().map_err(|error| ProviderError::Failed(error.to_string())))
    }

    fn link(&self, id: Ulid, door: Door) -> Call<'_, UnixStream> {
        // Local, and never waits: the listener's queue takes it or does not.
        let stream = self.machines.link(id, door).and_then(|stream| {
            stream.set_nonblocking(true)?;
            UnixStream::from_std(stream)
        });
        Box::pin(async move { stream.map_err(|error| ProviderError::Unavailable(error.to_string())) })
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

/// Resolves when the process has ended: its descriptor is readable then.
async fn end_of(process: OwnedFd) -> std::io::Result<()> {
    let process = AsyncFd::with_interest(process, Interest::READABLE)?;
    process.readable().await.map(drop)
}
