//! Everything a pass might do now.
//!
//! Ending comes before lending, lending before keeping warm, and what only people read comes last:
//! that order is a rule (`Due::rank`). Within a rank the core may take any, unless a rule says
//! which (L5, L7, L15, W5): then only that one is listed.

use ringleader_proof::object::{FailedReason, LeasePhase, LeaseState, MemberState};
use ringleader_proof::pool::{Act, Change, Decision, Destination, Sighting, WaitsFor};
use ulid::Ulid;

use super::machines::BACK_MILLIS;
use super::{Lease, Member, Naive, Now};

/// One thing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    Expire(Ulid),
    Release(Ulid),
    Revoke(Ulid),
    GiveUpBuild(Ulid),
    GiveUpRecycle(Ulid),
    GiveUpDown(Ulid),
    FailWaiting(Ulid),
    StopRecycle(Ulid),
    EndMember(Ulid),
    EndPool,
    EndRow,
    Forget(Ulid),
    Refresh(Ulid),
    Bind { lease: Ulid, member: Ulid },
    BuildFor(Ulid),
    Age(Ulid),
    StopForFloor(Ulid),
    Start(Ulid),
    Build(Destination),
    Stop(Ulid),
    LetGo(Ulid),
    Tell,
}

impl Due {
    /// What must be done first.
    pub fn rank(self) -> u8 {
        match self {
            Self::Expire(_)
            | Self::Release(_)
            | Self::Revoke(_)
            | Self::GiveUpBuild(_)
            | Self::GiveUpRecycle(_)
            | Self::GiveUpDown(_)
            | Self::FailWaiting(_)
            | Self::StopRecycle(_)
            | Self::EndMember(_)
            | Self::EndPool
            | Self::EndRow
            | Self::Forget(_) => 0,
            Self::Refresh(_) => 1,
            Self::Bind { .. } | Self::BuildFor(_) => 2,
            Self::Age(_)
            | Self::StopForFloor(_)
            | Self::Start(_)
            | Self::Build(_)
            | Self::Stop(_)
            | Self::LetGo(_) => 3,
            Self::Tell => 4,
        }
    }

    /// Whether this is what the core did.
    pub fn is(self, decision: &Decision) -> bool {
        let lease = |wanted: Ulid| {
            decision.changes.iter().any(|change| match change {
                Change::PutLease(lease) => lease.uid() == wanted,
                Change::RemoveLease(uid) => *uid == wanted,
                _ => false,
            })
        };
        let member = |wanted: Ulid| {
            decision.changes.iter().any(|change| match change {
                Change::PutMember(member) => member.uid() == wanted,
                _ => false,
            })
        };
        let lends = decision.changes.iter().any(|change| matches!(change, Change::PutLease(_)));
        match self {
            Self::Expire(uid) => decision.act == Act::Expire && lease(uid),
            Self::Release(uid) => decision.act == Act::Release && lease(uid),
            Self::Forget(uid) => decision.act == Act::Forget && lease(uid),
            Self::FailWaiting(uid) => decision.act == Act::End && lease(uid),
            Self::Revoke(uid) => decision.act == Act::Revoke && member(uid),
            Self::GiveUpBuild(uid) | Self::GiveUpRecycle(uid) | Self::GiveUpDown(uid) => {
                decision.act == Act::GiveUp && member(uid)
            }
            Self::StopRecycle(uid) | Self::EndMember(uid) => decision.act == Act::End && member(uid),
            Self::EndPool | Self::EndRow => decision.act == Act::End,
            Self::Refresh(uid) => decision.act == Act::Refresh && member(uid),
            Self::Bind { lease: uid, member: to } => decision.act == Act::Bind && lease(uid) && member(to),
            Self::BuildFor(uid) => decision.act == Act::Build && lease(uid),
            Self::Build(_) => decision.act == Act::Build && !lends,
            Self::Age(uid) => decision.act == Act::Age && member(uid),
            Self::StopForFloor(uid) | Self::Stop(uid) => decision.act == Act::Stop && member(uid),
            Self::Start(uid) => decision.act == Act::Start && member(uid),
            Self::LetGo(uid) => decision.act == Act::LetGo && member(uid),
            Self::Tell => decision.act == Act::Tell,
        }
    }
}

impl Naive {
    pub fn due(&self, now: Now<'_>) -> Vec<Due> {
        if self.ended {
            return Vec::new();
        }
        let mut due = Vec::new();
        self.leases_that_end(now, &mut due);
        self.members_that_end(now, &mut due);
        if self.deleting {
            self.end(&mut due);
        }
        self.refresh(now, &mut due);
        self.lend(now, &mut due);
        self.age(now, &mut due);
        self.keep_warm(now, &mut due);
        self.let_go(now, &mut due);
        let obstacles = self.obstacles(now);
        let untold = |lease: &&Lease| lease.told.as_ref().is_none_or(|told| !obstacles.contains(told));
        if !obstacles.is_empty() && self.queue().iter().any(untold) {
            due.push(Due::Tell);
        }
        due
    }

