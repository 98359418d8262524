//! The small steps that commands and passes are made of: each keeps lease and member in accord.

use ulid::Ulid;

use super::draft::Draft;
use super::{Lease, Member, recycle};
use crate::object::{
    FailedReason, LeasePhase, LeaseState, MemberState, NotRecycled, Outcome, RELEASE_FINALIZER, Release,
};

/// How long a delete waits for the agent to confirm that the lease's keys are gone (rule A2).
pub const REVOKE_WITHIN_MILLIS: i64 = 5_000;

impl Draft<'_> {
    /// The lease ends as Failed and lets go of its member; it stays to be read (rule L15).
    pub fn fail_lease(&mut self, uid: Ulid, reason: FailedReason, message: String) {
        let now = self.now();
        let Some(lease) = self.lease_mut(uid) else { return };
        lease.phase = LeasePhase::Failed;
        lease.reason = Some(reason);
        lease.message = message;
        lease.ended_at = Some(now);
        lease.member = None;
        lease.waits_for = None;
        lease.ssh = None;
    }

    /// The lease waits again, in its old place (rule L7).
    pub fn requeue_lease(&mut self, uid: Ulid) {
        let Some(lease) = self.lease_mut(uid) else { return };
        lease.phase = LeasePhase::Pending;
        lease.member = None;
        lease.bound_at = None;
        lease.waits_for = None;
        lease.message = String::new();
        lease.ssh = None;
    }

    /// What the lease stood for is carried out: the object goes, unless a foreign finalizer keeps it.
    pub fn finish_lease(&mut self, uid: Ulid) {
        let now = self.now();
        let Some(lease) = self.lease_mut(uid) else { return };
        lease.metadata.deletion_timestamp.get_or_insert(now.whole_seconds());
        lease.metadata.finalizers.retain(|finalizer| finalizer != RELEASE_FINALIZER);
        if lease.metadata.finalizers.is_empty() {
            self.remove_lease(uid);
            return;
        }
        if lease.phase != LeasePhase::Failed {
            lease.phase = LeasePhase::Releasing;
        }
        lease.member = None;
        lease.waits_for = None;
        lease.ssh = None;
        lease.message = "ended; the object stays until its finalizers are removed".into();
    }

    /// The lease's release is under way: its keys go now, its member next (rules L9, L10).
    pub fn release_lease(&mut self, uid: Ulid, reason: Option<NotRecycled>) {
        self.mark_released(uid, reason);
        let Some(member) = self.lease(uid).and_then(|lease| lease.member.as_ref()).map(|bond| bond.uid)
        else {
            return;
        };
        self.delete_member(member);
        if self.member(member).is_some_and(Member::is_gone_ordered) {
            // No key of the lease was ever on it: the delete is accepted already.
            self.unbind(member);
            self.finish_lease(uid);
        }
    }

    /// The lease ends as its holder asked, and its member is deleted.
    fn mark_released(&mut self, uid: Ulid, reason: Option<NotRecycled>) {
        let now = self.now();
        let Some(lease) = self.lease_mut(uid) else { return };
        lease.phase = LeasePhase::Releasing;
        lease.release = Some(Release {
            requested: Some(lease.asked()),
            outcome: Some(Outcome::Deleted),
            reason,
            message: reason.map(|reason| not_recycled_message(reason).to_owned()).unwrap_or_default(),
            at: Some(now),
        });
        lease.ended_at = Some(now);
        lease.ssh = None;
        lease.message = String::new();
    }

    /// The member goes. Where a lease's keys may be on it, it first has until the deadline to drop
    /// them; otherwise its machine is ordered gone at once.
    pub fn delete_member(&mut self, uid: Ulid) {
        let (now, steady) = (self.now(), self.steady());
        let Some(member) = self.member_mut(uid) else { return };
        if member.state == MemberState::Deleting {
            return;
        }
        let carries_keys = matches!(member.state, MemberState::Leased | MemberState::Recycling);
        member.revoke_by = carries_keys.then(|| steady.plus_millis(REVOKE_WITHIN_MILLIS));
        member.enter(MemberState::Deleting, steady);
        member.metadata.deletion_timestamp.get_or_insert(now.whole_seconds());
    }

    /// A member that served is lost: gone, broken, or deleted by hand. What becomes of its lease
    /// depends on how far that was (rule L17).
    pub fn lose_member(&mut self, uid: Ulid, why: &str) {
        let Some(member) = self.member(uid) else { return };
        if member.state == MemberState::Recycling {
            return recycle::fail(self, uid, FailedReason::RecycleFailed, why);
        }
        let (lease, name) = (member.lease.as_ref().map(|bond| bond.uid), member.metadata.name.clone());
        self.delete_member(uid);
        let Some(lease) = lease.and_then(|uid| self.lease(uid)) else { return };
        let uid_of_lease = lease.uid();
        match fate(lease) {
            Fate::GoesOn => {}
            Fate::IsReleased => {
                self.unbind(uid);
                self.mark_released(uid_of_lease, None);
                self.finish_lease(uid_of_lease);
            }
            Fate::WaitsAgain => {
                self.unbind(uid);
                self.requeue_lease(uid_of_lease);
            }
            Fate::Fails(reason) => {
                self.unbind(uid);
                self.fail_lease(uid_of_lease, reason, format!("{name} was lost: {why}"));
                let reason = format!("{reason:?}");
                self.warn(&reason, why, format!("{name} was lost while leased: {why}"));
            }
        }
    }

    /// The member's side of a binding that ends.
    pub fn unbind(&mut self, member: Ulid) {
        if let Some(member) = self.member_mut(member) {
            member.lease = None;
        }
    }
}

/// What losing its member means for a lease.
enum Fate {
    /// It is being released: the delete goes on.
    GoesOn,
    /// Its holder has let it go, and nobody has acted on that yet: this does.
    IsReleased,
    /// It was never usable: it gets another member.
    WaitsAgain,
    Fails(FailedReason),
}

fn fate(lease: &Lease) -> Fate {
    match lease.phase {
        LeasePhase::Starting | LeasePhase::Ready if lease.asked() != LeaseState::Needed => Fate::IsReleased,
        LeasePhase::Starting if lease.ready_at.is_none() => Fate::WaitsAgain,
        LeasePhase::Starting | LeasePhase::Ready => Fate::Fails(FailedReason::MemberLost),
        // Of a recycling lease the recycle has the word.
        LeasePhase::Pending | LeasePhase::Recycling | LeasePhase::Releasing | LeasePhase::Failed => {
            Fate::GoesOn
        }
    }
}

impl Member {
    /// Moves it to another state; what belonged to the old one alone ends with it.
    pub fn enter(&mut self, state: MemberState, steady: crate::object::Time) {
        self.state = state;
        self.since = steady;
        self.down_since = (state == MemberState::Starting).then_some(steady);
        self.recycling = None;
        self.unplaceable = None;
        self.build_by = None;
    }
}

const fn not_recycled_message(reason: NotRecycled) -> &'static str {
    match reason {
        NotRecycled::PoolDeleted => "the pool is being deleted",
        NotRecycled::RecycleDisabled => "the pool has no recycle block",
        NotRecycled::MaxReusesReached => "the member has been recycled recycle.maxReuses times",
        NotRecycled::MaxAgeReached => "the member is older than maxAge",
        NotRecycled::TemplateChanged => "the member was built from an older template",
        NotRecycled::Cordoned => "the member is cordoned",
        NotRecycled::RecycleUnsupported => "the agent on the member cannot recycle it",
    }
}
