//! Leases by what may happen to them next.

use std::collections::{BTreeMap, BTreeSet};

use ulid::Ulid;

use super::{Moments, Step, place, tally};
use crate::object::{FailedReason, LeaseCounts, LeasePhase, LeaseState, Time};
use crate::pool::{Lease, WaitsFor};

/// A waiting lease's place in the queue: oldest first, ties by uid (rule L7).
pub type Place = (Time, Ulid);

/// The looks at a pool's leases. One that is over is in none of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseIndex {
    /// Who waits for a member, in order.
    pub waiting: BTreeSet<Place>,
    /// The same, by what they were told they wait for.
    pub told: BTreeMap<Option<WaitsFor>, BTreeSet<Place>>,
    /// Leases with a wish nobody has acted on yet: to be released, cancelled, or acknowledged.
    pub wishes: BTreeSet<Ulid>,
    /// When unreleased leases end, by the wall clock.
    pub expiry: Moments,
    /// The same by the monotonic clock (rule L21).
    pub terms: Moments,
    /// Failed leases by when they ended.
    pub failed: Moments,
    pub counts: LeaseCounts,
}

impl LeaseIndex {
    pub fn apply(&mut self, step: Step, lease: &Lease) {
        if lease.is_over() {
            return;
        }
        let uid = lease.uid();
        self.count(step, lease.phase);
        if has_wish(lease) {
            place(&mut self.wishes, step, uid);
        }
        if lease.phase == LeasePhase::Failed {
            place(&mut self.failed, step, (lease.ended_at.unwrap_or_default(), uid));
        }
        if is_running(lease) {
            place(&mut self.expiry, step, (lease.expires_at(), uid));
            place(&mut self.terms, step, (lease.term_ends, uid));
        }
        if lease.phase == LeasePhase::Pending && lease.asked() == LeaseState::Needed {
            let position = (lease.created(), uid);
            place(&mut self.waiting, step, position);
            let told = self.told.entry(lease.waits_for.clone()).or_default();
            place(told, step, position);
            if told.is_empty() {
                self.told.remove(&lease.waits_for);
            }
        }
    }

    const fn count(&mut self, step: Step, phase: LeasePhase) {
        match phase {
            LeasePhase::Pending => tally(&mut self.counts.pending, step),
            LeasePhase::Failed => tally(&mut self.counts.failed, step),
            LeasePhase::Starting | LeasePhase::Recycling | LeasePhase::Releasing => {
                tally(&mut self.counts.bound, step);
            }
            LeasePhase::Ready => {
                tally(&mut self.counts.bound, step);
                tally(&mut self.counts.ready, step);
            }
        }
    }
}

/// Nobody has released it and it has not ended: time ends it (rule L13).
fn is_running(lease: &Lease) -> bool {
    lease.asked() == LeaseState::Needed
        && matches!(lease.phase, LeasePhase::Pending | LeasePhase::Starting | LeasePhase::Ready)
}

fn has_wish(lease: &Lease) -> bool {
    match lease.phase {
        LeasePhase::Pending | LeasePhase::Starting | LeasePhase::Ready => lease.asked() != LeaseState::Needed,
        LeasePhase::Recycling => lease.asked() == LeaseState::Done,
        LeasePhase::Releasing => false,
        LeasePhase::Failed => is_acknowledged(lease),
    }
}

/// Its holder has read that it failed (rule L15).
fn is_acknowledged(lease: &Lease) -> bool {
    if lease.metadata.deletion_timestamp.is_some() {
        return true;
    }
    match lease.reason {
        Some(FailedReason::RecycleFailed | FailedReason::RecycleTimedOut) => {
            lease.spec.state == LeaseState::Done
        }
        Some(FailedReason::Expired | FailedReason::PoolDeleted | FailedReason::MemberLost) | None => {
            lease.spec.state != LeaseState::Needed
        }
    }
}
