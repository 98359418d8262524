//! Time: any deadline may be the next to come. Which timers there are is read from the rows, so that
//! the core's own list (`next_deadline`) can be held against it.

use ulid::Ulid;

use crate::NOW;
use crate::canonical::{Whole, is_running};
use ringleader_proof::object::{LeasePhase, MemberState, Time};
use ringleader_proof::pool::{Lease, Member, PoolRow};

/// What may fall due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Timer {
    /// A build takes too long.
    Build,
    /// A recycle takes too long.
    Recycle,
    /// A machine is down for too long.
    Down,
    /// The agent does not confirm that a lease's keys are gone.
    Revoke,
    /// A member has been idle for long.
    Idle,
    /// A member has passed maxAge.
    Age,
    /// A lease expires by the wall clock.
    Expiry,
    /// A lease's term ends by the steady clock, because the wall clock was stepped back.
    Term,
    /// A failed lease was kept long enough.
    Retention,
    /// The wait after failed builds is over.
    BackOff,
}

/// Longer than the core waits for a machine to be back.
const LONG_MILLIS: i64 = 24 * 3_600_000;

/// Every kind of timer.
pub const ALL: [Timer; 10] = [
    Timer::Build,
    Timer::Recycle,
    Timer::Down,
    Timer::Revoke,
    Timer::Idle,
    Timer::Age,
    Timer::Expiry,
    Timer::Term,
    Timer::Retention,
    Timer::BackOff,
];

/// Whose timers of this kind are running: members, leases, or the pool (nil).
pub fn running(timer: Timer, row: &PoolRow, leases: &[&Lease], members: &[&Member]) -> Vec<Ulid> {
    let of_members = |runs: &dyn Fn(&Member) -> bool| {
        members.iter().filter(|member| runs(member)).map(|member| member.uid()).collect()
    };
    let of_leases = |runs: &dyn Fn(&Lease) -> bool| {
        leases.iter().filter(|lease| runs(lease)).map(|lease| lease.uid()).collect()
    };
    match timer {
        Timer::Build => of_members(&|member| member.build_by.is_some()),
        Timer::Recycle => of_members(&|member| member.recycling.is_some()),
        Timer::Down => of_members(&|member| member.down_since.is_some()),
        Timer::Revoke => of_members(&|member| member.revoke_by.is_some()),
        Timer::Idle => {
            of_members(&|member| idle_limit(row, member).is_some_and(|long_ago| member.since > long_ago))
        }
        Timer::Age => {
            let long_ago = row.spec.max_age.as_ref().map(|max_age| NOW.plus_millis(-max_age.millis()));
            of_members(&|member| long_ago.is_some_and(|long_ago| member.born > long_ago))
        }
        Timer::Expiry | Timer::Term => of_leases(&is_running),
        Timer::Retention => of_leases(&|lease| lease.phase == LeasePhase::Failed),
        Timer::BackOff => {
            let runs = row.health.back_off.is_some_and(|back_off| back_off.until > NOW);
            runs.then(Ulid::nil).into_iter().collect()
        }
    }
}

/// Since when an idle member has been idle for long.
fn idle_limit(row: &PoolRow, member: &Member) -> Option<Time> {
    let warm = &row.spec.warm;
    match member.state {
        MemberState::IdleRunning => Some(NOW.plus_millis(-warm.stop_after.millis())),
        MemberState::IdleStopped | MemberState::Stopping => {
            Some(NOW.plus_millis(-warm.delete_after.millis()))
        }
        MemberState::Building
        | MemberState::Starting
        | MemberState::Leased
        | MemberState::Recycling
        | MemberState::Deleting => None,
    }
}

impl Whole {
    /// It falls due now.
    pub fn fire(&mut self, timer: Timer, whose: Ulid) {
        let row = &mut self.row;
        let member = self.members.iter().position(|member| member.uid() == whose);
        let lease = self.leases.iter_mut().find(|lease| lease.uid() == whose);
        let retention = row.spec.lease.failed_retention.millis();
        match (timer, member, lease) {
            (Timer::Expiry, _, Some(lease)) => lease.spec.expires_at = Some(NOW),
            (Timer::Term, _, Some(lease)) => lease.term_ends = NOW,
            (Timer::Retention, _, Some(lease)) => lease.ended_at = Some(NOW.plus_millis(-retention)),
            (Timer::BackOff, _, _) => {
                if let Some(back_off) = &mut row.health.back_off {
                    // Nothing was begun while it lasted.
                    back_off.until = NOW;
                    for lease in &mut self.leases {
                        if let Some(ringleader_proof::pool::WaitsFor::BackOff { until, .. }) =
                            &mut lease.waits_for
                        {
                            *until = NOW;
                        }
                    }
                }
            }
            (Timer::Age, Some(index), _) => {
                // Whoever is older has passed it too.
                let (born, max_age) = (self.members[index].born, row.spec.max_age.as_ref());
                let millis = max_age.map_or(0, ringleader_proof::object::Span::millis);
                for member in self.members.iter_mut().filter(|member| member.born <= born) {
                    member.born = member.born.plus_millis(-millis);
                }
            }
            (timer, Some(index), _) => fire_for_member(timer, &mut self.members[index], row),
            (_, None, _) => {}
        }
    }
}

fn fire_for_member(timer: Timer, member: &mut Member, row: &PoolRow) {
    match timer {
        Timer::Build => member.build_by = Some(NOW),
        Timer::Recycle => {
            if let Some(recycling) = &mut member.recycling {
                recycling.order.by = NOW;
            }
        }
        Timer::Down => member.down_since = Some(NOW.plus_millis(-LONG_MILLIS)),
        Timer::Revoke => member.revoke_by = Some(NOW),
        Timer::Idle => {
            if let Some(long_ago) = idle_limit(row, member) {
                member.since = long_ago;
            }
        }
        Timer::Age | Timer::Expiry | Timer::Term | Timer::Retention | Timer::BackOff => {}
    }
}
