//! What must hold of every state, and between every state and the next.

use std::collections::BTreeSet;

use crate::canonical::is_running;
use crate::machine::{Aim, Place};
use crate::model::Witness;
use crate::state::Broken;
use crate::timer;
use crate::turn::Turn;
use crate::{NOW, is_key};
use ringleader_proof::object::{FailedReason, LeasePhase, LeaseState, MemberState, Tick};
use ringleader_proof::pool::*;

type Held = Result<(), Broken>;

fn hold(holds: bool, rule: &'static str, what: impl FnOnce() -> String) -> Held {
    if holds { Ok(()) } else { Err(Broken { rule, what: what() }) }
}

/// Of the rows after every single submission.
pub fn state(pool: &Pool, inputs: &Inputs) -> Held {
    for (name, holds) in invariant::ALL {
        if let Err(what) = holds(pool) {
            return Err(Broken { rule: name, what });
        }
    }
    let mut bound = BTreeSet::new();
    for bond in pool.leases().filter_map(|lease| lease.member.as_ref()) {
        hold(bound.insert(bond.uid), "no member is bound twice", || bond.name.clone())?;
    }
    for member in pool.members().filter(|member| !member.is_over()) {
        let lease = member.lease.as_ref().and_then(|bond| pool.lease(bond.uid));
        for key in want::keys_of(member, lease, inputs).iter().filter(|key| is_key(key)) {
            let serves =
                lease.is_some_and(|lease| is_running(lease) && lease.spec.authorized_keys.contains(key));
            let goes = member.is_gone_ordered();
            hold(serves && !goes, "no want carries the key of an ended lease", || key.clone())?;
        }
        let wanted = want::ordered(member, lease, inputs);
        let name = || member.metadata.name.clone();
        hold(wanted == member.wanted, "the want on record is the present one", name)?;
    }
    for lease in pool.leases().filter(|lease| lease.phase == LeasePhase::Ready) {
        let member = lease.member.as_ref().and_then(|bond| pool.member(bond.uid));
        let seen = lease.observed_generation == lease.metadata.generation;
        let confirmed = member.is_some_and(Member::keys_confirmed);
        hold(
            !seen || confirmed || lease.asked() != LeaseState::Needed,
            "a generation is observed with its keys",
            || lease.metadata.name.clone(),
        )?;
    }
    Ok(())
}

/// Between the rows before a submission and after it.
pub fn step(turn: &Turn<'_>, decision: &Decision) -> Held {
    let before = &turn.pool;
    let mut live = before.members().filter(|member| !member.is_over()).count();
    let mut builds = false;
    for change in &decision.changes {
        match change {
            Change::PutLease(lease) => step_lease(turn, before.lease(lease.uid()), lease, decision)?,
            Change::PutMember(member) => {
                if before.member(member.uid()).is_none() {
                    (live, builds) = (live + 1, true);
                }
                step_member(turn, before.member(member.uid()), member)?;
            }
            Change::RemoveMember(uid) => {
                let there = |place| !matches!(place, Place::Never | Place::Gone);
                let gone = turn.machines.get(uid).is_none_or(|machine| !there(machine.place));
                hold(gone, "a member goes after its machine", || uid.to_string())?;
            }
            Change::RemoveLease(uid) => {
                let failed = before.lease(*uid).is_some_and(|lease| lease.phase == LeasePhase::Failed);
                let witness = if failed { Witness::FailedForgotten } else { Witness::LeaseOver };
                turn.model.saw(witness);
            }
            Change::RemovePool(_) => turn.model.saw(Witness::PoolEnded),
            Change::PutPool(row) => {
                if row.health.consecutive_failures > before.row().health.consecutive_failures {
                    turn.model.saw(Witness::BuildFailed);
                }
                if row.health.back_off != before.row().health.back_off && row.health.back_off.is_some() {
                    turn.model.saw(Witness::BackedOff);
                }
            }
            Change::PutEvent(_) | Change::RemoveEvent(_) | Change::PutUsage(_) | Change::RemoveUsage(_) => {}
        }
    }
    let most = usize::try_from(before.row().spec.size.max).unwrap_or(usize::MAX);
    hold(!builds || live <= most, "no more members than size.max", || live.to_string())?;
    if builds && before.row().health.consecutive_failures > 0 {
        turn.model.saw(Witness::BuildRetried);
    }
    for want in &decision.wants {
        let known = before.member(want.member_uid).map_or(0, |member| member.wanted.revision);
        hold(want.revision > known, "a revision is used once", || format!("{want:?}"))?;
        let gone = turn.machines.get(&want.member_uid).is_some_and(|machine| machine.order.aim == Aim::Gone);
        hold(!gone, "nothing is wanted after gone", || format!("{want:?}"))?;
    }
    Ok(())
}

