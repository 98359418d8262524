//! A member on disk.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use ulid::Ulid;

use super::common::{AgentV1, BondV1, MetadataV1};
use super::declared::DeclaredV1;
use super::{Shown, Stored, Unreadable, from_bytes, shown, to_bytes};
use crate::machine::RecycleOrder;
use crate::object::{MemberState, Reset, Time, WORKSTATIONS_GROUP, WorkstationSpec};
use crate::pool::{Destination, Member, Observed, Recycling, Sighting, Wanted};
use crate::view::Resource;

#[derive(Serialize, Deserialize)]
struct MemberV1 {
    metadata: MetadataV1,
    pool_uid: u128,
    spec: DeclaredV1,
    template_hash: String,
    provider: String,
    state: MemberStateV1,
    since_ms: i64,
    lease: Option<BondV1>,
    reuses: u32,
    cordoned: bool,
    last_used_ms: i64,
    destination: DestinationV1,
    aged: bool,
    build_by_ms: Option<i64>,
    unplaceable: Option<String>,
    revoke_by_ms: Option<i64>,
    down_since_ms: Option<i64>,
    wanted: WantedV1,
    observed: ObservedV1,
}

/// Knows of recycles, and of moments on the steady clock.
#[derive(Serialize, Deserialize)]
struct MemberV2 {
    metadata: MetadataV1,
    pool_uid: u128,
    spec: DeclaredV1,
    template_hash: String,
    provider: String,
    state: MemberStateV1,
    since_ms: i64,
    born_ms: i64,
    lease: Option<BondV1>,
    reuses: u32,
    cordoned: bool,
    last_used_ms: i64,
    destination: DestinationV1,
    aged: bool,
    build_by_ms: Option<i64>,
    unplaceable: Option<String>,
    revoke_by_ms: Option<i64>,
    down_since_ms: Option<i64>,
    recycling: Option<RecyclingV2>,
    recycle_nonce: Option<u128>,
    wanted: WantedV1,
    observed: ObservedV1,
}

/// A recycle under way.
#[derive(Serialize, Deserialize)]
struct RecyclingV2 {
    id: u128,
    by_ms: i64,
    reboot: bool,
    reset_disk: bool,
    boot: Option<u128>,
}

#[derive(Serialize, Deserialize)]
enum MemberStateV1 {
    Building,
    Starting,
    IdleRunning,
    IdleStopped,
    Leased,
    Recycling,
    Stopping,
    Deleting,
}

#[derive(Serialize, Deserialize)]
enum DestinationV1 {
    Running,
    Stopped,
}

#[derive(Serialize, Deserialize)]
struct WantedV1 {
    revision: u64,
    digest: u128,
    keys_revision: u64,
    keys_digest: u128,
    owner_digest: u128,
}

#[derive(Serialize, Deserialize)]
struct ObservedV1 {
    revision: u64,
    sighting: SightingV1,
    boot_id: Option<u128>,
    started_at_ms: Option<i64>,
    configured: bool,
    keys_revision: u64,
    agent: AgentV1,
    remarks: Vec<String>,
    sessions: u32,
    message: String,
}

#[derive(Serialize, Deserialize)]
enum SightingV1 {
    Never,
    Booting,
    Running,
    Stopping,
    Stopped,
    Absent,
    Failed,
}

impl From<MemberState> for MemberStateV1 {
    fn from(live: MemberState) -> Self {
        match live {
            MemberState::Building => Self::Building,
            MemberState::Starting => Self::Starting,
            MemberState::IdleRunning => Self::IdleRunning,
            MemberState::IdleStopped => Self::IdleStopped,
            MemberState::Leased => Self::Leased,
            MemberState::Recycling => Self::Recycling,
            MemberState::Stopping => Self::Stopping,
            MemberState::Deleting => Self::Deleting,
        }
    }
}

