//! Conditions, as Kubernetes has them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Time;

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Truth {
    True,
    False,
    Unknown,
}

/// One aspect of an object's state, with the reason for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What the condition is about, such as `Ready`.
    pub r#type: String,
    pub status: Truth,
    /// The `metadata.generation` this was judged for.
    #[serde(default)]
    pub observed_generation: i64,
    /// When `status` last changed.
    pub last_transition_time: Time,
    /// One CamelCase word.
    pub reason: String,
    /// One sentence for a person.
    pub message: String,
}
