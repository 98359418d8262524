//! WorkstationPool: a set of workstations built from one template and lent out one at a time.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ulid::Ulid;

use super::{Condition, Metadata, Span, Subject, Time, WorkstationSpec};

/// A pool, as the API shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkstationPool {
    pub metadata: Metadata,
    pub spec: PoolSpec,
    #[serde(default)]
    pub status: PoolStatus,
}

/// What the pool's owner declares.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolSpec {
    /// Who every member belongs to. The default is who created the pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Subject>,
    /// What members are built from.
    pub template: Template,
    pub size: Size,
    #[serde(default)]
    pub warm: Warm,
    /// An older idle member is replaced; an older leased one is deleted when its lease ends. At least 1m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-ringleader-minimum" = "1m"))]
    pub max_age: Option<Span>,
    #[serde(default)]
    pub lease: LeaseRules,
    /// Absent: every released member is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recycle: Option<Recycle>,
    /// No new builds and no new binds; leases may end.
    #[serde(default)]
    pub paused: bool,
}

/// The template of a pool's members.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Template {
    #[serde(default, skip_serializing_if = "TemplateMetadata::is_empty")]
    pub metadata: TemplateMetadata,
    pub spec: WorkstationSpec,
}

/// Labels and annotations put on every member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TemplateMetadata {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

impl TemplateMetadata {
    fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.annotations.is_empty()
    }
}

/// How many members a pool may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Size {
    /// 1 to 10 000 members, those being deleted included.
    #[schemars(range(min = 1, max = 10_000))]
    pub max: u32,
}

/// How many idle members wait, and for how long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Warm {
    /// Idle members kept running.
    pub running: u32,
    /// Idle members kept stopped. running + stopped may not exceed size.max.
    pub stopped: u32,
    /// How long an idle running member above the running floor waits before it is stopped. 0s to 30d.
    #[schemars(extend("x-ringleader-minimum" = "0s", "x-ringleader-maximum" = "30d"))]
    pub stop_after: Span,
    /// How long an idle stopped member above the stopped floor waits before it is deleted. 0s to 30d.
    #[schemars(extend("x-ringleader-minimum" = "0s", "x-ringleader-maximum" = "30d"))]
    pub delete_after: Span,
}

impl Default for Warm {
    fn default() -> Self {
        Self {
            running: 0,
            stopped: 0,
            stop_after: Span::from_secs(15 * 60),
            delete_after: Span::from_secs(3600),
        }
    }
}

/// The terms members are lent on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LeaseRules {
    /// How far ahead a lease may expire, and where it expires by default. 1m to 30d.
    #[schemars(extend("x-ringleader-minimum" = "1m", "x-ringleader-maximum" = "30d"))]
    pub max_term: Span,
    /// Leases that may wait at once; also the most Failed leases kept. 1 to 10 000.
    #[schemars(range(min = 1, max = 10_000))]
    pub max_pending: u32,
    /// How long a Failed lease stays. 0s to 30d.
    #[schemars(extend("x-ringleader-minimum" = "0s", "x-ringleader-maximum" = "30d"))]
    pub failed_retention: Span,
    /// Whether a configuration change reaches leased members at once.
    pub config_changes: ConfigChanges,
}

impl Default for LeaseRules {
    fn default() -> Self {
        Self {
            max_term: Span::from_secs(24 * 3600),
            max_pending: 100,
            failed_retention: Span::from_secs(24 * 3600),
            config_changes: ConfigChanges::Apply,
        }
    }
}

/// Whether a configuration change lands on a leased member at once or when its lease ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConfigChanges {
    #[default]
    Apply,
    Hold,
}

/// How a member released with Recycle is cleaned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Recycle {
    /// After this many recycles the member is deleted instead. 1 to 1 000 000.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_reuses: u32,
    /// A recycle that takes longer deletes the member. 10s to 24h.
    #[schemars(extend("x-ringleader-minimum" = "10s", "x-ringleader-maximum" = "24h"))]
    pub timeout: Span,
    /// Stop and start the member after the scripts.
    pub reboot: bool,
    /// Whether the member's disk is thrown away instead of trusting scripts.
    pub reset: Reset,
}

impl Default for Recycle {
    fn default() -> Self {
        Self { max_reuses: 20, timeout: Span::from_secs(600), reboot: false, reset: Reset::None }
    }
}

/// What a recycle does to the member's disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Reset {
    #[default]
    None,
    Disk,
}

/// A constant-size summary; members and leases are never listed in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PoolStatus {
    pub phase: PoolPhase,
    pub observed_generation: i64,
    pub template_hash: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<Subject>,
    pub capacity: Capacity,
    pub members: MemberCounts,
    pub leases: LeaseCounts,
    pub config_changes: ConfigChanges,
    pub template: TemplateHealth,
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// One sentence for a person: what the pool waits for, if anything.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// Where a pool stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PoolPhase {
    /// No member has ever been ready.
    #[default]
    Pending,
    Ready,
    /// TemplateHealthy is False.
    Degraded,
    Terminating,
}

/// How many members there may be, are, and may still be built now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Capacity {
    pub max: u32,
    pub members: u32,
    /// How many more may be built now, by size.max and the namespace's quota.
    pub room: u32,
}

/// Members by state. `cordoned` overlaps the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MemberCounts {
    pub building: u32,
    pub starting: u32,
    pub idle_running: u32,
    pub idle_stopped: u32,
    pub leased: u32,
    pub recycling: u32,
    pub stopping: u32,
    pub deleting: u32,
    pub cordoned: u32,
}

/// Leases by phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LeaseCounts {
    pub pending: u32,
    pub bound: u32,
    pub ready: u32,
    pub failed: u32,
}

/// Whether the template builds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TemplateHealth {
    pub consecutive_failures: u32,
    /// When the pool builds again, while it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<LastFailure>,
}

/// The last member that failed to build.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastFailure {
    pub member: String,
    pub reason: String,
    pub message: String,
    pub at: Time,
}

/// A pool's members and leases match it by uid, never by name.
pub type PoolUid = Ulid;
