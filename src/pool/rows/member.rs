//! A member: a workstation the pool created and owns.

use std::sync::Arc;

use ulid::Ulid;

use super::Bond;
use crate::machine::{AgentInfo, Power, RecycleOrder};
use crate::object::{
    AgentStatus, Condition, MachineStatus, MemberState, Metadata, RELEASE_FINALIZER, SERVER_PREFIX,
    SshAccess, Time, Truth, Workstation, WorkstationPhase, WorkstationSpec, WorkstationStatus,
};

/// A member as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub metadata: Metadata,
    pub pool_uid: Ulid,
    /// The template it was built from, for life.
    pub spec: Arc<WorkstationSpec>,
    pub template_hash: String,
    /// The provider that was chosen for it, for life.
    pub provider: String,
    pub state: MemberState,
    /// When `state` last changed, or the member was uncordoned: what the idle timers count from,
    /// and the order in which building and starting members were begun. This and every other moment
    /// here is of the steady clock.
    pub since: Time,
    /// When it was ordered: what maxAge counts from.
    pub born: Time,
    /// The lease it is bound to.
    pub lease: Option<Bond>,
    /// How often it was recycled.
    pub reuses: u32,
    pub cordoned: bool,
    /// The end of its last lease or recycle, else when it first became idle.
    pub last_used: Time,
    /// What it was built for.
    pub destination: Destination,
    /// It has been idle past maxAge and is to be replaced (rule W7).
    pub aged: bool,
    /// Not Configured by then: failed (rule F1). Only while Building.
    pub build_by: Option<Time>,
    /// Why it cannot be placed. Only while Building.
    pub unplaceable: Option<String>,
    /// Only while Deleting: how long the delete waits for the agent to drop the keys (rule A2).
    pub revoke_by: Option<Time>,
    /// Since when a machine that should run does not (rule L17).
    pub down_since: Option<Time>,
    /// Only while Recycling.
    pub recycling: Option<Recycling>,
    /// The id of its last recycle, shown as `spec.recycleNonce`.
    pub recycle_nonce: Option<Ulid>,
    pub wanted: Wanted,
    pub observed: Observed,
}

/// A recycle under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recycling {
    pub order: RecycleOrder,
    /// The boot it began in; none while the machine was down and is being started for it.
    pub boot: Option<Ulid>,
}

/// Whether a new member stays running or is stopped once it is ready (rule W3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Destination {
    #[default]
    Running,
    Stopped,
}

/// The last want that was made durable, as far as a later one must be told from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    pub revision: u64,
    /// Of the whole want.
    pub digest: u128,
    /// The revision that last changed the keys, and their digest.
    pub keys_revision: u64,
    pub keys_digest: u128,
    /// Of the owner's device keys among them.
    pub owner_digest: u128,
}

/// What was last seen of the machine, as far as it is needed after a restart or shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// The want it was observed under.
    pub revision: u64,
    pub sighting: Sighting,
    pub boot_id: Option<Ulid>,
    pub started_at: Option<Time>,
    /// The declared setup has landed in this boot.
    pub configured: bool,
    /// The `keys_revision` that the agent has confirmed in this boot.
    pub keys_revision: u64,
    pub agent: AgentInfo,
    pub remarks: Vec<String>,
    pub sessions: u32,
    /// Why it does not answer, cannot be placed or failed.
    pub message: String,
}

/// How the machine was last seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sighting {
    #[default]
    Never,
    Booting,
    Running,
    Stopping,
    Stopped,
    Absent,
    Failed,
}

impl Member {
    /// The member's uid; also the machine's id at its provider.
    ///
    /// # Panics
    /// Never: the pool makes every member with one.
    pub fn uid(&self) -> Ulid {
        self.metadata.uid.expect("the pool gives every member a uid")
    }

    /// When it was created.
    pub fn created(&self) -> Time {
        self.metadata.creation_timestamp.unwrap_or_default()
    }

    /// Its machine is gone; only foreign finalizers may keep the object.
    pub fn is_over(&self) -> bool {
        !self.metadata.finalizers.iter().any(|finalizer| finalizer == RELEASE_FINALIZER)
    }

    /// No lease uses it and none of its own acts is under way, but perhaps that of stopping.
    pub const fn is_idle(&self) -> bool {
        matches!(self.state, MemberState::IdleRunning | MemberState::IdleStopped | MemberState::Stopping)
    }

    /// The machine and its disk have been ordered to go. Nothing undoes it.
    pub fn is_gone_ordered(&self) -> bool {
        self.state == MemberState::Deleting && self.revoke_by.is_none()
    }

    /// The agent has confirmed the newest keys in the present boot (rule L19).
    pub const fn keys_confirmed(&self) -> bool {
        self.observed.keys_revision == self.wanted.keys_revision
    }

