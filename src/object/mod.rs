//! Nouns: what users write and read. Types, defaults, validation, schemas. Uses no other room.
//!
//! One file a kind; `kind.rs` is the registry that lists them.

mod change;
mod check;
mod condition;
mod cure;
mod device;
mod duration;
mod event;
mod invalid;
mod kind;
mod kinds;
mod lease;
mod meta;
mod metadata;
mod names;
mod namespace;
mod pool;
pub mod provider_config;
mod prune;
pub mod public_key;
mod schema;
mod selector;
mod subject;
mod suggest;
mod time;
mod usage;
mod user;
mod workstation;

pub use change::{
    Admitted, FieldValidation, MODIFIED, Mutation, Part, Rejected, admit_create, admit_update, other_uid,
    other_version,
};
pub use condition::{Condition, Truth};
pub use cure::name_carried_images;
pub use device::{Device, DeviceSpec};
pub use duration::Span;
pub use event::{Event, EventType, ObjectReference};
pub use invalid::{FieldError, FieldReason};
pub use kind::{Cell, Column, Kind, NameRule, Registry};
pub use kinds::registry;
pub use lease::*;
pub use meta::{Metadata, OwnerReference};
pub use namespace::{Namespace, NamespaceSpec, Quota};
pub use pool::*;
pub use selector::{FieldSelector, LabelSelector};
pub use subject::{Subject, SubjectKind};
pub use time::{Tick, Time};
pub use usage::*;
pub use user::{User, UserSpec};
pub use workstation::*;

/// The API group of pools, leases, workstations and their configuration.
pub const WORKSTATIONS_GROUP: &str = "workstations.ringleader.dev";
/// The API group of people, namespaces, rights and events.
pub const CORE_GROUP: &str = "core.ringleader.dev";
/// The one version of both groups.
pub const VERSION: &str = "v1";
/// Keys under this prefix are written by the server alone.
pub const SERVER_PREFIX: &str = "pools.ringleader.dev/";
/// On members and leases: the name of their pool.
pub const POOL_LABEL: &str = "pools.ringleader.dev/pool";
/// Keeps a lease, a pool or a workstation until what it stands for has been released.
pub const RELEASE_FINALIZER: &str = "pools.ringleader.dev/release";

#[cfg(test)]
mod tests;
