//! What each act of a pass does.

use ringleader_proof::machine::{RECYCLE_CAPABILITY, RecycleOrder};
use ringleader_proof::object::{
    FailedReason, LeasePhase, LeaseState, MemberState, NotRecycled, Outcome, Reset,
};
use ringleader_proof::pool::{Change, Decision, Destination, Resetting, Sighting, Start};
use ulid::Ulid;

use super::machines::BUILD_MILLIS;
use super::{Due, Lease, Member, Naive, Now, Release, Seen, Wish};

/// A2.
const REVOKE_MILLIS: i64 = 5_000;

impl Naive {
    /// Does it. From the core's decision it takes the ids that were made, and nothing else.
    pub fn act(&mut self, due: Due, decision: &Decision, now: Now<'_>) {
        match due {
            Due::Expire(uid) => self.expire(uid, now),
            Due::Release(uid) => self.act_on_wish(uid, decision, now),
            Due::Revoke(uid) => {
                let member = self.member(uid);
                member.revoke_by = None;
                if let Some(lease) = member.lease.take() {
                    self.finish(lease);
                }
            }
            Due::GiveUpBuild(uid) => self.fail_build(uid, now),
            Due::GiveUpRecycle(uid) => self.fail_recycle(uid, FailedReason::RecycleTimedOut, now),
            Due::GiveUpDown(uid) => self.lose(uid, now),
            Due::FailWaiting(uid) => self.fail(uid, FailedReason::PoolDeleted, now),
            Due::StopRecycle(uid) => {
                let lease = self.member(uid).lease.expect("a recycling member is bound");
                self.release(lease, Some(NotRecycled::PoolDeleted), now);
            }
            Due::EndMember(uid) | Due::LetGo(uid) => self.delete(uid, now),
            Due::EndPool => self.over = true,
            Due::EndRow => self.ended = true,
            Due::Forget(uid) => self.finish(uid),
            Due::Refresh(_) => {}
            Due::Bind { lease, member } => self.bind(lease, member, now),
            Due::BuildFor(lease) => {
                let member = self.build(Destination::Running, decision, now);
                self.bind(lease, member, now);
            }
            Due::Build(destination) => _ = self.build(destination, decision, now),
            Due::Age(uid) => {
                let member = self.member(uid);
                member.aged = !member.aged;
            }
            Due::StopForFloor(uid) => {
                let member = self.member(uid);
                member.enter(MemberState::Stopping, now.steady);
                member.for_stopped = false;
            }
            Due::Stop(uid) => self.member(uid).enter(MemberState::Stopping, now.steady),
            Due::Start(uid) => self.member(uid).enter(MemberState::Starting, now.steady),
            Due::Tell => self.tell(decision, now),
        }
    }

    /// L13.
    fn expire(&mut self, uid: Ulid, now: Now<'_>) {
        if let Some(member) = self.lease(uid).member {
            self.delete(member, now);
            self.member(member).lease = None;
        }
        self.fail(uid, FailedReason::Expired, now);
    }

    /// L9, L10, L11, L14, L15.
    fn act_on_wish(&mut self, uid: Ulid, decision: &Decision, now: Now<'_>) {
        let lease = self.lease(uid).clone();
        let Some(member) = lease.member else { return self.finish(uid) };
        if lease.asked() != LeaseState::Recycle {
            return self.release(uid, None, now);
        }
        let member = self.member(member).clone();
        if member.is_untouched() && !member.cordoned && !self.deleting {
            self.member(member.uid).lease = None;
            let lease = self.lease(uid);
            lease.ended_at = Some(now.wall);
            lease.release = Some(Release {
                requested: Some(LeaseState::Recycle),
                outcome: Some(Outcome::Recycled),
                reason: None,
            });
            return self.finish(uid);
        }
        match self.why_not_recycled(&member, now) {
            Some(reason) => self.release(uid, Some(reason), now),
            None => self.begin_recycle(uid, member.uid, decision, now),
        }
    }