impl From<MemberStateV1> for MemberState {
    fn from(stored: MemberStateV1) -> Self {
        match stored {
            MemberStateV1::Building => Self::Building,
            MemberStateV1::Starting => Self::Starting,
            MemberStateV1::IdleRunning => Self::IdleRunning,
            MemberStateV1::IdleStopped => Self::IdleStopped,
            MemberStateV1::Leased => Self::Leased,
            MemberStateV1::Recycling => Self::Recycling,
            MemberStateV1::Stopping => Self::Stopping,
            MemberStateV1::Deleting => Self::Deleting,
        }
    }
}

impl From<Sighting> for SightingV1 {
    fn from(live: Sighting) -> Self {
        match live {
            Sighting::Never => Self::Never,
            Sighting::Booting => Self::Booting,
            Sighting::Running => Self::Running,
            Sighting::Stopping => Self::Stopping,
            Sighting::Stopped => Self::Stopped,
            Sighting::Absent => Self::Absent,
            Sighting::Failed => Self::Failed,
        }
    }
}

impl From<SightingV1> for Sighting {
    fn from(stored: SightingV1) -> Self {
        match stored {
            SightingV1::Never => Self::Never,
            SightingV1::Booting => Self::Booting,
            SightingV1::Running => Self::Running,
            SightingV1::Stopping => Self::Stopping,
            SightingV1::Stopped => Self::Stopped,
            SightingV1::Absent => Self::Absent,
            SightingV1::Failed => Self::Failed,
        }
    }
}

impl From<&Observed> for ObservedV1 {
    fn from(live: &Observed) -> Self {
        Self {
            revision: live.revision,
            sighting: live.sighting.into(),
            boot_id: live.boot_id.map(|boot| boot.0),
            started_at_ms: live.started_at.map(Time::millis),
            configured: live.configured,
            keys_revision: live.keys_revision,
            agent: (&live.agent).into(),
            remarks: live.remarks.clone(),
            sessions: live.sessions,
            message: live.message.clone(),
        }
    }
}

impl From<ObservedV1> for Observed {
    fn from(stored: ObservedV1) -> Self {
        Self {
            revision: stored.revision,
            sighting: stored.sighting.into(),
            boot_id: stored.boot_id.map(Ulid),
            started_at: stored.started_at_ms.map(Time::from_millis),
            configured: stored.configured,
            keys_revision: stored.keys_revision,
            agent: stored.agent.into(),
            remarks: stored.remarks,
            sessions: stored.sessions,
            message: stored.message,
        }
    }
}

impl From<&Recycling> for RecyclingV2 {
    fn from(live: &Recycling) -> Self {
        let RecycleOrder { id, by, reboot, reset } = live.order;
        Self {
            id: id.0,
            by_ms: by.millis(),
            reboot,
            reset_disk: match reset {
                Reset::None => false,
                Reset::Disk => true,
            },
            boot: live.boot.map(|boot| boot.0),
        }
    }
}

impl From<RecyclingV2> for Recycling {
    fn from(stored: RecyclingV2) -> Self {
        Self {
            order: RecycleOrder {
                id: Ulid(stored.id),
                by: Time::from_millis(stored.by_ms),
                reboot: stored.reboot,
                reset: if stored.reset_disk { Reset::Disk } else { Reset::None },
            },
            boot: stored.boot.map(Ulid),
        }
    }
}

impl From<&Member> for MemberV2 {
    fn from(live: &Member) -> Self {
        let Wanted { revision, digest, keys_revision, keys_digest, owner_digest } = live.wanted;
        Self {
            metadata: (&live.metadata).into(),
            pool_uid: live.pool_uid.0,
            spec: DeclaredV1::of(&*live.spec),
            template_hash: live.template_hash.clone(),
            provider: live.provider.clone(),
            state: live.state.into(),
            since_ms: live.since.millis(),
            born_ms: live.born.millis(),
            lease: live.lease.as_ref().map(Into::into),
            reuses: live.reuses,
            cordoned: live.cordoned,
            last_used_ms: live.last_used.millis(),
            destination: match live.destination {
                Destination::Running => DestinationV1::Running,
                Destination::Stopped => DestinationV1::Stopped,
            },
            aged: live.aged,
            build_by_ms: live.build_by.map(Time::millis),
            unplaceable: live.unplaceable.clone(),
            revoke_by_ms: live.revoke_by.map(Time::millis),
            down_since_ms: live.down_since.map(Time::millis),
            recycling: live.recycling.as_ref().map(Into::into),
            recycle_nonce: live.recycle_nonce.map(|nonce| nonce.0),
            wanted: WantedV1 { revision, digest, keys_revision, keys_digest, owner_digest },
            observed: (&live.observed).into(),
        }
    }
}

