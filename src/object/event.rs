//! Event: something that happened to an object. Repeats are counted; events expire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Metadata, Time};

/// An event, as the API shows it (fields at the top level, as Kubernetes has them).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    pub metadata: Metadata,
    pub regarding: ObjectReference,
    pub r#type: EventType,
    /// One CamelCase word.
    pub reason: String,
    pub message: String,
    pub count: u32,
    pub first_timestamp: Time,
    pub last_timestamp: Time,
}

/// Whether a person should look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum EventType {
    Normal,
    Warning,
}

/// An object by kind, name and uid.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectReference {
    pub api_version: String,
    pub kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    pub name: String,
    pub uid: String,
}
