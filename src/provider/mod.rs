//! The outside machines: one trait, one folder or file a provider.
//!
//! A provider makes, starts, stops and removes machines, and opens the byte streams to what runs
//! inside. It knows nothing of pools. Its calls may be slow and may be repeated: each one brings
//! the machine to the asked state and says so when it already was. Machines outlive the daemon.

pub mod sandbox;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde::Serialize;
use tokio::net::UnixStream;
use ulid::Ulid;

use crate::machine::MachineSpec;
use crate::object::{FieldError, Time};

/// A future of a provider call.
pub type Call<'a, T> = Pin<Box<dyn Future<Output = Result<T, ProviderError>> + Send + 'a>>;

/// What runs machines.
pub trait Provider: Send + Sync {
    /// The name in `provider:NAME` and in `rl status`.
    fn name(&self) -> &'static str;
    /// Whether it can make machines now; the sentence says why not, with the cure.
    fn availability(&self) -> Availability;
    /// The images it carries, in order of name.
    fn images(&self) -> Vec<CarriedImage>;
    /// Takes an image anew: machines made from now on are made from it, those there are keep theirs.
    fn refresh_image(&self, name: String) -> Call<'_, CarriedImage> {
        let why = format!("the images of provider {} are not taken by this daemon: {name}", self.name());
        Box::pin(async move { Err(ProviderError::Refused(why)) })
    }
    /// Checks `providerConfig` and `image`, with paths below `base` (such as `spec`).
    fn check(&self, spec: &crate::object::WorkstationSpec, base: &str) -> Vec<FieldError>;
    /// Makes the machine `id` and boots it.
    fn create<'a>(&'a self, id: Ulid, spec: &'a MachineSpec) -> Call<'a, ()>;
    /// Boots a stopped machine from its disk.
    fn start(&self, id: Ulid) -> Call<'_, ()>;
    /// Ends what runs; the disk stays.
    fn stop(&self, id: Ulid) -> Call<'_, ()>;
    /// Removes the machine and all it used. Already gone is success.
    fn delete(&self, id: Ulid) -> Call<'_, ()>;
    /// What the machine is doing now.
    fn inspect(&self, id: Ulid) -> Call<'_, Inspection>;
    /// Resolves when a running machine has ended by itself (at once if it does not run).
    fn ended(&self, id: Ulid) -> Call<'_, ()>;
    /// Every machine that carries this store's instance id.
    fn list(&self) -> Call<'_, Vec<Ulid>>;
    /// A stream to the agent inside: who it speaks to is decided by `door`, never by a frame.
    fn link(&self, id: Ulid, door: Door) -> Call<'_, UnixStream>;
}

/// The providers of one daemon, in the order they are tried.
pub type Providers = Arc<[Arc<dyn Provider>]>;

/// An image that machines can be made from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CarriedImage {
    pub name: String,
    pub distribution: String,
    pub version: String,
    pub os: String,
    /// Whether machines that name no image get this one.
    pub default: bool,
    /// What new machines are made from; absent until it is taken for the first of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taken_at: Option<Time>,
}

impl CarriedImage {
    /// In a few words: `host (debian 12)`.
    #[must_use]
    pub fn words(&self) -> String {
        format!("{} ({} {})", self.name, self.distribution, self.version)
    }
}

/// Which of the agent's listeners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// Frames between the daemon and the agent (`agent::wire`).
    Control,
    /// SSH.
    Ssh,
}

/// Whether a provider can make machines now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Availability {
    Available,
    /// Why not, and what to do.
    Unavailable(String),
    /// Not asked yet.
    Unknown,
}

/// What a machine is doing, as its provider sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inspection {
    Absent,
    Running {
        boot_id: Ulid,
        started_at: Time,
        image: String,
    },
    Stopped {
        image: String,
    },
    /// Half made or half removed (the daemon died in the middle): only delete serves.
    Broken {
        why: String,
    },
}

/// Why a provider call failed.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// The host has no room; try later.
    #[error("no room: {0}")]
    NoRoom(String),
    /// The provider cannot serve this request here and now, whatever the template.
    #[error("unavailable: {0}")]
    Unavailable(String),
    /// The request can never work; the template must change.
    #[error("{0}")]
    Refused(String),
    /// The machine's own making failed.
    #[error("{0}")]
    Failed(String),
}
