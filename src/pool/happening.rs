//! What a decision makes happen, told from its changes: the old rows beside the new ones.
//!
//! The one place where metrics and usage learn what to count. A happening bears no names, so that
//! whatever counts it stays bounded. It is read off before the changes move memory and is to be
//! counted once they are durable: a crash may lose one and never counts one twice (rule U2).
//!
//! ```text
//!  LeaseCreated ─► LeaseBound ─► LeaseReady (the first time) ─► LeaseEnded, always exactly once
//!                     └── LeaseWaitsAgain ◄─┘
//!  BuildOrdered ─► MemberBuilt ─► MemberRemoved ─► MemberGone
//!              └── BuildFailed ──────┘
//! ```

use ulid::Ulid;

use super::{Act, Change, Decision, Lease, Member, Pool, PoolRow, Sighting, Start};
use crate::object::{FailedReason, LeasePhase, LeaseState, MemberState};

/// One thing to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Happening {
    LeaseCreated,
    /// A waiting lease got a member; once more where it had waited again.
    LeaseBound {
        start: Start,
    },
    /// Its member was lost or could not be placed before it was usable (rule L7).
    LeaseWaitsAgain,
    /// For the first time, `wait_millis` after it was created.
    LeaseReady {
        start: Start,
        wait_millis: u64,
    },
    /// Nothing more is owed to its holder. A Failed lease has ended, though its object stays.
    LeaseEnded(Ending),
    /// A member was ordered; its machine is asked for next.
    BuildOrdered,
    /// It reported Configured for the first time, `build_millis` after it was ordered.
    MemberBuilt {
        build_millis: u64,
    },
    /// A build failed; the member's removal is told apart, as `MemberRemoved`.
    BuildFailed(BuildFailure),
    /// Its delete has begun. Nothing undoes it.
    MemberRemoved(Removal),
    /// Its machine is gone.
    MemberGone,
}

/// How a lease ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ending {
    /// Handed back, and its member deleted.
    Done,
    /// Handed back for a recycle, and its member deleted instead (rule R8).
    NotRecycled,
    /// Handed back, and its member stays.
    Recycled,
    RecycleFailed,
    RecycleTimedOut,
    /// Its time was up while it held a member.
    ExpiredBound,
    /// Its time was up while it waited.
    ExpiredUnbound,
    MemberLost,
    /// Handed back while it waited (rule L14).
    Cancelled,
    /// The pool was deleted while it waited (rule D1).
    PoolDeleted,
}

/// Why a build failed: the words of machines and agents, as a closed set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BuildFailure {
    /// The provider could not make the machine.
    Create,
    /// The machine could not be booted.
    Start,
    /// The machine broke, or was found half made.
    Broken,
    /// The configuration pass failed inside it.
    Setup,
    /// Not Configured in time (rule F1).
    TimedOut,
    /// A word that is not known here, or a build of an older template.
    Other,
}

/// Why a member goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Removal {
    /// Its lease was handed back.
    Released,
    /// Its lease's time was up.
    Expired,
    /// Its recycle failed or took too long.
    RecycleFailed,
    BuildFailed,
    /// Its machine went away or broke.
    Lost,
    /// Older than the template (rule T2).
    TemplateChanged,
    /// Past maxAge (rule W7).
    TooOld,
    /// Beyond the floors for too long, or above size.max (rules W4, T4).
    Surplus,
    /// Its Workstation was deleted.
    ByHand,
    PoolDeleted,
}

/// What happens with `decision`, taken on `pool` as it stood before.
#[must_use]
pub fn happenings(pool: &Pool, decision: &Decision) -> Vec<Happening> {
    let mut happened = Vec::new();
    let after = After { pool, decision };
    for change in &decision.changes {
        match change {
            Change::PutLease(lease) => after.lease(lease.uid(), Some(lease), &mut happened),
            Change::RemoveLease(uid) => after.lease(*uid, None, &mut happened),
            Change::PutMember(member) => after.member(member.uid(), Some(member), &mut happened),
            Change::RemoveMember(uid) => after.member(*uid, None, &mut happened),
            Change::PutPool(_) | Change::RemovePool(_) | Change::PutEvent(_) | Change::RemoveEvent(_) => {}
        }
    }
    happened
}

