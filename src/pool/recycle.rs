//! A recycle, on the pool's side (rules R): begun once, heard of until it ends, and never tried
//! again. The member carries it out; whatever makes it doubtful deletes the member.

use ulid::Ulid;

use super::draft::Draft;
use super::{Recycling, Sighting};
use crate::machine::{Failure, Machine, RecycleOrder, RecycleReport, RecycleStage};
use crate::object::{FailedReason, LeasePhase, LeaseState, MemberState, Outcome, Release};

/// Orders it: the lease's keys are off the want at once, and the order is on it.
pub fn begin(draft: &mut Draft<'_>, lease_uid: Ulid) {
    let (now, steady) = (draft.now(), draft.steady());
    let Some(rules) = draft.row().spec.recycle.clone() else { return };
    let id = draft.new_uid();
    let Some(lease) = draft.lease_mut(lease_uid) else { return };
    let Some(member_uid) = lease.member.as_ref().map(|bond| bond.uid) else { return };
    lease.phase = LeasePhase::Recycling;
    lease.ended_at = Some(now);
    lease.ssh = None;
    lease.message = "its member is being recycled".into();
    lease.release = Some(Release {
        requested: Some(LeaseState::Recycle),
        outcome: None,
        reason: None,
        message: String::new(),
        at: Some(now),
    });
    let Some(member) = draft.member_mut(member_uid) else { return };
    let down_since = member.down_since;
    let runs = member.observed.sighting == Sighting::Running && down_since.is_none();
    member.enter(MemberState::Recycling, steady);
    member.down_since = down_since;
    member.recycle_nonce = Some(id);
    member.recycling = Some(Recycling {
        order: RecycleOrder {
            id,
            by: steady.plus_millis(rules.timeout.millis()),
            reboot: rules.reboot,
            reset: rules.reset,
        },
        boot: member.observed.boot_id.filter(|_| runs),
    });
}

/// What a fact means for a member that is being recycled, once it has been taken in.
pub fn heard(draft: &mut Draft<'_>, member_uid: Ulid, machine: Machine, report: Option<RecycleReport>) {
    let steady = draft.steady();
    let Some(member) = draft.member_mut(member_uid) else { return };
    let Some(recycling) = &mut member.recycling else { return };
    let reported = report.filter(|report| report.id == recycling.order.id).map(|report| report.stage);
    if let Some(RecycleStage::Failed(failure)) = reported {
        return fail(draft, member_uid, FailedReason::RecycleFailed, &said(&failure));
    }
    let lost = match &machine {
        Machine::Absent => Some("its machine is gone".to_owned()),
        Machine::Failed(failure) => Some(failure.message.clone()),
        Machine::Stopped if recycling.boot.is_some() && !recycling.order.reboot => {
            Some("its machine stopped by itself".into())
        }
        Machine::Running(running) => {
            let boot = *recycling.boot.get_or_insert(running.boot_id);
            let restarted = boot != running.boot_id && !recycling.order.reboot;
            restarted.then(|| "its machine restarted by itself".into())
        }
        Machine::Stopped
        | Machine::Unknown { .. }
        | Machine::Booting
        | Machine::Stopping
        | Machine::Unplaceable { .. } => None,
    };
    if let Some(why) = lost {
        return fail(draft, member_uid, FailedReason::RecycleFailed, &why);
    }
    match machine {
        Machine::Stopped => _ = member.down_since.get_or_insert(steady),
        Machine::Running(_) if member.observed.configured => {
            member.down_since = None;
            if reported == Some(RecycleStage::Succeeded) && member.keys_confirmed() {
                succeed(draft, member_uid);
            }
        }
        Machine::Running(_)
        | Machine::Unknown { .. }
        | Machine::Booting
        | Machine::Stopping
        | Machine::Absent
        | Machine::Failed(_)
        | Machine::Unplaceable { .. } => {}
    }
}

/// It failed, took too long, or its member was lost: the member goes, the lease is Failed unless it
/// was deleted (rules R3, R4, L12), and a person is told.
pub fn fail(draft: &mut Draft<'_>, member_uid: Ulid, reason: FailedReason, why: &str) {
    let Some(member) = draft.member(member_uid) else { return };
    let name = member.metadata.name.clone();
    let lease = member.lease.as_ref().map(|bond| bond.uid);
    draft.warn(&format!("{reason:?}"), why, format!("recycling {name} failed: {why}"));
    draft.delete_member(member_uid);
    draft.unbind(member_uid);
    let Some(lease) = lease.and_then(|uid| draft.lease_mut(uid)) else { return };
    let uid = lease.uid();
    if let Some(release) = &mut lease.release {
        release.outcome = Some(Outcome::Deleted);
    }
    if lease.metadata.deletion_timestamp.is_some() || lease.asked() == LeaseState::Done {
        draft.finish_lease(uid);
    } else {
        draft.fail_lease(uid, reason, format!("recycling {name} failed: {why}"));
    }
}

/// The member is as good as new, and the lease has ended (rules L10, R5).
fn succeed(draft: &mut Draft<'_>, member_uid: Ulid) {
    let steady = draft.steady();
    let Some(member) = draft.member(member_uid) else { return };
    let Some(lease) = member.lease.as_ref().map(|bond| bond.uid) else { return };
    if draft.lease(lease).is_some_and(|lease| lease.asked() == LeaseState::Done) {
        // Its holder has thought better of it, and the next pass deletes the member (rule L11).
        return;
    }
    if let Some(member) = draft.member_mut(member_uid) {
        member.lease = None;
        member.reuses = member.reuses.saturating_add(1);
        member.last_used = steady;
        member.enter(MemberState::IdleRunning, steady);
    }
    if let Some(release) = draft.lease_mut(lease).and_then(|lease| lease.release.as_mut()) {
        release.outcome = Some(Outcome::Recycled);
    }
    draft.finish_lease(lease);
}

fn said(failure: &Failure) -> String {
    format!("{}: {}", failure.reason, failure.message)
}
