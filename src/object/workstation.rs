//! Workstation: one machine. A member is a workstation that a pool created and owns.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Condition, Metadata, Span, Time};

/// A workstation, as the API shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Workstation {
    pub metadata: Metadata,
    pub spec: WorkstationSpec,
    #[serde(default)]
    pub status: WorkstationStatus,
}

/// What the machine should be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkstationSpec {
    /// `provider:NAME` pins the provider; none takes the first available one of the daemon's list.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub requirements: Vec<String>,
    /// Sizing and provider settings: local keys at the top, a named provider's under its name.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub provider_config: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,
    /// WorkstationConfigs applied by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub configs: Vec<ConfigRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// Variables for sessions and scripts.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// Power state.
    #[serde(skip_serializing_if = "is_false")]
    pub stopped: bool,
    /// Members only: takes no new lease.
    #[serde(skip_serializing_if = "is_false")]
    pub cordoned: bool,
    /// Counted from creation.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-ringleader-minimum" = "1s"))]
    pub ttl: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_action: Option<TtlAction>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lifecycle: Option<Lifecycle>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub recycle_nonce: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub restart_nonce: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reconfigure_nonce: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
const fn is_false(b: &bool) -> bool {
    !*b
}

/// An operating system image, by distribution and version.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-ringleader-type" = "Image"))]
pub struct Image {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub distribution: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub os: String,
}

/// A WorkstationConfig by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigRef {
    #[schemars(length(min = 1))]
    pub name: String,
    #[serde(default)]
    pub priority: i32,
}

/// The member's login user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Identity {
    /// `dev` unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// `/bin/bash` unless set, where the image has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub groups: Vec<String>,
    /// Whether the login user may become root. True unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sudo: Option<bool>,
}

/// What happens when `ttl` has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TtlAction {
    Delete,
    Stop,
}

/// When a workstation stops by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Lifecycle {
    /// Stop after so long without an SSH session.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-ringleader-minimum" = "1s"))]
    pub stop_after_idle: Option<Span>,
}

/// How the machine stands. Written by the server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkstationStatus {
    pub phase: WorkstationPhase,
    pub observed_generation: i64,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub provider: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssh: Option<super::SshAccess>,
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// Open SSH sessions now.
    pub sessions: u32,
    /// The cause in one sentence, with the failing step's name and the tail of its output.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// What a workstation is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum WorkstationPhase {
    #[default]
    Pending,
    Provisioning,
    Configuring,
    Ready,
    Stopping,
    Stopped,
    Starting,
    Recycling,
    Deleting,
    Failed,
}

/// Where it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineStatus {
    pub id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub address: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// The image generation its disk was made from.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub image: String,
}

/// The agent inside the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentStatus {
    pub version: String,
    pub capabilities: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_seen: Option<Time>,
}

/// What a member is to its pool: the annotation `pools.ringleader.dev/state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum MemberState {
    Building,
    Starting,
    IdleRunning,
    IdleStopped,
    Leased,
    Recycling,
    Stopping,
    Deleting,
}
