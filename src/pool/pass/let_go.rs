//! Idle members nobody needs: above size.max at once (T4), above a floor when their time has come
//! (W4 to W6).

use super::build;
use crate::object::{MemberState, Time};
use crate::pool::draft::Draft;
use crate::pool::{Act, Pool};

/// Above a lowered size.max: unbound builds first, then idle members, least life first. Bound,
/// recycling and cordoned ones stay, so that a pool may remain above.
pub fn above_size(draft: &mut Draft<'_>) -> Option<Act> {
    let members = &draft.pool.members_by;
    let staying = members.live - members.counts.deleting;
    if staying <= draft.row().spec.size.max {
        return None;
    }
    let build = members.droppable.last().map(|(_, _, uid)| *uid);
    let least = members.running.ranked.least().into_iter().chain(members.stopped.ranked.least()).min();
    let starting = members.starting.last().map(|(_, _, uid)| *uid);
    let uid = build.or_else(|| least.map(|life| life.uid)).or(starting)?;
    draft.delete_member(uid);
    Some(Act::LetGo)
}

/// Stops an idle running member, or deletes an idle stopped one, that is surplus by rank and has
/// itself waited its time. A provider that cannot stop deletes instead.
pub fn by_timer(draft: &mut Draft<'_>) -> Option<Act> {
    let steady = draft.steady();
    let (members, warm) = (&draft.pool.members_by, &draft.pool.row.spec.warm);
    if let Some(uid) = members.running.ranked.waited_since(steady.plus_millis(-warm.stop_after.millis())) {
        if build::can_stop(draft.pool, draft.inputs) {
            draft.member_mut(uid)?.enter(MemberState::Stopping, steady);
            return Some(Act::Stop);
        }
        draft.delete_member(uid);
        return Some(Act::LetGo);
    }
    let uid = members.stopped.ranked.waited_since(steady.plus_millis(-warm.delete_after.millis()))?;
    draft.delete_member(uid);
    Some(Act::LetGo)
}

pub fn deadline(pool: &Pool, steady: Time) -> Option<Time> {
    let (members, warm) = (&pool.members_by, &pool.row.spec.warm);
    let (stop, delete) = (warm.stop_after.millis(), warm.delete_after.millis());
    let stop =
        members.running.ranked.next_clock(steady.plus_millis(-stop)).map(|since| since.plus_millis(stop));
    let delete =
        members.stopped.ranked.next_clock(steady.plus_millis(-delete)).map(|since| since.plus_millis(delete));
    stop.into_iter().chain(delete).min()
}
