//! What waiting leases are told (rule L6). All of a pool wait for the same thing: the oldest is
//! served first, and it could not be.

use super::build;
use crate::pool::Act;
use crate::pool::draft::Draft;
use crate::pool::index::Place;

/// So many leases are told in one submission.
const AT_ONCE: usize = 64;

/// Tells the leases that were told something else before.
pub fn waiting(draft: &mut Draft<'_>) -> Option<Act> {
    draft.pool.leases_by.waiting.first()?;
    let waits_for = build::hold(draft);
    let outdated = draft.pool.leases_by.told.iter().find(|(told, _)| **told != waits_for)?;
    let places: Vec<Place> = outdated.1.iter().take(AT_ONCE).copied().collect();
    for (_, uid) in places {
        draft.lease_mut(uid)?.waits_for.clone_from(&waits_for);
    }
    Some(Act::Tell)
}