    /// R8, in its order.
    fn why_not_recycled(&self, member: &Member, now: Now<'_>) -> Option<NotRecycled> {
        let Some(rules) = &self.spec.recycle else {
            let deleting = self.deleting.then_some(NotRecycled::PoolDeleted);
            return deleting.or(Some(NotRecycled::RecycleDisabled));
        };
        let old = self
            .spec
            .max_age
            .as_ref()
            .is_some_and(|max| now.steady.millis_since(member.born) >= max.millis());
        let knows_how = member.seen.capabilities.iter().any(|word| word == RECYCLE_CAPABILITY);
        let provider = now.inputs.providers.iter().find(|provider| provider.name == member.provider);
        let resets = provider.is_some_and(|provider| provider.resetting == Resetting::Possible);
        if self.deleting {
            Some(NotRecycled::PoolDeleted)
        } else if member.reuses >= rules.max_reuses {
            Some(NotRecycled::MaxReusesReached)
        } else if old {
            Some(NotRecycled::MaxAgeReached)
        } else if self.is_stale(member) {
            Some(NotRecycled::TemplateChanged)
        } else if member.cordoned {
            Some(NotRecycled::Cordoned)
        } else if !knows_how || (rules.reset == Reset::Disk && !resets) {
            Some(NotRecycled::RecycleUnsupported)
        } else {
            None
        }
    }

    /// R1, R3.
    fn begin_recycle(&mut self, lease: Ulid, member: Ulid, decision: &Decision, now: Now<'_>) {
        let id = decision.changes.iter().find_map(|change| match change {
            Change::PutMember(row) if row.uid() == member => row.recycle_nonce,
            _ => None,
        });
        let id = id.expect("a recycle has an id");
        let rules = self.spec.recycle.clone().expect("recycling is enabled");
        let row = self.lease(lease);
        row.phase = LeasePhase::Recycling;
        row.ended_at = Some(now.wall);
        row.release = Some(Release { requested: Some(LeaseState::Recycle), outcome: None, reason: None });
        let member = self.member(member);
        let down_since = member.down_since;
        member.enter(MemberState::Recycling, now.steady);
        member.down_since = down_since;
        member.nonce = Some(id);
        member.recycle = Some(RecycleOrder {
            id,
            by: now.steady.plus_millis(rules.timeout.millis()),
            reboot: rules.reboot,
            reset: rules.reset,
        });
        if member.seen.sighting == Sighting::Running && down_since.is_none() {
            member.recycle_boot = member.seen.boot;
        }
    }

    /// R5, L10; but L11: its holder may have thought better of it.
    pub fn end_recycle(&mut self, uid: Ulid, now: Now<'_>) {
        let lease = self.member(uid).lease.expect("a recycling member is bound");
        if self.lease(lease).asked() == LeaseState::Done {
            return;
        }
        let member = self.member(uid);
        member.lease = None;
        member.reuses += 1;
        member.last_used = now.steady;
        member.enter(MemberState::IdleRunning, now.steady);
        if let Some(release) = &mut self.lease(lease).release {
            release.outcome = Some(Outcome::Recycled);
        }
        self.finish(lease);
    }

    /// R3, R4, L11, L12.
    pub fn fail_recycle(&mut self, uid: Ulid, reason: FailedReason, now: Now<'_>) {
        self.warned.push(format!("{reason:?}"));
        self.delete(uid, now);
        let lease = self.member(uid).lease.take().expect("a recycling member is bound");
        let row = self.lease(lease);
        if let Some(release) = &mut row.release {
            release.outcome = Some(Outcome::Deleted);
        }
        if row.deleted || row.asked() == LeaseState::Done {
            self.finish(lease);
        } else {
            self.fail(lease, reason, now);
        }
    }

    /// L9, A2: the keys first, then the member. Where none ever was, both at once.
    fn release(&mut self, uid: Ulid, reason: Option<NotRecycled>, now: Now<'_>) {
        let lease = self.lease(uid);
        end_as_asked(lease, reason, now);
        let member = lease.member.expect("a released lease is bound");
        self.delete(member, now);
        if self.member(member).is_gone() {
            self.member(member).lease = None;
            self.finish(uid);
        }
    }

    /// A machine is gone, broken, not back in time, or deleted by hand (L17).
    pub fn lose(&mut self, uid: Ulid, now: Now<'_>) {
        if self.member(uid).state == MemberState::Recycling {
            return self.fail_recycle(uid, FailedReason::RecycleFailed, now);
        }
        self.delete(uid, now);
        let Some(lease) = self.member(uid).lease.map(|uid| self.lease(uid).clone()) else { return };
        if !lease.is_served() {
            return;
        }
        if !lease.is_needed() {
            self.member(uid).lease = None;
            end_as_asked(self.lease(lease.uid), None, now);
            self.finish(lease.uid);
        } else if lease.ready_at.is_none() {
            self.send_back(uid);
        } else {
            self.member(uid).lease = None;
            self.warned.push("MemberLost".into());
            self.fail(lease.uid, FailedReason::MemberLost, now);
        }
    }

