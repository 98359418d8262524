//! Lending: the oldest waiting lease gets the best member there is (rules L5, L7).

use ulid::Ulid;

use super::build;
use crate::object::{LeasePhase, MemberState};
use crate::pool::draft::Draft;
use crate::pool::{Act, Bond, Destination, Pool, Start};

/// Binds one lease, to a member that is there or to a new one.
pub fn oldest(draft: &mut Draft<'_>) -> Option<Act> {
    if draft.row().is_deleting() || draft.row().spec.paused {
        return None;
    }
    let (_, lease) = *draft.pool.leases_by.waiting.first()?;
    if let Some(member) = best(draft.pool) {
        bind(draft, lease, member);
        return Some(Act::Bind);
    }
    let provider = build::allowed(draft).ok()?;
    let member = build::order(draft, provider, Destination::Running);
    bind(draft, lease, member);
    Some(Act::Build)
}

/// An idle running member; else one on its way, the one begun first; else an idle stopped one,
/// unless machines cannot be placed just now.
fn best(pool: &Pool) -> Option<Ulid> {
    let members = &pool.members_by;
    let running = members.running.serving.first().map(|(_, _, uid)| *uid);
    let begun_first = members.building.first().into_iter().chain(members.starting.first()).min();
    let stopped = members.stopped.serving.first().filter(|_| members.unplaceable.is_empty());
    running.or_else(|| begun_first.map(|(_, _, uid)| *uid)).or_else(|| stopped.map(|(_, _, uid)| *uid))
}

fn bind(draft: &mut Draft<'_>, lease_uid: Ulid, member_uid: Ulid) {
    let (now, steady) = (draft.now(), draft.steady());
    let start = draft.member(member_uid).map(|member| start_on(member.state));
    let Some(lease) = draft.lease_mut(lease_uid) else { return };
    lease.phase = LeasePhase::Starting;
    lease.waits_for = None;
    lease.bound_at = Some(now);
    lease.start = start;
    let to_lease = Bond { uid: lease_uid, name: lease.metadata.name.clone() };
    let Some(member) = draft.member_mut(member_uid) else { return };
    let to_member = Bond { uid: member_uid, name: member.metadata.name.clone() };
    member.lease = Some(to_lease);
    match member.state {
        MemberState::IdleRunning => {
            member.enter(MemberState::Leased, steady);
            member.destination = Destination::Running;
        }
        MemberState::IdleStopped | MemberState::Stopping => member.enter(MemberState::Starting, steady),
        MemberState::Building
        | MemberState::Starting
        | MemberState::Leased
        | MemberState::Recycling
        | MemberState::Deleting => {}
    }
    if let Some(lease) = draft.lease_mut(lease_uid) {
        lease.member = Some(to_member);
    }
}

/// How much of the way to a usable member was still to go.
const fn start_on(state: MemberState) -> Start {
    match state {
        MemberState::IdleRunning | MemberState::Leased | MemberState::Recycling => Start::Warm,
        MemberState::IdleStopped | MemberState::Stopping | MemberState::Starting => Start::Resumed,
        MemberState::Building | MemberState::Deleting => Start::Cold,
    }
}
