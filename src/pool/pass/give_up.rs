//! Members that took too long.

use crate::object::{FailedReason, Time};
use crate::pool::draft::Draft;
use crate::pool::health::{self, BACK_WITHIN_MILLIS};
use crate::pool::index::{due, upcoming};
use crate::pool::{Act, Pool, recycle};

/// A new member that was not Configured in time has failed (rule F1).
pub fn overdue_build(draft: &mut Draft<'_>) -> Option<Act> {
    let uid = due(&draft.pool.members_by.build_by, draft.steady())?;
    health::fail_build(draft, uid, &health::overdue());
    Some(Act::GiveUp)
}

/// A recycle that takes too long is stopped, however far it is (rule R3).
pub fn overdue_recycle(draft: &mut Draft<'_>) -> Option<Act> {
    let uid = due(&draft.pool.members_by.recycle_by, draft.steady())?;
    recycle::fail(draft, uid, FailedReason::RecycleTimedOut, "not finished within recycle.timeout");
    Some(Act::GiveUp)
}

/// A machine that is not back in time is lost (rule L17).
pub fn down_too_long(draft: &mut Draft<'_>) -> Option<Act> {
    let since = draft.steady().plus_millis(-BACK_WITHIN_MILLIS);
    let uid = due(&draft.pool.members_by.down, since)?;
    let minutes = BACK_WITHIN_MILLIS / 60_000;
    draft.lose_member(uid, &format!("its machine was not up again within {minutes} minutes"));
    Some(Act::GiveUp)
}

pub fn deadline(pool: &Pool, steady: Time) -> Option<Time> {
    let build = upcoming(&pool.members_by.build_by, steady);
    let down = upcoming(&pool.members_by.down, steady.plus_millis(-BACK_WITHIN_MILLIS));
    let recycle = upcoming(&pool.members_by.recycle_by, steady);
    build.into_iter().chain(recycle).chain(down.map(|since| since.plus_millis(BACK_WITHIN_MILLIS))).min()
}
