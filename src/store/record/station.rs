//! A standalone workstation on disk.

use serde::{Deserialize, Serialize};
use ulid::Ulid;

use super::common::{AgentV1, MetadataV1, SubjectV1};
use super::declared::DeclaredV1;
use super::{Shown, Stored, Unreadable, from_bytes, shown, to_bytes};
use crate::fleet::{Asked, Station};
use crate::machine::{Power, Running};
use crate::object::{Time, WORKSTATIONS_GROUP, WorkstationPhase};
use crate::view::Resource;

#[derive(Serialize, Deserialize)]
struct StationV1 {
    uid: u128,
    metadata: MetadataV1,
    spec: DeclaredV1,
    owner: SubjectV1,
    machine: DeclaredV1,
    build_by_ms: i64,
    built: bool,
    revision: u64,
    asked: AskedV1,
    phase: PhaseV1,
    running: Option<RunningV1>,
    changed_at_ms: i64,
    message: String,
}

#[derive(Serialize, Deserialize)]
struct AskedV1 {
    stopped: bool,
    keys: Vec<String>,
    setup: DeclaredV1,
    gone: bool,
}

#[derive(Serialize, Deserialize)]
struct RunningV1 {
    boot_id: u128,
    started_at_ms: i64,
    configured: bool,
    keys_confirmed: bool,
    agent: AgentV1,
    remarks: Vec<String>,
    sessions: u32,
}

#[derive(Serialize, Deserialize)]
enum PhaseV1 {
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

impl From<WorkstationPhase> for PhaseV1 {
    fn from(live: WorkstationPhase) -> Self {
        match live {
            WorkstationPhase::Pending => Self::Pending,
            WorkstationPhase::Provisioning => Self::Provisioning,
            WorkstationPhase::Configuring => Self::Configuring,
            WorkstationPhase::Ready => Self::Ready,
            WorkstationPhase::Stopping => Self::Stopping,
            WorkstationPhase::Stopped => Self::Stopped,
            WorkstationPhase::Starting => Self::Starting,
            WorkstationPhase::Recycling => Self::Recycling,
            WorkstationPhase::Deleting => Self::Deleting,
            WorkstationPhase::Failed => Self::Failed,
        }
    }
}

impl From<PhaseV1> for WorkstationPhase {
    fn from(stored: PhaseV1) -> Self {
        match stored {
            PhaseV1::Pending => Self::Pending,
            PhaseV1::Provisioning => Self::Provisioning,
            PhaseV1::Configuring => Self::Configuring,
            PhaseV1::Ready => Self::Ready,
            PhaseV1::Stopping => Self::Stopping,
            PhaseV1::Stopped => Self::Stopped,
            PhaseV1::Starting => Self::Starting,
            PhaseV1::Recycling => Self::Recycling,
            PhaseV1::Deleting => Self::Deleting,
            PhaseV1::Failed => Self::Failed,
        }
    }
}

impl From<&Running> for RunningV1 {
    fn from(live: &Running) -> Self {
        Self {
            boot_id: live.boot_id.0,
            started_at_ms: live.started_at.millis(),
            configured: live.configured,
            keys_confirmed: live.keys_confirmed,
            agent: (&live.agent).into(),
            remarks: live.remarks.clone(),
            sessions: live.sessions,
        }
    }
}

impl From<RunningV1> for Running {
    fn from(stored: RunningV1) -> Self {
        Self {
            boot_id: Ulid(stored.boot_id),
            started_at: Time::from_millis(stored.started_at_ms),
            configured: stored.configured,
            keys_confirmed: stored.keys_confirmed,
            agent: stored.agent.into(),
            remarks: stored.remarks,
            sessions: stored.sessions,
        }
    }
}

impl From<&Station> for StationV1 {
    fn from(live: &Station) -> Self {
        Self {
            uid: live.uid.0,
            metadata: (&live.metadata).into(),
            spec: DeclaredV1::of(&live.spec),
            owner: (&live.owner).into(),
            machine: DeclaredV1::of(&live.machine),
            build_by_ms: live.build_by.millis(),
            built: live.built,
            revision: live.revision,
            asked: AskedV1 {
                stopped: live.asked.power == Power::Stopped,
                keys: live.asked.keys.clone(),
                setup: DeclaredV1::of(&live.asked.setup),
                gone: live.asked.gone,
            },
            phase: live.phase.into(),
            running: live.running.as_ref().map(Into::into),
            changed_at_ms: live.changed_at.millis(),
            message: live.message.clone(),
        }
    }
}

impl TryFrom<StationV1> for Station {
    type Error = Unreadable;

    fn try_from(stored: StationV1) -> Result<Self, Unreadable> {
        Ok(Self {
            uid: Ulid(stored.uid),
            metadata: stored.metadata.into(),
            spec: stored.spec.read()?,
            owner: stored.owner.into(),
            machine: stored.machine.read()?,
            build_by: Time::from_millis(stored.build_by_ms),
            built: stored.built,
            revision: stored.revision,
            asked: Asked {
                power: if stored.asked.stopped { Power::Stopped } else { Power::Running },
                keys: stored.asked.keys,
                setup: stored.asked.setup.read()?,
                gone: stored.asked.gone,
            },
            phase: stored.phase.into(),
            running: stored.running.map(Into::into),
            changed_at: Time::from_millis(stored.changed_at_ms),
            message: stored.message,
        })
    }
}

impl Stored for Station {
    const SHOWN: Shown = Shown { group: WORKSTATIONS_GROUP, plural: "workstations", kind: "Workstation" };
    const NEWEST_VERSION: u8 = 1;

    fn encode(&self) -> Vec<u8> {
        to_bytes(&StationV1::from(self))
    }

    fn decode(type_version: u8, payload: &[u8]) -> Result<Self, Unreadable> {
        match type_version {
            1 => from_bytes::<StationV1>(payload)?.try_into(),
            found => Err(Unreadable::UnknownType { found, newest: Self::NEWEST_VERSION }),
        }
    }

    fn uid(&self) -> Ulid {
        self.uid
    }

    fn present(&self, version: u64) -> Option<Resource> {
        Some(shown(&Self::SHOWN, &self.metadata, &Self::present(self), version))
    }
}
