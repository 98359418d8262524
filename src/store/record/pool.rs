//! A pool on disk.

use serde::{Deserialize, Serialize};
use ulid::Ulid;

use super::common::{MetadataV1, SubjectV1};
use super::declared::DeclaredV1;
use super::{Shown, Stored, Unreadable, from_bytes, shown, to_bytes};
use crate::object::{LastFailure, Time, WORKSTATIONS_GROUP};
use crate::pool::{BackOff, Health, PoolRow};
use crate::view::Resource;

#[derive(Serialize, Deserialize)]
struct PoolV1 {
    metadata: MetadataV1,
    spec: DeclaredV1,
    owner: SubjectV1,
    template_hash: String,
    ever_ready: bool,
    consecutive_failures: u32,
    back_off: Option<BackOffV1>,
    last_failure: Option<LastFailureV1>,
    status: DeclaredV1,
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
        let Health { consecutive_failures, back_off, last_failure } = &live.health;
        Self {
            metadata: (&live.metadata).into(),
            spec: DeclaredV1::of(&live.spec),
            owner: (&live.owner).into(),
            template_hash: live.template_hash.clone(),
            ever_ready: live.ever_ready,
            consecutive_failures: *consecutive_failures,
            back_off: back_off
                .map(|wait| BackOffV1 { began_ms: wait.began.millis(), until_ms: wait.until.millis() }),
            last_failure: last_failure.as_ref().map(|failure| LastFailureV1 {
                member: failure.member.clone(),
                reason: failure.reason.clone(),
                message: failure.message.clone(),
                at_ms: failure.at.millis(),
            }),
            status: DeclaredV1::of(&live.status),
        }
    }
}

impl TryFrom<PoolV1> for PoolRow {
    type Error = Unreadable;

    fn try_from(stored: PoolV1) -> Result<Self, Unreadable> {
        Ok(Self {
            metadata: stored.metadata.into(),
            spec: stored.spec.read()?,
            owner: stored.owner.into(),
            template_hash: stored.template_hash,
            ever_ready: stored.ever_ready,
            health: Health {
                consecutive_failures: stored.consecutive_failures,
                back_off: stored.back_off.map(|wait| BackOff {
                    began: Time::from_millis(wait.began_ms),
                    until: Time::from_millis(wait.until_ms),
                }),
                last_failure: stored.last_failure.map(|failure| LastFailure {
                    member: failure.member,
                    reason: failure.reason,
                    message: failure.message,
                    at: Time::from_millis(failure.at_ms),
                }),
            },
            status: stored.status.read()?,
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

    fn present(&self, version: u64) -> Option<Resource> {
        Some(shown(&Self::SHOWN, &self.metadata, &Self::present(self)?, version))
    }
}