    /// The power state its spec shows: written by the pool, and a change of it is a change of spec.
    pub const fn shown_power(&self) -> Power {
        match self.state {
            MemberState::IdleStopped | MemberState::Stopping => Power::Stopped,
            MemberState::Building
            | MemberState::Starting
            | MemberState::IdleRunning
            | MemberState::Leased
            | MemberState::Recycling
            | MemberState::Deleting => Power::Running,
        }
    }

    /// How to reach it over SSH, once its agent has introduced itself.
    pub fn ssh(&self) -> Option<SshAccess> {
        (!self.observed.agent.login_user.is_empty()).then(|| SshAccess {
            user: self.observed.agent.login_user.clone(),
            command: format!("rl shell {}", self.metadata.name),
            proxy: format!("rl proxy {}", self.metadata.name),
            host_keys: self.observed.agent.host_keys.clone(),
        })
    }

    /// The object as the API shows it.
    pub fn present(&self) -> Workstation {
        let mut metadata = self.metadata.clone();
        let annotations = &mut metadata.annotations;
        let mut annotate =
            |key: &str, value: String| annotations.insert(format!("{SERVER_PREFIX}{key}"), value);
        annotate("state", format!("{:?}", self.state));
        annotate("reuses", self.reuses.to_string());
        annotate("cordoned", self.cordoned.to_string());
        annotate("template-hash", self.template_hash.clone());
        if let Some(lease) = &self.lease {
            annotate("lease", lease.name.clone());
        }
        if matches!(self.state, MemberState::IdleRunning | MemberState::IdleStopped) {
            annotate("idle-since", self.since.to_string());
        }
        let mut spec = WorkstationSpec::clone(&self.spec);
        spec.cordoned = self.cordoned;
        spec.stopped = self.shown_power() == Power::Stopped;
        spec.recycle_nonce = self.recycle_nonce.map(|id| id.to_string()).unwrap_or_default();
        Workstation { status: self.status(metadata.generation), metadata, spec }
    }

    fn status(&self, observed_generation: i64) -> WorkstationStatus {
        let seen = &self.observed;
        WorkstationStatus {
            phase: self.phase(),
            observed_generation,
            provider: self.provider.clone(),
            machine: (seen.sighting != Sighting::Never).then(|| MachineStatus {
                id: self.uid().to_string(),
                address: String::new(),
                started_at: seen.started_at,
                image: seen.agent.image.clone(),
            }),
            agent: (!seen.agent.version.is_empty()).then(|| AgentStatus {
                version: seen.agent.version.clone(),
                capabilities: seen.agent.capabilities.clone(),
                last_seen: None,
            }),
            ssh: (seen.sighting == Sighting::Running).then(|| self.ssh()).flatten(),
            conditions: self.conditions(observed_generation),
            sessions: seen.sessions,
            message: if seen.message.is_empty() { seen.remarks.join("; ") } else { seen.message.clone() },
        }
    }

    const fn phase(&self) -> WorkstationPhase {
        match (self.state, self.observed.sighting) {
            (MemberState::Deleting, _) => WorkstationPhase::Deleting,
            (_, Sighting::Failed) => WorkstationPhase::Failed,
            (MemberState::Recycling, _) => WorkstationPhase::Recycling,
            (MemberState::Building, Sighting::Never | Sighting::Absent) => WorkstationPhase::Pending,
            (MemberState::Building, Sighting::Running) => WorkstationPhase::Configuring,
            (MemberState::Building, _) => WorkstationPhase::Provisioning,
            (MemberState::Stopping, _) => WorkstationPhase::Stopping,
            (MemberState::IdleStopped, _) => WorkstationPhase::Stopped,
            (MemberState::IdleRunning | MemberState::Leased, Sighting::Running) => WorkstationPhase::Ready,
            (MemberState::Starting | MemberState::IdleRunning | MemberState::Leased, _) => {
                WorkstationPhase::Starting
            }
        }
    }

    /// `Ready` (the machine is up) and `Configured` (the declared setup landed).
    fn conditions(&self, observed_generation: i64) -> Vec<Condition> {
        let up = self.observed.sighting == Sighting::Running;
        let condition = |r#type: &str, holds: bool, yes: &str, no: &str| Condition {
            r#type: r#type.into(),
            status: if holds { Truth::True } else { Truth::False },
            observed_generation,
            last_transition_time: self.since,
            reason: if holds { yes.into() } else { no.into() },
            message: if holds { self.observed.remarks.join("; ") } else { self.observed.message.clone() },
        };
        vec![
            condition("Ready", up, "Running", "NotRunning"),
            condition("Configured", up && self.observed.configured, "Landed", "NotLanded"),
        ]
    }
}
