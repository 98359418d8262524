//! What the server says beside objects: refusals, and how the daemon is.

use serde::Deserialize;

/// Kubernetes' `Status`: why a request was refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Status {
    pub message: String,
    /// One CamelCase word, such as `NotFound`, `AlreadyExists`, `Invalid`.
    pub reason: String,
    pub code: u16,
    pub details: Details,
}

/// What the refusal is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Details {
    pub name: String,
    /// The plural of the kind.
    pub kind: String,
    pub causes: Vec<Cause>,
    /// Zero where the server does not say.
    pub retry_after_seconds: u32,
}

/// One field that is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Cause {
    pub reason: String,
    pub message: String,
    pub field: String,
}

/// How the daemon is: the answer of `/ringleader/v1/status`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Health {
    /// Each reason why the daemon is not ready; empty when it is.
    pub not_ready: Vec<String>,
    pub providers: Vec<ProviderHealth>,
    pub instance: String,
    pub data_dir: String,
    pub version: String,
}

/// One provider.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProviderHealth {
    pub name: String,
    /// `available`, `unavailable` or `unknown`.
    pub state: String,
    pub message: String,
}