    /// Who waits, oldest first (L7).
    pub fn queue(&self) -> Vec<&Lease> {
        let mut queue: Vec<_> =
            self.leases.iter().filter(|lease| lease.waits() && lease.is_needed()).collect();
        queue.sort_by_key(|lease| (lease.created, lease.uid));
        queue
    }

    /// L9 to L15, L21.
    fn leases_that_end(&self, now: Now<'_>, due: &mut Vec<Due>) {
        for lease in self.leases.iter().filter(|lease| !lease.over) {
            let runs = lease.phase == LeasePhase::Pending || lease.is_served();
            if runs && lease.is_needed() && (now.wall >= lease.expires_at || now.steady >= lease.term_ends) {
                due.push(Due::Expire(lease.uid));
            }
            let wish = match lease.phase {
                LeasePhase::Failed => {
                    lease.deleted || lease.written == acknowledges(lease) || lease.written == LeaseState::Done
                }
                LeasePhase::Recycling => lease.asked() == LeaseState::Done,
                LeasePhase::Releasing => false,
                LeasePhase::Pending | LeasePhase::Starting | LeasePhase::Ready => !lease.is_needed(),
            };
            if wish {
                due.push(Due::Release(lease.uid));
            }
        }
        let rules = &self.spec.lease;
        let mut failed: Vec<_> =
            self.leases.iter().filter(|lease| !lease.over && lease.phase == LeasePhase::Failed).collect();
        failed.sort_by_key(|lease| (lease.ended_at, lease.uid));
        let over_time = |lease: &&&Lease| {
            lease.ended_at.is_some_and(|ended| now.wall >= ended.plus_millis(rules.failed_retention.millis()))
        };
        if failed.len() > rules.max_pending as usize {
            due.push(Due::Forget(failed[0].uid));
        }
        due.extend(failed.iter().filter(over_time).map(|lease| Due::Forget(lease.uid)));
    }

    /// A2, F1, R3, L17.
    fn members_that_end(&self, now: Now<'_>, due: &mut Vec<Due>) {
        for member in self.live() {
            let uid = member.uid;
            if let Some(until) = member.revoke_by {
                let rid_of_keys = member.has_its_keys() || member.seen.sighting != Sighting::Running;
                if rid_of_keys || now.steady >= until {
                    due.push(Due::Revoke(uid));
                }
            }
            if member.build_by.is_some_and(|until| now.steady >= until) {
                due.push(Due::GiveUpBuild(uid));
            }
            if member.recycle.is_some_and(|order| now.steady >= order.by) {
                due.push(Due::GiveUpRecycle(uid));
            }
            if member.down_since.is_some_and(|since| now.steady >= since.plus_millis(BACK_MILLIS)) {
                due.push(Due::GiveUpDown(uid));
            }
        }
    }

    /// D1, D2, D4.
    fn end(&self, due: &mut Vec<Due>) {
        due.extend(self.queue().iter().map(|lease| Due::FailWaiting(lease.uid)));
        for member in self.live() {
            if member.state == MemberState::Recycling {
                due.push(Due::StopRecycle(member.uid));
            } else if member.lease.is_none() && member.state != MemberState::Deleting {
                due.push(Due::EndMember(member.uid));
            }
        }
        if self.live().count() == 0 && !self.over {
            due.push(Due::EndPool);
        } else if self.is_gone() && self.leases.is_empty() && self.members.is_empty() {
            due.push(Due::EndRow);
        }
    }

    /// A4.
    fn refresh(&self, now: Now<'_>, due: &mut Vec<Due>) {
        let outdated = |member: &&Member| !member.is_gone() && member.wish.devices != now.devices;
        due.extend(self.live().filter(outdated).map(|member| Due::Refresh(member.uid)));
    }

    /// L5, L7: the oldest gets the best there is.
    fn lend(&self, now: Now<'_>, due: &mut Vec<Due>) {
        let queue = self.queue();
        let Some(oldest) = queue.first().filter(|_| !self.deleting && !self.spec.paused) else { return };
        if let Some(best) = self.best() {
            due.push(Due::Bind { lease: oldest.uid, member: best });
        } else if self.obstacles(now).is_empty() {
            due.push(Due::BuildFor(oldest.uid));
        }
    }