    /// Its lease waits again, in its old place (L7).
    pub fn send_back(&mut self, member: Ulid) {
        let Some(lease) = self.member(member).lease.take() else { return };
        let lease = self.lease(lease);
        lease.phase = LeasePhase::Pending;
        lease.member = None;
        lease.bound_at = None;
        lease.told = None;
    }

    /// A2: a member that may carry a lease's keys has 5 s to drop them.
    fn delete(&mut self, uid: Ulid, now: Now<'_>) {
        let member = self.member(uid);
        if member.state == MemberState::Deleting {
            return;
        }
        if matches!(member.state, MemberState::Leased | MemberState::Recycling) {
            member.revoke_by = Some(now.steady.plus_millis(REVOKE_MILLIS));
        }
        member.enter(MemberState::Deleting, now.steady);
    }

    fn fail(&mut self, uid: Ulid, reason: FailedReason, now: Now<'_>) {
        let lease = self.lease(uid);
        lease.phase = LeasePhase::Failed;
        lease.reason = Some(reason);
        lease.ended_at = Some(now.wall);
        lease.member = None;
        lease.told = None;
    }

    /// The object goes, unless somebody else's finalizer keeps it.
    fn finish(&mut self, uid: Ulid) {
        let lease = self.lease(uid);
        lease.over = true;
        lease.deleted = true;
        lease.member = None;
        lease.told = None;
        if lease.phase != LeasePhase::Failed {
            lease.phase = LeasePhase::Releasing;
        }
        self.leases.retain(|lease| !lease.over || lease.foreign);
    }

    fn bind(&mut self, lease: Ulid, member: Ulid, now: Now<'_>) {
        let row = self.member(member);
        row.lease = Some(lease);
        let start = match row.state {
            MemberState::IdleRunning => {
                row.enter(MemberState::Leased, now.steady);
                row.for_stopped = false;
                Start::Warm
            }
            MemberState::IdleStopped | MemberState::Stopping => {
                row.enter(MemberState::Starting, now.steady);
                Start::Resumed
            }
            MemberState::Starting => Start::Resumed,
            MemberState::Building => Start::Cold,
            other => panic!("nobody is bound to a member that is {other:?}"),
        };
        let row = self.lease(lease);
        row.phase = LeasePhase::Starting;
        row.member = Some(member);
        row.told = None;
        row.start = Some(start);
        row.bound_at = Some(now.wall);
    }

    fn build(&mut self, destination: Destination, decision: &Decision, now: Now<'_>) -> Ulid {
        let made = decision.changes.iter().find_map(|change| match change {
            Change::PutMember(member) if self.get_member(member.uid()).is_none() => Some(member),
            _ => None,
        });
        let made = made.expect("a member was built");
        assert!(self.members.iter().all(|other| other.uid != made.uid()), "S5: a uid is new");
        self.members.push(Member {
            uid: made.uid(),
            template: self.template.clone(),
            provider: self.provider(now).expect("a provider builds").name.clone(),
            state: MemberState::Building,
            since: now.steady,
            born: now.steady,
            last_used: now.steady,
            lease: None,
            reuses: 0,
            cordoned: false,
            for_stopped: destination == Destination::Stopped,
            aged: false,
            build_by: Some(now.steady.plus_millis(BUILD_MILLIS)),
            unplaceable: None,
            revoke_by: None,
            down_since: None,
            recycle: None,
            recycle_boot: None,
            nonce: None,
            over: false,
            foreign: false,
            seen: Seen::default(),
            wish: Wish::default(),
        });
        made.uid()
    }

    /// L6: each is told one thing that is true, all the same.
    fn tell(&mut self, decision: &Decision, now: Now<'_>) {
        let obstacles = self.obstacles(now);
        for change in &decision.changes {
            let Change::PutLease(row) = change else { continue };
            let told = row.waits_for.as_ref().expect("a waiting lease is told something");
            assert!(obstacles.contains(told), "L6: {told:?} is not true; {obstacles:?} is");
            self.lease(row.uid()).told = Some(told.clone());
        }
    }
}

/// Its release says what was asked for and what became of it (L9, L10).
fn end_as_asked(lease: &mut Lease, reason: Option<NotRecycled>, now: Now<'_>) {
    lease.phase = LeasePhase::Releasing;
    lease.ended_at = Some(now.wall);
    lease.release = Some(Release { requested: Some(lease.asked()), outcome: Some(Outcome::Deleted), reason });
}
