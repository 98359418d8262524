//! Whether the template builds, and when the pool tries again (rules F1 to F3).

use ulid::Ulid;

use super::draft::Draft;
use super::{BackOff, Health};
use crate::machine::Failure;
use crate::object::{LastFailure, Time};

/// From the durable order to Configured.
pub const BUILD_WITHIN_MILLIS: i64 = 30 * 60_000;
/// A machine that stopped by itself, or is being started, is back within this or given up.
pub const BACK_WITHIN_MILLIS: i64 = 5 * 60_000;
/// So many failures in a row make the template unhealthy.
pub const FAILURES_MAX: u32 = 3;
const FIRST_WAIT_MILLIS: i64 = 60_000;
const LONGEST_WAIT_MILLIS: i64 = 3_600_000;

impl Health {
    /// False from the third failure in a row until a success or another template.
    pub const fn is_healthy(&self) -> bool {
        self.consecutive_failures < FAILURES_MAX
    }

    /// One more failure now, of a build begun at `begun`, both on the steady clock. A build begun before the present wait neither
    /// doubles it nor ends it.
    fn fail(&mut self, begun: Time, now: Time, failure: LastFailure) {
        self.consecutive_failures = self.consecutive_failures.saturating_add(1);
        self.last_failure = Some(failure);
        let wait_millis = match self.back_off {
            None if self.is_healthy() => return,
            None => FIRST_WAIT_MILLIS,
            Some(last) if begun >= last.until => {
                (last.until.millis_since(last.began) * 2).min(LONGEST_WAIT_MILLIS)
            }
            Some(_) => return,
        };
        self.back_off = Some(BackOff { began: now, until: now.plus_millis(wait_millis) });
    }
}

/// A new member failed or took too long: it goes, its lease waits for another, and a person is told.
pub fn fail_build(draft: &mut Draft<'_>, uid: Ulid, failure: &Failure) {
    let (now, steady) = (draft.now(), draft.steady());
    let Some(member) = draft.member(uid) else { return };
    let (name, begun) = (member.metadata.name.clone(), member.since);
    let of_this_template = member.template_hash == draft.row().template_hash;
    if of_this_template && member.unplaceable.is_none() {
        let last = LastFailure {
            member: name.clone(),
            reason: failure.reason.clone(),
            message: failure.message.clone(),
            at: now,
        };
        draft.row_mut().health.fail(begun, steady, last);
        let cause = format!("{}: {}", failure.reason, failure.message);
        draft.warn("TemplateFailed", &cause, format!("{name} failed: {cause}"));
    }
    draft.lose_member(uid, &failure.message);
}

/// A new member has reported Configured: the pool has had one, and where it is of the present
/// template, that builds.
pub fn succeed_build(draft: &mut Draft<'_>, template_hash: &str) {
    let row = draft.row_mut();
    row.ever_ready = true;
    if row.template_hash == template_hash {
        row.health.consecutive_failures = 0;
        row.health.back_off = None;
    }
}

/// A member that was not Configured in time.
pub fn overdue() -> Failure {
    Failure {
        reason: "BuildTimedOut".into(),
        message: format!("not Configured within {} minutes", BUILD_WITHIN_MILLIS / 60_000),
    }
}

/// Whether a build that began after the last wait still tries the template.
pub fn is_probing(draft: &Draft<'_>, since: Time) -> bool {
    draft.pool.members_by.builds.range((since, Ulid::nil())..).next().is_some()
}
