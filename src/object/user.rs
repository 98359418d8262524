//! User: a person. `local` always exists.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Metadata;

/// A user, as the API shows it. Cluster-wide.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct User {
    pub metadata: Metadata,
    #[serde(default)]
    pub spec: UserSpec,
}

/// Who the person is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct UserSpec {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub display_name: String,
    /// A disabled user may do nothing.
    pub disabled: bool,
    /// The account of the operating system that is this user over the unix socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local_user: Option<String>,
}
