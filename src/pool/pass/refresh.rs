//! The owner's devices reach every member at once (rule A4).

use std::ops::Bound;

use crate::pool::Act;
use crate::pool::draft::Draft;

/// Orders the want of one member that still carries other devices' keys.
pub fn owner_keys(draft: &mut Draft<'_>) -> Option<Act> {
    let present = draft.inputs.owner_keys.digest();
    let groups = &draft.pool.members_by.by_owner_keys;
    let below = groups.range(..present).next();
    let above = || groups.range((Bound::Excluded(present), Bound::Unbounded)).next();
    let uid = *below.or_else(above)?.1.first()?;
    draft.member_mut(uid)?;
    Some(Act::Refresh)
}
