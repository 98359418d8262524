//! A lease on disk.

use serde::{Deserialize, Serialize};
use ulid::Ulid;

use super::common::{BondV1, MetadataV1, SshAccessV1, SubjectV1};
use super::{Shown, Stored, Unreadable, from_bytes, shown, to_bytes};
use crate::object::{
    FailedReason, LeasePhase, LeaseSpec, LeaseState, NotRecycled, Outcome, PoolRef, Release, Time,
    WORKSTATIONS_GROUP,
};
use crate::pool::{Lease, Start, WaitsFor};
use crate::view::Resource;

#[derive(Serialize, Deserialize)]
struct LeaseV1 {
    metadata: MetadataV1,
    pool_name: String,
    state: LeaseStateV1,
    expires_at_ms: Option<i64>,
    authorized_keys: Vec<String>,
    pool_uid: u128,
    holder: SubjectV1,
    phase: LeasePhaseV1,
    observed_generation: i64,
    member: Option<BondV1>,
    waits_for: Option<WaitsForV1>,
    message: String,
    bound_at_ms: Option<i64>,
    ready_at_ms: Option<i64>,
    ended_at_ms: Option<i64>,
    ssh: Option<SshAccessV1>,
    release: Option<ReleaseV1>,
    reason: Option<FailedReasonV1>,
    term_ends_monotonic_ms: u64,
    bound_changed_ms: i64,
    ready_changed_ms: i64,
}

/// Knows how long it waited for what, and moments on the steady clock.
#[derive(Serialize, Deserialize)]
struct LeaseV2 {
    metadata: MetadataV1,
    pool_name: String,
    state: LeaseStateV1,
    expires_at_ms: Option<i64>,
    authorized_keys: Vec<String>,
    pool_uid: u128,
    holder: SubjectV1,
    phase: LeasePhaseV1,
    observed_generation: i64,
    member: Option<BondV1>,
    waits_for: Option<WaitsForV1>,
    message: String,
    start: Option<StartV2>,
    asked_at_ms: i64,
    waited_ms: Option<i64>,
    bound_at_ms: Option<i64>,
    ready_at_ms: Option<i64>,
    ended_at_ms: Option<i64>,
    ssh: Option<SshAccessV1>,
    release: Option<ReleaseV1>,
    reason: Option<FailedReasonV1>,
    term_ends_ms: i64,
    bound_changed_ms: i64,
    ready_changed_ms: i64,
}

#[derive(Serialize, Deserialize)]
struct ReleaseV1 {
    requested: Option<LeaseStateV1>,
    outcome: Option<OutcomeV1>,
    reason: Option<NotRecycledV1>,
    message: String,
    at_ms: Option<i64>,
}

#[derive(Serialize, Deserialize)]
enum WaitsForV1 {
    Release,
    BackOff { until_ms: i64, failures: u32 },
    Probe { failures: u32 },
    Room { why: String },
    Provider { why: String },
    TemplateFix { why: String },
    Turn,
    Paused,
}

/// A frozen twin of a live enum without fields, and both conversions.
macro_rules! frozen_enum {
    ($frozen:ident = $live:ident { $($variant:ident),+ $(,)? }) => {
        #[derive(Clone, Copy, Serialize, Deserialize)]
        enum $frozen { $($variant),+ }

        impl From<$live> for $frozen {
            fn from(live: $live) -> Self {
                match live { $($live::$variant => Self::$variant),+ }
            }
        }

        impl From<$frozen> for $live {
            fn from(stored: $frozen) -> Self {
                match stored { $($frozen::$variant => Self::$variant),+ }
            }
        }
    };
}

frozen_enum!(StartV2 = Start { Warm, Resumed, Cold });
frozen_enum!(LeaseStateV1 = LeaseState { Needed, Recycle, Done });
frozen_enum!(LeasePhaseV1 = LeasePhase { Pending, Starting, Ready, Recycling, Releasing, Failed });
frozen_enum!(OutcomeV1 = Outcome { Deleted, Recycled });
frozen_enum!(
    FailedReasonV1 = FailedReason { Expired, PoolDeleted, MemberLost, RecycleFailed, RecycleTimedOut }
);
frozen_enum!(
    NotRecycledV1 = NotRecycled {
        PoolDeleted,
        RecycleDisabled,
        MaxReusesReached,
        MaxAgeReached,
        TemplateChanged,
        Cordoned,
        RecycleUnsupported,
    }
);

impl From<&WaitsFor> for WaitsForV1 {
    fn from(live: &WaitsFor) -> Self {
        match live.clone() {
            WaitsFor::Release => Self::Release,
            WaitsFor::BackOff { until, failures } => Self::BackOff { until_ms: until.millis(), failures },
            WaitsFor::Probe { failures } => Self::Probe { failures },
            WaitsFor::Room { why } => Self::Room { why },
            WaitsFor::Provider { why } => Self::Provider { why },
            WaitsFor::TemplateFix { why } => Self::TemplateFix { why },
            WaitsFor::Turn => Self::Turn,
            WaitsFor::Paused => Self::Paused,
        }
    }
}

impl From<WaitsForV1> for WaitsFor {
    fn from(stored: WaitsForV1) -> Self {
        match stored {
            WaitsForV1::Release => Self::Release,
            WaitsForV1::BackOff { until_ms, failures } => {
                Self::BackOff { until: Time::from_millis(until_ms), failures }
            }
            WaitsForV1::Probe { failures } => Self::Probe { failures },
            WaitsForV1::Room { why } => Self::Room { why },
            WaitsForV1::Provider { why } => Self::Provider { why },
            WaitsForV1::TemplateFix { why } => Self::TemplateFix { why },
            WaitsForV1::Turn => Self::Turn,
            WaitsForV1::Paused => Self::Paused,
        }
    }
}

