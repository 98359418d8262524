//! One look at everything the pool knows. A pass does the first act of this list that is due, and
//! nothing else; it is repeated until nothing is. Ending comes before lending, lending before
//! keeping warm, and what only people read comes last.

mod age;
mod bind;
mod build;
mod end;
mod expire;
mod give_up;
mod keep_warm;
mod let_go;
mod refresh;
mod release;
mod replace;
mod tell;

pub use build::hold as build_hold;
pub use keep_warm::is_lacking;

use super::draft::Draft;
use super::{Act, Inputs, Pool, status};
use crate::object::{Tick, Time};

const ORDER: [fn(&mut Draft<'_>) -> Option<Act>; 24] = [
    expire::by_time,
    release::wish,
    release::revoked,
    give_up::overdue_build,
    give_up::overdue_recycle,
    give_up::down_too_long,
    end::waiting_lease,
    end::recycle,
    end::member,
    end::pool,
    expire::retention,
    refresh::owner_keys,
    bind::oldest,
    age::mark,
    age::unmark,
    let_go::above_size,
    replace::drop_stale_build,
    keep_warm::stop_built_for_it,
    keep_warm::start,
    keep_warm::build,
    replace::let_go,
    let_go::by_timer,
    tell::waiting,
    expire::event,
];

/// Does the one next act on `draft`.
pub fn next(draft: &mut Draft<'_>) -> Act {
    if draft.pool.ended {
        return Act::Nothing;
    }
    ORDER.iter().find_map(|act| act(draft)).or_else(|| status::write(draft)).unwrap_or(Act::Nothing)
}

/// The earliest moment after now at which one of the acts may fall due. What is due already and
/// not done waits for something other than time.
pub fn next_deadline(pool: &Pool, tick: &Tick) -> Option<Time> {
    let deadlines = [
        expire::deadline(pool, tick),
        release::deadline(pool, tick.steady),
        give_up::deadline(pool, tick.steady),
        build::deadline(pool, tick.steady),
        age::deadline(pool, tick.steady),
        let_go::deadline(pool, tick.steady),
    ];
    deadlines.into_iter().flatten().min()
}

/// The floors in force: a provider that cannot stop machines keeps none stopped.
pub fn floors(pool: &Pool, inputs: &Inputs) -> Floors {
    let warm = &pool.row.spec.warm;
    let stopped = if build::can_stop(pool, inputs) { warm.stopped } else { 0 };
    Floors { running: warm.running, stopped }
}

/// How many idle members are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Floors {
    pub running: u32,
    pub stopped: u32,
}

impl Floors {
    pub const fn total(self) -> u32 {
        self.running.saturating_add(self.stopped)
    }
}