/// The rows as they stand before and after.
struct After<'a> {
    pool: &'a Pool,
    decision: &'a Decision,
}

impl After<'_> {
    fn lease(&self, uid: Ulid, new: Option<&Lease>, happened: &mut Vec<Happening>) {
        let old = self.pool.lease(uid);
        if old.is_none() && new.is_some() {
            happened.push(Happening::LeaseCreated);
        }
        if let (Some(old), Some(new)) = (old, new) {
            if new.member.is_some() && new.member != old.member {
                happened.push(Happening::LeaseBound { start: start_of(new) });
            }
            if old.phase != LeasePhase::Pending && new.phase == LeasePhase::Pending {
                happened.push(Happening::LeaseWaitsAgain);
            }
            if let (None, Some(waited)) = (old.waited_millis, new.waited_millis) {
                let wait_millis = millis(waited);
                happened.push(Happening::LeaseReady { start: start_of(new), wait_millis });
            }
        }
        if let Some(old) = old.filter(|old| !has_ended(old))
            && new.is_none_or(has_ended)
        {
            happened.push(Happening::LeaseEnded(self.ending(old, new)));
        }
    }

    fn member(&self, uid: Ulid, new: Option<&Member>, happened: &mut Vec<Happening>) {
        let Some(old) = self.pool.member(uid) else {
            if new.is_some() {
                happened.push(Happening::BuildOrdered);
            }
            return;
        };
        if let Some(new) = new.filter(|new| new.state != old.state) {
            match (old.state, new.state) {
                (_, MemberState::Deleting) => {
                    let removal = self.removal(old, new);
                    if removal == Removal::BuildFailed {
                        happened.push(Happening::BuildFailed(self.build_failure(old)));
                    }
                    happened.push(Happening::MemberRemoved(removal));
                }
                (MemberState::Building, _) => {
                    let build_millis = millis(new.since.millis_since(old.since));
                    happened.push(Happening::MemberBuilt { build_millis });
                }
                (_, _) => {}
            }
        }
        if !old.is_over() && new.is_none_or(Member::is_over) {
            happened.push(Happening::MemberGone);
        }
    }

    fn ending(&self, old: &Lease, new: Option<&Lease>) -> Ending {
        if let Some(reason) = new.and_then(|new| new.reason) {
            return match (reason, &old.member) {
                (FailedReason::Expired, Some(_)) => Ending::ExpiredBound,
                (FailedReason::Expired, None) => Ending::ExpiredUnbound,
                (FailedReason::PoolDeleted, _) => Ending::PoolDeleted,
                (FailedReason::MemberLost, _) => Ending::MemberLost,
                (FailedReason::RecycleFailed, _) => Ending::RecycleFailed,
                (FailedReason::RecycleTimedOut, _) => Ending::RecycleTimedOut,
            };
        }
        let Some(bond) = &old.member else { return Ending::Cancelled };
        // What was asked for may have come with this very decision, or long before.
        let asked = new.unwrap_or(old).asked();
        let stays = self.new_member(bond.uid).is_some_and(|member| member.state != MemberState::Deleting);
        match (asked, stays) {
            (LeaseState::Recycle, true) => Ending::Recycled,
            // A deleted lease goes with the member whose recycle failed; only the event tells (rule L12).
            (LeaseState::Recycle, _) if self.tells(FailedReason::RecycleFailed) => Ending::RecycleFailed,
            (LeaseState::Recycle, _) if self.tells(FailedReason::RecycleTimedOut) => Ending::RecycleTimedOut,
            (LeaseState::Recycle, _) => Ending::NotRecycled,
            (LeaseState::Needed | LeaseState::Done, _) => Ending::Done,
        }
    }

    fn removal(&self, old: &Member, new: &Member) -> Removal {
        let building = old.state == MemberState::Building;
        if self.tells(FailedReason::RecycleFailed) || self.tells(FailedReason::RecycleTimedOut) {
            return Removal::RecycleFailed;
        }
        match self.decision.act {
            Act::Expire => Removal::Expired,
            Act::Release => Removal::Released,
            Act::GiveUp if building => Removal::BuildFailed,
            Act::GiveUp => Removal::Lost,
            Act::End => Removal::PoolDeleted,
            Act::LetGo if old.template_hash != self.row().template_hash => Removal::TemplateChanged,
            Act::LetGo if old.aged => Removal::TooOld,
            Act::LetGo => Removal::Surplus,
            // A command: a fact changes what is observed, a person does not.
            Act::Record | Act::Nothing => match new.observed.sighting {
                Sighting::Failed | Sighting::Absent if new.observed != old.observed => {
                    if building {
                        Removal::BuildFailed
                    } else {
                        Removal::Lost
                    }
                }
                Sighting::Never
                | Sighting::Booting
                | Sighting::Running
                | Sighting::Stopping
                | Sighting::Stopped
                | Sighting::Absent
                | Sighting::Failed => Removal::ByHand,
            },
            Act::Forget
            | Act::Revoke
            | Act::Bind
            | Act::Build
            | Act::Start
            | Act::Stop
            | Act::Age
            | Act::Refresh
            | Act::Tell
            | Act::WriteStatus => {
                debug_assert!(false, "{:?} lets nobody go", self.decision.act);
                Removal::Surplus
            }
        }
    }

    fn build_failure(&self, member: &Member) -> BuildFailure {
        if self.decision.act == Act::GiveUp {
            return BuildFailure::TimedOut;
        }
        let last = self.row().health.last_failure.as_ref();
        let of_this = last.filter(|failure| failure.member == member.metadata.name);
        of_this.map_or(BuildFailure::Other, |failure| BuildFailure::of(&failure.reason))
    }

    /// Whether a person is told of a recycle that ended so.
    fn tells(&self, reason: FailedReason) -> bool {
        let reason = format!("{reason:?}");
        self.decision
            .changes
            .iter()
            .any(|change| matches!(change, Change::PutEvent(event) if event.reason == reason))
    }

    fn row(&self) -> &PoolRow {
        let put = self.decision.changes.iter().find_map(|change| match change {
            Change::PutPool(row) => Some(row),
            Change::RemovePool(_)
            | Change::PutLease(_)
            | Change::RemoveLease(_)
            | Change::PutMember(_)
            | Change::RemoveMember(_)
            | Change::PutEvent(_)
            | Change::RemoveEvent(_) => None,
        });
        put.unwrap_or(self.pool.row())
    }

    /// The member as it stands afterwards; none when it is gone.
    fn new_member(&self, uid: Ulid) -> Option<&Member> {
        let put = self.decision.changes.iter().find_map(|change| match change {
            Change::PutMember(member) if member.uid() == uid => Some(Some(member)),
            Change::RemoveMember(removed) if *removed == uid => Some(None),
            Change::PutMember(_)
            | Change::RemoveMember(_)
            | Change::PutPool(_)
            | Change::RemovePool(_)
            | Change::PutLease(_)
            | Change::RemoveLease(_)
            | Change::PutEvent(_)
            | Change::RemoveEvent(_) => None,
        });
        put.unwrap_or_else(|| self.pool.member(uid))
    }
}

impl BuildFailure {
    fn of(reason: &str) -> Self {
        match reason {
            "CreateFailed" => Self::Create,
            "StartFailed" => Self::Start,
            "MachineBroken" => Self::Broken,
            "BuildTimedOut" => Self::TimedOut,
            "KeysFailed" | "HomeFailed" | "SudoFailed" | "IdentityFailed" | "EnvironmentFailed"
            | "PassBrokeOff" | "ScriptFailed" => Self::Setup,
            _ => Self::Other,
        }
    }
}

/// One that was bound by a version which did not say counts as the slowest.
fn start_of(lease: &Lease) -> Start {
    lease.start.unwrap_or(Start::Cold)
}

/// Nothing more is owed to its holder.
fn has_ended(lease: &Lease) -> bool {
    matches!(lease.phase, LeasePhase::Failed | LeasePhase::Releasing) || lease.is_over()
}

/// A wait on the steady clock is never negative.
fn millis(difference: i64) -> u64 {
    u64::try_from(difference).unwrap_or(0)
}
