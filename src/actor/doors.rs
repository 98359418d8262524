//! The messages between the HTTP front end and the owners, and the trait it sees them through.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::Value;
use tokio::net::UnixStream;
use ulid::Ulid;

use crate::metrics::Metrics;
use crate::object::{FieldError, FieldValidation, Kind, Mutation, Part, Registry, Subject};
use crate::provider::CarriedImage;
use crate::view::{Resource, View};

/// A future of a call through the door.
pub type Call<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What the front end needs of the rest of the daemon.
pub trait Backend: Send + Sync + 'static {
    fn registry(&self) -> &Registry;
    /// What is durable, for every read and watch.
    fn view(&self) -> &View;
    /// Hands a write to the object's owner; answers once it is durable and visible in the view.
    fn write(&self, write: Write) -> Call<'_, Result<Written, Refusal>>;
    /// A stream to the SSH server inside the workstation, once `by` may have it.
    fn ssh(&self, namespace: String, name: String, by: Subject) -> Call<'_, Result<UnixStream, Refusal>>;
    /// The images that machines are made from.
    fn images(&self) -> Vec<CarriedImage>;
    /// Takes an image anew, which can take minutes: machines made from now on are made from it.
    fn refresh_image(&self, name: String, by: Subject) -> Call<'_, Result<CarriedImage, NoImage>>;
    /// What the front end counts in, and what `/metrics` says.
    fn metrics(&self) -> &Metrics;
    /// What `/readyz` and `rl status` say.
    fn health(&self) -> Health;
}

/// One write, as it came in.
#[derive(Debug)]
pub struct Write {
    pub kind: &'static Kind,
    /// Absent for cluster-wide kinds.
    pub namespace: Option<String>,
    pub by: Subject,
    pub verb: Verb,
    /// Everything is judged, nothing is written.
    pub dry_run: bool,
    pub field_validation: FieldValidation,
}

/// What the write does.
#[derive(Debug)]
pub enum Verb {
    /// The whole object, as posted.
    Create {
        body: Value,
    },
    Update {
        name: String,
        mutation: Mutation,
        part: Part,
    },
    Delete {
        name: String,
        uid: Option<Ulid>,
        resource_version: Option<u64>,
    },
}

/// The answer to a write that was done (or that changed nothing).
#[derive(Debug)]
pub struct Written {
    /// The object as of this write; for a delete that removed it, its last state.
    pub resource: Arc<Resource>,
    /// False when a delete left it waiting for finalizers.
    pub gone: bool,
    pub warnings: Vec<String>,
}

/// Why a write was not done. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("not found")]
    NotFound,
    /// The namespace of the request does not exist.
    #[error("namespaces \"{0}\" not found")]
    NoNamespace(String),
    #[error("already exists")]
    AlreadyExists,
    /// The object has changed since the version the request was made for.
    #[error("{0}")]
    Conflict(String),
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Invalid(Vec<FieldError>),
    #[error("{0}")]
    BadRequest(String),
    #[error("{0}")]
    Forbidden(String),
    #[error("{message}")]
    TooMany { message: String, retry_after_secs: u32 },
    #[error("{0}")]
    Unavailable(String),
    /// No answer in time: whether it was done is not known.
    #[error("outcome unknown: read it back")]
    Timeout,
}

/// Why an image was not taken. The one there is stays.
#[derive(Debug, thiserror::Error)]
pub enum NoImage {
    #[error("no image {name:?} is here; this daemon carries: {carried}")]
    NotCarried { name: String, carried: String },
    #[error("{0}")]
    Forbidden(String),
    #[error("{0}")]
    Failed(String),
}

/// How the daemon is.
#[derive(Clone, Debug, Default, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Health {
    /// Each reason why the daemon is not ready; empty when it is.
    pub not_ready: Vec<String>,
    pub providers: Vec<ProviderHealth>,
    pub instance: String,
    pub data_dir: String,
    pub version: String,
}

/// One provider, as `rl status` shows it.
#[derive(Clone, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProviderHealth {
    pub name: String,
    /// `available`, `unavailable` or `unknown`.
    pub state: String,
    pub message: String,
}
