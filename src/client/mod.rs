//! The typed client of the API: what `rl` and tests speak to a daemon with.
//!
//! The API is Kubernetes-shaped, so the client is small: an object is a JSON value at a path made
//! of its kind, namespace and name. Every request has its own connection; over a unix socket that
//! costs some microseconds and leaves nothing to keep alive. Uses `object` alone.

mod api;
mod error;
#[cfg(test)]
pub mod fake;
mod follow;
mod server;
mod status;
mod transport;
mod watch;

pub use api::{Client, Commit, Deleted, ListOptions, ObjectList, OnWarning, Target};
pub use error::ClientError;
pub use follow::Follow;
pub use server::{Address, Server};
pub use status::{Cause, Health, ProviderHealth, Status};
pub use watch::{Change, Watch, WatchEvent};