fn step_member(turn: &Turn<'_>, old: Option<&Member>, new: &Member) -> Held {
    let name = || new.metadata.name.clone();
    let Some(old) = old else {
        hold(new.state == MemberState::Building, "members move as drawn", name)?;
        return Ok(());
    };
    hold(!old.is_gone_ordered() || new.is_gone_ordered(), "gone is for ever", name)?;
    hold(new.wanted.revision >= old.wanted.revision, "a revision is used once", name)?;
    hold(moves(old.state, new.state), "members move as drawn", || {
        format!("{:?} to {:?}", old.state, new.state)
    })?;
    let saw = |witness| turn.model.saw(witness);
    match (old.state, new.state) {
        (MemberState::Recycling, MemberState::IdleRunning) => saw(Witness::Recycled),
        (MemberState::IdleRunning, MemberState::Stopping) => saw(Witness::IdleStopped),
        (MemberState::Starting, MemberState::Leased) => saw(Witness::Resumed),
        (MemberState::IdleRunning | MemberState::IdleStopped, MemberState::Deleting) => {
            saw(Witness::IdleLetGo);
        }
        (MemberState::Leased, MemberState::Deleting) if old.cordoned => {
            saw(Witness::CordonedGoesWithItsLease);
        }
        (MemberState::Building, MemberState::Deleting) => saw(Witness::BuildDropped),
        _ => {}
    }
    if old.unplaceable.is_none() && new.unplaceable.is_some() {
        saw(Witness::Unplaceable);
    }
    if old.revoke_by.is_some_and(|by| by <= NOW) && new.is_gone_ordered() {
        saw(Witness::RevokeTimedOut);
    }
    if new.aged && !old.aged {
        saw(Witness::Aged);
    }
    Ok(())
}

/// The drawing in `pool/mod.rs`.
fn moves(from: MemberState, to: MemberState) -> bool {
    use MemberState::{Building, Deleting, IdleRunning, IdleStopped, Leased, Recycling, Starting, Stopping};
    from == to
        || to == Deleting
        || matches!(
            (from, to),
            (Building | Starting, IdleRunning | Leased)
                | (IdleRunning, Leased | Stopping | IdleStopped)
                | (Stopping, IdleStopped | Starting)
                | (IdleStopped, Starting)
                | (Leased, Recycling)
                | (Recycling, IdleRunning)
        )
}

fn step_lease(turn: &Turn<'_>, old: Option<&Lease>, new: &Lease, decision: &Decision) -> Held {
    let name = || format!("{}: {old:?} to {new:?}", new.metadata.name);
    let Some(old) = old else {
        return hold(turn.creates, "a lease that is over never comes back", name);
    };
    let back = match old.asked() {
        LeaseState::Needed => false,
        LeaseState::Recycle => new.asked() == LeaseState::Needed,
        LeaseState::Done => new.asked() != LeaseState::Done,
    };
    hold(!back, "a released lease stays released", name)?;
    hold(lease_moves(old.phase, new.phase), "leases move as drawn", name)?;
    hold(old.holder == new.holder && old.uid() == new.uid(), "a lease keeps its holder", name)?;
    let was = |lease: &Lease| lease.ready_at.is_some() && lease.member.is_some();
    let moved =
        was(old) && new.member != old.member && (new.member.is_some() || new.phase == LeasePhase::Pending);
    hold(!moved, "a lease that was Ready is never moved", name)?;
    if let (None, Some(bond)) = (&old.member, &new.member) {
        step_bind(turn, old, bond)?;
    }
    if old.phase != LeasePhase::Ready && new.phase == LeasePhase::Ready {
        step_ready(turn, new)?;
    }
    let saw = |witness| turn.model.saw(witness);
    match (old.phase, new.phase, new.reason) {
        (LeasePhase::Failed, _, _) => {}
        (LeasePhase::Starting, LeasePhase::Pending, _) => saw(Witness::Moved),
        (LeasePhase::Ready, LeasePhase::Starting, _) => saw(Witness::WentDown),
        (LeasePhase::Pending, _, Some(FailedReason::Expired)) => saw(Witness::ExpiredPending),
        (_, _, Some(FailedReason::Expired)) => saw(Witness::ExpiredBound),
        (_, _, Some(FailedReason::RecycleFailed)) => saw(Witness::RecycleFailed),
        (_, _, Some(FailedReason::RecycleTimedOut)) => saw(Witness::RecycleTimedOut),
        (_, _, Some(FailedReason::MemberLost)) => saw(Witness::MemberLost),
        (_, _, Some(FailedReason::PoolDeleted)) => saw(Witness::PoolDeletedUnderIt),
        (LeasePhase::Recycling, LeasePhase::Releasing, None) => saw(Witness::RecycleStopped),
        (_, LeasePhase::Releasing, None) if new.release.as_ref().is_some_and(|it| it.reason.is_some()) => {
            saw(Witness::RecycleRefused);
        }
        _ => {}
    }
    let told = |event: &Change| matches!(event, Change::PutEvent(event) if Some(event.reason.as_str()) == new.reason.map(|it| format!("{it:?}")).as_deref());
    let recycle_failed =
        matches!(new.reason, Some(FailedReason::RecycleFailed | FailedReason::RecycleTimedOut));
    let newly = recycle_failed && old.phase != LeasePhase::Failed;
    hold(!newly || decision.changes.iter().any(told), "a failed recycle is told in an event", name)
}