    /// W7, T5.
    fn age(&self, now: Now<'_>, due: &mut Vec<Due>) {
        for member in self.running().iter().chain(&self.stopped()) {
            let max = self.spec.max_age.as_ref();
            let old = max.is_some_and(|max| now.steady.millis_since(member.born) >= max.millis());
            if old != member.aged {
                due.push(Due::Age(member.uid));
            }
        }
    }

    /// W1, W3, W6, T2.
    fn keep_warm(&self, now: Now<'_>, due: &mut Vec<Due>) {
        if self.deleting {
            return;
        }
        let (running, stopped, coming) = (self.running(), self.stopped(), self.coming());
        let (run, stop) = self.floors(now);
        if running.len() > run && stopped.len() < stop {
            let built_for_it = running.iter().filter(|member| member.for_stopped);
            due.extend(built_for_it.map(|member| Due::StopForFloor(member.uid)));
        }
        let fresh_running = self.fresh(&running) + self.current(&coming);
        if stopped.len() > stop && self.stuck().is_empty() {
            let lacks = running.len() + coming.len() < run;
            let replaces = fresh_running < run && self.fresh(&stopped) > 0;
            if lacks || replaces {
                due.extend(self.most_useful(&stopped).map(Due::Start));
            }
        }
        if self.is_lacking(now) && self.obstacles(now).is_empty() {
            let destination = if fresh_running < run { Destination::Running } else { Destination::Stopped };
            due.push(Due::Build(destination));
        }
    }

    /// W2, W4, W5, W7, T2, T4.
    fn let_go(&self, now: Now<'_>, due: &mut Vec<Due>) {
        let (running, stopped) = (self.running(), self.stopped());
        let unmade = |member: &&Member| member.state == MemberState::Building || member.unplaceable.is_some();
        let builds: Vec<_> = self.coming().into_iter().filter(unmade).collect();
        let idle: Vec<_> = running.iter().chain(&stopped).copied().collect();
        let staying = self.live().filter(|member| member.state != MemberState::Deleting).count();
        if staying > self.spec.size.max as usize {
            if !builds.is_empty() {
                due.extend(builds.iter().map(|member| Due::LetGo(member.uid)));
            } else if let Some(least) = self.least_life(&idle) {
                due.push(Due::LetGo(least.uid));
            } else {
                due.extend(self.coming().iter().map(|member| Due::LetGo(member.uid)));
            }
        }
        let stale = builds.iter().filter(|member| member.template != self.template);
        due.extend(stale.map(|member| Due::LetGo(member.uid)));
        due.extend(self.replaced(now).map(Due::LetGo));
        let warm = &self.spec.warm;
        for member in self.surplus(&running, warm.running as usize) {
            if now.steady >= member.since.plus_millis(warm.stop_after.millis()) {
                due.push(if self.can_stop(now) { Due::Stop(member.uid) } else { Due::LetGo(member.uid) });
            }
        }
        for member in self.surplus(&stopped, warm.stopped as usize) {
            if now.steady >= member.since.plus_millis(warm.delete_after.millis()) {
                due.push(Due::LetGo(member.uid));
            }
        }
    }

    /// A worn-out idle member that goes now: beyond the floors, or because its replacement is
    /// there; at size.max, where none can come first, to make way for it.
    fn replaced(&self, now: Now<'_>) -> Option<Ulid> {
        let (running, stopped) = (self.running(), self.stopped());
        let (run, stop) = self.floors(now);
        let worn = |idle: &[&Member]| {
            self.least_life(idle).filter(|least| !self.is_fresh(least)).map(|least| least.uid)
        };
        let (from_running, from_stopped) = (worn(&running), worn(&stopped));
        if running.len() + stopped.len() > run + stop {
            let from_running = from_running.filter(|_| running.len() > run);
            return from_running.or(from_stopped);
        }
        let full = self.live().count() >= self.spec.size.max as usize;
        let but_for_size = self.obstacles(now).iter().all(|obstacle| *obstacle == WaitsFor::Release);
        let quiet = self.current(&self.coming()) == 0
            && self.live().all(|member| member.state != MemberState::Deleting)
            && self.failures == 0;
        (self.is_lacking(now) && full && but_for_size && quiet).then_some(())?;
        from_stopped.or(from_running)
    }
}

/// L15: what its holder writes on a Failed lease to acknowledge it, beside Done. One failed by its
/// recycle says Recycle already.
fn acknowledges(lease: &Lease) -> LeaseState {
    match lease.reason {
        Some(FailedReason::RecycleFailed | FailedReason::RecycleTimedOut) => LeaseState::Done,
        _ => LeaseState::Recycle,
    }
}
