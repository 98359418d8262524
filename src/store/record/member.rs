//! A pool's Workstation on disk.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use ulid::Ulid;

use super::common::{BondV1, MetadataV1, from_json, to_json};
use super::{Shown, Stored, Unreadable, from_bytes, shown, to_bytes};
use crate::machine::AgentInfo;
use crate::object::{MemberState, Time, WORKSTATIONS_GROUP};
use crate::pool::{Destination, Member, Observed, Sighting, Wanted};
use crate::view::Resource;

#[derive(Serialize, Deserialize)]
struct MemberV1 {
    metadata: MetadataV1,
    pool_uid: u128,
    /// The template's `spec` it was built from, as JSON.
    spec: String,
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
    started_ms: Option<i64>,
    configured: bool,
    keys_revision: u64,
    agent: AgentInfoV1,
    remarks: Vec<String>,
    sessions: u32,
    message: String,
}

#[derive(Serialize, Deserialize)]
struct AgentInfoV1 {
    version: String,
    capabilities: Vec<String>,
    login_user: String,
    host_keys: Vec<String>,
    image: String,
}

frozen_enum!(MemberStateV1 of MemberState {
    Building, Starting, IdleRunning, IdleStopped, Leased, Recycling, Stopping, Deleting,
});
frozen_enum!(DestinationV1 of Destination { Running, Stopped });
frozen_enum!(SightingV1 of Sighting { Never, Booting, Running, Stopping, Stopped, Absent, Failed });

impl From<&Wanted> for WantedV1 {
    fn from(live: &Wanted) -> Self {
        Self {
            revision: live.revision,
            digest: live.digest,
            keys_revision: live.keys_revision,
            keys_digest: live.keys_digest,
            owner_digest: live.owner_digest,
        }
    }
}

impl From<WantedV1> for Wanted {
    fn from(stored: WantedV1) -> Self {
        Self {
            revision: stored.revision,
            digest: stored.digest,
            keys_revision: stored.keys_revision,
            keys_digest: stored.keys_digest,
            owner_digest: stored.owner_digest,
        }
    }
}

impl From<&Observed> for ObservedV1 {
    fn from(live: &Observed) -> Self {
        Self {
            revision: live.revision,
            sighting: live.sighting.into(),
            boot_id: live.boot_id.map(|boot| boot.0),
            started_ms: live.started_at.map(Time::millis),
            configured: live.configured,
            keys_revision: live.keys_revision,
            agent: AgentInfoV1 {
                version: live.agent.version.clone(),
                capabilities: live.agent.capabilities.clone(),
                login_user: live.agent.login_user.clone(),
                host_keys: live.agent.host_keys.clone(),
                image: live.agent.image.clone(),
            },
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
            started_at: stored.started_ms.map(Time::from_millis),
            configured: stored.configured,
            keys_revision: stored.keys_revision,
            agent: AgentInfo {
                version: stored.agent.version,
                capabilities: stored.agent.capabilities,
                login_user: stored.agent.login_user,
                host_keys: stored.agent.host_keys,
                image: stored.agent.image,
            },
            remarks: stored.remarks,
            sessions: stored.sessions,
            message: stored.message,
        }
    }
}

impl From<&Member> for MemberV1 {
    fn from(live: &Member) -> Self {
        Self {
            metadata: (&live.metadata).into(),
            pool_uid: live.pool_uid.0,
            spec: to_json(&*live.spec),
            template_hash: live.template_hash.clone(),
            provider: live.provider.clone(),
            state: live.state.into(),
            since_ms: live.since.millis(),
            lease: live.lease.as_ref().map(Into::into),
            reuses: live.reuses,
            cordoned: live.cordoned,
            last_used_ms: live.last_used.millis(),
            destination: live.destination.into(),
            aged: live.aged,
            build_by_ms: live.build_by.map(Time::millis),
            unplaceable: live.unplaceable.clone(),
            revoke_by_ms: live.revoke_by.map(Time::millis),
            down_since_ms: live.down_since.map(Time::millis),
            wanted: (&live.wanted).into(),
            observed: (&live.observed).into(),
        }
    }
}

impl TryFrom<MemberV1> for Member {
    type Error = Unreadable;

    fn try_from(stored: MemberV1) -> Result<Self, Unreadable> {
        Ok(Self {
            metadata: stored.metadata.into(),
            pool_uid: Ulid(stored.pool_uid),
            spec: Arc::new(from_json(&stored.spec)?),
            template_hash: stored.template_hash,
            provider: stored.provider,
            state: stored.state.into(),
            since: Time::from_millis(stored.since_ms),
            lease: stored.lease.map(Into::into),
            reuses: stored.reuses,
            cordoned: stored.cordoned,
            last_used: Time::from_millis(stored.last_used_ms),
            destination: stored.destination.into(),
            aged: stored.aged,
            build_by: stored.build_by_ms.map(Time::from_millis),
            unplaceable: stored.unplaceable,
            revoke_by: stored.revoke_by_ms.map(Time::from_millis),
            down_since: stored.down_since_ms.map(Time::from_millis),
            wanted: stored.wanted.into(),
            observed: stored.observed.into(),
        })
    }
}

impl Stored for Member {
    const SHOWN: Shown = Shown { group: WORKSTATIONS_GROUP, plural: "workstations", kind: "Workstation" };
    const NEWEST_VERSION: u8 = 1;

    fn encode(&self) -> Vec<u8> {
        to_bytes(&MemberV1::from(self))
    }

    fn decode(type_version: u8, payload: &[u8]) -> Result<Self, Unreadable> {
        match type_version {
            1 => from_bytes::<MemberV1>(payload)?.try_into(),
            found => Err(Unreadable::UnknownType { found, newest: Self::NEWEST_VERSION }),
        }
    }

    fn uid(&self) -> Ulid {
        Self::uid(self)
    }

    fn present(&self, version: u64) -> Resource {
        shown(&Self::SHOWN, &self.metadata, &Self::present(self), version)
    }
}
