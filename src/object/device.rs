//! Device: one of a person's machines, by its SSH key. Every device gets that person's shells.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Metadata;

/// A device, as the API shows it. Cluster-wide.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Device {
    pub metadata: Metadata,
    pub spec: DeviceSpec,
}

/// Whose it is, and its key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceSpec {
    /// The name of the User. The default is who registers it.
    #[serde(default)]
    pub owner: String,
    /// An OpenSSH public key.
    #[schemars(length(min = 1))]
    pub public_key: String,
}
