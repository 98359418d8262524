//! Idle members past maxAge (rule W7). The mark makes them worn out like those of an older
//! template; a raised maxAge takes it back (rule T5).

use crate::object::Time;
use crate::pool::draft::Draft;
use crate::pool::index::{due, upcoming};
use crate::pool::{Act, Pool};

pub fn mark(draft: &mut Draft<'_>) -> Option<Act> {
    let born_by = draft.steady().plus_millis(-max_age_millis(draft.pool)?);
    let uid = due(&draft.pool.members_by.ageing, born_by)?;
    draft.member_mut(uid)?.aged = true;
    Some(Act::Age)
}

pub fn unmark(draft: &mut Draft<'_>) -> Option<Act> {
    let (born, uid) = *draft.pool.members_by.aged.last()?;
    let still =
        max_age_millis(draft.pool).is_some_and(|max_age| born <= draft.steady().plus_millis(-max_age));
    if still {
        return None;
    }
    draft.member_mut(uid)?.aged = false;
    Some(Act::Age)
}

pub fn deadline(pool: &Pool, steady: Time) -> Option<Time> {
    let max_age = max_age_millis(pool)?;
    upcoming(&pool.members_by.ageing, steady.plus_millis(-max_age)).map(|born| born.plus_millis(max_age))
}

fn max_age_millis(pool: &Pool) -> Option<i64> {
    pool.row.spec.max_age.as_ref().map(crate::object::Span::millis)
}
