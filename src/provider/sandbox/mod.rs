//! Provider `sandbox`: Linux machines made of namespaces, embedded, nothing to download.
//!
//! (the picture follows with the code)

mod cgroups;
pub mod doctor;
pub mod image;
pub mod launcher;
mod limits;
mod options;
mod process;
mod ranges;
mod record;

pub use options::SandboxOptions;

use ulid::Ulid;

use super::{Availability, Call, Door, Inspection, Provider, ProviderError};
use crate::machine::MachineSpec;
use crate::object::{FieldError, WorkstationSpec};
use image::Images;
use launcher::LauncherHandle;

/// The provider.
pub struct Sandbox {
    images: Images,
}

/// Why the provider cannot be set up at all (as opposed to being unavailable here).
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// A directory of its own cannot be made or read.
    #[error("cannot prepare {path}: {source}")]
    Directory { path: std::path::PathBuf, source: std::io::Error },
}

impl Sandbox {
    /// Prepares the provider's directories, finishes what a killed daemon left half removed, and
    /// probes once what this kernel can do.
    ///
    /// # Errors
    /// When the directories cannot be made or read.
    pub fn new(_options: SandboxOptions, _launcher: LauncherHandle) -> Result<Self, SandboxError> {
        Ok(Self { images: Images {} })
    }

    /// The images this daemon carries.
    pub const fn images(&self) -> &Images {
        &self.images
    }
}

fn not_yet<'a, T: Send + 'a>() -> Call<'a, T> {
    Box::pin(async { Err(ProviderError::Unavailable("not built yet".into())) })
}

impl Provider for Sandbox {
    fn name(&self) -> &'static str {
        "sandbox"
    }

    fn availability(&self) -> Availability {
        Availability::Unknown
    }

    fn check(&self, _spec: &WorkstationSpec, _base: &str) -> Vec<FieldError> {
        Vec::new()
    }

    fn create<'a>(&'a self, _id: Ulid, _spec: &'a MachineSpec) -> Call<'a, ()> {
        not_yet()
    }

    fn start(&self, _id: Ulid) -> Call<'_, ()> {
        not_yet()
    }

    fn stop(&self, _id: Ulid) -> Call<'_, ()> {
        not_yet()
    }

    fn delete(&self, _id: Ulid) -> Call<'_, ()> {
        not_yet()
    }

    fn inspect(&self, _id: Ulid) -> Call<'_, Inspection> {
        not_yet()
    }

    fn ended(&self, _id: Ulid) -> Call<'_, ()> {
        not_yet()
    }

    fn list(&self) -> Call<'_, Vec<Ulid>> {
        not_yet()
    }

    fn link(&self, _id: Ulid, _door: Door) -> Call<'_, tokio::net::UnixStream> {
        not_yet()
    }
}
