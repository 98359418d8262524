//! What must hold at every instant and over every crash, as named pure functions: checked in debug
//! builds after every decision, and by the model tests.

use ulid::Ulid;

use super::index::{LeaseIndex, MemberIndex, Step};
use super::{Bond, Lease, Member, Pool, usage};
use crate::object::{LeasePhase, LeaseState, MemberState};

/// One invariant: its name, and what breaks it, if anything.
pub type Invariant = (&'static str, fn(&Pool) -> Result<(), String>);

/// Every invariant.
pub const ALL: [Invariant; 9] = [
    ("bindings_are_mutual", bindings_are_mutual),
    ("phase_says_whether_a_member_is_bound", phase_says_whether_a_member_is_bound),
    ("ready_means_usable", ready_means_usable),
    ("only_failed_leases_have_a_reason", only_failed_leases_have_a_reason),
    ("only_waiting_leases_wait_for_something", only_waiting_leases_wait_for_something),
    ("a_state_carries_its_own_deadlines_alone", a_state_carries_its_own_deadlines_alone),
    ("a_going_member_serves_nobody_new", a_going_member_serves_nobody_new),
    ("indexes_are_what_the_rows_say", indexes_are_what_the_rows_say),
    ("usage_goes_on_from_what_is_there", usage_goes_on_from_what_is_there),
];

/// Checks every invariant.
///
/// # Panics
/// At the first that is broken, naming it.
pub fn assert_all(pool: &Pool) {
    for (name, holds) in ALL {
        if let Err(broken) = holds(pool) {
            panic!("invariant {name} is broken: {broken}");
        }
    }
}

/// Rule L8: a member is bound to at most one lease and a lease to at most one member, and both
/// sides say so.
pub fn bindings_are_mutual(pool: &Pool) -> Result<(), String> {
    let names = |bond: Option<&Bond>, uid: Ulid| bond.is_some_and(|bond| bond.uid == uid);
    for lease in pool.leases() {
        if let Some(bond) = &lease.member {
            let member =
                pool.member(bond.uid).ok_or_else(|| told(lease, "is bound to a member that is not there"))?;
            ensure(names(member.lease.as_ref(), lease.uid()), || told(lease, "is bound one-sidedly"))?;
        }
    }
    for member in pool.members() {
        if let Some(bond) = &member.lease {
            let lease =
                pool.lease(bond.uid).ok_or_else(|| said(member, "is bound to a lease that is not there"))?;
            ensure(names(lease.member.as_ref(), member.uid()), || said(member, "is bound one-sidedly"))?;
        }
    }
    Ok(())
}

/// Rule L7: Pending means unbound, Failed and ended too; everything between is bound.
pub fn phase_says_whether_a_member_is_bound(pool: &Pool) -> Result<(), String> {
    pool.leases().try_for_each(|lease| {
        let bound = match lease.phase {
            LeasePhase::Pending | LeasePhase::Failed => false,
            LeasePhase::Starting | LeasePhase::Ready | LeasePhase::Recycling => true,
            LeasePhase::Releasing => !lease.is_over(),
        };
        ensure(bound == lease.member.is_some(), || told(lease, "is bound against its phase"))
    })
}

/// Rule L19: a Ready lease has a running member that is its own, and says how to reach it; no other
/// lease does.
pub fn ready_means_usable(pool: &Pool) -> Result<(), String> {
    pool.leases().try_for_each(|lease| {
        let ready = lease.phase == LeasePhase::Ready;
        ensure(ready == lease.ssh.is_some(), || told(lease, "shows ssh against its phase"))?;
        let member = lease.member.as_ref().and_then(|bond| pool.member(bond.uid));
        let usable =
            member.is_some_and(|member| member.state == MemberState::Leased && member.down_since.is_none());
        ensure(!ready || usable, || told(lease, "is Ready on a member that does not serve it"))
    })
}

/// A reason and an end belong to Failed, and Failed has them.
pub fn only_failed_leases_have_a_reason(pool: &Pool) -> Result<(), String> {
    pool.leases().try_for_each(|lease| {
        let failed = lease.phase == LeasePhase::Failed;
        ensure(failed == lease.reason.is_some(), || told(lease, "has a reason against its phase"))?;
        ensure(!failed || lease.ended_at.is_some(), || told(lease, "failed without an end"))
    })
}

/// Only a Pending lease waits for something.
pub fn only_waiting_leases_wait_for_something(pool: &Pool) -> Result<(), String> {
    pool.leases().try_for_each(|lease| {
        let waits = lease.waits_for.is_some();
        ensure(!waits || lease.phase == LeasePhase::Pending, || told(lease, "waits though it is not Pending"))
    })
}

/// A deadline or hold of one state does not outlive it.
pub fn a_state_carries_its_own_deadlines_alone(pool: &Pool) -> Result<(), String> {
    pool.members().try_for_each(|member| {
        let state = member.state;
        let building = state == MemberState::Building;
        let on_the_way = building || state == MemberState::Starting;
        let deleting = state == MemberState::Deleting;
        let runs = matches!(state, MemberState::Starting | MemberState::Leased | MemberState::Recycling);
        ensure(building || member.build_by.is_none(), || said(member, "has build_by"))?;
        ensure(on_the_way || member.unplaceable.is_none(), || said(member, "is unplaceable"))?;
        ensure(deleting || member.revoke_by.is_none(), || said(member, "has revoke_by"))?;
        ensure(runs || member.down_since.is_none(), || said(member, "has down_since"))?;
        let recycles = state == MemberState::Recycling;
        ensure(recycles == member.recycling.is_some(), || said(member, "has a recycle against its state"))?;
        ensure(deleting == member.metadata.deletion_timestamp.is_some(), || {
            said(member, "has a deletion time")
        })
    })
}

/// Idle members are free, Leased ones are not; once the machine is ordered gone nothing is bound to
/// it, and a lease on a member that goes is being released.
pub fn a_going_member_serves_nobody_new(pool: &Pool) -> Result<(), String> {
    pool.members().try_for_each(|member| {
        let lease = member.lease.as_ref().and_then(|bond| pool.lease(bond.uid));
        match member.state {
            MemberState::IdleRunning | MemberState::IdleStopped | MemberState::Stopping => {
                ensure(lease.is_none(), || said(member, "is idle and bound"))
            }
            MemberState::Leased => ensure(lease.is_some(), || said(member, "is leased to nobody")),
            MemberState::Recycling => {
                let recycling = lease.is_some_and(|lease| lease.phase == LeasePhase::Recycling);
                ensure(recycling, || said(member, "is recycled for no lease"))
            }
            MemberState::Deleting => {
                let released = lease.is_none_or(|lease| {
                    lease.phase == LeasePhase::Releasing || lease.asked() != LeaseState::Needed
                });
                ensure(released, || said(member, "goes under a lease that is not released"))?;
                ensure(!member.is_gone_ordered() || lease.is_none(), || said(member, "is gone and bound"))
            }
            MemberState::Building | MemberState::Starting => {
                let moving = lease.is_none_or(|lease| lease.phase == LeasePhase::Starting);
                ensure(moving, || said(member, "is on its way for a lease that is not Starting"))
            }
        }
    })
}

/// What evolve kept is what a fresh look at the rows would build.
pub fn indexes_are_what_the_rows_say(pool: &Pool) -> Result<(), String> {
    let mut leases = LeaseIndex::default();
    pool.leases().for_each(|lease| leases.apply(Step::Add, lease));
    ensure(leases == pool.leases_by, || "the leases' index has drifted".into())?;
    let mut members = MemberIndex::new(&pool.row);
    pool.members().for_each(|member| members.apply(Step::Add, member));
    ensure(members == pool.members_by, || "the members' index has drifted".into())?;
    let events = pool.events().map(|event| (event.last, event.uid)).collect();
    ensure(pool.events_by_age == events, || "the events' index has drifted".into())
}

/// Rule U2: seconds are counted on from one mark, of what the rows say there is.
pub fn usage_goes_on_from_what_is_there(pool: &Pool) -> Result<(), String> {
    let marks = pool.usage().filter(|row| row.mark.is_some()).count();
    ensure(marks == usize::from(!pool.usage.is_empty()), || format!("usage goes on from {marks} marks"))?;
    let (counted, there) = (usage::last_mark(pool).map(|mark| mark.level), usage::level(pool));
    ensure(counted.is_none_or(|counted| counted == there), || {
        format!("usage counts {counted:?} for {there:?}")
    })
}

fn ensure(holds: bool, broken: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(broken()) }
}

fn told(lease: &Lease, what: &str) -> String {
    format!("lease {} ({:?}) {what}", lease.metadata.name, lease.phase)
}

fn said(member: &Member, what: &str) -> String {
    format!("member {} ({:?}) {what}", member.metadata.name, member.state)
}
