//! A pool on disk: while its object is there, and once it is gone and only Failed leases
//! keep its row.

use serde::{Deserialize, Serialize};
use ulid::Ulid;

use super::common::{MetadataV1, SubjectV1, from_json, to_json};
use super::{Shown, Stored, Unreadable, from_bytes, shown, to_bytes};
use crate::object::{LastFailure, Time, WORKSTATIONS_GROUP};
use crate::pool::{BackOff, Health, PoolRow};
use crate::view::Resource;

/// A pool whose object is gone. The API serves no such kind: nobody sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuriedPool(pub PoolRow);

#[derive(Serialize, Deserialize)]
pub(super) struct PoolV1 {
    metadata: MetadataV1,
    /// The API's `spec`, as JSON.
    spec: String,
    owner: SubjectV1,
    template_hash: String,
    ever_ready: bool,
    consecutive_failures: u32,
    back_off: Option<BackOffV1>,
    last_failure: Option<LastFailureV1>,
    /// The API's `status` as last written, as JSON.
    status: String,
}

#[derive(Serialize, Deserialize)]
struct BackOffV1 {
    began_ms: i64,
    until_ms: i64,
}

#[derive(Serialize, Deserialize)]
struct LastFailureV1 {
    member: String,
    reason: String,
    message: String,
    at_ms: i64,
}

impl From<&PoolRow> for PoolV1 {
    fn from(live: &PoolRow) -> Self {
        let health = &live.health;
        Self {
            metadata: (&live.metadata).into(),
            spec: to_json(&live.spec),
            owner: (&live.owner).into(),
            template_hash: live.template_hash.clone(),
            ever_ready: live.ever_ready,
            consecutive_failures: health.consecutive_failures,
            back_off: health.back_off.map(|back_off| BackOffV1 {
                began_ms: back_off.began.millis(),
                until_ms: back_off.until.millis(),
            }),
            last_failure: health.last_failure.as_ref().map(|failure| LastFailureV1 {
                member: failure.member.clone(),
                reason: failure.reason.clone(),
                message: failure.message.clone(),
                at_ms: failure.at.millis(),
            }),
            status: to_json(&live.status),
        }
    }
}

impl TryFrom<PoolV1> for PoolRow {
    type Error = Unreadable;

    fn try_from(stored: PoolV1) -> Result<Self, Unreadable> {
        Ok(Self {
            metadata: stored.metadata.into(),
            spec: from_json(&stored.spec)?,
            owner: stored.owner.into(),
            template_hash: stored.template_hash,
            ever_ready: stored.ever_ready,
            health: Health {
                consecutive_failures: stored.consecutive_failures,
                back_off: stored.back_off.map(|back_off| BackOff {
                    began: Time::from_millis(back_off.began_ms),
                    until: Time::from_millis(back_off.until_ms),
                }),
                last_failure: stored.last_failure.map(|failure| LastFailure {
                    member: failure.member,
                    reason: failure.reason,
                    message: failure.message,
                    at: Time::from_millis(failure.at_ms),
                }),
            },
            status: from_json(&stored.status)?,
        })
    }
}

impl Stored for PoolRow {
    const SHOWN: Shown =
        Shown { group: WORKSTATIONS_GROUP, plural: "workstationpools", kind: "WorkstationPool" };
    const NEWEST_VERSION: u8 = 1;

    fn encode(&self) -> Vec<u8> {
        to_bytes(&PoolV1::from(self))
    }

    fn decode(type_version: u8, payload: &[u8]) -> Result<Self, Unreadable> {
        match type_version {
            1 => from_bytes::<PoolV1>(payload)?.try_into(),
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

impl Stored for BuriedPool {
    const SHOWN: Shown = Shown { group: "", plural: "buriedpools", kind: "BuriedPool" };
    const NEWEST_VERSION: u8 = PoolRow::NEWEST_VERSION;

    fn encode(&self) -> Vec<u8> {
        Stored::encode(&self.0)
    }

    fn decode(type_version: u8, payload: &[u8]) -> Result<Self, Unreadable> {
        Stored::decode(type_version, payload).map(Self)
    }

    fn uid(&self) -> Ulid {
        self.0.uid()
    }

    /// Named by its uid, because several pools of one name may lie buried.
    fn present(&self, version: u64) -> Resource {
        let mut metadata = self.0.metadata.clone();
        metadata.name = self.0.uid().to_string();
        shown(&Self::SHOWN, &metadata, &(), version)
    }
}
