//! Leases and events whose time is up.

use crate::object::{FailedReason, Tick, Time};
use crate::pool::draft::Draft;
use crate::pool::index::{due, upcoming};
use crate::pool::{Act, Pool};

/// How long an event is kept after it last happened.
pub const EVENT_RETENTION_MILLIS: i64 = 24 * 3_600_000;

/// Ends a lease nobody released: by the wall clock, or by the steady one where the wall clock was
/// stepped back (rules L13, L21).
pub fn by_time(draft: &mut Draft<'_>) -> Option<Act> {
    let leases = &draft.pool.leases_by;
    let uid = due(&leases.expiry, draft.now()).or_else(|| due(&leases.terms, draft.steady()))?;
    let lease = draft.lease(uid)?;
    let member = lease.member.as_ref().map(|bond| bond.uid);
    let message = match member {
        Some(_) => format!("expired at {}", lease.expires_at()),
        None => format!("expired at {} before a member was bound", lease.expires_at()),
    };
    if let Some(member) = member {
        draft.delete_member(member);
        draft.unbind(member);
    }
    draft.fail_lease(uid, FailedReason::Expired, message);
    Some(Act::Expire)
}

/// Drops a Failed lease whose retention has passed, or the oldest above the most that may stay
/// (rule L15).
pub fn retention(draft: &mut Draft<'_>) -> Option<Act> {
    let rules = &draft.row().spec.lease;
    let kept_since = draft.now().plus_millis(-rules.failed_retention.millis());
    let leases = &draft.pool.leases_by;
    let too_many = leases.counts.failed > rules.max_pending;
    let uid = due(&leases.failed, if too_many { Time::from_millis(i64::MAX) } else { kept_since })?;
    draft.finish_lease(uid);
    Some(Act::Forget)
}

/// Drops an event that has not repeated for a day.
pub fn event(draft: &mut Draft<'_>) -> Option<Act> {
    let kept_since = draft.now().plus_millis(-EVENT_RETENTION_MILLIS);
    let uid = due(&draft.pool.events_by_age, kept_since)?;
    draft.remove_event(uid);
    Some(Act::Forget)
}

pub fn deadline(pool: &Pool, tick: &Tick) -> Option<Time> {
    let (leases, rules) = (&pool.leases_by, &pool.row.spec.lease);
    let after = |millis: i64, moments| {
        upcoming(moments, tick.wall.plus_millis(-millis)).map(|time| time.plus_millis(millis))
    };
    let dates = [
        upcoming(&leases.expiry, tick.wall),
        after(rules.failed_retention.millis(), &leases.failed),
        after(EVENT_RETENTION_MILLIS, &pool.events_by_age),
    ];
    let term = upcoming(&leases.terms, tick.steady);
    dates.into_iter().flatten().map(|date| tick.steady_at(date)).chain(term).min()
}
