//! Ordered looks at the rows, kept by evolve, so that an act costs O(log n) and not a walk over
//! every lease and member. Nothing here is stored: a pool read from disk builds it anew.

mod leases;
mod members;
mod ranked;

pub use leases::{LeaseIndex, Place};
pub use members::{Idle, MemberIndex, Stale};
pub use ranked::{Life, Ranked};

use std::collections::BTreeSet;
use std::ops::Bound;

use ulid::Ulid;

use crate::object::Time;

/// Moments at which something falls due, each with whose it is.
pub type Moments = BTreeSet<(Time, Ulid)>;

/// The earliest of `moments` that has come by `now`.
pub fn due(moments: &Moments, now: Time) -> Option<Ulid> {
    moments.first().filter(|(time, _)| *time <= now).map(|(_, uid)| *uid)
}

/// The earliest of `moments` that is still to come after `now`.
pub fn upcoming(moments: &Moments, now: Time) -> Option<Time> {
    moments.range((Bound::Excluded((now, Ulid::max())), Bound::Unbounded)).next().map(|(time, _)| *time)
}

/// Puts `item` into `set` or takes it out.
fn place<T: Ord>(set: &mut BTreeSet<T>, step: Step, item: T) {
    match step {
        Step::Add => set.insert(item),
        Step::Remove => set.remove(&item),
    };
}

/// Counts one more or one less.
const fn tally(count: &mut u32, step: Step) {
    match step {
        Step::Add => *count += 1,
        Step::Remove => *count -= 1,
    }
}

/// Whether a row enters the index or leaves it. Both ways run through the same code, so that
/// what was put in is what is taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Add,
    Remove,
}
