//! Namespace: where pools, leases and workstations live. `local` always exists.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Metadata, Subject};

/// A namespace, as the API shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Namespace {
    pub metadata: Metadata,
    #[serde(default)]
    pub spec: NamespaceSpec,
}

/// Who administers it, and how much it may hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NamespaceSpec {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub admins: Vec<Subject>,
    pub quota: Quota,
}

/// The most a namespace may hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Quota {
    /// Workstations, members included. Absent: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workstations: Option<u32>,
}
