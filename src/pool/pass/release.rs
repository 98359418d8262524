//! Leases whose holders want them to end, and the deletes that follow.

use crate::machine::RECYCLE_CAPABILITY;
use crate::object::{LeasePhase, LeaseState, MemberState, NotRecycled, Outcome, Release, Reset, Time};
use crate::pool::draft::Draft;
use crate::pool::index::{due, upcoming};
use crate::pool::{Act, Lease, Member, Pool, Resetting, recycle};

/// Acts on one wish: cancels a waiting lease (L14), lets a failed one go (L15), releases a bound
/// one (L9, L10), or stops its recycle (L11).
pub fn wish(draft: &mut Draft<'_>) -> Option<Act> {
    let uid = *draft.pool.leases_by.wishes.first()?;
    let lease = draft.lease(uid)?;
    match (lease.phase, lease.asked()) {
        (LeasePhase::Pending | LeasePhase::Failed, _) => draft.finish_lease(uid),
        (LeasePhase::Starting | LeasePhase::Ready, LeaseState::Recycle) => recycle_or_delete(draft, uid),
        (LeasePhase::Starting | LeasePhase::Ready | LeasePhase::Recycling | LeasePhase::Releasing, _) => {
            draft.release_lease(uid, None);
        }
    }
    Some(Act::Release)
}

/// A delete whose keys are gone, or that has waited long enough for the agent's word: the machine
/// is ordered gone. With that the delete is accepted and cannot be undone, and the lease goes,
/// while the machine may still be going down (rules A2, L9).
pub fn revoked(draft: &mut Draft<'_>) -> Option<Act> {
    let members = &draft.pool.members_by;
    let uid = members.revoked.first().copied().or_else(|| due(&members.revoking, draft.steady()))?;
    let member = draft.member_mut(uid)?;
    member.revoke_by = None;
    if let Some(lease) = member.lease.take() {
        draft.finish_lease(lease.uid);
    }
    Some(Act::Revoke)
}

pub fn deadline(pool: &Pool, steady: Time) -> Option<Time> {
    upcoming(&pool.members_by.revoking, steady)
}

/// Recycle: a member that never carried the lease's keys returns unused (L10). Any other is recycled,
/// or deleted for the first reason against it (R8).
fn recycle_or_delete(draft: &mut Draft<'_>, uid: ulid::Ulid) {
    let Some(lease) = draft.lease(uid) else { return };
    let Some(member) = lease.member.as_ref().and_then(|bond| draft.member(bond.uid)) else { return };
    let untouched = matches!(member.state, MemberState::Building | MemberState::Starting);
    if untouched && !member.cordoned && !draft.row().is_deleting() {
        return_unused(draft, uid, member.uid());
    } else if let Some(reason) = why_not_recycled(draft, lease, member) {
        draft.release_lease(uid, Some(reason));
    } else {
        recycle::begin(draft, uid);
    }
}

fn return_unused(draft: &mut Draft<'_>, lease: ulid::Ulid, member: ulid::Ulid) {
    let now = draft.now();
    draft.unbind(member);
    if let Some(lease) = draft.lease_mut(lease) {
        lease.ended_at = Some(now);
        lease.release = Some(Release {
            requested: Some(LeaseState::Recycle),
            outcome: Some(Outcome::Recycled),
            reason: None,
            message: "the member was never used and returns as it is".into(),
            at: Some(now),
        });
    }
    draft.finish_lease(lease);
}

/// The first reason of rule R8 that applies, judged once, when Recycle is acted on.
fn why_not_recycled(draft: &Draft<'_>, lease: &Lease, member: &Member) -> Option<NotRecycled> {
    debug_assert_eq!(lease.asked(), LeaseState::Recycle);
    let row = draft.row();
    let age_millis = draft.steady().millis_since(member.born);
    let rules = row.spec.recycle.as_ref();
    let reasons = [
        (row.is_deleting(), NotRecycled::PoolDeleted),
        (rules.is_none(), NotRecycled::RecycleDisabled),
        (rules.is_some_and(|rules| member.reuses >= rules.max_reuses), NotRecycled::MaxReusesReached),
        (row.spec.max_age.as_ref().is_some_and(|max| age_millis >= max.millis()), NotRecycled::MaxAgeReached),
        (member.template_hash != row.template_hash, NotRecycled::TemplateChanged),
        (member.cordoned, NotRecycled::Cordoned),
        (rules.is_some_and(|rules| !is_able(draft, member, rules.reset)), NotRecycled::RecycleUnsupported),
    ];
    reasons.into_iter().find(|(applies, _)| *applies).map(|(_, reason)| reason)
}

/// Whether the member's agent knows how, and its provider where a reset is asked for.
fn is_able(draft: &Draft<'_>, member: &Member, reset: Reset) -> bool {
    let provider = draft.inputs.providers.iter().find(|provider| provider.name == member.provider);
    let resets = provider.is_some_and(|provider| provider.resetting == Resetting::Possible);
    let knows_how =
        member.observed.agent.capabilities.iter().any(|capability| capability == RECYCLE_CAPABILITY);
    knows_how && (reset == Reset::None || resets)
}
