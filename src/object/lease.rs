//! WorkstationPoolLease: a request for one member of a pool.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ulid::Ulid;

use super::{Condition, Metadata, Subject, Time};

/// A lease, as the API shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkstationPoolLease {
    pub metadata: Metadata,
    pub spec: LeaseSpec,
    #[serde(default)]
    pub status: LeaseStatus,
}

/// What the holder asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeaseSpec {
    /// The pool, in the lease's own namespace. Never changes.
    pub workstation_pool_ref: PoolRef,
    /// Moves forward only: Needed to Recycle to Done, or Needed to Done.
    #[serde(default)]
    pub state: LeaseState,
    /// When the lease ends if nobody releases it. The default is the write plus lease.maxTerm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
    /// OpenSSH public keys, at most 32, authorized for the member's login user while the lease is held.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub authorized_keys: Vec<String>,
}

/// A pool by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolRef {
    #[schemars(length(min = 1))]
    pub name: String,
}

/// What the holder wants of the lease now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum LeaseState {
    #[default]
    Needed,
    Recycle,
    Done,
}

/// How the lease stands. Written by the pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LeaseStatus {
    pub phase: LeasePhase,
    pub observed_generation: i64,
    #[serde(rename = "poolUID", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "ulid"))]
    pub pool_uid: Option<Ulid>,
    /// Who created the lease. Never changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<Subject>,
    /// The member, while one is bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workstation_name: Option<String>,
    #[serde(rename = "workstationUID", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "ulid"))]
    pub workstation_uid: Option<Ulid>,
    /// 1 for the next to be served; only while Pending. Computed when read, never stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_position: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Time>,
    /// From creation to Ready, in whole seconds, once Ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_seconds: Option<i64>,
    /// How to connect; only while Ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssh: Option<SshAccess>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release: Option<Release>,
    /// On Failed: why the lease ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<FailedReason>,
    /// While Pending: what the lease waits for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// How far a lease is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum LeasePhase {
    /// No member is bound yet.
    #[default]
    Pending,
    /// A member is bound and not yet usable.
    Starting,
    Ready,
    Recycling,
    Releasing,
    Failed,
}

/// Why a lease failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FailedReason {
    Expired,
    PoolDeleted,
    MemberLost,
    RecycleFailed,
    RecycleTimedOut,
}

/// How to connect to the member over SSH.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SshAccess {
    /// The member's login user.
    pub user: String,
    /// The command that opens a shell.
    pub command: String,
    /// The OpenSSH ProxyCommand.
    pub proxy: String,
    /// The member's public host keys, as known_hosts has them (type and key).
    pub host_keys: Vec<String>,
}

/// What became of the release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Release {
    /// What was asked for: Done or Recycle. Absent where nobody asked (expiry).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested: Option<LeaseState>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Why the member was deleted although Recycle was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<NotRecycled>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
}

/// What happened to the member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Outcome {
    Deleted,
    Recycled,
}

/// Why a Recycle deletes instead, in the order they are judged (rule R8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum NotRecycled {
    PoolDeleted,
    RecycleDisabled,
    MaxReusesReached,
    MaxAgeReached,
    TemplateChanged,
    Cordoned,
    RecycleUnsupported,
}