fn lease_moves(from: LeasePhase, to: LeasePhase) -> bool {
    use LeasePhase::{Failed, Pending, Ready, Recycling, Releasing, Starting};
    from == to
        || matches!(
            (from, to),
            (Pending, Starting | Failed | Releasing)
                | (Starting, Pending | Ready | Recycling | Releasing | Failed)
                | (Ready, Starting | Recycling | Releasing | Failed)
                | (Recycling, Releasing | Failed)
        )
}

/// The oldest waiting lease is served first, and with a member that nothing of another's is left on.
fn step_bind(turn: &Turn<'_>, lease: &Lease, bond: &Bond) -> Held {
    let waiting = turn
        .pool
        .leases()
        .filter(|lease| lease.phase == LeasePhase::Pending && lease.asked() == LeaseState::Needed);
    let first = waiting.min_by_key(|lease| (lease.created(), lease.uid()));
    let name = || lease.metadata.name.clone();
    hold(first.map(Lease::uid) == Some(lease.uid()), "the oldest waiting lease is served first", name)?;
    let machine = turn.machines.get(&bond.uid);
    hold(
        machine.is_none_or(|machine| !machine.used),
        "no member goes unrecycled from one lease to another",
        name,
    )?;
    let member = turn.pool.member(bond.uid);
    hold(member.is_none_or(|member| !member.cordoned), "a cordoned member takes no new lease", name)?;
    if lease.waits_for.is_some() {
        turn.model.saw(Witness::ServedAfterWaiting);
        if member.is_some_and(|member| member.reuses > 0) {
            turn.model.saw(Witness::WaitedForARecycledMember);
        }
    }
    if member.is_some_and(|member| member.reuses > 0) {
        turn.model.saw(Witness::RecycledMemberServesAgain);
    }
    Ok(())
}

/// Only by the word of a machine that truly had the lease's keys, in the newest boot that the pool
/// knows of.
fn step_ready(turn: &Turn<'_>, lease: &Lease) -> Held {
    let member = lease.member.as_ref().map(|bond| bond.uid);
    let heard = turn.hearing.as_ref().filter(|heard| Some(heard.member) == member);
    let carried = heard.is_some_and(|heard| {
        let keys = &lease.spec.authorized_keys;
        heard.seen.confirms() && keys.iter().all(|key| heard.seen.keys.contains(key))
    });
    hold(carried, "Ready only when the machine has the keys", || lease.metadata.name.clone())?;
    let known = member.and_then(|uid| turn.pool.member(uid)).and_then(|member| member.observed.started_at);
    let boot = heard.map(|heard| crate::machine::started_at(heard.seen.boot));
    hold(known <= boot, "Ready only in the newest boot", || lease.metadata.name.clone())?;
    turn.model.saw(Witness::BecameReady);
    Ok(())
}

/// Of the whole when nothing is due.
pub fn rest(turn: &Turn<'_>) -> Held {
    for member in turn.pool.members().filter(|member| !member.is_over()) {
        let name = || member.metadata.name.clone();
        let machine = turn.machines.get(&member.uid());
        let order = machine.map(|machine| machine.order.revision);
        hold(order == Some(member.wanted.revision), "every machine has its newest want", name)?;
        let idle = matches!(
            member.state,
            MemberState::IdleRunning | MemberState::IdleStopped | MemberState::Stopping
        );
        let bare = machine.is_none_or(|machine| machine.keys.is_empty());
        hold(!idle || bare, "an idle member has nobody's keys", name)?;
    }
    let tick = Tick { wall: NOW, steady: NOW, entropy: 0 };
    let deadline = turn.pool.next_deadline(&tick);
    hold(deadline.is_none_or(|deadline| deadline > NOW), "no deadline is missed", || {
        format!("{deadline:?}")
    })?;
    let leases: Vec<&Lease> = turn.pool.leases().collect();
    let members: Vec<&Member> = turn.pool.members().collect();
    for timer in timer::ALL {
        // Idle members that a floor keeps and those in use have no timer.
        let waits = !matches!(timer, timer::Timer::Idle | timer::Timer::Age);
        let runs = waits && !timer::running(timer, turn.pool.row(), &leases, &members).is_empty();
        hold(!runs || deadline.is_some(), "the timer is set", || format!("{timer:?}"))?;
    }
    Ok(())
}
