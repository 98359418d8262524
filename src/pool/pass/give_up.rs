//! Members that took too long.

use crate::object::Time;
use crate::pool::draft::Draft;
use crate::pool::health::{self, BACK_WITHIN_MILLIS};
use crate::pool::index::{due, upcoming};
use crate::pool::{Act, Pool};

/// A new member that was not Configured in time has failed (rule F1).
pub fn overdue_build(draft: &mut Draft<'_>) -> Option<Act> {
    let uid = due(&draft.pool.members_by.build_by, draft.now())?;
    health::fail_build(draft, uid, &health::overdue());
    Some(Act::GiveUp)
}

/// A machine that is not back in time is lost (rule L17).
pub fn down_too_long(draft: &mut Draft<'_>) -> Option<Act> {
    let since = draft.now().plus_millis(-BACK_WITHIN_MILLIS);
    let uid = due(&draft.pool.members_by.down, since)?;
    let minutes = BACK_WITHIN_MILLIS / 60_000;
    draft.lose_member(uid, &format!("its machine was not up again within {minutes} minutes"));
    Some(Act::GiveUp)
}

pub fn deadline(pool: &Pool, now: Time) -> Option<Time> {
    let build = upcoming(&pool.members_by.build_by, now);
    let down = upcoming(&pool.members_by.down, now.plus_millis(-BACK_WITHIN_MILLIS));
    build.into_iter().chain(down.map(|since| since.plus_millis(BACK_WITHIN_MILLIS))).min()
}
