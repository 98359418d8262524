//! What a member actor reports, and what it means in the member's present state.
//!
//! A fact is the whole state of a machine as it was seen under some want. One from an older want
//! or an older boot says nothing any more and is dropped; a repeated one changes nothing.

use ulid::Ulid;

use crate::machine::{Fact, Failure, Machine, Running};
use crate::object::{MemberState, RELEASE_FINALIZER, Time};
use crate::pool::draft::Draft;
use crate::pool::{Destination, Member, Observed, Sighting, health, recycle};

/// Records what was seen and moves the member on where that is what it waited for.
pub fn record(draft: &mut Draft<'_>, fact: Fact) {
    let steady = draft.steady();
    let uid = fact.member_uid;
    let Some(member) = draft.member(uid) else { return };
    if member.is_over() || is_outdated(member, &fact) {
        return;
    }
    // A member moves on only by a sight that had its newest want.
    let abreast = fact.observed_revision >= member.wanted.revision;
    let state = member.state;
    let Some(member) = draft.member_mut(uid) else { return };
    let seen = observed(member, &fact);
    let seen_configured = seen.configured;
    if !same_but_for_revision(&seen, &member.observed) {
        member.observed = seen;
    }
    match state {
        MemberState::Building => building(draft, fact, abreast),
        MemberState::Deleting => {
            if abreast && member.is_gone_ordered() && fact.machine == Machine::Absent {
                forget(draft, uid);
            }
        }
        MemberState::Recycling => recycle::heard(draft, uid, fact.machine, fact.recycle),
        MemberState::Starting
        | MemberState::IdleRunning
        | MemberState::IdleStopped
        | MemberState::Leased
        | MemberState::Stopping => match fact.machine {
            Machine::Absent => draft.lose_member(uid, "its machine is gone"),
            Machine::Failed(failure) => draft.lose_member(uid, &failure.message),
            Machine::Stopped => stopped(member, abreast, steady),
            Machine::Running(_) if state == MemberState::Starting && abreast && seen_configured => {
                arrive(draft, uid);
            }
            Machine::Running(_) | Machine::Booting => rising(member, seen_configured, steady),
            Machine::Unplaceable { why } if state == MemberState::Starting => hold(draft, uid, why),
            Machine::Unknown { .. } | Machine::Stopping | Machine::Unplaceable { .. } => {}
        },
    }
}

/// A member that was made once and whose machine does not run.
fn stopped(member: &mut Member, abreast: bool, steady: Time) {
    match member.state {
        // It stopped by itself: whoever needs it starts it again.
        MemberState::IdleRunning => member.enter(MemberState::IdleStopped, steady),
        MemberState::Stopping if abreast => member.enter(MemberState::IdleStopped, steady),
        MemberState::Leased => _ = member.down_since.get_or_insert(steady),
        MemberState::Building
        | MemberState::Starting
        | MemberState::IdleStopped
        | MemberState::Recycling
        | MemberState::Stopping
        | MemberState::Deleting => {}
    }
}

/// A member that was made once and whose machine comes up.
fn rising(member: &mut Member, configured: bool, steady: Time) {
    match member.state {
        MemberState::Leased if configured => member.down_since = None,
        // It started anew by itself, and is not back before it is configured (rule L17).
        MemberState::Leased => _ = member.down_since.get_or_insert(steady),
        MemberState::Starting => {
            if member.unplaceable.take().is_some() {
                member.down_since = Some(steady);
            }
        }
        MemberState::Building
        | MemberState::IdleRunning
        | MemberState::IdleStopped
        | MemberState::Recycling
        | MemberState::Stopping
        | MemberState::Deleting => {}
    }
}

/// A member being built. That its machine is not there yet says nothing.
fn building(draft: &mut Draft<'_>, fact: Fact, abreast: bool) {
    let steady = draft.steady();
    let uid = fact.member_uid;
    let Some(member) = draft.member_mut(uid) else { return };
    match fact.machine {
        Machine::Running(running) if running.configured && abreast => arrive(draft, uid),
        Machine::Running(_) | Machine::Booting => {
            if member.unplaceable.take().is_some() {
                member.build_by = Some(steady.plus_millis(health::BUILD_WITHIN_MILLIS));
            }
        }
        Machine::Unplaceable { why } => hold(draft, uid, why),
        Machine::Failed(failure) => health::fail_build(draft, uid, &failure),
        Machine::Absent | Machine::Unknown { .. } | Machine::Stopped | Machine::Stopping => {}
    }
}