impl From<&Release> for ReleaseV1 {
    fn from(live: &Release) -> Self {
        Self {
            requested: live.requested.map(Into::into),
            outcome: live.outcome.map(Into::into),
            reason: live.reason.map(Into::into),
            message: live.message.clone(),
            at_ms: live.at.map(Time::millis),
        }
    }
}

impl From<ReleaseV1> for Release {
    fn from(stored: ReleaseV1) -> Self {
        Self {
            requested: stored.requested.map(Into::into),
            outcome: stored.outcome.map(Into::into),
            reason: stored.reason.map(Into::into),
            message: stored.message,
            at: stored.at_ms.map(Time::from_millis),
        }
    }
}

impl From<&Lease> for LeaseV2 {
    fn from(live: &Lease) -> Self {
        let LeaseSpec { workstation_pool_ref, state, expires_at, authorized_keys } = &live.spec;
        Self {
            metadata: (&live.metadata).into(),
            pool_name: workstation_pool_ref.name.clone(),
            state: (*state).into(),
            expires_at_ms: expires_at.map(Time::millis),
            authorized_keys: authorized_keys.clone(),
            pool_uid: live.pool_uid.0,
            holder: (&live.holder).into(),
            phase: live.phase.into(),
            observed_generation: live.observed_generation,
            member: live.member.as_ref().map(Into::into),
            waits_for: live.waits_for.as_ref().map(Into::into),
            message: live.message.clone(),
            start: live.start.map(Into::into),
            asked_at_ms: live.asked_at.millis(),
            waited_ms: live.waited_millis,
            bound_at_ms: live.bound_at.map(Time::millis),
            ready_at_ms: live.ready_at.map(Time::millis),
            ended_at_ms: live.ended_at.map(Time::millis),
            ssh: live.ssh.as_ref().map(Into::into),
            release: live.release.as_ref().map(Into::into),
            reason: live.reason.map(Into::into),
            term_ends_ms: live.term_ends.millis(),
            bound_changed_ms: live.bound_changed.millis(),
            ready_changed_ms: live.ready_changed.millis(),
        }
    }
}

impl From<LeaseV2> for Lease {
    fn from(stored: LeaseV2) -> Self {
        Self {
            metadata: stored.metadata.into(),
            spec: LeaseSpec {
                workstation_pool_ref: PoolRef { name: stored.pool_name },
                state: stored.state.into(),
                expires_at: stored.expires_at_ms.map(Time::from_millis),
                authorized_keys: stored.authorized_keys,
            },
            pool_uid: Ulid(stored.pool_uid),
            holder: stored.holder.into(),
            phase: stored.phase.into(),
            observed_generation: stored.observed_generation,
            member: stored.member.map(Into::into),
            waits_for: stored.waits_for.map(Into::into),
            message: stored.message,
            start: stored.start.map(Into::into),
            asked_at: Time::from_millis(stored.asked_at_ms),
            waited_millis: stored.waited_ms,
            bound_at: stored.bound_at_ms.map(Time::from_millis),
            ready_at: stored.ready_at_ms.map(Time::from_millis),
            ended_at: stored.ended_at_ms.map(Time::from_millis),
            ssh: stored.ssh.map(Into::into),
            release: stored.release.map(Into::into),
            reason: stored.reason.map(Into::into),
            term_ends: Time::from_millis(stored.term_ends_ms),
            bound_changed: Time::from_millis(stored.bound_changed_ms),
            ready_changed: Time::from_millis(stored.ready_changed_ms),
        }
    }
}

/// Its term was told on a clock that ends with the host's boot: `expiresAt` is never later.
impl From<LeaseV1> for LeaseV2 {
    fn from(old: LeaseV1) -> Self {
        let asked_at_ms = old.metadata.created_ms();
        Self {
            metadata: old.metadata,
            pool_name: old.pool_name,
            state: old.state,
            expires_at_ms: old.expires_at_ms,
            authorized_keys: old.authorized_keys,
            pool_uid: old.pool_uid,
            holder: old.holder,
            phase: old.phase,
            observed_generation: old.observed_generation,
            member: old.member,
            waits_for: old.waits_for,
            message: old.message,
            start: None,
            asked_at_ms,
            waited_ms: old.ready_at_ms.map(|ready| ready.saturating_sub(asked_at_ms).max(0)),
            bound_at_ms: old.bound_at_ms,
            ready_at_ms: old.ready_at_ms,
            ended_at_ms: old.ended_at_ms,
            ssh: old.ssh,
            release: old.release,
            reason: old.reason,
            term_ends_ms: old.expires_at_ms.unwrap_or_default(),
            bound_changed_ms: old.bound_changed_ms,
            ready_changed_ms: old.ready_changed_ms,
        }
    }
}

impl Stored for Lease {
    const SHOWN: Shown =
        Shown { group: WORKSTATIONS_GROUP, plural: "workstationpoolleases", kind: "WorkstationPoolLease" };
    const NEWEST_VERSION: u8 = 2;

    fn encode(&self) -> Vec<u8> {
        to_bytes(&LeaseV2::from(self))
    }

    fn decode(type_version: u8, payload: &[u8]) -> Result<Self, Unreadable> {
        match type_version {
            1 => Ok(LeaseV2::from(from_bytes::<LeaseV1>(payload)?).into()),
            2 => Ok(from_bytes::<LeaseV2>(payload)?.into()),
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