impl TryFrom<MemberV2> for Member {
    type Error = Unreadable;

    fn try_from(stored: MemberV2) -> Result<Self, Unreadable> {
        let WantedV1 { revision, digest, keys_revision, keys_digest, owner_digest } = stored.wanted;
        Ok(Self {
            metadata: stored.metadata.into(),
            pool_uid: Ulid(stored.pool_uid),
            spec: Arc::new(stored.spec.read::<WorkstationSpec>()?),
            template_hash: stored.template_hash,
            provider: stored.provider,
            state: stored.state.into(),
            since: Time::from_millis(stored.since_ms),
            born: Time::from_millis(stored.born_ms),
            lease: stored.lease.map(Into::into),
            reuses: stored.reuses,
            cordoned: stored.cordoned,
            last_used: Time::from_millis(stored.last_used_ms),
            destination: match stored.destination {
                DestinationV1::Running => Destination::Running,
                DestinationV1::Stopped => Destination::Stopped,
            },
            aged: stored.aged,
            build_by: stored.build_by_ms.map(Time::from_millis),
            unplaceable: stored.unplaceable,
            revoke_by: stored.revoke_by_ms.map(Time::from_millis),
            down_since: stored.down_since_ms.map(Time::from_millis),
            recycling: stored.recycling.map(Into::into),
            recycle_nonce: stored.recycle_nonce.map(Ulid),
            wanted: Wanted { revision, digest, keys_revision, keys_digest, owner_digest },
            observed: stored.observed.into(),
        })
    }
}

/// Its times were of the wall clock, from which the steady one starts; nothing was ever recycled.
impl From<MemberV1> for MemberV2 {
    fn from(old: MemberV1) -> Self {
        Self {
            born_ms: old.metadata.created_ms(),
            metadata: old.metadata,
            pool_uid: old.pool_uid,
            spec: old.spec,
            template_hash: old.template_hash,
            provider: old.provider,
            state: old.state,
            since_ms: old.since_ms,
            lease: old.lease,
            reuses: old.reuses,
            cordoned: old.cordoned,
            last_used_ms: old.last_used_ms,
            destination: old.destination,
            aged: old.aged,
            build_by_ms: old.build_by_ms,
            unplaceable: old.unplaceable,
            revoke_by_ms: old.revoke_by_ms,
            down_since_ms: old.down_since_ms,
            recycling: None,
            recycle_nonce: None,
            wanted: old.wanted,
            observed: old.observed,
        }
    }
}

impl Stored for Member {
    const SHOWN: Shown = Shown { group: WORKSTATIONS_GROUP, plural: "workstations", kind: "Workstation" };
    const NEWEST_VERSION: u8 = 2;

    fn encode(&self) -> Vec<u8> {
        to_bytes(&MemberV2::from(self))
    }

    fn decode(type_version: u8, payload: &[u8]) -> Result<Self, Unreadable> {
        match type_version {
            1 => MemberV2::from(from_bytes::<MemberV1>(payload)?).try_into(),
            2 => from_bytes::<MemberV2>(payload)?.try_into(),
            found => Err(Unreadable::UnknownType { found, newest: Self::NEWEST_VERSION }),
        }
    }

    fn uid(&self) -> Ulid {
        Self::uid(self)
    }

    fn present(&self, version: u64) -> Option<Resource> {
        Some(shown(&Self::SHOWN, &self.metadata, &Self::present(self), version))
    }
}