/// It is up and configured: it serves its lease, or waits for one.
fn arrive(draft: &mut Draft<'_>, uid: Ulid) {
    let steady = draft.steady();
    let Some(member) = draft.member_mut(uid) else { return };
    let built = member.state == MemberState::Building;
    if member.lease.is_some() {
        member.enter(MemberState::Leased, steady);
        member.destination = Destination::Running;
    } else {
        member.enter(MemberState::IdleRunning, steady);
    }
    if built {
        member.last_used = steady;
        let hash = member.template_hash.clone();
        health::succeed_build(draft, &hash);
    }
}

/// It cannot be placed: no failure, and nobody is bound to it until it is (rule F1).
fn hold(draft: &mut Draft<'_>, uid: Ulid, why: String) {
    let Some(member) = draft.member_mut(uid) else { return };
    member.unplaceable = Some(why);
    member.build_by = None;
    member.down_since = None;
    if let Some(lease) = member.lease.take() {
        draft.requeue_lease(lease.uid);
    }
}

/// The machine is gone for good; only a foreign finalizer keeps the object.
fn forget(draft: &mut Draft<'_>, uid: Ulid) {
    let Some(member) = draft.member_mut(uid) else { return };
    member.metadata.finalizers.retain(|finalizer| finalizer != RELEASE_FINALIZER);
    if member.metadata.finalizers.is_empty() {
        draft.remove_member(uid);
    }
}

/// Seen under an older want than one already heard of, or in a boot that has ended.
fn is_outdated(member: &Member, fact: &Fact) -> bool {
    let last = &member.observed;
    if fact.observed_revision < last.revision || fact.observed_revision > member.wanted.revision {
        return true;
    }
    let (Machine::Running(running), Some(boot)) = (&fact.machine, last.boot_id) else { return false };
    match last.sighting {
        Sighting::Stopped | Sighting::Absent => running.boot_id <= boot,
        Sighting::Never | Sighting::Booting | Sighting::Running | Sighting::Stopping | Sighting::Failed => {
            running.boot_id < boot
        }
    }
}

/// What is known of the machine with this fact.
fn observed(member: &Member, fact: &Fact) -> Observed {
    let mut seen = Observed { revision: fact.observed_revision, ..member.observed.clone() };
    let was_running = seen.sighting == Sighting::Running;
    match &fact.machine {
        // A machine that was up stays so until something says otherwise: the daemon looks for
        // its own members again after every start.
        Machine::Unknown { .. } | Machine::Booting if was_running => return member.observed.clone(),
        Machine::Unknown { why } | Machine::Unplaceable { why } => seen.message.clone_from(why),
        Machine::Booting => seen.sight(Sighting::Booting, ""),
        Machine::Running(running) => seen.run(running, fact.observed_revision, member),
        Machine::Stopped => seen.sight(Sighting::Stopped, ""),
        Machine::Stopping => seen.sight(Sighting::Stopping, ""),
        Machine::Absent => seen.sight(Sighting::Absent, ""),
        Machine::Failed(Failure { message, .. }) => seen.sight(Sighting::Failed, message),
    }
    seen
}

impl Observed {
    /// The machine is not up.
    fn sight(&mut self, sighting: Sighting, message: &str) {
        self.sighting = sighting;
        message.clone_into(&mut self.message);
        self.configured = false;
        self.keys_revision = 0;
        self.sessions = 0;
    }

    fn run(&mut self, running: &Running, revision: u64, member: &Member) {
        if self.boot_id != Some(running.boot_id) || self.sighting != Sighting::Running {
            self.sight(Sighting::Running, "");
        }
        self.boot_id = Some(running.boot_id);
        self.started_at = Some(running.started_at);
        self.configured |= running.configured;
        if running.keys_confirmed && revision >= member.wanted.keys_revision {
            self.keys_revision = member.wanted.keys_revision;
        }
        self.agent = running.agent.clone();
        self.remarks.clone_from(&running.remarks);
        self.sessions = running.sessions;
        self.message = String::new();
    }
}

/// A newer revision alone is nothing to write down.
fn same_but_for_revision(one: &Observed, other: &Observed) -> bool {
    Observed { revision: 0, ..one.clone() } == Observed { revision: 0, ..other.clone() }
}
