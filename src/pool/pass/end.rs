//! A pool that is being deleted (rules D1, D2, D4). Nothing here needs what it removes.

use crate::object::{FailedReason, NotRecycled, RELEASE_FINALIZER};
use crate::pool::Act;
use crate::pool::draft::Draft;

/// A waiting lease will never be served.
pub fn waiting_lease(draft: &mut Draft<'_>) -> Option<Act> {
    if !draft.row().is_deleting() {
        return None;
    }
    let (_, uid) = *draft.pool.leases_by.waiting.first()?;
    let message = format!("workstationpool/{} is being deleted", draft.row().metadata.name);
    draft.fail_lease(uid, FailedReason::PoolDeleted, message);
    Some(Act::End)
}

/// A running recycle is stopped, and its member goes.
pub fn recycle(draft: &mut Draft<'_>) -> Option<Act> {
    if !draft.row().is_deleting() {
        return None;
    }
    let (_, uid) = *draft.pool.members_by.recycle_by.first()?;
    let lease = draft.member(uid)?.lease.as_ref()?.uid;
    draft.release_lease(lease, Some(NotRecycled::PoolDeleted));
    Some(Act::End)
}

/// A member no lease uses goes at once, cordoned or not.
pub fn member(draft: &mut Draft<'_>) -> Option<Act> {
    if !draft.row().is_deleting() {
        return None;
    }
    let uid = *draft.pool.members_by.unbound.first()?;
    draft.delete_member(uid);
    Some(Act::End)
}

/// The pool goes with its last member; its row only with the last lease that outlives it.
pub fn pool(draft: &mut Draft<'_>) -> Option<Act> {
    let row = draft.row();
    if !row.is_deleting() || draft.pool.members_by.live > 0 {
        return None;
    }
    if !row.is_over() {
        draft.row_mut().metadata.finalizers.retain(|finalizer| finalizer != RELEASE_FINALIZER);
        return Some(Act::End);
    }
    if !row.is_gone() || !draft.pool.leases.is_empty() || !draft.pool.members.is_empty() {
        return None;
    }
    let events: Vec<_> = draft.pool.events.keys().copied().collect();
    for event in events {
        draft.remove_event(event);
    }
    draft.remove_pool();
    Some(Act::End)
}
